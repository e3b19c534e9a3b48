//! Lists, compares, exports and prunes built images.

use std::path::PathBuf;

use serde::Serialize;

use super::archives::ArchiveOutput;
use super::workbench::{Workbench, blocking, present};
use super::{Context, agent_images};
use crate::bundle::Audience;
use crate::digest::Digest;
use crate::engine::EngineError;
use crate::error::CommandError;
use crate::execution::container::images::{PrunedImage, prune_loaded, superfluous};
use crate::image::recipe::RECIPE_VERSION;
use crate::image::{
    BuiltImage, Catalog, Component, Difference, Image, ImageError, Pruned, Used, agent_tag,
    components as components_of, difference, export_context, tag, write_image_archive,
};
use crate::manifest::ManifestError;
use crate::output::size;
use crate::task::selector::choose;

/// A built image, compared with the present locks.
pub struct ListedImage {
    /// The image and its inputs.
    pub built: BuiltImage,
    /// Whether it can be used as it is.
    pub state: ImageState,
}

/// Whether an image can be used as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageState {
    /// All its blobs are in the store.
    pub complete: bool,
    /// It was made from the present locks by this version of the recipe.
    pub up_to_date: bool,
    /// It was shown to work for all build sets of its lock.
    pub proven: bool,
}

impl ImageState {
    /// Returns the first thing that the image lacks, in words, or `proven`.
    pub fn name(self) -> &'static str {
        match self {
            Self { complete: false, .. } => "layers missing",
            Self { up_to_date: false, .. } => "outdated",
            Self { proven: false, .. } => "not proven",
            Self { proven: true, .. } => "proven",
        }
    }
}

/// Two images, compared path by path.
pub struct ComparedImages {
    /// The earlier image, or the other repository's.
    pub before: Image,
    /// The image of the repository that was named first.
    pub after: Image,
    /// How they differ.
    pub difference: Difference,
}

impl ComparedImages {
    /// Says whether the images are equal.
    ///
    /// # Errors
    /// [`CommandError::CheckFailed`].
    pub fn verdict(&self) -> Result<(), CommandError> {
        if self.difference.is_empty() {
            return Ok(());
        }
        let (before, after) = (self.before.short_id(), self.after.short_id());
        Err(CommandError::CheckFailed { summary: format!("{before} and {after} differ") })
    }
}

/// The target of an export.
#[derive(Clone, Debug)]
pub enum ImageExport {
    /// An archive for `docker load` and OCI tools.
    Archive(ArchiveOutput),
    /// A directory, empty or missing, for layers and a Dockerfile.
    BuildContext(PathBuf),
}

/// The things that pruning removed, or would remove.
pub struct PrunedImages {
    /// Layers of the store.
    pub layers: Pruned,
    /// Images of the engine.
    pub loaded: Vec<PrunedImage>,
    /// Layers that the built-in engine had unpacked.
    pub unpacked: Vec<UnpackedLayer>,
}

/// An unpacked layer of the built-in engine that is not in use.
#[derive(Debug, Serialize)]
pub struct UnpackedLayer {
    /// The layer.
    pub diff_id: Digest,
    /// Its size on disk in bytes.
    pub bytes: u64,
}

/// Returns the built images of the repositories that the names match; all without names.
///
/// # Errors
/// [`CommandError::Usage`] for a name without an image; errors of locks, manifests and proofs.
pub fn list(names: &[String], context: &Context) -> Result<Vec<ListedImage>, CommandError> {
    let (workbench, catalog) = open(context)?;
    let listed = select(&catalog, names)?.into_iter().map(|built| {
        let state = state(&workbench, &catalog, &built)?;
        Ok(ListedImage { built, state })
    });
    listed.collect()
}

/// Returns the built image of one repository.
///
/// # Errors
/// As [`list`]; [`CommandError::Usage`] for a name that matches several repositories.
pub fn show(name: &str, context: &Context) -> Result<ListedImage, CommandError> {
    let (workbench, catalog) = open(context)?;
    let built = find(&catalog, name)?;
    let state = state(&workbench, &catalog, &built)?;
    Ok(ListedImage { built, state })
}

