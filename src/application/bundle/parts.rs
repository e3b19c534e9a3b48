//! The parts of a new bundle: records, blobs of the store, and files.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fs_err as fs;

use super::directory_of;
use crate::application::io_failure::IoFailure;
use crate::artifact::made;
use crate::artifact::store::Store;
use crate::bundle::description::{Described, ImageReference, Runner};
use crate::bundle::names::references;
use crate::bundle::writing::{Content, NewBundle};
use crate::bundle::{Description, Layout, MadeKind};
use crate::canonical_json::canonical_json;
use crate::digest::Digest;
use crate::error::CommandError;
use crate::execution::container::ToolJars;
use crate::image::{BuiltImage, ImageError, remembered_layer};
use crate::task::RepositoryName;

/// The parts of a bundle that were collected so far.
pub(super) struct Parts {
    store: Store,
    /// Records of finished layers, by the layers' recipes.
    pub(super) layers: BTreeMap<Digest, Digest>,
    /// Things that are made once.
    pub(super) made: Vec<Described>,
    /// The jar that class archives refer to.
    pub(super) runner: Option<Runner>,
    /// The bytes of records.
    pub(super) records: BTreeMap<Digest, Vec<u8>>,
    /// Blobs of the store, with their sizes in bytes.
    pub(super) blobs: BTreeMap<Digest, u64>,
    /// Files with sources or workspaces.
    pub(super) files: BTreeMap<Digest, NewFile>,
}

/// A file that becomes a blob.
pub(super) struct NewFile {
    /// Its size in bytes.
    pub(super) size: u64,
    /// Its path.
    pub(super) path: PathBuf,
}

impl Parts {
    pub(super) fn new(store: Store) -> Self {
        Self {
            store,
            layers: BTreeMap::new(),
            made: Vec::new(),
            runner: None,
            records: BTreeMap::new(),
            blobs: BTreeMap::new(),
            files: BTreeMap::new(),
        }
    }

    /// Returns every record, with its size in bytes.
    pub(super) fn record_sizes(&self) -> BTreeMap<Digest, u64> {
        self.records.iter().map(|(digest, bytes)| (*digest, bytes.len() as u64)).collect()
    }

    /// Returns the file for the sources of a repository.
    pub(super) fn spool(&self, temporary: &Path, repository: &RepositoryName) -> PathBuf {
        temporary.join(format!("sources-{}", repository.file_stem()))
    }

    pub(super) fn record(&mut self, bytes: Vec<u8>) -> Digest {
        let digest = Digest::of(&bytes);
        self.records.insert(digest, bytes);
        digest
    }

    fn blob(&mut self, digest: Digest) -> Result<u64, CommandError> {
        let size = self.store.size(&digest)?;
        self.blobs.insert(digest, size);
        Ok(size)
    }

    /// Adds an image: its blobs, and the records of its layers.
    pub(super) fn image(&mut self, built: &BuiltImage) -> Result<Vec<ImageReference>, CommandError> {
        for digest in built.blobs() {
            self.blob(digest)?;
        }
        for layer in [&built.image].into_iter().chain(&built.agent).flat_map(|image| &image.layers) {
            // Without its record, a layer is as good for executions.
            let Some(record) = remembered_layer(&self.store, &layer.recipe) else { continue };
            for digest in record.blobs() {
                self.blob(digest)?;
            }
            let record = self.record(canonical_json(&record).map_err(ImageError::from)?);
            self.layers.insert(layer.recipe, record);
        }
        Ok(references(built, |digest| self.store.size(digest))?)
    }

    /// Adds a description of what was made, if there is one.
    pub(super) fn made(&mut self, kind: MadeKind, key: Digest) -> Result<(), CommandError> {
        if self.made.iter().any(|made| (made.kind, made.key) == (kind, key)) {
            return Ok(());
        }
        let reading = || IoFailure::of(format!("reading the description {}", key.hex()));
        let bytes = made::read_raw(&self.store, directory_of(kind), &key).map_err(reading())?;
        let Some(bytes) = bytes else { return Ok(()) };
        let blobs = made::blobs_of(&bytes).map_err(io::Error::from).map_err(reading())?;
        if blobs.iter().any(|digest| !self.store.contains(digest)) {
            return Ok(());
        }
        for digest in blobs {
            self.blob(digest)?;
        }
        let record = self.record(bytes);
        self.made.push(Described { kind, key, record });
        Ok(())
    }

    /// Notes the modification time of the runner's jar, which class archives contain.
    pub(super) fn runner(&mut self, jars: &ToolJars) -> Result<(), CommandError> {
        let name = jars.runner.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let modified = fs::metadata(&jars.runner).and_then(|found| found.modified());
        let modified = modified.map_err(IoFailure::of("reading the time of the runner's jar"))?;
        let since = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        if let Ok(jar) = Digest::from_hex(name) {
            self.runner = Some(Runner { jar, modified: since });
        }
        Ok(())
    }

    /// Returns the bundle of a description without the blobs that the base has, and how many these are.
    pub(super) fn bundle(
        self,
        description: &Description,
        images: &[ImageReference],
        base: Option<&Layout>,
    ) -> Result<(NewBundle, usize), CommandError> {
        let [description, manifest, index] = description.render(images).map_err(CommandError::defect)?;
        // What leads to everything else is in every bundle.
        let texts = self.records.into_values().chain([description, manifest]);
        let mut blobs: BTreeMap<Digest, (u64, Content)> =
            texts.map(|bytes| (Digest::of(&bytes), (bytes.len() as u64, Content::Bytes(bytes)))).collect();
        let mut in_base = 0;
        // A registry takes an image by its manifest, whoever has the layers.
        let is_manifest = |digest: &Digest| images.iter().any(|image| image.manifest == *digest);
        let of_store = self.blobs.into_iter();
        let of_store = of_store.map(|(digest, size)| (digest, size, Content::Blob));
        let files = self.files.into_iter();
        let files = files.map(|(digest, file)| (digest, file.size, Content::File(file.path)));
        for (digest, size, content) in of_store.chain(files) {
            match base {
                Some(base) if !is_manifest(&digest) && base.has(&digest)? => in_base += 1,
                _ => {
                    blobs.entry(digest).or_insert((size, content));
                }
            }
        }
        Ok((NewBundle { index, signature: None, blobs }, in_base))
    }
}
