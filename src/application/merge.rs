//! Makes one run of the runs of all shards of a selection.
//!
//! The merged run has the inputs, records, logs and results of a run that executed the whole selection.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::Context;
use super::report;
use super::run::{self, RunChoice};
use super::runs::{ShownValidation, show_validation};
use super::score::EndedScoring;
use super::shard;
use super::validate::Validated;
use super::workbench::Workbench;
use crate::error::CommandError;
use crate::execution::run::directory::RunRecord;
use crate::execution::run::inputs::{RunInputs, ShardInputs};
use crate::execution::run::list::{RunState, StoredRun, describe, find, missing, read_at};
use crate::execution::run::merge::{Joining, MergeError, Part, copy_files, ordered};
use crate::execution::run::record::CellRecord;
use crate::execution::run::verdicts as cell_verdicts;
use crate::execution::run::verdicts::{Invocation, time_of_jobs};
use crate::execution::scoring::gold::doubtful_in;
use crate::execution::scoring::inputs::ScoreInputs;

use crate::execution::scoring::record::ScoreRecord;
use crate::output::counted;
use crate::report::costs::{self, CostSum};
use crate::report::score::{COMMAND, ReportError, verdicts as score_verdicts};
use crate::submission::GOLD;
use crate::task::Task;
use crate::task::shard::{COSTS_SCHEMA, Costs};

/// The results of a merged run.
pub enum MergedRun<'a> {
    /// Of `score`.
    Scoring(EndedScoring<'a>),
    /// Of `validate`.
    Validation(Box<ShownValidation>),
}

/// Merges runs, given by ids or by paths, which have a slash, and returns the results of the merged run.
///
/// `run_id` names the merged run; an interrupted merge of that name is resumed. `None` after a dry run, which only checks that
/// the runs can be merged.
///
/// # Errors
/// [`MergeError`]; [`RunDirectoryError`](crate::execution::run::directory::RunDirectoryError).
pub fn merge<'a>(
    names: &[String],
    run_id: Option<String>,
    context: &'a Context,
) -> Result<Option<MergedRun<'a>>, CommandError> {
    let paths = paths(names, context)?;
    let first = describe(&paths[0])?;
    for path in &paths[1..] {
        let description = describe(path)?;
        if description.command != first.command {
            let (run, first) = (description.run_id, first.run_id);
            return Err(MergeError::Foreign { run, first, what: "commands".to_owned() }.into());
        }
    }
    let _stage = context.events.stage("merge shards", None, 0);
    // Without a name, an unfinished run of equal inputs may be no merge.
    let choice = RunChoice { fresh: run_id.is_none(), run_id, shard: None };
    if first.command == COMMAND {
        return Ok(merge_scores(&paths, &choice, context)?.map(MergedRun::Scoring));
    }
    let Some(run_id) = merge_validations(&paths, &choice, context)? else { return Ok(None) };
    Ok(Some(MergedRun::Validation(Box::new(show_validation(&run_id, context)?))))
}

/// Returns the results of a merged run that has finished.
///
/// # Errors
/// [`RunDirectoryError`](crate::execution::run::directory::RunDirectoryError).
pub(super) fn merged<'a>(run_id: &str, context: &'a Context) -> Result<MergedRun<'a>, CommandError> {
    let path = find(context.data_dir()?, run_id)?;
    if describe(&path)?.command != COMMAND {
        return Ok(MergedRun::Validation(Box::new(show_validation(run_id, context)?)));
    }
    let run = read_at::<ScoreInputs, ScoreRecord>(path.clone())?;
    let inputs = run.inputs.ok_or_else(|| ReportError::NoInputs(run_id.to_owned()))?;
    let (left, failing) = (inputs.left(&run.records), doubtful_in(&run.records));
    Ok(MergedRun::Scoring(EndedScoring::of(path, left, failing, context)))
}

/// Adds up the recorded costs of runs, given by ids or by paths, which have a slash.
///
/// # Errors
/// [`RunDirectoryError`](crate::execution::run::directory::RunDirectoryError).
pub fn costs(names: &[String], context: &Context) -> Result<Costs, CommandError> {
    let mut all = Costs { schema: COSTS_SCHEMA, ..Costs::default() };
    for path in paths(names, context)? {
        let (mut sum, spent) = (CostSum::default(), time_of_jobs(&path)?);
        match describe(&path)?.command == COMMAND {
            true => {
                let run = read_at::<ScoreInputs, ScoreRecord>(path)?;
                run.records.iter().for_each(|record| sum.add_score(record));
            }
            false => {
                let run = read_at::<RunInputs, CellRecord>(path)?;
                run.records.iter().for_each(|record| sum.add_cell(record));
            }
        }
        costs::add(&mut all, sum.costs(spent));
    }
    Ok(all)
}

pub(super) fn paths(names: &[String], context: &Context) -> Result<Vec<PathBuf>, CommandError> {
    names.iter().map(|name| report::path(name, context)).collect()
}

fn merge_validations(paths: &[PathBuf], choice: &RunChoice, context: &Context) -> Result<Option<String>, CommandError> {
    let foreign = |inputs: &RunInputs, record: &CellRecord| {
        let known = inputs.tasks.iter().any(|task| task.id == record.task_id);
        (!known).then(|| record.task_id.to_string())
    };
    let parts = parts::<RunInputs, CellRecord>(paths, |inputs| inputs, foreign)?;
    let (mut inputs, records) = joined(parts, RunInputs::join)?;
    check_tasks(inputs.whole(), &inputs.tasks)?;
    let (tasks, process) = (inputs.tasks.clone(), invocation(paths, context));
    written(paths, &inputs, ("validate", choice), records, context, |run_id, records| {
        let validated = Validated::of(run_id, &tasks, records);
        cell_verdicts::render(run_id, &validated.summary, &validated.records, &process)
    })
}

