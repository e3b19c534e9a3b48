//! Selects the tasks of a command, and opens their repositories for executions.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use super::Context;
use super::failures::Failures;
use super::workbench::{Workbench, repository_image, sets_of};
use crate::engine::Engine;
use crate::error::{CommandError, ExitStatus};
use crate::execution::container::RepositoryImage;
use crate::execution::container::Surefire;
use crate::execution::container::limits::ExecutionLimits;
use crate::execution::executor::Executor;
use crate::execution::module::WholeBuilds;
use crate::execution::obstacle::Obstacles;
use crate::manifest::RepositoryManifest;
use crate::outcome::InfraReason;
use crate::task::file::load_all;
use crate::task::selector::Selector;
use crate::task::{RepositoryName, Side, Task};
use crate::workspace::Repository;

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
    pub images: BTreeMap<RepositoryName, RepositoryImage>,
    /// Limits of the repositories that are executed.
    pub limits: BTreeMap<RepositoryName, ExecutionLimits>,
    /// The major version of each repository's development kit.
    pub jdks: BTreeMap<RepositoryName, u32>,
    /// Git directories with every revision of the tasks.
    pub paths: BTreeMap<RepositoryName, PathBuf>,
    /// Where Maven builds all modules.
    pub whole: Arc<WholeBuilds>,
    /// What keeps tasks from being executed.
    pub obstacles: Obstacles,
    /// Repositories that could not be opened.
    failed: Vec<(RepositoryName, CommandError)>,
}

