//! The limits on what one lock may request from origins in total. Maven runs untrusted plugins. A plugin's own origin
//! may serve endless files, each within the limit of a file, but together more than a disk or this program's memory can
//! hold.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most distinct paths. The largest projects tried request some thousand.
const MAX_PATHS: usize = 100_000;
/// The most bytes that may be fetched.
const MAX_BYTES: u64 = 32 << 30;
/// The most parallel fetches: more than Maven makes, and few enough that their largest files are counted soon.
const AT_ONCE: usize = 16;

/// The limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exhausted {
    /// Too many distinct paths were asked for.
    #[error("more than {MAX_PATHS} files were asked for")]
    Paths,
    /// Too much was fetched.
    #[error("more than {} GiB were fetched", MAX_BYTES >> 30)]
    Bytes,
    /// Maven repositories inside the tree contain too much.
    #[error("Maven repositories inside its trees have too many files, or too large ones")]
    Tree,
}

/// The remaining allowance.
pub(super) struct Allowance {
    state: Mutex<State>,
    fetches: tokio::sync::Semaphore,
}

struct State {
    paths: usize,
    bytes: u64,
    /// One fetch per path at a time, so that parallel downloads of Maven do not fetch twice.
    gates: BTreeMap<String, Arc<tokio::sync::Mutex<()>>>,
    exhausted: Option<Exhausted>,
}

/// The permission to fetch a file.
pub(super) struct Fetching<'a> {
    allowance: &'a Allowance,
    /// The file's largest size in bytes.
    pub(super) max_bytes: u64,
    _one_of_few: tokio::sync::SemaphorePermit<'a>,
}

impl Allowance {
    /// Returns the allowance of every lock.
    pub(super) fn new() -> Self {
        Self::of(MAX_PATHS, MAX_BYTES)
    }

    /// Returns an allowance of this many distinct paths and bytes.
    pub(super) fn of(paths: usize, bytes: u64) -> Self {
        let state = State { paths, bytes, gates: BTreeMap::new(), exhausted: None };
        Self { state: Mutex::new(state), fetches: tokio::sync::Semaphore::new(AT_ONCE) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the limit that was reached, if any.
    pub(super) fn exhausted(&self) -> Option<Exhausted> {
        self.state().exhausted
    }

    /// Returns the lock that admits one fetch of a path at a time.
    pub(super) fn gate(&self, path: &str) -> Result<Arc<tokio::sync::Mutex<()>>, Exhausted> {
        let mut state = self.state();
        if let Some(gate) = state.gates.get(path) {
            return Ok(Arc::clone(gate));
        }
        if state.gates.len() >= state.paths {
            state.exhausted = Some(Exhausted::Paths);
            return Err(Exhausted::Paths);
        }
        Ok(Arc::clone(state.gates.entry(path.to_owned()).or_default()))
    }

    /// Waits for the permission to fetch a file of at most `max_bytes`.
    pub(super) async fn fetching(&self, max_bytes: u64) -> Result<Fetching<'_>, Exhausted> {
        // The semaphore is never closed.
        let Ok(permit) = self.fetches.acquire().await else { return Err(Exhausted::Bytes) };
        let mut state = self.state();
        if state.bytes == 0 {
            state.exhausted = Some(Exhausted::Bytes);
            return Err(Exhausted::Bytes);
        }
        Ok(Fetching { allowance: self, max_bytes: max_bytes.min(state.bytes), _one_of_few: permit })
    }
}

impl Fetching<'_> {
    /// Counts the fetched bytes.
    pub(super) fn came(self, bytes: u64) {
        let mut state = self.allowance.state();
        state.bytes = state.bytes.saturating_sub(bytes);
    }

    /// Notes why a file did not fit: it exceeds the limit of a file, or the rest of the allowance.
    pub(super) fn did_not_fit(self, limit_of_a_file: u64) {
        if self.max_bytes < limit_of_a_file {
            self.allowance.state().exhausted = Some(Exhausted::Bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_counted_once() {
        let allowance = Allowance::of(2, 1);
        for path in ["a/a", "a/b", "a/a", "a/b"] {
            allowance.gate(path).unwrap();
        }
        assert_eq!(allowance.exhausted(), None);
        assert_eq!(allowance.gate("a/c").unwrap_err(), Exhausted::Paths);
        assert_eq!(allowance.exhausted(), Some(Exhausted::Paths));
        allowance.gate("a/a").unwrap();
    }

    #[tokio::test]
    async fn bytes_are_counted_over_all_files() {
        let allowance = Allowance::of(1, 10);
        let first = allowance.fetching(8).await.unwrap();
        assert_eq!(first.max_bytes, 8);
        first.came(7);
        let second = allowance.fetching(8).await.unwrap();
        assert_eq!(second.max_bytes, 3, "what is left");
        second.did_not_fit(8);
        assert_eq!(allowance.exhausted(), Some(Exhausted::Bytes));

        let allowance = Allowance::of(1, 10);
        allowance.fetching(8).await.unwrap().did_not_fit(8);
        assert_eq!(allowance.exhausted(), None, "one file is too large, whatever is left");
        allowance.fetching(20).await.unwrap().came(10);
        assert_eq!(allowance.fetching(1).await.err(), Some(Exhausted::Bytes));
    }
}
