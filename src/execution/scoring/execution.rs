//! Executes one cell of one submission. Cached results are reused, and the rest is launched. Measurements that a fault
//! of ours prevented are recorded as lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fs_err as fs;

use super::direct_cell::{self, Executed, SubmissionCell};
use super::job::{Job, Shared, Todo};
use super::old_code::OldRevision;
use super::on_mutants::{JudgedBy, MutantRunner, MutatedMethods, MutationRequest, asks_maven, mutated};
use super::record::ScoreRecord;
use super::reuse::{ControlledBy, Extents, LinesToMutate};
use super::unmeasured::{Due, unmeasured};
use super::{Scoring, blocking, cell_of, file_name};
use crate::execution::build::prepared::{CompiledRevision, RevisionInput};
use crate::execution::container::RepositoryImage;
use crate::execution::control::ControlRequest;
use crate::execution::direct::DirectCell;
use crate::execution::executor::Executor;
use crate::execution::fault::{ExecutionError, Fault, NoAnswer, Remedy, answered};
use crate::execution::launch::coverage::{CoverageRequest, SourceFile};
use crate::execution::module::ModuleArguments;
use crate::execution::mutation::launches::Passing;
use crate::execution::mutation::reference::ReferenceBuild;
use crate::execution::mutation::{Judge, lines_to_mutate};
use crate::execution::order::shuffle;
use crate::execution::request::{CellIdentity, CellInput, CellRequest};
use crate::execution::run::record::{CellRecord, ExecutionPath};
use crate::execution::run::stage::RunError;
use crate::execution::trees::CellFacts;
use crate::outcome::Outcome;
use crate::task::{MethodId, Side, Task};

/// The cause of a job's early end.
enum JobEnd {
    /// A fault of ours, which the job's records name.
    Fault(Fault),
    /// An error that also ends the run.
    Run(RunError),
}

impl From<Fault> for JobEnd {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl<E: Into<RunError>> From<E> for JobEnd {
    fn from(error: E) -> Self {
        Self::Run(error.into())
    }
}

/// What the executions of a job need.
struct OpenedCell<'a> {
    job: &'a Job<'a>,
    shared: &'a Shared<'a>,
    image: &'a RepositoryImage,
    executor: Executor,
    /// The submission's file.
    file: Vec<u8>,
    facts: CellFacts,
    /// Source files of focal methods.
    sources: Vec<SourceFile>,
    /// Those whose coverage is measured.
    files: Vec<SourceFile>,
    lines: LinesToMutate,
    extents: Extents,
    old: OldRevision,
}

/// What one path comes to.
enum OnPath {
    /// All that was left to do is done.
    Executed(Executed),
    /// The direct path does not fit.
    Unfit(NoAnswer),
    /// Only Maven can judge the mutants of these passing methods. The rest is done.
    MutantsByMaven(Executed, Vec<Passing>),
}

