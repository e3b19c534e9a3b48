//! What differs where machines share a file system: it may have no locks, run full or vanish.

use std::io;
use std::path::Path;

use rustix::fs::{statfs, syncfs};
use rustix::io::Errno;

/// The advice for errors of a file system that [`is_gone`].
pub const GONE_HINT: &str =
    "look whether the file system is mounted and its server answers; then run the same command again";

/// Tells whether an error of locking a file means that its file system has no locks.
pub fn lacks_locks(errno: Errno) -> bool {
    matches!(errno, Errno::NOLCK | Errno::NOSYS | Errno::OPNOTSUPP)
}

/// Tells whether an error means that the disk is full.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Tells whether an error means that a file system is not there any more: its server or its mount.
pub fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{HostUnreachable, NotConnected, StaleNetworkFileHandle, TimedOut};

    matches!(error.kind(), StaleNetworkFileHandle | NotConnected | TimedOut | HostUnreachable)
}

/// Waits until everything that was written to a directory's shared file system has arrived there. NFS says only then that
/// the disk was full. A local file system said so on writing.
///
/// # Errors
/// I/O errors of what was written since the directory's file system was last waited for.
pub fn wait_written(directory: &Path) -> io::Result<()> {
    if !is_local(directory)? {
        syncfs(fs_err::File::open(directory)?.file())?;
    }
    Ok(())
}

/// Tells whether a directory's file system belongs to this machine alone, so that its locks hold for everybody. On a shared
/// one, a machine may see its own locks only. Kinds that are not listed count as shared.
pub(super) fn is_local(directory: &Path) -> io::Result<bool> {
    const LOCAL: [u32; 9] = [
        0x0000_ef53, // ext2, ext3, ext4
        0x5846_5342, // XFS
        0x9123_683e, // Btrfs
        0x2fc1_2fc1, // ZFS
        0xf2f5_2010, // F2FS
        0xca45_1a4e, // bcachefs
        0x0102_1994, // tmpfs
        0x8584_58f6, // ramfs
        0x794c_7630, // overlayfs
    ];
    let kind = statfs(directory)?.f_type;
    Ok(LOCAL.iter().any(|local| i64::from(*local) == kind as i64 & 0xffff_ffff))
}
