//! Bundles in OCI registries: the index under a tag, everything else by digest, the signature beside it.
//!
//! A registry is untrusted: what it sends is bounded by the sizes that the index leads to, and compared with digests. Nothing
//! that an index names is fetched before the index was accepted.

mod error;
mod pull;
mod push;
mod unfinished;

use std::collections::BTreeMap;
use std::time::Duration;

use docker_credential::{CredentialRetrievalError, DockerCredential};
use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::errors::{OciDistributionError, OciErrorCode};
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference, RegistryOperation};
use serde::Deserialize;

pub use self::error::{RegistryError, TransferError};
use super::description::{MANIFEST_TYPE, MOST_DESCRIPTION_BYTES};
use crate::digest::Digest;

/// Media type of an index.
const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
/// Type of the artifact that a signature is, and media type of its one layer.
const SIGNATURE_TYPE: &str = "application/vnd.testevo-sandbox.bundle.signature.v1";
/// The most blobs that are on their way at once.
const AT_ONCE: usize = 4;
/// How long a registry may say nothing.
const SILENCE: Duration = Duration::from_secs(120);

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
}

#[derive(Deserialize)]
struct Descriptor {
    #[serde(rename = "mediaType")]
    media_type: String,
    digest: Digest,
    size: u64,
}

/// What was transferred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transferred {
    /// The index.
    pub index: Option<Digest>,
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
#[derive(Clone)]
pub struct Registry {
    client: Client,
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
        let host = reference.registry().rsplit_once(':').map_or(reference.registry(), |(host, _)| host);
        let is_loopback = matches!(host, "localhost" | "[::1]") || host.starts_with("127.");
        let config = ClientConfig {
            protocol: if plain || is_loopback { ClientProtocol::Http } else { ClientProtocol::Https },
            use_monolithic_push: true,
            read_timeout: Some(SILENCE),
            connect_timeout: Some(Duration::from_secs(30)),
            platform_resolver: None,
            user_agent: concat!("testevo-sandbox/", env!("CARGO_PKG_VERSION")),
            ..ClientConfig::default()
        };
        let client = Client::try_from(config).map_err(|error| wrong(error.to_string()))?;
        let authentication = credentials(reference.registry()).map_err(|error| RegistryError::Unauthorized {
            registry: reference.registry().to_owned(),
            reason: format!("credentials can't be read: {}", crate::output::escape(&error.to_string())),
        })?;
        Ok(Self { client, reference, authentication })
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

    /// Returns where the signature of an index lies.
    fn of_signature(&self, index: &Digest) -> Reference {
        let (registry, repository) = (self.reference.registry().to_owned(), self.reference.repository().to_owned());
        Reference::with_tag(registry, repository, format!("sha256-{}.sig", index.hex()))
    }

    fn error(&self, doing: &str, error: OciDistributionError) -> RegistryError {
        let reason = crate::output::escape(&told(&error)).into_owned();
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
            OciDistributionError::ImageManifestNotFoundError(_) => RegistryError::Missing(reference),
            _ if has(&OciErrorCode::ManifestUnknown) || has(&OciErrorCode::NameUnknown) => {
                RegistryError::Missing(reference)
            }
            _ => RegistryError::Exchange { reference, doing: doing.to_owned(), reason },
        }
    }

    async fn log_in(&self, operation: RegistryOperation) -> Result<(), RegistryError> {
        let token = self.client.auth(&self.reference, &self.authentication, operation).await;
        token.map(drop).map_err(|error| self.error("logging in", error))
    }

    fn lies(&self, digest: &Digest) -> RegistryError {
        self.lies_of(digest.to_string())
    }

    fn lies_of(&self, digest: String) -> RegistryError {
        RegistryError::Lies { reference: self.name(), digest: crate::output::escape(&digest).into_owned() }
    }

    fn no_bundle(&self, reason: String) -> RegistryError {
        RegistryError::NoBundle { reference: self.name(), reason: crate::output::escape(&reason).into_owned() }
    }
}

/// Returns the credentials that Podman or Docker keep for a registry. Without any, the registry says whether it wants some.
fn credentials(registry: &str) -> Result<RegistryAuth, CredentialRetrievalError> {
    for found in [docker_credential::get_podman_credential, docker_credential::get_credential] {
        match found(registry) {
            Ok(DockerCredential::UsernamePassword(user, password)) => return Ok(RegistryAuth::Basic(user, password)),
            Ok(DockerCredential::IdentityToken(token)) => return Ok(RegistryAuth::Bearer(token)),
            Err(
                CredentialRetrievalError::NoCredentialConfigured
                | CredentialRetrievalError::ConfigNotFound
                | CredentialRetrievalError::ConfigReadError,
            ) => {}
            // What helpers say where they have none.
            Err(CredentialRetrievalError::HelperFailure { stdout, .. }) if stdout.contains("credentials not found") => {
            }
            Err(error) => return Err(error),
        }
    }
    Ok(RegistryAuth::Anonymous)
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

/// Returns the manifests that an index names.
fn manifests_of(index: &[u8]) -> Result<Vec<Named>, String> {
    let index: IndexFile = serde_json::from_slice(index).map_err(|error| format!("index.json: {error}"))?;
    index.manifests.into_iter().map(named_manifest).collect()
}

fn named_manifest(found: Descriptor) -> Result<Named, String> {
    let Descriptor { media_type, digest, size } = found;
    match media_type == MANIFEST_TYPE && size <= MOST_DESCRIPTION_BYTES {
        true => Ok(Named { digest, size }),
        false => Err(format!("index.json names {digest} with {size} bytes as `{media_type}`")),
    }
}

/// Returns the blobs that a manifest names, with their sizes.
fn blobs_of(manifest: &[u8]) -> Result<BTreeMap<Digest, u64>, String> {
    let manifest: ManifestFile = serde_json::from_slice(manifest).map_err(|error| format!("a manifest: {error}"))?;
    Ok(manifest.layers.into_iter().chain([manifest.config]).map(|blob| (blob.digest, blob.size)).collect())
}
