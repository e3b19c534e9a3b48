//! The container's file system, mounted in a namespace of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use fs_err as fs;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount};
use rustix::process::{Gid, Uid, chdir, pivot_root};

use super::super::spec::{SOCKET_BUFFERS, TASK_USER};
use super::plan::{Failure, Plan, Stage};

/// An empty directory beside the layers, on which containers mount. Each container sees only its own mounts there.
pub(super) const STAGE: &str = ".stage";

/// Size of `/dev/shm`, equal in the other engine.
const SHARED_MEMORY_BYTES: u64 = 64 << 20;

/// Directories of the stage beside the root: an empty one, one for views of directories, and one for views from which a
/// file is taken.
const EMPTY: &str = "empty";
const BELOW: &str = "below";
const VIEWS: &str = "views";

/// Devices that every program may expect.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Files with facts about the machine or secrets of its other users. `/dev/null` covers them.
const COVERED_FILES: [&str; 6] =
    ["proc/kcore", "proc/keys", "proc/key-users", "proc/latency_stats", "proc/timer_list", "proc/sched_debug"];

/// Directories of the same kind. Empty ones cover them.
const COVERED_DIRECTORIES: [&str; 5] =
    ["proc/acpi", "proc/asound", "proc/scsi", "sys/firmware", "sys/devices/virtual/powercap"];

/// Parts of `/proc` that control the machine. They are read-only for every user.
const READ_ONLY: [&str; 5] = ["proc/bus", "proc/fs", "proc/irq", "proc/sys", "proc/sysrq-trigger"];

/// Content of `/etc/hosts`.
const HOSTS: &str = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n";

/// Mounts everything below the stage and makes the new root the working directory.
pub(super) fn build(plan: &Plan) -> Result<(), Failure> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|error| Failure::new(Stage::Private, "/", error))?;
    let staging = |error: io::Error| Failure::new(Stage::Staging, plan.unpacked.display().to_string(), error);
    chdir(&plan.unpacked).map_err(|error| staging(error.into()))?;
    tmpfs(Path::new(STAGE), MountFlags::NOSUID | MountFlags::NODEV, "mode=0755,size=1m").map_err(staging)?;
    let (skeleton, root) = (Path::new(STAGE).join("skeleton"), Path::new(STAGE).join("root"));
    for directory in ["root", EMPTY, BELOW, VIEWS] {
        fs::create_dir(Path::new(STAGE).join(directory)).map_err(staging)?;
    }
    draw_skeleton(&skeleton, plan)?;
    mount_layers(plan, &root)?;
    chdir(&root).map_err(|error| staging(error.into()))?;
    mount_devices().map_err(|(path, error)| Failure::new(Stage::Devices, path, error))?;
    mount_processes()?;
    mount_system(plan)?;
    mount_given(plan)
}

/// Makes the tree below the stage the root, and unmounts the old root.
pub(super) fn enter() -> Result<(), Failure> {
    let failed = |what: &'static str| move |error: rustix::io::Errno| Failure::new(Stage::Root, what, error);
    // The old root is stacked on the new one, and then unmounted.
    pivot_root(".", ".").map_err(failed("pivot_root"))?;
    unmount(".", UnmountFlags::DETACH).map_err(failed("the old root"))?;
    chdir("/").map_err(failed("/"))
}

/// A place in the container's tree for a mount.
struct Given<'a> {
    target: PathBuf,
    what: What<'a>,
}

enum What<'a> {
    Input(&'a Path),
    Scratch(u64),
}

/// Returns the plan's mounts, outer places before inner ones, with paths relative to the root.
fn given(plan: &Plan) -> Result<Vec<Given<'_>>, Failure> {
    let relative = |target: &str| -> Result<PathBuf, Failure> {
        let fits = |part: &Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
        let path = Path::new(target);
        match path.strip_prefix("/") {
            Ok(relative) if path.components().all(|part| fits(&part)) && relative != Path::new("") => {
                Ok(relative.to_owned())
            }
            _ => Err(Failure::new(Stage::Mounts, target, io::Error::from_raw_os_error(libc::EINVAL))),
        }
    };
    let mut all = Vec::new();
    for input in &plan.inputs {
        all.push(Given { target: relative(&input.target)?, what: What::Input(&input.source) });
    }
    for scratch in &plan.scratch {
        all.push(Given { target: relative(&scratch.target)?, what: What::Scratch(scratch.size_bytes) });
    }
    all.sort_by_key(|given| given.target.components().count());
    Ok(all)
}

