//! Collects a prediction from what an agent left in its workspace.
//!
//! The directory is hostile. Only the target file is read, and no link on its path is followed. Other files decide nothing: they
//! are compared with the starting tree to list the changes, within limits.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;

use super::{AgentError, PROJECT, TaskFile};
use crate::submission::MOST_FILE_BYTES;
use crate::task::{RepositoryPath, Task, TaskId};
use crate::workspace::built::is_built;
use crate::workspace::{EntryKind, RevisionTree, TreeEntry};

/// The most directory entries that are looked at.
const MOST_ENTRIES: usize = 200_000;
/// The most bytes of other files that are read to compare them.
const MOST_COMPARED_BYTES: u64 = 1 << 30;
/// The most changed files that are listed.
const MOST_LISTED: usize = 1000;

/// Why a listing is incomplete if a directory can't be listed.
const UNREADABLE: &str = "a directory can't be read";

/// What is collected: a task's target file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The task.
    pub task: TaskId,
    /// The target file, relative to the project.
    pub file: RepositoryPath,
}

impl From<&Task> for Target {
    fn from(task: &Task) -> Self {
        Self { task: task.id.clone(), file: task.test_file.clone() }
    }
}

impl From<TaskFile> for Target {
    fn from(facts: TaskFile) -> Self {
        Self { task: facts.task_id, file: facts.test_file }
    }
}

/// What an agent left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// The target file's text; `None` if there is none.
    pub text: Option<String>,
    /// Other changed files with what became of them, sorted; ignored in scoring.
    pub ignored: Vec<String>,
    /// Why [`Collected::ignored`] is incomplete, if it is.
    pub incomplete: Option<&'static str>,
}

/// Collects the target file from a task's workspace. `start` is the new revision's tree, or the workspace's own commit's.
///
/// # Errors
/// [`AgentError::NoWorkspace`], [`AgentError::Refused`], [`AgentError::Io`].
pub fn collect(target: &Target, workspace: &Path, start: &RevisionTree) -> Result<Collected, AgentError> {
    let no_workspace = || AgentError::NoWorkspace { task: target.task.clone(), path: workspace.to_owned() };
    // To read a file below a directory, no right to list the directory is needed.
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // The user named this path, so links on it are the user's.
    let workspace = match openat(CWD, workspace, directory, Mode::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Err(no_workspace()),
        opened => opened.map_err(std::io::Error::from)?,
    };
    let project = match openat(&workspace, PROJECT, directory | OFlags::NOFOLLOW, Mode::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Err(no_workspace()),
        opened => opened.map_err(std::io::Error::from)?,
    };
    let mut collected = Collected { text: read_target(target, &project)?, ..Collected::default() };
    let mut listing = Listing {
        start,
        target: target.file.as_str(),
        seen: BTreeSet::new(),
        entries: 0,
        bytes: 0,
        collected: &mut collected,
    };
    match openat(&project, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(project) => listing.directory(project, ""),
        Err(_) => listing.collected.incomplete = Some(UNREADABLE),
    }
    listing.deleted();
    collected.ignored.sort();
    Ok(collected)
}

/// Opens a path below a directory without following a link, and without waiting for a pipe.
fn open_below(directory: &OwnedFd, path: &[u8]) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(
        directory,
        path,
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC,
        Mode::empty(),
        resolve,
    )
}

/// Reads the target file below a project's directory; `None` if there is none.
///
/// # Errors
/// [`AgentError::Refused`], [`AgentError::Io`].
pub(super) fn read_target(target: &Target, project: &OwnedFd) -> Result<Option<String>, AgentError> {
    let refused = |reason: &str| AgentError::Refused {
        task: target.task.clone(),
        path: target.file.clone(),
        reason: reason.to_owned(),
    };
    // A device can do harm when it is opened, so its kind is looked at first.
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let path = target.file.as_str();
    match openat2(project, path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty(), resolve) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(Errno::LOOP | Errno::XDEV) => return Err(refused("a part of its path is a link")),
        Err(Errno::ACCESS) => return Err(refused("a directory on its path may not be entered")),
        Err(error) => return Err(std::io::Error::from(error).into()),
        Ok(found) => match FileType::from_raw_mode(fstat(&found).map_err(std::io::Error::from)?.st_mode) {
            FileType::RegularFile => {}
            FileType::Symlink => return Err(refused("it is a link")),
            FileType::Directory => return Err(refused("it is a directory")),
            _ => return Err(refused("it is a pipe, socket or device")),
        },
    }
    let file = match open_below(project, path.as_bytes()) {
        Err(Errno::ACCESS) => return Err(refused("it may not be read")),
        file => file.map_err(std::io::Error::from)?,
    };
    if FileType::from_raw_mode(fstat(&file).map_err(std::io::Error::from)?.st_mode) != FileType::RegularFile {
        return Err(refused("it changes while it is read"));
    }
    let mut bytes = Vec::new();
    std::fs::File::from(file).take(MOST_FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MOST_FILE_BYTES {
        return Err(refused(&format!("it has more than {MOST_FILE_BYTES} bytes")));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| refused("it is not UTF-8, and a line of JSON can't hold it"))
}

