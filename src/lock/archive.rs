//! Archives of locks with every byte that they name. They keep images buildable after their origins have changed.
//!
//! An archive is a tar archive with `archive.json` (schema and repositories) and `locks/toolchain.lock`. For each
//! repository it has `locks/<owner>__<name>.lock` and `manifests/<owner>__<name>.toml`. Last come `blobs/sha256/<hex>`,
//! sorted. Equal locks give equal bytes. An archive to read is untrusted: only these members are accepted, no path in
//! it is followed, and every byte is checked against a digest or parsed strictly.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{LockFile, LockFileError, RepositoryLock, ToolchainLock};
use crate::artifact::store::{Store, StoreError};
use crate::digest::Digest;
use crate::error::{ExitStatus, Failure};
use crate::member::Described;
use crate::task::RepositoryName;

/// Version of the archive's schema.
pub const ARCHIVE_SCHEMA: u32 = 1;

const DESCRIPTION: &str = "archive.json";
const TOOLCHAIN: &str = "locks/toolchain.lock";
/// Largest lock, manifest or description.
const MAX_TEXT: u64 = 64 << 20;
/// Largest blob: development kits have some hundred MB.
const MAX_BLOB: u64 = 4 << 30;
/// Largest number of members.
const MAX_MEMBERS: usize = 500_000;

/// Limits on memory while an archive is read.
struct Limits {
    /// Number of locks, manifests and descriptions.
    texts: usize,
    /// Their total size in bytes.
    text_bytes: u64,
}

const LIMITS: Limits = Limits { texts: 20_000, text_bytes: 256 << 20 };

/// Errors of an archive of locks.
#[derive(Debug, thiserror::Error)]
pub enum LockArchiveError {
    /// The file is not an archive of locks, or is truncated.
    #[error("the archive `{name}` can't be used: {reason}")]
    Malformed {
        /// The archive.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A newer program wrote it.
    #[error("the archive `{name}` has schema {found}, this program knows schema {ARCHIVE_SCHEMA}")]
    UnknownSchema {
        /// The archive.
        name: String,
        /// Its schema.
        found: u32,
    },
    /// A lock in the archive can't be read.
    #[error(transparent)]
    Lock(#[from] LockFileError),
    /// The store failed, or bytes do not have the digest of their name.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Reading or writing failed.
    #[error("the archive `{name}` could not be {doing}")]
    Io {
        /// The archive.
        name: String,
        /// `read` or `written`.
        doing: &'static str,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl Failure for LockArchiveError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Lock(error) => error.exit_status(),
            Self::Store(error) => error.exit_status(),
            Self::Malformed { .. } => ExitStatus::BadInput,
            Self::UnknownSchema { .. } => ExitStatus::Mismatch,
            Self::Io { .. } => ExitStatus::Infrastructure,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Store(StoreError::WrongDigest { .. }) | Self::Malformed { .. } => {
                "copy it again from where `store export` wrote it, and compare the sizes"
            }
            Self::UnknownSchema { .. } => "use the program that wrote it",
            Self::Lock(error) => return error.hint(),
            Self::Store(error) => return error.hint(),
            Self::Io { .. } => "check the file's permissions and the free space",
        };
        Some(hint.to_owned())
    }
}

/// Locks, and the manifests of their repositories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockArchive {
    /// The inputs of all images.
    pub toolchain: ToolchainLock,
    /// Each repository's lock, and its manifest's text.
    pub repositories: BTreeMap<RepositoryName, (RepositoryLock, String)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Description {
    schema: u32,
    repositories: Vec<RepositoryName>,
}

impl LockArchive {
    /// Returns every blob of its images, with its size in bytes. Of the development kits, only those that a repository
    /// needs are included.
    pub fn blobs(&self) -> BTreeMap<Digest, u64> {
        let majors: BTreeSet<u32> = self.repositories.values().map(|(lock, _)| lock.jdk).collect();
        let kits = self.toolchain.jdks.iter().filter(|kit| majors.contains(&kit.major));
        let packages = self.toolchain.base.iter().chain(&self.toolchain.tools_packages);
        let packages = packages.chain(&self.toolchain.agent_packages);
        let packages = packages.chain(kits.flat_map(|kit| &kit.packages));
        let mut blobs: BTreeMap<Digest, u64> = packages.map(|package| (package.sha256, package.size)).collect();
        blobs.extend(self.toolchain.tools.iter().map(|tool| (tool.sha256, tool.size)));
        let files = self.repositories.values().flat_map(|(lock, _)| &lock.files);
        blobs.extend(files.map(|file| (file.sha256, file.size)));
        let jars = self.repositories.values().flat_map(|(lock, _)| &lock.extension_jars);
        blobs.extend(jars.map(|jar| (jar.sha256, jar.size)));
        blobs
    }

