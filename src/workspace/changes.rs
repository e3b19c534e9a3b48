//! The changes between two revisions: renamed files, and lines that the new revision adds. Source: protocol §4, which
//! requires the results of `git diff -U0 --find-renames=50% --diff-algorithm=myers`.

use std::collections::BTreeMap;

use git2::{DiffOptions, Oid, Patch};

use super::renames::{LoneFile, find};
use super::{EntryKind, RevisionTree, WorkspaceError};

/// The changes between two revisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// New paths of renamed files, by old path.
    pub renamed: BTreeMap<String, String>,
    /// Lines that the new revision adds, counted from 1, ascending, by path; only of the wanted files.
    pub added: BTreeMap<String, Vec<usize>>,
}

/// Compares two trees of one repository; lines are compared only in new files that are `wanted`. A file with missing
/// content is similar to no other.
///
/// # Errors
/// [`WorkspaceError::Git`].
pub fn changes(
    old: &RevisionTree,
    new: &RevisionTree,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Changes, WorkspaceError> {
    let lone = |tree: &RevisionTree, other: &RevisionTree| -> Vec<LoneFile> {
        let files = tree.entries().iter().filter(|(path, entry)| {
            let is_file = |kind| matches!(kind, EntryKind::File | EntryKind::Executable);
            is_file(entry.kind) && !other.entries().contains_key(*path)
        });
        files
            .map(|(path, entry)| LoneFile { path: String::from_utf8_lossy(path).into_owned(), id: entry.id() })
            .collect()
    };
    let (lone_old, lone_new) = (lone(old, new), lone(new, old));
    let mut content = |is_new: bool, index: usize| -> Result<Option<Vec<u8>>, WorkspaceError> {
        let (tree, file) = if is_new { (new, &lone_new[index]) } else { (old, &lone_old[index]) };
        match tree.read(&file.path) {
            Err(WorkspaceError::MissingBlob { .. }) => Ok(None),
            other => other,
        }
    };
    let renames = find(&lone_old, &lone_new, &mut content)?;
    let mut changes = Changes::default();
    let mut origins: BTreeMap<&str, &str> = BTreeMap::new();
    for (new_at, old_at) in &renames {
        let (old, new) = (&lone_old[*old_at].path, &lone_new[*new_at].path);
        changes.renamed.insert(old.clone(), new.clone());
        origins.insert(new, old);
    }
    for (path, entry) in new.entries() {
        let path = String::from_utf8_lossy(path).into_owned();
        if !wanted(&path) {
            continue;
        }
        let origin = old.entry(origins.get(path.as_str()).copied().unwrap_or(&path));
        if origin.is_some_and(|origin| origin.id() == entry.id()) {
            continue;
        }
        let added = added(new, origin.map(|origin| origin.id()), &entry.id())?;
        changes.added.insert(path, added);
    }
    Ok(changes)
}

/// Returns the lines of the new content that the old content, if any, lacks.
fn added(tree: &RevisionTree, old: Option<String>, new: &str) -> Result<Vec<usize>, WorkspaceError> {
    let git = tree.git();
    let compared = || -> Result<Vec<usize>, git2::Error> {
        let mut options = DiffOptions::new();
        // Git by default also uses indentation to place hunks. Its command line options do not change that.
        options.context_lines(0).interhunk_lines(0).indent_heuristic(true);
        let blob = |id: &str| Oid::from_str(id).and_then(|id| git.find_blob(id));
        let new = match blob(new) {
            Ok(new) => new,
            Err(error) if error.code() == git2::ErrorCode::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let patch = match old.as_deref().map(blob).transpose()? {
            Some(old) => Patch::from_blobs(&old, None, &new, None, Some(&mut options))?,
            None => Patch::from_buffers(b"", None, new.content(), None, Some(&mut options))?,
        };
        let mut added = Vec::new();
        for hunk in 0..patch.num_hunks() {
            let (hunk, _) = patch.hunk(hunk)?;
            let start = hunk.new_start() as usize;
            added.extend(start..start + hunk.new_lines() as usize);
        }
        Ok(added)
    };
    compared().map_err(|error| tree.failed(error))
}
