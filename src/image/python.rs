//! Unpacks Python distributions into a directory from which Debian's interpreter can import.
//!
//! Nothing is built and no setup script runs. Wheels are unpacked; from source archives, packages and modules are
//! copied unchanged. A distribution that needs compiling must come as a wheel.

use std::io::{Read, Seek};

use super::ImageError;
use super::archive::{Bounded, read_tar};
use super::content::SpoolWriter;
use super::path::TreePath;
use super::tree::{Entry, Node, PlacedEntry, SOURCE_DATE_EPOCH};

const MAX_FILES: usize = 20_000;
const MAX_BYTES: u64 = 1 << 30;

/// Returns the entries of a wheel (`.whl`) or source archive (`.tar.gz`), placed below `into`.
pub(crate) fn read_distribution(
    reader: impl Read + Seek,
    name: &str,
    into: &TreePath,
    spool: &mut SpoolWriter,
) -> Result<Vec<PlacedEntry>, ImageError> {
    if name.ends_with(".whl") {
        read_wheel(reader, name, into, spool)
    } else if name.ends_with(".tar.gz") {
        read_source_archive(reader, name, into, spool)
    } else {
        Err(ImageError::archive(name, "it is neither a wheel nor a .tar.gz archive"))
    }
}

fn read_wheel(
    reader: impl Read + Seek,
    name: &str,
    into: &TreePath,
    spool: &mut SpoolWriter,
) -> Result<Vec<PlacedEntry>, ImageError> {
    let malformed = |error: zip::result::ZipError| ImageError::archive(name, error);
    let mut archive = zip::ZipArchive::new(reader).map_err(malformed)?;
    if archive.len() > MAX_FILES {
        return Err(ImageError::archive(name, format!("it has more than {MAX_FILES} files")));
    }
    let mut left = MAX_BYTES;
    let mut entries = Vec::new();
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(malformed)?;
        let path = member.name().map_err(malformed)?.into_owned();
        let path = TreePath::parse(&path).map_err(|error| ImageError::archive(name, error))?;
        if member.is_dir() {
            continue;
        }
        if !member.is_file() {
            return Err(ImageError::archive(name, "it holds something that is no file"));
        }
        let Some(place) = path.as_ref().and_then(|path| place_in_site(path.as_str())) else { continue };
        let content = spool.append(&mut member, left, name)?;
        left -= content.size();
        entries.push(placed(into, place, content, name)?);
    }
    Ok(entries)
}

/// Returns where a wheel's member belongs in a site directory: `x.data/purelib/` and `x.data/platlib/` mean the
/// directory itself, other parts of `x.data` (scripts, headers) are not importable.
fn place_in_site(path: &str) -> Option<&str> {
    let Some((first, rest)) = path.split_once('/') else { return Some(path) };
    if !first.ends_with(".data") {
        return Some(path);
    }
    rest.strip_prefix("purelib/").or_else(|| rest.strip_prefix("platlib/"))
}

