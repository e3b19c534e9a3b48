//! Executes the developers' tests of a selection on old and new code and compares them with the published labels.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use super::Context;
use super::readiness::tell_missing_images;
use super::run::{self, RunChoice};
use super::selection::{self, Repositories, by_repository};
use super::workbench::{Workbench, run_tools};
use crate::error::CommandError;
use crate::execution::build::surefire::Surefire;
use crate::execution::run::inputs::RunInputs;
use crate::execution::run::record::{CellRecord, ExecutionPath};
use crate::execution::run::verdicts;
use crate::execution::validation::Validation;
use crate::outcome::label::{TaskClass, cells_of};
use crate::output::counted;
use crate::report::validation::{ValidationSummary, summarize};
use crate::task::selector::Selector;
use crate::task::{RepositoryName, Task, TaskId};

/// What is to be validated, and how.
#[derive(Clone, Debug)]
pub struct ValidateRequest {
    /// The tasks.
    pub selector: Selector,
    /// Launches of every method and cell.
    pub repeats: NonZeroU32,
    /// How cells are executed: on each of these paths.
    pub paths: &'static [ExecutionPath],
    /// Whose settings launches have.
    pub surefire: Surefire,
    /// Whether launches map class archives.
    pub class_archives: bool,
    /// The run.
    pub run: RunChoice,
}

impl Default for ValidateRequest {
    /// Returns the request for all tasks, once, on the direct path.
    fn default() -> Self {
        Self {
            selector: Selector::default(),
            repeats: NonZeroU32::MIN,
            paths: &[ExecutionPath::Direct],
            surefire: Surefire::default(),
            class_archives: true,
            run: RunChoice::default(),
        }
    }
}

/// What a validation came to.
pub struct Validated {
    /// The comparison with the labels.
    pub summary: ValidationSummary,
    /// Every record.
    pub records: Vec<CellRecord>,
    /// Each task's repository and class.
    pub classes: Vec<(RepositoryName, TaskClass)>,
}

impl Validated {
    /// Returns what these records of a run come to.
    pub fn of(run_id: &str, tasks: &[Task], records: Vec<CellRecord>) -> Self {
        let (summary, classed) = summarize(run_id, tasks, &records);
        let classes = classed.into_iter().map(|classed| (classed.task.repository.clone(), classed.class)).collect();
        Self { summary, records, classes }
    }

    /// Says whether every task came out as published.
    ///
    /// # Errors
    /// [`CommandError::InfrastructureLeft`] where faults left a task without an answer; [`CommandError::CheckFailed`] where a
    /// task or a path differs.
    pub fn verdict(&self) -> Result<(), CommandError> {
        let summary = &self.summary;
        let tasks = |ids: BTreeSet<&TaskId>| counted(ids.len(), "task", "tasks");
        let differing: BTreeSet<_> = summary.differing.iter().map(|difference| &difference.task_id).collect();
        let faulty: BTreeSet<_> = summary.infrastructure.iter().map(|fault| &fault.task_id).collect();
        if !faulty.is_empty() {
            return Err(CommandError::InfrastructureLeft { summary: format!("{} could not be judged", tasks(faulty)) });
        }
        if let Some(count) = summary.path_differences.filter(|count| *count > 0) {
            let executions = counted(count, "execution differs", "executions differ");
            return Err(CommandError::CheckFailed { summary: format!("{executions} between the paths") });
        }
        if !summary.differing.is_empty() {
            let summary = counted(differing.len(), "task differs from its labels", "tasks differ from their labels");
            return Err(CommandError::CheckFailed { summary });
        }
        Ok(())
    }
}

/// Does what the request says; `None` after a dry run, which only tells what would be done.
///
/// # Errors
/// [`CommandError`] of the kinds for selections, images, engines and runs; an interrupt.
pub async fn validate(request: &ValidateRequest, context: &Context) -> Result<Option<Validated>, CommandError> {
    let tasks = selection::tasks(&request.selector, context)?;
    match context.options.dry_run {
        true => preview(request, &tasks, context).map(|()| None),
        false => execute(request, &tasks, context).await.map(Some),
    }
}

fn preview(request: &ValidateRequest, tasks: &[Task], context: &Context) -> Result<(), CommandError> {
    let cells: usize = tasks.iter().map(|task| cells_of(task.track).len()).sum();
    let groups = by_repository(tasks);
    context.events.message(format!(
        "would execute {} of {} from {}, each launch {} times",
        counted(cells, "cell", "cells"),
        counted(tasks.len(), "task", "tasks"),
        counted(groups.len(), "repository", "repositories"),
        request.repeats
    ));
    tell_missing_images(groups.keys(), context)
}

async fn execute(request: &ValidateRequest, tasks: &[Task], context: &Context) -> Result<Validated, CommandError> {
    let workbench = Workbench::open(context)?;
    let engine = workbench.engine().await?;
    let opened = Repositories::open(&workbench, tasks, request.surefire, |_| Some(engine.as_ref())).await?;
    let jars = workbench.jars(engine.as_ref(), &workbench.toolchain()?).await?;
    let ValidateRequest { surefire, paths, .. } = *request;
    let repeats = request.repeats.get();
    let tools = Some(run_tools(engine.as_ref(), &jars, request.class_archives).await?);
    let inputs = RunInputs::new(tasks, &opened.environments, &opened.limits, surefire, paths, repeats);
    let (mut run, known) = run::open(&workbench, "validate", &RunInputs { tools, ..inputs }, &request.run)?;
    let mut executor = workbench.executor(&engine, &jars).await?;
    executor.logs = Some(run.path().join("logs"));
    if !request.class_archives {
        executor.class_archives = None;
    }
    let executors = opened.executors(&executor);
    let direct = paths.contains(&ExecutionPath::Direct).then(|| Arc::new(workbench.direct(&engine, &jars)));
    let validation = Validation {
        tasks,
        environments: &opened.environments,
        executors: &executors,
        repeats,
        jobs: context.options.jobs.get(),
        trees: workbench.trees(opened.paths.clone()),
        paths,
        direct: direct.clone(),
    };
    let records = validation.run(&mut run, known, &context.events, &context.cancellation).await;
    // With them their compilers and the containers that wait end.
    drop(validation);
    drop((direct, executors, executor));
    engine.close().await?;
    let validated = Validated::of(run.run_id(), tasks, run::completed(records)?);
    let process = context.invocation();
    let verdicts = verdicts::render(run.run_id(), &validated.summary, &validated.records, &process);
    run::finish(run, verdicts)?;
    Ok(validated)
}
