//! The built images: one small file per repository. So "nothing to do" is a lookup, and images can be listed, compared,
//! exported and pruned without their locks.
//!
//! Files in the data directory: `images/<owner>__<name>.json`, and `images/loaded/<config digest>` for each image that
//! was loaded into an engine. Proofs of images are in `proofs/`.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::compose::{LayerRecord, PlannedLayer, missing_inputs, planned_layers, record_path, records_directory};
use super::layer::Layer;
use super::recipe::{ImageRecipe, RECIPE_VERSION};
use super::{Image, ImageError, Used};
use crate::artifact::store::Store;
use crate::data_dir::{DataDir, write_atomically};
use crate::digest::Digest;
use crate::lock::{RepositoryLock, ToolchainLock};
use crate::manifest::RepositoryManifest;
use crate::task::RepositoryName;

/// Version of the file's schema.
const CATALOG_SCHEMA: u32 = 1;

/// A repository's image and its inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuiltImage {
    schema: u32,
    /// The repository.
    pub repository: RepositoryName,
    /// Major version of its Java development kit.
    pub jdk: u32,
    /// Digest of Maven's arguments when the lock was resolved; `None` if no override of the manifest changes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maven_arguments: Option<Digest>,
    /// Digests of the user's jars in it, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extension_jars: Vec<Digest>,
    /// The image.
    pub image: Image,
    /// The locks of the image.
    pub locks: LockDigests,
    /// [`RECIPE_VERSION`] of the program that built it.
    pub recipe_version: u32,
    /// The image for agents, if one was composed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Image>,
    /// The last different image, for comparison. Pruning does not keep its layers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Image>,
}

/// Digests of the lock files' bytes that an image was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockDigests {
    /// `locks/toolchain.lock`.
    pub toolchain: Digest,
    /// `locks/<owner>__<name>.lock`.
    pub repository: Digest,
}

/// The built images of a data directory.
#[derive(Clone, Debug)]
pub struct Catalog {
    data_dir: DataDir,
    store: Store,
}

/// An image that was loaded into an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedImage {
    /// The image.
    pub image: Image,
    /// Its names in the engine.
    pub tags: Vec<String>,
}

/// What pruning removes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pruned {
    /// Layers that are not in use.
    pub layers: Vec<Layer>,
    /// Bytes of their blobs.
    pub bytes: u64,
}

impl BuiltImage {
    /// Reads a repository's file.
    ///
    /// # Errors
    /// The reason for which it is malformed.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let value: serde_json::Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        match value.get("schema").and_then(serde_json::Value::as_u64) {
            Some(schema) if schema == u64::from(CATALOG_SCHEMA) => {}
            Some(schema) => return Err(format!("it has schema {schema}, this program knows {CATALOG_SCHEMA}")),
            None => return Err("it has no `schema`".to_owned()),
        }
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    pub(crate) fn new(lock: &RepositoryLock, image: Image, locks: LockDigests) -> Self {
        Self {
            schema: CATALOG_SCHEMA,
            repository: lock.repository.clone(),
            jdk: lock.jdk,
            maven_arguments: lock.maven_arguments,
            extension_jars: lock.extension_jars.iter().map(|jar| jar.sha256).collect(),
            image,
            locks,
            recipe_version: RECIPE_VERSION,
            agent: None,
            previous: None,
        }
    }

    /// Returns the blobs of the image, of the one for agents and of the previous different one.
    pub fn blobs(&self) -> Vec<Digest> {
        [&self.image].into_iter().chain(&self.agent).chain(&self.previous).flat_map(Image::blobs).collect()
    }

    /// Tells whether the image's lock was resolved for the manifest as it is now.
    pub fn is_for(&self, manifest: &RepositoryManifest) -> bool {
        self.jdk == manifest.jdk
            && self.maven_arguments == manifest.build.overridden_arguments()
            && manifest.has_extension_jars(self.extension_jars.iter().copied())
    }
}

impl Catalog {
    /// Returns the catalog of the data directory.
    ///
    /// # Errors
    /// [`ImageError::Store`] if the store can't be opened.
    pub fn open(data_dir: &DataDir) -> Result<Self, ImageError> {
        Ok(Self { data_dir: data_dir.clone(), store: Store::of(data_dir)? })
    }

    /// Returns the store of the images' blobs.
    pub fn store(&self) -> &Store {
        &self.store
    }

    fn directory(&self) -> PathBuf {
        self.data_dir.join("images")
    }

    fn path(&self, repository: &RepositoryName) -> PathBuf {
        self.directory().join(format!("{}.json", repository.file_stem()))
    }

    /// Returns the repository's image, if one was built. Its blobs are not checked.
    ///
    /// # Errors
    /// [`ImageError::Catalog`] if its file can't be read.
    pub fn get(&self, repository: &RepositoryName) -> Result<Option<BuiltImage>, ImageError> {
        self.read(self.path(repository))
    }

