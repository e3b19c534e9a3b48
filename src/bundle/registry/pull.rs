//! Fetches a bundle from a registry.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use oci_client::RegistryOperation;
use oci_client::client::{BlobResponse, SizedStream};
use oci_client::errors::{DigestError, OciDistributionError};
use oci_client::manifest::OciDescriptor;

use super::unfinished::{Part, Unfinished};
use super::{
    AT_ONCE, INDEX_TYPE, ManifestFile, Named, Registry, RegistryError, SIGNATURE_TYPE, SILENCE, TransferError,
    Transferred, blobs_of, manifests_of,
};
use crate::bundle::description::{MANIFEST_TYPE, MOST_INDEX_BYTES};
use crate::bundle::layout::{INDEX, LAYOUT, LAYOUT_TEXT, SIGNATURE, blob_name};
use crate::bundle::{Description, Layout, names, signature};
use crate::digest::Digest;
use crate::event::RunningStage;
use crate::umask::Umask;

const DOING: &str = "fetching a blob";

impl Registry {
    /// Fetches the index and its signature. Whoever accepts them goes on with [`Registry::fetch`].
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn index(&self) -> Result<(Vec<u8>, Option<Vec<u8>>), RegistryError> {
        self.log_in(RegistryOperation::Pull).await?;
        // An image is asked for as well, to be told from nothing.
        let index = self.manifest(&self.reference, &[INDEX_TYPE, MANIFEST_TYPE], MOST_INDEX_BYTES).await?;
        let id = Digest::of(&index);
        let manifest = match self.manifest(&self.of_signature(&id), &[MANIFEST_TYPE], signature::MOST_BYTES).await {
            Err(RegistryError::Missing(_)) => return Ok((index, None)),
            manifest => manifest?,
        };
        let malformed = |reason: String| self.no_bundle(format!("its signature: {reason}"));
        let manifest: ManifestFile = serde_json::from_slice(&manifest).map_err(|error| malformed(error.to_string()))?;
        let [layer] = &manifest.layers[..] else { return Err(malformed("it has no single layer".to_owned())) };
        if manifest.artifact_type.as_deref() != Some(SIGNATURE_TYPE) {
            return Err(malformed("it is something else".to_owned()));
        }
        if layer.size > signature::MOST_BYTES {
            return Err(malformed(format!("it has {} bytes", layer.size)));
        }
        let signed = self.small_blob(Named { digest: layer.digest, size: layer.size }).await?;
        Ok((index, Some(signed)))
    }

    /// Fetches everything that an index leads to into a new directory, which appears once it is complete. What an earlier
    /// attempt has fetched is not fetched again. A dry run fetches manifests alone, writes nothing, and counts all blobs.
    ///
    /// # Errors
    /// [`RegistryError`]; [`BundleError`](crate::bundle::BundleError) for what is no bundle.
    pub async fn fetch(
        &self,
        (index, signed): (&[u8], Option<&[u8]>),
        output: &Path,
        umask: Umask,
        dry: bool,
        stage: &RunningStage,
    ) -> Result<Transferred, TransferError> {
        let named = manifests_of(index).map_err(|reason| self.no_bundle(reason))?;
        let (mut blobs, mut manifests) = (BTreeMap::new(), Vec::new());
        for manifest in &named {
            let bytes = self.manifest(&self.at(&manifest.digest), &[MANIFEST_TYPE], manifest.size).await?;
            if bytes.len() as u64 != manifest.size {
                return Err(self.lies(&manifest.digest).into());
            }
            blobs.extend(blobs_of(&bytes).map_err(|reason| self.no_bundle(reason))?);
            manifests.push((manifest.digest, bytes));
        }
        if dry {
            let manifests = named.iter().map(|manifest| manifest.digest).collect();
            let (count, bytes) = (blobs.len(), blobs.values().sum());
            return Ok(Transferred { index: Digest::of(index), manifests, blobs: count, bytes, present: 0 });
        }
        let unfinished = Unfinished::open(output, umask)?;
        let moved = self.fill(&unfinished, (index, signed), blobs, manifests, stage).await?;
        unfinished.appear()?;
        Ok(moved)
    }

    async fn fill(
        &self,
        unfinished: &Unfinished<'_>,
        (index, signed): (&[u8], Option<&[u8]>),
        blobs: BTreeMap<Digest, u64>,
        manifests: Vec<(Digest, Vec<u8>)>,
        stage: &RunningStage,
    ) -> Result<Transferred, TransferError> {
        let (missing, present) = unfinished.missing(&blobs)?;
        let bytes = unfinished.check_space(&missing)?;
        let count = missing.len();
        let fetched = stream::iter(missing.into_iter().map(Ok)).try_for_each_concurrent(AT_ONCE, |blob| async move {
            let item = blob.digest.hex()[..12].to_owned();
            stage.item_started(&item);
            self.blob(blob, unfinished).await?;
            stage.item_finished(&item, "fetched", false);
            Ok::<_, RegistryError>(())
        });
        fetched.await?;
        for (digest, bytes) in &manifests {
            unfinished.write(&blob_name(digest), bytes)?;
        }
        for (name, bytes) in [(LAYOUT, Some(LAYOUT_TEXT)), (INDEX, Some(index)), (SIGNATURE, signed)] {
            match bytes {
                Some(bytes) => unfinished.write(name, bytes)?,
                None => unfinished.remove(name)?,
            }
        }
        // What is no bundle of ours does not appear.
        let layout = Layout::open(unfinished.path())?;
        let (description, _) = Description::read(&layout, index)?;
        names::check(&layout, &description, index)?;
        let manifests = manifests.into_iter().map(|(digest, _)| digest).collect();
        Ok(Transferred { index: Digest::of(index), manifests, blobs: count, bytes, present })
    }

