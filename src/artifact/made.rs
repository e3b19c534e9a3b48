//! Things that take long to make, made once: described under a key in a directory of the store, found again, checked, and given up
//! when nobody uses them.
//!
//! A description names blobs of the store. It appears by one atomic rename after its blobs, so that a killed or a second maker does
//! no harm; whoever reads one checks every blob. Makers of several processes wait for one another.

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

/// What a description is of.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The directory below the store's root.
    pub directory: &'static str,
    /// Version of the description's schema; another one is made anew.
    pub schema: u32,
    /// What people call one, with its article.
    pub name: &'static str,
}

/// Why a thing can't be found or kept.
#[derive(Debug, thiserror::Error)]
pub enum MadeError {
    /// The file system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The lock could not be taken.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
}

/// What is kept of a thing.
pub trait Described: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// What kind of thing it is.
    const KIND: Kind;

    /// Returns the blobs that it needs.
    fn blobs(&self) -> Vec<Digest>;
}

/// What came of making a thing.
pub enum Fresh<T> {
    /// It is kept.
    Kept(T),
    /// A fault of ours kept it from being made: whoever comes next tries again.
    Passing(T),
}

#[derive(Serialize, Deserialize)]
struct Description<T> {
    schema: u32,
    key: Digest,
    /// What the value needs: whoever collects garbage understands no value.
    blobs: Vec<Digest>,
    value: T,
}

/// Returns the blobs that a description names. A description of an earlier program has no list of blobs, and that program may still
/// run: each digest in it counts.
///
/// # Errors
/// `description` is no JSON, or its list names something else than digests.
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

/// The things of one kind in a data directory, as one process uses them.
pub struct Made<T> {
    data_dir: DataDir,
    store: Store,
    events: EventSink,
    /// What this process has made or checked; nothing is checked twice.
    known: Mutex<Known<T>>,
    marks: UseMarks,
}

impl<T: Described> Made<T> {
    /// Returns those of `data_dir`.
    pub fn new(data_dir: &DataDir, store: &Store, events: &EventSink) -> Self {
        let (data_dir, store, events) = (data_dir.clone(), store.clone(), events.clone());
        Self { data_dir, store, events, known: Mutex::default(), marks: UseMarks::default() }
    }

    /// Returns the store that blobs are in.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns where messages go.
    pub fn events(&self) -> &EventSink {
        &self.events
    }

    /// Returns the thing, made if the store does not have it whole.
    ///
    /// # Errors
    /// The maker's; the store's and the file system's.
    pub async fn get<E: From<MadeError>>(
        &self,
        key: Digest,
        make: impl AsyncFnOnce() -> Result<Fresh<T>, E>,
    ) -> Result<Arc<T>, E> {
        let cell = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(key).or_default())
        };
        let mut passing = false;
        // Whoever comes second in this process waits for the first.
        let found = cell.get_or_try_init(|| async {
            if let Some(found) = self.load(key).await? {
                return Ok(Arc::new(found));
            }
            // And so does another process.
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
        // A run may be longer than what is unused may be old.
        if passing || !self.marks.mark(&path::<T>(&self.store, key)).map_err(MadeError::from)? {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            // Whoever comes next tries again, unless somebody does already.
            if known.get(&key).is_some_and(|there| Arc::ptr_eq(there, &cell)) {
                known.remove(&key);
            }
        }
        Ok(found)
    }

    /// Forgets what this process knows of a thing: its blobs were given up, and who asks next has it made anew.
    pub fn forget(&self, key: Digest) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.remove(&key);
    }

    async fn load(&self, key: Digest) -> Result<Option<T>, MadeError> {
        let store = self.store.clone();
        blocking(move || find(&store, key)).await
    }
}

/// Keeps a thing whose blobs the store has.
///
/// # Errors
/// The description can't be written.
pub fn keep<T: Described>(store: &Store, key: Digest, value: T) -> io::Result<T> {
    let description = Description { schema: T::KIND.schema, key, blobs: value.blobs(), value };
    let bytes = serde_json::to_vec(&description).map_err(io::Error::other)?;
    fs::create_dir_all(store.root().join(T::KIND.directory))?;
    write_atomically(&path::<T>(store, key), &bytes)?;
    Ok(description.value)
}

