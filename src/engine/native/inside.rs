//! From a fresh process in namespaces of its own to the container's init: every protection, in one place, in its order.
//!
//! The runtime creates the control groups first, and the process is born in those of version 2. The process then takes
//! these steps:
//!
//! 1. It waits until the runtime has mapped its users, and dies with the runtime.
//! 2. It enters its control groups of version 1. From here on its groups are the top of all control groups that it
//!    and its mounts show, so no name outside of them is visible.
//! 3. Mounts, each with no more flags than it needs. No mount reaches beyond its namespace. The layers become one
//!    read-only tree. `/dev` comes next, because its `null` covers files of the next two. `/proc` has the network's
//!    version 6 switched off, files about the machine covered, and controls of the machine read-only. `/sys` is
//!    read-only and covered as well, with the control groups. The requested mounts come last: read-only inputs as views
//!    that do not show their paths, and scratch, outer places before inner ones.
//! 4. The host's name, and the loopback interface, which is the whole network. Its sockets' buffers are limited.
//! 5. The tree becomes the root, and the old root is unmounted.
//! 6. A session and a session keyring of its own. No descriptor except the three streams.
//! 7. It becomes the task's user. If its namespace has other users, as for containers of root, it moves to a new one
//!    that has only the task's user. So no right that a process might gain applies to files or processes of the host's
//!    root. All capability sets are emptied.
//! 8. No program may regain rights. It becomes dumpable, so that its user owns its files in `/proc`.
//! 9. It requests again to die with the runtime, because changing users had cancelled that.
//! 10. Signals get their default handling, and the init starts. It becomes undumpable, and enforces limits. Each
//!     command gets a session, only its own descriptors, resource limits, and last the two filters of system calls.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{DumpableBehavior, Gid, Signal, Uid};

use super::super::spec::{INIT_PATH, TASK_USER};
use super::cgroup::Entrance;
use super::mounts;
use super::plan::{Failure, Plan, Stage};
use super::users;

/// The host's name in containers: equal for all, and resolvable without a network.
const HOST_NAME: &str = "localhost";

/// The flag that keeps capabilities unchanged when users change.
const SECBIT_NO_SETUID_FIXUP: libc::c_ulong = 1 << 2;

/// The runtime's message that users are mapped.
pub(super) const GO: u8 = b'g';

/// The same message for a process that must leave users other than the task's.
pub(super) const GO_AND_LEAVE_USERS: u8 = b'l';

/// Becomes the init. Returns only after a failed step.
pub(super) fn become_init(plan: &Plan, streams: [OwnedFd; 3], entrances: &[Entrance], go: &OwnedFd) -> Failure {
    match prepare(plan, streams, entrances, go) {
        Ok(()) => start(&plan.arguments),
        Err(failure) => failure,
    }
}

fn prepare(plan: &Plan, streams: [OwnedFd; 3], entrances: &[Entrance], go: &OwnedFd) -> Result<(), Failure> {
    let at = |stage: Stage, detail: &'static str| move |error: rustix::io::Errno| Failure::new(stage, detail, error);
    // If the pipe ends without a byte, the runtime is gone.
    let mut word = [0; 1];
    match rustix::io::read(go, &mut word) {
        Ok(1) => {}
        Ok(_) => return Err(Failure::new(Stage::Namespaces, "the runtime is gone", io::Error::other(""))),
        Err(error) => return Err(Failure::new(Stage::Namespaces, "go", error)),
    }
    die_with_the_runtime(go)?;
    for (entrance, group) in entrances.iter().zip(&plan.groups) {
        let refused = |error| Failure::new(Stage::Placement, group.directory.display().to_string(), error);
        entrance.enter().map_err(refused)?;
    }
    hide_outer_groups()?;
    mounts::build(plan)?;
    rustix::system::sethostname(HOST_NAME.as_bytes()).map_err(at(Stage::HostName, HOST_NAME))?;
    raise_loopback()?;
    mounts::enter()?;
    rustix::process::setsid().map_err(at(Stage::Identity, "setsid"))?;
    join_new_keyring();
    let [input, output, complaints] = streams;
    rustix::stdio::dup2_stdin(input).map_err(at(Stage::Init, "stdin"))?;
    rustix::stdio::dup2_stdout(output).map_err(at(Stage::Init, "stdout"))?;
    rustix::stdio::dup2_stderr(complaints).map_err(at(Stage::Init, "stderr"))?;
    close_the_rest()?;
    become_the_task(word == [GO_AND_LEAVE_USERS])?;
    give_up_capabilities()?;
    rustix::thread::set_no_new_privs(true).map_err(at(Stage::Privileges, "no new privileges"))?;
    // No other process is in the container yet, and init becomes undumpable as its first action. The owner of its files
    // in /proc follows this flag.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable).map_err(at(Stage::Privileges, "dumpable"))?;
    die_with_the_runtime(go)
}

fn start(arguments: &[String]) -> Failure {
    let failed = |error: io::Error| Failure::new(Stage::Init, INIT_PATH, error);
    let texts: Result<Vec<CString>, _> = arguments.iter().map(|text| CString::new(text.as_str())).collect();
    let (Ok(texts), Ok(path)) = (texts, CString::new(INIT_PATH)) else {
        return failed(io::Error::from_raw_os_error(libc::EINVAL));
    };
    let pointers: Vec<*const libc::c_char> = texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect();
    let environment: [*const libc::c_char; 1] = [std::ptr::null()];
    default_signals();
    // SAFETY: both arrays end with a null pointer and hold pointers to texts that outlive the call.
    unsafe { libc::execve(path.as_ptr(), pointers.as_ptr(), environment.as_ptr()) };
    failed(io::Error::last_os_error())
}

