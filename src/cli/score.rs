//! `score`: agents' patches, or the developers' tests, executed and scored.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::Context;
use super::preview;
use super::report::print_text;
use super::selector::SelectorArguments;
use super::tasks::focal::keep as keep_focal;
use super::validate::{PathChoice, SurefireChoice};
use super::workbench::{Workbench, by_repository, environment, run_tools};
use crate::canonical_json::canonical_json;
use crate::digest::Digest;
use crate::error::CommandError;
use crate::execution::container::Environment;
use crate::execution::executor::Executor;
use crate::execution::inputs::RunInputs;
use crate::execution::limits::ExecutionLimits;
use crate::execution::record::ExecutionPath;
use crate::execution::run_directory::RunDirectory;
use crate::execution::scoring::Scoring;
use crate::execution::scoring::cache::ResultCache;
use crate::execution::scoring::inputs::{ModelInputs, ScoreInputs};
use crate::execution::scoring::record::ScoreRecord;
use crate::execution::scoring::trees::SubmissionTrees;
use crate::execution::scoring::unscored::{Left, counts, left};
use crate::execution::stage::RunError;
use crate::focal::store::KnownFocal;
use crate::output::{OutputFormat, counted};
use crate::report::score::{COMMAND, figures, read};
use crate::submission::predictions::{Predictions, Selection, read as read_predictions};
use crate::submission::{Content, EMPTY, GOLD};
use crate::task::file::load_all;
use crate::task::{RepositoryName, Task, TaskId};

/// The most of a kind that is warned of.
const MOST_TOLD: usize = 20;

