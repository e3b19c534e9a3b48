//! A submission's cell on the direct path. The prepared revision gets the submission's file. Each method is launched in
//! a container of its own, and a second time with the coverage agent if coverage is measured.

use std::sync::Arc;

use super::on_mutants::{MutantRunner, Mutated, MutatedMethods, MutationRequest, mutated, survives};
use super::record::MutantOutcome;
use crate::execution::control::{ControlRequest, ControlTree, MethodControls};
use crate::execution::direct::{Direct, DirectCell, ExecutedCell, SwappedTree};
use crate::execution::executor::Executor;
use crate::execution::fault::{ExecutionError, NoAnswer, answered};
use crate::execution::launch::coverage::Covering;
use crate::execution::launch::coverage::{CoverageRequest, MethodCoverage, own_coverage};
use crate::execution::run::logs::CellLogs;
use crate::execution::run::record::CellRecord;
use crate::execution::trees::Trees;
use crate::metrics::coverage::coverage;
use crate::outcome::Outcome;
use crate::task::MethodId;

/// A submission's cell.
pub(super) struct SubmissionCell<'a> {
    /// The execution without measurements.
    pub(super) executed: DirectCell<'a>,
    /// The coverage request; `None` without coverage.
    pub(super) cover: Option<&'a CoverageRequest<'a>>,
    /// The control request; `None` without controls.
    pub(super) control: Option<&'a ControlRequest<'a>>,
    /// The mutation request; `None` without mutation.
    pub(super) mutate: Option<&'a MutationRequest<'a>>,
}

/// Outcomes on mutants of methods with emptied bodies, or why they are unknown.
pub(super) type EmptiedMethods = Vec<(MethodId, Result<Vec<MutantOutcome>, NoAnswer>)>;

/// Records of a cell's launches, and its measurements.
#[derive(Default)]
pub(super) struct Executed {
    pub(super) records: Vec<CellRecord>,
    pub(super) covered: Vec<MethodCoverage>,
    pub(super) controlled: Vec<MethodControls>,
    pub(super) mutated: MutatedMethods,
    /// Outcomes of emptied methods on mutants, if requested.
    pub(super) emptied: EmptiedMethods,
}

/// Executes a cell. If only Maven can execute it, returns why.
pub(super) async fn run_cell(
    direct: &Direct,
    executor: &Executor,
    trees: &Arc<Trees>,
    cell: &SubmissionCell<'_>,
) -> Result<Executed, ExecutionError> {
    let identity = &cell.executed.identity;
    let class = &cell.executed.facts.class;
    let (trees, task, side) = (Arc::clone(trees), identity.task.clone(), identity.cell.code());
    let archive = move || trees.revision(&task, side);
    let ExecutedCell { records, launched } = direct.run_cell(executor, &cell.executed, archive).await?;
    let Some((swapped, logs)) = launched else { return Ok(Executed { records, ..Executed::default() }) };
    let mut executed = Executed { records, ..Executed::default() };
    let records = &executed.records;
    if let Some(cover) = cell.cover {
        let passed = records.iter().filter(|record| record.repeat == 1 && record.outcome == Outcome::Pass);
        let methods = cover.methods.iter().chain(passed.map(|record| &record.method));
        let covering = Covering { class, files: cover.files, logs: &logs };
        executed.covered = executor.cover(identity.image, &swapped.built, &covering, methods).await?;
    }
    let on_mutants = async |executed: &mut Executed| {
        if let Some(request) = cell.mutate {
            let way = MutantRunner::Direct { direct, swapped: &swapped, class, logs: &logs };
            executed.mutated = mutated(way, (executor, identity.image), request, &executed.records).await?;
        }
        Ok::<(), ExecutionError>(())
    };
    let under_controls = async |executed: &mut Executed| {
        if let Some(request) = cell.control {
            let on = (identity.image, &swapped.built);
            executed.controlled = executor.control(on, (class, &logs), request, &executed.records).await?;
        }
        Ok::<(), ExecutionError>(())
    };
    // Code in a container must not be able to predict which measurement comes first.
    if cell.control.is_some_and(|request| request.seed % 2 == 0) {
        on_mutants(&mut executed).await?;
        under_controls(&mut executed).await?;
    } else {
        under_controls(&mut executed).await?;
        on_mutants(&mut executed).await?;
    }
    if let (Some(control), Some(mutate)) = (cell.control, cell.mutate) {
        executed.emptied = emptied(direct, executor, (cell, &swapped, &logs), (control, mutate), &executed).await?;
    }
    Ok(executed)
}

/// Runs emptied methods on the mutants that their methods kill. It does so only if the emptied method passes on new
/// code and covers as much. It stops at the first surviving mutant, which proves that the body tests something.
async fn emptied(
    direct: &Direct,
    executor: &Executor,
    (cell, swapped, logs): (&SubmissionCell<'_>, &SwappedTree, &CellLogs),
    (control, mutate): (&ControlRequest<'_>, &MutationRequest<'_>),
    executed: &Executed,
) -> std::io::Result<EmptiedMethods> {
    let class = &cell.executed.facts.class;
    let mut became = Vec::new();
    for one in &executed.controlled {
        let Some(form) = one.emptied.as_ref().filter(|emptied| emptied.outcome == Outcome::Pass).map(|one| one.form)
        else {
            continue;
        };
        let covers = |lines| coverage(&own_coverage(mutate.focal.own(&one.method), lines));
        let own = executed.covered.iter().find(|covered| covered.method == one.method);
        let own = own.and_then(|covered| covered.lines.as_ref().ok()).map(covers);
        let of_emptied = one.emptied.as_ref().and_then(|emptied| emptied.lines.as_ref()).map(covers);
        if own.is_some_and(|own| of_emptied.is_some_and(|of_emptied| own != of_emptied)) {
            continue;
        }
        let tree = ControlTree::open(&swapped.built, class, control.sources, control.seed).await?;
        let Some(built) = tree.emptied(executor, &one.method, form).await? else { continue };
        let swapped = SwappedTree { masked: Arc::clone(&swapped.masked), built };
        let logs = logs.below("emptied")?;
        let way = MutantRunner::Direct { direct, swapped: &swapped, class, logs: &logs };
        // Its set-up takes as long as that of the whole method.
        let passing = mutate.passing_with(&executed.records);
        let took = passing.iter().find(|passing| passing.method == one.method).and_then(|passing| passing.launch_ms);
        let request = mutate.of_method(&one.method, took);
        let before = executed.mutated.iter().find(|(method, _)| *method == one.method);
        let killed = before.and_then(|(_, before)| before.as_ref().ok()).map(Mutated::killed);
        let launched = survives(way, (executor, cell.executed.identity.image), &request, killed.as_ref()).await;
        became.push((one.method.clone(), answered(launched)?));
    }
    Ok(became)
}