/// Makes the process's own control groups the top of those that it sees. So no file shows paths of the groups above, or
/// names that distinguish containers.
fn hide_outer_groups() -> Result<(), Failure> {
    // SAFETY: this process has one thread, and no memory is involved.
    if unsafe { libc::unshare(libc::CLONE_NEWCGROUP) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        // A kernel without control groups has none to show.
        error if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        error => Err(Failure::new(Stage::Placement, "a namespace of control groups", error)),
    }
}

/// Requests to be killed when the runtime ends. Ends at once if the runtime has ended already.
fn die_with_the_runtime(go: &OwnedFd) -> Result<(), Failure> {
    let failed = |error| Failure::new(Stage::Namespaces, "dying with the runtime", error);
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(failed)?;
    let mut waiting = [PollFd::new(go, PollFlags::empty())];
    poll(&mut waiting, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 })).map_err(failed)?;
    if waiting[0].revents().contains(PollFlags::HUP) {
        return Err(Failure::new(Stage::Namespaces, "the runtime is gone", io::Error::other("")));
    }
    Ok(())
}

/// Starts the loopback interface.
fn raise_loopback() -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::new(Stage::Loopback, "lo", error);
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    use std::os::fd::AsRawFd as _;
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(|error| failed(error.into()))?;
    // SAFETY: ifreq is plain data for which zero bytes are a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request is a live value of the kind that this call takes.
    if unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::SIOCSIFFLAGS, &request) } != 0 {
        return Err(failed(io::Error::last_os_error()));
    }
    Ok(())
}

/// Leaves the session keyring of the user who started the engine. Kernels without keyrings need no call.
fn join_new_keyring() {
    const JOIN_SESSION_KEYRING: libc::c_long = 1;
    // SAFETY: no memory is involved but a null name.
    unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, std::ptr::null::<libc::c_char>()) };
}

/// Marks every descriptor except the three streams for closing at the start of the init.
fn close_the_rest() -> Result<(), Failure> {
    // SAFETY: no memory is involved.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if closed != 0 {
        return Err(Failure::new(Stage::Init, "close_range", io::Error::last_os_error()));
    }
    Ok(())
}

/// Becomes the task's user, without any other group. If `leaves` is set, moves to a namespace without other users.
fn become_the_task(leaves: bool) -> Result<(), Failure> {
    let failed = |what: &'static str| move |error: rustix::io::Errno| Failure::new(Stage::Identity, what, error);
    match rustix::thread::set_thread_groups(&[]) {
        // A user without root's rights may not drop groups. They give access to nothing in the container.
        Ok(()) | Err(rustix::io::Errno::PERM) => {}
        Err(error) => return Err(failed("groups")(error)),
    }
    // Keeps the rights in this namespace until the next one is made, because some machines require them for that.
    // SAFETY: no memory is involved.
    if leaves && unsafe { libc::prctl(libc::PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) } != 0 {
        return Err(Failure::new(Stage::Identity, "keeping capabilities", io::Error::last_os_error()));
    }
    let (user, group) = (Uid::from_raw(TASK_USER), Gid::from_raw(TASK_USER));
    rustix::thread::set_thread_res_gid(group, group, group).map_err(failed("group"))?;
    rustix::thread::set_thread_res_uid(user, user, user).map_err(failed("user"))?;
    if leaves {
        // The owner of its files in /proc follows this flag, and the process writes some of them.
        rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable).map_err(failed("dumpable"))?;
        users::leave_all_others()
            .map_err(|error| Failure::new(Stage::Identity, "a namespace without other users", error))?;
    }
    Ok(())
}

/// Gives up every capability for good. The bounding set comes first, because changing it needs a capability.
fn give_up_capabilities() -> Result<(), Failure> {
    for capability in 0..=63 {
        // SAFETY: no memory is involved.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } != 0 {
            match io::Error::last_os_error() {
                // The first number that the kernel does not know.
                error if error.raw_os_error() == Some(libc::EINVAL) => break,
                error => return Err(Failure::new(Stage::Capabilities, "bounding set", error)),
            }
        }
    }
    // SAFETY: no memory is involved.
    let cleared = unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
    if cleared != 0 {
        return Err(Failure::new(Stage::Capabilities, "ambient set", io::Error::last_os_error()));
    }
    let none = rustix::thread::CapabilitySets {
        effective: rustix::thread::CapabilitySet::empty(),
        permitted: rustix::thread::CapabilitySet::empty(),
        inheritable: rustix::thread::CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, none).map_err(|error| Failure::new(Stage::Capabilities, "all sets", error))
}

/// Gives every signal its default handling, because ignored signals of the caller must not reach the task. The C
/// library refuses to change signals of its own, so this calls the kernel directly.
fn default_signals() {
    const SIGNALS: libc::c_int = 64;
    // The kernel's own form of an action: handler, flags, restorer, mask. All zero is the default.
    let action = [0u64; 4];
    for signal in 1..=SIGNALS {
        // SAFETY: the action is of the kernel's size and outlives the call. Two signals can't be changed; they are default.
        unsafe {
            libc::syscall(libc::SYS_rt_sigaction, signal, action.as_ptr(), std::ptr::null::<u64>(), size_of::<u64>());
        }
    }
}
