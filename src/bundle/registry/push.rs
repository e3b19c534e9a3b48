//! Sends a bundle to a registry.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use oci_client::{Reference, RegistryOperation};
use serde_json::json;

use super::{
    AT_ONCE, INDEX_TYPE, Registry, RegistryError, SIGNATURE_TYPE, SILENCE, SLOWEST, TransferError, Transferred,
    blobs_of, manifests_of,
};
use crate::bundle::description::{MANIFEST_TYPE, MOST_INDEX_BYTES};
use crate::bundle::layout::{INDEX, SIGNATURE};
use crate::bundle::{BundleError, Layout, signature};
use crate::digest::Digest;
use crate::event::RunningStage;

/// Media type of the empty configuration. Source: OCI image specification, "Guidance for an empty descriptor".
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";
const EMPTY: &[u8] = b"{}";
/// Bytes that are read of a blob at once.
const PIECE: usize = 1 << 20;

impl Registry {
    /// Sends a bundle: blobs that the registry lacks, the manifests, the signature, and the index last. A dry run sends nothing, and
    /// tells what it would send.
    ///
    /// # Errors
    /// [`RegistryError`]; [`BundleError`] of the bundle, also for blobs that neither it nor the registry has.
    pub async fn push(
        &self,
        layout: Arc<Layout>,
        dry: bool,
        stage: &RunningStage,
    ) -> Result<Transferred, TransferError> {
        if self.reference.digest().is_some() {
            let reason = "a bundle is sent to a tag".to_owned();
            return Err(RegistryError::Reference { text: self.name(), reason }.into());
        }
        let index = layout.read(INDEX, MOST_INDEX_BYTES)?.unwrap_or_default();
        let signed = layout.read(SIGNATURE, signature::MOST_BYTES)?;
        let (mut blobs, mut manifests) = (BTreeMap::new(), Vec::new());
        let named = manifests_of(&index).map_err(|reason| layout.malformed(reason))?;
        for manifest in &named {
            let bytes = layout.read_blob(&manifest.digest, manifest.size)?;
            blobs.extend(blobs_of(&bytes).map_err(|reason| layout.malformed(reason))?);
            manifests.push((manifest.digest, bytes));
        }
        self.log_in(RegistryOperation::Push).await?;
        let sent: Vec<Option<u64>> = stream::iter(&blobs)
            .map(|(digest, size)| self.push_blob(&layout, digest, *size, dry, stage))
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        let id = Digest::of(&index);
        let present = sent.iter().filter(|sent| sent.is_none()).count();
        let bytes = sent.iter().flatten().sum();
        let names = named.iter().map(|manifest| manifest.digest).collect();
        let transferred = Transferred { index: id, manifests: names, blobs: sent.len() - present, bytes, present };
        if dry {
            return Ok(transferred);
        }
        for (digest, bytes) in manifests {
            // The client takes what it sends a manifest to for a tag.
            let (registry, repository) = (self.reference.registry(), self.reference.repository());
            let at = Reference::with_tag(registry.to_owned(), repository.to_owned(), digest.to_string());
            self.push_manifest(&at, bytes, MANIFEST_TYPE).await?;
        }
        if let Some(signed) = signed {
            self.push_signature(&id, index.len(), signed).await?;
        }
        self.push_manifest(&self.reference, index, INDEX_TYPE).await?;
        Ok(transferred)
    }

    /// Sends a blob that the registry lacks. Returns its size, `None` if it was there.
    async fn push_blob(
        &self,
        layout: &Arc<Layout>,
        digest: &Digest,
        size: u64,
        dry: bool,
        stage: &RunningStage,
    ) -> Result<Option<u64>, TransferError> {
        let (text, item) = (digest.to_string(), digest.hex()[..12].to_owned());
        let exists = self.client.blob_exists(&self.reference, &text);
        if self.within(SILENCE, "asking for a blob", exists).await? {
            stage.item_finished(&item, "there", false);
            return Ok(None);
        }
        if !layout.has(digest)? {
            return Err(BundleError::Lacking { name: layout.name().to_owned(), count: 1, first: *digest }.into());
        }
        if dry {
            return Ok(Some(size));
        }
        stage.item_started(&item);
        let reader = layout.open_blob(digest, size)?;
        let pieces = stream::try_unfold(reader, |mut reader| async move {
            let read = tokio::task::spawn_blocking(move || -> io::Result<_> {
                let mut piece = Vec::with_capacity(PIECE);
                reader.by_ref().take(PIECE as u64).read_to_end(&mut piece)?;
                Ok((piece, reader))
            });
            let (piece, reader) = read.await.map_err(io::Error::other)??;
            Ok((!piece.is_empty()).then(|| (Bytes::from(piece), reader)))
        });
        let most = SILENCE + Duration::from_secs(size / SLOWEST);
        let pushing = self.client.push_blob_stream(&self.reference, pieces, &text, Some(size));
        if let Err(error) = self.within(most, "sending a blob", pushing).await {
            // The registry compares digests, too: where the bundle is damaged, that is the reason.
            layout.check_blob(digest, size)?;
            stage.item_finished(&item, "failed", true);
            return Err(error.into());
        }
        stage.item_finished(&item, "sent", false);
        Ok(Some(size))
    }

    async fn push_manifest(&self, at: &Reference, bytes: Vec<u8>, kind: &'static str) -> Result<(), RegistryError> {
        let kind = reqwest::header::HeaderValue::from_static(kind);
        let pushing = self.client.push_manifest_raw(at, bytes, kind);
        self.within(SILENCE, "sending a manifest", pushing).await.map(drop)
    }

    async fn push_signature(&self, index: &Digest, size: usize, signed: Vec<u8>) -> Result<(), RegistryError> {
        let descriptor =
            |kind: &str, bytes: &[u8]| json!({"mediaType": kind, "digest": Digest::of(bytes), "size": bytes.len()});
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "artifactType": SIGNATURE_TYPE,
            "config": descriptor(EMPTY_TYPE, EMPTY),
            "layers": [descriptor(SIGNATURE_TYPE, &signed)],
            "subject": {"mediaType": INDEX_TYPE, "digest": index, "size": size},
        });
        for bytes in [EMPTY.to_vec(), signed] {
            let (digest, size) = (Digest::of(&bytes).to_string(), bytes.len() as u64);
            let pieces = stream::iter([Ok(Bytes::from(bytes))]);
            let pushing = self.client.push_blob_stream(&self.reference, pieces, &digest, Some(size));
            self.within(SILENCE, "sending the signature", pushing).await?;
        }
        self.push_manifest(&self.of_signature(index), manifest.to_string().into_bytes(), MANIFEST_TYPE).await
    }
}
