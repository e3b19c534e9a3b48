//! The local store: bytes by digest, shared by every process that uses the data directory.
//!
//! A blob appears by atomic rename and is never changed afterwards. A disk or another program may damage it all the
//! same. So users of a blob's file take its path from [`Store::sound`], which compares its bytes with its name once per
//! process.
//!
//! A store on a node's own disk may have a shared store above it, which it only reads: the link `upstream` in its root
//! leads there. Blobs whose files stay in use are copied from it once, the others are read where they are.

mod sound;
mod upstream;

use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fs_err as fs;

use self::sound::Stamp;
pub use self::upstream::UPSTREAM;
use self::upstream::Upstream;
use crate::data_dir::DataDir;
use crate::digest::{Digest, HashingWriter};
use crate::error::{ExitStatus, Failure};

/// Errors of a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file could not be read or written.
    #[error("the store at `{path}` could not be used: {source}")]
    Io {
        /// The store's directory.
        path: PathBuf,
        /// The cause; it names the file.
        source: io::Error,
    },
    /// The blob does not exist.
    #[error("blob {digest} is not in the store at `{path}`")]
    Missing {
        /// The missing blob.
        digest: Digest,
        /// The store's directory.
        path: PathBuf,
    },
    /// A blob has other bytes than its name says.
    #[error("blob {expected} in the store holds other bytes ({found})")]
    Corrupted {
        /// The digest in the blob's name.
        expected: Digest,
        /// The digest of the present bytes.
        found: Digest,
        /// The blob's file.
        path: PathBuf,
    },
    /// The received bytes have another digest than expected.
    #[error("`{name}` has digest {found}, but {expected} was expected")]
    WrongDigest {
        /// The name of the file that was to be stored.
        name: String,
        /// The expected digest.
        expected: Digest,
        /// The digest of the received bytes.
        found: Digest,
    },
}

impl Failure for StoreError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Io { .. } => ExitStatus::Infrastructure,
            Self::Missing { .. } | Self::Corrupted { .. } | Self::WrongDigest { .. } => ExitStatus::Mismatch,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Io { .. } => "check the store's permissions and free space".to_owned(),
            Self::Missing { .. } => "run `build-images`, which fetches what a lock names".to_owned(),
            Self::Corrupted { path, .. } => {
                format!("remove `{}`; `build-images` fetches or makes it again", path.display())
            }
            Self::WrongDigest { .. } => "the mirror serves wrong bytes; give another origin".to_owned(),
        })
    }
}

/// The directory of blobs below a store's root.
const BLOBS: &str = "blobs/sha256";

/// A directory of blobs, `blobs/sha256/<hex>`.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
    temporary: PathBuf,
    upstream: Option<Upstream>,
}

impl Store {
    /// Returns the store of a data directory.
    ///
    /// # Errors
    /// [`StoreError::Io`] if its directories can't be created.
    pub fn of(data_dir: &DataDir) -> Result<Self, StoreError> {
        Self::open(&data_dir.root().join("store"), &data_dir.temporary())
    }

    /// Returns the store in `root`, which is created if missing. Unfinished blobs are written below `temporary`, which
    /// must be on the same file system.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the directories can't be created.
    pub fn open(root: &Path, temporary: &Path) -> Result<Self, StoreError> {
        let (root, temporary) = (root.to_owned(), temporary.to_owned());
        let store = Self { upstream: Upstream::of(&root), root, temporary };
        fs::create_dir_all(store.blobs()).map_err(|source| store.io(source))?;
        Ok(store)
    }

    fn blobs(&self) -> PathBuf {
        self.root.join(BLOBS)
    }

    fn io(&self, source: io::Error) -> StoreError {
        StoreError::Io { path: self.root.clone(), source }
    }

    /// Returns the store's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the blob's path. The blob need not exist.
    pub fn path(&self, digest: &Digest) -> PathBuf {
        self.blobs().join(digest.hex())
    }

