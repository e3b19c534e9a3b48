//! The error of a command that could not read or write a file, where no module below the command has an error for it.

use std::io;

use crate::data_dir::shared::{GONE_HINT, is_full, is_gone};
use crate::error::{CommandError, ExitStatus, Failure};

/// Reading or writing files failed.
#[derive(Debug, thiserror::Error)]
#[error("{doing} failed")]
pub struct IoFailure {
    /// The work that failed, such as `recording time classes`. It names the path unless `source` does.
    pub doing: String,
    /// The cause.
    pub source: io::Error,
}

impl IoFailure {
    /// Returns a function that turns the I/O error of this work into the error of the command.
    pub fn of(doing: impl Into<String>) -> impl FnOnce(io::Error) -> CommandError {
        let doing = doing.into();
        move |source| Self { doing, source }.into()
    }
}

impl Failure for IoFailure {
    fn exit_status(&self) -> ExitStatus {
        ExitStatus::Infrastructure
    }

    fn hint(&self) -> Option<String> {
        let hint = match self.source.kind() {
            _ if is_full(&self.source) => "make space on that disk; rerun the same command to resume",
            _ if is_gone(&self.source) => GONE_HINT,
            io::ErrorKind::NotFound => "check that the file, or the directory for it, exists",
            io::ErrorKind::InvalidData => "the file is damaged: get it again, or restore it from a copy",
            _ => "check permissions and free space",
        };
        Some(hint.to_owned())
    }
}
