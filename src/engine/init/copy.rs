//! Copying a tree inside the container.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Stat, Timespec, Timestamps};

use super::tree::{self, Destination, StepError};

/// Copies the directory `from` to `to`, which must not exist.
pub(super) fn copy_tree(from: &str, to: &str) -> Result<(), StepError> {
    let (parent, name) = tree::open_parent(to, true)?;
    match rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(rustix::io::Errno::NOENT) => {}
        Ok(_) => return Err(StepError::at(to, rustix::io::Errno::EXIST)),
        Err(errno) => return Err(StepError::at(to, errno)),
    }
    let (from_parent, from_name) = tree::open_parent(from, false)?;
    let root = rustix::fs::statat(&from_parent, from_name, AtFlags::SYMLINK_NOFOLLOW)
        .map_err(|errno| StepError::at(from, errno))?;
    let mut destination = Destination::open(to)?;
    destination.directory(Path::new(""), root.st_mode, times(&root))?;
    let walked = tree::walk(from, &mut |entry| match entry.kind {
        FileType::Directory => destination.directory(entry.path, entry.stat.st_mode, times(entry.stat)),
        FileType::RegularFile => {
            let shown = Path::new(from).join(entry.path);
            let (file, stat) = tree::open_file(entry.parent, entry.name, &shown)?;
            destination
                .file(entry.path, stat.st_mode, &times(&stat), |into| io::copy(&mut File::from(file), into).map(|_| ()))
        }
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(entry.parent, entry.name, Vec::new())
                .map_err(|errno| StepError::at(Path::new(from).join(entry.path), errno))?;
            destination.link(entry.path, OsStr::from_bytes(target.to_bytes()), &times(entry.stat))
        }
        _ => Ok(()),
    });
    walked.map_err(|error| match error {
        StepError::Absent => StepError::at(from, rustix::io::Errno::NOENT),
        other => other,
    })?;
    destination.finish()
}

fn times(stat: &Stat) -> Timestamps {
    let time =
        |seconds: i64, nanoseconds: u64| Timespec { tv_sec: seconds, tv_nsec: nanoseconds.try_into().unwrap_or(0) };
    Timestamps {
        last_access: time(stat.st_atime, stat.st_atime_nsec),
        last_modification: time(stat.st_mtime, stat.st_mtime_nsec),
    }
}
