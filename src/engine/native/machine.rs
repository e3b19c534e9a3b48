//! The machine's control groups, as files and directories.

use std::io;
use std::path::Path;

use fs_err as fs;

/// The machine's files that [`super::cgroup::Layout::find`] reads. A trait, so that tests can use recorded trees.
pub(super) trait Tree {
    /// Returns a file's content, if it can be read.
    fn read(&self, path: &Path) -> Option<String>;
    /// Tells whether this user may create directories in it and move processes into them.
    fn is_ours(&self, path: &Path) -> bool;
    /// Writes to an existing file.
    fn write(&self, path: &Path, value: &str) -> io::Result<()>;
    /// Creates a directory.
    fn make(&self, path: &Path) -> io::Result<()>;
    /// Returns the number of the process namespace; 0 if unknown.
    fn namespace(&self) -> u64;
}

/// The machine itself.
pub(super) struct Machine;

impl Tree for Machine {
    fn read(&self, path: &Path) -> Option<String> {
        fs::read_to_string(path).ok()
    }

    fn is_ours(&self, path: &Path) -> bool {
        use rustix::fs::{Access, access};
        access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok()
            && access(path.join("cgroup.procs"), Access::WRITE_OK).is_ok()
    }

    fn write(&self, path: &Path, value: &str) -> io::Result<()> {
        write(path, value)
    }

    fn make(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn namespace(&self) -> u64 {
        use std::os::unix::fs::MetadataExt as _;
        fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
    }
}

/// Writes a value to an existing file.
pub(super) fn write(path: &Path, value: &str) -> io::Result<()> {
    use std::io::Write as _;
    fs::OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}
