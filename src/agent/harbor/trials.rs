//! What Harbor's trials leave: `result.json` (or `config.json` while a trial runs) and the collected target file.
//!
//! Source of names and layout: Harbor 0.25, `models/trial/{result,paths,error_policy}.py`. An agent decides some of the content, so
//! files are bounded and no link is followed.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use fs_err as fs;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::harbor_name;
use crate::agent::AgentError;
use crate::agent::collection::read_target;
use crate::error::{ExitStatus, Failure};
use crate::execution::container::places::PROJECT;
use crate::task::{Task, TaskId};

/// The largest `result.json`, in bytes; it may hold tokens of rollouts.
const MOST_RESULT_BYTES: u64 = 256 << 20;
/// The most entries of a job's directory.
const MOST_ENTRIES: usize = 1_000_000;

/// Exceptions that an agent can end with by itself, or that only concern its verification.
const OWN: [&str; 13] = [
    "AgentTimeoutError",
    "NonZeroAgentExitCodeError",
    "ContextWindowExceededError",
    "OutputTokenExceededError",
    "ContextLengthExceededError",
    "OutputLengthExceededError",
    "AgentSafetyRefusalError",
    "ContentPolicyViolationError",
    "VerifierTimeoutError",
    "RewardFileNotFoundError",
    "RewardFileEmptyError",
    "VerifierOutputParseError",
    "ScoringError",
];

/// Exceptions that Harbor lays to the machine, the model's provider or itself, or to a user who cancelled.
const FAULTS: [&str; 43] = [
    "EnvironmentStartTimeoutError",
    "SandboxBuildFailedError",
    "AgentSetupTimeoutError",
    "HealthcheckError",
    "SandboxLikelyOutOfMemoryError",
    "MemoryLimitExceededError",
    "SSHAccessError",
    "GKEExecStreamClosedError",
    "GKEPodNotFoundError",
    "RuntimeRequestError",
    "ApiError",
    "ApiRateLimitError",
    "ApiInternalServerError",
    "ApiOverloadedError",
    "ApiConnectionClosedError",
    "ApiResponseStalledError",
    "UnknownApiError",
    "NetworkConnectionError",
    "ApiConnectionError",
    "ApiUsageLimitError",
    "RateLimitError",
    "InternalServerError",
    "ServiceUnavailableError",
    "APIConnectionError",
    "APIError",
    "Timeout",
    "BadRequestError",
    "UnprocessableEntityError",
    "UnsupportedParamsError",
    "APIResponseValidationError",
    "BudgetExceededError",
    "AgentAuthenticationError",
    "ModelNotFoundError",
    "ApiProviderResourceNotFoundError",
    "AuthenticationError",
    "PermissionDeniedError",
    "NotFoundError",
    "ServiceOperationsUnsupportedError",
    "VercelScopeError",
    "DspyImportError",
    "MissingExtraError",
    "RegradeError",
    "CancelledError",
];

/// Why trials can't be read.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The directory is neither a trial nor a job with trials.
    #[error("`{0}` is neither a job directory of Harbor's nor one of its trials")]
    NoJob(PathBuf),
    /// A file is not what Harbor writes.
    #[error("`{path}` can't be read: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A trial is of a task that is not imported.
    #[error("the trial `{trial}` is of `{task}`, and no imported task has that name")]
    UnknownTask {
        /// The trial's directory.
        trial: PathBuf,
        /// The task's name in Harbor.
        task: String,
    },
    /// A file could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Failure for TrialError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::NoJob(_) => ExitStatus::Usage,
            Self::Malformed { .. } | Self::UnknownTask { .. } => ExitStatus::BadInput,
            Self::Io(_) => ExitStatus::Infrastructure,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NoJob(_) => "name the directory that Harbor wrote, `jobs/NAME`, or one trial in it",
            Self::Malformed { .. } => "run this trial again, or remove its directory from the job",
            Self::UnknownTask { .. } => {
                "import the data that the tasks were exported from: `testevo-sandbox import DATA`"
            }
            Self::Io(_) => "check the permissions of the job's files",
        };
        Some(hint.to_owned())
    }
}

