//! A directory of this process in memory, for readers that take a path.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use fs_err as fs;
use tempfile::TempDir;

/// Returns this process's directory, which lies in memory where there is a file system for that.
pub(crate) fn root() -> &'static Path {
    static ROOT: OnceLock<TempDir> = OnceLock::new();
    let make = || {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        tempfile::Builder::new().prefix("fuzz-").tempdir_in(parent).unwrap_or_else(|error| panic!("{error}"))
    };
    ROOT.get_or_init(make).path()
}

/// Returns a directory of a target, new for each input.
pub(crate) struct Fresh(PathBuf);

impl Fresh {
    /// Makes an empty directory.
    pub(crate) fn new(target: &str) -> Self {
        let path = root().join(target);
        if path.exists() {
            done(fs::remove_dir_all(&path));
        }
        done(fs::create_dir_all(&path));
        Self(path)
    }

    /// Returns its path.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // What is left is in the way of nobody: the next input's directory is made anew.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes an input to the file that a target reads, and returns its path.
pub(crate) fn file(name: &str, input: &[u8]) -> PathBuf {
    let path = root().join(name);
    done(fs::write(&path, input));
    path
}

/// Returns the value of what can only fail by the machine's fault.
pub(crate) fn done<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("the machine has no room for scratch files: {error}"))
}
