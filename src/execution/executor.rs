//! The executor of a repository's cells: the state that its executions share, and each execution's key and record.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::RwLock;

use crate::digest::Digest;
use crate::engine::Engine;
use crate::engine::spec::ReadOnlyMount;
use crate::execution::attempt::Confirmed;
use crate::execution::container::file_name;
use crate::execution::container::limits::ExecutionLimits;
use crate::execution::container::places::CLASS_ARCHIVE;
use crate::execution::container::pool::ContainerPool;
use crate::execution::container::temporary::TemporaryFile;
use crate::execution::container::{RepositoryImage, ToolJars};
use crate::execution::key::ExecutionInputs;
use crate::execution::request::CellIdentity;
use crate::execution::run::logs::{CellLogs, Logs};
use crate::execution::run::record::{CellRecord, ExecutionPath, Measured, RECORD_SCHEMA};
use crate::execution::sharing::{ArchiveMaker, ClassArchives, Serves};
use crate::outcome::Outcome;
use crate::task::MethodId;

/// Executes cells of a repository.
#[derive(Clone)]
pub struct Executor {
    /// Starts containers.
    pub engine: Arc<dyn Engine>,
    /// The engine's name and version, for records.
    pub engine_name: String,
    /// Protections that the engine could not give, sorted.
    pub isolation_missing: Vec<String>,
    /// Our own jars.
    pub jars: ToolJars,
    /// Limits of every execution.
    pub limits: ExecutionLimits,
    /// Directory for archives and spooled output; only this process writes there.
    pub temporary: PathBuf,
    /// The run's logs; `None` outside of a run.
    pub logs: Option<Logs>,
    /// The digest of this program's part in executions, a part of every key.
    pub identity: Digest,
    /// Every execution holds this lock shared; the second run of a timeout holds it exclusively. All executors of a
    /// process share it.
    pub exclusive: Arc<RwLock<()>>,
    /// Whether a launch's first timeout counts, because its limit is many times its usual time.
    pub trusts_first_timeout: bool,
    /// What second runs have confirmed about the submission; `None` for the developers' tests, whose every timeout gets
    /// a second run.
    pub confirmed: Option<Confirmed>,
    /// Containers that are started before they are needed.
    pub pool: Arc<ContainerPool>,
    /// The class archives that launches of both paths map; `None` for launches that load every class anew.
    pub class_archives: Option<Arc<ClassArchives>>,
}

/// The result of one method's launch.
#[derive(Clone, Debug)]
pub struct Launched {
    /// Its outcome.
    pub outcome: Outcome,
    /// A line or two for people.
    pub detail: String,
    /// Containers started for it.
    pub attempts: u32,
    /// Times and machine.
    pub measured: Measured,
    /// The requested files, of each subclass in turn if the method ran in several; `None` for a file that is missing or
    /// too large. They are on disk, because a submission decides how long they are.
    pub files: Vec<Option<Arc<TemporaryFile>>>,
}

impl Launched {
    /// Returns the result of a method that was not launched.
    pub(super) fn not_launched(outcome: Outcome, detail: &str, attempts: u32, measured: &Measured) -> Self {
        Self { outcome, detail: detail.to_owned(), attempts, measured: measured.clone(), files: Vec::new() }
    }
}

impl Executor {
    /// Returns the key of one launch on a path. A result kept under this key need not be executed again.
    pub fn key(&self, identity: &CellIdentity<'_>, method: &MethodId, repeat: u32, path: ExecutionPath) -> Digest {
        let inputs = ExecutionInputs {
            image: identity.image.config_digest,
            tree: identity.tree,
            test_file: identity.task.test_file.as_str(),
            swapped: identity.swapped,
            method: method.as_str(),
            maven_arguments: &identity.image.maven_arguments,
            launcher: identity.image.launcher,
            surefire: identity.image.surefire,
            path,
            runner: file_name(&self.jars.runner),
            recorder: file_name(&self.jars.recorder),
            compiler: file_name(&self.jars.compiler),
            identity: self.identity,
            limits: self.limits,
            repeat,
            class_archive: self.maps_class_archives(identity.image),
            isolation_missing: &self.isolation_missing,
        };
        inputs.key()
    }

    /// Tells whether a timeout counts without a second launch: the launch used a processor for at least half of its
    /// time. A launch that waited may have waited for the machine.
    pub(super) fn trusts_timeout(&self, measured: &Measured) -> bool {
        let half = self.limits.launch_command.wall_seconds.saturating_mul(500);
        self.trusts_first_timeout && measured.launch_cpu_ms.is_some_and(|used| used >= half)
    }

    pub(super) fn measured(&self, logs: &CellLogs) -> Measured {
        Measured {
            engine: self.engine_name.clone(),
            isolation_missing: self.isolation_missing.clone(),
            logs: logs.relative(),
            ..Measured::default()
        }
    }

    /// Returns a record for each method and repeat, all alike.
    pub(super) fn records(
        &self,
        identity: &CellIdentity<'_>,
        methods: &[MethodId],
        repeats: u32,
        launched: impl Fn() -> Launched,
    ) -> Vec<CellRecord> {
        let repeats = (1..=repeats).flat_map(|repeat| methods.iter().map(move |method| (repeat, method)));
        repeats.map(|(repeat, method)| self.record(identity, method, repeat, launched())).collect()
    }

    pub(super) fn record(
        &self,
        identity: &CellIdentity<'_>,
        method: &MethodId,
        repeat: u32,
        launched: Launched,
    ) -> CellRecord {
        let path = launched.measured.path;
        CellRecord {
            schema: RECORD_SCHEMA,
            task_id: identity.task.id.clone(),
            repository: identity.task.repository.clone(),
            track: identity.task.track,
            cell: identity.cell,
            method: method.clone(),
            repeat,
            path: identity.path,
            outcome: launched.outcome,
            detail: launched.detail,
            attributed: None,
            missing: Vec::new(),
            attempts: launched.attempts,
            key: (launched.attempts > 0).then(|| self.key(identity, method, repeat, path)),
            measured: launched.measured,
        }
    }

    /// Returns a class archive; `None` if there is none.
    pub async fn class_archive(&self, image: &RepositoryImage, serves: Serves<'_>) -> Option<PathBuf> {
        let maker = ArchiveMaker {
            engine: self.engine.as_ref(),
            jars: &self.jars,
            limits: &self.limits,
            temporary: &self.temporary,
            identity: self.identity,
        };
        self.class_archives.as_ref()?.get(&maker, image, serves).await
    }

    /// Returns the mount of the class archive for Maven; `None` if there is none.
    pub(super) async fn archive_of_compilers(&self, image: &RepositoryImage) -> Option<ReadOnlyMount> {
        let _shared = self.exclusive.read().await;
        let source = self.class_archive(image, Serves::Compilers).await?;
        Some(ReadOnlyMount { source, target: CLASS_ARCHIVE.to_owned() })
    }

    /// Tells whether launches in this image map a class archive, as far as is known now.
    fn maps_class_archives(&self, image: &RepositoryImage) -> bool {
        self.class_archives.as_ref().is_some_and(|archives| archives.serve(image))
    }
}
