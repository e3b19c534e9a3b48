//! The cache of results by execution key, shared by runs: `results/<first two digits>/<key>.json` in the data
//! directory.
//!
//! A file's first line is the digest of the rest. A file with another digest counts as absent.
//!
//! A key is a digest of everything that decides an execution. One changed byte of a patch, limit, flag or tool gives
//! another key. Results of infrastructure faults are never kept.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fs_err as fs;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::data_dir::shared::is_full;
use crate::data_dir::{DataDir, write_below};
use crate::digest::{Digest, seal, unseal};
use crate::execution::run::directory::RunDirectoryError;
use crate::execution::run::extent::RESULT_KEYS;
use crate::execution::run::reading;
use crate::execution::run::record::{CellRecord, Measured};
use crate::outcome::Outcome;
use crate::task::TaskId;

const CACHE_SCHEMA: u32 = 1;
/// The largest kept result, in bytes.
pub const MOST_BYTES: u64 = 16 << 20;

/// A cached result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CachedResult {
    schema: u32,
    key: Digest,
    /// The outcome and its reason.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Lines for people.
    pub detail: String,
    /// As in [`CellRecord::attributed`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributed: Option<bool>,
    /// Containers that its execution started.
    pub attempts: u32,
    /// Times and machine of that execution, without logs, which belong to the other run.
    pub measured: Measured,
}

impl CachedResult {
    /// Returns a record's result to cache. `None` for a record without a key, and for an outcome that does not follow
    /// from the inputs or may follow from what the tree lacks.
    pub fn of(record: &CellRecord) -> Option<Self> {
        if matches!(record.outcome, Outcome::InfraFail(_)) || !record.missing.is_empty() {
            return None;
        }
        Some(Self {
            schema: CACHE_SCHEMA,
            key: record.key?,
            outcome: record.outcome,
            detail: record.detail.clone(),
            attributed: record.attributed,
            attempts: record.attempts,
            measured: Measured { logs: None, ..record.measured.clone() },
        })
    }
}

/// The kept results.
#[derive(Clone, Debug)]
pub struct ResultCache {
    root: PathBuf,
    reading: bool,
    /// The entries that this run has written, by task.
    tasks: Arc<Mutex<BTreeMap<TaskId, Put>>>,
    /// Where the keys of used and written results go.
    keys: Option<Arc<Mutex<fs::File>>>,
}

/// The entries that a run has written for a task.
#[derive(Debug)]
enum Put {
    /// Their keys.
    Keys(Vec<Digest>),
    /// None, and none will be written: this run can't trust any result of the task.
    Distrusted,
}

impl ResultCache {
    /// Returns the cache below a data directory. Without `reading`, results are only written.
    pub fn new(root: PathBuf, reading: bool) -> Self {
        Self { root, reading, tasks: Arc::default(), keys: None }
    }

    /// Returns the cache of a data directory.
    pub fn of(data_dir: &DataDir, reading: bool) -> Self {
        Self::new(data_dir.join("results"), reading)
    }

    /// Also appends the key of every result that is used or written to `result-keys` in a run's directory.
    ///
    /// # Errors
    /// I/O errors of opening the file.
    pub fn listing_keys(self, run: &Path) -> std::io::Result<Self> {
        let file = fs::OpenOptions::new().append(true).create(true).open(run.join(RESULT_KEYS))?;
        Ok(Self { keys: Some(Arc::new(Mutex::new(file))), ..self })
    }

    /// Returns the keys that a run has listed.
    ///
    /// # Errors
    /// [`RunDirectoryError`].
    pub fn listed_keys(run: &Path) -> Result<BTreeSet<Digest>, RunDirectoryError> {
        let text = reading::read(&run.join(RESULT_KEYS))?.unwrap_or_default();
        let lines = text.split(|byte| *byte == b'\n');
        // What a kill or a full disk left of a line is no key.
        Ok(lines.filter_map(|line| Digest::from_hex(std::str::from_utf8(line).ok()?).ok()).collect())
    }

