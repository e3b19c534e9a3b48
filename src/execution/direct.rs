//! The direct path: a code revision is compiled once, a cell is one file compiled again and each method launched in a JVM
//! and a container of its own. Source: design §7.
//!
//! In steps, each of use alone: [`Direct::revision`] prepares, [`Direct::masked`] leaves the target file out,
//! [`Direct::swap`] puts a text in its place and compiles, [`Direct::launch`] runs one method; [`Direct::run_cell`] does a
//! whole cell. What the direct path can't do exactly as Maven would is `Unfit`, and the caller takes the reference path.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use fs_err as fs;
use tokio::sync::OnceCell;

use super::ahead::Ahead;
use super::cell::{CellIdentity, Environment, Executor, Launched, launched};
use super::compiler::{CompileAnswer, CompileRequest, Compilers, Diagnostic, Files, Input};
use super::fault::{ATTEMPTS, Spool, milliseconds, of_engine, unique};
use super::logs::CellLogs;
use super::masked::MaskedRevision;
use super::maven::{self, CLASS_ARCHIVE, Launch, REPLACED, SWAPPED, TREE, direct_launch_program};
use super::prepared::{CompiledRevision, Prepared, PreparedRevisions, RevisionInput, blocking};
use super::record::{CellRecord, ExecutionPath, Measured};
use super::recording::CompilerCall;
use super::sharing::ClassArchives;
use super::trees::CellFacts;
use crate::digest::Digest;
use crate::engine::EngineError;
use crate::engine::session::StepOutput;
use crate::engine::spec::{ReadOnlyMount, StepResult};
use crate::outcome::compile::of_diagnostics;
use crate::outcome::{CompileReason, ExecReason, Outcome};
use crate::task::MethodId;
use crate::workspace::TREE_TIME;

/// Masked revisions that are kept for the next cell.
const MASKED_KEPT: usize = 16;

/// Why a cell can't be executed on the direct path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// In words.
    pub reason: String,
    /// The fault is ours, and another time it may fit.
    pub may_pass: bool,
}

impl Unfit {
    /// Says what is so every time.
    pub(super) fn certain(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), may_pass: false }
    }

    fn passing(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), may_pass: true }
    }
}

const LATER: &str = "tests that are compiled after the file's part mention it";

fn lost(cause: &str) -> Unknown {
    Unknown::Unfit(Unfit::passing(format!("the warm compiler was lost: {cause}")))
}

/// Why something is not known of what the compiler does.
enum Unknown {
    Io(std::io::Error),
    Unfit(Unfit),
}

impl From<std::io::Error> for Unknown {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

type Masked = Arc<OnceCell<Result<Arc<MaskedRevision>, Unfit>>>;

/// What the cells of a process share on the direct path.
pub struct Direct {
    prepared: PreparedRevisions,
    compilers: Compilers,
    ahead: Ahead,
    /// None for launches that load every class anew.
    archives: Option<ClassArchives>,
    /// The compiler's jar by digest, a part of every key.
    compiler: String,
    masked: Mutex<Vec<((Digest, String), Masked)>>,
}

/// A text in the target file's place, compiled. Its archive on the host goes with it.
pub struct SwappedTree {
    /// The tree without the file.
    pub masked: Arc<MaskedRevision>,
    pub(super) archive: PathBuf,
}

impl Drop for SwappedTree {
    fn drop(&mut self) {
        // What can't be removed now goes with this process's temporary directory.
        if let Err(error) = fs::remove_file(&self.archive) {
            tracing::debug!("{error}");
        }
    }
}

/// What came of putting a text in the target file's place.
pub enum Swap {
    /// It compiled.
    Compiled(SwappedTree),
    /// It did not.
    Failed {
        /// Where the errors are.
        reason: CompileReason,
        /// The first ones, for people.
        detail: String,
        /// All of them.
        errors: Vec<Diagnostic>,
    },
    /// Only Maven can say.
    Unfit(Unfit),
}

/// One method to launch.
#[derive(Clone, Copy, Debug)]
pub struct MethodLaunch<'a> {
    /// Binary name of the test class.
    pub class: &'a str,
    /// The method.
    pub method: &'a MethodId,
    /// What else the launch has.
    pub options: &'a LaunchOptions,
    /// Names of its logs begin with this.
    pub name: &'a str,
}

