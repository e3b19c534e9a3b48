//! Proofs: an image is ready once executions without a network showed that everything its tasks need compiles and
//! launches.
//!
//! For each distinct build set, one gold method is compiled and launched offline. None may end as `infra_fail`; whether
//! it passes is irrelevant, because `validate` checks labels. A proof is stored under the image's config digest and
//! never repeated for an identical image. It also lists executions that failed because of the image. Such a failure
//! invalidates the whole proof until the same execution succeeds.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fs_err as fs;
use serde::{Deserialize, Serialize};

use crate::data_dir::write_atomically;
use crate::digest::Digest;
use crate::error::{ExitStatus, Failure};
use crate::event::EventSink;
use crate::execution::container::RepositoryImage;
use crate::execution::executor::Executor;
use crate::execution::request::{CellInput, CellRequest};
use crate::execution::run::record::ExecutionPath;
use crate::outcome::{InfraReason, Outcome};
use crate::task::{Cell, Task, TaskId};

/// A function that prepares a cell's tree, or returns why its sources are not available.
pub type Prepare = Arc<dyn Fn(&Task, Cell) -> Result<CellInput, String> + Send + Sync>;

/// Version of the proof's schema.
pub const PROOF_SCHEMA: u32 = 1;

/// The results of an image's executions. File: `proofs/<config digest>.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// [`PROOF_SCHEMA`].
    pub schema: u32,
    /// The image.
    pub config_digest: Digest,
    /// Successful executions, by build set.
    pub executions: Vec<ProvenExecution>,
    /// Executions that failed because of the image and have not succeeded since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Unproven>,
    /// Digests of the proof levels and tasks that were shown. Another request for one of these reads nothing else.
    pub shown_for: Vec<Digest>,
    /// Digest of the last repository lock that was compared with this proof and is covered by it. Another request for
    /// this lock does not read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<Digest>,
}

/// One execution that ended with another outcome than `infra_fail`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProvenExecution {
    /// Identity of the set of build files and module.
    pub build_set: String,
    /// The task whose tree was used.
    pub task_id: TaskId,
    /// The cell.
    pub cell: Cell,
    /// Its outcome, for people.
    pub outcome: String,
}

impl Proof {
    /// Returns an empty proof of an image.
    pub fn new(config_digest: Digest) -> Self {
        Self {
            schema: PROOF_SCHEMA,
            config_digest,
            executions: Vec::new(),
            failed: Vec::new(),
            shown_for: Vec::new(),
            lock: None,
        }
    }

    /// Tells whether every one of the build sets was shown, and no execution of them failed because of the image.
    pub fn covers(&self, build_sets: &[String]) -> bool {
        let shown: BTreeSet<&str> = self.executions.iter().map(|execution| execution.build_set.as_str()).collect();
        let failed: BTreeSet<&str> = self.failed.iter().map(|execution| execution.build_set.as_str()).collect();
        build_sets.iter().all(|set| shown.contains(set.as_str()) && !failed.contains(set.as_str()))
    }

    /// Adds the result of an execution.
    pub fn take(&mut self, shown: ProofStep) {
        let (task_id, cell) = match &shown {
            ProofStep::Held(execution) => (&execution.task_id, execution.cell),
            ProofStep::Failed(execution) => (&execution.task_id, execution.cell),
        };
        self.failed.retain(|known| (&known.task_id, known.cell) != (task_id, cell));
        match shown {
            ProofStep::Held(execution) => {
                self.executions.push(execution);
                self.executions.sort();
            }
            ProofStep::Failed(execution) => {
                self.failed.push(execution);
                self.failed.sort_by(|a, b| (&a.task_id, a.cell).cmp(&(&b.task_id, b.cell)));
                // The next request must find that the proof is incomplete.
                self.shown_for.clear();
                self.lock = None;
            }
        }
    }
}

/// The result of one execution for an image's proof.
#[derive(Clone, Debug)]
pub enum ProofStep {
    /// The execution ended with another outcome than `infra_fail`.
    Held(ProvenExecution),
    /// The execution failed because of the image.
    Failed(Unproven),
}

/// Errors of proofs.
#[derive(Debug, thiserror::Error)]
pub enum ProofError {
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The proof can't be read.
    #[error("the proof `{path}` can't be read: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Why the file is malformed.
        reason: String,
    },
}

impl Failure for ProofError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Io(_) => ExitStatus::Infrastructure,
            Self::Malformed { .. } => ExitStatus::Mismatch,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Io(_) => "check the data directory's permissions and free space".to_owned(),
            Self::Malformed { path, .. } => format!("remove `{}`; the proof is made again", path.display()),
        })
    }
}

/// One execution that a proof needs.
#[derive(Clone, Debug)]
pub struct NeededExecution {
    /// Identity of the set of build files and module.
    pub build_set: String,
    /// A task that has the build set.
    pub task: Task,
    /// The cell whose code revision has the build set.
    pub cell: Cell,
}

/// An execution that failed because of the image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unproven {
    /// Identity of the set of build files and module.
    pub build_set: String,
    /// The task.
    pub task_id: TaskId,
    /// The cell.
    pub cell: Cell,
    /// The outcome.
    pub outcome: String,
    /// The first lines of the failure.
    pub detail: String,
}

