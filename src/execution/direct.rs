//! The direct path: Maven compiles a code revision once. For each cell, one file is compiled again, and each method is
//! launched in a JVM and a container of its own.
//!
//! Each step can be used alone. [`Direct::revision`] prepares the revision. [`Direct::masked`] leaves the target file
//! out. [`Direct::swap`] puts a text in the target file's place and compiles it. [`Executor::launch`] runs one method.
//! [`Direct::run_cell`] does a whole cell. If the direct path can't do exactly what Maven would do, it returns
//! [`NoAnswer`], and the caller takes the reference path.

mod checks;
mod requests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use fs_err as fs;
use tokio::sync::OnceCell;

use crate::artifact::store::StoreError;
use crate::digest::Digest;
use crate::engine::EngineError;
use crate::execution::attempt::ATTEMPTS;
use crate::execution::attribution::{Erroneous, attribute};
use crate::execution::build::built::Built;
use crate::execution::build::compiled_tree::{CompiledTree, TreeError, append_file};
use crate::execution::build::compiler::{CompileAnswer, CompileRequest, Compilers, Diagnostic, Input, Start, Texts};
use crate::execution::build::masked::MaskedRevision;
use crate::execution::build::prepared::{CompiledRevision, Prepared, PreparedError, PreparedRevisions, RevisionInput};
use crate::execution::container::RepositoryImage;
use crate::execution::container::temporary::TemporaryFile;
use crate::execution::executor::{Executor, Launched};
use crate::execution::fault::{ExecutionError, NoAnswer, Remedy};
use crate::execution::request::CellIdentity;
use crate::execution::run::logs::CellLogs;
use crate::execution::run::record::milliseconds;
use crate::execution::run::record::{CellRecord, ExecutionPath, Measured};
use crate::execution::sharing::Serves;
use crate::execution::trees::CellFacts;
use crate::java::reach::Place;
use crate::outcome::compile::{of_diagnostics, place};
use crate::outcome::launch::shortened;
use crate::outcome::{CompileReason, Outcome};
use crate::task::MethodId;
use crate::thread::blocking;
use crate::workspace::class_file::family::{ClassShape, Family};

/// How many masked revisions are kept for later cells.
const MASKED_KEPT: usize = 16;

type Masked = Arc<OnceCell<Result<Arc<MaskedRevision>, NoAnswer>>>;

/// The direct path's state, shared by all cells of a process.
pub struct Direct {
    prepared: PreparedRevisions,
    compilers: Compilers,
    masked: Mutex<Vec<((Digest, String), Masked)>>,
}

/// A tree with a text compiled in the target file's place. Dropping it removes its archive on the host.
pub struct SwappedTree {
    /// The tree without the file.
    pub masked: Arc<MaskedRevision>,
    /// The tree that methods are launched on.
    pub built: Built,
}

/// The result of putting a text in the target file's place.
pub enum Swap {
    /// The text compiled.
    Compiled(SwappedTree),
    /// The text did not compile.
    Failed {
        /// The files that have the errors.
        reason: CompileReason,
        /// The first errors, for people.
        detail: String,
        /// All errors.
        errors: Vec<Diagnostic>,
    },
}

/// A cell on the direct path.
pub struct DirectCell<'a> {
    /// The cell that records name.
    pub identity: CellIdentity<'a>,
    /// The cell's facts, read without writing its tree.
    pub facts: &'a CellFacts,
    /// Methods to launch.
    pub methods: &'a [MethodId],
    /// Repeats of each launch, at least 1.
    pub repeats: u32,
}

/// The result of executing a cell.
pub struct ExecutedCell {
    /// A record per method and repeat.
    pub records: Vec<CellRecord>,
    /// The tree that methods were launched on and the directory of their logs, for further launches; `None` where no
    /// method was launched.
    pub launched: Option<(SwappedTree, CellLogs)>,
}

/// Returns why a revision has no classes. A fault is not kept, so the next try may have them; `otherwise` is for a build that fails.
fn unprepared(outcome: Outcome, detail: &str, otherwise: Remedy) -> ExecutionError {
    let remedy = if matches!(outcome, Outcome::InfraFail(_)) { Remedy::TryAgain } else { otherwise };
    let detail = detail.lines().next().unwrap_or_default();
    NoAnswer::of(format!("the revision itself does not compile: {outcome}: {detail}"), remedy).into()
}

