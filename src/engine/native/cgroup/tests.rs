//! Layouts found in recorded trees, and whose groups are whose.

use std::collections::BTreeMap;

use super::*;
use crate::engine::native::machine::Machine;

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

    fn write(&self, path: &Path, _value: &str) -> io::Result<()> {
        panic!("nothing has to be asked of {path:?}")
    }

    fn make(&self, path: &Path) -> io::Result<()> {
        panic!("{path:?} need not be made")
    }

    fn namespace(&self) -> u64 {
        41
    }

    fn is_ours(&self, path: &Path) -> bool {
        self.ours.iter().any(|ours| ours == path)
    }
}

fn find(tree: &Recorded) -> Layout {
    Layout::find(tree, &Owner::current().unwrap())
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
    let layout = find(&Recorded::new(&files, &all));
    assert_eq!(layout.version, 1);
    assert_eq!(layout.unenforced(false), ["processes", "socket memory"], "the hierarchy of processes is not ours");
    assert_eq!(layout.unenforced(true), ["processes", "socket memory", "swap"], "no account of swap");
    let owner = Owner::current().unwrap();
    let groups = layout.groups(&owner, 3, &LIMITS);
    let shown: Vec<&str> = groups.iter().map(|group| group.shown_as.as_str()).collect();
    assert_eq!(shown, ["memory", "cpu", "cpuacct"]);
    let directory = format!("/sys/fs/cgroup/memory/service/one/{PREFIX}41-{owner}-3");
    assert_eq!(groups[0].directory, PathBuf::from(directory));
    assert_eq!(groups[0].values, [("memory.limit_in_bytes".to_owned(), "1000".to_owned())]);
    assert_eq!(groups[1].values[1], ("cpu.cfs_quota_us".to_owned(), "200000".to_owned()));

    let mounted = ["cpu", "cpuacct", "memory", "pids", "unified"].map(|name| Path::new("/sys/fs/cgroup").join(name));
    assert_eq!(layout.hierarchies, mounted);

    let nobody = find(&Recorded::new(&files, &[]));
    assert_eq!(nobody.unenforced(false), ["cpu", "memory", "processes", "socket memory", "swap"]);
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
    let layout = find(&Recorded::new(&files, &["/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/memory"]));
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
    let layout = find(&Recorded::new(&files, &[&scope, &slice]));
    assert_eq!(layout.unenforced(true), ["cpu"]);
    let groups = layout.groups(&Owner::current().unwrap(), 1, &LIMITS);
    assert_eq!(groups.len(), 1);
    assert!(groups[0].directory.starts_with(&slice) && !groups[0].directory.starts_with(&scope));
    let value = |file: &str, value: &str| (file.to_owned(), value.to_owned());
    assert_eq!(groups[0].values, [value("memory.max", "1000"), value("memory.swap.max", "0"), value("pids.max", "7")]);
    assert_eq!(groups[0].memory_events.as_deref(), Some("memory.events"));
    // A session that root's service manager keeps for itself.
    let none = find(&Recorded::new(&files, &[]));
    assert_eq!((none.version, none.parents.len()), (0, 0));
    // Another run, in another group, may have had some.
    assert_eq!((none.namespace, none.hierarchies), (41, vec![PathBuf::from("/sys/fs/cgroup")]));
}

#[test]
fn only_our_groups_have_an_owner() {
    let owner = Owner::current().unwrap();
    assert_eq!(owner_of(&format!("{PREFIX}41-{owner}-12")), Some((41, owner.clone())));
    for other in ["system.slice".to_owned(), format!("{PREFIX}41-{owner}"), format!("{PREFIX}x-1")] {
        assert_ne!(owner_of(&other).map(|(_, owner)| owner), Some(owner.clone()), "{other}");
    }
}

/// A process of this boot that has ended: its number is another one's by now.
fn dead() -> String {
    let owner = Owner::current().unwrap().to_string();
    format!("{}-1-{}", std::process::id(), owner.rsplit('-').next().unwrap())
}

#[test]
fn groups_of_other_namespaces_are_left_alone() {
    let (owner, dead) = (Owner::current().unwrap(), dead());
    let layout = |namespace| Layout { namespace, ..Layout::default() };
    assert!(layout(41).is_left_over(&format!("{PREFIX}41-{dead}-0")));
    assert!(!layout(41).is_left_over(&format!("{PREFIX}41-{owner}-0")), "its owner lives");
    assert!(!layout(41).is_left_over(&format!("{PREFIX}42-{dead}-0")), "the number means another process there");
    assert!(!layout(0).is_left_over(&format!("{PREFIX}0-{dead}-0")), "nobody knows which namespace that was");
    assert!(!layout(41).is_left_over(&format!("{PREFIX}{dead}-0")), "an older program did not say which");
    assert_ne!(Machine.namespace(), 0);
}

