//! What is mounted in a container of the built-in engine, as its commands see it: each mount with the flags that it was
//! promised, and none besides.

use std::collections::{BTreeMap, BTreeSet};

use testevo_sandbox::engine::spec::INIT_PATH;

use super::support::*;

on_the_native_engine!(
    every_mount_has_the_flags_that_it_was_promised,
    inputs_arrive_after_one_that_can_not_be_shown,
    mounts_and_groups_tell_nothing_of_the_host_and_no_container_from_another,
    there_is_no_user_but_the_tasks,
);

/// What steers the machine.
const READ_ONLY: [&str; 5] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// Files that tell of the machine.
const COVERED_FILES: [&str; 6] =
    ["/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/latency_stats", "/proc/timer_list", "/proc/sched_debug"];

/// Directories that tell of the machine.
const COVERED_DIRECTORIES: [&str; 5] =
    ["/proc/acpi", "/proc/asound", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap"];

/// The machine's own devices, with whatever flags they have there.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// A line of `/proc/self/mountinfo`.
struct Mount<'a> {
    /// The device, and what of it is mounted.
    what: (&'a str, &'a str),
    flags: BTreeSet<&'a str>,
    /// Where else mounts below this one would appear.
    propagation: Vec<&'a str>,
    kind: &'a str,
    options: BTreeSet<&'a str>,
}

/// Returns all mounts by their places; of several in one place the last, which is the one that is seen.
fn mounts(text: &str) -> BTreeMap<&str, Mount<'_>> {
    let mount = |line| {
        let (mount, filesystem): (&str, &str) = str::split_once(line, " - ").unwrap();
        let (mount, filesystem): (Vec<_>, Vec<_>) = (mount.split(' ').collect(), filesystem.split(' ').collect());
        let [_, _, device, root, place, flags, ref propagation @ ..] = mount[..] else { panic!("{line}") };
        let [kind, _, options] = filesystem[..] else { panic!("{line}") };
        let mount = Mount {
            what: (device, root),
            flags: flags.split(',').collect(),
            propagation: propagation.to_vec(),
            kind,
            options: options.split(',').collect(),
        };
        (place, mount)
    };
    text.lines().map(mount).collect()
}

async fn every_mount_has_the_flags_that_it_was_promised() {
    let input = directory();
    let covered = [COVERED_FILES.as_slice(), &COVERED_DIRECTORIES].concat();
    let maybe_there = [READ_ONLY.as_slice(), &covered].concat();
    let mut spec = spec(
        loaded_image(&*engine().await).await,
        vec![step(&["cat", "/proc/self/mountinfo"]), step(&[["existing"].as_slice(), &maybe_there].concat())],
    );
    spec.mounts.push(mount(input.path(), "/input"));
    let run = finish(&spec).await;
    let (said, there) = (run.stdout(0), run.stdout(1));
    let mounts = mounts(&said);
    // Not every kernel has all of them, but every one has these.
    let there: BTreeSet<&str> = there.lines().collect();
    assert!(there.is_superset(&BTreeSet::from(["/proc/bus", "/proc/fs", "/proc/sys"])), "{there:?}");
    let at = |place: &str| mounts.get(place).unwrap_or_else(|| panic!("nothing is mounted on {place}:\n{said}"));
    let check = |place: &str, kinds: &[&str], flags: &[&str]| {
        let mount = at(place);
        assert!(kinds.is_empty() || kinds.contains(&mount.kind), "{place} is of another kind:\n{said}");
        assert!(flags.iter().all(|flag| mount.flags.contains(flag)), "{place} lacks one of {flags:?}:\n{said}");
    };

    check("/", &["overlay"], &["ro", "nosuid", "nodev"]);
    for place in [INIT_PATH, "/input"] {
        check(place, &[], &["ro", "nosuid", "nodev"]);
    }
    for place in ["/work", "/tmp"] {
        check(place, &["tmpfs"], &["rw", "nosuid", "nodev"]);
        for bound in ["size=16384k", "nr_inodes=16384"] {
            assert!(at(place).options.contains(bound), "{place} lacks {bound}:\n{said}");
        }
    }
    check("/dev", &["tmpfs"], &["ro", "nosuid", "noexec"]);
    check("/dev/shm", &["tmpfs"], &["rw", "nosuid", "nodev", "noexec"]);
    check("/dev/pts", &["devpts"], &["rw", "nosuid", "noexec"]);
    check("/proc", &["proc"], &["rw", "nosuid", "nodev", "noexec"]);
    for place in READ_ONLY.iter().filter(|place| there.contains(*place)) {
        check(place, &["proc"], &["ro", "nosuid", "nodev", "noexec"]);
    }
    // Nothing but a tmpfs where a container around this one covers parts of its own.
    check("/sys", &["sysfs", "tmpfs"], &["ro", "nosuid", "nodev", "noexec"]);
    for place in mounts.keys().filter(|place| place.starts_with("/sys/fs/cgroup")) {
        check(place, &["cgroup", "cgroup2", "tmpfs"], &["ro", "nosuid", "nodev", "noexec"]);
    }
    for place in COVERED_FILES.iter().filter(|place| there.contains(*place)) {
        assert_eq!(at(place).what, at("/dev/null").what, "{place} can be read:\n{said}");
    }
    for place in COVERED_DIRECTORIES.iter().filter(|place| there.contains(*place)) {
        check(place, &["tmpfs"], &["ro", "nosuid", "nodev"]);
    }

    // What holds for every mount, also for one that nobody named above.
    let theirs = |place: &str| DEVICES.contains(&place) || COVERED_FILES.contains(&place);
    let without = |flag: &str| -> Vec<&str> {
        let without = mounts.iter().filter(|(place, mount)| !theirs(place) && !mount.flags.contains(flag));
        without.map(|(place, _)| *place).collect()
    };
    assert_eq!(without("ro"), ["/dev/pts", "/dev/shm", "/proc", "/tmp", "/work"], "{said}");
    assert_eq!(without("nosuid"), [""; 0], "{said}");
    // Terminals are devices.
    assert_eq!(without("nodev"), ["/dev", "/dev/pts"], "{said}");
    let shared: Vec<&str> = mounts.values().flat_map(|mount| mount.propagation.iter().copied()).collect();
    assert!(shared.is_empty(), "{shared:?}:\n{said}");
}

