//! Faults of our own: what kept a container from doing what it was asked for.

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