/// What a launch has besides the method itself.
#[derive(Clone, Debug, Default)]
pub struct LaunchOptions {
    /// Further arguments for the JVM, such as an agent.
    pub jvm_arguments: Vec<String>,
    /// Further read-only inputs, such as an agent's jar.
    pub mounts: Vec<ReadOnlyMount>,
    /// Tar archive that is unpacked over the tree, such as a mutant's classes.
    pub replaced: Option<PathBuf>,
    /// Files that are sent back afterwards: absolute path and most bytes.
    pub files: Vec<(String, u64)>,
}

/// What one launch came to.
#[derive(Clone, Debug)]
pub struct LaunchedMethod {
    /// Its outcome.
    pub outcome: Outcome,
    /// A line or two for people.
    pub detail: String,
    /// Containers started for it.
    pub attempts: u32,
    /// Times and machine.
    pub measured: Measured,
    /// The files that were asked for, `None` for one that is not there or too large.
    pub files: Vec<Option<Vec<u8>>>,
}

/// A cell on the direct path.
pub struct DirectCell<'a> {
    /// What the record is about.
    pub identity: CellIdentity<'a>,
    /// What is known of the cell.
    pub facts: &'a CellFacts,
    /// Methods to launch.
    pub methods: &'a [MethodId],
    /// Repeats of each launch, at least 1.
    pub repeats: u32,
}

/// What a cell came to.
pub struct ExecutedCell {
    /// A record per method and repeat.
    pub records: Vec<CellRecord>,
    /// The tree that methods were launched on and where their logs are, for further launches; `None` where none was.
    pub launched: Option<(SwappedTree, CellLogs)>,
}

impl Direct {
    /// Returns the direct path over prepared revisions, compilers, containers started ahead and class archives; `compiler`
    /// is the compiler's jar.
    pub fn new(
        prepared: PreparedRevisions,
        compilers: Compilers,
        ahead: Ahead,
        archives: Option<ClassArchives>,
        compiler: &Path,
    ) -> Self {
        let compiler = super::fault::file_name(compiler).to_owned();
        Self { prepared, compilers, ahead, archives, compiler, masked: Mutex::default() }
    }

    /// Returns a code revision, prepared where it was not. `archive` writes the revision's own tree and returns where.
    ///
    /// # Errors
    /// The file system's; every trouble of the build is [`Unfit`].
    pub async fn revision(
        &self,
        executor: &Executor,
        environment: &Environment,
        revision: &RevisionInput,
        archive: impl FnOnce() -> Result<PathBuf, String> + Send + 'static,
    ) -> std::io::Result<Result<Arc<CompiledRevision>, Unfit>> {
        Ok(match self.prepared.get(executor, environment, revision, archive).await?.as_ref() {
            Prepared::Compiled(revision) => match &revision.unfit {
                Some(reason) => Err(Unfit::certain(reason.clone())),
                None => Ok(Arc::new(revision.as_ref().clone())),
            },
            Prepared::Failed { outcome, detail } => {
                let detail = detail.lines().next().unwrap_or_default();
                let may_pass = matches!(outcome, Outcome::InfraFail(_));
                Err(Unfit { reason: format!("the revision itself does not compile: {outcome}: {detail}"), may_pass })
            }
        })
    }

