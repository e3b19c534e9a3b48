//! Shows, explains and removes earlier runs.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::Context;
use super::report::ScoringRuns;
use super::validate::Validated;
use crate::error::CommandError;
use crate::execution::run::explain::{Explained, explain as explain_task};
use crate::execution::run::list::{RunState, StoredRun, describe, find, read, remove as remove_run};
use crate::outcome::label::TaskClass;
use crate::output::counted;
use crate::report::score::{COMMAND, ScoredModel, read as read_scores};
use crate::report::validation::summarize;
use crate::task::Task;
use crate::task::file::load_all;
use crate::task::selector::{NameKind, Selector, SelectorError};

/// The results of a run.
pub enum ShownRun {
    /// A run of `score`.
    Scoring(ScoringRuns),
    /// A run of `validate`.
    Validation(Box<ShownValidation>),
}

/// A run of `validate`.
pub struct ShownValidation {
    /// The run.
    pub run: StoredRun,
    /// The number of its tasks.
    pub tasks: usize,
    /// The number of tasks with all their records.
    pub done: usize,
    /// The comparison of these tasks with their labels.
    pub validated: Validated<'static>,
}

/// What happened to a task in a run.
pub enum Explanation {
    /// Of a run of `score`: the models with a submission for the task, each with only this task.
    Scoring(Vec<ScoredModel>),
    /// Of a run of `validate`.
    Validation(Vec<ExplainedTask>),
}

/// The executions of a task in a run of `validate`.
pub struct ExplainedTask {
    /// The run.
    pub run_id: String,
    /// The task.
    pub task: Task,
    /// The task's class by its labels; `None` while records are missing.
    pub class: Option<TaskClass>,
    /// Its executions.
    pub executions: Vec<Explained>,
}

/// A run by the command that made it.
enum FoundRun {
    Scoring(PathBuf),
    Validation(Box<StoredRun>),
}

/// Reads the results of a run; `latest` names the run that began last.
///
/// # Errors
/// [`RunDirectoryError`](crate::execution::run::directory::RunDirectoryError),
/// [`ReportError`](crate::report::score::ReportError), and errors of task files for a run that kept no tasks.
pub fn show(run: &str, context: &Context) -> Result<ShownRun, CommandError> {
    match find_run(run, context)? {
        FoundRun::Scoring(path) => Ok(ShownRun::Scoring(ScoringRuns::read_at(vec![path])?)),
        FoundRun::Validation(run) => Ok(ShownRun::Validation(Box::new(shown(*run, context)?))),
    }
}

/// Reads the results of a run of `validate`.
pub(super) fn show_validation(run_id: &str, context: &Context) -> Result<ShownValidation, CommandError> {
    shown(read(context.data_dir()?, run_id)?, context)
}

fn shown(run: StoredRun, context: &Context) -> Result<ShownValidation, CommandError> {
    let all = tasks_of(&run, context)?;
    let done: Vec<Task> = match run.state {
        RunState::Finished => all.clone(),
        // A cell without an execution is not a fault.
        _ => all.iter().filter(|task| run.has_all_of(task, repeats(&run))).cloned().collect(),
    };
    let validated = Validated::of(&run.description.run_id, &done, run.records.clone());
    Ok(ShownValidation { run, tasks: all.len(), done: done.len(), validated })
}

/// Returns the executions of a task in a run, and their results.
///
/// # Errors
/// As [`show`]; [`SelectorError`] for a task that the run does not have.
pub fn explain(run: &str, task: &str, context: &Context) -> Result<Explanation, CommandError> {
    match find_run(run, context)? {
        FoundRun::Scoring(path) => {
            let mut models = read_scores(&[path])?;
            models.iter_mut().for_each(|model| model.tasks.retain(|scored| scored.task.id.as_str() == task));
            models.retain(|model| !model.tasks.is_empty());
            if models.is_empty() {
                let name = task.chars().take(200).collect();
                return Err(SelectorError::Unknown { kind: NameKind::Task, name, nearest: None }.into());
            }
            Ok(Explanation::Scoring(models))
        }
        FoundRun::Validation(run) => {
            let tasks = tasks_of(&run, context)?;
            let selector = Selector { task_ids: vec![task.to_owned()], ..Selector::default() };
            let explained = selector.select(&tasks)?.into_iter().map(|task| explained(&run, task));
            Ok(Explanation::Validation(explained.collect::<Result<_, _>>()?))
        }
    }
}

/// Removes a run with its records and logs, and returns their size in bytes. A dry run only returns the size.
///
/// # Errors
/// [`RunDirectoryError`](crate::execution::run::directory::RunDirectoryError).
pub fn remove(run: &str, context: &Context) -> Result<u64, CommandError> {
    Ok(remove_run(context.data_dir()?, run, context.options.dry_run)?)
}

fn find_run(run: &str, context: &Context) -> Result<FoundRun, CommandError> {
    let path = find(context.data_dir()?, run)?;
    if describe(&path).is_ok_and(|description| description.command == COMMAND) {
        return Ok(FoundRun::Scoring(path));
    }
    Ok(FoundRun::Validation(Box::new(read(context.data_dir()?, run)?)))
}

fn explained(run: &StoredRun, task: &Task) -> Result<ExplainedTask, CommandError> {
    let run_id = run.description.run_id.clone();
    let executions = explain_task(run, &task.id)?;
    let (_, classed) = summarize(&run_id, std::slice::from_ref(task), &run.records);
    let class = classed.first().map(|classed| classed.class).filter(|_| run.has_all_of(task, repeats(run)));
    Ok(ExplainedTask { run_id, task: task.clone(), class, executions })
}

fn repeats(run: &StoredRun) -> u32 {
    run.inputs.as_ref().map_or(1, |inputs| inputs.repeats)
}

/// Returns the tasks that a run stored. For a run without stored tasks, returns those of the data directory that its
/// records name.
fn tasks_of(run: &StoredRun, context: &Context) -> Result<Vec<Task>, CommandError> {
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
