//! Finds the directories of control groups. These are pure functions of the kernel's mount and group tables.

use std::path::{Component, Path, PathBuf};

/// Returns the number after a key, in a file of `key number` lines.
pub(super) fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Returns the directory of this process's group for a controller; without a controller, for version 2.
///
/// A mount may show only a part of the hierarchy, from some group downwards. The group has a directory only if it lies
/// in that part. Any other directory would show another group's numbers.
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
    mounts.lines().filter_map(Mount::of).find_map(|mount| {
        let ours = match controller {
            Some(controller) => mount.has(controller),
            None => mount.is_version_2(),
        };
        let below = Path::new(group).strip_prefix(mount.root).ok().filter(|_| ours)?;
        below.components().all(|part| matches!(part, Component::Normal(_))).then(|| Path::new(mount.point).join(below))
    })
}

/// Returns the mount points of hierarchies with one of these controllers, and of version 2, even of those that show
/// only a part.
pub(super) fn hierarchies(mounts: &str, controllers: &[&str]) -> Vec<PathBuf> {
    let ours = |mount: &Mount<'_>| mount.is_version_2() || controllers.iter().any(|controller| mount.has(controller));
    mounts.lines().filter_map(Mount::of).filter(ours).map(|mount| PathBuf::from(mount.point)).collect()
}

/// A line of `/proc/self/mountinfo`: the fields that concern control groups.
struct Mount<'a> {
    /// The directory of the file system that is mounted.
    root: &'a str,
    /// The mount point.
    point: &'a str,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let (mount, filesystem) = line.split_once(" - ")?;
        let (mut mount, mut filesystem) = (mount.split(' ').skip(3), filesystem.split(' '));
        let (root, point) = (mount.next()?, mount.next()?);
        Some(Self { root, point, kind: filesystem.next()?, options: filesystem.nth(1)? })
    }

    /// Tells whether the mount is the controller's hierarchy of version 1.
    fn has(&self, controller: &str) -> bool {
        self.kind == "cgroup" && self.options.split(',').any(|option| option == controller)
    }

    fn is_version_2(&self) -> bool {
        self.kind == "cgroup2"
    }
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

    #[test]
    fn hierarchies_are_found_where_they_are_mounted() {
        let mounts = "22 1 0:5 / /proc rw - proc proc rw\n\
                      31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
                      32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
                      34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n\
                      35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n\
                      40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
                      torn";
        let found = hierarchies(mounts, &["memory", "pids", "cpu"]);
        let expected = ["cpu,cpuacct", "memory", "unified"].map(|name| PathBuf::from("/sys/fs/cgroup").join(name));
        assert_eq!(found, expected);
    }
}
