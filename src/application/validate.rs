//! Executes the developers' tests of a selection on old and new code and compares them with the published labels.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use super::Context;
use super::disk::Needs;
use super::disputes::{self, Disputes};
use super::failures::Failures;
use super::io_failure::IoFailure;
use super::readiness::tell_unready;
use super::run::{self, RunChoice};
use super::selection::{self, Repositories, by_repository};
use super::shard;
use super::workbench::{Workbench, blocking, run_tools};
use crate::digest::Digest;
use crate::error::CommandError;
use crate::execution::container::Surefire;
use crate::execution::executor::Executor;
use crate::execution::run::inputs::{RunInputs, ShardInputs};
use crate::execution::run::logs::Logs;
use crate::execution::run::record::{CellRecord, ExecutionPath};
use crate::execution::run::verdicts;
use crate::execution::time_class::{TimeClasses, Took};
use crate::execution::validation::Validation;
use crate::outcome::label::{TaskClass, cells_of};
use crate::output::counted;
use crate::report::validation::{ValidationSummary, summarize};
use crate::task::selector::Selector;
use crate::task::{Cell, RepositoryName, Task, TaskId};

/// What is validated, and how.
#[derive(Clone, Debug)]
pub struct ValidateRequest {
    /// The tasks.
    pub selector: Selector,
    /// Launches of every method and cell.
    pub repeats: NonZeroU32,
    /// How cells are executed: on each of these paths.
    pub paths: &'static [ExecutionPath],
    /// Whose Surefire settings apply to launches.
    pub surefire: Surefire,
    /// Whether launches map class archives.
    pub class_archives: bool,
    /// Seconds of processor time of each launch; `None` for its repository's limit.
    pub timeout: Option<NonZeroU32>,
    /// Whether tasks whose labels do not hold are executed again on both paths, for disputes.
    pub confirm: bool,
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
            timeout: None,
            confirm: true,
            run: RunChoice::default(),
        }
    }
}

/// The results of a validation.
pub struct Validated<'a> {
    /// Repositories that could not be opened.
    failures: Option<Failures<'a>>,
    /// The comparison with the labels.
    pub summary: ValidationSummary,
    /// Every record.
    pub records: Vec<CellRecord>,
    /// Each task's repository and class.
    pub classes: Vec<(RepositoryName, TaskClass)>,
}

impl Validated<'_> {
    /// Returns the results of these records of a run.
    pub fn of(run_id: &str, tasks: &[Task], records: Vec<CellRecord>) -> Self {
        let (summary, classed) = summarize(run_id, tasks, &records);
        let classes = classed.into_iter().map(|classed| (classed.task.repository.clone(), classed.class)).collect();
        Self { failures: None, summary, records, classes }
    }

    /// Checks that every task came out as published.
    ///
    /// # Errors
    /// [`CommandError::Repositories`] if some could not be opened; [`CommandError::InfrastructureLeft`] if faults left a task without an answer; [`CommandError::CheckFailed`] if a
    /// task or a path differs.
    pub fn verdict(mut self) -> Result<(), CommandError> {
        let own = self.own_verdict();
        match self.failures.take() {
            Some(failures) => failures.settle("validated", own),
            None => own,
        }
    }

    fn own_verdict(&self) -> Result<(), CommandError> {
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

/// Executes the request; `None` after a dry run, which only tells what would be done.
///
/// # Errors
/// [`CommandError`] of selections, images, engines and runs; an interrupt.
pub async fn validate<'a>(
    request: &ValidateRequest,
    context: &'a Context,
) -> Result<Option<Validated<'a>>, CommandError> {
    let selected = selection::tasks(&request.selector, context)?;
    let (tasks, shard) = shard::of(selected, request.run.shard.as_ref(), decided(request)?)?;
    match context.options.dry_run {
        true => preview(request, &tasks, context).await.map(|()| None),
        false => execute(request, &tasks, shard, context).await.map(Some),
    }
}

/// Returns the digest of what decides the run that a request makes, apart from its tasks. It is the same in every shard.
///
/// # Errors
/// None that are known: the options can be serialised.
pub fn decided(request: &ValidateRequest) -> Result<Digest, CommandError> {
    let options = (request.repeats, request.paths, request.surefire, request.class_archives, request.timeout);
    Ok(Digest::of(&run::bytes(&options)?))
}

