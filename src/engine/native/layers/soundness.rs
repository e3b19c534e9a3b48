//! Finds damaged unpacked layers, and repairs or removes them.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::PoisonError;

use fs_err as fs;
use serde::Serialize;

use super::super::inventory::{self, Checked, Reading};
use super::{Layers, Source, remove_doomed, remove_tree, removing};
use crate::digest::Digest;
use crate::engine::EngineError;

/// The result of verifying unpacked layers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VerifiedLayers {
    /// Layers that equal their inventories.
    pub sound: usize,
    /// Layers of an earlier program, without inventories. Their next user unpacks them again.
    pub unknown: usize,
    /// Bytes of the sound layers' files.
    pub bytes: u64,
    /// Damaged files.
    pub damaged: Vec<DamagedFile>,
    /// Damaged layers that were removed.
    pub removed: usize,
}

/// A damaged file of an unpacked layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DamagedFile {
    /// The layer's diff id.
    pub layer: Digest,
    /// The file.
    pub file: PathBuf,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl Layers {
    /// Tells whether the image is loaded and this process has checked all its layers already.
    pub(in crate::engine::native) fn is_known(&self, image: &Digest) -> Result<bool, EngineError> {
        let sound = self.sound.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(self.record(image)?.is_some_and(|record| record.layers.iter().all(|layer| sound.contains(layer))))
    }

    /// Tells whether the image is loaded and all its layers are sound. May take as long as reading them.
    pub(in crate::engine::native) fn is_whole(&self, image: &Digest) -> Result<bool, EngineError> {
        let Some(record) = self.record(image)? else { return Ok(false) };
        let mut whole = true;
        for layer in &record.layers {
            match self.check(layer)? {
                Checked::Sound { .. } => {}
                Checked::Unknown => whole = false,
                Checked::Damaged(files) => {
                    self.tell(&files);
                    whole = false;
                }
            }
        }
        Ok(whole)
    }

    /// Returns a file that makes an image's layers unusable; `None` if all are sound.
    pub(in crate::engine::native) fn damage(&self, image: &Digest) -> Result<Option<PathBuf>, EngineError> {
        let Some(record) = self.record(image)? else { return Ok(None) };
        for layer in &record.layers {
            match self.check(layer)? {
                Checked::Sound { .. } => {}
                Checked::Unknown => return Ok(Some(self.tree(layer))),
                Checked::Damaged(files) => return Ok(files.into_iter().next().map(|(path, _)| path)),
            }
        }
        Ok(None)
    }

    fn tell(&self, files: &[(PathBuf, &'static str)]) {
        if let Some((path, what)) = files.first() {
            let more = if files.len() > 1 { format!(", and {} more", files.len() - 1) } else { String::new() };
            let path = path.display();
            self.events.warning(format!("an unpacked layer is damaged and unpacked anew: `{path}`: {what}{more}"));
        }
    }

    /// Remembers that this process may use the layer.
    pub(super) fn remember(&self, layer: Digest) {
        self.sound.lock().unwrap_or_else(PoisonError::into_inner).insert(layer);
    }

    /// Compares a layer with its inventory, once in this process.
    pub(super) fn check(&self, layer: &Digest) -> Result<Checked, EngineError> {
        if self.sound.lock().unwrap_or_else(PoisonError::into_inner).contains(layer) {
            return Ok(Checked::Sound { bytes: 0 });
        }
        let checked = inventory::check(&self.root, layer, &self.tree(layer), Reading::Changed).map_err(checking)?;
        if matches!(checked, Checked::Sound { .. }) {
            self.remember(*layer);
        }
        Ok(checked)
    }

    /// Reads all layers and compares them with their inventories. With `repair`, damaged ones are removed unless
    /// another process may use them.
    pub(in crate::engine::native) fn verify(&self, repair: bool) -> Result<VerifiedLayers, EngineError> {
        let mut verified = VerifiedLayers::default();
        let mut doomed = BTreeSet::new();
        for (layer, tree) in self.trees(&|_| true)? {
            match inventory::check(&self.root, &layer, &tree, Reading::Everything).map_err(checking)? {
                Checked::Sound { bytes } => {
                    verified.sound += 1;
                    verified.bytes += bytes;
                }
                Checked::Unknown => verified.unknown += 1,
                Checked::Damaged(files) => {
                    doomed.insert(layer);
                    let damaged = files.into_iter().map(|(file, reason)| DamagedFile { layer, file, reason });
                    verified.damaged.extend(damaged);
                }
            }
        }
        if repair && !doomed.is_empty() {
            let _lock = self.lock()?;
            if let Some(locked_out) = self.lock_out_others()? {
                let named = self.take_names(&locked_out, &|layer| doomed.contains(layer))?;
                drop(locked_out);
                verified.removed = remove_doomed(&named)?.len();
            }
        }
        Ok(verified)
    }

    /// Unpacks a layer again if its tree is damaged or has no inventory. A tree that turns out to be sound stays.
    pub(super) fn unpack_again(&self, source: &Source<'_>) -> Result<(), EngineError> {
        let (layer, tree) = (&source.diff_id, self.tree(&source.diff_id));
        self.unpack_to(source, &|unfinished| {
            if inventory::are_equal(&tree, unfinished).map_err(checking)? {
                inventory::write(&self.root, layer, &tree).map_err(checking)?;
                return remove_tree(unfinished).map_err(removing);
            }
            // Running containers see the tree, and no process may start one meanwhile.
            let Some(locked_out) = self.lock_out_others()? else {
                return Err(EngineError::LayerDamaged { layer: *layer, file: tree.clone() });
            };
            let doomed = self.take_names(&locked_out, &|other| other == layer)?;
            inventory::write(&self.root, layer, unfinished).map_err(checking)?;
            fs::rename(unfinished, &tree).map_err(checking)?;
            drop(locked_out);
            remove_doomed(&doomed).map(drop)
        })
    }
}

pub(super) fn checking(source: io::Error) -> EngineError {
    EngineError::Layers { doing: "comparing an unpacked layer with what was unpacked".into(), source }
}
