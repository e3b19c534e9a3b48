//! From a fresh process in namespaces of its own to the container's init: every protection, in one place, in its order.
//!
//! The runtime creates the control groups first, and the process is born in those of version 2. The process then takes
//! these steps:
//!
//! 1. It waits until the runtime has mapped its users, and dies with the runtime.
//! 2. It lets itself into its control groups of version 1.
//! 3. Mounts, each with the flags that it needs and no more: none goes further than its namespace; layers as one read-only
//!    tree; `/dev`, whose `null` covers files of the next two; `/proc`, in which the network's version 6 is switched off, what
//!    tells of the machine covered, and what steers it read-only; `/sys`, read-only and covered as well, with the control
//!    groups; last what was asked for, read-only inputs and scratch, outer places before inner ones.
//! 4. The host's name, the loopback interface: all the network there is.
//! 5. The tree becomes the root and the old one is let go.
//! 6. A session and a session keyring of its own; no descriptor but the three streams.
//! 7. The bounding and the ambient set of capabilities are emptied, while it may. It becomes the task's user. All other sets
//!    are emptied: who was mapped to the task's user from the beginning loses none by becoming it.
//! 8. No program may give rights back. It becomes dumpable, so that its files in `/proc` are its user's.
//! 9. It dies with the runtime, once more: changing users had undone that.
//! 10. Signals get their default meaning, and the init starts. It becomes undumpable, and keeps limits. Each command gets a
//!     session, no descriptor but its own, limits of resources, and last the two filters of system calls.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{DumpableBehavior, Gid, Signal, Uid};

use super::super::spec::{INIT_PATH, TASK_USER};
use super::cgroup::Entrance;
use super::mounts;
use super::plan::{Failure, Plan, Stage};

/// What the host calls itself inside: the same everywhere, and a name that resolves without a network.
const HOST_NAME: &str = "localhost";

/// Becomes the init; returns only where a step failed.
pub(super) fn become_init(plan: &Plan, streams: [OwnedFd; 3], entrances: &[Entrance], go: &OwnedFd) -> Failure {
    match prepare(plan, streams, entrances, go) {
        Ok(()) => start(&plan.arguments),
        Err(failure) => failure,
    }
}

fn prepare(plan: &Plan, streams: [OwnedFd; 3], entrances: &[Entrance], go: &OwnedFd) -> Result<(), Failure> {
    let at = |stage: Stage, detail: &'static str| move |error: rustix::io::Errno| Failure::new(stage, detail, error);
    // The runtime is gone where the pipe ends without a word.
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
    give_up_capabilities()?;
    become_the_task()?;
    rustix::thread::set_no_new_privs(true).map_err(at(Stage::Privileges, "no new privileges"))?;
    // Nobody else is here yet; init closes itself again as its first act. Its files in /proc follow this.
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

/// Asks to be killed when the runtime ends, and ends where it has already.
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

/// Leaves the session keyring of the user who started the engine. Kernels without keyrings have none to leave.
fn join_new_keyring() {
    const JOIN_SESSION_KEYRING: libc::c_long = 1;
    // SAFETY: no memory is involved but a null name.
    unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, std::ptr::null::<libc::c_char>()) };
}

/// Has every descriptor but the three streams closed by the start of the init.
fn close_the_rest() -> Result<(), Failure> {
    // SAFETY: no memory is involved.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if closed != 0 {
        return Err(Failure::new(Stage::Init, "close_range", io::Error::last_os_error()));
    }
    Ok(())
}

/// Gives up every capability for good: the bounding set, and what would outlive a change of users.
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
    Ok(())
}

/// Becomes the task's user, without any other group, and without any capability.
fn become_the_task() -> Result<(), Failure> {
    let failed = |what: &'static str| move |error: rustix::io::Errno| Failure::new(Stage::Identity, what, error);
    match rustix::thread::set_thread_groups(&[]) {
        // A user without root's rights may not drop groups; they open nothing in here.
        Ok(()) | Err(rustix::io::Errno::PERM) => {}
        Err(error) => return Err(failed("groups")(error)),
    }
    let (user, group) = (Uid::from_raw(TASK_USER), Gid::from_raw(TASK_USER));
    rustix::thread::set_thread_res_gid(group, group, group).map_err(failed("group"))?;
    rustix::thread::set_thread_res_uid(user, user, user).map_err(failed("user"))?;
    let none = rustix::thread::CapabilitySets {
        effective: rustix::thread::CapabilitySet::empty(),
        permitted: rustix::thread::CapabilitySet::empty(),
        inheritable: rustix::thread::CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, none).map_err(|error| Failure::new(Stage::Capabilities, "all sets", error))
}

/// Gives every signal its default meaning: what the caller's own caller ignored must not reach the task. The C library
/// refuses to touch signals that it keeps for itself, so the kernel is asked.
fn default_signals() {
    const SIGNALS: libc::c_int = 64;
    // The kernel's own form of an action: handler, flags, restorer, mask; all zero is the default one.
    let action = [0u64; 4];
    for signal in 1..=SIGNALS {
        // SAFETY: the action is of the kernel's size and outlives the call. Two signals can't be changed; they are default.
        unsafe {
            libc::syscall(libc::SYS_rt_sigaction, signal, action.as_ptr(), std::ptr::null::<u64>(), size_of::<u64>());
        }
    }
}
