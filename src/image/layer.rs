//! Writing a layer: a tar archive sorted by path, its digest, and its compressed blob in the store.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::ImageError;
use super::path::TreePath;
use super::tar_writer::{Attributes, Kind, TarWriter};
use super::tree::{Entry, Node};
use crate::artifact::store::Store;
use crate::digest::{Digest, HashingWriter};
use crate::lock::LayerKind;

/// Compression level of layers. It does not change an image's identity, which covers only uncompressed layers.
const COMPRESSION_LEVEL: u32 = 6;
/// "Unknown" in gzip's header: the writer's operating system must not show.
const GZIP_OS_UNKNOWN: u8 = 255;

/// A layer whose compressed bytes are in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// The part of the image.
    pub kind: LayerKind,
    /// Digest of the uncompressed tar archive: its identity in an image's configuration.
    pub diff_id: Digest,
    /// Digest of the gzip blob in the store.
    pub digest: Digest,
    /// Size of the blob in bytes.
    pub size: u64,
    /// Size of the uncompressed archive in bytes.
    pub uncompressed_size: u64,
    /// Digest of the layer's recipe, the key of the finished layer.
    pub recipe: Digest,
}

/// Writes the entries as a layer and stores its blob.
pub(crate) fn write_layer(
    entries: &BTreeMap<TreePath, Entry>,
    kind: LayerKind,
    recipe: Digest,
    store: &Store,
) -> Result<Layer, ImageError> {
    write_archive(kind, recipe, store, |out| {
        let mut tar = TarWriter::new(out);
        write_entries(entries, &mut tar, store)?;
        tar.finish().map(drop).map_err(writing)
    })
}

fn writing(source: io::Error) -> ImageError {
    ImageError::Io { doing: "writing a layer".to_owned(), source }
}

/// Stores the archive that a function writes as a layer's blob.
pub(crate) fn write_archive(
    kind: LayerKind,
    recipe: Digest,
    store: &Store,
    write: impl FnOnce(&mut dyn Write) -> Result<(), ImageError>,
) -> Result<Layer, ImageError> {
    let blob = flate2::GzBuilder::new()
        .mtime(0)
        .operating_system(GZIP_OS_UNKNOWN)
        .write(io::BufWriter::with_capacity(256 << 10, store.writer()?), flate2::Compression::new(COMPRESSION_LEVEL));
    let mut out = HashingWriter::new(io::BufWriter::with_capacity(256 << 10, blob));
    write(&mut out)?;
    let (buffer, diff_id, uncompressed_size) = out.finish();
    let gzip = buffer.into_inner().map_err(|error| writing(error.into_error()))?;
    let mut blob = gzip.finish().map_err(writing)?;
    blob.flush().map_err(writing)?;
    let (digest, size) = blob.into_inner().map_err(|error| writing(error.into_error()))?.commit()?;
    Ok(Layer { kind, diff_id, digest, size, uncompressed_size, recipe })
}

fn write_entries<W: Write>(
    entries: &BTreeMap<TreePath, Entry>,
    tar: &mut TarWriter<W>,
    store: &Store,
) -> Result<(), ImageError> {
    let mut first_names: HashMap<(usize, u64), &TreePath> = HashMap::new();
    for (path, entry) in entries {
        let Entry { mode, uid, gid, mtime, ref node } = *entry;
        let attributes = Attributes { mode, uid, gid, mtime };
        match node {
            Node::Directory => tar.header(path.as_str(), attributes, Kind::Directory).map_err(writing)?,
            Node::Symlink(target) => {
                tar.header(path.as_str(), attributes, Kind::Symlink(target)).map_err(writing)?;
            }
            Node::File(content) => {
                if let Some(first) = content.identity().and_then(|identity| first_names.get(&identity)) {
                    tar.header(path.as_str(), attributes, Kind::HardLink(first.as_str())).map_err(writing)?;
                    continue;
                }
                if let Some(identity) = content.identity() {
                    first_names.insert(identity, path);
                }
                tar.header(path.as_str(), attributes, Kind::File(content.size())).map_err(writing)?;
                content.write_to(store, tar.content())?;
                tar.pad(content.size()).map_err(writing)?;
            }
        }
    }
    Ok(())
}
