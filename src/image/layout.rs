//! An image as one file: an OCI image layout that `docker load` also reads.
//!
//! The archive is a function of the image and the tags. Blobs are checked while they are copied; after an error, the
//! bytes written so far are worthless.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _, Write};

use serde_json::json;

use super::compose::check_blob;
use super::tar_writer::{Attributes, Kind, TarWriter};
use super::tree::SOURCE_DATE_EPOCH;
use super::{Image, ImageError};
use crate::artifact::store::Store;
use crate::canonical_json::canonical_json;
use crate::digest::{Digest, HashingWriter};
use crate::lock::ARCHITECTURE;

const FILE: Attributes = Attributes { mode: 0o644, uid: 0, gid: 0, mtime: SOURCE_DATE_EPOCH };
const DIRECTORY: Attributes = Attributes { mode: 0o755, uid: 0, gid: 0, mtime: SOURCE_DATE_EPOCH };

/// Writes the image as one tar archive that OCI tools and `docker load` read.
///
/// `tags` are names for the engine, such as `testevo-sandbox/x:latest`. The layout's index contains the first one.
///
/// # Errors
/// [`ImageError::Store`] if a blob is missing or corrupted, [`ImageError::Io`] if `out` fails.
pub fn write_image_archive(
    image: &Image,
    store: &Store,
    tags: &[String],
    out: &mut dyn Write,
) -> Result<(), ImageError> {
    write_image_archive_without(image, store, tags, &BTreeSet::new(), out)
}

/// Writes the image as [`write_image_archive`] does, but without the layers whose diff ids are in `present`. Docker
/// takes layers that it has from its own storage and does not look for them in the archive. Such an archive serves no
/// other purpose.
///
/// # Errors
/// As [`write_image_archive`].
pub fn write_image_archive_without(
    image: &Image,
    store: &Store,
    tags: &[String],
    present: &BTreeSet<Digest>,
    out: &mut dyn Write,
) -> Result<(), ImageError> {
    let writing = |source| ImageError::Io { doing: "writing an image archive".to_owned(), source };
    let blob_path = |digest: &Digest| format!("blobs/sha256/{}", digest.hex());
    let mut blobs: BTreeMap<Digest, u64> = BTreeMap::new();
    for digest in [image.config_digest, image.manifest_digest] {
        blobs.insert(digest, store.size(&digest)?);
    }
    for layer in image.layers.iter().filter(|layer| !present.contains(&layer.diff_id)) {
        blobs.insert(layer.digest, layer.size);
    }
    let mut tar = TarWriter::new(out);
    for directory in ["blobs", "blobs/sha256"] {
        tar.header(directory, DIRECTORY, Kind::Directory).map_err(writing)?;
    }
    for (digest, size) in &blobs {
        tar.header(&blob_path(digest), FILE, Kind::File(*size)).map_err(writing)?;
        let mut hasher = HashingWriter::new(tar.content());
        // A blob of another length also has another digest.
        let copied = io::copy(&mut store.open_blob(digest)?.take(*size), &mut hasher).map_err(writing)?;
        let (_, found, _) = hasher.finish();
        check_blob(store, digest, found)?;
        tar.pad(copied).map_err(writing)?;
    }
    let mut annotations = serde_json::Map::new();
    if let Some(tag) = tags.first() {
        annotations.insert("io.containerd.image.name".to_owned(), tag.clone().into());
        annotations.insert("org.opencontainers.image.ref.name".to_owned(), tag.clone().into());
    }
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [{
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": image.manifest_digest,
            "size": blobs[&image.manifest_digest],
            "annotations": annotations,
            "platform": {"architecture": ARCHITECTURE, "os": "linux"},
        }],
    });
    let docker = json!([{
        "Config": blob_path(&image.config_digest),
        "Layers": image.layers.iter().map(|layer| blob_path(&layer.digest)).collect::<Vec<_>>(),
        "RepoTags": tags,
    }]);
    for (path, value) in
        [("index.json", index), ("manifest.json", docker), ("oci-layout", json!({"imageLayoutVersion": "1.0.0"}))]
    {
        tar.file(path, FILE, &canonical_json(&value)?).map_err(writing)?;
    }
    tar.finish().and_then(|out| out.flush()).map_err(writing)
}
