//! The inspector: measures coverage and mutants of a task's developers' tests on new code, with scoring's code and with
//! the other tools.

mod ends;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use crate::opened::Opened;
use crate::report::crosscheck::{
    CROSSCHECK_SCHEMA, CheckSetting, CheckedEnds, CheckedMethod, CheckedMutants, CheckedTask,
};
use crate::tools::driven::{MavenCoverage, MavenMethod, drive};
use crate::tools::mutate::mutate;
use testevo_sandbox::application::Context;
use testevo_sandbox::application::workbench::{Workbench, blocking};
use testevo_sandbox::artifact::store::Store;
use testevo_sandbox::error::CommandError;
use testevo_sandbox::execution::build::prepared::{
    CompiledRevision, Prepared, PreparedError, PreparedRevisions, RevisionInput,
};
use testevo_sandbox::execution::container::RepositoryImage;
use testevo_sandbox::execution::direct::{Direct, Swap};
use testevo_sandbox::execution::executor::Executor;
use testevo_sandbox::execution::fault::{ExecutionError, NoAnswer, answered};
use testevo_sandbox::execution::launch::coverage::Covering;
use testevo_sandbox::execution::launch::coverage::{CoverageRequest, MethodCoverage, SourceFile, source_files};
use testevo_sandbox::execution::mutation::{Judge, MutatedFile, judge, lines_to_mutate};
use testevo_sandbox::execution::request::{CellInput, CellRequest};
use testevo_sandbox::execution::run::logs::CellLogs;
use testevo_sandbox::execution::run::record::ExecutionPath;
use testevo_sandbox::execution::scoring::trees::SubmissionTrees;
use testevo_sandbox::execution::trees::CellFacts;
use testevo_sandbox::focal::{FocalLines, Found};
use testevo_sandbox::outcome::Outcome;
use testevo_sandbox::task::{Cell, Side, Task};
use testevo_sandbox::workspace::cells::class_of_method;

/// Why a task could not be inspected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InspectError {
    /// The sources can't be had.
    #[error("{0}")]
    Sources(String),
    #[error(transparent)]
    Prepared(#[from] PreparedError),
    #[error(transparent)]
    Execution(#[from] ExecutionError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl From<NoAnswer> for InspectError {
    fn from(reason: NoAnswer) -> Self {
        Self::Execution(reason.into())
    }
}

/// Returns the answer or the reason for none.
fn inspected<T>(result: Result<T, InspectError>) -> Result<Result<T, NoAnswer>, InspectError> {
    match result {
        Err(InspectError::Execution(error)) => Ok(answered(Err(error))?),
        result => Ok(Ok(result?)),
    }
}

/// The state for inspecting tasks, opened once.
pub(crate) struct Inspector {
    opened: Opened,
    setting: CheckSetting,
    trees: Arc<SubmissionTrees>,
    prepared: PreparedRevisions,
    store: Store,
    direct: Direct,
    compares: Compares,
}

/// What is compared.
#[derive(Clone, Copy)]
pub(crate) struct Compares {
    pub(crate) coverage: bool,
    pub(crate) mutants: bool,
    /// Number of mutants of each file whose outcomes are compared.
    pub(crate) ends: usize,
}

/// A task and its facts that are known before any execution.
pub(crate) struct Subject<'a> {
    task: &'a Task,
    executor: &'a Executor,
    image: &'a RepositoryImage,
    facts: CellFacts,
    input: RevisionInput,
    revision: CompiledRevision,
    focal: Vec<FocalLines>,
}

impl Inspector {
    pub(crate) async fn new(tasks: &[&Task], compares: Compares, context: &Context) -> Result<Self, CommandError> {
        let workbench = Workbench::open(context)?;
        let opened = Opened::of(&workbench, tasks).await?;
        let trees = SubmissionTrees {
            paths: opened.paths.clone(),
            temporary: workbench.data_dir.temporary(),
            notices: Arc::clone(&workbench.notices),
            whole: Arc::clone(&opened.whole),
        };
        Ok(Self {
            setting: CheckSetting { engine: opened.engine_name.clone(), version: opened.version.clone() },
            trees: Arc::new(trees),
            prepared: PreparedRevisions::new(&workbench.data_dir, &workbench.store, &context.events),
            store: workbench.store.clone(),
            direct: workbench.direct_with(&opened.engine, &opened.jars, 1),
            opened,
            compares,
        })
    }

    /// Ends compilers and containers.
    pub(crate) async fn close(self) -> Result<(), CommandError> {
        let Self { mut opened, direct, .. } = self;
        drop((direct, std::mem::take(&mut opened.executors)));
        Ok(opened.engine.close().await?)
    }

