//! The parts that commands with containers share: engine, origins, locks, images, sources, our own jars.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use super::{Context, extension_jars};
use crate::artifact::fetch::{Client, FetchError, FetchItem};
use crate::artifact::origin::{Machine, OriginOptions, Origins};
use crate::artifact::store::Store;
use crate::data_dir::{DataDir, DataDirError, HeldLock};
use crate::digest::Digest;
use crate::engine::docker::{Daemon, DockerEngine};
use crate::engine::native::NativeEngine;
use crate::engine::{Engine, EngineDescription, EngineError, own_executable};
use crate::error::CommandError;
use crate::execution::build::compiler::Compilers;
use crate::execution::build::prepared::PreparedRevisions;
use crate::execution::container::RepositoryImage;
use crate::execution::container::Surefire;
use crate::execution::container::ToolJars;
use crate::execution::container::images::ensure_loaded;
use crate::execution::container::jars::{self, Compiler};
use crate::execution::container::limits::ExecutionLimits;
use crate::execution::container::pool::ContainerPool;
use crate::execution::direct::Direct;
use crate::execution::executor::Executor;
use crate::execution::identity::identity;
use crate::execution::module::{ModuleArguments, WholeBuilds};
use crate::execution::proof::Prepare;
use crate::execution::run::inputs::RunTools;
use crate::execution::sharing::ClassArchives;
use crate::execution::trees::Trees;
use crate::image::recipe::java_home;
use crate::image::{BuiltImage, Catalog, Image, ImageBuilder, compose, ready_tag, tag, toolchain_recipe_digest};
use crate::lock::items::{repository_items, toolchain_items};
use crate::lock::policy::ToolchainPolicy;
use crate::lock::{LockFile as _, LockFileError, MismatchError, RepositoryLock, ToolchainLock};
use crate::manifest::{Limits, RepositoryManifest};
use crate::output::counted;
use crate::resolution::debian::defaults;
use crate::resolution::sets::{FoundSets, find_sets};
use crate::resolution::toolchain::{LockMode, ToolchainRequest, lock_toolchain};
use crate::settings::EngineChoice;
use crate::task::{Cell, RepositoryName, Revision, Task};
use crate::workspace::{Notices, Repository};

/// Parallel downloads, because origins answer many small files much faster that way.
const DOWNLOADS: NonZeroUsize = NonZeroUsize::new(8).unwrap();

/// A command's open data directory, with what is read from it only once.
pub struct Workbench<'a> {
    /// The command's context.
    pub context: &'a Context,
    /// The data directory.
    pub data_dir: DataDir,
    /// Its store.
    pub store: Store,
    /// Read once per command, because repositories share it.
    pub(crate) toolchain: OnceLock<ToolchainLock>,
    /// Digests of the toolchain's parts in an image, by the major version of its development kit.
    pub(crate) toolchain_digests: Mutex<BTreeMap<u32, Digest>>,
    /// Receives messages about gaps in trees, each once per command.
    pub notices: Arc<Notices>,
}

impl<'a> Workbench<'a> {
    /// Opens the data directory.
    ///
    /// # Errors
    /// [`DataDirError`], [`StoreError`](crate::artifact::store::StoreError).
    pub fn open(context: &'a Context) -> Result<Self, CommandError> {
        let data_dir = context.data_dir()?.clone();
        let store = Store::of(&data_dir)?;
        Ok(Self {
            context,
            data_dir,
            store,
            toolchain: OnceLock::new(),
            toolchain_digests: Mutex::default(),
            notices: Arc::new(Notices::new(context.events.clone())),
        })
    }

