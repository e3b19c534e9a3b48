//! Fetches manifests, with a bound on their size. The client of registries reads an answer whole before anybody can look at its
//! size, so this file asks for manifests itself, with the client's token.

use std::time::Duration;

use futures_util::StreamExt as _;
use oci_client::errors::OciDistributionError;
use oci_client::secrets::RegistryAuth;
use oci_client::{Reference, RegistryOperation};
use reqwest::StatusCode;
use reqwest::header::ACCEPT;

use super::{Registry, RegistryError, SILENCE, SLOWEST, shown};
use crate::digest::Digest;

/// The most bytes that are read of a registry's words about an error.
const MOST_WORDS: usize = 4 << 10;
/// The header in which registries say the digest of what they send.
const DIGEST_HEADER: &str = "docker-content-digest";
const DOING: &str = "fetching a manifest";

impl Registry {
    /// Fetches the manifest of a tag or digest. Reads at most `most` bytes of it, and compares its digest.
    ///
    /// # Errors
    /// [`RegistryError::TooLarge`] for more than `most` bytes; [`RegistryError::Lies`] for other bytes than the digest says;
    /// errors of the exchange.
    pub(super) async fn manifest(&self, at: &Reference, kinds: &[&str], most: u64) -> Result<Vec<u8>, RegistryError> {
        let named = at.digest().or(at.tag()).unwrap_or_default();
        let too_large = || RegistryError::TooLarge { reference: self.name(), what: shown(named), limit: most };
        let limit = SILENCE + Duration::from_secs(most / SLOWEST);
        let read = async {
            let answer = match self.ask(at, kinds, false).await? {
                refused if refused.status() == StatusCode::UNAUTHORIZED => {
                    // A token may have run out.
                    self.log_in(RegistryOperation::Pull).await?;
                    self.ask(at, kinds, true).await?
                }
                answer => answer,
            };
            if answer.status() != StatusCode::OK {
                return Err(self.refusal(answer).await);
            }
            if answer.content_length().is_some_and(|length| length > most) {
                return Err(too_large());
            }
            let said = answer.headers().get(DIGEST_HEADER).and_then(|value| value.to_str().ok()).map(str::to_owned);
            let (mut bytes, mut pieces) = (Vec::new(), answer.bytes_stream());
            while let Some(piece) = pieces.next().await {
                let piece = piece.map_err(|error| self.error(DOING, error.into()))?;
                if (bytes.len() as u64).saturating_add(piece.len() as u64) > most {
                    return Err(too_large());
                }
                bytes.extend_from_slice(&piece);
            }
            Ok((bytes, said))
        };
        let (bytes, said) =
            tokio::time::timeout(limit, read).await.unwrap_or_else(|_| Err(self.silent(limit, DOING)))?;
        let found = Digest::of(&bytes).to_string();
        // What is asked for by a tag may have the digest of the header.
        let said = said.filter(|said| said.parse::<Digest>().is_ok());
        match [at.digest().map(str::to_owned), said].into_iter().flatten().find(|expected| *expected != found) {
            Some(expected) => Err(self.lies_of(expected)),
            None => Ok(bytes),
        }
    }

    /// Asks for a manifest. Without a token, a registry gets the user's name and password only `after` it refused the request.
    async fn ask(&self, at: &Reference, kinds: &[&str], after: bool) -> Result<reqwest::Response, RegistryError> {
        let scheme = if self.plain { "http" } else { "https" };
        let named = at.digest().or(at.tag()).unwrap_or_default();
        let url = format!("{scheme}://{}/v2/{}/manifests/{named}", at.resolve_registry(), at.repository());
        let mut request = self.http.get(url).header(ACCEPT, kinds.join(", "));
        let token = self.token.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        match (token, &self.authentication) {
            (Some(token), _) => request = request.bearer_auth(token),
            (None, RegistryAuth::Basic(user, password)) if after => request = request.basic_auth(user, Some(password)),
            _ => {}
        }
        request.send().await.map_err(|error| self.error(DOING, error.into()))
    }

    /// Returns the error of an answer without a manifest.
    async fn refusal(&self, answer: reqwest::Response) -> RegistryError {
        let (code, url) = (answer.status().as_u16(), answer.url().to_string());
        let (mut words, mut pieces) = (Vec::new(), answer.bytes_stream());
        while let Some(Ok(piece)) = pieces.next().await {
            words.extend_from_slice(&piece[..piece.len().min(MOST_WORDS - words.len())]);
            if words.len() == MOST_WORDS {
                break;
            }
        }
        let message = String::from_utf8_lossy(&words).into_owned();
        self.error(DOING, OciDistributionError::ServerError { code, url, message })
    }
}