async fn preview(request: &ValidateRequest, tasks: &[Task], context: &Context) -> Result<(), CommandError> {
    let cells: usize = tasks.iter().map(|task| cells_of(task.track).len()).sum();
    let groups = by_repository(tasks);
    context.events.message(format!(
        "would execute {} of {} from {}; in each cell a method takes {}",
        counted(cells, "cell", "cells"),
        counted(tasks.len(), "task", "tasks"),
        counted(groups.len(), "repository", "repositories"),
        counted(request.repeats.get() as usize, "launch", "launches")
    ));
    tell_unready(tasks, |_| true, "validated", context).await?;
    ensure_room(request, tasks, &Workbench::open(context)?).await
}

/// Checks that there is room for what the tasks take.
async fn ensure_room(request: &ValidateRequest, tasks: &[Task], workbench: &Workbench<'_>) -> Result<(), CommandError> {
    let direct = request.confirm || request.paths.contains(&ExecutionPath::Direct);
    let cells = |_: &Task| if direct { [Cell::Oo, Cell::Nn].as_slice() } else { &[] };
    let mut needs = Needs::new(workbench).await;
    needs.tasks(tasks, request.surefire, cells).await?;
    needs.run(tasks.len());
    needs.ensure().await
}

async fn execute<'a>(
    request: &ValidateRequest,
    tasks: &[Task],
    shard: Option<ShardInputs>,
    context: &'a Context,
) -> Result<Validated<'a>, CommandError> {
    let workbench = Workbench::open(context)?;
    ensure_room(request, tasks, &workbench).await?;
    let engine = workbench.engine().await?;
    let mut opened = Repositories::open(&workbench, tasks, request.surefire, |_| Some(engine.as_ref())).await?;
    let failures = match opened.failures(tasks, context, ("validated", shard.is_some())) {
        Ok(failures) => failures,
        Err(error) => {
            engine.close().await?;
            return Err(error);
        }
    };
    opened.limit_launches(request.timeout);
    let jars = workbench.jars(engine.as_ref(), &workbench.toolchain()?).await?;
    let ValidateRequest { surefire, paths, .. } = *request;
    let repeats = request.repeats.get();
    let tools = Some(run_tools(engine.as_ref(), &jars, request.class_archives).await?);
    let inputs = RunInputs::new(tasks, &opened.images, &opened.limits, surefire, paths, repeats);
    let (mut run, known) = run::open(&workbench, "validate", &RunInputs { tools, shard, ..inputs }, &request.run)?;
    let mut executor = workbench.executor(&engine, &jars).await?;
    executor.logs = Some(Logs::new(run.path().join("logs"), context.events.clone()));
    if !request.class_archives {
        executor.class_archives = None;
    }
    let executors = opened.executors(&executor);
    let wants_direct = request.confirm || paths.contains(&ExecutionPath::Direct);
    let direct = wants_direct.then(|| Arc::new(workbench.direct(&engine, &jars)));
    let validation = Validation {
        tasks,
        images: &opened.images,
        executors: &executors,
        obstacles: &opened.obstacles,
        repeats,
        jobs: context.options.jobs.get(),
        trees: workbench.trees(opened.paths.clone(), &opened.whole),
        paths,
        direct: direct.clone(),
    };
    let records = validation.run(&mut run, known, &context.events, &context.cancellation).await;
    let unlogged = opened.executors(&Executor { logs: None, ..executor.clone() });
    let disputed = match &records {
        Ok(records) if request.confirm => {
            let disputes = Disputes { run: run.path(), paths: &opened.paths, context };
            let again = Validation { executors: &unlogged, ..disputes::confirming(&validation) };
            disputes.write(&again, tasks, records).await
        }
        _ => Ok(0),
    };
    // Dropping them ends their compilers and waiting containers.
    drop(validation);
    drop((direct, executors, unlogged, executor));
    engine.close().await?;
    let of_run = Validated::of(run.run_id(), tasks, run::completed(records)?);
    if disputed? > 0 {
        let directory = run.path().join(disputes::DIRECTORY);
        context.events.message(format!("what shows that labels do not hold: `{}`", directory.display()));
    }
    let validated = Validated { failures: Some(failures), ..of_run };
    let process = context.invocation();
    let verdicts = verdicts::render(run.run_id(), &validated.summary, &validated.records, &process);
    run::finish(run, verdicts)?;
    // Done last, because it is not part of the run: the run's records are safe by then.
    let classes = TimeClasses::new(&workbench.data_dir);
    let took: Vec<(Task, Took)> =
        tasks.iter().map(|task| (task.clone(), Took::of(&task.id, &validated.records))).collect();
    let record = move || took.iter().try_for_each(|(task, took)| classes.record(task, *took).map(drop));
    blocking(move || record().map_err(IoFailure::of("recording time classes"))).await?;
    Ok(validated)
}
