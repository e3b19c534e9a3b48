//! Scores predictions, or the developers' tests: executes them on new and old code and measures them.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use super::Context;
use super::disk::Needs;
use super::failures::Failures;
use super::focal::keep as keep_focal;
use super::readiness::tell_unready;
use super::run::{self, RunChoice};
use super::selection::{self, Repositories};
use super::shard;
use super::workbench::{Workbench, blocking, run_tools};
use crate::digest::Digest;
use crate::error::CommandError;
use crate::execution::container::Surefire;
use crate::execution::container::pool::ContainerPool;
use crate::execution::executor::Executor;
use crate::execution::run::directory::RunDirectoryError;
use crate::execution::run::inputs::{RunInputs, RunTools, ShardInputs};
use crate::execution::run::record::ExecutionPath;
use crate::execution::scoring::Scoring;
use crate::execution::scoring::cache::ResultCache;
use crate::execution::scoring::inputs::{ModelInputs, ScoreInputs};
use crate::execution::scoring::record::ScoreRecord;
use crate::execution::scoring::trees::SubmissionTrees;
use crate::execution::scoring::unscored::{Left, counts};
use crate::execution::time_class::TimeClasses;
use crate::focal::store::KnownFocal;
use crate::output::counted;
use crate::report::score::{COMMAND, Certification, ScoreReport, ScoredModel, figures, read, verdicts};
use crate::submission::predictions::{Predictions, Selection, Several, read as read_predictions};
use crate::submission::{Content, EMPTY, GOLD};
use crate::task::file::load_all;
use crate::task::selector::Selector;
use crate::task::{Cell, RepositoryName, Task, TaskId, Track};

mod telling;

use telling::{tell, unreadable, warn_of_first};

/// What is scored, and how.
#[derive(Clone, Debug)]
pub struct ScoreRequest {
    /// The tasks.
    pub selector: Selector,
    /// A file or directory of predictions, `gold` or `empty`.
    pub predictions: String,
    /// Whether Markdown fences around submissions are removed.
    pub strip_fences: bool,
    /// What several predictions of one model for one task are.
    pub several: Several,
    /// How methods are executed.
    pub path: ExecutionPath,
    /// Whose Surefire settings apply to launches.
    pub surefire: Surefire,
    /// Launches of every method on each side.
    pub repeats: NonZeroU32,
    /// Seed of the order of executions, and of the bytes of controls and mutants; `None` to derive it from the other inputs.
    pub seed: Option<u64>,
    /// Whether results of earlier runs are reused.
    pub cache: bool,
    /// Whether coverage is measured.
    pub coverage: bool,
    /// Whether mutants are made and run.
    pub mutation: bool,
    /// Whether methods that pass are launched under controls.
    pub controls: bool,
    /// Seconds of processor time of each launch; `None` for the class of its task, or else its repository's limit.
    pub timeout: Option<NonZeroU32>,
    /// The run.
    pub run: RunChoice,
}

/// A scoring run that has ended.
pub struct EndedScoring<'a> {
    failures: Failures<'a>,
    run: PathBuf,
    left: Vec<Left>,
    failing: BTreeMap<TaskId, String>,
}

impl<'a> EndedScoring<'a> {
    /// Returns a finished run in a directory, with the results that faults prevented, and with tasks whose developers'
    /// tests fail on new code.
    pub(super) fn of(run: PathBuf, left: Vec<Left>, failing: BTreeMap<TaskId, String>, context: &'a Context) -> Self {
        Self { failures: Failures::new(0, context), run, left, failing }
    }

    /// Adds up the run's records, over certified tasks as well if a validation is given.
    ///
    /// # Errors
    /// [`ReportError`](crate::report::score::ReportError).
    pub fn add_up(self, certification: Option<&Certification>) -> Result<Scored<'a>, CommandError> {
        let models = read(std::slice::from_ref(&self.run))?;
        let Self { failures, left, failing, .. } = self;
        let certified = certification.map(|certification| certification.figures(&models));
        Ok(Scored { report: ScoreReport { certified, ..figures(&models) }, failures, models, left, failing })
    }
}

/// The results of a scoring run.
pub struct Scored<'a> {
    /// Repositories that could not be opened.
    failures: Failures<'a>,
    /// Its records, by model.
    pub models: Vec<ScoredModel>,
    /// The report of these.
    pub report: ScoreReport,
    left: Vec<Left>,
    /// Tasks whose developers' tests fail on new code.
    failing: BTreeMap<TaskId, String>,
}

