//! Maven repositories inside a project's own tree, which a POM declares as a directory. Their files come from git and
//! pass the door like any origin's, so that images have them and a build reads one cache.

use std::collections::{BTreeMap, BTreeSet};

use super::allowance::Exhausted;
use super::bookkeeping::is_bookkeeping;
use super::door::is_repository_path;
use crate::artifact::origin::OriginName;
use crate::artifact::store::{Store, StoreError};
use crate::digest::Digest;
use crate::lock::MavenFile;
use crate::workspace::{EntryKind, RevisionTree, WorkspaceError};

/// The most files of all revisions together. Each content counts once.
const MOST_FILES: usize = 20_000;
const MOST_BYTES: u64 = 4 << 30;

/// Errors of collecting files.
#[derive(Debug, thiserror::Error)]
pub enum InTreeError {
    /// The tree can't be read.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The files exceed the limits.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
}

/// Collects the files of several revisions, each content once.
pub struct Collector<'a> {
    store: &'a Store,
    /// Stored contents, by git's id.
    known: BTreeMap<String, (Digest, u64)>,
    files: usize,
    bytes: u64,
}

impl<'a> Collector<'a> {
    /// Returns a collector that stores files in `store`.
    pub fn new(store: &'a Store) -> Self {
        Self { store, known: BTreeMap::new(), files: 0, bytes: 0 }
    }

    /// Stores the artifacts in these directories of a tree, and returns them by path in repository layout. If a path
    /// occurs twice, the first directory counts.
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
                let file = MavenFile { path: within.to_owned(), origin, sha256, size, own: false, released: false };
                files.entry(within.to_owned()).or_insert(file);
            }
        }
        Ok(files)
    }

    /// Returns a file's digest and size in the store; `None` if git lacks its content.
    fn content(&mut self, tree: &RevisionTree, path: &str, id: &str) -> Result<Option<(Digest, u64)>, InTreeError> {
        if let Some(known) = self.known.get(id) {
            return Ok(Some(*known));
        }
        let content = match tree.read_source(path) {
            Ok(Some(content)) => content,
            // Maven reports artifacts that do not resolve, and most files here are never needed.
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

/// Tells whether a path belongs to an artifact, `group/artifact/version/artifact-version…`. Checksums, metadata and
/// other files of the project do not count.
fn is_artifact(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let (Some(name), Some(version), Some(artifact), Some(_group)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    // A snapshot may have a time in place of the version.
    let version = version.strip_suffix("-SNAPSHOT").unwrap_or(version);
    let named = name.strip_prefix(artifact).and_then(|rest| rest.strip_prefix('-'));
    let sum = [".md5", ".sha1", ".sha256", ".sha512", ".asc"].iter().any(|suffix| name.ends_with(suffix));
    named.is_some_and(|rest| rest.starts_with(version)) && !sum && is_repository_path(path) && !is_bookkeeping(path)
}

#[cfg(test)]
mod tests;