    /// Returns the blob's path after checking its bytes. All of them are read before the first use in this process, and
    /// again after the file was replaced or written.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Corrupted`], [`StoreError::Io`].
    pub fn sound(&self, digest: &Digest) -> Result<PathBuf, StoreError> {
        let path = self.path(digest);
        let found = match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.copy_down(digest)? => fs::metadata(&path),
            found => found,
        };
        let found = found.map_err(|error| self.refused(error, digest))?;
        let stamp = Stamp::of(&found).map_err(|source| self.io(source))?;
        if !sound::is_known(&path, stamp) {
            self.verify(digest)?;
            // The stamp was taken before reading, so that a write in between gives another stamp.
            sound::remember(path.clone(), stamp);
        }
        Ok(path)
    }

    /// Checks a file as [`Store::sound`] does, if its path is that of a blob in any store.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Corrupted`], [`StoreError::Io`].
    pub fn check_if_blob(path: &Path) -> Result<(), StoreError> {
        let digest = path.file_name().and_then(|name| name.to_str()).and_then(|name| Digest::from_hex(name).ok());
        let root = path.parent().filter(|blobs| blobs.ends_with(BLOBS)).and_then(|blobs| blobs.ancestors().nth(2));
        let Some((digest, root)) = digest.zip(root) else { return Ok(()) };
        Self { root: root.to_owned(), temporary: root.join("tmp"), upstream: None }.sound(&digest).map(drop)
    }

    /// Tells whether the blob exists. Its bytes are not checked.
    pub fn contains(&self, digest: &Digest) -> bool {
        self.readable(digest).is_file()
    }

    /// Returns the path at which the blob can be read: its own, or that in the store above if only that has it.
    fn readable(&self, digest: &Digest) -> PathBuf {
        let path = self.path(digest);
        match &self.upstream {
            Some(upstream) if !path.is_file() => {
                Some(upstream.path(digest)).filter(|above| above.is_file()).unwrap_or(path)
            }
            _ => path,
        }
    }

    /// Returns the blob's size in bytes.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Io`].
    pub fn size(&self, digest: &Digest) -> Result<u64, StoreError> {
        match fs::metadata(self.readable(digest)) {
            Ok(metadata) => Ok(metadata.len()),
            Err(error) => Err(self.refused(error, digest)),
        }
    }

    fn missing(&self, digest: &Digest) -> StoreError {
        StoreError::Missing { digest: *digest, path: self.root.clone() }
    }

    fn refused(&self, error: io::Error, digest: &Digest) -> StoreError {
        match error.kind() {
            io::ErrorKind::NotFound => self.missing(digest),
            _ => self.io(error),
        }
    }

    /// Opens the blob without checking its bytes, for callers that compare their digest themselves.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Io`].
    pub fn open_blob(&self, digest: &Digest) -> Result<fs::File, StoreError> {
        fs::File::open(self.readable(digest)).map_err(|error| self.refused(error, digest))
    }

    /// Opens the blob after [`Store::sound`].
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Corrupted`], [`StoreError::Io`].
    pub fn open_sound(&self, digest: &Digest) -> Result<fs::File, StoreError> {
        fs::File::open(self.sound(digest)?).map_err(|error| self.refused(error, digest))
    }

    /// Returns the blob's bytes after checking them.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Corrupted`], [`StoreError::Io`].
    pub fn read(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        let mut bytes = Vec::new();
        self.open_blob(digest)?.read_to_end(&mut bytes).map_err(|source| self.io(source))?;
        let found = Digest::of(&bytes);
        if found != *digest {
            return Err(StoreError::Corrupted { expected: *digest, found, path: self.readable(digest) });
        }
        Ok(bytes)
    }

    /// Reads the whole blob and compares its digest with its name.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Corrupted`], [`StoreError::Io`].
    pub fn verify(&self, digest: &Digest) -> Result<(), StoreError> {
        self.open_verified(digest).map(drop)
    }

    /// Opens the blob at its start after checking all of its bytes.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Corrupted`], [`StoreError::Io`].
    pub fn open_verified(&self, digest: &Digest) -> Result<fs::File, StoreError> {
        let mut file = self.open_blob(digest)?;
        let mut hasher = HashingWriter::new(io::sink());
        io::copy(&mut file, &mut hasher).map_err(|source| self.io(source))?;
        let (_, found, _) = hasher.finish();
        if found != *digest {
            return Err(StoreError::Corrupted { expected: *digest, found, path: self.readable(digest) });
        }
        file.rewind().map_err(|source| self.io(source))?;
        Ok(file)
    }

    /// Stores `bytes` and returns their digest. An existing blob counts as new, so that it is not removed before the
    /// caller names it in a record. A damaged one is replaced.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn put(&self, bytes: &[u8]) -> Result<Digest, StoreError> {
        let digest = Digest::of(bytes);
        // What the store above has stays as it is there.
        if !self.path(&digest).is_file() && self.contains(&digest) && self.verify(&digest).is_ok() {
            return Ok(digest);
        }
        // The check reads no more bytes than would be written.
        match self.open_verified(&digest) {
            Ok(there) => {
                there.file().set_modified(SystemTime::now()).map_err(|source| self.io(source))?;
                // If garbage collection removed the blob in between, it had not seen the new time.
                if self.contains(&digest) {
                    return Ok(digest);
                }
            }
            Err(StoreError::Missing { .. }) => {}
            Err(damaged @ StoreError::Corrupted { .. }) => tracing::warn!("{damaged}; it is replaced"),
            Err(error) => return Err(error),
        }
        let mut writer = self.writer()?;
        writer.write_all(bytes).map_err(|source| self.io(source))?;
        writer.commit().map(|(digest, _)| digest)
    }

    /// Returns a writer for a blob whose digest is known only at its end.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn writer(&self) -> Result<BlobWriter<'_>, StoreError> {
        let path = self.temporary_path("blob")?;
        let file = fs::File::create(&path).map_err(|source| self.io(source))?;
        Ok(BlobWriter { store: self, path, inner: Some(HashingWriter::new(io::BufWriter::new(file))) })
    }

    /// Returns a new file without a name in the store's temporary directory. It vanishes with its last user.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn unnamed_file(&self) -> Result<fs::File, StoreError> {
        let path = self.temporary_path("unnamed")?;
        let file = fs::OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        file.and_then(|file| fs::remove_file(&path).map(|()| file)).map_err(|source| self.io(source))
    }

    fn temporary_path(&self, purpose: &str) -> Result<PathBuf, StoreError> {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NEXT: AtomicU64 = AtomicU64::new(0);
        fs::create_dir_all(&self.temporary).map_err(|source| self.io(source))?;
        let name = format!("{purpose}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Ok(self.temporary.join(name))
    }

    /// Returns all blobs in no order. Files with other names are skipped.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn list(&self) -> Result<Vec<StoredBlob>, StoreError> {
        let mut blobs = Vec::new();
        for entry in fs::read_dir(self.blobs()).map_err(|error| self.io(error))? {
            let entry = entry.map_err(|error| self.io(error))?;
            let digest = entry.file_name().to_str().and_then(|name| Digest::from_hex(name).ok());
            let Some(digest) = digest else { continue };
            let metadata = match entry.metadata() {
                Ok(metadata) if metadata.is_file() => metadata,
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(self.io(error)),
            };
            let modified = metadata.modified().map_err(|error| self.io(error))?;
            blobs.push(StoredBlob { digest, size: metadata.len(), modified });
        }
        Ok(blobs)
    }

    /// Removes the blob unless it was stored again after it was listed. Tells whether it was removed.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn remove_listed(&self, blob: &StoredBlob) -> Result<bool, StoreError> {
        let modified = fs::metadata(self.path(&blob.digest)).and_then(|found| found.modified());
        match modified {
            Ok(modified) if modified != blob.modified => Ok(false),
            Ok(_) => self.remove(&blob.digest).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) => Err(self.io(error)),
        }
    }

    /// Removes the blob. A missing one is no error.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn remove(&self, digest: &Digest) -> Result<(), StoreError> {
        match fs::remove_file(self.path(digest)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.io(error)),
            _ => Ok(()),
        }
    }
}