    /// Returns a revision without a file, relative to the tree.
    ///
    /// # Errors
    /// The file system's.
    pub async fn masked(
        &self,
        executor: &Executor,
        revision: &Arc<CompiledRevision>,
        test_file: &str,
    ) -> std::io::Result<Result<Arc<MaskedRevision>, Unfit>> {
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
            let masked = blocking(move || MaskedRevision::new(&store, revision, &test_file, &temporary)).await?;
            Ok::<_, std::io::Error>(masked.map(Arc::new).map_err(Unfit::certain))
        });
        made.await.cloned()
    }

    /// Puts `text` in the file's place and compiles it with every source that depends on it.
    ///
    /// # Errors
    /// The file system's.
    pub async fn swap(
        &self,
        executor: &Executor,
        environment: &Environment,
        masked: &Arc<MaskedRevision>,
        text: &[u8],
    ) -> std::io::Result<Swap> {
        let (owned, content) = (Arc::clone(masked), text.to_owned());
        let Some(request) = blocking(move || Ok(test_request(&owned, content)?)).await? else {
            return Ok(Swap::Unfit(Unfit::certain(LATER)));
        };
        let classes = match self.compile(executor, environment, &request).await {
            Ok(CompileAnswer::Compiled { classes, generated }) => {
                if let Err(unfit) = self.check_own(executor, environment, masked, text, &classes).await? {
                    return Ok(Swap::Unfit(unfit));
                }
                if (!generated.is_empty() || masked.revision.generates)
                    && let Err(unfit) = self.check_processors(executor, environment, masked, &generated).await?
                {
                    return Ok(Swap::Unfit(unfit));
                }
                classes
            }
            Ok(CompileAnswer::Errors(errors)) => {
                let places = errors.iter().map(|error| (error.file.as_deref(), error.line, error.message.as_str()));
                return Ok(match of_diagnostics(&masked.path(), places) {
                    Some((reason, detail)) => Swap::Failed { reason, detail, errors },
                    None => Swap::Unfit(Unfit::certain("the compiler's errors have no place")),
                });
            }
            Ok(CompileAnswer::Broken(cause)) => {
                return Ok(Swap::Unfit(Unfit::certain(format!("the warm compiler broke: {cause}"))));
            }
            Ok(CompileAnswer::Lost(cause)) => {
                return Ok(Swap::Unfit(Unfit::passing(format!("the warm compiler was lost: {cause}"))));
            }
            Err(error) => {
                return Ok(Swap::Unfit(Unfit::passing(format!("the warm compiler can't be reached: {error}"))));
            }
        };
        let output = super::prepared::in_tree(&masked.revision.test_output);
        let mut files: Vec<(String, &[u8])> = vec![(masked.test_file.clone(), text)];
        files.extend(classes.iter().map(|(path, content)| (format!("{output}/{path}"), content.as_slice())));
        let archive = executor.temporary.join(format!("swapped-{}.tar", unique()));
        let swapped = SwappedTree { masked: Arc::clone(masked), archive };
        write_files(&swapped.archive, files.iter().map(|(path, content)| (path.as_str(), *content)))?;
        Ok(Swap::Compiled(swapped))
    }

    /// Checks once for a masked revision that compiling its own text gives the classes that the build gave: whatever else
    /// decides what a compiler makes, and is not known here, shows in them. `classes` is what came of `text`.
    async fn check_own(
        &self,
        executor: &Executor,
        environment: &Environment,
        masked: &Arc<MaskedRevision>,
        text: &[u8],
        classes: &Files,
    ) -> std::io::Result<Result<(), Unfit>> {
        const OTHERWISE: &str = "the warm compiler makes other classes of the revision's own text than the build";
        let proven = masked.proven.get_or_try_init(|| async {
            let as_built = match masked.own_text()? {
                None => true,
                Some(own) if own == text => masked.as_built(classes)?,
                Some(own) => {
                    let owned = Arc::clone(masked);
                    let request = blocking(move || Ok(test_request(&owned, own)?)).await;
                    let Some(request) = request.map_err(std::io::Error::from)? else {
                        return Ok(Err(LATER.to_owned()));
                    };
                    match self.compile(executor, environment, &request).await {
                        Ok(CompileAnswer::Compiled { classes, .. }) => masked.as_built(&classes)?,
                        Ok(CompileAnswer::Errors(_) | CompileAnswer::Broken(_)) => false,
                        // What may pass is not kept: the next cell asks again.
                        Ok(CompileAnswer::Lost(cause)) => return Err(lost(&cause)),
                        Err(error) => return Err(lost(&error.to_string())),
                    }
                }
            };
            Ok::<_, Unknown>(if as_built { Ok(()) } else { Err(OTHERWISE.to_owned()) })
        });
        match proven.await {
            Ok(Ok(())) => Ok(Ok(())),
            Ok(Err(reason)) => Ok(Err(Unfit::certain(reason.clone()))),
            Err(Unknown::Io(error)) => Err(error),
            Err(Unknown::Unfit(unfit)) => Ok(Err(unfit)),
        }
    }

    /// Checks that annotation processors made nothing of a text that they do not make of any source, nor had made of the
    /// text in its place: lists of everything they saw can't be made from a part of the sources.
    async fn check_processors(
        &self,
        executor: &Executor,
        environment: &Environment,
        masked: &Arc<MaskedRevision>,
        generated: &[(String, Vec<u8>)],
    ) -> std::io::Result<Result<(), Unfit>> {
        let made = masked.processors.get_or_try_init(|| async {
            let mut made = Vec::new();
            for text in [Some(NOTHING.to_vec()), masked.own_text()?].into_iter().flatten() {
                let (owned, alone) = (Arc::clone(masked), text == NOTHING);
                let request = blocking(move || {
                    Ok(if alone { Some(nothing_request(&owned)) } else { test_request(&owned, text)? })
                });
                let Some(request) = request.await.map_err(std::io::Error::from)? else {
                    return Ok(Err(LATER.to_owned()));
                };
                match self.compile(executor, environment, &request).await {
                    Ok(CompileAnswer::Compiled { generated, .. }) => made.push(generated),
                    // What may pass is not kept: the next cell asks again.
                    Ok(CompileAnswer::Lost(cause)) => return Err(lost(&cause)),
                    Ok(other) => return Ok(Err(format!("what annotation processors do can't be told: {other:?}"))),
                    Err(error) => return Err(lost(&error.to_string())),
                }
            }
            let first = made.first().cloned().unwrap_or_default();
            if made.iter().any(|one| *one != first) {
                return Ok(Err("annotation processors make something of the revision's own file".to_owned()));
            }
            Ok::<_, Unknown>(Ok(first))
        });
        let made = match made.await {
            Ok(made) => made,
            Err(Unknown::Io(error)) => return Err(error),
            Err(Unknown::Unfit(unfit)) => return Ok(Err(unfit)),
        };
        Ok(match made {
            Ok(made) if made.as_slice() == generated => Ok(()),
            Ok(_) => Err(Unfit::certain("annotation processors make something of the file")),
            Err(reason) => Err(Unfit::certain(reason.clone())),
        })
    }

    /// Compiles, in a warm compiler; one that can't be started is tried again.
    ///
    /// # Errors
    /// [`EngineError`] where none can be had.
    pub(super) async fn compile(
        &self,
        executor: &Executor,
        environment: &Environment,
        request: &CompileRequest,
    ) -> Result<CompileAnswer, EngineError> {
        let mut attempt = 1;
        loop {
            let answer = {
                let _shared = executor.alone.read().await;
                self.compilers.compile(environment, request).await
            };
            match answer {
                Err(_) if attempt < ATTEMPTS => attempt += 1,
                answer => return answer,
            }
        }
    }

    /// Returns where the compiled tree of a revision is.
    pub(super) fn archive(&self, revision: &CompiledRevision) -> PathBuf {
        self.prepared.store().path(&revision.tree)
    }

    /// Returns the jars that stand for class directories of the project.
    pub(super) fn inputs(&self, revision: &CompiledRevision) -> BTreeMap<String, Input> {
        let store = self.prepared.store();
        let jars = revision.jars.iter();
        jars.map(|(path, digest)| (path.clone(), Input { file: store.path(digest), name: digest.hex() })).collect()
    }

    /// Launches one method in a JVM and a container of its own; faults of ours are retried, a timeout is believed only
    /// after a second run with nothing else running.
    ///
    /// # Errors
    /// The file system's.
    pub async fn launch(
        &self,
        executor: &Executor,
        environment: &Environment,
        swapped: &SwappedTree,
        launch: &MethodLaunch<'_>,
        logs: &CellLogs,
    ) -> std::io::Result<LaunchedMethod> {
        let mut attempt = 1;
        loop {
            let one = {
                let _shared = executor.alone.read().await;
                self.launch_once(executor, environment, swapped, launch, logs, attempt).await?
            };
            match one.outcome {
                Outcome::InfraFail(_) if attempt < ATTEMPTS => attempt += 1,
                Outcome::ExecFail(ExecReason::Timeout) => break,
                _ => return Ok(one),
            }
        }
        let _alone = executor.alone.write().await;
        loop {
            attempt += 1;
            let one = self.launch_once(executor, environment, swapped, launch, logs, attempt).await?;
            if attempt > ATTEMPTS || !matches!(one.outcome, Outcome::InfraFail(_)) {
                return Ok(one);
            }
        }
    }

    /// Executes a cell. `archive` writes the code revision's own tree and returns where.
    ///
    /// # Errors
    /// The file system's.
    pub async fn run_cell(
        &self,
        executor: &Executor,
        cell: &DirectCell<'_>,
        archive: impl FnOnce() -> Result<PathBuf, String> + Send + 'static,
    ) -> std::io::Result<Result<ExecutedCell, Unfit>> {
        let identity = &cell.identity;
        let environment = identity.environment;
        let logs = CellLogs::create(executor.logs.as_deref(), &identity.task.id, identity.cell)?;
        let mut measured = executor.measured(&logs);
        measured.path = ExecutionPath::Direct;
        let all = |outcome, detail: &str, attempts, measured: &Measured| {
            let launched = || Launched { outcome, detail: detail.to_owned(), attempts, measured: measured.clone() };
            executor.records(identity, cell.methods, cell.repeats, launched)
        };
        let unlaunched = |records| Ok(Ok(ExecutedCell { records, launched: None }));
        let Some(text) = &cell.facts.text else {
            return unlaunched(all(Outcome::Absent, "the revision has no such test file", 0, &measured));
        };
        let Some(module) = &cell.facts.module else {
            let detail = "the target file lies in no module of this tree";
            return unlaunched(all(Outcome::CompileFail(CompileReason::NoModule), detail, 0, &measured));
        };
        let started = Instant::now();
        let input = RevisionInput { tree: cell.facts.tree.clone(), module: module.clone() };
        let revision = match self.revision(executor, environment, &input, archive).await? {
            Ok(revision) => revision,
            Err(unfit) => return Ok(Err(unfit)),
        };
        let masked = match self.masked(executor, &revision, identity.task.test_file.as_str()).await? {
            Ok(masked) => masked,
            Err(unfit) => return Ok(Err(unfit)),
        };
        measured.prepare_ms = Some(milliseconds(started));
        let started = Instant::now();
        let swap = self.swap(executor, environment, &masked, text).await?;
        measured.compile_ms = Some(milliseconds(started));
        let swapped = match swap {
            Swap::Compiled(swapped) => swapped,
            Swap::Failed { reason, detail, .. } => {
                return unlaunched(all(Outcome::CompileFail(reason), &detail, 1, &measured));
            }
            Swap::Unfit(unfit) => return Ok(Err(unfit)),
        };
        let mut records = Vec::new();
        let options = LaunchOptions::default();
        for repeat in 1..=cell.repeats {
            for method in cell.methods {
                let name = format!("direct-{}-{repeat}", method.method());
                let launch = MethodLaunch { class: &cell.facts.class, method, options: &options, name: &name };
                let one = self.launch(executor, environment, &swapped, &launch, &logs).await?;
                let measured = Measured {
                    prepare_ms: measured.prepare_ms,
                    compile_ms: measured.compile_ms,
                    logs: measured.logs.clone(),
                    ..one.measured
                };
                let one = Launched { outcome: one.outcome, detail: one.detail, attempts: one.attempts, measured };
                records.push(executor.record(identity, method, repeat, one));
            }
        }
        Ok(Ok(ExecutedCell { records, launched: Some((swapped, logs)) }))
    }

    /// Waits until the containers that are started ahead wait.
    pub async fn settled(&self) {
        self.ahead.settled().await;
    }

    /// Returns the class archive that launches on a revision map, made where it was not; `None` where they go without.
    ///
    /// # Errors
    /// The file system's and the store's.
    pub async fn class_archive(
        &self,
        executor: &Executor,
        environment: &Environment,
        revision: &CompiledRevision,
    ) -> std::io::Result<Option<PathBuf>> {
        match &self.archives {
            Some(archives) => archives.get(executor, environment, console(environment, revision)).await,
            None => Ok(None),
        }
    }

    async fn launch_once(
        &self,
        executor: &Executor,
        environment: &Environment,
        swapped: &SwappedTree,
        &MethodLaunch { class, method, options, name }: &MethodLaunch<'_>,
        logs: &CellLogs,
        attempt: u32,
    ) -> std::io::Result<LaunchedMethod> {
        let revision = &swapped.masked.revision;
        let mut settings = revision.settings.clone();
        settings.arguments.extend(options.jvm_arguments.iter().cloned());
        let archive = match options.jvm_arguments.is_empty() {
            true => self.class_archive(executor, environment, revision).await?,
            // An agent looks at every class as it is loaded.
            false => None,
        };
        let launch = Launch {
            java_home: &environment.java_home,
            console: console(environment, revision),
            module: &revision.module,
            class_path: &revision.class_path,
            class,
            method: method.method(),
            settings: &settings,
            class_archive: archive.is_some(),
        };
        let (program, steps) =
            direct_launch_program(&launch, options.replaced.is_some(), &options.files, &executor.limits);
        let limits = (executor.limits.launch, executor.limits.launch_scratch_bytes);
        let mut spec = maven::container_without_tree("launch", environment.image, &executor.jars, limits, program);
        spec.mounts.extend(options.mounts.iter().cloned());
        spec.mounts.extend(archive.map(|source| ReadOnlyMount { source, target: CLASS_ARCHIVE.to_owned() }));
        let name_of = |path: &'static str| path.rsplit('/').next().unwrap_or(path);
        let mut files = vec![(name_of(TREE), swapped.masked.tree.as_path()), (name_of(SWAPPED), &swapped.archive)];
        files.extend(options.replaced.as_deref().map(|archive| (name_of(REPLACED), archive)));
        let base = Measured { path: ExecutionPath::Direct, ..executor.measured(logs) };
        let name = format!("{name}-{attempt}");
        logs.invocation(&name, &spec.program, steps.launch.java)?;
        let spool = Spool::create(&executor.temporary)?;
        let run = match self.ahead.run(&spec, &files, spool.path()).await {
            Ok(run) => run,
            Err(error) => {
                let fault = of_engine(&error);
                return Ok(LaunchedMethod {
                    outcome: Outcome::InfraFail(fault.reason),
                    detail: fault.detail,
                    attempts: attempt,
                    measured: base,
                    files: Vec::new(),
                });
            }
        };
        let one = launched(&run, &steps.launch, class, method, (logs, &name), attempt, &base)?;
        let content = |step: usize| -> std::io::Result<Option<Vec<u8>>> {
            match run.step(step) {
                Some(output) if output.result() == Some(&StepResult::Done) => bytes_of(output).map(Some),
                _ => Ok(None),
            }
        };
        let files = steps.files.iter().map(|step| content(*step)).collect::<std::io::Result<_>>()?;
        let measured = Measured {
            container_ms: u64::try_from(run.wall.as_millis()).ok(),
            begin_ms: run.until_begun.and_then(|begun| u64::try_from(begun.as_millis()).ok()),
            ..one.measured
        };
        Ok(LaunchedMethod { outcome: one.outcome, detail: one.detail, attempts: one.attempts, measured, files })
    }

    /// Returns the compiler's jar by digest.
    pub fn compiler(&self) -> &str {
        &self.compiler
    }
}

