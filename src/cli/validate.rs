//! `validate`: the gold executions of every task, compared with the published labels.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::num::NonZeroU32;
use std::sync::Arc;

use clap::{Args, ValueEnum};

use super::Context;
use super::preview;
use super::selector::SelectorArguments;
use super::workbench::{Workbench, by_repository, environment, run_tools};
use crate::canonical_json::canonical_json;
use crate::error::CommandError;
use crate::execution::container::Environment;
use crate::execution::executor::Executor;
use crate::execution::inputs::RunInputs;
use crate::execution::limits::ExecutionLimits;
use crate::execution::record::{CellRecord, ExecutionPath};
use crate::execution::run_directory::RunDirectory;
use crate::execution::stage::RunError;
use crate::execution::surefire::Surefire;
use crate::execution::validation::Validation;
use crate::execution::verdicts;
use crate::outcome::label::TaskClass;
use crate::output::{OutputFormat, Table, counted};
use crate::report::validation::{ValidationSummary, summarize};
use crate::task::{RepositoryName, Task, TaskId};

/// Arguments of `validate`.
#[derive(Debug, Args)]
pub(super) struct ValidateArguments {
    #[command(flatten)]
    selector: SelectorArguments,
    /// Launches of every method and cell, each in a fresh container; finds flaky tests
    #[arg(long, value_name = "N", default_value = "1")]
    repeat: NonZeroU32,
    /// How cells are executed
    #[arg(long, value_enum, value_name = "PATH", default_value_t)]
    path: PathChoice,
    /// Execute every cell on both paths and list the differences, of which there must be none
    #[arg(long, value_enum, value_name = "PATHS", conflicts_with = "path")]
    paths: Option<PathsChoice>,
    /// Whether the settings that a project makes for Surefire (argLine without agents, system properties, environment,
    /// working directory) apply to launches; `none` is the paper's literal launch
    #[arg(long, value_enum, value_name = "WHOSE", default_value_t)]
    surefire: SurefireChoice,
    /// Let every launch load its classes anew, on both paths
    #[arg(long, hide = true)]
    no_class_archives: bool,
    /// Name of the run; an unfinished one with equal inputs is continued
    #[arg(long, value_name = "ID")]
    run_id: Option<String>,
    /// Begin anew even where an unfinished run could be continued
    #[arg(long)]
    fresh: bool,
    /// How results are written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: OutputFormat,
}

/// How cells are executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum PathChoice {
    /// The reference: Maven compiles every cell
    Maven,
    /// Maven compiles each code revision once, a warm compiler the one file that a cell changes
    #[default]
    Direct,
}

/// Several ways to execute cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PathsChoice {
    /// The reference and the direct path
    Both,
}

/// Whose settings launches have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum SurefireChoice {
    /// The project's
    #[default]
    Project,
    /// Nobody's
    None,
}

impl From<SurefireChoice> for Surefire {
    fn from(choice: SurefireChoice) -> Self {
        match choice {
            SurefireChoice::Project => Self::Project,
            SurefireChoice::None => Self::None,
        }
    }
}

pub(super) fn run(arguments: &ValidateArguments, context: &Context) -> Result<(), CommandError> {
    let tasks = arguments.selector.tasks(context)?;
    if context.options.dry_run {
        return dry_run(&tasks, arguments, context);
    }
    let validated = context.block_on(validate(arguments, &tasks, context))?;
    write(&validated, arguments.format, context)?;
    verdict(&validated.summary)
}

/// What a validation came to.
pub(super) struct Validated {
    /// The comparison with the labels.
    pub(super) summary: ValidationSummary,
    /// Every record.
    pub(super) records: Vec<CellRecord>,
    /// Each task's repository and class.
    classes: Vec<(RepositoryName, TaskClass)>,
}

impl Validated {
    /// Returns what these records of a run come to.
    pub(super) fn of(run_id: &str, tasks: &[Task], records: Vec<CellRecord>) -> Self {
        let (summary, classed) = summarize(run_id, tasks, &records);
        let classes = classed.into_iter().map(|classed| (classed.task.repository.clone(), classed.class)).collect();
        Self { summary, records, classes }
    }
}

