//! The engine's side of a running container: its runtime's process, its streams, its end.

use std::io::{self, IoSlice, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio_util::io::ReaderStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::super::{Container, ContainerControl, ContainerExit, EngineError, MemoryKill, OutputPiece};
use super::cgroup::Group;
use super::plan::{MAX_LINE, Message, Plan, RUNTIME_SUBCOMMAND};
use super::shortage::Watch;

/// Exit status of a container whose runtime was killed.
const KILLED: i64 = 128 + libc::SIGKILL as i64;

/// The longest time for creating a container.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// The containers of an engine. The trackers are closed from the beginning, so that waiting ends whenever they are
/// empty. Containers that are added later still count.
#[derive(Clone, Debug)]
pub(super) struct Containers {
    /// Containers that are being created, run, or are being removed.
    pub(super) all: TaskTracker,
    /// Of these, the containers that may be about to end: those that are being created, have ended or are being ended.
    pub(super) leaving: TaskTracker,
}

impl Default for Containers {
    fn default() -> Self {
        let (all, leaving) = (TaskTracker::new(), TaskTracker::new());
        all.close();
        leaving.close();
        Self { all, leaving }
    }
}

/// Whether a container counts as leaving. It does from the request to end it, before its supervisor hears of that,
/// until its supervisor has removed it.
#[derive(Clone)]
struct Leaving {
    tracker: TaskTracker,
    state: Arc<Mutex<State>>,
}

enum State {
    Stays,
    Leaves { _counted: TaskTrackerToken },
    Gone,
}

impl Leaving {
    fn new(tracker: &TaskTracker) -> Self {
        Self { tracker: tracker.clone(), state: Arc::new(Mutex::new(State::Stays)) }
    }

    fn begin(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::Stays) {
            *state = State::Leaves { _counted: self.tracker.token() };
        }
    }

    fn end(&self) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State::Gone;
    }
}

/// Starts a container and returns it when its init runs.
pub(super) async fn start(
    program: &Path,
    plan: Plan,
    purpose: String,
    containers: &Containers,
    end: CancellationToken,
) -> Result<Container, EngineError> {
    let failed = |error: io::Error| EngineError::StartFailed { purpose: purpose.clone(), message: error.to_string() };
    // A container without a group of its own for memory is counted in this process's group.
    let watch = plan.groups.iter().all(|group| group.memory_events.is_none()).then(Watch::begin);
    let Launched { child, socket, input, output, complaints } = launch(program, &plan).map_err(failed)?;
    let (read, write) = socket.into_split();
    let words = BufReader::new(read);
    let mut runtime = Runtime { child, words, socket: Some(write), groups: plan.groups, watch };
    let heard = tokio::time::timeout(START_TIMEOUT, runtime.hear()).await.unwrap_or_else(|_| {
        // A mount hangs. Killing the runtime also removes the rest of the container.
        drop(runtime.child.start_kill());
        None
    });
    match heard {
        Some(Message::Started) => {}
        Some(Message::Failed(failure)) => {
            runtime.finish().await;
            return Err(EngineError::NativeStep {
                purpose,
                stage: failure.stage,
                errno: failure.errno,
                message: failure.to_string(),
            });
        }
        Some(Message::Ended { .. }) | None => {
            let status = runtime.finish().await;
            let message = format!("its runtime ended before it began ({status})");
            return Err(EngineError::StartFailed { purpose, message });
        }
    }
    let (sender, ended) = oneshot::channel();
    let (kill, leaving) = (end.clone(), Leaving::new(&containers.leaving));
    let supervised = leaving.clone();
    containers.all.spawn(async move {
        let exit = runtime.supervise(&end, &supervised).await;
        supervised.end();
        // If nobody waits for the exit, the container was cleaned up all the same.
        let _ = sender.send(exit);
    });
    let pieces = |from: pipe::Receiver, piece: fn(bytes::Bytes) -> OutputPiece, purpose: String| {
        ReaderStream::with_capacity(from, 64 << 10).map(move |read| match read {
            Ok(bytes) => Ok(piece(bytes)),
            Err(error) => Err(EngineError::AttachLost { purpose: purpose.clone(), reason: error.to_string() }),
        })
    };
    let output = futures_util::stream::select(
        pieces(output, OutputPiece::Stdout, purpose.clone()),
        pieces(complaints, OutputPiece::Stderr, purpose.clone()),
    );
    Ok(Container {
        input: Box::pin(input),
        output: output.boxed(),
        control: Box::new(Control { kill, leaving, ended, exit: None, purpose }),
    })
}

/// A runtime's process, and the engine's ends of its descriptors.
struct Launched {
    child: Child,
    socket: UnixStream,
    input: pipe::Sender,
    output: pipe::Receiver,
    complaints: pipe::Receiver,
}

