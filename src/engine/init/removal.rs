//! Removes files that commands left, never through a symbolic link.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::tree::{Entries, MAX_DEPTH, StepError, open_parent};

/// Removes a file or a directory tree. A missing one is no error.
pub(super) fn remove(path: &str) -> Result<(), StepError> {
    let Some((parent, name)) = parent_of(path)? else { return Ok(()) };
    match rustix::fs::unlinkat(&parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::ISDIR) => {
            empty_directory(&parent, name, path, MAX_DEPTH)?;
            rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR).map_err(|errno| StepError::at(path, errno))
        }
        Err(errno) => Err(StepError::at(path, errno)),
    }
}

/// Removes everything in a directory, but not the directory, which may be a mount point. A missing one is no error.
pub(super) fn empty(path: &str) -> Result<(), StepError> {
    let Some((parent, name)) = parent_of(path)? else { return Ok(()) };
    match rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => empty_directory(&parent, name, path, MAX_DEPTH),
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(StepError::at(path, errno)),
    }
}

fn parent_of(path: &str) -> Result<Option<(OwnedFd, &OsStr)>, StepError> {
    match open_parent(path, false) {
        Err(StepError::Failed { errno: Some(libc::ENOENT), .. }) => Ok(None),
        other => other.map(Some),
    }
}

fn empty_directory(parent: &OwnedFd, name: &OsStr, path: &str, depth: usize) -> Result<(), StepError> {
    let at = |errno| StepError::at(path, errno);
    if depth == 0 {
        return Err(StepError::failed(format!("`{path}` is nested too deep to be removed"), None));
    }
    let entries = Entries::open(parent, name).map_err(at)?;
    for entry in entries.names().map_err(at)? {
        let name = OsStr::from_bytes(entry.to_bytes());
        match rustix::fs::unlinkat(&entries.directory, name, AtFlags::empty()) {
            Ok(()) => {}
            Err(Errno::ISDIR) => {
                empty_directory(&entries.directory, name, path, depth - 1)?;
                rustix::fs::unlinkat(&entries.directory, name, AtFlags::REMOVEDIR).map_err(at)?;
            }
            Err(errno) => return Err(at(errno)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::Path;

    use fs_err as fs;

    use super::*;

    fn text(path: &Path) -> &str {
        path.to_str().unwrap()
    }

    fn names(directory: &Path) -> Vec<String> {
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_directory_is_emptied_and_stays() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("kept"), "").unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().join("tmp");
        fs::create_dir_all(directory.join("a/b")).unwrap();
        fs::write(directory.join("a/b/c"), "").unwrap();
        fs::write(directory.join(".hidden"), "").unwrap();
        symlink(outside.path(), directory.join("link")).unwrap();
        fs::set_permissions(directory.join("a/b"), std::fs::Permissions::from_mode(0o000)).unwrap();
        let before = fs::metadata(&directory).unwrap();
        empty(text(&directory)).unwrap();
        assert_eq!(names(&directory), [""; 0]);
        let after = fs::metadata(&directory).unwrap();
        let inode = std::os::unix::fs::MetadataExt::ino;
        assert_eq!((inode(&before), before.permissions()), (inode(&after), after.permissions()));
        assert_eq!(names(outside.path()), ["kept"], "links are not followed");
        empty(text(&scratch.path().join("missing/directory"))).unwrap();
        empty(text(&scratch.path().join("missing"))).unwrap();
    }

    #[test]
    fn nothing_behind_a_link_in_a_directorys_place_is_emptied() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("kept"), "").unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let link = scratch.path().join("tmp");
        symlink(outside.path(), &link).unwrap();
        assert!(matches!(empty(text(&link)), Err(StepError::Failed { .. })));
        assert_eq!(names(outside.path()), ["kept"]);
        remove(text(&link)).unwrap();
        assert_eq!((names(scratch.path()), names(outside.path())), (Vec::new(), vec!["kept".to_owned()]));
    }
}