    fn list_key(&self, key: Digest) {
        let Some(keys) = &self.keys else { return };
        let line = format!("\n{}", key.hex());
        // Without its key a result is not bundled, and the receiver computes it again.
        if let Err(error) = keys.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes()) {
            tracing::debug!("{error}");
        }
    }

    /// Returns the file of a result with the digest of its content; `None` if there is none, or a damaged one.
    ///
    /// # Errors
    /// I/O errors of reading the key's file.
    pub fn sealed(&self, key: Digest) -> std::io::Result<Option<Vec<u8>>> {
        let path = self.path(key);
        match fs::metadata(&path) {
            Ok(metadata) if metadata.len() <= MOST_BYTES => {
                let bytes = fs::read(&path)?;
                Ok(unseal(&bytes).is_some().then_some(bytes))
            }
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(None),
        }
    }

    /// Takes the file of another cache's result. Returns `false` for a damaged result, and for a key that has a result already.
    ///
    /// # Errors
    /// I/O errors of writing the key's file.
    pub fn adopt(&self, key: Digest, sealed: &[u8]) -> std::io::Result<bool> {
        if unseal(sealed).is_none() || self.sealed(key)?.is_some() {
            return Ok(false);
        }
        let path = self.path(key);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        write_below(&self.root, &path, sealed)?;
        Ok(true)
    }

    fn path(&self, key: Digest) -> PathBuf {
        let hex = key.hex();
        self.root.join(&hex[..2]).join(format!("{hex}.json"))
    }

    /// Returns the cached result of a key.
    ///
    /// # Errors
    /// I/O errors of reading the key's file.
    pub fn get(&self, key: Digest) -> std::io::Result<Option<CachedResult>> {
        let found: Option<CachedResult> = self.value(key)?;
        Ok(found.filter(|found| found.schema == CACHE_SCHEMA && found.key == key))
    }

    /// Returns the value cached under a key. An unreadable value counts as absent: the work is done again and replaces
    /// the file. A damaged one is removed.
    ///
    /// # Errors
    /// I/O errors of reading the key's file.
    pub fn value<T: DeserializeOwned>(&self, key: Digest) -> std::io::Result<Option<T>> {
        if !self.reading {
            return Ok(None);
        }
        let path = self.path(key);
        let bytes = match fs::metadata(&path) {
            Ok(metadata) if metadata.len() <= MOST_BYTES => fs::read(&path)?,
            Ok(_) => {
                remove(&path)?;
                return Ok(None);
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(value) = unseal(&bytes) else {
            tracing::warn!(path = %path.display(), "a kept result is damaged and is made again");
            remove(&path)?;
            return Ok(None);
        };
        match serde_json::from_slice(value) {
            Ok(found) => {
                self.list_key(key);
                Ok(Some(found))
            }
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a kept result can't be understood and is made again");
                Ok(None)
            }
        }
    }

    /// Caches a result of a task.
    ///
    /// # Errors
    /// I/O errors of writing the key's file.
    pub fn put(&self, task: &TaskId, result: &CachedResult) -> std::io::Result<()> {
        self.put_value(task, result.key, result)
    }

    /// Caches a value of a task under a key, unless the task is distrusted. A full disk is no error, because records
    /// come first: the next run computes the value again.
    ///
    /// # Errors
    /// I/O errors of writing the key's file, except a full disk.
    pub fn put_value(&self, task: &TaskId, key: Digest, value: &impl Serialize) -> std::io::Result<()> {
        match self.tasks().entry(task.clone()).or_insert_with(|| Put::Keys(Vec::new())) {
            Put::Keys(keys) => keys.push(key),
            Put::Distrusted => return Ok(()),
        }
        self.write(key, value)?;
        self.list_key(key);
        // Another job may have distrusted the task meanwhile, before this file could be removed.
        let distrusted = matches!(self.tasks().get(task), Some(Put::Distrusted));
        if distrusted { self.remove(key) } else { Ok(()) }
    }

    /// Removes all entries that this run has written for a task, and prevents new ones.
    ///
    /// # Errors
    /// I/O errors of removing files.
    pub fn distrust(&self, task: &TaskId) -> std::io::Result<()> {
        match self.tasks().insert(task.clone(), Put::Distrusted) {
            Some(Put::Keys(keys)) => keys.into_iter().try_for_each(|key| self.remove(key)),
            Some(Put::Distrusted) | None => Ok(()),
        }
    }

    /// Removes the entry of a key, whichever run wrote it.
    ///
    /// # Errors
    /// I/O errors of removing the key's file.
    pub fn remove(&self, key: Digest) -> std::io::Result<()> {
        remove(&self.path(key))
    }

    fn tasks(&self) -> MutexGuard<'_, BTreeMap<TaskId, Put>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, key: Digest, value: &impl Serialize) -> std::io::Result<()> {
        let (path, bytes) = (self.path(key), seal(&serde_json::to_vec(value)?));
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        match made.and_then(|()| write_below(&self.root, &path, &bytes)) {
            Err(error) if is_full(&error) => {
                tracing::warn!(path = %path.display(), %error, "a result is not kept for other runs");
                Ok(())
            }
            written => written,
        }
    }
}

