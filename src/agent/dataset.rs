//! Tasks as lines of a data set, under SWE-bench's names where they mean the same.

use serde::Serialize;

use super::{AgentError, NewWorkspace, TaskFile, instructions};
use crate::task::{MethodId, RepositoryName, RepositoryPath, Revision, TaskId, Track};
use crate::workspace::RevisionTree;

/// A task as a line of a data set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DatasetRow {
    /// The task.
    pub instance_id: TaskId,
    /// Its repository.
    pub repo: RepositoryName,
    /// What `TASK.md` of its workspace says.
    pub problem_statement: String,
    /// What `task.json` of its workspace says.
    pub task: TaskFile,
    /// What only scorers get.
    #[serde(flatten)]
    pub answer: Option<Answer>,
}

/// The developers' answer to a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Answer {
    /// Day of the new revision.
    pub created_at: String,
    /// The developers' test, as a patch of the target file that `score` takes as `model_patch`; `null` where the file is no text.
    pub patch: Option<String>,
    /// For generation: the target methods, which fail on old code and pass on new code.
    #[serde(rename = "FAIL_TO_PASS")]
    pub fail_to_pass: Vec<MethodId>,
    /// The old revision.
    pub old_commit: Revision,
    /// The new revision.
    pub new_commit: Revision,
}

impl NewWorkspace<'_> {
    /// Returns the task's line of a data set; `answered` for scorers, with the developers' answer.
    ///
    /// # Errors
    /// [`AgentError::Sources`].
    pub fn dataset_row(&self, answered: bool) -> Result<DatasetRow, AgentError> {
        let task = self.task;
        let (old, new) = (self.repository.tree(&task.rev1)?, self.repository.tree(&task.rev2)?);
        let start = old.read_source(task.test_file.as_str())?;
        let target = new.read_source(task.test_file.as_str())?;
        let (facts, change) = self.facts((&old, &new), start.as_deref(), target.as_deref())?;
        let answer = || -> Result<Answer, AgentError> {
            Ok(Answer {
                created_at: task.rev2_date.clone(),
                patch: patch(&new, &task.test_file, start.as_deref(), target.as_deref().unwrap_or_default())?,
                fail_to_pass: match task.track {
                    Track::TestGeneration => task.test_methods.clone(),
                    Track::TestUpdate => Vec::new(),
                },
                old_commit: task.rev1.clone(),
                new_commit: task.rev2.clone(),
            })
        };
        Ok(DatasetRow {
            instance_id: task.id.clone(),
            repo: task.repository.clone(),
            problem_statement: instructions::text(&facts, &change),
            task: facts,
            answer: answered.then(answer).transpose()?,
        })
    }
}

/// Returns the patch that makes the developers' file of the one that an agent starts from.
fn patch(
    tree: &RevisionTree,
    path: &RepositoryPath,
    start: Option<&[u8]>,
    target: &[u8],
) -> Result<Option<String>, AgentError> {
    let Ok(text) = std::str::from_utf8(target) else { return Ok(None) };
    match start {
        Some(start) if std::str::from_utf8(start).is_err() => Ok(None),
        Some(start) => Ok(tree.diff(path.as_str(), start, target)?),
        None => Ok(Some(new_file(path, text))),
    }
}

/// Returns the patch that adds a file.
fn new_file(path: &RepositoryPath, text: &str) -> String {
    let lines = text.split_inclusive('\n').count();
    let mut patch = format!(
        "diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{lines} @@\n"
    );
    for line in text.split_inclusive('\n') {
        patch.push('+');
        patch.push_str(line);
    }
    if !text.is_empty() && !text.ends_with('\n') {
        patch.push_str("\n\\ No newline at end of file\n");
    }
    patch
}
