//! The clock: executes the cells of a task in every variant, one after the other, and measures each.
//!
//! A variant begins with the sources in git and ends with verdicts. It includes writing trees, leaving the target file out,
//! and the reference path where the direct path does not fit. Prepared revisions and a warm compiler exist before, as
//! in a validation of many tasks; another file warmed the compiler.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::comparison::{Executed, judged};
use crate::floor::floor;
use crate::literal::{LiteralCell, LiteralError, LiteralVerdict, literal, skip_tests};
use crate::opened::Opened;
use crate::report::measurement::{MEASUREMENT_SCHEMA, MeasuredRevision, MeasuredTask, Setting, Variant};
use testevo_sandbox::application::Context;
use testevo_sandbox::application::workbench::Workbench;
use testevo_sandbox::artifact::store::{Store, StoreError};
use testevo_sandbox::data_dir::DataDir;
use testevo_sandbox::digest::Digest;
use testevo_sandbox::error::CommandError;
use testevo_sandbox::event::EventSink;
use testevo_sandbox::execution::build::prepared::{
    CompiledRevision, Prepared, PreparedError, PreparedRevisions, RevisionInput,
};
use testevo_sandbox::execution::container::RepositoryImage;
use testevo_sandbox::execution::container::places::PROJECT;
use testevo_sandbox::execution::container::pool::ContainerPool;
use testevo_sandbox::execution::direct::{Direct, Swap};
use testevo_sandbox::execution::executor::Executor;
use testevo_sandbox::execution::fault::answered;
use testevo_sandbox::execution::launch::console_for;
use testevo_sandbox::execution::obstacle::Obstacles;
use testevo_sandbox::execution::order::shuffle;
use testevo_sandbox::execution::run::record::{CellRecord, ExecutionPath, milliseconds};
use testevo_sandbox::execution::run::stage::RunError;
use testevo_sandbox::execution::sharing::Serves;
use testevo_sandbox::execution::trees::{CellFacts, Trees};
use testevo_sandbox::execution::validation::{Validation, ordered_cells};
use testevo_sandbox::task::{Cell, RepositoryName, Side, Task};

