//! Taking write permission from what a command is to read only.

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use super::tree::{self, StepError};

/// Write permission of owner, group and others.
const WRITE: u32 = 0o222;

/// Takes write permission from the directory and everything below it, nothing through symbolic links. A path that is
/// missing or no directory is left alone.
pub(super) fn protect(path: &str) -> Result<(), StepError> {
    let root = match tree::open_directory(path, false) {
        Ok(root) => root,
        Err(StepError::Failed { errno: Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP), .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut directories = vec![PathBuf::new()];
    tree::walk(path, &mut |entry| {
        match entry.kind {
            FileType::RegularFile => {
                let mode = Mode::from_raw_mode(entry.stat.st_mode & 0o777 & !WRITE);
                rustix::fs::chmodat(entry.parent, entry.name, mode, AtFlags::empty())
                    .map_err(|errno| StepError::at(Path::new(path).join(entry.path), errno))?;
            }
            FileType::Directory => directories.push(entry.path.to_owned()),
            _ => {}
        }
        Ok(())
    })?;
    // The innermost first: what a directory holds is reached through it.
    for directory in directories.iter().rev() {
        let set = || {
            let looked_up = tree::open_below(&root, directory, false)?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let opened = rustix::fs::openat(&looked_up, ".", flags, Mode::empty())?;
            let mode = rustix::fs::fstat(&opened)?.st_mode & 0o777 & !WRITE;
            rustix::fs::fchmod(&opened, Mode::from_raw_mode(mode))
        };
        set().map_err(|errno| StepError::at(Path::new(path).join(directory), errno))?;
    }
    Ok(())
}