/// Returns the software inside one repository's image, with the places of its licences.
///
/// # Errors
/// [`CommandError::Usage`] as for [`show`]; [`ImageError`].
pub fn components(name: &str, context: &Context) -> Result<Vec<Component>, CommandError> {
    let (_, catalog) = open(context)?;
    Ok(components_of(&find(&catalog, name)?.image, catalog.store())?)
}

/// Compares a repository's image with another repository's, or else with its own previous one.
///
/// # Errors
/// [`CommandError::Usage`] as for [`show`], and for an image without a previous one; [`ImageError`].
pub fn compare(name: &str, other: Option<&str>, context: &Context) -> Result<ComparedImages, CommandError> {
    let (_, catalog) = open(context)?;
    let built = find(&catalog, name)?;
    let (before, after) = match other {
        Some(other) => (built.image, find(&catalog, other)?.image),
        None => match built.previous {
            Some(previous) => (previous, built.image),
            None => {
                return Err(CommandError::Usage {
                    message: format!("{} has had one image only", built.repository),
                    hint: "name another repository to compare with".to_owned(),
                });
            }
        },
    };
    let _stage = context.events.stage("compare images", None, 0);
    let difference = difference(&before, &after, catalog.store())?;
    Ok(ComparedImages { before, after, difference })
}

/// Exports one repository's image of a kind. A dry run only tells its size.
///
/// # Errors
/// [`CommandError::Usage`] as for [`show`], and where no tools of agents are locked; [`ImageError`].
pub async fn export(
    name: &str,
    audience: Audience,
    target: ImageExport,
    context: &Context,
) -> Result<(), CommandError> {
    let (workbench, catalog) = open(context)?;
    let built = find(&catalog, name)?;
    if context.options.dry_run {
        let (repository, size) = (&built.repository, size(built.image.size()));
        context.events.message(match audience {
            Audience::Scorer => format!("would write the image of {repository}, {size}"),
            Audience::Agent => format!("would write the image for agents of {repository}, {size} and its tools"),
        });
        return Ok(());
    }
    let (image, name) = of_audience(&workbench, &built, audience).await?;
    let (store, umask, jdk) = (catalog.store().clone(), context.umask, built.jdk);
    let write = move || match target {
        ImageExport::BuildContext(directory) => {
            let exporting = |source| ImageError::Io { doing: "exporting a build context".to_owned(), source };
            umask.create_directory(&directory).map_err(exporting)?;
            Ok(export_context(&image, jdk, &store, &directory)?)
        }
        ImageExport::Archive(output) => {
            let io = |source| ImageError::Io { doing: "exporting an image".to_owned(), source };
            output.write(umask, io, |out| write_image_archive(&image, &store, std::slice::from_ref(&name), out))
        }
    };
    let _stage = context.events.stage("write image", None, 0);
    context.until_interrupted(blocking(write)).await
}

/// Loads one repository's image into the engine and returns its name there; `None` after a dry run.
///
/// # Errors
/// As [`export`]; errors of engines.
pub async fn load(name: &str, audience: Audience, context: &Context) -> Result<Option<String>, CommandError> {
    let (workbench, catalog) = open(context)?;
    let built = find(&catalog, name)?;
    if context.options.dry_run {
        context.events.message(format!("would load the image of {}", built.repository));
        return Ok(None);
    }
    let (image, name) = of_audience(&workbench, &built, audience).await?;
    let engine = workbench.engine().await?;
    let loaded = context.until_interrupted(workbench.load_as(engine.as_ref(), &image, &name)).await;
    engine.close().await?;
    loaded?;
    Ok(Some(name))
}

/// Returns an image of the repository with its name in engines.
async fn of_audience(
    workbench: &Workbench<'_>,
    built: &BuiltImage,
    audience: Audience,
) -> Result<(Image, String), CommandError> {
    match audience {
        Audience::Scorer => Ok((built.image.clone(), tag(&built.image, Some(&built.repository), built.jdk))),
        Audience::Agent => {
            // A bundle for agents brings its images without locks and manifests.
            let image = match (&built.agent, present(workbench.toolchain())?) {
                (Some(image), None) => image.clone(),
                _ => agent_images::compose(workbench, &workbench.manifest(&built.repository)?).await?,
            };
            let name = agent_tag(&image, &built.repository);
            Ok((image, name))
        }
    }
}