/// Returns the proof at `path`; `None` if there is no file.
///
/// # Errors
/// [`ProofError`].
pub fn load(path: &Path) -> Result<Option<Proof>, ProofError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    parse(&bytes).map(Some).map_err(|reason| ProofError::Malformed { path: path.to_owned(), reason })
}

/// Reads a proof.
///
/// # Errors
/// The reason for which it is malformed.
pub fn parse(bytes: &[u8]) -> Result<Proof, String> {
    let proof: Proof = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    match proof.schema {
        PROOF_SCHEMA => Ok(proof),
        schema => Err(format!("it has schema {schema}, this program knows {PROOF_SCHEMA}")),
    }
}

/// Writes the proof atomically.
///
/// # Errors
/// [`ProofError::Io`].
pub fn store(path: &Path, proof: &Proof) -> Result<(), ProofError> {
    let mut bytes = serde_json::to_vec_pretty(proof).map_err(std::io::Error::other)?;
    bytes.push(b'\n');
    Ok(write_atomically(path, &bytes)?)
}

/// Executes `needed`, at most `jobs` at once, and calls `told` with each result at once. Returns all failures, also
/// those that are not the image's fault. Starts nothing after a fault of ours.
///
/// # Errors
/// [`ProofError::Io`] if temporary files can't be written; every error of `told`.
pub async fn prove(
    executor: &Executor,
    image: &RepositoryImage,
    needed: &[NeededExecution],
    prepare: &Prepare,
    jobs: usize,
    events: &EventSink,
    told: &mut dyn FnMut(ProofStep) -> Result<(), ProofError>,
) -> Result<Vec<Unproven>, ProofError> {
    execute_all(needed, |one| execute(executor, image, one, prepare), jobs, events, told).await
}

async fn execute_all<'a, F: Future<Output = Result<(Outcome, String), ProofError>>>(
    needed: &'a [NeededExecution],
    execute: impl Fn(&'a NeededExecution) -> F,
    jobs: usize,
    events: &EventSink,
    told: &mut dyn FnMut(ProofStep) -> Result<(), ProofError>,
) -> Result<Vec<Unproven>, ProofError> {
    use futures_util::StreamExt as _;
    const STAGE: &str = "proof";
    let (stage, execute) = (&events.stage(STAGE, Some(needed.len() as u64), 0), &execute);
    let mut running = futures_util::stream::iter(needed)
        .map(|one| async move {
            let item = format!("{} {}", one.task.id, one.cell.name());
            stage.item_started(&item);
            let outcome = execute(one).await;
            let (text, fault) = match &outcome {
                Ok((outcome, _)) => (outcome.to_string(), matches!(outcome, Outcome::InfraFail(_))),
                Err(error) => (error.to_string(), true),
            };
            stage.item_finished(&item, text, fault);
            outcome.map(|outcome| (one, outcome))
        })
        .buffer_unordered(jobs.max(1));
    let mut failed = Vec::new();
    while let Some(done) = running.next().await {
        let (one, (outcome, detail)) = done?;
        match outcome {
            Outcome::InfraFail(reason) => {
                let unproven = Unproven {
                    build_set: one.build_set.clone(),
                    task_id: one.task.id.clone(),
                    cell: one.cell,
                    outcome: outcome.to_string(),
                    detail,
                };
                if is_of_the_image(reason) {
                    told(ProofStep::Failed(unproven.clone()))?;
                }
                failed.push(unproven);
            }
            outcome => told(ProofStep::Held(ProvenExecution {
                build_set: one.build_set.clone(),
                task_id: one.task.id.clone(),
                cell: one.cell,
                outcome: outcome.to_string(),
            }))?,
        }
    }
    Ok(failed)
}

/// Tells whether the image may have caused a failure. Missing resources of the machine and missing sources are not its
/// fault.
fn is_of_the_image(reason: InfraReason) -> bool {
    match reason {
        InfraReason::Image | InfraReason::Resolution | InfraReason::Build => true,
        InfraReason::Engine | InfraReason::Disk | InfraReason::Killed | InfraReason::Source => false,
    }
}

async fn execute(
    executor: &Executor,
    image: &RepositoryImage,
    one: &NeededExecution,
    prepare: &Prepare,
) -> Result<(Outcome, String), ProofError> {
    let (task, cell, prepare) = (one.task.clone(), one.cell, Prepare::clone(prepare));
    let input = tokio::task::spawn_blocking(move || prepare(&task, cell)).await.map_err(std::io::Error::other)?;
    let input = match input {
        Ok(input) => input,
        Err(cause) => return Ok((Outcome::InfraFail(InfraReason::Source), cause)),
    };
    let request = CellRequest {
        task: &one.task,
        cell: one.cell,
        input: &input,
        image,
        // One method is enough: compilation, class path and launcher are the same for all.
        methods: &one.task.test_methods[..1],
        repeats: 1,
        path: ExecutionPath::Maven,
        other_text: None,
    };
    let records = executor.run_cell(&request).await?;
    match records.into_iter().next() {
        Some(record) => Ok((record.outcome, record.detail)),
        None => Ok((Outcome::InfraFail(InfraReason::Engine), "nothing was executed".to_owned())),
    }
}

#[cfg(test)]
mod tests;
