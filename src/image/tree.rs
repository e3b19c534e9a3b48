//! The content of a layer, as a sorted tree in memory, in which packages and generated files are merged.
//!
//! Ancestors that are symbolic links, such as `/bin`, are followed within the tree, so that no two paths of a layer
//! name one place. Nothing here accesses the file system.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ImageError;
use super::content::Content;
use super::path::TreePath;
use crate::digest::Digest;

/// Seconds since 1970 of 2025-01-01T00:00:00Z. No file of an image is younger, and every image has this creation time.
pub const SOURCE_DATE_EPOCH: u64 = 1_735_689_600;

const MAX_LINKS: usize = 40;
const MAX_LINK_TARGET: usize = 1024;

/// A file, directory or symbolic link with its attributes in a layer.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Seconds since 1970.
    pub(crate) mtime: u64,
    pub(crate) node: Node,
}

/// What kind of entry it is.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Directory,
    File(Content),
    Symlink(String),
}

impl Entry {
    /// Returns a directory that root owns. Of `mode` it keeps permissions and the sticky bit; others may write only
    /// together with that bit.
    pub(crate) fn directory(mode: u32, mtime: u64) -> Self {
        let mode = if mode & 0o1000 == 0 { mode & 0o755 } else { mode & 0o1777 };
        Self::new(mode, mtime, Node::Directory)
    }

    /// Returns a file that root owns. Of `mode` it keeps the owner's permissions, and reading and executing by others:
    /// no set-user-id or set-group-id bits.
    pub(crate) fn file(mode: u32, mtime: u64, content: Content) -> Self {
        Self::new(mode & 0o755, mtime, Node::File(content))
    }

    /// Returns a symbolic link.
    pub(crate) fn symlink(target: &str, mtime: u64) -> Self {
        Self::new(0o777, mtime, Node::Symlink(target.to_owned()))
    }

    fn new(mode: u32, mtime: u64, node: Node) -> Self {
        Self { mode, uid: 0, gid: 0, mtime: mtime.min(SOURCE_DATE_EPOCH), node }
    }

    fn is_directory(&self) -> bool {
        matches!(self.node, Node::Directory)
    }

    /// Returns the entry's description in a layer's index.
    pub(crate) fn describe(&self) -> IndexEntry {
        let node = match &self.node {
            Node::Directory => IndexNode::Directory,
            Node::File(content) => IndexNode::File { digest: content.digest(), size: content.size() },
            Node::Symlink(target) => IndexNode::Symlink { target: target.clone() },
        };
        IndexEntry { mode: self.mode, uid: self.uid, gid: self.gid, mtime: self.mtime, node }
    }
}

/// An entry with its place.
#[derive(Clone, Debug)]
pub(crate) struct PlacedEntry {
    pub(crate) path: TreePath,
    pub(crate) entry: Entry,
}

/// The content of a written layer, without the bytes.
pub type LayerIndex = BTreeMap<TreePath, IndexEntry>;

/// One entry of a [`LayerIndex`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexEntry {
    /// Permissions and sticky bit.
    pub mode: u32,
    /// Numeric owner.
    pub uid: u32,
    /// Numeric group.
    pub gid: u32,
    /// Seconds since 1970.
    pub mtime: u64,
    /// Kind and content.
    #[serde(flatten)]
    pub node: IndexNode,
}

/// Kind and content of an [`IndexEntry`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum IndexNode {
    /// A directory.
    Directory,
    /// A regular file.
    File {
        /// Digest of its bytes.
        digest: Digest,
        /// Size in bytes.
        size: u64,
    },
    /// A symbolic link.
    Symlink {
        /// The link's text.
        target: String,
    },
}

impl IndexEntry {
    /// Tells whether both are equal except for their times.
    pub fn same_as(&self, other: &Self) -> bool {
        (self.mode, self.uid, self.gid, &self.node) == (other.mode, other.uid, other.gid, &other.node)
    }
}

/// How an entry relates to an existing one at the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precedence {
    /// From a package: the entries must be equal, else it is a conflict.
    Package,
    /// From the recipe: the entry replaces the existing one.
    Recipe,
}

struct Slot {
    entry: Entry,
    origin: Arc<str>,
    precedence: Precedence,
    /// Whether this directory exists only as a parent of other entries.
    implied: bool,
}

/// A layer under construction, above the layers below it.
pub(crate) struct Tree<'a> {
    slots: BTreeMap<TreePath, Slot>,
    below: Option<&'a LayerIndex>,
}

impl<'a> Tree<'a> {
    pub(crate) fn new(below: Option<&'a LayerIndex>) -> Self {
        Self { slots: BTreeMap::new(), below }
    }

    /// Adds an entry of `origin`. Creates missing parents. Of two directories at one place, the first one's mode
    /// counts.
    pub(crate) fn insert(
        &mut self,
        placed: PlacedEntry,
        origin: &Arc<str>,
        precedence: Precedence,
    ) -> Result<(), ImageError> {
        let PlacedEntry { path, entry } = placed;
        if let Node::Symlink(target) = &entry.node
            && (target.is_empty() || target.len() > MAX_LINK_TARGET || target.chars().any(char::is_control))
        {
            return Err(ImageError::archive(origin, format!("`{path}` links to no sound path")));
        }
        let path = self.resolve(&path, entry.is_directory(), origin)?;
        self.make_parents(&path, origin)?;
        let slot = Slot { entry, origin: Arc::clone(origin), precedence, implied: false };
        let Some(present) = self.slots.get(&path) else {
            self.slots.insert(path, slot);
            return Ok(());
        };
        let conflict = || ImageError::PathConflict {
            path: path.clone(),
            first: present.origin.to_string(),
            second: origin.to_string(),
        };
        match (present.entry.is_directory(), slot.entry.is_directory()) {
            (true, true) if !present.implied && precedence == Precedence::Package => return Ok(()),
            (true, true) => {}
            (false, false) if precedence == Precedence::Recipe => {}
            (false, false) if present.entry.describe().same_as(&slot.entry.describe()) => return Ok(()),
            _ => return Err(conflict()),
        }
        self.slots.insert(path, slot);
        Ok(())
    }

