//! Fetches a bundle from a registry.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::Path;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use oci_client::errors::{DigestError, OciDistributionError};
use oci_client::manifest::OciDescriptor;
use oci_client::{Reference, RegistryOperation};

use super::unfinished::Unfinished;
use super::{
    AT_ONCE, INDEX_TYPE, ManifestFile, Named, Registry, RegistryError, SIGNATURE_TYPE, SILENCE, TransferError,
    Transferred, blobs_of, manifests_of,
};
use crate::bundle::description::{MANIFEST_TYPE, MOST_INDEX_BYTES};
use crate::bundle::layout::{INDEX, LAYOUT, LAYOUT_TEXT, SIGNATURE, blob_name};
use crate::bundle::{Description, Layout, signature};
use crate::digest::{Digest, HashingWriter};
use crate::event::RunningStage;
use crate::umask::Umask;

impl Registry {
    /// Fetches the index and its signature. Whoever accepts them goes on with [`Registry::fetch`].
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn index(&self) -> Result<(Vec<u8>, Option<Vec<u8>>), RegistryError> {
        self.log_in(RegistryOperation::Pull).await?;
        // An image is asked for as well, to be told from nothing.
        let index = self.manifest(&self.reference, &[INDEX_TYPE, MANIFEST_TYPE]).await?;
        if index.len() as u64 > MOST_INDEX_BYTES {
            return Err(self.no_bundle(format!("its index has more than {MOST_INDEX_BYTES} bytes")));
        }
        let id = Digest::of(&index);
        let manifest = match self.manifest(&self.of_signature(&id), &[MANIFEST_TYPE]).await {
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
        let mut signed = Vec::new();
        let in_memory = |error: io::Error| malformed(error.to_string());
        self.blob(Named { digest: layer.digest, size: layer.size }, &mut signed, in_memory).await?;
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
            let bytes = self.manifest(&self.at(&manifest.digest), &[MANIFEST_TYPE]).await?;
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
            let mut file = unfinished.begin(&blob.digest)?;
            self.blob(blob, &mut file, |error| unfinished.failed(error)).await?;
            unfinished.finish(&blob.digest)?;
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
        Description::read(&Layout::open(unfinished.path())?, index)?;
        let manifests = manifests.into_iter().map(|(digest, _)| digest).collect();
        Ok(Transferred { index: Digest::of(index), manifests, blobs: count, bytes, present })
    }

    async fn manifest(&self, at: &Reference, kinds: &[&str]) -> Result<Vec<u8>, RegistryError> {
        let pulling = async {
            match self.client.pull_manifest_raw(at, &self.authentication, kinds).await {
                Err(OciDistributionError::DigestError(_)) => Ok(None),
                pulled => pulled.map(Some),
            }
        };
        let Some((bytes, _)) = self.within(SILENCE, "fetching a manifest", pulling).await? else {
            return Err(self.lies_of(at.digest().unwrap_or_default().to_owned()));
        };
        match at.digest() {
            Some(digest) if digest != Digest::of(&bytes).to_string() => Err(self.lies_of(digest.to_owned())),
            _ => Ok(bytes.to_vec()),
        }
    }

    /// Fetches a blob, and not a byte more than its size.
    async fn blob(
        &self,
        blob: Named,
        out: &mut (dyn io::Write + Send),
        unwritten: impl Fn(io::Error) -> RegistryError,
    ) -> Result<(), RegistryError> {
        let text = blob.digest.to_string();
        let descriptor =
            OciDescriptor { digest: text, size: blob.size.try_into().unwrap_or(i64::MAX), ..OciDescriptor::default() };
        const DOING: &str = "fetching a blob";
        let opening = self.client.pull_blob_stream(&self.reference, &descriptor);
        let mut pieces = self.within(SILENCE, DOING, opening).await?.stream;
        let mut hasher = HashingWriter::new(out);
        let mut left = blob.size;
        loop {
            let next = async { Ok(pieces.next().await) };
            let piece = match self.within(SILENCE, DOING, next).await? {
                None => break,
                Some(Ok(piece)) => piece,
                // The client compares digests, too.
                Some(Err(error)) if error.get_ref().is_some_and(|inner| inner.is::<DigestError>()) => {
                    return Err(self.lies(&blob.digest));
                }
                Some(Err(error)) => return Err(self.error(DOING, error.into())),
            };
            left = left.checked_sub(piece.len() as u64).ok_or_else(|| self.lies(&blob.digest))?;
            hasher.write_all(&piece).map_err(&unwritten)?;
        }
        match left == 0 && hasher.finish().1 == blob.digest {
            true => Ok(()),
            false => Err(self.lies(&blob.digest)),
        }
    }
}
