//! Scoring: executes submissions on new and on old code, several at once, and writes each record as soon as it exists.
//!
//! A submission is first resolved to the target file's new bytes without executing anything. Each of its target methods
//! is then launched on both revisions' code, every launch in a container of its own, in a random and recorded order. An
//! execution with a cached result under the same key is not executed again.

pub mod cache;
mod direct_cell;
mod execution;
mod focal;
mod gaps;
pub mod gold;
pub mod inputs;
mod job;
pub mod merge;
mod new_code;
mod old_code;
mod on_mutants;
mod own;
pub mod record;
mod recorded;
mod resolution;
mod reuse;
mod run_mutants;
mod shadows;
mod starting_file;
mod time_classes;
pub mod trees;
mod unmeasured;
pub mod unscored;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use fs_err as fs;
use tokio_util::sync::CancellationToken;

use super::container::RepositoryImage;
use super::direct::Direct;
use super::executor::Executor;
use super::mutation::launches::Passing;
use super::mutation::lines_to_mutate;
use super::trees::Trees;
use crate::digest::Digest;
use crate::event::EventSink;
use crate::execution::obstacle::Obstacles;
use crate::execution::run::directory::RunDirectory;
use crate::execution::run::logs::{Logs, plain};
use crate::execution::run::record::Measured;
use crate::execution::run::stage::{RunError, Stage};
use crate::execution::time_class::TimeClasses;
use crate::outcome::launch::shortened;
use crate::outcome::{HarnessReason, Outcome};
use crate::submission::GOLD;
use crate::submission::predictions::Predictions;
use crate::task::{Cell, MethodId, RepositoryName, Revision, Side, Task, TaskId, Track};
use crate::workspace::WorkspaceError;

use self::focal::TaskFocal;
use self::job::{Job, Shared};
use self::recorded::Done;
use self::run_mutants::RunMutants;
use crate::execution::order::shuffle;
use cache::ResultCache;
use record::{ExecutionRecord, SCORE_SCHEMA, ScoreRecord};
use trees::SubmissionTrees;

/// Subdirectory of a run for test files by digest: those that it executes, and those from which submissions start.
pub const SUBMISSIONS: &str = "submissions";

/// Subdirectory of a run for the sources of focal methods, which reports show: [`source_name`].
pub const SOURCES: &str = "sources";

/// The parameters of scoring.
pub struct Scoring<'a> {
    /// The tasks.
    pub tasks: &'a [Task],
    /// The submissions for the tasks.
    pub predictions: &'a Predictions,
    /// Images of the tasks' repositories.
    pub images: &'a BTreeMap<RepositoryName, RepositoryImage>,
    /// Executors of the tasks' repositories, whose limits may differ.
    pub executors: &'a BTreeMap<RepositoryName, Arc<Executor>>,
    /// What keeps tasks from being executed.
    pub obstacles: &'a Obstacles,
    /// Launches of each method on each side.
    pub repeats: u32,
    /// Cells at once.
    pub jobs: usize,
    /// Decides the order of executions, and the bytes of controls and mutants.
    pub seed: u64,
    /// The seed that the caller chose; `None` if it follows from the tasks and predictions.
    pub chosen_seed: Option<u64>,
    /// Makes trees of submissions.
    pub trees: Arc<SubmissionTrees>,
    /// Makes trees of revisions.
    pub revisions: Arc<Trees>,
    /// The direct path. Without it, and for cells that it does not fit, the reference path runs.
    pub direct: Option<Arc<Direct>>,
    /// Results of other runs.
    pub cache: ResultCache,
    /// Whether to measure the coverage of focal lines by passing methods, those of the developers' tests included.
    pub coverage: bool,
    /// Whether to launch passing methods under controls, those of the developers' tests included.
    pub controls: bool,
    /// Whether to mutate the focal lines that new code adds, and to run passing methods on the mutants.
    pub mutation: bool,
    /// Recorded time classes; `None` if the caller set a limit of launches, or none are recorded.
    pub time_classes: Option<TimeClasses>,
}

