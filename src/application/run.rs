//! Opens, continues and finishes runs, for commands that execute.

use serde::Serialize;

use super::shard::ShardChoice;
use super::workbench::Workbench;
use crate::canonical_json::canonical_json;
use crate::error::CommandError;
use crate::execution::run::directory::{RunDirectory, RunRecord};
use crate::execution::run::stage::RunError;
use crate::output::counted;

/// Which run a command opens.
#[derive(Clone, Debug, Default)]
pub struct RunChoice {
    /// Its id; an unfinished one with equal inputs is resumed.
    pub run_id: Option<String>,
    /// Whether to begin a new run even if an unfinished one could be continued.
    pub fresh: bool,
    /// The part of the selection that is executed; `None` for all of it.
    pub shard: Option<ShardChoice>,
}

/// Opens the run, reports its id, and returns it with its records.
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

/// Returns the bytes of a run's inputs.
pub(super) fn bytes(inputs: &impl Serialize) -> Result<Vec<u8>, CommandError> {
    canonical_json(inputs).map_err(CommandError::defect)
}

/// Returns the records of a run that was not interrupted.
pub(super) fn completed<R>(records: Result<R, RunError>) -> Result<R, CommandError> {
    records.map_err(|error| match error {
        RunError::Interrupted => CommandError::Interrupted,
        error => error.into(),
    })
}

/// Writes the verdicts of a run and marks it as finished.
pub(super) fn finish(run: RunDirectory, verdicts: Result<Vec<u8>, serde_json::Error>) -> Result<(), CommandError> {
    Ok(run.finish(&verdicts.map_err(CommandError::defect)?)?)
}