fn read_source_archive(
    reader: impl Read,
    name: &str,
    into: &TreePath,
    spool: &mut SpoolWriter,
) -> Result<Vec<PlacedEntry>, ImageError> {
    let mut tar = Bounded { inner: flate2::read::MultiGzDecoder::new(reader), left: MAX_BYTES };
    let without_first = |path: &TreePath| match path.as_str().split_once('/') {
        Some((_, rest)) => rest.parse().map(Some).map_err(|error| ImageError::archive(name, error)),
        None => Ok(None),
    };
    let all = read_tar(&mut tar, name, spool, &without_first)?;
    let files: Vec<(TreePath, super::content::Content)> = all
        .into_iter()
        .filter_map(|placed| match placed.entry.node {
            Node::File(content) => Some((placed.path, content)),
            Node::Directory | Node::Symlink(_) => None,
        })
        .collect();
    // Projects keep their code either below `src` or at the top.
    let is_module = |path: &str| match path.split_once('/') {
        None => path.ends_with(".py") && path != "setup.py" && path != "conftest.py",
        Some((package, _)) => !matches!(package, "test" | "tests" | "docs" | "examples"),
    };
    let has_package = |prefix: &str| {
        files.iter().any(|(path, _)| {
            path.as_str().strip_prefix(prefix).is_some_and(|rest| {
                is_module(rest) && rest.rsplit_once('/').map_or(rest, |(_, file)| file).ends_with(".py")
            })
        })
    };
    let prefix = if has_package("src/") { "src/" } else { "" };
    let packages: Vec<String> = files
        .iter()
        .filter_map(|(path, _)| path.as_str().strip_prefix(prefix)?.strip_suffix("/__init__.py").map(str::to_owned))
        .filter(|package| !package.contains('/'))
        .collect();
    let mut entries = Vec::new();
    for (path, content) in files {
        let Some(place) = path.as_str().strip_prefix(prefix) else { continue };
        let belongs = match place.split_once('/') {
            None => is_module(place),
            Some((package, _)) => is_module(place) && packages.iter().any(|known| known == package),
        };
        if belongs {
            entries.push(placed(into, place, content, name)?);
        }
    }
    if entries.is_empty() {
        return Err(ImageError::archive(name, "it holds no Python package or module"));
    }
    Ok(entries)
}

fn placed(
    into: &TreePath,
    place: &str,
    content: super::content::Content,
    name: &str,
) -> Result<PlacedEntry, ImageError> {
    let path = into.join(place).map_err(|error| ImageError::archive(name, error))?;
    Ok(PlacedEntry { path, entry: Entry::file(0o644, SOURCE_DATE_EPOCH, content) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::store::Store;
    use std::io::{Cursor, Write as _};

    fn read(bytes: Vec<u8>, name: &str) -> Result<Vec<String>, ImageError> {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("store"), &directory.path().join("tmp")).unwrap();
        let mut spool = SpoolWriter::new(&store).unwrap();
        let into = "opt/python".parse().unwrap();
        let entries = read_distribution(Cursor::new(bytes), name, &into, &mut spool)?;
        Ok(entries.into_iter().map(|placed| placed.path.to_string()).collect())
    }

    fn wheel(names: &[&str]) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for name in names {
            writer.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
            writer.write_all(b"x").unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn source_archive(names: &[&str]) -> Vec<u8> {
        let mut builder = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
        for name in names {
            let mut header = tar::Header::new_gnu();
            header.set_size(1);
            header.set_mode(0o644);
            builder.append_data(&mut header, name, &b"x"[..]).unwrap();
        }
        builder.into_inner().unwrap().finish().unwrap()
    }

    #[test]
    fn wheels_are_unpacked_with_their_data_directories() {
        let bytes = wheel(&["m/__init__.py", "m-1.dist-info/METADATA", "m-1.data/purelib/p.py", "m-1.data/scripts/m"]);
        let expected = ["opt/python/m/__init__.py", "opt/python/m-1.dist-info/METADATA", "opt/python/p.py"];
        assert_eq!(read(bytes, "m.whl").unwrap(), expected);
        assert!(read(wheel(&["../m.py"]), "m.whl").is_err());
        assert!(read(b"no zip".to_vec(), "m.whl").is_err());
        assert!(read(Vec::new(), "m.egg").is_err());
    }

    #[test]
    fn source_archives_give_packages_and_modules() {
        let bytes = source_archive(&["t-1/setup.py", "t-1/src/typing.py", "t-1/python2/typing.py", "t-1/README"]);
        assert_eq!(read(bytes, "t.tar.gz").unwrap(), ["opt/python/typing.py"]);
        let bytes = source_archive(&["c-1/setup.py", "c-1/comby/__init__.py", "c-1/comby/a/b.py", "c-1/docs/x.py"]);
        assert_eq!(read(bytes, "c.tar.gz").unwrap(), ["opt/python/comby/__init__.py", "opt/python/comby/a/b.py"]);
        assert!(read(source_archive(&["c-1/setup.py"]), "c.tar.gz").is_err());
    }
}
