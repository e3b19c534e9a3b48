//! Unpacked layers: each is unpacked once, under its digest, and shared by images.
//!
//! ```text
//! store/unpacked/<diff id>/            a layer's tree, never changed after it got this name
//! store/unpacked/manifests/<diff id>…  what the tree consists of (`inventory`)
//! store/unpacked/images/<config>.json  which layers an image has, and its names
//! store/unpacked/.stage/               where containers mount, each for itself
//! store/unpacked/.unfinished-…         what a maker is unpacking
//! ```
//!
//! Makers take a lock, so that no layer is unpacked twice at once. A tree gets its name by one rename, after its digest
//! was checked. An unfinished tree has no living maker if the lock can be taken. Engines hold another lock, shared,
//! while they may start containers. A tree loses its name only while no other engine runs.
//!
//! A process compares each tree with its inventory before its first use. It unpacks a damaged one again from its blob
//! (`soundness`).

mod soundness;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use fs_err as fs;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

pub use self::soundness::{DamagedFile, VerifiedLayers};
use super::super::{EngineError, EngineImage, ImageRemoval};
use super::inventory::{self, Checked};
use super::{mounts::STAGE, unpack};
use crate::data_dir::size::size_on_disk;
use crate::data_dir::{Owner, write_atomically};
use crate::digest::Digest;
use crate::event::EventSink;

/// Version of an image's record.
const IMAGE_SCHEMA: u32 = 1;

/// Beginning of the names of unfinished trees. The owner and a number follow.
const UNFINISHED: &str = ".unfinished-";

/// The makers' lock.
const LOCK: &str = ".lock";

/// The lock that engines share.
const IN_USE: &str = ".in-use";

/// The directory of unpacked layers.
#[derive(Debug)]
pub(super) struct Layers {
    root: PathBuf,
    owner: Owner,
    in_use: fs::File,
    events: EventSink,
    /// Layers that this process has checked or unpacked.
    sound: Mutex<BTreeSet<Digest>>,
}

/// The record of an image.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Record {
    schema: u32,
    layers: Vec<Digest>,
    names: BTreeSet<String>,
    size_bytes: u64,
}

/// The source of a layer's bytes, compressed or not.
pub(super) struct Source<'a> {
    pub(super) diff_id: Digest,
    pub(super) open: &'a dyn Fn() -> Result<Box<dyn Read>, EngineError>,
}