    /// Connects to the engine, checks its isolation as requested, and removes containers of dead owners.
    pub async fn engine(&self) -> Result<Arc<dyn Engine>, CommandError> {
        let events = &self.context.events;
        let engine: Arc<dyn Engine> = match self.context.options.engine {
            EngineChoice::Auto => match self.daemon(&Daemon::Any).await {
                Ok(engine) => {
                    let EngineDescription { name, version, .. } = engine.describe().await?;
                    self.context.tell_engine(format!("{name} {version} runs the containers"));
                    Arc::new(engine)
                }
                Err(error) => {
                    let why = match error {
                        EngineError::Unreachable { .. } => "no Docker or Podman answers".to_owned(),
                        // As in `doctor`, the built-in engine replaces an unusable daemon.
                        EngineError::Address { .. } | EngineError::Unfit { .. } => error.to_string(),
                        error => return Err(error.into()),
                    };
                    self.context.tell_engine(format!("{why}: the built-in engine runs the containers"));
                    Arc::new(self.native()?)
                }
            },
            EngineChoice::Docker => Arc::new(self.daemon(&Daemon::Docker).await?),
            EngineChoice::Podman => Arc::new(self.daemon(&Daemon::Podman).await?),
            EngineChoice::Native => Arc::new(self.native()?),
        };
        if self.context.options.strict_isolation {
            engine.describe().await?.require_strict()?;
        }
        let swept = engine.sweep().await?;
        if swept > 0 {
            let containers = counted(swept, "container", "containers");
            events.message(format!("removed {containers} that a process left behind"));
        }
        Ok(engine)
    }

    /// Tells whether containers will run from layers that are unpacked in the store, as those of the built-in engine do.
    pub(crate) async fn unpacks_layers(&self) -> bool {
        match self.context.options.engine {
            EngineChoice::Native => true,
            EngineChoice::Docker | EngineChoice::Podman => false,
            EngineChoice::Auto => self.daemon(&Daemon::Any).await.is_err(),
        }
    }

    async fn daemon(&self, daemon: &Daemon) -> Result<DockerEngine, EngineError> {
        let directory = self.data_dir.temporary();
        DockerEngine::connect(daemon, self.data_dir.owner(), &own_executable()?, &directory).await
    }

    /// Opens the built-in engine.
    pub(crate) fn native(&self) -> Result<NativeEngine, EngineError> {
        NativeEngine::open(
            &self.store.root().join("unpacked"),
            self.data_dir.owner(),
            &own_executable()?,
            &self.context.events,
        )
    }

    pub(crate) fn client(&self) -> Result<Client, CommandError> {
        Ok(client(self.context, &self.data_dir)?)
    }

    /// Reads a repository's manifest.
    ///
    /// # Errors
    /// [`ManifestError`](crate::manifest::ManifestError); [`MismatchError::OtherRepository`].
    pub fn manifest(&self, repository: &RepositoryName) -> Result<RepositoryManifest, CommandError> {
        let path = self.manifest_path(repository);
        let manifest = RepositoryManifest::load(&path)?;
        match manifest.repository == *repository {
            true => Ok(manifest),
            false => {
                Err(MismatchError::OtherRepository { path, found: manifest.repository, wanted: repository.to_string() }
                    .into())
            }
        }
    }

    /// Returns the toolchain lock with these development kits, and with the tools of agents if `agent`. Resolves missing
    /// parts, or everything if `update` is set.
    pub(crate) async fn lock_toolchain(
        &self,
        client: &Client,
        majors: &BTreeSet<u32>,
        agent: bool,
        update: bool,
    ) -> Result<ToolchainLock, CommandError> {
        let _held = self.hold("lock-toolchain").await?;
        let path = self.toolchain_path();
        let previous = present(ToolchainLock::load(&path).map_err(CommandError::from))?;
        let policy = ToolchainPolicy::builtin()?;
        let request = ToolchainRequest {
            policy: &policy,
            jdks: majors.clone(),
            agent,
            mode: if update { LockMode::Update } else { LockMode::Keep },
            jobs: DOWNLOADS,
        };
        let locking = async { Ok(lock_toolchain(client, &request, previous.as_ref()).await?) };
        let lock = self.context.until_interrupted(locking).await?;
        self.replace_lock(previous.as_ref(), &lock, &path)?;
        Ok(lock)
    }

    /// Returns a builder of images after no other process has one. An interrupt ends the wait.
    pub(crate) async fn image_builder(&self) -> Result<ImageBuilder, CommandError> {
        let (data_dir, events) = (self.data_dir.clone(), self.context.events.clone());
        let waiting = move |owner: &str| events.message(format!("waiting for {owner}, which builds images"));
        let builder = blocking(move || Ok(ImageBuilder::new(&data_dir, waiting)?));
        self.context.until_interrupted(builder).await
    }