struct Listing<'a> {
    start: &'a RevisionTree,
    target: &'a str,
    seen: BTreeSet<Vec<u8>>,
    entries: usize,
    bytes: u64,
    collected: &'a mut Collected,
}

impl Listing<'_> {
    /// Lists changes below a directory of the starting tree. Directories that the tree lacks are listed, not entered.
    fn directory(&mut self, directory: OwnedFd, path: &str) {
        let Ok(entries) = Dir::read_from(&directory) else {
            self.collected.incomplete = Some(UNREADABLE);
            return;
        };
        for entry in entries {
            let Ok(entry) = entry else {
                self.collected.incomplete = Some(UNREADABLE);
                return;
            };
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") || (path.is_empty() && name == b".git") {
                continue;
            }
            self.entries += 1;
            if self.entries > MOST_ENTRIES || self.collected.ignored.len() >= MOST_LISTED {
                self.collected.incomplete = Some("there are too many files");
                return;
            }
            let Ok(name) = std::str::from_utf8(name) else {
                self.list("added", &format!("{path}{}", String::from_utf8_lossy(name)));
                continue;
            };
            let path = format!("{path}{name}");
            if path == self.target {
                continue;
            }
            if self.start.is_directory(&path) {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                match openat(&directory, name, flags, Mode::empty()) {
                    // Descriptors are open as deep as the starting tree is, which is bounded.
                    Ok(below) => self.directory(below, &format!("{path}/")),
                    Err(Errno::ACCESS) => self.collected.incomplete = Some(UNREADABLE),
                    Err(_) => self.list("no directory any more", &path),
                }
            } else if let Some(expected) = self.start.entry(&path) {
                self.seen.insert(path.clone().into_bytes());
                if !self.is_same((&directory, name), &path, &expected) {
                    self.list("changed", &path);
                }
            } else if entry.file_type() == FileType::Directory {
                self.list("added", &format!("{path}/"));
            } else {
                self.list("added", &path);
            }
        }
    }

    fn is_same(&mut self, (directory, name): (&OwnedFd, &str), path: &str, expected: &TreeEntry) -> bool {
        let found = rustix::fs::statat(directory, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
        let Ok(found) = found else { return false };
        let kind = FileType::from_raw_mode(found.st_mode);
        let content = match (expected.kind, kind) {
            (EntryKind::Symlink, FileType::Symlink) => match rustix::fs::readlinkat(directory, name, Vec::new()) {
                Ok(target) => target.into_bytes(),
                Err(_) => return false,
            },
            (EntryKind::File | EntryKind::Executable, FileType::RegularFile) => {
                let size = u64::try_from(found.st_size).unwrap_or(u64::MAX);
                // A file of another size is another one, and need not be read.
                if self
                    .start
                    .size(path.as_bytes(), expected)
                    .is_ok_and(|known| known.is_some_and(|known| known as u64 != size))
                {
                    return false;
                }
                if self.bytes.saturating_add(size) > MOST_COMPARED_BYTES {
                    self.collected.incomplete = Some("the files are too large to compare them all");
                    return true;
                }
                self.bytes += size;
                let Ok(file) = open_below(directory, name.as_bytes()) else { return false };
                let mut bytes = Vec::new();
                if std::fs::File::from(file).take(size).read_to_end(&mut bytes).is_err() {
                    return false;
                }
                bytes
            }
            _ => return false,
        };
        git2::Oid::hash_object(git2::ObjectType::Blob, &content).is_ok_and(|id| id.to_string() == expected.id())
    }

    /// Lists files of the starting tree that were not seen.
    fn deleted(&mut self) {
        if self.collected.incomplete.is_some() {
            return;
        }
        for (bytes, entry) in self.start.entries() {
            let path = String::from_utf8_lossy(bytes);
            // A workspace never had these.
            if entry.kind == EntryKind::Submodule || is_built(&path) || path == self.target || self.seen.contains(bytes)
            {
                continue;
            }
            if self.collected.ignored.len() >= MOST_LISTED {
                self.collected.incomplete = Some("there are too many files");
                return;
            }
            self.list("deleted", &path);
        }
    }

    fn list(&mut self, what: &str, path: &str) {
        self.collected.ignored.push(format!("{what}: {path}"));
    }
}
