//! The software bill of materials of a new bundle.

use std::collections::{BTreeMap, BTreeSet};

use crate::artifact::store::Store;
use crate::bundle::bill;
use crate::error::CommandError;
use crate::image::{BuiltImage, components};
use crate::lock::{RepositoryLock, ToolchainLock};

/// What the bill of materials is made of.
#[derive(Default)]
pub(super) struct Bill {
    locks: Vec<RepositoryLock>,
    licenses: BTreeMap<String, BTreeSet<String>>,
}

impl Bill {
    /// Adds a repository's image.
    pub(super) fn add(&mut self, built: &BuiltImage, lock: RepositoryLock, store: &Store) {
        self.locks.push(lock);
        // Images without their layers' records run as well.
        for component in components(built.agent.as_ref().unwrap_or(&built.image), store).unwrap_or_default() {
            let files = component.licenses.iter().map(|path| path.as_str().to_owned());
            self.licenses.entry(component.name).or_default().extend(files);
        }
    }

    /// Returns the bill's bytes.
    pub(super) fn render(&self, toolchain: &ToolchainLock) -> Result<Vec<u8>, CommandError> {
        bill::bill(toolchain, &self.locks, &self.licenses).map_err(|error| CommandError::Runtime(error.into()))
    }
}
