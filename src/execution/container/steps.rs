//! The results of a container's steps.

use crate::engine::session::{ContainerRun, StepOutput};
use crate::engine::spec::{CommandEnd, StepResult};

/// Returns how a step's command ended; `None` where it did not run.
pub fn command_end(run: &ContainerRun, step: usize) -> Option<&CommandEnd> {
    match run.step(step)?.result()? {
        StepResult::Ended(end) => Some(end),
        _ => None,
    }
}

/// Returns a step's output, if the step was done.
pub fn done(run: &ContainerRun, step: usize) -> Option<&StepOutput> {
    run.step(step).filter(|output| output.result() == Some(&StepResult::Done))
}
