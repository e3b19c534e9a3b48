//! The records of a scoring run: a JSON line for each submission, execution, and measurement of adequacy.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::execution::control::Controlled;
use crate::execution::control::hollow::BodyForm;
use crate::execution::run::directory::RunRecord;
use crate::execution::run::record::Measured;
use crate::focal::own::OwnFocal;
use crate::focal::{Focal, FocalLines, extents};
use crate::metrics::coverage::FocalCoverage;
use crate::metrics::mutation::{Kills, MutantSet};
use crate::outcome::{HarnessReason, Outcome};
use crate::submission::ContentKind;
use crate::submission::extraction::Dropped;
use crate::submission::mentions::Finding;
use crate::task::{MethodId, RepositoryName, Side, TaskId, Track};

/// Version of the records' schema.
pub const SCORE_SCHEMA: u32 = 1;

/// A line of a scoring run's records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum ScoreRecord {
    /// A resolved submission, before any execution.
    Submission(SubmissionRecord),
    /// The places of a task's focal methods.
    Focal(FocalRecord),
    /// Each test method's own focal methods.
    OwnFocal(OwnFocalRecord),
    /// Whether a generation task's starting file compiles.
    Start(StartRecord),
    /// One launch of one method.
    Execution(ExecutionRecord),
    /// A passing method's coverage of the focal methods.
    Coverage(CoverageRecord),
    /// The mutants of a task.
    Mutants(MutantsRecord),
    /// A passing method's results on the mutants.
    Mutation(MutationRecord),
    /// A passing method's results under controls.
    Controls(ControlsRecord),
    /// Time limits of a task's submissions.
    TimeClass(TimeClassRecord),
}

/// A resolved submission, before any execution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SubmissionRecord {
    /// [`SCORE_SCHEMA`].
    pub schema: u32,
    /// The model.
    pub model: String,
    /// The task.
    pub task_id: TaskId,
    /// The form of the submission.
    pub kind: ContentKind,
    /// Digest of the submitted bytes; `None` for gold, for an empty submission, and for bytes too large to keep.
    pub submitted: Option<Digest>,
    /// Digest of the starting file; `None` if the starting tree has none.
    pub start: Option<Digest>,
    /// Digest of the target file to execute, in the run's `submissions`; `None` if there is a fault.
    pub post_image: Option<Digest>,
    /// Why the submission can't be executed.
    pub fault: Option<SubmissionFault>,
    /// Target methods that the file certainly lacks.
    pub without: Vec<MethodId>,
    /// Types of the project that the file declares again. Tests would meet these instead of the project's. Such a
    /// submission counts as tampered with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shadows: Vec<String>,
    /// Its other changed files, which were dropped.
    pub dropped: Vec<Dropped>,
    /// Whether its line ends were adapted to those of the file.
    pub line_ends_adapted: bool,
    /// Cost of making it, in US dollars.
    pub cost_usd: Option<f64>,
    /// Tokens used for it.
    pub tokens: Option<u64>,
}

/// Why a submission can't be executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SubmissionFault {
    /// The reason.
    pub reason: HarnessReason,
    /// A sentence for people.
    pub detail: String,
}

/// One launch of one method of a submission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExecutionRecord {
    /// [`SCORE_SCHEMA`].
    pub schema: u32,
    /// The model.
    pub model: String,
    /// The task.
    pub task_id: TaskId,
    /// Its repository.
    pub repository: RepositoryName,
    /// Its track.
    pub track: Track,
    /// Whose code it ran on.
    pub code: Side,
    /// The target method.
    pub method: MethodId,
    /// Counted from 1.
    pub repeat: u32,
    /// The outcome and its reason.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// One or a few lines for people. Control characters escaped.
    pub detail: String,
    /// Whether an error lies in code that the method reaches, for `compile_fail(target_file)`. `None` for other
    /// outcomes and in records of earlier programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributed: Option<bool>,
    /// What the code revision's tree lacks, at most [`MOST_MISSING`](crate::execution::run::record::MOST_MISSING)
    /// paths, where that may be the reason for the failure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Containers started for it, infrastructure retries included.
    pub attempts: u32,
    /// The execution key; `None` if nothing was executed.
    pub key: Option<Digest>,
    /// Whether the result came from the cache instead of an execution.
    pub cached: bool,
    /// Times and machine.
    pub measured: Measured,
}

/// The places of a task's focal methods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FocalRecord {
    /// [`SCORE_SCHEMA`].
    pub schema: u32,
    /// The task.
    pub task_id: TaskId,
    /// Its focal methods, in published order.
    pub focal: Vec<Focal>,
}