impl Direct {
    /// Returns the direct path over prepared revisions and compilers.
    pub fn new(prepared: PreparedRevisions, compilers: Compilers) -> Self {
        Self { prepared, compilers, masked: Mutex::default() }
    }

    /// Returns a prepared code revision, and prepares it first if the store does not have it. `archive` writes the
    /// revision's own tree to a file and returns the file.
    ///
    /// # Errors
    /// [`ExecutionError`]; a failed build is [`NoAnswer`].
    pub async fn revision(
        &self,
        executor: &Executor,
        image: &RepositoryImage,
        revision: &RevisionInput,
        archive: impl FnOnce() -> Result<TemporaryFile, String> + Send + 'static,
    ) -> Result<Arc<CompiledRevision>, ExecutionError> {
        match self.prepared.get(executor, image, revision, archive).await?.as_ref() {
            Prepared::Compiled(revision) => match &revision.unfit {
                Some(reason) => Err(NoAnswer::unfit(reason).into()),
                None => Ok(Arc::new(revision.as_ref().clone())),
            },
            Prepared::Failed { outcome, detail } => Err(unprepared(*outcome, detail, Remedy::AskMaven)),
        }
    }

    /// Returns the compiled tree of a revision, also of one whose tests only Maven can compile.
    ///
    /// # Errors
    /// [`ExecutionError`]; a failed build is [`NoAnswer`].
    pub async fn classes(
        &self,
        executor: &Executor,
        image: &RepositoryImage,
        revision: &RevisionInput,
        archive: impl FnOnce() -> Result<TemporaryFile, String> + Send + 'static,
    ) -> Result<CompiledTree, ExecutionError> {
        let archive = match self.prepared.get(executor, image, revision, archive).await?.as_ref() {
            Prepared::Compiled(revision) => self.archive(revision)?,
            Prepared::Failed { outcome, detail } => return Err(unprepared(*outcome, detail, Remedy::None)),
        };
        match blocking(move || CompiledTree::open(&archive)).await {
            Ok(tree) => Ok(tree),
            Err(TreeError::TooLarge(reason)) => Err(NoAnswer::never(reason).into()),
            Err(TreeError::Io(error)) => Err(error.into()),
        }
    }

    /// Returns a revision without a file, relative to the tree.
    ///
    /// # Errors
    /// [`ExecutionError`]; its I/O errors are of logs and temporary files.
    pub async fn masked(
        &self,
        executor: &Executor,
        revision: &Arc<CompiledRevision>,
        test_file: &str,
    ) -> Result<Arc<MaskedRevision>, ExecutionError> {
        let name = (revision.key, test_file.to_owned());
        let cell = {
            let mut kept = self.masked.lock().unwrap_or_else(PoisonError::into_inner);
            let entry = match kept.iter().position(|(known, _)| *known == name) {
                Some(at) => kept.remove(at),
                None => (name, Masked::default()),
            };
            let cell = Arc::clone(&entry.1);
            kept.push(entry);
            let over = kept.len().saturating_sub(MASKED_KEPT);
            kept.drain(..over);
            cell
        };
        let made = cell.get_or_try_init(|| async {
            let (store, revision) = (self.prepared.store().clone(), Arc::clone(revision));
            let (test_file, temporary) = (test_file.to_owned(), executor.temporary.clone());
            let mask = move || MaskedRevision::new(&store, revision, &test_file, &temporary);
            match blocking(mask).await {
                Ok(masked) => Ok(Ok(Arc::new(masked))),
                Err(PreparedError::Unfit(reason)) => Ok(Err(NoAnswer::unfit(reason))),
                Err(error) => Err(error),
            }
        });
        match made.await {
            Err(PreparedError::Store(error)) => Err(lost(error)),
            made => Ok(made?.clone()?),
        }
    }