    /// Writes the archive; every blob is checked while it is copied.
    ///
    /// # Errors
    /// [`LockArchiveError::Store`] for a missing or corrupted blob, [`LockArchiveError::Io`].
    pub fn write(&self, store: &Store, name: &str, out: &mut dyn Write) -> Result<(), LockArchiveError> {
        let io = |source| LockArchiveError::Io { name: name.to_owned(), doing: "written", source };
        let description =
            Description { schema: ARCHIVE_SCHEMA, repositories: self.repositories.keys().cloned().collect() };
        let description = serde_json::to_string(&description).map_err(|error| io(error.into()))?;
        let mut archive = tar::Builder::new(out);
        let mut text = |path: &str, text: &str| append(&mut archive, path, text.len() as u64, text.as_bytes());
        text(DESCRIPTION, &description).map_err(io)?;
        text(TOOLCHAIN, &self.toolchain.render()).map_err(io)?;
        for (repository, (lock, manifest)) in &self.repositories {
            text(&lock_path(repository), &lock.render()).map_err(io)?;
            text(&manifest_path(repository), manifest).map_err(io)?;
        }
        for (digest, size) in self.blobs() {
            let blob = store.open_verified(&digest)?;
            append(&mut archive, &blob_path(&digest), size, blob).map_err(io)?;
        }
        archive.finish().map_err(io)
    }

    /// Reads an archive: stores its blobs, and returns its locks once all of their bytes are in the store.
    ///
    /// # Errors
    /// [`LockArchiveError`]. Sound blobs stay in the store then.
    pub fn read(reader: &mut dyn Read, name: &str, store: &Store) -> Result<Self, LockArchiveError> {
        Self::read_within(reader, name, store, &LIMITS)
    }

