//! A running container: its output, its end, its removal.

use std::sync::Arc;

use async_trait::async_trait;
use bollard::container::LogOutput;
use bollard::errors::Error as DaemonError;
use bollard::query_parameters::{InspectContainerOptions, KillContainerOptionsBuilder, WaitContainerOptionsBuilder};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _};

use super::super::{ContainerControl, ContainerExit, EngineError, MemoryKill, OutputPiece};
use super::{Shared, daemon};

/// The handle on a container. Dropping it removes the container.
pub(super) struct Control {
    shared: Arc<Shared>,
    id: String,
    purpose: String,
    removed: bool,
}

impl Control {
    pub(super) fn new(shared: Arc<Shared>, id: String, purpose: String) -> Self {
        Self { shared, id, purpose, removed: false }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    fn vanished_or(&self, operation: &'static str, error: DaemonError) -> EngineError {
        match error {
            DaemonError::DockerResponseServerError { status_code: 404, .. } => {
                EngineError::Vanished { purpose: self.purpose.clone() }
            }
            error => daemon(operation, error),
        }
    }
}

#[async_trait]
impl ContainerControl for Control {
    async fn wait(&mut self) -> Result<ContainerExit, EngineError> {
        // Not `next-exit`, which would have to be requested before the start. Only this value removes the container, so
        // a request after the container's end gets its answer too.
        let options = WaitContainerOptionsBuilder::default().condition("not-running").build();
        let mut answers = self.shared.docker.wait_container(&self.id, Some(options));
        match answers.next().await {
            // A status above 0 arrives as an error of its own.
            Some(Ok(_) | Err(DaemonError::DockerContainerWaitError { .. })) => {}
            Some(Err(error)) => return Err(self.vanished_or("wait for a container", error)),
            None => {
                let reason = "the engine stopped waiting for its end".into();
                return Err(EngineError::AttachLost { purpose: self.purpose.clone(), reason });
            }
        }
        let inspected = self.shared.docker.inspect_container(&self.id, None::<InspectContainerOptions>).await;
        let inspected = inspected.map_err(|error| self.vanished_or("look at a container", error))?;
        let state = inspected.state.unwrap_or_default();
        self.removed = true;
        self.shared.remove_later(self.id.clone());
        let exit_code = state.exit_code.ok_or_else(|| EngineError::AttachLost {
            purpose: self.purpose.clone(),
            reason: "the engine does not say how it ended".into(),
        })?;
        let memory_kill = state.oom_killed.unwrap_or(false).then_some(MemoryKill::Limit);
        Ok(ContainerExit { exit_code, memory_kill })
    }

    async fn kill(&mut self) -> Result<(), EngineError> {
        let options = KillContainerOptionsBuilder::default().signal("KILL").build();
        match self.shared.docker.kill_container(&self.id, Some(options)).await {
            Ok(()) => Ok(()),
            // The container has ended or was removed.
            Err(DaemonError::DockerResponseServerError { status_code: 404 | 409, .. }) => Ok(()),
            Err(error) => Err(daemon("end a container", error)),
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if !self.removed {
            self.shared.remove_later(std::mem::take(&mut self.id));
        }
    }
}

/// Splits the daemon's output into pieces of the two streams.
pub(super) fn output(
    attached: impl Stream<Item = Result<LogOutput, DaemonError>> + Send + 'static,
    purpose: String,
) -> BoxStream<'static, Result<OutputPiece, EngineError>> {
    attached
        .map(move |piece| match piece {
            Ok(LogOutput::StdOut { message }) => Ok(OutputPiece::Stdout(message)),
            Ok(LogOutput::StdErr { message }) => Ok(OutputPiece::Stderr(message)),
            Ok(LogOutput::StdIn { .. } | LogOutput::Console { .. }) => {
                Err(EngineError::AttachLost { purpose: purpose.clone(), reason: "the stream is garbled".into() })
            }
            Err(error) => Err(EngineError::AttachLost { purpose: purpose.clone(), reason: error.to_string() }),
        })
        .boxed()
}
