//! Prepared revisions: a code revision compiled once by Maven, kept in the store with what the recorder wrote.
//!
//! `store/prepared/<key>.json` names blobs of the store: the compiled tree as an archive, the recording, and what of the
//! project is on the class path, directories as jars, for the warm compiler. The key is a digest of everything that decides them. The
//! description appears by one atomic rename after its blobs, so that a killed or a second maker does no harm; whoever
//! reads one checks every blob. A revision whose own tests do not compile is kept as failed: the direct path has nothing
//! to start from then.

mod fitness;
mod inputs;
mod pruning;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use fs_err as fs;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

use self::inputs::{Build, look};
pub use self::pruning::{Keeping, prune};
pub(super) use self::pruning::{Marks, remove_unused};
use super::cell::{Environment, Executor};
use super::compiled_tree::TreeError;
use super::fault::{ATTEMPTS, Fault, Spool, command_end, done, file_name, memory_limit_met, not_done, of_engine};
use super::logs::CellLogs;
use super::maven::{self, MavenSettings, ModuleArguments, PROJECT, compile_program};
use super::recording::{CompilerCall, Recording};
use super::surefire::{JvmSettings, Surefire};
use crate::artifact::store::{Store, StoreError};
use crate::data_dir::{DataDir, DataDirError, write_atomically};
use crate::digest::Digest;
use crate::engine::session::{self, Captured};
use crate::event::EventSink;
use crate::outcome::Outcome;
use crate::outcome::compile::{Compilation, CompileFacts, classify};

/// Version of the description's schema.
pub const PREPARED_SCHEMA: u32 = 4;

/// What can go wrong with prepared revisions besides the build itself.
#[derive(Debug, thiserror::Error)]
pub enum PreparedError {
    /// The file system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The lock could not be taken.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The build made more than is looked through: only Maven can compile with it.
    #[error("{0}")]
    TooLarge(String),
}

impl From<TreeError> for PreparedError {
    fn from(error: TreeError) -> Self {
        match error {
            TreeError::Io(error) => Self::Io(error),
            TreeError::TooLarge(reason) => Self::TooLarge(reason),
        }
    }
}

impl From<PreparedError> for io::Error {
    fn from(error: PreparedError) -> Self {
        match error {
            PreparedError::Io(error) => error,
            other => Self::other(other),
        }
    }
}

/// A code revision to prepare.
#[derive(Clone, Debug)]
pub struct RevisionInput {
    /// Git's id of its tree.
    pub tree: String,
    /// The module whose tests are to be launched.
    pub module: ModuleArguments,
}

/// What a prepared revision came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Prepared {
    /// It compiled.
    Compiled(Box<CompiledRevision>),
    /// Its own tests do not compile, or the build failed.
    Failed {
        /// What the reference path would make of it.
        #[serde(flatten)]
        outcome: Outcome,
        /// The first errors.
        detail: String,
    },
}

/// A compiled code revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompiledRevision {
    /// [`RevisionInput`]'s key, the name of the description.
    pub key: Digest,
    /// The compiled tree, a tar archive.
    pub tree: Digest,
    /// Its length in bytes.
    pub tree_bytes: u64,
    /// What the recorder wrote.
    pub recording: Digest,
    /// The module's directory in the container.
    pub module: String,
    /// Where its main classes are.
    pub output: String,
    /// Where its test classes are.
    pub test_output: String,
    /// Class directories and jars of the test class path, in Maven's order.
    pub class_path: Vec<String>,
    /// What of the project is on any compiler's path, by path in the container: directories, packed, and files as they are.
    /// The module's own test classes are not among them, because a target file's must be left out of those.
    pub jars: BTreeMap<String, Digest>,
    /// What the compiler was asked for to compile the module's tests, in order: they may be compiled in several parts.
    pub test_calls: Vec<CompilerCall>,
    /// What it was asked for to compile main classes, of every module of the reactor, in order: a module may have several.
    pub main_calls: Vec<CompilerCall>,
    /// What launches take from the project's settings for Surefire.
    pub settings: JvmSettings,
    /// Whether annotation processors made sources while tests were compiled.
    pub generates: bool,
    /// Why the direct path does not fit this build, if it does not.
    pub unfit: Option<String>,
}

