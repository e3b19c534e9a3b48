//! A submission's cell on the direct path. The prepared revision gets the submission's file. Each method is launched in
//! a container of its own, and a second time with the coverage agent if coverage is measured.

use std::sync::Arc;

use super::on_mutants::{MutantRunner, MutatedMethods, MutationRequest, mutated};
use crate::execution::direct::{Direct, DirectCell, ExecutedCell};
use crate::execution::executor::Executor;
use crate::execution::fault::ExecutionError;
use crate::execution::launch::coverage::Covering;
use crate::execution::launch::coverage::{CoverageRequest, MethodCoverage};
use crate::execution::run::record::CellRecord;
use crate::execution::trees::Trees;
use crate::outcome::Outcome;

/// A submission's cell.
pub(super) struct SubmissionCell<'a> {
    /// What is executed of it.
    pub(super) executed: DirectCell<'a>,
    /// The coverage request; `None` without coverage.
    pub(super) cover: Option<&'a CoverageRequest<'a>>,
    /// The mutation request; `None` without mutation.
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
) -> Result<Executed, ExecutionError> {
    let identity = &cell.executed.identity;
    let (trees, task, side) = (Arc::clone(trees), identity.task.clone(), identity.cell.code());
    let archive = move || trees.revision(&task, side);
    let ExecutedCell { records, launched } = direct.run_cell(executor, &cell.executed, archive).await?;
    let Some((swapped, logs)) = launched else { return Ok((records, Vec::new(), Vec::new())) };
    let covered = match cell.cover {
        Some(cover) => {
            let passed = records.iter().filter(|record| record.repeat == 1 && record.outcome == Outcome::Pass);
            let methods = cover.methods.iter().chain(passed.map(|record| &record.method));
            let class = &cell.executed.facts.class;
            let covering = Covering { class, files: cover.files, logs: &logs };
            executor.cover(identity.environment, &swapped.built, &covering, methods).await?
        }
        None => Vec::new(),
    };
    let mutated = match cell.mutate {
        Some(request) => {
            let class = &cell.executed.facts.class;
            let way = MutantRunner::Direct { direct, swapped: &swapped, class, logs: &logs };
            mutated(way, (executor, identity.environment), request, &records).await?
        }
        None => Vec::new(),
    };
    Ok((records, covered, mutated))
}
