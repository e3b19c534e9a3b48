//! Errors between the host and a container. Failures inside a container are results, not errors.

use std::io;
use std::path::PathBuf;

use super::frame::FrameError;
use super::native::Stage;
use super::spec::TASK_USER;
use crate::artifact::store::StoreError;
use crate::digest::Digest;
use crate::error::{ExitStatus, Failure};

/// A fault of the engine or of its inputs, never of the commands in a container.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// No daemon answered.
    #[error("no container engine answers at {}", .tried.join(" or "))]
    Unreachable {
        /// The tried addresses, each with its error.
        tried: Vec<String>,
    },
    /// The daemon's address can't be used.
    #[error("the engine's address `{address}` is no Unix socket (unix:///path)")]
    Address {
        /// The requested address.
        address: String,
    },
    /// The daemon answers but can't be used.
    #[error("the engine at {address} can't be used: {reason}")]
    Unfit {
        /// Its address.
        address: String,
        /// The reason.
        reason: String,
    },
    /// The daemon refused an operation that has no variant of its own.
    #[error("the engine could not {operation}: {source}")]
    Daemon {
        /// The operation, such as `list containers`.
        operation: &'static str,
        /// Its answer.
        source: Box<bollard::errors::Error>,
    },
    /// The image is not loaded.
    #[error("image {image} is not known to the engine")]
    ImageMissing {
        /// Its config digest.
        image: Digest,
    },
    /// The engine accepted the archive but does not have the image afterwards.
    #[error("image {image} was loaded, but the engine does not find it by any digest or name; it answered: {answer}")]
    ImageNotLoaded {
        /// Its config digest.
        image: Digest,
        /// The end of the engine's answer.
        answer: String,
    },
    /// A file or directory to mount can't be used.
    #[error("`{path}` can't be mounted into a container: {source}")]
    Mount {
        /// The file or directory on the host.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A blob to mount does not have the bytes of its name.
    #[error(transparent)]
    Blob(#[from] StoreError),
    /// A file or directory to mount is closed to the container's user.
    #[error("`{path}` can't be read by a container's user: its mode is {mode:o}")]
    MountClosed {
        /// The file or directory on the host.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A file or directory exists on this machine but not on the daemon's.
    #[error("`{path}` exists, but not for the engine: {message}")]
    MountElsewhere {
        /// The file or directory on the host.
        path: PathBuf,
        /// The engine's answer.
        message: String,
    },
    /// This program's own file was removed or replaced, or it can't serve as init.
    #[error("this program can't be given to containers as their init: {reason}")]
    InitFile {
        /// The reason.
        reason: String,
    },
    /// The daemon refused to make the container.
    #[error("the engine refused to make the container for {purpose}: {message}")]
    CreateRefused {
        /// [`ContainerSpec::purpose`](super::spec::ContainerSpec::purpose).
        purpose: String,
        /// The engine's answer.
        message: String,
    },
    /// The container was made but did not start.
    #[error("the container for {purpose} could not be started: {message}")]
    StartFailed {
        /// [`ContainerSpec::purpose`](super::spec::ContainerSpec::purpose).
        purpose: String,
        /// The engine's answer.
        message: String,
    },
    /// The engine can't enforce a required limit.
    #[error("strict isolation is required, and the engine `{engine}` can't enforce: {}", .missing.join(", "))]
    Isolation {
        /// The engine's name.
        engine: String,
        /// Limits, by name.
        missing: Vec<String>,
    },
    /// A step of making a container failed.
    #[error("the container for {purpose} could not be made: {message}")]
    NativeStep {
        /// [`ContainerSpec::purpose`](super::spec::ContainerSpec::purpose).
        purpose: String,
        /// The step.
        stage: Stage,
        /// The operating system's error number, 0 if there is none.
        errno: i32,
        /// The step, its object, and its error.
        message: String,
    },
    /// The built-in engine's unpacked layers can't be used.
    #[error("{doing} failed: {source}")]
    Layers {
        /// The failed operation.
        doing: String,
        /// The cause.
        source: io::Error,
    },
    /// An unpacked layer is damaged while another process runs containers from it.
    #[error("the unpacked layer {layer} is damaged, and another process may run containers from `{file}`")]
    LayerDamaged {
        /// Its diff id.
        layer: Digest,
        /// Its tree.
        file: PathBuf,
    },
    /// A layer was damaged since the image was loaded.
    #[error("image {image} is damaged in the built-in engine: `{file}`")]
    ImageDamaged {
        /// Its config digest.
        image: Digest,
        /// A damaged file of the layer.
        file: PathBuf,
    },
    /// The connection to the container broke while it ran.
    #[error("the connection to the container for {purpose} broke: {reason}")]
    AttachLost {
        /// [`ContainerSpec::purpose`](super::spec::ContainerSpec::purpose).
        purpose: String,
        /// The cause.
        reason: String,
    },
    /// Another program removed the container.
    #[error("the container for {purpose} vanished")]
    Vanished {
        /// [`ContainerSpec::purpose`](super::spec::ContainerSpec::purpose).
        purpose: String,
    },
    /// The kernel ended a process that kept the container's limit of memory.
    #[error(
        "the machine, or the job that this program runs in, had no memory left for {purpose}: a process was ended that kept its limit"
    )]
    ShortOfMemory {
        /// [`ContainerSpec::purpose`](super::spec::ContainerSpec::purpose).
        purpose: String,
    },
    /// Init's output breaks the protocol.
    #[error("the init of the container for {purpose} is not of this version: {source}")]
    Frames {
        /// [`ContainerSpec::purpose`](super::spec::ContainerSpec::purpose).
        purpose: String,
        /// The violation.
        source: FrameError,
    },
    /// Init sent more than its program allows.
    #[error("the init of the container for {purpose} sent more than its program allows ({what})")]
    TooMuch {
        /// [`ContainerSpec::purpose`](super::spec::ContainerSpec::purpose).
        purpose: String,
        /// The kind of output.
        what: String,
    },
    /// The program is longer than init accepts.
    #[error("the program for {purpose} is {length} bytes long, more than an init takes")]
    ProgramTooLong {
        /// [`ContainerSpec::purpose`](super::spec::ContainerSpec::purpose).
        purpose: String,
        /// Its length in bytes.
        length: usize,
    },
    /// An archive for a container could not be read.
    #[error("`{path}`, an archive for a container, could not be read: {source}")]
    Archive {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Output could not be written to the host's disk.
    #[error("a container's output could not be kept: {0}")]
    Spool(#[source] io::Error),
    /// The program can't be serialised.
    #[error("the program for a container could not be written as JSON: {0}")]
    Program(#[from] serde_json::Error),
}

impl Failure for EngineError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::ImageMissing { .. }
            | Self::ImageNotLoaded { .. }
            | Self::ImageDamaged { .. }
            | Self::LayerDamaged { .. } => ExitStatus::Mismatch,
            Self::Archive { .. } | Self::Spool(_) => ExitStatus::Infrastructure,
            Self::Blob(error) => error.exit_status(),
            _ => ExitStatus::Engine,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Unreachable { .. } => Some(
                "start Docker or Podman (its socket must be open to this user: group `docker`, or the user's own \
                 podman.socket), or name the socket in DOCKER_HOST; `doctor` shows what was found",
            ),
            Self::Address { .. } => {
                Some("containers mount files of this machine, so only an engine on a local Unix socket can be used")
            }
            Self::Unfit { .. } => Some("`doctor` lists what the engine offers"),
            Self::ImageMissing { .. } => Some("run `build-images` for its repository"),
            Self::ImageNotLoaded { .. } => {
                Some("is the engine's disk full? `--engine native` runs containers without a daemon")
            }
            Self::Blob(error) => return error.hint(),
            Self::MountClosed { .. } => Some("let others read it and everything in it (chmod -R o+rX)"),
            Self::MountElsewhere { .. } => Some(
                "the engine runs on another machine, in a virtual machine or in another container: it must see the \
                 data directory and this program under the same paths",
            ),
            Self::ImageDamaged { .. } => Some("run the command again: it unpacks damaged layers anew"),
            Self::LayerDamaged { .. } => {
                Some("end other commands of the data directory and run this one again: it unpacks damaged layers anew")
            }
            Self::InitFile { .. } => Some("do not replace the program while it runs; start it again"),
            Self::AttachLost { .. } | Self::Vanished { .. } => {
                Some("was the engine restarted, or its containers pruned, meanwhile? run the command again")
            }
            Self::ShortOfMemory { .. } => Some(
                "lower `--jobs`, or give the job more memory (`memory` below [slurm] in settings.toml): each task's container may \
                 use as much as its repository's manifest says",
            ),
            Self::NativeStep { stage, errno, .. } => {
                // `doctor` prints this hint too, so the hint does not refer to `doctor`.
                stage.remedy(*errno).or(Some(
                    "the kernel's log (`dmesg`) may say what is in the way; `--engine docker` and `--engine podman` do \
                     without this step",
                ))
            }
            Self::Isolation { .. } => Some(
                "use an engine with root's rights, or have control groups delegated (`systemd-run --user --scope -p \
                 Delegate=yes`); `doctor` says what is missing",
            ),
            Self::Layers { .. } => Some("check the data directory's permissions and free space"),
            Self::Archive { .. } => Some("did another program clear the data directory's `tmp`? run the command again"),
            Self::Spool(_) => Some("is the disk of the data directory full?"),
            Self::StartFailed { message, .. } if lacks_users(message) => Some(
                "the daemon's user has no second user for containers: install uidmap and give it a range \
                 (`usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER`, then `podman system migrate`), \
                 or use `--engine native`",
            ),
            Self::StartFailed { message, .. } if refuses_hybrid_groups(message) => Some(
                "Podman's runtime works with control groups of version 2 alone: have Podman use runc (`runtime = \"runc\"` below \
                 `[engine]` in containers.conf), or use `--engine native`",
            ),
            Self::Daemon { .. } | Self::CreateRefused { .. } | Self::StartFailed { .. } => Some(
                "these are the engine's own words, and its log may say more; another engine may do it (`--engine`)",
            ),
            Self::Mount { .. } => Some("is the file still there? check that this user may read it"),
            Self::Frames { .. } | Self::TooMuch { .. } => {
                Some("run the command again with this build of the program alone; if it stays, try another engine")
            }
            Self::ProgramTooLong { .. } => {
                Some("report it: the test file or its arguments are longer than this program foresees")
            }
            Self::Program(_) => Some("report it: this is an error of the program"),
        };
        hint.map(str::to_owned)
    }
}

/// Tells whether a daemon could not start a container because its user has no further users to assign. Which step fails
/// first depends on the runtime.
fn lacks_users(message: &str) -> bool {
    let task = format!("uid={TASK_USER},gid={TASK_USER}");
    // runc writes it in lower case. A runtime in C writes it as the C library does.
    let message = message.to_ascii_lowercase();
    let owner = message.contains(&task) && message.contains("invalid argument");
    owner || message.contains("unable to setup user: invalid argument")
}

/// Tells whether a container could not be started because crun supports only one version of control groups at a time.
fn refuses_hybrid_groups(message: &str) -> bool {
    message.contains("cgroups in hybrid mode not supported")
}

#[cfg(test)]
mod tests;