impl Repositories {
    /// Opens the sources of every task's repository, and loads its image into the engine that `engine_for` returns for
    /// it. A repository without an engine needs no image. What fails for one repository does not stop the others: it
    /// stands in `failed` and `obstacles`.
    ///
    /// # Errors
    /// An interrupt.
    pub async fn open<'a>(
        workbench: &Workbench<'_>,
        tasks: impl IntoIterator<Item = &'a Task>,
        surefire: Surefire,
        engine_for: impl Fn(&RepositoryName) -> Option<&'a dyn Engine>,
    ) -> Result<Self, CommandError> {
        let mut opened = Self::default();
        for (repository, tasks) in by_repository(tasks) {
            let engine = engine_for(&repository);
            let result = opened.open_one(workbench, &repository, &tasks, surefire, engine).await;
            let Err((reason, error)) = result else { continue };
            if error.exit_status() == ExitStatus::Interrupted {
                return Err(error);
            }
            opened.obstacles.of_repository(repository.clone(), reason, error.to_string());
            opened.failed.push((repository, error));
        }
        Ok(opened)
    }

    async fn open_one(
        &mut self,
        workbench: &Workbench<'_>,
        repository: &RepositoryName,
        tasks: &[&Task],
        surefire: Surefire,
        engine: Option<&dyn Engine>,
    ) -> Result<(), (InfraReason, CommandError)> {
        let image = |error: CommandError| (InfraReason::Image, error);
        let source = |error: CommandError| (InfraReason::Source, error);
        let manifest = workbench.manifest(repository).map_err(image)?;
        self.jdks.insert(repository.clone(), manifest.jdk);
        let ready = match engine {
            Some(engine) => Some(workbench.ready_image(engine, &manifest).await.map_err(image)?),
            None => None,
        };
        let sources = workbench.repository(&manifest, tasks).await.map_err(source)?;
        self.paths.insert(repository.clone(), sources.path().to_owned());
        if let Some(ready) = ready {
            self.note_sets(workbench, &manifest, &sources, tasks).await.map_err(image)?;
            let image = RepositoryImage { surefire, ..repository_image(&manifest, &ready) };
            self.images.insert(repository.clone(), image);
            self.limits.insert(repository.clone(), ExecutionLimits::from(&manifest.limits));
        }
        Ok(())
    }

    /// Notes what the lock says of the tasks' build files: which lack an artifact, and for which Maven builds all modules.
    async fn note_sets(
        &mut self,
        workbench: &Workbench<'_>,
        manifest: &RepositoryManifest,
        sources: &Repository,
        tasks: &[&Task],
    ) -> Result<(), CommandError> {
        let lock = workbench.lock_for(manifest)?;
        if lock.unresolved.is_empty() && lock.whole_sets.is_empty() {
            return Ok(());
        }
        let found = sets_of(sources, manifest, tasks).await?;
        Arc::make_mut(&mut self.whole).extend(found.whole(&lock));
        for task in tasks {
            for side in [Side::Old, Side::New] {
                let Some(set) = found.set_of(task, side) else { continue };
                if let Some(lost) = lock.unresolved.iter().find(|lost| lost.build_set == set) {
                    self.obstacles.unresolved(task.id.clone(), side, lost.to_string());
                }
            }
        }
        Ok(())
    }

    /// Returns the repositories if none failed.
    ///
    /// # Errors
    /// The first failure.
    pub fn whole(mut self) -> Result<Self, CommandError> {
        match self.failed.is_empty() {
            true => Ok(self),
            false => Err(self.failed.swap_remove(0).1),
        }
    }

    /// Reports what failed, and returns it for the command's end. Repositories that failed have no results.
    ///
    /// A shard goes on even then, because the whole run would: its other repositories are in other shards.
    ///
    /// # Errors
    /// The failures, if they concern every repository of the tasks of a whole run.
    pub(super) fn failures<'c>(
        &mut self,
        tasks: &[Task],
        context: &'c Context,
        (done, is_shard): (&'static str, bool),
    ) -> Result<Failures<'c>, CommandError> {
        let mut failures = Failures::new(by_repository(tasks).len(), context);
        for (repository, error) in self.failed.drain(..) {
            failures.unless::<()>(&repository, Err(error))?;
        }
        match failures.are_all() && !is_shard {
            true => failures.settle(done, Ok(())).map(|()| Failures::new(0, context)),
            false => Ok(failures),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::Options;
    use crate::application::context::tests::offline;
    use crate::application::import::{ImportRequest, import};
    use crate::event::EventSink;
    use crate::sample::SampleRepository;
    use crate::umask::Umask;

    #[tokio::test]
    async fn a_repository_that_can_not_be_opened_stops_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let sample = SampleRepository::demo().unwrap();
        let sources = directory.path().join("sources");
        let revisions = sample.write_git(&sources.join(sample.name.file_stem())).unwrap();
        let data = directory.path().join("sample.json");
        fs_err::write(&data, sample.published(&revisions)).unwrap();
        let git_mirror = Some(format!("{}/{{owner}}__{{name}}", sources.display()));
        let options = Options { git_mirror, ..offline(&directory.path().join("data")) };
        let context = Context::new(options, EventSink::none(), Umask::take());
        import(&ImportRequest { data: vec![data], ..ImportRequest::default() }, &context).unwrap();
        let mut all = tasks(&Selector::default(), &context).unwrap();
        // One repository without a manifest, and one without a mirror.
        let manifests = context.data_dir().unwrap().join("manifests");
        let text = fs_err::read_to_string(manifests.join(format!("{}.toml", sample.name.file_stem()))).unwrap();
        let text = text.replace(sample.name.as_str(), "gone/mirror");
        fs_err::write(manifests.join("gone__mirror.toml"), text).unwrap();
        for (number, name) in ["gone/manifest", "gone/mirror"].into_iter().enumerate() {
            all.push(Task { repository: name.parse().unwrap(), ..all[number].clone() });
        }
        let workbench = Workbench::open(&context).unwrap();
        let mut opened = Repositories::open(&workbench, &all, Surefire::default(), |_| None).await.unwrap();
        assert_eq!(opened.paths.keys().collect::<Vec<_>>(), [&sample.name]);
        let faults: Vec<_> = all.iter().filter_map(|task| opened.obstacles.fault(task, Side::New)).collect();
        let reasons: Vec<InfraReason> = faults.iter().map(|fault| fault.reason).collect();
        assert_eq!(reasons, [InfraReason::Image, InfraReason::Source]);
        let failures = opened.failures(&all, &context, ("validated", false)).unwrap();
        let error = failures.settle("validated", Ok(())).unwrap_err();
        let CommandError::Repositories { failed: 2, total: 3, rows, .. } = &error else { panic!("{error}") };
        assert_eq!(
            rows.iter().map(|row| row.repository.as_str()).collect::<Vec<_>>(),
            ["gone/manifest", "gone/mirror"]
        );
        assert!(rows.iter().all(|row| row.hint.is_some()), "{rows:?}");

        // Without any repository left there is nothing to go on with.
        let mut none =
            Repositories::open(&workbench, all.iter().rev().take(2), Surefire::default(), |_| None).await.unwrap();
        assert!(none.failures(&all[all.len() - 2..], &context, ("validated", false)).is_err());
    }
}
