//! Bringing images in: from the store's blobs, or from an archive as `docker load` takes it.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use fs_err as fs;
use futures_util::stream::BoxStream;
use serde::Deserialize;
use tokio_util::io::{StreamReader, SyncIoBridge};

use super::super::{EngineError, StoredImage};
use super::layers::{Layers, Source};
use crate::data_dir::Owner;
use crate::digest::Digest;

/// Longest configuration or manifest of an image that is read, in bytes.
const MAX_DESCRIPTION: u64 = 16 << 20;

/// Opens a layer's bytes.
type Open = Box<dyn Fn() -> Result<Box<dyn Read>, EngineError>>;

/// Unpacks an image's layers from the store, where they stay as they are.
pub(super) async fn from_store(layers: &Arc<Layers>, image: StoredImage) -> Result<(), EngineError> {
    let layers = Arc::clone(layers);
    off_the_runtime(move || {
        let opens: Vec<Open> = image
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
                Box::new(open) as Open
            })
            .collect();
        let sources: Vec<Source<'_>> =
            image.layers.iter().zip(&opens).map(|(layer, open)| Source { diff_id: layer.diff_id, open }).collect();
        let size = image.layers.iter().map(|layer| layer.uncompressed_size).sum();
        layers.add(&image.config_digest, &sources, size)
    })
    .await
}

/// The part of `manifest.json` that is needed.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ArchiveManifest {
    config: String,
    layers: Vec<String>,
}

/// The part of an image's configuration that is needed.
#[derive(Deserialize)]
struct Configuration {
    rootfs: RootFileSystem,
}

#[derive(Deserialize)]
struct RootFileSystem {
    diff_ids: Vec<Digest>,
}

/// Unpacks an image's layers from an archive, which is kept in the meantime: what they are stands at its end.
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
        let kept = fs::create_dir(&spool).and_then(|()| keep_files(&mut reader, &spool)).map_err(failed);
        let loaded = kept.and_then(|files| load(&layers, image, &files));
        fs::remove_dir_all(&spool).map_err(failed)?;
        loaded
    })
    .await
}

/// Writes the archive's files down under numbers, and returns which name has which.
fn keep_files(archive: &mut dyn Read, spool: &std::path::Path) -> io::Result<BTreeMap<String, PathBuf>> {
    let mut files = BTreeMap::new();
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries()? {
        let mut entry = entry?;
        if entry.header().entry_type() != tar::EntryType::Regular {
            continue;
        }
        let name = entry.path()?.to_string_lossy().into_owned();
        let path = spool.join(files.len().to_string());
        io::copy(&mut entry, &mut fs::File::create(&path)?)?;
        files.insert(name, path);
    }
    Ok(files)
}

fn load(layers: &Layers, image: Digest, files: &BTreeMap<String, PathBuf>) -> Result<(), EngineError> {
    let not_loaded = |answer: &str| EngineError::ImageNotLoaded { image, answer: answer.to_owned() };
    let read = |name: &str| -> Result<Vec<u8>, EngineError> {
        let path = files.get(name).ok_or_else(|| not_loaded(&format!("the archive has no `{name}`")))?;
        let mut bytes = Vec::new();
        fs::File::open(path)
            .and_then(|file| file.take(MAX_DESCRIPTION).read_to_end(&mut bytes))
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
        let mut opens: Vec<Open> = Vec::new();
        let mut size = 0;
        for name in &manifest.layers {
            let path = files.get(name).ok_or_else(|| not_loaded(&format!("the archive has no `{name}`")))?.clone();
            size += fs::metadata(&path).map_or(0, |found| found.len());
            opens.push(Box::new(move || {
                let file = fs::File::open(&path)
                    .map_err(|source| EngineError::Layers { doing: "reading an image's archive".into(), source })?;
                Ok(Box::new(file) as Box<dyn Read>)
            }));
        }
        let sources: Vec<Source<'_>> =
            diff_ids.iter().zip(&opens).map(|(diff_id, open)| Source { diff_id: *diff_id, open }).collect();
        return layers.add(&image, &sources, size);
    }
    Err(not_loaded("the archive holds another image"))
}

async fn off_the_runtime(work: impl FnOnce() -> Result<(), EngineError> + Send + 'static) -> Result<(), EngineError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(EngineError::Layers { doing: "unpacking".into(), source: io::Error::other(error) }))
}