    fn read_within(
        reader: &mut dyn Read,
        name: &str,
        store: &Store,
        limits: &Limits,
    ) -> Result<Self, LockArchiveError> {
        let io = |source| LockArchiveError::Io { name: name.to_owned(), doing: "read", source };
        let malformed = |reason: String| LockArchiveError::Malformed { name: name.to_owned(), reason };
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        let mut text_bytes = 0;
        let mut described = Described::default();
        let mut archive = tar::Archive::new(reader);
        for (number, member) in archive.entries().map_err(io)?.raw(true).enumerate() {
            if number >= MAX_MEMBERS {
                return Err(malformed(format!("it has more than {MAX_MEMBERS} members")));
            }
            let damaged = |error: io::Error| malformed(error.to_string());
            let mut member = member.map_err(damaged)?;
            if described.take_from(&mut member).map_err(damaged)? {
                continue;
            }
            let Described { path, .. } = std::mem::take(&mut described);
            let path = path.unwrap_or_else(|| member.header().path_bytes().into_owned());
            let path = String::from_utf8_lossy(&path).into_owned();
            if member.header().entry_type() != tar::EntryType::Regular {
                return Err(malformed(format!("`{path}` is no regular file")));
            }
            let size = member.size();
            if let Some(hex) = path.strip_prefix("blobs/sha256/") {
                let digest = Digest::from_hex(hex).map_err(|error| malformed(format!("`{path}`: {error}")))?;
                within(size, MAX_BLOB).map_err(|reason| malformed(format!("`{path}` {reason}")))?;
                keep(&mut member, &digest, store, &path, &io)?;
                continue;
            }
            if !is_text(&path) {
                return Err(malformed(format!("`{path}` does not belong into it")));
            }
            within(size, MAX_TEXT).map_err(|reason| malformed(format!("`{path}` {reason}")))?;
            text_bytes += size;
            if texts.len() == limits.texts {
                return Err(malformed(format!("it has more than {} texts", limits.texts)));
            }
            within(text_bytes, limits.text_bytes)
                .map_err(|reason| malformed(format!("the whole of its texts {reason}")))?;
            let mut text = String::new();
            member.read_to_string(&mut text).map_err(|error| malformed(format!("`{path}`: {error}")))?;
            if texts.insert(path.clone(), text).is_some() {
                return Err(malformed(format!("`{path}` stands in it twice")));
            }
        }
        let mut take = |path: &str| texts.remove(path).ok_or_else(|| malformed(format!("`{path}` is missing")));
        let description: serde_json::Value = serde_json::from_str(&take(DESCRIPTION)?)
            .map_err(|error| malformed(format!("`{DESCRIPTION}`: {error}")))?;
        match description.get("schema").and_then(serde_json::Value::as_u64) {
            Some(schema) if schema == u64::from(ARCHIVE_SCHEMA) => {}
            Some(schema) => {
                let found = u32::try_from(schema).unwrap_or(u32::MAX);
                return Err(LockArchiveError::UnknownSchema { name: name.to_owned(), found });
            }
            None => return Err(malformed(format!("`{DESCRIPTION}` has no `schema`"))),
        }
        let description: Description =
            serde_json::from_value(description).map_err(|error| malformed(format!("`{DESCRIPTION}`: {error}")))?;
        let toolchain = ToolchainLock::parse(Path::new(TOOLCHAIN), &take(TOOLCHAIN)?)?;
        let mut repositories = BTreeMap::new();
        for repository in description.repositories {
            let path = lock_path(&repository);
            let lock = RepositoryLock::parse(Path::new(&path), &take(&path)?)?;
            if lock.repository != repository {
                return Err(malformed(format!("`{path}` is the lock of {}", lock.repository)));
            }
            let manifest = take(&manifest_path(&repository))?;
            repositories.insert(repository, (lock, manifest));
        }
        if let Some(path) = texts.keys().next() {
            return Err(malformed(format!("`{path}` does not belong into it")));
        }
        let archive = Self { toolchain, repositories };
        let missing = archive.blobs().into_keys().find(|digest| !store.contains(digest));
        match missing {
            Some(digest) => Err(malformed(format!("blob {digest}, which its locks name, is missing"))),
            None => Ok(archive),
        }
    }
}

/// Tells whether an archive may contain a text with this name.
fn is_text(path: &str) -> bool {
    let of = |start: &str, end: &str| {
        let stem = path.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
        stem.is_some_and(|stem| RepositoryName::of_file_stem(stem).is_some())
    };
    path == DESCRIPTION || path == TOOLCHAIN || of("locks/", ".lock") || of("manifests/", ".toml")
}

fn within(size: u64, limit: u64) -> Result<(), String> {
    if size <= limit { Ok(()) } else { Err(format!("has {size} bytes, more than {limit}")) }
}

/// Stores a member's bytes if they have the digest.
fn keep(
    member: &mut impl Read,
    digest: &Digest,
    store: &Store,
    path: &str,
    io: &dyn Fn(io::Error) -> LockArchiveError,
) -> Result<(), LockArchiveError> {
    if store.contains(digest) && store.verify(digest).is_ok() {
        return Ok(());
    }
    let mut writer = store.writer()?;
    io::copy(member, &mut writer).map_err(io)?;
    writer.commit_expecting(digest, path)?;
    Ok(())
}

fn append(archive: &mut tar::Builder<&mut dyn Write>, path: &str, size: u64, content: impl Read) -> io::Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_size(size);
    header.set_mode(0o644);
    header.set_mtime(0);
    archive.append_data(&mut header, path, content)
}

fn lock_path(repository: &RepositoryName) -> String {
    format!("locks/{}.lock", repository.file_stem())
}

fn manifest_path(repository: &RepositoryName) -> String {
    format!("manifests/{}.toml", repository.file_stem())
}

fn blob_path(digest: &Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

#[cfg(test)]
mod tests;
