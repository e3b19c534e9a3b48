//! Jobs of a scoring run: one cell of one submission each.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::focal::TaskFocal;
use super::record::{ExecutionRecord, ScoreRecord};
use super::run_mutants::RunMutants;
use crate::digest::Digest;
use crate::execution::attempt::Confirmed;
use crate::execution::executor::Executor;
use crate::execution::mutation::launches::Passing;
use crate::outcome::{CompileReason, ExecReason, Outcome};
use crate::submission::GOLD;
use crate::task::{MethodId, RepositoryName, Side, Task, TaskId};

/// A method that passed, with how long its JVM took, in milliseconds.
pub(super) type Passed = (MethodId, Option<u64>);

/// One unfinished cell of one submission.
pub(super) struct Job<'a> {
    pub(super) model: &'a str,
    pub(super) task: &'a Task,
    pub(super) code: Side,
    pub(super) file: Digest,
    /// Methods to launch.
    pub(super) methods: Vec<MethodId>,
    /// Methods that passed and need coverage.
    pub(super) cover: Vec<MethodId>,
    /// Methods that passed and need mutants.
    pub(super) mutate: Vec<Passing>,
    /// Methods that passed and need controls.
    pub(super) control: Vec<Passed>,
    /// The task's focal methods.
    pub(super) focal: TaskFocal,
    /// Protections that the engine can't give. Keys name them, so reused results lack the same ones.
    pub(super) isolation_missing: &'a [String],
    /// Limits on processor time of launches and of Maven in seconds, equal for all submissions for the task.
    pub(super) time_class: (Option<u64>, Option<u64>),
}

impl Job<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.methods.is_empty() && self.cover.is_empty() && self.mutate.is_empty() && self.control.is_empty()
    }
}

/// The remaining work of a job after reuse of earlier results.
#[derive(Default)]
pub(super) struct Todo {
    pub(super) methods: Vec<MethodId>,
    pub(super) cover: Vec<MethodId>,
    pub(super) mutate: Vec<Passing>,
    pub(super) control: Vec<Passed>,
}

impl Todo {
    pub(super) fn is_empty(&self) -> bool {
        self.methods.is_empty() && self.cover.is_empty() && self.mutate.is_empty() && self.control.is_empty()
    }
}

/// What the jobs of a run share.
pub(super) struct Shared<'a> {
    /// Executors of models and repositories.
    pub(super) executors: BTreeMap<(&'a str, &'a RepositoryName), Executor>,
    /// Directory of test files.
    pub(super) submissions: &'a Path,
    /// The mutants that all tests of the run meet.
    pub(super) mutants: RunMutants,
    /// What second runs have confirmed about each submission, by model and task.
    confirmed: Mutex<BTreeMap<(String, TaskId), Confirmed>>,
}

impl<'a> Shared<'a> {
    /// Returns the state that jobs share, given the records of a continued run.
    pub(super) fn new(
        executors: BTreeMap<(&'a str, &'a RepositoryName), Executor>,
        submissions: &'a Path,
        mutants: RunMutants,
        records: &[ScoreRecord],
    ) -> Self {
        let shared = Self { executors, submissions, mutants, confirmed: Mutex::default() };
        for record in records {
            if let ScoreRecord::Execution(record) = record {
                shared.note(record);
            }
        }
        shared
    }

    /// Returns what was confirmed about a submission; `None` for the developers' tests, whose every timeout gets a
    /// second run.
    pub(super) fn confirmed(&self, model: &str, task: &TaskId) -> Option<Confirmed> {
        let mut all = self.confirmed.lock().unwrap_or_else(PoisonError::into_inner);
        (model != GOLD).then(|| all.entry((model.to_owned(), task.clone())).or_default().clone())
    }

    /// Takes over what a record shows as confirmed by a second run, its own or an earlier one.
    pub(super) fn note(&self, record: &ExecutionRecord) {
        let Some(confirmed) = self.confirmed(&record.model, &record.task_id) else { return };
        match record.outcome {
            Outcome::ExecFail(ExecReason::Timeout) => confirmed.launches.confirm(),
            Outcome::CompileFail(CompileReason::Resource) => confirmed.compilations.confirm(),
            _ => {}
        }
    }
}
