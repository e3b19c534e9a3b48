//! Control groups of containers: where they can be created, their limits, and the removal of dead owners' groups.
//!
//! Version 1 has a hierarchy for each controller, and in each of them a group is created below this process's own
//! group. Version 2 has one hierarchy. There, a group can be created only below a group that delegates its controllers
//! and is writable for this user.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::super::MemoryKill;
use super::super::cgroup::{directory, hierarchies, keyed};
use super::super::spec::ContainerLimits;
use super::delegation;
use super::machine::{Tree, write};
use crate::data_dir::Owner;

/// Beginning of the names of our groups. The owner's process namespace, the owner and a number follow.
const PREFIX: &str = "testevo-sandbox-";

/// The number in the name of the group with the owner itself. Containers' numbers never get that high.
const OWN_NUMBER: u64 = u64::MAX;

/// Limit on the memory of a container's TCP and UDP sockets, where groups of version 1 count it separately.
const SOCKET_MEMORY_BYTES: u64 = 64 << 20;

/// The kernel's file for that limit.
const SOCKET_MEMORY: &str = "memory.kmem.tcp.limit_in_bytes";

/// Period of the processor quota, in microseconds.
const PERIOD: u64 = 100_000;

/// How long a group may stay busy after its last process has ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// Controllers of version 1 that containers use.
const CONTROLLERS: [&str; 4] = ["memory", "pids", "cpu", "cpuacct"];

/// How deep below a hierarchy's mount dead owners' groups are searched for. Groups below a service manager's users lie
/// 6 deep.
const MOST_DEPTH: usize = 10;

/// The most groups of a hierarchy that are searched. A busy machine has some hundred.
const MOST_GROUPS: usize = 2000;

/// A group to create, with all values to write into it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Group {
    /// 1 or 2.
    version: u8,
    /// Its directory, absolute.
    pub(super) directory: PathBuf,
    /// Files and values, in order.
    pub(super) values: Vec<(String, String)>,
    /// The file that counts processes ended by the memory limit.
    pub(super) memory_events: Option<String>,
    /// The group's path for the container, below `/sys/fs/cgroup`; empty for that directory itself.
    pub(super) shown_as: String,
}

/// The directories for new groups, and the limits that groups there can enforce.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) version: u8,
    /// Controllers, such as `memory`, with the directory for new groups. In version 2 all have the same directory.
    pub(super) parents: Vec<(String, PathBuf)>,
    /// Whether swap is counted and can be limited.
    swap: bool,
    /// Whether the memory of sockets can be limited.
    sockets: bool,
    /// This process's process namespace, in which alone its number has a meaning; 0 if unknown.
    namespace: u64,
    /// Mount points of the hierarchies that may contain groups of earlier runs.
    hierarchies: Vec<PathBuf>,
}

impl Layout {
    /// Finds the directories for new groups, from `/proc/self/mountinfo`, `/proc/self/cgroup` and the hierarchies. In
    /// version 2 it may tell groups to delegate controllers, and may move `owner` into a group of its own.
    pub(super) fn find(tree: &dyn Tree, owner: &Owner) -> Self {
        let read = |path: &str| tree.read(Path::new(path)).unwrap_or_default();
        let (mounts, groups) = (read("/proc/self/mountinfo"), read("/proc/self/cgroup"));
        let (namespace, hierarchies) = (tree.namespace(), hierarchies(&mounts, &CONTROLLERS));
        let of = |controller: &str| directory(&mounts, &groups, Some(controller));
        if of("memory").is_some() || of("pids").is_some() {
            let parents: Vec<(String, PathBuf)> = CONTROLLERS
                .into_iter()
                .filter_map(|controller| Some((controller.to_owned(), of(controller)?)))
                .filter(|(_, parent)| tree.is_ours(parent))
                .collect();
            let memory_has = |file: &str| {
                let mut memory = parents.iter().filter(|(controller, _)| controller == "memory");
                memory.any(|(_, parent)| tree.read(&parent.join(file)).is_some())
            };
            let (swap, sockets) = (memory_has("memory.memsw.limit_in_bytes"), memory_has(SOCKET_MEMORY));
            return Self { version: 1, parents, swap, sockets, namespace, hierarchies };
        }
        let none = Self { namespace, hierarchies, ..Self::default() };
        let Some(own) = directory(&mounts, &groups, None) else { return none };
        let leaf = own.join(group_name(namespace, owner, OWN_NUMBER));
        match delegation::parent(tree, &own, &leaf) {
            Some((parent, controllers)) => {
                let parents = controllers.into_iter().map(|name| (name.to_owned(), parent.clone())).collect();
                // The file `memory.swap.max` shows that the kernel counts swap, but the root group lacks it. The memory
                // of sockets counts as memory there.
                Self { version: 2, parents, swap: true, sockets: true, ..none }
            }
            None => none,
        }
    }

