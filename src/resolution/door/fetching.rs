//! Fetches files for the door from origins, within the limits of one lock, and computes checksums.

use sha1::Digest as _;

use super::{Sources, held};
use crate::artifact::fetch::FetchError;
use crate::artifact::made::MadeError;
use crate::artifact::origin::OriginName;
use crate::digest::{Digest, encode_hex};
use crate::resolution::allowance::Exhausted;

/// Why a file was not fetched.
#[derive(Debug, thiserror::Error)]
pub(super) enum Denied {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    #[error(transparent)]
    Kept(#[from] MadeError),
}

/// Fetches a file within the limits of one lock.
pub(super) async fn fetch(
    sources: &Sources,
    origin: &OriginName,
    path: &str,
    expected: Option<&Digest>,
    max_bytes: u64,
) -> Result<(Digest, u64), Denied> {
    let fetching = sources.allowance.fetching(max_bytes).await?;
    match sources.client.fetch(origin, path, expected, fetching.max_bytes).await {
        Ok((digest, size)) => {
            fetching.came(size);
            Ok((digest, size))
        }
        Err(error @ FetchError::TooLarge { .. }) => {
            fetching.did_not_fit(max_bytes);
            Err(error.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the SHA-1 checksum of a blob; `None` if the blob can't be read.
pub(super) async fn sha1_of(sources: &Sources, digest: &Digest) -> Option<String> {
    if let Some(sum) = held(&sources.sums).get(digest) {
        return Some(sum.clone());
    }
    let mut file = sources.store.open_sound(digest).ok()?;
    let sum = tokio::task::spawn_blocking(move || {
        let mut hasher = sha1::Sha1::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            match std::io::Read::read(&mut file, &mut buffer) {
                Ok(0) => return Some(encode_hex(&hasher.finalize())),
                Ok(count) => hasher.update(&buffer[..count]),
                Err(_) => return None,
            }
        }
    });
    let sum = sum.await.ok().flatten()?;
    held(&sources.sums).insert(*digest, sum.clone());
    Some(sum)
}
