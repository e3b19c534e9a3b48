//! Explains one task of a run: each record with the logs and commands of its execution.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::engine::spec::Command;
use crate::execution::attempt::MOST_ATTEMPTS;
use crate::execution::run::directory::RunDirectoryError;
use crate::execution::run::list::StoredRun;
use crate::execution::run::logs::command_of;
use crate::execution::run::record::{CellRecord, ExecutionPath, Measured};
use crate::outcome::label::expectation;
use crate::task::{MethodId, TaskId};

/// One execution with its logs and commands.
#[derive(Clone, Debug, Serialize)]
pub struct Explained {
    /// The execution's record.
    pub record: CellRecord,
    /// Outcomes that the published label demands; empty if it demands none.
    pub expected: &'static [&'static str],
    /// Whether the outcome is one of `expected`.
    pub met: bool,
    /// Directory of the logs; `None` if nothing was logged.
    pub logs: Option<PathBuf>,
    /// The command that compiled the tree; `None` if nothing was compiled.
    pub compile: Option<Command>,
    /// The command that launched the method; `None` if it was not launched.
    pub launch: Option<Command>,
}

/// Returns the executions of a task, sorted by cell, method and repeat.
///
/// # Errors
/// [`RunDirectoryError::Malformed`] for a log that this program did not write.
pub fn explain(run: &StoredRun, task: &TaskId) -> Result<Vec<Explained>, RunDirectoryError> {
    let mut records: Vec<&CellRecord> = run.records.iter().filter(|record| record.task_id == *task).collect();
    records.sort_by_key(|record| (record.cell, &record.method, record.repeat));
    let mut explained = Vec::new();
    for record in records {
        let expectation = expectation(record.track, record.cell);
        let logs = record.measured.logs.as_ref().and_then(|logs| directory(run, record, logs));
        let (compile, launch) = match &logs {
            Some(directory) => commands(directory, &record.method, record.repeat, (&record.measured, &record.detail))?,
            None => (None, None),
        };
        explained.push(Explained {
            record: record.clone(),
            expected: expectation.names(),
            met: expectation.is_met_by(record.outcome),
            logs,
            compile,
            launch,
        });
    }
    Ok(explained)
}

/// Returns the commands that compiled a tree and launched a method last, from the directory of their logs. The direct path
/// compiles without a command.
///
/// # Errors
/// [`RunDirectoryError::Malformed`] for a log that this program did not write.
pub fn commands(
    directory: &Path,
    method: &MethodId,
    repeat: u32,
    (measured, detail): (&Measured, &str),
) -> Result<(Option<Command>, Option<Command>), RunDirectoryError> {
    let (compile, begin) = match measured.path {
        ExecutionPath::Maven => (last_command(directory, "compile")?, ""),
        // The revision was compiled once for many cells, and the file by a compiler without a command line.
        ExecutionPath::Direct => (None, "direct-"),
    };
    // A method of the test file's own class has logs without a class in their name, but records do not name that class.
    let (class, method) = (method.class(), method.method());
    let subclass = shown_subclass(measured, detail);
    let of = |name: String| last_command(directory, &format!("{begin}{name}-{repeat}{subclass}"));
    let launch = match of(format!("{class}.{method}"))? {
        None => of(method.to_owned())?,
        found => found,
    };
    Ok((compile, launch))
}

/// Returns the part of a launch's name that tells which subclass the method ran in: that of the first failure, else the
/// first subclass. Empty for a method that ran in its own class.
fn shown_subclass(measured: &Measured, detail: &str) -> String {
    let subclasses = &measured.subclasses;
    if subclasses.is_empty() {
        return String::new();
    }
    let failed = subclasses.iter().position(|class| detail.starts_with(&format!("in {class}: ")));
    format!("-subclass-{}", failed.unwrap_or_default() + 1)
}

/// Returns the logs' directory. The record only tells that logs exist; their place follows from its other fields.
fn directory(run: &StoredRun, record: &CellRecord, logs: &str) -> Option<PathBuf> {
    let relative = format!("{}/{}", record.task_id, record.cell.name());
    let directory = run.path.join("logs").join(&relative);
    (logs == relative && directory.is_dir()).then_some(directory)
}

/// Returns the command of the last attempt.
fn last_command(directory: &Path, name: &str) -> Result<Option<Command>, RunDirectoryError> {
    for attempt in (1..=MOST_ATTEMPTS).rev() {
        if let Some(command) = command_of(directory, &format!("{name}-{attempt}"))? {
            return Ok(Some(command));
        }
    }
    Ok(None)
}

/// Returns the command as a shell line, environment and working directory included.
pub fn shell_line(command: &Command) -> String {
    let mut words = vec!["cd".to_owned(), quoted(&command.working_directory), "&& env -i".to_owned()];
    words.extend(command.environment.iter().map(|(name, value)| quoted(&format!("{name}={value}"))));
    words.extend(command.argv.iter().map(|argument| quoted(argument)));
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests;
