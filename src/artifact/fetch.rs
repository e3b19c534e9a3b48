//! Fetches files from origins into the store: streamed, hashed, limited in size, and retried after temporary faults.
//!
//! Messages name origins and paths, never addresses, because addresses may contain credentials.

mod body;
mod connect;
mod guard;
mod many;
mod reach;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use reqwest::{StatusCode, Url, header};

use super::origin::{Origin, OriginError, OriginName, Origins};
use super::store::{Store, StoreError};
use crate::digest::Digest;
use crate::error::{ExitStatus, Failure};
use crate::event::EventSink;

pub use many::{FetchItem, FetchManyError, FetchSummary};

const ATTEMPTS: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(if cfg!(test) { 1 } else { 400 });

/// Errors of fetching.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The origin's address is unknown.
    #[error(transparent)]
    Origin(#[from] OriginError),
    /// A path that can't be requested.
    #[error("`{path}` is no path below an origin")]
    InvalidPath {
        /// The path, without control characters.
        path: String,
    },
    /// The store lacks the file, and fetching is disabled.
    #[error("`{path}` of the origin `{origin}` is needed, but fetching is switched off")]
    Offline {
        /// The origin.
        origin: OriginName,
        /// Its path below the origin.
        path: String,
    },
    /// No complete answer after several attempts.
    #[error("the origin `{origin}` could not be reached for `{path}`: {cause}")]
    OriginUnreachable {
        /// The origin.
        origin: OriginName,
        /// Its path below the origin.
        path: String,
        /// The cause, without addresses.
        cause: String,
        /// Whether nothing answered at all. The origin is then not asked again.
        silent: bool,
    },
    /// The origin does not have the file.
    #[error("the origin `{origin}` does not have `{path}`")]
    Gone {
        /// The origin.
        origin: OriginName,
        /// Its path below the origin.
        path: String,
    },
    /// The origin refuses for another reason.
    #[error("the origin `{origin}` refused `{path}` with status {status}")]
    Refused {
        /// The origin.
        origin: OriginName,
        /// Its path below the origin.
        path: String,
        /// Status of the answer.
        status: u16,
    },
    /// The origin served other bytes than requested.
    #[error("the origin `{origin}` served other bytes for `{path}`: {expected} was expected, {found} came")]
    Garbage {
        /// The origin.
        origin: OriginName,
        /// Its path below the origin.
        path: String,
        /// The expected digest, or another checksum that the origin publishes.
        expected: String,
        /// The value that was found.
        found: String,
    },
    /// The file is larger than allowed.
    #[error("`{path}` of the origin `{origin}` is larger than {limit} bytes")]
    TooLarge {
        /// The origin.
        origin: OriginName,
        /// Its path below the origin.
        path: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// The store can't take the file.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The program's own HTTP client can't be set up.
    #[error("HTTP can't be set up: {0}")]
    Setup(String),
}

impl Failure for FetchError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Origin(error) => error.exit_status(),
            Self::Garbage { .. } => ExitStatus::Mismatch,
            Self::Store(error) => error.exit_status(),
            _ => ExitStatus::Origin,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Origin(error) => error.hint(),
            Self::Offline { .. } => {
                Some("run once without `--offline`, or bring the bytes with `store import`".to_owned())
            }
            Self::OriginUnreachable { origin, .. } => Some(format!(
                "check the network, the proxy variables and SSL_CERT_FILE, or give `--origin {origin}=URL`"
            )),
            Self::Gone { .. } => Some(
                "bring its bytes from where `store export` kept them, or resolve anew with `lock --update`".to_owned(),
            ),
            Self::Garbage { origin, .. } | Self::TooLarge { origin, .. } => Some(format!(
                "the mirror or a proxy in between serves wrong bytes; give another with `--origin {origin}=URL`"
            )),
            Self::Refused { origin, status: 401 | 403 | 407, .. } => {
                Some(format!("give credentials for the origin `{origin}` in its client's configuration or address"))
            }
            Self::Refused { origin, .. } => {
                Some(format!("try again later, or give another address with `--origin {origin}=URL`"))
            }
            Self::InvalidPath { .. } => {
                Some("the lock or an index is damaged: resolve anew with `lock --update`".to_owned())
            }
            Self::Store(error) => error.hint(),
            Self::Setup(_) => Some("check SSL_CERT_FILE, SSL_CERT_DIR and the proxy variables".to_owned()),
        }
    }
}