impl FocalRecord {
    /// Returns the lines of the focal methods that were found, each extent once.
    pub fn lines(&self) -> Vec<&FocalLines> {
        extents(&self.focal)
    }
}

/// Each test method's own focal methods, equal for the developers' tests and every submission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OwnFocalRecord {
    /// [`SCORE_SCHEMA`].
    pub schema: u32,
    /// The task.
    pub task_id: TaskId,
    /// Own focal methods per target method, as indexes into [`FocalRecord::lines`]. Empty where `lost`.
    pub methods: Vec<OwnFocal>,
    /// Why they could not be found, if `lost`.
    pub cause: Option<String>,
    /// Whether a fault of ours prevented finding them. The task is then not measured, and the next run tries again.
    pub lost: bool,
    /// Protections that the engine could not give, sorted, as in [`Measured::isolation_missing`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub isolation_missing: Vec<String>,
}

impl OwnFocalRecord {
    /// Returns the own focal methods of a test method.
    pub fn of(&self, method: &MethodId) -> Option<&OwnFocal> {
        self.methods.iter().find(|own| own.method == *method)
    }
}

/// Limits on the time of launches and compilations of all submissions for a task in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TimeClassRecord {
    /// [`SCORE_SCHEMA`].
    pub schema: u32,
    /// The task.
    pub task_id: TaskId,
    /// Seconds of processor time of a launch; `None` for the repository's own limit, if no class was recorded.
    pub launch_seconds: Option<u64>,
    /// Seconds of processor time of Maven when it compiles a submission; `None` as above.
    pub compile_seconds: Option<u64>,
}

/// Whether a generation task's starting file compiles on new code (protocol §3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StartRecord {
    /// [`SCORE_SCHEMA`].
    pub schema: u32,
    /// The task.
    pub task_id: TaskId,
    /// `None` without a starting file, or if `lost`.
    pub start_compiles: Option<bool>,
    /// The first error.
    pub detail: Option<String>,
    /// Whether a fault of ours prevented the answer. The next run tries again.
    #[serde(default)]
    pub lost: bool,
}

/// A passing method's coverage of its own focal methods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CoverageRecord {
    /// [`SCORE_SCHEMA`].
    pub schema: u32,
    /// The model.
    pub model: String,
    /// The task.
    pub task_id: TaskId,
    /// The target method.
    pub method: MethodId,
    /// For each found focal method of the task, in the order of [`FocalRecord::lines`]; empty if nothing was measured.
    pub focal: Vec<FocalCoverage>,
    /// For each own focal method, in the order of [`OwnFocal::own`]; empty if nothing was measured. `None` in records
    /// of earlier programs, which counted all of `focal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<Vec<FocalCoverage>>,
    /// Covered share of the executable lines of its own focal methods, percent.
    pub coverage: Option<f64>,
    /// Covered share of all lines of its own focal methods, percent.
    pub coverage_range: Option<f64>,
    /// Why nothing was measured.
    pub cause: Option<String>,
    /// Whether a fault of ours prevented the measurement. The next run measures again, and no mean of this value
    /// includes the task.
    #[serde(default)]
    pub lost: bool,
    /// Whether the result came from the cache instead of a measurement.
    pub cached: bool,
    /// Protections that the engine could not give, sorted, as in [`Measured::isolation_missing`]; empty in records of
    /// earlier programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub isolation_missing: Vec<String>,
}

/// The mutants of a task, equal for all its methods, gold and every submission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MutantsRecord {
    /// [`SCORE_SCHEMA`].
    pub schema: u32,
    /// The task.
    pub task_id: TaskId,
    /// A set for each file with lines to mutate, by path.
    pub sets: Vec<MutantSet>,
}

/// A passing method's results on the mutants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MutationRecord {
    /// [`SCORE_SCHEMA`].
    pub schema: u32,
    /// The model.
    pub model: String,
    /// The task.
    pub task_id: TaskId,
    /// The target method.
    pub method: MethodId,
    /// Numbers of mutants in its own focal methods, of killed and of strictly killed ones; `None` if not measured.
    pub kills: Option<Kills>,
    /// Number of the task's other kept mutants, which the method does not meet: `kept = count + elsewhere`.
    #[serde(default)]
    pub elsewhere: usize,
    /// In [0, 1]; `None` without mutants or if nothing was measured.
    pub mutation_score: Option<f64>,
    /// The method's outcome on each mutant that it met, in the order of the sets.
    pub mutants: Vec<MutantOutcome>,
    /// Its outcome on the text that mutants start from, if that lacks characters of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmutated: Option<Outcome>,
    /// Why nothing was measured.
    pub cause: Option<String>,
    /// Whether a fault of ours prevented the measurement. The next run measures again, and no mean of this value
    /// includes the task.
    #[serde(default)]
    pub lost: bool,
    /// Whether the result came from the cache instead of a measurement.
    pub cached: bool,
    /// Protections that the engine could not give, sorted, as in [`Measured::isolation_missing`]; empty in records of
    /// earlier programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub isolation_missing: Vec<String>,
}