    /// Puts `text` in the file's place and compiles it with every source that depends on it.
    ///
    /// # Errors
    /// [`ExecutionError`]; its I/O errors are of logs and temporary files.
    pub async fn swap(
        &self,
        executor: &Executor,
        image: &RepositoryImage,
        masked: &Arc<MaskedRevision>,
        text: &[u8],
    ) -> Result<Swap, ExecutionError> {
        let classes = match self.compile_proven(executor, image, masked, text).await? {
            (CompileAnswer::Compiled { classes, .. }, made) => {
                let proof = masked.proven.get().and_then(|proven| proven.as_ref().ok());
                let generates = masked.revision.generates || proof.is_some_and(|proof| proof.generates);
                if !made.is_empty() || generates {
                    self.check_processors(executor, image, masked, &made).await?;
                }
                classes
            }
            (CompileAnswer::Errors(errors), _) => {
                let places = errors.iter().map(|error| (error.file.as_deref(), error.line, error.message.as_str()));
                let Some((reason, detail)) = of_diagnostics(&masked.path(), places) else {
                    return Err(NoAnswer::unfit("the compiler's errors have no place").into());
                };
                return Ok(Swap::Failed { reason, detail, errors });
            }
            // The same text has exhausted a compiler before.
            (CompileAnswer::Broken(cause) | CompileAnswer::Lost(cause), _) => {
                let (reason, detail) = (CompileReason::Resource, format!("the compiler: {cause}"));
                return Ok(Swap::Failed { reason, detail: shortened(&detail), errors: Vec::new() });
            }
        };
        // Every subclass of the file's classes depends on the file, so it is among the classes.
        let shapes = classes.iter().filter(|(path, _)| path.ends_with(".class"));
        let family = Family::of(shapes.filter_map(|(_, content)| ClassShape::read(content).ok()));
        let output = crate::execution::build::prepared::in_tree(&masked.revision.test_output);
        let mut files: Vec<(String, &[u8])> = vec![(masked.test_file.clone(), text)];
        files.extend(classes.iter().map(|(path, content)| (format!("{output}/{path}"), content.as_slice())));
        let own = TemporaryFile::named(&executor.temporary, "swapped", "tar");
        write_files(own.path(), files.iter().map(|(path, content)| (path.as_str(), *content)))?;
        let revision = &masked.revision;
        let built = Built {
            path: ExecutionPath::Direct,
            archives: vec![masked.tree.path().to_owned(), own.path().to_owned()],
            module: revision.module.clone(),
            class_path: revision.class_path.clone(),
            build_cpu_ms: revision.build_cpu_ms,
            settings: revision.settings.clone(),
            family: Arc::new(family),
            own: vec![Arc::new(own)],
        };
        Ok(Swap::Compiled(SwappedTree { masked: Arc::clone(masked), built }))
    }

    /// Compiles in a warm compiler; if it can't be started, tries again.
    ///
    /// # Errors
    /// [`EngineError`] if no compiler could be started.
    pub(super) async fn compile(
        &self,
        executor: &Executor,
        image: &RepositoryImage,
        request: &CompileRequest,
    ) -> Result<CompileAnswer, EngineError> {
        let mut attempt = 1;
        loop {
            let answer = {
                let _shared = executor.exclusive.read().await;
                let class_archive = executor.class_archive(image, Serves::Compilers).await;
                let start = Start { image, class_archive: class_archive.as_deref() };
                self.compilers.compile(start, request).await
            };
            match answer {
                Err(_) if attempt < ATTEMPTS => attempt += 1,
                answer => return answer,
            }
        }
    }

    /// Compiles each text with the rest of the request in a warm compiler, as [`Compilers::compile_each`].
    ///
    /// # Errors
    /// [`EngineError`] if no compiler could be started.
    pub(super) async fn compile_each(
        &self,
        executor: &Executor,
        image: &RepositoryImage,
        request: &CompileRequest,
        texts: Texts<'_>,
    ) -> Result<Vec<CompileAnswer>, EngineError> {
        let _shared = executor.exclusive.read().await;
        let class_archive = executor.class_archive(image, Serves::Compilers).await;
        let start = Start { image, class_archive: class_archive.as_deref() };
        self.compilers.compile_each(start, request, texts).await
    }

    /// Returns the path of a revision's compiled tree in the store.
    ///
    /// # Errors
    /// [`ExecutionError`] if the tree is missing or damaged.
    pub(super) fn archive(&self, revision: &CompiledRevision) -> Result<PathBuf, ExecutionError> {
        self.prepared.store().sound(&revision.tree).map_err(lost)
    }