    /// Composes an image outside of the asynchronous threads. Finished layers are reused.
    pub(crate) async fn compose(
        &self,
        toolchain: &ToolchainLock,
        jdk: u32,
        lock: Option<&RepositoryLock>,
    ) -> Result<Image, CommandError> {
        let (toolchain, lock, store) = (toolchain.clone(), lock.cloned(), self.store.clone());
        let name =
            lock.as_ref().map_or_else(|| format!("the toolchain with JDK {jdk}"), |lock| lock.repository.to_string());
        let composing = blocking(move || Ok(compose(&toolchain, jdk, lock.as_ref(), &store)?));
        self.context.events.stage("compose image", None, 0).during(&name, composing).await
    }

    /// Fetches the locked files with these digests into the store.
    pub(crate) async fn fetch(
        &self,
        missing: &BTreeSet<Digest>,
        toolchain: &ToolchainLock,
        lock: &RepositoryLock,
    ) -> Result<(), CommandError> {
        if missing.is_empty() {
            return Ok(());
        }
        extension_jars::refuse_lost(missing, lock)?;
        self.client()?.fetch_all(&items(missing, toolchain, lock)?, DOWNLOADS, &self.context.events).await?;
        Ok(())
    }

    /// Loads an image into the engine unless it is there.
    pub(crate) async fn load(
        &self,
        engine: &dyn Engine,
        image: &Image,
        repository: Option<&RepositoryName>,
        jdk: u32,
    ) -> Result<(), CommandError> {
        self.load_as(engine, image, &tag(image, repository, jdk)).await
    }

    /// Loads an image into the engine by this name unless it is there.
    pub(crate) async fn load_as(&self, engine: &dyn Engine, image: &Image, name: &str) -> Result<(), CommandError> {
        let names = [name.to_owned()];
        let loading = ensure_loaded(engine, image, &self.store, &names);
        let loaded = self.context.events.stage("load image", None, 0).during(name, loading).await?;
        if loaded {
            Catalog::open(&self.data_dir)?.remember_loaded(image, &names)?;
            self.context.events.message(format!("loaded {name}"));
        }
        Ok(())
    }

    /// Returns our own jars, compiled with the oldest development kit of the toolchain.
    pub async fn jars(&self, engine: &dyn Engine, toolchain: &ToolchainLock) -> Result<ToolJars, CommandError> {
        let Some(jdk) = toolchain.jdks.iter().map(|jdk| jdk.major).min() else {
            return Err(CommandError::Usage {
                message: "the toolchain lock has no development kit".to_owned(),
                hint: "run `testevo-sandbox lock`".to_owned(),
            });
        };
        let recipe = toolchain_recipe_digest(toolchain, jdk)?;
        if let Some(jars) = jars::remembered(&recipe, &self.store, &self.context.events) {
            return Ok(jars);
        }
        let image = self.compose(toolchain, jdk, None).await?;
        self.load(engine, &image, None, jdk).await?;
        let compiler = Compiler { image: image.config_digest, jdk, java_home: java_home(jdk) };
        let temporary = self.data_dir.temporary();
        let making = jars::make(engine, &compiler, &recipe, &self.store, &temporary);
        Ok(self.context.events.stage("compile own jars", None, 0).during("runner and recorder", making).await?)
    }

    /// Takes a lock of the data directory, and waits if another process has it. An interrupt ends the wait.
    pub(crate) async fn hold(&self, name: &str) -> Result<HeldLock, CommandError> {
        Ok(self.lock(name).await??)
    }

    /// As [`Workbench::hold`]; `None` with a warning where the file system has no locks.
    pub(crate) async fn hold_where_possible(&self, name: &str) -> Result<Option<HeldLock>, CommandError> {
        match self.lock(name).await? {
            Err(error @ DataDirError::NoLocks { .. }) => {
                self.context.events.warning(format!("{error}: nothing keeps another process from doing the same"));
                Ok(None)
            }
            held => Ok(Some(held?)),
        }
    }

    async fn lock(&self, name: &str) -> Result<Result<HeldLock, DataDirError>, CommandError> {
        let (data_dir, events, name) = (self.data_dir.clone(), self.context.events.clone(), name.to_owned());
        let told = name.clone();
        let waiting = move |owner: &str| events.message(format!("waiting for {owner}, which holds {told}"));
        // If the waiting thread gets the lock after an interrupt, it releases the lock at once.
        self.context.until_interrupted(blocking(move || Ok(data_dir.lock(&name, waiting)))).await
    }