/// A method's outcome on one mutant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MutantOutcome {
    /// SHA-256 of the mutant's text.
    pub id: Digest,
    /// The outcome and its reason.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// A passing method's results under controls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ControlsRecord {
    /// [`SCORE_SCHEMA`].
    pub schema: u32,
    /// The model.
    pub model: String,
    /// The task.
    pub task_id: TaskId,
    /// The target method.
    pub method: MethodId,
    /// Its result under each control; empty if nothing was launched.
    pub controls: Vec<Controlled>,
    /// Its results with an emptied body, if focal methods are reached without its body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emptied: Option<EmptiedRecord>,
    /// What the classes of its test file mention.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Why there are no results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Whether a fault of ours prevented the controls. The next run launches them again.
    #[serde(default)]
    pub lost: bool,
    /// Whether the result came from the cache instead of a launch.
    pub cached: bool,
    /// Protections that the engine could not give, sorted, as in [`Measured::isolation_missing`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub isolation_missing: Vec<String>,
}

/// A test method's results with an emptied body.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EmptiedRecord {
    /// The body that stands in place of the method's own.
    #[serde(default)]
    pub form: BodyForm,
    /// Its outcome on new code.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Its coverage of its own focal methods in percent; `None` if it does not pass or nothing was measured.
    pub coverage: Option<f64>,
    /// Its outcomes on mutants that the method kills, until one survives. `None` if no mutant was run, for example
    /// because it covers less.
    pub mutants: Option<Vec<MutantOutcome>>,
}

/// The subject of a record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScoreName {
    kind: u8,
    model: String,
    task_id: TaskId,
    code: Option<Side>,
    method: Option<MethodId>,
    repeat: u32,
}

impl ScoreRecord {
    /// Returns the record's task, and its model if it is of one.
    pub fn of(&self) -> (TaskId, Option<String>) {
        let ScoreName { task_id, model, .. } = self.name();
        (task_id, Some(model).filter(|model| !model.is_empty()))
    }
}

impl RunRecord for ScoreRecord {
    const SCHEMA: u32 = SCORE_SCHEMA;

    type Name = ScoreName;

    fn schema(&self) -> u32 {
        match self {
            Self::Submission(record) => record.schema,
            Self::Execution(record) => record.schema,
            Self::Focal(record) => record.schema,
            Self::OwnFocal(record) => record.schema,
            Self::Start(record) => record.schema,
            Self::Coverage(record) => record.schema,
            Self::Mutants(record) => record.schema,
            Self::Mutation(record) => record.schema,
            Self::Controls(record) => record.schema,
            Self::TimeClass(record) => record.schema,
        }
    }

    fn name(&self) -> ScoreName {
        let (kind, model, task_id) = match self {
            Self::Submission(record) => (0, record.model.as_str(), &record.task_id),
            Self::Focal(record) => (1, "", &record.task_id),
            Self::Start(record) => (6, "", &record.task_id),
            Self::OwnFocal(record) => (7, "", &record.task_id),
            Self::TimeClass(record) => (8, "", &record.task_id),
            Self::Execution(record) => (2, record.model.as_str(), &record.task_id),
            Self::Coverage(record) => (3, record.model.as_str(), &record.task_id),
            Self::Mutants(record) => (4, "", &record.task_id),
            Self::Mutation(record) => (5, record.model.as_str(), &record.task_id),
            Self::Controls(record) => (9, record.model.as_str(), &record.task_id),
        };
        let (code, method, repeat) = match self {
            Self::Submission(_)
            | Self::Focal(_)
            | Self::OwnFocal(_)
            | Self::Start(_)
            | Self::Mutants(_)
            | Self::TimeClass(_) => (None, None, 0),
            Self::Execution(record) => (Some(record.code), Some(record.method.clone()), record.repeat),
            Self::Coverage(record) => (None, Some(record.method.clone()), 0),
            Self::Mutation(record) => (None, Some(record.method.clone()), 0),
            Self::Controls(record) => (None, Some(record.method.clone()), 0),
        };
        ScoreName { kind, model: model.to_owned(), task_id: task_id.clone(), code, method, repeat }
    }
}
