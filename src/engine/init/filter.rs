//! The allow-list of system calls for commands, on every engine.
//!
//! A call that is not listed fails with `ENOSYS`, so that programs fall back as on older kernels: to `clone` instead of
//! `clone3`, whose flags no filter can see. A deny-list would let calls pass that only later kernels know. The list
//! leaves out calls that make namespaces and mounts, load kernel code, or look into other processes. It also leaves out
//! calls that hide secrets or memory from the account, calls that administer the machine, and obsolete ones.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

/// The last call that this list was made for (`mseal`, Linux 6.10).
const LAST: libc::c_long = 462;

/// Calls that no command needs.
const LEFT_OUT: [libc::c_long; 68] = [
    // Calls for namespaces, mounts and roots.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_clone3,
    // Calls for kernel code and its interfaces to hardware.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    // Calls on other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Calls for keys, and for memory that is hidden from the account.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_memfd_secret,
    // Calls for memory on certain nodes.
    libc::SYS_mbind,
    libc::SYS_set_mempolicy,
    libc::SYS_get_mempolicy,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_set_mempolicy_home_node,
    // Calls that administer the machine: clock, names, log, disks, power.
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_vhangup,
    libc::SYS_open_by_handle_at,
    // Obsolete calls.
    libc::SYS_nfsservctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_remap_file_pages,
    // From here on, calls that only this architecture has.
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_sysfs,
    libc::SYS_ustat,
];

/// Calls that create memory without a process, which init's account can't count.
const UNACCOUNTED: [libc::c_long; 2] = [libc::SYS_memfd_create, libc::SYS_shmget];

/// Flags of `clone` that make namespaces.
const NAMESPACES: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u64;

/// Socket domains that lead no further than this container.
const DOMAINS: [libc::c_int; 3] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];

/// Personalities that change no protection.
const PERSONALITIES: [u64; 5] = [0, 8, 0x2_0000, 0x2_0008, 0xffff_ffff];

/// Returns the filter. `accounted` tells that init itself counts the memory of processes.
pub(super) fn compile(accounted: bool) -> io::Result<BpfProgram> {
    let filter = SeccompFilter::new(
        rules(accounted).map_err(io::Error::other)?,
        SeccompAction::Errno(libc::ENOSYS.unsigned_abs()),
        SeccompAction::Allow,
        TargetArch::x86_64,
    );
    filter.and_then(BpfProgram::try_from).map_err(io::Error::other)
}

fn rules(accounted: bool) -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    let left_out = |call: &libc::c_long| LEFT_OUT.contains(call) || (accounted && UNACCOUNTED.contains(call));
    // A call without rules is allowed whatever its arguments.
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        (0..=LAST).filter(|call| !left_out(call)).map(|call| (call, Vec::new())).collect();
    let one = |argument: u8, operation: SeccompCmpOp, value: u64| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operation, value)
    };
    let equal = |argument: u8, value: u64| SeccompRule::new(vec![one(argument, SeccompCmpOp::Eq, value)?]);
    let clone = SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(NAMESPACES), 0)?;
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![clone])?]);
    let domains: Result<_, _> = DOMAINS.iter().map(|domain| equal(0, u64::from(domain.unsigned_abs()))).collect();
    rules.insert(libc::SYS_socket, domains?);
    let personalities: Result<_, _> = PERSONALITIES.iter().map(|mode| equal(0, *mode)).collect();
    rules.insert(libc::SYS_personality, personalities?);
    // `TIOCSTI` types into another process's terminal.
    let harmless =
        SeccompRule::new(vec![one(1, SeccompCmpOp::Ne, libc::TIOCSTI)?, one(1, SeccompCmpOp::Ne, libc::TIOCLINUX)?])?;
    rules.insert(libc::SYS_ioctl, vec![harmless]);
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_left_out_once_and_has_no_rule() {
        let mut sorted = LEFT_OUT.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), LEFT_OUT.len());
        let rules = rules(false).unwrap();
        assert!(LEFT_OUT.iter().all(|call| !rules.contains_key(call)));
        assert_eq!(rules.len() + LEFT_OUT.len(), usize::try_from(LAST).unwrap() + 1);
        assert!(
            rules.contains_key(&libc::SYS_memfd_create) && !super::rules(true).unwrap().contains_key(&libc::SYS_shmget)
        );
    }

    #[test]
    fn the_filter_fits_into_what_the_kernel_takes() {
        let length = compile(true).unwrap().len();
        assert!((500..4096).contains(&length), "{length}");
    }
}
