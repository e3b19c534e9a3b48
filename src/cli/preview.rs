//! What `lock` and `build-images` would do, and what executions lack, under `--dry-run`. Only what is on this machine is read: not even sources are
//! fetched, and nothing is written.

use std::collections::{BTreeMap, BTreeSet};

use super::Context;
use super::build_images::{ProofLevel, needed, selection};
use super::lock::{java, missing_sets};
use super::workbench::{Workbench, by_repository, items, sets_of};
use crate::error::CommandError;
use crate::execution::proof;
use crate::image::Catalog;
use crate::lock::LockFileError;
use crate::output::counted;
use crate::resolution::repository::empty;
use crate::task::{RepositoryName, Task};
use crate::workspace::WorkspaceError;

/// Says what `lock` would resolve.
pub(super) async fn lock(update: bool, tasks: &[Task], context: &Context) -> Result<(), CommandError> {
    let workbench = Workbench::open(context)?;
    let events = &context.events;
    let mut wanted = BTreeSet::new();
    for (repository, tasks) in by_repository(tasks) {
        let manifest = workbench.manifest(&repository)?;
        wanted.insert(manifest.jdk);
        let opened = match workbench.repository(&manifest, &tasks).await {
            Err(CommandError::Workspace(WorkspaceError::Offline { .. })) if !context.options.offline => {
                events.message(format!("would fetch {repository}: its build files are not here yet"));
                continue;
            }
            opened => opened?,
        };
        let found = sets_of(&opened, &manifest, &tasks).await?;
        let covered = match update {
            true => empty(&manifest),
            false => workbench.covering_lock(&manifest)?,
        };
        let missing = missing_sets(&covered, &found.sets);
        let sets = counted(found.sets.len(), "set of build files", "sets of build files");
        events.message(match missing {
            0 => format!("{repository} is locked: {sets}"),
            _ => format!("would resolve {missing} of {sets} of {repository}"),
        });
    }
    let there = workbench.locked_jdks()?;
    let resolved = match update {
        true => wanted,
        false => &wanted - &there,
    };
    if !resolved.is_empty() {
        events.message(format!("would resolve the toolchain with {}", java(&resolved)));
    }
    Ok(())
}

/// Says which of the repositories can't be executed yet, and what to do first.
pub(super) fn images<'a>(
    repositories: impl IntoIterator<Item = &'a RepositoryName>,
    context: &Context,
) -> Result<(), CommandError> {
    let workbench = Workbench::open(context)?;
    let catalog = Catalog::open(&workbench.data_dir)?;
    for repository in repositories {
        let manifest = workbench.manifest(repository)?;
        let next = match workbench.lock_digests(repository, manifest.jdk) {
            Err(CommandError::LockFile(LockFileError::Missing { path })) => {
                let whose = if path == workbench.toolchain_path() { "the toolchain" } else { repository.as_str() };
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

/// Says what `build-images` would fetch, compose and show.
pub(super) async fn build_images(
    level: ProofLevel,
    chosen: &BTreeMap<RepositoryName, Vec<Task>>,
    context: &Context,
) -> Result<(), CommandError> {
    let workbench = Workbench::open(context)?;
    let catalog = Catalog::open(&workbench.data_dir)?;
    let events = &context.events;
    for (repository, tasks) in chosen {
        let manifest = workbench.manifest(repository)?;
        let locks = workbench.lock_digests(repository, manifest.jdk)?;
        let present = catalog.up_to_date(repository, locks)?.filter(|built| built.is_for(&manifest));
        match &present {
            Some(_) => events.message(format!("{repository} has an image of its present locks")),
            None => {
                let (toolchain, lock) = (workbench.toolchain()?, workbench.lock_for(&manifest)?);
                let missing = catalog.missing_inputs(&toolchain, &lock)?;
                let items = items(&missing, &toolchain, &lock)?;
                let bytes: u64 = items.iter().map(|item| item.size).sum();
                let files = counted(items.len(), "file", "files");
                let fetch = format!("fetch {files} ({} MiB) and ", bytes >> 20);
                let fetch = if items.is_empty() { "" } else { &fetch };
                events.message(format!("would {fetch}compose the image of {repository}"));
            }
        }
        if level == ProofLevel::None {
            continue;
        }
        let tasks: Vec<&Task> = tasks.iter().collect();
        let proof = match &present {
            Some(built) => proof::load(&catalog.proof_path(&built.image.config_digest))?,
            None => None,
        };
        let selection = selection(level, &manifest, &tasks)?;
        if proof.as_ref().is_some_and(|proof| proof.shown_for.contains(&selection)) {
            continue;
        }
        let opened = match workbench.repository(&manifest, &tasks).await {
            Err(CommandError::Workspace(WorkspaceError::Offline { .. })) if !context.options.offline => {
                events.message(format!("would fetch {repository}, whose sources are not here yet, to prove its image"));
                continue;
            }
            opened => opened?,
        };
        let found = sets_of(&opened, &manifest, &tasks).await?;
        let needed = needed(level, &tasks, &found, proof.as_ref()).len();
        if needed > 0 {
            let needed = counted(needed, "execution", "executions");
            events.message(format!("would show by {needed} without a network that the image of {repository} works"));
        }
    }
    Ok(())
}
