//! Writes trees as tar archives, with one file swapped. Equal trees and swaps give equal bytes. Only its files show
//! which revision an archive contains.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use super::WorkspaceError;
use super::built::{is_built, is_built_of};
use super::cells::class_at;
use super::maven_config::{MAVEN_CONFIG, one_argument_a_line};
use super::tree::{EntryKind, RevisionTree, TreeEntry, TreeReport, is_lfs_pointer};
use crate::task::RepositoryPath;

/// User and group of every entry: the task's user.
const OWNER: u64 = 1000;

/// The largest archive, in bytes of content.
const MOST_BYTES: u64 = 4 << 30;

/// One file of a tree in another state.
#[derive(Clone, Copy, Debug)]
pub struct Swap<'a> {
    /// The file.
    pub path: &'a RepositoryPath,
    /// The file's bytes; `None` to leave the file out.
    pub content: Option<&'a [u8]>,
}

/// The result of writing an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveReport {
    /// Number of files and links.
    pub files: usize,
    /// Their contents, in bytes.
    pub bytes: u64,
    /// Unusual entries of the tree. Submodules and files without contents are left out of the archive.
    pub unusual: TreeReport,
}

impl ArchiveReport {
    /// Fails for the first file that `matters` and lacks its content: the repository does not have it, or has only a
    /// git-lfs pointer.
    ///
    /// # Errors
    /// [`WorkspaceError::MissingBlob`], [`WorkspaceError::LfsPointer`].
    pub fn require(&self, tree: &RevisionTree, matters: impl Fn(&str) -> bool) -> Result<(), WorkspaceError> {
        if let Some(path) = self.unusual.missing_blobs.iter().find(|path| matters(path)) {
            return Err(tree.missing(path.as_bytes()));
        }
        match self.unusual.lfs_pointers.iter().find(|path| matters(path)) {
            Some(path) => Err(tree.pointer(path)),
            None => Ok(()),
        }
    }
}

enum Node<'a> {
    Directory,
    Entry(&'a TreeEntry),
    Swapped { kind: EntryKind, content: &'a [u8] },
}

/// Writes the tree as a tar archive with one file swapped: sorted by path, directories named, owner 1000, every time
/// `mtime`, modes 0644 and 0755. A swapped file keeps its execute bit; a swapped link becomes a file. Committed classes
/// that either text of the file declares, and reports about these, are left out. Source: protocol §2.1.
///
/// # Errors
/// [`WorkspaceError::SwapBlocked`], [`WorkspaceError::HostileTree`], [`WorkspaceError::Archive`],
/// [`WorkspaceError::Git`]. Missing content is not an error: see [`ArchiveReport::require`].
pub fn write_archive(
    tree: &RevisionTree,
    swap: Option<Swap<'_>>,
    mtime: u64,
    out: &mut dyn Write,
) -> Result<ArchiveReport, WorkspaceError> {
    let failed = |source| WorkspaceError::Archive {
        repository: tree.repository().clone(),
        revision: tree.revision().clone(),
        source,
    };
    let mut report = ArchiveReport::default();
    let mut archive = Archive { builder: tar::Builder::new(out), mtime };
    for (path, node) in nodes(tree, swap)? {
        let (kind, content) = match node {
            Node::Directory => {
                archive.directory(&path).map_err(failed)?;
                continue;
            }
            Node::Swapped { kind, content } => (kind, Cow::Borrowed(content)),
            Node::Entry(entry) => match tree.content(&path, entry)? {
                Some(content) if path == MAVEN_CONFIG && entry.kind == EntryKind::File => {
                    (entry.kind, Cow::Owned(one_argument_a_line(&content).into_owned()))
                }
                Some(content) => (entry.kind, Cow::Owned(content)),
                None => {
                    let name = String::from_utf8_lossy(&path).into_owned();
                    match entry.kind {
                        EntryKind::Submodule => report.unusual.submodules.push(name),
                        EntryKind::File | EntryKind::Executable | EntryKind::Symlink => {
                            report.unusual.missing_blobs.push(name);
                        }
                    }
                    continue;
                }
            },
        };
        report.files += 1;
        report.bytes += content.len() as u64;
        if report.bytes > MOST_BYTES {
            return Err(tree.hostile("all files together are too large", &path));
        }
        match kind {
            EntryKind::Symlink if content.is_empty() || content.len() > 4095 || content.contains(&0) => {
                return Err(tree.hostile("a link has an impossible target", &path));
            }
            EntryKind::Symlink => archive.link(&path, &content).map_err(failed)?,
            EntryKind::File | EntryKind::Executable | EntryKind::Submodule => {
                // A swapped file is used as it is, whatever it looks like.
                if matches!(content, Cow::Owned(_)) && is_lfs_pointer(&content) {
                    report.unusual.lfs_pointers.push(String::from_utf8_lossy(&path).into_owned());
                }
                let mode = if kind == EntryKind::Executable { 0o755 } else { 0o644 };
                archive.file(&path, mode, &content).map_err(failed)?;
            }
        }
    }
    archive.builder.finish().and_then(|()| archive.builder.get_mut().flush()).map_err(failed)?;
    Ok(report)
}

/// Returns the archive's entries in order, directories included.
fn nodes<'a>(
    tree: &'a RevisionTree,
    swap: Option<Swap<'a>>,
) -> Result<BTreeMap<Cow<'a, [u8]>, Node<'a>>, WorkspaceError> {
    let mut nodes: BTreeMap<Cow<'a, [u8]>, Node<'a>> =
        tree.entries().iter().map(|(path, entry)| (Cow::Borrowed(path.as_slice()), Node::Entry(entry))).collect();
    if let Some(Swap { path, content }) = swap {
        let bytes = path.as_str().as_bytes();
        let blocked =
            tree.is_directory(path.as_str()) || parents(bytes).any(|parent| tree.entries().contains_key(parent));
        if blocked && content.is_some() {
            return Err(WorkspaceError::SwapBlocked {
                repository: tree.repository().clone(),
                revision: tree.revision().clone(),
                path: path.to_string(),
            });
        }
        let kind = match tree.entry(path.as_str()).map(|entry| entry.kind) {
            Some(EntryKind::Executable) => EntryKind::Executable,
            Some(EntryKind::File | EntryKind::Symlink | EntryKind::Submodule) | None => EntryKind::File,
        };
        nodes.remove(bytes);
        if let Some(content) = content {
            nodes.insert(Cow::Borrowed(bytes), Node::Swapped { kind, content });
        }
        // Without such files the file's own text need not be read.
        if nodes.keys().any(|path| is_built(&String::from_utf8_lossy(path))) {
            let own = tree.entry(path.as_str()).map(|entry| tree.content(bytes, &entry)).transpose()?.flatten();
            let texts = own.as_deref().into_iter().chain(content);
            let classes: Vec<String> = texts.map(|text| class_at(path.as_str(), text)).collect();
            nodes.retain(|path, _| {
                let path = String::from_utf8_lossy(path);
                !classes.iter().any(|class| is_built_of(&path, class))
            });
        }
    }
    let directories: Vec<Vec<u8>> = nodes.keys().flat_map(|path| parents(path)).map(<[u8]>::to_vec).collect();
    nodes.extend(directories.into_iter().map(|path| (Cow::Owned(path), Node::Directory)));
    Ok(nodes)
}

