//! The user of commands outside a daemon's containers.
//!
//! Images name the task's user as number 1000, who may be somebody on the machine: what a command does would count against
//! that person's limits. Where a daemon maps no users, containers run as a number that belongs to nobody, and two
//! mounted files give that number the task's name and home.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::super::spec::{TASK_USER, groups_file, users_file};
use super::super::{EngineError, Isolation};

/// The number of user and group: one of 60,706 to 61,183, which systemd's "Users, Groups, UIDs and GIDs" leaves unused. The machine's
/// own users are not looked up: they may be known to a directory service alone.
const NOBODYS: u32 = 61_000;

/// Who commands are outside, and what has to be mounted for that.
#[derive(Debug)]
pub(super) struct Users {
    number: u32,
    /// Files and their places in the container.
    files: Vec<(PathBuf, &'static str)>,
}

impl Users {
    /// Chooses the user for a daemon's containers, and writes files for it into `directory`, which outlives them.
    pub(super) fn choose(isolation: &Isolation, directory: &Path) -> Result<Self, EngineError> {
        if isolation.rootless || isolation.user_namespace {
            // It is somebody else outside, and may have too few numbers to give away for a high one.
            return Ok(Self { number: TASK_USER, files: Vec::new() });
        }
        let write = |name: &str, text: String, target| {
            let path = directory.join(name);
            let unusable = |source| EngineError::Mount { path: path.clone(), source };
            fs_err::write(&path, text).map_err(unusable)?;
            fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).map_err(unusable)?;
            Ok::<_, EngineError>((path, target))
        };
        let files = vec![
            write("passwd", users_file(NOBODYS), "/etc/passwd")?,
            write("group", groups_file(NOBODYS), "/etc/group")?,
        ];
        Ok(Self { number: NOBODYS, files })
    }

    /// Returns the number of user and group outside namespaces, and in containers of a daemon that maps none.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Returns what is mounted, with its places in containers.
    pub(super) fn files(&self) -> impl Iterator<Item = (&Path, &'static str)> {
        self.files.iter().map(|(path, target)| (path.as_path(), *target))
    }
}
