//! An engine for tests: a script supplies everything that its containers' inits say.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use tokio::io::AsyncWrite;

use super::frame::{Frame, MAGIC, MAX_OUTPUT, encode_end, encode_output, encode_step_end};
use super::spec::{CommandEnd, ContainerSpec, ProgramEnd, StepReport, StepResult, Stream};
use super::{
    Container, ContainerControl, ContainerExit, Engine, EngineDescription, EngineError, EngineImage, ImageRemoval,
    OutputPiece,
};
use crate::digest::Digest;

/// A container's output, and whether the container ends after it.
pub(crate) struct Said {
    pub(crate) frames: Vec<Frame>,
    pub(crate) ends: bool,
}

type Script = Box<dyn Fn(usize, &ContainerSpec) -> Said + Send + Sync>;

/// Containers that follow a script, which gets the number of earlier ones.
pub(crate) struct Scripted {
    script: Script,
    purposes: Mutex<Vec<String>>,
    heard: Heard,
}

/// The input of all containers, in order.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<u8>>>);

impl AsyncWrite for Heard {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Scripted {
    pub(crate) fn new(script: impl Fn(usize, &ContainerSpec) -> Said + Send + Sync + 'static) -> Self {
        Self { script: Box::new(script), purposes: Mutex::default(), heard: Heard::default() }
    }

    /// Returns the input of all containers, in order.
    pub(crate) fn heard(&self) -> Vec<u8> {
        self.heard.0.lock().unwrap().clone()
    }

    /// Returns the purposes of started containers.
    pub(crate) fn started(&self) -> Vec<String> {
        self.purposes.lock().unwrap().clone()
    }
}

/// Returns the frames of bytes on a step's stream.
pub(crate) fn output(step: u32, stream: Stream, bytes: &[u8]) -> Vec<Frame> {
    bytes.chunks(MAX_OUTPUT).map(|piece| Frame::Output { step, stream, bytes: piece.to_vec() }).collect()
}

/// Returns the frame of a step with this result.
pub(crate) fn step_end(index: usize, result: StepResult) -> Frame {
    Frame::StepEnd(StepReport { index, result, wall_ms: 1 })
}

/// Returns the frame of a completed program.
pub(crate) fn completed() -> Frame {
    Frame::End(ProgramEnd::Completed)
}

/// A command that exited.
pub(crate) fn exited(exit_code: i32) -> StepResult {
    StepResult::Ended(CommandEnd {
        exit_code: Some(exit_code),
        signal: None,
        limit: None,
        cpu_ms: 3,
        peak_resident_bytes: 4,
        dropped_bytes: 0,
        leftover_processes: 0,
        process_limit_hits: None,
        memory_limit_kills: None,
    })
}

/// A container that has ended, or is killed.
struct Control;

#[async_trait]
impl ContainerControl for Control {
    async fn wait(&mut self) -> Result<ContainerExit, EngineError> {
        Ok(ContainerExit { exit_code: 0, memory_kill: None })
    }

    async fn kill(&mut self) -> Result<(), EngineError> {
        Ok(())
    }
}

#[async_trait]
impl Engine for Scripted {
    async fn start(&self, spec: &ContainerSpec) -> Result<Container, EngineError> {
        let number = {
            let mut purposes = self.purposes.lock().unwrap();
            purposes.push(spec.purpose.clone());
            purposes.len() - 1
        };
        let Said { frames, ends } = (self.script)(number, spec);
        let mut bytes = MAGIC.to_vec();
        for frame in frames {
            match frame {
                Frame::Output { step, stream, bytes: output } => encode_output(step, stream, &output, &mut bytes),
                Frame::StepEnd(report) => encode_step_end(&report, &mut bytes).unwrap(),
                Frame::End(end) => encode_end(&end, &mut bytes).unwrap(),
            }
        }
        let said = stream::iter([Ok(OutputPiece::Stdout(Bytes::from(bytes)))]);
        let output = if ends { said.boxed() } else { said.chain(stream::pending()).boxed() };
        Ok(Container { input: Box::pin(self.heard.clone()), output, control: Box::new(Control) })
    }

    async fn has_image(&self, _: &Digest) -> Result<bool, EngineError> {
        Ok(true)
    }

    async fn load_image(&self, _: &Digest, _: BoxStream<'static, io::Result<Bytes>>) -> Result<(), EngineError> {
        Ok(())
    }

    async fn inspect_image(&self, _: &Digest) -> Result<Option<EngineImage>, EngineError> {
        Ok(None)
    }

    async fn tag_image(&self, _: &Digest, _: &str) -> Result<(), EngineError> {
        Ok(())
    }

    async fn untag_image(&self, _: &Digest, _: &str) -> Result<(), EngineError> {
        Ok(())
    }

    async fn remove_image(&self, _: &Digest) -> Result<ImageRemoval, EngineError> {
        Ok(ImageRemoval::Absent)
    }

    async fn describe(&self) -> Result<EngineDescription, EngineError> {
        unimplemented!("no test asks what this engine is")
    }

    async fn sweep(&self) -> Result<usize, EngineError> {
        Ok(0)
    }

    async fn close(&self) -> Result<(), EngineError> {
        Ok(())
    }
}
