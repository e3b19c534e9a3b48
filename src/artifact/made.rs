//! The cache of products. A product takes long to make, such as a prepared revision or a class archive, so it is made once.
//! Its description lies under a key in a directory of the store, and is pruned once it is unused.
//!
//! A description names the product's blobs in the store. It appears by one atomic rename after its blobs, so that a killed
//! or a second maker does no harm. Every blob is checked before its first use in a process, and again after its file
//! changed. A product with a damaged blob is made again. Makers in several processes wait for one another.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use fs_err as fs;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

use super::store::{Store, StoreError};
use crate::data_dir::{DataDir, DataDirError, write_atomically};
use crate::digest::Digest;
use crate::event::EventSink;
use crate::thread::blocking;

/// The kind of a description.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its directory below the store's root.
    pub directory: &'static str,
    /// Version of the description's schema. A description of another version is made again.
    pub schema: u32,
    /// Name for people, with its article.
    pub name: &'static str,
}

/// Errors of finding or keeping a product.
#[derive(Debug, thiserror::Error)]
pub enum MadeError {
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The lock could not be taken.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
}

/// A product, as its description has it.
pub trait Described: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The kind.
    const KIND: Kind;

    /// Returns the blobs of the product.
    fn blobs(&self) -> Vec<Digest>;
}

/// The result of making a product.
pub enum Fresh<T> {
    /// The product is kept.
    Kept(T),
    /// A fault of ours prevented it. The next request tries again.
    Passing(T),
}

#[derive(Serialize, Deserialize)]
struct Description<T> {
    schema: u32,
    key: Digest,
    /// The value's blobs, listed for garbage collection, which does not interpret values.
    blobs: Vec<Digest>,
    value: T,
}

/// Returns the blobs that a description names. Every digest counts in a description of an earlier program, which has no
/// list of blobs, because that program may still run.
///
/// # Errors
/// `description` is not JSON, or its list contains something other than digests.
pub fn blobs_of(description: &[u8]) -> serde_json::Result<Vec<Digest>> {
    let description: serde_json::Value = serde_json::from_slice(description)?;
    match description.get("blobs") {
        Some(blobs) => Vec::deserialize(blobs),
        None => Ok(digests_in(&description)),
    }
}

/// Returns every digest in a value's strings.
fn digests_in(value: &serde_json::Value) -> Vec<Digest> {
    match value {
        serde_json::Value::String(text) => {
            text.parse().ok().or_else(|| Digest::from_hex(text).ok()).into_iter().collect()
        }
        serde_json::Value::Array(values) => values.iter().flat_map(digests_in).collect(),
        serde_json::Value::Object(fields) => fields.values().flat_map(digests_in).collect(),
        _ => Vec::new(),
    }
}

type Known<T> = HashMap<Digest, Arc<OnceCell<Arc<T>>>>;

/// The products of one kind in a data directory, for one process.
pub struct Made<T> {
    data_dir: DataDir,
    store: Store,
    events: EventSink,
    /// Products that this process has made or found.
    known: Mutex<Known<T>>,
    marks: UseMarks,
}

impl<T: Described> Made<T> {
    /// Returns the products of `data_dir`.
    pub fn new(data_dir: &DataDir, store: &Store, events: &EventSink) -> Self {
        let (data_dir, store, events) = (data_dir.clone(), store.clone(), events.clone());
        Self { data_dir, store, events, known: Mutex::default(), marks: UseMarks::default() }
    }

    /// Returns the store of the blobs.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the receiver of messages.
    pub fn events(&self) -> &EventSink {
        &self.events
    }

    /// Returns the product. Makes it if the store lacks its description or one of its blobs.
    ///
    /// # Errors
    /// The maker's error, or [`MadeError`].
    pub async fn get<E: From<MadeError>>(
        &self,
        key: Digest,
        make: impl AsyncFnOnce() -> Result<Fresh<T>, E>,
    ) -> Result<Arc<T>, E> {
        let cell = self.whole_cell(key).await?;
        let mut passing = false;
        // A second request in this process waits for the first.
        let found = cell.get_or_try_init(|| async {
            if let Some(found) = self.load(key).await? {
                return Ok(Arc::new(found));
            }
            // A second process waits too.
            let (data_dir, events) = (self.data_dir.clone(), self.events.clone());
            let _held = blocking(move || {
                let waiting =
                    |owner: &str| events.message(format!("waiting for {owner}, which makes {}", T::KIND.name));
                Ok::<_, MadeError>(data_dir.lock(&format!("{}-{}", T::KIND.directory, &key.hex()[..2]), waiting)?)
            })
            .await?;
            if let Some(found) = self.load(key).await? {
                return Ok(Arc::new(found));
            }
            Ok::<_, E>(Arc::new(match make().await? {
                Fresh::Kept(made) => keep(&self.store, key, made).map_err(MadeError::from)?,
                Fresh::Passing(made) => {
                    passing = true;
                    made
                }
            }))
        });
        let found = found.await.cloned()?;
        // Marked as used, because a run may take longer than the age at which unused products are pruned.
        if passing || !self.marks.mark(&path::<T>(&self.store, key)).map_err(MadeError::from)? {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            // The next request tries again, unless another one has begun.
            if known.get(&key).is_some_and(|there| Arc::ptr_eq(there, &cell)) {
                known.remove(&key);
            }
        }
        Ok(found)
    }

