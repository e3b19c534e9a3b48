//! Limits on memory and processes that init itself enforces, where no control group holds the container.
//!
//! The account adds up the private memory of processes: anonymous and shared memory, and files in memory-backed
//! directories. Shared memory counts once for each process. Memory that is freed between two checks is never seen. So
//! the account stops runaways but is no hard bound, and the engine's isolation says so.

use std::path::PathBuf;
use std::time::Duration;

use super::super::spec::InitLimits;

/// How fast memory can be filled, in bytes per second, for choosing when to look again.
const FILLING_SPEED: u64 = 4 << 30;

/// The shortest time between two looks.
const SHORTEST: Duration = Duration::from_millis(2);

/// What init itself watches over.
#[derive(Debug, Default)]
pub(super) struct Account {
    limits: InitLimits,
    /// Memory-backed directories of the container.
    directories: Vec<PathBuf>,
    kills: u64,
    process_limit_met: bool,
    /// The process that was ended last.
    dying: Option<i32>,
}

/// A process besides init.
struct Process {
    number: i32,
    held_bytes: u64,
    threads: u64,
}

impl Account {
    pub(super) fn new(limits: InitLimits) -> Self {
        let directories = match limits.memory_bytes {
            Some(_) => scratch(&fs_err::read_to_string("/proc/self/mountinfo").unwrap_or_default()),
            None => Vec::new(),
        };
        Self { limits, directories, kills: 0, process_limit_met: false, dying: None }
    }

    /// Returns the limit on processes; `None` if init does not enforce it.
    pub(super) fn processes(&self) -> Option<u32> {
        self.limits.processes
    }

    /// Returns how much memory a single process may ask for: a second line, which no look can miss. Twice the limit,
    /// because programs ask for more than they use.
    pub(super) fn data_bytes(&self) -> Option<u64> {
        self.limits.memory_bytes.map(|bytes| bytes.saturating_mul(2))
    }

    /// Returns how many processes the memory limit ended; `None` if init does not enforce the limit.
    pub(super) fn memory_limit_kills(&self) -> Option<u64> {
        self.limits.memory_bytes.map(|_| self.kills)
    }

    /// Returns 1 if the process limit was reached, else 0; `None` if init does not enforce the limit.
    pub(super) fn process_limit_hits(&self) -> Option<u64> {
        self.limits.processes.map(|_| self.process_limit_met.into())
    }

    /// Forgets an earlier command's counts.
    pub(super) fn begin(&mut self) {
        self.kills = 0;
        self.process_limit_met = false;
        self.dying = None;
    }

    /// Looks at what a command that has ended left: besides that there was the command itself, and its process counts.
    pub(super) fn look_at_the_end(&mut self) {
        if let Some(limit) = self.limits.processes {
            self.process_limit_met |= threads(&living()) + 2 >= u64::from(limit);
        }
    }

    /// Looks at all processes, ends the largest where they hold too much, and returns when to look again; `None` where
    /// there is nothing to watch over.
    pub(super) fn look(&mut self) -> Option<Duration> {
        if self.limits == InitLimits::default() {
            return None;
        }
        let all = living();
        if let Some(limit) = self.limits.processes {
            // Init and what passes connections on count as well.
            self.process_limit_met |= threads(&all) + 1 >= u64::from(limit);
        }
        let Some(limit) = self.limits.memory_bytes else { return Some(Duration::from_millis(50)) };
        let held: u64 = all.iter().map(|process| process.held_bytes).sum::<u64>()
            + self.directories.iter().map(used_bytes).sum::<u64>();
        if self.dying.is_some_and(|dying| all.iter().any(|process| process.number == dying)) {
            // What it holds comes back only when it is gone.
            return Some(SHORTEST);
        }
        if held > limit
            && let Some(largest) = all.iter().max_by_key(|process| process.held_bytes)
        {
            self.kills += 1;
            self.dying = Some(largest.number);
            // SAFETY: no memory is involved. One that has ended meanwhile holds nothing any more.
            unsafe { libc::kill(largest.number, libc::SIGKILL) };
            return Some(SHORTEST);
        }
        let room = Duration::from_millis((limit.saturating_sub(held)).saturating_mul(1000) / FILLING_SPEED);
        Some(room.clamp(SHORTEST, Duration::from_millis(50)))
    }
}

fn threads(all: &[Process]) -> u64 {
    all.iter().map(|process| process.threads).sum()
}

fn used_bytes(directory: &PathBuf) -> u64 {
    rustix::fs::statvfs(directory)
        .map_or(0, |found| found.f_blocks.saturating_sub(found.f_bfree).saturating_mul(found.f_frsize))
}

/// Returns the memory-backed directories that can be written to, from the content of `/proc/self/mountinfo`.
fn scratch(mounts: &str) -> Vec<PathBuf> {
    let writable = |line: &str| {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(4);
        let (point, options) = (fields.next()?, fields.next()?);
        let ours = filesystem.starts_with("tmpfs ") && options.split(',').any(|option| option == "rw");
        ours.then(|| PathBuf::from(point))
    };
    mounts.lines().filter_map(writable).collect()
}

fn living() -> Vec<Process> {
    let Ok(entries) = fs_err::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|number| *number != 1)
        .filter_map(|number| {
            let status = fs_err::read_to_string(format!("/proc/{number}/status")).ok()?;
            Some(process(number, &status))
        })
        .collect()
}

fn process(number: i32, status: &str) -> Process {
    let field = |name: &str| -> u64 {
        let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.and_then(|value| value.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    };
    let kib = field("RssAnon") + field("RssShmem") + field("VmSwap") + field("VmPTE");
    Process { number, held_bytes: kib.saturating_mul(1024), threads: field("Threads") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_holds_what_nobody_could_read_again() {
        let status = "Name:\tjava\nThreads:\t12\nVmRSS:\t 900 kB\nRssAnon:\t  700 kB\nRssFile:\t  150 kB\n\
                      RssShmem:\t  50 kB\nVmPTE:\t 4 kB\nVmSwap:\t 6 kB\n";
        let found = process(7, status);
        assert_eq!((found.number, found.threads, found.held_bytes), (7, 12, 760 * 1024));
        assert_eq!(process(8, "Name:\tended\n").held_bytes, 0);
    }

    #[test]
    fn only_directories_that_can_be_filled_count() {
        let mounts = "1 0 0:1 / / ro - overlay overlay ro\n\
                      2 1 0:2 / /work rw,nosuid,nodev - tmpfs tmpfs rw,size=1k\n\
                      3 1 0:3 / /dev ro,nosuid - tmpfs tmpfs rw\n";
        assert_eq!(scratch(mounts), [PathBuf::from("/work")]);
    }

    #[test]
    fn without_limits_nothing_is_watched() {
        let mut account = Account::new(InitLimits::default());
        assert_eq!((account.look(), account.memory_limit_kills(), account.data_bytes()), (None, None, None));
    }
}