impl FetchError {
    /// Returns whether another address of the origin may succeed.
    pub(crate) fn is_about_one_address(&self) -> bool {
        matches!(
            self,
            Self::OriginUnreachable { .. }
                | Self::Gone { .. }
                | Self::Refused { .. }
                | Self::Garbage { .. }
                | Self::TooLarge { .. }
        )
    }
}

/// An origin's information about a file, without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Size in bytes, if the origin states it.
    pub size: Option<u64>,
    /// Time of the last change, if the origin states it; some mirrors do not.
    pub last_modified: Option<Timestamp>,
    /// The origin's present time, if the origin states it.
    pub date: Option<Timestamp>,
}

/// A request: the names for errors, and the parameters that are sent.
pub(crate) struct Wanted<'a> {
    pub(crate) origin: &'a OriginName,
    pub(crate) path: &'a str,
    pub(crate) accept: Option<&'static str>,
    pub(crate) expected: Option<&'a Digest>,
    pub(crate) max_bytes: u64,
}

impl Wanted<'_> {
    fn unreachable(&self, cause: impl Into<String>) -> FetchError {
        let (origin, path) = (self.origin.clone(), self.path.to_owned());
        FetchError::OriginUnreachable { origin, path, cause: cause.into(), silent: false }
    }

    fn silent(&self, cause: String) -> FetchError {
        let (origin, path) = (self.origin.clone(), self.path.to_owned());
        FetchError::OriginUnreachable { origin, path, cause, silent: true }
    }

    fn gone(&self) -> FetchError {
        FetchError::Gone { origin: self.origin.clone(), path: self.path.to_owned() }
    }

    fn too_large(&self) -> FetchError {
        FetchError::TooLarge { origin: self.origin.clone(), path: self.path.to_owned(), limit: self.max_bytes }
    }

    fn invalid_path(&self) -> FetchError {
        FetchError::InvalidPath { path: super::origin::printable(self.path) }
    }

    fn private(&self) -> OriginError {
        OriginError::Private { name: self.origin.clone() }
    }

    fn garbage(&self, expected: String, found: String) -> FetchError {
        FetchError::Garbage { origin: self.origin.clone(), path: self.path.to_owned(), expected, found }
    }
}

/// The address of an origin that this machine does not know; `None` if it can't be found. Finding it means fetching
/// from another origin, so the future contains another future of the client and must be boxed.
pub type FoundOrigin<'a> = Pin<Box<dyn Future<Output = Result<Option<Origin>, FetchError>> + Send + 'a>>;

/// Finds an origin with the help of other origins.
pub type FindOrigin = for<'a> fn(&'a Client, &'a OriginName) -> FoundOrigin<'a>;

/// Fetches from origins into one store. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    /// The client for addresses that POMs declare.
    guarded: reqwest::Client,
    guard: guard::Guard,
    store: Store,
    origins: Arc<Origins>,
    found: Arc<Mutex<BTreeMap<OriginName, Arc<Origin>>>>,
    find: Option<FindOrigin>,
    finding: Arc<tokio::sync::Mutex<()>>,
    reach: reach::Reach,
    events: EventSink,
}