fn console(environment: &Environment, revision: &CompiledRevision) -> &'static str {
    maven::console_for(&revision.class_path, environment.jdk, environment.launcher)
}

/// A source that no annotation processor can make anything of.
const NOTHING: &[u8] = b"class TestevoNothing {}\n";

/// Returns the request that compiles nothing but [`NOTHING`].
fn nothing_request(masked: &MaskedRevision) -> CompileRequest {
    let call = &masked.call;
    let root = call.source_roots.first().map_or(maven::PROJECT, String::as_str);
    let path = format!("{root}/TestevoNothing.java");
    CompileRequest {
        arguments: call.arguments.clone(),
        inputs: masked.inputs.clone(),
        output: call.output.clone(),
        directories: call.generated_sources.iter().chain(&call.source_roots).cloned().collect(),
        files: vec![(path.clone(), NOTHING.to_vec())],
        sources: vec![path],
    }
}

/// Returns what the compiler is asked for with `text` in the masked file's place, `None` where only Maven can compile
/// what depends on it.
fn test_request(masked: &MaskedRevision, text: Vec<u8>) -> std::io::Result<Option<CompileRequest>> {
    let call = &masked.call;
    let Some(mut files) = masked.dependents(&text)? else { return Ok(None) };
    files.push((masked.path(), text));
    let mut sources: Vec<String> = files.iter().map(|(path, _)| path.clone()).collect();
    masked.ordered(&mut sources);
    let mut directories: Vec<String> = call.generated_sources.iter().chain(&call.source_roots).cloned().collect();
    directories.dedup();
    Ok(Some(CompileRequest {
        arguments: patched(call),
        inputs: masked.inputs.clone(),
        output: call.output.clone(),
        directories,
        files,
        sources,
    }))
}