/// A trial, as its `result.json` tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Its directory.
    pub directory: PathBuf,
    /// The names that its task may have: the task directory's, and the one in `task.toml`.
    pub tasks: Vec<String>,
    /// The agent, and its model where Harbor knows it: `AGENT` or `AGENT/PROVIDER/MODEL`.
    pub model: String,
    /// The type of the exception that ended it, if one did.
    pub exception: Option<String>,
    /// Cost of the agent, in US dollars.
    pub cost_usd: Option<f64>,
    /// Input and output tokens of the agent.
    pub tokens: Option<u64>,
    /// Whether its agent has begun to work; a running trial's verifier only asks when it has.
    pub began: bool,
    /// Whether the trial has ended.
    pub ended: bool,
}

/// A job's trials.
#[derive(Debug, Default)]
pub struct Job {
    /// The trials, sorted by name.
    pub trials: Vec<Trial>,
    /// Why others can't be read.
    pub unreadable: Vec<TrialError>,
}

#[derive(Deserialize)]
struct ResultFile {
    trial_name: Option<String>,
    #[serde(default)]
    task_name: String,
    #[serde(default)]
    task_id: TaskPath,
    #[serde(default)]
    agent_info: AgentInfo,
    agent_result: Option<AgentResult>,
    agent_execution: Option<Timing>,
    exception_info: Option<ExceptionInfo>,
}

#[derive(Deserialize)]
struct Timing {
    started_at: Option<String>,
}

#[derive(Default, Deserialize)]
struct TaskPath {
    path: Option<String>,
}

#[derive(Default, Deserialize)]
struct AgentInfo {
    #[serde(default)]
    name: String,
    model_info: Option<ModelInfo>,
}

#[derive(Deserialize)]
struct ModelInfo {
    name: String,
    provider: Option<String>,
}

/// Harbor takes these from what the agent wrote, so that they may be anything.
#[derive(Default, Deserialize)]
#[serde(default)]
struct AgentResult {
    n_input_tokens: Value,
    n_output_tokens: Value,
    cost_usd: Value,
}

#[derive(Deserialize)]
struct ExceptionInfo {
    exception_type: String,
}

#[derive(Deserialize)]
struct ConfigFile {
    trial_name: Option<String>,
    #[serde(default)]
    task: TaskPath,
}

/// Returns the trials of a job, or the one trial that the directory is.
///
/// # Errors
/// [`TrialError`].
pub fn find(directory: &Path) -> Result<Job, TrialError> {
    if let Some(trial) = read(directory)? {
        return Ok(Job { trials: vec![trial], unreadable: Vec::new() });
    }
    let no_job = || TrialError::NoJob(directory.to_owned());
    let entries = match fs::read_dir(directory) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Err(no_job());
        }
        entries => entries?,
    };
    let mut job = Job::default();
    for entry in entries.take(MOST_ENTRIES) {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            match read(&entry.path()) {
                Ok(trial) => job.trials.extend(trial),
                Err(error) => job.unreadable.push(error),
            }
        }
    }
    if job.trials.is_empty() && job.unreadable.is_empty() {
        return Err(no_job());
    }
    job.trials.sort_by(|one, other| one.directory.cmp(&other.directory));
    Ok(job)
}

/// Reads the trial that a directory is, if it is one.
fn read(directory: &Path) -> Result<Option<Trial>, TrialError> {
    let trial = |tasks: [Option<String>; 2], model| Trial {
        directory: directory.to_owned(),
        tasks: tasks.into_iter().flatten().collect(),
        model,
        exception: None,
        cost_usd: None,
        tokens: None,
        began: true,
        ended: false,
    };
    if let Some(result) = json::<ResultFile>(&directory.join("result.json"))?
        && result.trial_name.is_some()
    {
        let agent = result.agent_result.unwrap_or_default();
        let tokens = match (agent.n_input_tokens.as_u64(), agent.n_output_tokens.as_u64()) {
            (None, None) => None,
            (input, output) => Some(input.unwrap_or_default().saturating_add(output.unwrap_or_default())),
        };
        let cost_usd = agent.cost_usd.as_f64().filter(|cost| cost.is_finite() && *cost >= 0.0);
        return Ok(Some(Trial {
            exception: result.exception_info.map(|exception| exception.exception_type),
            cost_usd,
            tokens,
            began: result.agent_execution.is_some_and(|timing| timing.started_at.is_some()),
            ended: true,
            ..trial([result.task_id.path, Some(result.task_name)], model(&result.agent_info))
        }));
    }
    let config = json::<ConfigFile>(&directory.join("config.json"))?.filter(|config| config.trial_name.is_some());
    Ok(config.map(|config| trial([config.task.path, None], "harbor".to_owned())))
}

