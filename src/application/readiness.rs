//! Reports in dry runs which repositories can't be executed yet.

use super::Context;
use super::workbench::Workbench;
use crate::error::CommandError;
use crate::image::Catalog;
use crate::lock::LockFileError;
use crate::task::RepositoryName;

/// Tells which of the repositories can't be executed yet, and the next command for them.
pub(super) fn tell_missing_images<'a>(
    repositories: impl IntoIterator<Item = &'a RepositoryName>,
    context: &Context,
) -> Result<(), CommandError> {
    let workbench = Workbench::open(context)?;
    let catalog = Catalog::open(&workbench.data_dir)?;
    for repository in repositories {
        let manifest = workbench.manifest(repository)?;
        let next = match workbench.lock_digests(repository, manifest.jdk) {
            Err(ref error) if let Some(LockFileError::Missing { path }) = error.failure() => {
                let whose = if *path == workbench.toolchain_path() { "the toolchain" } else { repository.as_str() };
                format!("{whose} has no lock: run `testevo-sandbox lock {repository}` first")
            }
            locks => match catalog.up_to_date(repository, locks?)?.filter(|built| built.is_for(&manifest)) {
                Some(_) => continue,
                None => format!(
                    "{repository} has no image of its present locks: run `testevo-sandbox build-images {repository}` first"
                ),
            },
        };
        context.events.warning(next);
    }
    Ok(())
}
