//! Task files: what an import keeps of a repository's tasks. File: `tasks/<owner>__<name>.json`.

use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::{RepositoryName, Task};

/// Version of the task file's schema.
pub const TASK_FILE_SCHEMA: u32 = 1;

/// The largest task file that is read, in bytes.
const MOST_BYTES: u64 = 64 << 20;

/// What can be wrong with task files.
#[derive(Debug, thiserror::Error)]
pub enum TaskFileError {
    /// The file system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is no task file.
    #[error("the task file `{path}` can't be read: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A newer program wrote it.
    #[error("the task file `{path}` has schema {found}, this program knows schema {TASK_FILE_SCHEMA}")]
    UnknownSchema {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: u64,
    },
}

impl TaskFileError {
    /// Returns what the user can do.
    pub fn hint(&self) -> String {
        match self {
            Self::Io(_) => "check permissions and free space",
            Self::Malformed { .. } => "import the benchmark's data again with `testevo-sandbox import DATA`",
            Self::UnknownSchema { .. } => "use the program that wrote it, or import the data again",
        }
        .to_owned()
    }
}

/// All tasks of a repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFile {
    /// [`TASK_FILE_SCHEMA`].
    pub schema: u32,
    /// The repository.
    pub repository: RepositoryName,
    /// Its tasks, sorted by id.
    pub tasks: Vec<Task>,
}

impl TaskFile {
    /// Returns the file's exact bytes.
    ///
    /// # Errors
    /// [`TaskFileError::Io`], which plain data like this does not cause.
    pub fn render(&self) -> Result<Vec<u8>, TaskFileError> {
        let mut bytes = serde_json::to_vec_pretty(self).map_err(io::Error::from)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Reads one task file.
    ///
    /// # Errors
    /// [`TaskFileError`].
    pub fn load(path: &Path) -> Result<Self, TaskFileError> {
        let malformed = |reason: String| TaskFileError::Malformed { path: path.to_owned(), reason };
        if fs::metadata(path)?.len() > MOST_BYTES {
            return Err(malformed("it is too large".into()));
        }
        #[derive(Deserialize)]
        struct SchemaOnly {
            schema: Option<u64>,
        }
        let bytes = fs::read(path)?;
        // The schema is looked at first: a newer file must not be called malformed.
        let schema: SchemaOnly = serde_json::from_slice(&bytes).map_err(|error| malformed(error.to_string()))?;
        match schema.schema {
            Some(schema) if schema == u64::from(TASK_FILE_SCHEMA) => {}
            Some(found) => return Err(TaskFileError::UnknownSchema { path: path.to_owned(), found }),
            None => return Err(malformed("it has no `schema`".into())),
        }
        let file: Self = serde_json::from_slice(&bytes).map_err(|error| malformed(error.to_string()))?;
        match file.tasks.iter().find(|task| task.repository != file.repository) {
            Some(task) => Err(malformed(format!("the task {} is of {}", task.id, task.repository))),
            None => Ok(file),
        }
    }
}

/// Reads every task file in a directory and returns all tasks, sorted by repository and id.
///
/// # Errors
/// [`TaskFileError`].
pub fn load_all(directory: &Path) -> Result<Vec<Task>, TaskFileError> {
    let mut tasks = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if path.extension().is_some_and(|extension| extension == "json") && !hidden {
            tasks.extend(TaskFile::load(&path)?.tasks);
        }
    }
    tasks.sort_by(|a, b| (&a.repository, &a.id).cmp(&(&b.repository, &b.id)));
    if let Some(twice) = tasks.windows(2).find(|pair| pair[0].id == pair[1].id) {
        let path = directory.to_owned();
        return Err(TaskFileError::Malformed { path, reason: format!("two files have the task {}", twice[0].id) });
    }
    Ok(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_files_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a__b.json");
        for (text, expected) in [
            ("{\"schema\":2,\"new\":[]}", "schema 2"),
            ("{}", "no `schema`"),
            ("[", "can't be read"),
            ("{\"schema\":1,\"repository\":\"../x\",\"tasks\":[]}", "is no repository"),
        ] {
            fs::write(&path, text).unwrap();
            let error = load_all(directory.path()).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("a__b.json"), "{error}");
        }
    }
}
