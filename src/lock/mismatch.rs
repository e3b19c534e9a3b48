//! Locks and manifests that do not belong together, or not where they lie.

use std::path::PathBuf;

use crate::error::{ExitStatus, Failure};
use crate::task::RepositoryName;

/// Why a lock or manifest can't be used although it can be read.
#[derive(Debug, thiserror::Error)]
pub enum MismatchError {
    /// An import would replace a lock by another one.
    #[error("the lock `{path}` is not the archive's")]
    OtherLock {
        /// The present lock.
        path: PathBuf,
    },
    /// A repository's lock was resolved for something else than its manifest says now.
    #[error("the lock of {repository} was resolved {difference}")]
    OtherManifest {
        /// The repository.
        repository: RepositoryName,
        /// What it was resolved for, and what the manifest says.
        difference: String,
    },
    /// A file is another repository's than its name says.
    #[error("`{path}` is of {found}, not of {wanted}")]
    OtherRepository {
        /// The lock or manifest.
        path: PathBuf,
        /// Whose it is.
        found: RepositoryName,
        /// Whose it should be.
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
