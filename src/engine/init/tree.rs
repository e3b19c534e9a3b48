//! Files and directories inside the container, reached component by component and never through a symbolic link.
//!
//! After a command ran, every name below scratch may be any kind of file. All processes are dead while init reads, so
//! nothing changes between two reads. Files are opened with `O_NOFOLLOW` all the same.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::report::ReportError;

/// Directories nested deeper than this are not read.
pub(in crate::engine) const MAX_DEPTH: usize = 200;

/// Why a step was not done.
#[derive(Debug)]
pub(in crate::engine) enum StepError {
    /// The file or directory to send does not exist.
    Absent,
    /// Hostile or unfit content.
    Refused(String),
    /// Any other failure.
    Failed { error: String, errno: Option<i32> },
    /// Init can't report any more.
    Report(ReportError),
}

impl StepError {
    pub(in crate::engine) fn failed(error: impl Into<String>, errno: Option<i32>) -> Self {
        Self::Failed { error: error.into(), errno }
    }

    /// Returns a failure of the operating system at a path.
    pub(in crate::engine) fn at(path: impl AsRef<Path>, errno: Errno) -> Self {
        Self::Failed {
            error: format!("`{}`: {}", path.as_ref().display(), std::io::Error::from(errno)),
            errno: Some(errno.raw_os_error()),
        }
    }

    pub(in crate::engine) fn refused(path: impl AsRef<Path>, reason: &str) -> Self {
        Self::Refused(format!("`{}` {reason}", path.as_ref().display()))
    }
}

/// Returns the directory, reached without following any symbolic link. With `create`, missing directories are created.
pub(in crate::engine) fn open_directory(path: impl AsRef<Path>, create: bool) -> Result<OwnedFd, StepError> {
    let path = path.as_ref();
    if !path.is_absolute() {
        return Err(StepError::failed(format!("`{}` is not absolute", path.display()), None));
    }
    let root = rustix::fs::open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| StepError::at("/", errno))?;
    open_below(&root, path.strip_prefix("/").unwrap_or(path), create).map_err(|errno| StepError::at(path, errno))
}

/// As [`open_directory`], for a path relative to a directory.
pub(in crate::engine) fn open_below(root: &OwnedFd, path: &Path, create: bool) -> Result<OwnedFd, Errno> {
    let mut current = rustix::io::fcntl_dupfd_cloexec(root, 0)?;
    for component in path.components() {
        let name = match component {
            Component::Normal(name) => name,
            Component::CurDir => continue,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(Errno::INVAL),
        };
        if create {
            match rustix::fs::mkdirat(&current, name, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                // The directory may exist already in a read-only parent.
                Err(Errno::ROFS | Errno::ACCESS) if is_directory(&current, name) => {}
                Err(errno) => return Err(errno),
            }
        }
        current = open_child(&current, name)?;
    }
    Ok(current)
}

