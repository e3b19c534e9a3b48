//! Unpacked layers: each one once, under its digest, whichever images share it.
//!
//! ```text
//! store/unpacked/<diff id>/            a layer's tree, never changed after it got this name
//! store/unpacked/images/<config>.json  which layers an image has, and its names
//! store/unpacked/.stage/               where containers mount, each for itself
//! store/unpacked/.unfinished-…         what a maker is unpacking
//! ```
//!
//! Makers take a lock, so that no layer is unpacked twice at once; a tree gets its name by one rename, after its digest
//! was found to be the right one. Engines hold another lock, shared, as long as they may start containers: nothing is
//! removed while somebody else's containers may use it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use fs_err as fs;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::super::{EngineError, EngineImage, ImageRemoval};
use super::{mounts::STAGE, unpack};
use crate::data_dir::{Owner, write_atomically};
use crate::digest::Digest;

/// Version of an image's record.
const IMAGE_SCHEMA: u32 = 1;

/// What names of unfinished trees begin with; the owner and a number follow.
const UNFINISHED: &str = ".unfinished-";

/// The directory of unpacked layers.
#[derive(Debug)]
pub(super) struct Layers {
    root: PathBuf,
    owner: Owner,
    in_use: fs::File,
}

/// What is known of an image.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Record {
    schema: u32,
    layers: Vec<Digest>,
    names: BTreeSet<String>,
    size_bytes: u64,
}

/// Where a layer's bytes are, compressed or not.
pub(super) struct Source<'a> {
    pub(super) diff_id: Digest,
    pub(super) open: &'a dyn Fn() -> Result<Box<dyn Read>, EngineError>,
}

impl Layers {
    /// Opens the directory, which is made where missing, and removes what dead makers left.
    pub(super) fn open(root: &Path, owner: &Owner) -> Result<Self, EngineError> {
        let open = || -> io::Result<Self> {
            fs::create_dir_all(root.join("images"))?;
            fs::create_dir_all(root.join(STAGE))?;
            // Containers of root are made by a process that is only looked up by its own rights.
            let root = fs::canonicalize(root)?;
            let in_use = open_lock(&root.join(".in-use"))?;
            flock(&in_use, FlockOperation::LockShared)?;
            let layers = Self { root, owner: owner.clone(), in_use };
            layers.sweep()?;
            Ok(layers)
        };
        open().map_err(|source| EngineError::Layers { doing: "opening the unpacked layers".into(), source })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    fn sweep(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(maker) = name.strip_prefix(UNFINISHED) else { continue };
            let owner = maker.rsplit_once('-').and_then(|(owner, _)| Owner::parse(owner));
            if owner.is_none_or(|owner| !owner.is_alive()) {
                remove_tree(&entry.path())?;
            }
        }
        Ok(())
    }

    fn record_path(&self, image: &Digest) -> PathBuf {
        self.root.join("images").join(format!("{}.json", image.hex()))
    }

    fn tree(&self, layer: &Digest) -> PathBuf {
        self.root.join(layer.hex())
    }

    /// Returns the image's record if all its layers are there.
    fn record(&self, image: &Digest) -> Result<Option<Record>, EngineError> {
        let bytes = match fs::read(self.record_path(image)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(EngineError::Layers { doing: "reading an image's record".into(), source }),
        };
        // One that can't be read, or is of another version, is as good as none: the image is loaded again.
        let record: Option<Record> = serde_json::from_slice(&bytes).ok();
        Ok(record.filter(|record| {
            record.schema == IMAGE_SCHEMA && record.layers.iter().all(|layer| self.tree(layer).is_dir())
        }))
    }

    fn write_record(&self, image: &Digest, record: &Record) -> Result<(), EngineError> {
        let bytes = serde_json::to_vec(record)?;
        write_atomically(&self.record_path(image), &bytes)
            .map_err(|source| EngineError::Layers { doing: "writing an image's record".into(), source })
    }

    /// Returns the names of the image's layers, lowest first; `None` where it is not loaded.
    pub(super) fn of(&self, image: &Digest) -> Result<Option<Vec<String>>, EngineError> {
        Ok(self.record(image)?.map(|record| record.layers.iter().map(Digest::hex).collect()))
    }

    pub(super) fn inspect(&self, image: &Digest) -> Result<Option<EngineImage>, EngineError> {
        Ok(self.record(image)?.map(|record| EngineImage {
            names: record.names.into_iter().collect(),
            layers: record.layers,
            size_bytes: record.size_bytes,
        }))
    }

