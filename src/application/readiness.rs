//! Reports in dry runs which repositories can't be executed yet.
//!
//! As in the real command, one repository's error does not keep the others from being looked at.

use super::Context;
use super::failures::Failures;
use super::selection::by_repository;
use super::workbench::Workbench;
use crate::error::CommandError;
use crate::image::Catalog;
use crate::lock::LockFileError;
use crate::manifest::RepositoryManifest;
use crate::task::{RepositoryName, Task};
use crate::workspace::{Repository, WorkspaceError};

/// Tells which repositories of the tasks can't be executed yet, and the next command for each. `executed` says whether a
/// repository needs an image; `done` is the participle for messages, such as `validated`.
///
/// # Errors
/// What would keep repositories from being worked on whatever is locked and built: errors of manifests, locks and
/// sources.
pub(super) async fn tell_unready(
    tasks: &[Task],
    executed: impl Fn(&RepositoryName) -> bool,
    done: &'static str,
    context: &Context,
) -> Result<(), CommandError> {
    let workbench = Workbench::open(context)?;
    let catalog = Catalog::open(&workbench.data_dir)?;
    let groups = by_repository(tasks);
    let mut failures = Failures::new(groups.len(), context);
    let tell = async |repository: &_, tasks: &Vec<&Task>| {
        let manifest = workbench.manifest(repository)?;
        if executed(repository) {
            tell_missing_image(&workbench, &catalog, &manifest)?;
        }
        if sources(&workbench, &manifest, tasks).await?.is_none() {
            context.events.message(format!("would fetch {repository}, whose sources are not here yet"));
        }
        Ok(())
    };
    failures.each(&groups, tell).await?;
    failures.settle(done, Ok(()))
}

/// Opens a repository in a dry run; `None` if the real command would fetch it first.
///
/// # Errors
/// As [`Workbench::repository`], with `--offline` also for sources that are not here.
pub(super) async fn sources(
    workbench: &Workbench<'_>,
    manifest: &RepositoryManifest,
    tasks: &[&Task],
) -> Result<Option<Repository>, CommandError> {
    match workbench.repository(manifest, tasks).await {
        Err(error)
            if !workbench.context.options.offline
                && let Some(WorkspaceError::Offline { .. }) = error.failure() =>
        {
            Ok(None)
        }
        opened => opened.map(Some),
    }
}

fn tell_missing_image(
    workbench: &Workbench<'_>,
    catalog: &Catalog,
    manifest: &RepositoryManifest,
) -> Result<(), CommandError> {
    let repository = &manifest.repository;
    let next = match workbench.lock_digests(repository, manifest.jdk) {
        Err(ref error) if let Some(LockFileError::Missing { path, .. }) = error.failure() => {
            let whose = if *path == workbench.toolchain_path() { "the toolchain" } else { repository.as_str() };
            format!("{whose} has no lock: run `testevo-sandbox lock {repository}` first")
        }
        locks => match catalog.up_to_date(repository, locks?)?.filter(|built| built.is_for(manifest)) {
            Some(_) => return Ok(()),
            None => format!(
                "{repository} has no image of its present locks: run `testevo-sandbox build-images {repository}` first"
            ),
        },
    };
    workbench.context.events.warning(next);
    Ok(())
}