impl Scored<'_> {
    /// Warns of results that faults of the machine prevented, and of tasks whose results are not kept.
    pub fn tell_left(&self, context: &Context) {
        let failing: Vec<_> = self.failing.iter().collect();
        warn_of_first(&failing, "stand in the run's records.jsonl", context, |(task, cause)| {
            format!(
                "the developers' test of {task} fails on new code ({cause}), so no result of this task is kept for other runs: run \
                 `testevo-sandbox store verify`, and `validate` for this task"
            )
        });
        let warning = |one: &Left| format!("left without a result: {one}");
        warn_of_first(&self.left, "stand in the run's records.jsonl", context, warning);
    }

    /// Checks that the run has all its results.
    ///
    /// # Errors
    /// [`CommandError::Repositories`] if some could not be opened; [`CommandError::InfrastructureLeft`].
    pub fn verdict(self) -> Result<(), CommandError> {
        let own = self.own_verdict();
        self.failures.settle("scored", own)
    }

    fn own_verdict(&self) -> Result<(), CommandError> {
        let runs = &self.report.runs;
        let unscored: usize = runs.iter().flat_map(|run| run.tracks.values()).map(|figures| figures.all.unscored).sum();
        match incomplete((unscored, self.failing.len()), &self.left, runs.iter().all(|run| run.complete)) {
            Some(summary) => Err(CommandError::InfrastructureLeft { summary }),
            None => Ok(()),
        }
    }
}

/// Executes the request; `None` after a dry run, which only tells what would be done.
///
/// # Errors
/// [`CommandError`] of selections, predictions, images, engines and runs; an interrupt.
pub async fn score<'a>(request: &ScoreRequest, context: &'a Context) -> Result<Option<EndedScoring<'a>>, CommandError> {
    let selected = selection::tasks(&request.selector, context)?;
    let mut predictions = predictions(request, &selected, context).await?;
    if request.strip_fences {
        let number = counted(predictions.strip_fences(), "submission", "submissions");
        context.events.message(format!("removed the Markdown fences around {number}"));
    }
    tell(&predictions, context);
    let decided = digest_of(request, &selected, &predictions)?;
    let seed = request.seed.unwrap_or_else(|| decided.first_bytes());
    let executed = executed(&selected, &predictions);
    let (tasks, shard) = shard::of(selected, request.run.shard.as_ref(), decided)?;
    predictions.retain(&tasks);
    if context.options.dry_run {
        preview(&tasks, &predictions, request, context);
        tell_unready(&tasks, |repository| executed.contains(repository), "scored", context).await?;
        ensure_room(request, &tasks, &predictions, &Workbench::open(context)?).await?;
        return Ok(None);
    }
    Ok(Some(execute(request, &tasks, &predictions, (seed, &executed, shard), context).await?))
}

/// Returns the digest of what decides the run that a request makes, images and this program's version apart, and the number of models
/// that it scores. The digest is the same in every shard of the selection.
///
/// # Errors
/// [`CommandError`] of selections and predictions; an interrupt.
pub async fn decided(request: &ScoreRequest, context: &Context) -> Result<(Digest, u64), CommandError> {
    let selected = selection::tasks(&request.selector, context)?;
    let mut predictions = predictions(request, &selected, context).await?;
    if request.strip_fences {
        predictions.strip_fences();
    }
    Ok((digest_of(request, &selected, &predictions)?, predictions.models.len() as u64))
}

async fn predictions(
    request: &ScoreRequest,
    selected: &[Task],
    context: &Context,
) -> Result<Predictions, CommandError> {
    match request.predictions.as_str() {
        GOLD => Ok(Predictions::gold(selected)),
        EMPTY => Ok(Predictions::empty(selected)),
        path => {
            let known = load_all(&context.data_dir()?.join("tasks"))?;
            let (path, selected) = (PathBuf::from(path), selected.to_vec());
            // Reading a pipe may take long.
            let several = request.several;
            let read = move || Ok(read_predictions(&path, Selection { known: &known, selected: &selected }, several)?);
            context.until_interrupted(blocking(read)).await
        }
    }
}

