//! Reads untrusted tar archives, with bounds. Accepts only directories, regular files and links.

use std::collections::HashMap;
use std::io::{self, Read};

use super::ImageError;
use super::content::{Content, SpoolWriter};
use super::path::TreePath;
use super::tree::{Entry, PlacedEntry};
use crate::member::Described;

/// Largest number of bytes that an archive may hold unpacked.
const MAX_BYTES: u64 = 4 << 30;
/// Largest number of members.
const MAX_MEMBERS: u64 = 300_000;

/// Returns the entries of the tar archive in `reader` at the places that `place` returns; members without a place are
/// skipped. Contents go to `spool`. `name` names the archive in errors.
pub(crate) fn read_tar(
    reader: &mut dyn Read,
    name: &str,
    spool: &mut SpoolWriter,
    place: &dyn Fn(&TreePath) -> Result<Option<TreePath>, ImageError>,
) -> Result<Vec<PlacedEntry>, ImageError> {
    let malformed = |error: io::Error| ImageError::archive(name, error);
    let mut archive = tar::Archive::new(Bounded { inner: reader, left: MAX_BYTES });
    let mut entries = Vec::new();
    let mut files: HashMap<TreePath, Entry> = HashMap::new();
    let mut described = Described::default();
    for (number, member) in archive.entries().map_err(malformed)?.raw(true).enumerate() {
        if number as u64 >= MAX_MEMBERS {
            return Err(ImageError::archive(name, format!("it has more than {MAX_MEMBERS} members")));
        }
        let mut member = member.map_err(malformed)?;
        if described.take_from(&mut member).map_err(malformed)? {
            continue;
        }
        let kind = member.header().entry_type();
        let Described { path, link } = std::mem::take(&mut described);
        let path = utf8(path.unwrap_or_else(|| member.header().path_bytes().into_owned()), name)?;
        let Some(path) = TreePath::parse(&path).map_err(|error| ImageError::archive(name, error))? else {
            continue;
        };
        let Some(target_path) = place(&path)? else { continue };
        let mode = member.header().mode().map_err(malformed)?;
        let mtime = member.header().mtime().map_err(malformed)?;
        let link = || {
            let in_header = || member.header().link_name_bytes().unwrap_or_default().into_owned();
            utf8(link.clone().unwrap_or_else(in_header), name)
        };
        let entry = match kind {
            tar::EntryType::Directory => Entry::directory(mode, mtime),
            tar::EntryType::Symlink => Entry::symlink(&link()?, mtime),
            tar::EntryType::Link => {
                let target = TreePath::parse(&link()?).map_err(|error| ImageError::archive(name, error))?;
                let first = target.and_then(|target| files.get(&target));
                first
                    .cloned()
                    .ok_or_else(|| ImageError::archive(name, format!("`{path}` is linked to no file of it")))?
            }
            tar::EntryType::Regular | tar::EntryType::Continuous => {
                let content: Content = spool.append(&mut member, MAX_BYTES, name)?;
                let entry = Entry::file(mode, mtime, content);
                files.insert(path, entry.clone());
                entry
            }
            other => {
                let reason = format!("`{path}` is neither file, directory nor link (type {})", other.as_byte());
                return Err(ImageError::archive(name, reason));
            }
        };
        entries.push(PlacedEntry { path: target_path, entry });
    }
    // Bytes after the last member are checked too, because a compressed stream has its checksum at the end.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(malformed)?;
    Ok(entries)
}

fn utf8(bytes: Vec<u8>, name: &str) -> Result<String, ImageError> {
    String::from_utf8(bytes).map_err(|_| ImageError::archive(name, "a name in it is not UTF-8"))
}

/// A reader that fails after a maximum number of bytes.
pub(crate) struct Bounded<R> {
    pub(crate) inner: R,
    pub(crate) left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        match self.left.checked_sub(count as u64) {
            Some(left) => {
                self.left = left;
                Ok(count)
            }
            None => Err(io::Error::new(io::ErrorKind::InvalidData, "it unpacks to more than is allowed")),
        }
    }
}

#[cfg(test)]
mod tests;
