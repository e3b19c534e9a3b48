//! Files and directories of this process alone.

use std::path::{Path, PathBuf};

use fs_err as fs;

/// A directory for what one container's output spools; it goes with the value.
pub struct Spool(PathBuf);

impl Spool {
    /// Makes one below this process's temporary directory.
    ///
    /// # Errors
    /// The file system's.
    pub fn create(temporary: &Path) -> std::io::Result<Self> {
        let path = temporary.join(format!("spool-{}", unique()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    /// Returns where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        // What can't be removed now goes with this process's temporary directory.
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::debug!("{error}");
        }
    }
}

/// A file of this process alone, which goes with this value.
#[derive(Debug)]
pub struct TemporaryFile(PathBuf);

impl TemporaryFile {
    /// Names a file below this process's temporary directory, such as `tree-7.tar`; whoever asks writes it.
    pub(in crate::execution) fn named(temporary: &Path, name: &str, extension: &str) -> Self {
        Self(temporary.join(format!("{name}-{}.{extension}", unique())))
    }

    /// Returns where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // What can't be removed now goes with this process's temporary directory.
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
