//! A container's specification and its init's program: values that engines and init share.
//!
//! Everything here is data. A [`ContainerSpec`] tells an engine what to set up. Its [`Program`] goes to init on stdin
//! as one line of JSON, and init does its steps in order.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// Version of the program that init reads.
pub const PROGRAM_SCHEMA: u32 = 1;

/// This program's path in the container, where it runs as init.
pub const INIT_PATH: &str = "/testevo/init";

/// The hidden subcommand by which this program becomes a container's init.
pub const INIT_SUBCOMMAND: &str = "container-init";

/// The path of the door's socket in the container.
pub const DOOR_SOCKET: &str = "/testevo/door.sock";

/// User and group of all commands in a container, as images name them.
pub const TASK_USER: u32 = 1000;

/// Returns the content of `/etc/passwd` where the task's user has a number.
pub fn users_file(task: u32) -> String {
    format!(
        "root:x:0:0:root:/root:/bin/bash\n\
         task:x:{task}:{task}:task:/work/home:/bin/bash\n\
         nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    )
}

/// Returns the content of `/etc/group` where the task's group has a number.
pub fn groups_file(task: u32) -> String {
    format!("root:x:0:\ntask:x:{task}:\nnogroup:x:65534:\n")
}

/// Minimum, default and maximum bytes of a TCP socket's two buffers in each container: files below
/// `/proc/sys/net/ipv4`. Equal on all machines, so that no result depends on a machine's tuning.
pub(super) const SOCKET_BUFFERS: [(&str, &str); 2] =
    [("tcp_rmem", "4096 131072 1048576"), ("tcp_wmem", "4096 16384 1048576")];

/// The modification time of every file in a tree, in seconds since 1970, whether from git, a build or a swap. Build
/// tools compare times, so all are equal. Zip archives can't express times before 1980.
pub const TREE_TIME: u64 = 1_000_000_000;

/// The longest program that init accepts, in bytes of JSON.
pub const MAX_PROGRAM_BYTES: usize = 16 << 20;

/// A container to start: image, inputs, limits, and the init's program.
#[derive(Clone, Debug)]
pub struct ContainerSpec {
    /// The container's purpose, in a few words without spaces; a part of its name and of logs.
    pub purpose: String,
    /// The image's config digest.
    pub image: Digest,
    /// Inputs, mounted read-only.
    pub mounts: Vec<ReadOnlyMount>,
    /// The host's Unix socket to which init forwards loopback connections. Only online steps have one. Its mode must
    /// let everyone write, because the container has another user.
    pub door: Option<PathBuf>,
    /// Writable memory-backed directories.
    pub scratch: Vec<Scratch>,
    /// Limits of the container as a whole.
    pub limits: ContainerLimits,
    /// Init's program.
    pub program: Program,
}

/// A file or directory of the host that the container sees read-only.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReadOnlyMount {
    /// Absolute path on the host.
    pub source: PathBuf,
    /// Absolute path in the container.
    pub target: String,
}

/// A tmpfs, `nosuid` and `nodev`, owned by the task's user.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Scratch {
    /// Absolute path in the container.
    pub target: String,
    /// Size in bytes.
    pub size_bytes: u64,
}

/// Limits that the engine enforces on the whole container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ContainerLimits {
    /// Bytes of memory, scratch included. If scratch is nearly as large, a full one ends the container by the memory
    /// limit before any program sees a full disk.
    pub memory_bytes: u64,
    /// Number of whole processors.
    pub cpus: u32,
    /// Number of processes and threads.
    pub processes: u32,
    /// Seconds until the engine ends the container, whatever init reports.
    pub wall_seconds: u64,
}

/// Limits of the whole container that init enforces by its own account, where the engine can't. JSON after the
/// subcommand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitLimits {
    /// As [`ContainerLimits::memory_bytes`].
    pub memory_bytes: Option<u64>,
    /// As [`ContainerLimits::processes`].
    pub processes: Option<u32>,
}

/// The steps of init, in order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Program {
    /// [`PROGRAM_SCHEMA`].
    pub schema: u32,
    /// The loopback port that init forwards to the door; `None` without a door.
    pub door_port: Option<u16>,
    /// The steps.
    pub steps: Vec<Step>,
}