/// Returns a call's arguments such that sources that patch a module, and are compiled already, patch it by their classes.
fn patched(call: &CompilerCall) -> Vec<String> {
    let mut arguments = call.arguments.clone();
    let of_patch = |at: usize| at > 0 && call.arguments[at - 1] == "--patch-module";
    for (at, argument) in arguments.iter_mut().enumerate() {
        let list = if of_patch(at) { argument.split_once('=').map(|(_, list)| list) } else { None };
        let by_sources = |list: &str| list.split(':').any(|part| call.source_roots.iter().any(|root| root == part));
        if list.is_some_and(by_sources) {
            *argument = format!("{argument}:{}", call.output);
        }
    }
    arguments
}

fn bytes_of(output: &StepOutput) -> std::io::Result<Vec<u8>> {
    Ok(output.content.bytes()?.into_owned())
}

/// Writes a tar archive of regular files that belong to the task's user and have the time of every tree.
///
/// # Errors
/// The file system's.
pub fn write_files<'a>(path: &Path, files: impl Iterator<Item = (&'a str, &'a [u8])>) -> std::io::Result<()> {
    let mut builder = tar::Builder::new(std::io::BufWriter::new(fs::File::create(path)?));
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_uid(1000);
        header.set_gid(1000);
        header.set_mtime(TREE_TIME);
        builder.append_data(&mut header, name, content)?;
    }
    builder.into_inner()?.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    Ok(())
}
