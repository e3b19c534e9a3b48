//! `bundle import` of a bundle for agents: takes its images.

use super::Opened;
use super::summary::Imported;
use crate::application::disk::Needs;
use crate::application::workbench::{Workbench, blocking};
use crate::bundle::BundleError;
use crate::bundle::agents::AgentDescription;
use crate::error::CommandError;
use crate::image::{Catalog, keep_layer};

/// Takes the images of a bundle; with `replace`, also instead of others of the same repositories. The records that name them are written last.
pub(super) async fn take(
    opened: Opened,
    description: &AgentDescription,
    replace: bool,
    workbench: &Workbench<'_>,
) -> Result<Imported, CommandError> {
    opened.check_records()?;
    let layers = opened.layers()?;
    let mut images = Vec::new();
    for (name, repository) in &description.repositories {
        images.push(opened.image(name, &repository.image)?);
    }
    let mut needs = Needs::new(workbench).await;
    needs.bundle(&opened.missing(&workbench.store)?, std::iter::empty());
    needs.ensure().await?;
    // What no record names may have gone to make room.
    let missing = opened.missing(&workbench.store)?;
    let _held = [workbench.hold("import").await?, workbench.hold("images").await?];
    let catalog = Catalog::open(&workbench.data_dir)?;
    let mut new = Vec::new();
    for built in images {
        match catalog.get(&built.repository)? {
            Some(mut present) if present.image == built.image && present.locks == built.locks => {
                if present.agent.is_none() && built.agent.is_some() {
                    present.agent = built.agent;
                    new.push(present);
                }
            }
            Some(_) if !replace => {
                let (name, repository) = (opened.layout.name().to_owned(), built.repository);
                return Err(BundleError::OtherImage { name, repository }.into());
            }
            _ => new.push(built),
        }
    }
    let imported = Imported::of(&opened, &missing);
    if workbench.context.options.dry_run {
        return Ok(imported);
    }
    let store = workbench.store.clone();
    let take = move || {
        for (digest, size) in &missing {
            opened.layout.store_blob(digest, *size, &store)?;
        }
        for layer in &layers {
            keep_layer(&store, layer)?;
        }
        new.iter().try_for_each(|built| Ok(catalog.put(built)?))
    };
    let stage = workbench.context.events.stage("import bundle", None, 0);
    workbench.context.until_interrupted(blocking(take)).await?;
    drop(stage);
    Ok(imported)
}
