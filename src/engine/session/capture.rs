//! Captures the output of a container's steps, each stream up to its limit: small ones in memory, long ones in files.

use std::borrow::Cow;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;

use super::super::EngineError;
use super::super::spec::{ContainerSpec, Step, StepReport, Stream};
use super::StepOutput;

/// Streams up to this many bytes stay in memory.
pub(super) const IN_MEMORY: usize = 64 << 10;

/// Longest listing, in bytes for each of its files.
const MAX_PATH: u64 = 4097;

/// A captured stream.
#[derive(Clone, Debug)]
pub enum Captured {
    /// Its bytes.
    Memory(Vec<u8>),
    /// A file with its bytes.
    File {
        /// Its path.
        path: PathBuf,
        /// Its length in bytes.
        length: u64,
    },
}

impl Captured {
    /// Returns its length in bytes.
    pub fn length(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File { length, .. } => *length,
        }
    }

    /// Tells whether the stream is empty.
    pub fn is_empty(&self) -> bool {
        self.length() == 0
    }

    /// Returns all bytes, for streams with a small limit. Read longer streams through [`Captured::open`].
    ///
    /// # Errors
    /// I/O errors of reading the spool file.
    pub fn bytes(&self) -> io::Result<Cow<'_, [u8]>> {
        match self {
            Self::Memory(bytes) => Ok(Cow::Borrowed(bytes)),
            Self::File { path, .. } => fs_err::read(path).map(Cow::Owned),
        }
    }

    /// Returns the first bytes, up to `most`.
    ///
    /// # Errors
    /// I/O errors of reading the spool file.
    pub fn beginning(&self, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open()?.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Opens the stream for reading.
    ///
    /// # Errors
    /// I/O errors of opening the spool file.
    pub fn open(&self) -> io::Result<Box<dyn Read + Send + '_>> {
        match self {
            Self::Memory(bytes) => Ok(Box::new(bytes.as_slice())),
            Self::File { path, .. } => Ok(Box::new(fs_err::File::open(path)?)),
        }
    }
}

/// Collects the content of frames, step by step.
pub(super) struct Collector {
    purpose: String,
    spool: PathBuf,
    /// Distinguishes runs of this process that share a directory.
    number: u64,
    steps: Vec<Slot>,
}

/// An unfinished step.
struct Slot {
    limit: u64,
    begun: bool,
    report: Option<StepReport>,
    streams: [Stored; 4],
}

/// An unfinished stream.
#[derive(Default)]
struct Stored {
    length: u64,
    bytes: Vec<u8>,
    file: Option<(PathBuf, File)>,
}

impl Collector {
    pub(super) fn new(spec: &ContainerSpec, spool: &Path) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let slot = |step: &Step| {
            let limit = match step {
                Step::Run(command) | Step::Converse(command) => command.limits.output_bytes,
                Step::SendFile { max_bytes, .. } | Step::SendArchive { max_bytes, .. } => *max_bytes,
                Step::SendListing { max_files, .. } => max_files.saturating_mul(MAX_PATH),
                Step::Unpack { .. }
                | Step::UnpackInput { .. }
                | Step::Remove { .. }
                | Step::Empty { .. }
                | Step::MakeDirectory { .. }
                | Step::Write { .. } => 0,
            };
            Slot { limit, begun: false, report: None, streams: Default::default() }
        };
        let steps = spec.program.steps.iter().map(slot).collect();
        Self {
            purpose: spec.purpose.clone(),
            spool: spool.to_owned(),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            steps,
        }
    }

    fn too_much(&self, what: String) -> EngineError {
        EngineError::TooMuch { purpose: self.purpose.clone(), what }
    }

    /// Stores bytes of a step's stream.
    pub(super) async fn add(&mut self, step: u32, stream: Stream, bytes: &[u8]) -> Result<(), EngineError> {
        let index = step as usize;
        let Some(slot) = self.steps.get_mut(index).filter(|slot| slot.report.is_none()) else {
            return Err(self.too_much(format!("output of step {index}, which is over or not there")));
        };
        slot.begun = true;
        let stored = &mut slot.streams[position(stream)];
        stored.length += bytes.len() as u64;
        if stored.length > slot.limit {
            return Err(self.too_much(format!("{stream:?} of step {index}")));
        }
        stored.bytes.extend_from_slice(bytes);
        if stored.bytes.len() > IN_MEMORY {
            let path = self.spool.join(format!("run-{}-{index}-{}", self.number, name(stream)));
            stored.write(path).await.map_err(EngineError::Spool)?;
        }
        Ok(())
    }

    /// Stores a step's report.
    pub(super) fn end_step(&mut self, report: StepReport) -> Result<(), EngineError> {
        let index = report.index;
        match self.steps.get_mut(index).filter(|slot| slot.report.is_none()) {
            Some(slot) => {
                slot.begun = true;
                slot.report = Some(report);
                Ok(())
            }
            None => Err(self.too_much(format!("a report of step {index}, which is over or not there"))),
        }
    }

    /// Returns the steps that were begun.
    pub(super) async fn finish(self) -> Result<Vec<StepOutput>, EngineError> {
        let mut steps = Vec::new();
        for (index, slot) in self.steps.into_iter().enumerate().filter(|(_, slot)| slot.begun) {
            let [stdout, stderr, events, content] = slot.streams;
            steps.push(StepOutput {
                index,
                report: slot.report,
                stdout: stdout.finish().await.map_err(EngineError::Spool)?,
                stderr: stderr.finish().await.map_err(EngineError::Spool)?,
                events: events.finish().await.map_err(EngineError::Spool)?,
                content: content.finish().await.map_err(EngineError::Spool)?,
            });
        }
        Ok(steps)
    }
}

impl Stored {
    /// Moves the bytes in memory to the file.
    async fn write(&mut self, path: PathBuf) -> io::Result<()> {
        let named =
            |error: io::Error, path: &Path| io::Error::new(error.kind(), format!("`{}`: {error}", path.display()));
        if self.file.is_none() {
            let file = File::create_new(&path).await.map_err(|error| named(error, &path))?;
            self.file = Some((path, file));
        }
        if let Some((path, file)) = &mut self.file {
            file.write_all(&self.bytes).await.map_err(|error| named(error, path))?;
            self.bytes.clear();
        }
        Ok(())
    }

    async fn finish(mut self) -> io::Result<Captured> {
        match self.file.as_ref().map(|(path, _)| path.clone()) {
            None => Ok(Captured::Memory(self.bytes)),
            Some(path) => {
                self.write(path.clone()).await?;
                if let Some((_, file)) = &mut self.file {
                    file.flush().await?;
                }
                Ok(Captured::File { path, length: self.length })
            }
        }
    }
}

fn position(stream: Stream) -> usize {
    match stream {
        Stream::Stdout => 0,
        Stream::Stderr => 1,
        Stream::Events => 2,
        Stream::Content => 3,
    }
}

fn name(stream: Stream) -> &'static str {
    match stream {
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
        Stream::Events => "events",
        Stream::Content => "content",
    }
}
