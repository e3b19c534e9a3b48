//! Removes blobs that no record names, and finds damaged blobs.
//!
//! The table of the data directory's parts tells which parts have records that name blobs ([`crate::data_dir::parts`]).
//! Every kind of record lists its blobs. If a record can't be read, no blob is removed.

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use fs_err as fs;
use rustix::fs::{Mode, OFlags};
use serde::Serialize;

use crate::artifact::made;
use crate::artifact::store::{Store, StoreError};
use crate::data_dir::directories;
use crate::data_dir::parts::{NamedBlobs, PARTS};
use crate::digest::Digest;
use crate::error::{ExitStatus, Failure};
use crate::execution::proof;
use crate::execution::run::inputs;
use crate::image::{BuiltImage, LayerRecord, LoadedImage};
use crate::lock;

/// Why no blob was removed.
#[derive(Debug, thiserror::Error)]
pub enum GarbageError {
    /// The store can't be read or changed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A part of the data directory can't be listed.
    #[error("the data directory can't be looked through: {0}")]
    Io(#[from] io::Error),
    /// A file that may name blobs can't be read.
    #[error("`{path}` can't be read, so no blob was removed: {reason}")]
    Record {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

impl Failure for GarbageError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Store(error) => error.exit_status(),
            Self::Io(_) => ExitStatus::Infrastructure,
            Self::Record { .. } => ExitStatus::Mismatch,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Store(error) => error.hint(),
            Self::Io(error) if error.kind() == io::ErrorKind::NotFound => {
                Some("another command may have removed it: run `store gc` again".to_owned())
            }
            Self::Io(_) => {
                Some("check the permissions of the path in the message, and that its file system answers".to_owned())
            }
            Self::Record { path, .. } => {
                Some(format!("mend or remove `{}`, or use the program that wrote it", path.display()))
            }
        }
    }
}

/// The result of a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Garbage {
    /// Blobs without a record, sorted.
    pub blobs: Vec<Digest>,
    /// Their bytes.
    pub bytes: u64,
    /// Blobs without a record that are younger than the requested age.
    pub young: usize,
    /// Blobs that are in use.
    pub used: usize,
}

/// Returns the blobs of `store` that no record of its data directories names, and removes them unless `dry_run`. Blobs
/// younger than `age` stay, because a running command may be about to name them.
///
/// # Errors
/// [`GarbageError`]. Only [`GarbageError::Store`] may come after blobs were removed.
pub fn collect(store: &Store, age: Duration, dry_run: bool) -> Result<Garbage, GarbageError> {
    // Blobs are listed before records are read, so a new blob is not listed and stays.
    let blobs = store.list()?;
    let mut named = BTreeSet::new();
    for data_dir in data_dirs(store)? {
        // Locks come before their history, because a lock is copied there before it changes.
        for part in PARTS.iter().filter(|part| part.names != NamedBlobs::None) {
            for directory in directories(&data_dir, part.path)? {
                while !read_records(&directory, part.names, age, &mut named)? {}
            }
        }
    }
    let mut garbage = Garbage::default();
    let mut unused = Vec::new();
    for blob in blobs {
        if named.contains(&blob.digest) {
            garbage.used += 1;
        } else if SystemTime::now().duration_since(blob.modified).is_ok_and(|since| since >= age) {
            unused.push(blob);
        } else {
            garbage.young += 1;
        }
    }
    for blob in unused {
        if dry_run || store.remove_listed(&blob)? {
            garbage.bytes += blob.size;
            garbage.blobs.push(blob.digest);
        } else {
            garbage.young += 1;
        }
    }
    garbage.blobs.sort();
    Ok(garbage)
}

/// Returns the data directories that use the store: its own, and directories in the same parent that share it.
fn data_dirs(store: &Store) -> io::Result<BTreeSet<PathBuf>> {
    let root = fs::canonicalize(store.root())?;
    let mut data_dirs = BTreeSet::new();
    for parent in [store.root(), &root].into_iter().filter_map(Path::parent) {
        let parent = fs::canonicalize(parent)?;
        for entry in fs::read_dir(&parent)? {
            let within = entry?.path();
            if fs::canonicalize(within.join("store")).is_ok_and(|shared| shared == root) {
                data_dirs.insert(within);
            }
        }
        data_dirs.insert(parent);
    }
    Ok(data_dirs)
}

