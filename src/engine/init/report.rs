//! Frames on init's standard output.

use std::io::Write;

use rustix::fd::{AsFd, OwnedFd};

use super::super::frame::{self, FrameError, MAX_OUTPUT};
use super::super::spec::{ProgramEnd, StepReport, Stream};

/// Why init can't report any more.
#[derive(Debug, thiserror::Error)]
pub(in crate::engine) enum ReportError {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("standard output: {0}")]
    Output(#[from] rustix::io::Errno),
}

/// Writes frames to standard output, unbuffered, so that killing the container later loses no frame.
pub(super) struct Reporter {
    output: OwnedFd,
    frame: Vec<u8>,
}

impl Reporter {
    /// Begins the stream.
    pub(super) fn begin() -> Result<Self, ReportError> {
        let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 10)?;
        let mut reporter = Self { output, frame: frame::MAGIC.to_vec() };
        reporter.send()?;
        Ok(reporter)
    }

    /// Sends bytes of any length of a step's stream.
    pub(super) fn output(&mut self, step: usize, stream: Stream, bytes: &[u8]) -> Result<(), ReportError> {
        for piece in bytes.chunks(MAX_OUTPUT) {
            self.frame.clear();
            frame::encode_output(u32::try_from(step).unwrap_or(u32::MAX), stream, piece, &mut self.frame);
            self.send()?;
        }
        Ok(())
    }

    /// Sends a step's report.
    pub(super) fn step_end(&mut self, report: &StepReport) -> Result<(), ReportError> {
        self.frame.clear();
        frame::encode_step_end(report, &mut self.frame)?;
        self.send()
    }

    /// Sends the last frame.
    pub(super) fn end(&mut self, end: &ProgramEnd) -> Result<(), ReportError> {
        self.frame.clear();
        frame::encode_end(end, &mut self.frame)?;
        self.send()
    }

    fn send(&mut self) -> Result<(), ReportError> {
        let mut rest = self.frame.as_slice();
        while !rest.is_empty() {
            match rustix::io::write(self.output.as_fd(), rest) {
                Ok(written) => rest = &rest[written..],
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// A step's content stream as a writer, in large pieces.
pub(super) struct ContentWriter<'a> {
    reporter: &'a mut Reporter,
    step: usize,
    buffer: Vec<u8>,
    /// The error of the last write. [`std::io::Error`] can't carry its type through other people's code.
    failure: Option<ReportError>,
}

impl<'a> ContentWriter<'a> {
    pub(super) fn new(reporter: &'a mut Reporter, step: usize) -> Self {
        Self { reporter, step, buffer: Vec::with_capacity(MAX_OUTPUT), failure: None }
    }

    /// Returns the error that ended writing, if any.
    pub(super) fn failure(self) -> Option<ReportError> {
        self.failure
    }

    fn send(&mut self) -> std::io::Result<()> {
        let sent = self.reporter.output(self.step, Stream::Content, &self.buffer);
        self.buffer.clear();
        sent.map_err(|error| {
            let shown = std::io::Error::other(error.to_string());
            self.failure = Some(error);
            shown
        })
    }
}

impl Write for ContentWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let taken = bytes.len().min(MAX_OUTPUT - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..taken]);
        if self.buffer.len() == MAX_OUTPUT {
            self.send()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.buffer.is_empty() { Ok(()) } else { self.send() }
    }
}
