//! Reads Debian binary packages: an `ar` archive of `debian-binary`, `control.tar.*` and `data.tar.*`.
//!
//! Maintainer scripts are never run. The recipe reproduces those of their effects that images need.

use std::io::{self, Read};

use super::ImageError;
use super::archive::{Bounded, read_tar};
use super::content::SpoolWriter;
use super::path::TreePath;
use super::tree::{Entry, Node, PlacedEntry};
use crate::artifact::store::Store;

const MAX_CONTROL_BYTES: u64 = 64 << 20;
const MAX_CONTROL_FILE: u64 = 256 << 10;
/// The most memory for decompression; `xz -9` needs 65 MiB.
const MAX_XZ_MEMORY: u64 = 256 << 20;

/// A package's content.
#[derive(Debug)]
pub(crate) struct Package {
    /// The text of its `control` file.
    pub(crate) control: String,
    /// Its kept files, directories and links.
    pub(crate) entries: Vec<PlacedEntry>,
}

impl Package {
    /// Returns a field of the control file's only paragraph.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.control.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }
}

/// Reads the package in `reader`, with the files that `keep` selects. `name` names the package in errors.
pub(crate) fn read_package(
    mut reader: impl Read,
    name: &str,
    store: &Store,
    spool: &mut SpoolWriter,
    keep: &dyn Fn(&TreePath) -> bool,
) -> Result<Package, ImageError> {
    let mut magic = [0u8; 8];
    reader.read_exact(&mut magic).map_err(|error| ImageError::archive(name, error))?;
    if &magic != b"!<arch>\n" {
        return Err(ImageError::archive(name, "it is no Debian package"));
    }
    let mut format = String::new();
    next_member(&mut reader, name, &["debian-binary"])?
        .content(&mut reader)
        .take(32)
        .read_to_string(&mut format)
        .map_err(|error| ImageError::archive(name, error))?;
    if !format.starts_with("2.") {
        return Err(ImageError::archive(name, "its format is not 2.x"));
    }
    let control =
        next_member(&mut reader, name, &["control.tar", "control.tar.gz", "control.tar.xz", "control.tar.zst"])?;
    let control = {
        // The control archive's files are not the image's, so they go to a spool of their own.
        let mut own = SpoolWriter::new(store)?;
        let tar = decompress(control.content(&mut reader), control.compression(), name)?;
        let wanted = |path: &TreePath| Ok((path.as_str() == "control").then(|| path.clone()));
        let entries = read_tar(&mut Bounded { inner: tar, left: MAX_CONTROL_BYTES }, name, &mut own, &wanted)?;
        let Some(PlacedEntry { entry: Entry { node: Node::File(content), .. }, .. }) = entries.into_iter().next_back()
        else {
            return Err(ImageError::archive(name, "it has no control file"));
        };
        let text = String::from_utf8(content.read(store, MAX_CONTROL_FILE)?);
        text.map_err(|_| ImageError::archive(name, "its control file is not UTF-8"))?
    };
    let data = next_member(&mut reader, name, &["data.tar", "data.tar.gz", "data.tar.xz", "data.tar.zst"])?;
    let mut tar = decompress(data.content(&mut reader), data.compression(), name)?;
    let entries = read_tar(&mut tar, name, spool, &|path| Ok(keep(path).then(|| path.clone())))?;
    Ok(Package { control, entries })
}

/// Parts of a package that this program itself reads.
pub(crate) struct PackageFiles {
    /// The text of its `control` file.
    pub(crate) control: String,
    /// Files by path.
    pub(crate) files: Vec<(String, Vec<u8>)>,
}

