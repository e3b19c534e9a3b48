//! The one door of online steps: the only way out of a container that locks.
//!
//! A container has no network. Its init forwards loopback connections to this Unix socket, Maven's settings name it as
//! mirror of everything, and the door answers from the store or else from the origins, hashes and keeps what it gave.
//! The lock is written from what passed here, never from what strangers' plugins left in a cache. Nothing that a
//! container asks for is trusted: paths are validated, sizes bounded, addresses come from the origins alone.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::BoxBody};
use hyper::body::Frame;
use hyper::{Method, Request, Response, StatusCode};
use sha1::Digest as _;
use tokio::net::{UnixListener, UnixStream};
use tokio_util::io::ReaderStream;

use super::allowance::{Allowance, Exhausted};
use super::bookkeeping::is_bookkeeping;
use super::metadata;
use crate::artifact::fetch::{Client, FetchError};
use crate::artifact::origin::{OriginError, OriginName};
use crate::artifact::store::{Store, StoreError};
use crate::digest::{Digest, encode_hex};
use crate::lock::{FrozenMetadata, MavenFile};

/// The mirror's id in `images/settings.xml`; Maven names cached metadata after it.
pub const MIRROR_ID: &str = "testevo";

/// The loopback port that init listens on and the settings name.
pub const DOOR_PORT: u16 = 8099;

/// The largest artifact that passes, in bytes.
const MAX_ARTIFACT_BYTES: u64 = 1 << 30;

/// Refused requests that are kept for messages.
const MAX_REFUSED: usize = 100;

/// What can keep a door shut.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// The socket can't be made.
    #[error("the door's socket `{path}` could not be opened: {source}")]
    Socket {
        /// The socket.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What passed the door or was refused, by path.
#[derive(Clone, Debug, Default)]
pub struct Passage {
    /// Files that were given, by path in repository layout.
    pub files: BTreeMap<String, MavenFile>,
    /// Metadata that was given, by the path of its cached form.
    pub metadata: BTreeMap<String, FrozenMetadata>,
    /// Paths that no origin has.
    pub absent: BTreeSet<String>,
    /// Requests that failed for another reason: path and cause.
    pub failed: BTreeMap<String, String>,
    /// Requests for something that is no path of a Maven repository: method and target, as asked; the first ones.
    pub refused: BTreeSet<String>,
    /// Why nothing more is given, if so.
    pub exhausted: Option<Exhausted>,
}

/// What a door answers from.
pub struct DoorContext {
    /// Fetches from origins.
    pub client: Client,
    /// Keeps what passed.
    pub store: Store,
    /// Names of the origins to ask, in order.
    pub origins: Vec<OriginName>,
    /// The day after which a version does not count when Maven asks which there are.
    pub cutoff: jiff::civil::Date,
    /// Java release that builds run on; what needs a newer one is not chosen.
    pub java: u32,
    /// What an earlier lock or another container's passage already has.
    pub known: Passage,
}

/// An open door. Dropped, it closes and its socket goes.
pub struct Door {
    socket: PathBuf,
    shared: Arc<Shared>,
    accepting: tokio::task::JoinHandle<()>,
}

struct Shared {
    client: Client,
    store: Store,
    origins: Mutex<Vec<OriginName>>,
    cutoff: jiff::civil::Date,
    java: u32,
    passage: Mutex<Passage>,
    /// What the tree of the next container has, by path; the store has it.
    in_tree: Mutex<BTreeMap<String, MavenFile>>,
    /// SHA-1 sums of what passed, for `x-checksum-sha1` and `.sha1` requests.
    sums: Mutex<BTreeMap<Digest, String>>,
    allowance: Allowance,
}

impl Door {
    /// Opens a door at `socket`, which every user may connect to.
    ///
    /// # Errors
    /// [`DoorError::Socket`].
    pub fn open(socket: &Path, context: DoorContext) -> Result<Self, DoorError> {
        let error = |source| DoorError::Socket { path: socket.to_owned(), source };
        let listener = bind(socket).map_err(error)?;
        // The task's user is not ours; the directory above keeps other users of the host out.
        let everyone = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        fs_err::set_permissions(socket, everyone).map_err(error)?;
        let shared = Arc::new(Shared {
            client: context.client,
            store: context.store,
            origins: Mutex::new(context.origins),
            cutoff: context.cutoff,
            java: context.java,
            passage: Mutex::new(context.known),
            in_tree: Mutex::default(),
            sums: Mutex::default(),
            allowance: Allowance::new(),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { socket: socket.to_owned(), shared, accepting })
    }

    /// Returns where containers connect.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Adds origins that are asked after the present ones.
    pub fn add_origins(&self, names: impl IntoIterator<Item = OriginName>) {
        let mut origins = held(&self.shared.origins);
        for name in names {
            if !origins.contains(&name) {
                origins.push(name);
            }
        }
    }

    /// Returns what passed so far, together with what was known when it opened.
    pub fn passage(&self) -> Passage {
        Passage { exhausted: self.shared.allowance.exhausted(), ..held(&self.shared.passage).clone() }
    }

    /// Gives these files before origins are asked, in the stead of those that were given so until now.
    pub fn offer(&self, in_tree: BTreeMap<String, MavenFile>) {
        *held(&self.shared.in_tree) = in_tree;
    }

    /// Forgets what was refused or failed, so that the next container's troubles can be told from the last one's.
    pub fn forget_troubles(&self) {
        let mut passage = held(&self.shared.passage);
        passage.failed.clear();
        passage.refused.clear();
        passage.absent.clear();
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.accepting.abort();
        // Nobody can connect any more; a leftover socket file would be swept with its directory.
        let _ = fs_err::remove_file(&self.socket);
    }
}

/// Makes the socket. A socket's address holds some hundred bytes, a data directory's path may be longer: the directory is
/// named by its descriptor.
fn bind(socket: &Path) -> std::io::Result<UnixListener> {
    use std::os::fd::AsRawFd as _;
    let (Some(directory), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(std::io::Error::from(std::io::ErrorKind::InvalidInput));
    };
    let directory = fs_err::File::open(directory)?;
    UnixListener::bind(Path::new(&format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name))
}

/// Takes a lock whose data stays sound even where another holder panicked: every update is a single insertion.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: UnixListener, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
            Err(error) => {
                tracing::warn!("the door could not accept a connection: {error}");
                tokio::task::yield_now().await;
            }
        }
    }
}

