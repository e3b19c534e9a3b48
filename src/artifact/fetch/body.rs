//! Writes the bytes of one answer into the store.

use std::io::Write;

use futures_util::StreamExt;
use reqwest::{StatusCode, Url, header};
use tokio::sync::mpsc;

use super::{Fault, FetchError, Head, Retries, Wanted, guard, may_pass};
use crate::artifact::store::{BlobWriter, Store, StoreError};
use crate::digest::Digest;

/// The most pieces that wait for the disk.
const WAITING_PIECES: usize = 32;

/// A message to the writing thread.
enum Piece {
    Bytes(bytes::Bytes),
    /// Drop all bytes so far, because the origin starts anew.
    Restart,
    /// The file is complete. Without this message the file is not kept.
    End,
}

/// Downloads `url`. An interrupted transfer resumes at its last byte, if the origin supports that.
pub(super) async fn download(
    http: &reqwest::Client,
    store: &Store,
    url: &Url,
    wanted: &Wanted<'_>,
) -> Result<(Digest, u64), FetchError> {
    let (sender, receiver) = mpsc::channel(WAITING_PIECES);
    let writing = spawn_writer(store.clone(), receiver, wanted);
    let mut transfer = Transfer { sender, received: 0, tag: None };
    let mut retries = Retries::new(wanted);
    let sent = loop {
        match transfer.attempt(http, url, wanted).await {
            Ok(()) => break Ok(()),
            Err(fault) => match retries.after(fault).await {
                Ok(()) => {}
                Err(error) => break Err(error),
            },
        }
    };
    // If the writer failed, its error is the cause of all others.
    drop(transfer);
    let written = writing.await.map_err(|error| FetchError::Setup(error.to_string()))?;
    match (sent, written) {
        (_, Err(error)) => Err(error),
        (Err(error), Ok(_)) => Err(error),
        (Ok(()), Ok(Some(found))) => Ok(found),
        (Ok(()), Ok(None)) => Err(wanted.unreachable("the transfer was not completed")),
    }
}

struct Transfer {
    sender: mpsc::Sender<Piece>,
    received: u64,
    /// A strong entity tag. Without it, two answers can't be recognised as parts of the same file.
    tag: Option<header::HeaderValue>,
}

impl Transfer {
    async fn attempt(&mut self, http: &reqwest::Client, url: &Url, wanted: &Wanted<'_>) -> Result<(), Fault> {
        let mut request = http.get(url.clone());
        if let Some(accept) = wanted.accept {
            request = request.header(header::ACCEPT, accept);
        }
        // An expected digest detects a wrong continuation. Without one, only a tag does.
        let resume = self.received > 0 && (self.tag.is_some() || wanted.expected.is_some());
        if resume {
            request = request.header(header::RANGE, format!("bytes={}-", self.received));
            if let Some(tag) = &self.tag {
                request = request.header(header::IF_RANGE, tag.clone());
            }
        }
        let response = match send(request, wanted).await {
            Err(Fault::Final(FetchError::Refused { status: 416, .. })) if resume => {
                self.restart(wanted).await?;
                return Err(Fault::Passing(wanted.unreachable("the transfer can't be continued")));
            }
            other => other?,
        };
        if self.received > 0 && !(resume && continues_at(&response, self.received)) {
            self.restart(wanted).await?;
        }
        let rest = response.content_length();
        let total = rest.map(|rest| self.received + rest);
        if total.is_some_and(|total| total > wanted.max_bytes) {
            return Err(Fault::Final(wanted.too_large()));
        }
        self.tag = strong_tag(&response);
        let mut pieces = response.bytes_stream();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| Fault::Passing(wanted.unreachable(cause(&error.without_url()))))?;
            self.received += piece.len() as u64;
            if self.received > wanted.max_bytes {
                return Err(Fault::Final(wanted.too_large()));
            }
            self.send(Piece::Bytes(piece), wanted).await?;
        }
        if total.is_some_and(|total| total != self.received) {
            return Err(Fault::Passing(wanted.unreachable("the answer is shorter than announced")));
        }
        self.send(Piece::End, wanted).await
    }

    async fn restart(&mut self, wanted: &Wanted<'_>) -> Result<(), Fault> {
        self.received = 0;
        self.tag = None;
        self.send(Piece::Restart, wanted).await
    }

    async fn send(&self, piece: Piece, wanted: &Wanted<'_>) -> Result<(), Fault> {
        // The writer ends early only with an error, which the caller then reports.
        self.sender.send(piece).await.map_err(|_| Fault::Final(wanted.unreachable("the store did not take it")))
    }
}

fn continues_at(response: &reqwest::Response, start: u64) -> bool {
    let range = response.headers().get(header::CONTENT_RANGE).and_then(|value| value.to_str().ok());
    response.status() == StatusCode::PARTIAL_CONTENT
        && range
            .and_then(|range| range.strip_prefix("bytes "))
            .is_some_and(|range| range.split('-').next().and_then(|first| first.trim().parse().ok()) == Some(start))
}

fn strong_tag(response: &reqwest::Response) -> Option<header::HeaderValue> {
    response.headers().get(header::ETAG).filter(|tag| !tag.as_bytes().starts_with(b"W/")).cloned()
}

