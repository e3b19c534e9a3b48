//! The space that a directory takes on its disk.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use fs_err as fs;

/// Returns the bytes that all below a directory takes on its disk; 0 if it does not exist. Links are not followed, and a
/// file with several names counts in parts. What vanishes meanwhile or may not be read is left out.
///
/// # Errors
/// Other I/O errors of listing directories.
pub fn size_on_disk(directory: &Path) -> io::Result<u64> {
    let (mut bytes, mut open) = (0u64, vec![directory.to_owned()]);
    while let Some(directory) = open.pop() {
        let Some(entries) = seen(fs::read_dir(directory))? else { continue };
        for entry in entries {
            let Some(entry) = seen(entry)? else { continue };
            let Some(found) = seen(entry.metadata())? else { continue };
            // Each directory below a directory counts as a name of it.
            let names = if found.is_dir() { 1 } else { found.nlink().max(1) };
            bytes = bytes.saturating_add(found.blocks().saturating_mul(512) / names);
            if found.is_dir() {
                open.push(entry.path());
            }
        }
    }
    Ok(bytes)
}

fn seen<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => Ok(None),
        other => other.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_count_once_and_links_are_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let below = directory.path().join("below");
        assert_eq!(size_on_disk(&below).unwrap(), 0, "there is none");
        fs::create_dir(&below).unwrap();
        let empty = size_on_disk(directory.path()).unwrap();
        fs::write(below.join("file"), vec![1; 1 << 20]).unwrap();
        let with_file = size_on_disk(directory.path()).unwrap() - empty;
        assert!(with_file >= 1 << 20, "{with_file}");
        fs::hard_link(below.join("file"), below.join("again")).unwrap();
        fs_err::os::unix::fs::symlink(&below, directory.path().join("link")).unwrap();
        fs::File::create(below.join("sparse")).unwrap().set_len(1 << 40).unwrap();
        assert!(size_on_disk(directory.path()).unwrap() - empty <= with_file + (64 << 10));
    }
}