    /// Returns the cell of a product in this process. The cell is empty if the process does not know the product yet, or if one
    /// of the blobs was damaged or removed since.
    async fn whole_cell(&self, key: Digest) -> Result<Arc<OnceCell<Arc<T>>>, MadeError> {
        let cell = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(key).or_default())
        };
        let Some(found) = cell.get().cloned() else { return Ok(cell) };
        let store = self.store.clone();
        let check = move || Ok::<_, MadeError>(found.blobs().iter().try_for_each(|blob| store.sound(blob).map(drop)));
        match blocking(check).await? {
            Ok(()) => Ok(cell),
            Err(StoreError::Missing { .. } | StoreError::Corrupted { .. }) => {
                let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
                // Unless another request makes it again already.
                if known.get(&key).is_some_and(|there| Arc::ptr_eq(there, &cell)) {
                    known.remove(&key);
                }
                Ok(Arc::clone(known.entry(key).or_default()))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn load(&self, key: Digest) -> Result<Option<T>, MadeError> {
        let (store, events) = (self.store.clone(), self.events.clone());
        blocking(move || find(&store, key, &events)).await
    }
}

/// Keeps a product, whose blobs must be in the store.
///
/// # Errors
/// I/O errors of writing the description.
pub fn keep<T: Described>(store: &Store, key: Digest, value: T) -> io::Result<T> {
    let description = Description { schema: T::KIND.schema, key, blobs: value.blobs(), value };
    let bytes = serde_json::to_vec(&description).map_err(io::Error::other)?;
    fs::create_dir_all(store.root().join(T::KIND.directory))?;
    write_atomically(&path::<T>(store, key), &bytes)?;
    Ok(description.value)
}

/// Returns the described product if all its blobs are in the store and sound. Removes damaged blobs, so that the product
/// is made again.
///
/// # Errors
/// I/O errors of reading the description or a blob.
pub fn find<T: Described>(store: &Store, key: Digest, events: &EventSink) -> Result<Option<T>, MadeError> {
    let path = path::<T>(store, key);
    let mut bytes = Vec::new();
    match fs::File::open(&path) {
        Ok(mut file) => {
            // Marked as used before its blobs are checked, so that pruning does not remove it meanwhile.
            file.file().set_modified(SystemTime::now())?;
            file.read_to_end(&mut bytes)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => match read_raw(store, T::KIND.directory, &key)? {
            Some(above) => bytes = above,
            None => return Ok(None),
        },
        Err(error) => return Err(error.into()),
    }
    let Some(description) = read::<T>(&bytes).filter(|description| description.key == key) else {
        tracing::warn!(path = %path.display(), "{} can't be read and is made anew", T::KIND.name);
        return Ok(None);
    };
    let mut whole = true;
    for digest in &description.blobs {
        match store.sound(digest) {
            Ok(_) => {}
            Err(StoreError::Missing { .. }) => whole = false,
            Err(StoreError::Corrupted { path, .. }) => {
                events.warning(format!("`{}`, a blob of {}, is damaged and made anew", path.display(), T::KIND.name));
                // One of a store above stays there.
                store.remove(digest)?;
                whole = false;
            }
            Err(error) => return Err(error.into()),
        }
    }
    if !whole {
        return Ok(None);
    }
    // What was found in a store above is found here the next time.
    keep_raw(store, T::KIND.directory, &key, &bytes)?;
    Ok(Some(description.value))
}

/// Returns the bytes of a description in a directory of the store; `None` if there is none. They are not checked.
///
/// # Errors
/// I/O errors of reading the description.
pub fn read_raw(store: &Store, directory: &str, key: &Digest) -> io::Result<Option<Vec<u8>>> {
    store.record(&Path::new(directory).join(record_name(key)))
}

/// Keeps the bytes of a description from another store. Its blobs must be in this store. A present description stays.
///
/// # Errors
/// I/O errors of writing the description.
pub fn keep_raw(store: &Store, directory: &str, key: &Digest, bytes: &[u8]) -> io::Result<()> {
    let path = raw_path(store, directory, key);
    if path.exists() {
        return Ok(());
    }
    fs::create_dir_all(store.root().join(directory))?;
    write_atomically(&path, bytes)
}

fn raw_path(store: &Store, directory: &str, key: &Digest) -> PathBuf {
    store.root().join(directory).join(record_name(key))
}

fn record_name(key: &Digest) -> String {
    format!("{}.json", key.hex())
}

/// Returns the key of the product that is made of these inputs.
pub fn key<T: Described>(inputs: &impl Serialize) -> Digest {
    super::key::key(T::KIND.directory, T::KIND.schema, inputs)
}

fn path<T: Described>(store: &Store, key: Digest) -> PathBuf {
    raw_path(store, T::KIND.directory, &key)
}

fn read<T: Described>(bytes: &[u8]) -> Option<Description<T>> {
    let read: Description<T> = serde_json::from_slice(bytes).ok()?;
    // Garbage collection keeps only the listed blobs, so the list must contain all that the value needs.
    let whole = read.value.blobs().iter().all(|digest| read.blobs.contains(digest));
    (read.schema == T::KIND.schema && whole).then_some(read)
}

/// Decides which products pruning keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrunePolicy {
    /// Products that were used within this time always stay, because a run may be using them.
    pub always: Duration,
    /// Products that were not used for this time are removed.
    pub age: Duration,
    /// If a kind takes more bytes, the least recently used products are removed.
    pub most_bytes: u64,
}

/// The result of pruning, or of its dry run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Number of removed products.
    pub removed: usize,
    /// Bytes of the blobs of products that stay. Blobs that several products share count once.
    pub kept_bytes: u64,
}