/// Returns a path's parent directories except the tree's root.
fn parents(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| &path[..end])
}

/// Writes entries byte by byte, because the tar crate's own calls would change the targets of links.
struct Archive<'a> {
    builder: tar::Builder<&'a mut dyn Write>,
    mtime: u64,
}

/// Longest name that fits into a header, in bytes.
const HEADER_NAME_BYTES: usize = 100;

impl Archive<'_> {
    fn directory(&mut self, path: &[u8]) -> io::Result<()> {
        let path = [path, b"/"].concat();
        self.entry(tar::EntryType::Directory, &path, 0o755, b"", b"")
    }

    fn file(&mut self, path: &[u8], mode: u32, content: &[u8]) -> io::Result<()> {
        self.entry(tar::EntryType::Regular, path, mode, b"", content)
    }

    fn link(&mut self, path: &[u8], target: &[u8]) -> io::Result<()> {
        self.entry(tar::EntryType::Symlink, path, 0o777, target, b"")
    }

    fn entry(&mut self, kind: tar::EntryType, path: &[u8], mode: u32, target: &[u8], content: &[u8]) -> io::Result<()> {
        for (name, extension) in [(target, tar::EntryType::GNULongLink), (path, tar::EntryType::GNULongName)] {
            if name.len() > HEADER_NAME_BYTES {
                let content = [name, b"\0"].concat();
                let mut header = self.header(extension, 0o644, content.len() as u64);
                fill(&mut header.as_old_mut().name, b"././@LongLink");
                header.set_cksum();
                self.builder.append(&header, content.as_slice())?;
            }
        }
        let mut header = self.header(kind, mode, content.len() as u64);
        fill(&mut header.as_old_mut().name, path);
        fill(&mut header.as_old_mut().linkname, target);
        header.set_cksum();
        self.builder.append(&header, content)
    }

    fn header(&self, kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(OWNER);
        header.set_gid(OWNER);
        header.set_mtime(self.mtime);
        header.set_size(size);
        header
    }
}

fn fill(field: &mut [u8; HEADER_NAME_BYTES], name: &[u8]) {
    let length = name.len().min(field.len());
    field[..length].copy_from_slice(&name[..length]);
}
