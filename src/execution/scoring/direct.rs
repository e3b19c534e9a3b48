//! A submission's cell on the direct path: the prepared revision with the submission's file in it, each method launched in a
//! container of its own, and launched again with the coverage agent where that is asked for.

use std::sync::Arc;

use super::mutated::{MutatedMethods, MutationRequest, Way, mutated};
use crate::execution::cell::{Environment, Executor};
use crate::execution::coverage::{CoverageRequest, MethodCoverage};
use crate::execution::direct::{Covering, Direct, DirectCell, ExecutedCell, Swap, Unfit};
use crate::execution::maven::ModuleArguments;
use crate::execution::prepared::RevisionInput;
use crate::execution::record::CellRecord;
use crate::execution::trees::Trees;
use crate::outcome::Outcome;
use crate::task::{Side, Task};

/// A submission's cell.
pub(super) struct SubmissionCell<'a> {
    /// What is executed of it.
    pub(super) executed: DirectCell<'a>,
    /// What is covered, where that is measured.
    pub(super) cover: Option<&'a CoverageRequest<'a>>,
    /// What is mutated, where that is measured.
    pub(super) mutate: Option<&'a MutationRequest<'a>>,
}

/// Records of a cell's launches, and of what was measured of them.
pub(super) type Executed = (Vec<CellRecord>, Vec<MethodCoverage>, MutatedMethods);

/// Executes a cell; where only Maven can, says why.
pub(super) async fn run_cell(
    direct: &Direct,
    executor: &Executor,
    trees: &Arc<Trees>,
    cell: &SubmissionCell<'_>,
) -> std::io::Result<Result<Executed, Unfit>> {
    let identity = &cell.executed.identity;
    let (trees, task, side) = (Arc::clone(trees), identity.task.clone(), identity.cell.code());
    let archive = move || trees.revision(&task, side);
    let ExecutedCell { records, launched } = match direct.run_cell(executor, &cell.executed, archive).await? {
        Ok(executed) => executed,
        Err(unfit) => return Ok(Err(unfit)),
    };
    let Some((swapped, logs)) = launched else { return Ok(Ok((records, Vec::new(), Vec::new()))) };
    let covered = match cell.cover {
        Some(cover) => {
            let passed = records.iter().filter(|record| record.repeat == 1 && record.outcome == Outcome::Pass);
            let methods = cover.methods.iter().chain(passed.map(|record| &record.method));
            let class = &cell.executed.facts.class;
            let covering = Covering { class, files: cover.files, logs: &logs };
            direct.cover(executor, identity.environment, &swapped, &covering, methods).await?
        }
        None => Vec::new(),
    };
    let mutated = match cell.mutate {
        Some(request) => {
            let class = &cell.executed.facts.class;
            let way = Way::Direct { direct, swapped: &swapped, class, logs: &logs };
            mutated(way, (executor, identity.environment), request, &records).await?
        }
        None => Vec::new(),
    };
    Ok(Ok((records, covered, mutated)))
}

/// A task's new code, for texts that are put in the target file's place.
pub(super) struct NewCode<'a> {
    /// Writes the revision's tree.
    pub(super) trees: &'a Arc<Trees>,
    /// The task.
    pub(super) task: &'a Task,
    /// Git's id of the revision's tree.
    pub(super) tree: &'a str,
    /// The target file's module.
    pub(super) module: &'a ModuleArguments,
}

/// Puts a text in the target file's place on new code and compiles it; `None` where new code does not fit the direct path.
pub(super) async fn swap(
    direct: &Direct,
    (executor, environment): (&Executor, &Environment),
    on: &NewCode<'_>,
    text: &[u8],
) -> std::io::Result<Option<Swap>> {
    let input = RevisionInput { tree: on.tree.to_owned(), module: on.module.clone() };
    let (trees, task) = (Arc::clone(on.trees), on.task.clone());
    let archive = move || trees.revision(&task, Side::New);
    let Ok(revision) = direct.revision(executor, environment, &input, archive).await? else { return Ok(None) };
    match direct.masked(executor, &revision, on.task.test_file.as_str()).await? {
        Ok(masked) => Ok(Some(direct.swap(executor, environment, &masked, text).await?)),
        Err(_) => Ok(None),
    }
}
