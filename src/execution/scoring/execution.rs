//! Executes one cell of one submission. Cached results are reused, and the rest is launched. Measurements that a fault
//! of ours prevented are recorded as lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fs_err as fs;

use super::direct_cell::{self, SubmissionCell};
use super::job::{Job, Shared, Todo};
use super::on_mutants::{JudgedBy, MutantRunner, MutatedMethods, MutationRequest, asks_maven, mutated};
use super::order::shuffle;
use super::record::ScoreRecord;
use super::reuse::LinesToMutate;
use super::unmeasured::{Due, unmeasured};
use super::{Scoring, blocking, cell_of, file_name, first_bytes};
use crate::execution::build::maven::ModuleArguments;
use crate::execution::build::prepared::{CompiledRevision, RevisionInput};
use crate::execution::container::Environment;
use crate::execution::direct::DirectCell;
use crate::execution::executor::Executor;
use crate::execution::fault::{ExecutionError, Fault, NoAnswer, Remedy, answered};
use crate::execution::launch::coverage::CoverageRequest;
use crate::execution::mutation::launches::Passing;
use crate::execution::mutation::reference::ReferenceBuild;
use crate::execution::mutation::{Judge, lines_to_mutate};
use crate::execution::request::{CellIdentity, CellInput, CellRequest};
use crate::execution::run::record::{CellRecord, ExecutionPath};
use crate::execution::run::stage::RunError;
use crate::execution::trees::CellFacts;
use crate::outcome::{InfraReason, Outcome};
use crate::task::{MethodId, Side, Task};

