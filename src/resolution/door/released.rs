//! Files of releases that `central` served earlier, so that no lock asks for them again.
//!
//! A release never changes there. What a record says was fetched by this data directory itself, from the same address:
//! locks of other people, which bundles bring, are no source.

use serde::{Deserialize, Serialize};

use super::Sources;
use super::fetching::{Denied, fetch};
use crate::artifact::made::{self, Described, Kind};
use crate::artifact::origin::OriginName;
use crate::digest::Digest;
use crate::thread::blocking;

/// A file that was fetched.
#[derive(Debug, Serialize, Deserialize)]
pub struct Released {
    sha256: Digest,
    size: u64,
}

impl Described for Released {
    const KIND: Kind = Kind { directory: "released", schema: 1, name: "a released file" };

    fn blobs(&self) -> Vec<Digest> {
        vec![self.sha256]
    }
}

/// Fetches a file within the limits of one lock, unless it is a release's and was fetched before.
pub(super) async fn fetch_release(
    sources: &Sources,
    origin: &OriginName,
    path: &str,
    expected: Option<&Digest>,
    max_bytes: u64,
) -> Result<(Digest, u64), Denied> {
    let key = match expected {
        None => key(sources, origin, path).await,
        Some(_) => None,
    };
    let Some(key) = key else { return fetch(sources, origin, path, expected, max_bytes).await };
    let (store, events) = (sources.store.clone(), sources.client.events().clone());
    if let Some(Released { sha256, size }) = blocking(move || made::find(&store, key, &events)).await? {
        return Ok((sha256, size));
    }
    let (sha256, size) = fetch(sources, origin, path, None, max_bytes).await?;
    let store = sources.store.clone();
    blocking(move || made::keep(&store, key, Released { sha256, size })).await.map_err(made::MadeError::from)?;
    Ok((sha256, size))
}

/// Returns the key of a file by its addresses; `None` if it may change, or its origin is not known yet.
async fn key(sources: &Sources, origin: &OriginName, path: &str) -> Option<Digest> {
    if *origin != OriginName::central() || path.contains("-SNAPSHOT/") {
        return None;
    }
    let origin = sources.client.origin(origin).await.ok()?;
    let addresses: Option<Vec<String>> =
        origin.addresses.iter().map(|address| address.join(path).map(String::from)).collect();
    Some(made::key::<Released>(&addresses?))
}
