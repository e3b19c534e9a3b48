//! The software bill of materials of a new bundle.

use std::collections::BTreeMap;

use crate::application::io_failure::IoFailure;
use crate::artifact::store::Store;
use crate::bundle::bill;
use crate::bundle::licenses::Licenses;
use crate::error::CommandError;
use crate::event::EventSink;
use crate::image::{BuiltImage, ImageError, components};
use crate::lock::{LayerKind, RepositoryLock, ToolchainLock};

/// What the bill of materials is made of.
#[derive(Default)]
pub(super) struct Bill {
    locks: Vec<RepositoryLock>,
    licenses: Licenses,
}

impl Bill {
    /// Adds a repository's image, and the licences in the POMs of its lock. A POM that the store lacks is read from the
    /// image. Warns of a layer without a record, because nothing tells which packages and tools are in it.
    pub(super) fn add(
        &mut self,
        built: &BuiltImage,
        lock: RepositoryLock,
        store: &Store,
        events: &EventSink,
    ) -> Result<(), CommandError> {
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
                read.map_err(IoFailure::of("reading licences of the Maven cache"))?;
            }
        }
        self.locks.push(lock);
        let components = match components(built.agent.as_ref().unwrap_or(&built.image), store) {
            Err(error @ ImageError::LayerUnknown { .. }) => {
                events.warning(format!("the bill lacks licences of packages of {}: {error}", built.repository));
                Vec::new()
            }
            found => found?,
        };
        for component in components {
            let files = component.licenses.iter().map(|path| path.as_str().to_owned());
            self.licenses.add_files(component.name, files);
        }
        Ok(())
    }

    /// Returns the bill's bytes.
    pub(super) fn render(&self, toolchain: &ToolchainLock) -> Result<Vec<u8>, CommandError> {
        bill::bill(toolchain, &self.locks, &self.licenses).map_err(CommandError::defect)
    }
}
