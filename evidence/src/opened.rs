//! The state for executing cells of some tasks, opened once and shared by the commands that compare executions.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use testevo_sandbox::application::selection::Repositories;
use testevo_sandbox::application::workbench::{Workbench, blocking};
use testevo_sandbox::engine::Engine;
use testevo_sandbox::error::CommandError;
use testevo_sandbox::execution::container::RepositoryImage;
use testevo_sandbox::execution::container::Surefire;
use testevo_sandbox::execution::container::ToolJars;
use testevo_sandbox::execution::executor::Executor;
use testevo_sandbox::execution::identity::identity;
use testevo_sandbox::execution::module::WholeBuilds;
use testevo_sandbox::execution::trees::Trees;
use testevo_sandbox::task::{RepositoryName, Task};

/// The engine, and the repositories of tasks.
pub(crate) struct Opened {
    pub(crate) engine: Arc<dyn Engine>,
    /// The engine's name and version.
    pub(crate) engine_name: String,
    /// This program's version, with its digest: programs of one version differ while it is developed.
    pub(crate) version: String,
    pub(crate) jars: ToolJars,
    pub(crate) images: BTreeMap<RepositoryName, RepositoryImage>,
    pub(crate) executors: BTreeMap<RepositoryName, Arc<Executor>>,
    /// Git directories.
    pub(crate) paths: BTreeMap<RepositoryName, PathBuf>,
    pub(crate) trees: Arc<Trees>,
    pub(crate) whole: Arc<WholeBuilds>,
}

impl Opened {
    /// Opens the repositories of tasks, whose images must be built.
    pub(crate) async fn of(workbench: &Workbench<'_>, tasks: &[&Task]) -> Result<Self, CommandError> {
        let engine = workbench.engine().await?;
        let all = tasks.iter().copied();
        let opened = Repositories::open(workbench, all, Surefire::default(), |_| Some(engine.as_ref())).await?;
        let opened = opened.whole()?;
        let jars = workbench.jars(engine.as_ref(), &workbench.toolchain()?).await?;
        let executors = opened.executors(&workbench.executor(&engine, &jars).await?);
        let Repositories { images, paths, whole, .. } = opened;
        let description = engine.describe().await?;
        let engine_name = format!("{} {}", description.name, description.version);
        let version = format!("{} ({})", env!("CARGO_PKG_VERSION"), &identity().hex()[..12]);
        let trees = workbench.trees(paths.clone(), &whole);
        Ok(Self { engine, engine_name, version, jars, images, executors, paths, trees, whole })
    }

    /// Returns the executor and image of a task's cells.
    pub(crate) fn place(&self, task: &Task) -> Result<(&Executor, &RepositoryImage), String> {
        match (self.executors.get(&task.repository), self.images.get(&task.repository)) {
            (Some(executor), Some(image)) => Ok((executor, image)),
            _ => Err(format!("{} was not opened", task.repository)),
        }
    }

    /// Reads a task's repository on a thread of its own.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        task: &Task,
        read: impl FnOnce(&Trees, &Task) -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let (trees, task) = (Arc::clone(&self.trees), task.clone());
        let read = blocking(move || Ok(read(&trees, &task))).await;
        read.map_err(|error| error.to_string())?
    }
}
