//! Looks for the answer where an agent would look: in files, archives inside archives, image layers, git objects and Maven caches.
//!
//! [`Hunt`] holds what must not be found, [`Scanner`] looks for it, [`AuditReport`] says what was found and what could not be
//! looked at. Everything that is looked at is hostile: links are not followed, nothing is executed, and nesting, sizes, entries
//! and time are bounded. Nothing is unpacked to disk but git's index of a pack.

mod artifacts;
mod base64;
mod changes;
mod hunt;
mod normal;
mod packs;
mod places;
mod scanner;
mod streams;
mod unix_ar;

use std::io;
use std::time::Duration;

use serde::Serialize;

use crate::error::{ExitStatus, Failure};
use crate::task::TaskId;

pub use artifacts::OwnArtifact;
pub use hunt::{Hunt, Secret};
pub use scanner::Scanner;

/// Why an audit can't be done.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// Nothing distinguishes the developers' tests from the starting files.
    #[error("nothing can be looked for: the developers' tests of {0} are no other text than the starting files")]
    Nothing(String),
    /// The search could not be prepared.
    #[error("the search could not be prepared: {0}")]
    Search(String),
    /// A file or directory that the user named can't be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Failure for AuditError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Nothing(_) => ExitStatus::BadInput,
            Self::Search(_) => ExitStatus::Infrastructure,
            Self::Io(error) if error.kind() == io::ErrorKind::NotFound => ExitStatus::Usage,
            Self::Io(_) => ExitStatus::Infrastructure,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Nothing(_) => "name other tasks with `--task`",
            Self::Search(_) => "name fewer tasks with `--task`",
            Self::Io(error) if error.kind() == io::ErrorKind::NotFound => {
                "name a directory, a file, or a repository whose image is built"
            }
            Self::Io(_) => "check the permissions of what is audited, and that its file system answers",
        };
        Some(hint.to_owned())
    }
}

/// Limits of one audit.
#[derive(Clone, Copy, Debug)]
pub struct AuditLimits {
    /// The deepest nesting of archives and encodings.
    pub depth: usize,
    /// The most files and members of archives.
    pub entries: u64,
    /// The largest file or member that is held in memory, in bytes.
    pub entry_bytes: u64,
    /// The most bytes that are read and unpacked in total.
    pub total_bytes: u64,
    /// The most findings, and the most places that were not looked at, that are listed.
    pub listed: usize,
    /// The wall time.
    pub time: Duration,
}

impl Default for AuditLimits {
    fn default() -> Self {
        Self {
            depth: 8,
            entries: 2_000_000,
            entry_bytes: 256 << 20,
            total_bytes: 64 << 30,
            listed: 1000,
            time: Duration::from_secs(3600),
        }
    }
}

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A file with the bytes of the developers' test file.
    TestFile,
    /// The text of the developers' test file, apart from blanks and marks at the beginnings of lines.
    TestText,
    /// A method of the developers' test file that the starting file lacks or has in another form.
    MethodText,
    /// Changed lines of the developers' test file, where nothing more of it was found.
    ChangedText,
    /// A class file of the target file's class, or of one nested in it.
    ClassFile,
    /// The full id of the new revision's commit.
    CommitId,
    /// A git repository has more than one commit, or a commit with parents.
    Commits,
    /// A name in a git repository that stands for a commit that is not there, or a later one.
    Reference,
    /// A reflog.
    Reflog,
    /// A git repository names a remote, or takes its configuration from another file.
    Remote,
    /// A git repository takes objects from another directory, or lies in one.
    Alternates,
    /// A jar of the project's own in a Maven cache, not older than the new revision.
    LaterArtifact,
}

impl Kind {
    /// Tells whether it is a text of the developers' test file.
    pub fn is_text(self) -> bool {
        matches!(self, Self::TestFile | Self::TestText | Self::MethodText | Self::ChangedText)
    }

    /// Returns the kind's name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::TestFile => "test_file",
            Self::TestText => "test_text",
            Self::MethodText => "method_text",
            Self::ChangedText => "changed_text",
            Self::ClassFile => "class_file",
            Self::CommitId => "commit_id",
            Self::Commits => "commits",
            Self::Reference => "reference",
            Self::Reflog => "reflog",
            Self::Remote => "remote",
            Self::Alternates => "alternates",
            Self::LaterArtifact => "later_artifact",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// The task whose answer was found; `None` for what shows any later state of the project.
    pub task_id: Option<TaskId>,
    /// Whether the answer is that of another task than the audited one. Such findings do no harm where each agent gets only its
    /// own task's workspace.
    pub cross_task: bool,
    /// The kind.
    pub kind: Kind,
    /// The path; `!` stands between an archive or encoding and what is in it.
    pub place: String,
    /// The offset in the innermost content, in bytes.
    pub offset: u64,
    /// The method, commit or class.
    pub detail: String,
}

/// A place that was not looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct NotLookedAt {
    /// The path.
    pub place: String,
    /// The reason.
    pub reason: String,
}

/// The result of an audit.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AuditReport {
    /// Findings, sorted, each once.
    pub findings: Vec<Finding>,
    /// Places that were not looked at, sorted.
    pub not_looked_at: Vec<NotLookedAt>,
    /// Number of findings and places that the lists leave out.
    pub not_listed: u64,
    /// Number of files and members of archives.
    pub entries: u64,
    /// Bytes that were looked at.
    pub bytes: u64,
}

impl AuditReport {
    /// Returns the findings that are not of another task.
    pub fn leaks(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| !finding.cross_task)
    }

    /// Tells whether everything was looked at.
    pub fn is_complete(&self) -> bool {
        self.not_looked_at.is_empty() && self.not_listed == 0
    }

    /// Tells whether everything was looked at and nothing was found of the audited tasks.
    pub fn is_clean(&self) -> bool {
        self.is_complete() && self.leaks().next().is_none()
    }
}

#[cfg(test)]
mod tests;
