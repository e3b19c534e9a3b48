//! Errors of locking a repository.

use crate::artifact::fetch::FetchError;
use crate::artifact::made::MadeError;
use crate::artifact::store::StoreError;
use crate::engine::EngineError;
use crate::error::{ExitStatus, Failure};
use crate::lock::{LockFileError, UnresolvedSet};
use crate::output::counted;
use crate::resolution::allowance::Exhausted;
use crate::resolution::door::DoorError;
use crate::resolution::in_tree::InTreeError;
use crate::task::RepositoryName;
use crate::workspace::WorkspaceError;

/// Errors that end a lock early. The results until then are saved.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The door could not be opened.
    #[error(transparent)]
    Door(#[from] DoorError),
    /// A container could not be run.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A locked file is not available.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The lock could not be written.
    #[error(transparent)]
    LockFile(#[from] LockFileError),
    /// A set's tree is not available.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// An origin failed during a request of Maven.
    #[error("`{path}` was needed for {repository} and could not be fetched: {cause}")]
    Origin {
        /// The repository.
        repository: RepositoryName,
        /// Path in repository layout.
        path: String,
        /// The cause.
        cause: String,
    },
    /// Some sets of build files lack artifacts. The lock covers the others.
    #[error("{} of {repository} {}: {first}", counted(*sets, "set of build files", "sets of build files"), if *sets == 1 { "is unresolved" } else { "are unresolved" })]
    Unresolved {
        /// The repository.
        repository: RepositoryName,
        /// Number of sets.
        sets: usize,
        /// The first artifact.
        first: Box<UnresolvedSet>,
    },
    /// Maven, or a plugin in it, exceeded the limits of a lock.
    #[error("{repository} asks for too much: {cause}")]
    Exhausted {
        /// The repository.
        repository: RepositoryName,
        /// The limit.
        cause: Exhausted,
    },
    /// Maven, or a plugin in it, made a file that a lock can't name.
    #[error("`{path}` in the Maven cache of {repository} has a name that is not UTF-8")]
    FileName {
        /// The repository.
        repository: RepositoryName,
        /// Path below the cache, with a replacement character for each wrong byte.
        path: String,
    },
    /// The container ended early.
    #[error("the container that resolves {repository} broke off: {cause}")]
    Container {
        /// The repository.
        repository: RepositoryName,
        /// The cause.
        cause: String,
    },
}

impl LockError {
    /// Returns the error of collecting files in a repository's trees.
    pub fn in_tree(repository: &RepositoryName, error: InTreeError) -> Self {
        match error {
            InTreeError::Workspace(error) => error.into(),
            InTreeError::Store(error) => error.into(),
            InTreeError::Exhausted(cause) => Self::Exhausted { repository: repository.clone(), cause },
        }
    }
}

impl From<MadeError> for LockError {
    fn from(error: MadeError) -> Self {
        match error {
            MadeError::Io(error) => Self::Io(error),
            MadeError::Store(error) => Self::Store(error),
            MadeError::DataDir(error) => Self::Io(std::io::Error::other(error)),
        }
    }
}

impl Failure for LockError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Door(error) => error.exit_status(),
            Self::Engine(error) => error.exit_status(),
            Self::Fetch(error) => error.exit_status(),
            Self::Store(error) => error.exit_status(),
            Self::LockFile(error) => error.exit_status(),
            Self::Workspace(error) => error.exit_status(),
            Self::Origin { .. } | Self::Unresolved { .. } => ExitStatus::Origin,
            Self::Exhausted { .. } | Self::FileName { .. } => ExitStatus::BadInput,
            Self::Io(_) | Self::Container { .. } => ExitStatus::Infrastructure,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Door(error) => return error.hint(),
            Self::Engine(error) => return error.hint(),
            Self::Fetch(error) => return error.hint(),
            Self::Store(error) => return error.hint(),
            Self::LockFile(error) => return error.hint(),
            Self::Workspace(error) => return error.hint(),
            // An unreachable origin stops the lock, because its files can't be taken for missing.
            Self::Origin { .. } => {
                "check the network, or say with `--origin NAME=URL` where else to find what that origin has; rerun \
                 `lock` to resume"
            }
            Self::Unresolved { first, .. } => {
                let origin = first.origins.last().map_or("NAME", String::as_str);
                return Some(format!(
                    "say with `--origin NAME=URL` where else the artifact is, or with `--origin {origin}=` that an origin \
                     is gone; tasks on other build files can be executed"
                ));
            }
            Self::Exhausted { .. } | Self::FileName { .. } => {
                "look at the plugins and repositories that its POMs declare, or leave it out"
            }
            Self::Container { .. } => "rerun `lock` to resume; see the free memory with `doctor`",
            Self::Io(_) => "check the data directory's permissions and free space",
        };
        Some(hint.to_owned())
    }
}
