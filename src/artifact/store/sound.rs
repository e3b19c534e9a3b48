//! Remembers the blobs that this process has found sound. A blob's bytes are compared with its name before its first
//! use, and again after its file was replaced or written.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// A file system may give two writes within this time the same time stamp.
const TICK: Duration = Duration::from_millis(50);

/// The state of a file when its bytes were found sound. It excludes the inode's change time, because every hard link
/// for a container's inputs changes that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Stamp {
    /// Returns the stamp of a file; `None` as long as a later write could leave the same stamp.
    pub(super) fn of(found: &Metadata) -> io::Result<Option<Self>> {
        let settled = SystemTime::now().duration_since(found.modified()?).is_ok_and(|since| since > TICK);
        Ok(settled.then(|| Self {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
        }))
    }
}

/// The files that this process found sound.
static SOUND: Mutex<BTreeMap<PathBuf, Stamp>> = Mutex::new(BTreeMap::new());

/// Tells whether the file was found sound in this state.
pub(super) fn is_known(path: &Path, stamp: Option<Stamp>) -> bool {
    let sound = SOUND.lock().unwrap_or_else(PoisonError::into_inner);
    stamp.is_some_and(|stamp| sound.get(path) == Some(&stamp))
}

/// Remembers that the file is sound in this state.
pub(super) fn remember(path: PathBuf, stamp: Option<Stamp>) {
    if let Some(stamp) = stamp {
        SOUND.lock().unwrap_or_else(PoisonError::into_inner).insert(path, stamp);
    }
}
