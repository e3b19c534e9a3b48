//! How this program connects: trusted certificates, timeouts, and its name.

use std::sync::Arc;
use std::time::Duration;

use super::FetchError;

const CONNECT_LIMIT: Duration = Duration::from_secs(30);
/// How long an origin may pause within an answer.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);

/// Returns a configuration that trusts the system's certificates.
pub(super) fn tls() -> Result<rustls::ClientConfig, FetchError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    let (added, _) = roots.add_parsable_certificates(native.certs);
    if added == 0 {
        // No error by itself, because origins on disk and over plain HTTP still work.
        tracing::warn!(errors = ?native.errors, "no trusted certificates were found");
    }
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| FetchError::Setup(error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Returns the builder of all HTTP clients of this program.
pub(super) fn builder(tls: &rustls::ClientConfig) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls.clone())
        .user_agent(concat!("testevo-sandbox/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_LIMIT)
        .read_timeout(SILENCE_LIMIT)
}