    /// Returns the jars that stand for class directories of the project.
    ///
    /// # Errors
    /// [`ExecutionError`] if a jar is missing or damaged.
    pub(super) fn inputs(&self, revision: &CompiledRevision) -> Result<BTreeMap<String, Input>, ExecutionError> {
        revision.inputs(self.prepared.store()).map_err(lost)
    }

    /// Executes a cell. `archive` writes the code revision's own tree and returns its file.
    ///
    /// # Errors
    /// [`ExecutionError`]; its I/O errors are of logs and temporary files.
    pub async fn run_cell(
        &self,
        executor: &Executor,
        cell: &DirectCell<'_>,
        archive: impl FnOnce() -> Result<TemporaryFile, String> + Send + 'static,
    ) -> Result<ExecutedCell, ExecutionError> {
        let identity = &cell.identity;
        let image = identity.image;
        let logs = CellLogs::create(executor.logs.as_ref(), &identity.task.id, identity.cell)?;
        let mut measured = executor.measured(&logs);
        measured.path = ExecutionPath::Direct;
        let all = |outcome, detail: &str, attempts, measured: &Measured| {
            let launched = || Launched::not_launched(outcome, detail, attempts, measured);
            executor.records(identity, cell.methods, cell.repeats, launched)
        };
        let unlaunched = |records| Ok(ExecutedCell { records, launched: None });
        let Some(text) = &cell.facts.text else {
            return unlaunched(all(Outcome::Absent, "the revision has no such test file", 0, &measured));
        };
        let Some(module) = &cell.facts.module else {
            let detail = "the target file lies in no module of this tree";
            return unlaunched(all(Outcome::CompileFail(CompileReason::NoModule), detail, 0, &measured));
        };
        measured.whole_build = module.whole;
        let started = Instant::now();
        let input = RevisionInput { tree: cell.facts.tree.clone(), module: module.clone() };
        let revision = self.revision(executor, image, &input, archive).await?;
        if !cell.methods.is_empty() {
            executor.expect_launch(image, &revision.class_path).await;
        }
        let masked = self.masked(executor, &revision, identity.task.test_file.as_str()).await?;
        measured.prepare_ms = Some(milliseconds(started));
        let started = Instant::now();
        let swap = self.swap(executor, image, &masked, text).await?;
        measured.compile_ms = Some(milliseconds(started));
        let swapped = match swap {
            Swap::Compiled(swapped) => swapped,
            Swap::Failed { reason, detail, errors } => {
                logs.diagnostics("direct-compile", &errors)?;
                measured.believed = reason == CompileReason::Resource;
                let in_target = errors.iter().filter(|error| error.file.as_deref() == Some(masked.path().as_str()));
                let places = in_target.filter_map(|error| place(error.line, Some(error.column)));
                let places = places.map(|(line, column)| Place { line, column }).collect();
                let file = Erroneous { text, class: &cell.facts.class, places, jdk: image.jdk };
                let records = all(Outcome::CompileFail(reason), &detail, 1, &measured);
                return unlaunched(attribute(records, file).await?);
            }
        };
        let launches = (cell.facts.class.as_str(), cell.methods, cell.repeats);
        let records = executor.launch_all(identity, &swapped.built, launches, &measured, &logs).await?;
        Ok(ExecutedCell { records, launched: Some((swapped, logs)) })
    }
}

/// Reports that a blob of a prepared revision is missing or damaged. The next request for the revision prepares it
/// anew.
fn lost(error: StoreError) -> ExecutionError {
    match error {
        StoreError::Missing { .. } | StoreError::Corrupted { .. } => {
            NoAnswer::fault(format!("the prepared revision was given up or damaged meanwhile: {error}")).into()
        }
        error => PreparedError::Store(error).into(),
    }
}

/// Writes a tar archive of regular files that belong to the task's user and have the time of every tree.
///
/// # Errors
/// I/O errors of creating and writing `path`.
pub fn write_files<'a>(path: &Path, files: impl Iterator<Item = (&'a str, &'a [u8])>) -> std::io::Result<()> {
    let mut builder = tar::Builder::new(std::io::BufWriter::new(fs::File::create(path)?));
    for (name, content) in files {
        append_file(&mut builder, name, content)?;
    }
    builder.into_inner()?.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    Ok(())
}
