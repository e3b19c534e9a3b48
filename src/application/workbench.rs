//! What commands that run containers share: engine, origins, locks, images, sources, our own jars.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use super::Context;
use crate::artifact::fetch::{Client, FetchError, FetchItem};
use crate::artifact::origin::{Machine, OriginOptions, Origins};
use crate::artifact::store::Store;
use crate::data_dir::{DataDir, HeldLock};
use crate::digest::Digest;
use crate::engine::docker::{Daemon, DockerEngine};
use crate::engine::native::NativeEngine;
use crate::engine::{Engine, EngineError, own_executable};
use crate::error::CommandError;
use crate::execution::build::compiler::Compilers;
use crate::execution::build::maven::ModuleArguments;
use crate::execution::build::prepared::PreparedRevisions;
use crate::execution::build::surefire::Surefire;
use crate::execution::container::Environment;
use crate::execution::container::ToolJars;
use crate::execution::container::images::ensure_loaded;
use crate::execution::container::jars::{self, Compiler};
use crate::execution::container::limits::ExecutionLimits;
use crate::execution::container::pool::ContainerPool;
use crate::execution::direct::Direct;
use crate::execution::executor::Executor;
use crate::execution::identity::identity;
use crate::execution::launch::sharing::ClassArchives;
use crate::execution::proof::Prepare;
use crate::execution::run::inputs::RunTools;
use crate::execution::trees::Trees;
use crate::image::recipe::java_home;
use crate::image::{Catalog, Image, compose, ready_tag, tag, toolchain_recipe_digest};
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

/// Downloads at once: origins answer many small files much faster side by side.
const DOWNLOADS: NonZeroUsize = NonZeroUsize::new(8).unwrap();

/// The things themselves, opened once.
pub struct Workbench<'a> {
    /// The invocation.
    pub context: &'a Context,
    /// The data directory.
    pub data_dir: DataDir,
    /// Its store.
    pub store: Store,
    /// Read once per command: repositories share it.
    pub(crate) toolchain: OnceLock<ToolchainLock>,
    /// Digests of what images with a development kit have of it, by the kit's major version.
    pub(crate) toolchain_digests: Mutex<BTreeMap<u32, Digest>>,
    /// Told what trees lack, once a command.
    pub notices: Arc<Notices>,
}

impl<'a> Workbench<'a> {
    /// Opens the data directory.
    ///
    /// # Errors
    /// [`DataDirError`](crate::data_dir::DataDirError), [`StoreError`](crate::artifact::store::StoreError).
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

