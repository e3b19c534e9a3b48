//! Files of releases that `central` served earlier, so that no other lock asks for them again.
//!
//! A release never changes there. A file is remembered by its address once a lock with it has resolved, because a portal
//! may answer with a page in its place. Locks that bundles bring say nothing here: another wrote them. A store above is
//! believed as for everything else that is made once.

use serde::{Deserialize, Serialize};

use super::Sources;
use super::fetching::{Denied, fetch};
use crate::artifact::made::{self, Described, Kind, MadeError};
use crate::artifact::origin::OriginName;
use crate::digest::Digest;
use crate::lock::MavenFile;
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
    if expected.is_none()
        && !sources.anew
        && let Some(key) = key(sources, origin, path).await
    {
        let (store, events) = (sources.store.clone(), sources.client.events().clone());
        if let Some(Released { sha256, size }) = blocking(move || made::find(&store, key, &events)).await? {
            return Ok((sha256, size));
        }
    }
    fetch(sources, origin, path, expected, max_bytes).await
}

/// Remembers the released files among these.
pub(super) async fn remember(sources: &Sources, files: &[MavenFile]) -> Result<(), MadeError> {
    let central = OriginName::central();
    for file in files.iter().filter(|file| file.origin == central.as_str()) {
        let Some(key) = key(sources, &central, &file.path).await else { continue };
        let released = Released { sha256: file.sha256, size: file.size };
        let (store, events, anew) = (sources.store.clone(), sources.client.events().clone(), sources.anew);
        let keep = move || {
            if anew || made::find::<Released>(&store, key, &events)?.is_none() {
                made::keep(&store, key, released)?;
            }
            Ok(())
        };
        blocking::<_, MadeError>(keep).await?;
    }
    Ok(())
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
