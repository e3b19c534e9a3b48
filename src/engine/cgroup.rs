//! Where control groups are found: pure reading of what the kernel says about mounts and groups.

use std::path::{Component, Path, PathBuf};

/// Returns the number after a key, in a file of `key number` lines.
pub(super) fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Returns where this process's group of a controller is mounted; no controller means version 2.
///
/// A mount shows the hierarchy from some group downwards. Only where this process's group lies in that part is there a
/// directory for it; anything else would be somebody else's numbers.
pub(super) fn directory(mounts: &str, groups: &str, controller: Option<&str>) -> Option<PathBuf> {
    let group = groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let ours = match controller {
            Some(controller) => controllers.split(',').any(|name| name == controller),
            None => number == "0" && controllers.is_empty(),
        };
        ours.then_some(path)
    })?;
    mounts.lines().find_map(|line| {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut filesystem = filesystem.split(' ');
        let (kind, options) = (filesystem.next()?, filesystem.nth(1)?);
        let ours = match controller {
            Some(controller) => kind == "cgroup" && options.split(',').any(|option| option == controller),
            None => kind == "cgroup2",
        };
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let below = Path::new(group).strip_prefix(root).ok().filter(|_| ours)?;
        below.components().all(|part| matches!(part, Component::Normal(_))).then(|| Path::new(point).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_by_their_key() {
        assert_eq!(keyed("low 0\noom 3\noom_kill 2\n", "oom_kill"), Some(2));
        assert_eq!(keyed("oom_kill_disable 0\nunder_oom 0\noom_kill 5\n", "oom_kill"), Some(5));
        assert_eq!(keyed("max 7\n", "max"), Some(7));
        assert_eq!(keyed("max x\n", "max"), None);
    }
}
