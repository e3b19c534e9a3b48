//! How a command fails: one error for the whole command line, its exit code, and what the user can do.
//!
//! Modules below have errors of their own; here they are only gathered, and every new kind must say its exit code.

use std::io;

use crate::data_dir::DataDirError;
use crate::manifest::ManifestError;
use crate::settings::SettingsError;
use crate::task::file::TaskFileError;
use crate::task::published::PublishedError;
use crate::task::selector::SelectorError;
use crate::workspace::WorkspaceError;

/// The exit codes, in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitStatus {
    /// Everything went as asked.
    Fine = 0,
    /// The command finished and a check failed.
    CheckFailed = 1,
    /// The command line or the settings make no sense.
    Usage = 2,
    /// Faults of the machine or of this program are left.
    Infrastructure = 3,
    /// Data from outside is wrong.
    BadInput = 4,
    /// An origin or the network failed.
    Origin = 5,
    /// A digest, lock or store does not match.
    Mismatch = 6,
    /// An engine, or the isolation that was asked for, is missing.
    Engine = 7,
    /// The user interrupted.
    Interrupted = 130,
}

impl From<ExitStatus> for std::process::ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status as u8)
    }
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The command did its work and what it checked does not hold; the details are on stdout.
    #[error("{summary}")]
    CheckFailed {
        /// What does not hold, in one line.
        summary: String,
    },
    /// The command did its work as far as faults of the machine let it; the details are on stdout.
    #[error("{summary}")]
    InfrastructureLeft {
        /// What is left, in one line.
        summary: String,
    },
    /// Arguments that don't go together.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What to do.
        hint: String,
    },
    /// The settings can't be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The data directory can't be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// Published data can't be used.
    #[error(transparent)]
    Published(#[from] PublishedError),
    /// A manifest can't be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A task file can't be used.
    #[error(transparent)]
    TaskFile(#[from] TaskFileError),
    /// What was asked for does not exist.
    #[error(transparent)]
    Selection(#[from] SelectorError),
    /// Sources could not be had.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// Results could not be written to stdout.
    #[error("stdout could not be written")]
    Output(#[source] io::Error),
    /// The asynchronous runtime could not be started.
    #[error("the runtime could not be started")]
    Runtime(#[source] io::Error),
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
}

impl CommandError {
    /// Returns the exit code.
    pub fn exit_status(&self) -> ExitStatus {
        match self {
            Self::CheckFailed { .. } => ExitStatus::CheckFailed,
            Self::Usage { .. } | Self::Settings(_) => ExitStatus::Usage,
            Self::InfrastructureLeft { .. } | Self::Output(_) | Self::Runtime(_) => ExitStatus::Infrastructure,
            Self::DataDir(DataDirError::UnknownVersion { .. }) => ExitStatus::Mismatch,
            Self::DataDir(DataDirError::Io { .. } | DataDirError::Store(_)) => ExitStatus::Infrastructure,
            Self::Published(_)
            | Self::Manifest(ManifestError::Malformed { .. } | ManifestError::UnsupportedJava { .. })
            | Self::TaskFile(TaskFileError::Malformed { .. }) => ExitStatus::BadInput,
            Self::Manifest(ManifestError::Io(_)) | Self::TaskFile(TaskFileError::Io(_)) => ExitStatus::Infrastructure,
            Self::Manifest(ManifestError::UnknownSchema { .. })
            | Self::TaskFile(TaskFileError::UnknownSchema { .. }) => ExitStatus::Mismatch,
            Self::Manifest(ManifestError::Missing { .. }) | Self::Selection(_) => ExitStatus::Usage,
            Self::Workspace(error) => match error {
                WorkspaceError::MirrorTemplate { .. } => ExitStatus::Usage,
                WorkspaceError::MirrorMissing { .. }
                | WorkspaceError::RevisionMissing { .. }
                | WorkspaceError::Offline { .. }
                | WorkspaceError::Fetch { .. }
                | WorkspaceError::MissingBlob { .. } => ExitStatus::Origin,
                WorkspaceError::Git { .. } => ExitStatus::Mismatch,
                WorkspaceError::HostileTree { .. } | WorkspaceError::SwapBlocked { .. } => ExitStatus::BadInput,
                WorkspaceError::GitCommand(_)
                | WorkspaceError::Archive { .. }
                | WorkspaceError::DataDir(_)
                | WorkspaceError::Io(_) => ExitStatus::Infrastructure,
            },
            Self::Interrupted => ExitStatus::Interrupted,
        }
    }

    /// Returns what the user can do, where something is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::CheckFailed { .. } | Self::Output(_) | Self::Interrupted => None,
            Self::Usage { hint, .. } => Some(hint.clone()),
            Self::Settings(error) => Some(error.hint()),
            Self::Published(error) => Some(error.hint()),
            Self::Manifest(error) => Some(error.hint()),
            Self::TaskFile(error) => Some(error.hint()),
            Self::Selection(error) => Some(error.hint()),
            Self::Workspace(error) => Some(error.hint()),
            Self::InfrastructureLeft { .. } => {
                Some("look at the reasons above; `testevo-sandbox doctor` says what this machine lacks".to_owned())
            }
            Self::DataDir(DataDirError::UnknownVersion { .. }) => {
                Some("use the program that wrote it, or name another directory with `--data-dir`".to_owned())
            }
            Self::DataDir(DataDirError::Io { .. } | DataDirError::Store(_)) => {
                Some("check its permissions and free space, or name another directory with `--data-dir`".to_owned())
            }
            Self::Runtime(_) => Some("check the limits on processes and open files".to_owned()),
        }
    }

    /// Returns the error as the user sees it: `error: …`, a line per cause, and `hint: …`, labels coloured on
    /// request; control characters of the texts are shown, not sent.
    pub fn render(&self, color: bool) -> String {
        use std::fmt::Write as _;
        let label =
            |label: &str, style: &str| if color { format!("\u{1b}[{style}m{label}\u{1b}[0m") } else { label.into() };
        let mut text = format!("{} {}\n", label("error:", "1;31"), crate::output::escape_lines(&self.to_string()));
        for cause in self.causes() {
            let _ = writeln!(text, "  caused by: {}", crate::output::escape_lines(&cause));
        }
        if let Some(hint) = self.hint() {
            let _ = writeln!(text, "{} {}", label("hint:", "1;36"), crate::output::escape_lines(&hint));
        }
        text
    }

    /// Returns the error as a machine reads it among events: a value with `event`, `exit_code`, `text`, `causes` and
    /// `hint`.
    pub fn as_event(&self) -> serde_json::Value {
        serde_json::json!({
            "event": "error",
            "exit_code": self.exit_status() as u8,
            "text": self.to_string(),
            "causes": self.causes(),
            "hint": self.hint(),
        })
    }

    /// Returns the causes, nearest first, without those that another message quotes already.
    fn causes(&self) -> Vec<String> {
        let mut last = self.to_string();
        let mut causes = Vec::new();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let message = error.to_string();
            if !last.contains(&message) {
                causes.push(message.clone());
                last = message;
            }
            cause = error.source();
        }
        causes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_its_causes_once_and_its_hint() {
        let error = CommandError::Runtime(io::Error::other("no \u{1b}[31mthreads"));
        assert_eq!(
            error.render(false),
            "error: the runtime could not be started\n  caused by: no \\u{1b}[31mthreads\n\
             hint: check the limits on processes and open files\n"
        );
        let io = io::Error::other("disk full");
        let error = CommandError::DataDir(DataDirError::Io { path: "d".into(), source: io });
        assert_eq!(error.render(false).matches("disk full").count(), 1);
    }
}