fn merge_scores<'a>(
    paths: &[PathBuf],
    choice: &RunChoice,
    context: &'a Context,
) -> Result<Option<EndedScoring<'a>>, CommandError> {
    let foreign = |inputs: &ScoreInputs, record: &ScoreRecord| {
        let (task, model) = record.of();
        let known = inputs.run.tasks.iter().any(|known| known.id == task);
        match model {
            Some(model) if model != GOLD && !inputs.models.contains_key(&model) => Some(format!("{task} and {model}")),
            _ => (!known).then(|| task.to_string()),
        }
    };
    let parts = parts::<ScoreInputs, ScoreRecord>(paths, |inputs| &inputs.run, foreign)?;
    let (mut inputs, records) = joined(parts, ScoreInputs::join)?;
    check_tasks(inputs.whole(), &inputs.run.tasks)?;
    let (mut left, mut failing) = (Vec::new(), BTreeMap::new());
    let process = invocation(paths, context);
    let run_id = written(paths, &inputs, (COMMAND, choice), records, context, |run_id, records| {
        left = inputs.left(&records);
        failing = doubtful_in(&records);
        score_verdicts::render(run_id, &records, &process)
    })?;
    let Some(run_id) = run_id else { return Ok(None) };
    Ok(Some(EndedScoring::of(find(context.data_dir()?, &run_id)?, left, failing, context)))
}

/// Returns the resources of this merge, with what all parts took.
fn invocation(parts: &[PathBuf], context: &Context) -> Invocation {
    // Costs decide no result, so a part whose costs can't be read is merged without them.
    let times = parts.iter().map(|part| time_of_jobs(part).ok().flatten());
    let parts_ms = times.reduce(|sum, part| Some(sum?.saturating_add(part?))).flatten();
    Invocation { parts_ms, ..context.invocation() }
}

/// Checks that the tasks of all shards are those that were selected.
fn check_tasks(shard: Option<ShardInputs>, tasks: &[Task]) -> Result<(), CommandError> {
    let selected = shard.map(|inputs| inputs.selection);
    if selected == Some(shard::selection(tasks)?) { Ok(()) } else { Err(MergeError::OtherTasks.into()) }
}

/// The inputs and records of a shard.
type Read<I, R> = Part<(I, Vec<R>)>;

/// Reads the runs, and returns them in the order of their shards.
fn parts<I: serde::de::DeserializeOwned, R: RunRecord>(
    paths: &[PathBuf],
    run: impl Fn(&I) -> &RunInputs,
    foreign: impl Fn(&I, &R) -> Option<String>,
) -> Result<Vec<Read<I, R>>, CommandError> {
    let read = |path: &PathBuf| {
        let description = describe(path)?;
        if let Some(what) = missing(path, &description)? {
            return Err(MergeError::Late { run: description.run_id, what }.into());
        }
        let StoredRun { description, inputs, records, state, .. } = read_at::<I, R>(path.clone())?;
        let run = description.run_id;
        let inputs = inputs.ok_or_else(|| MergeError::NoShard { run: run.clone() })?;
        if let Some(of) = records.iter().find_map(|record| foreign(&inputs, record)) {
            return Err(MergeError::ForeignRecord { run, of }.into());
        }
        Ok(Part { run, finished: state == RunState::Finished, inputs: (inputs, records) })
    };
    let read = paths.iter().map(read).collect::<Result<Vec<_>, CommandError>>()?;
    Ok(ordered(read, |(inputs, _)| run(inputs))?)
}

/// Joins the inputs of all shards, and returns them with all records.
fn joined<I, R>(
    parts: Vec<Read<I, R>>,
    join: impl Fn(&mut I, I, &Joining<'_>) -> Result<(), MergeError>,
) -> Result<(I, Vec<R>), MergeError> {
    let mut parts = parts.into_iter();
    let Some(Part { run: first, inputs: (mut inputs, mut records), .. }) = parts.next() else {
        return Err(MergeError::OtherTasks);
    };
    for Part { run, inputs: (other, more), .. } in parts {
        join(&mut inputs, other, &Joining { first: &first, run: &run })?;
        records.extend(more);
    }
    Ok((inputs, records))
}

/// Writes the merged run and returns its id; `None` in a dry run.
fn written<R: RunRecord>(
    paths: &[PathBuf],
    inputs: &impl serde::Serialize,
    (command, choice): (&str, &RunChoice),
    records: Vec<R>,
    context: &Context,
    verdicts: impl FnOnce(&str, Vec<R>) -> serde_json::Result<Vec<u8>>,
) -> Result<Option<String>, CommandError> {
    if context.options.dry_run {
        context.events.message(format!("would merge {}", counted(paths.len(), "run", "runs")));
        return Ok(None);
    }
    let workbench = Workbench::open(context)?;
    let (mut merged, _) = run::open::<R>(&workbench, command, inputs, choice)?;
    for path in paths {
        copy_files(path, merged.path())?;
    }
    // Of a resumed merge's records the last ones count.
    records.iter().try_for_each(|record| merged.append(record))?;
    let run_id = merged.run_id().to_owned();
    let verdicts = verdicts(&run_id, records);
    run::finish(merged, verdicts)?;
    Ok(Some(run_id))
}
