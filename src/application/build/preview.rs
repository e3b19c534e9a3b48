//! Previews `build-images` under `--dry-run`. It reads only this machine, fetches no sources, and writes nothing.

use std::collections::BTreeMap;

use super::{BuildRequest, ProofLevel, ensure_room, needed, selection_digest};
use crate::application::failures::Failures;
use crate::application::readiness::sources;
use crate::application::workbench::{Workbench, items, sets_of};
use crate::application::{Context, agent_images};
use crate::error::CommandError;
use crate::execution::proof;
use crate::image::Catalog;
use crate::output::{counted, size};
use crate::task::{RepositoryName, Task};

/// Tells what `build-images` would fetch, compose and execute.
pub(super) async fn build_images(
    request: &BuildRequest,
    chosen: &BTreeMap<RepositoryName, Vec<Task>>,
    context: &Context,
) -> Result<(), CommandError> {
    let (workbench, level) = (Workbench::open(context)?, request.proof);
    let catalog = Catalog::open(&workbench.data_dir)?;
    let events = &context.events;
    let mut failures = Failures::new(chosen.len(), context);
    let tell = async |repository: &_, tasks: &Vec<Task>| {
        let manifest = workbench.manifest(repository)?;
        let locks = workbench.lock_digests(repository, manifest.jdk)?;
        let present = catalog.up_to_date(repository, locks)?.filter(|built| built.is_for(&manifest));
        match &present {
            Some(_) => events.message(format!("{repository} has an image of its present locks")),
            None => {
                let (toolchain, lock) = (workbench.toolchain()?, workbench.lock_for(&manifest)?);
                let missing = catalog.missing_inputs(&toolchain, &lock)?;
                let items = items(&missing, &toolchain, &lock)?;
                let bytes = items.iter().map(|item| item.size).fold(0, u64::saturating_add);
                let files = counted(items.len(), "file", "files");
                let fetch = format!("fetch {files} ({}) and ", size(bytes));
                let fetch = if items.is_empty() { "" } else { &fetch };
                events.message(format!("would {fetch}compose the image of {repository}"));
            }
        }
        if request.agent {
            agent_images::preview(&workbench, &catalog, &manifest)?;
        }
        if level == ProofLevel::None {
            return Ok(());
        }
        let tasks: Vec<&Task> = tasks.iter().collect();
        let proof = match &present {
            Some(built) => proof::load(&catalog.proof_path(&built.image.config_digest))?,
            None => None,
        };
        let selection = selection_digest(level, &manifest, &tasks)?;
        if proof.as_ref().is_some_and(|proof| proof.shown_for.contains(&selection)) {
            return Ok(());
        }
        let Some(opened) = sources(&workbench, &manifest, &tasks).await? else {
            events.message(format!("would fetch {repository}, whose sources are not here yet, to prove its image"));
            return Ok(());
        };
        let found = sets_of(&opened, &manifest, &tasks).await?;
        let needed = needed(level, &tasks, &found, proof.as_ref()).len();
        if needed > 0 {
            let needed = counted(needed, "execution", "executions");
            events.message(format!("would show by {needed} without a network that the image of {repository} works"));
        }
        Ok(())
    };
    failures.each(chosen, tell).await?;
    failures.settle("built", ensure_room(request, chosen, &workbench).await)
}
