//! The framing of init's standard output: pure encoding and decoding, used by both sides.
//!
//! ```text
//! stream  = magic frame*
//! frame   = kind:u8 length:u32le payload[length]
//! output  (1) = step:u32le stream:u8 bytes    step end (2) = JSON StepReport    end (3) = JSON ProgramEnd
//! ```
//!
//! The decoder trusts nothing: it checks every length before it allocates memory.

use super::spec::{ProgramEnd, StepReport, Stream};

/// The first bytes of a stream. The last of these is the version.
pub const MAGIC: [u8; 8] = *b"testevo\x01";

/// Longest payload of a frame in bytes.
pub const MAX_PAYLOAD: usize = 128 << 10;

/// The most output bytes in one frame.
pub const MAX_OUTPUT: usize = 64 << 10;

const HEADER: usize = 5;

/// One message of init.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// Bytes of a step's stream.
    Output {
        /// The step's index.
        step: u32,
        /// Which of the step's streams.
        stream: Stream,
        /// At most [`MAX_OUTPUT`].
        bytes: Vec<u8>,
    },
    /// A step is over.
    StepEnd(StepReport),
    /// The program is over; nothing follows.
    End(ProgramEnd),
}

/// Why bytes are not frames.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The stream does not begin with [`MAGIC`].
    #[error("the init's output does not begin as this version's does")]
    Magic,
    /// No frame has this kind.
    #[error("the init sent a frame of the unknown kind {0}")]
    Kind(u8),
    /// A frame is longer than any may be, or too short for its kind.
    #[error("the init sent a frame of {0} bytes")]
    Length(usize),
    /// No stream has this number.
    #[error("the init sent output of the unknown stream {0}")]
    Stream(u8),
    /// A report is malformed.
    #[error("the init sent a report that can't be read: {0}")]
    Report(#[from] serde_json::Error),
    /// Something follows the end.
    #[error("the init sent something after its end")]
    AfterEnd,
}

/// Appends an output frame to `into`. `bytes` may hold at most [`MAX_OUTPUT`] bytes; decoders reject a longer frame.
pub fn encode_output(step: u32, stream: Stream, bytes: &[u8], into: &mut Vec<u8>) {
    header(1, bytes.len() + 5, into);
    into.extend_from_slice(&step.to_le_bytes());
    into.push(stream_number(stream));
    into.extend_from_slice(bytes);
}

/// Appends a step's report to `into`.
///
/// # Errors
/// The report can't be serialised. Only text that is not UTF-8 could cause that.
pub fn encode_step_end(report: &StepReport, into: &mut Vec<u8>) -> Result<(), FrameError> {
    let payload = serde_json::to_vec(report)?;
    header(2, payload.len(), into);
    into.extend_from_slice(&payload);
    Ok(())
}

/// Appends the program's end to `into`.
///
/// # Errors
/// As [`encode_step_end`].
pub fn encode_end(end: &ProgramEnd, into: &mut Vec<u8>) -> Result<(), FrameError> {
    let payload = serde_json::to_vec(end)?;
    header(3, payload.len(), into);
    into.extend_from_slice(&payload);
    Ok(())
}

fn header(kind: u8, length: usize, into: &mut Vec<u8>) {
    into.push(kind);
    // A length that does not fit is above every decoder's limit anyway.
    into.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
}

fn stream_number(stream: Stream) -> u8 {
    match stream {
        Stream::Stdout => 1,
        Stream::Stderr => 2,
        Stream::Events => 3,
        Stream::Content => 4,
    }
}

fn stream_of(number: u8) -> Result<Stream, FrameError> {
    match number {
        1 => Ok(Stream::Stdout),
        2 => Ok(Stream::Stderr),
        3 => Ok(Stream::Events),
        4 => Ok(Stream::Content),
        other => Err(FrameError::Stream(other)),
    }
}

/// Turns bytes, in pieces of any size, into frames.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    read: usize,
    begun: bool,
    ended: bool,
}

impl Decoder {
    /// Returns a decoder at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds received bytes. Call [`Decoder::frame`] until it returns `None` before adding more, so that the decoder
    /// holds at most one unfinished frame and one piece.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.read);
        self.read = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next whole frame; `None` until more bytes arrive.
    ///
    /// # Errors
    /// [`FrameError`]. The rest of the stream can't be trusted then.
    pub fn frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let mut rest = &self.buffer[self.read..];
        if !self.begun {
            let known = rest.len().min(MAGIC.len());
            if rest[..known] != MAGIC[..known] {
                return Err(FrameError::Magic);
            }
            if known < MAGIC.len() {
                return Ok(None);
            }
            self.begun = true;
            self.read += MAGIC.len();
            rest = &rest[MAGIC.len()..];
        }
        if rest.is_empty() {
            return Ok(None);
        }
        if self.ended {
            return Err(FrameError::AfterEnd);
        }
        let Some((&[kind, length @ ..], body)) = rest.split_first_chunk::<HEADER>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_PAYLOAD {
            return Err(FrameError::Length(length));
        }
        let Some(payload) = body.get(..length) else {
            return Ok(None);
        };
        let frame = parse(kind, payload)?;
        self.ended = matches!(frame, Frame::End(_));
        self.read += HEADER + length;
        Ok(Some(frame))
    }
}

fn parse(kind: u8, payload: &[u8]) -> Result<Frame, FrameError> {
    match kind {
        1 => {
            let Some((&[a, b, c, d, stream], bytes)) = payload.split_first_chunk::<5>() else {
                return Err(FrameError::Length(payload.len()));
            };
            if bytes.len() > MAX_OUTPUT {
                return Err(FrameError::Length(payload.len()));
            }
            let step = u32::from_le_bytes([a, b, c, d]);
            Ok(Frame::Output { step, stream: stream_of(stream)?, bytes: bytes.to_vec() })
        }
        2 => Ok(Frame::StepEnd(serde_json::from_slice(payload)?)),
        3 => Ok(Frame::End(serde_json::from_slice(payload)?)),
        other => Err(FrameError::Kind(other)),
    }
}

#[cfg(test)]
mod tests;
