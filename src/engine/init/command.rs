//! Running one command within its limits.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::super::spec::{Command, CommandEnd, CommandLimits, LimitReached, StepResult, Stream};
use super::Session;
use super::reap::{Ended, Reaped, timespec};
use super::report::{ReportError, Reporter};
use super::spawn::{self, Started};
use super::tree::StepError;

/// Interval between checks of limits, and the longest time that output stays in init.
const TICK: Duration = Duration::from_millis(50);

/// Bytes that are collected before a frame is sent.
const FRAME: usize = 32 << 10;

/// Runs the command to its end, and ends all processes that it left.
///
/// A command with an `input` of its own converses: its output is sent at once.
pub(super) fn run(
    session: &mut Session,
    index: usize,
    command: &Command,
    input: Option<OwnedFd>,
) -> Result<StepResult, StepError> {
    let Session { children, door, cgroup, account, shield, reporter, .. } = session;
    account.begin();
    let converses = input.is_some();
    let hits_before = cgroup.process_limit_hits();
    let kills_before = cgroup.memory_limit_kills();
    let time_before = cgroup.processor_time();
    let forwarder = match door {
        Some(door) => Some(door.start().map_err(|error| {
            StepError::failed(format!("the door's forwarder could not be started: {error}"), error.raw_os_error())
        })?),
        None => None,
    };
    let broken = |error: std::io::Error| StepError::failed(format!("init: {error}"), error.raw_os_error());
    let started = Instant::now();
    let Started { process, stdout, stderr, events } = match spawn::spawn(command, input, account, shield) {
        Ok(started) => started,
        Err(error) => {
            // Ends the forwarder, or a child that failed before its exec.
            children.end_all(|_| {}).map_err(broken)?;
            return Err(error);
        }
    };
    let mut output = Output::new(index, command.limits, [Some(stdout), Some(stderr), events]);
    let mut sums = Sums { process, forwarder, ..Sums::default() };
    let deadline = started.checked_add(Duration::from_secs(command.limits.wall_seconds));
    let cpu_limit = Duration::from_secs(command.limits.cpu_seconds);
    let mut next_tick = started + TICK;
    let mut next_look = account.look().map(|time| started + time);
    let limit = loop {
        let next = next_look.map_or(next_tick, |look| look.min(next_tick));
        let woken = output.wait(children.readiness(), next.saturating_duration_since(Instant::now()));
        if woken.map_err(broken)? {
            children.acknowledge().map_err(broken)?;
            while let Reaped::One(ended) = children.next_ended().map_err(broken)? {
                sums.add(ended);
            }
        }
        output.read(reporter)?;
        if converses {
            output.flush(reporter)?;
        }
        if sums.end.is_some() {
            break None;
        }
        if output.seen > command.limits.flood_bytes {
            break Some(LimitReached::Output);
        }
        let now = Instant::now();
        if deadline.is_some_and(|deadline| now >= deadline) {
            break Some(LimitReached::Wall);
        }
        if next_look.is_some_and(|look| now >= look) {
            next_look = account.look().map(|time| now + time);
        }
        if now >= next_tick {
            next_tick = now + TICK;
            output.flush(reporter)?;
            if processor_time(cgroup.processor_time(), time_before, sums.cpu) >= cpu_limit {
                break Some(LimitReached::Cpu);
            }
        }
    };
    // The remaining processes show whether the command reached the process limit since the last check.
    if sums.end.is_some() {
        account.look_at_the_end();
    }
    children.end_all(|ended| sums.add_killed(ended)).map_err(broken)?;
    // No process has the pipes open any more, so they receive no further bytes.
    output.drain(reporter)?;
    let time = match (cgroup.processor_time(), time_before) {
        (Some(after), Some(before)) => after.saturating_sub(before),
        _ => sums.cpu,
    };
    let end = sums.end;
    Ok(StepResult::Ended(CommandEnd {
        exit_code: end.and_then(|end| end.exit_code),
        signal: end.and_then(|end| end.signal),
        limit,
        cpu_ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
        peak_resident_bytes: sums.peak_resident_bytes,
        dropped_bytes: output.dropped,
        leftover_processes: sums.leftover,
        process_limit_hits: account
            .process_limit_hits()
            .or_else(|| difference(cgroup.process_limit_hits(), hits_before)),
        memory_limit_kills: account
            .memory_limit_kills()
            .or_else(|| difference(cgroup.memory_limit_kills(), kills_before)),
    }))
}

fn difference(after: Option<u64>, before: Option<u64>) -> Option<u64> {
    Some(after?.saturating_sub(before?))
}

/// Returns the processor time of the command so far: by the control group, or else the sum over all processes. The sum
/// misses processes whose parents never wait for them.
fn processor_time(now: Option<Duration>, before: Option<Duration>, reaped: Duration) -> Duration {
    match (now, before) {
        (Some(now), Some(before)) => now.saturating_sub(before),
        _ => reaped + living_processor_time(),
    }
}

