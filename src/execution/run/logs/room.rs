//! Limits the size of each submission's logs.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fs_err as fs;

use crate::event::EventSink;

/// A single log takes at most this fraction of a submission's room, so that one method leaves room for the others.
const PART: u64 = 8;

/// The rooms of a run's submissions, by directory.
#[derive(Debug)]
pub(super) struct Rooms {
    events: EventSink,
    told: AtomicBool,
    whole: u64,
    rooms: Mutex<BTreeMap<PathBuf, Arc<Room>>>,
}

/// The remaining room for the logs below one directory.
#[derive(Debug)]
pub(super) struct Room {
    whole: u64,
    /// Remaining bytes. Negative if notes about dropped bytes took more.
    left: Mutex<i64>,
}

impl Rooms {
    pub(super) fn new(events: EventSink, whole: u64) -> Self {
        Self { events, told: AtomicBool::new(false), whole, rooms: Mutex::default() }
    }

    /// Returns the room of the logs below a directory. In a run that is continued, earlier logs reduce it.
    ///
    /// # Errors
    /// I/O errors of reading the directory.
    pub(super) fn of(&self, directory: &Path) -> io::Result<Arc<Room>> {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(room) = rooms.get(directory) {
            return Ok(Arc::clone(room));
        }
        let left = signed(self.whole).saturating_sub(signed(length_of(directory)?));
        let room = Arc::new(Room { whole: self.whole, left: Mutex::new(left) });
        rooms.insert(directory.to_owned(), Arc::clone(&room));
        Ok(room)
    }

    /// Reports once that logs are lost.
    pub(super) fn tell_lost(&self, error: &io::Error) {
        if !self.told.swap(true, Ordering::Relaxed) {
            self.events.warning(format!("logs are lost, results are not: {error}"));
        }
    }
}

impl Room {
    /// Takes room for a log that replaces one of `replaced` bytes, and returns how much of it may be written.
    pub(super) fn grant(&self, length: u64, replaced: u64) -> u64 {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        *left = left.saturating_add(signed(replaced));
        let granted = length.min(u64::try_from(*left).unwrap_or_default()).min(self.whole / PART);
        *left = left.saturating_sub(signed(granted));
        granted
    }

    /// Takes room for a note, even if there is none left.
    pub(super) fn take(&self, length: usize) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        *left = left.saturating_sub(signed(length as u64));
    }
}

fn signed(length: u64) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// Returns how many bytes the files below a directory take.
fn length_of(directory: &Path) -> io::Result<u64> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut length = 0u64;
    for entry in entries {
        let entry = entry?;
        let kind = entry.file_type()?;
        length = length.saturating_add(match kind.is_dir() {
            true => length_of(&entry.path())?,
            false => entry.metadata()?.len(),
        });
    }
    Ok(length)
}
