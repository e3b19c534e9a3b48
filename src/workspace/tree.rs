//! Trees of revisions as git stores them: names, modes and contents, without attributes or filters.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use git2::{ErrorCode, ObjectType, OdbLookupFlags, Oid, RepositoryOpenFlags};
use serde::Serialize;

use super::WorkspaceError;
use crate::task::{RepositoryName, Revision};

/// The most entries that a tree may have, files and directories.
const MOST_ENTRIES: usize = 500_000;
/// The deepest directory.
const MOST_DEPTH: usize = 100;
/// The longest path, in bytes.
const MOST_PATH_BYTES: usize = 4000;
/// The longest name of one file or directory, in bytes. File systems accept no longer ones.
const MOST_NAME_BYTES: usize = 255;
/// The largest file, in bytes.
const MOST_FILE_BYTES: usize = 512 << 20;
/// A pointer of git-lfs is shorter than this, in bytes.
const MOST_POINTER_BYTES: usize = 1024;
const POINTER_START: &[u8] = b"version https://git-lfs.github.com/spec/";

/// A repository on this machine, opened for reading.
#[derive(Clone, Debug)]
pub struct Repository {
    name: RepositoryName,
    path: PathBuf,
}

impl Repository {
    /// Opens a bare repository, or a directory with `.git` inside.
    ///
    /// # Errors
    /// [`WorkspaceError::Git`].
    pub fn open(name: RepositoryName, path: &Path) -> Result<Self, WorkspaceError> {
        let repository = Self { name, path: path.to_owned() };
        repository.git()?;
        Ok(repository)
    }

    /// Returns its name.
    pub fn name(&self) -> &RepositoryName {
        &self.name
    }

    /// Returns the repository's directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Tells whether the repository has a commit and the commit's tree.
    ///
    /// # Errors
    /// [`WorkspaceError::Git`].
    pub fn has(&self, revision: &Revision) -> Result<bool, WorkspaceError> {
        let git = self.git()?;
        let tree = Oid::from_str(revision.as_str())
            .and_then(|id| git.find_commit(id))
            .and_then(|commit| commit.tree().map(|tree| tree.id()));
        match tree {
            Ok(_) => Ok(true),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Returns the tree of a commit, listed in full.
    ///
    /// # Errors
    /// [`WorkspaceError::RevisionMissing`], [`WorkspaceError::HostileTree`], [`WorkspaceError::Git`].
    pub fn tree(&self, revision: &Revision) -> Result<RevisionTree, WorkspaceError> {
        let git = self.git()?;
        let listed = (|| {
            let commit = git.find_commit(Oid::from_str(revision.as_str())?)?;
            let root = commit.tree_id();
            let mut listing = Listing { git: &git, entries: BTreeMap::new(), directories: BTreeSet::new() };
            listing.directory(root, &mut Vec::new(), 0)?;
            listing.check()?;
            Ok((root, listing.entries))
        })();
        match listed {
            Ok((id, entries)) => Ok(RevisionTree {
                repository: self.clone(),
                revision: revision.clone(),
                id,
                entries,
                git: Mutex::new(git),
            }),
            Err(ListingError::Hostile { reason, path }) => Err(WorkspaceError::HostileTree {
                repository: self.name.clone(),
                revision: revision.clone(),
                reason,
                path: String::from_utf8_lossy(&path).chars().take(200).collect(),
            }),
            Err(ListingError::Git(error)) if error.code() == ErrorCode::NotFound => {
                Err(WorkspaceError::RevisionMissing {
                    repository: self.name.clone(),
                    revision: revision.clone(),
                    path: self.path.clone(),
                })
            }
            Err(ListingError::Git(error)) => Err(self.failed(error)),
        }
    }

    fn git(&self) -> Result<git2::Repository, WorkspaceError> {
        static OPTIONS: Once = Once::new();
        OPTIONS.call_once(|| {
            // SAFETY: libgit2's options are global and not synchronised. This is the only place of this program that
            // sets them, and it runs once, before the first repository is opened.
            //
            // A mirror may belong to another user. Nothing in it is executed, and its configuration is not used here.
            // If this call fails, the check stays on, and opening the repository reports it.
            let _ = unsafe { git2::opts::set_verify_owner_validation(false) };
        });
        let flags = RepositoryOpenFlags::NO_SEARCH;
        git2::Repository::open_ext(&self.path, flags, std::iter::empty::<&Path>()).map_err(|error| self.failed(error))
    }

    fn failed(&self, source: git2::Error) -> WorkspaceError {
        WorkspaceError::Git { repository: self.name.clone(), path: self.path.clone(), source }
    }
}

/// The kind of a tree entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A file, mode 0644.
    File,
    /// A file, mode 0755.
    Executable,
    /// A symbolic link; its content is its target.
    Symlink,
    /// A commit of another repository, without content here.
    Submodule,
}

/// An entry of a tree other than a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// Its kind.
    pub kind: EntryKind,
    id: Oid,
}

