//! Checks the origins of images: the source of each address, and whether the origin answers.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::{Check, MissingOrigin};
use crate::artifact::fetch::{Client, FetchError};
use crate::artifact::origin::{AddressSource, OriginName};
use crate::error::Failure as _;

/// Longest wait for one origin; retries included.
const PATIENCE: Duration = Duration::from_secs(30);

/// The result of checking origins.
#[derive(Debug, Default)]
pub struct FoundOrigins {
    /// One check for each origin.
    pub checks: Vec<Check>,
    /// The first missing origin.
    pub missing: Option<MissingOrigin>,
    /// The time that the first answering origin reported.
    pub time: Option<Timestamp>,
}

/// Checks the addresses of the origins that locks name, and asks each origin for a file that it must have, unless
/// fetching is disabled.
pub async fn origins(client: &Client) -> FoundOrigins {
    let mut found = FoundOrigins::default();
    for (name, path) in [
        (OriginName::debian(), "dists/trixie/InRelease"),
        (OriginName::central(), "junit/junit/maven-metadata.xml"),
        (OriginName::pypi(), "universalmutator/"),
    ] {
        let (check, missing, time) = origin(client, &name, path).await;
        found.checks.push(check);
        found.missing = found.missing.or(missing);
        found.time = found.time.or(time);
    }
    found
}

async fn origin(client: &Client, name: &OriginName, path: &str) -> (Check, Option<MissingOrigin>, Option<Timestamp>) {
    let offline = client.origins().offline();
    let resolved = if offline {
        client.origins().resolve(name).map(std::sync::Arc::new).map_err(FetchError::from)
    } else {
        within(name, path, client.origin(name)).await
    };
    let resolved = match resolved {
        Ok(resolved) => resolved,
        Err(error) if offline => {
            let advice = error.hint().unwrap_or_default();
            let detail = format!("{name}: {error}, and nothing may be fetched");
            return (Check::warn("origin", detail, advice).with(json!({"name": name})), None, None);
        }
        Err(error) => return missing(name, error, None),
    };
    let source = resolved.source;
    if offline {
        let check = Check::ok("origin", format!("{name}: {}; not asked, because fetching is off", told(name, source)));
        return (check.with(json!({"name": name, "source": source})), None, None);
    }
    match within(name, path, client.head(name, path)).await {
        Ok(head) => (answers(name, source), None, head.date),
        // The origin answers. It does not support requests without content, which does no harm.
        Err(FetchError::Refused { status: 405 | 501, .. }) => (answers(name, source), None, None),
        Err(error) => missing(name, error, Some(source)),
    }
}

async fn within<T>(
    name: &OriginName,
    path: &str,
    work: impl Future<Output = Result<T, FetchError>>,
) -> Result<T, FetchError> {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(done) => done,
        Err(_) => Err(FetchError::OriginUnreachable {
            origin: name.clone(),
            path: path.to_owned(),
            cause: format!("no answer within {} seconds", PATIENCE.as_secs()),
            silent: true,
        }),
    }
}

fn answers(name: &OriginName, source: AddressSource) -> Check {
    Check::ok("origin", format!("{name}: {}; it answers", told(name, source)))
        .with(json!({"name": name, "source": source, "reachable": true}))
}

fn missing(
    name: &OriginName,
    error: FetchError,
    source: Option<AddressSource>,
) -> (Check, Option<MissingOrigin>, Option<Timestamp>) {
    let detail = match source {
        Some(source) => format!("{name}: {}; {error}", told(name, source)),
        None => format!("{name}: {error}"),
    };
    let advice = match &error {
        FetchError::Gone { .. } => format!("the address is no root of such an origin: give `--origin {name}=URL`"),
        error => error.hint().unwrap_or_else(|| format!("give another address with `--origin {name}=URL`")),
    };
    let facts = json!({"name": name, "source": source, "reachable": false});
    let missing = MissingOrigin { name: name.clone(), cause: error.to_string(), advice: advice.clone() };
    (Check::fail("origin", detail, advice).with(facts), Some(missing), None)
}

/// Describes the source of the address. The address itself may contain credentials.
fn told(name: &OriginName, source: AddressSource) -> &'static str {
    match (source, name.as_str()) {
        (AddressSource::Settings, _) => "address by flag, environment or settings",
        (AddressSource::Client, "debian") => "address by apt's sources",
        (AddressSource::Client, "central") => "address by Maven's settings or installation",
        (AddressSource::Client, "pypi") => "address by pip's configuration or installation",
        (AddressSource::Client, _) => "address by the machine's own client",
        (AddressSource::Recorded, _) => "address by an earlier run",
        (AddressSource::DebianPackage, _) => "address by a package of Debian's",
    }
}