impl Client {
    /// Returns a client that trusts the system's certificates (`SSL_CERT_FILE`, `SSL_CERT_DIR`) and uses the proxies
    /// of the usual variables.
    ///
    /// # Errors
    /// [`FetchError::Setup`].
    pub fn new(origins: Origins, store: Store, events: EventSink) -> Result<Self, FetchError> {
        let tls = connect::tls()?;
        let build = |builder: reqwest::ClientBuilder| {
            builder.build().map_err(|error| FetchError::Setup(body::cause(&error.without_url())))
        };
        let http = build(connect::builder(&tls).hickory_dns(true))?;
        let guard = guard::Guard::new(&|name| std::env::var(name).ok(), Arc::new(guard::interfaces));
        let guarded = build(guard.apply(connect::builder(&tls), Arc::new(guard::SystemNames::default())))?;
        Ok(Self {
            http,
            guarded,
            guard,
            store,
            origins: Arc::new(origins),
            found: Arc::default(),
            find: None,
            finding: Arc::default(),
            reach: reach::Reach::default(),
            events,
        })
    }

    /// Returns the client with a way to find origins that this machine does not know.
    #[must_use]
    pub fn finding_origins(self, find: FindOrigin) -> Self {
        Self { find: Some(find), ..self }
    }

    /// Returns the store for fetched files.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the origins of this client.
    pub fn origins(&self) -> &Origins {
        &self.origins
    }

    /// Returns the receiver of events.
    pub fn events(&self) -> &EventSink {
        &self.events
    }

    /// Returns the origin's addresses. If they must be fetched first, that is done once.
    ///
    /// # Errors
    /// [`FetchError`].
    pub async fn origin(&self, name: &OriginName) -> Result<Arc<Origin>, FetchError> {
        if let Some(origin) = self.remembered(name) {
            return Ok(origin);
        }
        let origin = match self.origins.resolve(name) {
            Err(error @ OriginError::Unknown { .. }) => {
                // Only one task searches, and the others use its result.
                let _looking = self.finding.lock().await;
                if let Some(origin) = self.remembered(name) {
                    return Ok(origin);
                }
                match self.find {
                    Some(find) => find(self, name).await?.ok_or(error)?,
                    None => return Err(error.into()),
                }
            }
            other => other?,
        };
        Ok(self.remember(origin))
    }

    fn remembered(&self, name: &OriginName) -> Option<Arc<Origin>> {
        let found = self.found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        found.get(name).cloned()
    }

    fn remember(&self, origin: Origin) -> Arc<Origin> {
        let origin = Arc::new(origin);
        let mut found = self.found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        found.insert(origin.name.clone(), Arc::clone(&origin));
        origin
    }

    /// Fetches `path` of the origin into the store and returns its digest and size in bytes. A file that the store has
    /// under the `expected` digest is not fetched.
    ///
    /// # Errors
    /// [`FetchError`]; of several addresses the last one's.
    pub async fn fetch(
        &self,
        origin: &OriginName,
        path: &str,
        expected: Option<&Digest>,
        max_bytes: u64,
    ) -> Result<(Digest, u64), FetchError> {
        self.fetch_wanted(&Wanted { origin, path, accept: None, expected, max_bytes }).await
    }

    pub(crate) async fn fetch_wanted(&self, wanted: &Wanted<'_>) -> Result<(Digest, u64), FetchError> {
        if let Some(expected) = wanted.expected
            && self.store.contains(expected)
        {
            return Ok((*expected, self.store.size(expected)?));
        }
        let urls = self.urls(wanted).await?;
        self.ask(wanted, async {
            let mut last = None;
            for url in urls {
                match self.fetch_url(&url, wanted).await {
                    Err(error) if error.is_about_one_address() => last = Some(error),
                    other => return other,
                }
            }
            // An origin without addresses has nothing.
            Err(last.unwrap_or_else(|| wanted.gone()))
        })
        .await
    }

    /// Fetches from an address in an index of the origin.
    pub(crate) async fn fetch_url(&self, url: &Url, wanted: &Wanted<'_>) -> Result<(Digest, u64), FetchError> {
        if let Some(expected) = wanted.expected
            && self.store.contains(expected)
        {
            return Ok((*expected, self.store.size(expected)?));
        }
        self.online(wanted)?;
        tracing::debug!(origin = %wanted.origin, path = wanted.path, "fetching");
        let http = self.http_for(url, wanted).await?;
        if url.scheme() == "file" {
            return body::copy_file(&self.store, url, wanted).await;
        }
        body::download(http, &self.store, url, wanted).await
    }

