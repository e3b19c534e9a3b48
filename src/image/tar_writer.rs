//! Writes tar archives whose every byte is decided here: ustar headers, and PAX records only for names that need them.
//!
//! Owners are numeric without names, there are no access or change times, and entries keep the given order. Bytes
//! change only together with [`super::recipe::RECIPE_VERSION`].

use std::io::{self, Write};

const BLOCK: usize = 512;
/// Largest size that eleven octal digits of the ustar format can express.
const MAX_SIZE: u64 = 0o77_777_777_777;

/// Writes one archive.
pub(crate) struct TarWriter<W> {
    inner: W,
}

/// The fields of a header besides the name.
#[derive(Clone, Copy)]
pub(crate) struct Attributes {
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) mtime: u64,
}

/// A member's kind.
#[derive(Clone, Copy)]
pub(crate) enum Kind<'a> {
    Directory,
    /// A file of this many bytes. The caller writes the bytes next, through [`TarWriter::content`].
    File(u64),
    HardLink(&'a str),
    Symlink(&'a str),
}

impl<W: Write> TarWriter<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner }
    }

    /// Writes a member's header. A directory's `path` has no trailing slash.
    pub(crate) fn header(&mut self, path: &str, attributes: Attributes, kind: Kind<'_>) -> io::Result<()> {
        let (flag, size, link, path) = match kind {
            Kind::Directory => (b'5', 0, "", format!("{path}/")),
            Kind::File(size) => (b'0', size, "", path.to_owned()),
            Kind::HardLink(target) => (b'1', 0, target, path.to_owned()),
            Kind::Symlink(target) => (b'2', 0, target, path.to_owned()),
        };
        let mut records = Vec::new();
        let name = match split_name(&path) {
            Some(name) => name,
            None => {
                records.extend(pax_record("path", &path));
                (&b""[..], &path.as_bytes()[..path.len().min(100)])
            }
        };
        let link_fits = link.len() <= 100 && link.is_ascii();
        if !link_fits {
            records.extend(pax_record("linkpath", link));
        }
        if !records.is_empty() {
            let attributes = Attributes { mode: 0o644, uid: 0, gid: 0, mtime: attributes.mtime };
            self.raw_header((b"", b"pax"), attributes, b'x', records.len() as u64, b"")?;
            self.inner.write_all(&records)?;
            self.pad(records.len() as u64)?;
        }
        self.raw_header(name, attributes, flag, size, &link.as_bytes()[..link.len().min(100)])
    }

    /// Returns the writer for a file's bytes after its header. The caller must then call [`TarWriter::pad`].
    pub(crate) fn content(&mut self) -> &mut W {
        &mut self.inner
    }

    /// Fills the last block of a file of `size` bytes.
    pub(crate) fn pad(&mut self, size: u64) -> io::Result<()> {
        let over = (size % BLOCK as u64) as usize;
        if over == 0 { Ok(()) } else { self.inner.write_all(&[0u8; BLOCK][over..]) }
    }

    /// Writes a whole small file.
    pub(crate) fn file(&mut self, path: &str, attributes: Attributes, bytes: &[u8]) -> io::Result<()> {
        self.header(path, attributes, Kind::File(bytes.len() as u64))?;
        self.inner.write_all(bytes)?;
        self.pad(bytes.len() as u64)
    }

    /// Ends the archive.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.inner.write_all(&[0u8; 2 * BLOCK])?;
        Ok(self.inner)
    }

    fn raw_header(
        &mut self,
        (prefix, name): (&[u8], &[u8]),
        attributes: Attributes,
        flag: u8,
        size: u64,
        link: &[u8],
    ) -> io::Result<()> {
        if size > MAX_SIZE {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a file is too large for a tar archive"));
        }
        let mut header = [0u8; BLOCK];
        put(&mut header[0..100], name);
        octal(&mut header[100..108], u64::from(attributes.mode));
        octal(&mut header[108..116], u64::from(attributes.uid));
        octal(&mut header[116..124], u64::from(attributes.gid));
        octal(&mut header[124..136], size);
        octal(&mut header[136..148], attributes.mtime);
        header[156] = flag;
        put(&mut header[157..257], link);
        put(&mut header[257..265], b"ustar\x0000");
        octal(&mut header[329..337], 0);
        octal(&mut header[337..345], 0);
        put(&mut header[345..500], prefix);
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        octal(&mut header[148..155], u64::from(sum));
        header[155] = b' ';
        self.inner.write_all(&header)
    }
}

/// Returns prefix and name as ustar splits them; `None` if that is impossible or the name is not ASCII.
fn split_name(path: &str) -> Option<(&[u8], &[u8])> {
    let bytes = path.as_bytes();
    if !path.is_ascii() {
        return None;
    }
    if bytes.len() <= 100 {
        return Some((b"", bytes));
    }
    // The first slash after which the name is short enough. A directory's trailing slash is no separator.
    let separators = bytes[..bytes.len() - 1].iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let at = separators.map(|(at, _)| at).find(|at| bytes.len() - at - 1 <= 100)?;
    (at <= 155).then(|| (&bytes[..at], &bytes[at + 1..]))
}

fn pax_record(key: &str, value: &str) -> Vec<u8> {
    // The number counts its own digits too.
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    format!("{length} {key}={value}\n").into_bytes()
}

fn put(field: &mut [u8], bytes: &[u8]) {
    field[..bytes.len()].copy_from_slice(bytes);
}

/// Writes zero-padded octal digits that end in NUL.
fn octal(field: &mut [u8], value: u64) {
    let width = field.len() - 1;
    let digits = format!("{value:0width$o}");
    put(field, digits.as_bytes());
}

#[cfg(test)]
mod tests;
