//! Temporary files and directories that only this process uses.

use std::path::{Path, PathBuf};

use fs_err as fs;

/// A directory for the spooled output of one container; dropping the value removes it.
pub struct Spool(PathBuf);

impl Spool {
    /// Creates a directory below this process's temporary directory.
    ///
    /// # Errors
    /// I/O errors of creating the directory.
    pub fn create(temporary: &Path) -> std::io::Result<Self> {
        let path = temporary.join(format!("spool-{}", unique()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    /// Returns the directory's path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        // If removal fails here, the directory is removed with this process's temporary directory.
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::debug!("{error}");
        }
    }
}

/// A file that only this process uses; dropping the value removes it.
#[derive(Debug)]
pub struct TemporaryFile(PathBuf);

impl TemporaryFile {
    /// Names a file below this process's temporary directory, such as `tree-7.tar`; the caller
    /// writes it.
    pub(crate) fn named(temporary: &Path, name: &str, extension: &str) -> Self {
        Self(temporary.join(format!("{name}-{}.{extension}", unique())))
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // If removal fails here, the file is removed with this process's temporary directory.
        if let Err(error) = fs::remove_file(&self.0)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::debug!("{error}");
        }
    }
}

pub(in crate::execution) fn unique() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
