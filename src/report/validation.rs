//! Compares gold executions with the published labels.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::execution::run::record::{CellRecord, ExecutionPath, Measured};
use crate::outcome::label::{
    CellVerdict, Discriminating, Doubt, Observed, TaskClass, cells_of, discriminating, expectation, judge, task_class,
};
use crate::outcome::{InfraReason, Outcome};
use crate::task::{Cell, MethodId, Task, TaskId, Track};

/// Version of the summary's schema.
pub const SUMMARY_SCHEMA: u32 = 1;

/// The last line of `validate --format json`. Every list is sorted by task, cell, method.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ValidationSummary {
    /// [`SUMMARY_SCHEMA`].
    pub schema: u32,
    /// The run.
    pub run_id: String,
    /// Tasks selected.
    pub tasks: usize,
    /// Tasks all of whose hard labels were met in every repeat.
    pub reproduced: usize,
    /// Methods that missed a hard label in every repeat, in tasks without a worse class.
    pub differing: Vec<Difference>,
    /// Methods that met a hard label only in some repeats, in tasks that are not infrastructure.
    pub flaky: Vec<Flake>,
    /// Methods whose hard label can't be decided without a network, in tasks that are neither infrastructure nor flaky.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs_network: Vec<Difference>,
    /// Cells that could not be judged.
    pub infrastructure: Vec<InfrastructureFault>,
    /// Numbers of methods that tell new code from old.
    pub discriminating: DiscriminatingCounts,
    /// Methods that do not discriminate, or not for certain.
    pub not_discriminating: Vec<NotDiscriminating>,
    /// Number of executions that differ between the paths; absent if only one path ran. If both ran, the fields above
    /// are of the reference path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_differences: Option<usize>,
    /// Executions whose outcome or reason differs between the paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differing_paths: Vec<PathDifference>,
    /// Cells that the direct path does not fit, executed on the reference path instead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unfit: Vec<UnfitCell>,
}

/// A cell that the direct path does not fit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnfitCell {
    /// The task.
    pub task_id: TaskId,
    /// The cell.
    pub cell: Cell,
    /// Why the direct path does not fit.
    pub reason: String,
}

/// An execution with different outcomes on the two paths.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PathDifference {
    /// The task.
    pub task_id: TaskId,
    /// The cell.
    pub cell: Cell,
    /// The method.
    pub method: MethodId,
    /// Counted from 1.
    pub repeat: u32,
    /// The reference path's outcome.
    pub maven: String,
    /// The direct path's outcome.
    pub direct: String,
    /// The first lines of either path's details.
    pub detail: String,
}

/// A hard label that was missed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Difference {
    /// The task.
    pub task_id: TaskId,
    /// The cell.
    pub cell: Cell,
    /// The method.
    pub method: MethodId,
    /// Outcomes that would have met the label.
    pub expected: Vec<&'static str>,
    /// The outcome's name.
    pub got: &'static str,
    /// The outcome's reason; `None` if it has none.
    pub reason: Option<String>,
    /// The first lines of the outcome's detail.
    pub detail: String,
}

/// A hard label that only some repeats met.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Flake {
    /// The task.
    pub task_id: TaskId,
    /// The cell.
    pub cell: Cell,
    /// The method.
    pub method: MethodId,
    /// Repeats that passed.
    pub passed: usize,
    /// All repeats.
    pub runs: usize,
}

/// A cell that could not be judged.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InfrastructureFault {
    /// The task.
    pub task_id: TaskId,
    /// The cell.
    pub cell: Cell,
    /// The reason.
    pub reason: String,
    /// Number of started containers.
    pub attempts: u32,
    /// The first lines of the outcome's detail.
    pub detail: String,
}

/// Methods by whether they tell new code from old (the cell `no`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DiscriminatingCounts {
    /// Methods of the generation track.
    pub methods: usize,
    /// Fail or do not compile on old code.
    pub yes: usize,
    /// Pass on old code.
    pub no: usize,
    /// Any other outcome.
    pub inconclusive: usize,
}