/// Why a task could not be measured.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MeasureError {
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
    /// The sources can't be had.
    #[error("{0}")]
    Sources(String),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Literal(#[from] LiteralError),
    #[error(transparent)]
    Prepared(#[from] PreparedError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// The state for measuring tasks, opened once.
pub(crate) struct Clock {
    opened: Opened,
    setting: Setting,
    data_dir: DataDir,
    events: EventSink,
    cancellation: CancellationToken,
    /// The direct paths without and with containers started ahead. Each has its own compilers, so that both see the
    /// same requests.
    direct: Arc<Direct>,
    direct_ahead: Arc<Direct>,
    ahead: Arc<ContainerPool>,
    /// The executors with containers started ahead.
    executors_ahead: BTreeMap<RepositoryName, Arc<Executor>>,
    /// Trees and modules that are already prepared and built by Maven alone.
    revisions: BTreeSet<(String, String)>,
}

/// A cell with what is known of it.
struct Subject<'a> {
    task: &'a Task,
    cell: Cell,
    facts: CellFacts,
}

impl Clock {
    pub(crate) async fn new(tasks: &[&Task], seed: u64, context: &Context) -> Result<Self, CommandError> {
        let workbench = Workbench::open(context)?;
        let mut opened = Opened::of(&workbench, tasks).await?;
        let pool = |most| Arc::new(ContainerPool::new(Arc::clone(&opened.engine), most));
        let (ahead, none) = (pool(1), pool(0));
        let executors = |ahead: &Arc<ContainerPool>| {
            let with = |executor: &Arc<Executor>| Executor { pool: Arc::clone(ahead), ..executor.as_ref().clone() };
            let all = opened.executors.iter();
            all.map(|(name, executor)| (name.clone(), Arc::new(with(executor)))).collect::<BTreeMap<_, _>>()
        };
        let (executors_ahead, executors) = (executors(&ahead), executors(&none));
        opened.executors = executors;
        Ok(Self {
            setting: Setting {
                engine: opened.engine_name.clone(),
                version: opened.version.clone(),
                processors: testevo_sandbox::host::processors().get(),
                seed,
            },
            data_dir: workbench.data_dir.clone(),
            events: context.events.clone(),
            cancellation: context.cancellation.clone(),
            direct: Arc::new(workbench.direct_with(&opened.engine, &opened.jars, 1)),
            direct_ahead: Arc::new(workbench.direct_with(&opened.engine, &opened.jars, 1)),
            ahead,
            executors_ahead,
            revisions: BTreeSet::new(),
            opened,
        })
    }

    /// Ends compilers and containers.
    pub(crate) async fn close(self) -> Result<(), CommandError> {
        let Self { opened, direct, direct_ahead, ahead, executors_ahead, .. } = self;
        drop((direct, direct_ahead, ahead, executors_ahead));
        Ok(opened.engine.close().await?)
    }

    /// Returns a task that was not measured.
    pub(crate) fn left_out(&self, task: &Task, reason: String) -> MeasuredTask {
        MeasuredTask {
            schema: MEASUREMENT_SCHEMA,
            setting: self.setting.clone(),
            load: testevo_sandbox::host::load().unwrap_or_default(),
            task_id: task.id.clone(),
            repository: task.repository.clone(),
            cells: Vec::new(),
            revisions: Vec::new(),
            left_out: vec![reason],
        }
    }

    /// Measures the executed cells of a task, and its revisions unless another task's measurement has them.
    pub(crate) async fn task(&mut self, task: &Task) -> Result<MeasuredTask, MeasureError> {
        let mut subjects = Vec::new();
        for cell in ordered_cells(task) {
            let facts = self.read(task, move |trees, task| trees.facts(task, cell)).await?;
            // Without a file or a module nothing is executed, in any variant.
            if facts.text.is_some() && facts.module.is_some() {
                subjects.push(Subject { task, cell, facts });
            }
        }
        let mut revisions: BTreeMap<Side, Option<Arc<CompiledRevision>>> = BTreeMap::new();
        for subject in &subjects {
            if let Entry::Vacant(missing) = revisions.entry(subject.cell.code()) {
                let revision = self.warm(&self.direct, subject).await?;
                self.warm(&self.direct_ahead, subject).await?;
                missing.insert(revision);
            }
        }
        let revision_of = |subject: &Subject<'_>| revisions.get(&subject.cell.code()).and_then(Option::as_ref);
        let mut order = Variant::ALL.to_vec();
        shuffle(&mut order, self.seed_of(task.id.as_str()));
        let mut executed = BTreeMap::new();
        for &variant in &order {
            executed.insert(variant, self.cells(variant, &subjects, &revision_of).await?);
        }
        let (mut cells, mut passed, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
        for (at, subject) in subjects.iter().enumerate() {
            let variants = executed.iter().filter_map(|(variant, cells)| Some((*variant, cells.get(at)?)));
            let (cell, launched) = judged(subject.cell, &order, variants.collect(), &mut left_out);
            cells.push(cell);
            passed.push(launched);
        }
        // Last, so that what is compiled for it warms no compiler for what is measured.
        for ((subject, cell), passed) in subjects.iter().zip(&mut cells).zip(passed) {
            if let Some((revision, passed)) = revision_of(subject).zip(passed) {
                cell.floor_ms = self.floor(subject, revision, &passed, &mut left_out).await?;
            }
        }
        let mut measured = Vec::new();
        for subject in &subjects {
            measured.extend(self.revision(subject).await?);
        }
        let load = testevo_sandbox::host::load().unwrap_or_default();
        let (task_id, repository) = (task.id.clone(), task.repository.clone());
        let (schema, setting) = (MEASUREMENT_SCHEMA, self.setting.clone());
        Ok(MeasuredTask { schema, setting, load, task_id, repository, cells, revisions: measured, left_out })
    }

    /// Has the revision prepared, its class archive made and the compiler warm, and returns the revision where the direct path fits it.
    ///
    /// What is compiled is another file of the revision: the measured texts are as new to the compiler as those of any
    /// task, and nothing is left out of the revision's archive for them yet.
    async fn warm(
        &self,
        direct: &Direct,
        subject: &Subject<'_>,
    ) -> Result<Option<Arc<CompiledRevision>>, MeasureError> {
        let (executor, image) = self.place(subject.task)?;
        let (trees, task, side) = (Arc::clone(&self.opened.trees), subject.task.clone(), subject.cell.code());
        let archive = move || trees.revision(&task, side);
        let Some(input) = subject.revision_input() else { return Ok(None) };
        let revision = answered(direct.revision(executor, image, &input, archive).await)?;
        // The reference path maps one as well; where nothing is known of the revision, the console is most projects' one.
        let class_path = revision.as_ref().map(|revision| revision.class_path.as_slice()).unwrap_or_default();
        let console = console_for(class_path, image.jdk, image.launcher);
        executor.class_archive(image, Serves::Launches(console)).await;
        let Ok(revision) = revision else { return Ok(None) };
        let other = other_source(&revision, subject.task.test_file.as_str());
        if let Ok(masked) = answered(direct.masked(executor, &revision, &other).await)? {
            let text = masked.own_text()?.unwrap_or_else(|| WARMING.to_vec());
            // What comes of it does not matter here.
            let _ = answered(direct.swap(executor, image, &masked, &text).await)?;
        }
        Ok(Some(revision))
    }

    /// Executes the cells of a task in one variant, one after the other.
    ///
    /// A container that was started ahead by the task before stands for the one that is started for the next: that one
    /// is in the last cell's time, and so are the removals of all containers.
    async fn cells<'a>(
        &self,
        variant: Variant,
        subjects: &[Subject<'_>],
        revision_of: &impl Fn(&Subject<'_>) -> Option<&'a Arc<CompiledRevision>>,
    ) -> Result<Vec<Executed>, MeasureError> {
        let mut cells = Vec::new();
        for (at, subject) in subjects.iter().enumerate() {
            if self.cancellation.is_cancelled() {
                return Err(MeasureError::Interrupted);
            }
            let started = Instant::now();
            let (mut records, mut literal) = (Vec::new(), None);
            match variant {
                Variant::Literal => literal = Some(self.literal(subject, revision_of(subject).map(Arc::as_ref)).await?),
                Variant::Reference => records = self.validate(None, subject).await?,
                Variant::Direct => records = self.validate(Some(&self.direct), subject).await?,
                Variant::Ahead => records = self.validate(Some(&self.direct_ahead), subject).await?,
            }
            if at + 1 == subjects.len() {
                self.ahead.settled().await;
                self.opened.engine.wait_for_removals().await;
            }
            cells.push(Executed { wall_ms: milliseconds(started), records, literal });
        }
        Ok(cells)
    }

    /// Executes a cell as a validation does.
    async fn validate(
        &self,
        direct: Option<&Arc<Direct>>,
        subject: &Subject<'_>,
    ) -> Result<Vec<CellRecord>, MeasureError> {
        let path = if direct.is_some() { ExecutionPath::Direct } else { ExecutionPath::Maven };
        let is_ahead = direct.is_some_and(|direct| Arc::ptr_eq(direct, &self.direct_ahead));
        let executors = if is_ahead { &self.executors_ahead } else { &self.opened.executors };
        let validation = Validation {
            tasks: &[],
            images: &self.opened.images,
            executors,
            obstacles: &Obstacles::default(),
            repeats: 1,
            jobs: 1,
            trees: Arc::clone(&self.opened.trees),
            paths: &[],
            direct: direct.cloned(),
        };
        Ok(validation.cell(subject.task, subject.cell, path).await?)
    }

    async fn literal(
        &self,
        subject: &Subject<'_>,
        revision: Option<&CompiledRevision>,
    ) -> Result<LiteralVerdict, MeasureError> {
        let (executor, image) = self.place(subject.task)?;
        let cell = subject.cell;
        let input = self.read(subject.task, move |trees, task| trees.cell(task, cell)).await?;
        let Some(module) = &input.module else {
            return Err(MeasureError::Sources("the target file lies in no module".to_owned()));
        };
        let class_path = revision.map_or(&[][..], |revision| revision.class_path.as_slice());
        let console = console_for(class_path, image.jdk, image.launcher);
        let methods = &subject.task.test_methods;
        Ok(literal(executor, &LiteralCell { image, input: &input, module, console, methods }).await?)
    }

    /// Returns what the JVMs of a cell take one after the other, and checks that they come to the same.
    async fn floor(
        &self,
        subject: &Subject<'_>,
        revision: &Arc<CompiledRevision>,
        passed: &[bool],
        left_out: &mut Vec<String>,
    ) -> Result<Option<u64>, MeasureError> {
        let (executor, image) = self.place(subject.task)?;
        let (task, text) = (subject.task, subject.facts.text.as_deref().unwrap_or_default());
        let mut no_tree = |reason: String| {
            left_out.push(format!("{}: floor: {reason}", subject.cell.name()));
            Ok(None)
        };
        let swapped = async {
            let masked = self.direct.masked(executor, revision, task.test_file.as_str()).await?;
            self.direct.swap(executor, image, &masked, text).await
        };
        let swapped = match answered(swapped.await)? {
            Ok(Swap::Compiled(swapped)) => swapped,
            Ok(Swap::Failed { detail, .. }) => return no_tree(detail),
            Err(reason) => return no_tree(reason.cause),
        };
        let console = console_for(&revision.class_path, image.jdk, image.launcher);
        let archive = executor.class_archive(image, Serves::Launches(console)).await;
        let (class, methods) = (&subject.facts.class, &task.test_methods);
        let launches = floor(executor, image, &swapped, archive.as_deref(), (class, methods)).await?;
        if !launches.iter().map(|launch| launch.passed).eq(passed.iter().copied()) {
            return no_tree("other methods pass on a tree that they share".to_owned());
        }
        Ok(Some(launches.iter().map(|launch| launch.wall_ms).sum()))
    }

    /// Prepares the cell's revision with nothing prepared before, and has Maven alone build it; `None` where that was
    /// done already.
    async fn revision(&mut self, subject: &Subject<'_>) -> Result<Option<MeasuredRevision>, MeasureError> {
        let Some(input) = subject.revision_input() else { return Ok(None) };
        let name = (input.tree.clone(), input.module.directory.clone());
        if !self.revisions.insert(name.clone()) {
            return Ok(None);
        }
        let mut order = [false, true];
        shuffle(&mut order, self.seed_of(&format!("{} {}", name.0, name.1)));
        let (mut prepare_ms, mut maven_ms, mut left_out) = (0, 0, None);
        for prepares in order {
            if self.cancellation.is_cancelled() {
                return Err(MeasureError::Interrupted);
            }
            let (took, failed) = if prepares {
                (&mut prepare_ms, self.prepare(subject, &input).await?)
            } else {
                (&mut maven_ms, self.skip_tests(subject, &input).await?)
            };
            *took = failed.0;
            left_out = left_out.or(failed.1);
        }
        let (revision, module) = (subject.task.revision(subject.cell.code()).clone(), name.1);
        Ok(Some(MeasuredRevision { revision, module, prepare_ms, maven_ms, left_out }))
    }

    /// Prepares a revision into a store of its own; returns what that took, and why it failed, where it did.
    async fn prepare(
        &self,
        subject: &Subject<'_>,
        input: &RevisionInput,
    ) -> Result<(u64, Option<String>), MeasureError> {
        let (executor, image) = self.place(subject.task)?;
        let empty = self.data_dir.temporary().join("measured-store");
        let store = Store::open(&empty, &self.data_dir.temporary())?;
        let prepared = PreparedRevisions::new(&self.data_dir, &store, &self.events);
        let (trees, task, side) = (Arc::clone(&self.opened.trees), subject.task.clone(), subject.cell.code());
        let started = Instant::now();
        let prepared = prepared.get(executor, image, input, move || trees.revision(&task, side)).await;
        let took = milliseconds(started);
        fs_err::remove_dir_all(&empty)?;
        let failed = match prepared?.as_ref() {
            Prepared::Compiled(_) => None,
            Prepared::Failed { outcome, .. } => Some(format!("preparing it ends in {outcome}")),
        };
        Ok((took, failed))
    }

    /// Has Maven alone build a revision; returns what that took, and why it failed, where it did.
    async fn skip_tests(
        &self,
        subject: &Subject<'_>,
        input: &RevisionInput,
    ) -> Result<(u64, Option<String>), MeasureError> {
        let (executor, image) = self.place(subject.task)?;
        let side = subject.cell.code();
        let started = Instant::now();
        let archive = self.read(subject.task, move |trees, task| trees.revision(task, side)).await?;
        let built = skip_tests(executor, image, &input.module, archive.path()).await;
        let took = milliseconds(started);
        Ok((took, (!built?).then(|| "`mvn -o test -DskipTests` fails".to_owned())))
    }

    fn place(&self, task: &Task) -> Result<(&Executor, &RepositoryImage), MeasureError> {
        self.opened.place(task).map_err(MeasureError::Sources)
    }

    async fn read<T: Send + 'static>(
        &self,
        task: &Task,
        read: impl FnOnce(&Trees, &Task) -> Result<T, String> + Send + 'static,
    ) -> Result<T, MeasureError> {
        self.opened.read(task, read).await.map_err(MeasureError::Sources)
    }

    fn seed_of(&self, name: &str) -> u64 {
        let hex = Digest::of(format!("{} {name}", self.setting.seed).as_bytes()).hex();
        u64::from_str_radix(&hex[..16], 16).unwrap_or(self.setting.seed)
    }
}

impl Subject<'_> {
    fn revision_input(&self) -> Option<RevisionInput> {
        let module = self.facts.module.clone()?;
        Some(RevisionInput { tree: self.facts.tree.clone(), module })
    }
}

/// What a compiler is warmed with where the revision has no other test source.
const WARMING: &[u8] = b"class TestevoWarming {}\n";

/// Returns a test source of the revision that is not the target file, relative to the tree; one that does not exist
/// where there is none.
fn other_source(revision: &CompiledRevision, test_file: &str) -> String {
    let relative = |path: &str| path.strip_prefix(PROJECT).unwrap_or(path).trim_start_matches('/').to_owned();
    let calls = &revision.test_calls;
    let other = calls.iter().flat_map(|call| &call.sources).map(|path| relative(path)).find(|path| path != test_file);
    other.unwrap_or_else(|| {
        let root = calls.iter().flat_map(|call| &call.source_roots).next();
        format!("{}/TestevoWarming.java", root.map_or_else(String::new, |root| relative(root)))
    })
}
