//! Archives of locks with every byte that they name: what keeps images buildable after their origins have moved on.
//!
//! A tar archive with `archive.json` (schema and repositories), `locks/toolchain.lock`, and for each repository
//! `locks/<owner>__<name>.lock` and `manifests/<owner>__<name>.toml`, then `blobs/sha256/<hex>`, sorted. Equal locks give
//! equal bytes. An archive that is read is a stranger's: nothing but these members is taken, no path of it is followed,
//! and every byte is checked against a digest or read by a strict parser.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{LockFile, LockFileError, RepositoryLock, ToolchainLock};
use crate::artifact::store::{Store, StoreError};
use crate::digest::Digest;
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

/// What can be wrong with an archive of locks.
#[derive(Debug, thiserror::Error)]
pub enum LockArchiveError {
    /// It is none, or not a whole one.
    #[error("the archive `{name}` can't be used: {reason}")]
    Malformed {
        /// The archive.
        name: String,
        /// Why.
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
    /// A lock in it can't be read.
    #[error(transparent)]
    Lock(#[from] LockFileError),
    /// The store refused, or bytes were other ones than their name promises.
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

/// Locks, and the manifests of their repositories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockArchive {
    /// What all images are made from.
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
    /// Returns every blob that its images are made from, with its size. Of the development kits only those that a
    /// repository needs.
    pub fn blobs(&self) -> BTreeMap<Digest, u64> {
        let majors: BTreeSet<u32> = self.repositories.values().map(|(lock, _)| lock.jdk).collect();
        let kits = self.toolchain.jdks.iter().filter(|kit| majors.contains(&kit.major));
        let packages = self.toolchain.base.iter().chain(&self.toolchain.tools_packages);
        let packages = packages.chain(kits.flat_map(|kit| &kit.packages));
        let mut blobs: BTreeMap<Digest, u64> = packages.map(|package| (package.sha256, package.size)).collect();
        blobs.extend(self.toolchain.tools.iter().map(|tool| (tool.sha256, tool.size)));
        let files = self.repositories.values().flat_map(|(lock, _)| &lock.files);
        blobs.extend(files.map(|file| (file.sha256, file.size)));
        blobs
    }

    /// Writes the archive; every blob is checked on its way.
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

    /// Reads an archive: its blobs go into the store, its locks are returned once all of their bytes are there.
    ///
    /// # Errors
    /// [`LockArchiveError`]; blobs that were sound stay in the store then.
    pub fn read(reader: &mut dyn Read, name: &str, store: &Store) -> Result<Self, LockArchiveError> {
        let io = |source| LockArchiveError::Io { name: name.to_owned(), doing: "read", source };
        let malformed = |reason: String| LockArchiveError::Malformed { name: name.to_owned(), reason };
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        let mut archive = tar::Archive::new(reader);
        for (number, member) in archive.entries().map_err(io)?.enumerate() {
            if number >= MAX_MEMBERS {
                return Err(malformed(format!("it has more than {MAX_MEMBERS} members")));
            }
            let mut member = member.map_err(|error| malformed(error.to_string()))?;
            let path = String::from_utf8_lossy(&member.path_bytes()).into_owned();
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
            within(size, MAX_TEXT).map_err(|reason| malformed(format!("`{path}` {reason}")))?;
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
mod tests {
    use super::*;
    use crate::lock::{LOCK_SCHEMA, MavenFile};

    fn sample(store: &Store) -> LockArchive {
        let content = b"a jar";
        let file = MavenFile {
            path: "g/a/1/a-1.jar".to_owned(),
            origin: "central".to_owned(),
            sha256: store.put(content).unwrap(),
            size: content.len() as u64,
            own: false,
        };
        let repository: RepositoryName = "o/n".parse().unwrap();
        let lock = RepositoryLock {
            schema: LOCK_SCHEMA,
            repository: repository.clone(),
            jdk: 8,
            files: vec![file],
            metadata: Vec::new(),
            build_sets: vec!["s".to_owned()],
        };
        let toolchain = ToolchainLock {
            schema: LOCK_SCHEMA,
            base: Vec::new(),
            jdks: Vec::new(),
            tools_packages: Vec::new(),
            tools: Vec::new(),
            indexes: Vec::new(),
        };
        LockArchive { toolchain, repositories: [(repository, (lock, "schema = 1\n".to_owned()))].into() }
    }

    fn stores() -> (tempfile::TempDir, Store, Store) {
        let directory = tempfile::tempdir().unwrap();
        let store = |name: &str| Store::open(&directory.path().join(name), &directory.path().join("tmp")).unwrap();
        let (from, to) = (store("from"), store("to"));
        (directory, from, to)
    }

    fn written(archive: &LockArchive, store: &Store) -> Vec<u8> {
        let mut bytes = Vec::new();
        archive.write(store, "x.tar", &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_is_written_is_read_with_its_blobs() {
        let (_directory, from, to) = stores();
        let archive = sample(&from);
        let bytes = written(&archive, &from);
        assert_eq!(LockArchive::read(&mut bytes.as_slice(), "x.tar", &to).unwrap(), archive);
        for digest in archive.blobs().keys() {
            to.verify(digest).unwrap();
        }
        assert_eq!(bytes, written(&archive, &to), "equal locks give equal bytes");
    }

    /// Returns the error of reading `archive` after `change` was made to its members (path, kind, bytes).
    fn error_after(change: impl FnOnce(&mut Vec<(String, tar::EntryType, Vec<u8>)>)) -> String {
        let (_directory, from, to) = stores();
        let bytes = written(&sample(&from), &from);
        let mut members = Vec::new();
        for member in tar::Archive::new(bytes.as_slice()).entries().unwrap() {
            let mut member = member.unwrap();
            let mut content = Vec::new();
            member.read_to_end(&mut content).unwrap();
            let path = member.path().unwrap().to_str().unwrap().to_owned();
            members.push((path, member.header().entry_type(), content));
        }
        change(&mut members);
        let mut changed = tar::Builder::new(Vec::new());
        for (path, kind, content) in members {
            let mut header = tar::Header::new_ustar();
            header.set_entry_type(kind);
            header.set_size(content.len() as u64);
            // The library refuses to write hostile paths, so the name is set by hand.
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_cksum();
            changed.append(&header, content.as_slice()).unwrap();
        }
        let changed = changed.into_inner().unwrap();
        LockArchive::read(&mut changed.as_slice(), "x.tar", &to).unwrap_err().to_string()
    }

    #[test]
    fn nothing_hostile_is_taken() {
        let blob = |members: &[(String, tar::EntryType, Vec<u8>)]| {
            members.iter().position(|(path, ..)| path.starts_with("blobs/")).unwrap()
        };
        assert!(error_after(|members| members[0].0 = "../archive.json".to_owned()).contains("is missing"));
        let error = error_after(|members| members.push(("../evil".into(), tar::EntryType::Regular, b"x".to_vec())));
        assert!(error.contains("does not belong"), "{error}");
        let error = error_after(|members| members[1].1 = tar::EntryType::Symlink);
        assert!(error.contains("no regular file"), "{error}");
        let error = error_after(|members| {
            let at = blob(members);
            members[at].2 = b"other".to_vec();
        });
        assert!(error.contains("was expected"), "{error}");
        let error = error_after(|members| {
            let at = blob(members);
            members.remove(at);
        });
        assert!(error.contains("which its locks name, is missing"), "{error}");
        let error = error_after(|members| {
            let twice = members[1].clone();
            members.push(twice);
        });
        assert!(error.contains("twice"), "{error}");
        let error = error_after(|members| members[0].2 = br#"{"schema":9,"repositories":[]}"#.to_vec());
        assert!(error.contains("schema 9"), "{error}");
    }

    #[test]
    fn a_cut_archive_is_an_error() {
        let (_directory, from, to) = stores();
        let bytes = written(&sample(&from), &from);
        for length in (0..bytes.len() - 1024).step_by(97) {
            assert!(LockArchive::read(&mut &bytes[..length], "x.tar", &to).is_err(), "cut at {length}");
        }
    }
}
