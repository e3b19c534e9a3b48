//! The system call filters of commands: the allow-list, and a small filter that keeps commands from steering init.
//!
//! Commands run as init's own user, and some system calls check no more than the user. A command could give process 1
//! one second of processor time (`prlimit`) or the lowest priority, and so turn its own failure into a fault of the
//! sandbox. The small filter refuses such calls with `EPERM`, the error that these calls document. It also refuses to list
//! extended attributes. An engine's own
//! filter (Docker's default profile) stays in force as well.

use std::io;

use libc::{BPF_ABS, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter};
use seccompiler::BpfProgram;

const INIT: u32 = 1;
const FIRST_X32_CALL: u32 = 0x4000_0000;
const LOAD: u32 = BPF_LD | BPF_W | BPF_ABS;
const EQUAL: u32 = BPF_JMP | BPF_JEQ | BPF_K;
const AT_LEAST: u32 = BPF_JMP | BPF_JGE | BPF_K;
const RETURN: u32 = BPF_RET | BPF_K;

/// Calls whose first argument is a process.
const ON_A_PROCESS: [libc::c_long; 5] = [
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

/// Calls whose first argument is a kind and whose second a process, a group or a user.
const ON_A_KIND: [libc::c_long; 2] = [libc::SYS_setpriority, libc::SYS_ioprio_set];

/// Calls that list extended attributes. For a file of `/sys` the kernel then keeps its times, which tells later containers how
/// many were before them. Programs that copy files take `EOPNOTSUPP` for a file system without attributes.
const LISTS_ATTRIBUTES: [libc::c_long; 3] = [libc::SYS_listxattr, libc::SYS_llistxattr, libc::SYS_flistxattr];

/// The compiled filters.
pub(super) struct Shield {
    allowed: BpfProgram,
}

impl Shield {
    /// Compiles the filters. `accounted` tells that init itself counts the memory of processes.
    pub(super) fn new(accounted: bool) -> io::Result<Self> {
        Ok(Self { allowed: super::filter::compile(accounted)? })
    }

    /// Puts the filters in force for this thread and its descendants.
    pub(super) fn raise(&self) -> io::Result<()> {
        raise(program())?;
        seccompiler::apply_filter(&self.allowed).map_err(io::Error::other)
    }
}

fn raise(mut filter: Vec<sock_filter>) -> io::Result<()> {
    let length = u16::try_from(filter.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len: length, filter: filter.as_mut_ptr() };
    // SAFETY: the program outlives the call, which copies it.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &program) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the filter. Offsets are those of `struct seccomp_data`: number 0, architecture 4, arguments from 16, 8 each.
fn program() -> Vec<sock_filter> {
    let step = |code: u32, k: u32, jt: u8, jf: u8| sock_filter { code: code as u16, jt, jf, k };
    let refuse = |errno: i32| step(RETURN, libc::SECCOMP_RET_ERRNO | errno as u32, 0, 0);
    let allow = step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0);
    let mut filter = vec![
        // Calls of other architectures have other numbers, which this filter would not recognise.
        step(LOAD, 4, 0, 0),
        step(EQUAL, ARCHITECTURE, 1, 0),
        refuse(libc::ENOSYS),
        step(LOAD, 0, 0, 0),
        step(AT_LEAST, FIRST_X32_CALL, 0, 1),
        refuse(libc::ENOSYS),
    ];
    for call in ON_A_PROCESS {
        filter.extend([
            step(EQUAL, call as u32, 0, 4),
            step(LOAD, 16, 0, 0),
            step(EQUAL, INIT, 0, 1),
            refuse(libc::EPERM),
            allow,
        ]);
    }
    for call in ON_A_KIND {
        // A single process is kind 0 for one call and kind 1 for the other. Groups and users are refused.
        let one_process = u32::from(call == libc::SYS_ioprio_set);
        filter.extend([
            step(EQUAL, call as u32, 0, 6),
            step(LOAD, 16, 0, 0),
            step(EQUAL, one_process, 0, 2),
            step(LOAD, 24, 0, 0),
            step(EQUAL, INIT, 0, 1),
            refuse(libc::EPERM),
            allow,
        ]);
    }
    for call in LISTS_ATTRIBUTES {
        filter.extend([step(EQUAL, call as u32, 0, 1), refuse(libc::EOPNOTSUPP)]);
    }
    filter.push(allow);
    filter
}

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;
