//! Images: from locks to deterministic OCI images, without any package manager or image builder.
//!
//! ```text
//! ToolchainLock + RepositoryLock → recipe (pure) → merged tree → layers → configuration → image → archive
//! ```
//!
//! Everything is a function of the locks and [`recipe::RECIPE_VERSION`]: entries are sorted, owners numeric, times
//! not later than [`tree::SOURCE_DATE_EPOCH`], and no clock, locale, user or directory of the host is looked at.
//! Packages' maintainer scripts are never run. An image's identity is the digest of its configuration, which covers the
//! uncompressed layers; how they are compressed is no part of it.

mod archive;
mod compose;
mod config;
mod content;
mod deb;
mod layer;
mod layout;
mod path;
mod python;
pub mod recipe;
mod tar_writer;
pub mod tree;
mod trust;

use std::fmt::Display;
use std::io;

use serde::{Deserialize, Serialize};

pub use compose::{LayerRecord, compose, compose_recipe, read_index};
pub use config::{environment, layer_title};
pub use layer::Layer;
pub use layout::{write_image_archive, write_image_archive_without};
pub use path::{InvalidTreePath, TreePath};

use crate::artifact::store::StoreError;
use crate::digest::Digest;

/// An image whose blobs are all in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Digest of the configuration: the image's identity.
    pub config_digest: Digest,
    /// Digest of the OCI manifest, which names the compressed layers.
    pub manifest_digest: Digest,
    /// Lowest first.
    pub layers: Vec<Layer>,
}

/// Why an image can't be made or written.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// A blob is missing or corrupted, or the store can't be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file system, or where an archive goes, refused.
    #[error("{doing} failed: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// The cause.
        source: io::Error,
    },
    /// An input is not what it should be.
    #[error("`{name}` can't be put into an image: {reason}")]
    Archive {
        /// The package or archive.
        name: String,
        /// Why.
        reason: String,
    },
    /// Two inputs claim one path.
    #[error("`{first}` and `{second}` both bring `/{path}`, with different content")]
    PathConflict {
        /// The path.
        path: TreePath,
        /// Who brought it first.
        first: String,
        /// Who brought it again.
        second: String,
    },
    /// The toolchain has no such development kit.
    #[error("the toolchain lock has no JDK {jdk}, only {known:?}")]
    UnknownJdk {
        /// What was asked for.
        jdk: u32,
        /// What is there.
        known: Vec<u32>,
    },
    /// A lock names something impossible.
    #[error("a lock can't be made into an image: {reason}")]
    Lock {
        /// Why.
        reason: String,
    },
    /// A value could not be written or read as JSON.
    #[error("an image's description is malformed: {0}")]
    Json(#[from] serde_json::Error),
}

impl ImageError {
    /// Returns the error for an unusable input.
    pub(crate) fn archive(name: &str, reason: impl Display) -> Self {
        Self::Archive { name: name.to_owned(), reason: reason.to_string() }
    }
}