impl Layers {
    /// Opens the directory, creates it if missing, and removes unfinished trees of dead makers.
    pub(super) fn open(root: &Path, owner: &Owner, events: &EventSink) -> Result<Self, EngineError> {
        let open = || -> io::Result<Self> {
            fs::create_dir_all(root.join("images"))?;
            fs::create_dir_all(root.join(STAGE))?;
            // Root's containers are made by a process that may lack access to the path's links.
            let root = fs::canonicalize(root)?;
            let in_use = open_lock(&root.join(IN_USE))?;
            flock(&in_use, FlockOperation::LockShared)?;
            let layers = Self { root, owner: owner.clone(), in_use, events: events.clone(), sound: Mutex::default() };
            layers.sweep()?;
            Ok(layers)
        };
        open().map_err(|source| EngineError::Layers { doing: "opening the unpacked layers".into(), source })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Removes unfinished trees of dead makers. Only the holder of the makers' lock has one, so under the lock all are
    /// left over. A maker's life can't be checked by its process number in another namespace or on another machine.
    fn sweep(&self) -> io::Result<()> {
        let lock = open_lock(&self.root.join(LOCK))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            // Another maker is at work. A later call can sweep.
            Err(Errno::WOULDBLOCK) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            if entry.file_name().as_encoded_bytes().starts_with(UNFINISHED.as_bytes())
                && let Err(error) = remove_tree(&entry.path())
            {
                // It may belong to another user, and does no harm.
                tracing::warn!("what a dead process left can't be removed: {error}");
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
        // If the record can't be read or is of another version, the image is loaded again.
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

    /// Returns the names of the image's layers, lowest first; `None` if it is not loaded.
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

    /// Gives the image a name. Another image with that name loses it.
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

    /// Removes a name from the image, if it has the name.
    pub(super) fn untag(&self, image: &Digest, name: &str) -> Result<(), EngineError> {
        let _lock = self.lock()?;
        let Some(mut record) = self.record(image)? else { return Ok(()) };
        if record.names.remove(name) {
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

    /// Unpacks missing or damaged layers, and writes the image's record.
    pub(super) fn add(&self, image: &Digest, sources: &[Source<'_>], size_bytes: u64) -> Result<(), EngineError> {
        let _lock = self.lock()?;
        for source in sources {
            if !self.tree(&source.diff_id).is_dir() {
                self.unpack(source)?;
            } else if !matches!(self.check(&source.diff_id)?, Checked::Sound { .. }) {
                self.unpack_again(source)?;
            }
            self.remember(source.diff_id);
        }
        if self.record(image)?.is_some() {
            return Ok(());
        }
        let layers = sources.iter().map(|source| source.diff_id).collect();
        self.write_record(image, &Record { schema: IMAGE_SCHEMA, layers, names: BTreeSet::new(), size_bytes })
    }

    fn unpack(&self, source: &Source<'_>) -> Result<(), EngineError> {
        self.unpack_to(source, &|unfinished| {
            let name = || {
                inventory::write(&self.root, &source.diff_id, unfinished)?;
                fs::rename(unfinished, self.tree(&source.diff_id))
            };
            name().map_err(soundness::checking)
        })
    }

    /// Unpacks a layer beside the others and hands it to `keep`.
    fn unpack_to(
        &self,
        source: &Source<'_>,
        keep: &dyn Fn(&Path) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let unfinished = self.root.join(format!("{UNFINISHED}{}-{number}", self.owner));
        let failed =
            |error| EngineError::Layers { doing: format!("unpacking the layer {}", source.diff_id), source: error };
        let unpacked = unpack::unpack((source.open)()?, &unfinished).map_err(failed).and_then(|found| {
            if found == source.diff_id {
                return keep(&unfinished);
            }
            let wrong = io::Error::new(io::ErrorKind::InvalidData, format!("its content has the digest {found}"));
            Err(failed(wrong))
        });
        unpacked.inspect_err(|_| {
            // The first error is the one to report. The rest is hidden, and swept later.
            let _ = remove_tree(&unfinished);
        })
    }

    /// Removes the image's record, and layers that no other image has.
    pub(super) fn remove(&self, image: &Digest) -> Result<ImageRemoval, EngineError> {
        let _lock = self.lock()?;
        if self.record(image)?.is_none() {
            return Ok(ImageRemoval::Absent);
        }
        let Some(locked_out) = self.lock_out_others()? else {
            return Ok(ImageRemoval::Kept { reason: "another process runs containers from unpacked layers".into() });
        };
        fs::remove_file(self.record_path(image))
            .map_err(|source| EngineError::Layers { doing: "forgetting an image".into(), source })?;
        let used: BTreeSet<Digest> = self.all()?.into_values().flat_map(|record| record.layers).collect();
        let doomed = self.take_names(&locked_out, &|layer| !used.contains(layer))?;
        drop(locked_out);
        remove_doomed(&doomed)?;
        Ok(ImageRemoval::Removed)
    }

    /// Removes all layers except these, with the images that have them, and returns the removed ones. With `dry_run`,
    /// only returns them. `None` if another process may use them.
    pub(super) fn prune(
        &self,
        used: &BTreeSet<Digest>,
        dry_run: bool,
    ) -> Result<Option<Vec<(Digest, u64)>>, EngineError> {
        let _lock = self.lock()?;
        let superfluous = |layer: &Digest| !used.contains(layer);
        if dry_run {
            let mut found = Vec::new();
            for (layer, path) in self.trees(&superfluous)? {
                found.push((layer, size_on_disk(&path).map_err(removing)?));
            }
            return Ok(Some(found));
        }
        let Some(locked_out) = self.lock_out_others()? else { return Ok(None) };
        for (image, record) in self.all()? {
            if record.layers.iter().any(superfluous) {
                fs::remove_file(self.record_path(&image))
                    .map_err(|source| EngineError::Layers { doing: "forgetting an image".into(), source })?;
            }
        }
        let doomed = self.take_names(&locked_out, &superfluous)?;
        // From here on other engines may open the layers. They find no record or tree of the removed ones.
        drop(locked_out);
        remove_doomed(&doomed).map(Some)
    }

    /// Returns the selected layers with their trees, sorted.
    fn trees(&self, meant: &dyn Fn(&Digest) -> bool) -> Result<BTreeMap<Digest, PathBuf>, EngineError> {
        let mut trees = BTreeMap::new();
        for entry in fs::read_dir(&self.root).map_err(removing)? {
            let entry = entry.map_err(removing)?;
            if let Some(layer) = entry.file_name().to_str().and_then(|name| Digest::from_hex(name).ok())
                && meant(&layer)
            {
                trees.insert(layer, entry.path());
            }
        }
        Ok(trees)
    }

    /// Renames the trees of the selected layers, so that a half-removed one is never taken for a whole layer. Returns
    /// their new paths.
    fn take_names(
        &self,
        _locked_out: &OthersLockedOut<'_>,
        meant: &dyn Fn(&Digest) -> bool,
    ) -> Result<BTreeMap<Digest, PathBuf>, EngineError> {
        let mut trees = self.trees(meant)?;
        for (layer, path) in &mut trees {
            let doomed = self.root.join(format!("{UNFINISHED}{}-{}", self.owner, layer.hex()));
            fs::rename(&*path, &doomed).map_err(removing)?;
            self.sound.lock().unwrap_or_else(PoisonError::into_inner).remove(layer);
            inventory::forget(&self.root, layer).map_err(removing)?;
            *path = doomed;
        }
        Ok(trees)
    }

    /// Takes the makers' lock.
    fn lock(&self) -> Result<fs::File, EngineError> {
        let take = || -> io::Result<fs::File> {
            let file = open_lock(&self.root.join(LOCK))?;
            flock(&file, FlockOperation::LockExclusive)?;
            Ok(file)
        };
        take().map_err(|source| EngineError::Layers { doing: "locking the unpacked layers".into(), source })
    }

    /// Keeps other engines from opening these layers; `None` if one has them open. The caller must hold the makers'
    /// lock, so two never wait for each other.
    fn lock_out_others(&self) -> Result<Option<OthersLockedOut<'_>>, EngineError> {
        let taken = flock(&self.in_use, FlockOperation::NonBlockingLockExclusive);
        // Created in any case, because a failed change of the lock releases the shared one.
        let locked_out = OthersLockedOut(&self.in_use);
        match taken {
            Ok(()) => Ok(Some(locked_out)),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => {
                Err(EngineError::Layers { doing: "locking the unpacked layers".into(), source: error.into() })
            }
        }
    }
}

/// While this value exists, no other engine has the layers open. Dropping it makes the lock a shared one again.
struct OthersLockedOut<'a>(&'a fs::File);

impl Drop for OthersLockedOut<'_> {
    fn drop(&mut self) {
        // Only shared locks are held for long.
        while let Err(error) = flock(self.0, FlockOperation::LockShared) {
            if error != Errno::INTR {
                tracing::warn!("the lock of unpacked layers could not be shared again: {error}");
                return;
            }
        }
    }
}

fn removing(source: io::Error) -> EngineError {
    EngineError::Layers { doing: "removing unpacked layers".into(), source }
}

/// Removes renamed trees, and returns the layers with their sizes in bytes.
fn remove_doomed(doomed: &BTreeMap<Digest, PathBuf>) -> Result<Vec<(Digest, u64)>, EngineError> {
    let mut removed = Vec::new();
    for (layer, path) in doomed {
        let bytes = size_on_disk(path).map_err(removing)?;
        remove_tree(path).map_err(removing)?;
        removed.push((*layer, bytes));
    }
    Ok(removed)
}

fn open_lock(path: &Path) -> io::Result<fs::File> {
    fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// Removes a tree, even with unreadable directories, or a file. A missing one is no error.
fn remove_tree(path: &Path) -> io::Result<()> {
    let removed = match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => fs::remove_file(path),
        other => other,
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests;
