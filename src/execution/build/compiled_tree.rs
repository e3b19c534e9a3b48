//! A compiled tree as an archive. Finds its entries, the classes of a source file, packs parts of it as jars, and
//! writes the tree without a file's traces.
//!
//! The archive comes from a container in which an untrusted build ran. It is read by position, never unpacked here.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use fs_err as fs;

use crate::workspace::TREE_TIME;
use crate::workspace::class_file::{ClassFacts, MOST_CLASS_BYTES};

/// The most entries that an archive may have.
const MOST_ENTRIES: usize = 500_000;

/// The length of an entry's header in bytes, right before its content.
const HEADER_BYTES: u64 = 512;

/// The largest part that is packed as a jar, in bytes.
const MOST_JAR_BYTES: u64 = 1 << 30;

/// The largest file that is read whole, in bytes. Sources and classes are read, and a build may write files of any
/// size.
pub const MOST_READ_BYTES: u64 = 32 << 20;

/// Errors of a compiled tree.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// An I/O error, or the archive is truncated or malformed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The tree exceeds a limit of this module. Only Maven can compile with it.
    #[error("{0}")]
    TooLarge(String),
}

impl From<TreeError> for io::Error {
    fn from(error: TreeError) -> Self {
        match error {
            TreeError::Io(error) => error,
            error @ TreeError::TooLarge(_) => Self::other(error),
        }
    }
}

/// The position of an entry in the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Offset of the entry's first byte, extension headers included.
    start: u64,
    /// Offset of the content's first byte.
    content: u64,
    /// Length of its content in bytes.
    pub length: u64,
    /// Whether it is a regular file.
    regular: bool,
    /// Whether it is a directory.
    directory: bool,
}

/// The kind of entry at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File(Place),
    /// A directory with something in it.
    Directory,
    /// Nothing, or an empty directory.
    Nothing,
    /// An entry behind a link, or one that is neither file nor directory.
    Unclear,
}

/// An archive and the positions of its entries, by path relative to the tree and without a trailing slash.
#[derive(Debug)]
pub struct CompiledTree {
    file: fs::File,
    entries: BTreeMap<String, Place>,
    end: u64,
}

/// Appends a regular file that belongs to the task's user and has the time of every tree.
///
/// # Errors
/// I/O errors of writing, or of a path that no archive can hold.
pub fn append_file(builder: &mut tar::Builder<impl Write>, path: &str, content: &[u8]) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    header.set_uid(1000);
    header.set_gid(1000);
    header.set_mtime(TREE_TIME);
    builder.append_data(&mut header, path, content)
}

/// Returns an error about what an archive holds.
fn malformed(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}

impl CompiledTree {
    /// Reads the positions of all entries.
    ///
    /// # Errors
    /// I/O errors of reading `path`; [`io::ErrorKind::InvalidData`] for a malformed archive; [`TreeError::TooLarge`].
    pub fn open(path: &Path) -> Result<Self, TreeError> {
        Self::open_of(path, MOST_ENTRIES)
    }

    fn open_of(path: &Path, most: usize) -> Result<Self, TreeError> {
        let file = fs::File::open(path)?;
        let mut archive = tar::Archive::new(io::BufReader::with_capacity(64 << 10, &file));
        let mut entries = BTreeMap::new();
        let mut start = 0;
        for entry in archive.entries_with_seek()? {
            let entry = entry?;
            let (content, length) = (entry.raw_file_position(), entry.size());
            // A file with holes, or one whose size stands in an extension: nobody here writes such, and positions would be wrong.
            if entry.header().entry_size()? != length {
                return Err(malformed("an entry of the compiled tree has two sizes").into());
            }
            let stored = length.checked_next_multiple_of(512).and_then(|stored| content.checked_add(stored));
            let end = stored.ok_or_else(|| malformed("an entry of the compiled tree is too large"))?;
            let path = entry.path_bytes();
            // A name that is not text belongs to no source or class that matters. Its bytes are kept unchanged.
            let path = String::from_utf8_lossy(&path).trim_end_matches('/').to_owned();
            let kind = entry.header().entry_type();
            let (regular, directory) = (kind.is_file(), kind.is_dir());
            entries.insert(path, Place { start, content, length, regular, directory });
            start = end;
            if entries.len() > most {
                return Err(TreeError::TooLarge(format!("the compiled tree has more than {most} entries")));
            }
        }
        drop(archive);
        Ok(Self { file, entries, end: start })
    }

