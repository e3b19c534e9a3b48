//! Lists, shows, explains and removes earlier runs.

pub mod launches;

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Serialize;

use self::launches::{Launches, launches};
use super::Context;
use super::report::ScoringRuns;
use super::validate::Validated;
use crate::error::CommandError;
use crate::execution::run::directory::RunDirectoryError;
use crate::execution::run::explain::{Explained, explain as explain_task};
use crate::execution::run::list::{
    RunEntry, RunState, StoredRun, describe, find, list as list_runs, read, remove as remove_run,
};
use crate::metrics::category::Category;
use crate::outcome::label::TaskClass;
use crate::output::counted;
use crate::report::score::{COMMAND, ScoredModel, read as read_scores};
use crate::report::validation::summarize;
use crate::task::file::load_all;
use crate::task::selector::Selector;
use crate::task::{Task, TaskId};

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

/// A run as it is listed, with what came of it so far.
#[derive(Debug, Serialize)]
pub struct ListedRun {
    /// The run.
    #[serde(flatten)]
    pub entry: RunEntry,
    /// The number of its tasks; `None` if they can't be read.
    pub tasks: Option<usize>,
    /// What came of it: one for a run of `validate`, one for each model of a run of `score`.
    pub results: Vec<RunResult>,
}

/// How many of a run's tasks or methods came out well.
#[derive(Debug, Serialize)]
pub struct RunResult {
    /// The model; `None` for a run of `validate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tasks that came out as published, or a model's methods in the category Success.
    pub good: usize,
    /// All of them, whether executed or not.
    pub of: usize,
}

/// What happened to a task in a run.
pub enum Explanation {
    /// Of a run of `score`: the models with a submission for the task, each with only this task, and its launches.
    Scoring(Vec<(ScoredModel, Launches)>),
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

/// Returns all runs, oldest first, with their results. A run that can't be read is listed with the reason.
///
/// # Errors
/// [`RunDirectoryError::Io`].
pub fn list(context: &Context) -> Result<Vec<ListedRun>, CommandError> {
    let data_dir = context.data_dir()?;
    let listed = list_runs(data_dir)?.into_iter().map(|mut entry| {
        let of_run = match &entry.description {
            None => Ok((None, Vec::new())),
            Some(description) if description.command == COMMAND => scored(find(data_dir, &entry.run_id)),
            Some(_) => validated(read(data_dir, &entry.run_id)),
        };
        let (tasks, results) = of_run.unwrap_or_else(|error| {
            entry.reason = Some(error.to_string());
            (None, Vec::new())
        });
        ListedRun { entry, tasks, results }
    });
    Ok(listed.collect())
}

type OfRun = Result<(Option<usize>, Vec<RunResult>), CommandError>;

fn scored(path: Result<PathBuf, RunDirectoryError>) -> OfRun {
    let models = read_scores(&[path?])?;
    let tasks = models.first().map(|model| model.tasks.len());
    let results = models.into_iter().map(|model| {
        let methods = || model.tasks.iter().flat_map(|task| &task.methods);
        let good = methods().filter(|method| method.verdict.paper_verdict == Some(Category::Success)).count();
        RunResult { good, of: methods().count(), model: Some(model.model.clone()) }
    });
    Ok((tasks, results.collect()))
}

fn validated(run: Result<StoredRun, RunDirectoryError>) -> OfRun {
    let run = run?;
    let Some(inputs) = &run.inputs else { return Ok((None, Vec::new())) };
    let done: Vec<Task> = inputs.tasks.iter().filter(|task| run.has_all_of(task, inputs.repeats)).cloned().collect();
    let (_, classed) = summarize(&run.description.run_id, &done, &run.records);
    let good = classed.iter().filter(|classed| classed.class == TaskClass::Reproduced).count();
    Ok((Some(inputs.tasks.len()), vec![RunResult { model: None, good, of: inputs.tasks.len() }]))
}

/// Reads the results of a run; `latest` names the run that began last.
///
/// # Errors
/// [`RunDirectoryError`],
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

/// Returns the executions of a task in a run, and their results; in a run of `score` of one model only, if it is named.
///
/// # Errors
/// As [`show`]; [`SelectorError`](crate::task::selector::SelectorError) for a task that the run does not have;
/// [`CommandError::Usage`] for a model that it does not have.
pub fn explain(run: &str, task: &str, model: Option<&str>, context: &Context) -> Result<Explanation, CommandError> {
    match find_run(run, context)? {
        FoundRun::Scoring(path) => {
            let mut models = read_scores(&[path])?;
            if let Some(model) = model {
                let names: Vec<String> = models.iter().map(|known| known.model.clone()).collect();
                models.retain(|known| known.model == model);
                if models.is_empty() {
                    return Err(CommandError::Usage {
                        message: format!("the run has no model `{}`", model.chars().take(200).collect::<String>()),
                        hint: format!("it has: {}", names.join(", ")),
                    });
                }
            }
            // Every model of a run has the same tasks.
            let tasks: Vec<Task> = models
                .first()
                .map_or_else(Vec::new, |model| model.tasks.iter().map(|scored| scored.task.as_ref().clone()).collect());
            let chosen: BTreeSet<TaskId> =
                Selector::of_task(task).select(&tasks)?.into_iter().map(|task| task.id.clone()).collect();
            models.iter_mut().for_each(|model| model.tasks.retain(|scored| chosen.contains(&scored.task.id)));
            let launches = launches(&models, context.data_dir()?)?;
            Ok(Explanation::Scoring(models.into_iter().zip(launches).collect()))
        }
        FoundRun::Validation(_) if model.is_some() => Err(CommandError::Usage {
            message: "a run of `validate` has no models".to_owned(),
            hint: "leave `--model` out, or name a run of `score`".to_owned(),
        }),
        FoundRun::Validation(run) => {
            let tasks = tasks_of(&run, context)?;
            let selector = Selector::of_task(task);
            let explained = selector.select(&tasks)?.into_iter().map(|task| explained(&run, task));
            Ok(Explanation::Validation(explained.collect::<Result<_, _>>()?))
        }
    }
}

/// Removes a run with its records and logs, and returns their size in bytes. A dry run only returns the size.
///
/// # Errors
/// [`RunDirectoryError`].
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
