//! Who else on this machine may read what this program writes.
//!
//! Users in containers are others than the caller and must be able to read what is mounted into them, so a caller's umask
//! that closes files to others can't be in force while the data directory's content is made. It holds for what nobody in
//! a container passes through: the data directory itself (mounts begin below it), and files where the user wants them.

use std::io;
use std::path::Path;

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fs::Mode;
use rustix::process::umask;

/// The umask that the program was started with.
#[derive(Clone, Copy, Debug)]
pub struct Umask(Mode);

impl Umask {
    /// Takes the caller's umask out of force: what is made from now on is written by this user and read by all. Must be
    /// called before threads exist.
    pub fn take() -> Self {
        Self(umask(Mode::WGRP | Mode::WOTH))
    }

    /// Lets the group write, too, where the caller's umask does: a data directory may be shared.
    pub(crate) fn relax(self) {
        umask(self.0 & (Mode::WGRP | Mode::WOTH));
    }

    /// Makes the directory with all that lead to it, as the caller's umask has it; one that is there stays as it is.
    ///
    /// # Errors
    /// The file system's.
    pub(crate) fn create_directory(self, path: &Path) -> io::Result<()> {
        use std::os::unix::fs::DirBuilderExt as _;
        let mode = Mode::RWXU | Mode::RWXG | Mode::RWXO;
        // fs_err has no builder of directories.
        let made = std::fs::DirBuilder::new().recursive(true).mode((mode - self.0).bits()).create(path);
        made.map_err(|error| {
            io::Error::new(error.kind(), format!("failed to create directory `{}`: {error}", path.display()))
        })
    }

    /// Makes or empties the file, as the caller's umask has it.
    ///
    /// # Errors
    /// The file system's.
    pub(crate) fn create_file(self, path: &Path) -> io::Result<fs::File> {
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(self.file_mode()).open(path)
    }

    /// Returns the mode of files as the caller's umask has it.
    pub(crate) fn file_mode(self) -> u32 {
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
        (mode - self.0).bits()
    }
}