    /// Returns the names of limits that groups created here can't enforce. `swap_used` tells whether the machine has
    /// any swap.
    pub(super) fn unenforced(&self, swap_used: bool) -> Vec<String> {
        let has = |controller: &str| self.parents.iter().any(|(name, _)| name == controller);
        let mut missing = Vec::new();
        for (name, held) in [
            ("cpu", has("cpu")),
            ("memory", has("memory")),
            ("processes", has("pids")),
            ("socket memory", has("memory") && self.sockets),
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
        let name = group_name(self.namespace, owner, number);
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
                None => groups.push(Group { version: self.version, directory, values, memory_events, shown_as }),
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
                let sockets = self.sockets.then(|| (SOCKET_MEMORY, SOCKET_MEMORY_BYTES.to_string()));
                [("memory.limit_in_bytes", memory)].into_iter().chain(swap).chain(sockets).collect()
            }
            (1, "cpu") => vec![("cpu.cfs_period_us", PERIOD.to_string()), ("cpu.cfs_quota_us", quota.to_string())],
            (_, "pids") => vec![("pids.max", limits.processes.to_string())],
            (2, "memory") => vec![("memory.max", memory), ("memory.swap.max", "0".to_owned())],
            (2, "cpu") => vec![("cpu.max", format!("{quota} {PERIOD}"))],
            _ => Vec::new(),
        };
        values.into_iter().map(|(file, value)| (file.to_owned(), value)).collect()
    }

    /// Removes groups of dead owners with their processes, and returns the number of containers. Groups that were
    /// created from elsewhere are removed only if they have no processes.
    pub(super) fn sweep(&self) -> io::Result<usize> {
        let mut names = BTreeSet::new();
        let parents: BTreeSet<&PathBuf> = self.parents.iter().map(|(_, parent)| parent).collect();
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
        for hierarchy in &self.hierarchies {
            self.sweep_hierarchy(hierarchy, MOST_GROUPS, &mut names);
        }
        Ok(names.len())
    }

    /// Removes dead owners' empty groups anywhere in a hierarchy, up to a maximum number, the nearest to its mount
    /// first. It ends no process, because processes outside of this one's own scope may be anybody's, and containers
    /// die with their owners. Groups that can't be read or removed do no harm.
    fn sweep_hierarchy(&self, hierarchy: &Path, most_groups: usize, names: &mut BTreeSet<String>) {
        let Some(device) = device_of(hierarchy) else { return };
        let (mut open, mut opened) = (VecDeque::from([(hierarchy.to_owned(), 0)]), 1);
        while let Some((group, depth)) = open.pop_front() {
            let entries = fs::read_dir(group).into_iter().flatten();
            // The type is the entry's own, because links lead out of the hierarchy.
            let below = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            for entry in below {
                let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
                // Another file system may be mounted on a group.
                if device_of(&path) != Some(device) {
                    continue;
                }
                if owner_of(&name).is_some() {
                    if self.is_left_over(&name) && fs::remove_dir(&path).is_ok() {
                        names.insert(name);
                    }
                } else if depth < MOST_DEPTH && opened < most_groups {
                    open.push_back((path, depth + 1));
                    opened += 1;
                }
            }
        }
    }

    /// Tells whether the group of this name belongs to a dead owner. False for owners in other namespaces, because
    /// their life can't be checked.
    fn is_left_over(&self, name: &str) -> bool {
        owner_of(name)
            .is_some_and(|(namespace, owner)| namespace != 0 && namespace == self.namespace && !owner.is_alive())
    }
}

/// Returns the device of the file system that contains a path, without following a link. `None` for a missing path.
fn device_of(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt as _;
    fs::symlink_metadata(path).ok().map(|found| found.dev())
}