/// Removes unused layers from the store and from the engine. A dry run only returns them.
///
/// # Errors
/// An interrupt; [`ImageError`], [`EngineError`]. An engine that does not answer is no error: its images stay.
pub async fn prune(context: &Context) -> Result<PrunedImages, CommandError> {
    let ((workbench, _), dry_run) = (open(context)?, context.options.dry_run);
    // No other process builds while the builder exists, so no process is about to use a removed layer.
    let builder = workbench.image_builder().await?;
    let used = Used::of(builder.catalog(), present(workbench.toolchain())?.as_ref())?;
    let loaded = match superfluous(builder.catalog(), &used)?.is_empty() {
        true => Vec::new(),
        false => prune_engine(&workbench, builder.catalog(), &used, dry_run).await?,
    };
    let unpacked = match workbench.store.root().join("unpacked").exists() {
        true => Some(workbench.native()?),
        false => None,
    };
    let events = context.events.clone();
    let remove = move || {
        let unpacked = match unpacked.map(|native| native.prune(&used.diff_ids(), dry_run)).transpose()? {
            None => Vec::new(),
            Some(Some(pruned)) => pruned,
            Some(None) => {
                events.warning("unpacked layers stay: another process runs containers from them");
                Vec::new()
            }
        };
        let unpacked = unpacked.into_iter().map(|(diff_id, bytes)| UnpackedLayer { diff_id, bytes }).collect();
        Ok(PrunedImages { layers: builder.catalog().prune(&used, dry_run)?, loaded, unpacked })
    };
    context.until_interrupted(blocking(remove)).await
}

fn open(context: &Context) -> Result<(Workbench<'_>, Catalog), CommandError> {
    let workbench = Workbench::open(context)?;
    let catalog = Catalog::open(&workbench.data_dir)?;
    Ok((workbench, catalog))
}

fn select(catalog: &Catalog, names: &[String]) -> Result<Vec<BuiltImage>, CommandError> {
    choose(names, catalog.all()?, |built| &built.repository).map_err(|name| CommandError::Usage {
        message: format!("no image was built for `{name}`"),
        hint: "`testevo-sandbox images list` shows what was built, `build-images` builds".to_owned(),
    })
}

fn find(catalog: &Catalog, name: &str) -> Result<BuiltImage, CommandError> {
    let mut found = select(catalog, &[name.to_owned()])?;
    match (found.pop(), found.is_empty()) {
        (Some(built), true) => Ok(built),
        _ => Err(CommandError::Usage {
            message: format!("`{name}` fits more than one repository"),
            hint: "name it as owner/name".to_owned(),
        }),
    }
}

fn state(workbench: &Workbench<'_>, catalog: &Catalog, built: &BuiltImage) -> Result<ImageState, CommandError> {
    let up_to_date = match present(workbench.lock_digests(&built.repository, built.jdk))? {
        Some(locks) => {
            let is_for = match workbench.manifest(&built.repository) {
                Ok(manifest) => built.is_for(&manifest),
                // Without a manifest nothing contradicts the image.
                Err(error) if let Some(ManifestError::Missing { .. }) = error.failure() => true,
                Err(error) => return Err(error),
            };
            is_for && built.locks == locks && built.recipe_version == RECIPE_VERSION
        }
        None => false,
    };
    Ok(ImageState { complete: catalog.is_complete(&built.image), up_to_date, proven: workbench.is_proven(built)? })
}

/// Removes superfluous images from the engine. If no engine answers, they stay for a later time.
async fn prune_engine(
    workbench: &Workbench<'_>,
    catalog: &Catalog,
    used: &Used,
    dry_run: bool,
) -> Result<Vec<PrunedImage>, CommandError> {
    match workbench.engine().await {
        Ok(engine) => {
            let pruned = prune_loaded(engine.as_ref(), catalog, used, dry_run).await;
            engine.close().await?;
            Ok(pruned?)
        }
        Err(error) if let Some(EngineError::Unreachable { .. }) = error.failure() => {
            workbench.context.events.warning(format!("images that were loaded stay: {error}"));
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}
