//! Logs of a cell, for people: the output of Maven and of the tests, byte for byte up to the limit of captured output.
//!
//! Verdicts never come from logs.

use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::digest::Digest;
use crate::engine::session::StepOutput;
use crate::engine::spec::{Command, Program, Step, StepResult};
use crate::execution::run::directory::RunDirectoryError;
use crate::execution::run::reading;
use crate::task::{Cell, MethodId, TaskId};
use crate::workspace::cells::nested_in;

/// The directory of one cell's logs.
pub struct CellLogs {
    directory: Option<PathBuf>,
    relative: String,
}

impl CellLogs {
    /// Creates `<root>/<task>/<cell>`; without a root nothing is logged.
    ///
    /// # Errors
    /// I/O errors of creating the directory.
    pub fn create(root: Option<&Path>, task: &TaskId, cell: Cell) -> std::io::Result<Self> {
        let relative = format!("{task}/{}", cell.name());
        let directory = root.map(|root| root.join(&relative));
        if let Some(directory) = &directory {
            fs::create_dir_all(directory)?;
        }
        Ok(Self { directory, relative })
    }

    /// Creates `<root>/prepared/<name>`, for builds that many cells share; without a root nothing is logged.
    ///
    /// # Errors
    /// I/O errors of creating the directory.
    pub fn prepared(root: Option<&Path>, name: &str) -> std::io::Result<Self> {
        let relative = format!("prepared/{}", log_stem(name));
        let directory = root.map(|root| root.join(&relative));
        if let Some(directory) = &directory {
            fs::create_dir_all(directory)?;
        }
        Ok(Self { directory, relative })
    }

    /// Makes a directory below this one, for logs of the same names.
    ///
    /// # Errors
    /// I/O errors of creating the directory.
    pub(in crate::execution) fn below(&self, name: &str) -> std::io::Result<Self> {
        let name = log_stem(name);
        let directory = self.directory.as_ref().map(|directory| directory.join(&name));
        if let Some(directory) = &directory {
            fs::create_dir_all(directory)?;
        }
        Ok(Self { directory, relative: format!("{}/{name}", self.relative) })
    }

    /// Returns the directory relative to the root; `None` if nothing is logged.
    pub fn relative(&self) -> Option<String> {
        self.directory.as_ref().map(|_| self.relative.clone())
    }

    /// Writes the command of a program's step, before the program runs: `<name>.command.json`.
    ///
    /// # Errors
    /// I/O errors of writing the file.
    pub fn invocation(&self, name: &str, program: &Program, step: usize) -> std::io::Result<()> {
        let Some(Step::Run(command)) = program.steps.get(step) else { return Ok(()) };
        self.keep(name, COMMAND_SUFFIX, &serde_json::to_vec_pretty(command)?)
    }

    /// Writes a command's output: `<name>.stdout`, `.stderr`, `.events.jsonl`; empty files are left out.
    ///
    /// # Errors
    /// I/O errors of writing the files.
    pub fn command(&self, name: &str, output: Option<&StepOutput>) -> std::io::Result<()> {
        let Some(output) = output else { return Ok(()) };
        for (suffix, captured) in
            [(".stdout", &output.stdout), (".stderr", &output.stderr), (".events.jsonl", &output.events)]
        {
            self.keep(name, suffix, &captured.bytes()?)?;
        }
        Ok(())
    }

    /// Writes a file that init sent: `<name><suffix>`.
    ///
    /// # Errors
    /// I/O errors of writing the file.
    pub fn file(&self, name: &str, suffix: &str, output: Option<&StepOutput>) -> std::io::Result<()> {
        match output {
            Some(output) if output.result() != Some(&StepResult::Absent) => {
                self.keep(name, suffix, &output.content.bytes()?)
            }
            _ => Ok(()),
        }
    }

    /// Writes a compiler's errors, one JSON object a line: `<name>.diagnostics.jsonl`.
    ///
    /// # Errors
    /// The file system's.
    pub(in crate::execution) fn diagnostics(
        &self,
        name: &str,
        errors: &[impl serde::Serialize],
    ) -> std::io::Result<()> {
        let mut lines = Vec::new();
        for error in errors {
            serde_json::to_writer(&mut lines, error)?;
            lines.push(b'\n');
        }
        self.keep(name, ".diagnostics.jsonl", &lines)
    }

    fn keep(&self, name: &str, suffix: &str, bytes: &[u8]) -> std::io::Result<()> {
        let Some(directory) = self.directory.as_ref().filter(|_| !bytes.is_empty()) else { return Ok(()) };
        fs::write(directory.join(format!("{}{suffix}", log_stem(name))), bytes)
    }
}

/// Returns the name of a method's logs: the method's name, and its class if that is not the test file's.
pub(in crate::execution) fn method_name(test_class: &str, method: &MethodId) -> String {
    match nested_in(test_class, method) {
        Some("") => method.method().to_owned(),
        _ => format!("{}.{}", method.class(), method.method()),
    }
}

/// What the name of a command's file ends with.
const COMMAND_SUFFIX: &str = ".command.json";

/// The longest name of logs, in characters: file systems allow 255 bytes, with what tells the logs of one name apart.
const MOST_NAME: usize = 150;

/// Returns a name as a path may hold it; several names may have the same result.
pub(in crate::execution) fn plain(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    name.chars().take(MOST_NAME).map(safe).collect()
}

/// Returns what the names of logs begin with: the name itself, where a path may hold it, else what is left of it and a digest
/// of the whole, so that no two names share their logs.
fn log_stem(name: &str) -> String {
    let mut stem = plain(name);
    if stem != name {
        stem.truncate(MOST_NAME - 17);
        stem = format!("{stem}-{}", &Digest::of(name.as_bytes()).hex()[..16]);
    }
    stem
}

/// Reads the command that [`CellLogs::invocation`] kept; `None` where it kept none.
///
/// # Errors
/// [`RunDirectoryError::Io`], [`RunDirectoryError::Malformed`].
pub(in crate::execution) fn command_of(directory: &Path, name: &str) -> Result<Option<Command>, RunDirectoryError> {
    let path = directory.join(format!("{}{COMMAND_SUFFIX}", log_stem(name)));
    let Some(bytes) = reading::read(&path)? else { return Ok(None) };
    let malformed = |error: serde_json::Error| RunDirectoryError::Malformed { path, reason: error.to_string() };
    serde_json::from_slice(&bytes).map(Some).map_err(malformed)
}

#[cfg(test)]
mod tests;
