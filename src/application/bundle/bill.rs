//! The software bill of materials of a new bundle.

use std::collections::BTreeMap;

use crate::artifact::store::Store;
use crate::bundle::bill;
use crate::bundle::licenses::Licenses;
use crate::error::CommandError;
use crate::image::{BuiltImage, components};
use crate::lock::{LayerKind, RepositoryLock, ToolchainLock};

/// What the bill of materials is made of.
#[derive(Default)]
pub(super) struct Bill {
    locks: Vec<RepositoryLock>,
    licenses: Licenses,
}

impl Bill {
    /// Adds a repository's image, and the licences in the POMs of its lock. A POM that the store lacks is read from the image.
    pub(super) fn add(&mut self, built: &BuiltImage, lock: RepositoryLock, store: &Store) -> Result<(), CommandError> {
        let mut in_image = BTreeMap::new();
        for pom in lock.files.iter().filter(|file| file.path.ends_with(".pom")) {
            if store.contains(&pom.sha256) {
                self.licenses.add_pom(&pom.path, &store.read(&pom.sha256)?);
            } else {
                // An image that came with a bundle has its layers here, not what they were made of.
                in_image.insert(pom.path.clone(), pom.sha256);
            }
        }
        if !in_image.is_empty() {
            for layer in built.image.layers.iter().filter(|layer| layer.kind == LayerKind::MavenCache) {
                let blob = store.open_blob(&layer.digest)?;
                let read = self.licenses.add_layer(blob, layer.uncompressed_size, &in_image);
                read.map_err(CommandError::Runtime)?;
            }
        }
        self.locks.push(lock);
        // Images without their layers' records run as well.
        for component in components(built.agent.as_ref().unwrap_or(&built.image), store).unwrap_or_default() {
            let files = component.licenses.iter().map(|path| path.as_str().to_owned());
            self.licenses.add_files(component.name, files);
        }
        Ok(())
    }

    /// Returns the bill's bytes.
    pub(super) fn render(&self, toolchain: &ToolchainLock) -> Result<Vec<u8>, CommandError> {
        bill::bill(toolchain, &self.locks, &self.licenses).map_err(|error| CommandError::Runtime(error.into()))
    }
}
