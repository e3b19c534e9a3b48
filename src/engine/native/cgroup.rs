//! Control groups of containers: where they can be made, their limits, and what is left of dead owners' ones.
//!
//! Version 1 has a hierarchy per controller, and a group is made below this process's own in each. Version 2 has one,
//! where a group can only be made below one that hands the controllers on and is this user's to write to.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::super::cgroup::{directory, keyed};
use super::super::spec::ContainerLimits;
use crate::data_dir::Owner;

/// What names of our groups begin with; the owner's process namespace, the owner and a number follow.
const PREFIX: &str = "testevo-sandbox-";

/// Period of the processor quota, in microseconds.
const PERIOD: u64 = 100_000;

/// How long a group may stay busy after its last process has ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// A group to make, with everything that is written into it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Group {
    /// Its directory, absolute.
    pub(super) directory: PathBuf,
    /// Files and values, in order.
    pub(super) values: Vec<(String, String)>,
    /// The file that counts processes ended by the memory limit.
    pub(super) memory_events: Option<String>,
    /// Where the container sees it, below `/sys/fs/cgroup`; empty is that directory itself.
    pub(super) shown_as: String,
}

/// Where groups can be made, and what they can hold back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) version: u8,
    /// Controllers, such as `memory`, with the directory that groups are made in. In version 2 all have the same.
    pub(super) parents: Vec<(String, PathBuf)>,
    /// Whether there is an account of swap that can be limited.
    swap: bool,
    /// This process's process namespace, in which alone its number means something; 0 where it can't be told.
    namespace: u64,
}

/// What [`Layout::find`] asks the machine; a value, so that recorded trees can stand for it.
pub(super) trait Tree {
    /// Returns a file's content, if it can be read.
    fn read(&self, path: &Path) -> Option<String>;
    /// Tells whether this user may make directories in it and move processes into them.
    fn is_ours(&self, path: &Path) -> bool;
    /// Returns the number of the process namespace, 0 where it can't be told.
    fn namespace(&self) -> u64;
}

/// The machine itself.
pub(super) struct Machine;

impl Tree for Machine {
    fn read(&self, path: &Path) -> Option<String> {
        fs::read_to_string(path).ok()
    }

    fn is_ours(&self, path: &Path) -> bool {
        use rustix::fs::{Access, access};
        access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok()
            && access(path.join("cgroup.procs"), Access::WRITE_OK).is_ok()
    }

    fn namespace(&self) -> u64 {
        use std::os::unix::fs::MetadataExt as _;
        fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
    }
}

impl Layout {
    /// Finds where groups can be made, from `/proc/self/mountinfo`, `/proc/self/cgroup` and the hierarchies.
    pub(super) fn find(tree: &dyn Tree) -> Self {
        let read = |path: &str| tree.read(Path::new(path)).unwrap_or_default();
        let (mounts, groups) = (read("/proc/self/mountinfo"), read("/proc/self/cgroup"));
        let namespace = tree.namespace();
        let of = |controller: &str| directory(&mounts, &groups, Some(controller));
        if of("memory").is_some() || of("pids").is_some() {
            let parents: Vec<(String, PathBuf)> = ["memory", "pids", "cpu", "cpuacct"]
                .into_iter()
                .filter_map(|controller| Some((controller.to_owned(), of(controller)?)))
                .filter(|(_, parent)| tree.is_ours(parent))
                .collect();
            let swap = parents.iter().any(|(controller, parent)| {
                controller == "memory" && tree.read(&parent.join("memory.memsw.limit_in_bytes")).is_some()
            });
            return Self { version: 1, parents, swap, namespace };
        }
        let Some(own) = directory(&mounts, &groups, None) else { return Self::default() };
        let hands_on = |parent: &Path| -> Vec<String> {
            let controllers = tree.read(&parent.join("cgroup.subtree_control")).unwrap_or_default();
            let known = |name: &&str| ["memory", "pids", "cpu"].contains(name);
            controllers.split_whitespace().filter(known).map(str::to_owned).collect()
        };
        // The nearest that hands something on and holds no process itself, which the kernel would not allow.
        let parent = own
            .ancestors()
            .take_while(|parent| tree.read(&parent.join("cgroup.controllers")).is_some())
            .find(|parent| tree.is_ours(parent) && hands_on(parent).iter().any(|name| name == "memory"));
        match parent {
            Some(parent) => {
                let parents = hands_on(parent).into_iter().map(|name| (name, parent.to_owned())).collect();
                // `memory.swap.max` is there wherever the kernel accounts for swap, and tells nothing in the root.
                Self { version: 2, parents, swap: true, namespace }
            }
            None => Self::default(),
        }
    }

