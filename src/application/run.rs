//! Runs: how commands that execute open, continue and finish one.

use std::collections::BTreeSet;
use std::io;

use serde::Serialize;

use super::Context;
use super::workbench::Workbench;
use crate::canonical_json::canonical_json;
use crate::error::CommandError;
use crate::execution::run::directory::{RunDirectory, RunRecord};
use crate::execution::run::list::StoredRun;
use crate::execution::run::stage::RunError;
use crate::output::counted;
use crate::task::Task;
use crate::task::file::load_all;

/// Which run a command opens.
#[derive(Clone, Debug, Default)]
pub struct RunChoice {
    /// Its id; an unfinished one with equal inputs is continued.
    pub run_id: Option<String>,
    /// Whether a new one begins even where an unfinished one could be continued.
    pub fresh: bool,
}

/// Opens the run, tells which it is, and returns it with the records that it has.
pub(super) fn open<R: RunRecord>(
    workbench: &Workbench<'_>,
    command: &str,
    inputs: &impl Serialize,
    choice: &RunChoice,
) -> Result<(RunDirectory, Vec<R>), CommandError> {
    let (run, known) = RunDirectory::open_of::<R>(
        &workbench.data_dir,
        command,
        &bytes(inputs)?,
        choice.run_id.as_deref(),
        choice.fresh,
    )?;
    workbench.context.events.message(match known.len() {
        0 => format!("run {}", run.run_id()),
        records => format!("run {}, continued after {}", run.run_id(), counted(records, "record", "records")),
    });
    Ok((run, known))
}

/// Returns the bytes of what decides a run's results.
pub(super) fn bytes(inputs: &impl Serialize) -> Result<Vec<u8>, CommandError> {
    canonical_json(inputs).map_err(|error| CommandError::Output(error.into()))
}

/// Returns the records of a run that was not interrupted.
pub(super) fn completed<R>(records: Result<Vec<R>, RunError>) -> Result<Vec<R>, CommandError> {
    records.map_err(|error| match error {
        RunError::Interrupted => CommandError::Interrupted,
        error => error.into(),
    })
}

/// Writes the verdicts of a run and marks it as finished.
pub(super) fn finish(run: RunDirectory, verdicts: Result<Vec<u8>, serde_json::Error>) -> Result<(), CommandError> {
    let verdicts = verdicts.map_err(|error| CommandError::Output(io::Error::from(error)))?;
    Ok(run.finish(&verdicts)?)
}

/// Returns the tasks of a run: as it kept them, else those of the data directory that it has records of.
///
/// # Errors
/// [`DataDirError`](crate::data_dir::DataDirError), [`TaskFileError`](crate::task::file::TaskFileError).
pub fn tasks_of(run: &StoredRun, context: &Context) -> Result<Vec<Task>, CommandError> {
    if let Some(inputs) = &run.inputs {
        return Ok(inputs.tasks.clone());
    }
    let wanted: BTreeSet<&str> = run.records.iter().map(|record| record.task_id.as_str()).collect();
    let mut tasks = load_all(&context.data_dir()?.join("tasks"))?;
    tasks.retain(|task| wanted.contains(task.id.as_str()));
    if tasks.len() < wanted.len() {
        let missing = counted(wanted.len() - tasks.len(), "task is", "tasks are");
        context.events.warning(format!("{missing} not imported any more and left out"));
    }
    Ok(tasks)
}