    /// Returns the regular file at a path.
    pub fn file(&self, path: &str) -> Option<Place> {
        self.entries.get(path).copied().filter(|place| place.regular)
    }

    /// Returns the kind of entry at a path without `.` and `..`; the empty path is the tree itself.
    pub fn at(&self, path: &str) -> EntryKind {
        let parents = path.match_indices('/').map(|(at, _)| &path[..at]).filter(|parent| !parent.is_empty());
        let entry = |path: &str| self.entries.get(path);
        if parents.filter_map(entry).any(|place| !place.directory) {
            return EntryKind::Unclear;
        }
        match entry(path) {
            Some(place) if place.regular => EntryKind::File(*place),
            Some(place) if !place.directory => EntryKind::Unclear,
            _ if self.files_below(path).next().is_some() => EntryKind::Directory,
            _ => EntryKind::Nothing,
        }
    }

    /// Returns the regular files below a directory, by path relative to it.
    pub fn files_below<'a>(&'a self, directory: &str) -> impl Iterator<Item = (&'a str, Place)> {
        let prefix = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let length = prefix.len();
        self.entries
            .range(prefix.clone()..)
            .take_while(move |(path, _)| path.starts_with(&prefix))
            .filter(|(_, place)| place.regular)
            .map(move |(path, place)| (&path[length..], *place))
    }

    /// Reads a file's content.
    ///
    /// # Errors
    /// I/O errors of reading the archive; [`TreeError::TooLarge`] for a file of more than [`MOST_READ_BYTES`].
    pub fn read(&self, place: Place) -> Result<Vec<u8>, TreeError> {
        if place.length > MOST_READ_BYTES {
            return Err(TreeError::TooLarge(format!("a file of {} bytes is too large to be read", place.length)));
        }
        let mut bytes = vec![0; usize::try_from(place.length).map_err(io::Error::other)?];
        std::os::unix::fs::FileExt::read_exact_at(self.file.file(), &mut bytes, place.content)?;
        Ok(bytes)
    }

    /// Tells whether the file at `place` has exactly this content.
    ///
    /// # Errors
    /// I/O errors of reading the archive.
    pub fn holds(&self, place: Place, content: &[u8]) -> io::Result<bool> {
        if place.length != content.len() as u64 {
            return Ok(false);
        }
        let mut buffer = vec![0; content.len().min(1 << 16)];
        let mut at = place.content;
        for part in content.chunks(1 << 16) {
            let read = &mut buffer[..part.len()];
            std::os::unix::fs::FileExt::read_exact_at(self.file.file(), read, at)?;
            if read != part {
                return Ok(false);
            }
            at += part.len() as u64;
        }
        Ok(true)
    }

    /// Writes a file's content.
    ///
    /// # Errors
    /// I/O errors of reading the archive and of writing to `out`.
    pub fn copy(&self, place: Place, out: &mut impl Write) -> io::Result<()> {
        self.copy_range(place.content, place.content + place.length, out)
    }

    fn copy_range(&self, start: u64, end: u64, out: &mut impl Write) -> io::Result<()> {
        let mut source = self.file.file().try_clone()?;
        source.seek(SeekFrom::Start(start))?;
        if io::copy(&mut source.take(end - start), out)? != end - start {
            return Err(malformed("the compiled tree ends early"));
        }
        Ok(())
    }

    /// Returns the classes directly in `directory` whose class files name this source file, by path relative to the
    /// tree. `None` where a class file there names no source file or is malformed.
    ///
    /// # Errors
    /// [`TreeError`].
    pub fn classes_of(
        &self,
        directory: &str,
        package: &str,
        source_file: &str,
    ) -> Result<Option<BTreeSet<String>>, TreeError> {
        let mut classes = BTreeSet::new();
        for (path, place) in self.files_below(directory) {
            if path.contains('/') || !path.ends_with(".class") {
                continue;
            }
            if place.length > MOST_CLASS_BYTES {
                return Ok(None);
            }
            let Ok(facts) = ClassFacts::read(&self.read(place)?) else { return Ok(None) };
            match facts.source_file.as_deref() {
                None => return Ok(None),
                Some(file) if file == source_file && facts.package() == package => {
                    let path = if directory.is_empty() { path.to_owned() } else { format!("{directory}/{path}") };
                    classes.insert(path);
                }
                Some(_) => {}
            }
        }
        Ok(Some(classes))
    }

    /// Writes the archive without the entries that `masked` names, and returns the size in bytes of all its entries,
    /// masked ones included.
    ///
    /// # Errors
    /// I/O errors of reading the archive and of writing to `out`.
    pub fn write_without(&self, masked: impl Fn(&str) -> bool, out: &mut fs::File) -> io::Result<u64> {
        let mut kept: Vec<(u64, u64)> = Vec::new();
        let mut places: Vec<(&String, Place)> = self.entries.iter().map(|(path, place)| (path, *place)).collect();
        places.sort_by_key(|(_, place)| place.start);
        for (path, place) in places {
            if masked(path) {
                continue;
            }
            let end = place.content + place.length.next_multiple_of(512);
            match kept.last_mut() {
                Some((_, last)) if *last == place.start => *last = end,
                _ => kept.push((place.start, end)),
            }
        }
        for (start, end) in kept {
            self.copy_range(start, end, out.file_mut())?;
        }
        // Two empty blocks end an archive.
        out.write_all(&[0; 1024])?;
        Ok(self.end)
    }

    /// Writes the archive with other contents for some files, given by path relative to the tree. A replaced file keeps
    /// its position, owner, mode and time. New files come last.
    ///
    /// # Errors
    /// I/O errors of reading the archive and of writing to `out`; an error if a path belongs to an entry that is no
    /// regular file.
    pub fn write_with(&self, files: &BTreeMap<&str, &[u8]>, out: &mut impl Write) -> io::Result<()> {
        let mut others: Vec<(Place, &[u8])> = Vec::new();
        let mut further = tar::Builder::new(Vec::new());
        for (path, content) in files {
            match self.at(path) {
                EntryKind::File(place) => others.push((place, content)),
                EntryKind::Nothing => append_file(&mut further, path, content)?,
                EntryKind::Directory | EntryKind::Unclear => {
                    return Err(malformed(format!("`{path}` is no regular file of the compiled tree")));
                }
            }
        }
        others.sort_by_key(|(place, _)| place.start);
        let mut at = 0;
        for (place, content) in others {
            let header = place.content - HEADER_BYTES;
            self.copy_range(at, header, out)?;
            let mut bytes = [0; HEADER_BYTES as usize];
            std::os::unix::fs::FileExt::read_exact_at(self.file.file(), &mut bytes, header)?;
            let mut header = tar::Header::from_byte_slice(&bytes).clone();
            header.set_size(content.len() as u64);
            header.set_cksum();
            out.write_all(header.as_bytes())?;
            out.write_all(content)?;
            out.write_all(&[0; 512][..content.len().next_multiple_of(512) - content.len()])?;
            at = place.content + place.length.next_multiple_of(512);
        }
        self.copy_range(at, self.end, out)?;
        out.write_all(&further.into_inner()?)
    }

    /// Writes the files below a directory as a jar: stored and sorted, without those that `masked` names by path
    /// relative to the tree. A missing directory gives an empty jar.
    ///
    /// # Errors
    /// [`TreeError`].
    pub fn write_jar<W: Write + Seek>(
        &self,
        directory: &str,
        masked: impl Fn(&str) -> bool,
        out: W,
    ) -> Result<W, TreeError> {
        self.write_jar_of(directory, masked, out, MOST_JAR_BYTES)
    }

    fn write_jar_of<W: Write + Seek>(
        &self,
        directory: &str,
        masked: impl Fn(&str) -> bool,
        out: W,
        most: u64,
    ) -> Result<W, TreeError> {
        let mut writer = zip::ZipWriter::new(out);
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored)
            .last_modified_time(zip::DateTime::default())
            .unix_permissions(0o644);
        let mut size = 0;
        for (path, place) in self.files_below(directory) {
            let whole = if directory.is_empty() { path.to_owned() } else { format!("{directory}/{path}") };
            // A compiler obeys the manifest of a jar (versions, further jars), but ignores one in a directory.
            if masked(&whole) || path == "META-INF/MANIFEST.MF" {
                continue;
            }
            size += place.length;
            if size > most {
                return Err(TreeError::TooLarge(format!("`{directory}` has more than {most} bytes")));
            }
            writer.start_file(path, options).map_err(io::Error::other)?;
            self.copy(place, &mut writer)?;
        }
        Ok(writer.finish().map_err(io::Error::other)?)
    }
}

#[cfg(test)]
mod tests;
