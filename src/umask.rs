//! The caller's umask, and the file modes that this program uses.
//!
//! Users in containers differ from the caller and must read files that are mounted into them. So this program sets its
//! own umask while it writes the data directory's content. The caller's umask applies to paths outside of containers:
//! the data directory itself (mounts begin below it), and files at paths that the user names.

use std::io;
use std::path::Path;

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fs::Mode;
use rustix::process::umask;

/// The umask with which the program was started.
#[derive(Clone, Copy, Debug)]
pub struct Umask(Mode);

impl Umask {
    /// Replaces the caller's umask: new files are then writable by this user and readable by all. Must be called before
    /// threads exist.
    pub fn take() -> Self {
        Self(umask(Mode::WGRP | Mode::WOTH))
    }

    /// Gives the group write permission if the caller's umask does, because a data directory may be shared.
    pub(crate) fn relax(self) {
        umask(self.0 & (Mode::WGRP | Mode::WOTH));
    }

    /// Creates the directory and its missing parents with the caller's umask; an existing directory stays unchanged.
    ///
    /// # Errors
    /// I/O errors of creating the directories.
    pub(crate) fn create_directory(self, path: &Path) -> io::Result<()> {
        use std::os::unix::fs::DirBuilderExt as _;
        let mode = Mode::RWXU | Mode::RWXG | Mode::RWXO;
        // fs_err has no builder of directories.
        let made = std::fs::DirBuilder::new().recursive(true).mode((mode - self.0).bits()).create(path);
        made.map_err(|error| {
            io::Error::new(error.kind(), format!("failed to create directory `{}`: {error}", path.display()))
        })
    }

    /// Creates or empties the file, with the caller's umask.
    ///
    /// # Errors
    /// I/O errors of creating the file.
    pub(crate) fn create_file(self, path: &Path) -> io::Result<fs::File> {
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(self.file_mode()).open(path)
    }

    /// Returns the mode of new files under the caller's umask.
    pub(crate) fn file_mode(self) -> u32 {
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
        (mode - self.0).bits()
    }
}
