//! Messages between the engine and its runtime: values that cross a socket as lines of JSON.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::super::MemoryKill;
use super::super::spec::{ReadOnlyMount, Scratch};
use super::cgroup::Group;

/// The hidden subcommand by which this program becomes the runtime of one container.
pub(super) const RUNTIME_SUBCOMMAND: &str = "container-runtime";

/// Longest line that either side accepts, in bytes.
pub(super) const MAX_LINE: usize = 1 << 20;

/// A container to create.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    /// The directory of unpacked layers, absolute.
    pub(super) unpacked: PathBuf,
    /// Names of the image's layers in it, highest first.
    pub(super) layers: Vec<String>,
    /// Read-only inputs, the init and the door among them.
    pub(super) inputs: Vec<ReadOnlyMount>,
    /// Writable directories.
    pub(super) scratch: Vec<Scratch>,
    /// Control groups to create; empty if none can be created.
    pub(super) groups: Vec<Group>,
    /// The init's arguments, its own name first.
    pub(super) arguments: Vec<String>,
}

/// The runtime's messages: one of the first two, then the last.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub(super) enum Message {
    /// The container's init runs.
    Started,
    /// The container could not be created.
    Failed(Failure),
    /// The container has ended and nothing of it is left.
    Ended {
        /// Exit status, or 128 plus the signal's number if a signal ended it.
        exit_code: i64,
        /// Why the kernel ended a process in it for its memory, as far as its own group tells.
        memory_kill: Option<MemoryKill>,
    },
}

/// A failed step of creating a container.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Failure {
    pub(super) stage: Stage,
    /// The operating system's error number, 0 if there is none.
    pub(super) errno: i32,
    /// The path or value in question.
    pub(super) detail: String,
}

impl Failure {
    pub(super) fn new(stage: Stage, detail: impl Into<String>, error: impl Into<io::Error>) -> Self {
        Self { stage, errno: number_of(&error.into()), detail: detail.into() }
    }
}

/// Returns the operating system's number of an error. An error that names its file hides the number; then its kind is
/// used.
fn number_of(error: &io::Error) -> i32 {
    let by_kind = || match error.kind() {
        io::ErrorKind::NotFound => libc::ENOENT,
        io::ErrorKind::PermissionDenied => libc::EACCES,
        io::ErrorKind::AlreadyExists => libc::EEXIST,
        io::ErrorKind::StorageFull => libc::ENOSPC,
        io::ErrorKind::ReadOnlyFilesystem => libc::EROFS,
        io::ErrorKind::ResourceBusy => libc::EBUSY,
        io::ErrorKind::InvalidInput => libc::EINVAL,
        _ => 0,
    };
    error.raw_os_error().unwrap_or_else(by_kind)
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.stage.words())?;
        if !self.detail.is_empty() {
            write!(f, " ({})", self.detail)?;
        }
        match self.errno {
            0 => Ok(()),
            errno => write!(f, ": {}", io::Error::from_raw_os_error(errno)),
        }
    }
}

/// The steps of creating a container. The header of `inside` gives their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The runtime receives its request.
    Request,
    /// Control groups are created and get their limits.
    Groups,
    /// A process in namespaces of its own is created.
    Namespaces,
    /// Its users are mapped to users outside.
    Users,
    /// The process is moved into the control groups.
    Placement,
    /// Mounts are limited to its namespace.
    Private,
    /// The place for the new root is prepared.
    Staging,
    /// The layers become one tree.
    Layers,
    /// Inputs and scratch are mounted.
    Mounts,
    /// `/dev` is mounted.
    Devices,
    /// `/proc` is mounted.
    Processes,
    /// `/sys` is mounted.
    System,
    /// The process gets its own view of its control groups.
    Accounts,
    /// The host's name is set.
    HostName,
    /// The loopback interface is started.
    Loopback,
    /// The tree becomes the root, and nothing else can be reached.
    Root,
    /// Capabilities are given up.
    Capabilities,
    /// The process becomes the task's user.
    Identity,
    /// No program may regain rights.
    Privileges,
    /// The init is started.
    Init,
}