    /// Returns the client for an address of the wanted file's origin.
    async fn http_for(&self, url: &Url, wanted: &Wanted<'_>) -> Result<&reqwest::Client, FetchError> {
        if !self.origin(wanted.origin).await?.is_declared() {
            return Ok(&self.http);
        }
        if self.guard.admits(url) { Ok(&self.guarded) } else { Err(wanted.private().into()) }
    }

    fn online(&self, wanted: &Wanted<'_>) -> Result<(), FetchError> {
        if self.origins.offline() {
            return Err(FetchError::Offline { origin: wanted.origin.clone(), path: wanted.path.to_owned() });
        }
        Ok(())
    }

    /// Returns the full addresses to try; none for an origin that the user says is gone.
    pub(crate) async fn urls(&self, wanted: &Wanted<'_>) -> Result<Vec<Url>, FetchError> {
        self.online(wanted)?;
        let origin = self.origin(wanted.origin).await?;
        let urls: Option<Vec<Url>> = origin.addresses.iter().map(|address| address.join(wanted.path)).collect();
        urls.ok_or_else(|| wanted.invalid_path())
    }

    /// Asks the origin for information about a file.
    ///
    /// # Errors
    /// [`FetchError`].
    pub async fn head(&self, origin: &OriginName, path: &str) -> Result<Head, FetchError> {
        let wanted = Wanted { origin, path, accept: None, expected: None, max_bytes: 0 };
        let urls = self.urls(&wanted).await?;
        self.ask(&wanted, async {
            let mut last = None;
            for url in urls {
                match self.head_url(&url, &wanted).await {
                    Err(error) if error.is_about_one_address() => last = Some(error),
                    other => return other,
                }
            }
            Err(last.unwrap_or_else(|| wanted.gone()))
        })
        .await
    }

    async fn head_url(&self, url: &Url, wanted: &Wanted<'_>) -> Result<Head, FetchError> {
        let http = self.http_for(url, wanted).await?;
        if url.scheme() == "file" {
            return body::head_file(url, wanted).await;
        }
        let mut retries = Retries::new(wanted);
        let response = loop {
            match body::send(http.head(url.clone()), wanted).await {
                Ok(response) => break response,
                Err(fault) => retries.after(fault).await?,
            }
        };
        let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let time =
            |name| text(name).and_then(|date| jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(date).ok());
        Ok(Head {
            size: text(header::CONTENT_LENGTH).and_then(|size| size.parse().ok()),
            last_modified: time(header::LAST_MODIFIED),
            date: time(header::DATE),
        })
    }
}

/// A failed attempt: with a final fault, or with one that may pass.
pub(crate) enum Fault {
    Final(FetchError),
    Passing(FetchError),
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Final(error.into())
    }
}

/// Counts the attempts of a request: up to [`ATTEMPTS`], with growing pauses.
pub(crate) struct Retries<'a> {
    wanted: &'a Wanted<'a>,
    number: u32,
    pause: Duration,
}

impl<'a> Retries<'a> {
    /// Returns the state before the first attempt.
    pub(crate) fn new(wanted: &'a Wanted<'a>) -> Self {
        Self { wanted, number: 1, pause: FIRST_PAUSE }
    }

    /// Waits after a failed attempt, before the next one.
    ///
    /// # Errors
    /// The fault, if it is final or no attempt is left.
    pub(crate) async fn after(&mut self, fault: Fault) -> Result<(), FetchError> {
        match fault {
            Fault::Final(error) => Err(error),
            Fault::Passing(error) if self.number == ATTEMPTS => Err(error),
            Fault::Passing(error) => {
                let Self { wanted, number, .. } = self;
                tracing::debug!(origin = %wanted.origin, path = wanted.path, %error, number, "trying again");
                tokio::time::sleep(self.pause).await;
                self.pause *= 3;
                self.number += 1;
                Ok(())
            }
        }
    }
}

/// Returns whether a repeated request may get another status.
fn may_pass(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429)
}

#[cfg(test)]
mod tests;