    /// Fetches a blob, or the rest of one that an earlier attempt began.
    async fn blob(&self, blob: Named, unfinished: &Unfinished<'_>) -> Result<(), RegistryError> {
        let mut part = unfinished.begin(&blob)?;
        let mut fetched = self.rest(blob, &mut part, unfinished).await;
        if let Err(RegistryError::Lies { .. }) = fetched
            && part.is_continued()
        {
            // The earlier part may be what is damaged.
            part.restart().map_err(|error| unfinished.failed(error))?;
            fetched = self.rest(blob, &mut part, unfinished).await;
        }
        match fetched {
            Ok(()) => unfinished.finish(&blob.digest),
            // The next attempt must not build on such bytes.
            Err(error @ (RegistryError::Lies { .. } | RegistryError::TooLarge { .. })) => {
                part.restart().map_err(|error| unfinished.failed(error))?;
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Fetches what a part of a blob lacks, and compares the whole with its digest.
    async fn rest(&self, blob: Named, part: &mut Part, unfinished: &Unfinished<'_>) -> Result<(), RegistryError> {
        let mut pieces = self.pieces(blob, part.length()).await?;
        if pieces.start != part.length() {
            part.restart().map_err(|error| unfinished.failed(error))?;
        }
        while let Some(piece) = pieces.next(self).await? {
            part.add(&piece).map_err(|error| unfinished.failed(error))?;
        }
        match part.digest() == blob.digest {
            true => Ok(()),
            false => Err(self.lies(&blob.digest)),
        }
    }

    /// Fetches a blob into memory.
    async fn small_blob(&self, blob: Named) -> Result<Vec<u8>, RegistryError> {
        let (mut bytes, mut pieces) = (Vec::new(), self.pieces(blob, 0).await?);
        while let Some(piece) = pieces.next(self).await? {
            bytes.extend_from_slice(&piece);
        }
        match Digest::of(&bytes) == blob.digest {
            true => Ok(bytes),
            false => Err(self.lies(&blob.digest)),
        }
    }

    /// Asks for the bytes of a blob from `start` on. The registry may send it from its beginning.
    async fn pieces(&self, blob: Named, start: u64) -> Result<Pieces, RegistryError> {
        let text = blob.digest.to_string();
        let descriptor =
            OciDescriptor { digest: text, size: blob.size.try_into().unwrap_or(i64::MAX), ..OciDescriptor::default() };
        let (stream, start) = match start {
            0 => (self.within(SILENCE, DOING, self.client.pull_blob_stream(&self.reference, &descriptor)).await?, 0),
            start => {
                let asking = async {
                    match self.client.pull_blob_stream_partial(&self.reference, &descriptor, start, None).await {
                        // It has no part of a blob to give, or fewer bytes than are here.
                        Err(
                            OciDistributionError::ServerError { code: 400 | 405 | 416 | 501, .. }
                            | OciDistributionError::RegistryError { .. },
                        ) => {
                            let whole = self.client.pull_blob_stream(&self.reference, &descriptor).await?;
                            Ok(BlobResponse::Full(whole))
                        }
                        answered => answered,
                    }
                };
                match self.within(SILENCE, DOING, asking).await? {
                    BlobResponse::Full(stream) => (stream, 0),
                    BlobResponse::Partial(stream) => (stream, start),
                }
            }
        };
        let left = blob.size.saturating_sub(start);
        match stream.content_length {
            Some(length) if length > left => Err(self.too_large(&blob)),
            Some(length) if length < left => Err(self.lies(&blob.digest)),
            _ => Ok(Pieces { stream, blob, start, left }),
        }
    }

    fn too_large(&self, blob: &Named) -> RegistryError {
        RegistryError::TooLarge { reference: self.name(), what: blob.digest.to_string(), limit: blob.size }
    }
}

/// The bytes of a blob as they come, and not one more than its size.
struct Pieces {
    stream: SizedStream,
    blob: Named,
    /// Position of the first byte in the blob.
    start: u64,
    /// Bytes that have not come yet.
    left: u64,
}

impl Pieces {
    async fn next(&mut self, registry: &Registry) -> Result<Option<Bytes>, RegistryError> {
        let next = async { Ok(self.stream.next().await) };
        match registry.within(SILENCE, DOING, next).await? {
            Some(Ok(piece)) => match self.left.checked_sub(piece.len() as u64) {
                Some(left) => {
                    self.left = left;
                    Ok(Some(piece))
                }
                None => Err(registry.too_large(&self.blob)),
            },
            None if self.left == 0 => Ok(None),
            // The client compares digests, too. Those of a blob that ends early differ.
            Some(Err(error)) if error.get_ref().is_some_and(|inner| inner.is::<DigestError>()) && self.left == 0 => {
                Err(registry.lies(&self.blob.digest))
            }
            Some(Err(error)) if !error.get_ref().is_some_and(|inner| inner.is::<DigestError>()) => {
                Err(registry.error(DOING, error.into()))
            }
            None | Some(Err(_)) => Err(RegistryError::Exchange {
                reference: registry.name(),
                doing: DOING.to_owned(),
                reason: format!("the registry stopped {} bytes before the end of {}", self.left, self.blob.digest),
            }),
        }
    }
}

#[cfg(test)]
mod tests;