/// A blob in the file system. Its bytes were not checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBlob {
    /// The digest in its name.
    pub digest: Digest,
    /// Size in bytes.
    pub size: u64,
    /// Time of its last storing.
    pub modified: SystemTime,
}

/// An unfinished blob. Dropping it without [`BlobWriter::commit`] removes it.
pub struct BlobWriter<'a> {
    store: &'a Store,
    path: PathBuf,
    inner: Option<HashingWriter<io::BufWriter<fs::File>>>,
}

impl BlobWriter<'_> {
    /// Makes the blob visible and returns its digest and size in bytes.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn commit(mut self) -> Result<(Digest, u64), StoreError> {
        let (buffered, digest, size) = self.take().finish();
        self.persist(buffered, &digest)?;
        Ok((digest, size))
    }

    /// Makes the blob visible if it has the digest `expected`. Otherwise nothing is stored.
    ///
    /// # Errors
    /// [`StoreError::WrongDigest`], [`StoreError::Io`].
    pub fn commit_expecting(mut self, expected: &Digest, name: &str) -> Result<u64, StoreError> {
        let (buffered, found, size) = self.take().finish();
        if found != *expected {
            return Err(StoreError::WrongDigest { name: name.to_owned(), expected: *expected, found });
        }
        self.persist(buffered, expected)?;
        Ok(size)
    }

    fn take(&mut self) -> HashingWriter<io::BufWriter<fs::File>> {
        match self.inner.take() {
            Some(inner) => inner,
            None => unreachable!("committing consumes the writer"),
        }
    }

    fn persist(&self, buffered: io::BufWriter<fs::File>, digest: &Digest) -> Result<(), StoreError> {
        let rename = || -> io::Result<()> {
            let file = buffered.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.sync_data()?;
            fs::rename(&self.path, self.store.path(digest))
        };
        rename().map_err(|source| self.store.io(source))
    }
}

impl Write for BlobWriter<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match &mut self.inner {
            Some(inner) => inner.write(buffer),
            None => Err(io::Error::other("the blob was committed already")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for BlobWriter<'_> {
    fn drop(&mut self) {
        // After a commit the file has been renamed. Otherwise the unfinished blob must not stay.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests;
