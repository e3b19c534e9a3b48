//! Removes write permission from files that a command may only read.

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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use fs_err as fs;

    use super::super::removal;
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn text(path: &Path) -> &str {
        path.to_str().unwrap()
    }

    #[test]
    fn nothing_below_can_be_written_and_links_are_left_alone() {
        let scratch = tempfile::tempdir().unwrap();
        let (classes, outside) = (scratch.path().join("classes"), scratch.path().join("outside"));
        fs::create_dir_all(classes.join("a/b")).unwrap();
        for file in [&outside, &classes.join("run"), &classes.join("a/b/C.class")] {
            fs::write(file, "").unwrap();
            fs::set_permissions(file, std::fs::Permissions::from_mode(0o644)).unwrap();
        }
        fs::set_permissions(classes.join("run"), std::fs::Permissions::from_mode(0o775)).unwrap();
        symlink(&outside, classes.join("a/link")).unwrap();
        // A class path may name a directory twice, or one within another.
        for path in [&classes, &classes, &classes.join("a")] {
            protect(text(path)).unwrap();
        }
        let modes = ["", "a", "a/b", "a/b/C.class", "run"].map(|name| mode(&classes.join(name)));
        assert_eq!(modes, [0o555, 0o555, 0o555, 0o444, 0o555]);
        assert_eq!(mode(&outside), 0o644);
        removal::remove(text(&classes)).unwrap();
        assert!(!classes.exists() && outside.exists());
    }

    #[test]
    fn what_is_no_directory_is_left_alone() {
        let scratch = tempfile::tempdir().unwrap();
        let (jar, link) = (scratch.path().join("a.jar"), scratch.path().join("link"));
        fs::write(&jar, "").unwrap();
        fs::set_permissions(&jar, std::fs::Permissions::from_mode(0o644)).unwrap();
        fs::create_dir(scratch.path().join("target")).unwrap();
        symlink(scratch.path().join("target"), &link).unwrap();
        for path in [jar.clone(), link, scratch.path().join("missing/classes"), jar.join("classes")] {
            protect(text(&path)).unwrap();
        }
        assert_eq!(mode(&jar), 0o644);
        assert_ne!(mode(&scratch.path().join("target")) & WRITE, 0);
    }
}
