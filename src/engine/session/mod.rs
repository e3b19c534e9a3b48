//! The whole conversation with one container: program in, frames out, and the result.
//!
//! Memory use is bounded: both sides cut streams at the program's limits, and streams of more than some 64 KiB go to
//! files.

mod capture;
pub mod conversation;

use std::io;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use tokio::io::{AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, timeout, timeout_at};

pub use self::capture::Captured;
use self::capture::Collector;
use super::frame::{Decoder, Frame};
use super::spec::{CommandEnd, ContainerSpec, MAX_PROGRAM_BYTES, ProgramEnd, Step, StepReport, StepResult};
use super::{Container, ContainerExit, Engine, EngineError, MemoryKill, OutputPiece};

/// How long a container may take to end after init's last frame, or after it was killed.
const END_TIMEOUT: Duration = Duration::from_secs(60);

/// How much of init's stderr is kept, in bytes.
const MAX_COMPLAINT: usize = 8 << 10;

/// The result of a container.
#[derive(Debug)]
pub struct ContainerRun {
    /// The steps that were begun, in order.
    pub steps: Vec<StepOutput>,
    /// How the program ended.
    pub end: RunEnd,
    /// The container's exit status; 0 if the program ended by itself.
    pub exit_code: i64,
    /// Whether the memory limit ended a process in it, as far as the engine knows. [`CommandEnd::memory_limit_kills`]
    /// is more exact if it is set.
    ///
    /// [`CommandEnd::memory_limit_kills`]: super::spec::CommandEnd::memory_limit_kills
    pub memory_limit_met: bool,
    /// Time from the request for the container to its end.
    pub wall: Duration,
    /// Time from the request for the container to init's first frame.
    pub until_begun: Option<Duration>,
}

impl ContainerRun {
    /// Tells whether init reported how its program ended. Otherwise nothing may be concluded about the commands.
    pub fn is_complete(&self) -> bool {
        matches!(self.end, RunEnd::Program(_))
    }

    /// Tells whether the memory limit ended some process while this step ran. The step's own count decides. If init has
    /// no count or did not survive, the engine's count for the whole container decides.
    pub fn memory_limit_met_in(&self, index: usize) -> bool {
        match self.step(index).and_then(StepOutput::result) {
            // Without a count, a command that succeeded was not ended by the limit.
            Some(StepResult::Ended(end)) => match end.memory_limit_kills {
                Some(kills) => kills > 0,
                None => self.memory_limit_met && end.exit_code != Some(0),
            },
            Some(_) => false,
            None => self.memory_limit_met,
        }
    }

    /// Returns the step with this index of the program, if it was begun.
    pub fn step(&self, index: usize) -> Option<&StepOutput> {
        self.steps.iter().find(|step| step.index == index)
    }
}

/// How a container's program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// Init reported the end.
    Program(ProgramEnd),
    /// The container exceeded its own wall limit: a process hung, or the limit is below those of its commands.
    Deadline,
    /// The memory limit ended init itself, because all memory of the container together, scratch included, was too
    /// large.
    OutOfMemory,
    /// The container was killed.
    Killed {
        /// The signal.
        signal: i64,
    },
    /// Init gave up.
    InitFailed {
        /// Its exit status.
        exit_code: i64,
        /// Init's output on stderr.
        message: String,
    },
}

/// The output of one step.
#[derive(Debug)]
pub struct StepOutput {
    /// Its index in the program.
    pub index: usize,
    /// How it ended; `None` if the container ended first.
    pub report: Option<StepReport>,
    /// The command's standard output.
    pub stdout: Captured,
    /// The command's standard error.
    pub stderr: Captured,
    /// The command's file descriptor 3.
    pub events: Captured,
    /// The file, listing or archive.
    pub content: Captured,
}

impl StepOutput {
    /// Returns the step's result; `None` if the container ended first.
    pub fn result(&self) -> Option<&StepResult> {
        self.report.as_ref().map(|report| &report.result)
    }

    /// Returns how its command ended, if it is one and ended by itself or by a limit.
    fn command_end(&self) -> Option<&CommandEnd> {
        match self.result() {
            Some(StepResult::Ended(end)) => Some(end),
            _ => None,
        }
    }
}

