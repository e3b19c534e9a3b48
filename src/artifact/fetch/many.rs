//! Fetches many files at once.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use futures_util::{StreamExt, stream};

use super::{Client, FetchError};
use crate::artifact::origin::OriginName;
use crate::artifact::pypi;
use crate::digest::Digest;
use crate::error::{ExitStatus, Failure};
use crate::event::EventSink;

/// A file of an origin by digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchItem {
    /// Name for people, unique among the files that are fetched together.
    pub name: String,
    /// The origin that serves the file.
    pub origin: OriginName,
    /// Its path below the origin; for a Python package the file's name.
    pub path: String,
    /// The project whose index lists the file, for Python packages; `None` for other files.
    pub project: Option<String>,
    /// Its digest.
    pub digest: Digest,
    /// Size in bytes.
    pub size: u64,
}

impl FetchItem {
    fn offline(&self) -> FetchError {
        FetchError::Offline { origin: self.origin.clone(), path: self.path.clone() }
    }
}

/// What a fetch of many files did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchSummary {
    /// Files that the store had.
    pub present: usize,
    /// Files that were fetched.
    pub fetched: usize,
    /// Bytes that were fetched.
    pub bytes: u64,
}

/// Files that could not be fetched.
#[derive(Debug, thiserror::Error)]
#[error("{} of {total} files could not be fetched; the first: {first}", .others.len() + 1)]
pub struct FetchManyError {
    /// The number of files.
    pub total: usize,
    /// The first file's error.
    #[source]
    pub first: Box<FetchError>,
    /// The other files' errors.
    pub others: Vec<FetchError>,
}

impl Failure for FetchManyError {
    fn exit_status(&self) -> ExitStatus {
        self.first.exit_status()
    }

    fn hint(&self) -> Option<String> {
        self.first.hint()
    }
}

impl Client {
    /// Fetches the items that the store lacks, at most `jobs` at once, as stage `download`. A missing or wrong file
    /// does not stop the others; an unreachable origin or a full store does. If fetching is disabled, nothing is
    /// started.
    ///
    /// # Errors
    /// [`FetchManyError`] with all failures.
    pub async fn fetch_all(
        &self,
        items: &[FetchItem],
        jobs: NonZeroUsize,
        events: &EventSink,
    ) -> Result<FetchSummary, FetchManyError> {
        let mut seen = BTreeSet::new();
        let missing: Vec<&FetchItem> =
            items.iter().filter(|item| !self.has(item) && seen.insert(item.digest)).collect();
        let mut summary = FetchSummary { present: items.len() - missing.len(), ..FetchSummary::default() };
        if missing.is_empty() {
            return Ok(summary);
        }
        if self.origins.offline() {
            let mut refused = missing.iter().map(|item| item.offline());
            if let Some(first) = refused.next().map(Box::new) {
                return Err(FetchManyError { total: missing.len(), first, others: refused.collect() });
            }
        }
        let total = missing.len();
        let stage = &events.stage("download", Some(total as u64), 0);
        let mut fetching = stream::iter(missing.into_iter().map(|item| async move {
            stage.item_started(&item.name);
            let result = self.fetch_item(item).await;
            let outcome = if result.is_ok() { "fetched" } else { "failed" };
            stage.item_finished(&item.name, outcome, result.is_err());
            result
        }))
        .buffer_unordered(jobs.get());
        let mut failures = Vec::new();
        while let Some(result) = fetching.next().await {
            match result {
                Ok(size) => {
                    summary.fetched += 1;
                    summary.bytes += size;
                }
                Err(error) => {
                    let hopeless = matches!(
                        error,
                        FetchError::OriginUnreachable { .. }
                            | FetchError::Origin(_)
                            | FetchError::Store(_)
                            | FetchError::Setup(_)
                    );
                    if hopeless {
                        // The failure that stops the others comes first.
                        failures.insert(0, error);
                        break;
                    }
                    failures.push(error);
                }
            }
        }
        drop(fetching);
        let mut failures = failures.into_iter();
        match failures.next().map(Box::new) {
            None => Ok(summary),
            Some(first) => Err(FetchManyError { total, first, others: failures.collect() }),
        }
    }

    /// Tells whether the store has the file with the right size: a cheap check that detects truncated blobs.
    fn has(&self, item: &FetchItem) -> bool {
        self.store.size(&item.digest).is_ok_and(|size| size == item.size)
    }

    async fn fetch_item(&self, item: &FetchItem) -> Result<u64, FetchError> {
        if self.store.contains(&item.digest) {
            // The blob has the wrong size, otherwise the file would not be missing.
            self.store.remove(&item.digest)?;
        }
        let (_, size) = match &item.project {
            Some(project) => pypi::fetch_file(self, &item.origin, project, &item.path, &item.digest, item.size).await?,
            None => self.fetch(&item.origin, &item.path, Some(&item.digest), item.size).await?,
        };
        Ok(size)
    }
}
