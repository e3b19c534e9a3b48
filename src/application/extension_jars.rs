//! The user's jars that a manifest names: their files are read by `lock` alone, which keeps them in the store.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::artifact::store::{Store, StoreError};
use crate::digest::Digest;
use crate::error::{ExitStatus, Failure};
use crate::lock::{LockedJar, RepositoryLock};
use crate::manifest::{ExtensionJar, RepositoryManifest};
use crate::output::size;
use crate::task::RepositoryName;

/// The largest extension jar, in bytes.
const MOST_BYTES: u64 = 256 << 20;

/// How a jar with files begins: the signature of a local file header in ZIP.
const ZIP_SIGNATURE: &[u8] = b"PK\x03\x04";

/// Errors of extension jars.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExtensionJarError {
    /// A file can't be read.
    #[error("the extension jar `{path}` of {repository} can't be read: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The repository.
        repository: RepositoryName,
        /// The system's error.
        source: io::Error,
    },
    /// A file is too large, or no jar.
    #[error("the extension jar `{path}` of {repository} {reason}")]
    Unsound {
        /// The file.
        path: PathBuf,
        /// The repository.
        repository: RepositoryName,
        /// What it is.
        reason: String,
    },
    /// A file has another digest than the manifest says.
    #[error("the extension jar `{path}` of {repository} has the digest {found}, not {wanted}")]
    OtherDigest {
        /// The file.
        path: PathBuf,
        /// The repository.
        repository: RepositoryName,
        /// The file's digest.
        found: Digest,
        /// The manifest's digest.
        wanted: Digest,
    },
    /// The store lacks a locked jar.
    #[error("the store lacks the extension jar {digest} of {repository}, which no origin has")]
    Lost {
        /// Its digest.
        digest: Digest,
        /// The repository.
        repository: RepositoryName,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Failure for ExtensionJarError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Unreadable { .. } | Self::Unsound { .. } => ExitStatus::BadInput,
            Self::OtherDigest { .. } | Self::Lost { .. } => ExitStatus::Mismatch,
            Self::Store(error) => error.exit_status(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Unreadable { .. } | Self::Unsound { .. } => {
                Some("correct `extension_jars` in the manifest's `[overrides]`".to_owned())
            }
            Self::OtherDigest { .. } => {
                Some("if it is the right file, write its digest into the manifest's `[overrides]`".to_owned())
            }
            Self::Lost { repository, .. } => Some(format!(
                "put the file where the manifest says and run `testevo-sandbox lock {repository}`, or import a `store \
                 export` that has it"
            )),
            Self::Store(error) => error.hint(),
        }
    }
}

/// Copies the manifest's extension jars into the store and returns them as a lock has them. `manifests` is the directory of
/// manifests. A file that is gone is not needed where the store has its content.
///
/// # Errors
/// [`ExtensionJarError`].
pub(super) fn keep(
    manifest: &RepositoryManifest,
    manifests: &Path,
    store: &Store,
) -> Result<Vec<LockedJar>, ExtensionJarError> {
    let mut jars = Vec::new();
    for jar in &manifest.extension_jars {
        jars.push(LockedJar { sha256: jar.sha256, size: keep_one(jar, &manifest.repository, manifests, store)? });
    }
    jars.sort_by_key(|jar| jar.sha256);
    Ok(jars)
}

/// Returns the jar's size in bytes.
fn keep_one(
    jar: &ExtensionJar,
    repository: &RepositoryName,
    manifests: &Path,
    store: &Store,
) -> Result<u64, ExtensionJarError> {
    if store.contains(&jar.sha256) && store.verify(&jar.sha256).is_ok() {
        return Ok(store.size(&jar.sha256)?);
    }
    let path = manifests.join(&jar.file);
    let unreadable =
        |source| ExtensionJarError::Unreadable { path: path.clone(), repository: repository.clone(), source };
    let unsound = |reason| ExtensionJarError::Unsound { path: path.clone(), repository: repository.clone(), reason };
    let metadata = fs::metadata(&path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(unsound("is no file".to_owned()));
    }
    if metadata.len() > MOST_BYTES {
        return Err(unsound(format!("has {}, more than {}", size(metadata.len()), size(MOST_BYTES))));
    }
    let bytes = fs::read(&path).map_err(unreadable)?;
    let found = Digest::of(&bytes);
    if found != jar.sha256 {
        let (repository, wanted) = (repository.clone(), jar.sha256);
        return Err(ExtensionJarError::OtherDigest { path, repository, found, wanted });
    }
    if !bytes.starts_with(ZIP_SIGNATURE) {
        return Err(unsound("is no jar: it does not begin as a ZIP archive".to_owned()));
    }
    store.put(&bytes)?;
    Ok(bytes.len() as u64)
}

/// Fails if one of the digests that the store lacks is an extension jar of the lock.
///
/// # Errors
/// [`ExtensionJarError::Lost`].
pub(super) fn refuse_lost(missing: &BTreeSet<Digest>, lock: &RepositoryLock) -> Result<(), ExtensionJarError> {
    match lock.extension_jars.iter().find(|jar| missing.contains(&jar.sha256)) {
        Some(jar) => Err(ExtensionJarError::Lost { digest: jar.sha256, repository: lock.repository.clone() }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_dir::DataDir;
    use crate::task::published::PublishedRepository;

    fn manifest(jars: Vec<ExtensionJar>) -> RepositoryManifest {
        let published = PublishedRepository {
            name: "o/r".parse().unwrap(),
            clone_url: "https://example.org/o/r.git".parse().unwrap(),
            is_cloned_from_elsewhere: false,
            java_version: 8,
            tasks: Vec::new(),
        };
        RepositoryManifest { extension_jars: jars, ..RepositoryManifest::of_published(&published).unwrap() }
    }

    #[test]
    fn a_jar_is_copied_once_and_every_other_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let data_dir = DataDir::open(&directory.path().join("data")).unwrap();
        let store = Store::of(&data_dir).unwrap();
        let bytes = b"PK\x03\x04 a jar";
        let path = directory.path().join("fx.jar");
        fs::write(&path, bytes).unwrap();
        let jar = ExtensionJar { file: "fx.jar".into(), sha256: Digest::of(bytes) };
        let keep = |jar: &ExtensionJar| keep(&manifest(vec![jar.clone()]), directory.path(), &store);

        let other = ExtensionJar { sha256: Digest::of(b"other"), ..jar.clone() };
        assert!(
            matches!(keep(&other).unwrap_err(), ExtensionJarError::OtherDigest { found, .. } if found == jar.sha256)
        );
        let none = ExtensionJar { file: "gone.jar".into(), ..jar.clone() };
        assert!(matches!(keep(&none).unwrap_err(), ExtensionJarError::Unreadable { .. }));
        let folder = ExtensionJar { file: ".".into(), ..jar.clone() };
        assert!(matches!(keep(&folder).unwrap_err(), ExtensionJarError::Unsound { .. }));
        fs::write(directory.path().join("text.jar"), "text").unwrap();
        let text = ExtensionJar { file: "text.jar".into(), sha256: Digest::of(b"text") };
        assert!(matches!(keep(&text).unwrap_err(), ExtensionJarError::Unsound { .. }));
        assert!(!store.contains(&text.sha256));

        let locked = LockedJar { sha256: jar.sha256, size: bytes.len() as u64 };
        assert_eq!(keep(&jar).unwrap(), [locked]);
        fs::remove_file(&path).unwrap();
        assert_eq!(keep(&jar).unwrap(), [locked]);
    }
}