    /// Returns the limits that groups made here can't hold, by name. `swap_used` says whether the machine has any.
    pub(super) fn unenforced(&self, swap_used: bool) -> Vec<String> {
        let has = |controller: &str| self.parents.iter().any(|(name, _)| name == controller);
        let mut missing = Vec::new();
        for (name, held) in [
            ("cpu", has("cpu")),
            ("memory", has("memory")),
            ("processes", has("pids")),
            ("swap", has("memory") && (self.swap || !swap_used)),
        ] {
            if !held {
                missing.push(name.to_owned());
            }
        }
        missing
    }

    /// Returns the groups of a container with these limits.
    pub(super) fn groups(&self, owner: &Owner, number: u64, limits: &ContainerLimits) -> Vec<Group> {
        let name = format!("{PREFIX}{}-{owner}-{number}", self.namespace);
        let mut groups: Vec<Group> = Vec::new();
        for (controller, parent) in &self.parents {
            let directory = parent.join(&name);
            let mut values = self.values(controller, limits);
            let memory_events = (controller == "memory")
                .then(|| if self.version == 1 { "memory.oom_control" } else { "memory.events" }.to_owned());
            let shown_as = match self.version {
                1 => parent_mount(parent, controller),
                _ => String::new(),
            };
            match groups.iter_mut().find(|group| group.directory == directory) {
                Some(group) => {
                    group.values.append(&mut values);
                    group.memory_events = group.memory_events.take().or(memory_events);
                }
                None => groups.push(Group { directory, values, memory_events, shown_as }),
            }
        }
        groups
    }

    fn values(&self, controller: &str, limits: &ContainerLimits) -> Vec<(String, String)> {
        let memory = limits.memory_bytes.to_string();
        let quota = PERIOD.saturating_mul(limits.cpus.into());
        let values: Vec<(&str, String)> = match (self.version, controller) {
            (1, "memory") => {
                let swap = self.swap.then(|| ("memory.memsw.limit_in_bytes", memory.clone()));
                [("memory.limit_in_bytes", memory)].into_iter().chain(swap).collect()
            }
            (1, "cpu") => vec![("cpu.cfs_period_us", PERIOD.to_string()), ("cpu.cfs_quota_us", quota.to_string())],
            (_, "pids") => vec![("pids.max", limits.processes.to_string())],
            (2, "memory") => vec![("memory.max", memory), ("memory.swap.max", "0".to_owned())],
            (2, "cpu") => vec![("cpu.max", format!("{quota} {PERIOD}"))],
            _ => Vec::new(),
        };
        values.into_iter().map(|(file, value)| (file.to_owned(), value)).collect()
    }

    /// Removes groups whose owners are dead, with the processes in them; tells how many containers that were.
    pub(super) fn sweep(&self) -> io::Result<usize> {
        let mut names = std::collections::BTreeSet::new();
        let parents: std::collections::BTreeSet<&PathBuf> = self.parents.iter().map(|(_, parent)| parent).collect();
        for parent in parents {
            for entry in fs::read_dir(parent)? {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                if self.is_left_over(&name) {
                    clear(&entry.path())?;
                    names.insert(name);
                }
            }
        }
        Ok(names.len())
    }

    /// Tells whether the group of this name is a dead owner's. Of owners in other namespaces nothing can be told.
    fn is_left_over(&self, name: &str) -> bool {
        owner_of(name)
            .is_some_and(|(namespace, owner)| namespace != 0 && namespace == self.namespace && !owner.is_alive())
    }
}

/// Returns what a version 1 hierarchy is called: its mount's own name, which may be `cpu,cpuacct`.
fn parent_mount(parent: &Path, controller: &str) -> String {
    let names = |part: &std::ffi::OsStr| part.to_str().is_some_and(|part| part.split(',').any(|one| one == controller));
    parent.iter().find(|part| names(part)).map_or(controller.to_owned(), |part| part.to_string_lossy().into_owned())
}

/// Returns who made the group of this name, if it is one of ours: the process namespace, and the process in it.
fn owner_of(name: &str) -> Option<(u64, Owner)> {
    let (owner, number) = name.strip_prefix(PREFIX)?.rsplit_once('-')?;
    number.parse::<u64>().ok()?;
    let (namespace, owner) = owner.split_once('-')?;
    Some((namespace.parse().ok()?, Owner::parse(owner)?))
}

