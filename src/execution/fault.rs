//! Faults of our own, and reading what a container came to.

use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::engine::EngineError;
use crate::engine::session::{ContainerRun, RunEnd, StepOutput};
use crate::engine::spec::{CommandEnd, StepResult};
use crate::outcome::InfraReason;
use crate::outcome::launch::shortened;

/// Attempts at a container whose failure is our own fault.
pub(super) const ATTEMPTS: u32 = 3;

/// Attempts at anything: those, and one that runs alone after a timeout.
pub(super) const MOST_ATTEMPTS: u32 = ATTEMPTS + 1;

/// A fault that no submission is to blame for.
pub(super) struct Fault {
    pub(super) reason: InfraReason,
    pub(super) detail: String,
}

impl Fault {
    /// A fault that a build shows comes again; one that only the machine can have may not. For what is prepared: a cell tries
    /// every fault again.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self.reason, InfraReason::Engine | InfraReason::Killed | InfraReason::Disk)
    }

    /// Says that sources can't be had.
    pub(super) fn source(cause: &str) -> Self {
        Self { reason: InfraReason::Source, detail: shortened(cause) }
    }
}

/// A directory for what one container's output spools; it goes with the value.
pub(super) struct Spool(PathBuf);

impl Spool {
    pub(super) fn create(temporary: &Path) -> std::io::Result<Self> {
        let path = temporary.join(format!("spool-{}", unique()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        // What can't be removed now goes with this process's temporary directory.
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::debug!("{error}");
        }
    }
}

/// Tells whether the memory limit ended something while the command ran; where the container can't tell, the engine's
/// word for the whole container counts for a command that was killed.
pub(super) fn memory_limit_met(run: &ContainerRun, end: &CommandEnd) -> bool {
    match end.memory_limit_kills {
        Some(kills) => kills > 0,
        None => run.memory_limit_met && end.exit_code != Some(0),
    }
}

pub(super) fn command_end(run: &ContainerRun, step: usize) -> Option<&CommandEnd> {
    match run.step(step)?.result()? {
        StepResult::Ended(end) => Some(end),
        _ => None,
    }
}

pub(super) fn done(run: &ContainerRun, step: usize) -> Option<&StepOutput> {
    run.step(step).filter(|output| output.result() == Some(&StepResult::Done))
}

/// Names why a container did not do its steps: the first that failed, or what ended it.
pub(super) fn not_done(run: &ContainerRun, what: &str) -> Fault {
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

pub(super) fn of_engine(error: &EngineError) -> Fault {
    let reason = match error {
        EngineError::ImageMissing { .. } | EngineError::ImageNotLoaded { .. } => InfraReason::Image,
        EngineError::Spool(_) => InfraReason::Disk,
        _ => InfraReason::Engine,
    };
    Fault { reason, detail: shortened(&error.to_string()) }
}

pub(super) fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

pub(super) fn unique() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

pub(super) fn milliseconds(since: std::time::Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
