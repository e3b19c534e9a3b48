//! Workspaces for agents: what an agent gets of a task, and the prediction that it leaves behind.
//!
//! `application::agents` calls this module. Nothing here runs a container or knows what an agent is. A workspace holds the
//! starting tree and instructions, and nothing of the developers' test; `audit` checks that.

pub mod change;
pub mod collection;
pub mod dataset;
pub mod harbor;
mod instructions;
pub mod packing;
mod tree;

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::engine::spec::TASK_USER;
use crate::error::{ExitStatus, Failure};
use crate::execution::module::WholeBuilds;
use crate::image::Image;
use crate::manifest::RepositoryManifest;
use crate::task::{MethodId, RepositoryName, RepositoryPath, Side, Task, TaskId, Track};
use crate::workspace::cells::class_of;
use crate::workspace::{BuildFiles, Repository, RevisionTree, Swap, WorkspaceError};

use change::Change;

pub use instructions::Commands;
pub(crate) use instructions::quoted;

/// The directory of the project in a workspace.
pub const PROJECT: &str = "project";
/// The file of facts in a workspace.
pub const TASK_FILE: &str = "task.json";
/// The file of instructions in a workspace.
pub const INSTRUCTIONS: &str = "TASK.md";
/// What stands between a task and a process in the name of a workspace that is being written.
const UNFINISHED: &str = ".unfinished-";
/// Version of [`TaskFile`].
pub const TASK_FILE_SCHEMA: u32 = 1;

/// Why a workspace can't be made, or a prediction can't be collected.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The directory of a new workspace has content already.
    #[error("the workspace of the task {task} can't be written: `{path}` exists and is not an empty directory")]
    Occupied {
        /// The task.
        task: TaskId,
        /// The directory.
        path: PathBuf,
    },
    /// The collected directory does not hold a project.
    #[error("`{path}` is no workspace of the task {task}: it has no directory `{PROJECT}`")]
    NoWorkspace {
        /// The task.
        task: TaskId,
        /// The directory.
        path: PathBuf,
    },
    /// The target file of a workspace can't be a prediction.
    #[error("the target file `{path}` that an agent left for the task {task} is refused: {reason}")]
    Refused {
        /// The task.
        task: TaskId,
        /// The target file.
        path: RepositoryPath,
        /// The reason.
        reason: String,
    },
    /// The archive of a workspace is something else, or damaged.
    #[error("the archive of the workspace of the task {task} can't be used: {reason}")]
    Archive {
        /// The task.
        task: TaskId,
        /// The reason.
        reason: String,
    },
    /// The commit could not be written.
    #[error("the commit of the starting tree could not be written: {0}")]
    Git(#[from] git2::Error),
    /// The sources can't be read.
    #[error(transparent)]
    Sources(#[from] WorkspaceError),
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Failure for AgentError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Occupied { .. } | Self::NoWorkspace { .. } => ExitStatus::Usage,
            Self::Refused { .. } | Self::Archive { .. } => ExitStatus::BadInput,
            Self::Sources(error) => error.exit_status(),
            Self::Git(_) | Self::Io(_) => ExitStatus::Infrastructure,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Occupied { .. } => "name another directory with `--output`, or remove this one",
            Self::NoWorkspace { .. } => {
                "name the directory of one task, as `workspace` wrote it: it is called like the task"
            }
            Self::Refused { .. } => {
                "look at the file; a file that is not UTF-8 can be scored from a directory `<task id>/` with the file in it"
            }
            Self::Archive { .. } => {
                "get the bundle again from its maker, and look with `bundle verify` whether it is whole"
            }
            Self::Sources(error) => return error.hint(),
            Self::Git(_) | Self::Io(_) => "check permissions and free space",
        };
        Some(hint.to_owned())
    }
}

