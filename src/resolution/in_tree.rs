//! Maven repositories inside a project's own tree: a POM declares a directory beside it. Their files are bytes of git, and
//! come through the door like any origin's, so that images have them and a build reads one cache.

use std::collections::{BTreeMap, BTreeSet};

use super::bookkeeping::is_bookkeeping;
use super::door::is_repository_path;
use super::repository::LockError;
use crate::artifact::origin::OriginName;
use crate::artifact::store::Store;
use crate::lock::MavenFile;
use crate::workspace::{EntryKind, RevisionTree, WorkspaceError};

/// Puts what lies in these directories of a tree into the store and adds it to `files`, by path in repository layout. What
/// has a path that another file has already is left out: a lock knows one file of a path.
///
/// # Errors
/// [`LockError::Workspace`], [`LockError::Store`].
pub fn collect(
    tree: &RevisionTree,
    directories: &BTreeSet<String>,
    store: &Store,
    files: &mut BTreeMap<String, MavenFile>,
) -> Result<(), LockError> {
    for directory in directories {
        let below = format!("{directory}/").into_bytes();
        let entries = tree.entries().range(below.clone()..).take_while(|(path, _)| path.starts_with(&below));
        for (path, entry) in entries {
            let Ok(path) = std::str::from_utf8(path) else { continue };
            let within = &path[below.len()..];
            let is_file = matches!(entry.kind, EntryKind::File | EntryKind::Executable);
            if !is_file || !is_artifact(within) || files.contains_key(within) {
                continue;
            }
            let content = match tree.read_source(path) {
                Ok(Some(content)) => content,
                // Maven names what does not resolve; most of what lies there is for nobody.
                Ok(None) | Err(WorkspaceError::MissingBlob { .. } | WorkspaceError::LfsPointer { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            let file = MavenFile {
                path: within.to_owned(),
                origin: OriginName::project_tree().to_string(),
                sha256: store.put(&content)?,
                size: content.len() as u64,
                own: false,
            };
            files.insert(within.to_owned(), file);
        }
    }
    Ok(())
}

/// Tells whether a file of a repository is an artifact: no sum of one, and nothing that tells which there are.
fn is_artifact(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let sum = [".md5", ".sha1", ".sha256", ".sha512", ".asc"].iter().any(|suffix| name.ends_with(suffix));
    is_repository_path(path) && !sum && !is_bookkeeping(path) && !name.starts_with("maven-metadata")
}