impl CompiledRevision {
    /// Returns the blobs that it consists of.
    fn blobs(&self) -> impl Iterator<Item = Digest> {
        [self.tree, self.recording].into_iter().chain(self.jars.values().copied())
    }
}

#[derive(Serialize, Deserialize)]
struct Description {
    schema: u32,
    key: Digest,
    prepared: Prepared,
}

/// Everything that decides what a prepared revision holds.
#[derive(Serialize)]
struct Keyed<'a> {
    schema: u32,
    image: Digest,
    tree: &'a str,
    module: String,
    maven_arguments: &'a [String],
    surefire: Surefire,
    recorder: &'a str,
    identity: Digest,
    limits: super::limits::ExecutionLimits,
}

type Memory = HashMap<Digest, Arc<OnceCell<Arc<Prepared>>>>;

/// The prepared revisions of a data directory, as one process uses them.
pub struct PreparedRevisions {
    data_dir: DataDir,
    store: Store,
    events: EventSink,
    /// What this process has made or checked; nothing is checked twice.
    known: Mutex<Memory>,
    marks: Marks,
}

impl PreparedRevisions {
    /// Returns those of `data_dir`.
    pub fn new(data_dir: &DataDir, store: &Store, events: &EventSink) -> Self {
        let known = Mutex::new(HashMap::new());
        Self {
            data_dir: data_dir.clone(),
            store: store.clone(),
            events: events.clone(),
            known,
            marks: Marks::default(),
        }
    }

