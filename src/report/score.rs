//! Reports of scoring runs, made from run directories alone: the same directories give the same bytes.
//!
//! [`read`] turns runs into scored tasks, and [`figures`] aggregates them. The formats are in a submodule, and so are
//! the attachments that a page shows beside records.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::error::{ExitStatus, Failure};
use crate::execution::run::directory::RunDirectoryError;
use crate::metrics::aggregate::{TaskScore, TrackFigures, success_rates, track_figures};
use crate::metrics::bootstrap::paired;
use crate::metrics::category::Flaky;
use crate::task::{MethodId, RepositoryName, TaskId, Track};

pub mod attachments;
mod certified;
pub mod formats;
mod gathered;
mod instances;
mod integrity;
mod kept;
mod period;
mod published;
mod samples;
mod scored;
#[cfg(test)]
pub(super) mod tests;
pub mod verdicts;

pub use certified::{Certification, Certified, CertifiedRun, Excluded};
pub use instances::Instances;
pub use kept::{KeptLogs, executions_of, find_kept_logs, kept_keys};
pub use period::Period;
pub use published::AgentMeans;
pub use samples::{OneSample, PassAt, SampledModel, take_as_samples};
pub use scored::{RunFacts, ScoredMethod, ScoredModel, ScoredTask, read, read_of};

/// Version of the report's schema.
pub const REPORT_SCHEMA: u32 = 1;

/// The subcommand whose runs are reported here.
pub const COMMAND: &str = "score";

/// The most unknown ids in a report, because a file may contain a million of them.
const MOST_UNKNOWN: usize = 100;

/// Why runs can't be reported.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A run can't be read.
    #[error(transparent)]
    RunDirectory(#[from] RunDirectoryError),
    /// The run belongs to another subcommand.
    #[error("the run `{run_id}` is one of `{command}`, and has no scores")]
    OtherCommand {
        /// The run.
        run_id: String,
        /// Its subcommand.
        command: String,
    },
    /// The run has lost its inputs.
    #[error("the run `{0}` has no inputs.json")]
    NoInputs(String),
    /// The run has no task of the wanted days.
    #[error("the run `{run_id}` has no {period}")]
    NothingLeft {
        /// The run.
        run_id: String,
        /// The days.
        period: Period,
    },
    /// The run is no validation that has finished.
    #[error("the run `{0}` is no finished run of `validate`")]
    NoValidation(String),
    /// No validation has finished.
    #[error("no run of `validate` has finished")]
    NeverValidated,
    /// A path leads to something else than a run.
    #[error("`{path}` is no run: {reason}")]
    NoRun {
        /// The path.
        path: PathBuf,
        /// What is there.
        reason: &'static str,
    },
    /// A run is named twice, or a run and a copy of it.
    #[error("the run `{0}` is named twice")]
    Twice(String),
    /// Two runs of different commands are compared.
    #[error("the run `{run}` is one of `{command}`, and the run `{other}` one of `{other_command}`")]
    Incomparable {
        /// The first run.
        run: String,
        /// Its subcommand.
        command: String,
        /// The second run.
        other: String,
        /// Its subcommand.
        other_command: String,
    },
}

impl Failure for ReportError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::RunDirectory(error) => error.exit_status(),
            Self::OtherCommand { .. }
            | Self::NothingLeft { .. }
            | Self::NoValidation(_)
            | Self::NeverValidated
            | Self::NoRun { .. }
            | Self::Twice(_)
            | Self::Incomparable { .. } => ExitStatus::Usage,
            Self::NoInputs(_) => ExitStatus::Mismatch,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::RunDirectory(error) => return error.hint(),
            Self::OtherCommand { .. } => "`testevo-sandbox runs show` shows other runs",
            Self::NoInputs(_) => "execute it again in a new run",
            Self::NothingLeft { .. } => "widen `--since` and `--until`, or leave the run out",
            Self::NoValidation(_) => "`--certified-by` takes a run that `validate` has finished, of the same tasks",
            Self::NeverValidated => "run `testevo-sandbox validate` for these tasks first, or name a run's directory",
            Self::NoRun { .. } => {
                "a run is a directory with `run.json`, such as those below `runs` in the data directory; `testevo-sandbox runs \
                 list` shows these"
            }
            Self::Twice(_) => "name each run once",
            Self::Incomparable { .. } => "name two runs of `score`, or two of `validate`",
        };
        Some(hint.to_owned())
    }
}

/// The whole report, as in `--format json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ScoreReport {
    /// [`REPORT_SCHEMA`].
    pub schema: u32,
    /// The days whose tasks it is over.
    #[serde(skip_serializing_if = "Period::is_unbounded")]
    pub period: Period,
    /// One entry for each model of a run.
    pub runs: Vec<RunFigures>,
    /// Each run against the first one, over the tasks that both have.
    pub comparisons: Vec<Comparison>,
    /// Models of which there are several samples.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<SampledModel>,
    /// The same runs over certified tasks, if a validation is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certified: Option<Certified>,
    /// Agents of a published leaderboard. The page alone shows them: nothing of them was measured here.
    #[serde(skip)]
    pub published: Vec<AgentMeans>,
}