    /// Returns the repository's image if it was built from these locks by this version of the recipe and all its blobs
    /// exist. There is nothing to do then, and the locks need not be parsed.
    ///
    /// # Errors
    /// [`ImageError::Io`].
    pub fn up_to_date(
        &self,
        repository: &RepositoryName,
        locks: LockDigests,
    ) -> Result<Option<BuiltImage>, ImageError> {
        let built = self.known(repository)?;
        Ok(built.filter(|built| {
            built.locks == locks && built.recipe_version == RECIPE_VERSION && self.is_complete(&built.image)
        }))
    }

    /// Returns the repository's record. A malformed record counts as absent, because building replaces it.
    pub(super) fn known(&self, repository: &RepositoryName) -> Result<Option<BuiltImage>, ImageError> {
        match self.get(repository) {
            Err(ImageError::Catalog { .. }) => Ok(None),
            other => other,
        }
    }

    /// Returns the digests of the locked files that building the image reads and the store lacks. Inputs of finished
    /// layers are not needed.
    ///
    /// # Errors
    /// As [`ImageRecipe::new`].
    pub fn missing_inputs(
        &self,
        toolchain: &ToolchainLock,
        repository: &RepositoryLock,
    ) -> Result<BTreeSet<Digest>, ImageError> {
        self.missing_inputs_of(&ImageRecipe::new(toolchain, repository.jdk, Some(repository))?)
    }

    /// As [`missing_inputs`](Self::missing_inputs), for any image.
    ///
    /// # Errors
    /// [`ImageError::Json`].
    pub fn missing_inputs_of(&self, recipe: &ImageRecipe) -> Result<BTreeSet<Digest>, ImageError> {
        missing_inputs(recipe, &self.store)
    }

    /// Returns the layers that a recipe asks for, whether or not they are composed.
    ///
    /// # Errors
    /// [`ImageError::Json`].
    pub fn planned_layers(&self, recipe: &ImageRecipe) -> Result<Vec<PlannedLayer>, ImageError> {
        planned_layers(recipe, &self.store)
    }

    /// Returns the diff ids of the layers whose blobs the store has. They can be unpacked at any time.
    ///
    /// # Errors
    /// [`ImageError::Io`], [`ImageError::Catalog`].
    pub fn layers_with_blobs(&self) -> Result<BTreeSet<Digest>, ImageError> {
        let images = self.all()?.into_iter().flat_map(|built| [Some(built.image), built.agent]).flatten();
        let recorded = self.layer_records()?.into_iter().map(|record| record.layer);
        let all = images.flat_map(|image| image.layers).chain(recorded);
        let whole = all.filter(|layer| self.store.size(&layer.digest).is_ok_and(|size| size == layer.size));
        Ok(whole.map(|layer| layer.diff_id).collect())
    }

    /// Returns all built images, sorted by repository.
    ///
    /// # Errors
    /// [`ImageError::Catalog`] if a file can't be read.
    pub fn all(&self) -> Result<Vec<BuiltImage>, ImageError> {
        let listing = |source| ImageError::Io { doing: "listing images".to_owned(), source };
        let entries = match fs::read_dir(self.directory()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(listing(error)),
        };
        let mut images = Vec::new();
        for entry in entries {
            let path = entry.map_err(listing)?.path();
            // Unfinished files of killed writers have hidden names.
            let hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
            if !hidden && path.extension().is_some_and(|extension| extension == "json") {
                images.extend(self.read(path)?);
            }
        }
        images.sort_by(|left, right| left.repository.cmp(&right.repository));
        Ok(images)
    }

