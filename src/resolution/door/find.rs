//! Finds the answer for a path: earlier passages first, then the tree, then the origins.

use std::io::Read as _;

use super::fetching::{Denied, fetch, sha1_of};
use super::released::fetch_release;
use super::versions::freeze;
use super::{Asker, MAX_ARTIFACT_BYTES, MIRROR_ID, Sources, Trouble, held};
use crate::artifact::fetch::FetchError;
use crate::artifact::origin::{OriginError, OriginName};
use crate::digest::Digest;
use crate::lock::{MavenFile, release_path};
use crate::resolution::bookkeeping::is_bookkeeping;
use crate::resolution::metadata;

/// The door's answer for a path.
pub(super) enum Found {
    /// A file in the store.
    Blob { digest: Digest, size: u64 },
    /// A text that this program makes: metadata or a checksum.
    Text(String),
    /// No origin has it.
    Absent,
    /// Unknown, with the cause.
    Failed(String),
}

/// Finds a file of a Maven repository: in earlier passages, in the tree, or at an origin.
pub(super) async fn find(asker: &Asker, path: &str) -> Found {
    if path.ends_with("/maven-metadata.xml") {
        return find_metadata(asker, path).await;
    }
    let sources = &*asker.sources;
    if let Some(of) = path.strip_suffix(".sha1") {
        let digest = held(&sources.passage).files.get(of).map(|file| file.sha256);
        return match digest {
            Some(digest) => sha1_of(sources, &digest).await.map_or(Found::Absent, Found::Text),
            None => Found::Absent,
        };
    }
    if is_bookkeeping(path) || [".md5", ".sha256", ".sha512", ".asc"].iter().any(|suffix| path.ends_with(suffix)) {
        return Found::Absent;
    }
    let gate = match sources.allowance.gate(path) {
        Ok(gate) => gate,
        Err(exhausted) => return Found::Failed(exhausted.to_string()),
    };
    let _alone = gate.lock().await;
    {
        let mut passage = held(&sources.passage);
        if !passage.files.contains_key(path)
            && let Some(file) = held(&asker.in_tree).get(path)
        {
            passage.files.insert(path.to_owned(), file.clone());
        }
        if let Some(file) = passage.files.get(path)
            && sources.store.sound(&file.sha256).is_ok()
        {
            return Found::Blob { digest: file.sha256, size: file.size };
        }
        if held(&asker.troubles).absent.contains(path) {
            return Found::Absent;
        }
    }
    let known = held(&sources.passage).files.get(path).cloned();
    let mut asked = match &known {
        Some(file) => ask(sources, &file.path_at_origin(), Some(file)).await,
        None => ask(sources, path, None).await,
    };
    let mut released = known.as_ref().is_some_and(|file| file.released);
    // A snapshot that no origin has, or may have. What is locked has its bytes, and nothing stands in for it. Neither does
    // anything for a jar: a release may need this repository's own release, which has later code.
    if known.is_none()
        && path.ends_with(".pom")
        && matches!(&asked, Err(failure) if failure.as_ref().is_none_or(Trouble::is_bearable))
        && !sources.own.iter().any(|own| path.strip_prefix(own.as_str()).is_some_and(|rest| rest.starts_with('/')))
        && let Some(release) = release_path(path)
    {
        match ask(sources, &release, None).await {
            Ok(found) => {
                tell_of_release(sources, path, &release, asked.err().flatten());
                (asked, released) = (Ok(found), true);
            }
            Err(Some(failure)) => asked = Err(Some(failure)),
            Err(None) => {}
        }
    }
    match asked {
        Ok((origin, sha256, size)) => {
            let file =
                MavenFile { path: path.to_owned(), origin: origin.to_string(), sha256, size, own: false, released };
            held(&asker.troubles).failed.remove(path);
            held(&sources.passage).files.insert(path.to_owned(), file);
            Found::Blob { digest: sha256, size }
        }
        Err(failure) => not_found(asker, path, failure),
    }
}

/// Asks one origin after another for a path of theirs. A locked file is requested from its own origin first. It must have
/// the locked bytes, whichever origin serves it. The error is the most severe failure, or `None` if all of them lack the file.
async fn ask(
    sources: &Sources,
    path: &str,
    known: Option<&MavenFile>,
) -> Result<(OriginName, Digest, u64), Option<Trouble>> {
    let mut failure = None;
    let origins = held(&sources.origins).clone();
    let locked = known.and_then(|file| file.origin.parse().ok());
    for origin in locked.iter().chain(&origins) {
        match fetch_release(sources, origin, path, known.map(|file| &file.sha256), MAX_ARTIFACT_BYTES).await {
            Ok((sha256, _)) if known.is_none() && is_page(sources, path, &sha256) => {
                failure = Some(worse(failure, page(sources, origin, path).await));
            }
            Ok((sha256, size)) => return Ok((origin.clone(), sha256, size)),
            Err(Denied::Fetch(FetchError::Gone { .. })) => {}
            // A locked file has an origin, so an unreachable one must be reported.
            Err(Denied::Fetch(FetchError::Origin(error @ OriginError::Private { .. }))) if known.is_none() => {
                leave_out(sources, origin, &error);
            }
            Err(error) => failure = Some(trouble(sources, origin, &error, failure).await),
        }
    }
    Err(failure)
}

/// Warns that a release's POM stands in for a snapshot's, which an origin may have if it is closed.
fn tell_of_release(sources: &Sources, path: &str, release: &str, failure: Option<Trouble>) {
    let warning = match failure.filter(|failure| failure.closed) {
        Some(Trouble { origin, cause, .. }) => {
            format!("{cause}: {release} stands in for it. If you may use that origin, give `--origin {origin}=URL`")
        }
        None => format!("no origin that answers has {path}: {release} stands in for it"),
    };
    sources.client.events().warning(warning);
}