impl TreeEntry {
    /// Returns git's id of the content, 40 hexadecimal digits.
    pub fn id(&self) -> String {
        self.id.to_string()
    }
}

/// The unusual entries of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TreeReport {
    /// Submodules, which are not part of the tree.
    pub submodules: Vec<String>,
    /// Files that are pointers to contents in git-lfs's store.
    pub lfs_pointers: Vec<String>,
    /// Files whose contents the repository lacks.
    pub missing_blobs: Vec<String>,
}

/// The tree of a commit. May be shared between threads.
pub struct RevisionTree {
    repository: Repository,
    revision: Revision,
    id: Oid,
    entries: BTreeMap<Vec<u8>, TreeEntry>,
    git: Mutex<git2::Repository>,
}

impl RevisionTree {
    /// Returns the repository.
    pub fn repository(&self) -> &RepositoryName {
        &self.repository.name
    }

    /// Returns the commit.
    pub fn revision(&self) -> &Revision {
        &self.revision
    }

    /// Returns git's id of the tree, 40 hexadecimal digits: equal trees have equal ids.
    pub(super) fn id(&self) -> String {
        self.id.to_string()
    }

    /// Tells whether the git repository has an entry's content. A submodule's is never there.
    pub(super) fn has_content(&self, entry: &TreeEntry) -> Result<bool, WorkspaceError> {
        let git = self.git();
        let there = git.odb().map(|odb| odb.exists_ext(entry.id, OdbLookupFlags::NO_REFRESH));
        there.map_err(|error| self.repository.failed(error))
    }

    /// Returns all entries by path, sorted by bytes. Paths are relative and contain no `..` or `.git`. No entry is
    /// below another.
    pub fn entries(&self) -> &BTreeMap<Vec<u8>, TreeEntry> {
        &self.entries
    }

    /// Returns the entry at a path. Links are not followed.
    pub fn entry(&self, path: &str) -> Option<TreeEntry> {
        self.entries.get(path.as_bytes()).copied()
    }

    /// Returns whether the path is a directory.
    pub fn is_directory(&self, path: &str) -> bool {
        let below = [path.as_bytes(), b"/"].concat();
        path.is_empty()
            || self.entries.range(below.clone()..).next().is_some_and(|(first, _)| first.starts_with(&below))
    }

    /// Returns the content at a path, or a link's target. `None` for a missing entry or a submodule.
    ///
    /// # Errors
    /// [`WorkspaceError::MissingBlob`], [`WorkspaceError::HostileTree`] for a file that is too large,
    /// [`WorkspaceError::Git`].
    pub fn read(&self, path: &str) -> Result<Option<Vec<u8>>, WorkspaceError> {
        let Some(entry) = self.entry(path).filter(|entry| entry.kind != EntryKind::Submodule) else { return Ok(None) };
        match self.content(path.as_bytes(), &entry)? {
            Some(content) => Ok(Some(content)),
            None => Err(self.missing(path.as_bytes())),
        }
    }

    /// Returns the content of a source as [`RevisionTree::read`] does, but fails for a pointer of git-lfs.
    ///
    /// # Errors
    /// As [`RevisionTree::read`]; [`WorkspaceError::LfsPointer`].
    pub fn read_source(&self, path: &str) -> Result<Option<Vec<u8>>, WorkspaceError> {
        match self.read(path)? {
            Some(content) if is_lfs_pointer(&content) => Err(self.pointer(path)),
            content => Ok(content),
        }
    }

    /// Returns an entry's content; `None` if the repository lacks it or it is a submodule.
    pub(super) fn content(&self, path: &[u8], entry: &TreeEntry) -> Result<Option<Vec<u8>>, WorkspaceError> {
        // Its size is checked first, so that a huge one is never read.
        if entry.kind == EntryKind::Submodule || self.size(path, entry)?.is_none() {
            return Ok(None);
        }
        let git = self.git();
        let content = git.odb().and_then(|odb| Ok(odb.read(entry.id)?.data().to_vec()));
        content.map(Some).map_err(|error| self.repository.failed(error))
    }

    /// Returns an entry's content as [`RevisionTree::content`] does, but nothing of one that is too large for a pointer
    /// to git-lfs's store.
    pub(super) fn pointer_content(&self, path: &[u8], entry: &TreeEntry) -> Result<Option<Vec<u8>>, WorkspaceError> {
        match self.size(path, entry)? {
            Some(size) if size >= MOST_POINTER_BYTES => Ok(Some(Vec::new())),
            _ => self.content(path, entry),
        }
    }

    /// Returns the size of an entry's content in bytes; `None` if the repository lacks it. `path` is for errors.
    pub(crate) fn size(&self, path: &[u8], entry: &TreeEntry) -> Result<Option<usize>, WorkspaceError> {
        let git = self.git();
        match git.odb().and_then(|odb| odb.read_header(entry.id)) {
            Ok((size, ObjectType::Blob)) if size <= MOST_FILE_BYTES => Ok(Some(size)),
            Ok((_, ObjectType::Blob)) => Err(self.hostile("a file is too large", path)),
            Ok(_) => Err(self.hostile("a file's content is no blob", path)),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(self.repository.failed(error)),
        }
    }

