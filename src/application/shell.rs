//! `workspace --shell`: a sealed container with one task's workspace and the tools of agents, and a shell in it.
//!
//! The shell runs under `relay.py`, which talks to this module in frames. The container and all that it says are hostile: frames
//! are bounded, and of its files only the target file comes back.

mod opening;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;

use self::opening::Opening;
pub use self::opening::Origin;
use super::Context;
use super::io_failure::IoFailure;
use super::workbench::Workbench;
use crate::agent::AgentError;
use crate::agent::collection::Target;
use crate::engine::session::conversation::Conversation;
use crate::engine::spec::{
    Command, CommandLimits, ContainerLimits, ContainerSpec, PROGRAM_SCHEMA, Program, ReadOnlyMount, Scratch, Step,
};
use crate::error::{CommandError, ExitStatus, Failure};
use crate::execution::container::limits::ExecutionLimits;
use crate::execution::container::places::{PROJECT, TREE};
use crate::execution::container::temporary::Spool;
use crate::image::{agent_environment, agent_tag};
use crate::output::escape;
use crate::submission::MOST_FILE_BYTES;

/// The program in the container that runs the shell.
const RELAY: &str = include_str!("shell/relay.py");
/// Where the container has a script.
const SCRIPT: &str = "/tmp/script.sh";
/// Seconds after which a shell ends: a working day and a night.
const LIFE_SECONDS: u64 = 24 * 3600;
/// The same, and some time for the container to end by itself.
const LIFE: Duration = Duration::from_secs(LIFE_SECONDS + 60);
/// Why a file can't be a prediction.
const NO_TEXT: &str = "it is not UTF-8, and a line of JSON can't hold it";
/// The longest frame that is accepted, in bytes.
const MOST_FRAME: usize = MOST_FILE_BYTES + 1;
/// The largest script, in bytes.
pub const MOST_SCRIPT_BYTES: usize = 1 << 20;
/// Terminals that the image can describe; any other one becomes the first.
const TERMINALS: [&str; 9] = [
    "xterm-256color",
    "xterm",
    "screen",
    "screen-256color",
    "tmux",
    "tmux-256color",
    "linux",
    "vt100",
    "rxvt-unicode-256color",
];

/// Why a shell did not work as one.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// The container said something that the relay does not say.
    #[error("the shell's container sent an unknown message")]
    Garbled,
    /// The user's terminal could not be read or written.
    #[error("the terminal can't be used: {0}")]
    Terminal(io::Error),
    /// The prediction could not be written.
    #[error("the prediction can't be written to `{path}`: {source}")]
    Save {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A script is too large.
    #[error("the script on stdin has more than {MOST_SCRIPT_BYTES} bytes")]
    ScriptTooLarge,
}

impl Failure for ShellError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Garbled | Self::Terminal(_) | Self::Save { .. } => ExitStatus::Infrastructure,
            Self::ScriptTooLarge => ExitStatus::Usage,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Garbled => "a command in the shell may have written to its descriptor 3; start a new shell",
            Self::Terminal(_) => "run it on a terminal, or with a script on stdin",
            Self::Save { .. } => "check permissions and free space",
            Self::ScriptTooLarge => "put its data elsewhere: the shell sees the task's workspace",
        };
        Some(hint.to_owned())
    }
}

/// Takes over a terminal.
pub type Begin = Box<dyn FnOnce() -> io::Result<UnboundedReceiver<Typed>> + Send>;

/// What a shell runs.
pub enum Session {
    /// What a user types on a terminal.
    Terminal {
        /// Rows and columns at first.
        size: (u16, u16),
        /// The terminal's kind, as `TERM` has it.
        kind: String,
        /// Called once the shell is there; gives what the user does from then on.
        begin: Begin,
    },
    /// A script without a terminal.
    Script(String),
}

/// What the user of a terminal does.
#[derive(Debug)]
pub enum Typed {
    /// Bytes.
    Bytes(Vec<u8>),
    /// Another size of the window: rows and columns.
    Size(u16, u16),
}

/// Where a shell's bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The terminal, or a script's standard output.
    Standard,
    /// A script's standard error.
    Error,
}

/// How a shell ended.
#[derive(Debug)]
pub struct Ended {
    /// The task and its target file.
    pub target: Target,
    /// The shell's exit status; negative for a signal.
    pub status: i32,
    /// The target file's text; `None` if there is none.
    pub text: Option<String>,
}

/// Opens a shell on one task and returns when it ends. `write` takes its output.
///
/// # Errors
/// [`CommandError::Usage`] for several tasks and where there are no tools of agents; [`ShellError`];
/// [`AgentError::Refused`] for a target file that can't be a prediction; errors of sources, bundles, images and engines.
pub async fn open(
    origin: Origin<'_>,
    session: Session,
    context: &Context,
    write: impl FnMut(Output, &[u8]) -> io::Result<()>,
) -> Result<Ended, CommandError> {
    if matches!(&session, Session::Script(text) if text.len() > MOST_SCRIPT_BYTES) {
        return Err(ShellError::ScriptTooLarge.into());
    }
    let workbench = Workbench::open(context)?;
    let spool =
        Spool::create(&workbench.data_dir.temporary()).map_err(IoFailure::of("making a temporary directory"))?;
    let opening = Opening::of(origin, &workbench, spool.path()).await?;
    let Opening { target, image, .. } = &opening;
    let engine = workbench.engine().await?;
    let talked = async {
        workbench.load_as(engine.as_ref(), image, &agent_tag(image, &opening.repository)).await?;
        let spec = container(&opening, &session);
        let conversation = Conversation::open(engine.as_ref(), &spec).await?;
        Talk { conversation, write }.hold(session).await
    };
    let talked = context.until_interrupted(talked).await;
    engine.close().await?;
    let Left { status, file } = talked?;
    let refused = |reason: String| {
        let (path, task) = (target.file.clone(), target.task.clone());
        AgentError::Refused { task, path, reason }
    };
    let text = match file {
        LeftFile::Absent => None,
        LeftFile::Unusable(reason) => return Err(refused(reason).into()),
        LeftFile::Bytes(bytes) => Some(String::from_utf8(bytes).map_err(|_| refused(NO_TEXT.to_owned()))?),
    };
    Ok(Ended { target: opening.target, status, text })
}

