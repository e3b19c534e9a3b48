//! The store above a node's own: one on a shared file system that many nodes read.
//!
//! No lock of the shared file system is used, and nothing is written there.

use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;
use rustix::fs::{FlockOperation, flock};

use super::{BLOBS, Store, StoreError};
use crate::digest::Digest;

/// The link to the store above, in a store's root.
pub const UPSTREAM: &str = "upstream";

/// A store that is only read.
#[derive(Clone, Debug)]
pub(super) struct Upstream(PathBuf);

impl Upstream {
    /// Returns the store above the one in `root`, if it has one.
    pub(super) fn of(root: &Path) -> Option<Self> {
        // A store without a store above has no such link.
        std::fs::read_link(root.join(UPSTREAM)).ok().map(Self)
    }

    /// Returns a blob's path in it.
    pub(super) fn path(&self, digest: &Digest) -> PathBuf {
        self.0.join(BLOBS).join(digest.hex())
    }
}

impl Store {
    /// Copies a blob from the store above to this one, whoever of this node asks first; the others wait. Tells whether
    /// it is here now.
    pub(super) fn copy_down(&self, digest: &Digest) -> Result<bool, StoreError> {
        let Some(upstream) = &self.upstream else { return Ok(false) };
        let io = |source| self.io(source);
        let mut source = match fs::File::open(upstream.path(digest)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            opened => opened.map_err(io)?,
        };
        // One lock for some blobs: each copy ends soon.
        let locks = self.root.join("copying");
        fs::create_dir_all(&locks).map_err(io)?;
        let lock = fs::File::create(locks.join(&digest.hex()[..2])).map_err(io)?;
        flock(&lock, FlockOperation::LockExclusive).map_err(|error| io(error.into()))?;
        if self.path(digest).is_file() {
            return Ok(true);
        }
        let mut writer = self.writer()?;
        io::copy(&mut source, &mut writer).map_err(io)?;
        match writer.commit_expecting(digest, "a blob of the store above") {
            Err(StoreError::WrongDigest { expected, found, .. }) => {
                Err(StoreError::Corrupted { expected, found, path: upstream.path(digest) })
            }
            copied => copied.map(|_| true),
        }
    }

    /// Returns the bytes of a record at a path below the root, here or in the store above; `None` if neither has it.
    ///
    /// # Errors
    /// I/O errors of reading it.
    pub fn record(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        let above = self.upstream.iter().map(|upstream| upstream.0.join(path));
        for path in [self.root.join(path)].into_iter().chain(above) {
            match fs::read(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                read => return read.map(Some),
            }
        }
        Ok(None)
    }
}