    /// Returns a task that could not be compared, for now or for good.
    pub(crate) fn left_out(&self, task: &Task, (reason, lost): (String, bool)) -> CheckedTask {
        CheckedTask { left_out: Some(reason), lost, ..self.checked(task) }
    }

    fn checked(&self, task: &Task) -> CheckedTask {
        CheckedTask {
            schema: CROSSCHECK_SCHEMA,
            setting: self.setting.clone(),
            task_id: task.id.clone(),
            repository: task.repository.clone(),
            coverage: Vec::new(),
            mutants: Vec::new(),
            left_out: None,
            lost: false,
        }
    }

    /// Makes all comparisons of a task.
    pub(crate) async fn task(&self, task: &Task) -> Result<CheckedTask, InspectError> {
        let subject = match self.subject(task).await? {
            Ok(subject) => subject,
            Err(reason) => return Ok(self.left_out(task, reason)),
        };
        let mut checked = self.checked(task);
        if self.compares.coverage {
            checked.coverage = self.coverage(&subject, &mut checked.lost).await?;
        }
        if self.compares.mutants || self.compares.ends > 0 {
            checked.mutants = self.mutants(&subject, &mut checked.lost).await?;
        }
        Ok(checked)
    }

    /// Returns what is known of a task, or why nothing of it can be compared.
    async fn subject<'a>(&'a self, task: &'a Task) -> Result<Result<Subject<'a>, (String, bool)>, InspectError> {
        let (executor, image) = self.opened.place(task).map_err(InspectError::Sources)?;
        let facts = self.read(task, |trees, task| trees.facts(task, Cell::Nn)).await?;
        let (trees, wanted) = (Arc::clone(&self.trees), task.clone());
        let focal = blocking(move || Ok(trees.focal(&wanted)?)).await;
        let focal = focal.map_err(|error| InspectError::Sources(error.to_string()))?;
        let focal: Vec<FocalLines> = focal
            .into_iter()
            .filter_map(|focal| match focal.found {
                Found::Resolved(lines) => Some(lines),
                Found::Gone { .. } | Found::Unresolved { .. } => None,
            })
            .collect();
        if focal.is_empty() {
            return Ok(Err(("none of its focal methods is on new code".to_owned(), false)));
        }
        let (Some(_), Some(module)) = (&facts.text, &facts.module) else {
            return Ok(Err(("the target file lies in no module of the new revision".to_owned(), false)));
        };
        let input = RevisionInput { tree: facts.tree.clone(), module: module.clone() };
        let (trees, wanted) = (Arc::clone(&self.opened.trees), task.clone());
        let archive = move || trees.revision(&wanted, Side::New);
        let revision = match self.prepared.get(executor, image, &input, archive).await?.as_ref() {
            Prepared::Compiled(revision) => revision.as_ref().clone(),
            Prepared::Failed { outcome, .. } => {
                let lost = matches!(outcome, Outcome::InfraFail(_));
                return Ok(Err((format!("the new revision ends in {outcome}"), lost)));
            }
        };
        Ok(Ok(Subject { task, executor, image, facts, input, revision, focal }))
    }

    async fn coverage(&self, subject: &Subject<'_>, lost: &mut bool) -> Result<Vec<CheckedMethod>, InspectError> {
        let task = subject.task;
        let files = source_files(&subject.focal);
        let input = self.read(task, |trees, task| trees.cell(task, Cell::Nn)).await?;
        let (path, ours) = self.ours(subject, &input, &files).await?;
        let mut ours: BTreeMap<_, _> = ours.into_iter().map(|one| (one.method.clone(), one)).collect();
        let mut checked = Vec::new();
        for method in &task.test_methods {
            let left_out = |reason| CheckedMethod::left_out(method.clone(), path, reason);
            let own = match ours.remove(method) {
                Some(MethodCoverage { lines: Ok(own), .. }) => own,
                Some(MethodCoverage { lines: Err(reason), may_pass, .. }) => {
                    *lost |= may_pass;
                    checked.push(left_out(format!("ours: {reason}")));
                    continue;
                }
                None => {
                    // It was prepared, so that it compiles: what came now is a fault of ours.
                    *lost = true;
                    checked.push(left_out("ours: the new revision did not compile this time".to_owned()));
                    continue;
                }
            };
            let driven = MavenMethod {
                image: subject.image,
                archive: input.archive.path(),
                module: &subject.input.module,
                class: &class_of_method(&subject.facts.class, method),
                method,
                class_path: &subject.revision.class_path,
                files: &files,
            };
            checked.push(match drive(subject.executor, &driven).await? {
                MavenCoverage::Covered { tests, lines } => {
                    CheckedMethod::of((method.clone(), path, tests), (&subject.focal, &files), &own, &lines)
                }
                MavenCoverage::LeftOut { cause, may_pass } => {
                    *lost |= may_pass;
                    left_out(cause)
                }
            });
        }
        Ok(checked)
    }

