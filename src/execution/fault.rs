//! Reasons why an execution has no answer: faults of our own, and limits of the direct path.

use std::io;

use crate::engine::EngineError;
use crate::engine::session::{ContainerRun, RunEnd};
use crate::engine::spec::StepResult;
use crate::outcome::InfraReason;
use crate::outcome::launch::shortened;

/// A fault that no submission is to blame for.
pub struct Fault {
    /// What kind of fault.
    pub reason: InfraReason,
    /// What happened, for people.
    pub detail: String,
}

impl Fault {
    /// Reports that sources are not available.
    pub(super) fn source(cause: &str) -> Self {
        Self { reason: InfraReason::Source, detail: shortened(cause) }
    }
}

/// Who may still give the missing answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The next try: a fault of ours prevented the answer.
    TryAgain,
    /// Maven: the direct path can't do what the build does.
    AskMaven,
    /// Nobody: there is no answer.
    None,
}

/// Why an execution has no answer, and who may still give it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct NoAnswer {
    /// The cause in words, a line or two.
    pub cause: String,
    /// Who may still give the answer.
    pub remedy: Remedy,
}

impl NoAnswer {
    /// Returns a missing answer that a fault of ours caused.
    pub fn fault(cause: impl AsRef<str>) -> Self {
        Self::of(cause, Remedy::TryAgain)
    }

    /// Returns a missing answer that the direct path can't give.
    pub fn unfit(cause: impl AsRef<str>) -> Self {
        Self::of(cause, Remedy::AskMaven)
    }

    /// Returns a missing answer that nobody can give.
    pub fn never(cause: impl AsRef<str>) -> Self {
        Self::of(cause, Remedy::None)
    }

    /// Returns a missing answer with its cause and remedy.
    pub fn of(cause: impl AsRef<str>, remedy: Remedy) -> Self {
        Self { cause: shortened(cause.as_ref()), remedy }
    }

    /// Tells whether the next try may give the answer.
    pub fn may_pass(&self) -> bool {
        self.remedy == Remedy::TryAgain
    }
}

/// Why an execution ends without an answer.
#[derive(Debug, thiserror::Error)]
pub enum ExecutionError {
    /// The execution has no answer, for a reason that records name.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// Files could not be read or written, and the command ends.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<Fault> for ExecutionError {
    fn from(fault: Fault) -> Self {
        Self::NoAnswer(NoAnswer::fault(fault.detail))
    }
}

/// Turns [`ExecutionError::NoAnswer`] into an inner error, so that the caller can record or keep it.
///
/// # Errors
/// [`ExecutionError::Io`], as its I/O error.
pub fn answered<T>(result: Result<T, ExecutionError>) -> io::Result<Result<T, NoAnswer>> {
    match result {
        Ok(answer) => Ok(Ok(answer)),
        Err(ExecutionError::NoAnswer(reason)) => Ok(Err(reason)),
        Err(ExecutionError::Io(error)) => Err(error),
    }
}

/// Names why a container did not do all its steps: the first step that failed, or how the container ended.
pub fn not_done(run: &ContainerRun, what: &str) -> Fault {
    const NO_SPACE: i32 = 28;
    let failed = run.steps.iter().find_map(|output| match output.result()? {
        StepResult::Failed { error, errno } => Some((output.index, error.as_str(), *errno)),
        StepResult::Refused { reason } => Some((output.index, reason.as_str(), None)),
        _ => None,
    });
    let (reason, detail) = match (failed, &run.end) {
        (Some((step, error, Some(NO_SPACE))), _) => (InfraReason::Disk, format!("step {step}: {error}")),
        (Some((step, error, _)), _) => (InfraReason::Engine, format!("step {step}: {error}")),
        (None, RunEnd::OutOfMemory) => (InfraReason::Killed, "the memory limit ended the container's init".to_owned()),
        (None, RunEnd::Deadline) => (InfraReason::Killed, "the container's wall limit was reached".to_owned()),
        (None, RunEnd::Killed { signal }) => (InfraReason::Killed, format!("signal {signal} ended the container")),
        (None, end) => (InfraReason::Engine, format!("the container ended too early: {end:?}")),
    };
    Fault { reason, detail: shortened(&format!("{what}: {detail}")) }
}

/// Names why a container could not be run.
pub fn engine_fault(error: &EngineError) -> Fault {
    let reason = match error {
        EngineError::ImageMissing { .. }
        | EngineError::ImageNotLoaded { .. }
        | EngineError::ImageDamaged { .. }
        | EngineError::LayerDamaged { .. } => InfraReason::Image,
        EngineError::Spool(_) | EngineError::Blob(_) => InfraReason::Disk,
        _ => InfraReason::Engine,
    };
    Fault { reason, detail: shortened(&error.to_string()) }
}