/// What ends a job before it is done.
enum JobEnd {
    /// A fault of ours: its records say so.
    Fault(Fault),
    /// The run ends too.
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

impl Scoring<'_> {
    /// Does a job and returns its records: every method that it is about has an outcome then, and every one that passes
    /// its measurements, be they lost.
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
        };
        let lost = unmeasured(job, due, &records, cause.as_deref());
        records.extend(lost);
        Ok(records)
    }

    /// Takes or executes what a job is about, as far as a fault of ours lets it.
    async fn execute_cell(
        &self,
        job: &Job<'_>,
        shared: &Shared<'_>,
        records: &mut Vec<ScoreRecord>,
    ) -> Result<(), JobEnd> {
        let repository = &job.task.repository;
        let (Some(environment), Some(executor)) =
            (self.environments.get(repository), shared.executors.get(&(job.model, repository)))
        else {
            let detail = "the repository has no image".to_owned();
            return Err(Fault { reason: InfraReason::Image, detail }.into());
        };
        let file = fs::read(shared.submissions.join(file_name(job.file)))?;
        let (trees, task, code, bytes) = (Arc::clone(&self.trees), job.task.clone(), job.code, file.clone());
        let described = blocking(move || trees.describe(&task, code, bytes)).await?;
        let facts = described.map_err(|error| Fault::source(&error.to_string()))?;
        let is_known = job.focal.unknown.is_none();
        let files = if self.coverage && is_known { job.focal.files() } else { Vec::new() };
        let lines = if self.mutation && is_known { lines_to_mutate(&job.focal.lines) } else { BTreeMap::new() };
        let mut todo = Todo { methods: job.methods.clone(), ..Todo::default() };
        if is_known {
            (todo.cover, todo.mutate) = (job.cover.clone(), job.mutate.clone());
        }
        // The order of methods is a part of the order of executions.
        shuffle(&mut todo.methods, self.seed ^ first_bytes(job.file));
        let mut unfit = None;
        let mut mutants_by_maven = false;
        let paths = self.direct.iter().map(|_| ExecutionPath::Direct).chain([ExecutionPath::Maven]);
        for path in paths {
            let identity = self.identity(job, &facts, environment, path);
            self.take_kept((executor, &identity), job, (&files, &lines), &mut todo, records)?;
            let judges: &[JudgedBy] = match path {
                ExecutionPath::Direct => &[JudgedBy::Warm],
                ExecutionPath::Maven if mutants_by_maven => &[JudgedBy::Maven],
                ExecutionPath::Maven => match self.judge(executor, environment, job, &facts, &todo).await? {
                    // It may have turned out to be none for the build.
                    Some(JudgedBy::Warm) => &[JudgedBy::Warm, JudgedBy::Maven],
                    Some(JudgedBy::Maven) => &[JudgedBy::Maven],
                    None => &[],
                },
            };
            for by in judges {
                let kept = (executor, &identity, &shared.mutants);
                self.take_mutated(kept, job, (&lines, *by), &mut todo.mutate, records)?;
            }
            if todo.is_empty() {
                return Ok(());
            }
            let request = CoverageRequest { methods: &todo.cover, files: &files };
            let request = (!files.is_empty()).then_some(&request);
            let mutate = self.mutation_request(job, shared, &lines, &todo.mutate).await?;
            let (executed, covered, on_mutants) = match (path, &self.direct) {
                (ExecutionPath::Direct, Some(direct)) => {
                    let (methods, repeats) = (&todo.methods, self.repeats);
                    let cell = SubmissionCell {
                        executed: DirectCell { identity, facts: &facts, methods, repeats },
                        cover: request,
                        mutate: mutate.as_ref(),
                    };
                    let executed = direct_cell::run_cell(direct, executor, &self.revisions, &cell).await;
                    let done = match answered(executed)? {
                        Ok(executed) => executed,
                        Err(reason) => {
                            unfit = Some(reason);
                            continue;
                        }
                    };
                    if let Some(request) = mutate.as_ref().filter(|_| asks_maven(&done.2)) {
                        let (executed, covered, _) = done;
                        todo = Todo { mutate: request.passing_with(&executed), ..Todo::default() };
                        self.keep(executor, &identity, job, &files, (executed, covered), records)?;
                        mutants_by_maven = true;
                        continue;
                    }
                    done
                }
                _ => {
                    let (trees, task) = (Arc::clone(&self.trees), job.task.clone());
                    let (described, content) = (facts.clone(), file.clone());
                    let written = blocking(move || trees.write(&task, code, &content, &described)).await?;
                    let input = written.map_err(|error| Fault::source(&error.to_string()))?;
                    let cell = self.request(job, &input, environment, &todo.methods);
                    let done = self.on_reference_path(executor, &cell, request, mutate.as_ref()).await?;
                    let (mut executed, covered, mutated) = done;
                    let reason = unfit.as_ref().map(|unfit| unfit.cause.clone());
                    executed.iter_mut().for_each(|record| record.measured.unfit.clone_from(&reason));
                    (executed, covered, mutated)
                }
            };
            self.keep(executor, &identity, job, &files, (executed, covered), records)?;
            self.keep_mutated(executor, &identity, job, &lines, on_mutants, records)?;
            return Ok(());
        }
        Ok(())
    }

    /// Executes a cell as Maven compiles it, then measures what is asked for.
    async fn on_reference_path(
        &self,
        executor: &Executor,
        cell: &CellRequest<'_>,
        cover: Option<&CoverageRequest<'_>>,
        mutate: Option<&MutationRequest<'_>>,
    ) -> std::io::Result<direct_cell::Executed> {
        let launches = !cell.methods.is_empty() || cover.is_some_and(|cover| !cover.methods.is_empty());
        let (executed, covered) = match launches {
            true => executor.run_and_cover(cell, cover).await?,
            false => Default::default(),
        };
        let control = match mutate {
            Some(request) if !launches => self.control(executor, cell, request).await?,
            _ => None,
        };
        if let Some((request, reason)) = mutate.zip(control) {
            return Ok((executed, covered, request.without(&[], &reason)));
        }
        let on_mutants = match mutate.zip(cell.input.module.as_ref()) {
            Some((request, module)) if !request.passing_with(&executed).is_empty() => {
                self.on_mutants(executor, cell, module, request, &executed).await?
            }
            _ => Vec::new(),
        };
        Ok((executed, covered, on_mutants))
    }

    /// Says why methods that passed elsewhere meet no mutants as Maven compiles them, where one does not pass there without:
    /// each mutant would be killed.
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

    /// Runs methods that pass as Maven compiles them on mutants.
    async fn on_mutants(
        &self,
        executor: &Executor,
        cell: &CellRequest<'_>,
        module: &ModuleArguments,
        request: &MutationRequest<'_>,
        executed: &[CellRecord],
    ) -> std::io::Result<MutatedMethods> {
        let environment = cell.environment;
        let revision = RevisionInput { tree: cell.input.tree.clone(), module: module.clone() };
        let code = (cell.task, cell.cell.code());
        let prepared = match answered(self.prepared(executor, environment, code, &revision).await)? {
            Ok(prepared) => prepared,
            Err(reason) => return Ok(request.without(executed, &reason)),
        };
        if let Some((direct, revision)) = self.direct.as_deref().zip(prepared.as_deref()) {
            let way = MutantRunner::Reference { cell, judge: Judge::Warm { direct, revision } };
            let done = mutated(way, (executor, environment), request, executed).await?;
            if !asks_maven(&done) {
                return Ok(done);
            }
        }
        // On the revision's own tree, as a prepared one is: whose test file is there must decide nothing for the others.
        let (trees, task, side) = (Arc::clone(&self.revisions), cell.task.clone(), cell.cell.code());
        let archive = match tokio::task::spawn_blocking(move || trees.revision(&task, side)).await {
            Ok(Ok(archive)) => archive,
            Ok(Err(error)) => return Ok(request.without(executed, &NoAnswer::fault(error))),
            Err(error) => return Err(std::io::Error::other(error)),
        };
        let judge = Judge::Maven(ReferenceBuild { archive: archive.path(), tree: &cell.input.tree, module });
        mutated(MutantRunner::Reference { cell, judge }, (executor, environment), request, executed).await
    }

    /// Returns who says which mutants compile where Maven compiles the cell; `None` where nothing is to be mutated yet, or a
    /// fault of ours keeps it from being known.
    async fn judge(
        &self,
        executor: &Executor,
        environment: &Environment,
        job: &Job<'_>,
        facts: &CellFacts,
        todo: &Todo,
    ) -> std::io::Result<Option<JudgedBy>> {
        let Some(module) = facts.module.as_ref().filter(|_| !todo.mutate.is_empty()) else { return Ok(None) };
        let revision = RevisionInput { tree: facts.tree.clone(), module: module.clone() };
        let prepared = answered(self.prepared(executor, environment, (job.task, job.code), &revision).await)?;
        Ok(prepared.ok().map(|prepared| if prepared.is_some() { JudgedBy::Warm } else { JudgedBy::Maven }))
    }

    /// Returns code as the direct path prepares it, `None` where that never fits it.
    async fn prepared(
        &self,
        executor: &Executor,
        environment: &Environment,
        (task, side): (&Task, Side),
        revision: &RevisionInput,
    ) -> Result<Option<Arc<CompiledRevision>>, ExecutionError> {
        let Some(direct) = &self.direct else { return Ok(None) };
        let (trees, task) = (Arc::clone(&self.revisions), task.clone());
        let archive = move || trees.revision(&task, side);
        match direct.revision(executor, environment, revision, archive).await {
            Ok(revision) => Ok(Some(revision)),
            Err(ExecutionError::NoAnswer(reason)) if !reason.may_pass() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns what is mutated for a job; `None` where nothing is.
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
        Ok(Some(MutationRequest { mutants, cache, task_id, focal, files, passing: passing.to_vec() }))
    }

    fn identity<'a>(
        &self,
        job: &'a Job<'_>,
        facts: &'a CellFacts,
        environment: &'a Environment,
        path: ExecutionPath,
    ) -> CellIdentity<'a> {
        let (cell, swapped) = (cell_of(job.code), facts.swapped());
        CellIdentity { task: job.task, cell, environment, tree: &facts.tree, swapped, path }
    }

    fn request<'a>(
        &self,
        job: &'a Job<'_>,
        input: &'a CellInput,
        environment: &'a Environment,
        methods: &'a [MethodId],
    ) -> CellRequest<'a> {
        let (task, cell, path) = (job.task, cell_of(job.code), ExecutionPath::Maven);
        CellRequest { task, cell, input, environment, methods, repeats: self.repeats, path, other_text: None }
    }
}
