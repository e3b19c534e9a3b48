//! The cache of results by execution key, shared by runs: `results/<first two digits>/<key>.json` in the data
//! directory.
//!
//! A key is a digest of everything that decides an execution, so one changed byte of a patch, limit, flag or tool gives
//! another key. Results that the infrastructure failed are never kept.

use std::path::PathBuf;

use fs_err as fs;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::data_dir::write_below;
use crate::digest::Digest;
use crate::execution::run::record::Measured;
use crate::outcome::Outcome;

const CACHE_SCHEMA: u32 = 1;
/// The largest kept result, in bytes.
const MOST_BYTES: u64 = 16 << 20;

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
    /// Containers that its execution started.
    pub attempts: u32,
    /// Times and machine of then; logs are the other run's and left out.
    pub measured: Measured,
}

impl CachedResult {
    /// Returns a result to cache; `None` for an outcome that the inputs do not decide.
    pub fn new(key: Digest, outcome: Outcome, detail: &str, attempts: u32, measured: &Measured) -> Option<Self> {
        if matches!(outcome, Outcome::InfraFail(_)) {
            return None;
        }
        let measured = Measured { logs: None, ..measured.clone() };
        Some(Self { schema: CACHE_SCHEMA, key, outcome, detail: detail.to_owned(), attempts, measured })
    }
}

/// The kept results.
#[derive(Clone, Debug)]
pub struct ResultCache {
    root: PathBuf,
    reading: bool,
}

impl ResultCache {
    /// Returns the cache below a data directory. Without `reading`, results are only written.
    pub fn new(root: PathBuf, reading: bool) -> Self {
        Self { root, reading }
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
    /// the file.
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
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match serde_json::from_slice(&bytes) {
            Ok(found) => Ok(Some(found)),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a kept result can't be understood and is made again");
                Ok(None)
            }
        }
    }

    /// Caches a result.
    ///
    /// # Errors
    /// I/O errors of writing the key's file.
    pub fn put(&self, result: &CachedResult) -> std::io::Result<()> {
        self.put_value(result.key, result)
    }

    /// Caches a value under a key.
    ///
    /// # Errors
    /// I/O errors of writing the key's file.
    pub fn put_value(&self, key: Digest, value: &impl Serialize) -> std::io::Result<()> {
        let path = self.path(key);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        write_below(&self.root, &path, &serde_json::to_vec(value)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{ExecReason, InfraReason};

    #[test]
    fn results_are_found_by_their_key_alone_and_only_where_asked() {
        let directory = tempfile::tempdir().unwrap();
        let cache = ResultCache::new(directory.path().to_owned(), true);
        let key = Digest::of(b"a");
        let outcome = Outcome::ExecFail(ExecReason::Assertion);
        let result = CachedResult::new(key, outcome, "x", 1, &Measured::default()).unwrap();
        assert_eq!(cache.get(key).unwrap(), None);
        cache.put(&result).unwrap();
        assert_eq!(cache.get(key).unwrap(), Some(result));
        assert_eq!(cache.get(Digest::of(b"b")).unwrap(), None);
        assert_eq!(ResultCache::new(directory.path().to_owned(), false).get(key).unwrap(), None);
        let fault = Outcome::InfraFail(InfraReason::Engine);
        assert_eq!(CachedResult::new(key, fault, "", 3, &Measured::default()), None);
        fs::write(cache.path(key), b"{").unwrap();
        assert_eq!(cache.get(key).unwrap(), None);
    }
}