    /// Returns what the methods cover as scoring has it: on the direct path where that fits, else on the other one.
    async fn ours(
        &self,
        subject: &Subject<'_>,
        input: &CellInput,
        files: &[SourceFile],
    ) -> Result<(ExecutionPath, Vec<MethodCoverage>), InspectError> {
        let Subject { task, executor, image, facts, .. } = subject;
        let methods = &task.test_methods;
        let text = facts.text.as_deref().unwrap_or_default();
        if subject.revision.unfit.is_none() {
            let revision = Arc::new(subject.revision.clone());
            let swapped = async {
                let masked = self.direct.masked(executor, &revision, task.test_file.as_str()).await?;
                self.direct.swap(executor, image, &masked, text).await
            };
            if let Ok(Swap::Compiled(swapped)) = answered(swapped.await)? {
                let logs = CellLogs::create(None, &task.id, Cell::Nn)?;
                let covering = Covering { class: &facts.class, files, logs: &logs };
                let covered = executor.cover(image, &swapped.built, &covering, methods.iter()).await?;
                return Ok((ExecutionPath::Direct, covered));
            }
        }
        let request = CellRequest {
            task,
            cell: Cell::Nn,
            input,
            image,
            methods: &[],
            repeats: 1,
            path: ExecutionPath::Maven,
            other_text: None,
        };
        let covered = executor.run_and_measure(&request, Some(&CoverageRequest { methods, files }), None).await?.1;
        Ok((ExecutionPath::Maven, covered))
    }

    async fn mutants(&self, subject: &Subject<'_>, lost: &mut bool) -> Result<Vec<CheckedMutants>, InspectError> {
        let Subject { task, executor, image, revision, .. } = subject;
        let mut checked = Vec::new();
        let mut runnable = None;
        for (path, lines) in lines_to_mutate(&subject.focal) {
            let left_out = |reason| CheckedMutants::left_out(&path, lines.len(), reason);
            let neither = |reason: String| {
                let ends = (self.compares.ends > 0).then(|| CheckedEnds::left_out(reason.clone()));
                CheckedMutants { ends, ..left_out(reason) }
            };
            if let Some(reason) = &revision.unfit {
                checked.push(neither(format!("mutants need the direct path, which does not fit: {reason}")));
                continue;
            }
            let (trees, wanted, name) = (Arc::clone(&self.trees), (*task).clone(), path.clone());
            let source = blocking(move || Ok(trees.new_file(&wanted, &name)?)).await;
            let source = source.map_err(|error| InspectError::Sources(error.to_string()))?;
            let file = MutatedFile { task_id: &task.id, path: &path, source: &source, lines: &lines };
            let by = Judge::Warm { direct: &self.direct, revision };
            let started = Instant::now();
            let ours = match answered(judge(by, executor, image, &file).await)? {
                Ok(ours) => ours,
                Err(reason) => {
                    *lost |= reason.may_pass();
                    checked.push(neither(format!("ours: {}", reason.cause)));
                    continue;
                }
            };
            let judging = started.elapsed();
            let mut one = if self.compares.mutants {
                let tree = self.store.path(&revision.tree);
                match answered(mutate(executor, image, revision, tree, &file).await)? {
                    Ok(theirs) => CheckedMutants::of(&file, &ours, &theirs),
                    Err(reason) => {
                        *lost |= reason.may_pass();
                        left_out(reason.cause)
                    }
                }
            } else {
                left_out("it was not asked for".to_owned())
            };
            if self.compares.ends > 0 {
                let runnable = match &mut runnable {
                    Some(runnable) => runnable,
                    none => none.insert(inspected(self.runnable(subject).await)?),
                };
                let ends = match runnable {
                    Ok(runnable) => inspected(self.ends(subject, runnable, &file, (&ours, judging)).await)?,
                    Err(reason) => Err(reason.clone()),
                };
                one.ends = Some(ends.unwrap_or_else(|reason| {
                    *lost |= reason.may_pass();
                    CheckedEnds::left_out(reason.cause)
                }));
            }
            checked.push(one);
        }
        Ok(checked)
    }

    async fn read<T: Send + 'static>(
        &self,
        task: &Task,
        read: impl FnOnce(&testevo_sandbox::execution::trees::Trees, &Task) -> Result<T, String> + Send + 'static,
    ) -> Result<T, InspectError> {
        self.opened.read(task, read).await.map_err(InspectError::Sources)
    }
}
