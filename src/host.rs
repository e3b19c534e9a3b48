//! Facts of this machine that limit parallel work: memory, processors, free disk.

use std::io;
use std::num::NonZeroUsize;
use std::path::Path;

/// Returns the number of processors that this process may use, at least 1.
pub fn processors() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Returns the memory that this process may use, in bytes: the machine's, or the least limit of its control group and those above
/// it if that is less. `None` if none of these can be read.
pub fn memory_bytes() -> Option<u64> {
    let own = fs_err::read_to_string("/proc/self/cgroup").unwrap_or_default();
    memory_information("MemTotal").into_iter().chain(least_limit(Path::new("/sys/fs/cgroup"), &own)).min()
}

/// Returns the least memory limit of the groups that `/proc/self/cgroup` names, and of those above, in bytes.
fn least_limit(root: &Path, own: &str) -> Option<u64> {
    let groups = own.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let (below, file) = match controllers.split(',').any(|one| one == "memory") {
            true => ("memory", "memory.limit_in_bytes"),
            false if controllers.is_empty() => ("", "memory.max"),
            false => return None,
        };
        Some((root.join(below), path.trim_start_matches('/'), file))
    });
    let limits = groups.flat_map(|(root, path, file)| {
        // In a container the group's path may be one outside of it, and is not there.
        let above: Vec<_> = Path::new(path).ancestors().map(|group| root.join(group).join(file)).collect();
        above.into_iter().filter_map(|file| fs_err::read_to_string(file).ok()?.trim().parse().ok())
    });
    limits.min()
}

/// Returns the memory available without swapping, in bytes.
pub fn available_memory_bytes() -> Option<u64> {
    memory_information("MemAvailable")
}

/// Returns the kernel's load average of the last minute; `None` if it can't be read.
pub fn load() -> Option<f64> {
    let text = fs_err::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// The resources that this process has used since its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Processor time of its own threads, in milliseconds; `None` if it can't be read.
    pub cpu_ms: Option<u64>,
    /// Its largest resident size, in bytes; `None` if it can't be read.
    pub peak_resident_bytes: Option<u64>,
}

/// Returns the resources that this process has used. Child processes do not count; records contain the use of
/// containers.
pub fn process_usage() -> ProcessUsage {
    // SAFETY: rusage is plain data for which zero bytes are a value, and the call writes to it alone.
    let (returned, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::getrusage(libc::RUSAGE_SELF, &raw mut usage), usage)
    };
    let milliseconds = |time: libc::timeval| {
        let (seconds, micros) = (u64::try_from(time.tv_sec).ok()?, u64::try_from(time.tv_usec).ok()?);
        Some(seconds * 1000 + micros / 1000)
    };
    let times = milliseconds(usage.ru_utime).zip(milliseconds(usage.ru_stime)).filter(|_| returned == 0);
    ProcessUsage {
        cpu_ms: times.map(|(user, system)| user + system),
        // Not from rusage, which includes earlier programs in the same process.
        peak_resident_bytes: kibibytes("/proc/self/status", "VmHWM"),
    }
}

fn memory_information(field: &str) -> Option<u64> {
    kibibytes("/proc/meminfo", field)
}

/// Returns the bytes of a field that the kernel gives in KiB.
fn kibibytes(file: &str, field: &str) -> Option<u64> {
    let text = fs_err::read_to_string(file).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    value.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Returns the bytes that this user may still write on the file system of `path`, or of its nearest existing ancestor.
///
/// # Errors
/// I/O errors of the file system query on `path`; [`io::ErrorKind::Unsupported`] if the file system does not tell.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let existing = path.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(Path::new("/"));
    let found = rustix::fs::statvfs(existing)?;
    match found.f_blocks {
        // Some file systems of networks and programs answer with zeros.
        0 => Err(io::Error::new(io::ErrorKind::Unsupported, "its file system does not tell its size")),
        _ => Ok(found.f_bavail.saturating_mul(found.f_frsize)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_of_a_group_and_those_above_counts() {
        let directory = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = directory.path().join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        };
        let of = |own: &str| least_limit(directory.path(), own);
        assert_eq!(of("0::/slurm/job_1/step\n"), None);
        write("slurm/job_1/step/memory.max", "max\n");
        write("slurm/job_1/memory.max", "5000\n");
        write("slurm/memory.max", "9000\n");
        assert_eq!(of("0::/slurm/job_1/step\n"), Some(5000));
        assert_eq!(of("0::/slurm\n"), Some(9000));
        write("memory/slurm/memory.limit_in_bytes", "700\n");
        assert_eq!(of("4:cpu,cpuacct:/slurm\n3:memory:/slurm/job_2\n"), Some(700));
        assert_eq!(of("no group"), None);
    }

    #[test]
    fn this_machine_has_something_of_everything() {
        assert!(memory_bytes().unwrap() > 0);
        assert!(available_memory_bytes().unwrap() > 0);
        assert!(load().unwrap() >= 0.0);
        let before = process_usage();
        assert!(before.peak_resident_bytes.unwrap() > 1 << 20);
        // Until the kernel's account of this process has gone on.
        let mut sum = 0u64;
        while process_usage().cpu_ms.unwrap() <= before.cpu_ms.unwrap() {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let directory = tempfile::tempdir().unwrap();
        let free = free_bytes(&directory.path().join("not/there/yet")).unwrap();
        assert!(free > 0);
        let untold = free_bytes(Path::new("/proc/self")).unwrap_err();
        assert_eq!(untold.kind(), io::ErrorKind::Unsupported);
    }
}