async fn serve(stream: UnixStream, shared: Arc<Shared>) {
    let service = hyper::service::service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(answer(&shared, request).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .keep_alive(true)
        .serve_connection(hyper_util::rt::TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!("a connection through the door ended: {error}");
    }
}

type Body = BoxBody<Bytes, std::io::Error>;

/// What the door has for a path.
enum Found {
    Blob { digest: Digest, size: u64 },
    Text(String),
    Absent,
    Failed(String),
}

async fn answer(shared: &Shared, request: Request<hyper::body::Incoming>) -> Response<Body> {
    let target = request.uri().path().to_owned();
    let wanted = match *request.method() {
        Method::GET | Method::HEAD => target.strip_prefix("/maven/").filter(|path| is_repository_path(path)),
        _ => None,
    };
    let Some(path) = wanted else {
        let asked = format!("{} {target}", request.method()).chars().take(300).collect();
        let mut passage = held(&shared.passage);
        if passage.refused.len() < MAX_REFUSED {
            passage.refused.insert(asked);
        }
        return plain(StatusCode::FORBIDDEN, String::new());
    };
    let with_body = request.method() == Method::GET;
    match find(shared, path).await {
        Found::Text(text) => plain(StatusCode::OK, text),
        Found::Absent => plain(StatusCode::NOT_FOUND, String::new()),
        Found::Failed(cause) => plain(StatusCode::BAD_GATEWAY, cause),
        Found::Blob { digest, size } => match blob(shared, &digest, size, with_body).await {
            Ok(response) => response,
            Err(error) => plain(StatusCode::BAD_GATEWAY, error.to_string()),
        },
    }
}

async fn find(shared: &Shared, path: &str) -> Found {
    if path.ends_with("/maven-metadata.xml") {
        return find_metadata(shared, path).await;
    }
    if let Some(of) = path.strip_suffix(".sha1") {
        let digest = held(&shared.passage).files.get(of).map(|file| file.sha256);
        return match digest {
            Some(digest) => sha1_of(shared, &digest).await.map_or(Found::Absent, Found::Text),
            None => Found::Absent,
        };
    }
    if is_bookkeeping(path) || [".md5", ".sha256", ".sha512", ".asc"].iter().any(|suffix| path.ends_with(suffix)) {
        return Found::Absent;
    }
    let gate = match shared.allowance.gate(path) {
        Ok(gate) => gate,
        Err(exhausted) => return Found::Failed(exhausted.to_string()),
    };
    let _alone = gate.lock().await;
    {
        let mut passage = held(&shared.passage);
        if !passage.files.contains_key(path)
            && let Some(file) = held(&shared.in_tree).get(path)
        {
            passage.files.insert(path.to_owned(), file.clone());
        }
        if let Some(file) = passage.files.get(path)
            && shared.store.contains(&file.sha256)
        {
            return Found::Blob { digest: file.sha256, size: file.size };
        }
        if passage.absent.contains(path) {
            return Found::Absent;
        }
    }
    let known = held(&shared.passage).files.get(path).cloned();
    let mut failure = None;
    let origins = held(&shared.origins).clone();
    // What a lock names is asked of its own origin first, and must have the locked bytes wherever it comes from.
    let locked = known.as_ref().and_then(|file| file.origin.parse().ok());
    for origin in locked.iter().chain(&origins) {
        let expected = known.as_ref().map(|file| &file.sha256);
        match fetch(shared, origin, path, expected, MAX_ARTIFACT_BYTES).await {
            Ok((sha256, size)) => {
                let file = MavenFile { path: path.to_owned(), origin: origin.to_string(), sha256, size, own: false };
                let mut passage = held(&shared.passage);
                passage.failed.remove(path);
                passage.files.insert(path.to_owned(), file);
                return Found::Blob { digest: sha256, size };
            }
            Err(Denied::Fetch(FetchError::Gone { .. })) => {}
            // What is locked came from somewhere; that this is out of reach must be told.
            Err(Denied::Fetch(FetchError::Origin(error @ OriginError::Private { .. }))) if known.is_none() => {
                leave_out(shared, origin, &error);
            }
            Err(error) => failure = Some(error.to_string()),
        }
    }
    let mut passage = held(&shared.passage);
    match failure {
        Some(cause) => {
            passage.failed.insert(path.to_owned(), cause.clone());
            Found::Failed(cause)
        }
        None => {
            passage.absent.insert(path.to_owned());
            Found::Absent
        }
    }
}

/// Asks an origin no more of which it has come out that a POM may not name it, and tells of it once.
fn leave_out(shared: &Shared, origin: &OriginName, error: &OriginError) {
    let mut origins = held(&shared.origins);
    let before = origins.len();
    origins.retain(|known| known != origin);
    if origins.len() < before {
        let events = shared.client.events();
        events.warning(format!("{error}: it is not asked; if it is needed, give `--origin {origin}=URL`"));
    }
}

/// Why something was not fetched.
#[derive(Debug, thiserror::Error)]
enum Denied {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
}

/// Fetches within what one lock may.
async fn fetch(
    shared: &Shared,
    origin: &OriginName,
    path: &str,
    expected: Option<&Digest>,
    max_bytes: u64,
) -> Result<(Digest, u64), Denied> {
    let fetching = shared.allowance.fetching(max_bytes).await?;
    match shared.client.fetch(origin, path, expected, fetching.max_bytes).await {
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

/// Answers which versions there are: once chosen, always the same.
async fn find_metadata(shared: &Shared, path: &str) -> Found {
    let cached = cached_metadata_path(path);
    let gate = match shared.allowance.gate(path) {
        Ok(gate) => gate,
        Err(exhausted) => return Found::Failed(exhausted.to_string()),
    };
    let _alone = gate.lock().await;
    {
        let passage = held(&shared.passage);
        if let Some(frozen) = passage.metadata.get(&cached) {
            return Found::Text(frozen.content.clone());
        }
        if passage.absent.contains(path) {
            return Found::Absent;
        }
    }
    let mut failure = None;
    let origins = held(&shared.origins).clone();
    for origin in origins {
        match fetch(shared, &origin, path, None, metadata::MAX_METADATA_BYTES).await {
            Ok((digest, _)) => match freeze(shared, &origin, &cached, &digest).await {
                Ok(frozen) => {
                    let text = frozen.content.clone();
                    held(&shared.passage).metadata.insert(cached, frozen);
                    return Found::Text(text);
                }
                Err(cause) => failure = Some(cause),
            },
            Err(Denied::Fetch(FetchError::Gone { .. })) => {}
            Err(Denied::Fetch(FetchError::Origin(error @ OriginError::Private { .. }))) => {
                leave_out(shared, &origin, &error);
            }
            Err(error) => failure = Some(error.to_string()),
        }
    }
    let mut passage = held(&shared.passage);
    match failure {
        Some(cause) => {
            passage.failed.insert(path.to_owned(), cause.clone());
            Found::Failed(cause)
        }
        None => {
            passage.absent.insert(path.to_owned());
            Found::Absent
        }
    }
}

async fn freeze(shared: &Shared, origin: &OriginName, cached: &str, digest: &Digest) -> Result<FrozenMetadata, String> {
    let bytes = shared.store.read(digest).map_err(|error| error.to_string())?;
    let content = String::from_utf8(bytes).map_err(|_| "the metadata is not UTF-8".to_owned())?;
    let parsed = metadata::parse(&content).map_err(|error| error.to_string())?;
    let as_served = |rule: &str| FrozenMetadata {
        path: cached.to_owned(),
        rule: rule.to_owned(),
        chosen: None,
        content: content.clone(),
    };
    if parsed.version.is_some() {
        return Ok(as_served("snapshot, as the origin had it"));
    }
    if parsed.versions.is_empty() {
        return Ok(as_served("no versions, as the origin had it"));
    }
    let (chosen, rule) = choose(shared, origin, &parsed).await?;
    Ok(FrozenMetadata {
        path: cached.to_owned(),
        rule,
        content: metadata::render(&parsed, &chosen),
        chosen: Some(chosen),
    })
}

/// Chooses the version that "newest" shall mean, and says by which rule.
async fn choose(shared: &Shared, origin: &OriginName, of: &metadata::Metadata) -> Result<(String, String), String> {
    if let Some(version) = metadata::preferred(of) {
        return Ok((version.to_owned(), "runs all JUnit versions".to_owned()));
    }
    let candidates = metadata::candidates(of);
    for version in &candidates {
        let base = format!("{}/{}/{version}/{}-{version}", of.group.replace('.', "/"), of.artifact, of.artifact);
        if !is_repository_path(&base) {
            return Err(format!("the metadata names an impossible artifact `{}`", of.artifact));
        }
        let published = match shared.client.head(origin, &format!("{base}.pom")).await {
            Ok(head) => head.last_modified.map(|time| time.to_zoned(jiff::tz::TimeZone::UTC).date()),
            Err(FetchError::Gone { .. }) => continue,
            Err(error) => return Err(error.to_string()),
        };
        if published.is_some_and(|date| date > shared.cutoff) || !fits(shared, origin, &format!("{base}.jar")).await? {
            continue;
        }
        let java = format!("newest release for Java {}", shared.java);
        let rule = match published {
            Some(_) => format!("{java} by {}", shared.cutoff),
            None => format!("{java}; the origin tells no dates"),
        };
        return Ok(((*version).to_owned(), rule));
    }
    let oldest = candidates.last().ok_or("the metadata names no version")?;
    Ok(((*oldest).to_owned(), format!("oldest release, none fits Java {} by {}", shared.java, shared.cutoff)))
}

/// Tells whether a jar's classes run on the builds' Java; an artifact without a jar does.
async fn fits(shared: &Shared, origin: &OriginName, jar: &str) -> Result<bool, String> {
    let digest = match fetch(shared, origin, jar, None, MAX_ARTIFACT_BYTES).await {
        Ok((digest, _)) => digest,
        Err(Denied::Fetch(FetchError::Gone { .. })) => return Ok(true),
        Err(error) => return Err(error.to_string()),
    };
    let file = shared.store.open_blob(&digest).map_err(|error| error.to_string())?;
    let release = tokio::task::spawn_blocking(move || metadata::java_release_of(file)).await;
    match release.map_err(|error| error.to_string())? {
        Ok(release) => Ok(release.is_none_or(|release| release <= shared.java)),
        // Maven could not use a broken jar either.
        Err(_) => Ok(false),
    }
}

async fn blob(shared: &Shared, digest: &Digest, size: u64, with_body: bool) -> Result<Response<Body>, StoreError> {
    let mut response = Response::builder()
        .status(StatusCode::OK)
        .header(hyper::header::CONTENT_LENGTH, size)
        .header(hyper::header::CONTENT_TYPE, "application/octet-stream");
    if let Some(sum) = sha1_of(shared, digest).await {
        // Maven's resolver takes the sum from here and does not ask for it in a request of its own.
        response = response.header("x-checksum-sha1", sum);
    }
    let body = if with_body {
        let file = tokio::fs::File::from_std(shared.store.open_blob(digest)?.into_file());
        StreamBody::new(ReaderStream::new(file).map_ok(Frame::data)).boxed()
    } else {
        empty()
    };
    Ok(response.body(body).unwrap_or_else(|_| plain(StatusCode::INTERNAL_SERVER_ERROR, String::new())))
}

async fn sha1_of(shared: &Shared, digest: &Digest) -> Option<String> {
    if let Some(sum) = held(&shared.sums).get(digest) {
        return Some(sum.clone());
    }
    let mut file = shared.store.open_blob(digest).ok()?;
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
    held(&shared.sums).insert(*digest, sum.clone());
    Some(sum)
}

fn plain(status: StatusCode, text: String) -> Response<Body> {
    let body = Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

fn empty() -> Body {
    Full::new(Bytes::new()).map_err(|never| match never {}).boxed()
}

/// Tells whether a path can be one of a file in a Maven repository.
pub fn is_repository_path(path: &str) -> bool {
    path.len() <= 1024
        && path.contains('/')
        && path.split('/').all(|part| {
            !matches!(part, "" | "." | "..")
                && part.len() <= 255
                && part
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'+' | b'$' | b'~'))
        })
}

/// Returns where Maven keeps metadata that it got from the mirror.
fn cached_metadata_path(path: &str) -> String {
    let directory = path.strip_suffix("maven-metadata.xml").unwrap_or(path);
    format!("{directory}maven-metadata-{MIRROR_ID}.xml")
}

#[cfg(test)]
mod tests;
