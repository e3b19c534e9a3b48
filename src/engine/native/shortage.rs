//! Processes that the kernel ends for want of memory near containers that have no control group of their own.

use std::path::PathBuf;

use fs_err as fs;

use super::super::cgroup::{directory, keyed};

/// This process's own group, and how many of its processes the kernel had ended for their memory when the watch began.
#[derive(Debug)]
pub(super) struct Watch {
    events: Option<PathBuf>,
    before: u64,
}

impl Watch {
    /// Begins to watch. A group that can't be read shows no kill.
    pub(super) fn begin() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self::of(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"))
    }

    fn of(mounts: &str, groups: &str) -> Self {
        let first = directory(mounts, groups, Some("memory")).map(|group| group.join("memory.oom_control"));
        let second = directory(mounts, groups, None).map(|group| group.join("memory.events"));
        let mut watch = Self { events: first.or(second), before: 0 };
        watch.before = watch.kills();
        watch
    }

    /// Tells whether the kernel ended a process of the group since then.
    pub(super) fn saw_a_kill(&self) -> bool {
        self.kills() > self.before
    }

    fn kills(&self) -> u64 {
        let text = self.events.as_ref().and_then(|path| fs::read_to_string(path).ok());
        text.and_then(|text| keyed(&text, "oom_kill")).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_in_the_own_group_is_seen_once_it_happens() {
        let directory = tempfile::tempdir().unwrap();
        let point = directory.path().display();
        for (name, file, mounts, groups) in [
            (
                "v1",
                "memory.oom_control",
                format!("1 1 0:1 / {point}/v1 rw - cgroup cgroup rw,memory"),
                "4:memory:/job\n",
            ),
            ("v2", "memory.events", format!("1 1 0:1 / {point}/v2 rw - cgroup2 cgroup2 rw"), "0::/job\n"),
        ] {
            let group = directory.path().join(name).join("job");
            fs::create_dir_all(&group).unwrap();
            let events = group.join(file);
            fs::write(&events, "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n").unwrap();
            let watch = Watch::of(&mounts, groups);
            assert!(!watch.saw_a_kill(), "{name}");
            fs::write(&events, "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n").unwrap();
            assert!(watch.saw_a_kill(), "{name}");
        }
        assert!(!Watch::of("", "").saw_a_kill());
    }
}
