//! Images: from locks to deterministic OCI images, without any package manager or image builder.
//!
//! ```text
//! ToolchainLock + RepositoryLock → recipe (pure) → merged tree → layers → configuration → image → archive
//! ```
//!
//! An image depends only on the locks and [`recipe::RECIPE_VERSION`]. Entries are sorted, owners are numeric, and times
//! are not later than [`tree::SOURCE_DATE_EPOCH`]. No clock, locale, user or directory of the host has an effect.
//! Packages' maintainer scripts are never run. An image's identity is the digest of its configuration, which covers the
//! uncompressed layers but not their compression.

mod archive;
mod builder;
mod catalog;
mod compose;
mod config;
mod content;
mod deb;
mod difference;
mod dockerfile;
mod layer;
mod layout;
mod licenses;
mod path;
mod python;
pub mod recipe;
mod tar_writer;
pub mod tree;
mod trust;
mod used;

#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use builder::ImageBuilder;
pub use catalog::{BuiltImage, Catalog, LoadedImage, LockDigests, Pruned};
pub use compose::{
    LayerRecord, PlannedLayer, compose, compose_recipe, read_index, toolchain_recipe_digest, with_layer,
};
pub(crate) use compose::{keep_layer, remembered as remembered_layer};
pub use config::{agent_environment, agent_tag, environment, layer_title, ready_tag, tag, task_tag, verifier_tag};
#[cfg(test)]
pub(crate) use deb::tests::package as debian_package;
pub(crate) use deb::{PackageFiles, read_files as read_package_files};
pub use difference::{Change, Difference, LayerDifference, difference};
pub use dockerfile::{export_context, render_dockerfile};
pub use layer::Layer;
pub use layout::{write_image_archive, write_image_archive_without};
pub use licenses::{Component, components};
pub use path::{InvalidTreePath, TreePath};
pub use used::Used;

use crate::artifact::store::StoreError;
use crate::data_dir::DataDirError;
use crate::digest::Digest;
use crate::error::{ExitStatus, Failure};
use crate::lock::LayerKind;

/// An image whose blobs are all in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Digest of the configuration: the image's identity.
    pub config_digest: Digest,
    /// Digest of the OCI manifest, which names the compressed layers.
    pub manifest_digest: Digest,
    /// The layers, lowest first.
    pub layers: Vec<Layer>,
}

impl Image {
    /// Returns the beginning of the config digest, which names the image to people.
    pub fn short_id(&self) -> String {
        self.config_digest.hex()[..12].to_owned()
    }

    /// Returns the bytes of its compressed layers.
    pub fn size(&self) -> u64 {
        self.layers.iter().map(|layer| layer.size).sum()
    }

    /// Returns the image's blobs.
    pub fn blobs(&self) -> impl Iterator<Item = Digest> {
        [self.config_digest, self.manifest_digest].into_iter().chain(self.layers.iter().map(|layer| layer.digest))
    }

    /// Returns the digest of the layers that images of the same toolchain and development kit share.
    pub fn toolchain(&self) -> Digest {
        let common = self.layers.iter().filter(|layer| layer.kind.is_of_toolchain());
        let ids: Vec<String> = common.map(|layer| layer.diff_id.to_string()).collect();
        Digest::of(ids.join("\n").as_bytes())
    }
}

/// Why an image can't be made or written.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// A blob is missing or corrupted, or the store can't be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file, or the target of an archive, could not be read or written.
    #[error("{doing} failed: {source}")]
    Io {
        /// The failed operation.
        doing: String,
        /// The cause.
        source: io::Error,
    },
    /// A build context goes into a directory of its own.
    #[error("`{directory}` is not empty")]
    NotEmpty {
        /// The directory.
        directory: PathBuf,
    },
    /// An input is malformed.
    #[error("`{name}` can't be put into an image: {reason}")]
    Archive {
        /// The package or archive.
        name: String,
        /// The reason.
        reason: String,
    },
    /// Two inputs claim one path.
    #[error("`{first}` and `{second}` both bring `/{path}`, with different content")]
    PathConflict {
        /// The path.
        path: TreePath,
        /// The input that had it first.
        first: String,
        /// The other input.
        second: String,
    },
    /// The toolchain has no such development kit.
    #[error("the toolchain lock has no JDK {jdk}, only {known:?}")]
    UnknownJdk {
        /// The requested major version.
        jdk: u32,
        /// The known major versions.
        known: Vec<u32>,
    },
    /// A lock names an impossible entry.
    #[error("a lock can't be made into an image: {reason}")]
    Lock {
        /// The reason.
        reason: String,
    },
    /// The record of a built image can't be read.
    #[error("the image record `{path}` can't be read: {reason}")]
    Catalog {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The content of a layer is no longer in the store.
    #[error("the layer {digest} ({}) is not in the store any more", layer_title(*kind))]
    LayerUnknown {
        /// The part of the image.
        kind: LayerKind,
        /// Digest of its blob.
        digest: Digest,
    },
    /// The data directory can't be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// A value could not be written or read as JSON.
    #[error("an image's description is malformed: {0}")]
    Json(#[from] serde_json::Error),
}

impl Failure for ImageError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Store(error) => error.exit_status(),
            // A data directory of another version ends a command before it makes images.
            Self::Io { .. } | Self::DataDir(_) => ExitStatus::Infrastructure,
            Self::NotEmpty { .. } => ExitStatus::Usage,
            _ => ExitStatus::Mismatch,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NotEmpty { .. } => "name an empty directory, or one that does not exist yet",
            Self::Store(StoreError::Corrupted { path, .. }) => {
                return Some(format!("remove `{}` and run `testevo-sandbox build-images` again", path.display()));
            }
            Self::Store(StoreError::Missing { .. }) => {
                "run `testevo-sandbox build-images`: it fetches what is locked and composes what is missing"
            }
            Self::Store(StoreError::WrongDigest { .. }) => {
                "the origin serves other bytes than were locked; name another one with `--origin`"
            }
            Self::DataDir(error) => return error.hint(),
            Self::Store(StoreError::Io { .. }) | Self::Io { .. } => {
                "check permissions and free space; `testevo-sandbox images prune` frees layers that no image uses"
            }
            Self::Archive { .. } | Self::PathConflict { .. } | Self::Lock { .. } => {
                "resolve the lock anew with `testevo-sandbox lock --update`"
            }
            Self::UnknownJdk { .. } => {
                "a manifest names a JDK that the toolchain lock lacks: run `testevo-sandbox lock`"
            }
            Self::LayerUnknown { .. } => {
                "an earlier image's layers are gone once pruned; `testevo-sandbox build-images` completes the present ones"
            }
            Self::Catalog { .. } | Self::Json(_) => {
                "run `testevo-sandbox build-images`: it writes what is missing or broken anew"
            }
        };
        Some(hint.to_owned())
    }
}

impl ImageError {
    /// Returns the error for an unusable input.
    pub(crate) fn archive(name: &str, reason: impl Display) -> Self {
        Self::Archive { name: name.to_owned(), reason: reason.to_string() }
    }
}
