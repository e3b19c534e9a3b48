//! The bytes of an image's files until a layer is written: in memory, in the store, or in a spool file.
//!
//! Unpacked packages exceed memory, and layers are written in another order than files are unpacked. So files are
//! written one after another to an unlinked temporary file.

use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use fs_err as fs;

use super::ImageError;
use crate::artifact::store::{Store, StoreError};
use crate::digest::{Digest, HashingWriter};

/// A temporary file without a name.
#[derive(Debug)]
pub(crate) struct Spool {
    file: fs::File,
}

/// Appends to a [`Spool`].
#[derive(Debug)]
pub(crate) struct SpoolWriter {
    spool: Arc<Spool>,
    length: u64,
}

/// The bytes of one file.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// In memory.
    Bytes(Arc<[u8]>),
    /// A blob of the store.
    Blob {
        /// Its digest.
        digest: Digest,
        /// Its size in bytes.
        size: u64,
    },
    /// A stretch of a spool.
    Spooled {
        /// The spool.
        spool: Arc<Spool>,
        /// Offset of the first byte.
        offset: u64,
        /// Size in bytes.
        size: u64,
        /// Digest of these bytes.
        digest: Digest,
    },
}

impl SpoolWriter {
    /// Returns a writer to a new spool in the store's temporary directory.
    pub(crate) fn new(store: &Store) -> Result<Self, ImageError> {
        Ok(Self { spool: Arc::new(Spool { file: store.unnamed_file()? }), length: 0 })
    }

    /// Reads all of `source`, at most `limit` bytes. `name` names the source in errors.
    pub(crate) fn append(&mut self, source: &mut dyn Read, limit: u64, name: &str) -> Result<Content, ImageError> {
        let offset = self.length;
        let mut hasher = HashingWriter::new(io::sink());
        let mut buffer = [0u8; 64 * 1024];
        loop {
            let count = source.read(&mut buffer).map_err(|error| ImageError::archive(name, error))?;
            if count == 0 {
                break;
            }
            let chunk = &buffer[..count];
            if self.length - offset + count as u64 > limit {
                return Err(ImageError::archive(name, format!("a file in it is larger than {limit} bytes")));
            }
            let write = self.spool.file.file().write_all_at(chunk, self.length).and_then(|()| hasher.write_all(chunk));
            write.map_err(|source| ImageError::Io { doing: format!("unpacking `{name}`"), source })?;
            self.length += count as u64;
        }
        let (_, digest, size) = hasher.finish();
        Ok(Content::Spooled { spool: Arc::clone(&self.spool), offset, size, digest })
    }
}

impl Content {
    /// Returns `bytes` as a file's content.
    pub(crate) fn of(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Bytes(bytes.into().into())
    }

    /// Returns the digest of the bytes.
    pub(crate) fn digest(&self) -> Digest {
        match self {
            Self::Bytes(bytes) => Digest::of(bytes),
            Self::Blob { digest, .. } | Self::Spooled { digest, .. } => *digest,
        }
    }

    /// Returns the number of bytes.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Blob { size, .. } | Self::Spooled { size, .. } => *size,
        }
    }

    /// Returns the position in the spool, which tells two names of one file (hard links) from equal bytes.
    pub(crate) fn identity(&self) -> Option<(usize, u64)> {
        match self {
            Self::Spooled { spool, offset, size, .. } if *size > 0 => Some((Arc::as_ptr(spool) as usize, *offset)),
            Self::Bytes(_) | Self::Blob { .. } | Self::Spooled { .. } => None,
        }
    }

    /// Writes the bytes. Those of a blob are checked against its digest.
    pub(crate) fn write_to(&self, store: &Store, out: &mut dyn Write) -> Result<(), ImageError> {
        let writing = |source| ImageError::Io { doing: "writing a layer".to_owned(), source };
        match self {
            Self::Bytes(bytes) => out.write_all(bytes).map_err(writing),
            Self::Blob { digest, size } => {
                let file = store.open_blob(digest)?;
                let mut hasher = HashingWriter::new(out);
                // One byte more than the recorded size is enough to detect another blob.
                io::copy(&mut file.take(size.saturating_add(1)), &mut hasher).map_err(writing)?;
                let (_, found, length) = hasher.finish();
                if found != *digest || length != *size {
                    let path = store.path(digest);
                    return Err(StoreError::Corrupted { expected: *digest, found, path }.into());
                }
                Ok(())
            }
            Self::Spooled { spool, offset, size, .. } => {
                let mut buffer = [0u8; 64 * 1024];
                let mut done = 0;
                while done < *size {
                    let want = usize::try_from(size - done).map_or(buffer.len(), |rest| rest.min(buffer.len()));
                    spool.file.file().read_exact_at(&mut buffer[..want], offset + done).map_err(writing)?;
                    out.write_all(&buffer[..want]).map_err(writing)?;
                    done += want as u64;
                }
                Ok(())
            }
        }
    }

    /// Returns the bytes of a small file.
    pub(crate) fn read(&self, store: &Store, limit: u64) -> Result<Vec<u8>, ImageError> {
        if self.size() > limit {
            return Err(ImageError::archive("a generated file's source", format!("it is larger than {limit} bytes")));
        }
        let mut bytes = Vec::new();
        self.write_to(store, &mut bytes)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_content_gives_its_bytes_back() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("store"), &directory.path().join("tmp")).unwrap();
        let mut spool = SpoolWriter::new(&store).unwrap();
        let large = vec![7u8; 200_000];
        spool.append(&mut &b"first"[..], 10, "x").unwrap();
        let spooled = spool.append(&mut large.as_slice(), 200_000, "x").unwrap();
        let digest = store.put(b"blob").unwrap();
        for (content, bytes) in [
            (Content::of("text"), b"text".to_vec()),
            (Content::Blob { digest, size: 4 }, b"blob".to_vec()),
            (spooled, large.clone()),
        ] {
            assert_eq!(content.read(&store, 1 << 20).unwrap(), bytes);
            assert_eq!((content.digest(), content.size()), (Digest::of(&bytes), bytes.len() as u64));
        }
        assert!(spool.append(&mut large.as_slice(), 100, "x").is_err());
        let wrong = Content::Blob { digest, size: 3 };
        assert!(matches!(wrong.read(&store, 10), Err(ImageError::Store(StoreError::Corrupted { .. }))));
        assert_eq!(fs::read_dir(directory.path().join("tmp")).unwrap().count(), 0);
    }
}
