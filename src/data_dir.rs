//! The data directory: everything that outlives a command, and how processes share it.
//!
//! [`parts::PARTS`] lists its content.
//!
//! Several processes may use one directory, even from several namespaces and machines. Each holds a lock in its part of
//! `tmp` as long as it lives. [`DataDir::sweep`] removes only parts without a locked owner.

pub mod parts;
pub mod shared;
pub mod size;
mod temporary;

use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use self::parts::{PARTS, Part, Sweep};
use self::shared::{is_gone, lacks_locks};
use crate::error::{ExitStatus, Failure};
use crate::umask::Umask;

const VERSION: &str = "1";

/// Errors of a data directory.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// A file could not be read or written.
    #[error("the data directory `{path}` could not be used: {source}")]
    Io {
        /// The directory.
        path: PathBuf,
        /// The cause; it names the file.
        source: io::Error,
    },
    /// Its file system has no locks.
    #[error("the data directory `{path}` lies on a file system without locks")]
    NoLocks {
        /// The directory.
        path: PathBuf,
    },
    /// A newer program wrote it.
    #[error("the data directory `{path}` has version `{found}`, this program knows version {VERSION}")]
    UnknownVersion {
        /// The directory.
        path: PathBuf,
        /// The content of its `version` file.
        found: String,
    },
}

impl Failure for DataDirError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Io { .. } | Self::NoLocks { .. } => ExitStatus::Infrastructure,
            Self::UnknownVersion { .. } => ExitStatus::Mismatch,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Io { source, .. } if is_gone(source) => shared::GONE_HINT,
            Self::NoLocks { .. } => {
                "let one command at a time work there, with a data directory on a disk of this machine; shards on a cluster need no \
                 locks with `scratch` (docs/slurm.md)"
            }
            Self::Io { .. } => "check its permissions and free space, or name another directory with `--data-dir`",
            Self::UnknownVersion { .. } => "use the program that wrote it, or name another directory with `--data-dir`",
        };
        Some(hint.to_owned())
    }
}

/// An open data directory.
#[derive(Clone, Debug)]
pub struct DataDir {
    root: PathBuf,
    owner: Owner,
    temporary: PathBuf,
}

impl DataDir {
    /// Opens the directory, creates it if missing, and removes unfinished files of dead owners.
    ///
    /// # Errors
    /// [`DataDirError`].
    pub fn open(root: &Path) -> Result<Self, DataDirError> {
        let absolute = std::path::absolute(root);
        let io = |source| DataDirError::Io { path: root.to_owned(), source };
        let root = absolute.map_err(io)?;
        let io = |source| DataDirError::Io { path: root.clone(), source };
        // Read first: where the file system is gone, the error says so.
        let version = root.join("version");
        match fs::read_to_string(&version) {
            Ok(found) if found.trim() == VERSION => {}
            Ok(found) => {
                return Err(DataDirError::UnknownVersion {
                    path: root,
                    found: found.trim().chars().take(40).collect(),
                });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(&root).map_err(io)?;
                write_atomically(&version, format!("{VERSION}\n").as_bytes()).map_err(io)?;
            }
            Err(error) => return Err(io(error)),
        }
        for part in PARTS.iter().filter(|part| part.made_on_opening) {
            fs::create_dir_all(root.join(part.path.trim_end_matches("/*"))).map_err(io)?;
        }
        let owner = Owner::current().map_err(io)?;
        PARTS.iter().for_each(|part| sweep(&root, part));
        let temporary = temporary::open(&root.join("tmp"), &owner).map_err(io)?;
        Ok(Self { root, owner, temporary })
    }

    /// Returns the directory's absolute path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns `root/part`.
    pub fn join(&self, part: impl AsRef<Path>) -> PathBuf {
        self.root.join(part)
    }

    /// Returns this process's own directory for temporary files.
    pub fn temporary(&self) -> PathBuf {
        self.temporary.clone()
    }

    /// Returns this process's identity, which distinguishes its things from those of dead owners.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Removes this process's temporary files at its normal end. After a kill, [`DataDir::sweep`] removes them.
    ///
    /// # Errors
    /// I/O errors of removing them.
    pub fn remove_temporary(&self) -> io::Result<()> {
        temporary::remove(&self.temporary)
    }

