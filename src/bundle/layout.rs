//! Reading a bundle: a directory, or a tar archive without compression. No link is followed in either.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::os::fd::OwnedFd;
use std::path::Path;

use fs_err as fs;
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;

use super::BundleError;
use crate::artifact::store::Store;
use crate::digest::{Digest, HashingWriter};

/// The file that says that a directory is an OCI image layout.
pub const LAYOUT: &str = "oci-layout";
/// Its content.
pub const LAYOUT_TEXT: &[u8] = br#"{"imageLayoutVersion":"1.0.0"}"#;
/// The index.
pub const INDEX: &str = "index.json";
/// The signature of the index.
pub const SIGNATURE: &str = "index.json.sig";

/// Directory of the blobs.
pub const BLOBS: &str = "blobs/sha256";
/// The largest number of members of an archive, or of files in the directory of blobs.
const MOST_MEMBERS: usize = 500_000;

/// A bundle that is read.
pub struct Layout {
    name: String,
    members: Members,
}

/// The position and size in bytes of each member, by its name.
type Places = BTreeMap<String, (u64, u64)>;

enum Members {
    Directory(OwnedFd),
    /// Its members, and where the last one ends.
    Archive(fs::File, Places, u64),
}

impl Layout {
    /// Opens a bundle.
    ///
    /// # Errors
    /// [`BundleError::Io`]; [`BundleError::Malformed`] for anything but an OCI image layout.
    pub fn open(path: &Path) -> Result<Self, BundleError> {
        let name = path.display().to_string();
        let io = |source| BundleError::Io { name: name.clone(), doing: "read", source };
        // A pipe must not block.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = openat(CWD, path, flags, Mode::empty()).map_err(|error| io(error.into()))?;
        let members = match FileType::from_raw_mode(fstat(&opened).map_err(|error| io(error.into()))?.st_mode) {
            FileType::Directory => Members::Directory(opened),
            FileType::RegularFile => {
                let mut file = fs::File::from_parts(std::fs::File::from(opened), path);
                let (found, end) =
                    members(&mut file).map_err(|reason| BundleError::Malformed { name: name.clone(), reason })?;
                Members::Archive(file, found, end)
            }
            _ => {
                let reason = "it is neither a directory nor a file".to_owned();
                return Err(BundleError::Malformed { name, reason });
            }
        };
        let layout = Self { name, members };
        match layout.read(LAYOUT, 1 << 10)? {
            Some(text) if text.trim_ascii() == LAYOUT_TEXT.trim_ascii() => Ok(layout),
            Some(_) => Err(layout.malformed(format!("`{LAYOUT}` is of no known version"))),
            None => Err(layout.malformed(format!("it has no `{LAYOUT}`"))),
        }
    }

    /// Returns the bundle's path.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the error that the bundle is malformed.
    pub fn malformed(&self, reason: String) -> BundleError {
        BundleError::Malformed { name: self.name.clone(), reason }
    }

    /// Returns the error of reading the bundle.
    pub fn io(&self, source: io::Error) -> BundleError {
        BundleError::Io { name: self.name.clone(), doing: "read", source }
    }

    /// Returns the bytes of a member; `None` if there is none.
    ///
    /// # Errors
    /// [`BundleError::Io`]; [`BundleError::Malformed`] for anything but a file of at most `most` bytes.
    pub fn read(&self, member: &str, most: u64) -> Result<Option<Vec<u8>>, BundleError> {
        let Some((file, size)) = self.open_member(member)? else { return Ok(None) };
        if size > most {
            return Err(self.malformed(format!("`{member}` has {size} bytes, more than {most}")));
        }
        let mut bytes = Vec::new();
        file.take(size).read_to_end(&mut bytes).map_err(|error| self.io(error))?;
        Ok(Some(bytes))
    }

    /// Tells whether the bundle has a blob.
    ///
    /// # Errors
    /// As [`Layout::read`].
    pub fn has(&self, digest: &Digest) -> Result<bool, BundleError> {
        Ok(self.open_member(&blob_name(digest))?.is_some())
    }