fn launch(program: &Path, plan: &Plan) -> io::Result<Launched> {
    let (ours, theirs) = StdUnixStream::pair()?;
    let (input_read, input_write) = pipe_with(PipeFlags::CLOEXEC)?;
    let (output_read, output_write) = pipe_with(PipeFlags::CLOEXEC)?;
    let (complaints_read, complaints_write) = pipe_with(PipeFlags::CLOEXEC)?;
    let child = Command::new(program)
        .arg(RUNTIME_SUBCOMMAND)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // This process handles interrupts from the terminal.
        .process_group(0)
        .spawn()?;
    request(&ours, plan, &[input_read, output_write, complaints_write])?;
    ours.set_nonblocking(true)?;
    Ok(Launched {
        child,
        socket: UnixStream::from_std(ours)?,
        input: pipe::Sender::from_owned_fd(input_write)?,
        output: pipe::Receiver::from_owned_fd(output_read)?,
        complaints: pipe::Receiver::from_owned_fd(complaints_read)?,
    })
}

/// Sends the plan, and with its first byte the container's streams.
fn request(mut socket: &StdUnixStream, plan: &Plan, streams: &[OwnedFd; 3]) -> io::Result<()> {
    let mut line = serde_json::to_vec(plan)?;
    line.push(b'\n');
    if line.len() > MAX_LINE {
        return Err(io::Error::other("there is too much to mount"));
    }
    let streams = streams.each_ref().map(|stream| stream.as_fd());
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&streams)) {
        return Err(io::Error::other("the streams do not fit into a message"));
    }
    let sent = sendmsg(socket, &[IoSlice::new(&line)], &mut ancillary, SendFlags::NOSIGNAL)?;
    socket.write_all(&line[sent..])
}

/// The runtime of a container.
struct Runtime {
    child: Child,
    words: BufReader<OwnedReadHalf>,
    /// Closing it ends the container.
    socket: Option<OwnedWriteHalf>,
    groups: Vec<Group>,
    watch: Option<Watch>,
}

impl Runtime {
    /// Returns the runtime's next message; `None` if the runtime is gone or the message is malformed.
    async fn hear(&mut self) -> Option<Message> {
        hear(&mut self.words).await
    }

    /// Waits for the runtime's end, and describes it.
    async fn finish(mut self) -> String {
        self.socket = None;
        drop(self.words);
        match self.child.wait().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        }
    }

    /// Waits for the container's end and makes sure that nothing is left. Ends the container when `end` is cancelled.
    async fn supervise(mut self, end: &CancellationToken, leaving: &Leaving) -> ContainerExit {
        let message = tokio::select! {
            message = hear(&mut self.words) => message,
            () = end.cancelled() => {
                if let Some(mut socket) = self.socket.take() {
                    // The runtime also notices the end of the socket, but only after both halves are closed.
                    let _ = socket.write_all(b"k").await;
                    self.socket = Some(socket);
                }
                self.hear().await
            }
        };
        leaving.begin();
        let (groups, watch) = (std::mem::take(&mut self.groups), self.watch.take());
        if !matches!(message, Some(Message::Ended { .. })) {
            tracing::warn!(?message, "a container's runtime did not say how it ended");
        }
        self.finish().await;
        let mut exit = match message {
            Some(Message::Ended { exit_code, memory_kill }) => ContainerExit { exit_code, memory_kill },
            // The container ended with its runtime, but its groups remain.
            Some(Message::Started | Message::Failed(_)) | None => tidy_up(groups).await,
        };
        if watch.is_some_and(|watch| watch.saw_a_kill()) {
            exit.memory_kill = exit.memory_kill.or(Some(MemoryKill::ShortageNearby));
        }
        exit
    }
}

async fn hear(words: &mut BufReader<impl AsyncRead + Unpin>) -> Option<Message> {
    let mut line = Vec::new();
    let read = (&mut *words).take(MAX_LINE as u64).read_until(b'\n', &mut line).await;
    read.ok().filter(|length| *length > 0)?;
    serde_json::from_slice(&line).ok()
}

/// Removes the groups of a container whose runtime could not remove them.
async fn tidy_up(groups: Vec<Group>) -> ContainerExit {
    let removed = tokio::task::spawn_blocking(move || {
        let memory_kill = groups.iter().find_map(Group::memory_kill);
        for group in groups {
            if let Err(error) = group.remove() {
                tracing::warn!(%error, "left to the next sweep");
            }
        }
        memory_kill
    });
    ContainerExit { exit_code: KILLED, memory_kill: removed.await.unwrap_or(None) }
}

/// The handle on a container. Dropping it ends the container.
struct Control {
    kill: CancellationToken,
    leaving: Leaving,
    ended: oneshot::Receiver<ContainerExit>,
    exit: Option<ContainerExit>,
    purpose: String,
}

#[async_trait]
impl ContainerControl for Control {
    async fn wait(&mut self) -> Result<ContainerExit, EngineError> {
        if let Some(exit) = self.exit {
            return Ok(exit);
        }
        let exit = (&mut self.ended).await.map_err(|_| EngineError::Vanished { purpose: self.purpose.clone() })?;
        self.exit = Some(exit);
        Ok(exit)
    }

    async fn kill(&mut self) -> Result<(), EngineError> {
        self.leaving.begin();
        self.kill.cancel();
        Ok(())
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.leaving.begin();
        self.kill.cancel();
    }
}
