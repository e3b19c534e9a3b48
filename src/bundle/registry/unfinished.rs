//! The directory of a bundle that is being fetched: what an earlier attempt left there is taken up.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::TryLockError;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use fs_err as fs;

use super::{Named, RegistryError};
use crate::bundle::layout::{BLOBS, blob_name};
use crate::digest::{Digest, HashingWriter};
use crate::umask::Umask;

/// The end of the name of a blob that is not whole.
const PART: &str = ".part";

pub(super) struct Unfinished<'a> {
    output: &'a Path,
    directory: PathBuf,
    umask: Umask,
    /// Held while this process fetches.
    _lock: fs::File,
}

impl<'a> Unfinished<'a> {
    /// Opens or makes the directory of what will appear at `output`.
    pub(super) fn open(output: &'a Path, umask: Umask) -> Result<Self, RegistryError> {
        let failed = |source| RegistryError::Write { path: output.to_owned(), source };
        let name = output.file_name().ok_or_else(|| failed(io::Error::other("it is no name of a directory")))?;
        let directory = output.with_file_name(format!(".{}.unfinished", name.to_string_lossy()));
        umask.create_directory(&directory.join(BLOBS)).map_err(failed)?;
        let lock = fs::File::open(&directory).map_err(failed)?;
        // A file system that has no locks must do without.
        if let Err(TryLockError::WouldBlock) = lock.file().try_lock() {
            return Err(failed(io::Error::other("another process fetches it")));
        }
        Ok(Self { output, directory, umask, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.directory
    }

    pub(super) fn failed(&self, source: io::Error) -> RegistryError {
        RegistryError::Write { path: self.output.to_owned(), source }
    }

    /// Returns the blobs that are not there whole, and how many are. Whatever else lies there is removed.
    pub(super) fn missing(&self, blobs: &BTreeMap<Digest, u64>) -> Result<(Vec<Named>, usize), RegistryError> {
        self.take_stock(blobs).map_err(|error| self.failed(error))
    }

    fn take_stock(&self, blobs: &BTreeMap<Digest, u64>) -> io::Result<(Vec<Named>, usize)> {
        let mut missing = blobs.clone();
        for entry in fs::read_dir(self.directory.join(BLOBS))? {
            let entry = entry?;
            let digest = entry.file_name().to_str().and_then(|name| Digest::from_hex(name).ok());
            let wanted = digest.filter(|digest| missing.contains_key(digest));
            match wanted {
                Some(digest) if entry.file_type()?.is_file() && holds(&entry.path(), &digest)? => {
                    missing.remove(&digest);
                }
                _ if entry.file_type()?.is_file() && is_part(&entry.file_name(), blobs) => {}
                _ => fs::remove_file(entry.path())?,
            }
        }
        // A blob that is whole needs no beginning.
        for digest in blobs.keys().filter(|digest| !missing.contains_key(*digest)) {
            match fs::remove_file(self.partial(digest)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        let present = blobs.len() - missing.len();
        Ok((missing.into_iter().map(|(digest, size)| Named { digest, size }).collect(), present))
    }

    /// Checks that there is space for what is missing. Returns its bytes.
    pub(super) fn check_space(&self, missing: &[Named]) -> Result<u64, RegistryError> {
        // What an earlier attempt left is on the disk already; a file that is not shorter is begun anew.
        let rest = |blob: &Named| match fs::metadata(self.partial(&blob.digest)).map_or(0, |found| found.len()) {
            there if there < blob.size => blob.size - there,
            _ => blob.size,
        };
        let needed = missing.iter().map(|blob| u128::from(rest(blob))).sum::<u128>();
        let found = rustix::fs::statvfs(&self.directory).map_err(|error| self.failed(error.into()))?;
        let free = u128::from(found.f_bavail) * u128::from(found.f_frsize);
        let whole = |bytes: u128| u64::try_from(bytes).unwrap_or(u64::MAX);
        match needed <= free {
            true => Ok(whole(needed)),
            false => Err(RegistryError::NoSpace {
                path: self.output.to_owned(),
                free: whole(free >> 20),
                needed: whole(needed >> 20),
            }),
        }
    }

    /// Opens the file of a blob, under a name that it loses once it is whole. What an earlier attempt wrote of it stays.
    pub(super) fn begin(&self, blob: &Named) -> Result<Part, RegistryError> {
        let path = self.partial(&blob.digest);
        let open = || -> io::Result<Part> {
            let begun = fs::metadata(&path).is_ok_and(|found| (1..blob.size).contains(&found.len()));
            if !begun {
                return Ok(Part {
                    file: self.umask.create_file(&path)?,
                    hasher: HashingWriter::new(io::sink()),
                    length: 0,
                    continued: false,
                });
            }
            let mut file = fs::File::options().read(true).write(true).open(&path)?;
            let mut hasher = HashingWriter::new(io::sink());
            let length = io::copy(&mut file, &mut hasher)?;
            Ok(Part { file, hasher, length, continued: true })
        };
        open().map_err(|error| self.failed(error))
    }

    /// Gives the file of a whole blob its name.
    pub(super) fn finish(&self, digest: &Digest) -> Result<(), RegistryError> {
        let whole = self.directory.join(blob_name(digest));
        fs::rename(self.partial(digest), whole).map_err(|error| self.failed(error))
    }

    fn partial(&self, digest: &Digest) -> PathBuf {
        self.directory.join(format!("{}{PART}", blob_name(digest)))
    }

    /// Writes a small member.
    pub(super) fn write(&self, member: &str, bytes: &[u8]) -> Result<(), RegistryError> {
        let written = self.umask.create_file(&self.directory.join(member)).and_then(|mut file| file.write_all(bytes));
        written.map_err(|error| self.failed(error))
    }

    /// Removes a small member that an earlier attempt may have written.
    pub(super) fn remove(&self, member: &str) -> Result<(), RegistryError> {
        match fs::remove_file(self.directory.join(member)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed(error)),
            _ => Ok(()),
        }
    }

    /// Lets the directory appear at its place.
    pub(super) fn appear(self) -> Result<(), RegistryError> {
        fs::rename(&self.directory, self.output).map_err(|error| self.failed(error))
    }
}

/// Tells whether a file is the beginning of one of these blobs.
fn is_part(name: &OsStr, blobs: &BTreeMap<Digest, u64>) -> bool {
    let hex = name.to_str().and_then(|name| name.strip_suffix(PART));
    hex.and_then(|hex| Digest::from_hex(hex).ok()).is_some_and(|digest| blobs.contains_key(&digest))
}

/// The file of a blob that is being fetched.
pub(super) struct Part {
    file: fs::File,
    hasher: HashingWriter<io::Sink>,
    length: u64,
    continued: bool,
}

impl Part {
    /// Returns the number of bytes that are there of the blob.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Tells whether bytes of an earlier attempt are in it.
    pub(super) fn is_continued(&self) -> bool {
        self.continued
    }

    /// Forgets all bytes.
    pub(super) fn restart(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        (self.hasher, self.length, self.continued) = (HashingWriter::new(io::sink()), 0, false);
        Ok(())
    }

    /// Adds bytes at the end.
    pub(super) fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.hasher.write_all(bytes)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Returns the digest of all bytes, and begins anew with hashing.
    pub(super) fn digest(&mut self) -> Digest {
        std::mem::replace(&mut self.hasher, HashingWriter::new(io::sink())).finish().1
    }
}

/// Tells whether a file has the bytes of a digest.
fn holds(path: &Path, digest: &Digest) -> io::Result<bool> {
    let mut hasher = HashingWriter::new(io::sink());
    io::copy(&mut fs::File::open(path)?, &mut hasher)?;
    Ok(hasher.finish().1 == *digest)
}
