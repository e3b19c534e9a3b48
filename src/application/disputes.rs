//! Executes tasks whose labels do not hold again, on both paths, and writes for each what shows it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fs_err as fs;
use futures_util::{StreamExt as _, TryStreamExt as _};

use super::Context;
use super::io_failure::IoFailure;
use super::workbench::blocking;
use crate::agent::change;
use crate::data_dir::write_below;
use crate::error::CommandError;
use crate::execution::container::RepositoryImage;
use crate::execution::run::record::{CellRecord, ExecutionPath};
use crate::execution::run::stage::RunError;
use crate::execution::validation::Validation;
use crate::outcome::label::{TaskClass, cells_of};
use crate::report::dispute::Dispute;
use crate::report::validation::summarize;
use crate::task::{RepositoryName, Task};
use crate::workspace::cells::class_of;
use crate::workspace::{Repository, WorkspaceError};

/// The directory of disputes in a run's directory.
pub(super) const DIRECTORY: &str = "disputes";

/// Repeats of each execution on each path.
const REPEATS: u32 = 3;

const STAGE: &str = "confirm";

/// What disputes are made of.
pub(super) struct Disputes<'a> {
    /// The run's directory.
    pub(super) run: &'a Path,
    /// Git directories of the tasks' repositories.
    pub(super) paths: &'a BTreeMap<RepositoryName, PathBuf>,
    /// The command.
    pub(super) context: &'a Context,
}

/// The diffs of a task.
struct Diffs {
    test: String,
    code: change::Change,
}

impl Disputes<'_> {
    /// Writes a dispute for every task whose labels do not hold according to `records`, and that has none yet.
    /// `validation` executes both paths, three times each. Returns the number of tasks with a dispute.
    ///
    /// # Errors
    /// [`CommandError`] of executions and files; an interrupt.
    pub(super) async fn write(
        &self,
        validation: &Validation<'_>,
        tasks: &[Task],
        records: &[CellRecord],
    ) -> Result<usize, CommandError> {
        let (_, classed) = summarize("", tasks, records);
        let is_disputed = |class| match class {
            TaskClass::Differing | TaskClass::NeedsNetwork | TaskClass::Flaky => true,
            TaskClass::Infrastructure | TaskClass::Reproduced => false,
        };
        let image = |task: &Task| validation.images.get(&task.repository);
        let disputed: Vec<_> = classed
            .iter()
            .filter(|classed| is_disputed(classed.class))
            .filter_map(|classed| Some((classed.task, classed.class, image(classed.task)?)))
            .collect();
        let left: Vec<_> = disputed.iter().filter(|(task, ..)| !self.file(task).exists()).collect();
        if left.is_empty() {
            return Ok(disputed.len());
        }
        let directory = self.run.join(DIRECTORY);
        fs::create_dir_all(&directory).map_err(IoFailure::of("writing disputes"))?;
        let done = disputed.len() - left.len();
        let stage = self.context.events.stage(STAGE, Some(disputed.len() as u64), done as u64);
        for &(task, class, image) in left {
            let writing = async {
                let text = self.dispute(validation, task, class, image).await?;
                // The run's directory is swept, the directory of disputes is not.
                let written = write_below(self.run, &self.file(task), text.as_bytes());
                written.map_err(IoFailure::of(format!("writing the dispute of {}", task.id)))
            };
            stage.during(task.id.as_str(), writing).await?;
        }
        Ok(disputed.len())
    }

    fn file(&self, task: &Task) -> PathBuf {
        self.run.join(DIRECTORY).join(format!("{}.md", task.id))
    }

    async fn dispute(
        &self,
        validation: &Validation<'_>,
        task: &Task,
        class: TaskClass,
        image: &RepositoryImage,
    ) -> Result<String, CommandError> {
        let cells =
            cells_of(task.track).iter().flat_map(|&cell| validation.paths.iter().map(move |&path| (cell, path)));
        let jobs = futures_util::stream::iter(cells.map(|(cell, path)| validation.cell(task, cell, path)));
        let all = jobs.buffer_unordered(validation.jobs.max(1)).try_collect::<Vec<_>>();
        let mut records: Vec<CellRecord> = tokio::select! {
            all = all => all?.into_iter().flatten().collect(),
            () = self.context.cancellation.cancelled() => return Err(RunError::Interrupted.into()),
        };
        records.sort_by(|a, b| (a.cell, &a.method, a.path, a.repeat).cmp(&(b.cell, &b.method, b.path, b.repeat)));
        let path = self.paths.get(&task.repository).cloned().unwrap_or_default();
        let of = task.clone();
        let diffs = blocking(move || Ok(diffs(&path, &of)?)).await?;
        let dispute = Dispute {
            task,
            class,
            records: &records,
            image: image.config_digest,
            jdk: image.jdk,
            test_diff: &diffs.test,
            code_diff: &diffs.code.text,
            only_named: &diffs.code.only_named,
        };
        Ok(dispute.markdown())
    }
}

/// The paths and repeats of executions for disputes.
pub(super) fn confirming<'a>(validation: &Validation<'a>) -> Validation<'a> {
    Validation {
        repeats: REPEATS.max(validation.repeats),
        paths: &[ExecutionPath::Maven, ExecutionPath::Direct],
        ..validation.clone()
    }
}

fn diffs(path: &Path, task: &Task) -> Result<Diffs, WorkspaceError> {
    let repository = Repository::open(task.repository.clone(), path)?;
    let (old, new) = (repository.tree(&task.rev1)?, repository.tree(&task.rev2)?);
    let file = task.test_file.as_str();
    let (before, after) = (old.read(file)?.unwrap_or_default(), new.read(file)?.unwrap_or_default());
    let test = new.diff(file, &before, &after)?.unwrap_or_default();
    let class = class_of(&task.test_file, &after);
    Ok(Diffs { test, code: change::between(&old, &new, &task.test_file, &class)? })
}
