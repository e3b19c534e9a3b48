//! Composes an image from its recipe. Each layer is composed, or reused under the digest of its recipe.
//!
//! Memory use does not grow with a layer's size: unpacked files wait in spool files, and archives are written as
//! streams.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::config::{configuration, layer_title, manifest};
use super::content::{Content, SpoolWriter};
use super::layer::{Layer, write_archive, write_layer};
use super::path::TreePath;
use super::recipe::{ImageRecipe, LayerRecipe, Package, RECIPE_VERSION, Source};
use super::tree::{Entry, IndexEntry, LayerIndex, PlacedEntry, Precedence, SOURCE_DATE_EPOCH, Tree};
use super::{Image, ImageError, archive, deb, python, trust};
use crate::artifact::store::{Store, StoreError};
use crate::canonical_json::canonical_json;
use crate::data_dir::write_atomically;
use crate::digest::Digest;
use crate::lock::{LayerKind, RepositoryLock, ToolchainLock};

/// The directory of layers' records, below a store's root.
const RECORDS: &str = "layers";
const MAX_CERTIFICATE_FILE: u64 = 64 << 10;
const MAX_TARBALL_BYTES: u64 = 1 << 30;
const LAYER_RECORD_SCHEMA: u32 = 1;

/// The record of a finished layer. File: `layers/<recipe digest>.json` in the store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LayerRecord {
    schema: u32,
    /// The layer.
    pub layer: Layer,
    /// Blob with the layer's [`LayerIndex`] as JSON lines of path and entry.
    pub index: Digest,
}

impl LayerRecord {
    /// Returns the blobs that the record names.
    pub fn blobs(&self) -> [Digest; 2] {
        [self.layer.digest, self.index]
    }
}

/// Returns the image for the locks. Composes missing layers with as many threads as processors.
///
/// # Errors
/// [`ImageError`]. The store contains only finished layers then.
pub fn compose(
    toolchain: &ToolchainLock,
    jdk: u32,
    repository: Option<&RepositoryLock>,
    store: &Store,
) -> Result<Image, ImageError> {
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    compose_recipe(&ImageRecipe::new(toolchain, jdk, repository)?, store, threads)
}

/// Returns the image for the recipe. Composes missing layers with at most `threads` threads.
///
/// # Errors
/// [`ImageError`].
pub fn compose_recipe(recipe: &ImageRecipe, store: &Store, threads: usize) -> Result<Image, ImageError> {
    let keys = recipe_digests(recipe)?;
    let mut records: Vec<Option<LayerRecord>> = keys.iter().map(|key| remembered(store, key)).collect();
    if records.iter().any(Option::is_none) {
        compose_layers(recipe, &keys, &mut records, store, threads)?;
    }
    image_of(recipe, records.into_iter().flatten().map(|record| record.layer).collect(), store)
}