fn is_directory(parent: &OwnedFd, name: &OsStr) -> bool {
    rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

/// Opens a directory in a directory for lookups of names.
fn open_child(parent: impl AsFd, name: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

/// Returns the directory that holds the path's last component, and that component.
pub(in crate::engine) fn open_parent(path: &str, create: bool) -> Result<(OwnedFd, &OsStr), StepError> {
    let path = Path::new(path);
    let invalid = || StepError::failed(format!("`{}` names no file", path.display()), None);
    let Some(Component::Normal(name)) = path.components().next_back() else {
        return Err(invalid());
    };
    let parent = path.parent().ok_or_else(invalid)?;
    Ok((open_directory(parent, create)?, name))
}

/// Writes a file, and replaces an existing one.
pub(in crate::engine) fn write(path: &str, content: &[u8]) -> Result<(), StepError> {
    use std::io::Write as _;
    let (parent, name) = open_parent(path, true)?;
    let file = create_file(&parent, name, Mode::from_raw_mode(0o644)).map_err(|errno| StepError::at(path, errno))?;
    std::fs::File::from(file)
        .write_all(content)
        .map_err(|error| StepError::failed(format!("`{path}`: {error}"), error.raw_os_error()))
}

/// Creates a file. Removes an existing entry of that name first, unless it is a directory.
pub(in crate::engine) fn create_file(parent: &OwnedFd, name: &OsStr, mode: Mode) -> Result<OwnedFd, Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(parent, name, flags, mode) {
        Err(Errno::EXIST) => {
            rustix::fs::unlinkat(parent, name, AtFlags::empty())?;
            rustix::fs::openat(parent, name, flags, mode)
        }
        other => other,
    }
}

/// A directory that is being read.
pub(super) struct Entries {
    pub(super) directory: OwnedFd,
}

impl Entries {
    /// Opens a directory of the task's user, even if its permissions forbid reading.
    pub(super) fn open(parent: &OwnedFd, name: &OsStr) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(parent, name, flags, Mode::empty()) {
            Ok(directory) => {
                // The directory must also be searchable and writable, because names in it are opened and removed.
                let mode = rustix::fs::fstat(&directory)?.st_mode;
                if mode & 0o700 != 0o700 {
                    // A directory of another owner, as in a read-only input, can't be changed. A later operation then
                    // reports the error.
                    let _ = rustix::fs::fchmod(&directory, Mode::from_raw_mode(mode | 0o700));
                }
                Ok(Self { directory })
            }
            Err(Errno::ACCESS) => {
                let found = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
                if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
                    return Err(Errno::NOTDIR);
                }
                let mode = Mode::from_raw_mode(found.st_mode | 0o700);
                rustix::fs::chmodat(parent, name, mode, AtFlags::empty())?;
                let directory = rustix::fs::openat(parent, name, flags, Mode::empty())?;
                Ok(Self { directory })
            }
            Err(errno) => Err(errno),
        }
    }

    /// Returns the names in it, sorted by bytes.
    pub(super) fn names(&self) -> Result<Vec<CString>, Errno> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.directory)? {
            let entry = entry?;
            let name: &CStr = entry.file_name();
            if !matches!(name.to_bytes(), b"." | b"..") {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

/// An entry below a directory, as [`walk`] passes it.
pub(in crate::engine) struct Entry<'a> {
    /// The directory that holds it.
    pub(in crate::engine) parent: &'a OwnedFd,
    /// Its name there.
    pub(in crate::engine) name: &'a OsStr,
    /// Its path from the walk's root.
    pub(in crate::engine) path: &'a Path,
    pub(in crate::engine) stat: &'a Stat,
    pub(in crate::engine) kind: FileType,
}

/// Passes everything below a directory to a function: each directory before its content, names in order, links not
/// followed.
pub(in crate::engine) fn walk(
    root: &str,
    each: &mut dyn FnMut(Entry<'_>) -> Result<(), StepError>,
) -> Result<(), StepError> {
    let (parent, name) = match open_parent(root, false) {
        Err(StepError::Failed { errno: Some(libc::ENOENT), .. }) => return Err(StepError::Absent),
        other => other?,
    };
    let entries = Entries::open(&parent, name).map_err(|errno| match errno {
        Errno::NOENT => StepError::Absent,
        Errno::LOOP | Errno::NOTDIR => StepError::refused(root, "is no directory"),
        errno => StepError::at(root, errno),
    })?;
    walk_directory(&entries, &mut std::path::PathBuf::new(), root, MAX_DEPTH, each)
}

fn walk_directory(
    entries: &Entries,
    path: &mut std::path::PathBuf,
    root: &str,
    depth: usize,
    each: &mut dyn FnMut(Entry<'_>) -> Result<(), StepError>,
) -> Result<(), StepError> {
    let at = |path: &Path, errno| StepError::at(Path::new(root).join(path), errno);
    if depth == 0 {
        return Err(StepError::refused(root, "is nested too deep"));
    }
    for name in entries.names().map_err(|errno| at(path, errno))? {
        let name = OsStr::from_bytes(name.to_bytes());
        path.push(name);
        let stat =
            rustix::fs::statat(&entries.directory, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|errno| at(path, errno))?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        each(Entry { parent: &entries.directory, name, path, stat: &stat, kind })?;
        if kind == FileType::Directory {
            let below = Entries::open(&entries.directory, name).map_err(|errno| at(path, errno))?;
            walk_directory(&below, path, root, depth - 1, each)?;
        }
        path.pop();
    }
    Ok(())
}

/// Opens a regular file for reading. Refuses everything else, and a file that its owner made unreadable.
pub(in crate::engine) fn open_file(parent: &OwnedFd, name: &OsStr, shown: &Path) -> Result<(OwnedFd, Stat), StepError> {
    // Does not wait: opening a pipe would hang.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::openat(parent, name, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::NOENT => StepError::Absent,
        Errno::LOOP | Errno::NXIO => StepError::refused(shown, "is no regular file"),
        Errno::ACCESS => StepError::refused(shown, "can't be read"),
        errno => StepError::at(shown, errno),
    })?;
    let stat = rustix::fs::fstat(&file).map_err(|errno| StepError::at(shown, errno))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(StepError::refused(shown, "is no regular file"));
    }
    Ok((file, stat))
}

/// The directory to which a tree is written. Entries that come in order of their directories share open ones.
pub(in crate::engine) struct Destination {
    root: OwnedFd,
    shown: std::path::PathBuf,
    last: Option<(std::path::PathBuf, OwnedFd)>,
    /// Directories with their modes and times, which are set last.
    directories: Vec<(std::path::PathBuf, Mode, rustix::fs::Timestamps)>,
}

