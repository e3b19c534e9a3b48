//! Focal methods as they were found, kept beside the tasks: `focal/<owner>__<name>.json` in the data directory.
//!
//! They follow from the tasks and the repository alone, so the file can be made again at any time; it is for people and for
//! other programs.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::Focal;
use crate::canonical_json::canonical_json;
use crate::data_dir::write_atomically;
use crate::task::{RepositoryName, TaskId};

const FOCAL_SCHEMA: u32 = 1;

/// Writes what was found for a repository's tasks.
///
/// # Errors
/// The file system's.
pub fn write(
    directory: &Path,
    repository: &RepositoryName,
    tasks: &BTreeMap<TaskId, Vec<Focal>>,
) -> std::io::Result<()> {
    #[derive(Serialize)]
    struct File<'a> {
        schema: u32,
        repository: &'a RepositoryName,
        tasks: &'a BTreeMap<TaskId, Vec<Focal>>,
    }
    fs_err::create_dir_all(directory)?;
    let bytes = canonical_json(&File { schema: FOCAL_SCHEMA, repository, tasks })?;
    write_atomically(&directory.join(format!("{}.json", repository.file_stem())), &bytes)
}
