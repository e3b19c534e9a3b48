//! What importing any bundle reads of it, checked.

use std::collections::{BTreeMap, BTreeSet};

use super::Opened;
use crate::artifact::store::Store;
use crate::bundle::{BundleError, Layout, names};
use crate::digest::Digest;
use crate::error::CommandError;
use crate::image::{BuiltImage, LayerRecord};
use crate::task::RepositoryName;

impl Opened {
    /// Checks the bytes of all records. Nothing of a bundle with a damaged record is taken, whether or not it is used here.
    pub(super) fn check_records(&self) -> Result<(), BundleError> {
        let records = self.description.records();
        records.iter().try_for_each(|(digest, size)| self.layout.check_blob(digest, *size))
    }

    /// Checks that `index.json` names the images of the description and nothing else.
    pub(super) fn check_names(&self) -> Result<(), BundleError> {
        names::check(&self.layout, &self.description, &self.index)
    }

    /// Returns the bytes of a record after checking them.
    pub(super) fn record(&self, digest: &Digest) -> Result<Vec<u8>, BundleError> {
        self.layout.read_blob(digest, self.description.records().get(digest).copied().unwrap_or(0))
    }

    /// Returns the image of a repository, whose blobs the bundle lists.
    pub(super) fn image(&self, name: &RepositoryName, record: &Digest) -> Result<BuiltImage, BundleError> {
        let built = names::image(&self.layout, &self.description, name, record)?;
        self.require(built.blobs(), &format!("image of {name}"))?;
        Ok(built)
    }

    /// Checks that there is an image for agents of each of these repositories.
    ///
    /// # Errors
    /// [`CommandError::Usage`] if one is missing; errors of its record.
    pub(super) fn check_agents<'a>(
        &self,
        repositories: impl Iterator<Item = &'a RepositoryName>,
    ) -> Result<(), CommandError> {
        let needed: BTreeSet<&RepositoryName> = repositories.collect();
        for (repository, record) in self.description.images().filter(|(repository, _)| needed.contains(repository)) {
            if self.image(repository, record)?.agent.is_none() {
                return Err(lacks_agent(repository));
            }
        }
        Ok(())
    }

    /// Returns the records of layers.
    pub(super) fn layers(&self) -> Result<Vec<LayerRecord>, BundleError> {
        let mut layers = Vec::new();
        for (recipe, digest) in self.description.layers() {
            let layer: LayerRecord = serde_json::from_slice(&self.record(digest)?)
                .map_err(|error| self.layout.malformed(format!("layer {recipe}: {error}")))?;
            if layer.layer.recipe != *recipe {
                return Err(self.layout.malformed(format!("layer {recipe} is of another recipe")));
            }
            self.require(layer.blobs(), &format!("layer {recipe}"))?;
            layers.push(layer);
        }
        Ok(layers)
    }

    /// Checks that the bundle lists the blobs that a record names.
    pub(super) fn require(&self, blobs: impl IntoIterator<Item = Digest>, of: &str) -> Result<(), BundleError> {
        match blobs.into_iter().find(|digest| !self.description.blobs().contains_key(digest)) {
            Some(missing) => Err(self.layout.malformed(format!("{of} names blob {missing}, which is not listed"))),
            None => Ok(()),
        }
    }

    /// Returns the bundle, or one that it is based on, that has a blob; `None` if none has.
    pub(super) fn holder(&self, digest: &Digest) -> Result<Option<&Layout>, BundleError> {
        for layout in [&self.layout].into_iter().chain(&self.bases) {
            if layout.has(digest)? {
                return Ok(Some(layout));
            }
        }
        Ok(None)
    }

    /// Returns the blobs that the store lacks, with their sizes in bytes. The bundle or a base has all of them.
    pub(super) fn missing(&self, store: &Store) -> Result<BTreeMap<Digest, u64>, BundleError> {
        let (mut missing, mut lacking) = (BTreeMap::new(), Vec::new());
        for (digest, size) in self.description.blobs() {
            // A blob of another size is damaged, and replaced.
            if store.size(digest).is_ok_and(|found| found == *size) {
                continue;
            }
            missing.insert(*digest, *size);
            if self.holder(digest)?.is_none() {
                lacking.push(*digest);
            }
        }
        match lacking.first() {
            Some(first) => Err(self.lacking(lacking.len(), *first)),
            None => Ok(missing),
        }
    }

    /// Puts blobs into the store, each after comparing its bytes with the digest.
    pub(super) fn store(&self, blobs: &BTreeMap<Digest, u64>, store: &Store) -> Result<(), BundleError> {
        for (digest, size) in blobs {
            let holder = self.holder(digest)?.ok_or_else(|| self.lacking(1, *digest))?;
            holder.store_blob(digest, *size, store)?;
        }
        Ok(())
    }

    fn lacking(&self, count: usize, first: Digest) -> BundleError {
        BundleError::Lacking { name: self.layout.name().to_owned(), count, first }
    }
}

/// Returns the error that a bundle has no image for agents of a repository.
pub(super) fn lacks_agent(repository: &RepositoryName) -> CommandError {
    CommandError::Usage {
        message: format!("the bundle has no image for agents of {repository}"),
        hint: "whoever makes it needs `lock --agent` and `build-images --agent` before".to_owned(),
    }
}