/// Returns the package's control text, and the files that `wanted` selects. Only for the few packages that this program
/// itself reads. `limit` is the largest file's size in bytes.
pub(crate) fn read_files(
    reader: impl Read,
    name: &str,
    store: &Store,
    limit: u64,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<PackageFiles, ImageError> {
    let mut spool = SpoolWriter::new(store)?;
    let package = read_package(reader, name, store, &mut spool, &|path| wanted(path.as_str()))?;
    let mut files = Vec::new();
    for PlacedEntry { path, entry, .. } in package.entries {
        if let Node::File(content) = &entry.node {
            files.push((path.as_str().to_owned(), content.read(store, limit)?));
        }
    }
    Ok(PackageFiles { control: package.control, files })
}

/// A member of the `ar` archive. The stream continues with its bytes, and with a filler after an odd number of bytes.
struct Member {
    name: String,
    size: u64,
}

impl Member {
    fn content<R: Read>(&self, reader: R) -> MemberReader<R> {
        MemberReader { inner: reader, left: self.size, filler: self.size % 2 == 1 }
    }

    fn compression(&self) -> &str {
        self.name.rsplit_once('.').map_or("", |(_, extension)| extension)
    }
}

/// Reads the next member's header. Members whose names start with `_` are skipped, as the format demands.
fn next_member(reader: &mut impl Read, name: &str, expected: &[&str]) -> Result<Member, ImageError> {
    loop {
        let mut header = [0u8; 60];
        reader.read_exact(&mut header).map_err(|error| ImageError::archive(name, error))?;
        let text = |range: std::ops::Range<usize>| std::str::from_utf8(&header[range]).map(str::trim_end).ok();
        let size = text(48..58).and_then(|digits| digits.parse::<u64>().ok());
        let (Some(member), Some(size), b"`\n") = (text(0..16), size, &header[58..60]) else {
            return Err(ImageError::archive(name, "a member's header is malformed"));
        };
        let member = Member { name: member.strip_suffix('/').unwrap_or(member).to_owned(), size };
        if expected.contains(&member.name.as_str()) {
            return Ok(member);
        }
        if !member.name.starts_with('_') {
            let reason = format!("`{}` stands where `{}` should", member.name.escape_debug(), expected[0]);
            return Err(ImageError::archive(name, reason));
        }
        let skipped = io::copy(&mut member.content(&mut *reader), &mut io::sink());
        skipped.map_err(|error| ImageError::archive(name, error))?;
    }
}

/// Reads a member's bytes. Dropping it skips the rest of them.
struct MemberReader<R: Read> {
    inner: R,
    left: u64,
    filler: bool,
}

impl<R: Read> Read for MemberReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            if std::mem::take(&mut self.filler) {
                self.inner.read_exact(&mut [0u8; 1])?;
            }
            return Ok(0);
        }
        let want = usize::try_from(self.left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let count = self.inner.read(&mut buffer[..want])?;
        if count == 0 && want > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= count as u64;
        Ok(count)
    }
}

impl<R: Read> Drop for MemberReader<R> {
    fn drop(&mut self) {
        // A failure shows at once, because the next member's header is then misplaced.
        let _ = io::copy(self, &mut io::sink());
    }
}

fn decompress<'a>(reader: impl Read + 'a, compression: &str, name: &str) -> Result<Box<dyn Read + 'a>, ImageError> {
    let failed = |error: io::Error| ImageError::archive(name, error);
    Ok(match compression {
        "xz" => {
            let stream = liblzma::stream::Stream::new_stream_decoder(MAX_XZ_MEMORY, liblzma::stream::CONCATENATED);
            let stream = stream.map_err(|error| ImageError::archive(name, error))?;
            Box::new(liblzma::read::XzDecoder::new_stream(reader, stream))
        }
        "gz" => Box::new(flate2::read::MultiGzDecoder::new(reader)),
        "zst" => Box::new(zstd::stream::read::Decoder::new(reader).map_err(failed)?),
        _ => Box::new(reader),
    })
}

