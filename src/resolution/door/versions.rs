//! Chooses the version that Maven gets as the newest. The first choice stays the same for ever.

use super::fetching::Denied;
use super::released::fetch_release;
use super::{MAX_ARTIFACT_BYTES, Sources, is_repository_path};
use crate::artifact::fetch::FetchError;
use crate::artifact::origin::OriginName;
use crate::digest::Digest;
use crate::lock::FrozenMetadata;
use crate::resolution::metadata;

/// Returns metadata with one version as the newest, and records it for later requests.
pub(super) async fn freeze(
    sources: &Sources,
    origin: &OriginName,
    cached: &str,
    digest: &Digest,
) -> Result<FrozenMetadata, String> {
    let bytes = sources.store.read(digest).map_err(|error| error.to_string())?;
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
    let (chosen, rule) = choose(sources, origin, &parsed).await?;
    Ok(FrozenMetadata {
        path: cached.to_owned(),
        rule,
        content: metadata::render(&parsed, &chosen),
        chosen: Some(chosen),
    })
}

/// Chooses the newest version, and returns the rule that led to it.
async fn choose(sources: &Sources, origin: &OriginName, of: &metadata::Metadata) -> Result<(String, String), String> {
    if let Some(version) = metadata::preferred(of) {
        return Ok((version.to_owned(), "runs all JUnit versions".to_owned()));
    }
    let candidates = metadata::candidates(of);
    for version in &candidates {
        let base = format!("{}/{}/{version}/{}-{version}", of.group.replace('.', "/"), of.artifact, of.artifact);
        if !is_repository_path(&base) {
            return Err(format!("the metadata names an impossible artifact `{}`", of.artifact));
        }
        let published = match sources.client.head(origin, &format!("{base}.pom")).await {
            Ok(head) => head.last_modified.map(|time| time.to_zoned(jiff::tz::TimeZone::UTC).date()),
            Err(FetchError::Gone { .. }) => continue,
            Err(error) => return Err(error.to_string()),
        };
        if published.is_some_and(|date| date > sources.cutoff) || !fits(sources, origin, &format!("{base}.jar")).await?
        {
            continue;
        }
        let java = format!("newest release for Java {}", sources.java);
        let rule = match published {
            Some(_) => format!("{java} by {}", sources.cutoff),
            None => format!("{java}; the origin tells no dates"),
        };
        return Ok(((*version).to_owned(), rule));
    }
    let oldest = candidates.last().ok_or("the metadata names no version")?;
    Ok(((*oldest).to_owned(), format!("oldest release, none fits Java {} by {}", sources.java, sources.cutoff)))
}

/// Tells whether a jar's classes run on the builds' Java. True for an artifact without a jar.
async fn fits(sources: &Sources, origin: &OriginName, jar: &str) -> Result<bool, String> {
    let digest = match fetch_release(sources, origin, jar, None, MAX_ARTIFACT_BYTES).await {
        Ok((digest, _)) => digest,
        Err(Denied::Fetch(FetchError::Gone { .. })) => return Ok(true),
        Err(error) => return Err(error.to_string()),
    };
    let file = sources.store.open_sound(&digest).map_err(|error| error.to_string())?;
    let release = tokio::task::spawn_blocking(move || metadata::java_release_of(file)).await;
    match release.map_err(|error| error.to_string())? {
        Ok(release) => Ok(release.is_none_or(|release| release <= sources.java)),
        // Maven could not use a broken jar either.
        Err(_) => Ok(false),
    }
}
