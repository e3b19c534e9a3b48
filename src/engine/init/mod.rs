//! The container's init: process 1 of every container, on the other side of the sandbox.
//!
//! It is the same program as outside. A hidden subcommand starts it before the command line or the asynchronous runtime
//! exists: one thread, blocking calls, no logging. It reads a [`Program`] as one line of JSON from stdin, does the
//! steps in order, and reports in frames on stdout. Archives that steps unpack may follow the program.
//!
//! It runs as the same user as the commands it starts. Three things protect it from them: signals from inside never
//! reach process 1; it is not dumpable, so its descriptors and memory are closed to them; and the `shield`. After a
//! command, init kills and reaps every other process before it reads any file that the command left.

mod account;
mod cgroup;
mod command;
mod filter;
mod forward;
mod reap;
mod removal;
pub(in crate::engine) mod report;
mod send;
mod shield;
mod spawn;
pub(in crate::engine) mod tree;
mod unpack;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::ExitCode;
use std::time::Instant;

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};

use self::account::Account;
use self::cgroup::Cgroup;
use self::forward::Door;
use self::report::Reporter;
use self::shield::Shield;
use self::tree::StepError;
use super::spec::{
    INIT_SUBCOMMAND, InitLimits, MAX_PROGRAM_BYTES, PROGRAM_SCHEMA, Program, ProgramEnd, Step, StepReport, StepResult,
};

/// Exit status of an init that could not tell its reason in frames.
pub const EXIT_UNUSABLE: u8 = 125;

/// Tells whether this process was started as an init. Must be called before threads exist.
pub fn is_wanted() -> bool {
    std::env::args_os().nth(1).as_deref() == Some(OsStr::new(INIT_SUBCOMMAND))
}

/// Runs as the init until the program is over. Exit status 0 tells that every frame was sent.
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing else can be told. The engine reads stderr; the task has no access to it.
            let _ = writeln!(io::stderr(), "container-init: {error}");
            ExitCode::from(EXIT_UNUSABLE)
        }
    }
}

/// Errors that end init without a report.
#[derive(Debug, thiserror::Error)]
enum InitError {
    #[error("this must be process 1 of a container: it ends every process that it can reach")]
    NotProcessOne,
    #[error("{0}: {1}")]
    Setup(&'static str, io::Error),
    #[error("could not report: {0}")]
    Report(#[from] report::ReportError),
}

fn run() -> Result<(), InitError> {
    // Before anything else: from here on, no process in the container may look into this one.
    let setup = |what| move |error: rustix::io::Errno| InitError::Setup(what, error.into());
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .map_err(setup("not dumpable"))?;
    if !rustix::process::getpid().is_init() {
        return Err(InitError::NotProcessOne);
    }
    rustix::thread::set_no_new_privs(true).map_err(setup("no new privileges"))?;
    rustix::process::umask(Mode::WGRP | Mode::WOTH);
    let children = reap::Children::watch().map_err(|error| InitError::Setup("signals", error))?;
    let mut reporter = Reporter::begin()?;
    let limits = match own_limits() {
        Ok(limits) => limits,
        Err(reason) => return Ok(reporter.end(&ProgramEnd::Rejected { reason })?),
    };
    let shield = Shield::new(limits.memory_bytes.is_some()).map_err(|error| InitError::Setup("filter", error))?;
    let program = match keep_input()
        .and_then(|mut input| Ok((read_program(&mut input)?, input)))
        .and_then(|(program, input)| Ok((Door::open(program.door_port)?, program, input)))
    {
        Ok(ready) => ready,
        Err(reason) => return Ok(reporter.end(&ProgramEnd::Rejected { reason })?),
    };
    let (door, program, input) = program;
    let (cgroup, account) = (Cgroup::discover(), Account::new(limits));
    let mut session = Session { children, door, cgroup, account, shield, reporter, input: Some(input) };
    let end = session.perform(&program)?;
    Ok(session.reporter.end(&end)?)
}

/// Keeps standard input for archives and for a command that converses. An empty one takes its place, so no other command
/// can read the bytes that follow the program.
fn keep_input() -> Result<BufReader<File>, String> {
    let input = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 10)
        .map_err(|error| format!("standard input could not be kept: {error}"))?;
    let empty = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .and_then(rustix::stdio::dup2_stdin);
    empty.map_err(|error| format!("stdin could not be replaced by /dev/null: {error}"))?;
    Ok(BufReader::with_capacity(64 << 10, File::from(input)))
}

/// Returns the limits that init must enforce, as given by the engine.
fn own_limits() -> Result<InitLimits, String> {
    match std::env::args().nth(2) {
        None => Ok(InitLimits::default()),
        Some(text) => serde_json::from_str(&text).map_err(|error| format!("the limits can't be understood: {error}")),
    }
}

/// Reads the program, which is the input's first line.
fn read_program(input: &mut BufReader<File>) -> Result<Program, String> {
    let mut line = Vec::new();
    let mut input = input.take(MAX_PROGRAM_BYTES as u64 + 1);
    input.read_until(b'\n', &mut line).map_err(|error| format!("the program could not be read: {error}"))?;
    if line.len() > MAX_PROGRAM_BYTES {
        return Err(format!("the program is longer than {MAX_PROGRAM_BYTES} bytes"));
    }
    let program: Program =
        serde_json::from_slice(&line).map_err(|error| format!("the program can't be understood: {error}"))?;
    if program.schema != PROGRAM_SCHEMA {
        return Err(format!("the program has schema {}, this init knows {PROGRAM_SCHEMA}", program.schema));
    }
    Ok(program)
}

/// Everything that steps need.
struct Session {
    children: reap::Children,
    door: Option<Door>,
    cgroup: Cgroup,
    account: Account,
    shield: Shield,
    reporter: Reporter,
    /// Standard input after the program; `None` once a command has it.
    input: Option<BufReader<File>>,
}

impl Session {
    fn perform(&mut self, program: &Program) -> Result<ProgramEnd, InitError> {
        let mut succeeded = vec![false; program.steps.len()];
        for (index, step) in program.steps.iter().enumerate() {
            let started = Instant::now();
            let result = self.perform_step(index, step, &succeeded)?;
            let wall_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            let may_fail = matches!(step, Step::Run(command) if !command.required);
            let (success, fatal) = match &result {
                StepResult::Done => (true, false),
                StepResult::Ended(end) if end.exit_code == Some(0) && end.limit.is_none() => (true, false),
                StepResult::Ended(_) | StepResult::Failed { .. } => (false, !may_fail),
                StepResult::Absent | StepResult::Cut { .. } | StepResult::Refused { .. } | StepResult::Skipped => {
                    (false, false)
                }
            };
            if let Some(slot) = succeeded.get_mut(index) {
                *slot = success;
            }
            self.reporter.step_end(&StepReport { index, result, wall_ms })?;
            if fatal {
                self.discard_archives(program.steps.get(index + 1..).unwrap_or_default());
                return Ok(ProgramEnd::Stopped { step: index });
            }
        }
        Ok(ProgramEnd::Completed)
    }