/// Starts a container, runs its program and returns the result. Large streams are written to files in `spool`, an
/// existing directory of this process; the caller removes them.
///
/// # Errors
/// [`EngineError`] for faults of the engine or of its inputs. A container that ended before its program is no error but
/// a [`ContainerRun::end`].
pub async fn run(engine: &dyn Engine, spec: &ContainerSpec, spool: &Path) -> Result<ContainerRun, EngineError> {
    let requested = Instant::now();
    let container = engine.start(spec).await?;
    go_through(container, spec, &[], spool, requested).await
}

/// Runs the program of `spec` in a started container. `archives` are files of the host for each [`Step::UnpackInput`], in
/// order. `requested` is the time of the request for the container.
///
/// # Errors
/// As [`run`].
pub async fn go_through(
    mut container: Container,
    spec: &ContainerSpec,
    archives: &[&Path],
    spool: &Path,
    requested: Instant,
) -> Result<ContainerRun, EngineError> {
    let mut program = serde_json::to_vec(&spec.program)?;
    if program.len() > MAX_PROGRAM_BYTES {
        return Err(EngineError::ProgramTooLong { purpose: spec.purpose.clone(), length: program.len() });
    }
    program.push(b'\n');
    let deadline = Instant::now() + Duration::from_secs(spec.limits.wall_seconds);
    let mut listener = Listener {
        spec,
        requested,
        decoder: Decoder::new(),
        collector: Collector::new(spec, spool),
        end: None,
        complaint: Vec::new(),
        until_begun: None,
    };
    let Container { input, output, .. } = &mut container;
    let talked = timeout_at(deadline, async {
        let mut sent = pin!(send(input, &program, spec, archives));
        let mut heard = pin!(listener.listen(output));
        tokio::select! {
            // An init that ends early does not read everything.
            heard = &mut heard => heard,
            sent = &mut sent => {
                sent?;
                heard.await
            }
        }
    });
    let overdue = match talked.await {
        Ok(heard) => {
            heard?;
            false
        }
        Err(_) => {
            container.control.kill().await?;
            // Init's earlier output still arrives.
            match timeout(END_TIMEOUT, listener.listen(&mut container.output)).await {
                Ok(heard) => heard?,
                Err(_) => tracing::warn!(purpose = spec.purpose, "the output of a killed container did not end"),
            }
            true
        }
    };
    let exit = end_of(&mut container, spec).await?;
    let Listener { collector, end, complaint, until_begun, .. } = listener;
    let end = match end {
        Some(end) => RunEnd::Program(end),
        None => cause(&exit, overdue, &complaint),
    };
    let steps = collector.finish().await?;
    let ends: Vec<&CommandEnd> = steps.iter().filter_map(StepOutput::command_end).collect();
    let container_killed = matches!(end, RunEnd::Killed { .. });
    if was_short_of_memory(exit.memory_kill, container_killed, &ends, spec.limits.memory_bytes) {
        return Err(EngineError::ShortOfMemory { purpose: spec.purpose.clone() });
    }
    let told = ends.iter().any(|end| end.memory_limit_kills.is_some_and(|kills| kills > 0));
    Ok(ContainerRun {
        end,
        exit_code: exit.exit_code,
        memory_limit_met: exit.memory_kill == Some(MemoryKill::Limit) || told,
        steps,
        wall: requested.elapsed(),
        until_begun,
    })
}

/// Sends the program, and after it the archives.
async fn send(
    input: &mut (impl AsyncWrite + Unpin),
    program: &[u8],
    spec: &ContainerSpec,
    archives: &[&Path],
) -> Result<(), EngineError> {
    // An init that does not read its input has died. The container's end shows the reason.
    let unsent = |error: io::Error| tracing::debug!(purpose = spec.purpose, %error, "the input could not be sent");
    if let Err(error) = input.write_all(program).await {
        unsent(error);
        return Ok(());
    }
    let lengths = spec.program.steps.iter().filter_map(|step| match step {
        Step::UnpackInput { bytes, .. } => Some(*bytes),
        _ => None,
    });
    let mut buffer = vec![0; if archives.is_empty() { 0 } else { 256 << 10 }];
    let lengths: Vec<u64> = lengths.collect();
    debug_assert_eq!(lengths.len(), archives.len(), "each step that unpacks input has its archive");
    for (path, length) in archives.iter().zip(lengths) {
        let unread = |source| EngineError::Archive { path: path.to_path_buf(), source };
        let mut archive = tokio::fs::File::open(path).await.map_err(unread)?.take(length);
        loop {
            let read = archive.read(&mut buffer).await.map_err(unread)?;
            if read == 0 {
                break;
            }
            if let Err(error) = input.write_all(&buffer[..read]).await {
                unsent(error);
                return Ok(());
            }
        }
        if archive.limit() > 0 {
            return Err(unread(io::Error::from(io::ErrorKind::UnexpectedEof)));
        }
    }
    if let Err(error) = input.flush().await {
        unsent(error);
    }
    Ok(())
}

