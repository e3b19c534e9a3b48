//! Prepared revisions: Maven compiles a code revision once, and the store keeps the result with the recorder's
//! recording.
//!
//! A description ([`crate::artifact::made`]) names blobs of the store: the compiled tree as an archive, the recording,
//! and the project's part of the class path, with directories as jars, for the warm compiler. Its key is a digest of
//! everything that decides them. A revision whose own tests do not compile is kept as failed, because the direct path
//! then has no classes to start from.

mod fitness;
mod inputs;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::inputs::{Sources, look};
use crate::artifact::made::{self, Described, Fresh, Kind, Made, MadeError};
use crate::artifact::store::{Store, StoreError};
use crate::data_dir::DataDir;
use crate::digest::Digest;
use crate::engine::session::Captured;
use crate::event::EventSink;
use crate::execution::build::compiled_tree::TreeError;
use crate::execution::build::compiler::Input;
use crate::execution::build::recording::{CompilerCall, Recording};
use crate::execution::build::surefire::JvmSettings;
use crate::execution::build::{BuildEnd, BuildRequest, MavenBuild};
use crate::execution::container::file_name;
use crate::execution::container::limits::ExecutionLimits;
use crate::execution::container::places::PROJECT;
use crate::execution::container::temporary::TemporaryFile;
use crate::execution::container::{RepositoryImage, ToolJars};
use crate::execution::executor::Executor;
use crate::execution::fault::{ExecutionError, Fault, NoAnswer};
use crate::execution::module::ModuleArguments;
use crate::execution::run::logs::CellLogs;
use crate::outcome::Outcome;
use crate::thread::blocking;

/// Version of the description's schema.
pub const PREPARED_SCHEMA: u32 = 6;