/// Adds the blobs in a directory's records. `false` if a record vanished meanwhile, because it may have been renamed.
fn read_records(
    directory: &Path,
    kind: NamedBlobs,
    age: Duration,
    named: &mut BTreeSet<Digest>,
) -> Result<bool, GarbageError> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let (path, kind_of_file) = (entry.path(), entry.file_type()?);
        if kind_of_file.is_dir() || !entry.file_name().to_str().is_some_and(|name| is_record(kind, name)) {
            continue;
        }
        match read_record(&path, kind) {
            Ok(bytes) => match blobs_of(kind, &path, &bytes) {
                Ok(blobs) => named.extend(blobs),
                // The next user makes the thing again, and replaces the description.
                Err(_) if kind == NamedBlobs::Made && is_older(&entry.metadata()?, age) => {}
                Err(reason) => return Err(GarbageError::Record { path, reason }),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound && kind_of_file.is_file() => return Ok(false),
            Err(error) => return Err(GarbageError::Record { path, reason: error.to_string() }),
        }
    }
    Ok(true)
}

/// The largest record, in bytes.
const MOST_RECORD_BYTES: u64 = 256 << 20;

/// Reads a record. A run directory may be untrusted, so no link in it is followed. Reading never waits for a pipe.
fn read_record(path: &Path, kind: NamedBlobs) -> io::Result<Vec<u8>> {
    let mut flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    flags.set(OFlags::NOFOLLOW, kind == NamedBlobs::Runs);
    let file = std::fs::File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let is_regular = file.metadata()?.is_file();
    let mut bytes = Vec::new();
    if is_regular {
        file.take(MOST_RECORD_BYTES + 1).read_to_end(&mut bytes)?;
    }
    match is_regular && bytes.len() as u64 <= MOST_RECORD_BYTES {
        true => Ok(bytes),
        false => Err(io::Error::other("it is no regular file, or too large")),
    }
}

/// Tells whether a file is older than `age`.
fn is_older(metadata: &std::fs::Metadata, age: Duration) -> bool {
    metadata.modified().is_ok_and(|modified| SystemTime::now().duration_since(modified).is_ok_and(|since| since >= age))
}

/// Tells whether a file name is that of a finished record of this kind.
fn is_record(kind: NamedBlobs, name: &str) -> bool {
    match kind {
        NamedBlobs::None => false,
        // An unfinished lock ends with `next`.
        NamedBlobs::Locks => !name.starts_with('.') && (name.ends_with(".lock") || name.ends_with(".lock.next")),
        NamedBlobs::LoadedImages => Digest::from_hex(name).is_ok(),
        NamedBlobs::Runs => name == "inputs.json",
        NamedBlobs::Images | NamedBlobs::Proofs | NamedBlobs::Layers | NamedBlobs::Made => {
            !name.starts_with('.') && name.ends_with(".json")
        }
    }
}

/// Returns the blobs that a record names, or why it is malformed.
fn blobs_of(kind: NamedBlobs, path: &Path, bytes: &[u8]) -> Result<Vec<Digest>, String> {
    let json = |error: serde_json::Error| error.to_string();
    match kind {
        NamedBlobs::None => Ok(Vec::new()),
        NamedBlobs::Locks => {
            let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
            lock::blobs_of(path, text).map_err(|error| error.to_string())
        }
        NamedBlobs::Images => BuiltImage::parse(bytes).map(|built| built.blobs()),
        // Older programs left the file empty.
        NamedBlobs::LoadedImages if bytes.is_empty() => Ok(Vec::new()),
        NamedBlobs::LoadedImages => {
            serde_json::from_slice(bytes).map(|loaded: LoadedImage| loaded.image.blobs().collect()).map_err(json)
        }
        NamedBlobs::Proofs => proof::parse(bytes).map(|proof| vec![proof.config_digest]),
        NamedBlobs::Layers => {
            serde_json::from_slice(bytes).map(|record: LayerRecord| record.blobs().into()).map_err(json)
        }
        NamedBlobs::Made => made::blobs_of(bytes).map_err(json),
        NamedBlobs::Runs => inputs::images_of(bytes).map_err(json),
    }
}

/// Reads every blob. Returns the damaged ones, and the number and size of all. `progress` gets each blob's size.
///
/// # Errors
/// [`StoreError::Io`].
pub fn verify(store: &Store, mut progress: impl FnMut(u64)) -> Result<Verified, StoreError> {
    let mut verified = Verified::default();
    for blob in store.list()? {
        match store.verify(&blob.digest) {
            Ok(()) => verified.sound += 1,
            Err(StoreError::Corrupted { expected, .. }) => verified.corrupted.push(expected),
            // Another process removed it.
            Err(StoreError::Missing { .. }) => continue,
            Err(error) => return Err(error),
        }
        verified.bytes += blob.size;
        progress(blob.size);
    }
    verified.corrupted.sort();
    Ok(verified)
}

/// The result of verifying a store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Number of sound blobs.
    pub sound: usize,
    /// Bytes of all blobs.
    pub bytes: u64,
    /// Damaged blobs, sorted.
    pub corrupted: Vec<Digest>,
}

#[cfg(test)]
mod tests;
