//! `validate`: the gold executions of every task, compared with the published labels.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::bundle::BundleChoice;
use super::interrupts::block_on;
use super::on::OnArguments;
use super::options::positive;
use super::scratch::ScratchArguments;
use super::selector::SelectorArguments;
use super::stdout;
use crate::application::Context;
use crate::application::merge::MergedRun;
use crate::application::run::RunChoice;
use crate::application::shard::ShardChoice;
use crate::application::validate::{ValidateRequest, Validated, decided, validate};
use crate::error::CommandError;
use crate::execution::container::Surefire;
use crate::execution::run::record::ExecutionPath;
use crate::outcome::label::TaskClass;
use crate::output::{OutputFormat, Table, counted};
use crate::report::validation::ValidationSummary;
use crate::task::RepositoryName;
use crate::task::shard::Shard;

/// Arguments of `validate`.
#[derive(Debug, Args)]
pub(super) struct ValidateArguments {
    #[command(flatten)]
    selector: SelectorArguments,
    /// Launches of every method and cell, each in a fresh container; finds flaky tests
    #[arg(long, value_name = "N", default_value = "1", value_parser = positive::<NonZeroU32>)]
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
    /// Processor time of each launch; wall time is four times that [default: its repository's limit]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<NonZeroU32>,
    /// Do not execute tasks whose labels do not hold again, three times on both paths, for their disputes
    #[arg(long)]
    no_confirm: bool,
    #[command(flatten)]
    run: RunArguments,
    #[command(flatten)]
    on: OnArguments,
    #[command(flatten)]
    bundle: BundleChoice,
    #[command(flatten)]
    scratch: ScratchArguments,
    /// How results are written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: OutputFormat,
}

/// Which run a subcommand opens.
#[derive(Debug, Args)]
pub(super) struct RunArguments {
    /// Name of the run; an unfinished one with equal inputs is resumed
    #[arg(long, value_name = "ID")]
    run_id: Option<String>,
    /// Start a new run, even if an unfinished one could be resumed
    #[arg(long)]
    fresh: bool,
    /// Execute only part K of N of the selection; `runs merge` makes one run of all parts
    #[arg(long, value_name = "K/N", group = "parts")]
    shard: Option<Shard>,
    /// Divide the selection by these recorded costs, which `runs costs` writes, instead of by numbers of methods
    #[arg(long, value_name = "FILE", requires = "parts")]
    weights: Option<PathBuf>,
}

impl RunArguments {
    /// Returns the file of recorded costs.
    pub(super) fn costs(&self) -> Option<&PathBuf> {
        self.weights.as_ref()
    }

    /// Returns the choice that the arguments mean.
    pub(super) fn choice(&self) -> RunChoice {
        let shard = self.shard.map(|shard| ShardChoice { shard, costs: self.weights.clone() });
        RunChoice { run_id: self.run_id.clone(), fresh: self.fresh, shard }
    }
}

/// The greatest time limit in seconds, equal to that of manifests.
const MOST_SECONDS: u32 = 7 * 86_400;

/// Parses a time limit.
pub(super) fn seconds(text: &str) -> Result<NonZeroU32, String> {
    let seconds = text.parse::<NonZeroU32>().ok().filter(|seconds| seconds.get() <= MOST_SECONDS);
    seconds.ok_or_else(|| format!("it is no number from 1 to {MOST_SECONDS}"))
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
    let mut request = arguments.request()?;
    let decided = || Ok((decided(&request)?, 1));
    if let Some(merged) = arguments.on.run(&request.selector, &request.run, arguments.run.costs(), decided, context)? {
        return match merged {
            Some(MergedRun::Validation(shown)) => {
                write(&shown.validated, arguments.format)?;
                shown.validated.verdict()
            }
            Some(MergedRun::Scoring(_)) | None => Ok(()),
        };
    }
    let ControlFlow::Continue(of_bundle) = arguments.bundle.take(&mut request.selector, context)? else {
        return Ok(());
    };
    let context = of_bundle.as_ref().unwrap_or(context);
    let scratch = arguments.scratch.open(&request.selector, context)?;
    let context = scratch.as_ref().map_or(context, |scratch| &scratch.context);
    let validated = block_on(context, validate(&request, context));
    if let Some(scratch) = &scratch {
        scratch.finish();
    }
    let Some(validated) = validated? else { return Ok(()) };
    write(&validated, arguments.format)?;
    validated.verdict()
}

impl ValidateArguments {
    fn request(&self) -> Result<ValidateRequest, CommandError> {
        Ok(ValidateRequest {
            selector: self.selector.resolve()?,
            repeats: self.repeat,
            paths: match (self.paths, self.path) {
                (Some(PathsChoice::Both), _) => &[ExecutionPath::Maven, ExecutionPath::Direct],
                (None, PathChoice::Maven) => &[ExecutionPath::Maven],
                (None, PathChoice::Direct) => &[ExecutionPath::Direct],
            },
            surefire: self.surefire.into(),
            class_archives: !self.no_class_archives,
            timeout: self.timeout,
            confirm: !self.no_confirm,
            run: self.run.choice(),
        })
    }
}

pub(super) fn write(validated: &Validated<'_>, format: OutputFormat) -> Result<(), CommandError> {
    let summary = &validated.summary;
    match format {
        OutputFormat::Json => stdout::json(summary),
        OutputFormat::Text => {
            let mut table = Table::new([
                "repository",
                "tasks",
                "reproduced",
                "differing",
                "needs network",
                "flaky",
                "infrastructure",
            ]);
            let mut rows: BTreeMap<&RepositoryName, [usize; 6]> = BTreeMap::new();
            for (repository, class) in &validated.classes {
                let row = rows.entry(repository).or_default();
                row[0] += 1;
                row[match class {
                    TaskClass::Reproduced => 1,
                    TaskClass::Differing => 2,
                    TaskClass::NeedsNetwork => 3,
                    TaskClass::Flaky => 4,
                    TaskClass::Infrastructure => 5,
                }] += 1;
            }
            for (repository, counts) in rows {
                let mut row = vec![repository.to_string()];
                row.extend(counts.iter().map(ToString::to_string));
                table.row(row);
            }
            stdout::table(&table)?;
            stdout::lines(&(details(summary).join("\n") + "\n"))
        }
    }
}

/// Returns the differences from the published labels, and the counts.
fn details(summary: &ValidationSummary) -> Vec<String> {
    let mut lines = vec![String::new()];
    let differing = summary.differing.iter().map(|difference| ("differing", difference));
    let needing = summary.needs_network.iter().map(|difference| ("needs network", difference));
    for (what, difference) in differing.chain(needing) {
        let got = match &difference.reason {
            Some(reason) => format!("{}({reason})", difference.got),
            None => difference.got.to_owned(),
        };
        let expected = difference.expected.join(" or ");
        let (task, cell, method) = (&difference.task_id, difference.cell.name(), &difference.method);
        lines.push(format!("{what}: {task} {cell} {method}: {got}, expected {expected}"));
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
        "{} of {} reproduced. Of {} for generation {} fail on old code, {} pass there, {} can't be told",
        summary.reproduced,
        counted(summary.tasks, "task", "tasks"),
        counted(counts.methods, "method", "methods"),
        counts.yes,
        counts.no,
        counts.inconclusive
    ));
    lines
}