impl Stage {
    /// Returns the step in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Request => "hearing what to make",
            Self::Groups => "making a control group",
            Self::Namespaces => "making a process in namespaces of its own",
            Self::Users => "mapping users",
            Self::Placement => "moving a process into a control group",
            Self::Private => "keeping mounts private",
            Self::Staging => "mounting a place for the new root",
            Self::Layers => "mounting the layers as one tree",
            Self::Mounts => "mounting an input or scratch",
            Self::Devices => "making /dev",
            Self::Processes => "mounting /proc",
            Self::System => "mounting /sys",
            Self::Accounts => "showing the control groups",
            Self::HostName => "setting the host's name",
            Self::Loopback => "starting the loopback interface",
            Self::Root => "changing the root",
            Self::Capabilities => "giving up capabilities",
            Self::Identity => "becoming the task's user",
            Self::Privileges => "giving up new privileges",
            Self::Init => "starting the init",
        }
    }

    /// Returns the user's remedy for a failure with this error number; `None` if none is known.
    pub fn remedy(self, errno: i32) -> Option<&'static str> {
        match (self, errno) {
            (Self::Namespaces | Self::Identity, libc::ENOSPC | libc::EUSERS) => Some(
                "user namespaces are switched off or used up: `sysctl -w user.max_user_namespaces=15000` (and the \
                 other user.max_*_namespaces)",
            ),
            (Self::Namespaces, libc::EPERM | libc::ENOSYS | libc::EINVAL) => Some(
                "this machine or the container around it forbids user namespaces: `sysctl -w \
                 kernel.unprivileged_userns_clone=1` on Debian's older kernels; in a container, let its seccomp \
                 profile allow clone3 and unshare, or use the outer engine",
            ),
            (Self::Namespaces, libc::EACCES) => Some(
                "AppArmor or SELinux keeps this program from making user namespaces: give it a profile with `userns,`, \
                 or `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` (Ubuntu 23.10 and later)",
            ),
            (Self::Namespaces, libc::EAGAIN) => Some("the limit of this user's processes is met (`ulimit -u`)"),
            (Self::Private | Self::Staging | Self::Mounts | Self::Layers | Self::Users, libc::EACCES) => Some(
                "AppArmor keeps programs in user namespaces from mounting: give this program a profile with `userns,` \
                 or `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` (Ubuntu 23.10 and later); or the data \
                 directory is closed to this user",
            ),
            (Self::Private | Self::Staging | Self::Users, libc::EPERM) => Some(
                "the machine allows user namespaces but gives no rights in them: AppArmor \
                 (kernel.apparmor_restrict_unprivileged_userns), SELinux, or the seccomp profile of a container around \
                 this one",
            ),
            (Self::Layers, libc::EPERM | libc::EINVAL | libc::ENODEV | libc::ENOTSUP) => Some(
                "overlayfs can't be used there: it needs Linux 5.12 or later, and a data directory on a local file \
                 system such as ext4, xfs or btrfs (not NFS or FUSE): name one with `--data-dir`",
            ),
            (Self::Mounts | Self::Devices, libc::ENOSYS) => Some("Linux 5.12 or later is needed (mount_setattr)"),
            (Self::Processes, libc::EPERM) => Some(
                "the container around this one covers parts of its /proc, so a new one can't be mounted: start that \
                 one with an unmasked /proc (`--security-opt systempaths=unconfined`), or use the outer engine",
            ),
            (
                Self::Mounts | Self::Devices | Self::Processes | Self::System | Self::Accounts | Self::Root,
                libc::EPERM | libc::EACCES,
            ) => Some(
                "AppArmor, SELinux or the seccomp profile of a container around this one allows some mounts and not \
                 this one (`dmesg` may name the rule): let this program call mount, umount2, mount_setattr and \
                 pivot_root (`--security-opt apparmor=unconfined` and `--security-opt seccomp=unconfined` of an \
                 outer Docker), or use the outer engine",
            ),
            (
                Self::HostName | Self::Loopback | Self::Capabilities | Self::Identity | Self::Privileges,
                libc::EPERM | libc::EACCES,
            ) => Some(
                "this program has namespaces of its own and is kept from its rights in them, by AppArmor (its profile \
                 needs `userns,`, `capability,` and `network,`), SELinux or the seccomp profile of a container around \
                 this one (which has to allow sethostname, socket, ioctl, prctl, capset, setsid, setresuid and \
                 setresgid): let it have them, or use the outer engine",
            ),
            (Self::Init, libc::EPERM | libc::EACCES) => Some(
                "a container's user has to start this program: let everybody read and execute it (`chmod a+rx`); or \
                 AppArmor, SELinux, fapolicyd or a seccomp profile forbids it (`dmesg` or the audit log may name the \
                 rule)",
            ),
            (Self::Request, libc::EPERM | libc::EACCES) => Some(
                "AppArmor, SELinux or a seccomp profile keeps this program from the socket to its own runtime (`dmesg` \
                 or the audit log may name the rule)",
            ),
            (Self::Groups | Self::Placement, _) => Some(
                "the control groups look writable but are not: run with `--engine native` outside of the container or \
                 service that owns them, or have them delegated (`systemd-run --user --scope -p Delegate=yes`)",
            ),
            (Self::Mounts, libc::ENOENT) => Some("an input vanished; run the command again"),
            (_, libc::ENOSPC | libc::ENOMEM) => Some("the machine is out of memory, mounts or disk"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