/// Creates the top layer: mount points, and a few files about the host.
fn draw_skeleton(skeleton: &Path, plan: &Plan) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::new(Stage::Staging, "skeleton", error);
    for directory in ["dev", "proc", "sys", "etc"] {
        fs::create_dir_all(skeleton.join(directory)).map_err(failed)?;
    }
    for (file, content) in [("etc/hosts", HOSTS), ("etc/hostname", "localhost\n"), ("etc/resolv.conf", "")] {
        fs::write(skeleton.join(file), content).map_err(failed)?;
    }
    std::os::unix::fs::symlink("/proc/mounts", skeleton.join("etc/mtab")).map_err(failed)?;
    for given in given(plan)? {
        make_place(&skeleton.join(&given.target), &given.what)?;
    }
    Ok(())
}

/// Creates a directory or file as a mount point, if it is missing.
fn make_place(place: &Path, what: &What<'_>) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::new(Stage::Mounts, place.display().to_string(), error);
    let is_file = match what {
        What::Scratch(_) => false,
        What::Input(source) => {
            let found = fs::metadata(source)
                .map_err(|error| Failure::new(Stage::Mounts, source.display().to_string(), error))?;
            !found.is_dir()
        }
    };
    if is_file {
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        match fs::OpenOptions::new().write(true).create_new(true).open(place) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed(error)),
            _ => Ok(()),
        }
    } else {
        fs::create_dir_all(place).map_err(failed)
    }
}

/// Mounts the layers below the skeleton. Without an upper directory, nobody can write to the tree.
fn mount_layers(plan: &Plan, root: &Path) -> Result<(), Failure> {
    // Relative names, because options have to fit into a page and a data directory may have a long path.
    let names: Vec<&str> = plan.layers.iter().map(String::as_str).collect();
    let options = format!("userxattr,lowerdir={STAGE}/skeleton:{}", names.join(":"));
    let failed = |error: io::Error| Failure::new(Stage::Layers, plan.unpacked.display().to_string(), error);
    let options = text(Path::new(&options)).map_err(failed)?;
    let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
    mount("overlay", root, "overlay", flags, Some(options.as_c_str())).map_err(|error| failed(error.into()))
}

fn mount_given(plan: &Plan) -> Result<(), Failure> {
    let mut inputs = Inputs::default();
    for Given { target, what } in given(plan)? {
        let failed = |error: io::Error| Failure::new(Stage::Mounts, format!("/{}", target.display()), error);
        make_place(&target, &what)?;
        match what {
            What::Input(source) => {
                inputs.mount(source, &target).map_err(failed)?;
                protect(&target, READ_ONLY_INPUT).map_err(failed)?;
            }
            What::Scratch(size) => {
                // Empty files, directories and links use kernel memory but no page, so their number is limited.
                let inodes = (size / 4096).max(16 << 10);
                let mode = if target == Path::new("tmp") { "1777" } else { "0755" };
                let options = format!("size={size},nr_inodes={inodes},mode={mode}");
                tmpfs(&target, MountFlags::NOSUID | MountFlags::NODEV, &options).map_err(failed)?;
                // As mount options, these ids would be shown with their outside values, which distinguish containers.
                let owner = (Some(Uid::from_raw(TASK_USER)), Some(Gid::from_raw(TASK_USER)));
                rustix::fs::chown(&target, owner.0, owner.1).map_err(|error| failed(error.into()))?;
            }
        }
    }
    Ok(())
}

/// Mounted inputs. Every process that sees a mount can read the path of its source, from the top of the source's file
/// system. That path names the host's directories and distinguishes containers. So an input is mounted as a view: a
/// file system of its own that shows a directory. The input is the view's top or a file in it.
#[derive(Default)]
struct Inputs {
    /// Views of the directories of input files.
    of_files: BTreeMap<PathBuf, PathBuf>,
    number: usize,
}

