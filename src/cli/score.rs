//! `score`: agents' patches, or the developers' tests, executed and scored.

use std::num::NonZeroU32;
use std::ops::ControlFlow;

use clap::Args;

use super::bundle::BundleChoice;
use super::completions;
use super::interrupts::block_on;
use super::on::OnArguments;
use super::options::{positive, whole};
use super::report::print_text;
use super::scratch::ScratchArguments;
use super::selector::SelectorArguments;
use super::stdout;
use super::validate::{PathChoice, RunArguments, SurefireChoice, seconds};
use crate::application::Context;
use crate::application::merge::MergedRun;
use crate::application::report::certification_of;
use crate::application::score::{EndedScoring, ScoreRequest, decided, score};
use crate::error::CommandError;
use crate::execution::run::record::ExecutionPath;
use crate::output::OutputFormat;
use crate::report::score::Certification;
use crate::submission::predictions::Several;

/// Arguments of `score`.
#[derive(Debug, Args)]
pub(super) struct ScoreArguments {
    #[command(flatten)]
    selector: SelectorArguments,
    /// What to score: a file (JSON lines, list or dictionary), a directory of patches or test files, or `gold` (the
    /// developers' tests) or `empty` (nothing)
    #[arg(long, value_name = "FILE|DIR|gold|empty", value_hint = clap::ValueHint::AnyPath)]
    predictions: String,
    /// Remove the Markdown fence or tags around a patch or file, and the text around these; the run's inputs record it
    #[arg(long)]
    strip_fences: bool,
    /// Count several submissions of a model for a task as samples of it: each is scored, and the report has pass@k
    #[arg(long)]
    samples: bool,
    /// How methods are executed; what the direct path can't do exactly as Maven would goes to Maven in any case
    #[arg(long, value_enum, value_name = "PATH", default_value_t)]
    path: PathChoice,
    /// Whether the settings that a project makes for Surefire apply to launches
    #[arg(long, value_enum, value_name = "WHOSE", default_value_t)]
    surefire: SurefireChoice,
    /// Launches of every method on each side, each in a fresh container; finds flaky tests
    #[arg(long, value_name = "N", default_value = "1", value_parser = positive::<NonZeroU32>)]
    repeat: NonZeroU32,
    /// Seed of the order of executions, and of the bytes of classes under controls and of mutants. By default it follows from
    /// what is scored. Results under controls and on mutants are reused only from runs with the same `--seed`
    #[arg(long, value_name = "NUMBER", value_parser = whole::<u64>)]
    seed: Option<u64>,
    /// Execute everything, even what was executed before with equal inputs
    #[arg(long)]
    no_cache: bool,
    /// Do not measure which focal lines passing tests cover
    #[arg(long)]
    no_coverage: bool,
    /// Do not make mutants, nor run passing tests on them; where Maven compiles each, that takes long
    #[arg(long)]
    no_mutation: bool,
    /// Do not launch passing tests under controls, which show tests that test nothing
    #[arg(long)]
    no_controls: bool,
    /// Processor time of each launch; wall time is four times that [default: the class of its task, else its repository's limit]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<NonZeroU32>,
    #[command(flatten)]
    run: RunArguments,
    #[command(flatten)]
    on: OnArguments,
    #[command(flatten)]
    bundle: BundleChoice,
    #[command(flatten)]
    scratch: ScratchArguments,
    /// Add the figures over certified tasks: those whose published labels hold in this run of `validate`; `latest` is its newest
    #[arg(long, value_name = "RUN", add = completions::runs())]
    certified_by: Option<String>,
    /// How results are written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: OutputFormat,
}

impl ScoreArguments {
    fn request(&self) -> Result<ScoreRequest, CommandError> {
        Ok(ScoreRequest {
            selector: self.selector.resolve()?,
            predictions: self.predictions.clone(),
            strip_fences: self.strip_fences,
            several: if self.samples { Several::Samples } else { Several::Repetitions },
            path: match self.path {
                PathChoice::Maven => ExecutionPath::Maven,
                PathChoice::Direct => ExecutionPath::Direct,
            },
            surefire: self.surefire.into(),
            repeats: self.repeat,
            seed: self.seed,
            cache: !self.no_cache,
            coverage: !self.no_coverage,
            mutation: !self.no_mutation,
            controls: !self.no_controls,
            timeout: self.timeout,
            run: self.run.choice(),
        })
    }
}

pub(super) fn run(arguments: &ScoreArguments, context: &Context) -> Result<(), CommandError> {
    let mut request = arguments.request()?;
    let ControlFlow::Continue(of_bundle) = arguments.bundle.take(&mut request.selector, context)? else {
        return Ok(());
    };
    let context = of_bundle.as_ref().unwrap_or(context);
    // Before anything is executed, so that a wrong name costs nothing.
    let certified_by = arguments.certified_by.as_deref().map(|run| certification_of(run, context)).transpose()?;
    let decided = || block_on(context, decided(&request, context));
    if let Some(merged) = arguments.on.run(&request.selector, &request.run, arguments.run.costs(), decided, context)? {
        return match merged {
            Some(MergedRun::Scoring(ended)) => write(ended, arguments.format, certified_by.as_ref(), context),
            Some(MergedRun::Validation(_)) | None => Ok(()),
        };
    }
    let scratch = arguments.scratch.open(&request.selector, context)?;
    let context = scratch.as_ref().map_or(context, |scratch| &scratch.context);
    let ended = block_on(context, score(&request, context));
    if let Some(scratch) = &scratch {
        scratch.finish();
    }
    let Some(ended) = ended? else { return Ok(()) };
    // An interrupt after the run's end must not keep its results from being printed.
    write(ended, arguments.format, certified_by.as_ref(), context)
}

/// Adds up a run that has ended, and prints its results.
pub(super) fn write(
    ended: EndedScoring,
    format: OutputFormat,
    certified_by: Option<&Certification>,
    context: &Context,
) -> Result<(), CommandError> {
    let scored = ended.add_up(certified_by)?;
    match format {
        OutputFormat::Json => stdout::json(&scored.report)?,
        OutputFormat::Text => print_text(&scored.report, &scored.models)?,
    }
    scored.tell_left(context);
    scored.verdict()
}