/// Tells whether a POM, a jar or metadata is a web page. Hosts that are gone often have one for every address.
fn is_page(sources: &Sources, path: &str, digest: &Digest) -> bool {
    let mut begin = Vec::new();
    [".pom", ".jar", ".xml"].iter().any(|end| path.ends_with(end))
        && sources.store.open_blob(digest).is_ok_and(|file| file.take(4096).read_to_end(&mut begin).is_ok())
        && begins_a_page(&begin)
}

/// Tells whether a text begins as HTML does, after a declaration of XML and comments.
pub(super) fn begins_a_page(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text).to_ascii_lowercase();
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    while let Some(end) = [("<?", "?>"), ("<!--", "-->")].iter().find(|(begin, _)| rest.starts_with(begin)) {
        let Some((_, after)) = rest.split_once(end.1) else { return false };
        rest = after.trim_start();
    }
    rest.starts_with("<!doctype html") || rest.starts_with("<html")
}

/// Returns the failure of an origin that has a web page in place of a file.
async fn page(sources: &Sources, origin: &OriginName, path: &str) -> Trouble {
    let cause = format!("the origin `{origin}` has a web page in place of `{path}`");
    let declared = is_declared(sources, origin).await;
    Trouble { origin: origin.clone(), cause, silent: false, closed: true, declared }
}

async fn is_declared(sources: &Sources, origin: &OriginName) -> bool {
    sources.client.origin(origin).await.is_ok_and(|origin| origin.is_declared())
}

/// Returns the more severe of two failures for the same path. The least severe is that of an origin that only a POM names and
/// that does not answer or is closed.
fn worse(earlier: Option<Trouble>, trouble: Trouble) -> Trouble {
    earlier.filter(|earlier| !earlier.is_bearable()).unwrap_or(trouble)
}

/// Returns the more severe of an origin's error and an earlier failure for the same path.
pub(super) async fn trouble(
    sources: &Sources,
    origin: &OriginName,
    error: &Denied,
    earlier: Option<Trouble>,
) -> Trouble {
    let silent = matches!(error, Denied::Fetch(FetchError::OriginUnreachable { silent: true, .. }));
    let closed = matches!(error, Denied::Fetch(FetchError::Refused { status: 401 | 403, .. }));
    let declared = is_declared(sources, origin).await;
    worse(earlier, Trouble { origin: origin.clone(), cause: error.to_string(), silent, closed, declared })
}

/// Records that a path was not served, and why.
fn not_found(asker: &Asker, path: &str, failure: Option<Trouble>) -> Found {
    let mut troubles = held(&asker.troubles);
    match failure {
        Some(trouble) => {
            let cause = trouble.cause.clone();
            troubles.failed.insert(path.to_owned(), trouble);
            Found::Failed(cause)
        }
        None => {
            troubles.absent.insert(path.to_owned());
            Found::Absent
        }
    }
}

/// Stops using an origin that a POM may not name, and reports that once.
fn leave_out(sources: &Sources, origin: &OriginName, error: &OriginError) {
    let mut origins = held(&sources.origins);
    let before = origins.len();
    origins.retain(|known| known != origin);
    if origins.len() < before {
        let events = sources.client.events();
        events.warning(format!("{error}: it is not asked; if it is needed, give `--origin {origin}=URL`"));
    }
}

/// Answers a request for versions. The first answer stays the same for ever.
async fn find_metadata(asker: &Asker, path: &str) -> Found {
    let sources = &*asker.sources;
    let cached = cached_metadata_path(path);
    let gate = match sources.allowance.gate(path) {
        Ok(gate) => gate,
        Err(exhausted) => return Found::Failed(exhausted.to_string()),
    };
    let _alone = gate.lock().await;
    {
        let passage = held(&sources.passage);
        if let Some(frozen) = passage.metadata.get(&cached) {
            return Found::Text(frozen.content.clone());
        }
        if held(&asker.troubles).absent.contains(path) {
            return Found::Absent;
        }
    }
    let mut failure = None;
    let origins = held(&sources.origins).clone();
    for origin in origins {
        match fetch(sources, &origin, path, None, metadata::MAX_METADATA_BYTES).await {
            Ok((digest, _)) if is_page(sources, path, &digest) => {
                failure = Some(worse(failure, page(sources, &origin, path).await));
            }
            Ok((digest, _)) => match freeze(sources, &origin, &cached, &digest).await {
                Ok(frozen) => {
                    let text = frozen.content.clone();
                    held(&sources.passage).metadata.insert(cached, frozen);
                    return Found::Text(text);
                }
                Err(cause) => {
                    let declared = is_declared(sources, &origin).await;
                    failure = Some(Trouble { origin: origin.clone(), cause, silent: false, closed: false, declared });
                }
            },
            Err(Denied::Fetch(FetchError::Gone { .. })) => {}
            Err(Denied::Fetch(FetchError::Origin(error @ OriginError::Private { .. }))) => {
                leave_out(sources, &origin, &error);
            }
            Err(error) => failure = Some(trouble(sources, &origin, &error, failure).await),
        }
    }
    not_found(asker, path, failure)
}

/// Returns the path at which Maven caches metadata from the mirror.
pub(super) fn cached_metadata_path(path: &str) -> String {
    let directory = path.strip_suffix("maven-metadata.xml").unwrap_or(path);
    format!("{directory}maven-metadata-{MIRROR_ID}.xml")
}
