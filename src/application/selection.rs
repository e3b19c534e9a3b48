//! Selects the tasks of a command, and opens their repositories for executions.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use super::Context;
use super::workbench::{Workbench, environment};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::execution::build::surefire::Surefire;
use crate::execution::container::Environment;
use crate::execution::container::limits::ExecutionLimits;
use crate::execution::executor::Executor;
use crate::task::file::load_all;
use crate::task::selector::Selector;
use crate::task::{RepositoryName, Task};

/// Returns the chosen tasks of the data directory, sorted by repository and id; never none.
///
/// # Errors
/// [`CommandError`] of selections and task files.
pub fn tasks(selector: &Selector, context: &Context) -> Result<Vec<Task>, CommandError> {
    let all = load_all(&context.data_dir()?.join("tasks"))?;
    Ok(selector.select(&all)?.into_iter().cloned().collect())
}

/// Groups tasks by repository, in order.
pub fn by_repository<'a>(tasks: impl IntoIterator<Item = &'a Task>) -> BTreeMap<RepositoryName, Vec<&'a Task>> {
    let mut groups: BTreeMap<RepositoryName, Vec<&Task>> = BTreeMap::new();
    for task in tasks {
        groups.entry(task.repository.clone()).or_default().push(task);
    }
    groups
}

/// The parameters for executing the repositories of a selection.
#[derive(Default)]
pub struct Repositories {
    /// Images and launch settings of the repositories that are executed.
    pub environments: BTreeMap<RepositoryName, Environment>,
    /// Limits of the repositories that are executed.
    pub limits: BTreeMap<RepositoryName, ExecutionLimits>,
    /// The major version of each repository's development kit.
    pub jdks: BTreeMap<RepositoryName, u32>,
    /// Git directories with every revision of the tasks.
    pub paths: BTreeMap<RepositoryName, PathBuf>,
}

impl Repositories {
    /// Opens the sources of every task's repository, and loads its image into the engine that `engine_for` returns for
    /// it. A repository without an engine needs no image.
    ///
    /// # Errors
    /// [`CommandError::Usage`] for a repository without an image of its present locks; errors of manifests, sources and
    /// engines.
    pub async fn open<'a>(
        workbench: &Workbench<'_>,
        tasks: impl IntoIterator<Item = &'a Task>,
        surefire: Surefire,
        engine_for: impl Fn(&RepositoryName) -> Option<&'a dyn Engine>,
    ) -> Result<Self, CommandError> {
        let mut opened = Self::default();
        for (repository, tasks) in by_repository(tasks) {
            let manifest = workbench.manifest(&repository)?;
            if let Some(engine) = engine_for(&repository) {
                let image = workbench.ready_image(engine, &manifest).await?;
                let environment = Environment { surefire, ..environment(&manifest, &image) };
                opened.environments.insert(repository.clone(), environment);
                opened.limits.insert(repository.clone(), ExecutionLimits::from(&manifest.limits));
            }
            opened.jdks.insert(repository.clone(), manifest.jdk);
            opened.paths.insert(repository, workbench.repository(&manifest, &tasks).await?.path().to_owned());
        }
        Ok(opened)
    }

    /// Sets the processor time limit of launches of all repositories, in seconds, if one is given.
    pub fn limit_launches(&mut self, seconds: Option<NonZeroU32>) {
        if let Some(seconds) = seconds {
            for limits in self.limits.values_mut() {
                *limits = limits.with_launch_seconds(seconds.get().into());
            }
        }
    }

    /// Returns copies of the executor for each repository, with the repository's limits.
    pub fn executors(&self, executor: &Executor) -> BTreeMap<RepositoryName, Arc<Executor>> {
        let with = |limits: &ExecutionLimits| Arc::new(Executor { limits: *limits, ..executor.clone() });
        self.limits.iter().map(|(repository, limits)| (repository.clone(), with(limits))).collect()
    }
}
