//! Bundles in OCI registries: the index under a tag, everything else by digest, the signature beside it.
//!
//! A registry is untrusted: what it sends is bounded by the sizes that the index leads to, and compared with digests. Nothing
//! that an index names is fetched before the index was accepted.

mod credentials;
mod error;
mod manifest;
mod pull;
mod push;
mod unfinished;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::errors::{OciDistributionError, OciErrorCode};
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference, RegistryOperation};
use serde::Deserialize;

pub use self::error::{RegistryError, TransferError};
use super::description::{ARTIFACT_TYPE, MANIFEST_TYPE, MOST_BLOB_BYTES, MOST_DESCRIPTION_BYTES};
use crate::digest::Digest;

/// Media type of an index.
const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
/// Type of the artifact that a signature is, and media type of its one layer.
const SIGNATURE_TYPE: &str = "application/vnd.testevo-sandbox.bundle.signature.v1";
/// The most blobs that are on their way at once.
const AT_ONCE: usize = 4;
/// How long a registry may say nothing.
const SILENCE: Duration = Duration::from_secs(120);
/// How long connecting may take.
const CONNECTING: Duration = Duration::from_secs(30);
const USER_AGENT: &str = concat!("testevo-sandbox/", env!("CARGO_PKG_VERSION"));
/// The slowest connection by which a blob is sent, in bytes a second.
const SLOWEST: u64 = 32 << 10;
/// Largest total size of the manifests that an index names, in bytes.
const MOST_MANIFEST_BYTES: u64 = 256 << 20;

/// A blob or manifest that an index or manifest names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Named {
    digest: Digest,
    size: u64,
}

#[derive(Deserialize)]
struct IndexFile {
    manifests: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct ManifestFile {
    config: Descriptor,
    layers: Vec<Descriptor>,
    #[serde(rename = "artifactType")]
    artifact_type: Option<String>,
}

#[derive(Deserialize)]
struct Descriptor {
    #[serde(rename = "mediaType")]
    media_type: String,
    digest: Digest,
    size: u64,
    #[serde(rename = "artifactType")]
    artifact_type: Option<String>,
}

/// What was transferred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transferred {
    /// The index.
    pub index: Digest,
    /// The manifests that the index names, the bundle's first.
    pub manifests: Vec<Digest>,
    /// Number of blobs that were sent or fetched.
    pub blobs: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Number of blobs that were there already.
    pub present: usize,
}

/// A place in a registry: a repository of it with a tag, or with the digest of an index.
pub struct Registry {
    client: Client,
    /// Asks for manifests.
    http: reqwest::Client,
    /// Whether the registry is spoken to without TLS.
    plain: bool,
    /// What the registry gave the client to show with every request, if it wants that.
    token: Mutex<Option<String>>,
    reference: Reference,
    authentication: RegistryAuth,
}