/// Returns an image, made by the recipe, with one more layer on top. `write` writes the layer as an archive; `key` is the digest
/// of what decides its bytes.
///
/// # Errors
/// [`ImageError`].
pub fn with_layer(
    (image, recipe): (&Image, &ImageRecipe),
    kind: LayerKind,
    key: Digest,
    store: &Store,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<Image, ImageError> {
    let writing = |source| ImageError::Io { doing: format!("writing the layer `{}`", layer_title(kind)), source };
    let own = write_archive(kind, key, store, |out| write(out).map_err(writing))?;
    image_of(recipe, image.layers.iter().cloned().chain([own]).collect(), store)
}

fn image_of(recipe: &ImageRecipe, layers: Vec<Layer>, store: &Store) -> Result<Image, ImageError> {
    let configuration = configuration(recipe, &layers)?;
    let config_digest = store.put(&configuration)?;
    let manifest_digest = store.put(&manifest(config_digest, configuration.len() as u64, &layers)?)?;
    Ok(Image { config_digest, manifest_digest, layers })
}

/// Composes the layers without a record. All archives are unpacked at once. The trees are merged one after another,
/// lowest first. Then the layers are written at once.
fn compose_layers(
    recipe: &ImageRecipe,
    keys: &[Digest],
    records: &mut [Option<LayerRecord>],
    store: &Store,
    threads: usize,
) -> Result<(), ImageError> {
    let missing: Vec<usize> = (0..keys.len()).filter(|index| records[*index].is_none()).collect();
    let sources: Vec<&Source> = missing.iter().flat_map(|index| &recipe.layers[*index].sources).collect();
    let mut unpacked = unpack_all(&sources, store, threads)?.into_iter();
    let mut base: Option<LayerIndex> = None;
    let mut trees: Vec<(usize, BTreeMap<TreePath, Entry>)> = Vec::new();
    for index in missing {
        let layer = &recipe.layers[index];
        if base.is_none()
            && lies_on_base(layer.kind)
            && let Some(record) = &records[0]
        {
            base = Some(read_index(store, record)?);
        }
        let below = base.as_ref().filter(|_| lies_on_base(layer.kind));
        let entries = unpacked.by_ref().take(layer.sources.len()).collect();
        let tree = merge(layer, entries, below, store)?.finish()?;
        if index == 0 {
            base = Some(tree.iter().map(|(path, entry)| (path.clone(), entry.describe())).collect());
        }
        trees.push((index, tree));
    }
    let written = each_at_once(&trees, threads, |(index, entries)| {
        write_and_remember(entries, recipe.layers[*index].kind, keys[*index], store)
    })?;
    for ((index, _), record) in trees.iter().zip(written) {
        records[*index] = Some(record);
    }
    Ok(())
}

fn write_and_remember(
    entries: &BTreeMap<TreePath, Entry>,
    kind: LayerKind,
    key: Digest,
    store: &Store,
) -> Result<LayerRecord, ImageError> {
    let layer = write_layer(entries, kind, key, store)?;
    let index = write_index(store, entries.iter().map(|(path, entry)| (path, entry.describe())))?;
    let record = LayerRecord { schema: LAYER_RECORD_SCHEMA, layer, index };
    let io = |source| ImageError::Io { doing: "remembering a layer".to_owned(), source };
    fs::create_dir_all(records_directory(store)).map_err(io)?;
    write_atomically(&record_path(store, &key), &canonical_json(&record)?).map_err(io)?;
    Ok(record)
}

/// Upper layers are composed on the base alone, so that they are equal in every image that has them. The Maven cache is
/// independent of the base, because it has a directory of its own.
fn lies_on_base(kind: LayerKind) -> bool {
    matches!(kind, LayerKind::Jdk | LayerKind::Tools | LayerKind::Agent)
}

/// A layer that a recipe asks for.
#[derive(Clone, Debug)]
pub struct PlannedLayer {
    /// Digest of its recipe.
    pub recipe: Digest,
    /// The layer, if the store has it.
    pub finished: Option<Layer>,
    /// Digests of the files that it is composed from.
    pub inputs: BTreeSet<Digest>,
}

/// Returns the layers of an image, whether or not they are composed.
pub(crate) fn planned_layers(recipe: &ImageRecipe, store: &Store) -> Result<Vec<PlannedLayer>, ImageError> {
    let planned = recipe.layers.iter().zip(recipe_digests(recipe)?).map(|(layer, recipe)| PlannedLayer {
        recipe,
        finished: remembered(store, &recipe).map(|record| record.layer),
        inputs: layer.sources.iter().filter_map(Source::digest).collect(),
    });
    Ok(planned.collect())
}

/// Returns the digests of the inputs for composing the image that the store lacks.
pub(crate) fn missing_inputs(recipe: &ImageRecipe, store: &Store) -> Result<BTreeSet<Digest>, ImageError> {
    let unfinished = planned_layers(recipe, store)?.into_iter().filter(|layer| layer.finished.is_none());
    Ok(unfinished.flat_map(|layer| layer.inputs).filter(|digest| !store.contains(digest)).collect())
}

/// Returns the identity of a toolchain's image before it is composed: the digest of everything that decides its bytes.
///
/// # Errors
/// As [`ImageRecipe::new`].
pub fn toolchain_recipe_digest(toolchain: &ToolchainLock, jdk: u32) -> Result<Digest, ImageError> {
    Ok(Digest::of(&canonical_json(&recipe_digests(&ImageRecipe::new(toolchain, jdk, None)?)?)?))
}

/// Returns the keys of the layers.
pub(crate) fn recipe_digests(recipe: &ImageRecipe) -> Result<Vec<Digest>, ImageError> {
    let mut keys: Vec<Digest> = Vec::new();
    for layer in &recipe.layers {
        keys.push(recipe_digest(layer, keys.first().copied().filter(|_| lies_on_base(layer.kind)))?);
    }
    Ok(keys)
}

/// Returns the key of a layer: the digest of everything that decides its bytes.
fn recipe_digest(recipe: &LayerRecipe, base: Option<Digest>) -> Result<Digest, ImageError> {
    #[derive(Serialize)]
    struct Key<'a> {
        recipe_version: u32,
        recipe: &'a LayerRecipe,
        base: Option<Digest>,
    }
    Ok(Digest::of(&canonical_json(&Key { recipe_version: RECIPE_VERSION, recipe, base })?))
}