    /// Returns the error about a file whose content is missing.
    pub fn missing(&self, path: &[u8]) -> WorkspaceError {
        WorkspaceError::MissingBlob {
            repository: self.repository.name.clone(),
            revision: self.revision.clone(),
            path: String::from_utf8_lossy(path).into_owned(),
        }
    }

    /// Returns the error about a file whose content is in git-lfs.
    pub(super) fn pointer(&self, path: &str) -> WorkspaceError {
        WorkspaceError::LfsPointer {
            repository: self.repository.name.clone(),
            revision: self.revision.clone(),
            path: path.to_owned(),
        }
    }

    pub(super) fn hostile(&self, reason: &'static str, path: &[u8]) -> WorkspaceError {
        WorkspaceError::HostileTree {
            repository: self.repository.name.clone(),
            revision: self.revision.clone(),
            reason,
            path: String::from_utf8_lossy(path).chars().take(200).collect(),
        }
    }

    pub(super) fn failed(&self, error: git2::Error) -> WorkspaceError {
        self.repository.failed(error)
    }

    pub(super) fn git(&self) -> MutexGuard<'_, git2::Repository> {
        // Reading changes no state that a panic could leave incomplete.
        self.git.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells whether a content is a pointer to git-lfs.
pub(super) fn is_lfs_pointer(content: &[u8]) -> bool {
    content.len() < MOST_POINTER_BYTES && content.starts_with(POINTER_START)
}

enum ListingError {
    Git(git2::Error),
    Hostile { reason: &'static str, path: Vec<u8> },
}

impl From<git2::Error> for ListingError {
    fn from(error: git2::Error) -> Self {
        Self::Git(error)
    }
}

struct Listing<'a> {
    git: &'a git2::Repository,
    entries: BTreeMap<Vec<u8>, TreeEntry>,
    directories: BTreeSet<Vec<u8>>,
}

impl Listing<'_> {
    fn directory(&mut self, id: Oid, path: &mut Vec<u8>, depth: usize) -> Result<(), ListingError> {
        let hostile = |reason, path: &[u8]| ListingError::Hostile { reason, path: path.to_vec() };
        if depth > MOST_DEPTH {
            return Err(hostile("directories are nested too deep", path));
        }
        let parent = path.len();
        for entry in self.git.find_tree(id)?.iter() {
            if parent > 0 {
                path.push(b'/');
            }
            path.extend_from_slice(entry.name_bytes());
            if let Some(reason) = refused(entry.name_bytes()) {
                return Err(hostile(reason, path));
            }
            if path.len() > MOST_PATH_BYTES {
                return Err(hostile("a path is too long", path));
            }
            let kind = match entry.filemode_raw() {
                0o040_000 => None,
                0o120_000 => Some(EntryKind::Symlink),
                0o160_000 => Some(EntryKind::Submodule),
                // Old versions of git wrote other permissions too. Only the owner's execute bit counts.
                mode if mode & 0o170_000 == 0o100_000 => {
                    Some(if mode & 0o100 == 0 { EntryKind::File } else { EntryKind::Executable })
                }
                _ => return Err(hostile("an entry has an unknown mode", path)),
            };
            let new = match kind {
                None => {
                    let new = self.directories.insert(path.clone());
                    self.directory(entry.id(), path, depth + 1)?;
                    new
                }
                Some(kind) => self.entries.insert(path.clone(), TreeEntry { kind, id: entry.id() }).is_none(),
            };
            if !new {
                return Err(hostile("a name stands there twice", path));
            }
            if self.entries.len() + self.directories.len() > MOST_ENTRIES {
                return Err(hostile("there are too many files", path));
            }
            path.truncate(parent);
        }
        Ok(())
    }

    /// Checks that no name is both a link and a directory, because such a link would redirect files during unpacking.
    fn check(&self) -> Result<(), ListingError> {
        match self.directories.iter().find(|path| self.entries.contains_key(*path)) {
            Some(path) => Err(ListingError::Hostile { reason: "a name stands there twice", path: path.clone() }),
            None => Ok(()),
        }
    }
}

/// Returns the reason to refuse a tree that has a file or directory of this name; `None` for a harmless name.
fn refused(name: &[u8]) -> Option<&'static str> {
    match name {
        b"" | b"." | b".." => Some("a name would leave the tree"),
        _ if name.contains(&b'/') || name.contains(&0) => Some("a name has a slash or NUL in it"),
        _ if name.eq_ignore_ascii_case(b".git") => Some("it has a .git of its own"),
        _ if name.len() > MOST_NAME_BYTES => Some("a name is too long"),
        _ => None,
    }
}
