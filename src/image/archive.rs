//! Reads untrusted tar archives, with bounds. Accepts only directories, regular files and links.
//!
//! Long names are handled here rather than by the tar library, which would read a name of any length into memory.

use std::collections::HashMap;
use std::io::{self, Read};

use super::ImageError;
use super::content::{Content, SpoolWriter};
use super::path::TreePath;
use super::tree::{Entry, PlacedEntry};

/// Largest number of bytes that an archive may hold unpacked.
const MAX_BYTES: u64 = 4 << 30;
/// Largest number of members.
const MAX_MEMBERS: u64 = 300_000;
/// Largest member that only describes the next one, such as a long name.
const MAX_DESCRIPTION: u64 = 64 << 10;

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
    let mut described = Description::default();
    for (number, member) in archive.entries().map_err(malformed)?.raw(true).enumerate() {
        if number as u64 >= MAX_MEMBERS {
            return Err(ImageError::archive(name, format!("it has more than {MAX_MEMBERS} members")));
        }
        let mut member = member.map_err(malformed)?;
        let kind = member.header().entry_type();
        if described.take_from(kind, &mut member, name)? {
            continue;
        }
        let Description { path, link } = std::mem::take(&mut described);
        let path = match path {
            Some(path) => path,
            None => utf8(member.header().path_bytes().into_owned(), name)?,
        };
        let Some(path) = TreePath::parse(&path).map_err(|error| ImageError::archive(name, error))? else {
            continue;
        };
        let Some(target_path) = place(&path)? else { continue };
        let mode = member.header().mode().map_err(malformed)?;
        let mtime = member.header().mtime().map_err(malformed)?;
        let link = || match link.clone() {
            Some(link) => Ok(link),
            None => utf8(member.header().link_name_bytes().unwrap_or_default().into_owned(), name),
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

/// The facts that earlier members gave about the next one.
#[derive(Default)]
struct Description {
    path: Option<String>,
    link: Option<String>,
}

impl Description {
    /// Reads a member that describes the next one. Returns `false` for other members, which are not read.
    fn take_from(&mut self, kind: tar::EntryType, member: &mut impl Read, name: &str) -> Result<bool, ImageError> {
        match kind {
            tar::EntryType::GNULongName => self.path = Some(utf8(without_nul(read_description(member, name)?), name)?),
            tar::EntryType::GNULongLink => self.link = Some(utf8(without_nul(read_description(member, name)?), name)?),
            tar::EntryType::XGlobalHeader => drop(read_description(member, name)?),
            tar::EntryType::XHeader => {
                let records = read_description(member, name)?;
                for record in tar::PaxExtensions::new(&records) {
                    let record = record.map_err(|error| ImageError::archive(name, error))?;
                    let value = || utf8(record.value_bytes().to_vec(), name);
                    match record.key_bytes() {
                        b"path" => self.path = Some(value()?),
                        b"linkpath" => self.link = Some(value()?),
                        key if key == b"size" || key.starts_with(b"GNU.sparse") => {
                            return Err(ImageError::archive(name, "it holds a sparse or oversized file"));
                        }
                        _ => {}
                    }
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn read_description(member: &mut impl Read, name: &str) -> Result<Vec<u8>, ImageError> {
    let mut bytes = Vec::new();
    member.take(MAX_DESCRIPTION + 1).read_to_end(&mut bytes).map_err(|error| ImageError::archive(name, error))?;
    if bytes.len() as u64 > MAX_DESCRIPTION {
        return Err(ImageError::archive(name, "a name in it is too long"));
    }
    Ok(bytes)
}

fn without_nul(mut bytes: Vec<u8>) -> Vec<u8> {
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    bytes
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
