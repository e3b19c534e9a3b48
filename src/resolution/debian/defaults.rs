//! Finds origins that this machine does not know, in Debian's own packages: the defaults of Debian's Maven and pip.

use std::io::Cursor;

use jiff::Timestamp;

use super::archive::{Archive, ArchiveError, package_files};
use crate::artifact::fetch::{Client, FetchError, FoundOrigin};
use crate::artifact::origin::{
    AddressSource, Origin, OriginAddress, OriginName, central_of_super_pom, index_of_source,
};
use crate::lock::policy::ToolchainPolicy;

const MAX_PACKAGE: u64 = 32 << 20;
const MAX_FILE: u64 = 8 << 20;

/// Returns the address of `central` or `pypi` in Debian's own packages, and records it in the data directory. `None`
/// for other origins, and if the packages do not contain an address.
///
/// # Errors
/// [`FetchError`] if a package can't be fetched.
pub fn find<'a>(client: &'a Client, name: &'a OriginName) -> FoundOrigin<'a> {
    Box::pin(find_in_packages(client, name))
}

async fn find_in_packages(client: &Client, name: &OriginName) -> Result<Option<Origin>, FetchError> {
    let found = match name.as_str() {
        "central" => look(
            client,
            "libmaven3-core-java",
            &|path| path.starts_with("usr/share/java/maven3-model-builder") && path.ends_with(".jar"),
            &|bytes| central_of_super_pom(Cursor::new(bytes)),
        ),
        "pypi" => look(client, "python3-pip", &|path| path.ends_with("/pip/_internal/models/index.py"), &|bytes| {
            index_of_source(std::str::from_utf8(bytes).ok()?)
        }),
        _ => return Ok(None),
    };
    let Some(address) = found.await? else { return Ok(None) };
    client.origins().recorded().add(name, &address)?;
    let source = AddressSource::DebianPackage;
    Ok(Some(Origin { name: name.clone(), addresses: vec![address], source }))
}

async fn look(
    client: &Client,
    package: &str,
    wanted: &(dyn Fn(&str) -> bool + Sync),
    read: &(dyn Fn(&[u8]) -> Option<OriginAddress> + Sync),
) -> Result<Option<OriginAddress>, FetchError> {
    let debian = OriginName::debian();
    // Without Debian's archive the requested origin is unknown.
    if client.origins().resolve(&debian).is_err() {
        return Ok(None);
    }
    let Ok(policy) = ToolchainPolicy::builtin() else { return Ok(None) };
    client.events().message(format!("looking into Debian's package {package} for the address of an origin"));
    let suite = match Archive::new(client, &policy.debian, Timestamp::now()).suite(&policy.debian.suite).await {
        Ok(suite) => suite,
        Err(ArchiveError::Fetch(error)) => return Err(error),
        Err(error) => {
            client.events().warning(error.to_string());
            return Ok(None);
        }
    };
    let found = suite.index.named(package).unwrap_or_default().into_iter().next();
    let Some(found) = found.filter(|found| found.size <= MAX_PACKAGE) else { return Ok(None) };
    client.fetch(&debian, &found.path, Some(&found.sha256), found.size).await?;
    let files = package_files(client.store(), &found.sha256, package, MAX_FILE, wanted);
    Ok(files.ok().and_then(|found| found.files.iter().find_map(|(_, bytes)| read(bytes))))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::artifact::origin::{Machine, OriginError, OriginOptions, Origins};
    use crate::artifact::store::Store;
    use crate::event::EventSink;

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs the network and a Debian archive in apt's sources"]
    async fn origins_that_no_client_names_are_found_in_debians_packages() {
        let directory = tempfile::tempdir().unwrap();
        let debian = Origins::new(OriginOptions::default(), Machine::current(), directory.path());
        let debian = debian.resolve(&OriginName::debian()).unwrap().addresses[0].url().to_string();
        let given = BTreeMap::from([("debian".to_owned(), debian)]);
        let options = OriginOptions::new(&given, false, None).unwrap();
        let origins = Origins::new(options, Machine::at(directory.path(), None, &[]), directory.path());
        let store = Store::open(&directory.path().join("store"), &directory.path().join("tmp")).unwrap();
        let client = Client::new(origins, store, EventSink::none()).unwrap().finding_origins(find);
        for name in [OriginName::central(), OriginName::pypi()] {
            let origin = client.origin(&name).await.unwrap();
            assert_eq!(origin.source, AddressSource::DebianPackage);
            assert!(client.origins().resolve(&name).is_ok(), "it is remembered");
        }
        client.fetch(&OriginName::central(), "junit/junit/4.13.2/junit-4.13.2.pom", None, 1 << 20).await.unwrap();
        client.fetch(&OriginName::pypi(), "pip/", None, 10 << 20).await.unwrap();
        let error = client.origin(&"jboss".parse().unwrap()).await.unwrap_err();
        assert!(matches!(error, FetchError::Origin(OriginError::Unknown { .. })));
    }
}
