//! Explains one task of a run: each execution's record beside the logs and commands of its cell.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::engine::spec::Command;
use crate::execution::attempt::MOST_ATTEMPTS;
use crate::execution::run::directory::RunDirectoryError;
use crate::execution::run::list::StoredRun;
use crate::execution::run::logs::command_of;
use crate::execution::run::record::{CellRecord, ExecutionPath};
use crate::outcome::label::expectation;
use crate::task::TaskId;

/// One execution with its logs and commands.
#[derive(Clone, Debug, Serialize)]
pub struct Explained {
    /// The execution's record.
    pub record: CellRecord,
    /// Outcomes that the published label asks for; empty where it asks for none.
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
            Some(directory) => {
                let (compile, begin) = match record.measured.path {
                    ExecutionPath::Maven => (last_command(directory, "compile")?, ""),
                    // The revision was compiled for many cells, and the rest by a compiler that no command line starts.
                    ExecutionPath::Direct => (None, "direct-"),
                };
                // Logs of the test file's own class go by the method alone, and which class that is stands in no record.
                let (class, method) = (record.method.class(), record.method.method());
                let of = |name: String| last_command(directory, &format!("{begin}{name}-{}", record.repeat));
                let launch = match of(format!("{class}.{method}"))? {
                    None => of(method.to_owned())?,
                    found => found,
                };
                (compile, launch)
            }
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

/// Returns the logs' directory. The record only says that there are logs: where, follows from the record itself.
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
mod tests {
    use super::*;
    use crate::digest::Digest;
    use crate::engine::spec::{CommandLimits, PROGRAM_SCHEMA, Program, Step};
    use crate::execution::run::directory::RunDescription;
    use crate::execution::run::list::RunState;
    use crate::execution::run::logs::{CellLogs, method_name};
    use crate::execution::run::record::{Measured, RECORD_SCHEMA};
    use crate::outcome::Outcome;
    use crate::task::{Cell, Track};

    fn command(word: &str) -> Command {
        Command {
            argv: vec![word.to_owned()],
            environment: Vec::new(),
            working_directory: "/work".into(),
            limits: CommandLimits { wall_seconds: 1, cpu_seconds: 1, output_bytes: 1, flood_bytes: 1 },
            events: false,
            required: false,
            only_after_success_of: None,
        }
    }

    #[test]
    fn each_method_has_the_command_of_its_own_last_attempt() {
        let directory = tempfile::tempdir().unwrap();
        let task: TaskId = "t".parse().unwrap();
        let logs = CellLogs::create(Some(&directory.path().join("logs")), &task, Cell::Nn).unwrap();
        let keep = |name: &str| {
            let steps = vec![Step::Run(command(name))];
            logs.invocation(name, &Program { schema: PROGRAM_SCHEMA, door_port: None, steps }, 0).unwrap();
        };
        keep("compile-1");
        keep("compile-2");
        let methods = [("ATest#m", 1), ("ATest$B#m", 4), ("ATest$C#m", 2), ("BTest#m", 3)];
        let mut records = Vec::new();
        for (id, attempts) in methods {
            let method = id.parse().unwrap();
            for attempt in 1..=attempts {
                keep(&format!("{}-1-{attempt}", method_name("p.ATest", &method)));
            }
            records.push(CellRecord {
                schema: RECORD_SCHEMA,
                task_id: task.clone(),
                repository: "o/n".parse().unwrap(),
                track: Track::TestUpdate,
                cell: Cell::Nn,
                method,
                repeat: 1,
                path: ExecutionPath::Maven,
                outcome: Outcome::Pass,
                detail: String::new(),
                attempts,
                key: None,
                measured: Measured { logs: logs.relative(), ..Measured::default() },
            });
        }
        let run = StoredRun {
            path: directory.path().to_owned(),
            state: RunState::Finished,
            description: RunDescription {
                schema: 1,
                run_id: "r".to_owned(),
                command: "validate".to_owned(),
                inputs: Digest::of(b""),
                started: String::new(),
                finished: None,
            },
            inputs: None,
            records,
        };
        let explained = explain(&run, &task).unwrap();
        let word = |command: &Option<Command>| command.as_ref().unwrap().argv[0].clone();
        let found: Vec<String> = explained.iter().map(|one| word(&one.launch)).collect();
        assert_eq!(found, ["m-1-1", "ATest$B.m-1-4", "ATest$C.m-1-2", "BTest.m-1-3"]);
        assert!(explained.iter().all(|one| word(&one.compile) == "compile-2"));
    }

    #[test]
    fn commands_are_written_so_that_a_shell_reads_them_back() {
        let command = Command {
            argv: vec!["java".into(), "-cp".into(), "a:b c".into(), "it's".into(), String::new()],
            environment: vec![("A".into(), "1 2".into())],
            ..command("")
        };
        assert_eq!(shell_line(&command), r"cd /work && env -i 'A=1 2' java -cp 'a:b c' 'it'\''s' ''");
    }
}