impl Scoring<'_> {
    /// Executes everything that has no record in `known`, and returns all records.
    ///
    /// # Errors
    /// [`RunError`]. The run's directory then contains all records until the error.
    pub async fn run(
        &self,
        run: &mut RunDirectory,
        known: Vec<ScoreRecord>,
        events: &EventSink,
        cancellation: &CancellationToken,
    ) -> Result<Vec<ScoreRecord>, RunError> {
        let mut records = known;
        // An earlier invocation of the run may have recorded the failures.
        self.distrust_failing(&records)?;
        let submissions = run.path().join(SUBMISSIONS);
        fs::create_dir_all(&submissions)?;
        self.resolve_all(run, &mut records, &submissions, cancellation).await?;
        let mut records = self.compile_starts(run, records, (events, cancellation)).await?;
        let (executors, mutants) = (self.executors_of_models(run.path(), events), RunMutants::of(run.path(), &records));
        let shared = &Shared::new(executors, &submissions, mutants, &records);
        if self.measures() {
            records = self.find_own(run, records, shared, (events, cancellation)).await?;
        }
        self.settle_classes(run, &mut records).await?;
        let mut jobs = self.missing(run, &mut records)?;
        shuffle(&mut jobs, self.seed);
        let done = self.cells().saturating_sub(jobs.len());
        let jobs = jobs.into_iter().map(|job| {
            let item = format!("{} {} {}", job.model, job.task.id, side_name(job.code));
            (item, async move { self.execute(&job, shared).await })
        });
        let stage = Stage { name: "score", jobs: self.jobs, done, events, cancellation };
        let records = stage.run(run, records, jobs, outcomes).await?;
        self.distrust_failing(&records)?;
        shared.mutants.remove()?;
        Ok(records)
    }

    /// Tells whether passing methods are measured.
    fn measures(&self) -> bool {
        self.coverage || self.mutation || self.controls
    }

    fn pairs(&self) -> impl Iterator<Item = (&str, &Task)> {
        let all = self.models().flat_map(|model| self.tasks.iter().map(move |task| (model, task)));
        // A task without executions needs no reference either.
        all.filter(|(model, task)| {
            self.predictions.models.contains_key(*model) || self.images.contains_key(&task.repository)
        })
    }

    /// Returns the models, and the developers' tests, which they are compared with.
    fn models(&self) -> impl Iterator<Item = &str> {
        let reference = self.measures() && !self.predictions.models.contains_key(GOLD);
        self.predictions.models.keys().map(String::as_str).chain(reference.then_some(GOLD))
    }

    /// Tells whether a side's executions count for a model's submission. The developers' tests count on new code only,
    /// where they are measured. Update tasks count on new code only, because no figure of them uses old code.
    fn counts(&self, model: &str, task: &Task, code: Side) -> bool {
        let has_old = task.track == Track::TestGeneration && self.predictions.models.contains_key(model);
        code == Side::New || has_old
    }

    /// Returns the number of cells of all submissions, whether or not they need an execution.
    fn cells(&self) -> usize {
        let sides =
            |(model, task)| [Side::New, Side::Old].into_iter().filter(|code| self.counts(model, task, *code)).count();
        self.pairs().map(sides).sum()
    }

    /// Returns the cells in which a method or repeat has no record, or a passing method has no measurement. Executions
    /// with a known result get their records here.
    fn missing<'a>(&'a self, run: &mut RunDirectory, records: &mut Vec<ScoreRecord>) -> Result<Vec<Job<'a>>, RunError> {
        let mut jobs = Vec::new();
        let mut unexecuted = Vec::new();
        {
            let done = Done::of(records);
            for (model, task) in self.pairs() {
                let Some(submission) = done.submissions.get(&(model, &task.id)) else { continue };
                for code in [Side::New, Side::Old].into_iter().filter(|code| self.counts(model, task, *code)) {
                    let lacks = |method: &&MethodId| {
                        let there = |repeat| done.executions.contains(&(model, &task.id, code, *method, repeat));
                        !(1..=self.repeats).all(there)
                    };
                    let lacking: Vec<MethodId> = task.test_methods.iter().filter(lacks).cloned().collect();
                    let (without, methods): (Vec<_>, Vec<_>) =
                        lacking.into_iter().partition(|method| submission.without.contains(method));
                    if let Some(fault) = &submission.fault {
                        let outcome = Outcome::HarnessFail(fault.reason);
                        for methods in [&methods, &without] {
                            unexecuted.extend(self.unexecuted(model, task, code, methods, outcome, &fault.detail));
                        }
                        continue;
                    }
                    let outcome = Outcome::HarnessFail(HarnessReason::NoTargetMethod);
                    let detail = "the test file does not declare the method";
                    unexecuted.extend(self.unexecuted(model, task, code, &without, outcome, detail));
                    let measured = self.measures() && code == Side::New;
                    let focal = done.focal.get(&task.id).filter(|_| measured);
                    let focal = focal.zip(done.own.get(&task.id)).map(|(focal, own)| TaskFocal::of(focal, own));
                    let focal = focal.unwrap_or_default();
                    let unmeasured = |known: &BTreeSet<(&str, &TaskId, &MethodId)>| -> Vec<MethodId> {
                        let lacks = |method: &&MethodId| {
                            let name = (model, &task.id, *method);
                            // A method that is launched again is measured after that launch.
                            done.passed.contains_key(&name) && !known.contains(&name) && !methods.contains(*method)
                        };
                        task.test_methods.iter().filter(lacks).cloned().collect()
                    };
                    let wanted = |yes: bool, known| if yes { unmeasured(known) } else { Vec::new() };
                    let cover = wanted(self.coverage && !focal.is_empty(), &done.covered);
                    let mutate = wanted(self.mutation && !lines_to_mutate(&focal.lines).is_empty(), &done.mutated);
                    let launch_ms = |method: &MethodId| done.passed.get(&(model, &task.id, method)).copied().flatten();
                    let mutate = mutate.into_iter();
                    let passing =
                        |method| Passing { launch_ms: launch_ms(&method), own: focal.mutated(&method), method };
                    let mutate: Vec<Passing> = mutate.map(passing).collect();
                    let control = match self.controls && code == Side::New {
                        true => unmeasured(&done.controlled),
                        false => Vec::new(),
                    };
                    let control = control.into_iter().map(|method| (method.clone(), launch_ms(&method))).collect();
                    let executor = self.executors.get(&task.repository);
                    let isolation_missing =
                        executor.map(|executor| executor.isolation_missing.as_slice()).unwrap_or_default();
                    let class = done.time_classes.get(&task.id);
                    let time_class =
                        class.map(|class| (class.launch_seconds, class.compile_seconds)).unwrap_or_default();
                    if let Some(file) = submission.post_image {
                        let job = Job {
                            model,
                            task,
                            code,
                            file,
                            methods,
                            cover,
                            mutate,
                            control,
                            focal,
                            isolation_missing,
                            time_class,
                        };
                        if !job.is_empty() {
                            jobs.push(job);
                        }
                    }
                }
            }
        }
        for record in unexecuted {
            let record = ScoreRecord::Execution(record);
            run.append(&record)?;
            records.push(record);
        }
        Ok(jobs)
    }

    fn unexecuted(
        &self,
        model: &str,
        task: &Task,
        code: Side,
        methods: &[MethodId],
        outcome: Outcome,
        detail: &str,
    ) -> Vec<ExecutionRecord> {
        let repeats = (1..=self.repeats).flat_map(|repeat| methods.iter().map(move |method| (repeat, method)));
        repeats
            .map(|(repeat, method)| ExecutionRecord {
                schema: SCORE_SCHEMA,
                model: model.to_owned(),
                task_id: task.id.clone(),
                repository: task.repository.clone(),
                track: task.track,
                code,
                method: method.clone(),
                repeat,
                outcome,
                detail: shortened(detail),
                missing: Vec::new(),
                attributed: None,
                attempts: 0,
                key: None,
                cached: false,
                measured: Measured::default(),
            })
            .collect()
    }

    /// Returns copies of the executors, each model with logs of its own.
    fn executors_of_models(&self, run: &Path, events: &EventSink) -> BTreeMap<(&str, &RepositoryName), Executor> {
        let logs = Logs::new(run.join("logs"), events.clone());
        self.models()
            .flat_map(|model| {
                let logs = logs.below(&model_directory(model));
                self.executors.iter().map(move |(repository, executor)| {
                    let executor = Executor { logs: Some(logs.clone()), ..executor.as_ref().clone() };
                    ((model, repository), executor)
                })
            })
            .collect()
    }
}