    /// Returns the bytes of a blob after checking them.
    ///
    /// # Errors
    /// [`BundleError::Malformed`] for a missing blob or another size; [`BundleError::Damaged`]; [`BundleError::Io`].
    pub fn read_blob(&self, digest: &Digest, size: u64) -> Result<Vec<u8>, BundleError> {
        let mut bytes = Vec::new();
        self.open_blob(digest, size)?.read_to_end(&mut bytes).map_err(|error| self.io(error))?;
        match Digest::of(&bytes) == *digest {
            true => Ok(bytes),
            false => Err(BundleError::Damaged { name: self.name.clone(), digest: *digest }),
        }
    }

    /// Reads all bytes of a blob and compares their digest.
    ///
    /// # Errors
    /// As [`Layout::read_blob`].
    pub fn check_blob(&self, digest: &Digest, size: u64) -> Result<(), BundleError> {
        let mut hasher = HashingWriter::new(io::sink());
        io::copy(&mut self.open_blob(digest, size)?, &mut hasher).map_err(|error| self.io(error))?;
        match hasher.finish().1 == *digest {
            true => Ok(()),
            false => Err(BundleError::Damaged { name: self.name.clone(), digest: *digest }),
        }
    }

    /// Puts a blob into a store after checking it.
    ///
    /// # Errors
    /// As [`Layout::read_blob`]; [`BundleError::Store`].
    pub fn store_blob(&self, digest: &Digest, size: u64, store: &Store) -> Result<(), BundleError> {
        let mut writer = store.writer()?;
        io::copy(&mut self.open_blob(digest, size)?, &mut writer).map_err(|error| self.io(error))?;
        match writer.commit_expecting(digest, &self.name) {
            Err(crate::artifact::store::StoreError::WrongDigest { .. }) => {
                Err(BundleError::Damaged { name: self.name.clone(), digest: *digest })
            }
            stored => Ok(stored.map(|_| ())?),
        }
    }

    /// Opens a blob whose bytes are not checked yet.
    ///
    /// # Errors
    /// [`BundleError::Malformed`] for a missing blob or another size; [`BundleError::Io`].
    pub fn open_blob(&self, digest: &Digest, size: u64) -> Result<impl Read + use<>, BundleError> {
        let Some((file, found)) = self.open_member(&blob_name(digest))? else {
            return Err(self.malformed(format!("blob {digest} is missing")));
        };
        match found == size {
            true => Ok(file.take(size)),
            false => Err(self.malformed(format!("blob {digest} has {found} bytes instead of {size}"))),
        }
    }