impl Inputs {
    fn mount(&mut self, source: &Path, target: &Path) -> io::Result<()> {
        let source = fs::canonicalize(source)?;
        let kind = fs::metadata(&source)?.file_type();
        let viewed = if kind.is_dir() {
            self.view(&source, target)
        } else if let (true, Some(parent), Some(name)) = (kind.is_file(), source.parent(), source.file_name()) {
            self.view_of_files(parent).and_then(|view| Ok(mount_bind(view.join(name), target)?))
        } else {
            // A view of a socket is not the socket.
            return Ok(mount_bind(&source, target)?);
        };
        match viewed {
            // Some file systems can't be shown by another one, and views can't be nested more than twice. Such an input
            // shows its path.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(mount_bind(&source, target)?),
            other => other,
        }
    }

    fn view_of_files(&mut self, parent: &Path) -> io::Result<PathBuf> {
        if let Some(view) = self.of_files.get(parent) {
            return Ok(view.clone());
        }
        // A directory that can't be shown leaves an empty place behind, so the number of shown ones is no name.
        let view = Path::new("..").join(VIEWS).join(self.number.to_string());
        fs::create_dir(&view)?;
        self.view(parent, &view)?;
        self.of_files.insert(parent.to_owned(), view.clone());
        Ok(view)
    }

    fn view(&mut self, directory: &Path, place: &Path) -> io::Result<()> {
        let below = Path::new("..").join(BELOW).join(self.number.to_string());
        self.number += 1;
        fs::create_dir(&below)?;
        mount_bind(directory, &below)?;
        // Options are shown unchanged, so they must not name paths of the host.
        let options = text(Path::new(&format!("userxattr,lowerdir={}:../{EMPTY}", below.display())))?;
        let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
        Ok(mount("overlay", place, "overlay", flags, Some(options.as_c_str()))?)
    }
}

fn mount_devices() -> Result<(), (String, io::Error)> {
    let named = |path: &str| {
        let path = path.to_owned();
        move |error: io::Error| (path, error)
    };
    tmpfs(Path::new("dev"), MountFlags::NOSUID | MountFlags::NOEXEC, "mode=0755,size=64k,nr_inodes=64")
        .map_err(named("/dev"))?;
    // A container around this one may lack a terminal.
    for device in DEVICES.into_iter().filter(|device| *device != "tty" || Path::new("/dev/tty").exists()) {
        let (source, target) = (format!("/dev/{device}"), format!("dev/{device}"));
        fs::write(&target, "").map_err(named(&source))?;
        mount_bind(&source, &target).map_err(|error| named(&source)(error.into()))?;
        // The node is the host's own. Its times would be, too: a command could set them, and a later one read them.
        protect(Path::new(&target), MOUNT_ATTR_RDONLY).map_err(named(&source))?;
    }
    for (link, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        std::os::unix::fs::symlink(target, format!("dev/{link}")).map_err(named(link))?;
    }
    fs::create_dir("dev/shm").map_err(named("/dev/shm"))?;
    let options = format!("mode=1777,size={SHARED_MEMORY_BYTES},nr_inodes=16384");
    tmpfs(Path::new("dev/shm"), MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, &options)
        .map_err(named("/dev/shm"))?;
    // Terminals of this container alone, as other engines have them.
    fs::create_dir("dev/pts").map_err(named("/dev/pts"))?;
    let options = text(Path::new("newinstance,ptmxmode=0666,mode=0620,max=64")).map_err(named("/dev/pts"))?;
    mount("devpts", "dev/pts", "devpts", MountFlags::NOSUID | MountFlags::NOEXEC, Some(options.as_c_str()))
        .map_err(|error| named("/dev/pts")(error.into()))?;
    std::os::unix::fs::symlink("pts/ptmx", "dev/ptmx").map_err(named("/dev/ptmx"))?;
    protect(Path::new("dev"), MOUNT_ATTR_RDONLY).map_err(named("/dev"))
}

fn mount_processes() -> Result<(), Failure> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "proc", "proc", flags, None).map_err(|error| Failure::new(Stage::Processes, "/proc", error))?;
    let failed = |path: &str, error: io::Error| Failure::new(Stage::Processes, format!("/{path}"), error);
    silence_version_6()?;
    for (name, value) in SOCKET_BUFFERS {
        fs::write(Path::new("proc/sys/net/ipv4").join(name), value)
            .map_err(|error| Failure::new(Stage::Loopback, name, error))?;
    }
    cover("proc/", Stage::Processes)?;
    for path in READ_ONLY.iter().filter(|path| Path::new(path).exists()) {
        mount_bind(*path, *path).map_err(|error| failed(path, error.into()))?;
        protect(Path::new(path), MOUNT_ATTR_RDONLY).map_err(|error| failed(path, error))?;
    }
    Ok(())
}