/// One step of init. Init reports every step by its index. A failed step ends the program, unless it is a [`Step::Run`]
/// with `required: false`.
///
/// No path of a step may pass through a symbolic link or contain `..`, because files that a command left are hostile. A
/// step that such files prevent is [`StepResult::Refused`] and does not end the program.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    /// Unpacks a tar archive (no compression; directories, regular files, symbolic links) into a directory, which is
    /// created. Every entry has the archive's permissions and time and replaces an existing one.
    Unpack {
        /// The archive, absolute.
        archive: String,
        /// The directory, absolute.
        into: String,
    },
    /// Unpacks the next archive that follows the program on init's stdin, as [`Step::Unpack`] does. No path leads to it, so no
    /// command can look at it.
    UnpackInput {
        /// The archive's length.
        bytes: u64,
        /// The directory, absolute.
        into: String,
    },
    /// Removes a file or a directory tree. A missing one is no error.
    Remove {
        /// Absolute.
        path: String,
    },
    /// Removes everything in a directory, but not the directory itself. A missing one is no error.
    Empty {
        /// Absolute.
        path: String,
    },
    /// Creates a directory and its parents.
    MakeDirectory {
        /// Absolute.
        path: String,
    },
    /// Writes a small file.
    Write {
        /// Absolute path. Parents are created, and an existing file is replaced.
        path: String,
        /// UTF-8 content.
        content: String,
    },
    /// Runs a command to its end, then ends every process that it started.
    Run(Command),
    /// Runs a command as [`Step::Run`] does, with all later bytes of init's stdin as the command's standard input. Init
    /// sends the command's output at once. At most one step of a program may be this, and none before it a
    /// [`Step::UnpackInput`].
    Converse(Command),
    /// Sends a regular file's bytes. Anything else is refused. A missing file is reported, and no error.
    SendFile {
        /// Absolute.
        path: String,
        /// Further bytes are cut off and reported as cut.
        max_bytes: u64,
    },
    /// Sends the paths of all regular files below a directory, relative, sorted, each ended by a zero byte.
    SendListing {
        /// Absolute.
        root: String,
        /// A listing of more files is cut, and the number of all files reported.
        max_files: u64,
    },
    /// Sends a directory as a tar archive (sorted, numeric owners, all of [`TREE_TIME`]). Sockets, pipes and devices
    /// are left out.
    SendArchive {
        /// Absolute.
        root: String,
        /// A larger archive is refused.
        max_bytes: u64,
    },
}

/// A command that init runs as the task's user.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Command {
    /// Program and arguments; the program is absolute or looked up in `PATH` of `environment`.
    pub argv: Vec<String>,
    /// The whole environment; nothing is inherited.
    pub environment: Vec<(String, String)>,
    /// Absolute.
    pub working_directory: String,
    /// Limits of this command.
    pub limits: CommandLimits,
    /// Whether file descriptor 3 is a pipe whose bytes init sends as [`Stream::Events`].
    pub events: bool,
    /// Whether any end except exit status 0 ends the program. Being skipped does not.
    pub required: bool,
    /// The command is skipped, and reported so, unless the earlier step with this index ended with exit status 0.
    pub only_after_success_of: Option<usize>,
}

/// Limits that init enforces on one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CommandLimits {
    /// Seconds of wall time.
    pub wall_seconds: u64,
    /// Seconds of processor time, over all processes.
    pub cpu_seconds: u64,
    /// The most bytes of each of stdout, stderr and events. Further bytes are counted and dropped, and the command
    /// continues.
    pub output_bytes: u64,
    /// The command is ended when all its streams together exceed this number of bytes.
    pub flood_bytes: u64,
}

/// A stream of a step's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// The command's standard output.
    Stdout,
    /// The command's standard error.
    Stderr,
    /// The command's file descriptor 3.
    Events,
    /// A file, listing or archive.
    Content,
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepReport {
    /// Index in the program.
    pub index: usize,
    /// The step's result.
    pub result: StepResult,
    /// Wall time in milliseconds.
    pub wall_ms: u64,
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum StepResult {
    /// A step other than a command was done.
    Done,
    /// The file or directory to send does not exist.
    Absent,
    /// The file or listing was longer than allowed and was cut.
    Cut {
        /// The file's whole size in bytes, or the listing's in files.
        size: u64,
    },
    /// The requested content can't be sent: a symbolic link, no regular file, unreadable, too deep or too large.
    Refused {
        /// The reason, with the path.
        reason: String,
    },
    /// The command was not started, because the step it depends on failed.
    Skipped,
    /// The command ended.
    Ended(CommandEnd),
    /// Init could not do the step because of our fault or a full scratch.
    Failed {
        /// The reason, with the path.
        error: String,
        /// The operating system's error number, if there is one (28: no space left).
        errno: Option<i32>,
    },
}

/// How a whole program ended, init's last message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum ProgramEnd {
    /// Every step was done, skipped, or failed without being required.
    Completed,
    /// A required step failed.
    Stopped {
        /// Its index.
        step: usize,
    },
    /// Init could not begin; no step was tried.
    Rejected {
        /// The reason.
        reason: String,
    },
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandEnd {
    /// Exit status; `None` if the command did not exit by itself.
    pub exit_code: Option<i32>,
    /// The signal that ended the command.
    pub signal: Option<i32>,
    /// The limit for which init ended the command.
    pub limit: Option<LimitReached>,
    /// Processor time of the command and its children, in milliseconds.
    pub cpu_ms: u64,
    /// Largest resident size of one of its processes, in bytes.
    pub peak_resident_bytes: u64,
    /// Bytes dropped, all streams together.
    pub dropped_bytes: u64,
    /// Processes other than the command's own that were still alive at its end and were killed.
    pub leftover_processes: u32,
    /// How often the command reached the container's process limit (forks were refused); `None` if unknown.
    pub process_limit_hits: Option<u64>,
    /// How many processes the container's memory limit ended while the command ran; `None` if unknown.
    pub memory_limit_kills: Option<u64>,
}

/// A limit for which init ended a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitReached {
    /// Wall time.
    Wall,
    /// Processor time.
    Cpu,
    /// Output.
    Output,
}