pub(crate) fn records_directory(store: &Store) -> PathBuf {
    store.root().join(RECORDS)
}

fn record_name(key: &Digest) -> String {
    format!("{}.json", key.hex())
}

pub(crate) fn record_path(store: &Store, key: &Digest) -> PathBuf {
    records_directory(store).join(record_name(key))
}

/// Keeps the record of a finished layer from another store. The layer's blobs must be in this store. A present record
/// with its blobs stays.
///
/// # Errors
/// [`ImageError::Io`].
pub(crate) fn keep_layer(store: &Store, record: &LayerRecord) -> Result<(), ImageError> {
    let key = record.layer.recipe;
    if remembered(store, &key).is_some() {
        return Ok(());
    }
    let io = |source| ImageError::Io { doing: "keeping a layer".to_owned(), source };
    fs::create_dir_all(records_directory(store)).map_err(io)?;
    write_atomically(&record_path(store, &key), &canonical_json(record)?).map_err(io)
}

/// Returns the finished layer with this recipe if the store has its blobs.
pub(crate) fn remembered(store: &Store, key: &Digest) -> Option<LayerRecord> {
    // If the record can't be read, the layer is composed again and the record replaced.
    let bytes = store.record(&Path::new(RECORDS).join(record_name(key))).ok()??;
    let record: LayerRecord = serde_json::from_slice(&bytes).ok()?;
    let complete = record.schema == LAYER_RECORD_SCHEMA
        && record.layer.recipe == *key
        && store.size(&record.layer.digest).is_ok_and(|size| size == record.layer.size)
        && store.contains(&record.index);
    complete.then_some(record)
}

/// Returns the content of each layer of an image.
pub(crate) fn indexes(image: &Image, store: &Store) -> Result<BTreeMap<LayerKind, LayerIndex>, ImageError> {
    let mut indexes = BTreeMap::new();
    for layer in &image.layers {
        let Some(record) = remembered(store, &layer.recipe) else {
            return Err(ImageError::LayerUnknown { kind: layer.kind, digest: layer.digest });
        };
        indexes.insert(layer.kind, read_index(store, &record)?);
    }
    Ok(indexes)
}

fn write_index<'a>(
    store: &Store,
    entries: impl Iterator<Item = (&'a TreePath, IndexEntry)>,
) -> Result<Digest, ImageError> {
    let mut writer = store.writer()?;
    for line in entries {
        let mut bytes = canonical_json(&line)?;
        bytes.push(b'\n');
        let io = |source| ImageError::Io { doing: "writing a layer's index".to_owned(), source };
        writer.write_all(&bytes).map_err(io)?;
    }
    Ok(writer.commit()?.0)
}

/// Returns the index of a finished layer.
///
/// # Errors
/// [`ImageError::Store`] if the index's blob is missing or corrupted.
pub fn read_index(store: &Store, record: &LayerRecord) -> Result<LayerIndex, ImageError> {
    let bytes = store.read(&record.index)?;
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Ok(lines.map(serde_json::from_slice::<(TreePath, IndexEntry)>).collect::<Result<_, _>>()?)
}