impl Destination {
    /// Opens the directory, and creates a missing one.
    pub(in crate::engine) fn open(path: &str) -> Result<Self, StepError> {
        Ok(Self { root: open_directory(path, true)?, shown: path.into(), last: None, directories: Vec::new() })
    }

    fn at(&self, path: &Path, errno: Errno) -> StepError {
        StepError::at(self.shown.join(path), errno)
    }

    /// Makes a directory; its mode and times are set by [`Destination::finish`].
    pub(in crate::engine) fn directory(
        &mut self,
        path: &Path,
        mode: u32,
        times: rustix::fs::Timestamps,
    ) -> Result<(), StepError> {
        open_below(&self.root, path, true).map_err(|errno| self.at(path, errno))?;
        self.directories.push((path.to_owned(), Mode::from_raw_mode(mode & 0o777), times));
        Ok(())
    }

    /// Creates a file, which `fill` writes.
    pub(in crate::engine) fn file(
        &mut self,
        path: &Path,
        mode: u32,
        times: &rustix::fs::Timestamps,
        fill: impl FnOnce(&mut std::fs::File) -> std::io::Result<()>,
    ) -> Result<(), StepError> {
        let (parent, name) = self.parent(path)?;
        let file = create_file(parent, name, Mode::from_raw_mode(0o600)).map_err(|errno| self.at(path, errno))?;
        let mut file = std::fs::File::from(file);
        fill(&mut file).map_err(|error| {
            StepError::failed(format!("`{}`: {error}", self.shown.join(path).display()), error.raw_os_error())
        })?;
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode & 0o777))
            .and_then(|()| rustix::fs::futimens(&file, times))
            .map_err(|errno| self.at(path, errno))
    }

    /// Creates a symbolic link; its target is not checked.
    pub(in crate::engine) fn link(
        &mut self,
        path: &Path,
        target: &OsStr,
        times: &rustix::fs::Timestamps,
    ) -> Result<(), StepError> {
        let (parent, name) = self.parent(path)?;
        let made = match rustix::fs::symlinkat(target, parent, name) {
            Err(Errno::EXIST) => rustix::fs::unlinkat(parent, name, AtFlags::empty())
                .and_then(|()| rustix::fs::symlinkat(target, parent, name)),
            other => other,
        };
        made.and_then(|()| rustix::fs::utimensat(parent, name, times, AtFlags::SYMLINK_NOFOLLOW))
            .map_err(|errno| self.at(path, errno))
    }

    /// Gives an earlier file a second name.
    pub(in crate::engine) fn hard_link(&mut self, path: &Path, target: &Path) -> Result<(), StepError> {
        let opened = target.parent().map_or(Err(Errno::INVAL), |parent| open_below(&self.root, parent, false));
        let from = opened.map_err(|errno| self.at(target, errno))?;
        let Some(Component::Normal(from_name)) = target.components().next_back() else {
            return Err(self.at(target, Errno::INVAL));
        };
        let (parent, name) = self.parent(path)?;
        let linked = match rustix::fs::linkat(&from, from_name, parent, name, AtFlags::empty()) {
            Err(Errno::EXIST) => rustix::fs::unlinkat(parent, name, AtFlags::empty())
                .and_then(|()| rustix::fs::linkat(&from, from_name, parent, name, AtFlags::empty())),
            other => other,
        };
        linked.map_err(|errno| self.at(path, errno))
    }

    /// Returns the open directory of a path's last component, created if missing, and that component.
    pub(in crate::engine) fn parent<'a>(&mut self, path: &'a Path) -> Result<(&OwnedFd, &'a OsStr), StepError> {
        let Some(Component::Normal(name)) = path.components().next_back() else {
            return Err(self.at(path, Errno::INVAL));
        };
        let parent = path.parent().unwrap_or(Path::new(""));
        if self.last.as_ref().is_none_or(|(last, _)| last != parent) {
            let opened = open_below(&self.root, parent, true).map_err(|errno| self.at(path, errno))?;
            self.last = Some((parent.to_owned(), opened));
        }
        match &self.last {
            Some((_, directory)) => Ok((directory, name)),
            None => Err(self.at(path, Errno::NOENT)),
        }
    }

    /// Gives the directories their modes and times, innermost first.
    pub(in crate::engine) fn finish(mut self) -> Result<(), StepError> {
        for (path, mode, times) in std::mem::take(&mut self.directories).into_iter().rev() {
            let set = || -> Result<(), Errno> {
                let looked_up = open_below(&self.root, &path, false)?;
                let directory = rustix::fs::openat(
                    &looked_up,
                    ".",
                    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
                    Mode::empty(),
                )?;
                rustix::fs::fchmod(&directory, mode)?;
                rustix::fs::futimens(&directory, &times)
            };
            set().map_err(|errno| self.at(&path, errno))?;
        }
        Ok(())
    }
}
