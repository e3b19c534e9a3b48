//! Finds focal methods in the sources, and stores them beside the tasks.

use std::collections::BTreeMap;

use super::Context;
use super::io_failure::IoFailure;
use super::selection::by_repository;
use super::workbench::{Workbench, blocking};
use crate::error::CommandError;
use crate::focal::resolve;
use crate::focal::store::{self, KnownFocal};
use crate::task::{RepositoryName, Task, TaskId};
use crate::workspace::Repository;

/// Finds the focal methods of tasks in the sources, stores them beside the tasks, and returns them with the known own
/// focal methods of test methods.
///
/// # Errors
/// Errors of manifests and sources; [`IoFailure`] if the methods can't be stored.
pub async fn find(tasks: &[Task], context: &Context) -> Result<BTreeMap<TaskId, KnownFocal>, CommandError> {
    let workbench = Workbench::open(context)?;
    let mut all = BTreeMap::new();
    let stage = context.events.stage("find methods", None, 0);
    for (repository, tasks) in by_repository(tasks) {
        let manifest = workbench.manifest(&repository)?;
        let path = workbench.repository(&manifest, &tasks).await?.path().to_owned();
        let tasks: Vec<Task> = tasks.into_iter().cloned().collect();
        let name = repository.clone();
        let finding = blocking(move || {
            let repository = Repository::open(name, &path)?;
            let found = tasks.iter().map(|task| {
                let focal = resolve(&repository, task)?;
                Ok((task.id.clone(), KnownFocal { focal, own: None }))
            });
            found.collect::<Result<BTreeMap<_, _>, CommandError>>()
        });
        let found = stage.during(repository.as_str(), finding).await?;
        let wanted: Vec<TaskId> = found.keys().cloned().collect();
        keep(&workbench, &repository, found).await?;
        let kept = store::kept(&workbench.data_dir.join("focal"), &repository);
        let mut kept = kept.map_err(IoFailure::of("reading focal methods"))?;
        all.extend(wanted.into_iter().filter_map(|task| kept.remove_entry(&task)));
    }
    Ok(all)
}

/// Stores the focal methods of some tasks of a repository beside the tasks.
pub(super) async fn keep(
    workbench: &Workbench<'_>,
    repository: &RepositoryName,
    found: BTreeMap<TaskId, KnownFocal>,
) -> Result<(), CommandError> {
    // Another process may write to the same file.
    let _held = workbench.hold(&format!("focal-{}", repository.file_stem())).await?;
    store::keep(&workbench.data_dir.join("focal"), repository, found).map_err(IoFailure::of("writing focal methods"))
}