fn remove(path: &Path) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::run::record::{ExecutionPath, RECORD_SCHEMA};
    use crate::outcome::{CompileReason, InfraReason};
    use crate::task::{Cell, Track};

    fn record(key: Option<Digest>, outcome: Outcome) -> CellRecord {
        CellRecord {
            schema: RECORD_SCHEMA,
            task_id: "t1".parse().unwrap(),
            repository: "o/n".parse().unwrap(),
            track: Track::TestGeneration,
            cell: Cell::No,
            method: "ATest#m".parse().unwrap(),
            repeat: 1,
            path: ExecutionPath::Direct,
            outcome,
            detail: "x".to_owned(),
            missing: Vec::new(),
            attributed: Some(false),
            attempts: 1,
            key,
            measured: Measured::default(),
        }
    }

    fn task() -> TaskId {
        "t1".parse().unwrap()
    }

    #[test]
    fn nothing_is_kept_of_a_task_that_is_distrusted() {
        let directory = tempfile::tempdir().unwrap();
        let cache = ResultCache::new(directory.path().to_owned(), true);
        let other: TaskId = "t2".parse().unwrap();
        let keys = [b"a", b"b", b"c"].map(|name| Digest::of(name));
        cache.put_value(&task(), keys[0], &1).unwrap();
        cache.put_value(&other, keys[1], &2).unwrap();
        cache.distrust(&task()).unwrap();
        cache.put_value(&task(), keys[2], &3).unwrap();
        assert_eq!(keys.map(|key| cache.value::<u32>(key).unwrap()), [None, Some(2), None]);
        cache.remove(keys[1]).unwrap();
        cache.remove(keys[1]).unwrap();
        assert_eq!(cache.value::<u32>(keys[1]).unwrap(), None);
    }

    #[test]
    fn results_are_found_by_their_key_alone_and_only_where_asked() {
        let directory = tempfile::tempdir().unwrap();
        let cache = ResultCache::new(directory.path().to_owned(), true);
        let key = Digest::of(b"a");
        let outcome = Outcome::CompileFail(CompileReason::TargetFile);
        let result = CachedResult::of(&record(Some(key), outcome)).unwrap();
        assert_eq!(result.attributed, Some(false));
        assert_eq!(cache.get(key).unwrap(), None);
        cache.put(&task(), &result).unwrap();
        assert_eq!(cache.get(key).unwrap(), Some(result));
        assert_eq!(cache.get(Digest::of(b"b")).unwrap(), None);
        assert_eq!(ResultCache::new(directory.path().to_owned(), false).get(key).unwrap(), None);
        let fault = Outcome::InfraFail(InfraReason::Engine);
        assert_eq!(CachedResult::of(&record(Some(key), fault)), None);
        assert_eq!(CachedResult::of(&record(None, outcome)), None);
        fs::write(cache.path(key), b"{").unwrap();
        assert_eq!(cache.get(key).unwrap(), None);
    }

    #[test]
    fn a_run_lists_its_keys_and_another_cache_takes_their_results() {
        let directory = tempfile::tempdir().unwrap();
        let [here, there, run] = ["here", "there", "run"].map(|name| directory.path().join(name));
        fs::create_dir(&run).unwrap();
        let keys = [b"a", b"b", b"c"].map(|name| Digest::of(name));
        ResultCache::new(here.clone(), true).put_value(&task(), keys[0], &1).unwrap();
        ResultCache::new(here.clone(), true).put_value(&task(), keys[2], &3).unwrap();
        let cache = ResultCache::new(here.clone(), true).listing_keys(&run).unwrap();
        assert_eq!(cache.value::<u32>(keys[0]).unwrap(), Some(1));
        cache.put_value(&task(), keys[1], &2).unwrap();
        let resumed = ResultCache::new(here, true).listing_keys(&run).unwrap();
        assert_eq!(resumed.value::<u32>(keys[0]).unwrap(), Some(1));
        let mut file = fs::OpenOptions::new().append(true).open(run.join(RESULT_KEYS)).unwrap();
        file.write_all(&keys[2].hex().as_bytes()[..40]).unwrap();
        let listed = ResultCache::listed_keys(&run).unwrap();
        assert_eq!(listed, BTreeSet::from([keys[0], keys[1]]));
        let other = ResultCache::new(there, true);
        for key in listed {
            let sealed = cache.sealed(key).unwrap().unwrap();
            assert!(!other.adopt(key, &sealed[..sealed.len() - 1]).unwrap());
            assert!(other.adopt(key, &sealed).unwrap());
            assert!(!other.adopt(key, &sealed).unwrap());
        }
        assert_eq!(keys.map(|key| other.value::<u32>(key).unwrap()), [Some(1), Some(2), None]);
        assert_eq!(cache.sealed(Digest::of(b"d")).unwrap(), None);
    }

    #[test]
    fn a_damaged_result_is_no_hit_and_goes() {
        let directory = tempfile::tempdir().unwrap();
        let cache = ResultCache::new(directory.path().to_owned(), true);
        let key = Digest::of(b"a");
        let path = cache.path(key);
        // Another digit is still a value.
        let damages: [fn(String) -> String; 3] =
            [|text| text.replacen("1234", "1235", 1), |text| text[..text.len() - 2].to_owned(), |_| String::new()];
        for damage in damages {
            cache.put_value(&task(), key, &[1234, 5]).unwrap();
            assert_eq!(cache.value::<Vec<u32>>(key).unwrap(), Some(vec![1234, 5]));
            fs::write(&path, damage(fs::read_to_string(&path).unwrap())).unwrap();
            assert_eq!(cache.value::<Vec<u32>>(key).unwrap(), None);
            assert!(!path.exists());
        }
    }
}