/// Returns the name of a version 1 hierarchy: the name of its mount, such as `cpu,cpuacct`.
fn parent_mount(parent: &Path, controller: &str) -> String {
    let names = |part: &std::ffi::OsStr| part.to_str().is_some_and(|part| part.split(',').any(|one| one == controller));
    parent.iter().find(|part| names(part)).map_or(controller.to_owned(), |part| part.to_string_lossy().into_owned())
}

fn group_name(namespace: u64, owner: &Owner, number: u64) -> String {
    format!("{PREFIX}{namespace}-{owner}-{number}")
}

/// Returns the owner of the group of this name if it is one of ours: the process namespace, and the process in it.
fn owner_of(name: &str) -> Option<(u64, Owner)> {
    let (owner, number) = name.strip_prefix(PREFIX)?.rsplit_once('-')?;
    number.parse::<u64>().ok()?;
    let (namespace, owner) = owner.split_once('-')?;
    Some((namespace.parse().ok()?, Owner::parse(owner)?))
}

impl Group {
    /// Creates the group with its limits.
    pub(super) fn make(&self) -> io::Result<()> {
        fs::create_dir(&self.directory)?;
        self.values.iter().try_for_each(|(file, value)| match write(&self.directory.join(file), value) {
            // Kernels that do not count swap lack this file, and have no swap to limit by it.
            Err(error) if error.kind() == io::ErrorKind::NotFound && file.contains("swap") => Ok(()),
            other => other,
        })
    }

    /// Opens the entrance to the group for a process that does not exist yet.
    pub(super) fn open(&self) -> io::Result<Entrance> {
        let open =
            |options: &mut fs::OpenOptions, path: &Path| options.open(path).map(|file| OwnedFd::from(file.into_file()));
        Ok(match self.version {
            1 => Entrance::ByItself(open(fs::OpenOptions::new().write(true), &self.directory.join("tasks"))?),
            _ => Entrance::ByBirth(open(fs::OpenOptions::new().read(true), &self.directory)?),
        })
    }

    /// Tells whether the kernel ended a process in it for its memory, and why.
    pub(super) fn memory_kill(&self) -> Option<MemoryKill> {
        let read = |file: &str| fs::read_to_string(self.directory.join(file)).ok();
        let events = read(self.memory_events.as_ref()?)?;
        memory_kill(self.version, &events, &read)
    }

    /// Removes the group with all processes in it; a missing group is no error.
    pub(super) fn remove(&self) -> io::Result<()> {
        clear(&self.directory)
    }
}

/// Tells why the kernel ended a process of a group, from its file of events. The kernel counts the process in its own group,
/// and the want of memory in the group whose limit was met.
fn memory_kill(version: u8, events: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<MemoryKill> {
    keyed(events, "oom_kill").filter(|kills| *kills > 0)?;
    let limit_met = match version {
        1 => was_full(read),
        _ => keyed(events, "oom") != Some(0),
    };
    Some(if limit_met { MemoryKill::Limit } else { MemoryKill::Shortage })
}

/// Tells whether a group of version 1 has used nearly all that its limit allows. Its counts of refused charges stay 0
/// where memory and swap have the same limit, so the largest use decides. What can't be read tells of no other limit.
fn was_full(read: &dyn Fn(&str) -> Option<String>) -> bool {
    let number = |file: &str| read(file).and_then(|text| text.trim().parse::<u64>().ok());
    match (number("memory.max_usage_in_bytes"), number("memory.limit_in_bytes")) {
        (Some(used), Some(limit)) => used >= limit - limit / 8,
        _ => true,
    }
}

/// How a process enters a group. Moving another process makes the kernel wait until all processors pass a quiet point.
/// That takes some 10 ms, in which no process of the machine starts or ends.
#[derive(Debug)]
pub(super) enum Entrance {
    /// Version 2: the process is created in the group with this directory.
    ByBirth(OwnedFd),
    /// Version 1: a thread that moves only itself enters at once, through this file.
    ByItself(OwnedFd),
}

impl Entrance {
    /// Moves the calling thread into the group. It must be its process's only thread.
    pub(super) fn enter(&self) -> io::Result<()> {
        match self {
            Self::ByBirth(_) => Ok(()),
            Self::ByItself(tasks) => rustix::io::write(tasks, b"0").map(|_| ()).map_err(io::Error::from),
        }
    }
}

/// Ends the processes of a group and removes it.
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
                // A process that has ended meanwhile is no error.
                let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
            }
        }
        // In version 1 nothing reports when a group becomes empty.
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(test)]
mod tests;
