//! Loads images from the store's blobs, or from an archive in the form of `docker load`.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use fs_err as fs;
use fs_err::os::unix::fs::FileExt as _;
use futures_util::stream::BoxStream;
use serde::Deserialize;
use tokio_util::io::{StreamReader, SyncIoBridge};

use super::super::{EngineError, StoredImage};
use super::layers::{Layers, Source};
use crate::data_dir::Owner;
use crate::digest::Digest;

/// Largest configuration or manifest of an image in bytes.
const MAX_DESCRIPTION: u64 = 16 << 20;

/// Largest number of files in an image's archive. Each is open until the image is loaded.
const MAX_FILES: usize = 256;

/// Opens a layer's bytes.
type Open<'a> = Box<dyn Fn() -> Result<Box<dyn Read>, EngineError> + 'a>;

/// Unpacks an image's layers from the store, whose blobs stay unchanged.
pub(super) async fn from_store(layers: &Arc<Layers>, image: StoredImage) -> Result<(), EngineError> {
    let layers = Arc::clone(layers);
    off_the_runtime(move || {
        let opens: Vec<Open<'_>> = image
            .layers
            .iter()
            .map(|layer| {
                let (store, digest) = (image.store.clone(), layer.digest);
                let open = move || -> Result<Box<dyn Read>, EngineError> {
                    let file = store.open_blob(&digest).map_err(|error| EngineError::Layers {
                        doing: format!("reading the layer {digest}"),
                        source: io::Error::other(error),
                    })?;
                    Ok(Box::new(file))
                };
                Box::new(open) as Open<'_>
            })
            .collect();
        let sources: Vec<Source<'_>> =
            image.layers.iter().zip(&opens).map(|(layer, open)| Source { diff_id: layer.diff_id, open }).collect();
        let size = image.layers.iter().map(|layer| layer.uncompressed_size).sum();
        layers.add(&image.config_digest, &sources, size)
    })
    .await
}

/// The needed part of `manifest.json`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ArchiveManifest {
    config: String,
    layers: Vec<String>,
}

/// The needed part of an image's configuration.
#[derive(Deserialize)]
struct Configuration {
    rootfs: RootFileSystem,
}

#[derive(Deserialize)]
struct RootFileSystem {
    diff_ids: Vec<Digest>,
}

/// Unpacks an image's layers from an archive. The archive is spooled first, because its index is at its end.
pub(super) async fn from_archive(
    layers: &Arc<Layers>,
    owner: &Owner,
    image: Digest,
    archive: BoxStream<'static, io::Result<Bytes>>,
) -> Result<(), EngineError> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let (layers, number) = (Arc::clone(layers), NEXT.fetch_add(1, Ordering::Relaxed));
    let spool = layers.root().join(format!(".unfinished-{owner}-a{number}"));
    let mut reader = SyncIoBridge::new(StreamReader::new(archive));
    off_the_runtime(move || {
        let failed = |source: io::Error| EngineError::Layers { doing: "reading an image's archive".into(), source };
        let files = keep_files(&mut reader, &spool).map_err(failed)?;
        load(&layers, image, &files)
    })
    .await
}

/// A file without a name. It vanishes with its last user, so no sweep has to check whether that user lives.
struct Unnamed(Arc<fs::File>);

impl Unnamed {
    /// Creates the file, which has the name `path` for a moment. A sweep may remove that name at once.
    fn create(path: &Path) -> io::Result<Self> {
        let file = fs::OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(Self(Arc::new(file))),
        }
    }

    /// Returns a reader of its own, from the beginning of the file.
    fn reader(&self) -> impl Read + use<> {
        FromStart { file: Arc::clone(&self.0), position: 0 }
    }
}

/// Reads a file without moving the position of its other users.
struct FromStart {
    file: Arc<fs::File>,
    position: u64,
}

impl Read for FromStart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}

/// Writes the archive's files to disk, and returns them by name.
fn keep_files(archive: &mut dyn Read, spool: &Path) -> io::Result<BTreeMap<String, Unnamed>> {
    let mut files = BTreeMap::new();
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries()? {
        let mut entry = entry?;
        if entry.header().entry_type() != tar::EntryType::Regular {
            continue;
        }
        let name = entry.path()?.to_string_lossy().into_owned();
        if files.len() >= MAX_FILES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("it has more than {MAX_FILES} files")));
        }
        let file = Unnamed::create(spool)?;
        io::copy(&mut entry, &mut &*file.0)?;
        files.insert(name, file);
    }
    Ok(files)
}

fn load(layers: &Layers, image: Digest, files: &BTreeMap<String, Unnamed>) -> Result<(), EngineError> {
    let not_loaded = |answer: &str| EngineError::ImageNotLoaded { image, answer: answer.to_owned() };
    let read = |name: &str| -> Result<Vec<u8>, EngineError> {
        let file = files.get(name).ok_or_else(|| not_loaded(&format!("the archive has no `{name}`")))?;
        let mut bytes = Vec::new();
        file.reader()
            .take(MAX_DESCRIPTION)
            .read_to_end(&mut bytes)
            .map_err(|source| EngineError::Layers { doing: "reading an image's archive".into(), source })?;
        Ok(bytes)
    };
    let manifests: Vec<ArchiveManifest> =
        serde_json::from_slice(&read("manifest.json")?).map_err(|error| not_loaded(&error.to_string()))?;
    for manifest in manifests {
        let configuration = read(&manifest.config)?;
        if Digest::of(&configuration) != image {
            continue;
        }
        let configuration: Configuration =
            serde_json::from_slice(&configuration).map_err(|error| not_loaded(&error.to_string()))?;
        let diff_ids = configuration.rootfs.diff_ids;
        if diff_ids.len() != manifest.layers.len() || diff_ids.is_empty() {
            return Err(not_loaded("it has not as many layers as its configuration says"));
        }
        let mut opens: Vec<Open<'_>> = Vec::new();
        let mut size = 0;
        for name in &manifest.layers {
            let file = files.get(name).ok_or_else(|| not_loaded(&format!("the archive has no `{name}`")))?;
            size += file.0.metadata().map_or(0, |found| found.len());
            opens.push(Box::new(|| Ok(Box::new(file.reader()) as Box<dyn Read>)));
        }
        let sources: Vec<Source<'_>> =
            diff_ids.iter().zip(&opens).map(|(diff_id, open)| Source { diff_id: *diff_id, open }).collect();
        return layers.add(&image, &sources, size);
    }
    Err(not_loaded("the archive holds another image"))
}

/// Runs long work on a thread of its own.
pub(super) async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, EngineError> + Send + 'static,
) -> Result<T, EngineError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(EngineError::Layers { doing: "unpacking".into(), source: io::Error::other(error) }))
}
