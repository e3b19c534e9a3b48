//! Gold validation: executes every cell of every task, several at once, and writes each record as soon as it exists.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::event::EventSink;
use crate::execution::container::RepositoryImage;
use crate::execution::contents::{blame_sources, may_need_contents, name_missing};
use crate::execution::direct::{Direct, DirectCell};
use crate::execution::executor::Executor;
use crate::execution::fault::{Fault, answered};
use crate::execution::obstacle::Obstacles;
use crate::execution::request::{CellIdentity, CellRequest};
use crate::execution::run::directory::RunDirectory;
use crate::execution::run::record::{CellRecord, ExecutionPath, Measured, RECORD_SCHEMA};
use crate::execution::run::stage::{RunError, Stage};
use crate::execution::trees::Trees;
use crate::outcome::label::{cells_of, expectation};
use crate::outcome::launch::shortened;
use crate::outcome::{InfraReason, Outcome};
use crate::task::{Cell, RepositoryName, Side, Task};

/// The parameters of a validation.
#[derive(Clone)]
pub struct Validation<'a> {
    /// The tasks.
    pub tasks: &'a [Task],
    /// Images of the tasks' repositories.
    pub images: &'a BTreeMap<RepositoryName, RepositoryImage>,
    /// Executors of the tasks' repositories, whose limits may differ.
    pub executors: &'a BTreeMap<RepositoryName, Arc<Executor>>,
    /// What keeps tasks from being executed.
    pub obstacles: &'a Obstacles,
    /// Launches of each method and cell.
    pub repeats: u32,
    /// Most cells at once.
    pub jobs: usize,
    /// The trees of cells.
    pub trees: Arc<Trees>,
    /// The paths that every cell is executed on.
    pub paths: &'a [ExecutionPath],
    /// The direct path, if `paths` has it.
    pub direct: Option<Arc<Direct>>,
}

impl Validation<'_> {
    /// Executes everything that has no record in `known`, and returns all records.
    ///
    /// # Errors
    /// [`RunError`]. The run's directory then contains all records until the error.
    pub async fn run(
        &self,
        run: &mut RunDirectory,
        known: Vec<CellRecord>,
        events: &EventSink,
        cancellation: &CancellationToken,
    ) -> Result<Vec<CellRecord>, RunError> {
        let missing = self.missing(&known);
        let cells: usize = self.tasks.iter().map(|task| cells_of(task.track).len()).sum();
        let done = (cells * self.paths.len()).saturating_sub(missing.len());
        let jobs = missing.into_iter().map(|(task, cell, path)| {
            let item = match self.paths {
                [_, _, ..] => format!("{} {} {path}", task.id, cell.name()),
                _ => format!("{} {}", task.id, cell.name()),
            };
            (item, self.cell(task, cell, path))
        });
        let stage = Stage { name: "validate", jobs: self.jobs, done, events, cancellation };
        stage.run(run, known, jobs, outcomes).await
    }

    /// Returns the cells and paths in which a method or repeat has no record.
    fn missing(&self, known: &[CellRecord]) -> Vec<(&Task, Cell, ExecutionPath)> {
        let mut there = BTreeMap::new();
        for record in known {
            let cell: &mut BTreeSet<_> = there.entry((record.task_id.as_str(), record.cell, record.path)).or_default();
            cell.insert((record.method.as_str(), record.repeat));
        }
        let mut missing = Vec::new();
        for task in self.tasks {
            let cells = if self.jobs > 1 { alternating(task) } else { ordered_cells(task) };
            for &path in self.paths {
                for &cell in &cells {
                    let found = there.get(&(task.id.as_str(), cell, path)).map_or(0, BTreeSet::len);
                    if found < task.test_methods.len() * self.repeats as usize {
                        missing.push((task, cell, path));
                    }
                }
            }
        }
        missing
    }

    /// Executes one cell on a path, from its sources to its records. A cell that the direct path does not fit runs on
    /// the reference path. An outcome that misses its label on a tree that lacks contents is a fault of the sources.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn cell(&self, task: &Task, cell: Cell, path: ExecutionPath) -> Result<Vec<CellRecord>, RunError> {
        let mut records = self.executed(task, cell, path).await?;
        if records.iter().any(|record| may_need_contents(record.outcome)) {
            // Where the tree can't be read the records say so already.
            let missing = self.blocking(task, cell, Trees::missing).await?.unwrap_or_default();
            for record in records.iter_mut().filter(|record| may_need_contents(record.outcome)) {
                judge_by_contents(record, &missing);
            }
        }
        Ok(records)
    }

    async fn executed(&self, task: &Task, cell: Cell, path: ExecutionPath) -> Result<Vec<CellRecord>, RunError> {
        if let Some(Fault { reason, detail }) = self.obstacles.fault(task, cell.code()) {
            return Ok(self.unprepared(task, cell, path, reason, &detail));
        }
        let (Some(image), Some(executor)) = (self.images.get(&task.repository), self.executors.get(&task.repository))
        else {
            let Fault { reason, detail } = self.obstacles.without_image(task, cell.code());
            return Ok(self.unprepared(task, cell, path, reason, &detail));
        };
        let mut unfit = None;
        if let (ExecutionPath::Direct, Some(direct)) = (path, &self.direct) {
            let facts = match self.blocking(task, cell, Trees::facts).await? {
                Ok(facts) => facts,
                Err(cause) => return Ok(self.unprepared(task, cell, path, InfraReason::Source, &cause)),
            };
            let identity = CellIdentity { task, cell, image, tree: &facts.tree, swapped: facts.swapped(), path };
            let request = DirectCell { identity, facts: &facts, methods: &task.test_methods, repeats: self.repeats };
            let (trees, wanted) = (Arc::clone(&self.trees), task.clone());
            let archive = move || trees.revision(&wanted, cell.code());
            match answered(direct.run_cell(executor, &request, archive).await)? {
                Ok(executed) => return Ok(executed.records),
                Err(reason) => unfit = Some(reason.cause),
            }
        }
        let input = match self.blocking(task, cell, Trees::cell).await? {
            Ok(input) => input,
            Err(cause) => return Ok(self.unprepared(task, cell, path, InfraReason::Source, &cause)),
        };
        let (methods, repeats) = (&task.test_methods, self.repeats);
        let request = CellRequest { task, cell, input: &input, image, methods, repeats, path, other_text: None };
        let mut records = executor.run_cell(&request).await?;
        for record in &mut records {
            record.measured.unfit.clone_from(&unfit);
        }
        Ok(records)
    }

    /// Reads the task's repository on a thread of its own.
    async fn blocking<T: Send + 'static>(
        &self,
        task: &Task,
        cell: Cell,
        read: fn(&Trees, &Task, Cell) -> Result<T, String>,
    ) -> std::io::Result<Result<T, String>> {
        let (trees, task) = (Arc::clone(&self.trees), task.clone());
        tokio::task::spawn_blocking(move || read(&trees, &task, cell)).await.map_err(std::io::Error::other)
    }

    fn unprepared(
        &self,
        task: &Task,
        cell: Cell,
        path: ExecutionPath,
        reason: InfraReason,
        detail: &str,
    ) -> Vec<CellRecord> {
        let repeats =
            (1..=self.repeats).flat_map(|repeat| task.test_methods.iter().map(move |method| (repeat, method)));
        repeats
            .map(|(repeat, method)| CellRecord {
                schema: RECORD_SCHEMA,
                task_id: task.id.clone(),
                repository: task.repository.clone(),
                track: task.track,
                cell,
                method: method.clone(),
                repeat,
                path,
                outcome: Outcome::InfraFail(reason),
                detail: shortened(detail),
                attributed: None,
                missing: Vec::new(),
                attempts: 0,
                key: None,
                measured: Measured::default(),
            })
            .collect()
    }
}