/// Merges the layer's sources in their order. `unpacked` has the entries of each source that is an archive.
fn merge<'a>(
    recipe: &LayerRecipe,
    mut unpacked: Vec<Vec<PlacedEntry>>,
    below: Option<&'a LayerIndex>,
    store: &Store,
) -> Result<Tree<'a>, ImageError> {
    let mut tree = Tree::new(below);
    let generated: Arc<str> = Arc::from("the recipe");
    for (source, unpacked) in recipe.sources.iter().zip(&mut unpacked) {
        let mut put = |path: &TreePath, entry: Entry| {
            tree.insert(PlacedEntry { path: path.clone(), entry }, &generated, Precedence::Recipe)
        };
        match source {
            Source::Package(Package { name, .. })
            | Source::Tarball { name, .. }
            | Source::PythonDistribution { name, .. } => {
                let origin: Arc<str> = Arc::from(name.as_str());
                for placed in std::mem::take(unpacked) {
                    tree.insert(placed, &origin, Precedence::Package)?;
                }
            }
            Source::Blob { path, digest, size } => {
                let content = Content::Blob { digest: *digest, size: *size };
                put(path, Entry::file(0o644, SOURCE_DATE_EPOCH, content))?;
            }
            Source::Directory { path, mode, owner } => {
                put(path, Entry { uid: *owner, gid: *owner, ..Entry::directory(*mode, SOURCE_DATE_EPOCH) })?;
            }
            Source::Text { path, mode, content } => {
                put(path, Entry::file(*mode, SOURCE_DATE_EPOCH, Content::of(content.as_bytes())))?;
            }
            Source::Symlink { path, target } => put(path, Entry::symlink(target, SOURCE_DATE_EPOCH))?,
            Source::Alternative { path, target } => {
                let neighbour = path.parent().map(|parent| parent.join(target)).transpose();
                let neighbour = neighbour.map_err(|error| ImageError::Lock { reason: error.to_string() })?;
                if !tree.contains(path) && neighbour.is_some_and(|neighbour| tree.contains(&neighbour)) {
                    let placed = PlacedEntry { path: path.clone(), entry: Entry::symlink(target, SOURCE_DATE_EPOCH) };
                    tree.insert(placed, &generated, Precedence::Recipe)?;
                }
            }
            Source::TrustStores => insert_trust_stores(&mut tree, &generated, store)?,
        }
    }
    Ok(tree)
}

fn insert_trust_stores(tree: &mut Tree<'_>, origin: &Arc<str>, store: &Store) -> Result<(), ImageError> {
    let mut certificates = Vec::new();
    for (path, content) in tree.files_within("usr/share/ca-certificates") {
        let file = path.as_str().rsplit('/').next().unwrap_or_default();
        let Some(name) = file.strip_suffix(".crt") else { continue };
        let bytes = content.read(store, MAX_CERTIFICATE_FILE)?;
        let certificate = std::str::from_utf8(&bytes).ok().and_then(|text| trust::parse_pem(name, text));
        let malformed = || ImageError::archive("ca-certificates", format!("`{path}` is no certificate"));
        certificates.push(certificate.ok_or_else(malformed)?);
    }
    for (path, bytes) in [
        ("etc/ssl/certs/ca-certificates.crt", trust::pem_bundle(&certificates).into_bytes()),
        ("etc/ssl/certs/java/cacerts", trust::java_key_store(&certificates)),
    ] {
        let path = path.parse().map_err(|error| ImageError::archive(origin, error))?;
        let entry = Entry::file(0o644, SOURCE_DATE_EPOCH, Content::of(bytes));
        tree.insert(PlacedEntry { path, entry }, origin, Precedence::Recipe)?;
    }
    Ok(())
}

type Unpacked = Result<Vec<PlacedEntry>, ImageError>;

/// Unpacks every archive among the sources, each by one thread, and returns the entries in the sources' order.
fn unpack_all(sources: &[&Source], store: &Store, threads: usize) -> Result<Vec<Vec<PlacedEntry>>, ImageError> {
    let mut queue: Vec<(u64, usize)> = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        if !matches!(source, Source::Blob { .. })
            && let Some(digest) = source.digest()
        {
            queue.push((store.size(&digest)?, index));
        }
    }
    // The largest come first, so that none of them runs alone at the end.
    queue.sort_by(|left, right| right.cmp(left));
    // There are as many spools as threads. A thread takes a spool, continues it and returns it.
    let spools: Mutex<Vec<SpoolWriter>> = Mutex::new(Vec::new());
    let unpacked = each_at_once(&queue, threads, |(_, index)| {
        let free = spools.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut spool = free.map_or_else(|| SpoolWriter::new(store), Ok)?;
        let entries = unpack(sources[*index], store, &mut spool);
        spools.lock().unwrap_or_else(PoisonError::into_inner).push(spool);
        entries
    })?;
    let mut results: Vec<Vec<PlacedEntry>> = Vec::new();
    results.resize_with(sources.len(), Vec::new);
    for ((_, index), entries) in queue.into_iter().zip(unpacked) {
        results[index] = entries;
    }
    Ok(results)
}

