//! Errors of opening a door.

use std::path::PathBuf;

use crate::artifact::store::StoreError;
use crate::error::{ExitStatus, Failure};

/// Errors of opening a door.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// The socket can't be created.
    #[error("the door's socket `{path}` could not be opened: {source}")]
    Socket {
        /// The socket.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Failure for DoorError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Socket { .. } => ExitStatus::Infrastructure,
            Self::Store(error) => error.exit_status(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Socket { .. } => Some("check the data directory's permissions and free space".to_owned()),
            Self::Store(error) => error.hint(),
        }
    }
}