    /// Removes directories of dead processes in `tmp` and returns their number. Failures to remove are logged.
    ///
    /// # Errors
    /// I/O errors of listing `tmp`.
    pub fn sweep(&self) -> io::Result<usize> {
        temporary::sweep(&self.root.join("tmp"))
    }

    /// Takes the lock `name`, and waits if another process has it. Then `waiting` is called once with that process.
    ///
    /// # Errors
    /// [`DataDirError::NoLocks`], [`DataDirError::Io`].
    pub fn lock(&self, name: &str, waiting: impl FnOnce(&str)) -> Result<HeldLock, DataDirError> {
        // Lock files outlive their owners, so their directory is not swept.
        let directory = self.root.join("locks/.held");
        let path = directory.join(format!("{name}.flock"));
        let io = |source| DataDirError::Io { path: self.root.clone(), source };
        fs::create_dir_all(&directory).map_err(io)?;
        let file =
            fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(errno) if lacks_locks(errno) => return Err(DataDirError::NoLocks { path: self.root.clone() }),
            Err(Errno::WOULDBLOCK | Errno::INTR) => {
                let owner = fs::read_to_string(&path).unwrap_or_default();
                // The owner may hold the lock without having written its number yet.
                waiting(Some(owner.trim()).filter(|owner| !owner.is_empty()).unwrap_or("another process"));
                flock(&file, FlockOperation::LockExclusive).map_err(|error| io(error.into()))?;
            }
            Err(errno) => return Err(io(errno.into())),
        }
        // The number is only for waiting processes. The kernel releases the lock with its owner.
        fs::write(&path, format!("process {}\n", self.owner.pid)).map_err(io)?;
        Ok(HeldLock { _file: file })
    }
}

/// Removes unfinished files of dead owners in a part. Failures are logged, because files may belong to another user.
fn sweep(root: &Path, part: &Part) {
    let logged = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => tracing::debug!("what dead processes left can't be looked for: {error}"),
        _ => tracing::warn!("what dead processes left in `{}` can't be looked for: {error}", part.path),
    };
    let directories = directories(root, part.path).unwrap_or_else(|error| {
        logged(error);
        Vec::new()
    });
    for directory in directories {
        let swept = match part.sweep {
            Sweep::Files => temporary::sweep_unfinished(&directory),
            Sweep::Owners => temporary::sweep(&directory).map(drop),
            Sweep::Itself => Ok(()),
        };
        swept.unwrap_or_else(logged);
    }
}

/// Returns the directories that a part's path stands for. A path without `*` is returned even if it does not exist.
///
/// # Errors
/// I/O errors of listing a directory.
pub fn directories(root: &Path, path: &str) -> io::Result<Vec<PathBuf>> {
    let Some((above, below)) = path.split_once("/*") else { return Ok(vec![root.join(path)]) };
    let entries = match fs::read_dir(root.join(above)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut directories = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            directories.push(entry.path().join(below.trim_start_matches('/')));
        }
    }
    Ok(directories)
}

/// A lock that ends when this value or the process does.
#[must_use = "the lock ends with this value"]
#[derive(Debug)]
pub struct HeldLock {
    _file: fs::File,
}

/// A process. Its start time and the machine's boot distinguish it from later ones with the same number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pid: u32,
    start_time: u64,
    boot: String,
}

impl Owner {
    /// Returns this process.
    ///
    /// # Errors
    /// I/O errors of reading `/proc`.
    pub fn current() -> io::Result<Self> {
        let pid = std::process::id();
        let start_time = start_time_of(pid)?.ok_or_else(|| io::Error::other("this process is not in /proc"))?;
        Ok(Self { pid, start_time, boot: boot()? })
    }