    /// Reaches the engine, checks that it holds what is required, and removes what dead owners left in it.
    pub async fn engine(&self) -> Result<Arc<dyn Engine>, CommandError> {
        let events = &self.context.events;
        let engine: Arc<dyn Engine> = match self.context.options.engine {
            EngineChoice::Auto => match self.daemon(&Daemon::Any).await {
                Ok(engine) => Arc::new(engine),
                Err(error) => {
                    let why = match error {
                        EngineError::Unreachable { .. } => "no Docker or Podman answers".to_owned(),
                        // As `doctor` has it: a daemon that can't be used is made up for.
                        EngineError::Address { .. } | EngineError::Unfit { .. } => error.to_string(),
                        error => return Err(error.into()),
                    };
                    events.message(format!("{why}: the built-in engine runs the containers"));
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

    async fn daemon(&self, daemon: &Daemon) -> Result<DockerEngine, EngineError> {
        DockerEngine::connect(daemon, self.data_dir.owner(), &own_executable()?).await
    }

    /// Opens the built-in engine.
    pub(crate) fn native(&self) -> Result<NativeEngine, EngineError> {
        NativeEngine::open(&self.store.root().join("unpacked"), self.data_dir.owner(), &own_executable()?)
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

    /// Returns the toolchain lock with these development kits in it, resolved where it lacks something, or anew.
    pub(crate) async fn lock_toolchain(
        &self,
        client: &Client,
        majors: &BTreeSet<u32>,
        update: bool,
    ) -> Result<ToolchainLock, CommandError> {
        let _held = self.hold("lock-toolchain").await?;
        let path = self.toolchain_path();
        let previous = match ToolchainLock::load(&path) {
            Ok(lock) => Some(lock),
            Err(LockFileError::Missing { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let policy = ToolchainPolicy::builtin()?;
        let request = ToolchainRequest {
            policy: &policy,
            jdks: majors.clone(),
            mode: if update { LockMode::Update } else { LockMode::Keep },
            jobs: DOWNLOADS,
        };
        let lock = lock_toolchain(client, &request, previous.as_ref()).await?;
        match previous {
            Some(previous) if previous == lock => {}
            Some(previous) => {
                self.keep_history(&previous)?;
                lock.store(&path)?;
            }
            None => lock.store(&path)?,
        }
        Ok(lock)
    }

    /// Composes an image off the asynchronous threads; composed layers are found, not made.
    pub(crate) async fn compose(
        &self,
        toolchain: &ToolchainLock,
        jdk: u32,
        lock: Option<&RepositoryLock>,
    ) -> Result<Image, CommandError> {
        let (toolchain, lock, store) = (toolchain.clone(), lock.cloned(), self.store.clone());
        blocking(move || Ok(compose(&toolchain, jdk, lock.as_ref(), &store)?)).await
    }

    /// Brings the locked files of these digests into the store.
    pub(crate) async fn fetch(
        &self,
        missing: &BTreeSet<Digest>,
        toolchain: &ToolchainLock,
        lock: &RepositoryLock,
    ) -> Result<(), CommandError> {
        if missing.is_empty() {
            return Ok(());
        }
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
        let tag = tag(image, repository, jdk);
        let loaded = ensure_loaded(engine, image, &self.store, std::slice::from_ref(&tag)).await?;
        if loaded {
            Catalog::open(&self.data_dir)?.remember_loaded(image, std::slice::from_ref(&tag))?;
            self.context.events.message(format!("loaded {tag}"));
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
        if let Some(jars) = jars::remembered(&recipe, &self.store) {
            return Ok(jars);
        }
        let image = self.compose(toolchain, jdk, None).await?;
        self.load(engine, &image, None, jdk).await?;
        let compiler = Compiler { image: image.config_digest, jdk, java_home: java_home(jdk) };
        Ok(jars::make(engine, &compiler, &recipe, &self.store, &self.data_dir.temporary()).await?)
    }

    /// Takes a lock of the data directory, waiting for another process where one has it; an interrupt ends that.
    pub(crate) async fn hold(&self, name: &str) -> Result<HeldLock, CommandError> {
        let (data_dir, events, name) = (self.data_dir.clone(), self.context.events.clone(), name.to_owned());
        let told = name.clone();
        let waiting = move |owner: &str| events.message(format!("waiting for {owner}, which holds {told}"));
        // A thread that waits on after an interrupt lets go of the lock as soon as it has it.
        self.context.until_interrupted(blocking(move || Ok(data_dir.lock(&name, waiting)?))).await
    }

    /// Returns a repository's image, loaded; it must have been built from its present locks.
    pub async fn ready_image(&self, engine: &dyn Engine, manifest: &RepositoryManifest) -> Result<Image, CommandError> {
        let repository = &manifest.repository;
        let built = Catalog::open(&self.data_dir)?.get(repository)?;
        let locks = self.lock_digests(repository, manifest.jdk)?;
        let built = match built.filter(|built| built.locks == locks && built.is_for(manifest)) {
            Some(built) => built,
            None => {
                return Err(CommandError::Usage {
                    message: format!("{repository} has no image of its present locks"),
                    hint: format!("run `testevo-sandbox build-images {repository}`"),
                });
            }
        };
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

    /// Returns the trees of repositories that were opened before.
    pub fn trees(&self, paths: BTreeMap<RepositoryName, PathBuf>) -> Arc<Trees> {
        Arc::new(Trees::new(paths, self.data_dir.temporary(), Arc::clone(&self.notices)))
    }

    /// Returns a function that makes the trees of cells from repositories that were opened before.
    pub(crate) fn prepare(&self, paths: BTreeMap<RepositoryName, PathBuf>) -> Prepare {
        let trees = self.trees(paths);
        Arc::new(move |task: &Task, cell: Cell| trees.cell(task, cell))
    }

    /// Returns the direct path, with at most `jobs` warm compilers.
    pub(crate) fn direct(&self, engine: &Arc<dyn Engine>, jars: &ToolJars) -> Direct {
        self.direct_with(engine, jars, self.context.options.jobs.get())
    }

    /// Returns the direct path with so many warm compilers.
    pub fn direct_with(&self, engine: &Arc<dyn Engine>, jars: &ToolJars, compilers: usize) -> Direct {
        let prepared = PreparedRevisions::new(&self.data_dir, &self.store, &self.context.events);
        let temporary = self.data_dir.temporary();
        Direct::new(prepared, Compilers::new(Arc::clone(engine), jars.compiler.clone(), temporary, compilers))
    }

    /// Returns what executes cells, with default limits, without logs, and with at most `jobs` containers started ahead. What it
    /// is cloned to shares class archives, containers, and the right to run alone: there is one of these in a process.
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
            temporary: temporary.clone(),
            logs: None,
            identity: identity(),
            exclusive: Arc::default(),
            trusts_first_timeout: false,
            pool: Arc::new(ContainerPool::new(Arc::clone(engine), temporary, jobs)),
            class_archives: Some(Arc::new(ClassArchives::new(&self.data_dir, &self.store, &self.context.events))),
        })
    }
}

/// Returns what fetches from the origins that the options and this machine name, into a data directory's store.
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

/// Returns a repository's environment.
pub fn environment(manifest: &RepositoryManifest, image: &Image) -> Environment {
    Environment {
        image: image.config_digest,
        toolchain: image.toolchain(),
        jdk: manifest.jdk,
        java_home: java_home(manifest.jdk),
        maven_arguments: manifest.build.arguments(),
        launcher: manifest.build.launcher,
        surefire: Surefire::default(),
    }
}

/// Returns the sets of build files that tasks of an opened repository have.
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

/// Runs work that blocks on a thread of its own.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CommandError> + Send + 'static,
) -> Result<T, CommandError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(CommandError::Runtime(std::io::Error::other(error))),
    }
}

/// Returns what decides the results of executions besides their inputs.
pub(crate) async fn run_tools(
    engine: &dyn Engine,
    jars: &ToolJars,
    class_archives: bool,
) -> Result<RunTools, CommandError> {
    let isolation_missing = engine.describe().await?.isolation.unenforced;
    Ok(RunTools::new(identity(), jars, isolation_missing, class_archives))
}