    /// Returns a repository's image. It must be of the repository's present locks.
    pub(crate) fn built_image(&self, manifest: &RepositoryManifest) -> Result<BuiltImage, CommandError> {
        let repository = &manifest.repository;
        let built = Catalog::open(&self.data_dir)?.get(repository)?;
        let locks = self.lock_digests(repository, manifest.jdk)?;
        built.filter(|built| built.locks == locks && built.is_for(manifest)).ok_or_else(|| CommandError::Usage {
            message: format!("{repository} has no image of its present locks"),
            hint: format!("run `testevo-sandbox build-images {repository}`"),
        })
    }

    /// Returns our own jars if the store has them.
    pub(crate) fn remembered_jars(
        &self,
        toolchain: &ToolchainLock,
    ) -> Result<Option<(Digest, ToolJars)>, CommandError> {
        let Some(jdk) = toolchain.jdks.iter().map(|jdk| jdk.major).min() else { return Ok(None) };
        let recipe = toolchain_recipe_digest(toolchain, jdk)?;
        let found = jars::remembered(&recipe, &self.store, &self.context.events);
        Ok(found.map(|found| (jars::key(&recipe), found)))
    }

    /// Returns a repository's image after loading it. The image must be of the repository's present locks.
    pub async fn ready_image(&self, engine: &dyn Engine, manifest: &RepositoryManifest) -> Result<Image, CommandError> {
        let repository = &manifest.repository;
        let built = self.built_image(manifest)?;
        self.load(engine, &built.image, Some(repository), manifest.jdk).await?;
        if self.is_proven(&built)? {
            engine.tag_image(&built.image.config_digest, &ready_tag(repository)).await?;
        }
        Ok(built.image)
    }

    /// Opens a repository that has every revision of the tasks.
    pub async fn repository(&self, manifest: &RepositoryManifest, tasks: &[&Task]) -> Result<Repository, CommandError> {
        let sources = self.context.sources()?;
        let (name, url) = (&manifest.repository, &manifest.clone_url);
        let revisions: Vec<Revision> = tasks.iter().flat_map(|task| [task.rev1.clone(), task.rev2.clone()]).collect();
        self.context.until_interrupted(async { Ok(sources.open(name, url, &revisions).await?) }).await
    }

    /// Returns the trees of opened repositories.
    pub fn trees(&self, paths: BTreeMap<RepositoryName, PathBuf>, whole: &Arc<WholeBuilds>) -> Arc<Trees> {
        Arc::new(Trees::new(paths, self.data_dir.temporary(), Arc::clone(&self.notices), Arc::clone(whole)))
    }

    /// Returns a function that makes the trees of cells from opened repositories.
    pub(crate) fn prepare(&self, paths: BTreeMap<RepositoryName, PathBuf>, whole: &Arc<WholeBuilds>) -> Prepare {
        let trees = self.trees(paths, whole);
        Arc::new(move |task: &Task, cell: Cell| trees.cell(task, cell))
    }

    /// Returns the direct path, with at most `jobs` warm compilers.
    pub(crate) fn direct(&self, engine: &Arc<dyn Engine>, jars: &ToolJars) -> Direct {
        self.direct_with(engine, jars, self.context.options.jobs.get())
    }

    /// Returns the direct path, with at most `compilers` warm compilers.
    pub fn direct_with(&self, engine: &Arc<dyn Engine>, jars: &ToolJars, compilers: usize) -> Direct {
        let prepared = PreparedRevisions::new(&self.data_dir, &self.store, &self.context.events);
        let temporary = self.data_dir.temporary();
        Direct::new(prepared, Compilers::new(Arc::clone(engine), jars.compiler.clone(), temporary, compilers))
    }