/// Makes the loopback interface use version 4 only, as in the other engine's containers without a network.
fn silence_version_6() -> Result<(), Failure> {
    match fs::write("proc/sys/net/ipv6/conf/all/disable_ipv6", "1") {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Failure::new(Stage::Loopback, "disable_ipv6", error))
        }
        _ => Ok(()),
    }
}

/// Covers files that reveal too much, below a given path.
fn cover(beginning: &str, stage: Stage) -> Result<(), Failure> {
    let there = |path: &&str| path.starts_with(beginning) && Path::new(path).exists();
    for path in COVERED_FILES.iter().copied().filter(there) {
        mount_bind("dev/null", path).map_err(|error| Failure::new(stage, format!("/{path}"), error))?;
    }
    for path in COVERED_DIRECTORIES.iter().copied().filter(there) {
        tmpfs(Path::new(path), MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV, "mode=0555,size=4k")
            .map_err(|error| Failure::new(stage, format!("/{path}"), error))?;
    }
    Ok(())
}

/// Mounts `/sys` read-only, with the container's own control groups in it, so that programs see their limits as in
/// other engines.
fn mount_system(plan: &Plan) -> Result<(), Failure> {
    let failed = |path: String, error: io::Error| Failure::new(Stage::System, path, error);
    let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    match mount("sysfs", "sys", "sysfs", flags, None) {
        Ok(()) => cover("sys/", Stage::System)?,
        // A container around this one covers parts of its /sys, so none of it is mounted.
        Err(rustix::io::Errno::PERM) => {
            tmpfs(Path::new("sys"), flags - MountFlags::RDONLY, "mode=0755,size=64k")
                .and_then(|()| fs::create_dir_all("sys/fs/cgroup"))
                .and_then(|()| protect(Path::new("sys"), MOUNT_ATTR_RDONLY))
                .map_err(|error| failed("/sys".into(), error))?;
        }
        Err(error) => return Err(failed("/sys".into(), error.into())),
    }
    let groups = Path::new("sys/fs/cgroup");
    if plan.groups.is_empty() || !groups.exists() {
        return Ok(());
    }
    let mut shown = BTreeSet::new();
    let account = |error: io::Error| Failure::new(Stage::Accounts, "/sys/fs/cgroup", error);
    if plan.groups.iter().all(|group| !group.shown_as.is_empty()) {
        tmpfs(groups, flags - MountFlags::RDONLY, "mode=0755,size=64k").map_err(account)?;
    }
    for group in &plan.groups {
        let place = groups.join(&group.shown_as);
        if !shown.insert(place.clone()) {
            continue;
        }
        fs::create_dir_all(&place).map_err(account)?;
        mount_bind(&group.directory, &place).map_err(|error| account(error.into()))?;
        protect(&place, READ_ONLY_INPUT | MOUNT_ATTR_NOEXEC).map_err(account)?;
    }
    protect(groups, MOUNT_ATTR_RDONLY).map_err(account)
}

fn tmpfs(place: &Path, flags: MountFlags, options: &str) -> io::Result<()> {
    let options = text(Path::new(options))?;
    Ok(mount("tmpfs", place, "tmpfs", flags, Some(options.as_c_str()))?)
}

const MOUNT_ATTR_RDONLY: u64 = 1;
const MOUNT_ATTR_NOSUID: u64 = 2;
const MOUNT_ATTR_NODEV: u64 = 4;
const MOUNT_ATTR_NOEXEC: u64 = 8;
const READ_ONLY_INPUT: u64 = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

/// Adds protections to a mount without removing any: those of a mount from outside must not be undone.
fn protect(place: &Path, attributes: u64) -> io::Result<()> {
    #[repr(C)]
    struct Attributes {
        set: u64,
        clear: u64,
        propagation: u64,
        namespace: u64,
    }
    let attributes = Attributes { set: attributes, clear: 0, propagation: 0, namespace: 0 };
    let place = text(place)?;
    // SAFETY: both pointers are to live values, the second of the length said.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            place.as_ptr(),
            0,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns a path in the form that the kernel takes.
pub(super) fn text(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}
