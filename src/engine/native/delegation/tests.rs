use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;

use super::*;

/// Groups with what they have, hand on and hold, as the kernel keeps them.
#[derive(Default)]
struct Kernel {
    groups: RefCell<BTreeMap<PathBuf, Group>>,
    /// The group whose subtree is ours.
    ours: PathBuf,
}

#[derive(Clone, Default)]
struct Group {
    subtree: Vec<String>,
    processes: Vec<String>,
}

const ROOT: &str = "/sys/fs/cgroup";

impl Kernel {
    /// A tree of groups, each as its path below the root, what it hands on, and the processes in it.
    fn new(ours: &str, groups: &[(&str, &str, &str)]) -> Self {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let groups = groups
            .iter()
            .map(|(path, subtree, processes)| {
                (Path::new(ROOT).join(path), Group { subtree: words(subtree), processes: words(processes) })
            })
            .collect();
        Self { groups: RefCell::new(groups), ours: Path::new(ROOT).join(ours) }
    }

    fn controllers(&self, group: &Path) -> Option<String> {
        let groups = self.groups.borrow();
        groups.get(group)?;
        let all = || CONTROLLERS.join(" ");
        Some(group.parent().and_then(|above| groups.get(above)).map_or_else(all, |above| above.subtree.join(" ")))
    }
}

impl Tree for Kernel {
    fn read(&self, path: &Path) -> Option<String> {
        let group = path.parent()?;
        if path.ends_with("cgroup.controllers") {
            return self.controllers(group);
        }
        let groups = self.groups.borrow();
        let found = groups.get(group)?;
        let words = if path.ends_with("cgroup.procs") { &found.processes } else { &found.subtree };
        Some(words.join("\n"))
    }

    fn is_ours(&self, path: &Path) -> bool {
        path.starts_with(&self.ours)
    }

    fn write(&self, path: &Path, value: &str) -> io::Result<()> {
        let group = path.parent().unwrap();
        assert!(self.is_ours(group), "{path:?}");
        let offered = self.controllers(group).unwrap();
        let mut groups = self.groups.borrow_mut();
        if path.ends_with("cgroup.procs") {
            groups.values_mut().for_each(|group| group.processes.retain(|process| process != value));
            groups.get_mut(group).unwrap().processes.push(value.to_owned());
            return Ok(());
        }
        let name = value.strip_prefix('+').unwrap();
        let found = groups.get_mut(group).unwrap();
        if !offered.split_whitespace().any(|offered| offered == name) {
            return Err(io::Error::from_raw_os_error(libc::ENOENT));
        }
        if group != Path::new(ROOT) && !found.processes.is_empty() {
            return Err(io::Error::from_raw_os_error(libc::EBUSY));
        }
        found.subtree.push(name.to_owned());
        Ok(())
    }

    fn make(&self, path: &Path) -> io::Result<()> {
        self.groups.borrow_mut().insert(path.to_owned(), Group::default());
        Ok(())
    }

    fn namespace(&self) -> u64 {
        41
    }
}

/// Returns where groups can be made and what they can hold, for a process in `own`.
fn found(kernel: &Kernel, own: &str) -> Option<(String, String)> {
    let own = Path::new(ROOT).join(own);
    let (parent, controllers) = parent(kernel, &own, &own.join("leaf"))?;
    let parent = parent.strip_prefix(ROOT).unwrap().to_str().unwrap().to_owned();
    Some((parent, controllers.join(" ")))
}

fn at(parent: &str, controllers: &str) -> Option<(String, String)> {
    Some((parent.to_owned(), controllers.to_owned()))
}

#[test]
fn the_nearest_group_that_hands_on_is_asked_for_the_rest() {
    let tree = |ours, root: &str| {
        let slices = [("", root, "1"), ("user", "memory pids", ""), ("user/scope", "", "7 8")];
        Kernel::new(ours, &slices)
    };
    assert_eq!(found(&tree("user", "memory pids cpu"), "user/scope"), at("user", "memory pids cpu"));
    assert_eq!(found(&tree("user", "memory pids"), "user/scope"), at("user", "memory pids"), "not ours to ask for");
    assert_eq!(found(&tree("", "memory pids"), "user/scope"), at("user", "memory pids cpu"), "root may ask above");
    assert_eq!(found(&tree("elsewhere", "memory pids cpu"), "user/scope"), None);
}

#[test]
fn without_a_service_manager_the_root_of_all_is_asked() {
    assert_eq!(found(&Kernel::new("", &[("", "", "1 2")]), ""), at("", "memory pids cpu"));
}

#[test]
fn who_is_alone_in_a_group_steps_aside_and_nobody_else_is_moved() {
    let own = std::process::id().to_string();
    let tree = |processes: &str| Kernel::new("service", &[("", "memory pids cpu", ""), ("service", "", processes)]);
    let alone = tree(&own);
    assert_eq!(found(&alone, "service"), at("service", "memory pids cpu"));
    let leaf = Path::new(ROOT).join("service/leaf");
    assert_eq!(alone.groups.borrow()[&leaf].processes, std::slice::from_ref(&own));
    // Asked again, it finds what it has made.
    assert_eq!(found(&alone, "service/leaf"), at("service", "memory pids cpu"));
    let shared = tree(&format!("{own} 7"));
    assert_eq!(found(&shared, "service"), None);
    assert_eq!(shared.groups.borrow().len(), 2, "nothing was made");
}

#[test]
fn root_without_a_service_manager_may_be_anywhere() {
    let tree = Kernel::new("", &[("", "", "1"), ("shell", "", "7 8")]);
    assert_eq!(found(&tree, "shell"), at("", "memory pids cpu"), "nobody in the shell's group is moved");
}

#[test]
fn without_memory_nothing_is_worth_a_group() {
    let tree = Kernel::new("service", &[("", "pids", ""), ("service", "", &std::process::id().to_string())]);
    assert_eq!(found(&tree, "service"), None);
    assert_eq!(tree.groups.borrow().len(), 2, "nothing was made");
}
