//! The archive at the origin `debian`: verified indexes of suites.

use std::io::Read;

use jiff::Timestamp;

use super::index::{IndexError, PackageIndex};
use super::release::{Release, ReleaseError};
use super::signature::{SignatureError, TrustedKeys};
use crate::artifact::fetch::{Client, FetchError};
use crate::artifact::origin::OriginName;
use crate::artifact::store::{Store, StoreError};
use crate::digest::Digest;
use crate::error::{ExitStatus, Failure};
use crate::image::{ImageError, PackageFiles};
use crate::lock::SignedIndex;
use crate::lock::policy::DebianPolicy;

const MAX_RELEASE: u64 = 16 << 20;
const MAX_PACKAGES: u64 = 64 << 20;
const MAX_PACKAGES_UNPACKED: u64 = 512 << 20;
const MAX_XZ_MEMORY: u64 = 256 << 20;
const MAX_KEYRING_PACKAGE: u64 = 8 << 20;
const MAX_KEYRING: u64 = 4 << 20;
const PACKAGES: &str = "main/binary-amd64/Packages.xz";
const KEYRING_PACKAGE: &str = "debian-archive-keyring";
const KEYRINGS: [&str; 2] =
    ["usr/share/keyrings/debian-archive-keyring.pgp", "usr/share/keyrings/debian-archive-keyring.gpg"];

/// Errors of a suite's index.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A file could not be fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The store could not be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The signed index is invalid.
    #[error("the signed index of `{suite}` can't be used: {reason}")]
    Release {
        /// The suite.
        suite: String,
        /// The problem.
        reason: ReleaseError,
    },
    /// The signature is invalid.
    #[error("the signed index of `{suite}` can't be trusted: {reason}")]
    Signature {
        /// The suite.
        suite: String,
        /// The problem.
        reason: SignatureError,
    },
    /// The index of packages is invalid.
    #[error("the packages of `{suite}` can't be read: {reason}")]
    Packages {
        /// The suite.
        suite: String,
        /// The problem.
        reason: String,
    },
    /// There are no certificates for checking signatures.
    #[error("Debian's keyring package can't be had: {reason}")]
    Keyring {
        /// The problem.
        reason: String,
    },
}

impl Failure for ArchiveError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Fetch(error) => error.exit_status(),
            Self::Store(error) => error.exit_status(),
            Self::Signature { .. } | Self::Release { .. } | Self::Packages { .. } | Self::Keyring { .. } => {
                ExitStatus::Origin
            }
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Fetch(error) => error.hint(),
            Self::Release { reason: ReleaseError::Expired { .. }, .. } => Some(
                "the mirror is out of date, or this machine's clock is wrong; for a mirror that is frozen on purpose \
                 write `check_valid_until = false` into settings.toml"
                    .to_owned(),
            ),
            Self::Release { reason: ReleaseError::Future { .. }, .. } => Some("set this machine's clock".to_owned()),
            Self::Signature { .. } | Self::Release { .. } | Self::Packages { .. } | Self::Keyring { .. } => {
                Some("give another mirror with `--origin debian=URL`".to_owned())
            }
            Self::Store(error) => error.hint(),
        }
    }
}

/// A suite's packages, and the index's signature.
#[derive(Debug)]
pub struct Suite {
    /// Its packages.
    pub index: PackageIndex,
    /// The signed index.
    pub signed: SignedIndex,
}

/// Reads suites through one client. The certificates are fetched once.
pub struct Archive<'a> {
    client: &'a Client,
    policy: &'a DebianPolicy,
    now: Timestamp,
    keys: Option<TrustedKeys>,
    /// The preferred suite's packages, read while looking for the keyring. They must not be used before they are
    /// verified.
    unverified: Option<(Digest, PackageIndex)>,
}

impl<'a> Archive<'a> {
    /// Returns the archive without fetching anything.
    pub fn new(client: &'a Client, policy: &'a DebianPolicy, now: Timestamp) -> Self {
        Self { client, policy, now, keys: None, unverified: None }
    }

    /// Fetches and verifies a suite.
    ///
    /// # Errors
    /// [`ArchiveError`].
    pub async fn suite(&mut self, suite: &str) -> Result<Suite, ArchiveError> {
        let (in_release, message) = self.in_release(suite).await?;
        let keys = match self.keys.take() {
            Some(keys) => keys,
            None => self.fetch_keys().await?,
        };
        let verified = keys.verify(&message, self.now);
        self.keys = Some(keys);
        let verified = verified.map_err(|reason| ArchiveError::Signature { suite: suite.to_owned(), reason })?;
        let wrong = |reason| ArchiveError::Release { suite: suite.to_owned(), reason };
        let release = Release::parse(&verified.text, suite, self.now).map_err(wrong)?;
        if let Err(error) = release.check_validity(self.now) {
            let origin = self.client.origin(&OriginName::debian()).await?;
            if self.client.origins().check_valid_until(origin.source) {
                return Err(wrong(error));
            }
            let text = format!("the index of Debian's `{suite}` is used although {error}");
            self.client.events().warning(text);
        }
        let (digest, size) = release.file(PACKAGES).map_err(wrong)?;
        let index = match self.unverified.take() {
            Some((of, index)) if of == digest => index,
            _ => self.packages(suite, &release, &digest, size).await?,
        };
        let signed =
            SignedIndex { suite: suite.to_owned(), in_release, date: release.date, signed_by: verified.signed_by };
        Ok(Suite { index, signed })
    }

