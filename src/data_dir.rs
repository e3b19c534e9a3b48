//! The data directory: where everything that outlives a command is kept, and how processes share it.
//!
//! [`parts::PARTS`] lists what lies in it.
//!
//! Several processes may use one directory, also of several namespaces and machines. Each holds a lock in its part of
//! `tmp` as long as it lives; [`DataDir::sweep`] takes only what nobody holds.

pub mod parts;
mod temporary;

use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;
use rustix::fs::{FlockOperation, flock};

use self::parts::{PARTS, Part, Sweep};
use crate::error::{ExitStatus, Failure};
use crate::umask::Umask;

const VERSION: &str = "1";

/// What can be wrong with a data directory.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// The file system refused.
    #[error("the data directory `{path}` could not be used: {source}")]
    Io {
        /// The directory.
        path: PathBuf,
        /// The cause; it names the file.
        source: io::Error,
    },
    /// A newer program wrote it.
    #[error("the data directory `{path}` has version `{found}`, this program knows version {VERSION}")]
    UnknownVersion {
        /// The directory.
        path: PathBuf,
        /// What its `version` file says.
        found: String,
    },
}

impl Failure for DataDirError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Io { .. } => ExitStatus::Infrastructure,
            Self::UnknownVersion { .. } => ExitStatus::Mismatch,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
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
    /// Opens the directory, which is created where missing, and sweeps what dead owners left in its parts.
    ///
    /// # Errors
    /// [`DataDirError`].
    pub fn open(root: &Path) -> Result<Self, DataDirError> {
        let absolute = std::path::absolute(root);
        let io = |source| DataDirError::Io { path: root.to_owned(), source };
        let root = absolute.map_err(io)?;
        let io = |source| DataDirError::Io { path: root.clone(), source };
        fs::create_dir_all(&root).map_err(io)?;
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
                write_atomically(&version, format!("{VERSION}\n").as_bytes()).map_err(io)?;
            }
            Err(error) => return Err(io(error)),
        }
        for part in ["manifests", "tasks", "locks/history", "images", "proofs", "runs", "tmp", "repositories"] {
            fs::create_dir_all(root.join(part)).map_err(io)?;
        }
        let owner = Owner::current().map_err(io)?;
        PARTS.iter().for_each(|part| sweep(&root, part));
        let temporary = temporary::open(&root.join("tmp"), &owner).map_err(io)?;
        Ok(Self { root, owner, temporary })
    }

    /// Returns the directory itself, absolute.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns `root/part`.
    pub fn join(&self, part: impl AsRef<Path>) -> PathBuf {
        self.root.join(part)
    }

    /// Returns this process's own directory for unfinished things.
    pub fn temporary(&self) -> PathBuf {
        self.temporary.clone()
    }

    /// Returns who this process is, for things that must be told from those of dead owners.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Removes this process's temporary files, at its orderly end; one that is killed leaves them to [`DataDir::sweep`].
    ///
    /// # Errors
    /// The file system's.
    pub fn remove_temporary(&self) -> io::Result<()> {
        temporary::remove(&self.temporary)
    }

    /// Removes what dead processes left in `tmp` and returns how many directories that were. What can't be removed is
    /// logged.
    ///
    /// # Errors
    /// `tmp` can't be listed.
    pub fn sweep(&self) -> io::Result<usize> {
        temporary::sweep(&self.root.join("tmp"))
    }

    /// Takes the lock `name`, waiting for another process that has it; `waiting` is told who that is, once.
    ///
    /// # Errors
    /// [`DataDirError::Io`].
    pub fn lock(&self, name: &str, waiting: impl FnOnce(&str)) -> Result<HeldLock, DataDirError> {
        // Lock files outlive their owners, so they lie where the sweep does not come.
        let directory = self.root.join("locks/.held");
        let path = directory.join(format!("{name}.flock"));
        let io = |source| DataDirError::Io { path: self.root.clone(), source };
        fs::create_dir_all(&directory).map_err(io)?;
        let file =
            fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let owner = fs::read_to_string(&path).unwrap_or_default();
            // Its owner may have it, and not have said so yet.
            waiting(Some(owner.trim()).filter(|owner| !owner.is_empty()).unwrap_or("another process"));
            flock(&file, FlockOperation::LockExclusive).map_err(|error| io(error.into()))?;
        }
        // What is written is only for those who wait; the kernel drops the lock itself with its owner.
        fs::write(&path, format!("process {}\n", self.owner.pid)).map_err(io)?;
        Ok(HeldLock { _file: file })
    }
}

