//! A conversation with a container: bytes go to a command's standard input and come from its descriptor 3.
//!
//! Two kinds of containers use it: the warm compiler, which never runs what it compiles, and a shell on a task
//! (`workspace --shell`). All other containers use [`run`](super::run).

use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use futures_util::StreamExt as _;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use super::super::frame::{Decoder, Frame};
use super::super::spec::{ContainerSpec, Step, StepResult, Stream};
use super::super::{Container, Engine, EngineError, OutputPiece};

/// The most bytes of the command's other output that are kept.
const MAX_REMARKS: usize = 16 << 10;

/// The most bytes that may wait to be read.
const MAX_WAITING: usize = 256 << 20;

/// An open conversation. Dropping it ends and removes the container.
pub struct Conversation {
    purpose: String,
    container: Container,
    decoder: Decoder,
    waiting: BytesMut,
    /// The end of the output on the command's standard streams and on init's stderr.
    remarks: Vec<u8>,
    ended: bool,
}

impl Conversation {
    /// Starts the container. The last step of its program must be a [`Step::Converse`] with events.
    ///
    /// # Errors
    /// [`EngineError`].
    pub async fn open(engine: &dyn Engine, spec: &ContainerSpec) -> Result<Self, EngineError> {
        debug_assert!(matches!(spec.program.steps.last(), Some(Step::Converse(command)) if command.events));
        let mut program = serde_json::to_vec(&spec.program)?;
        program.push(b'\n');
        let container = engine.start(spec).await?;
        let mut conversation = Self {
            purpose: spec.purpose.clone(),
            container,
            decoder: Decoder::new(),
            waiting: BytesMut::new(),
            remarks: Vec::new(),
            ended: false,
        };
        conversation.say(&program).await?;
        Ok(conversation)
    }

    /// Sends bytes. The other side must have sent bytes before the first call, because until then init itself may be
    /// reading.
    ///
    /// # Errors
    /// [`EngineError::AttachLost`] if the other side is gone.
    pub async fn say(&mut self, bytes: &[u8]) -> Result<(), EngineError> {
        let sent = async {
            self.container.input.write_all(bytes).await?;
            self.container.input.flush().await
        };
        match sent.await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.lost(&error.to_string())),
        }
    }

    /// Receives exactly `length` bytes.
    ///
    /// # Errors
    /// [`EngineError::AttachLost`] if the container or `patience` ended first. The conversation is over then.
    pub async fn hear(&mut self, length: usize, patience: Duration) -> Result<Vec<u8>, EngineError> {
        match timeout(patience, self.fill(length)).await {
            Ok(filled) => filled?,
            Err(_) => return Err(self.lost("it took too long")),
        }
        let heard = self.waiting[..length].to_vec();
        self.waiting.advance(length);
        Ok(heard)
    }

    async fn fill(&mut self, length: usize) -> Result<(), EngineError> {
        while self.waiting.len() < length {
            if self.ended || length > MAX_WAITING {
                return Err(self.lost("it ended"));
            }
            match self.container.output.next().await {
                Some(piece) => self.take(piece?)?,
                None => self.ended = true,
            }
        }
        Ok(())
    }

    fn take(&mut self, piece: OutputPiece) -> Result<(), EngineError> {
        let bytes = match piece {
            OutputPiece::Stdout(bytes) => bytes,
            OutputPiece::Stderr(bytes) => {
                self.remark(&bytes);
                return Ok(());
            }
        };
        self.decoder.feed(&bytes);
        let frames = |source| EngineError::Frames { purpose: self.purpose.clone(), source };
        let mut found = Vec::new();
        while let Some(frame) = self.decoder.frame().map_err(frames)? {
            found.push(frame);
        }
        for frame in found {
            match frame {
                Frame::Output { stream: Stream::Events, bytes, .. } => self.waiting.extend_from_slice(&bytes),
                Frame::Output { bytes, .. } => self.remark(&bytes),
                Frame::StepEnd(report) => match report.result {
                    StepResult::Done => {}
                    other => self.remark(format!("{other:?}\n").as_bytes()),
                },
                Frame::End(_) => self.ended = true,
            }
        }
        if self.waiting.len() > MAX_WAITING {
            let what = "an answer".to_owned();
            return Err(EngineError::TooMuch { purpose: self.purpose.clone(), what });
        }
        Ok(())
    }

    fn remark(&mut self, bytes: &[u8]) {
        self.remarks.extend_from_slice(bytes);
        let over = self.remarks.len().saturating_sub(MAX_REMARKS);
        self.remarks.drain(..over);
    }

    fn lost(&self, reason: &str) -> EngineError {
        let remarks = String::from_utf8_lossy(&self.remarks);
        let reason = format!("{reason}; {}", remarks.trim());
        EngineError::AttachLost { purpose: self.purpose.clone(), reason }
    }
}