fn container(opening: &Opening, session: &Session) -> ContainerSpec {
    let limits = ExecutionLimits::from(&opening.limits);
    let work = "/work".to_owned();
    let mut steps = vec![Step::Unpack { archive: TREE.to_owned(), into: work.clone() }];
    let mut variables = agent_environment(opening.jdk);
    variables.push(("USER".to_owned(), "task".to_owned()));
    let (mode, argument) = match session {
        Session::Terminal { size: (rows, columns), kind, .. } => {
            let kind = TERMINALS.into_iter().find(|known| known == kind).unwrap_or(TERMINALS[0]);
            variables.push(("TERM".to_owned(), kind.to_owned()));
            variables.push(("PS1".to_owned(), "\\w\\$ ".to_owned()));
            ("terminal", format!("{rows}x{columns}"))
        }
        Session::Script(content) => {
            steps.push(Step::Write { path: SCRIPT.to_owned(), content: content.clone() });
            ("script", SCRIPT.to_owned())
        }
    };
    let (target, most) = (format!("{PROJECT}/{}", opening.target.file), MOST_FILE_BYTES.to_string());
    let argv = ["/usr/bin/python3", "-c", RELAY, mode, &argument, &target, &most].map(str::to_owned);
    steps.push(Step::Converse(Command {
        argv: argv.into(),
        environment: variables,
        working_directory: PROJECT.to_owned(),
        limits: CommandLimits {
            wall_seconds: LIFE_SECONDS,
            cpu_seconds: LIFE_SECONDS * u64::from(limits.compile.cpus),
            output_bytes: u64::MAX,
            flood_bytes: u64::MAX,
        },
        events: true,
        required: true,
        only_after_success_of: None,
    }));
    ContainerSpec {
        purpose: "shell".to_owned(),
        image: opening.image.config_digest,
        mounts: vec![ReadOnlyMount { source: opening.archive.clone(), target: TREE.to_owned() }],
        door: None,
        scratch: vec![
            Scratch { target: work, size_bytes: limits.compile_scratch_bytes },
            Scratch { target: "/tmp".to_owned(), size_bytes: limits.compile_scratch_bytes / 4 },
        ],
        limits: ContainerLimits { wall_seconds: LIFE_SECONDS, ..limits.compile },
        program: Program { schema: PROGRAM_SCHEMA, door_port: None, steps },
    }
}

/// What a shell left.
struct Left {
    status: i32,
    file: LeftFile,
}

/// The target file that a shell left.
enum LeftFile {
    Absent,
    Unusable(String),
    Bytes(Vec<u8>),
}

/// The conversation with the relay.
struct Talk<W> {
    conversation: Conversation,
    write: W,
}

impl<W: FnMut(Output, &[u8]) -> io::Result<()>> Talk<W> {
    /// Talks until the shell has ended.
    async fn hold(mut self, session: Session) -> Result<Left, CommandError> {
        let mut begin = match session {
            Session::Terminal { begin, .. } => Some(begin),
            Session::Script(_) => None,
        };
        let (mut input, mut file) = (None::<UnboundedReceiver<Typed>>, LeftFile::Absent);
        loop {
            let typed = async {
                match &mut input {
                    Some(input) => input.recv().await,
                    None => std::future::pending().await,
                }
            };
            let head = tokio::select! {
                // Keys come before whatever the shell still writes, such as one that interrupts it.
                biased;
                typed = typed => {
                    match typed {
                        Some(typed) => self.conversation.say(&frame_of(&typed)).await?,
                        None => input = None,
                    }
                    continue;
                }
                head = self.conversation.hear(5, LIFE) => head?,
            };
            let length = head[1..].iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
            if length > MOST_FRAME {
                return Err(ShellError::Garbled.into());
            }
            let bytes = self.conversation.hear(length, LIFE).await?;
            match head[0] {
                // Until the relay has said something, init may still be reading.
                b'r' => input = begin.take().map(|begin| begin()).transpose().map_err(ShellError::Terminal)?,
                b'o' => (self.write)(Output::Standard, &bytes).map_err(CommandError::Output)?,
                b'e' => (self.write)(Output::Error, &bytes).map_err(CommandError::Output)?,
                b't' => file = LeftFile::Bytes(bytes),
                b'n' if bytes.is_empty() => file = LeftFile::Absent,
                b'n' => file = LeftFile::Unusable(escape(&String::from_utf8_lossy(&bytes)).into_owned()),
                b'x' => {
                    let status = std::str::from_utf8(&bytes).ok().and_then(|text| text.parse().ok());
                    return Ok(Left { status: status.ok_or(ShellError::Garbled)?, file });
                }
                _ => return Err(ShellError::Garbled.into()),
            }
        }
    }
}

/// Returns the relay's frame for what a user did.
fn frame_of(typed: &Typed) -> Vec<u8> {
    let size;
    let (kind, bytes): (_, &[u8]) = match typed {
        Typed::Bytes(bytes) => (b'i', bytes),
        Typed::Size(rows, columns) => {
            size = [rows.to_be_bytes(), columns.to_be_bytes()].concat();
            (b'w', &size)
        }
    };
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    [&[kind][..], &length.to_be_bytes(), bytes].concat()
}

#[cfg(test)]
mod tests;