/// Tells whether images keep a package's file. They leave out manuals, translations, documentation except copyright
/// files, module archives for linking Java run times, and data for desktops, packaging tools and debuggers.
pub(crate) fn is_kept(path: &TreePath) -> bool {
    const LEFT_OUT: [&str; 17] = [
        "usr/lib/debug",
        "usr/share/applications",
        "usr/share/bash-completion",
        "usr/share/binfmts",
        "usr/share/bug",
        "usr/share/doc-base",
        "usr/share/gdb",
        "usr/share/gitweb",
        "usr/share/info",
        "usr/share/lintian",
        "usr/share/locale",
        "usr/share/man",
        "usr/share/menu",
        "usr/share/pixmaps",
        "usr/share/zsh",
        "usr/share/base-files",
        "usr/share/debconf",
    ];
    if LEFT_OUT.iter().any(|directory| path.is_within(directory)) {
        return false;
    }
    if let Some(rest) = path.as_str().strip_prefix("usr/share/doc/") {
        // A package's directory may be a link to another package's.
        return rest.split_once('/').is_none_or(|(_, file)| file == "copyright" || file.starts_with("copyright."));
    }
    if let Some((_, file)) = path.as_str().strip_prefix("usr/lib/jvm/").and_then(|rest| rest.split_once('/')) {
        let top = file.split_once('/').map_or(file, |(top, _)| top);
        return !matches!(top, "jmods" | "man" | "demo" | "src.zip") && file != "lib/src.zip" && file != "jre/man";
    }
    true
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::Write as _;

    /// Returns a package made of `files` (path, mode, content; a path that ends in `/` is a directory).
    pub(crate) fn package(control: &str, files: &[(&str, u32, &str)], compression: &str) -> Vec<u8> {
        let mut data = tar::Builder::new(Vec::new());
        for (path, mode, content) in files {
            let mut header = tar::Header::new_gnu();
            header.set_mode(*mode);
            header.set_mtime(1_700_000_000);
            header.set_size(content.len() as u64);
            header.set_entry_type(match path.ends_with('/') {
                true => tar::EntryType::Directory,
                false => tar::EntryType::Regular,
            });
            data.append_data(&mut header, path, content.as_bytes()).unwrap();
        }
        package_of(control, &data.into_inner().unwrap(), compression)
    }

    /// Returns a package whose data archive is `data`.
    pub(crate) fn package_of(control: &str, data: &[u8], compression: &str) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(control.len() as u64);
        archive.append_data(&mut header, "control", control.as_bytes()).unwrap();
        let control = archive.into_inner().unwrap();
        let mut ar = b"!<arch>\n".to_vec();
        for (name, content) in [
            ("debian-binary", b"2.0\n".to_vec()),
            (&format!("control.tar{compression}"), compress(&control, compression)),
            (&format!("data.tar{compression}"), compress(data, compression)),
        ] {
            ar.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 100_644, content.len()).bytes());
            ar.extend(&content);
            ar.extend(std::iter::repeat_n(b'\n', content.len() % 2));
        }
        ar
    }

    fn compress(bytes: &[u8], compression: &str) -> Vec<u8> {
        match compression {
            ".xz" => {
                let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            ".gz" => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            ".zst" => zstd::encode_all(bytes, 1).unwrap(),
            _ => bytes.to_vec(),
        }
    }

    fn read(bytes: &[u8]) -> Result<Package, ImageError> {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("store"), &directory.path().join("tmp")).unwrap();
        let mut spool = SpoolWriter::new(&store).unwrap();
        read_package(bytes, "x.deb", &store, &mut spool, &is_kept)
    }

    #[test]
    fn every_compression_is_read() {
        let files =
            [("./usr/", 0o755, ""), ("./usr/bin/x", 0o4755, "program"), ("./usr/share/man/man1/x.1", 0o644, "m")];
        for compression in ["", ".gz", ".xz", ".zst"] {
            let package = read(&package("Package: x\nVersion: 1:2-3\n", &files, compression)).unwrap();
            assert_eq!((package.field("Package"), package.field("Version")), (Some("x"), Some("1:2-3")));
            let paths: Vec<&str> = package.entries.iter().map(|placed| placed.path.as_str()).collect();
            assert_eq!(paths, ["usr", "usr/bin/x"], "{compression}");
        }
    }

    #[test]
    fn what_is_no_package_is_refused() {
        let good = package("Package: x\n", &[("./a", 0o644, "a")], ".xz");
        assert!(read(b"").is_err());
        assert!(read(&good[..good.len() - 40]).is_err());
        let mut wrong_order = good.clone();
        wrong_order[8..16].copy_from_slice(b"data.tar");
        let error = read(&wrong_order).unwrap_err().to_string();
        assert!(error.contains("x.deb"), "{error}");
        let mut huge_member = good;
        huge_member[8 + 60 + 4 + 48..8 + 60 + 4 + 58].copy_from_slice(b"9999999999");
        assert!(read(&huge_member).is_err());
    }

    #[test]
    fn copyright_stays_and_other_documentation_goes() {
        for (path, kept) in [
            ("usr/share/doc/x", true),
            ("usr/share/doc/x/copyright", true),
            ("usr/share/doc/x/changelog.gz", false),
            ("usr/share/locale/de/LC_MESSAGES/x.mo", false),
            ("usr/lib/locale/C.utf8/LC_CTYPE", true),
            ("usr/lib/jvm/java-17-openjdk-amd64/jmods/java.base.jmod", false),
            ("usr/lib/jvm/java-17-openjdk-amd64/lib/modules", true),
            ("usr/share/manual", true),
        ] {
            assert_eq!(is_kept(&path.parse().unwrap()), kept, "{path}");
        }
    }
}