    /// Gives the image a name, which another one loses.
    pub(super) fn tag(&self, image: &Digest, name: &str) -> Result<(), EngineError> {
        let _lock = self.lock()?;
        for (other, mut record) in self.all()? {
            if other != *image && record.names.remove(name) {
                self.write_record(&other, &record)?;
            }
        }
        let Some(mut record) = self.record(image)? else { return Err(EngineError::ImageMissing { image: *image }) };
        if record.names.insert(name.to_owned()) {
            self.write_record(image, &record)?;
        }
        Ok(())
    }

    fn all(&self) -> Result<BTreeMap<Digest, Record>, EngineError> {
        let listing = |source| EngineError::Layers { doing: "listing images".into(), source };
        let mut all = BTreeMap::new();
        for entry in fs::read_dir(self.root.join("images")).map_err(listing)? {
            let name = entry.map_err(listing)?.file_name();
            let name = name.to_string_lossy();
            let Some(image) = name.strip_suffix(".json").and_then(|hex| Digest::from_hex(hex).ok()) else { continue };
            if let Some(record) = self.record(&image)? {
                all.insert(image, record);
            }
        }
        Ok(all)
    }

    /// Unpacks the layers that are not there and remembers the image.
    pub(super) fn add(&self, image: &Digest, sources: &[Source<'_>], size_bytes: u64) -> Result<(), EngineError> {
        let _lock = self.lock()?;
        for source in sources {
            if !self.tree(&source.diff_id).is_dir() {
                self.unpack(source)?;
            }
        }
        if self.record(image)?.is_some() {
            return Ok(());
        }
        let layers = sources.iter().map(|source| source.diff_id).collect();
        self.write_record(image, &Record { schema: IMAGE_SCHEMA, layers, names: BTreeSet::new(), size_bytes })
    }

    fn unpack(&self, source: &Source<'_>) -> Result<(), EngineError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let unfinished = self.root.join(format!("{UNFINISHED}{}-{number}", self.owner));
        let doing = || format!("unpacking the layer {}", source.diff_id);
        let failed = |source| EngineError::Layers { doing: doing(), source };
        let unpacked = unpack::unpack((source.open)()?, &unfinished).map_err(failed).and_then(|found| {
            if found == source.diff_id {
                return fs::rename(&unfinished, self.tree(&source.diff_id)).map_err(failed);
            }
            let wrong = io::Error::new(io::ErrorKind::InvalidData, format!("its content has the digest {found}"));
            Err(failed(wrong))
        });
        unpacked.inspect_err(|_| {
            // The first error is the one to tell; what stays is hidden and swept later.
            let _ = remove_tree(&unfinished);
        })
    }

    /// Forgets the image and removes layers that no other has.
    pub(super) fn remove(&self, image: &Digest) -> Result<ImageRemoval, EngineError> {
        let _lock = self.lock()?;
        if self.record(image)?.is_none() {
            return Ok(ImageRemoval::Absent);
        }
        if !self.is_ours_alone()? {
            return Ok(ImageRemoval::Kept { reason: "another process runs containers from unpacked layers".into() });
        }
        fs::remove_file(self.record_path(image))
            .map_err(|source| EngineError::Layers { doing: "forgetting an image".into(), source })?;
        let used: BTreeSet<Digest> = self.all()?.into_values().flat_map(|record| record.layers).collect();
        self.remove_trees(&|layer| !used.contains(layer), false)?;
        Ok(ImageRemoval::Removed)
    }

    /// Removes all layers but these, with the images that have them, and returns which; with `dry_run` only which.
    /// `None` where somebody else may use them.
    pub(super) fn prune(
        &self,
        used: &BTreeSet<Digest>,
        dry_run: bool,
    ) -> Result<Option<Vec<(Digest, u64)>>, EngineError> {
        let _lock = self.lock()?;
        if !dry_run && !self.is_ours_alone()? {
            return Ok(None);
        }
        if !dry_run {
            for (image, record) in self.all()? {
                if record.layers.iter().any(|layer| !used.contains(layer)) {
                    fs::remove_file(self.record_path(&image))
                        .map_err(|source| EngineError::Layers { doing: "forgetting an image".into(), source })?;
                }
            }
        }
        self.remove_trees(&|layer| !used.contains(layer), dry_run).map(Some)
    }

    fn remove_trees(
        &self,
        superfluous: &dyn Fn(&Digest) -> bool,
        dry_run: bool,
    ) -> Result<Vec<(Digest, u64)>, EngineError> {
        let failed = |source| EngineError::Layers { doing: "removing unpacked layers".into(), source };
        let mut removed = Vec::new();
        for entry in fs::read_dir(&self.root).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Some(layer) = entry.file_name().to_str().and_then(|name| Digest::from_hex(name).ok()) else { continue };
            if !superfluous(&layer) {
                continue;
            }
            let bytes = size_of_tree(&entry.path()).map_err(failed)?;
            if !dry_run {
                // Without its name first: half a layer must never be taken for a whole one.
                let doomed = self.root.join(format!("{UNFINISHED}{}-{}", self.owner, layer.hex()));
                fs::rename(entry.path(), &doomed).map_err(failed)?;
                remove_tree(&doomed).map_err(failed)?;
            }
            removed.push((layer, bytes));
        }
        removed.sort();
        Ok(removed)
    }