    /// Opens a member at its start, and returns its size in bytes.
    fn open_member(&self, member: &str) -> Result<Option<(std::fs::File, u64)>, BundleError> {
        match &self.members {
            Members::Archive(file, members, _) => {
                let Some((position, size)) = members.get(member) else { return Ok(None) };
                // Its own position, because several members may be read at once.
                let opened = fs::File::open(file.path()).and_then(|mut file| {
                    file.seek(SeekFrom::Start(*position))?;
                    Ok(file.into_parts().0)
                });
                Ok(Some((opened.map_err(|error| self.io(error))?, *size)))
            }
            Members::Directory(directory) => {
                let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
                let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
                let opened = match openat2(directory, member, flags, Mode::empty(), resolve) {
                    Ok(opened) => opened,
                    Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
                    Err(Errno::LOOP) => return Err(self.malformed(format!("`{member}` is reached by a link"))),
                    Err(error) => return Err(self.io(error.into())),
                };
                let found = fstat(&opened).map_err(|error| self.io(error.into()))?;
                if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
                    return Err(self.malformed(format!("`{member}` is no regular file")));
                }
                let size = u64::try_from(found.st_size).unwrap_or_default();
                Ok(Some((std::fs::File::from(opened), size)))
            }
        }
    }

    /// Returns the names of all files in the directory of blobs.
    ///
    /// # Errors
    /// [`BundleError::Io`]; [`BundleError::Malformed`] for more than 500,000.
    pub fn blob_names(&self) -> Result<Vec<String>, BundleError> {
        let names: Vec<String> = match &self.members {
            Members::Archive(_, members, _) => {
                let blobs = members.keys().filter_map(|name| name.strip_prefix("blobs/sha256/"));
                blobs.map(str::to_owned).collect()
            }
            Members::Directory(directory) => self.names(directory, BLOBS)?,
        };
        Ok(names)
    }

    /// Returns the names of files in the bundle's directory that do not belong to it, or a text about bytes behind the members
    /// of its archive. No command reads these files and bytes, and no digest covers them.
    ///
    /// # Errors
    /// As [`Layout::blob_names`].
    pub fn others(&self) -> Result<Vec<String>, BundleError> {
        match &self.members {
            Members::Archive(file, _, end) => {
                let io = |error| self.io(error);
                let mut file = fs::File::open(file.path()).map_err(io)?;
                file.seek(SeekFrom::Start(*end)).map_err(io)?;
                let mut buffer = vec![0; 64 << 10];
                loop {
                    match file.read(&mut buffer).map_err(io)? {
                        0 => return Ok(Vec::new()),
                        read if buffer[..read].iter().all(|byte| *byte == 0) => {}
                        _ => return Ok(vec!["bytes after the archive's end".to_owned()]),
                    }
                }
            }
            Members::Directory(directory) => {
                let mut others = self.names(directory, ".")?;
                others.retain(|name| ![LAYOUT, INDEX, SIGNATURE, "blobs"].contains(&name.as_str()));
                let blobs = self.names(directory, "blobs")?;
                let other = blobs.iter().filter(|name| *name != "sha256").map(|name| format!("blobs/{name}"));
                others.extend(other);
                Ok(others)
            }
        }
    }

    /// Returns the names in a directory of the bundle, sorted.
    fn names(&self, bundle: &OwnedFd, directory: &str) -> Result<Vec<String>, BundleError> {
        let io = |error: Errno| self.io(error.into());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let opened = openat2(bundle, directory, flags, Mode::empty(), resolve).map_err(io)?;
        let mut names = Vec::new();
        for entry in Dir::read_from(&opened).map_err(io)? {
            let name = entry.map_err(io)?.file_name().to_string_lossy().into_owned();
            if names.len() >= MOST_MEMBERS {
                return Err(self.malformed(format!("it has more than {MOST_MEMBERS} blobs")));
            }
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }
}

/// Returns the name of a blob's member.
pub fn blob_name(digest: &Digest) -> String {
    format!("{BLOBS}/{}", digest.hex())
}

/// Returns an archive's members, and where the last one ends. Only the headers are read.
fn members(file: &mut fs::File) -> Result<(Places, u64), String> {
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    let (mut found, mut last) = (Places::new(), 0);
    let mut archive = tar::Archive::new(file);
    let entries = archive.entries_with_seek().map_err(|error| error.to_string())?.raw(true);
    for (number, member) in entries.enumerate() {
        let member = member.map_err(|error| format!("it is no tar archive, or a damaged one: {error}"))?;
        if number >= MOST_MEMBERS {
            return Err(format!("it has more than {MOST_MEMBERS} members"));
        }
        let path = String::from_utf8_lossy(&member.header().path_bytes()).into_owned();
        let shown: String = path.chars().take(200).collect();
        let name = path.strip_prefix("./").unwrap_or(&path).trim_end_matches('/');
        let (position, size) = (member.raw_file_position(), member.size());
        last = position.saturating_add(size.saturating_add(511) & !511);
        match member.header().entry_type() {
            tar::EntryType::Directory if ["", ".", "blobs", BLOBS].contains(&name) => continue,
            tar::EntryType::Regular => {}
            _ => return Err(format!("`{shown}` is no regular file")),
        }
        let is_blob = name.strip_prefix("blobs/sha256/").is_some_and(|hex| Digest::from_hex(hex).is_ok());
        if !is_blob && ![LAYOUT, INDEX, SIGNATURE].contains(&name) {
            return Err(format!("`{shown}` does not belong into it"));
        }
        if position.checked_add(size).is_none_or(|end| end > length) {
            return Err(format!("it is truncated: `{shown}` ends after the file"));
        }
        if found.insert(name.to_owned(), (position, size)).is_some() {
            return Err(format!("`{shown}` is in it twice"));
        }
    }
    Ok((found, last))
}