/// Returns the time of all living processes except init, and of their own reaped children.
fn living_processor_time() -> Duration {
    let Ok(entries) = fs_err::read_dir("/proc") else {
        return Duration::ZERO;
    };
    let ticks: u64 = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|process| *process != 1)
        .filter_map(|process| fs_err::read_to_string(format!("/proc/{process}/stat")).ok())
        .filter_map(|stat| {
            // utime, stime, cutime and cstime are fields 14 to 17. The second field may contain anything, but ends at
            // the last `)`.
            let fields = stat.rsplit_once(')')?.1;
            Some(fields.split_whitespace().skip(11).take(4).filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>())
        })
        .sum();
    // Not rustix: before Linux 6.4 it reads a file of /proc that is closed to an undumpable process, and panics.
    // SAFETY: no memory is involved.
    let per_second = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(0).max(1);
    Duration::from_millis(ticks.saturating_mul(1000) / per_second)
}

/// The results of a command's processes.
#[derive(Default)]
struct Sums {
    process: i32,
    forwarder: Option<i32>,
    end: Option<Ended>,
    cpu: Duration,
    peak_resident_bytes: u64,
    leftover: u32,
}

impl Sums {
    fn add(&mut self, ended: Ended) {
        if Some(ended.process) == self.forwarder {
            return;
        }
        self.cpu += ended.cpu;
        self.peak_resident_bytes = self.peak_resident_bytes.max(ended.peak_resident_bytes);
        if ended.process == self.process {
            self.end = Some(ended);
        }
    }

    fn add_killed(&mut self, ended: Ended) {
        self.add(ended);
        let own = ended.process == self.process || Some(ended.process) == self.forwarder;
        if !own && ended.signal == Some(libc::SIGKILL) {
            self.leftover = self.leftover.saturating_add(1);
        }
    }
}

/// The command's pipes.
struct Output {
    step: usize,
    limits: CommandLimits,
    pipes: [Pipe; 3],
    buffer: Vec<u8>,
    seen: u64,
    dropped: u64,
}

struct Pipe {
    stream: Stream,
    /// `None` once everyone has closed the other end.
    read: Option<OwnedFd>,
    ready: bool,
    kept: u64,
    unsent: Vec<u8>,
}

impl Output {
    fn new(step: usize, limits: CommandLimits, reads: [Option<OwnedFd>; 3]) -> Self {
        let [stdout, stderr, events] = reads;
        let pipe = |stream, read: Option<OwnedFd>| Pipe { stream, read, ready: false, kept: 0, unsent: Vec::new() };
        let pipes = [pipe(Stream::Stdout, stdout), pipe(Stream::Stderr, stderr), pipe(Stream::Events, events)];
        Self { step, limits, pipes, buffer: vec![0; 256 << 10], seen: 0, dropped: 0 }
    }

    /// Waits for output, an ended child, or the time. Tells whether a child ended.
    fn wait(&mut self, children: impl AsFd, time: Duration) -> std::io::Result<bool> {
        let children = children.as_fd();
        let mut waiting = vec![PollFd::new(&children, PollFlags::IN)];
        waiting.extend(self.pipes.iter().filter_map(|pipe| Some(PollFd::new(pipe.read.as_ref()?, PollFlags::IN))));
        match poll(&mut waiting, Some(&timespec(time))) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<bool> = waiting.iter().map(|entry| !entry.revents().is_empty()).collect();
        let open = self.pipes.iter_mut().filter(|pipe| pipe.read.is_some());
        for (pipe, ready) in open.zip(&ready[1..]) {
            pipe.ready = *ready;
        }
        Ok(ready[0])
    }

    /// Reads once from every pipe that is ready.
    fn read(&mut self, reporter: &mut Reporter) -> Result<(), StepError> {
        for pipe in &mut self.pipes {
            if !std::mem::take(&mut pipe.ready) {
                continue;
            }
            let Some(read) = &pipe.read else { continue };
            match rustix::io::read(read, &mut self.buffer) {
                Ok(0) => pipe.read = None,
                Ok(length) => {
                    self.seen += length as u64;
                    let room = self.limits.output_bytes.saturating_sub(pipe.kept);
                    let keep = length.min(usize::try_from(room).unwrap_or(usize::MAX));
                    pipe.kept += keep as u64;
                    self.dropped += (length - keep) as u64;
                    pipe.unsent.extend_from_slice(&self.buffer[..keep]);
                    if pipe.unsent.len() >= FRAME {
                        pipe.send(reporter, self.step).map_err(StepError::Report)?;
                    }
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => return Err(StepError::at("the command's output", errno)),
            }
        }
        Ok(())
    }

    fn flush(&mut self, reporter: &mut Reporter) -> Result<(), StepError> {
        self.pipes.iter_mut().try_for_each(|pipe| pipe.send(reporter, self.step)).map_err(StepError::Report)
    }

    /// Reads the rest. It ends because all writers are dead.
    fn drain(&mut self, reporter: &mut Reporter) -> Result<(), StepError> {
        while self.pipes.iter().any(|pipe| pipe.read.is_some()) {
            for pipe in &mut self.pipes {
                pipe.ready = pipe.read.is_some();
            }
            self.read(reporter)?;
        }
        self.flush(reporter)
    }
}

impl Pipe {
    fn send(&mut self, reporter: &mut Reporter, step: usize) -> Result<(), ReportError> {
        if !self.unsent.is_empty() {
            reporter.output(step, self.stream, &self.unsent)?;
            self.unsent.clear();
        }
        Ok(())
    }
}