/// Errors of prepared revisions besides a failed build.
#[derive(Debug, thiserror::Error)]
pub enum PreparedError {
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store could not find or keep the revision.
    #[error(transparent)]
    Made(#[from] MadeError),
    /// Only Maven can compile with the build's result.
    #[error("{0}")]
    Unfit(String),
}

impl From<TreeError> for PreparedError {
    fn from(error: TreeError) -> Self {
        match error {
            TreeError::Io(error) => Self::Io(error),
            TreeError::TooLarge(reason) => Self::Unfit(reason),
        }
    }
}

impl From<PreparedError> for ExecutionError {
    fn from(error: PreparedError) -> Self {
        match error {
            PreparedError::Unfit(reason) => NoAnswer::unfit(reason).into(),
            other => Self::Io(other.into()),
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

/// A code revision that is to be prepared.
#[derive(Clone, Debug)]
pub struct RevisionInput {
    /// Its tree: [`RevisionTree::identity`](crate::workspace::RevisionTree::identity).
    pub tree: String,
    /// The module whose tests are to be launched.
    pub module: ModuleArguments,
}

/// The result of preparing a revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Prepared {
    /// It compiled.
    Compiled(Box<CompiledRevision>),
    /// Its own tests do not compile, or the build failed.
    Failed {
        /// The outcome that the reference path would give.
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
    /// The recorder's recording.
    pub recording: Digest,
    /// The module's directory in the container.
    pub module: String,
    /// The directory of its main classes.
    pub output: String,
    /// The directory of its test classes.
    pub test_output: String,
    /// Class directories and jars of the test class path, in Maven's order.
    pub class_path: Vec<String>,
    /// The project's entries on compilers' paths, by path in the container: directories packed as jars, and files
    /// unchanged. The module's own test classes are left out, because those of the target file must be masked.
    pub jars: BTreeMap<String, Digest>,
    /// The compiler calls for the module's tests, in order. Tests may be compiled in several parts.
    pub test_calls: Vec<CompilerCall>,
    /// The compiler calls for main classes of every module of the reactor, in order. A module may have several.
    pub main_calls: Vec<CompilerCall>,
    /// The project's Surefire settings that launches take.
    pub settings: JvmSettings,
    /// Whether annotation processors made sources while tests were compiled.
    pub generates: bool,
    /// Why the direct path does not fit this build; `None` if it fits.
    pub unfit: Option<String>,
    /// Maven's processor time for this build in milliseconds; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_cpu_ms: Option<u64>,
}

impl CompiledRevision {
    /// Returns the blobs that it consists of.
    fn blobs(&self) -> impl Iterator<Item = Digest> {
        [self.tree, self.recording].into_iter().chain(self.jars.values().copied())
    }

    /// Returns the jars that stand for class directories of the project.
    ///
    /// # Errors
    /// A jar is missing or damaged.
    pub(in crate::execution) fn inputs(&self, store: &Store) -> Result<BTreeMap<String, Input>, StoreError> {
        let input = |digest: &Digest| Ok(Input { file: store.sound(digest)?, name: digest.hex() });
        self.jars.iter().map(|(path, digest)| Ok((path.clone(), input(digest)?))).collect()
    }
}

impl Described for Prepared {
    const KIND: Kind = Kind { directory: "prepared", schema: PREPARED_SCHEMA, name: "a prepared revision" };

    fn blobs(&self) -> Vec<Digest> {
        match self {
            Self::Compiled(revision) => revision.blobs().collect(),
            Self::Failed { .. } => Vec::new(),
        }
    }
}

/// The prepared revisions of a data directory, as one process uses them.
pub struct PreparedRevisions {
    made: Made<Prepared>,
}

impl PreparedRevisions {
    /// Returns the prepared revisions of `data_dir`.
    pub fn new(data_dir: &DataDir, store: &Store, events: &EventSink) -> Self {
        Self { made: Made::new(data_dir, store, events) }
    }

    /// Returns the store of the blobs.
    pub fn store(&self) -> &Store {
        self.made.store()
    }

    /// Returns the prepared revision; prepares it if the store lacks a part of it. `archive` writes the revision's own
    /// tree and returns its file. A fault of ours is returned, not kept.
    ///
    /// # Errors
    /// [`PreparedError`].
    pub async fn get(
        &self,
        executor: &Executor,
        image: &RepositoryImage,
        revision: &RevisionInput,
        archive: impl FnOnce() -> Result<TemporaryFile, String> + Send + 'static,
    ) -> Result<Arc<Prepared>, PreparedError> {
        let key = key(executor, image, revision);
        let make = async || {
            let made = self.make(executor, image, revision, key, archive).await?;
            Ok(match &made {
                Prepared::Failed { outcome: Outcome::InfraFail(_), .. } => Fresh::Passing(made),
                _ => Fresh::Kept(made),
            })
        };
        self.made.get(key, make).await
    }

    async fn make(
        &self,
        executor: &Executor,
        image: &RepositoryImage,
        revision: &RevisionInput,
        key: Digest,
        archive: impl FnOnce() -> Result<TemporaryFile, String> + Send + 'static,
    ) -> Result<Prepared, PreparedError> {
        let tree = match blocking(move || Ok::<_, PreparedError>(archive())).await? {
            Ok(tree) => tree,
            Err(cause) => {
                let Fault { reason, detail } = Fault::source(&cause);
                return Ok(Prepared::Failed { outcome: Outcome::InfraFail(reason), detail });
            }
        };
        let logs = CellLogs::prepared(executor.logs.as_ref(), &key.hex()[..16])?;
        let request = BuildRequest {
            purpose: "prepare",
            image,
            tree: tree.path(),
            module: &revision.module,
            target_file: None,
            other_text: None,
            logs: &logs,
        };
        let build = executor.build(&request).await?;
        let build_cpu_ms = build.cost.map(|cost| cost.cpu_ms);
        Ok(match build.end {
            BuildEnd::Built(build) => {
                // An exclusive run must not share the machine with the packing of trees.
                let _shared = executor.exclusive.read().await;
                let (image, heap_mib) = (image.clone(), executor.limits.launch_heap_mib);
                let (store, module, source) = (self.store().clone(), revision.module.path(), tree.path().to_owned());
                let describe = move || describe(&store, *build, (key, module), &source, (&image, heap_mib));
                let described = blocking(describe).await?;
                Prepared::Compiled(Box::new(CompiledRevision { build_cpu_ms, ..described }))
            }
            BuildEnd::Failed { outcome, detail, .. } => Prepared::Failed { outcome, detail },
        })
    }
}

/// Stores Maven's output and returns its description.
fn describe(
    store: &Store,
    build: MavenBuild,
    (key, module): (Digest, String),
    source: &Path,
    (image, heap_mib): (&RepositoryImage, u64),
) -> Result<CompiledRevision, PreparedError> {
    let (tree, tree_bytes) = keep(store, &build.archive)?;
    let parsed = Recording::read(&build.recording);
    let settings = build.settings(&parsed, &module, image, heap_mib);
    let project = parsed.module(&module).map(|found| found.project.clone()).unwrap_or_default();
    let test_calls: Vec<CompilerCall> = parsed.calls(&project, "testCompile").into_iter().cloned().collect();
    let sources = Sources { source, project: &project, test_calls: &test_calls, test_output: &build.test_output };
    let (jars, generates, unfit) = match look(store, &tree, &parsed, &sources) {
        Ok(looked) => (looked.jars, looked.generates, looked.unfit),
        Err(PreparedError::Unfit(reason)) => (BTreeMap::new(), false, Some(reason)),
        Err(error) => return Err(error),
    };
    let main_calls = parsed.compilations.iter().filter(|call| call.goal == "compile");
    Ok(CompiledRevision {
        key,
        tree,
        tree_bytes,
        recording: store.put(&build.recording)?,
        module,
        main_calls: main_calls.cloned().collect(),
        output: build.output,
        test_output: build.test_output,
        class_path: build.class_path,
        jars,
        test_calls,
        settings,
        generates,
        unfit,
        build_cpu_ms: None,
    })
}

fn key(executor: &Executor, image: &RepositoryImage, revision: &RevisionInput) -> Digest {
    key_by((&executor.jars, executor.identity, &executor.limits), image, revision)
}

/// Returns the key of a revision in a repository's image: everything that decides the content of the prepared revision. It is
/// for callers without an executor; `jars`, the identity of executions and the limits are those of an executor.
pub fn key_by(
    (jars, identity, limits): (&ToolJars, Digest, &ExecutionLimits),
    image: &RepositoryImage,
    revision: &RevisionInput,
) -> Digest {
    let RepositoryImage { config_digest, maven_arguments, surefire, .. } = image;
    let (module, recorder) = (revision.module.identity(), file_name(&jars.recorder));
    let tools = (recorder, identity, limits.of_builds());
    made::key::<Prepared>(&(config_digest, &revision.tree, module, maven_arguments, surefire, tools))
}

/// Stores a file that a container sent.
fn keep(store: &Store, captured: &Captured) -> Result<(Digest, u64), PreparedError> {
    let mut writer = store.writer()?;
    io::copy(&mut captured.open()?, &mut writer)?;
    Ok(writer.commit()?)
}

/// Returns a path of the container relative to the tree; empty for a path outside of the tree.
pub(in crate::execution) fn in_tree(path: &str) -> &str {
    path.strip_prefix(PROJECT).map_or("\0", |rest| rest.trim_start_matches('/'))
}

#[cfg(test)]
mod tests;
