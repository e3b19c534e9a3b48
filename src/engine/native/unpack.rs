//! Unpacks a layer into a directory for an overlay: with overlay whiteouts, and without file rights such as
//! set-user-id.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead as _, BufReader, Read};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags};
use tar::EntryType;

use super::super::init::tree::{Destination, StepError};
use crate::digest::{Digest, HashingWriter};
use crate::member::Described;

/// Beginning of whiteouts in the image specification.
const WHITEOUT: &[u8] = b".wh.";

/// The whiteout of everything in its directory in lower layers.
const OPAQUE: &[u8] = b".wh..wh..opq";

/// The attribute that marks an opaque directory for an overlay in a user namespace.
pub(super) const OPAQUE_ATTRIBUTE: &str = "user.overlay.opaque";

/// Unpacks a tar archive, compressed by gzip or not, into a new directory, and returns the digest of the archive without
/// compression.
pub(super) fn unpack(layer: Box<dyn Read>, into: &Path) -> io::Result<Digest> {
    let mut reader = BufReader::with_capacity(256 << 10, layer);
    let compressed = reader.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    let plain: Box<dyn Read> =
        if compressed { Box::new(flate2::bufread::MultiGzDecoder::new(reader)) } else { Box::new(reader) };
    let mut hashed = Hashed { inner: plain, hasher: HashingWriter::new(io::sink()) };
    fs_err::create_dir(into)?;
    let destination = Destination::open(&into.to_string_lossy()).map_err(of_step)?;
    unpack_entries(&mut hashed, destination, into)?;
    // Bytes after the archive's end mark belong to its digest as well.
    io::copy(&mut hashed, &mut io::sink())?;
    // A power failure must not leave a named tree without its content.
    let directory = rustix::fs::open(into, rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC, Mode::empty())?;
    rustix::fs::syncfs(&directory)?;
    Ok(hashed.hasher.finish().1)
}

fn unpack_entries(layer: &mut dyn Read, mut destination: Destination, root: &Path) -> io::Result<()> {
    let mut archive = tar::Archive::new(layer);
    let mut described = Described::default();
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        if described.take_from(&mut entry)? {
            continue;
        }
        let Described { path, link } = std::mem::take(&mut described);
        let path = PathBuf::from(OsString::from_vec(path.unwrap_or_else(|| entry.path_bytes().into_owned())));
        let link = || link.or_else(|| Some(entry.link_name_bytes()?.into_owned())).unwrap_or_default();
        if path.components().all(|part| part == std::path::Component::CurDir) {
            continue;
        }
        let mode = entry.header().mode()?;
        let times = at(entry.header().mtime()?);
        match entry.header().entry_type() {
            EntryType::Directory => {
                // The maker must be able to fill and remove the directory.
                destination.directory(&path, mode | 0o700, times).map_err(of_step)?;
            }
            EntryType::Regular | EntryType::Continuous => match whiteout(&path) {
                None => {
                    let fill = |file: &mut std::fs::File| io::copy(&mut entry, file).map(|_| ());
                    destination.file(&path, mode, &times, fill).map_err(of_step)?;
                }
                Some(Whiteout::Name(path)) => make_whiteout(&mut destination, &path)?,
                Some(Whiteout::Below(path)) => make_opaque(&mut destination, root, &path, times)?,
            },
            EntryType::Symlink => {
                destination.link(&path, &OsString::from_vec(link()), &times).map_err(of_step)?;
            }
            EntryType::Link => {
                destination.hard_link(&path, Path::new(&OsString::from_vec(link()))).map_err(of_step)?;
            }
            other => {
                let text = format!("`{}` is of kind {other:?}, which images of ours never hold", path.display());
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
        }
    }
    destination.finish().map_err(of_step)
}

/// What a whiteout removes from lower layers.
enum Whiteout {
    /// This path.
    Name(PathBuf),
    /// Everything in this directory.
    Below(PathBuf),
}

fn whiteout(path: &Path) -> Option<Whiteout> {
    let name = path.file_name()?.as_bytes();
    let parent = path.parent().unwrap_or(Path::new(""));
    if name == OPAQUE {
        return Some(Whiteout::Below(parent.to_owned()));
    }
    let gone = name.strip_prefix(WHITEOUT)?;
    Some(Whiteout::Name(parent.join(OsStr::from_bytes(gone))))
}

fn make_whiteout(destination: &mut Destination, path: &Path) -> io::Result<()> {
    let (parent, name) = destination.parent(path).map_err(of_step)?;
    // A device of number 0, 0, which every user may create.
    Ok(rustix::fs::mknodat(parent, name, FileType::CharacterDevice, Mode::empty(), rustix::fs::makedev(0, 0))?)
}

fn make_opaque(destination: &mut Destination, root: &Path, path: &Path, times: Timestamps) -> io::Result<()> {
    destination.directory(path, 0o755, times).map_err(of_step)?;
    let marked = root.join(path);
    // The path contains no links, because its components were just created.
    rustix::fs::statat(CWD, &marked, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(rustix::fs::lsetxattr(&marked, OPAQUE_ATTRIBUTE, b"y", XattrFlags::empty())?)
}

fn at(seconds: u64) -> Timestamps {
    let time = Timespec { tv_sec: i64::try_from(seconds).unwrap_or(i64::MAX), tv_nsec: 0 };
    Timestamps { last_access: time, last_modification: time }
}

fn of_step(error: StepError) -> io::Error {
    match error {
        StepError::Failed { error, errno: Some(errno) } => {
            io::Error::new(io::Error::from_raw_os_error(errno).kind(), error)
        }
        StepError::Failed { error, errno: None } | StepError::Refused(error) => io::Error::other(error),
        StepError::Absent => io::Error::other("something that was there vanished"),
        StepError::Report(error) => io::Error::other(error),
    }
}

/// A reader that hashes what passes through it.
struct Hashed<R> {
    inner: R,
    hasher: HashingWriter<io::Sink>,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        use std::io::Write as _;
        let length = self.inner.read(buffer)?;
        self.hasher.write_all(&buffer[..length])?;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whiteouts_are_told_by_their_names() {
        assert!(matches!(whiteout(Path::new("a/.wh.b")), Some(Whiteout::Name(path)) if path == Path::new("a/b")));
        assert!(matches!(whiteout(Path::new("a/.wh..wh..opq")), Some(Whiteout::Below(path)) if path == Path::new("a")));
        assert!(whiteout(Path::new("a/wh.b")).is_none());
    }
}