/// Returns the results that a run lacks, in one line; `None` for a complete run.
fn incomplete((unscored, failing): (usize, usize), left: &[Left], complete: bool) -> Option<String> {
    let unscored = (unscored > 0).then(|| format!("{} could not be scored", counted(unscored, "method", "methods")));
    let kinds: Vec<String> = counts(left)
        .into_iter()
        .map(|(kind, number)| {
            let (one, several) = kind.names();
            counted(number, one, several)
        })
        .collect();
    let left = (!kinds.is_empty()).then(|| format!("faults left {} without a result", kinds.join(", ")));
    let failing = (failing > 0)
        .then(|| format!("the developers' tests of {} fail on new code", counted(failing, "task", "tasks")));
    let parts: Vec<String> = unscored.into_iter().chain(left).chain(failing).collect();
    match (parts.is_empty(), complete) {
        (true, true) => None,
        (true, false) => Some("incomplete: something that was to be measured has no record".to_owned()),
        (false, _) => Some(format!("incomplete: {}", parts.join("; "))),
    }
}

fn preview(tasks: &[Task], predictions: &Predictions, request: &ScoreRequest, context: &Context) {
    let submissions: usize = predictions.models.values().map(BTreeMap::len).sum();
    let unreadable = match unreadable(predictions).count() {
        0 => String::new(),
        number => format!(", of which {number} can't be read,"),
    };
    let launched = counted(request.repeats.get() as usize, "launch", "launches");
    context.events.message(format!(
        "would score {}{unreadable} of {} for {}; each method takes {launched} on new code, for generation as many on old code",
        counted(submissions, "submission", "submissions"),
        counted(predictions.models.len(), "model", "models"),
        counted(tasks.len(), "task", "tasks"),
    ));
}

/// Returns the repositories that need executions.
fn executed(tasks: &[Task], predictions: &Predictions) -> BTreeSet<RepositoryName> {
    tasks.iter().filter(|task| is_executed(task, predictions)).map(|task| task.repository.clone()).collect()
}

fn is_executed(task: &Task, predictions: &Predictions) -> bool {
    let found = predictions.models.values().filter_map(|model| model.get(&task.id));
    found.into_iter().any(|prediction| prediction.content != Content::Nothing)
}

/// Checks that there is room for what the submissions take.
async fn ensure_room(
    request: &ScoreRequest,
    tasks: &[Task],
    predictions: &Predictions,
    workbench: &Workbench<'_>,
) -> Result<(), CommandError> {
    let cells = |task: &Task| match (request.path, task.track) {
        (ExecutionPath::Direct, Track::TestUpdate) => [Cell::Nn].as_slice(),
        (ExecutionPath::Direct, Track::TestGeneration) => &[Cell::Oo, Cell::Nn],
        (ExecutionPath::Maven, _) => &[],
    };
    let mut needs = Needs::new(workbench).await;
    needs.tasks(tasks.iter().filter(|task| is_executed(task, predictions)), request.surefire, cells).await?;
    needs.run(predictions.models.values().map(BTreeMap::len).sum());
    needs.ensure().await
}

