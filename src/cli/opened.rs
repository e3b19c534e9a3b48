//! Everything that executing cells of some tasks needs, opened once: what commands that look at executions side by side
//! share.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::RwLock;

use super::workbench::{Workbench, blocking, environment};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::execution::cell::{Environment, Executor};
use crate::execution::identity::identity;
use crate::execution::limits::ExecutionLimits;
use crate::execution::maven::ToolJars;
use crate::execution::trees::Trees;
use crate::task::{RepositoryName, Task};

/// The engine, and the repositories of tasks.
pub(super) struct Opened {
    pub(super) engine: Arc<dyn Engine>,
    /// The engine's name and version.
    pub(super) engine_name: String,
    /// This program's version, with its digest: programs of one version differ while it is developed.
    pub(super) version: String,
    pub(super) jars: ToolJars,
    pub(super) environments: BTreeMap<RepositoryName, Environment>,
    pub(super) executors: BTreeMap<RepositoryName, Arc<Executor>>,
    /// Git directories.
    pub(super) paths: BTreeMap<RepositoryName, PathBuf>,
    pub(super) trees: Arc<Trees>,
}

impl Opened {
    /// Opens the repositories of tasks, whose images must be built.
    pub(super) async fn of(workbench: &Workbench<'_>, tasks: &[&Task]) -> Result<Self, CommandError> {
        let engine = workbench.engine().await?;
        let jars = workbench.jars(engine.as_ref(), &workbench.toolchain()?).await?;
        let (alone, archives) = (Arc::new(RwLock::new(())), workbench.class_archives());
        let (mut environments, mut executors, mut paths) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let repositories: BTreeSet<&RepositoryName> = tasks.iter().map(|task| &task.repository).collect();
        for repository in repositories {
            let manifest = workbench.manifest(repository)?;
            let image = workbench.ready_image(engine.as_ref(), &manifest).await?;
            let limits = ExecutionLimits::from(&manifest.limits);
            let executor = workbench.executor(&engine, &jars, limits, None, &alone, Some(&archives)).await?;
            environments.insert(repository.clone(), environment(&manifest, &image));
            executors.insert(repository.clone(), Arc::new(executor));
            let own: Vec<&Task> = tasks.iter().copied().filter(|task| task.repository == *repository).collect();
            paths.insert(repository.clone(), workbench.repository(&manifest, &own).await?.path().to_owned());
        }
        let description = engine.describe().await?;
        let engine_name = format!("{} {}", description.name, description.version);
        let version = format!("{} ({})", env!("CARGO_PKG_VERSION"), &identity().hex()[..12]);
        let trees = workbench.trees(paths.clone());
        Ok(Self { engine, engine_name, version, jars, environments, executors, paths, trees })
    }

    /// Returns where a task's cells are executed.
    pub(super) fn place(&self, task: &Task) -> Result<(&Executor, &Environment), String> {
        match (self.executors.get(&task.repository), self.environments.get(&task.repository)) {
            (Some(executor), Some(environment)) => Ok((executor, environment)),
            _ => Err(format!("{} was not opened", task.repository)),
        }
    }

    /// Reads a task's repository on a thread of its own.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        task: &Task,
        read: impl FnOnce(&Trees, &Task) -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let (trees, task) = (Arc::clone(&self.trees), task.clone());
        let read = blocking(move || Ok(read(&trees, &task))).await;
        read.map_err(|error| error.to_string())?
    }
}