impl Group {
    /// Makes the group with its limits.
    pub(super) fn make(&self) -> io::Result<()> {
        fs::create_dir(&self.directory)?;
        self.values.iter().try_for_each(|(file, value)| match write(&self.directory.join(file), value) {
            // Kernels without an account of swap have no such file, and no swap to limit by it.
            Err(error) if error.kind() == io::ErrorKind::NotFound && file.contains("swap") => Ok(()),
            other => other,
        })
    }

    /// Moves a process into it.
    pub(super) fn take(&self, process: u32) -> io::Result<()> {
        write(&self.directory.join("cgroup.procs"), &process.to_string())
    }

    /// Tells whether the memory limit ended some process in it.
    pub(super) fn memory_limit_met(&self) -> bool {
        let Some(file) = &self.memory_events else { return false };
        fs::read_to_string(self.directory.join(file)).ok().and_then(|text| keyed(&text, "oom_kill")).unwrap_or(0) > 0
    }

    /// Removes it, with whatever still runs in it; one that is gone is fine.
    pub(super) fn remove(&self) -> io::Result<()> {
        clear(&self.directory)
    }
}

/// Writes a value into a file that exists.
fn write(path: &Path, value: &str) -> io::Result<()> {
    use std::io::Write as _;
    fs::OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

/// Ends what runs in a group and removes it.
fn clear(directory: &Path) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match fs::remove_dir(directory) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if Instant::now() >= deadline || error.kind() != io::ErrorKind::ResourceBusy => {
                return Err(error);
            }
            Err(_) => {}
        }
        let processes = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
        for process in processes.lines().filter_map(|line| line.parse::<i32>().ok()) {
            if let Some(process) = rustix::process::Pid::from_raw(process) {
                // One that has ended meanwhile is what is wanted.
                let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
            }
        }
        // Nothing tells when a group is empty in version 1.
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A machine as it was recorded: files with their content, and directories that are ours.
    struct Recorded {
        files: BTreeMap<PathBuf, String>,
        ours: Vec<PathBuf>,
    }

    impl Recorded {
        fn new(files: &[(&str, &str)], ours: &[&str]) -> Self {
            Self {
                files: files.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned())).collect(),
                ours: ours.iter().map(PathBuf::from).collect(),
            }
        }
    }

    impl Tree for Recorded {
        fn read(&self, path: &Path) -> Option<String> {
            self.files.get(path).cloned()
        }

        fn namespace(&self) -> u64 {
            41
        }

        fn is_ours(&self, path: &Path) -> bool {
            self.ours.iter().any(|ours| ours == path)
        }
    }

    const LIMITS: ContainerLimits = ContainerLimits { memory_bytes: 1000, cpus: 2, processes: 7, wall_seconds: 1 };

    /// Debian 12 with version 1 hierarchies of their own, this process in a memory group.
    const HYBRID: (&str, &str) = (
        "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
         33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n\
         35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
         39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
         41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        "8:pids:/\n4:memory:/service/one\n2:cpuacct:/\n1:cpu:/\n0::/\n",
    );

    #[test]
    fn version_1_has_a_group_per_hierarchy_below_our_own() {
        let all = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/memory/service/one"];
        let files = [("/proc/self/mountinfo", HYBRID.0), ("/proc/self/cgroup", HYBRID.1)];
        let layout = Layout::find(&Recorded::new(&files, &all));
        assert_eq!(layout.version, 1);
        assert_eq!(layout.unenforced(false), ["processes"], "the hierarchy of processes is not ours");
        assert_eq!(layout.unenforced(true), ["processes", "swap"], "no account of swap");
        let owner = Owner::current().unwrap();
        let groups = layout.groups(&owner, 3, &LIMITS);
        let shown: Vec<&str> = groups.iter().map(|group| group.shown_as.as_str()).collect();
        assert_eq!(shown, ["memory", "cpu", "cpuacct"]);
        let directory = format!("/sys/fs/cgroup/memory/service/one/{PREFIX}41-{owner}-3");
        assert_eq!(groups[0].directory, PathBuf::from(directory));
        assert_eq!(groups[0].values, [("memory.limit_in_bytes".to_owned(), "1000".to_owned())]);
        assert_eq!(groups[1].values[1], ("cpu.cfs_quota_us".to_owned(), "200000".to_owned()));

        let nobody = Layout::find(&Recorded::new(&files, &[]));
        assert_eq!(nobody.unenforced(false), ["cpu", "memory", "processes", "swap"]);
        assert!(nobody.groups(&owner, 1, &LIMITS).is_empty());
    }

    #[test]
    fn joined_controllers_share_one_group() {
        let mounts = "3 1 0:2 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                      4 1 0:3 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let files = [
            ("/proc/self/mountinfo", mounts),
            ("/proc/self/cgroup", "3:cpu,cpuacct:/\n4:memory:/\n"),
            ("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", "9"),
        ];
        let layout = Layout::find(&Recorded::new(&files, &["/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/memory"]));
        let groups = layout.groups(&Owner::current().unwrap(), 1, &LIMITS);
        assert_eq!(groups.len(), 2);
        assert_eq!(groups[1].shown_as, "cpu,cpuacct");
        assert_eq!(groups[0].values.len(), 2, "memory, and memory with swap");
    }

    /// A scope of a user's own service manager, as systemd 252 makes it: the slice above hands controllers on.
    #[test]
    fn version_2_takes_the_nearest_group_that_hands_controllers_on() {
        let user = "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service";
        let own = "/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope";
        let at = |rest: &str| format!("{user}{rest}");
        let groups = format!("0::{own}\n");
        let paths = [
            at("/app.slice/run-1.scope/cgroup.controllers"),
            at("/app.slice/run-1.scope/cgroup.subtree_control"),
            at("/app.slice/cgroup.controllers"),
            at("/app.slice/cgroup.subtree_control"),
        ];
        let files = [
            ("/proc/self/mountinfo", "30 29 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n"),
            ("/proc/self/cgroup", groups.as_str()),
            (paths[0].as_str(), "memory pids\n"),
            (paths[1].as_str(), "\n"),
            (paths[2].as_str(), "memory pids\n"),
            (paths[3].as_str(), "memory pids\n"),
        ];
        let (scope, slice) = (at("/app.slice/run-1.scope"), at("/app.slice"));
        let layout = Layout::find(&Recorded::new(&files, &[&scope, &slice]));
        assert_eq!(layout.unenforced(true), ["cpu"]);
        let groups = layout.groups(&Owner::current().unwrap(), 1, &LIMITS);
        assert_eq!(groups.len(), 1);
        assert!(groups[0].directory.starts_with(&slice) && !groups[0].directory.starts_with(&scope));
        let value = |file: &str, value: &str| (file.to_owned(), value.to_owned());
        assert_eq!(
            groups[0].values,
            [value("memory.max", "1000"), value("memory.swap.max", "0"), value("pids.max", "7")]
        );
        assert_eq!(groups[0].memory_events.as_deref(), Some("memory.events"));
        // A session that root's service manager keeps for itself.
        assert_eq!(Layout::find(&Recorded::new(&files, &[])), Layout::default());
    }

    #[test]
    fn only_our_groups_have_an_owner() {
        let owner = Owner::current().unwrap();
        assert_eq!(owner_of(&format!("{PREFIX}41-{owner}-12")), Some((41, owner.clone())));
        for other in ["system.slice".to_owned(), format!("{PREFIX}41-{owner}"), format!("{PREFIX}x-1")] {
            assert_ne!(owner_of(&other).map(|(_, owner)| owner), Some(owner.clone()), "{other}");
        }
    }

    #[test]
    fn groups_of_other_namespaces_are_left_alone() {
        let owner = Owner::current().unwrap();
        let boot = owner.to_string().rsplit('-').next().unwrap().to_owned();
        let dead = format!("{}-1-{boot}", std::process::id());
        let layout = |namespace| Layout { namespace, ..Layout::default() };
        assert!(layout(41).is_left_over(&format!("{PREFIX}41-{dead}-0")));
        assert!(!layout(41).is_left_over(&format!("{PREFIX}41-{owner}-0")), "its owner lives");
        assert!(!layout(41).is_left_over(&format!("{PREFIX}42-{dead}-0")), "the number means another process there");
        assert!(!layout(0).is_left_over(&format!("{PREFIX}0-{dead}-0")), "nobody knows which namespace that was");
        assert!(!layout(41).is_left_over(&format!("{PREFIX}{dead}-0")), "an older program did not say which");
        assert_ne!(Machine.namespace(), 0);
    }
}
