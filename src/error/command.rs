//! Errors of commands: one of the command itself, or any [`Failure`] of a module below.

use std::fmt::Write as _;
use std::io;

use super::{ExitStatus, Failure};
use crate::output::{escape, escape_lines};

/// Why a command failed. This type is no [`Failure`] itself, so that `?` can convert every `Failure` into it.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The command finished, and a check failed. Details are on stdout.
    #[error("{summary}")]
    CheckFailed {
        /// The failed check, in one line.
        summary: String,
    },
    /// The command finished, but faults of the machine prevented some results. Details are on stdout.
    #[error("{summary}")]
    InfrastructureLeft {
        /// The missing results, in one line.
        summary: String,
    },
    /// A command failed for some repositories, and did its work for the others.
    #[error("{failed} of {total} repositories could not be {done}")]
    Repositories {
        /// Number of failed repositories.
        failed: usize,
        /// Number of all repositories.
        total: usize,
        /// What could not be done, such as `locked`.
        done: &'static str,
        /// The most severe of their errors, which decides the exit code.
        #[source]
        worst: Box<CommandError>,
        /// The repositories, in the order of their failures.
        rows: Vec<FailedRepository>,
    },
    /// Arguments that contradict each other or the state of the data directory.
    #[error("{message}")]
    Usage {
        /// The problem.
        message: String,
        /// The remedy.
        hint: String,
    },
    /// Blobs of the store have other bytes than their names say, or unpacked layers are damaged. Stdout lists them.
    #[error("{}", corrupted(*blobs, *layers))]
    StoreCorrupted {
        /// Number of damaged blobs.
        blobs: usize,
        /// Number of damaged unpacked layers.
        layers: usize,
    },
    /// Results could not be written to stdout.
    #[error("stdout could not be written")]
    Output(#[source] io::Error),
    /// The asynchronous runtime or the handlers of interrupts could not be started.
    #[error("the runtime could not be started")]
    Runtime(#[source] io::Error),
    /// Work panicked, or a value could not be written as JSON.
    #[error("this program has a defect")]
    Defect(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
    /// A module below the command failed.
    #[error(transparent)]
    Failure(Box<dyn Failure>),
}

/// What happened to a repository, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FailedRepository {
    /// The repository.
    pub repository: String,
    /// The error with its causes, in one line.
    pub error: String,
    /// The remedy, if one is known.
    pub hint: Option<String>,
}

impl FailedRepository {
    /// Returns the row of a repository's error.
    pub fn of(repository: &str, error: &CommandError) -> Self {
        let mut text = error.to_string();
        for cause in error.causes() {
            text.push_str(&format!(": {cause}"));
        }
        // A long error's first line says what is wrong. The command has told the rest.
        let first = text.lines().next().unwrap_or_default().to_owned();
        Self { repository: repository.to_owned(), error: first, hint: error.hint() }
    }
}

fn corrupted(blobs: usize, layers: usize) -> String {
    let blobs = (blobs > 0).then(|| format!("{blobs} of the store's blobs hold other bytes than their names promise"));
    let layers = (layers > 0).then(|| format!("{layers} of the unpacked layers are damaged"));
    blobs.into_iter().chain(layers).collect::<Vec<_>>().join("; ")
}

impl<E: Failure> From<E> for CommandError {
    fn from(error: E) -> Self {
        Self::Failure(Box::new(error))
    }
}

impl CommandError {
    /// Returns the error for a panic, or for a value that can't be written as JSON.
    pub fn defect(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Defect(cause.into())
    }

    /// Returns the exit code.
    pub fn exit_status(&self) -> ExitStatus {
        match self {
            Self::CheckFailed { .. } => ExitStatus::CheckFailed,
            Self::Repositories { worst, .. } => worst.exit_status(),
            Self::Usage { .. } => ExitStatus::Usage,
            Self::InfrastructureLeft { .. } | Self::Output(_) | Self::Runtime(_) | Self::Defect(_) => {
                ExitStatus::Infrastructure
            }
            Self::StoreCorrupted { .. } => ExitStatus::Mismatch,
            Self::Interrupted => ExitStatus::Interrupted,
            Self::Failure(error) => error.exit_status(),
        }
    }

    /// Returns the remedy, if one is known.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            // Each row of a repository has its own remedy.
            Self::CheckFailed { .. } | Self::Repositories { .. } | Self::Interrupted => return None,
            Self::Output(_) => "check the disk or the program that stdout leads to",
            Self::Failure(error) => return error.hint(),
            Self::Usage { hint, .. } => hint,
            Self::StoreCorrupted { .. } => {
                "`store verify --repair` removes them; `build-images` fetches or makes them again"
            }
            Self::InfrastructureLeft { .. } => {
                "look at the reasons above; `testevo-sandbox doctor` says what this machine lacks"
            }
            Self::Runtime(_) => "check the limits on processes and open files",
            Self::Defect(_) => "report it with these lines: this is an error of the program",
        };
        Some(hint.to_owned())
    }

    /// Returns the module's error if it is of this type.
    pub fn failure<E: Failure>(&self) -> Option<&E> {
        match self {
            Self::Failure(error) => (error.as_ref() as &dyn std::error::Error).downcast_ref(),
            _ => None,
        }
    }

    /// Returns the error as the user sees it: `error: …`, a line per cause, and `hint: …`. Labels are coloured on
    /// request. Control characters in texts are escaped.
    pub fn render(&self, color: bool) -> String {
        let label =
            |label: &str, style: &str| if color { format!("\u{1b}[{style}m{label}\u{1b}[0m") } else { label.into() };
        let mut text = format!("{} {}\n", label("error:", "1;31"), escape_lines(&self.to_string()));
        for cause in self.causes() {
            let _ = writeln!(text, "  caused by: {}", escape_lines(&cause));
        }
        if let Some(hint) = self.hint() {
            let _ = writeln!(text, "{} {}", label("hint:", "1;36"), escape_lines(&hint));
        }
        if let Self::Repositories { rows, .. } = self {
            for FailedRepository { repository, error, hint } in rows {
                let _ = writeln!(text, "{}: {}", escape(repository), escape_lines(error));
                if let Some(hint) = hint {
                    let _ = writeln!(text, "  {} {}", label("hint:", "1;36"), escape_lines(hint));
                }
            }
        }
        text
    }

    /// Returns the error as an event for machines: a value with `event`, `exit_code`, `text`, `causes` and `hint`,
    /// and with `repositories` if several were worked on.
    pub fn as_event(&self) -> serde_json::Value {
        let mut event = serde_json::json!({
            "event": "error",
            "exit_code": self.exit_status() as u8,
            "text": self.to_string(),
            "causes": self.causes(),
            "hint": self.hint(),
        });
        if let Self::Repositories { rows, .. } = self {
            event["repositories"] = serde_json::json!(rows);
        }
        event
    }

    /// Returns the causes, nearest first. Leaves out causes whose text is part of the previous message.
    pub(crate) fn causes(&self) -> Vec<String> {
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

    #[derive(Debug, thiserror::Error)]
    #[error("the disk said: {0}")]
    struct DiskError(#[source] io::Error);

    impl Failure for DiskError {
        fn exit_status(&self) -> ExitStatus {
            ExitStatus::Infrastructure
        }

        fn hint(&self) -> Option<String> {
            None
        }
    }

    #[test]
    fn an_error_shows_its_causes_once_and_its_hint() {
        let error = CommandError::Runtime(io::Error::other("no \u{1b}[31mthreads"));
        assert_eq!(
            error.render(false),
            "error: the runtime could not be started\n  caused by: no \\u{1b}[31mthreads\n\
             hint: check the limits on processes and open files\n"
        );
        let error = CommandError::from(DiskError(io::Error::other("disk full")));
        assert_eq!(error.render(false), "error: the disk said: disk full\n");
    }

    #[test]
    fn an_error_of_a_module_is_found_by_its_type() {
        let error = CommandError::from(DiskError(io::Error::other("disk full")));
        assert!(error.failure::<DiskError>().is_some_and(|error| error.0.to_string() == "disk full"));
        assert!(CommandError::Interrupted.failure::<DiskError>().is_none());
    }
}
