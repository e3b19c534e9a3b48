//! Errors for locks and manifests that do not match each other or their path.

use std::path::PathBuf;

use crate::error::{ExitStatus, Failure};
use crate::task::RepositoryName;

/// Why a readable lock or manifest can't be used.
#[derive(Debug, thiserror::Error)]
pub enum MismatchError {
    /// An import would replace a lock by a different one.
    #[error("the lock `{path}` is not the archive's")]
    OtherLock {
        /// The present lock.
        path: PathBuf,
    },
    /// A repository's lock was resolved for other settings than its manifest has now.
    #[error("the lock of {repository} was resolved {difference}")]
    OtherManifest {
        /// The repository.
        repository: RepositoryName,
        /// The lock's inputs, and the manifest's differing ones.
        difference: String,
    },
    /// A file belongs to another repository than its name says.
    #[error("`{path}` is of {found}, not of {wanted}")]
    OtherRepository {
        /// The lock or manifest.
        path: PathBuf,
        /// The repository in the file.
        found: RepositoryName,
        /// The repository in the name.
        wanted: String,
    },
}

impl Failure for MismatchError {
    fn exit_status(&self) -> ExitStatus {
        ExitStatus::Mismatch
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::OtherLock { .. } => {
                "import with `--replace`, which keeps it in locks/history, or into another `--data-dir`".to_owned()
            }
            Self::OtherManifest { repository, .. } => {
                format!("run `testevo-sandbox lock {repository}`: it resolves the repository anew")
            }
            Self::OtherRepository { .. } => {
                "put the right one there, or remove it: `import` writes manifests, and `lock` resolves locks".to_owned()
            }
        })
    }
}