/// Tells whether a shortage of memory decided how a container ended, from its commands' ends. A command that took most of
/// what it was allowed has itself to blame: nobody gets a fault instead of a failure by taking memory alone.
fn was_short_of_memory(kill: Option<MemoryKill>, container_killed: bool, ends: &[&CommandEnd], limit: u64) -> bool {
    let told = |end: &CommandEnd| match kill {
        // Init counts kills in the container's group, whichever limit was met.
        Some(MemoryKill::Shortage) => end.memory_limit_kills.is_none_or(|kills| kills > 0),
        // The kill of another container's process is no excuse. What init ends itself, it says.
        Some(MemoryKill::ShortageNearby) => {
            let killed = end.signal == Some(libc::SIGKILL) || end.exit_code == Some(128 + libc::SIGKILL);
            killed && end.limit.is_none() && end.memory_limit_kills.is_none_or(|kills| kills == 0)
        }
        Some(MemoryKill::Limit) | None => false,
    };
    let is_short = matches!(kill, Some(MemoryKill::Shortage | MemoryKill::ShortageNearby));
    let is_modest = ends.iter().all(|end| end.peak_resident_bytes < limit / 4 * 3);
    is_short && is_modest && (container_killed || ends.iter().any(|end| told(end)))
}

/// Waits for the container's end. A container that continues after its output ended has lost its connection to us.
async fn end_of(container: &mut Container, spec: &ContainerSpec) -> Result<ContainerExit, EngineError> {
    match timeout(END_TIMEOUT, container.control.wait()).await {
        Ok(exit) => exit,
        Err(_) => {
            container.control.kill().await?;
            let reason = "its output ended, but it went on".into();
            Err(EngineError::AttachLost { purpose: spec.purpose.clone(), reason })
        }
    }
}

/// Returns why a container ended before its program.
fn cause(exit: &ContainerExit, overdue: bool, complaint: &[u8]) -> RunEnd {
    const KILLED: i64 = 128 + 9;
    match exit.exit_code {
        _ if overdue => RunEnd::Deadline,
        KILLED if exit.memory_kill == Some(MemoryKill::Limit) => RunEnd::OutOfMemory,
        code if code > 128 => RunEnd::Killed { signal: code - 128 },
        exit_code => RunEnd::InitFailed { exit_code, message: String::from_utf8_lossy(complaint).trim().to_owned() },
    }
}

/// The state of reading a container's output.
struct Listener<'a> {
    spec: &'a ContainerSpec,
    requested: Instant,
    decoder: Decoder,
    collector: Collector,
    end: Option<ProgramEnd>,
    complaint: Vec<u8>,
    until_begun: Option<Duration>,
}

impl Listener<'_> {
    /// Reads until init's last frame, or until the output ends without one.
    async fn listen(
        &mut self,
        output: &mut BoxStream<'static, Result<OutputPiece, EngineError>>,
    ) -> Result<(), EngineError> {
        while let Some(piece) = output.next().await {
            match piece? {
                OutputPiece::Stdout(bytes) => {
                    self.until_begun.get_or_insert_with(|| self.requested.elapsed());
                    self.decoder.feed(&bytes);
                    while let Some(frame) = self.next_frame()? {
                        match frame {
                            Frame::Output { step, stream, bytes } => self.collector.add(step, stream, &bytes).await?,
                            Frame::StepEnd(report) => self.collector.end_step(report)?,
                            Frame::End(end) => {
                                self.end = Some(end);
                                return Ok(());
                            }
                        }
                    }
                }
                OutputPiece::Stderr(bytes) => {
                    let room = MAX_COMPLAINT.saturating_sub(self.complaint.len());
                    self.complaint.extend_from_slice(&bytes[..bytes.len().min(room)]);
                }
            }
        }
        Ok(())
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, EngineError> {
        self.decoder.frame().map_err(|source| EngineError::Frames { purpose: self.spec.purpose.clone(), source })
    }
}

#[cfg(test)]
mod tests;