impl Scoring<'_> {
    /// Executes a job and returns its records. Every method of the job has an outcome then, and every passing method
    /// its measurements, which may be lost ones.
    pub(super) async fn execute(&self, job: &Job<'_>, shared: &Shared<'_>) -> Result<Vec<ScoreRecord>, RunError> {
        let mut records = Vec::new();
        let cause = match self.execute_cell(job, shared, &mut records).await {
            Ok(()) => None,
            Err(JobEnd::Run(error)) => return Err(error),
            Err(JobEnd::Fault(Fault { reason, detail })) => {
                let outcome = Outcome::InfraFail(reason);
                let executed: BTreeSet<&MethodId> = records
                    .iter()
                    .filter_map(|record| match record {
                        ScoreRecord::Execution(one) => Some(&one.method),
                        _ => None,
                    })
                    .collect();
                let methods = job.methods.iter().filter(|method| !executed.contains(method));
                let methods: Vec<MethodId> = methods.cloned().collect();
                let unexecuted = self.unexecuted(job.model, job.task, job.code, &methods, outcome, &detail);
                records.extend(unexecuted.into_iter().map(ScoreRecord::Execution));
                Some(format!("{outcome}: {detail}"))
            }
        };
        let cause = cause.or_else(|| job.focal.unknown.clone());
        let due = Due {
            coverage: self.coverage && !job.focal.is_empty(),
            mutation: self.mutation && !lines_to_mutate(&job.focal.lines).is_empty(),
            controls: self.controls && job.code == Side::New,
        };
        let lost = unmeasured(job, due, &records, cause.as_deref());
        records.extend(lost);
        // Done at once, so that a killed run keeps no result of the task either.
        self.distrust_failing(&records)?;
        Ok(records)
    }

    /// Reuses or executes the results of a job, until a fault of ours.
    async fn execute_cell(
        &self,
        job: &Job<'_>,
        shared: &Shared<'_>,
        records: &mut Vec<ScoreRecord>,
    ) -> Result<(), JobEnd> {
        let cell = self.open(job, shared).await?;
        let mut todo = self.todo(job);
        let mut unfit = None;
        let mut mutants_by_maven = false;
        let paths = self.direct.iter().map(|_| ExecutionPath::Direct).chain([ExecutionPath::Maven]);
        for path in paths {
            let identity = self.identity(job, &cell.facts, cell.image, path);
            self.reuse(&cell, &identity, mutants_by_maven, &mut todo, records).await?;
            if todo.is_empty() {
                return Ok(());
            }
            match self.execute_on(&cell, identity, &todo).await? {
                OnPath::Unfit(reason) => unfit = Some(reason),
                OnPath::MutantsByMaven(executed, mutate) => {
                    todo = Todo { mutate, ..Todo::default() };
                    self.keep_all(&cell, &identity, executed, records)?;
                    mutants_by_maven = true;
                }
                OnPath::Executed(mut executed) => {
                    if path == ExecutionPath::Maven {
                        let reason = unfit.as_ref().map(|unfit: &NoAnswer| unfit.cause.clone());
                        executed.records.iter_mut().for_each(|record| record.measured.unfit.clone_from(&reason));
                    }
                    self.keep_all(&cell, &identity, executed, records)?;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Returns what a job's executions need.
    async fn open<'a>(&'a self, job: &'a Job<'a>, shared: &'a Shared<'a>) -> Result<OpenedCell<'a>, JobEnd> {
        let repository = &job.task.repository;
        if let Some(fault) = self.obstacles.fault(job.task, job.code) {
            return Err(fault.into());
        }
        let (Some(image), Some(executor)) =
            (self.images.get(repository), shared.executors.get(&(job.model, repository)))
        else {
            return Err(self.obstacles.without_image(job.task, job.code).into());
        };
        let confirmed = shared.confirmed(job.model, &job.task.id);
        let (launch_seconds, compile_seconds) = job.time_class;
        let limits = executor.limits.within(launch_seconds, compile_seconds);
        let executor = Executor { confirmed, limits, ..executor.clone() };
        let file = fs::read(shared.submissions.join(file_name(job.file)))?;
        let (trees, task, code, bytes) = (Arc::clone(&self.trees), job.task.clone(), job.code, file.clone());
        let described = blocking(move || trees.describe(&task, code, bytes)).await?;
        let facts = described.map_err(|error| Fault::source(&error.to_string()))?;
        let is_known = job.focal.unknown.is_none();
        let sources = job.focal.files();
        let files = if self.coverage && is_known { sources.clone() } else { Vec::new() };
        let lines = if self.mutation && is_known { lines_to_mutate(&job.focal.lines) } else { BTreeMap::new() };
        let extents = job.focal.extents(&job.task.test_methods);
        let old = self.old_revision(job).await?;
        Ok(OpenedCell { job, shared, image, executor, file, facts, sources, files, lines, extents, old })
    }

    /// Returns all that a job asks for. The submission's seed decides the order of methods.
    fn todo(&self, job: &Job<'_>) -> Todo {
        let mut todo = Todo { methods: job.methods.clone(), ..Todo::default() };
        if job.focal.unknown.is_none() {
            (todo.cover, todo.mutate, todo.control) = (job.cover.clone(), job.mutate.clone(), job.control.clone());
        }
        shuffle(&mut todo.methods, self.seed_of(job));
        todo
    }

    /// Moves cached results from what is left to do into records. On the reference path it may prepare the revision, which
    /// decides who judges mutants.
    async fn reuse(
        &self,
        cell: &OpenedCell<'_>,
        identity: &CellIdentity<'_>,
        mutants_by_maven: bool,
        todo: &mut Todo,
        records: &mut Vec<ScoreRecord>,
    ) -> Result<(), JobEnd> {
        let OpenedCell { job, shared, executor, .. } = cell;
        self.take_kept((executor, identity), job, self.controlled_by(cell), todo, records)?;
        for record in records.iter() {
            if let ScoreRecord::Execution(record) = record {
                shared.note(record);
            }
        }
        let judges: &[JudgedBy] = match identity.path {
            ExecutionPath::Direct => &[JudgedBy::Warm],
            ExecutionPath::Maven if mutants_by_maven => &[JudgedBy::Maven],
            ExecutionPath::Maven => match self.judge(executor, cell.image, job, &cell.facts, todo).await? {
                // The direct path may have turned out not to fit the build.
                Some(JudgedBy::Warm) => &[JudgedBy::Warm, JudgedBy::Maven],
                Some(JudgedBy::Maven) => &[JudgedBy::Maven],
                None => &[],
            },
        };
        for by in judges {
            let kept = (executor, identity, &shared.mutants);
            self.take_mutated(kept, job, (&cell.lines, *by), &mut todo.mutate, records)?;
        }
        Ok(())
    }

    /// Executes what is left to do on one path.
    async fn execute_on(
        &self,
        cell: &OpenedCell<'_>,
        identity: CellIdentity<'_>,
        todo: &Todo,
    ) -> Result<OnPath, JobEnd> {
        let OpenedCell { job, shared, image, executor, facts, files, .. } = cell;
        let cover = CoverageRequest { methods: &todo.cover, files };
        let cover = (!files.is_empty()).then_some(&cover);
        let mutate = self.mutation_request(job, shared, &cell.lines, &todo.mutate).await?;
        let is_launched = !(todo.methods.is_empty() && todo.control.is_empty());
        let old = match is_launched && self.controls_new(job) {
            true => Some(self.old_code((executor, image), job.task, &cell.old).await?),
            false => None,
        };
        let control = old.as_ref().map(|old| ControlRequest {
            passing: todo.control.clone(),
            extents: &cell.extents,
            test_file: job.task.test_file.as_str(),
            sources: &cell.sources,
            files,
            old,
            seed: self.seed_of(job),
        });
        let control = control.as_ref();
        let mut executed = match (identity.path, &self.direct) {
            (ExecutionPath::Direct, Some(direct)) => {
                let (methods, repeats) = (&todo.methods, self.repeats);
                let executed = DirectCell { identity, facts, methods, repeats };
                let cell = SubmissionCell { executed, cover, control, mutate: mutate.as_ref() };
                match answered(direct_cell::run_cell(direct, executor, &self.revisions, &cell).await)? {
                    Ok(executed) => executed,
                    Err(reason) => return Ok(OnPath::Unfit(reason)),
                }
            }
            _ => {
                let (trees, task, code) = (Arc::clone(&self.trees), job.task.clone(), job.code);
                let (described, content) = (facts.clone(), cell.file.clone());
                let written = blocking(move || trees.write(&task, code, &content, &described)).await?;
                let input = written.map_err(|error| Fault::source(&error.to_string()))?;
                let request = self.request(job, &input, image, &todo.methods);
                self.on_reference_path(executor, &request, (cover, control), mutate.as_ref()).await?
            }
        };
        // Before results are kept: a fault of the sources is not.
        self.judge_by_contents(job, &mut executed.records).await?;
        match mutate.filter(|_| identity.path == ExecutionPath::Direct && asks_maven(&executed.mutated)) {
            Some(request) => {
                let passing = request.passing_with(&executed.records);
                executed.mutated = Vec::new();
                Ok(OnPath::MutantsByMaven(executed, passing))
            }
            None => Ok(OnPath::Executed(executed)),
        }
    }

    /// Caches the results of a cell, and makes records of them.
    fn keep_all(
        &self,
        cell: &OpenedCell<'_>,
        identity: &CellIdentity<'_>,
        executed: Executed,
        records: &mut Vec<ScoreRecord>,
    ) -> std::io::Result<()> {
        let OpenedCell { job, executor, files, lines, .. } = cell;
        self.keep_controls((executor, identity), job, self.controlled_by(cell), &executed, records)?;
        self.keep(executor, identity, job, files, (executed.records, executed.covered), records)?;
        self.keep_mutated(executor, identity, job, lines, executed.mutated, records)
    }

    fn controlled_by<'a>(&self, cell: &'a OpenedCell<'_>) -> ControlledBy<'a> {
        let OpenedCell { files, lines, extents, old, .. } = cell;
        ControlledBy { files, lines, extents, old: old.as_ref().ok(), chosen_seed: self.chosen_seed }
    }

    /// Executes a cell on the reference path, then makes the requested measurements.
    async fn on_reference_path(
        &self,
        executor: &Executor,
        cell: &CellRequest<'_>,
        (cover, controls): (Option<&CoverageRequest<'_>>, Option<&ControlRequest<'_>>),
        mutate: Option<&MutationRequest<'_>>,
    ) -> std::io::Result<Executed> {
        let launches = !cell.methods.is_empty()
            || cover.is_some_and(|cover| !cover.methods.is_empty())
            || controls.is_some_and(|controls| !controls.passing.is_empty());
        let mut executed = Executed::default();
        if launches {
            (executed.records, executed.covered, executed.controlled) =
                executor.run_and_measure(cell, cover, controls).await?;
        }
        let control = match mutate {
            Some(request) if !launches => self.control(executor, cell, request).await?,
            _ => None,
        };
        if let Some((request, reason)) = mutate.zip(control) {
            executed.mutated = request.without(&[], &reason);
            return Ok(executed);
        }
        if let Some((request, module)) = mutate.zip(cell.input.module.as_ref())
            && !request.passing_with(&executed.records).is_empty()
        {
            executed.mutated = self.on_mutants(executor, cell, module, request, &executed.records).await?;
        }
        Ok(executed)
    }

    /// Checks methods that passed on the direct path with Maven's build and without a mutant. Returns why no mutants
    /// are run if one fails: each mutant would count as killed.
    async fn control(
        &self,
        executor: &Executor,
        cell: &CellRequest<'_>,
        request: &MutationRequest<'_>,
    ) -> std::io::Result<Option<NoAnswer>> {
        let methods: Vec<MethodId> = request.passing.iter().map(|one| one.method.clone()).collect();
        let records = executor.run_cell(&CellRequest { methods: &methods, repeats: 1, ..*cell }).await?;
        let other = records.iter().find(|record| record.outcome != Outcome::Pass);
        Ok(other.map(|record| {
            let cause = format!("without a mutant, as Maven compiles it: {}: {}", record.outcome, record.detail);
            let is_fault = matches!(record.outcome, Outcome::InfraFail(_));
            NoAnswer::of(cause, if is_fault { Remedy::TryAgain } else { Remedy::None })
        }))
    }

    /// Runs passing methods on mutants, on the reference path.
    async fn on_mutants(
        &self,
        executor: &Executor,
        cell: &CellRequest<'_>,
        module: &ModuleArguments,
        request: &MutationRequest<'_>,
        executed: &[CellRecord],
    ) -> std::io::Result<MutatedMethods> {
        let image = cell.image;
        let revision = RevisionInput { tree: cell.input.tree.clone(), module: module.clone() };
        let code = (cell.task, cell.cell.code());
        let prepared = match answered(self.prepared(executor, image, code, &revision).await)? {
            Ok(prepared) => prepared,
            Err(reason) => return Ok(request.without(executed, &reason)),
        };
        if let Some((direct, revision)) = self.direct.as_deref().zip(prepared.as_deref()) {
            let way = MutantRunner::Reference { cell, judge: Judge::Warm { direct, revision } };
            let done = mutated(way, (executor, image), request, executed).await?;
            if !asks_maven(&done) {
                return Ok(done);
            }
        }
        // Mutants are judged on the revision's own tree, as in a prepared revision. They must not depend on any
        // submission's test file.
        let (trees, task, side) = (Arc::clone(&self.revisions), cell.task.clone(), cell.cell.code());
        let archive = match tokio::task::spawn_blocking(move || trees.revision(&task, side)).await {
            Ok(Ok(archive)) => archive,
            Ok(Err(error)) => return Ok(request.without(executed, &NoAnswer::fault(error))),
            Err(error) => return Err(std::io::Error::other(error)),
        };
        let judge = Judge::Maven(ReferenceBuild { archive: archive.path(), tree: &cell.input.tree, module });
        mutated(MutantRunner::Reference { cell, judge }, (executor, image), request, executed).await
    }

    /// Returns the compiler that judges mutants if Maven compiles the cell. `None` if nothing is to be mutated yet, or
    /// a fault of ours hides the answer.
    async fn judge(
        &self,
        executor: &Executor,
        image: &RepositoryImage,
        job: &Job<'_>,
        facts: &CellFacts,
        todo: &Todo,
    ) -> std::io::Result<Option<JudgedBy>> {
        let Some(module) = facts.module.as_ref().filter(|_| !todo.mutate.is_empty()) else { return Ok(None) };
        let revision = RevisionInput { tree: facts.tree.clone(), module: module.clone() };
        let prepared = answered(self.prepared(executor, image, (job.task, job.code), &revision).await)?;
        Ok(prepared.ok().map(|prepared| if prepared.is_some() { JudgedBy::Warm } else { JudgedBy::Maven }))
    }

    /// Returns the prepared revision; `None` if the direct path never fits it.
    async fn prepared(
        &self,
        executor: &Executor,
        image: &RepositoryImage,
        (task, side): (&Task, Side),
        revision: &RevisionInput,
    ) -> Result<Option<Arc<CompiledRevision>>, ExecutionError> {
        let Some(direct) = &self.direct else { return Ok(None) };
        let (trees, task) = (Arc::clone(&self.revisions), task.clone());
        let archive = move || trees.revision(&task, side);
        match direct.revision(executor, image, revision, archive).await {
            Ok(revision) => Ok(Some(revision)),
            Err(ExecutionError::NoAnswer(reason)) if !reason.may_pass() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the mutation request of a job; `None` if it has none.
    async fn mutation_request<'a>(
        &'a self,
        job: &Job<'_>,
        shared: &'a Shared<'_>,
        lines: &LinesToMutate,
        passing: &[Passing],
    ) -> std::io::Result<Option<MutationRequest<'a>>> {
        if lines.is_empty() {
            return Ok(None);
        }
        let mut files = Ok(Vec::new());
        for (path, lines) in lines {
            let (trees, task, wanted) = (Arc::clone(&self.trees), job.task.clone(), path.clone());
            match (blocking(move || trees.new_file(&task, &wanted)).await?, &mut files) {
                (Ok(source), Ok(files)) => files.push((path.clone(), lines.clone(), source)),
                (Err(error), Ok(_)) => files = Err(NoAnswer::fault(format!("`{path}` can't be read: {error}"))),
                (_, Err(_)) => {}
            }
        }
        let (mutants, cache) = (&shared.mutants, &self.cache);
        let (task_id, focal) = (job.task.id.clone(), job.focal.clone());
        let (passing, seed) = (passing.to_vec(), self.seed_of(job));
        Ok(Some(MutationRequest { mutants, cache, task_id, focal, files, passing, seed }))
    }

    /// Returns the seed of a submission's measurements.
    fn seed_of(&self, job: &Job<'_>) -> u64 {
        self.seed ^ job.file.first_bytes()
    }

    fn identity<'a>(
        &self,
        job: &'a Job<'_>,
        facts: &'a CellFacts,
        image: &'a RepositoryImage,
        path: ExecutionPath,
    ) -> CellIdentity<'a> {
        let (cell, swapped) = (cell_of(job.code), facts.swapped());
        CellIdentity { task: job.task, cell, image, tree: &facts.tree, swapped, path }
    }

    fn request<'a>(
        &self,
        job: &'a Job<'_>,
        input: &'a CellInput,
        image: &'a RepositoryImage,
        methods: &'a [MethodId],
    ) -> CellRequest<'a> {
        let (task, cell, path) = (job.task, cell_of(job.code), ExecutionPath::Maven);
        CellRequest { task, cell, input, image, methods, repeats: self.repeats, path, other_text: None }
    }
}