impl ValidateArguments {
    fn paths(&self) -> &'static [ExecutionPath] {
        match (self.paths, self.path) {
            (Some(PathsChoice::Both), _) => &[ExecutionPath::Maven, ExecutionPath::Direct],
            (None, PathChoice::Maven) => &[ExecutionPath::Maven],
            (None, PathChoice::Direct) => &[ExecutionPath::Direct],
        }
    }

    /// Returns the selected tasks.
    pub(super) fn tasks(&self, context: &Context) -> Result<Vec<Task>, CommandError> {
        self.selector.tasks(context)
    }
}

fn dry_run(tasks: &[Task], arguments: &ValidateArguments, context: &Context) -> Result<(), CommandError> {
    let cells: usize = tasks.iter().map(|task| crate::outcome::label::cells_of(task.track).len()).sum();
    let groups = by_repository(tasks);
    let repositories = groups.len();
    context.events.message(format!(
        "would execute {} of {} from {}, each launch {} times",
        counted(cells, "cell", "cells"),
        counted(tasks.len(), "task", "tasks"),
        counted(repositories, "repository", "repositories"),
        arguments.repeat
    ));
    preview::images(groups.keys(), context)
}

pub(super) async fn validate(
    arguments: &ValidateArguments,
    tasks: &[Task],
    context: &Context,
) -> Result<Validated, CommandError> {
    let workbench = Workbench::open(context)?;
    let engine = workbench.engine().await?;
    let mut environments: BTreeMap<RepositoryName, Environment> = BTreeMap::new();
    let mut limits = BTreeMap::new();
    let mut paths = BTreeMap::new();
    for (repository, tasks) in by_repository(tasks) {
        let manifest = workbench.manifest(&repository)?;
        let image = workbench.ready_image(engine.as_ref(), &manifest).await?;
        let environment = Environment { surefire: arguments.surefire.into(), ..environment(&manifest, &image) };
        environments.insert(repository.clone(), environment);
        limits.insert(repository.clone(), ExecutionLimits::from(&manifest.limits));
        paths.insert(repository, workbench.repository(&manifest, &tasks).await?.path().to_owned());
    }
    let jars = workbench.jars(engine.as_ref(), &workbench.toolchain()?).await?;
    let (surefire, repeats) = (arguments.surefire.into(), arguments.repeat.get());
    let tools = Some(run_tools(engine.as_ref(), &jars, !arguments.no_class_archives).await?);
    let inputs =
        RunInputs { tools, ..RunInputs::new(tasks, &environments, &limits, surefire, arguments.paths(), repeats) };
    let inputs = canonical_json(&inputs).map_err(|error| CommandError::Output(error.into()))?;
    let (mut run, known) =
        RunDirectory::open(&workbench.data_dir, "validate", &inputs, arguments.run_id.as_deref(), arguments.fresh)?;
    context.events.message(match known.len() {
        0 => format!("run {}", run.run_id()),
        records => format!("run {}, continued after {}", run.run_id(), counted(records, "record", "records")),
    });
    let mut executor = workbench.executor(&engine, &jars).await?;
    if arguments.no_class_archives {
        executor.class_archives = None;
    }
    let mut executors = BTreeMap::new();
    for (repository, limits) in limits {
        let logs = Some(run.path().join("logs"));
        executors.insert(repository, Arc::new(Executor { limits, logs, ..executor.clone() }));
    }
    let direct = arguments.paths().contains(&ExecutionPath::Direct);
    let direct = direct.then(|| Arc::new(workbench.direct(&engine, &jars)));
    let validation = Validation {
        tasks,
        environments: &environments,
        executors: &executors,
        repeats: arguments.repeat.get(),
        jobs: context.options.jobs.get(),
        trees: workbench.trees(paths),
        paths: arguments.paths(),
        direct: direct.clone(),
    };
    let records = validation.run(&mut run, known, &context.events, &context.cancellation).await;
    // With them their compilers and the containers that wait end.
    drop(validation);
    drop((direct, executors, executor));
    engine.close().await?;
    let records = records.map_err(|error| match error {
        RunError::Interrupted => CommandError::Interrupted,
        error => error.into(),
    })?;
    let validated = Validated::of(run.run_id(), tasks, records);
    let process = context.invocation();
    let verdicts = verdicts::render(run.run_id(), &validated.summary, &validated.records, &process);
    let verdicts = verdicts.map_err(io::Error::from);
    run.finish(&verdicts.map_err(CommandError::Output)?)?;
    Ok(validated)
}