/// Arguments of `score`.
#[derive(Debug, Args)]
pub(super) struct ScoreArguments {
    #[command(flatten)]
    selector: SelectorArguments,
    /// What to score: a file (JSON lines, list or dictionary), a directory of patches or test files, or `gold` (the
    /// developers' tests) or `empty` (nothing)
    #[arg(long, value_name = "FILE|DIR|gold|empty")]
    predictions: String,
    /// How methods are executed; what the direct path can't do exactly as Maven would goes to Maven in any case
    #[arg(long, value_enum, value_name = "PATH", default_value_t)]
    path: PathChoice,
    /// Whether the settings that a project makes for Surefire apply to launches
    #[arg(long, value_enum, value_name = "WHOSE", default_value_t)]
    surefire: SurefireChoice,
    /// Launches of every method on each side, each in a fresh container; finds flaky tests
    #[arg(long, value_name = "N", default_value = "1")]
    repeat: NonZeroU32,
    /// Seed of the random order of executions; by default it follows from what is scored
    #[arg(long, value_name = "NUMBER")]
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

impl ScoreArguments {
    fn path(&self) -> ExecutionPath {
        match self.path {
            PathChoice::Maven => ExecutionPath::Maven,
            PathChoice::Direct => ExecutionPath::Direct,
        }
    }
}

pub(super) fn run(arguments: &ScoreArguments, context: &Context) -> Result<(), CommandError> {
    let tasks = arguments.selector.tasks(context)?;
    let predictions = predictions(arguments, &tasks, context)?;
    tell(&predictions, context);
    if context.options.dry_run {
        dry_run(&tasks, &predictions, arguments, context);
        preview::images(&executed(&tasks, &predictions), context)?;
        return Ok(());
    }
    let (path, left) = context.block_on(score(arguments, &tasks, &predictions, context))?;
    let models = read(&[path])?;
    let report = figures(&models);
    match arguments.format {
        OutputFormat::Json => context.output.json(&report)?,
        OutputFormat::Text => print_text(&report, &models, context)?,
    }
    let unscored: usize =
        report.runs.iter().flat_map(|run| run.tracks.values()).map(|figures| figures.all.unscored).sum();
    tell_left(&left, context);
    let complete = report.runs.iter().all(|run| run.complete);
    match incomplete(unscored, &left, complete) {
        Some(summary) => Err(CommandError::InfrastructureLeft { summary }),
        None => Ok(()),
    }
}

/// Names what faults of the machine left without a result.
fn tell_left(left: &[Left], context: &Context) {
    warn_of_first(left, "stand in the run's records.jsonl", context, |one| format!("left without a result: {one}"));
}

/// Warns of a few and says how many more there are, and where: that is as far as anybody reads.
fn warn_of_first<T>(all: &[T], elsewhere: &str, context: &Context, warning: impl Fn(&T) -> String) {
    for one in all.iter().take(MOST_TOLD) {
        context.events.warning(warning(one));
    }
    if let Some(more) = all.len().checked_sub(MOST_TOLD).filter(|more| *more > 0) {
        context.events.warning(format!("{more} more like this {elsewhere}"));
    }
}

/// Returns what is missing of a run, in one line; `None` where nothing is.
fn incomplete(unscored: usize, left: &[Left], complete: bool) -> Option<String> {
    let unscored = (unscored > 0).then(|| format!("{} could not be scored", counted(unscored, "method", "methods")));
    let kinds: Vec<String> = counts(left)
        .into_iter()
        .map(|(kind, number)| {
            let (one, several) = kind.names();
            counted(number, one, several)
        })
        .collect();
    let left = (!kinds.is_empty()).then(|| format!("faults left {} without a result", kinds.join(", ")));
    let parts: Vec<String> = unscored.into_iter().chain(left).collect();
    match (parts.is_empty(), complete) {
        (true, true) => None,
        (true, false) => Some("incomplete: something that was to be measured has no record".to_owned()),
        (false, _) => Some(format!("incomplete: {}", parts.join("; "))),
    }
}

fn predictions(arguments: &ScoreArguments, selected: &[Task], context: &Context) -> Result<Predictions, CommandError> {
    match arguments.predictions.as_str() {
        GOLD => Ok(Predictions::gold(selected)),
        EMPTY => Ok(Predictions::empty(selected)),
        path => {
            let known = load_all(&context.data_dir()?.join("tasks"))?;
            Ok(read_predictions(Path::new(path), Selection { known: &known, selected })?)
        }
    }
}

/// Names what would otherwise be missed in silence.
fn tell(predictions: &Predictions, context: &Context) {
    warn_of_first(&predictions.unknown, "are counted in the report", context, |unknown| {
        format!("{}: there is no task `{}`", unknown.place, unknown.id)
    });
    if predictions.not_selected > 0 {
        let number = counted(predictions.not_selected, "prediction is", "predictions are");
        context.events.message(format!("{number} for tasks that were not selected"));
    }
    if predictions.repeated > 0 {
        let number = counted(predictions.repeated, "prediction stands", "predictions stand");
        context.events.message(format!("{number} there more than once with equal bytes, cost and tokens"));
    }
    for (model, missing) in &predictions.missing {
        if let Some(first) = missing.first() {
            let number = counted(missing.len(), "selected task", "selected tasks");
            context.events.warning(format!("{model} has nothing for {number}, which count as failed: {first}, …"));
        }
    }
}

fn dry_run(tasks: &[Task], predictions: &Predictions, arguments: &ScoreArguments, context: &Context) {
    let submissions: usize = predictions.models.values().map(BTreeMap::len).sum();
    context.events.message(format!(
        "would score {} of {} for {}, each method launched {} times on new and on old code",
        counted(submissions, "submission", "submissions"),
        counted(predictions.models.len(), "model", "models"),
        counted(tasks.len(), "task", "tasks"),
        arguments.repeat
    ));
}

/// Returns the repositories of which something must be executed.
fn executed(tasks: &[Task], predictions: &Predictions) -> BTreeSet<RepositoryName> {
    let something = |task: &&Task| {
        let found = predictions.models.values().filter_map(|model| model.get(&task.id));
        found.into_iter().any(|prediction| prediction.content != Content::Nothing)
    };
    tasks.iter().filter(something).map(|task| task.repository.clone()).collect()
}

async fn score(
    arguments: &ScoreArguments,
    tasks: &[Task],
    predictions: &Predictions,
    context: &Context,
) -> Result<(PathBuf, Vec<Left>), CommandError> {
    let workbench = Workbench::open(context)?;
    let executed = executed(tasks, predictions);
    // Where nothing is executed no engine and no image is needed.
    let engine = if executed.is_empty() { None } else { Some(workbench.engine().await?) };
    let (mut environments, mut limits, mut paths, mut jdks) =
        (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for (repository, tasks) in by_repository(tasks) {
        let manifest = workbench.manifest(&repository)?;
        if let Some(engine) = engine.as_ref().filter(|_| executed.contains(&repository)) {
            let image = workbench.ready_image(engine.as_ref(), &manifest).await?;
            let environment = Environment { surefire: arguments.surefire.into(), ..environment(&manifest, &image) };
            environments.insert(repository.clone(), environment);
            limits.insert(repository.clone(), ExecutionLimits::from(&manifest.limits));
        }
        jdks.insert(repository.clone(), manifest.jdk);
        paths.insert(repository, workbench.repository(&manifest, &tasks).await?.path().to_owned());
    }
    let jars = match &engine {
        Some(engine) => Some(workbench.jars(engine.as_ref(), &workbench.toolchain()?).await?),
        None => None,
    };
    let surefire = arguments.surefire.into();
    let mut inputs = ScoreInputs {
        run: RunInputs::new(tasks, &environments, &limits, surefire, &[arguments.path()], arguments.repeat.get()),
        jdks,
        seed: 0,
        coverage: !arguments.no_coverage && engine.is_some(),
        mutation: !arguments.no_mutation && engine.is_some(),
        models: ModelInputs::of(predictions),
        unknown: predictions.unknown.clone(),
        not_selected: predictions.not_selected,
        repeated: predictions.repeated,
    };
    let bytes = |inputs: &ScoreInputs| canonical_json(inputs).map_err(|error| CommandError::Output(error.into()));
    inputs.seed = match arguments.seed {
        Some(seed) => seed,
        None => seed_of(Digest::of(&bytes(&inputs)?)),
    };
    // No part of the seed: another program executes in the same order.
    if let (Some(engine), Some(jars)) = (&engine, &jars) {
        inputs.run.tools = Some(run_tools(engine.as_ref(), jars, true).await?);
    }
    let (mut run, known) = RunDirectory::open_of::<ScoreRecord>(
        &workbench.data_dir,
        COMMAND,
        &bytes(&inputs)?,
        arguments.run_id.as_deref(),
        arguments.fresh,
    )?;
    context.events.message(match known.len() {
        0 => format!("run {}", run.run_id()),
        records => format!("run {}, continued after {}", run.run_id(), counted(records, "record", "records")),
    });
    let mut executors = BTreeMap::new();
    if let (Some(engine), Some(jars)) = (&engine, &jars) {
        let executor = workbench.executor(engine, jars).await?;
        for (repository, limits) in limits {
            executors.insert(repository, Arc::new(Executor { limits, ..executor.clone() }));
        }
    }
    let scoring = Scoring {
        tasks,
        predictions,
        environments: &environments,
        executors: &executors,
        repeats: arguments.repeat.get(),
        jobs: context.options.jobs.get(),
        seed: inputs.seed,
        trees: Arc::new(SubmissionTrees {
            paths: paths.clone(),
            temporary: workbench.data_dir.temporary(),
            notices: Arc::clone(&workbench.notices),
        }),
        revisions: workbench.trees(paths),
        direct: match (&engine, &jars, arguments.path) {
            (Some(engine), Some(jars), PathChoice::Direct) => Some(Arc::new(workbench.direct(engine, jars))),
            _ => None,
        },
        coverage: inputs.coverage,
        mutation: inputs.mutation,
        cache: ResultCache::new(workbench.data_dir.join("results"), !arguments.no_cache),
    };
    let records = scoring.run(&mut run, known, &context.events, &context.cancellation).await;
    // With them their compilers and the containers that wait end.
    drop(scoring);
    drop(executors);
    if let Some(engine) = engine {
        engine.close().await?;
    }
    let records = records.map_err(|error| match error {
        RunError::Interrupted => CommandError::Interrupted,
        error => error.into(),
    })?;
    let path = run.path().to_owned();
    let measured = if inputs.coverage || inputs.mutation { tasks } else { &[] };
    let left = left(&records, measured);
    let verdicts = crate::report::score::verdicts::render(run.run_id(), &records, &context.invocation());
    let verdicts = verdicts.map_err(io::Error::from);
    run.finish(&verdicts.map_err(CommandError::Output)?)?;
    // Last, because it is beside the run: what was executed is safe by then.
    for (repository, found) in focal_of(tasks, &records) {
        keep_focal(&workbench, &repository, found).await?;
    }
    Ok((path, left))
}

/// Returns what a run's records say of the tasks' focal methods, by repository.
fn focal_of(tasks: &[Task], records: &[ScoreRecord]) -> BTreeMap<RepositoryName, BTreeMap<TaskId, KnownFocal>> {
    let (mut focal, mut own) = (BTreeMap::new(), BTreeMap::new());
    for record in records {
        match record {
            ScoreRecord::Focal(record) => drop(focal.insert(&record.task_id, &record.focal)),
            ScoreRecord::OwnFocal(record) if !record.lost => drop(own.insert(&record.task_id, &record.methods)),
            _ => {}
        }
    }
    let mut found: BTreeMap<RepositoryName, BTreeMap<TaskId, KnownFocal>> = BTreeMap::new();
    for task in tasks {
        let Some(focal) = focal.get(&task.id) else { continue };
        let known = KnownFocal { focal: (*focal).clone(), own: own.get(&task.id).map(|own| (*own).clone()) };
        found.entry(task.repository.clone()).or_default().insert(task.id.clone(), known);
    }
    found
}

fn seed_of(digest: Digest) -> u64 {
    let digits = digest.hex();
    // Sixteen hexadecimal digits are what a u64 holds.
    u64::from_str_radix(&digits[..16], 16).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::scoring::record::{FocalRecord, OwnFocalRecord, SCORE_SCHEMA};
    use crate::execution::scoring::unscored::LeftKind;
    use crate::focal::own::{Basis, OwnFocal};
    use crate::focal::{Focal, Found, Rule};
    use crate::task::Track;

    #[test]
    fn focal_methods_are_kept_by_repository() {
        let task = |(id, repository): (&str, &str)| Task {
            id: id.parse().unwrap(),
            repository: repository.parse().unwrap(),
            track: Track::TestUpdate,
            rev1: "a".repeat(40).parse().unwrap(),
            rev2: "b".repeat(40).parse().unwrap(),
            rev1_date: "2020-01-01".to_owned(),
            rev2_date: "2020-01-01".to_owned(),
            test_file: "ATest.java".parse().unwrap(),
            test_methods: Vec::new(),
            focal_methods: Vec::new(),
        };
        let tasks = [("t1", "o/a"), ("t2", "o/b"), ("t3", "o/a"), ("t4", "o/c")].map(task);
        let focal = |method: &str| {
            vec![Focal { method: method.parse().unwrap(), found: Found::Gone { rule: Rule::OldExtent } }]
        };
        let own = |test: &str| vec![OwnFocal::whole(test.parse().unwrap(), &[], Basis::NoneEntered, None)];
        // Nothing was looked for in t4, and t5 is none of the selected.
        let records = [("t3", "A#m"), ("t2", "B#m"), ("t1", "C#m"), ("t5", "D#m")].map(|(id, method)| {
            let task_id = id.parse().unwrap();
            ScoreRecord::Focal(FocalRecord { schema: SCORE_SCHEMA, task_id, focal: focal(method) })
        });
        // What was lost of t2 is found out another time.
        let owns = [("t1", false), ("t2", true)].map(|(id, lost)| {
            ScoreRecord::OwnFocal(OwnFocalRecord {
                schema: SCORE_SCHEMA,
                task_id: id.parse().unwrap(),
                methods: if lost { Vec::new() } else { own("ATest#m") },
                cause: None,
                lost,
                isolation_missing: Vec::new(),
            })
        });
        let records: Vec<ScoreRecord> = records.into_iter().chain(owns).collect();
        let of = |found: &[(&str, &str, Option<Vec<OwnFocal>>)]| -> BTreeMap<TaskId, KnownFocal> {
            let known =
                |method: &str, own: &Option<Vec<OwnFocal>>| KnownFocal { focal: focal(method), own: own.clone() };
            found.iter().map(|(id, method, own)| (id.parse().unwrap(), known(method, own))).collect()
        };
        let expected = BTreeMap::from([
            ("o/a".parse().unwrap(), of(&[("t1", "C#m", Some(own("ATest#m"))), ("t3", "A#m", None)])),
            ("o/b".parse().unwrap(), of(&[("t2", "B#m", None)])),
        ]);
        assert_eq!(focal_of(&tasks, &records), expected);
    }

    #[test]
    fn what_is_left_is_counted_by_kind() {
        let left = |kinds: &[LeftKind]| -> Vec<Left> {
            let left = |kind| Left { kind, task_id: "t".parse().unwrap(), of: String::new(), cause: String::new() };
            kinds.iter().copied().map(left).collect()
        };
        let (launch, coverage) = (LeftKind::Launch, LeftKind::Coverage);
        for (unscored, kinds, complete, expected) in [
            (0, &[][..], true, None),
            (1, &[launch], false, Some("1 method could not be scored; faults left 1 launch without a result")),
            // On old code, of an update, or in a later repeat.
            (0, &[launch, launch], true, Some("faults left 2 launches without a result")),
            (0, &[coverage, launch, coverage], false, Some("faults left 1 launch, 2 coverages without a result")),
            (0, &[], false, Some("something that was to be measured has no record")),
        ] {
            let expected = expected.map(|expected| format!("incomplete: {expected}"));
            assert_eq!(incomplete(unscored, &left(kinds), complete), expected);
        }
    }
}
