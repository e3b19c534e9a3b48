//! Writing a bundle: members in a fixed order, without times or owners, so that equal contents give equal bytes.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use fs_err as fs;

use super::BundleError;
use super::layout::{BLOBS, INDEX, LAYOUT, LAYOUT_TEXT, SIGNATURE, blob_name};
use crate::artifact::store::Store;
use crate::digest::{Digest, HashingWriter};
use crate::umask::Umask;

/// Where the bytes of a blob come from.
pub enum Content {
    /// Memory.
    Bytes(Vec<u8>),
    /// A blob of the store.
    Blob,
    /// A file.
    File(PathBuf),
}

/// A bundle to write.
pub struct NewBundle {
    /// The bytes of `index.json`.
    pub index: Vec<u8>,
    /// The bytes of its signature.
    pub signature: Option<Vec<u8>>,
    /// The blobs, with their sizes in bytes.
    pub blobs: BTreeMap<Digest, (u64, Content)>,
}

impl NewBundle {
    /// Writes the bundle as a tar archive.
    ///
    /// # Errors
    /// [`BundleError::Store`] for a missing or damaged blob; [`BundleError::Io`].
    pub fn write_archive(&self, store: &Store, name: &str, out: &mut dyn Write) -> Result<(), BundleError> {
        let io = |source| BundleError::Io { name: name.to_owned(), doing: "written", source };
        let mut archive = tar::Builder::new(out);
        let mut append = |path: &str, size: u64, content: &mut dyn Read| {
            let mut header = tar::Header::new_ustar();
            header.set_size(size);
            header.set_mode(0o644);
            header.set_mtime(0);
            archive.append_data(&mut header, path, content)
        };
        for (path, bytes) in self.texts() {
            append(path, bytes.len() as u64, &mut &*bytes).map_err(io)?;
        }
        for (digest, (size, content)) in &self.blobs {
            let mut reader = Checked::new(open(content, digest, store, &io)?.take(*size));
            append(&blob_name(digest), *size, &mut reader).map_err(io)?;
            reader.require(digest).map_err(io)?;
        }
        archive.finish().map_err(io)
    }

    /// Writes the bundle as a directory, which appears once it is complete.
    ///
    /// # Errors
    /// As [`NewBundle::write_archive`].
    pub fn write_directory(&self, store: &Store, path: &Path, umask: Umask) -> Result<(), BundleError> {
        let io = |source| BundleError::Io { name: path.display().to_string(), doing: "written", source };
        let Some(name) = path.file_name() else {
            return Err(io(io::Error::other("it is no name of a directory")));
        };
        // `bundle pull` keeps `.NAME.unfinished`, which must stay.
        let unfinished = path.with_file_name(format!(".{}.new", name.to_string_lossy()));
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).map_err(io)?;
        }
        let write = || -> Result<(), BundleError> {
            umask.create_directory(&unfinished.join(BLOBS)).map_err(io)?;
            for (digest, (size, content)) in &self.blobs {
                let mut reader = Checked::new(open(content, digest, store, &io)?.take(*size));
                let mut file = umask.create_file(&unfinished.join(blob_name(digest))).map_err(io)?;
                io::copy(&mut reader, &mut file).map_err(io)?;
                reader.require(digest).map_err(io)?;
            }
            for (name, bytes) in self.texts() {
                umask.create_file(&unfinished.join(name)).and_then(|mut file| file.write_all(&bytes)).map_err(io)?;
            }
            fs::rename(&unfinished, path).map_err(io)
        };
        write().inspect_err(|_| {
            // The error of writing is the one to report.
            let _ = fs::remove_dir_all(&unfinished);
        })
    }

    fn texts(&self) -> Vec<(&'static str, Vec<u8>)> {
        let mut texts = vec![(LAYOUT, LAYOUT_TEXT.to_vec()), (INDEX, self.index.clone())];
        texts.extend(self.signature.clone().map(|signature| (SIGNATURE, signature)));
        texts
    }
}

fn open(
    content: &Content,
    digest: &Digest,
    store: &Store,
    io: &dyn Fn(io::Error) -> BundleError,
) -> Result<Box<dyn Read>, BundleError> {
    Ok(match content {
        Content::Bytes(bytes) => Box::new(io::Cursor::new(bytes.clone())),
        Content::Blob => Box::new(store.open_blob(digest)?),
        Content::File(path) => Box::new(fs::File::open(path).map_err(io)?),
    })
}

/// A reader that hashes what it gives.
struct Checked<R> {
    inner: R,
    hasher: HashingWriter<io::Sink>,
}

impl<R: Read> Checked<R> {
    fn new(inner: R) -> Self {
        Self { inner, hasher: HashingWriter::new(io::sink()) }
    }

    fn require(self, digest: &Digest) -> io::Result<()> {
        match self.hasher.finish().1 {
            found if found == *digest => Ok(()),
            found => {
                let text =
                    format!("blob {digest} of the store holds other bytes ({found}); run `store verify --repair`");
                Err(io::Error::new(io::ErrorKind::InvalidData, text))
            }
        }
    }
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.hasher.write_all(&buffer[..length])?;
        Ok(length)
    }
}
