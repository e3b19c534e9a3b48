//! Blobs that nothing names any more, and blobs that hold other bytes than their names promise.
//!
//! A blob is in use where any record of the data directory (a lock, an earlier lock that is kept, an image, a layer, a
//! run, …) has its digest in its text. That errs on the side of keeping, and needs no list of who may name blobs.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, SystemTime};

use fs_err as fs;
use serde::Serialize;

use super::store::{Store, StoreError};
use crate::digest::Digest;

/// Where the origins of POMs are remembered.
const ORIGINS: &str = "origins.toml";
/// Directories of the data directory whose files are no records: blobs, sources, trees, logs and what is unfinished.
const NO_RECORDS: [&str; 6] = ["blobs", "unpacked", "repositories", "tmp", "logs", "trees"];
/// Deepest nesting that is looked into.
const MAX_DEPTH: usize = 8;

/// What a collection found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Garbage {
    /// Blobs that nothing names, sorted.
    pub blobs: Vec<Digest>,
    /// Their bytes.
    pub bytes: u64,
    /// Blobs that nothing names yet and that are younger than the age asked for.
    pub young: usize,
    /// Blobs that are in use.
    pub used: usize,
}

/// Returns the blobs of `store` that no record of its data directory names, and removes them unless `dry_run`. Younger
/// ones than `age` stay: a command that still runs may be about to name them.
///
/// # Errors
/// [`StoreError::Io`].
pub fn collect(store: &Store, age: Duration, dry_run: bool) -> Result<Garbage, StoreError> {
    let io = |source| StoreError::Io { path: store.root().to_owned(), source };
    // A data directory may lie within another one and share its store: then the other one's records count.
    let root = fs::canonicalize(store.root()).map_err(io)?;
    let data_dir = root.parent().unwrap_or(&root);
    // Blobs are listed before records are read: what appears in between is neither listed nor missed.
    let blobs = store.list()?;
    let mut named = BTreeSet::new();
    read_records(data_dir, 0, &mut named).map_err(io)?;
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

fn read_records(directory: &Path, depth: usize, named: &mut BTreeSet<Digest>) -> io::Result<()> {
    if depth > MAX_DEPTH {
        return Err(io::Error::other(format!("`{}` lies too deep", directory.display())));
    }
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if !entry.file_name().to_str().is_some_and(|name| NO_RECORDS.contains(&name)) {
                read_records(&entry.path(), depth + 1, named)?;
            }
        } else if kind.is_file() {
            // A layer's record is named by a digest, too.
            named.extend(entry.path().file_stem().and_then(|stem| Digest::from_hex(stem.to_str()?).ok()));
            // Where origins are names no blob, and may be for another user's eyes alone.
            if entry.file_name() == ORIGINS {
                continue;
            }
            match fs::File::open(entry.path()) {
                Ok(file) => read_digests(file, named)?,
                // It went away meanwhile, and what it named with it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Takes every run of exactly 64 hexadecimal digits for a digest.
fn read_digests(mut reader: impl Read, named: &mut BTreeSet<Digest>) -> io::Result<()> {
    const DIGITS: usize = 64;
    let mut buffer = vec![0; 1 << 16];
    let mut digits = String::with_capacity(DIGITS + 1);
    loop {
        let read = reader.read(&mut buffer)?;
        let bytes = if read == 0 { &b"\n"[..] } else { &buffer[..read] };
        for byte in bytes {
            if byte.is_ascii_hexdigit() {
                if digits.len() <= DIGITS {
                    digits.push(char::from(*byte));
                }
                continue;
            }
            if digits.len() == DIGITS {
                named.extend(Digest::from_hex(&digits).ok());
            }
            digits.clear();
        }
        if read == 0 {
            return Ok(());
        }
    }
}

/// Reads every blob and returns those that hold other bytes than their names promise, with the number and size of all.
/// `progress` is told of each blob's bytes.
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

/// What verifying a store came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Blobs as their names promise.
    pub sound: usize,
    /// Bytes of all blobs.
    pub bytes: u64,
    /// Blobs that hold other bytes, sorted.
    pub corrupted: Vec<Digest>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_no_record_names_goes_and_only_when_it_is_old_enough() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let store = Store::open(&root.join("store"), &root.join("tmp")).unwrap();
        let [locked, kept, garbage] = [b"locked", b"keptxx", b"gone!!"].map(|bytes| store.put(bytes).unwrap());
        fs::create_dir_all(root.join("locks/history")).unwrap();
        fs::write(root.join("locks/a.lock"), format!("sha256 = \"sha256:{}\"\n", locked.hex())).unwrap();
        fs::write(root.join("locks/history/b.lock"), format!("x{}", kept.hex())).unwrap();
        // A longer number is no digest, and what lies in tmp or blobs is no record.
        fs::write(root.join("locks/c.lock"), format!("0{}", garbage.hex())).unwrap();
        fs::write(root.join("tmp/d"), garbage.hex()).unwrap();

        let young = collect(&store, Duration::from_secs(3600), false).unwrap();
        assert_eq!((young.blobs.len(), young.young, young.used), (0, 1, 2));
        let dry = collect(&store, Duration::ZERO, true).unwrap();
        assert_eq!((dry.blobs, dry.bytes), (vec![garbage], 6));
        assert!(store.contains(&garbage));
        collect(&store, Duration::ZERO, false).unwrap();
        assert!(!store.contains(&garbage) && store.contains(&locked) && store.contains(&kept));
    }

    #[test]
    fn corrupted_blobs_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("store"), &directory.path().join("tmp")).unwrap();
        store.put(b"sound").unwrap();
        let bad = store.put(b"bad").unwrap();
        fs::write(store.path(&bad), "worse").unwrap();
        let verified = verify(&store, |_| ()).unwrap();
        assert_eq!((verified.sound, verified.bytes, verified.corrupted), (1, 10, vec![bad]));
    }
}