/// Marks a description as used now, so that pruning keeps it. A missing description is no error.
///
/// # Errors
/// I/O errors of the description's file.
pub fn mark_used<T: Described>(store: &Store, key: Digest) -> io::Result<()> {
    match fs::File::open(path::<T>(store, key)).and_then(|file| file.file().set_modified(SystemTime::now())) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes descriptions of products. Their blobs become garbage of the store. An unreadable description is removed as
/// well, because it would be made again.
///
/// # Errors
/// I/O errors of listing, reading and removing descriptions.
pub fn prune<T: Described>(store: &Store, keeping: &PrunePolicy, dry_run: bool) -> io::Result<Pruned> {
    let entries = match fs::read_dir(store.root().join(T::KIND.directory)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Pruned::default()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        // Unfinished files have other names.
        if stem.is_some_and(|stem| Digest::from_hex(stem).is_ok()) {
            found.push((fs::metadata(&path)?.modified()?, path));
        }
    }
    found.sort();
    let (now, mut counted, mut pruned) = (SystemTime::now(), BTreeSet::new(), Pruned::default());
    // The most recently used first.
    for (used, path) in found.into_iter().rev() {
        let unused = now.duration_since(used).unwrap_or_default();
        let blobs = read::<T>(&fs::read(&path)?).map(|description| BTreeSet::from_iter(description.blobs));
        let mut bytes = 0;
        for digest in blobs.iter().flatten().filter(|digest| !counted.contains(*digest)) {
            bytes += match fs::metadata(store.path(digest)) {
                Ok(blob) => blob.len(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
                Err(error) => return Err(error),
            };
        }
        let fits =
            blobs.is_some() && unused < keeping.age && pruned.kept_bytes.saturating_add(bytes) <= keeping.most_bytes;
        if fits || unused < keeping.always {
            pruned.kept_bytes = pruned.kept_bytes.saturating_add(bytes);
            counted.extend(blobs.into_iter().flatten());
        } else if dry_run || remove_unused(&path, used)? {
            pruned.removed += 1;
        }
    }
    Ok(pruned)
}

/// Removes a description unless it was used since `used`. Tells whether it was removed.
fn remove_unused(path: &Path, used: SystemTime) -> io::Result<bool> {
    match fs::metadata(path).and_then(|found| found.modified()) {
        Ok(modified) if modified != used => Ok(false),
        Ok(_) => fs::remove_file(path).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// Marks descriptions as used at intervals, so that a long use keeps them from being pruned.
struct UseMarks {
    every: Duration,
    last: Mutex<HashMap<PathBuf, Instant>>,
}

impl Default for UseMarks {
    fn default() -> Self {
        Self::every(Duration::from_secs(3600))
    }
}

impl UseMarks {
    /// Returns the marks, with this interval for each description.
    fn every(every: Duration) -> Self {
        Self { every, last: Mutex::default() }
    }

    /// Marks a description as used, unless the last mark is recent. `false` if the description does not exist any more.
    fn mark(&self, path: &Path) -> io::Result<bool> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.get(path).is_some_and(|marked| marked.elapsed() < self.every) {
            return Ok(true);
        }
        match fs::File::open(path).and_then(|file| file.file().set_modified(SystemTime::now())) {
            Ok(()) => {
                last.insert(path.to_owned(), Instant::now());
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
