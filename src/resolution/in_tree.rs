//! Maven repositories inside a project's own tree: a POM declares a directory beside it. Their files are bytes of git, and
//! come through the door like any origin's, so that images have them and a build reads one cache.

use std::collections::{BTreeMap, BTreeSet};

use super::allowance::Exhausted;
use super::bookkeeping::is_bookkeeping;
use super::door::is_repository_path;
use crate::artifact::origin::OriginName;
use crate::artifact::store::{Store, StoreError};
use crate::digest::Digest;
use crate::lock::MavenFile;
use crate::workspace::{EntryKind, RevisionTree, WorkspaceError};

/// The most files of all revisions, and the most bytes of them, each content counted once.
const MOST_FILES: usize = 20_000;
const MOST_BYTES: u64 = 4 << 30;

/// What can keep files from being collected.
#[derive(Debug, thiserror::Error)]
pub enum InTreeError {
    /// The tree can't be read.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is too much.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
}

/// Collects the files of several revisions, each content once.
pub struct Collector<'a> {
    store: &'a Store,
    /// What is in the store, by git's id of the content.
    known: BTreeMap<String, (Digest, u64)>,
    files: usize,
    bytes: u64,
}

impl<'a> Collector<'a> {
    /// Returns one that brings files into a store.
    pub fn new(store: &'a Store) -> Self {
        Self { store, known: BTreeMap::new(), files: 0, bytes: 0 }
    }

    /// Brings the artifacts that lie in these directories of a tree into the store, and returns them by path in repository
    /// layout. Of equal paths the one in the first directory counts.
    ///
    /// # Errors
    /// [`InTreeError`].
    pub fn collect(
        &mut self,
        tree: &RevisionTree,
        directories: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, MavenFile>, InTreeError> {
        let mut files = BTreeMap::new();
        for directory in directories {
            let below = format!("{directory}/").into_bytes();
            let entries = tree.entries().range(below.clone()..).take_while(|(path, _)| path.starts_with(&below));
            for (path, entry) in entries {
                let Ok(path) = std::str::from_utf8(path) else { continue };
                let within = &path[below.len()..];
                let is_file = matches!(entry.kind, EntryKind::File | EntryKind::Executable);
                if !is_file || !is_artifact(within) {
                    continue;
                }
                self.files += 1;
                if self.files > MOST_FILES {
                    return Err(Exhausted::Tree.into());
                }
                let Some((sha256, size)) = self.content(tree, path, &entry.id())? else { continue };
                let origin = OriginName::project_tree().to_string();
                let file = MavenFile { path: within.to_owned(), origin, sha256, size, own: false };
                files.entry(within.to_owned()).or_insert(file);
            }
        }
        Ok(files)
    }

    /// Returns what the store has of a file; `None` where git lacks its content.
    fn content(&mut self, tree: &RevisionTree, path: &str, id: &str) -> Result<Option<(Digest, u64)>, InTreeError> {
        if let Some(known) = self.known.get(id) {
            return Ok(Some(*known));
        }
        let content = match tree.read_source(path) {
            Ok(Some(content)) => content,
            // Maven names what does not resolve; most of what lies there is for nobody.
            Ok(None) | Err(WorkspaceError::MissingBlob { .. } | WorkspaceError::LfsPointer { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let size = content.len() as u64;
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > MOST_BYTES {
            return Err(Exhausted::Tree.into());
        }
        let known = (self.store.put(&content)?, size);
        self.known.insert(id.to_owned(), known);
        Ok(Some(known))
    }
}

/// Tells whether a path is that of an artifact, `group/artifact/version/artifact-version…`: neither a sum of one, nor what
/// tells which there are, nor anything else of the project.
fn is_artifact(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let (Some(name), Some(version), Some(artifact), Some(_group)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    // Snapshots may have a time in the version's stead.
    let version = version.strip_suffix("-SNAPSHOT").unwrap_or(version);
    let named = name.strip_prefix(artifact).and_then(|rest| rest.strip_prefix('-'));
    let sum = [".md5", ".sha1", ".sha256", ".sha512", ".asc"].iter().any(|suffix| name.ends_with(suffix));
    named.is_some_and(|rest| rest.starts_with(version)) && !sum && is_repository_path(path) && !is_bookkeeping(path)
}

#[cfg(test)]
mod tests;
