//! Gaps of a tree: entries whose contents the git repository does not have, found without writing an archive.

use super::WorkspaceError;
use super::tree::{EntryKind, RevisionTree, TreeReport, is_lfs_pointer};
use crate::digest::Digest;
use crate::output::counted;

/// The most paths of a kind that are named in words.
const MOST_NAMED: usize = 3;

impl RevisionTree {
    /// Returns the tree's name in keys of executions: git's id, and a digest of the ids of contents that the git
    /// repository lacks. Once it has these contents, results of the tree may differ.
    ///
    /// # Errors
    /// [`WorkspaceError::Git`].
    pub fn identity(&self) -> Result<String, WorkspaceError> {
        let mut lost = Vec::new();
        for entry in self.entries().values().filter(|entry| entry.kind != EntryKind::Submodule) {
            if !self.has_content(entry)? {
                lost.push(entry.id());
            }
        }
        Ok(match lost.is_empty() {
            true => self.id(),
            false => format!("{} without {}", self.id(), Digest::of(lost.join("\n").as_bytes())),
        })
    }

    /// Returns the entries without contents: submodules, pointers to git-lfs's store and missing blobs, sorted by path.
    ///
    /// # Errors
    /// [`WorkspaceError::HostileTree`], [`WorkspaceError::Git`].
    pub fn gaps(&self) -> Result<TreeReport, WorkspaceError> {
        let mut report = TreeReport::default();
        for (path, entry) in self.entries() {
            let gaps = match entry.kind {
                EntryKind::Submodule => &mut report.submodules,
                EntryKind::File | EntryKind::Executable | EntryKind::Symlink => {
                    match self.pointer_content(path, entry)? {
                        None => &mut report.missing_blobs,
                        Some(content) if entry.kind != EntryKind::Symlink && is_lfs_pointer(&content) => {
                            &mut report.lfs_pointers
                        }
                        Some(_) => continue,
                    }
                }
            };
            gaps.push(String::from_utf8_lossy(path).into_owned());
        }
        Ok(report)
    }
}

impl TreeReport {
    /// Returns all paths, sorted.
    pub fn paths(&self) -> Vec<&str> {
        let all = self.submodules.iter().chain(&self.lfs_pointers).chain(&self.missing_blobs);
        let mut paths: Vec<&str> = all.map(String::as_str).collect();
        paths.sort_unstable();
        paths
    }

    /// Returns the missing parts in words; `None` if there are none.
    pub fn in_words(&self) -> Option<String> {
        let parts: Vec<String> = [
            (&self.submodules, "submodule", "submodules"),
            (&self.lfs_pointers, "content that is in git-lfs's store", "contents that are in git-lfs's store"),
            (&self.missing_blobs, "content that the repository lacks", "contents that the repository lacks"),
        ]
        .into_iter()
        .filter(|(paths, _, _)| !paths.is_empty())
        .map(|(paths, one, several)| {
            let mut named: Vec<String> =
                paths.iter().take(MOST_NAMED).map(|path| path.chars().take(100).collect()).collect();
            if paths.len() > MOST_NAMED {
                named.push("…".to_owned());
            }
            format!("{} ({})", counted(paths.len(), one, several), named.join(", "))
        })
        .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Tells whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        self.submodules.is_empty() && self.lfs_pointers.is_empty() && self.missing_blobs.is_empty()
    }
}
