//! Source trees of revisions, read from git and never checked out.
//!
//! A [`Sources`] finds a repository, and a [`Repository`] gives the [`RevisionTree`] of a commit exactly as git has it.
//! [`archive`] turns a tree into a tar archive with one file swapped, and [`build_files`] finds its Maven modules.
//! Trees are untrusted: names that could leave the tree are refused, sizes are bounded, links are never followed.

pub mod archive;
pub mod build_files;
pub mod built;
pub mod cells;
pub mod changes;
pub mod class_file;
mod diff;
mod gaps;
mod git_command;
pub mod java_source;
mod maven_config;
mod notices;
pub mod pom;
mod reactor;
mod renames;
pub mod source;
pub mod tree;

use std::io;
use std::path::PathBuf;

use crate::data_dir::DataDirError;
use crate::error::{ExitStatus, Failure};
use crate::task::{RepositoryName, Revision};

pub use archive::{ArchiveReport, Swap, write_archive};

pub use crate::engine::spec::TREE_TIME;
pub use build_files::{BuildFiles, ModuleLocation};
pub use notices::Notices;
pub use source::{MirrorTemplate, Sources};
pub use tree::{EntryKind, Repository, RevisionTree, TreeEntry, TreeReport};

/// Why sources are not available.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The template of mirrors has no placeholder for the repository's name.
    #[error("the template `{template}` of git mirrors does not have {{name}} in it")]
    MirrorTemplate {
        /// The template.
        template: String,
    },
    /// The mirror has no such repository.
    #[error("there is no git repository of {repository} at `{path}`")]
    MirrorMissing {
        /// The repository.
        repository: RepositoryName,
        /// The path that was looked up.
        path: PathBuf,
    },
    /// The repository does not have a commit.
    #[error("{repository} has no commit {revision} in `{path}`")]
    RevisionMissing {
        /// The repository.
        repository: RepositoryName,
        /// The commit.
        revision: Revision,
        /// The git directory.
        path: PathBuf,
    },
    /// A commit must be fetched, but fetching is disabled.
    #[error("the commit {revision} of {repository} is not here, and nothing may be fetched offline")]
    Offline {
        /// The repository.
        repository: RepositoryName,
        /// The first missing commit.
        revision: Revision,
    },
    /// `git` could not fetch.
    #[error("{repository} could not be fetched by git: {message}")]
    Fetch {
        /// The repository.
        repository: RepositoryName,
        /// The last lines of git's output.
        message: String,
    },
    /// The command `git` can't be run.
    #[error("the command `git` can't be run")]
    GitCommand(#[source] io::Error),
    /// The repository can't be read.
    #[error("the git repository of {repository} in `{path}` can't be read: {source}")]
    Git {
        /// The repository.
        repository: RepositoryName,
        /// The git directory.
        path: PathBuf,
        /// The cause.
        source: git2::Error,
    },
    /// The repository lacks the content of a required file.
    #[error("{repository} at {revision} lacks the content of `{path}`")]
    MissingBlob {
        /// The repository.
        repository: RepositoryName,
        /// The commit.
        revision: Revision,
        /// The file.
        path: String,
    },
    /// A required file is only a pointer to content in git-lfs.
    #[error("{repository} at {revision} has `{path}` in git-lfs's store, which is not read")]
    LfsPointer {
        /// The repository.
        repository: RepositoryName,
        /// The commit.
        revision: Revision,
        /// The file.
        path: String,
    },
    /// The tree has an entry that can't come from an honest project.
    #[error("{repository} at {revision} has a tree that is refused: {reason}: `{path}`")]
    HostileTree {
        /// The repository.
        repository: RepositoryName,
        /// The commit.
        revision: Revision,
        /// The reason.
        reason: &'static str,
        /// The path, shortened.
        path: String,
    },
    /// The file to swap would lie below an entry that is not a directory.
    #[error("{repository} at {revision} can't have a file `{path}`: a part of the path is no directory there")]
    SwapBlocked {
        /// The repository.
        repository: RepositoryName,
        /// The commit.
        revision: Revision,
        /// The file.
        path: String,
    },
    /// The archive could not be written.
    #[error("the archive of {repository} at {revision} could not be written: {source}")]
    Archive {
        /// The repository.
        repository: RepositoryName,
        /// The commit.
        revision: Revision,
        /// The cause.
        source: io::Error,
    },
    /// The data directory can't be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Failure for WorkspaceError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::MirrorTemplate { .. } => ExitStatus::Usage,
            Self::MirrorMissing { .. }
            | Self::RevisionMissing { .. }
            | Self::Offline { .. }
            | Self::Fetch { .. }
            | Self::MissingBlob { .. } => ExitStatus::Origin,
            Self::Git { .. } => ExitStatus::Mismatch,
            Self::LfsPointer { .. } | Self::HostileTree { .. } | Self::SwapBlocked { .. } => ExitStatus::BadInput,
            Self::GitCommand(_) | Self::Archive { .. } | Self::DataDir(_) | Self::Io(_) => ExitStatus::Infrastructure,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::MirrorTemplate { .. } => "write for example `--git-mirror '/srv/mirrors/{owner}/{name}.git'`",
            Self::MirrorMissing { .. } => {
                "correct `--git-mirror`, put a clone there, or leave the option out to clone from the manifest's URL"
            }
            Self::RevisionMissing { .. } => "update the mirror or clone; the commit may have left all its branches",
            Self::Offline { .. } => "run once without `--offline`, or name a mirror with `--git-mirror`",
            Self::Fetch { .. } => {
                "check the network and git's own settings (proxy, certificates), or name a mirror with `--git-mirror`"
            }
            Self::GitCommand(_) => "install git, or name a mirror with `--git-mirror`, for which git is not needed",
            Self::Git { .. } => "check the directory with `git fsck`, or delete it if it is a clone of this program",
            Self::MissingBlob { .. } => "complete the mirror: it was made without some contents",
            Self::LfsPointer { .. } | Self::HostileTree { .. } | Self::SwapBlocked { .. } => {
                "leave the tasks of this revision out"
            }
            Self::DataDir(error) => return error.hint(),
            Self::Archive { .. } | Self::Io(_) => "check permissions and free space",
        };
        Some(hint.to_owned())
    }
}

#[cfg(test)]
mod tests;
