//! Limits on memory and processes that init itself enforces, where no control group limits the container.
//!
//! The account adds up the private memory of processes: anonymous and shared memory, files in memory-backed
//! directories, and bytes that wait in TCP and UDP sockets. Shared memory counts once for each process. Memory that is
//! freed between two checks is never counted. So the account stops runaways but is no hard limit, and the engine's
//! isolation says so.

use std::path::PathBuf;
use std::time::Duration;

use super::super::spec::InitLimits;

/// How fast a program can fill memory, in bytes per second. It decides the time of the next check.
const FILLING_SPEED: u64 = 4 << 30;

/// The shortest time between two checks.
const SHORTEST: Duration = Duration::from_millis(2);

/// The limits that init itself enforces, and its counts.
#[derive(Debug, Default)]
pub(super) struct Account {
    limits: InitLimits,
    /// Memory-backed directories of the container.
    directories: Vec<PathBuf>,
    kills: u64,
    process_limit_met: bool,
    /// The process that was killed last, while it still exists.
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

    /// Returns how much memory a single process may reserve: twice the limit, because programs reserve more than they
    /// use. The kernel enforces this between checks.
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

    /// Checks the processes that an ended command left. The command's own process counts as well.
    pub(super) fn look_at_the_end(&mut self) {
        if let Some(limit) = self.limits.processes {
            self.process_limit_met |= threads(&living()) + 2 >= u64::from(limit);
        }
    }

    /// Checks all processes, kills the largest if they use too much memory, and returns when to check again; `None` if
    /// init enforces no limit.
    pub(super) fn look(&mut self) -> Option<Duration> {
        if self.limits == InitLimits::default() {
            return None;
        }
        let all = living();
        if let Some(limit) = self.limits.processes {
            // Init and the forwarder count as well.
            self.process_limit_met |= threads(&all) + 1 >= u64::from(limit);
        }
        let Some(limit) = self.limits.memory_bytes else { return Some(Duration::from_millis(50)) };
        let held: u64 = all.iter().map(|process| process.held_bytes).sum::<u64>()
            + self.directories.iter().map(used_bytes).sum::<u64>()
            + SOCKETS.iter().map(Sockets::queued).sum::<u64>();
        if self.dying.is_some_and(|dying| all.iter().any(|process| process.number == dying)) {
            // The kernel frees its memory only when the process is gone.
            return Some(SHORTEST);
        }
        if held > limit
            && let Some(largest) = all.iter().max_by_key(|process| process.held_bytes)
        {
            self.kills += 1;
            self.dying = Some(largest.number);
            // SAFETY: no memory is involved. A process that has ended meanwhile uses no memory either.
            unsafe { libc::kill(largest.number, libc::SIGKILL) };
            return Some(SHORTEST);
        }
        let room = Duration::from_millis((limit.saturating_sub(held)).saturating_mul(1000) / FILLING_SPEED);
        Some(room.clamp(SHORTEST, Duration::from_millis(50)))
    }
}

/// A table of the container's sockets, one line for each socket, and where their number stands.
struct Sockets {
    table: &'static str,
    /// The file with the number, on the line of this protocol.
    counts: &'static str,
    protocol: &'static str,
}

const fn sockets(table: &'static str, counts: &'static str, protocol: &'static str) -> Sockets {
    Sockets { table, counts, protocol }
}

const SOCKETS: [Sockets; 4] = [
    sockets("/proc/net/tcp", "/proc/net/sockstat", "TCP:"),
    sockets("/proc/net/tcp6", "/proc/net/sockstat6", "TCP6:"),
    sockets("/proc/net/udp", "/proc/net/sockstat", "UDP:"),
    sockets("/proc/net/udp6", "/proc/net/sockstat6", "UDP6:"),
];

impl Sockets {
    /// Returns the bytes that wait in these sockets. For a table of TCP the kernel goes through the sockets of the whole
    /// machine, which takes milliseconds, so the number is read first.
    fn queued(&self) -> u64 {
        let counts = fs_err::read_to_string(self.counts).unwrap_or_default();
        if number_in_use(&counts, self.protocol) == Some(0) {
            return 0;
        }
        fs_err::read_to_string(self.table).map_or(0, |table| queued(&table))
    }
}

/// Returns how many sockets of a protocol there are, from the content of `sockstat`.
fn number_in_use(counts: &str, protocol: &str) -> Option<u64> {
    let line = counts.lines().find_map(|line| line.strip_prefix(protocol))?;
    let mut words = line.split_whitespace();
    words.find(|word| *word == "inuse")?;
    words.next()?.parse().ok()
}

/// Returns the bytes that wait to be received or acknowledged, from a table of sockets.
fn queued(table: &str) -> u64 {
    let bytes = |line: &str| -> Option<u64> {
        let (sent, received) = line.split_whitespace().nth(4)?.split_once(':')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some(number(sent)?.saturating_add(number(received)?))
    };
    table.lines().skip(1).filter_map(bytes).fold(0, u64::saturating_add)
}

fn threads(all: &[Process]) -> u64 {
    all.iter().map(|process| process.threads).sum()
}

fn used_bytes(directory: &PathBuf) -> u64 {
    rustix::fs::statvfs(directory)
        .map_or(0, |found| found.f_blocks.saturating_sub(found.f_bfree).saturating_mul(found.f_frsize))
}

/// Returns the writable memory-backed directories, from the content of `/proc/self/mountinfo`.
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
    fn sockets_in_use_are_counted_by_protocol() {
        let counts = "sockets: used 75\nTCP: inuse 12 orphan 0 tw 0 alloc 1 mem 91\nUDP: inuse 0 mem 0\n";
        assert_eq!([number_in_use(counts, "TCP:"), number_in_use(counts, "UDP:")], [Some(12), Some(0)]);
        // Where the kernel does not say, the table is read.
        assert_eq!([number_in_use(counts, "TCP6:"), number_in_use("TCP: none\n", "TCP:")], [None, None]);
    }

    #[test]
    fn what_waits_in_sockets_counts_for_both_directions() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
                     0: 0100007F:8CA1 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0\n\
                     1: 0100007F:8CA1 0100007F:B0C2 01 00000010:0001E848 00:00000000 00000000  1000        0 2 1 0\n";
        assert_eq!(queued(table), 16 + 125_000);
        assert_eq!(queued(""), 0);
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
