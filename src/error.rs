//! Exit codes and hints. Every error that can end a command is a [`Failure`], implemented beside the error itself.
//!
//! [`CommandError`] is what commands return. This module knows no other module's errors.

mod command;

pub use command::{CommandError, FailedRepository};

/// The exit codes, in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitStatus {
    /// The command succeeded.
    Fine = 0,
    /// The command finished and a check failed.
    CheckFailed = 1,
    /// The command line or the settings are invalid.
    Usage = 2,
    /// Faults of the machine or of this program prevented results.
    Infrastructure = 3,
    /// Data from outside is wrong.
    BadInput = 4,
    /// An origin or the network failed.
    Origin = 5,
    /// A digest, lock or store does not match.
    Mismatch = 6,
    /// An engine, or the requested isolation, is missing.
    Engine = 7,
    /// The user interrupted.
    Interrupted = 130,
}

impl ExitStatus {
    /// Returns the rank of a failure. A command that works on several repositories exits with the code of the highest
    /// rank: a failed check is the least, then what concerns one repository, then what concerns all.
    pub fn severity(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::CheckFailed => 1,
            Self::Usage => 2,
            Self::BadInput => 3,
            Self::Origin => 4,
            Self::Mismatch => 5,
            Self::Engine => 6,
            Self::Infrastructure => 7,
            Self::Interrupted => 8,
        }
    }
}

impl From<ExitStatus> for std::process::ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status as u8)
    }
}

/// An error that can end a command.
pub trait Failure: std::error::Error + Send + Sync + 'static {
    /// Returns the exit code of a command that ends with this error.
    fn exit_status(&self) -> ExitStatus;

    /// Returns the user's remedy, if one is known.
    fn hint(&self) -> Option<String>;
}

/// The standard library implements this only for boxes of sized errors.
impl std::error::Error for Box<dyn Failure> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        (**self).source()
    }
}