    fn read(&self, path: PathBuf) -> Result<Option<BuiltImage>, ImageError> {
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(ImageError::Io { doing: "reading an image's record".to_owned(), source }),
        };
        BuiltImage::parse(&bytes).map(Some).map_err(|reason| ImageError::Catalog { path, reason })
    }

    /// Writes the image's record.
    pub(crate) fn put(&self, built: &BuiltImage) -> Result<(), ImageError> {
        let io = |source| ImageError::Io { doing: "remembering an image".to_owned(), source };
        fs::create_dir_all(self.directory()).map_err(io)?;
        write_atomically(&self.path(&built.repository), &serde_json::to_vec_pretty(built)?).map_err(io)
    }

    /// Tells whether all blobs of the image exist with their sizes. Their bytes are checked when they are used.
    pub fn is_complete(&self, image: &Image) -> bool {
        [&image.config_digest, &image.manifest_digest].into_iter().all(|digest| self.store.contains(digest))
            && image.layers.iter().all(|layer| self.store.size(&layer.digest).is_ok_and(|size| size == layer.size))
    }

    /// Returns the path of an image's proof, which need not exist.
    pub fn proof_path(&self, config_digest: &Digest) -> PathBuf {
        self.data_dir.join("proofs").join(format!("{}.json", config_digest.hex()))
    }

    /// Records that an image was loaded into an engine by these names, on behalf of this data directory.
    ///
    /// # Errors
    /// [`ImageError::Io`].
    pub fn remember_loaded(&self, image: &Image, tags: &[String]) -> Result<(), ImageError> {
        let io = |source| ImageError::Io { doing: "remembering a loaded image".to_owned(), source };
        fs::create_dir_all(self.loaded_directory()).map_err(io)?;
        let bytes = serde_json::to_vec(&LoadedImage { image: image.clone(), tags: tags.to_vec() })?;
        write_atomically(&self.loaded_directory().join(image.config_digest.hex()), &bytes).map_err(io)
    }

    /// Returns the record of a loaded image, because not every engine finds one by its config digest. `None` without a
    /// record.
    ///
    /// # Errors
    /// [`ImageError::Io`], [`ImageError::Catalog`].
    pub fn loaded_image(&self, config_digest: &Digest) -> Result<Option<LoadedImage>, ImageError> {
        let path = self.loaded_directory().join(config_digest.hex());
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(ImageError::Io { doing: "reading of a loaded image".to_owned(), source }),
        };
        // Older programs left the file empty.
        if bytes.is_empty() {
            return Ok(None);
        }
        let malformed = |reason: String| ImageError::Catalog { path: path.clone(), reason };
        let loaded: LoadedImage = serde_json::from_slice(&bytes).map_err(|error| malformed(error.to_string()))?;
        match loaded.image.config_digest == *config_digest {
            true => Ok(Some(loaded)),
            false => Err(malformed(format!("it is of the image {}", loaded.image.config_digest))),
        }
    }

    /// Removes the record of a loaded image; a missing record is no error.
    ///
    /// # Errors
    /// [`ImageError::Io`].
    pub fn forget_loaded(&self, config_digest: &Digest) -> Result<(), ImageError> {
        match fs::remove_file(self.loaded_directory().join(config_digest.hex())) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(ImageError::Io { doing: "forgetting a loaded image".to_owned(), source: error })
            }
            _ => Ok(()),
        }
    }

    /// Returns the config digests of all images that were loaded on behalf of this data directory, sorted. Images of
    /// other data directories in the same engine are not listed.
    ///
    /// # Errors
    /// [`ImageError::Io`].
    pub fn loaded(&self) -> Result<Vec<Digest>, ImageError> {
        let io = |source| ImageError::Io { doing: "listing loaded images".to_owned(), source };
        let entries = match fs::read_dir(self.loaded_directory()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io(error)),
        };
        let mut loaded = Vec::new();
        for entry in entries {
            let name = entry.map_err(io)?.file_name();
            loaded.extend(name.to_str().and_then(|name| Digest::from_hex(name).ok()));
        }
        loaded.sort();
        Ok(loaded)
    }

    fn loaded_directory(&self) -> PathBuf {
        self.directory().join("loaded")
    }

    /// Returns the layers that are not in use, and removes them unless `dry_run`.
    ///
    /// # Errors
    /// [`ImageError::Io`], [`ImageError::Store`].
    pub fn prune(&self, used: &Used, dry_run: bool) -> Result<Pruned, ImageError> {
        let used_recipes: BTreeSet<Digest> = used.layers.iter().map(|layer| layer.recipe).collect();
        let used: BTreeSet<Digest> = used.layers.iter().map(|layer| layer.digest).collect();
        let mut pruned = Pruned::default();
        for record in self.layer_records()? {
            if used_recipes.contains(&record.layer.recipe) {
                continue;
            }
            // The record goes first: without it, no process takes the layer for finished.
            if !dry_run {
                let removed = fs::remove_file(record_path(&self.store, &record.layer.recipe));
                removed.map_err(|source| ImageError::Io { doing: "pruning".to_owned(), source })?;
            }
            if used.contains(&record.layer.digest) {
                continue;
            }
            if !dry_run {
                self.store.remove(&record.layer.digest)?;
                self.store.remove(&record.index)?;
            }
            pruned.bytes += record.layer.size;
            pruned.layers.push(record.layer);
        }
        pruned.layers.sort_by_key(|layer| (layer.kind, layer.digest));
        Ok(pruned)
    }

    fn layer_records(&self) -> Result<Vec<LayerRecord>, ImageError> {
        let io = |source| ImageError::Io { doing: "listing layers".to_owned(), source };
        let entries = match fs::read_dir(records_directory(&self.store)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io(error)),
        };
        let mut records = Vec::new();
        for entry in entries {
            let bytes = fs::read(entry.map_err(io)?.path()).map_err(io)?;
            // A record that can't be read names no layer, so there is nothing to remove for it.
            if let Ok(record) = serde_json::from_slice::<LayerRecord>(&bytes) {
                records.push(record);
            }
        }
        Ok(records)
    }
}
