//! Gold validation: every cell of every task, as many at once as asked, records written as they come.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::StreamExt as _;
use tokio_util::sync::CancellationToken;

use super::cell::{CellInput, CellRequest, Environment, Executor};
use super::record::{CellRecord, Measured, RECORD_SCHEMA};
use super::run_directory::{RunDirectory, RunDirectoryError};
use crate::event::{Event, EventSink};
use crate::outcome::label::cells_of;
use crate::outcome::{InfraReason, Outcome};
use crate::task::{Cell, RepositoryName, Task};

/// What can end a validation before its time.
#[derive(Debug, thiserror::Error)]
pub enum ValidationError {
    /// The run's files can't be written.
    #[error(transparent)]
    RunDirectory(#[from] RunDirectoryError),
    /// Logs or temporary files can't be written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The user interrupted.
    #[error("interrupted; the run can be continued")]
    Interrupted,
}

/// A function that prepares a cell's tree, or says why its sources can't be had.
pub type Prepare = Arc<dyn Fn(&Task, Cell) -> Result<CellInput, String> + Send + Sync>;

/// What is validated, and how.
pub struct Validation<'a> {
    /// The tasks.
    pub tasks: &'a [Task],
    /// Environments of the tasks' repositories.
    pub environments: &'a BTreeMap<RepositoryName, Environment>,
    /// Executors of the tasks' repositories: their limits may differ.
    pub executors: &'a BTreeMap<RepositoryName, Arc<Executor>>,
    /// Launches of each method and cell.
    pub repeats: u32,
    /// Cells at once.
    pub jobs: usize,
    /// Makes trees.
    pub prepare: Prepare,
}

impl Validation<'_> {
    /// Executes what `known` lacks and returns all records.
    ///
    /// # Errors
    /// [`ValidationError`]; what was executed until then is in the run's records.
    pub async fn run(
        &self,
        run: &mut RunDirectory,
        known: Vec<CellRecord>,
        events: &EventSink,
        cancellation: &CancellationToken,
    ) -> Result<Vec<CellRecord>, ValidationError> {
        const STAGE: &str = "validate";
        let mut records = known;
        let jobs = self.missing(&records);
        let started = std::time::Instant::now();
        events.send(Event::StageStarted { stage: STAGE.to_owned(), total: Some(jobs.len() as u64) });
        let mut running = futures_util::stream::iter(jobs)
            .map(|(task, cell)| async move {
                let item = format!("{} {}", task.id, cell.name());
                events.send(Event::ItemStarted { stage: STAGE.to_owned(), item: item.clone() });
                let records = self.cell(task, cell).await;
                let outcome = match &records {
                    Ok(records) => outcomes(records),
                    Err(error) => error.to_string(),
                };
                events.send(Event::ItemFinished { stage: STAGE.to_owned(), item, outcome });
                records
            })
            .buffer_unordered(self.jobs.max(1));
        loop {
            let finished = tokio::select! {
                finished = running.next() => finished,
                () = cancellation.cancelled() => return Err(ValidationError::Interrupted),
            };
            let Some(finished) = finished else { break };
            for record in finished? {
                run.append(&record)?;
                records.push(record);
            }
        }
        let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        events.send(Event::StageFinished { stage: STAGE.to_owned(), elapsed_ms });
        Ok(records)
    }

    /// Returns the cells for which not every method and repeat has a record.
    fn missing(&self, known: &[CellRecord]) -> Vec<(&Task, Cell)> {
        let mut there: BTreeMap<(&str, Cell), BTreeSet<(&str, u32)>> = BTreeMap::new();
        for record in known {
            let cell = there.entry((record.task_id.as_str(), record.cell)).or_default();
            cell.insert((record.method.as_str(), record.repeat));
        }
        let mut missing = Vec::new();
        for task in self.tasks {
            for &cell in cells_of(task.track) {
                let found = there.get(&(task.id.as_str(), cell)).map_or(0, BTreeSet::len);
                if found < task.test_methods.len() * self.repeats as usize {
                    missing.push((task, cell));
                }
            }
        }
        missing
    }

    async fn cell(&self, task: &Task, cell: Cell) -> Result<Vec<CellRecord>, ValidationError> {
        let (Some(environment), Some(executor)) =
            (self.environments.get(&task.repository), self.executors.get(&task.repository))
        else {
            return Ok(self.unprepared(task, cell, InfraReason::Image, "the repository has no image"));
        };
        let prepare = Arc::clone(&self.prepare);
        let wanted = task.clone();
        let prepared = tokio::task::spawn_blocking(move || prepare(&wanted, cell)).await;
        let input = match prepared {
            Ok(Ok(input)) => input,
            Ok(Err(cause)) => return Ok(self.unprepared(task, cell, InfraReason::Source, &cause)),
            Err(error) => return Err(std::io::Error::other(error).into()),
        };
        let request =
            CellRequest { task, cell, input: &input, environment, methods: &task.test_methods, repeats: self.repeats };
        let records = executor.run_cell(&request).await;
        match fs_err::remove_file(&input.archive) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        Ok(records?)
    }

    fn unprepared(&self, task: &Task, cell: Cell, reason: InfraReason, detail: &str) -> Vec<CellRecord> {
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
                outcome: Outcome::InfraFail(reason),
                detail: crate::outcome::launch::shortened(detail),
                attempts: 0,
                key: None,
                measured: Measured::default(),
            })
            .collect()
    }
}

/// Returns how many records came to what, such as `pass 3, exec_fail(assertion) 1`.
fn outcomes(records: &[CellRecord]) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for record in records {
        *counts.entry(record.outcome.to_string()).or_default() += 1;
    }
    let counts: Vec<String> = counts.into_iter().map(|(outcome, count)| format!("{outcome} {count}")).collect();
    counts.join(", ")
}
