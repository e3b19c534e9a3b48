//! The differences between two images, path by path.

use std::collections::BTreeSet;

use serde::Serialize;

use super::compose::indexes;
use super::path::TreePath;
use super::tree::{IndexEntry, LayerIndex};
use super::{Image, ImageError};
use crate::artifact::store::Store;
use crate::lock::LayerKind;

/// How two images differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Differing layers, lowest first.
    pub layers: Vec<LayerDifference>,
    /// Whether the configurations differ beyond their layers: development kit, environment, labels.
    pub configuration: bool,
}

/// How a layer differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LayerDifference {
    /// The part of the image.
    pub kind: LayerKind,
    /// Sorted by path.
    pub changes: Vec<Change>,
}

/// A path whose entries differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The path.
    pub path: TreePath,
    /// The first image's entry; `None` if it has none.
    pub before: Option<IndexEntry>,
    /// The second image's entry; `None` if it has none.
    pub after: Option<IndexEntry>,
}

impl Difference {
    /// Tells whether the images are the same.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty() && !self.configuration
    }
}

/// Returns the changes from `before` to `after`.
///
/// # Errors
/// [`ImageError::Store`] if an index or configuration is missing, [`ImageError::LayerUnknown`].
pub fn difference(before: &Image, after: &Image, store: &Store) -> Result<Difference, ImageError> {
    let (old, new) = (indexes(before, store)?, indexes(after, store)?);
    let empty = LayerIndex::new();
    let mut layers = Vec::new();
    let kinds: BTreeSet<LayerKind> = old.keys().chain(new.keys()).copied().collect();
    for kind in kinds {
        let (old, new) = (old.get(&kind).unwrap_or(&empty), new.get(&kind).unwrap_or(&empty));
        let changes = changes(old, new);
        if !changes.is_empty() {
            layers.push(LayerDifference { kind, changes });
        }
    }
    let configuration = configuration_without_layers(before, store)? != configuration_without_layers(after, store)?;
    Ok(Difference { layers, configuration })
}

fn changes(old: &LayerIndex, new: &LayerIndex) -> Vec<Change> {
    let mut changes: Vec<Change> = old
        .iter()
        .filter(|(path, entry)| new.get(*path) != Some(entry))
        .map(|(path, entry)| (path.clone(), Some(entry.clone()), new.get(path).cloned()))
        .chain(
            new.iter()
                .filter(|(path, _)| !old.contains_key(*path))
                .map(|(path, entry)| (path.clone(), None, Some(entry.clone()))),
        )
        .map(|(path, before, after)| Change { path, before, after })
        .collect();
    changes.sort_by(|left, right| left.path.cmp(&right.path));
    changes
}

fn configuration_without_layers(image: &Image, store: &Store) -> Result<serde_json::Value, ImageError> {
    let mut value: serde_json::Value = serde_json::from_slice(&store.read(&image.config_digest)?)?;
    if let Some(map) = value.as_object_mut() {
        map.remove("rootfs");
        map.remove("history");
    }
    Ok(value)
}