/// A hierarchy as a directory of its own, and a layout that has it and no place to make groups in.
fn hierarchy() -> (tempfile::TempDir, Layout) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("memory");
    fs::create_dir(&root).unwrap();
    (directory, Layout { namespace: 41, hierarchies: vec![root], ..Layout::default() })
}

#[test]
fn what_a_run_in_another_scope_left_goes() {
    let (_directory, mut layout) = hierarchy();
    let root = layout.hierarchies[0].clone();
    let (owner, dead) = (Owner::current().unwrap(), dead());
    let deep = "user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope";
    let scopes = [deep, "system.slice/a.service", "own"];
    let gone = scopes.map(|scope| root.join(scope).join(format!("{PREFIX}41-{dead}-0")));
    let another = root.join(format!("{PREFIX}41-{dead}-1"));
    let stay = [
        format!("system.slice/{PREFIX}41-{owner}-0"),
        format!("system.slice/{PREFIX}42-{dead}-0"),
        format!("system.slice/{PREFIX}{dead}-0"),
        "system.slice/of-somebody-else".to_owned(),
        // Something is in it, as processes would be.
        format!("system.slice/{PREFIX}41-{dead}-2/inner"),
    ];
    let stay = stay.map(|name| root.join(name));
    for group in gone.iter().chain([&another]).chain(&stay) {
        fs::create_dir_all(group).unwrap();
    }
    layout.parents = vec![("memory".to_owned(), root.join("own"))];
    assert_eq!(layout.sweep().unwrap(), 2, "two containers, one of which had groups in three places");
    assert!(!another.exists() && gone.iter().all(|group| !group.exists()));
    assert!(stay.iter().all(|group| group.is_dir()));
    assert!(scopes.iter().all(|scope| root.join(scope).is_dir()), "they are others' own");
    assert_eq!(layout.sweep().unwrap(), 0);
}

#[test]
fn a_sweep_follows_no_link_and_has_an_end() {
    let (directory, layout) = hierarchy();
    let root = &layout.hierarchies[0];
    let left = format!("{PREFIX}41-{}-0", dead());
    let outside = directory.path().join("outside");
    let deepest = (0..MOST_DEPTH).fold(root.clone(), |group, _| group.join("a"));
    let (deep, too_deep) = (deepest.join(&left), deepest.join("a").join(format!("{left}0")));
    for group in [&outside.join(&left), &deep, &too_deep] {
        fs::create_dir_all(group).unwrap();
    }
    std::os::unix::fs::symlink(&outside, root.join("link")).unwrap();
    std::os::unix::fs::symlink(outside.join(&left), root.join(&left)).unwrap();
    assert_eq!(layout.sweep().unwrap(), 1);
    assert!(!deep.exists() && too_deep.is_dir());
    assert!(outside.join(&left).is_dir() && root.join(&left).is_symlink());

    let (_directory, layout) = hierarchy();
    let root = &layout.hierarchies[0];
    let groups = (0..20).map(|number| root.join(number.to_string()).join(format!("{left}{number}")));
    groups.for_each(|group| fs::create_dir_all(group).unwrap());
    let mut names = BTreeSet::new();
    layout.sweep_hierarchy(root, 10, &mut names);
    assert_eq!(names.len(), 9, "the mount itself is one");
}

#[test]
fn a_kill_without_a_limit_met_is_a_shortage_elsewhere() {
    let none = |_: &str| None;
    let second = |events: &str| memory_kill(2, events, &none);
    assert_eq!(second("low 0\nhigh 0\nmax 7\noom 0\noom_kill 0\n"), None);
    assert_eq!(second("low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\n"), Some(MemoryKill::Limit));
    assert_eq!(second("low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\n"), Some(MemoryKill::Shortage));
    let first = |used: Option<&str>| {
        memory_kill(1, "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", &|file| match file {
            "memory.limit_in_bytes" => Some("67108864\n".to_owned()),
            "memory.max_usage_in_bytes" => used.map(str::to_owned),
            _ => None,
        })
    };
    assert_eq!(first(Some("67108864\n")), Some(MemoryKill::Limit));
    assert_eq!(first(Some("62000000\n")), Some(MemoryKill::Limit), "a charge that did not fit");
    assert_eq!(first(Some("50000000\n")), Some(MemoryKill::Shortage));
    assert_eq!(first(None), Some(MemoryKill::Limit));
    // Kernels before 4.13 do not count kills.
    assert_eq!(memory_kill(1, "oom_kill_disable 0\nunder_oom 0\n", &none), None);
}
