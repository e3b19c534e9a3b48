//! Builds repositories' images, in sequence or in parallel, and skips images that exist.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use super::catalog::{BuiltImage, Catalog, LockDigests};
use super::compose::compose_recipe;
use super::recipe::ImageRecipe;
use super::{Image, ImageError};
use crate::data_dir::{DataDir, HeldLock};
use crate::lock::{RepositoryLock, ToolchainLock};
use crate::task::RepositoryName;

/// Builds images. While it exists no other process builds or prunes images in the same data directory.
#[derive(Debug)]
pub struct ImageBuilder {
    catalog: Catalog,
    threads: usize,
    /// Held while layers are composed that several images share, so that no two threads compose the same layer.
    shared_layers: Mutex<()>,
    _lock: HeldLock,
}

impl ImageBuilder {
    /// Returns a builder. If another process must finish first, `waiting` is called once with that process.
    ///
    /// # Errors
    /// [`ImageError::DataDir`], [`ImageError::Store`].
    pub fn new(data_dir: &DataDir, waiting: impl FnOnce(&str)) -> Result<Self, ImageError> {
        let lock = data_dir.lock("images", waiting)?;
        let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Ok(Self { catalog: Catalog::open(data_dir)?, threads, shared_layers: Mutex::new(()), _lock: lock })
    }

    /// Returns the catalog of built images.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Composes the repository's image from the store and records it in the catalog. Callable from several threads.
    ///
    /// # Errors
    /// [`ImageError`].
    pub fn build(
        &self,
        toolchain: &ToolchainLock,
        repository: &RepositoryLock,
        locks: LockDigests,
    ) -> Result<BuiltImage, ImageError> {
        let mut recipe = ImageRecipe::new(toolchain, repository.jdk, Some(repository))?;
        let shared = ImageRecipe {
            layers: recipe.layers.extract_if(.., |layer| layer.kind.is_of_toolchain()).collect(),
            ..recipe.clone()
        };
        {
            let _shared = self.shared_layers.lock().unwrap_or_else(PoisonError::into_inner);
            compose_recipe(&shared, self.catalog.store(), self.threads)?;
        }
        let own = std::mem::replace(&mut recipe.layers, shared.layers);
        recipe.layers.extend(own);
        let image: Image = compose_recipe(&recipe, self.catalog.store(), self.threads)?;
        let mut built = BuiltImage::new(repository, image, locks);
        if let Some(earlier) = self.catalog.known(&repository.repository)? {
            let is_other = earlier.image.config_digest != built.image.config_digest;
            built.previous = if is_other { Some(earlier.image) } else { earlier.previous };
        }
        self.catalog.put(&built)?;
        Ok(built)
    }

    /// Composes the repository's image for agents from the store, and records it beside the image for scoring.
    ///
    /// # Errors
    /// [`ImageError`].
    pub fn build_agent(&self, recipe: &ImageRecipe, repository: &RepositoryName) -> Result<Image, ImageError> {
        let image = compose_recipe(recipe, self.catalog.store(), self.threads)?;
        if let Some(mut built) = self.catalog.known(repository)?.filter(|built| built.agent.as_ref() != Some(&image)) {
            built.agent = Some(image.clone());
            self.catalog.put(&built)?;
        }
        Ok(image)
    }
}
