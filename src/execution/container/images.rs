//! Loads images into an engine, once each and by digest, straight from the store, and prunes loaded images.

use std::io::{self, Write};

use bytes::Bytes;
use futures_util::StreamExt as _;
use serde::Serialize;
use tokio::sync::mpsc;

use crate::artifact::store::Store;
use crate::digest::Digest;
use crate::engine::{Engine, EngineError, ImageIdentity, ImageRemoval, StoredImage, StoredLayer};
use crate::error::{ExitStatus, Failure};
use crate::image::{Catalog, Image, ImageError, Layer, Used, write_image_archive};

/// Why an image can't be loaded into an engine.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The image can't be read or written.
    #[error(transparent)]
    Image(#[from] ImageError),
}

impl Failure for LoadError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Engine(error) => error.exit_status(),
            Self::Image(error) => error.exit_status(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Engine(error) => error.hint(),
            Self::Image(error) => error.hint(),
        }
    }
}

/// Loads the image into the engine unless it is there; tells whether it was loaded.
///
/// # Errors
/// [`LoadError`].
pub async fn ensure_loaded(
    engine: &dyn Engine,
    image: &Image,
    store: &Store,
    tags: &[String],
) -> Result<bool, LoadError> {
    engine.introduce(&identity(image, tags));
    if engine.has_image(&image.config_digest).await? {
        return Ok(false);
    }
    if engine.load_stored(&stored(image, store)).await? {
        return Ok(true);
    }
    let (sender, receiver) = mpsc::channel(16);
    let writing = {
        let (image, store, tags) = (image.clone(), store.clone(), tags.to_vec());
        tokio::task::spawn_blocking(move || {
            let mut out = io::BufWriter::with_capacity(1 << 20, Pieces { sender: sender.clone() });
            let written = write_image_archive(&image, &store, &tags, &mut out);
            let written = written.and_then(|()| {
                out.flush().map_err(|source| ImageError::Io { doing: "loading an image".to_owned(), source })
            });
            if written.is_err() {
                // The engine must not take a truncated archive for a complete one.
                let _ = sender.blocking_send(Err(io::Error::other("the image could not be written")));
            }
            written
        })
    };
    let pieces = futures_util::stream::unfold(receiver, |mut receiver| async move {
        let piece = receiver.recv().await?;
        Some((piece, receiver))
    });
    let loaded = engine.load_image(&image.config_digest, pieces.boxed()).await;
    let written = writing
        .await
        .map_err(|error| ImageError::Io { doing: "loading an image".to_owned(), source: io::Error::other(error) })?;
    match (loaded, written) {
        (Ok(()), _) => Ok(true),
        // If the writer found a broken blob, it is the cause of the engine's error.
        (Err(_), Err(error @ ImageError::Store(_))) => Err(error.into()),
        (Err(error), _) => Err(error.into()),
    }
}

/// Returns the image's identity in an engine: its digests, diff ids and names.
pub fn identity(image: &Image, tags: &[String]) -> ImageIdentity {
    ImageIdentity {
        config_digest: image.config_digest,
        manifest_digest: image.manifest_digest,
        layers: image.layers.iter().map(|layer| layer.diff_id).collect(),
        names: tags.to_vec(),
    }
}

fn stored(image: &Image, store: &Store) -> StoredImage {
    let layer = |layer: &Layer| StoredLayer {
        diff_id: layer.diff_id,
        digest: layer.digest,
        uncompressed_size: layer.uncompressed_size,
    };
    StoredImage {
        config_digest: image.config_digest,
        layers: image.layers.iter().map(layer).collect(),
        store: store.clone(),
    }
}

/// A loaded image that pruning removed or would remove.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PrunedImage {
    /// The image.
    pub config_digest: Digest,
    /// Its names.
    pub names: Vec<String>,
    /// Size of its layers in bytes, shared ones included.
    pub size_bytes: u64,
    /// The engine's answer; `None` for a dry run.
    pub removal: Option<ImageRemoval>,
}

/// Returns the images that were loaded for this data directory and are not in use, and removes them unless `dry_run`.
/// Images of earlier toolchains stay if all their layers are in use, because they take no space.
///
/// # Errors
/// [`LoadError`].
pub async fn prune_loaded(
    engine: &dyn Engine,
    catalog: &Catalog,
    used: &Used,
    dry_run: bool,
) -> Result<Vec<PrunedImage>, LoadError> {
    let used_layers = used.diff_ids();
    let mut pruned = Vec::new();
    for config_digest in superfluous(catalog, used)? {
        if let Some(loaded) = catalog.loaded_image(&config_digest)? {
            engine.introduce(&identity(&loaded.image, &loaded.tags));
        }
        let Some(found) = engine.inspect_image(&config_digest).await? else {
            if !dry_run {
                catalog.forget_loaded(&config_digest)?;
            }
            continue;
        };
        if found.layers.iter().all(|layer| used_layers.contains(layer)) {
            continue;
        }
        let removal = if dry_run { None } else { Some(engine.remove_image(&config_digest).await?) };
        if matches!(removal, Some(ImageRemoval::Removed | ImageRemoval::Absent)) {
            catalog.forget_loaded(&config_digest)?;
        }
        pruned.push(PrunedImage { config_digest, names: found.names, size_bytes: found.size_bytes, removal });
    }
    Ok(pruned)
}

/// Returns the loaded images that are not in use.
///
/// # Errors
/// [`ImageError`].
pub fn superfluous(catalog: &Catalog, used: &Used) -> Result<Vec<Digest>, ImageError> {
    Ok(catalog.loaded()?.into_iter().filter(|loaded| !used.images.contains(loaded)).collect())
}

/// A writer whose bytes travel to the engine.
struct Pieces {
    sender: mpsc::Sender<io::Result<Bytes>>,
}

impl Write for Pieces {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.sender
            .blocking_send(Ok(Bytes::copy_from_slice(buffer)))
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