    /// Takes the makers' lock.
    fn lock(&self) -> Result<fs::File, EngineError> {
        let take = || -> io::Result<fs::File> {
            let file = open_lock(&self.root.join(".lock"))?;
            flock(&file, FlockOperation::LockExclusive)?;
            Ok(file)
        };
        take().map_err(|source| EngineError::Layers { doing: "locking the unpacked layers".into(), source })
    }

    /// Tells whether no other engine may start containers from these layers.
    fn is_ours_alone(&self) -> Result<bool, EngineError> {
        let alone = flock(&self.in_use, FlockOperation::NonBlockingLockExclusive).is_ok();
        // Whether it was had or not, it is shared again: a failed change has let go of it.
        flock(&self.in_use, FlockOperation::LockShared).map_err(|error| EngineError::Layers {
            doing: "locking the unpacked layers".into(),
            source: error.into(),
        })?;
        Ok(alone)
    }
}

fn open_lock(path: &Path) -> io::Result<fs::File> {
    fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// Removes a tree whose directories may be closed; one that is gone is fine.
fn remove_tree(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Returns the bytes that a tree's files take on the disk.
fn size_of_tree(path: &Path) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt as _;
    let mut bytes = 0;
    let mut open = vec![path.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let found = entry.metadata()?;
            bytes += found.blocks() * 512 / found.nlink().max(1);
            if found.is_dir() {
                open.push(entry.path());
            }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;

    fn layer(add: impl FnOnce(&mut tar::Builder<Vec<u8>>)) -> (Digest, Vec<u8>) {
        let mut builder = tar::Builder::new(Vec::new());
        add(&mut builder);
        let bytes = builder.into_inner().unwrap();
        (Digest::of(&bytes), bytes)
    }

    fn entry(tar: &mut tar::Builder<Vec<u8>>, path: &str, kind: tar::EntryType, mode: u32, content: &[u8]) {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_mtime(1_000_000);
        header.set_size(content.len() as u64);
        tar.append_data(&mut header, path, content).unwrap();
    }

    fn link(tar: &mut tar::Builder<Vec<u8>>, path: &str, kind: tar::EntryType, target: &str) {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(kind);
        header.set_mode(0o777);
        header.set_mtime(0);
        header.set_size(0);
        tar.append_link(&mut header, path, target).unwrap();
    }

    fn sample() -> (Digest, Vec<u8>) {
        layer(|tar| {
            entry(tar, "bin", tar::EntryType::Directory, 0o555, b"");
            entry(tar, "bin/tool", tar::EntryType::Regular, 0o6755, b"tool");
            link(tar, "bin/same", tar::EntryType::Link, "bin/tool");
            link(tar, "bin/link", tar::EntryType::Symlink, "/etc/passwd");
            entry(tar, ".wh.gone", tar::EntryType::Regular, 0o644, b"");
        })
    }

    fn add(layers: &Layers, image: &Digest, (diff_id, bytes): &(Digest, Vec<u8>)) -> Result<(), EngineError> {
        let bytes = bytes.clone();
        let open = move || -> Result<Box<dyn Read>, EngineError> { Ok(Box::new(io::Cursor::new(bytes.clone()))) };
        layers.add(image, &[Source { diff_id: *diff_id, open: &open }], 7)
    }

    #[test]
    fn a_layer_is_unpacked_once_with_its_modes_and_links() {
        let directory = tempfile::tempdir().unwrap();
        let layers = Layers::open(directory.path(), &Owner::current().unwrap()).unwrap();
        let image = Digest::of(b"image");
        let sample = sample();
        assert_eq!(layers.of(&image).unwrap(), None);
        add(&layers, &image, &sample).unwrap();
        assert_eq!(layers.of(&image).unwrap(), Some(vec![sample.0.hex()]));
        let tree = directory.path().join(sample.0.hex());
        let tool = fs::metadata(tree.join("bin/tool")).unwrap();
        assert_eq!(tool.permissions().mode() & 0o7777, 0o755, "no set-uid bits");
        assert_eq!((tool.ino(), tool.mtime()), (fs::metadata(tree.join("bin/same")).unwrap().ino(), 1_000_000));
        assert_eq!(fs::read_link(tree.join("bin/link")).unwrap(), Path::new("/etc/passwd"));
        let whiteout = fs::symlink_metadata(tree.join("gone")).unwrap();
        assert_eq!((whiteout.rdev(), whiteout.mode() & libc::S_IFMT), (0, libc::S_IFCHR), "a whiteout of overlayfs");
        // Found, not made again.
        let before = fs::metadata(&tree).unwrap().ino();
        add(&layers, &Digest::of(b"another image"), &sample).unwrap();
        assert_eq!(fs::metadata(&tree).unwrap().ino(), before);
    }

    #[test]
    fn a_layer_with_other_content_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let layers = Layers::open(directory.path(), &Owner::current().unwrap()).unwrap();
        let (_, bytes) = sample();
        let wrong = add(&layers, &Digest::of(b"image"), &(Digest::of(b"other"), bytes));
        let wrong = wrong.unwrap_err().to_string();
        assert!(wrong.contains("its content has the digest"), "{wrong}");
        let left = fs::read_dir(directory.path()).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert!(left.iter().all(|name| !name.starts_with(UNFINISHED) && Digest::from_hex(name).is_err()), "{left:?}");
    }

    #[test]
    fn hostile_layers_reach_nothing_outside() {
        let directory = tempfile::tempdir().unwrap();
        let layers = Layers::open(&directory.path().join("unpacked"), &Owner::current().unwrap()).unwrap();
        let outside = directory.path().join("outside");
        fs::create_dir(&outside).unwrap();
        let through_link = layer(|tar| {
            link(tar, "way", tar::EntryType::Symlink, outside.to_str().unwrap());
            entry(tar, "way/astray", tar::EntryType::Regular, 0o644, b"x");
        });
        let hard_link = layer(|tar| {
            link(tar, "way", tar::EntryType::Symlink, "/etc");
            link(tar, "passwd", tar::EntryType::Link, "way/passwd");
        });
        let device = layer(|tar| entry(tar, "disk", tar::EntryType::Block, 0o666, b""));
        for hostile in [through_link, hard_link, device] {
            assert!(add(&layers, &hostile.0, &hostile).is_err());
            assert_eq!(layers.of(&hostile.0).unwrap(), None);
        }
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    }

    #[test]
    fn what_nobody_needs_goes_and_what_somebody_uses_stays() {
        let directory = tempfile::tempdir().unwrap();
        let owner = Owner::current().unwrap();
        let layers = Layers::open(directory.path(), &owner).unwrap();
        let (kept, doomed) = (sample(), layer(|tar| entry(tar, "a", tar::EntryType::Regular, 0o644, b"a")));
        for one in [&kept, &doomed] {
            add(&layers, &one.0, one).unwrap();
        }
        let used = BTreeSet::from([kept.0]);
        let found = layers.prune(&used, true).unwrap().unwrap();
        assert_eq!(found.iter().map(|(layer, _)| *layer).collect::<Vec<_>>(), [doomed.0]);
        {
            let _other = Layers::open(directory.path(), &owner).unwrap();
            assert!(layers.prune(&used, false).unwrap().is_none(), "another engine may use it");
        }
        assert_eq!(layers.prune(&used, false).unwrap().unwrap().len(), 1);
        assert_eq!((layers.of(&doomed.0).unwrap(), layers.of(&kept.0).unwrap().is_some()), (None, true));
        assert_eq!(layers.remove(&kept.0).unwrap(), ImageRemoval::Removed);
        assert!(!directory.path().join(kept.0.hex()).exists());
    }

    #[test]
    fn a_dead_makers_work_is_swept() {
        let directory = tempfile::tempdir().unwrap();
        let owner = Owner::current().unwrap();
        let boot = owner.to_string().rsplit('-').next().unwrap().to_owned();
        let dead = directory.path().join(format!("{UNFINISHED}{}-1-{boot}-0", std::process::id()));
        let living = directory.path().join(format!("{UNFINISHED}{owner}-0"));
        for unfinished in [&dead, &living] {
            fs::create_dir_all(unfinished.join("x")).unwrap();
        }
        Layers::open(directory.path(), &owner).unwrap();
        assert_eq!((dead.exists(), living.exists()), (false, true));
    }
}