/// A method that passes on old code, or whose result there is unknown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NotDiscriminating {
    /// The task.
    pub task_id: TaskId,
    /// The method.
    pub method: MethodId,
    /// The outcome on old code.
    pub got: String,
}

/// A task's class beside the task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassedTask<'a> {
    /// The task.
    pub task: &'a Task,
    /// Its class.
    pub class: TaskClass,
}

/// Returns each task's class and the summary of all.
pub fn summarize<'a>(
    run_id: &str,
    tasks: &'a [Task],
    records: &[CellRecord],
) -> (ValidationSummary, Vec<ClassedTask<'a>>) {
    let mut by_method: BTreeMap<(&TaskId, Cell, &MethodId), Vec<&CellRecord>> = BTreeMap::new();
    let has = |path| records.iter().any(|record| record.path == path);
    let both = has(ExecutionPath::Maven) && has(ExecutionPath::Direct);
    for record in records.iter().filter(|record| !both || record.path == ExecutionPath::Maven) {
        by_method.entry((&record.task_id, record.cell, &record.method)).or_default().push(record);
    }
    let mut summary = ValidationSummary {
        schema: SUMMARY_SCHEMA,
        run_id: run_id.to_owned(),
        tasks: tasks.len(),
        reproduced: 0,
        differing: Vec::new(),
        flaky: Vec::new(),
        needs_network: Vec::new(),
        infrastructure: Vec::new(),
        discriminating: DiscriminatingCounts::default(),
        not_discriminating: Vec::new(),
        path_differences: None,
        differing_paths: Vec::new(),
        unfit: unfit(records),
    };
    if both {
        summary.differing_paths = path_differences(records);
        summary.path_differences = Some(summary.differing_paths.len());
    }
    let mut classed = Vec::new();
    for task in tasks {
        let mut verdicts = Vec::new();
        let mut differing = Vec::new();
        let mut flaky = Vec::new();
        let mut needs_network = Vec::new();
        let mut faults = BTreeSet::new();
        for &cell in cells_of(task.track) {
            for method in &task.test_methods {
                let found = by_method.get(&(&task.id, cell, method)).map_or(&[][..], Vec::as_slice);
                let repeats: Vec<Observed> = found.iter().map(|record| observed(record)).collect();
                let expected = expectation(task.track, cell);
                let verdict = judge(expected, &repeats);
                verdicts.push(verdict);
                match verdict {
                    CellVerdict::Met => {}
                    CellVerdict::Infrastructure => {
                        faults.insert(fault(task, cell, found));
                    }
                    CellVerdict::Flaky { passed, runs } => {
                        flaky.push(Flake { task_id: task.id.clone(), cell, method: method.clone(), passed, runs })
                    }
                    CellVerdict::NeedsNetwork(outcome) => {
                        needs_network.push(difference(task, cell, method, outcome, found));
                    }
                    CellVerdict::Differs(outcome) => differing.push(difference(task, cell, method, outcome, found)),
                }
                if task.track == Track::TestGeneration && cell == Cell::No {
                    count(&mut summary, task, method, &repeats);
                }
            }
        }
        let class = task_class(verdicts);
        match class {
            TaskClass::Reproduced => summary.reproduced += 1,
            TaskClass::Differing => summary.differing.extend(differing),
            TaskClass::NeedsNetwork => summary.needs_network.extend(needs_network),
            TaskClass::Flaky => summary.flaky.extend(flaky),
            TaskClass::Infrastructure => summary.infrastructure.extend(faults),
        }
        classed.push(ClassedTask { task, class });
    }
    summary.differing.sort();
    summary.flaky.sort();
    summary.needs_network.sort();
    summary.infrastructure.sort();
    summary.not_discriminating.sort();
    (summary, classed)
}