    /// Returns the store that blobs are in.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the prepared revision, made if the store does not have it whole. `archive` writes the revision's own tree
    /// and returns where. A fault of ours is returned, not kept.
    ///
    /// # Errors
    /// [`PreparedError`].
    pub async fn get(
        &self,
        executor: &Executor,
        environment: &Environment,
        revision: &RevisionInput,
        archive: impl FnOnce() -> Result<PathBuf, String> + Send + 'static,
    ) -> Result<Arc<Prepared>, PreparedError> {
        let key = key(executor, environment, revision);
        let cell = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(key).or_default())
        };
        // Whoever comes second in this process waits for the first.
        let prepared = cell.get_or_try_init(|| async {
            if let Some(found) = self.load(key).await? {
                return Ok(Arc::new(found));
            }
            // And so does another process.
            let (data_dir, events) = (self.data_dir.clone(), self.events.clone());
            let _held = blocking(move || {
                let waiting = |owner: &str| events.message(format!("waiting for {owner}, which prepares a revision"));
                Ok(data_dir.lock(&format!("prepare-{}", &key.hex()[..2]), waiting)?)
            })
            .await?;
            if let Some(found) = self.load(key).await? {
                return Ok(Arc::new(found));
            }
            let made = self.make(executor, environment, revision, key, archive).await?;
            Ok::<_, PreparedError>(Arc::new(made))
        });
        let prepared = prepared.await.cloned()?;
        // A run may be longer than what is unused may be old.
        if matches!(prepared.as_ref(), Prepared::Failed { outcome: Outcome::InfraFail(_), .. })
            || !self.marks.mark(&self.path(key))?
        {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            // Whoever comes next tries again, unless somebody does already.
            if known.get(&key).is_some_and(|there| Arc::ptr_eq(there, &cell)) {
                known.remove(&key);
            }
        }
        Ok(prepared)
    }

    /// Forgets what this process knows of a prepared revision: its blobs were given up, and who asks next has it made anew.
    pub fn forget(&self, key: Digest) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.remove(&key);
    }

    fn path(&self, key: Digest) -> PathBuf {
        self.store.root().join("prepared").join(format!("{}.json", key.hex()))
    }

    /// Returns a description whose blobs are all there and whole.
    async fn load(&self, key: Digest) -> Result<Option<Prepared>, PreparedError> {
        let (path, store) = (self.path(key), self.store.clone());
        blocking(move || {
            let mut bytes = Vec::new();
            match fs::File::open(&path) {
                Ok(mut file) => {
                    // What was used last is pruned last, and nothing is pruned whose blobs are just being looked at.
                    file.file().set_modified(SystemTime::now())?;
                    file.read_to_end(&mut bytes)?;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error.into()),
            }
            let Ok(Description { schema: PREPARED_SCHEMA, key: found, prepared }) = serde_json::from_slice(&bytes)
            else {
                tracing::warn!(path = %path.display(), "a prepared revision can't be read and is made anew");
                return Ok(None);
            };
            if found != key {
                return Ok(None);
            }
            if let Prepared::Compiled(revision) = &prepared {
                for digest in revision.blobs() {
                    match store.verify(&digest) {
                        Ok(()) => {}
                        Err(StoreError::Missing { .. }) => return Ok(None),
                        Err(StoreError::Corrupted { path, .. }) => {
                            tracing::warn!(path = %path.display(), "a blob of a prepared revision is damaged");
                            fs::remove_file(path)?;
                            return Ok(None);
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
            }
            Ok(Some(prepared))
        })
        .await
    }

    async fn make(
        &self,
        executor: &Executor,
        environment: &Environment,
        revision: &RevisionInput,
        key: Digest,
        archive: impl FnOnce() -> Result<PathBuf, String> + Send + 'static,
    ) -> Result<Prepared, PreparedError> {
        let failed =
            |fault: Fault| Prepared::Failed { outcome: Outcome::InfraFail(fault.reason), detail: fault.detail };
        let tree = match blocking(move || Ok(archive())).await? {
            Ok(tree) => tree,
            Err(cause) => return Ok(failed(Fault::source(&cause))),
        };
        let logs = CellLogs::prepared(executor.logs.as_deref(), &key.hex()[..16])?;
        let mut attempt = 1;
        let built = loop {
            let built = {
                let _shared = executor.alone.read().await;
                self.build(executor, environment, revision, key, &tree, &logs, attempt).await?
            };
            match built {
                Err(fault) if fault.may_pass() && attempt < ATTEMPTS => attempt += 1,
                other => break other,
            }
        };
        fs::remove_file(&tree)?;
        let prepared = match built {
            Ok(prepared) => prepared,
            // Another run may fare better.
            Err(fault) => return Ok(failed(fault)),
        };
        let description = Description { schema: PREPARED_SCHEMA, key, prepared };
        let bytes = serde_json::to_vec(&description).map_err(io::Error::other)?;
        fs::create_dir_all(self.store.root().join("prepared"))?;
        write_atomically(&self.path(key), &bytes)?;
        Ok(description.prepared)
    }

    #[expect(clippy::too_many_arguments, reason = "each is a different input of the build")]
    async fn build(
        &self,
        executor: &Executor,
        environment: &Environment,
        revision: &RevisionInput,
        key: Digest,
        tree: &Path,
        logs: &CellLogs,
        attempt: u32,
    ) -> Result<Result<Prepared, Fault>, PreparedError> {
        let settings =
            MavenSettings { java_home: environment.java_home.clone(), arguments: &environment.maven_arguments };
        let (program, steps) = compile_program(&settings, &revision.module, &executor.limits, None);
        let limits = (executor.limits.compile, executor.limits.compile_scratch_bytes);
        let spec = maven::container("prepare", environment.image, tree.to_owned(), &executor.jars, limits, program);
        let name = format!("compile-{attempt}");
        logs.invocation(&name, &spec.program, steps.maven)?;
        let spool = Spool::create(&executor.temporary)?;
        let run = match session::run(executor.engine.as_ref(), &spec, spool.path()).await {
            Ok(run) => run,
            Err(error) => return Ok(Err(of_engine(&error))),
        };
        logs.command(&name, run.step(steps.maven))?;
        logs.file(&name, ".recording.jsonl", run.step(steps.recording))?;
        let Some(end) = command_end(&run, steps.maven) else { return Ok(Err(not_done(&run, "prepare"))) };
        let recording = match run.step(steps.recording) {
            Some(output) => output.content.bytes()?.into_owned(),
            None => Vec::new(),
        };
        let verdict = classify(&CompileFacts {
            end,
            oom_killed: memory_limit_met(&run, end),
            recording: &recording,
            module: &revision.module.path(),
            // No file is the target here.
            target_file: "",
            changes_main: false,
        });
        let (test_output, output) = match verdict {
            Compilation::Compiled { test_output, output } => (test_output, output),
            Compilation::Failed { outcome: Outcome::InfraFail(reason), detail } => {
                return Ok(Err(Fault { reason, detail }));
            }
            Compilation::Failed { outcome, detail } => return Ok(Ok(Prepared::Failed { outcome, detail })),
        };
        let (Some(dependencies), Some(archive)) = (done(&run, steps.class_path), done(&run, steps.archive)) else {
            return Ok(Err(not_done(&run, "prepare")));
        };
        let dependencies = String::from_utf8_lossy(&dependencies.content.bytes()?).into_owned();
        let mut class_path = vec![test_output.clone(), output.clone()];
        class_path.extend(dependencies.trim().split(':').filter(|part| !part.is_empty()).map(str::to_owned));
        let (store, captured) = (self.store.clone(), archive.content.clone());
        let (module, source) = (revision.module.path(), tree.to_owned());
        let (surefire, heap_mib) = (environment.surefire, executor.limits.launch_heap_mib);
        let compiled = blocking(move || {
            let (tree, tree_bytes) = keep(&store, &captured)?;
            let parsed = Recording::read(&recording);
            let settings = match (surefire, parsed.tests_of(&module)) {
                (Surefire::Project, Some(tests)) => JvmSettings::of(tests, &module, heap_mib),
                _ => JvmSettings::default(),
            };
            let project = parsed.module(&module).map(|found| found.project.clone()).unwrap_or_default();
            let test_calls: Vec<CompilerCall> = parsed.calls(&project, "testCompile").cloned().collect();
            let build =
                Build { source: &source, project: &project, test_calls: &test_calls, test_output: &test_output };
            let (jars, generates, unfit) = match look(&store, &tree, &parsed, &build) {
                Ok(looked) => (looked.jars, looked.generates, looked.unfit),
                Err(PreparedError::TooLarge(reason)) => (BTreeMap::new(), false, Some(reason)),
                Err(error) => return Err(error),
            };
            let main_calls = parsed.compilations.iter().filter(|call| call.goal == "compile");
            Ok(CompiledRevision {
                key,
                tree,
                tree_bytes,
                recording: store.put(&recording)?,
                module,
                output,
                test_output,
                class_path,
                jars,
                test_calls,
                main_calls: main_calls.cloned().collect(),
                settings,
                generates,
                unfit,
            })
        });
        Ok(Ok(Prepared::Compiled(Box::new(compiled.await?))))
    }
}

/// Returns the key of a revision in an environment.
fn key(executor: &Executor, environment: &Environment, revision: &RevisionInput) -> Digest {
    let keyed = Keyed {
        schema: PREPARED_SCHEMA,
        image: environment.image,
        tree: &revision.tree,
        module: revision.module.identity(),
        maven_arguments: &environment.maven_arguments,
        surefire: environment.surefire,
        recorder: file_name(&executor.jars.recorder),
        identity: executor.identity,
        limits: executor.limits,
    };
    Digest::of_plain(&keyed)
}

/// Puts what a container sent into the store.
fn keep(store: &Store, captured: &Captured) -> Result<(Digest, u64), PreparedError> {
    let mut writer = store.writer()?;
    io::copy(&mut captured.open()?, &mut writer)?;
    Ok(writer.commit()?)
}

/// Returns a path of the container relative to the tree; what lies elsewhere is in no tree.
pub(super) fn in_tree(path: &str) -> &str {
    path.strip_prefix(PROJECT).map_or("\0", |rest| rest.trim_start_matches('/'))
}

/// Runs work that blocks on a thread of its own.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PreparedError> + Send + 'static,
) -> Result<T, PreparedError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(io::Error::other(error).into()),
    }
}

#[cfg(test)]
mod keys;
#[cfg(test)]
pub(super) mod loading;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_revision_can_be_described() {
        let outcome = Outcome::CompileFail(crate::outcome::CompileReason::OtherTestFile);
        let failed = Prepared::Failed { outcome, detail: "x".into() };
        let text = serde_json::to_string(&failed).unwrap();
        assert_eq!(serde_json::from_str::<Prepared>(&text).unwrap(), failed, "{text}");
    }
}