/// Returns the name of a model's log directory: the model's name as a path may contain it, and the first digits of its
/// digest.
pub fn model_directory(model: &str) -> String {
    let name: String = plain(model).chars().take(60).collect();
    format!("{}-{}", name.trim_start_matches('.'), &Digest::of(model.as_bytes()).hex()[..8])
}

/// Returns the directory of a cell's logs below the run's `logs`, as records name it.
pub fn log_directory(model: &str, task: &TaskId, code: Side) -> String {
    format!("{}/{task}/{}", model_directory(model), cell_of(code).name())
}

/// Returns the name of a revision's file below [`SOURCES`].
pub fn source_name(revision: &Revision, path: &str) -> String {
    format!("{}.java", Digest::of(format!("{revision}:{path}").as_bytes()).hex())
}

/// Returns the name of an executed test file below [`SUBMISSIONS`].
pub fn file_name(digest: Digest) -> String {
    format!("{}.java", digest.hex())
}

/// Returns the cell with the same code and log names as a submission's. The submission's test replaces the developers'.
fn cell_of(code: Side) -> Cell {
    match code {
        Side::New => Cell::Nn,
        Side::Old => Cell::No,
    }
}

/// Returns a side's name in messages.
fn side_name(side: Side) -> &'static str {
    match side {
        Side::Old => "old",
        Side::New => "new",
    }
}

fn outcomes(records: &[ScoreRecord]) -> (String, bool) {
    let mut fault = false;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for record in records {
        if let ScoreRecord::Execution(record) = record {
            fault |= matches!(record.outcome, Outcome::InfraFail(_));
            *counts.entry(record.outcome.to_string()).or_default() += 1;
        }
    }
    let counts: Vec<String> = counts.into_iter().map(|(outcome, count)| format!("{outcome} {count}")).collect();
    (counts.join(", "), fault)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorkspaceError> + Send + 'static,
) -> std::io::Result<Result<T, WorkspaceError>> {
    tokio::task::spawn_blocking(work).await.map_err(std::io::Error::other)
}

#[cfg(test)]
mod tests;