/// Returns the outcome in a record, with the doubt about it if there is one.
fn observed(record: &CellRecord) -> Observed {
    let doubt = match record {
        CellRecord { measured: Measured { network_missed: true, .. }, .. } => Some(Doubt::Network),
        CellRecord { missing, .. } if !missing.is_empty() => Some(Doubt::Contents),
        _ => None,
    };
    Observed { outcome: record.outcome, doubt }
}

/// Returns the hard label that a method missed with this outcome.
fn difference(task: &Task, cell: Cell, method: &MethodId, outcome: Outcome, records: &[&CellRecord]) -> Difference {
    let detail = records.iter().find(|record| record.outcome == outcome);
    Difference {
        task_id: task.id.clone(),
        cell,
        method: method.clone(),
        expected: expectation(task.track, cell).names().to_vec(),
        got: outcome.name(),
        reason: outcome.reason(),
        detail: detail.map_or_else(String::new, |record| record.detail.clone()),
    }
}

fn unfit(records: &[CellRecord]) -> Vec<UnfitCell> {
    let cells: BTreeSet<UnfitCell> = records
        .iter()
        .filter_map(|record| {
            let reason = record.measured.unfit.clone()?;
            Some(UnfitCell { task_id: record.task_id.clone(), cell: record.cell, reason })
        })
        .collect();
    cells.into_iter().collect()
}

/// Returns the executions with another outcome on the other path.
fn path_differences(records: &[CellRecord]) -> Vec<PathDifference> {
    let mut pairs: BTreeMap<(&TaskId, Cell, &MethodId, u32), [Option<&CellRecord>; 2]> = BTreeMap::new();
    for record in records {
        let pair = pairs.entry((&record.task_id, record.cell, &record.method, record.repeat)).or_default();
        pair[usize::from(record.path == ExecutionPath::Direct)] = Some(record);
    }
    let outcome = |record: Option<&CellRecord>| record.map(|record| record.outcome);
    let text = |record: Option<&CellRecord>| {
        record.map_or_else(|| "no record".to_owned(), |record| record.outcome.to_string())
    };
    let differing = pairs.into_iter().filter(|(_, [maven, direct])| outcome(*maven) != outcome(*direct));
    differing
        .map(|((task_id, cell, method, repeat), [maven, direct])| {
            let details = [maven, direct].into_iter().flatten().map(|record| record.detail.as_str());
            PathDifference {
                task_id: task_id.clone(),
                cell,
                method: method.clone(),
                repeat,
                maven: text(maven),
                direct: text(direct),
                detail: details.filter(|detail| !detail.is_empty()).collect::<Vec<_>>().join("\n"),
            }
        })
        .collect()
}

fn fault(task: &Task, cell: Cell, records: &[&CellRecord]) -> InfrastructureFault {
    let worst = records.iter().find(|record| matches!(record.outcome, Outcome::InfraFail(_)));
    InfrastructureFault {
        task_id: task.id.clone(),
        cell,
        reason: worst
            .and_then(|record| record.outcome.reason())
            .or_else(|| Outcome::InfraFail(InfraReason::Killed).reason())
            .unwrap_or_default(),
        attempts: worst.map_or(0, |record| record.attempts),
        detail: worst.map_or_else(|| "no record of the cell".to_owned(), |record| record.detail.clone()),
    }
}

fn count(summary: &mut ValidationSummary, task: &Task, method: &MethodId, repeats: &[Observed]) {
    let counts = &mut summary.discriminating;
    counts.methods += 1;
    match discriminating(repeats) {
        Discriminating::Yes => {
            counts.yes += 1;
            return;
        }
        Discriminating::No => counts.no += 1,
        Discriminating::Inconclusive => counts.inconclusive += 1,
    }
    summary.not_discriminating.push(NotDiscriminating {
        task_id: task.id.clone(),
        method: method.clone(),
        got: repeats
            .iter()
            .find(|one| !one.outcome.is_attributable_failure() || one.doubt.is_some())
            .map_or_else(|| "no record".to_owned(), |one| one.outcome.to_string()),
    });
}

#[cfg(test)]
mod tests;