/// One model in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunFigures {
    /// The run.
    pub run_id: String,
    /// The model.
    pub model: String,
    /// Whether the run ended with all its records there, every method could be judged, and no measurement was lost.
    pub complete: bool,
    /// Number of tasks with an unknown value of the developers' tests, over all tracks.
    pub gold_incomplete: usize,
    /// Tasks whose developers' tests fail on new code. Their results are doubtful, and not kept for other runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gold_failed: Vec<TaskId>,
    /// Selected tasks without a submission; they count as failed.
    pub missing: Vec<TaskId>,
    /// Number of these tasks.
    pub missing_count: usize,
    /// Ids of predictions for unknown tasks, the first hundred.
    pub unknown: Vec<String>,
    /// The number of all unknown ids.
    pub unknown_count: usize,
    /// Counts of the selected tasks, under the keys of SWE-bench's run reports.
    #[serde(flatten)]
    pub instances: Instances,
    /// Predictions for tasks that were not selected, of all models of the run.
    pub not_selected: usize,
    /// Repeated predictions, equal in bytes and cost, of all models of the run.
    pub repeated: usize,
    /// Methods that passed on new code in some repeats and not in others.
    pub flaky: Vec<FlakyMethod>,
    /// Figures of the run's tracks.
    pub tracks: BTreeMap<Track, TrackFigures>,
}

/// A flaky method.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FlakyMethod {
    /// The task.
    pub task: TaskId,
    /// The method.
    pub method: MethodId,
    /// How often it passed.
    #[serde(flatten)]
    pub flaky: Flaky,
}

/// The difference of two runs in success percent, over the tasks that both have scored.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Run and model of the one.
    pub run: (String, String),
    /// The other run and model.
    pub base: (String, String),
    /// The track.
    pub track: Track,
    /// Tasks that both have scored.
    pub tasks: usize,
    /// Mean difference, percentage points.
    pub success_percent_difference: f64,
    /// Its 95 % interval by resampling tasks.
    pub interval: [f64; 2],
    /// Its 95 % interval by resampling repositories and their tasks; `None` for one repository.
    pub interval_repositories: Option<[f64; 2]>,
    /// Whether no known interval contains zero.
    pub significant: bool,
}

/// Returns the models of which there are several samples, where runs of models of one name are samples as well.
pub fn samples_of_runs(models: &[ScoredModel]) -> Vec<SampledModel> {
    samples::sampled(models, true)
}

/// Adds scored models up.
pub fn figures(models: &[ScoredModel]) -> ScoreReport {
    let scores: Vec<Vec<TaskScore>> = models.iter().map(ScoredModel::task_scores).collect();
    let runs = models.iter().zip(&scores).map(|(model, scores)| run_figures(model, scores)).collect();
    let mut comparisons = Vec::new();
    // Samples of one model are no models to compare.
    let is_sample = |model: &ScoredModel| model.sample_of.is_some() && model.sample_of == models[0].sample_of;
    for (model, score) in models.iter().zip(&scores).skip(1).filter(|(model, _)| !is_sample(model)) {
        comparisons.extend(
            [Track::TestUpdate, Track::TestGeneration]
                .into_iter()
                .filter_map(|track| compare((&models[0], &scores[0]), (model, score), track)),
        );
    }
    let samples = samples::sampled(models, false);
    ScoreReport {
        schema: REPORT_SCHEMA,
        period: Period::default(),
        runs,
        comparisons,
        samples,
        certified: None,
        published: Vec::new(),
    }
}

fn run_figures(model: &ScoredModel, scores: &[TaskScore]) -> RunFigures {
    let mut tracks: BTreeMap<Track, Vec<&TaskScore>> = BTreeMap::new();
    for score in scores {
        tracks.entry(score.track).or_default().push(score);
    }
    RunFigures {
        run_id: model.run_id.clone(),
        model: model.model.clone(),
        complete: model.complete,
        gold_failed: failed(model),
        gold_incomplete: scores.iter().filter(|score| score.measured.gold_incomplete).count(),
        missing: model.missing.clone(),
        missing_count: model.missing.len(),
        unknown: model.unknown.iter().take(MOST_UNKNOWN).map(|unknown| unknown.id.clone()).collect(),
        unknown_count: model.unknown.len(),
        instances: model.instances.clone(),
        not_selected: model.not_selected,
        repeated: model.repeated,
        flaky: flaky(model),
        tracks: tracks.into_iter().map(|(track, tasks)| (track, track_figures(&tasks))).collect(),
    }
}

fn failed(model: &ScoredModel) -> Vec<TaskId> {
    model.tasks.iter().filter(|scored| scored.gold_failed).map(|scored| scored.task.id.clone()).collect()
}

fn flaky(model: &ScoredModel) -> Vec<FlakyMethod> {
    let methods = model.tasks.iter().flat_map(|scored| scored.methods.iter().map(move |method| (scored, method)));
    let flaky = methods.filter_map(|(scored, method)| {
        let flaky = method.verdict.flaky?;
        Some(FlakyMethod { task: scored.task.id.clone(), method: method.method.clone(), flaky })
    });
    flaky.collect()
}

fn compare(
    (base, base_scores): (&ScoredModel, &[TaskScore]),
    (model, scores): (&ScoredModel, &[TaskScore]),
    track: Track,
) -> Option<Comparison> {
    let by_task = |scores: &[TaskScore]| -> BTreeMap<TaskId, (RepositoryName, f64)> {
        let of_track = scores.iter().filter(|score| score.track == track);
        let rate = |score: &TaskScore| Some((score.repository.clone(), *success_rates(&[score]).first()?));
        of_track.filter_map(|score| Some((score.id.clone(), rate(score)?))).collect()
    };
    let (base_rates, rates) = (by_task(base_scores), by_task(scores));
    let both = rates.iter().filter_map(|(id, (repository, rate))| Some((repository, *rate, base_rates.get(id)?.1)));
    let difference = paired(both)?;
    let named = |model: &ScoredModel| (model.run_id.clone(), model.model.clone());
    Some(Comparison {
        run: named(model),
        base: named(base),
        track,
        tasks: difference.tasks,
        success_percent_difference: difference.mean,
        interval: difference.interval,
        interval_repositories: difference.interval_groups,
        significant: difference.is_significant(),
    })
}