fn model(agent: &AgentInfo) -> String {
    let mut name = if agent.name.is_empty() { "harbor".to_owned() } else { agent.name.clone() };
    if let Some(model) = &agent.model_info {
        for part in [model.provider.as_ref(), Some(&model.name)].into_iter().flatten() {
            name.push('/');
            name.push_str(part);
        }
    }
    name
}

/// Reads a file of JSON, if there is one.
fn json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, TrialError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let malformed = |reason: String| TrialError::Malformed { path: path.to_owned(), reason };
    let file = match openat(CWD, path, flags, Mode::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(Errno::LOOP) => return Err(malformed("it is a link".to_owned())),
        opened => std::fs::File::from(opened.map_err(io::Error::from)?),
    };
    if !file.metadata()?.is_file() {
        return Err(malformed("it is no regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(MOST_RESULT_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_RESULT_BYTES {
        return Err(malformed(format!("it has more than {MOST_RESULT_BYTES} bytes")));
    }
    serde_json::from_slice(&bytes).map(Some).map_err(|error| malformed(error.to_string()))
}

impl Trial {
    /// Returns the trial's task among the imported ones.
    ///
    /// # Errors
    /// [`TrialError::UnknownTask`].
    pub fn task<'a>(&self, tasks: &'a [Task]) -> Result<&'a Task, TrialError> {
        let names = || self.tasks.iter().map(|name| name.trim_end_matches('/').rsplit('/').next().unwrap_or_default());
        let by = |has: &dyn Fn(&TaskId, &str) -> bool| {
            names().find_map(|name| tasks.iter().find(|task| has(&task.id, name)))
        };
        let found = by(&|id, name| id.as_str() == name).or_else(|| by(&|id, name| harbor_name(id) == name));
        found.ok_or_else(|| TrialError::UnknownTask {
            trial: self.directory.clone(),
            task: self.tasks.last().map(|name| crate::output::escape(name).into_owned()).unwrap_or_default(),
        })
    }

    /// Tells whether the trial says nothing about its agent: it never began, its machine, the model's provider or Harbor failed, or
    /// nothing was collected.
    pub fn is_lost(&self) -> bool {
        let is_fault = |exception: &String| FAULTS.contains(&exception.as_str());
        let is_collected = self.directory.join("artifacts/manifest.json").is_file();
        self.exception.as_ref().is_some_and(is_fault) || !self.began || !is_collected
    }

    /// Tells whether a missing target file says nothing about the agent: something unknown ended the trial, perhaps its container.
    pub fn is_lost_without_target(&self) -> bool {
        self.exception.as_ref().is_some_and(|exception| !OWN.contains(&exception.as_str()))
    }

    /// Returns the target file's text, as Harbor collected it; `None` if there is none.
    ///
    /// # Errors
    /// [`AgentError::Refused`], [`AgentError::Io`].
    pub fn target(&self, task: &Task) -> Result<Option<String>, AgentError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let trial = openat(CWD, &self.directory, flags | OFlags::PATH, Mode::empty()).map_err(io::Error::from)?;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let path = format!("artifacts{PROJECT}");
        let refused = |reason: &str| AgentError::Refused {
            task: task.id.clone(),
            path: task.test_file.clone(),
            reason: reason.to_owned(),
        };
        // To read a file below a directory, no right to list the directory is needed.
        match openat2(&trial, path.as_str(), flags | OFlags::PATH, Mode::empty(), resolve) {
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(Errno::LOOP | Errno::XDEV) => Err(refused("a part of its path is a link")),
            Err(Errno::ACCESS) => Err(refused("a directory on its path may not be entered")),
            opened => read_target(&task.into(), &opened.map_err(io::Error::from)?),
        }
    }
}
