//! Finds the images that pruning keeps: built images, and those of the present toolchain. `lock` and our own jars need
//! the latter before any repository has an image.

use std::collections::BTreeSet;

use super::ImageError;
use super::catalog::Catalog;
use super::compose::{recipe_digests, remembered};
use super::config::configuration;
use super::layer::Layer;
use super::recipe::ImageRecipe;
use crate::digest::Digest;
use crate::lock::ToolchainLock;

/// The images and layers in use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Config digests of images.
    pub images: BTreeSet<Digest>,
    /// Layers of these images, and finished layers of incomplete images.
    pub layers: Vec<Layer>,
}

impl Used {
    /// Returns the layers of the built images, and the finished layers of the toolchain's images.
    ///
    /// # Errors
    /// [`ImageError`].
    pub fn of(catalog: &Catalog, toolchain: Option<&ToolchainLock>) -> Result<Self, ImageError> {
        let mut used = Self::default();
        for built in catalog.all()? {
            for image in [built.image].into_iter().chain(built.agent) {
                used.images.insert(image.config_digest);
                used.layers.extend(image.layers);
            }
        }
        let kits = toolchain.into_iter().flat_map(|toolchain| toolchain.jdks.iter().map(move |kit| (toolchain, kit)));
        for (toolchain, kit) in kits {
            let recipe = ImageRecipe::new(toolchain, kit.major, None)?;
            let keys = recipe_digests(&recipe)?;
            let records = keys.iter().map(|key| remembered(catalog.store(), key));
            let layers: Vec<Layer> = records.flatten().map(|record| record.layer).collect();
            if layers.len() == keys.len() {
                used.images.insert(Digest::of(&configuration(&recipe, &layers)?));
            }
            used.layers.extend(layers);
        }
        Ok(used)
    }

    /// Returns the digests of the uncompressed layers.
    pub fn diff_ids(&self) -> BTreeSet<Digest> {
        self.layers.iter().map(|layer| layer.diff_id).collect()
    }
}