/// Returns the results of `work` for each item, in the items' order, with at most `threads` threads. After a failure,
/// no further item begins; the failure of the earliest item is returned.
fn each_at_once<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> Result<R, ImageError> + Sync,
) -> Result<Vec<R>, ImageError> {
    let next = AtomicUsize::new(0);
    let finished: Mutex<Vec<(usize, Result<R, ImageError>)>> = Mutex::new(Vec::new());
    let run = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return };
            let result = work(item);
            if result.is_err() {
                next.store(items.len(), Ordering::Relaxed);
            }
            finished.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(items.len()) {
            scope.spawn(run);
        }
        run();
    });
    let mut finished = finished.into_inner().unwrap_or_else(PoisonError::into_inner);
    finished.sort_by_key(|(index, _)| *index);
    finished.into_iter().map(|(_, result)| result).collect()
}

fn unpack(source: &Source, store: &Store, spool: &mut SpoolWriter) -> Unpacked {
    match source {
        Source::Package(package) => unpack_package(package, store, spool),
        Source::Tarball { name, digest, into } => {
            let file = store.open_verified(digest)?;
            let place = |path: &TreePath| match path.as_str().split_once('/') {
                Some((_, rest)) => into.join(rest).map(Some).map_err(|error| ImageError::archive(name, error)),
                None => Ok(None),
            };
            let decoder = flate2::read::MultiGzDecoder::new(std::io::BufReader::new(file));
            archive::read_tar(&mut archive::Bounded { inner: decoder, left: MAX_TARBALL_BYTES }, name, spool, &place)
        }
        Source::PythonDistribution { name, digest, into } => {
            python::read_distribution(std::io::BufReader::new(store.open_verified(digest)?), name, into, spool)
        }
        Source::Blob { .. }
        | Source::Directory { .. }
        | Source::Text { .. }
        | Source::Symlink { .. }
        | Source::Alternative { .. }
        | Source::TrustStores => Ok(Vec::new()),
    }
}

fn unpack_package(package: &Package, store: &Store, spool: &mut SpoolWriter) -> Unpacked {
    let Package { name, version, architecture, digest, size } = package;
    let file = store.open_verified(digest)?;
    if store.size(digest)? != *size {
        let reason = format!("package `{name}` has another size than {size} bytes");
        return Err(ImageError::Lock { reason });
    }
    let reader = std::io::BufReader::with_capacity(256 << 10, file);
    let content = deb::read_package(reader, name, store, spool, &deb::is_kept)?;
    for (field, expected) in [("Package", name), ("Version", version), ("Architecture", architecture)] {
        let found = content.field(field).unwrap_or_default();
        if found != expected {
            let reason = format!("its {field} is `{}`, the lock says `{expected}`", found.escape_debug());
            return Err(ImageError::archive(name, reason));
        }
    }
    let mut entries = content.entries;
    let path = format!("var/lib/dpkg/status.d/{name}").parse().map_err(|error| ImageError::archive(name, error))?;
    let control = format!("{}\n", content.control.trim_end());
    entries.push(PlacedEntry { path, entry: Entry::file(0o644, SOURCE_DATE_EPOCH, Content::of(control)) });
    Ok(entries)
}

/// Checks that the bytes read of a blob have the blob's digest.
///
/// # Errors
/// [`StoreError::Corrupted`] for another digest.
pub(crate) fn check_blob(store: &Store, digest: &Digest, found: Digest) -> Result<(), StoreError> {
    if found == *digest {
        return Ok(());
    }
    Err(StoreError::Corrupted { expected: *digest, found, path: store.path(digest) })
}
