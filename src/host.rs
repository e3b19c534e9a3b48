//! Facts of this machine that say how much may be done at once: memory, processors, free disk.

use std::io;
use std::num::NonZeroUsize;
use std::path::Path;

/// Returns the number of processors that this process may use, at least 1.
pub fn processors() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Returns the memory that this process may use, in bytes: the machine's, or less where its cgroup says so; `None`
/// where neither can be read.
pub fn memory_bytes() -> Option<u64> {
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let limit = limits.iter().find_map(|path| fs_err::read_to_string(path).ok()?.trim().parse().ok());
    memory_information("MemTotal").into_iter().chain(limit).min()
}

/// Returns the memory that can be had without swapping, in bytes.
pub fn available_memory_bytes() -> Option<u64> {
    memory_information("MemAvailable")
}

/// Returns how many processes could run on average in the last minute, by the kernel's account; `None` where it can't be
/// read.
pub fn load() -> Option<f64> {
    let text = fs_err::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

fn memory_information(field: &str) -> Option<u64> {
    let text = fs_err::read_to_string("/proc/meminfo").ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    value.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Returns the bytes that this user may still write on the file system of `path`, or of its nearest ancestor that
/// exists.
///
/// # Errors
/// The file system's.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let existing = path.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(Path::new("/"));
    let found = rustix::fs::statvfs(existing)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_something_of_everything() {
        assert!(memory_bytes().unwrap() > 0);
        assert!(available_memory_bytes().unwrap() > 0);
        assert!(load().unwrap() >= 0.0);
        let directory = tempfile::tempdir().unwrap();
        let free = free_bytes(&directory.path().join("not/there/yet")).unwrap();
        assert!(free > 0);
    }
}