    /// Returns the executor of cells, with default limits, without logs, and with at most `jobs` containers started
    /// ahead. Its clones share class archives, containers and the lock for exclusive runs, so a process needs only one.
    pub async fn executor(&self, engine: &Arc<dyn Engine>, jars: &ToolJars) -> Result<Executor, CommandError> {
        let description = engine.describe().await?;
        let temporary = self.data_dir.temporary();
        let jobs = self.context.options.jobs.get();
        Ok(Executor {
            engine: Arc::clone(engine),
            engine_name: format!("{} {}", description.name, description.version),
            isolation_missing: description.isolation.unenforced,
            jars: jars.clone(),
            limits: ExecutionLimits::from(&Limits::default()),
            temporary,
            logs: None,
            identity: identity(),
            exclusive: Arc::default(),
            trusts_first_timeout: false,
            confirmed: None,
            pool: Arc::new(ContainerPool::new(Arc::clone(engine), jobs)),
            class_archives: Some(Arc::new(ClassArchives::new(&self.data_dir, &self.store, &self.context.events))),
        })
    }
}

/// Returns a client for the origins that the options and this machine name. It fetches into a data directory's store.
pub(crate) fn client(context: &Context, data_dir: &DataDir) -> Result<Client, FetchError> {
    let options = &context.options;
    let origins = OriginOptions::new(&options.origins, options.offline, options.check_valid_until)?;
    let origins = Origins::new(origins, Machine::current(), data_dir.root());
    Ok(Client::new(origins, Store::of(data_dir)?, context.events.clone())?.finding_origins(defaults::find))
}

/// Returns the locked files of these digests, each once.
pub(crate) fn items(
    missing: &BTreeSet<Digest>,
    toolchain: &ToolchainLock,
    lock: &RepositoryLock,
) -> Result<Vec<FetchItem>, FetchError> {
    let mut items = toolchain_items(toolchain, Some(lock.jdk))?;
    items.extend(repository_items(lock)?);
    let mut seen = BTreeSet::new();
    items.retain(|item| missing.contains(&item.digest) && seen.insert(item.digest));
    Ok(items)
}

/// Returns `None` instead of the error that a lock is missing.
pub(super) fn present<L>(loaded: Result<L, CommandError>) -> Result<Option<L>, CommandError> {
    match loaded {
        Ok(lock) => Ok(Some(lock)),
        Err(error) if let Some(LockFileError::Missing { .. }) = error.failure() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns a repository's image with what its manifest chooses.
pub fn repository_image(manifest: &RepositoryManifest, image: &Image) -> RepositoryImage {
    RepositoryImage {
        config_digest: image.config_digest,
        toolchain: image.toolchain(),
        jdk: manifest.jdk,
        java_home: java_home(manifest.jdk),
        maven_arguments: manifest.build.arguments(),
        launcher: manifest.build.launcher,
        surefire: Surefire::default(),
    }
}

/// Returns the sets of build files of tasks in an opened repository.
pub(crate) async fn sets_of(
    repository: &Repository,
    manifest: &RepositoryManifest,
    tasks: &[&Task],
) -> Result<FoundSets, CommandError> {
    let (name, path) = (repository.name().clone(), repository.path().to_owned());
    let tasks: Vec<Task> = tasks.iter().map(|task| (*task).clone()).collect();
    let arguments = manifest.build.overridden_arguments();
    let find = move || find_sets(&Repository::open(name, &path)?, &tasks, arguments, &ModuleArguments::of);
    blocking(move || Ok(find()?)).await
}

/// Returns the tasks and sides for which Maven builds all modules, as the lock says.
pub(crate) async fn whole_builds(
    repository: &Repository,
    manifest: &RepositoryManifest,
    lock: &RepositoryLock,
    tasks: &[&Task],
) -> Result<WholeBuilds, CommandError> {
    match lock.whole_sets.is_empty() {
        true => Ok(WholeBuilds::default()),
        false => Ok(sets_of(repository, manifest, tasks).await?.whole(lock)),
    }
}

/// Runs blocking work on a thread of its own.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CommandError> + Send + 'static,
) -> Result<T, CommandError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(panic) => Err(CommandError::defect(panic)),
    }
}

/// Returns the facts that decide results of executions besides their inputs: engine, jars and this program.
pub(crate) async fn run_tools(
    engine: &dyn Engine,
    jars: &ToolJars,
    class_archives: bool,
) -> Result<RunTools, CommandError> {
    let isolation_missing = engine.describe().await?.isolation.unenforced;
    Ok(RunTools::new(identity(), jars, isolation_missing, class_archives))
}