/// Returns what is described, if its blobs are all there and whole.
///
/// # Errors
/// The description or a blob can't be read.
pub fn find<T: Described>(store: &Store, key: Digest) -> Result<Option<T>, MadeError> {
    let path = path::<T>(store, key);
    let mut bytes = Vec::new();
    match fs::File::open(&path) {
        Ok(mut file) => {
            // What was used last is pruned last, and nothing is pruned whose blobs are just being looked at.
            file.file().set_modified(SystemTime::now())?;
            file.read_to_end(&mut bytes)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let Some(description) = read::<T>(&bytes).filter(|description| description.key == key) else {
        tracing::warn!(path = %path.display(), "{} can't be read and is made anew", T::KIND.name);
        return Ok(None);
    };
    for digest in &description.blobs {
        match store.verify(digest) {
            Ok(()) => {}
            Err(StoreError::Missing { .. }) => return Ok(None),
            Err(StoreError::Corrupted { path, .. }) => {
                tracing::warn!(path = %path.display(), "a blob of {} is damaged", T::KIND.name);
                fs::remove_file(path)?;
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Some(description.value))
}

/// Returns the key of a thing that these inputs decide.
pub fn key<T: Described>(inputs: &impl Serialize) -> Digest {
    super::key::key(T::KIND.directory, T::KIND.schema, inputs)
}

fn path<T: Described>(store: &Store, key: Digest) -> PathBuf {
    store.root().join(T::KIND.directory).join(format!("{}.json", key.hex()))
}

fn read<T: Described>(bytes: &[u8]) -> Option<Description<T>> {
    let read: Description<T> = serde_json::from_slice(bytes).ok()?;
    // What the description names stays; whatever the value needs is among it.
    let whole = read.value.blobs().iter().all(|digest| read.blobs.contains(digest));
    (read.schema == T::KIND.schema && whole).then_some(read)
}

/// Which things stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrunePolicy {
    /// What was used within this time stays whatever else holds: a run may be at it.
    pub always: Duration,
    /// What was not used for so long goes.
    pub age: Duration,
    /// Beyond so many bytes of a kind the least recently used go.
    pub most_bytes: u64,
}

/// Removes descriptions of things and returns how many. Their blobs become garbage of the store. What can't be read is removed as
/// well: it would be made anew.
///
/// # Errors
/// The file system's.
pub fn prune<T: Described>(store: &Store, keeping: &PrunePolicy, dry_run: bool) -> io::Result<usize> {
    let entries = match fs::read_dir(store.root().join(T::KIND.directory)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        // One that is just being written has another name.
        if stem.is_some_and(|stem| Digest::from_hex(stem).is_ok()) {
            found.push((fs::metadata(&path)?.modified()?, path));
        }
    }
    found.sort();
    let (now, mut counted, mut kept, mut removed) = (SystemTime::now(), BTreeSet::new(), 0u64, 0);
    // The most recently used first.
    for (used, path) in found.into_iter().rev() {
        let unused = now.duration_since(used).unwrap_or_default();
        let blobs = read::<T>(&fs::read(&path)?).map(|description| description.blobs);
        let mut bytes = 0;
        for digest in blobs.iter().flatten().filter(|digest| !counted.contains(*digest)) {
            bytes += match fs::metadata(store.path(digest)) {
                Ok(blob) => blob.len(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
                Err(error) => return Err(error),
            };
        }
        let fits = blobs.is_some() && unused < keeping.age && kept.saturating_add(bytes) <= keeping.most_bytes;
        if fits || unused < keeping.always {
            kept = kept.saturating_add(bytes);
            counted.extend(blobs.into_iter().flatten());
        } else if dry_run || remove_unused(&path, used)? {
            removed += 1;
        }
    }
    Ok(removed)
}

/// Removes a description unless it was used since `used`, and tells whether it is gone.
fn remove_unused(path: &Path, used: SystemTime) -> io::Result<bool> {
    match fs::metadata(path).and_then(|found| found.modified()) {
        Ok(modified) if modified != used => Ok(false),
        Ok(_) => fs::remove_file(path).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// Marks descriptions as used now and then: what a process uses for long is not pruned.
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
    /// Returns what marks a description when it was not marked for so long.
    fn every(every: Duration) -> Self {
        Self { every, last: Mutex::default() }
    }

    /// Marks a description as used, unless that was done shortly before; `false` where there is none any more.
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
