//! What keeps an execution from its answer: faults of our own, and what one of its paths can't do.

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
    /// Says that sources can't be had.
    pub(super) fn source(cause: &str) -> Self {
        Self { reason: InfraReason::Source, detail: shortened(cause) }
    }
}

/// Who may have the answer that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The next try: a fault of ours kept it.
    TryAgain,
    /// Maven: the direct path can't do what the build does.
    AskMaven,
    /// Nobody: there is none.
    None,
}

/// Why there is no answer, and who may have it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct NoAnswer {
    /// In words, a line or two.
    pub cause: String,
    /// Who may have it.
    pub remedy: Remedy,
}

impl NoAnswer {
    /// Says what fault of ours keeps it.
    pub fn fault(cause: impl AsRef<str>) -> Self {
        Self::of(cause, Remedy::TryAgain)
    }

    /// Says what the direct path can't do.
    pub fn unfit(cause: impl AsRef<str>) -> Self {
        Self::of(cause, Remedy::AskMaven)
    }

    /// Says why there never is one.
    pub fn never(cause: impl AsRef<str>) -> Self {
        Self::of(cause, Remedy::None)
    }

    /// Says why there is none, and who may have it.
    pub fn of(cause: impl AsRef<str>, remedy: Remedy) -> Self {
        Self { cause: shortened(cause.as_ref()), remedy }
    }

    /// Tells whether the next try may have it.
    pub fn may_pass(&self) -> bool {
        self.remedy == Remedy::TryAgain
    }
}

/// What ends an execution without an answer.
#[derive(Debug, thiserror::Error)]
pub enum ExecutionError {
    /// There is none, for a reason that records name.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// Files could not be read or written: the command ends.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<Fault> for ExecutionError {
    fn from(fault: Fault) -> Self {
        Self::NoAnswer(NoAnswer::fault(fault.detail))
    }
}

/// Returns the answer or the reason for none, for whoever records or keeps either.
///
/// # Errors
/// The others of [`ExecutionError`].
pub fn answered<T>(result: Result<T, ExecutionError>) -> io::Result<Result<T, NoAnswer>> {
    match result {
        Ok(answer) => Ok(Ok(answer)),
        Err(ExecutionError::NoAnswer(reason)) => Ok(Err(reason)),
        Err(ExecutionError::Io(error)) => Err(error),
    }
}

/// Names why a container did not do its steps: the first that failed, or what ended it.
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
        EngineError::ImageMissing { .. } | EngineError::ImageNotLoaded { .. } => InfraReason::Image,
        EngineError::Spool(_) => InfraReason::Disk,
        _ => InfraReason::Engine,
    };
    Fault { reason, detail: shortened(&error.to_string()) }
}