    async fn in_release(&self, suite: &str) -> Result<(Digest, String), ArchiveError> {
        let path = format!("dists/{suite}/InRelease");
        let (digest, _) = self.client.fetch(&OriginName::debian(), &path, None, MAX_RELEASE).await?;
        let bytes = self.client.store().read(&digest)?;
        let text = String::from_utf8(bytes).map_err(|_| ArchiveError::Signature {
            suite: suite.to_owned(),
            reason: SignatureError::Malformed("it is not UTF-8".to_owned()),
        })?;
        Ok((digest, text))
    }

    async fn packages(
        &self,
        suite: &str,
        release: &Release,
        digest: &Digest,
        size: u64,
    ) -> Result<PackageIndex, ArchiveError> {
        let malformed = |reason: String| ArchiveError::Packages { suite: suite.to_owned(), reason };
        if size > MAX_PACKAGES {
            return Err(malformed(format!("the index is larger than {MAX_PACKAGES} bytes")));
        }
        let (directory, _) = PACKAGES.rsplit_once('/').unwrap_or(("", PACKAGES));
        // A file's digest gives access to it even while the mirror is being updated.
        let by_hash = format!("dists/{suite}/{directory}/by-hash/SHA256/{}", digest.hex());
        let plain = format!("dists/{suite}/{PACKAGES}");
        let debian = OriginName::debian();
        let first = if release.by_hash { &by_hash } else { &plain };
        match self.client.fetch(&debian, first, Some(digest), size).await {
            Err(FetchError::Gone { .. }) if release.by_hash => {
                self.client.fetch(&debian, &plain, Some(digest), size).await?
            }
            other => other?,
        };
        let (store, digest, name) = (self.client.store().clone(), *digest, suite.to_owned());
        let parsed = tokio::task::spawn_blocking(move || parse_packages(&store, &digest, &name)).await;
        parsed.map_err(|error| malformed(error.to_string()))?
    }

    /// Fetches the certificates. Their place comes from an index that is not verified yet, which does no harm because
    /// only pinned certificates count.
    async fn fetch_keys(&mut self) -> Result<TrustedKeys, ArchiveError> {
        let suite = self.policy.suite.clone();
        let (_, message) = self.in_release(&suite).await?;
        let (text, _) = pgp::composed::CleartextSignedMessage::from_string(&message).map_err(|error| {
            let reason = SignatureError::Malformed(super::printable(&error.to_string()));
            ArchiveError::Signature { suite: suite.clone(), reason }
        })?;
        let wrong = |reason| ArchiveError::Release { suite: suite.clone(), reason };
        let release = Release::parse(&text.signed_text(), &suite, self.now).map_err(wrong)?;
        let (digest, size) = release.file(PACKAGES).map_err(wrong)?;
        let index = self.packages(&suite, &release, &digest, size).await?;
        let missing = |reason: &str| ArchiveError::Keyring { reason: reason.to_owned() };
        let package = index.named(KEYRING_PACKAGE).map_err(|error| missing(&error.to_string()))?;
        let package = package.first().ok_or_else(|| missing("the suite does not have it"))?;
        if package.size > MAX_KEYRING_PACKAGE {
            return Err(missing("it is too large"));
        }
        self.client.fetch(&OriginName::debian(), &package.path, Some(&package.sha256), package.size).await?;
        let found = package_files(self.client.store(), &package.sha256, KEYRING_PACKAGE, MAX_KEYRING, &|path| {
            KEYRINGS.contains(&path)
        })
        .map_err(|error| missing(&error.to_string()))?;
        let (_, keyring) = found.files.first().ok_or_else(|| missing("it holds no keyring"))?;
        let keys = TrustedKeys::read(keyring, &self.policy.keys);
        self.unverified = Some((digest, index));
        keys.map_err(|error| missing(&error.to_string()))
    }
}

/// Returns a stored package's control text, and the files that `wanted` selects, by path.
pub(crate) fn package_files(
    store: &Store,
    digest: &Digest,
    name: &str,
    limit: u64,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<PackageFiles, ImageError> {
    let file = store.open_verified(digest)?;
    crate::image::read_package_files(std::io::BufReader::new(file), name, store, limit, wanted)
}

fn parse_packages(store: &Store, digest: &Digest, suite: &str) -> Result<PackageIndex, ArchiveError> {
    let malformed = |reason: String| ArchiveError::Packages { suite: suite.to_owned(), reason };
    let stream = liblzma::stream::Stream::new_stream_decoder(MAX_XZ_MEMORY, liblzma::stream::CONCATENATED);
    let stream = stream.map_err(|error| malformed(error.to_string()))?;
    let decoder = liblzma::read::XzDecoder::new_stream(store.open_verified(digest)?, stream);
    let mut bytes = Vec::new();
    let mut bounded = decoder.take(MAX_PACKAGES_UNPACKED);
    bounded.read_to_end(&mut bytes).map_err(|error| malformed(error.to_string()))?;
    if bounded.limit() == 0 {
        return Err(malformed(format!("the index is larger than {MAX_PACKAGES_UNPACKED} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| malformed("it is not UTF-8".to_owned()))?;
    PackageIndex::parse(text, suite).map_err(|error: IndexError| malformed(error.to_string()))
}

#[cfg(test)]
pub(crate) mod tests;
