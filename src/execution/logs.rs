//! Logs of a cell, for people: what Maven and the tests said, byte for byte as far as it was kept.
//!
//! Verdicts never come from here.

use std::path::{Path, PathBuf};

use fs_err as fs;

use super::run_directory::RunDirectoryError;
use crate::engine::session::StepOutput;
use crate::engine::spec::{Command, Program, Step, StepResult};
use crate::task::{Cell, MethodId, TaskId};
use crate::workspace::cells::nested_in;

/// The directory of one cell's logs.
pub struct CellLogs {
    directory: Option<PathBuf>,
    relative: String,
}

impl CellLogs {
    /// Makes `<root>/<task>/<cell>`; without a root nothing is kept.
    ///
    /// # Errors
    /// The file system's.
    pub fn create(root: Option<&Path>, task: &TaskId, cell: Cell) -> std::io::Result<Self> {
        let relative = format!("{task}/{}", cell.name());
        let directory = root.map(|root| root.join(&relative));
        if let Some(directory) = &directory {
            fs::create_dir_all(directory)?;
        }
        Ok(Self { directory, relative })
    }

    /// Makes `<root>/prepared/<name>`, for what many cells share; without a root nothing is kept.
    ///
    /// # Errors
    /// The file system's.
    pub fn prepared(root: Option<&Path>, name: &str) -> std::io::Result<Self> {
        let relative = format!("prepared/{}", log_name(name));
        let directory = root.map(|root| root.join(&relative));
        if let Some(directory) = &directory {
            fs::create_dir_all(directory)?;
        }
        Ok(Self { directory, relative })
    }

    /// Returns the directory relative to the root, where logs are kept.
    pub fn relative(&self) -> Option<String> {
        self.directory.as_ref().map(|_| self.relative.clone())
    }

    /// Keeps what a step of the program runs, before it does: `<name>.command.json`.
    ///
    /// # Errors
    /// The file system's.
    pub fn invocation(&self, name: &str, program: &Program, step: usize) -> std::io::Result<()> {
        let Some(Step::Run(command)) = program.steps.get(step) else { return Ok(()) };
        self.keep(&format!("{name}{COMMAND_SUFFIX}"), &serde_json::to_vec_pretty(command)?)
    }

    /// Keeps what a command said: `<name>.stdout`, `.stderr`, `.events.jsonl`; empty ones are left out.
    ///
    /// # Errors
    /// The file system's.
    pub fn command(&self, name: &str, output: Option<&StepOutput>) -> std::io::Result<()> {
        let Some(output) = output else { return Ok(()) };
        for (suffix, captured) in
            [("stdout", &output.stdout), ("stderr", &output.stderr), ("events.jsonl", &output.events)]
        {
            self.keep(&format!("{name}.{suffix}"), &captured.bytes()?)?;
        }
        Ok(())
    }

    /// Keeps a file that was sent.
    ///
    /// # Errors
    /// The file system's.
    pub fn file(&self, name: &str, output: Option<&StepOutput>) -> std::io::Result<()> {
        match output {
            Some(output) if output.result() != Some(&StepResult::Absent) => self.keep(name, &output.content.bytes()?),
            _ => Ok(()),
        }
    }

    fn keep(&self, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        let Some(directory) = self.directory.as_ref().filter(|_| !bytes.is_empty()) else { return Ok(()) };
        fs::write(directory.join(log_name(name)), bytes)
    }
}

/// Returns what the logs of a method's launches are called by: its name, with its class where that is not the test file's.
pub(super) fn method_name(test_class: &str, method: &MethodId) -> String {
    match nested_in(test_class, method) {
        Some("") => method.method().to_owned(),
        _ => format!("{}.{}", method.class(), method.method()),
    }
}

/// What the name of a command's file ends with.
pub(super) const COMMAND_SUFFIX: &str = ".command.json";

/// Returns the name of a log's file. Method names are Java identifiers; whatever else stands in a name must not leave
/// the directory.
pub(super) fn log_name(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    name.chars().take(150).map(safe).collect()
}

/// Reads what [`CellLogs::invocation`] wrote.
///
/// # Errors
/// [`RunDirectoryError::Io`], [`RunDirectoryError::Malformed`].
pub(super) fn read_command(path: &Path) -> Result<Command, RunDirectoryError> {
    let malformed =
        |error: serde_json::Error| RunDirectoryError::Malformed { path: path.to_owned(), reason: error.to_string() };
    serde_json::from_slice(&fs::read(path)?).map_err(malformed)
}