/// No file system can show another one's `/proc/sys`, as it can't show what is nested too deep.
async fn inputs_arrive_after_one_that_can_not_be_shown() {
    let input = directory();
    fs_err::write(input.path().join("file"), "after").unwrap();
    let steps = vec![step(&["cat", "/input/odd"]), step(&["cat", "/input/file"])];
    let mut spec = spec(loaded_image(&*engine().await).await, steps);
    spec.mounts.push(mount(std::path::Path::new("/proc/sys/kernel/ostype"), "/input/odd"));
    spec.mounts.push(mount(&input.path().join("file"), "/input/file"));
    let run = finish(&spec).await;
    assert_eq!([0, 1].map(|index| run.stdout(index)), ["Linux\n", "after"]);
}

/// Returns what a table of mounts says besides the kernel's own numbers of mounts and file systems.
fn without_numbers(text: &str) -> Vec<String> {
    let rest = |line: &str| line.split(' ').skip(3).collect::<Vec<_>>().join(" ");
    text.lines().map(rest).collect()
}

async fn mounts_and_groups_tell_nothing_of_the_host_and_no_container_from_another() {
    let image = loaded_image(&*engine().await).await;
    let tables = async |inputs: &tempfile::TempDir| {
        for name in ["file", "beside"] {
            fs_err::write(inputs.path().join(name), name).unwrap();
        }
        fs_err::create_dir(inputs.path().join("directory")).unwrap();
        let late = inputs.path().join("directory/late");
        let read = ["/proc/self/mountinfo", "/proc/self/cgroup", "/input/file", "/input/directory/late"];
        let mut spec = spec(image, read.iter().map(|path| step(&["cat", path])).collect());
        spec.program.steps.push(step(&["existing", "/input/beside", "/input/.."]));
        spec.mounts.push(mount(&inputs.path().join("file"), "/input/file"));
        spec.mounts.push(mount(&inputs.path().join("directory"), "/input/directory"));
        fs_err::write(late, "late").unwrap();
        finish(&spec).await
    };
    let (first, second) = (directory(), directory());
    let (run, other) = (tables(&first).await, tables(&second).await);
    assert_eq!((run.stdout(2), run.stdout(3), run.stdout(4)), ("file".into(), "late".into(), "/input/..\n".into()));
    let said = run.stdout(0);
    let init = fs_err::canonicalize(init()).unwrap();
    let host = [first.path(), init.parent().unwrap(), &unpacked(rustix::process::geteuid().as_raw())];
    for path in host {
        assert!(!said.contains(path.to_str().unwrap()), "{} is there:\n{said}", path.display());
    }
    for line in said.lines() {
        let root = line.split(' ').nth(3).unwrap();
        let known = ["/bus", "/fs", "/irq", "/sys", "/sysrq-trigger"].contains(&root)
            || DEVICES.iter().any(|device| device.ends_with(root))
            || ["/", "/file"].contains(&root)
            || Some(root.trim_start_matches('/')) == init.file_name().and_then(|name| name.to_str());
        assert!(known, "{root} is something of the host's:\n{said}");
    }
    assert_eq!(without_numbers(&said), without_numbers(&other.stdout(0)));
    let groups = run.stdout(1);
    assert!(!groups.is_empty() && groups.lines().all(|line| line.ends_with(":/")), "{groups}");
}

async fn there_is_no_user_but_the_tasks() {
    let run = steps(["uid", "gid"].map(|kind| step(&["cat", &format!("/proc/self/{kind}_map")])).into()).await;
    for index in 0..2 {
        let map = run.stdout(index);
        let numbers: Vec<&str> = map.split_whitespace().collect();
        let [inside, outside, number] = numbers[..] else { panic!("{map}") };
        assert_eq!((inside, number), ("1000", "1"), "{map}");
        assert_ne!(outside, "0", "{map}");
    }
}
