//! Task files: imports store a repository's tasks in `tasks/<owner>__<name>.json`.
//!
//! A task's id is unique across all files, because results name tasks by id alone.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::{RepositoryName, Task, TaskId};
use crate::error::{ExitStatus, Failure};
use crate::output::json_problem;

/// Version of the task file's schema.
pub const TASK_FILE_SCHEMA: u32 = 1;

/// The largest task file that is read, in bytes.
const MOST_BYTES: u64 = 64 << 20;

/// Errors of task files.
#[derive(Debug, thiserror::Error)]
pub enum TaskFileError {
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is not a task file.
    #[error("the task file `{path}` can't be read: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Why the file is malformed.
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
    /// Two files have a task of one id.
    #[error("the task {task} is in `{first}` and in `{second}`")]
    Twice {
        /// The task.
        task: TaskId,
        /// A file with the task.
        first: PathBuf,
        /// Another one.
        second: PathBuf,
    },
    /// A task's id belongs to a task of another repository.
    #[error("{repository} can't have the task {task}: `{other}` has one of this id")]
    Taken {
        /// The task.
        task: TaskId,
        /// The repository that the task is imported for.
        repository: RepositoryName,
        /// The file of the other repository, existing or to be written.
        other: PathBuf,
    },
}

impl Failure for TaskFileError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Io(_) => ExitStatus::Infrastructure,
            Self::UnknownSchema { .. } => ExitStatus::Mismatch,
            Self::Malformed { .. } | Self::Twice { .. } | Self::Taken { .. } => ExitStatus::BadInput,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Io(_) => "check permissions and free space",
            Self::Malformed { .. } => "import the repository's data again with `testevo-sandbox import --replace DATA`",
            Self::UnknownSchema { .. } => "use the program that wrote it, or import the data again with `--replace`",
            Self::Twice { .. } => "remove one of the two files, and import its data again without that task",
            Self::Taken { .. } => {
                "nothing was imported; leave the task out of the data, or import into another `--data-dir`"
            }
        };
        Some(hint.to_owned())
    }
}

/// All tasks of a repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// [`TaskFileError::Io`] of serialisation, which plain data never causes.
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
        Self::parse(path, &fs::read(path)?)
    }

    /// Reads the bytes of a task file; `path` is its name in errors.
    ///
    /// # Errors
    /// [`TaskFileError::Malformed`], [`TaskFileError::UnknownSchema`].
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self, TaskFileError> {
        let malformed = |reason: String| TaskFileError::Malformed { path: path.to_owned(), reason };
        #[derive(Deserialize)]
        struct SchemaOnly {
            schema: Option<u64>,
        }
        // The schema is checked first: a newer file must not be called malformed.
        let schema: SchemaOnly = serde_json::from_slice(bytes).map_err(|error| malformed(json_problem(&error)))?;
        match schema.schema {
            Some(schema) if schema == u64::from(TASK_FILE_SCHEMA) => {}
            Some(found) => return Err(TaskFileError::UnknownSchema { path: path.to_owned(), found }),
            None => return Err(malformed("it has no `schema`".into())),
        }
        let file: Self = serde_json::from_slice(bytes).map_err(|error| malformed(json_problem(&error)))?;
        match file.tasks.iter().find(|task| task.repository != file.repository) {
            Some(task) => Err(malformed(format!("the task {} is of {}", task.id, task.repository))),
            None => Ok(file),
        }
    }

    /// Reads the tasks of a repository's file; none without a file.
    ///
    /// # Errors
    /// [`TaskFileError`]; [`TaskFileError::Malformed`] also if the file belongs to another repository.
    pub fn load_of(path: &Path, repository: &RepositoryName) -> Result<Vec<Task>, TaskFileError> {
        match Self::load(path) {
            Ok(file) if file.repository == *repository => Ok(file.tasks),
            Ok(file) => {
                let reason = format!("it is of {}", file.repository);
                Err(TaskFileError::Malformed { path: path.to_owned(), reason })
            }
            Err(TaskFileError::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

/// The changes that an import makes to known tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// Tasks that were not known.
    pub new: usize,
    /// Known tasks with other content now.
    pub changed: usize,
    /// Known tasks that stay unchanged, given again or not.
    pub kept: usize,
    /// Known tasks that were not given again and are removed.
    pub removed: usize,
}

impl std::ops::AddAssign for Changes {
    fn add_assign(&mut self, other: Self) {
        self.new += other.new;
        self.changed += other.changed;
        self.kept += other.kept;
        self.removed += other.removed;
    }
}

/// Merges given tasks into known ones, sorted by id. A given task replaces the known one of its id. Known tasks that
/// were not given stay unless `replace`.
pub fn merge(known: Vec<Task>, given: &[Task], replace: bool) -> (Vec<Task>, Changes) {
    let mut changes = Changes::default();
    let mut known: BTreeMap<TaskId, Task> = known.into_iter().map(|task| (task.id.clone(), task)).collect();
    let mut merged: Vec<Task> = Vec::new();
    for task in given {
        match known.remove(&task.id) {
            None => changes.new += 1,
            Some(before) if before == *task => changes.kept += 1,
            Some(_) => changes.changed += 1,
        }
        merged.push(task.clone());
    }
    if replace {
        changes.removed = known.len();
    } else {
        changes.kept += known.len();
        merged.extend(known.into_values());
    }
    merged.sort_by(|a, b| a.id.cmp(&b.id));
    (merged, changes)
}

/// Checks files to be written against each other and against those of other repositories in the directory.
///
/// # Errors
/// [`TaskFileError::Taken`] for an id that two repositories would have; errors of reading the other files.
pub fn check_ids(directory: &Path, files: &[(PathBuf, TaskFile)]) -> Result<(), TaskFileError> {
    let mut ids = BTreeMap::new();
    for path in paths(directory)?.into_iter().filter(|path| !files.iter().any(|(written, _)| written == path)) {
        ids.extend(TaskFile::load(&path)?.tasks.into_iter().map(|task| (task.id, path.clone())));
    }
    for (path, file) in files {
        for task in &file.tasks {
            if let Some(other) = ids.insert(task.id.clone(), path.clone()) {
                let (task, repository) = (task.id.clone(), file.repository.clone());
                return Err(TaskFileError::Taken { task, repository, other });
            }
        }
    }
    Ok(())
}

/// Returns the task files in a directory, sorted.
fn paths(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        // Unfinished files of killed writers have hidden names.
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if path.extension().is_some_and(|extension| extension == "json") && !hidden {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Reads every task file in a directory and returns all tasks, sorted by repository and id.
///
/// # Errors
/// [`TaskFileError`].
pub fn load_all(directory: &Path) -> Result<Vec<Task>, TaskFileError> {
    let mut tasks = Vec::new();
    let mut ids: BTreeMap<TaskId, PathBuf> = BTreeMap::new();
    for path in paths(directory)? {
        for task in TaskFile::load(&path)?.tasks {
            if let Some(first) = ids.insert(task.id.clone(), path.clone()) {
                return Err(TaskFileError::Twice { task: task.id, first, second: path });
            }
            tasks.push(task);
        }
    }
    tasks.sort_by(|a, b| (&a.repository, &a.id).cmp(&(&b.repository, &b.id)));
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
