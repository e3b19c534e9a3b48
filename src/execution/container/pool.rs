//! Launch containers that are started ahead of their launch.
//!
//! Such a container has its image, its limits and our own jars, and its init waits for the program. The archives follow the
//! program, so no path in the container leads to them: their times would tell a test which tree it runs on. A container
//! serves one launch and is then removed, like every other container. The pool
//! saves a launch the wait for the engine, because containers start while an earlier launch still runs. A container
//! that waited too long is not used. Its engine counts the time limit from the container's start, and other processes
//! may remove the container after that limit.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::engine::session::{self, ContainerRun};
use crate::engine::spec::{ContainerSpec, PROGRAM_SCHEMA, Program};
use crate::engine::{Container, Engine, EngineError};

/// How long a container may wait for its program. Engines allow far more than this beyond their limits.
const MOST_WAITING: Duration = Duration::from_secs(600);

/// A container that is starting or waiting.
type Starting = JoinHandle<Result<Waiting, EngineError>>;

/// What follows when a container is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Another container is started, because more launches like this one come soon.
    StartNext,
    /// Nothing.
    Nothing,
}

/// The waiting containers, of all images together.
pub struct ContainerPool {
    engine: Arc<dyn Engine>,
    most: usize,
    most_waiting: Duration,
    waiting: Mutex<Vec<(String, Starting)>>,
}

/// A container that waits. Dropping it ends it.
struct Waiting {
    container: Container,
    since: Instant,
}

impl Drop for ContainerPool {
    fn drop(&mut self) {
        for (_, starting) in self.waiting.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // The engine removes a container that is still starting; dropping the value removes a started one.
            starting.abort();
        }
    }
}

impl ContainerPool {
    /// Returns a pool in which at most `most` containers wait. With 0, each container is started when a launch needs
    /// it.
    pub fn new(engine: Arc<dyn Engine>, most: usize) -> Self {
        Self { engine, most, most_waiting: MOST_WAITING, waiting: Mutex::default() }
    }

    /// Runs the program of `spec` in a waiting container, or in a new one if none waits. `archives` are files of the host
    /// for its steps that unpack input.
    ///
    /// # Errors
    /// As [`session::run`].
    pub async fn run(
        &self,
        spec: &ContainerSpec,
        archives: &[&Path],
        spool: &Path,
        then: Then,
    ) -> Result<ContainerRun, EngineError> {
        let requested = Instant::now();
        let kind = kind(spec);
        let found = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let found = waiting.iter().position(|(known, _)| *known == kind);
            found.map(|at| waiting.remove(at).1)
        };
        let waited = match found {
            Some(starting) => {
                let waiting = starting.await.ok().and_then(Result::ok);
                waiting.filter(|waiting| waiting.since.elapsed() < self.most_waiting)
            }
            None => None,
        };
        let Waiting { container, .. } = match waited {
            Some(waiting) => waiting,
            // No container waited, or it failed to start. If the failure is permanent, this start reports it.
            None => start(self.engine.as_ref(), spec).await?,
        };
        if then == Then::StartNext {
            self.start_next(kind, spec);
        }
        session::go_through(container, spec, archives, spool, requested).await
    }

    /// Starts a container like this one ahead, unless one waits already.
    pub fn expect(&self, spec: &ContainerSpec) {
        let kind = kind(spec);
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let is_there = waiting.iter().any(|(known, _)| *known == kind);
        drop(waiting);
        if !is_there {
            self.start_next(kind, spec);
        }
    }

    /// Waits until all containers that are being started have started, so that no measured time includes their start.
    pub async fn settled(&self) {
        let starting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        for (kind, one) in starting {
            // A failed start does no harm: the launch starts its own container, and reports the cause.
            if let Ok(Ok(waiting)) = one.await {
                let there = tokio::spawn(std::future::ready(Ok(waiting)));
                self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push((kind, there));
            }
        }
    }

    /// Starts a container like this one in the background, and makes room for it.
    fn start_next(&self, kind: String, spec: &ContainerSpec) {
        if self.most == 0 {
            return;
        }
        let engine = Arc::clone(&self.engine);
        let spec = ContainerSpec {
            program: Program { schema: PROGRAM_SCHEMA, door_port: None, steps: Vec::new() },
            ..spec.clone()
        };
        let starting = tokio::spawn(async move { start(engine.as_ref(), &spec).await });
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push((kind, starting));
        let over = waiting.len().saturating_sub(self.most);
        for (_, oldest) in waiting.drain(..over) {
            oldest.abort();
        }
    }
}

/// Returns what two containers must have in common to be used for one another.
fn kind(spec: &ContainerSpec) -> String {
    let (limits, scratch, mounts) = (&spec.limits, &spec.scratch, &spec.mounts);
    format!("{} {} {limits:?} {scratch:?} {mounts:?}", spec.purpose, spec.image)
}

async fn start(engine: &dyn Engine, spec: &ContainerSpec) -> Result<Waiting, EngineError> {
    // A limit of time counts from before the container is there.
    let since = Instant::now();
    Ok(Waiting { container: engine.start(spec).await?, since })
}

#[cfg(test)]
mod tests;
