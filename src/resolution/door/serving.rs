//! The door as an HTTP server on its socket.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::BoxBody};
use hyper::body::Frame;
use hyper::{Method, Request, Response, StatusCode};
use tokio::net::{UnixListener, UnixStream};
use tokio_util::io::ReaderStream;

use super::fetching::sha1_of;
use super::find::{Found, find};
use super::{Asker, MAX_REFUSED, Sources, held, is_repository_path};
use crate::artifact::store::StoreError;
use crate::digest::Digest;

/// Serves connections for as long as the door is open.
pub(super) async fn accept(listener: UnixListener, asker: Arc<Asker>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve(stream, Arc::clone(&asker)));
            }
            Err(error) => {
                tracing::warn!("the door could not accept a connection: {error}");
                tokio::task::yield_now().await;
            }
        }
    }
}

async fn serve(stream: UnixStream, asker: Arc<Asker>) {
    let service = hyper::service::service_fn(move |request| {
        let asker = Arc::clone(&asker);
        async move { Ok::<_, Infallible>(answer(&asker, request).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .keep_alive(true)
        .serve_connection(hyper_util::rt::TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!("a connection through the door ended: {error}");
    }
}

type Body = BoxBody<Bytes, std::io::Error>;

async fn answer(asker: &Asker, request: Request<hyper::body::Incoming>) -> Response<Body> {
    let target = request.uri().path().to_owned();
    let wanted = match *request.method() {
        Method::GET | Method::HEAD => target.strip_prefix("/maven/").filter(|path| is_repository_path(path)),
        _ => None,
    };
    let Some(path) = wanted else {
        let asked = format!("{} {target}", request.method()).chars().take(300).collect();
        let mut troubles = held(&asker.troubles);
        if troubles.refused.len() < MAX_REFUSED {
            troubles.refused.insert(asked);
        }
        return plain(StatusCode::FORBIDDEN, String::new());
    };
    let with_body = request.method() == Method::GET;
    match find(asker, path).await {
        Found::Text(text) => plain(StatusCode::OK, text),
        Found::Absent => plain(StatusCode::NOT_FOUND, String::new()),
        Found::Failed(cause) => plain(StatusCode::BAD_GATEWAY, cause),
        Found::Blob { digest, size } => match blob(&asker.sources, &digest, size, with_body).await {
            Ok(response) => response,
            Err(error) => plain(StatusCode::BAD_GATEWAY, error.to_string()),
        },
    }
}

async fn blob(sources: &Sources, digest: &Digest, size: u64, with_body: bool) -> Result<Response<Body>, StoreError> {
    let mut response = Response::builder()
        .status(StatusCode::OK)
        .header(hyper::header::CONTENT_LENGTH, size)
        .header(hyper::header::CONTENT_TYPE, "application/octet-stream");
    if let Some(sum) = sha1_of(sources, digest).await {
        // Maven's resolver reads the checksum here, which saves a request.
        response = response.header("x-checksum-sha1", sum);
    }
    let body = if with_body {
        let file = tokio::fs::File::from_std(sources.store.open_sound(digest)?.into_file());
        StreamBody::new(ReaderStream::new(file).map_ok(Frame::data)).boxed()
    } else {
        empty()
    };
    Ok(response.body(body).unwrap_or_else(|_| plain(StatusCode::INTERNAL_SERVER_ERROR, String::new())))
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