    /// Reads the archives of steps that will not be performed. Podman loses the reports of a container that ends with unread
    /// input.
    fn discard_archives(&mut self, steps: &[Step]) {
        let bytes = steps.iter().filter_map(|step| match step {
            Step::UnpackInput { bytes, .. } => Some(*bytes),
            _ => None,
        });
        let Some(input) = &mut self.input else { return };
        // An input that ends early changes nothing: the program has stopped.
        let _ = io::copy(&mut input.take(bytes.fold(0, u64::saturating_add)), &mut io::sink());
    }

    fn perform_step(&mut self, index: usize, step: &Step, succeeded: &[bool]) -> Result<StepResult, InitError> {
        let outcome = match step {
            Step::Unpack { archive, into } => unpack::unpack(archive, into).map(|()| StepResult::Done),
            Step::UnpackInput { bytes, into } => match &mut self.input {
                Some(input) => unpack::unpack_input(input, *bytes, into).map(|()| StepResult::Done),
                None => Err(StepError::failed("standard input was taken by an earlier step", None)),
            },
            Step::Remove { path } => removal::remove(path).map(|()| StepResult::Done),
            Step::Empty { path } => removal::empty(path).map(|()| StepResult::Done),
            Step::MakeDirectory { path } => tree::open_directory(path, true).map(|_| StepResult::Done),
            Step::Write { path, content } => tree::write(path, content.as_bytes()).map(|()| StepResult::Done),
            Step::Run(command) => {
                if command.only_after_success_of.is_some_and(|needed| succeeded.get(needed) != Some(&true)) {
                    return Ok(StepResult::Skipped);
                }
                command::run(self, index, command, None)
            }
            Step::Converse(command) => match self.input.take() {
                // The other side sends nothing more before it has heard from this step.
                Some(input) => command::run(self, index, command, Some(OwnedFd::from(input.into_inner()))),
                None => Err(StepError::failed("standard input was taken by an earlier step", None)),
            },
            Step::SendFile { path, max_bytes } => send::file(&mut self.reporter, index, path, *max_bytes),
            Step::SendListing { root, max_files } => send::listing(&mut self.reporter, index, root, *max_files),
            Step::SendArchive { root, max_bytes } => send::archive(&mut self.reporter, index, root, *max_bytes),
        };
        match outcome {
            Ok(result) => Ok(result),
            Err(StepError::Report(error)) => Err(InitError::Report(error)),
            Err(StepError::Absent) => Ok(StepResult::Absent),
            Err(StepError::Refused(reason)) => Ok(StepResult::Refused { reason: shortened(reason) }),
            Err(StepError::Failed { error, errno }) => Ok(StepResult::Failed { error: shortened(error), errno }),
        }
    }
}

/// Shortens a text with a hostile path to the length that a frame may have.
fn shortened(text: String) -> String {
    const LONGEST: usize = 2048;
    if text.len() <= LONGEST { text } else { text.chars().take(LONGEST / 4).chain("…".chars()).collect() }
}
