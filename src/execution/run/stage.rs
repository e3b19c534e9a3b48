//! A stage of a run: executes jobs, several at once, and writes each job's records as soon as it ends.

use futures_util::StreamExt as _;
use tokio_util::sync::CancellationToken;

use crate::error::{ExitStatus, Failure};
use crate::event::EventSink;
use crate::execution::run::directory::{RunDirectory, RunDirectoryError, RunRecord, latest};

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
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

impl Failure for RunError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::RunDirectory(error) => error.exit_status(),
            Self::Io(_) => ExitStatus::Infrastructure,
            Self::Interrupted => ExitStatus::Interrupted,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::RunDirectory(error) => return error.hint(),
            Self::Io(_) => "check the data directory's permissions and free space",
            Self::Interrupted => "rerun the same command to resume",
        };
        Some(hint.to_owned())
    }
}

/// A stage's name, parallelism, events and cancellation.
pub(in crate::execution) struct Stage<'a> {
    /// Its name in events.
    pub(in crate::execution) name: &'a str,
    /// Jobs at once.
    pub(in crate::execution) jobs: usize,
    /// How many jobs need not run, because their records are known.
    pub(in crate::execution) done: usize,
    /// The receiver of progress events.
    pub(in crate::execution) events: &'a EventSink,
    /// Its cancellation ends the stage.
    pub(in crate::execution) cancellation: &'a CancellationToken,
}

impl Stage<'_> {
    /// Runs the jobs, each under a display name. Returns all records, including the given ones, sorted and with each
    /// execution once. `summary` describes a job's result, and tells whether it is a fault of the infrastructure.
    ///
    /// # Errors
    /// [`RunError`]. The run's directory then contains all records until the error.
    pub(in crate::execution) async fn run<R: RunRecord, J: Future<Output = Result<Vec<R>, RunError>>>(
        &self,
        run: &mut RunDirectory,
        mut records: Vec<R>,
        jobs: impl ExactSizeIterator<Item = (String, J)>,
        summary: impl Fn(&[R]) -> (String, bool),
    ) -> Result<Vec<R>, RunError> {
        let total = (self.done + jobs.len()) as u64;
        let stage = &self.events.stage(self.name, Some(total), self.done as u64);
        let summary = &summary;
        let mut running = futures_util::stream::iter(jobs)
            .map(|(item, job)| async move {
                stage.item_started(&item);
                let records = job.await;
                let (outcome, fault) = match &records {
                    Ok(records) => summary(records),
                    Err(error) => (error.to_string(), true),
                };
                stage.item_finished(&item, outcome, fault);
                records
            })
            .buffer_unordered(self.jobs.max(1));
        loop {
            let finished = tokio::select! {
                finished = running.next() => finished,
                () = self.cancellation.cancelled() => return Err(RunError::Interrupted),
            };
            let Some(finished) = finished else { break };
            for record in finished? {
                run.append(&record)?;
                records.push(record);
            }
        }
        Ok(latest(records))
    }
}