/// The content of `task.json`: facts that harnesses read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TaskFile {
    /// [`TASK_FILE_SCHEMA`].
    pub schema: u32,
    /// The task.
    pub task_id: TaskId,
    /// Its repository.
    pub repository: RepositoryName,
    /// Its track.
    pub track: Track,
    /// The target file, relative to the project.
    pub test_file: RepositoryPath,
    /// The target methods.
    pub test_methods: Vec<MethodId>,
    /// Digest of the target file that the agent starts from; `None` if the file must be written anew.
    pub start_sha256: Option<Digest>,
    /// Config digest of the repository's image; `None` if none is built.
    pub image: Option<Digest>,
    /// The project's directory in a container that has the workspace at `/work`.
    pub project: String,
    /// Shell commands; `None` if no module of the build contains the target file.
    pub commands: Option<Commands>,
}

/// The parameters of a new workspace.
#[derive(Clone, Copy, Debug)]
pub struct NewWorkspace<'a> {
    /// The repository, with both revisions of the task.
    pub repository: &'a Repository,
    /// The task.
    pub task: &'a Task,
    /// The repository's manifest.
    pub manifest: &'a RepositoryManifest,
    /// The repository's image, if one is built.
    pub image: Option<&'a Image>,
    /// Where Maven builds all modules.
    pub whole: &'a WholeBuilds,
    /// A file for the tree's archive. It is overwritten, and the caller removes it.
    pub archive: &'a Path,
}

/// The facts of a written workspace.
#[derive(Clone, Debug, Serialize)]
pub struct Written {
    /// The task.
    pub task_id: TaskId,
    /// The workspace's directory.
    pub path: PathBuf,
    /// Number of the project's files and links.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Git's id of the one commit.
    pub commit: String,
    /// Files of the revision that the workspace lacks: submodules and missing contents.
    pub lacking: Vec<String>,
    /// Changed production files that `TASK.md` only names, because they are large, binary or unreadable.
    pub only_named: Vec<String>,
}

impl NewWorkspace<'_> {
    /// Writes the workspace to `output`, which must be missing or an empty directory. Readers see the complete workspace or none.
    ///
    /// # Errors
    /// [`AgentError::Occupied`], [`AgentError::Sources`], [`AgentError::Git`], [`AgentError::Io`].
    pub fn write(&self, output: &Path) -> Result<Written, AgentError> {
        appear(&self.task.id, output, |unfinished| self.write_into(unfinished, output))
    }

    fn write_into(&self, directory: &Path, output: &Path) -> Result<Written, AgentError> {
        let task = self.task;
        let (old, new) = (self.repository.tree(&task.rev1)?, self.repository.tree(&task.rev2)?);
        let start = old.read_source(task.test_file.as_str())?;
        let swap = Swap { path: &task.test_file, content: start.as_deref() };
        let project = tree::write(&new, swap, self.archive, &directory.join(PROJECT))?;
        let target = new.read_source(task.test_file.as_str())?;
        let (facts, change) = self.facts((&old, &new), start.as_deref(), target.as_deref())?;
        let mut json = serde_json::to_string_pretty(&facts).map_err(io::Error::from)?;
        json.push('\n');
        fs::write(directory.join(TASK_FILE), json)?;
        fs::write(directory.join(INSTRUCTIONS), instructions::text(&facts, &change))?;
        fs::create_dir(directory.join("home"))?;
        Ok(Written {
            task_id: task.id.clone(),
            path: output.to_owned(),
            files: project.files,
            bytes: project.bytes,
            commit: project.commit,
            lacking: project.lacking,
            only_named: change.only_named,
        })
    }

    /// Returns the content of `task.json`, and the change that `TASK.md` shows. `start` is the target file that an agent starts
    /// from, `target` the developers' target file.
    fn facts(
        &self,
        (old, new): (&RevisionTree, &RevisionTree),
        start: Option<&[u8]>,
        target: Option<&[u8]>,
    ) -> Result<(TaskFile, Change), AgentError> {
        let task = self.task;
        let class = class_of(&task.test_file, start.or(target).unwrap_or_default());
        let change = change::between(old, new, &task.test_file, &class)?;
        let location = BuildFiles::read(new)?.module_of(&task.test_file);
        let module = location.as_ref().map(|module| self.whole.module(task, Side::New, module));
        let facts = TaskFile {
            schema: TASK_FILE_SCHEMA,
            task_id: task.id.clone(),
            repository: task.repository.clone(),
            track: task.track,
            test_file: task.test_file.clone(),
            test_methods: task.test_methods.clone(),
            start_sha256: start.map(Digest::of),
            image: self.image.map(|image| image.config_digest),
            project: crate::execution::container::places::PROJECT.to_owned(),
            commands: module.map(|module| Commands::of(self.manifest, &module, &class, &task.test_methods)),
        };
        Ok((facts, change))
    }
}