/// Removes what dead owners left in a part. What can't be listed or removed is logged: it may be another user's.
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

/// Returns the directories of a part's path, of which one that has no `*` need not exist.
///
/// # Errors
/// A directory can't be listed.
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

/// A process, told from later ones with the same number by its start time and the machine's boot.
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
    /// `/proc` can't be read.
    pub fn current() -> io::Result<Self> {
        let pid = std::process::id();
        let start_time = start_time_of(pid)?.ok_or_else(|| io::Error::other("this process is not in /proc"))?;
        Ok(Self { pid, start_time, boot: boot()? })
    }

    /// Reads what [`Owner`]'s `Display` writes.
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
        // Where `/proc` or the boot id can't be read nothing may be taken for dead.
        boot().map_or(true, |boot| boot == self.boot)
            && start_time_of(self.pid).map_or(true, |start| start == Some(self.start_time))
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}-{}", self.pid, self.start_time, self.boot)
    }
}

fn boot() -> io::Result<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(id.trim().chars().filter(char::is_ascii_hexdigit).take(12).collect())
}

/// Returns when the process started, in clock ticks since boot; `None` where it does not exist or is a zombie.
fn start_time_of(pid: u32) -> io::Result<Option<u64>> {
    let stat = match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // A process that ends while it is read shows as ESRCH.
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Ok(None),
        Err(error) => return Err(error),
    };
    // The second field is the command's name in parentheses and may hold anything: fields count from its end.
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    if matches!(fields.first(), Some(&"Z") | Some(&"X")) {
        return Ok(None);
    }
    Ok(fields.get(19).and_then(|ticks| ticks.parse().ok()))
}

/// Writes a file so that readers see the old bytes or the new ones, never a part.
///
/// # Errors
/// The file system's.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_with_mode(path, bytes, 0o666)
}

/// Writes a file like [`write_atomically`] somewhere below `directory`. Until it is whole it lies in `directory` itself, so that
/// a sweep need not look further down.
///
/// # Errors
/// The file system's.
pub fn write_below(directory: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_through(directory, path, bytes, 0o666)
}

/// Writes a file like [`write_atomically`], for its owner alone: it may hold credentials.
///
/// # Errors
/// The file system's.
pub fn write_privately(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_with_mode(path, bytes, 0o600)
}

/// Writes a file like [`write_atomically`] where the user wants it: the caller's umask holds.
///
/// # Errors
/// The file system's.
pub fn write_for_caller(path: &Path, bytes: &[u8], umask: Umask) -> io::Result<()> {
    write_with_mode(path, bytes, umask.file_mode())
}

fn write_with_mode(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    write_through(path.parent().unwrap_or(path), path, bytes, mode)
}

/// Writes a file at once by way of an unfinished one, with a mode that the mask in force still cuts.
fn write_through(directory: &Path, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    use fs_err::os::unix::fs::OpenOptionsExt as _;
    use std::io::Write as _;
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("file");
    let unfinished = directory.join(temporary::unfinished_name(name, NEXT.fetch_add(1, Ordering::Relaxed)));
    let write = || -> io::Result<()> {
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(mode);
        let mut file = options.open(&unfinished)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(&unfinished, path)
    };
    write().inspect_err(|_| {
        // The write's error is the one to report; a leftover is hidden and harmless.
        let _ = fs::remove_file(&unfinished);
    })
}

#[cfg(test)]
mod tests;
