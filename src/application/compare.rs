//! Compares two runs, result by result.

use std::path::Path;

use serde_json::Value;

use super::Context;
use super::merge::paths;
use crate::error::CommandError;
use crate::execution::run::inputs::RunInputs;
use crate::execution::run::list::{describe, read_at, read_without_records};
use crate::execution::run::record::CellRecord;
use crate::report::comparison::{DifferingInput, RunComparison};
use crate::report::score::{COMMAND, ReportError, read};

/// Compares two runs of the same command, given by ids or by paths, which have a slash.
///
/// # Errors
/// [`RunDirectoryError`](crate::execution::run::directory::RunDirectoryError); [`ReportError`], for runs of two commands
/// [`ReportError::Incomparable`].
pub fn compare(names: [&str; 2], context: &Context) -> Result<RunComparison, CommandError> {
    let [one, other] = names.map(|name| name.to_owned());
    let found = paths(&[one, other], context)?;
    let [one, other] = [&found[0], &found[1]];
    let descriptions = [describe(one)?, describe(other)?];
    let runs = descriptions.each_ref().map(|description| description.run_id.clone());
    if descriptions[0].command != descriptions[1].command {
        let [run, other] = runs;
        let [command, other_command] = descriptions.map(|description| description.command);
        return Err(ReportError::Incomparable { run, command, other, other_command }.into());
    }
    let inputs = differing_inputs(one, other)?;
    if descriptions[0].command == COMMAND {
        let [one, other] = [read(std::slice::from_ref(one))?, read(std::slice::from_ref(other))?];
        return Ok(RunComparison::of_scores(runs, inputs, [&one, &other]));
    }
    let [one, other] = [one, other].map(|path| read_at::<RunInputs, CellRecord>(path.clone()));
    let [one, other] = [one?, other?];
    let [one_inputs, other_inputs] = [&one, &other]
        .map(|run| run.inputs.as_ref().ok_or_else(|| ReportError::NoInputs(run.description.run_id.clone())));
    let tasks = [one_inputs?.tasks.as_slice(), other_inputs?.tasks.as_slice()];
    Ok(RunComparison::of_validations(runs, inputs, tasks, [&one.records, &other.records]))
}

/// Returns the values of the runs' inputs that differ. Tasks are compared one by one.
fn differing_inputs(one: &Path, other: &Path) -> Result<Vec<DifferingInput>, CommandError> {
    let read = |path: &Path| -> Result<serde_json::Map<String, Value>, CommandError> {
        let run = read_without_records::<serde_json::Map<String, Value>>(path.to_owned())?;
        Ok(run.inputs.ok_or(ReportError::NoInputs(run.description.run_id))?)
    };
    Ok(DifferingInput::between(&read(one)?, &read(other)?, &["tasks"]))
}
