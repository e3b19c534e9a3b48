//! Images for agents: a repository's image below a layer of tools that agents expect.

use std::sync::Arc;

use super::workbench::{Workbench, blocking};
use crate::error::CommandError;
use crate::image::recipe::ImageRecipe;
use crate::image::{Catalog, Image};
use crate::lock::{RepositoryLock, ToolchainLock};
use crate::manifest::RepositoryManifest;
use crate::output::counted;

/// Returns the image for agents of the repository's present locks. Finished layers are reused.
///
/// # Errors
/// [`CommandError::Usage`] if no tools of agents are locked; errors of locks, origins and the image.
pub(super) async fn compose(workbench: &Workbench<'_>, manifest: &RepositoryManifest) -> Result<Image, CommandError> {
    Ok(compose_by(workbench, manifest).await?.0)
}

/// As [`compose`], with the image's recipe.
///
/// # Errors
/// As [`compose`].
pub(super) async fn compose_by(
    workbench: &Workbench<'_>,
    manifest: &RepositoryManifest,
) -> Result<(Image, ImageRecipe), CommandError> {
    let (recipe, toolchain, lock) = inputs(workbench, manifest)?;
    let builder = Arc::new(workbench.image_builder().await?);
    let missing = builder.catalog().missing_inputs_of(&recipe)?;
    workbench.fetch(&missing, &toolchain, &lock).await?;
    let repository = manifest.repository.clone();
    let composing = blocking(move || Ok((builder.build_agent(&recipe, &repository)?, recipe)));
    let stage = workbench.context.events.stage("compose image for agents", None, 0);
    stage.during(manifest.repository.as_str(), composing).await
}

/// Tells what composing the image would fetch.
///
/// # Errors
/// As [`compose`].
pub(super) fn preview(
    workbench: &Workbench<'_>,
    catalog: &Catalog,
    manifest: &RepositoryManifest,
) -> Result<(), CommandError> {
    let files = catalog.missing_inputs_of(&recipe(workbench, manifest)?)?.len();
    let fetch = match files {
        0 => String::new(),
        _ => format!("fetch {} and ", counted(files, "file", "files")),
    };
    workbench.context.events.message(format!("would {fetch}compose the image for agents of {}", manifest.repository));
    Ok(())
}

/// Returns the image's recipe.
///
/// # Errors
/// As [`compose`], but for those of fetching and composing.
pub(super) fn recipe(workbench: &Workbench<'_>, manifest: &RepositoryManifest) -> Result<ImageRecipe, CommandError> {
    Ok(inputs(workbench, manifest)?.0)
}

fn inputs(
    workbench: &Workbench<'_>,
    manifest: &RepositoryManifest,
) -> Result<(ImageRecipe, ToolchainLock, RepositoryLock), CommandError> {
    let (lock, toolchain) = (workbench.lock_for(manifest)?, workbench.toolchain()?);
    if toolchain.agent_packages.is_empty() {
        return Err(CommandError::Usage {
            message: "the toolchain lock has no tools of agents".to_owned(),
            hint: format!("run `testevo-sandbox lock {} --agent`", manifest.repository),
        });
    }
    let recipe = ImageRecipe::new(&toolchain, manifest.jdk, Some(&lock))?.with_agent_tools(&toolchain)?;
    Ok((recipe, toolchain, lock))
}