    /// Tells whether an entry is at `path` in this layer or in a layer below it.
    pub(crate) fn contains(&self, path: &TreePath) -> bool {
        self.slots.contains_key(path) || self.below.is_some_and(|below| below.contains_key(path))
    }

    /// Returns this layer's regular files below `directory`, sorted by path.
    pub(crate) fn files_within(&self, directory: &str) -> Vec<(&TreePath, &Content)> {
        let within = self.slots.iter().filter(|(path, _)| path.is_within(directory));
        within
            .filter_map(|(path, slot)| match &slot.entry.node {
                Node::File(content) => Some((path, content)),
                Node::Directory | Node::Symlink(_) => None,
            })
            .collect()
    }

    /// Returns the layer's own entries, each with every parent, sorted by the paths' bytes.
    pub(crate) fn finish(self) -> Result<BTreeMap<TreePath, Entry>, ImageError> {
        let mut entries = BTreeMap::new();
        for (path, slot) in self.slots {
            let present = self.below.and_then(|below| below.get(&path));
            let is_new = match present {
                None => true,
                Some(present) if present.same_as(&slot.entry.describe()) => false,
                Some(present) => match (matches!(present.node, IndexNode::Directory), slot.entry.is_directory()) {
                    (true, true) => false,
                    (false, false) if slot.precedence == Precedence::Recipe => true,
                    _ => {
                        let (first, second) = ("a lower layer".to_owned(), slot.origin.to_string());
                        return Err(ImageError::PathConflict { path, first, second });
                    }
                },
            };
            if is_new {
                entries.insert(path, slot.entry);
            }
        }
        // Without its parents in the layer, an entry's parents would be created with default permissions.
        if let Some(below) = self.below {
            let paths: Vec<TreePath> = entries.keys().cloned().collect();
            for path in paths {
                let mut parent = path.parent();
                while let Some(directory) = parent {
                    parent = directory.parent();
                    if let Some(present) = below.get(&directory) {
                        let IndexEntry { mode, uid, gid, mtime, .. } = *present;
                        entries.entry(directory).or_insert(Entry { mode, uid, gid, mtime, node: Node::Directory });
                    }
                }
            }
        }
        Ok(entries)
    }

    /// Returns the place of `path` after symbolic links among its ancestors are followed; with `follow_last`, also a
    /// link at the path itself. `..` never leaves the root.
    fn resolve(&self, path: &TreePath, follow_last: bool, origin: &Arc<str>) -> Result<TreePath, ImageError> {
        let mut pending: Vec<String> = path.as_str().rsplit('/').map(str::to_owned).collect();
        let mut done: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(part) = pending.pop() {
            match part.as_str() {
                "" | "." => continue,
                ".." => {
                    done.pop();
                    continue;
                }
                _ => done.push(part),
            }
            if pending.is_empty() && !follow_last {
                break;
            }
            let here: TreePath = done.join("/").parse().map_err(|error| ImageError::archive(origin, error))?;
            if let Some(target) = self.link_at(&here) {
                links += 1;
                if links > MAX_LINKS {
                    return Err(ImageError::archive(origin, format!("too many symbolic links on the way to `{path}`")));
                }
                done.pop();
                if target.starts_with('/') {
                    done.clear();
                }
                pending.extend(target.rsplit('/').map(str::to_owned));
            }
        }
        done.join("/").parse().map_err(|error| ImageError::archive(origin, error))
    }

    fn link_at(&self, path: &TreePath) -> Option<&str> {
        match (self.slots.get(path), self.below.and_then(|below| below.get(path))) {
            (Some(Slot { entry: Entry { node: Node::Symlink(target), .. }, .. }), _)
            | (None, Some(IndexEntry { node: IndexNode::Symlink { target }, .. })) => Some(target),
            _ => None,
        }
    }

    fn make_parents(&mut self, path: &TreePath, origin: &Arc<str>) -> Result<(), ImageError> {
        let mut parent = path.parent();
        while let Some(directory) = parent {
            parent = directory.parent();
            let below = self.below.and_then(|below| below.get(&directory));
            let other = match (self.slots.get(&directory), below) {
                (Some(slot), _) if slot.entry.is_directory() => return Ok(()),
                (Some(slot), _) => slot.origin.to_string(),
                (None, Some(below)) if below.node == IndexNode::Directory => return Ok(()),
                (None, Some(_)) => "a lower layer".to_owned(),
                (None, None) => {
                    let entry = Entry::directory(0o755, SOURCE_DATE_EPOCH);
                    let origin = Arc::clone(origin);
                    let slot = Slot { entry, origin, precedence: Precedence::Package, implied: true };
                    self.slots.insert(directory, slot);
                    continue;
                }
            };
            return Err(ImageError::PathConflict { path: directory, first: other, second: origin.to_string() });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
