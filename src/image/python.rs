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

/// Returns the place of a wheel's member in a site directory. `x.data/purelib/` and `x.data/platlib/` stand for the
/// directory itself; other parts of `x.data` (scripts, headers) can't be imported.
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
mod tests;
