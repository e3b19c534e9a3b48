//! Reads the container's control group from inside: limits met, processes killed, processor time used.
//!
//! Docker shows a container its own group read-only: one directory per controller in version 1, one directory in
//! version 2. Values that can't be read are left out.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::cgroup::{directory, keyed};

/// The files that init reads; `None` for missing ones.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Cgroup {
    process_events: Option<PathBuf>,
    memory_events: Option<PathBuf>,
    processor_time: Option<ProcessorTime>,
}

#[derive(Debug, PartialEq, Eq)]
enum ProcessorTime {
    /// `cpuacct.usage`: nanoseconds.
    Usage(PathBuf),
    /// `cpu.stat`: microseconds after `usage_usec`.
    Stat(PathBuf),
}

impl Cgroup {
    /// Finds this process's own group.
    pub(super) fn discover() -> Self {
        match (read("/proc/self/mountinfo"), read("/proc/self/cgroup")) {
            (Some(mounts), Some(groups)) => Self::find(&mounts, &groups, &|path| read(path).is_some()),
            _ => Self::default(),
        }
    }

    /// Finds the files from the content of `/proc/self/mountinfo` and `/proc/self/cgroup`.
    fn find(mounts: &str, groups: &str, readable: &dyn Fn(&Path) -> bool) -> Self {
        let file = |controller: &str, name_1: &str, name_2: &str| -> Option<(bool, PathBuf)> {
            let first = directory(mounts, groups, Some(controller)).map(|group| (false, group.join(name_1)));
            let second = directory(mounts, groups, None).map(|group| (true, group.join(name_2)));
            [first, second].into_iter().flatten().find(|(_, path)| readable(path))
        };
        Self {
            process_events: file("pids", "pids.events", "pids.events").map(|(_, path)| path),
            memory_events: file("memory", "memory.oom_control", "memory.events").map(|(_, path)| path),
            processor_time: file("cpuacct", "cpuacct.usage", "cpu.stat")
                .map(|(second, path)| if second { ProcessorTime::Stat(path) } else { ProcessorTime::Usage(path) }),
        }
    }

    /// Returns how often the process limit was reached.
    pub(super) fn process_limit_hits(&self) -> Option<u64> {
        keyed(&read(self.process_events.as_ref()?)?, "max")
    }

    /// Returns how many processes the memory limit ended.
    pub(super) fn memory_limit_kills(&self) -> Option<u64> {
        keyed(&read(self.memory_events.as_ref()?)?, "oom_kill")
    }

    /// Returns the processor time that the whole container used.
    pub(super) fn processor_time(&self) -> Option<Duration> {
        match self.processor_time.as_ref()? {
            ProcessorTime::Usage(path) => read(path)?.trim().parse().ok().map(Duration::from_nanos),
            ProcessorTime::Stat(path) => keyed(&read(path)?, "usage_usec").map(Duration::from_micros),
        }
    }
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    fs_err::read_to_string(path.as_ref()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_in_both_versions() {
        let docker_1 = (
            "612 611 0:27 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro,nosuid master:11 - cgroup cgroup rw,cpu,cpuacct\n\
             613 611 0:28 /docker/abc /sys/fs/cgroup/memory ro,nosuid master:12 - cgroup cgroup rw,memory\n\
             614 611 0:29 /docker/abc /sys/fs/cgroup/pids ro,nosuid - cgroup cgroup rw,pids\n",
            "5:pids:/docker/abc\n4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n0::/docker/abc\n",
        );
        let found = Cgroup::find(docker_1.0, docker_1.1, &|_| true);
        assert_eq!(found.process_events, Some("/sys/fs/cgroup/pids/pids.events".into()));
        assert_eq!(found.memory_events, Some("/sys/fs/cgroup/memory/memory.oom_control".into()));
        let usage = PathBuf::from("/sys/fs/cgroup/cpu,cpuacct/cpuacct.usage");
        assert_eq!(found.processor_time, Some(ProcessorTime::Usage(usage)));

        let own_namespace = ("30 29 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate\n", "0::/\n");
        let found = Cgroup::find(own_namespace.0, own_namespace.1, &|_| true);
        assert_eq!(found.memory_events, Some("/sys/fs/cgroup/memory.events".into()));
        let stat = PathBuf::from("/sys/fs/cgroup/cpu.stat");
        assert_eq!(found.processor_time, Some(ProcessorTime::Stat(stat)));

        let whole_hierarchy = ("30 29 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n", "0::/system.slice/x.scope\n");
        let found = Cgroup::find(whole_hierarchy.0, whole_hierarchy.1, &|_| true);
        assert_eq!(found.process_events, Some("/sys/fs/cgroup/system.slice/x.scope/pids.events".into()));
    }

    #[test]
    fn somebody_elses_group_is_not_taken() {
        let elsewhere =
            ("30 29 0:26 /docker/other /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n", "5:pids:/docker/abc\n");
        assert_eq!(Cgroup::find(elsewhere.0, elsewhere.1, &|_| true), Cgroup::default());
        let outside = ("30 29 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n", "0::/../other\n");
        assert_eq!(Cgroup::find(outside.0, outside.1, &|_| true), Cgroup::default());
        assert_eq!(Cgroup::find("", "", &|_| true), Cgroup::default());
    }
}