async fn execute<'a>(
    request: &ScoreRequest,
    tasks: &[Task],
    predictions: &Predictions,
    (seed, executed, shard): (u64, &BTreeSet<RepositoryName>, Option<ShardInputs>),
    context: &'a Context,
) -> Result<EndedScoring<'a>, CommandError> {
    let workbench = Workbench::open(context)?;
    ensure_room(request, tasks, predictions, &workbench).await?;
    // Without executions neither an engine nor an image is needed.
    let engine = if executed.is_empty() { None } else { Some(workbench.engine().await?) };
    let engine_for = |repository: &RepositoryName| engine.as_deref().filter(|_| executed.contains(repository));
    let mut opened = Repositories::open(&workbench, tasks, request.surefire, engine_for).await?;
    let failures = match opened.failures(tasks, context, ("scored", shard.is_some())) {
        Ok(failures) => failures,
        Err(error) => {
            if let Some(engine) = engine {
                engine.close().await?;
            }
            return Err(error);
        }
    };
    opened.limit_launches(request.timeout);
    let jars = match &engine {
        Some(engine) => Some(workbench.jars(engine.as_ref(), &workbench.toolchain()?).await?),
        None => None,
    };
    let tools = match (&engine, &jars) {
        (Some(engine), Some(jars)) => Some(run_tools(engine.as_ref(), jars, true).await?),
        _ => None,
    };
    let inputs = inputs_of(request, tasks, predictions, (seed, shard), &opened, tools);
    let (mut run, known) = run::open(&workbench, COMMAND, &inputs, &request.run)?;
    let (mut executors, mut direct) = (BTreeMap::new(), None);
    if let (Some(engine), Some(jars)) = (&engine, &jars) {
        // Code in a container can read how long the container has been there. If it were started during the launch before, that
        // would be how long that launch took, which a submission decides.
        let pool = Arc::new(ContainerPool::new(Arc::clone(engine), 0));
        executors = opened.executors(&Executor { pool, ..workbench.executor(engine, jars).await? });
        direct = (request.path == ExecutionPath::Direct).then(|| Arc::new(workbench.direct(engine, jars)));
    }
    let scoring = Scoring {
        tasks,
        predictions,
        images: &opened.images,
        executors: &executors,
        obstacles: &opened.obstacles,
        repeats: inputs.run.repeats,
        jobs: context.options.jobs.get(),
        seed: inputs.seed,
        chosen_seed: request.seed,
        trees: Arc::new(SubmissionTrees {
            paths: opened.paths.clone(),
            temporary: workbench.data_dir.temporary(),
            notices: Arc::clone(&workbench.notices),
            whole: Arc::clone(&opened.whole),
        }),
        revisions: workbench.trees(opened.paths.clone(), &opened.whole),
        direct,
        coverage: inputs.coverage,
        mutation: inputs.mutation,
        controls: inputs.controls,
        cache: ResultCache::of(&workbench.data_dir, request.cache)
            .listing_keys(run.path())
            .map_err(RunDirectoryError::from)?,
        time_classes: request.timeout.is_none().then(|| TimeClasses::new(&workbench.data_dir)),
    };
    let records = scoring.run(&mut run, known, &context.events, &context.cancellation).await;
    let records = records.and_then(|records| Ok((scoring.doubtful(&records)?, records)));
    // Dropping them ends their compilers.
    drop(scoring);
    drop(executors);
    if let Some(engine) = engine {
        engine.close().await?;
    }
    let (failing, records) = run::completed(records)?;
    let path = run.path().to_owned();
    let left = inputs.left(&records);
    let verdicts = verdicts::render(run.run_id(), &records, &context.invocation());
    run::finish(run, verdicts)?;
    // Done last, because it is not part of the run: the run's records are safe by then.
    for (repository, found) in focal_of(tasks, &records) {
        keep_focal(&workbench, &repository, found).await?;
    }
    Ok(EndedScoring { failures, run: path, left, failing })
}

/// Returns what decides the results of a run. Without `tools` nothing is executed.
fn inputs_of(
    request: &ScoreRequest,
    tasks: &[Task],
    predictions: &Predictions,
    (seed, shard): (u64, Option<ShardInputs>),
    opened: &Repositories,
    tools: Option<RunTools>,
) -> ScoreInputs {
    let (images, limits, repeats) = (&opened.images, &opened.limits, request.repeats.get());
    let mut run = RunInputs::new(tasks, images, limits, request.surefire, &[request.path], repeats);
    let executes = tools.is_some();
    (run.shard, run.tools) = (shard, tools);
    ScoreInputs {
        run,
        jdks: opened.jdks.clone(),
        seed,
        coverage: request.coverage && executes,
        mutation: request.mutation && executes,
        controls: request.controls && executes,
        strip_fences: request.strip_fences,
        samples: predictions.samples.clone(),
        models: ModelInputs::of(predictions),
        unknown: predictions.unknown.clone(),
        not_selected: predictions.not_selected,
        repeated: predictions.repeated,
    }
}

/// Returns the tasks' focal methods in a run's records, by repository.
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

/// Returns the digest of what decides a run, the same in every shard of the selection. Images and this program's version are no part
/// of it: another version executes in the same order.
fn digest_of(request: &ScoreRequest, selected: &[Task], predictions: &Predictions) -> Result<Digest, CommandError> {
    let models = ModelInputs::of(predictions);
    let measured = (request.coverage, request.mutation, request.controls);
    let options = (request.surefire, request.path, request.repeats, request.timeout, request.strip_fences);
    Ok(Digest::of(&run::bytes(&(selected, models, measured, options))?))
}

#[cfg(test)]
mod tests;