    /// Parses the output of [`Owner`]'s `Display`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '-');
        let pid = parts.next()?.parse().ok()?;
        let start_time = parts.next()?.parse().ok()?;
        let boot = parts.next()?.to_owned();
        Some(Self { pid, start_time, boot })
    }

    /// Tells whether the process was started since this machine's last boot.
    pub fn is_of_this_boot(&self) -> bool {
        boot().is_ok_and(|boot| boot == self.boot)
    }

    /// Tells whether the process still runs.
    pub fn is_alive(&self) -> bool {
        // If `/proc` or the boot id can't be read, no process counts as dead.
        boot().map_or(true, |boot| boot == self.boot)
            && start_time_of(self.pid).map_or(true, |start| start == Some(self.start_time))
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}-{}", self.pid, self.start_time, self.boot)
    }
}

/// Returns a part of the boot id, which is new for each boot of the machine.
pub(crate) fn boot() -> io::Result<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(id.trim().chars().filter(char::is_ascii_hexdigit).take(12).collect())
}

/// Returns the process's start time in clock ticks since boot; `None` if it does not exist or is a zombie.
fn start_time_of(pid: u32) -> io::Result<Option<u64>> {
    let stat = match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // A process that ends during the read gives ESRCH.
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(None),
        Err(error) => return Err(error),
    };
    // The second field is the command's name in parentheses. It may contain anything, so fields count from its end.
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    if matches!(fields.first(), Some(&"Z") | Some(&"X")) {
        return Ok(None);
    }
    Ok(fields.get(19).and_then(|ticks| ticks.parse().ok()))
}

/// Writes a file so that readers see the old bytes or the new ones, never a mix.
///
/// # Errors
/// I/O errors of writing the file.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_with_mode(path, bytes, 0o666)
}

/// Writes a file like [`write_atomically`] somewhere below `directory`. Until it is complete it is in `directory`
/// itself, so that a sweep need not search deeper.
///
/// # Errors
/// I/O errors of writing the file.
pub fn write_below(directory: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_through(directory, path, bytes, 0o666, None)
}

/// Writes a file like [`write_atomically`] that only its owner can read, because it may contain credentials.
///
/// # Errors
/// I/O errors of writing the file.
pub fn write_privately(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_with_mode(path, bytes, 0o600)
}

/// Writes a file like [`write_atomically`] at a path that the user chose. A new file has the mode of the caller's umask, and a
/// replaced one keeps its mode. A link stays: the file it leads to is replaced. A pipe or device stays, and takes the bytes.
///
/// # Errors
/// I/O errors of writing the file.
pub fn write_for_caller(path: &Path, bytes: &[u8], umask: Umask) -> io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;
    let found = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        found => Some(found?),
    };
    if found.as_ref().is_some_and(|found| !found.is_file()) {
        return fs::OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    let kept = found.map(|found| found.permissions().mode() & 0o777);
    let path = followed(path)?;
    write_through(path.parent().unwrap_or(&path), &path, bytes, umask.file_mode(), kept)
}

/// Returns the path that a chain of links leads to, even if no file is there.
fn followed(path: &Path) -> io::Result<PathBuf> {
    /// The kernel follows no more.
    const MOST_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            // It is absent, or no link.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) => {
                return Ok(path);
            }
            Err(error) => return Err(error),
        }
    }
    Err(Errno::LOOP.into())
}

fn write_with_mode(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    write_through(path.parent().unwrap_or(path), path, bytes, mode, None)
}

/// Writes a temporary file and renames it. The process' umask still restricts `mode`, but not `kept`, the mode of the
/// replaced file.
fn write_through(directory: &Path, path: &Path, bytes: &[u8], mode: u32, kept: Option<u32>) -> io::Result<()> {
    use fs_err::os::unix::fs::OpenOptionsExt as _;
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("file");
    let unfinished = directory.join(temporary::unfinished_name(name, NEXT.fetch_add(1, Ordering::Relaxed)));
    let write = || -> io::Result<()> {
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(kept.unwrap_or(mode));
        let mut file = options.open(&unfinished)?;
        if let Some(kept) = kept
            && file.metadata()?.permissions().mode() & 0o777 != kept
        {
            file.set_permissions(std::fs::Permissions::from_mode(kept))?;
        }
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(&unfinished, path)
    };
    write().inspect_err(|_| {
        // The error of writing is the one to report. A leftover is hidden and harmless.
        let _ = fs::remove_file(&unfinished);
    })
}

#[cfg(test)]
mod tests;