/// Sends a request and turns an unsuccessful status into a fault.
pub(super) async fn send(request: reqwest::RequestBuilder, wanted: &Wanted<'_>) -> Result<reqwest::Response, Fault> {
    let response = request.send().await.map_err(|error| {
        if guard::refused(&error) {
            return Fault::Final(wanted.private().into());
        }
        let hopeless = is_certificate_trouble(&error) || error.is_builder() || error.is_redirect();
        let silent = error.is_connect() || error.is_timeout();
        let cause = cause(&error.without_url());
        let error = if silent { wanted.silent(cause) } else { wanted.unreachable(cause) };
        if hopeless { Fault::Final(error) } else { Fault::Passing(error) }
    })?;
    let status = response.status();
    match status.as_u16() {
        200..=299 => Ok(response),
        404 | 410 => Err(Fault::Final(wanted.gone())),
        code if may_pass(status) => Err(Fault::Passing(wanted.unreachable(format!("it answers with status {code}")))),
        status => Err(Fault::Final(FetchError::Refused {
            origin: wanted.origin.clone(),
            path: wanted.path.to_owned(),
            status,
        })),
    }
}

fn is_certificate_trouble(error: &reqwest::Error) -> bool {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        let tls = error.downcast_ref::<rustls::Error>().or_else(|| inner?.downcast_ref());
        if matches!(tls, Some(rustls::Error::InvalidCertificate(_))) {
            return true;
        }
        next = error.source();
    }
    false
}

/// Returns the message of the innermost cause, which names no address.
pub(super) fn cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

type Written = Result<Option<(Digest, u64)>, FetchError>;

fn spawn_writer(
    store: Store,
    mut pieces: mpsc::Receiver<Piece>,
    wanted: &Wanted<'_>,
) -> tokio::task::JoinHandle<Written> {
    let expected = wanted.expected.copied();
    let (origin, path) = (wanted.origin.clone(), wanted.path.to_owned());
    tokio::task::spawn_blocking(move || {
        let io = |source| StoreError::Io { path: store.root().to_owned(), source };
        let mut writer = store.writer()?;
        while let Some(piece) = pieces.blocking_recv() {
            match piece {
                Piece::Bytes(bytes) => writer.write_all(&bytes).map_err(io)?,
                Piece::Restart => writer = store.writer()?,
                Piece::End => {
                    let wanted = Wanted {
                        origin: &origin,
                        path: &path,
                        accept: None,
                        expected: expected.as_ref(),
                        max_bytes: 0,
                    };
                    return commit(writer, &wanted).map(Some);
                }
            }
        }
        Ok(None)
    })
}

fn commit(writer: BlobWriter<'_>, wanted: &Wanted<'_>) -> Result<(Digest, u64), FetchError> {
    let Some(expected) = wanted.expected else { return Ok(writer.commit()?) };
    match writer.commit_expecting(expected, wanted.path) {
        Ok(size) => Ok((*expected, size)),
        Err(StoreError::WrongDigest { found, .. }) => Err(wanted.garbage(expected.to_string(), found.to_string())),
        Err(error) => Err(error.into()),
    }
}

/// Returns the file of a `file` address; for a directory, its `index.html`.
fn local_path(url: &Url, wanted: &Wanted<'_>) -> Result<std::path::PathBuf, FetchError> {
    let path = url.to_file_path().map_err(|()| wanted.invalid_path())?;
    Ok(if url.path().ends_with('/') { path.join("index.html") } else { path })
}

fn local_error(error: &std::io::Error, wanted: &Wanted<'_>) -> FetchError {
    use std::io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
    match error.kind() {
        NotFound | NotADirectory | IsADirectory => wanted.gone(),
        kind => wanted.unreachable(kind.to_string()),
    }
}

/// Copies the file of a `file` address.
pub(super) async fn copy_file(store: &Store, url: &Url, wanted: &Wanted<'_>) -> Result<(Digest, u64), FetchError> {
    let path = local_path(url, wanted)?;
    let store = store.clone();
    let (origin, name) = (wanted.origin.clone(), wanted.path.to_owned());
    let (expected, max_bytes) = (wanted.expected.copied(), wanted.max_bytes);
    let copying = tokio::task::spawn_blocking(move || {
        use std::io::Read as _;
        let expected = expected.as_ref();
        let wanted = Wanted { origin: &origin, path: &name, accept: None, expected, max_bytes };
        let file = fs_err::File::open(&path).map_err(|error| local_error(&error, &wanted))?;
        let metadata = file.metadata().map_err(|error| local_error(&error, &wanted))?;
        if !metadata.is_file() {
            return Err(wanted.gone());
        }
        let mut writer = store.writer()?;
        let copied = std::io::copy(&mut file.take(max_bytes.saturating_add(1)), &mut writer);
        if copied.map_err(|error| wanted.unreachable(error.kind().to_string()))? > max_bytes {
            return Err(wanted.too_large());
        }
        commit(writer, &wanted)
    });
    copying.await.map_err(|error| FetchError::Setup(error.to_string()))?
}

/// Returns information about the file of a `file` address.
pub(super) async fn head_file(url: &Url, wanted: &Wanted<'_>) -> Result<Head, FetchError> {
    let path = local_path(url, wanted)?;
    let metadata = tokio::fs::metadata(&path).await.map_err(|error| local_error(&error, wanted))?;
    let modified = metadata.modified().ok().and_then(|time| jiff::Timestamp::try_from(time).ok());
    Ok(Head { size: Some(metadata.len()), last_modified: modified, date: None })
}