/// Names what the tree lacks, and makes a missed label a fault of the sources: it says nothing of the label. Source:
/// protocol §1.
fn judge_by_contents(record: &mut CellRecord, missing: &[String]) {
    if missing.is_empty() {
        return;
    }
    let met = expectation(record.track, record.cell).is_met_by(record.outcome);
    if !met || matches!(record.outcome, Outcome::InfraFail(_)) {
        blame_sources(record, missing);
    } else {
        name_missing(record, missing);
    }
}

/// Returns a task's cells, with cells of one code revision in a row, so that a cell finds its predecessor's prepared
/// revision.
pub fn ordered_cells(task: &Task) -> Vec<Cell> {
    let mut cells: Vec<Cell> = cells_of(task.track).to_vec();
    cells.sort_by_key(|cell| cell.code() == Side::New);
    cells
}

/// Returns a task's cells so that neighbours are of different code revisions: cells of one revision at the same time would
/// all wait for its one preparation.
fn alternating(task: &Task) -> Vec<Cell> {
    let (new, old): (Vec<Cell>, Vec<Cell>) = cells_of(task.track).iter().partition(|cell| cell.code() == Side::New);
    let longest = old.len().max(new.len());
    (0..longest).flat_map(|index| [old.get(index), new.get(index)]).flatten().copied().collect()
}

/// Returns the number of records with each outcome, such as `pass 3, exec_fail(assertion) 1`, and whether one is a fault
/// of the infrastructure.
fn outcomes(records: &[CellRecord]) -> (String, bool) {
    let fault = records.iter().any(|record| matches!(record.outcome, Outcome::InfraFail(_)));
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for record in records {
        *counts.entry(record.outcome.to_string()).or_default() += 1;
    }
    let counts: Vec<String> = counts.into_iter().map(|(outcome, count)| format!("{outcome} {count}")).collect();
    (counts.join(", "), fault)
}

#[cfg(test)]
mod tests;