pub(super) fn write(validated: &Validated, format: OutputFormat, context: &Context) -> Result<(), CommandError> {
    let summary = &validated.summary;
    match format {
        OutputFormat::Json => context.output.json(summary),
        OutputFormat::Text => {
            let mut table = Table::new(["repository", "tasks", "reproduced", "differing", "flaky", "infrastructure"]);
            let mut rows: BTreeMap<&RepositoryName, [usize; 5]> = BTreeMap::new();
            for (repository, class) in &validated.classes {
                let row = rows.entry(repository).or_default();
                row[0] += 1;
                row[match class {
                    TaskClass::Reproduced => 1,
                    TaskClass::Differing => 2,
                    TaskClass::Flaky => 3,
                    TaskClass::Infrastructure => 4,
                }] += 1;
            }
            for (repository, counts) in rows {
                let mut row = vec![repository.to_string()];
                row.extend(counts.iter().map(ToString::to_string));
                table.row(row);
            }
            context.output.table(&table)?;
            context.output.lines(&(details(summary).join("\n") + "\n"))
        }
    }
}

/// Returns what did not come out as published, and what the counts are.
fn details(summary: &ValidationSummary) -> Vec<String> {
    let mut lines = vec![String::new()];
    for difference in &summary.differing {
        let got = match &difference.reason {
            Some(reason) => format!("{}({reason})", difference.got),
            None => difference.got.to_owned(),
        };
        let expected = difference.expected.join(" or ");
        let (task, cell, method) = (&difference.task_id, difference.cell.name(), &difference.method);
        lines.push(format!("differing: {task} {cell} {method}: {got}, expected {expected}"));
        lines.extend(difference.detail.lines().take(3).map(|line| format!("    {line}")));
    }
    for flake in &summary.flaky {
        let (task, cell, method) = (&flake.task_id, flake.cell.name(), &flake.method);
        lines.push(format!("flaky: {task} {cell} {method}: passed {} of {}", flake.passed, flake.runs));
    }
    for fault in &summary.infrastructure {
        let (task, cell) = (&fault.task_id, fault.cell.name());
        let attempts = counted(fault.attempts as usize, "attempt", "attempts");
        lines.push(format!("infrastructure: {task} {cell}: {} after {attempts}", fault.reason));
        lines.extend(fault.detail.lines().take(3).map(|line| format!("    {line}")));
    }
    for difference in &summary.differing_paths {
        let (task, cell, method) = (&difference.task_id, difference.cell.name(), &difference.method);
        let (maven, direct) = (&difference.maven, &difference.direct);
        lines.push(format!("paths differ: {task} {cell} {method}: maven {maven}, direct {direct}"));
    }
    for method in &summary.not_discriminating {
        lines.push(format!("not discriminating: {} {}: {} on old code", method.task_id, method.method, method.got));
    }
    let counts = &summary.discriminating;
    lines.push(format!(
        "{} of {} reproduced; of {} for generation {} discriminate, {} do not, {} can't be told",
        summary.reproduced,
        counted(summary.tasks, "task", "tasks"),
        counted(counts.methods, "method", "methods"),
        counts.yes,
        counts.no,
        counts.inconclusive
    ));
    lines
}

pub(super) fn verdict(summary: &ValidationSummary) -> Result<(), CommandError> {
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