impl Registry {
    /// Returns the place that a reference names. Registries on this machine's loopback are spoken to without TLS, others if
    /// `plain` says so.
    ///
    /// # Errors
    /// [`RegistryError::Reference`]; [`RegistryError::Unauthorized`] for credentials that can't be read.
    pub fn open(text: &str, plain: bool) -> Result<Self, RegistryError> {
        let wrong =
            |reason: String| RegistryError::Reference { text: crate::output::escape(text).into_owned(), reason };
        let reference: Reference = text.parse().map_err(|error: oci_client::ParseError| wrong(error.to_string()))?;
        if !text.starts_with(&format!("{}/", reference.registry())) {
            return Err(wrong("it names no registry".to_owned()));
        }
        // Another part of the program may have chosen this provider before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        if reference.digest().is_some_and(|digest| digest.parse::<Digest>().is_err()) {
            return Err(wrong("its digest is no SHA-256".to_owned()));
        }
        let host = reference.registry().rsplit_once(':').map_or(reference.registry(), |(host, _)| host);
        let is_loopback = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        let plain = plain || is_loopback;
        let config = ClientConfig {
            protocol: if plain { ClientProtocol::Http } else { ClientProtocol::Https },
            use_monolithic_push: true,
            // The client's own limit would end an upload, during which a registry says nothing.
            read_timeout: None,
            connect_timeout: Some(CONNECTING),
            platform_resolver: None,
            user_agent: USER_AGENT,
            ..ClientConfig::default()
        };
        let client = Client::try_from(config).map_err(|error| wrong(error.to_string()))?;
        let http = reqwest::Client::builder().connect_timeout(CONNECTING).user_agent(USER_AGENT).build();
        let http = http.map_err(|error| wrong(error.to_string()))?;
        let authentication = credentials::of(reference.registry()).map_err(|reason| RegistryError::Unauthorized {
            registry: reference.registry().to_owned(),
            reason: format!("credentials can't be used: {}", shown(&reason)),
        })?;
        Ok(Self { client, http, plain, token: Mutex::default(), reference, authentication })
    }

    /// Returns the reference as text.
    pub fn name(&self) -> String {
        self.reference.whole()
    }

    /// Returns the reference of a manifest in the same place.
    pub fn by_digest(&self, digest: &Digest) -> String {
        self.at(digest).whole()
    }

    fn at(&self, digest: &Digest) -> Reference {
        let (registry, repository) = (self.reference.registry().to_owned(), self.reference.repository().to_owned());
        Reference::with_digest(registry, repository, digest.to_string())
    }

    /// Returns the reference of an index's signature: a tag made of the index's digest.
    fn of_signature(&self, index: &Digest) -> Reference {
        let (registry, repository) = (self.reference.registry().to_owned(), self.reference.repository().to_owned());
        Reference::with_tag(registry, repository, format!("sha256-{}.bundle-signature", index.hex()))
    }

    fn error(&self, doing: &str, error: OciDistributionError) -> RegistryError {
        let reason = shown(&told(&error));
        let has = |code: &OciErrorCode| match &error {
            OciDistributionError::RegistryError { envelope, .. } => envelope.errors.iter().any(|one| one.code == *code),
            _ => false,
        };
        let (registry, reference) = (self.reference.registry().to_owned(), self.name());
        match &error {
            OciDistributionError::UnauthorizedError { .. } | OciDistributionError::AuthenticationFailure(_) => {
                RegistryError::Unauthorized { registry, reason }
            }
            OciDistributionError::RequestError(error)
                if error.status().is_some_and(|status| [401, 403].contains(&status.as_u16())) =>
            {
                RegistryError::Unauthorized { registry, reason }
            }
            _ if has(&OciErrorCode::Unauthorized) || has(&OciErrorCode::Denied) => {
                RegistryError::Unauthorized { registry, reason }
            }
            OciDistributionError::ServerError { code: 401 | 403, .. } => {
                RegistryError::Unauthorized { registry, reason }
            }
            OciDistributionError::ImageManifestNotFoundError(_)
            | OciDistributionError::ServerError { code: 404, .. } => RegistryError::Missing(reference),
            _ if [OciErrorCode::ManifestUnknown, OciErrorCode::NameUnknown, OciErrorCode::NotFound].iter().any(has) => {
                RegistryError::Missing(reference)
            }
            _ => RegistryError::Exchange { reference, doing: doing.to_owned(), reason },
        }
    }

    async fn log_in(&self, operation: RegistryOperation) -> Result<(), RegistryError> {
        let asking = self.client.auth(&self.reference, &self.authentication, operation);
        let token = self.within(SILENCE, "logging in", asking).await?;
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = token;
        Ok(())
    }

    /// Waits for an answer of the registry, but not for ever.
    async fn within<T>(
        &self,
        most: Duration,
        doing: &str,
        asked: impl Future<Output = Result<T, OciDistributionError>>,
    ) -> Result<T, RegistryError> {
        match tokio::time::timeout(most, asked).await {
            Ok(answered) => answered.map_err(|error| self.error(doing, error)),
            Err(_) => Err(self.silent(most, doing)),
        }
    }

    fn silent(&self, most: Duration, doing: &str) -> RegistryError {
        let reason = format!("no answer within {} seconds", most.as_secs());
        RegistryError::Exchange { reference: self.name(), doing: doing.to_owned(), reason }
    }

    fn lies(&self, digest: &Digest) -> RegistryError {
        self.lies_of(digest.to_string())
    }

    fn lies_of(&self, digest: String) -> RegistryError {
        RegistryError::Lies { reference: self.name(), digest: shown(&digest) }
    }

    fn no_bundle(&self, reason: String) -> RegistryError {
        RegistryError::NoBundle { reference: self.name(), reason: shown(&reason) }
    }
}

/// Returns a stranger's words: a part of them, without control characters.
fn shown(text: &str) -> String {
    const MOST: usize = 400;
    let part: String = text.chars().take(MOST).collect();
    crate::output::escape(&part).into_owned()
}

/// Returns an error of the client with its causes.
fn told(error: &OciDistributionError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

/// Returns the manifests that the index of a bundle names, the bundle's own first.
fn manifests_of(index: &[u8]) -> Result<Vec<Named>, String> {
    let index: IndexFile = serde_json::from_slice(index).map_err(|error| format!("index.json: {error}"))?;
    let is_bundle = |found: &&Descriptor| found.artifact_type.as_deref() == Some(ARTIFACT_TYPE);
    if index.manifests.iter().take(1).filter(is_bundle).count() != 1 {
        return Err("index.json does not begin with a bundle".to_owned());
    }
    let total = index.manifests.iter().fold(0_u64, |total, found| total.saturating_add(found.size));
    if total > MOST_MANIFEST_BYTES {
        return Err(format!("its manifests have {total} bytes, more than {MOST_MANIFEST_BYTES}"));
    }
    index.manifests.into_iter().map(named_manifest).collect()
}

fn named_manifest(found: Descriptor) -> Result<Named, String> {
    let Descriptor { media_type, digest, size, .. } = found;
    match media_type == MANIFEST_TYPE && size <= MOST_DESCRIPTION_BYTES {
        true => Ok(Named { digest, size }),
        false => Err(format!("index.json names {digest} with {size} bytes as `{media_type}`")),
    }
}

/// Returns the blobs that a manifest names, with their sizes.
fn blobs_of(manifest: &[u8]) -> Result<BTreeMap<Digest, u64>, String> {
    let manifest: ManifestFile = serde_json::from_slice(manifest).map_err(|error| format!("a manifest: {error}"))?;
    let named = manifest.layers.into_iter().chain([manifest.config]);
    let blobs: BTreeMap<Digest, u64> = named.map(|blob| (blob.digest, blob.size)).collect();
    match blobs.iter().find(|(_, size)| **size > MOST_BLOB_BYTES) {
        Some((digest, size)) => Err(format!("blob {digest} has {size} bytes, more than {MOST_BLOB_BYTES}")),
        None => Ok(blobs),
    }
}