impl TaskFile {
    /// Checks that it is of a repository and track.
    ///
    /// # Errors
    /// [`AgentError::Archive`].
    pub fn check_is_of(&self, repository: &RepositoryName, track: Track) -> Result<(), AgentError> {
        match self.repository == *repository && self.track == track {
            true => Ok(()),
            false => Err(AgentError::Archive {
                task: self.task_id.clone(),
                reason: format!("its `{TASK_FILE}` names another repository or track than the bundle does"),
            }),
        }
    }
}

/// Unpacks the archive of a workspace of a task, its repository and track to `output`. Its one commit is `commit`. Readers see the
/// complete workspace or none.
///
/// # Errors
/// [`AgentError::Occupied`], [`AgentError::Archive`], [`AgentError::Io`].
pub fn unpack(
    (task, repository, track): (&TaskId, &RepositoryName, Track),
    commit: &str,
    archive: impl Read,
    output: &Path,
) -> Result<TaskFile, AgentError> {
    appear(task, output, |unfinished| {
        let facts = packing::unpack(task, commit, archive, Some(unfinished))?;
        facts.check_is_of(repository, track)?;
        Ok(facts)
    })
}

/// Writes a new directory, which appears at `output` once it is complete.
fn appear<T>(
    task: &TaskId,
    output: &Path,
    write: impl FnOnce(&Path) -> Result<T, AgentError>,
) -> Result<T, AgentError> {
    check_free(task, output)?;
    let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(parent)?;
    let unfinished = parent.join(format!(".{task}{UNFINISHED}{}", std::process::id()));
    // A killed process with the same id left it: in containers, ids are few.
    if fs::symlink_metadata(&unfinished).is_ok_and(|found| found.is_dir()) {
        fs::remove_dir_all(&unfinished)?;
    }
    fs::create_dir(&unfinished)?;
    let written = write(&unfinished).and_then(|written| {
        if rustix::process::geteuid().is_root() {
            give(&unfinished)?;
        }
        // A directory replaces an empty one only; a file that another process put there makes this fail.
        fs::rename(&unfinished, output)?;
        Ok(written)
    });
    written.inspect_err(|_| {
        // The error of writing is the one to report.
        let _ = fs::remove_dir_all(&unfinished);
    })
}

/// Returns the task whose workspace a killed process left unfinished under this name; `None` for any other name.
pub(crate) fn unfinished_task(name: &OsStr) -> Option<&str> {
    let (task, process) = name.to_str()?.strip_prefix('.')?.rsplit_once(UNFINISHED)?;
    process.parse::<u32>().is_ok().then_some(task)
}

/// Checks that a workspace can be written to a path: nothing is there, or an empty directory.
///
/// # Errors
/// [`AgentError::Occupied`], [`AgentError::Io`].
pub fn check_free(task: &TaskId, path: &Path) -> Result<(), AgentError> {
    let occupied = || AgentError::Occupied { task: task.clone(), path: path.to_owned() };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
        Ok(metadata) if !metadata.is_dir() => Err(occupied()),
        Ok(_) => match fs::read_dir(path)?.next() {
            None => Ok(()),
            Some(_) => Err(occupied()),
        },
    }
}

/// Gives a directory that this process has just written to the user of tasks' containers.
fn give(path: &Path) -> io::Result<()> {
    let is_directory = fs::symlink_metadata(path)?.is_dir();
    fs_err::os::unix::fs::lchown(path, Some(TASK_USER), Some(TASK_USER))?;
    if is_directory {
        for entry in fs::read_dir(path)? {
            give(&entry?.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
