//! Starts a command: everything between fork and exec.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};

use super::super::spec::Command;
use super::account::Account;
use super::shield::Shield;
use super::tree::StepError;

/// Most descriptors that a command may have open.
const MAX_OPEN_FILES: libc::rlim_t = 4096;

/// How far the kernel's own limit of processor time exceeds init's limit. Only init can name the cause.
const CPU_MARGIN_SECONDS: u64 = 5;

/// A command that was started.
pub(super) struct Started {
    pub(super) process: i32,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    pub(super) events: Option<OwnedFd>,
}

/// The child's step that failed. Init describes it in words.
#[repr(u8)]
#[derive(Clone, Copy)]
enum Stage {
    Session = 1,
    Descriptors,
    Limits,
    OutOfMemoryScore,
    Directory,
    Shield,
    Program,
}

impl Stage {
    fn words(number: u8) -> &'static str {
        match number {
            1 => "a session of its own",
            2 => "its standard streams",
            3 => "its resource limits",
            4 => "its out-of-memory score",
            5 => "its working directory",
            6 => "its system call filter",
            _ => "the program",
        }
    }
}

/// Starts the command in a session of its own. Of init's descriptors it gets only the pipes and its input.
pub(super) fn spawn(
    command: &Command,
    input: Option<OwnedFd>,
    account: &Account,
    shield: &Shield,
) -> Result<Started, StepError> {
    let program = command.argv.first().ok_or_else(|| StepError::failed("a command without a program", None))?;
    let failed = |what: &str, error: io::Error| {
        StepError::failed(format!("`{program}` could not be started: {what}: {error}"), error.raw_os_error())
    };
    let text = |text: &str| {
        CString::new(text).map_err(|_| StepError::failed(format!("`{program}`: a zero byte in its arguments"), None))
    };
    let path = find_program(program, &command.environment);
    let path = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| StepError::failed("a zero byte in a program's name", None))?;
    let directory = text(&command.working_directory)?;
    let arguments = command.argv.iter().map(|argument| text(argument)).collect::<Result<Vec<_>, _>>()?;
    let environment = command
        .environment
        .iter()
        .map(|(name, value)| text(&format!("{name}={value}")))
        .collect::<Result<Vec<_>, _>>()?;
    let pointers = |texts: &[CString]| {
        texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect::<Vec<*const libc::c_char>>()
    };
    let (argument_pointers, environment_pointers) = (pointers(&arguments), pointers(&environment));

    let pipes =
        || -> io::Result<_> { Ok((pipe()?, pipe()?, if command.events { Some(pipe()?) } else { None }, pipe()?)) };
    let (stdout, stderr, events, status) = pipes().map_err(|error| failed("its pipes", error))?;
    let child = Child {
        shield,
        path: &path,
        arguments: &argument_pointers,
        environment: &environment_pointers,
        directory: &directory,
        input: input.as_ref().map(AsRawFd::as_raw_fd),
        stdout: stdout.1.as_raw_fd(),
        stderr: stderr.1.as_raw_fd(),
        events: events.as_ref().map(|(_, write)| write.as_raw_fd()),
        cpu_seconds: command.limits.cpu_seconds.saturating_add(CPU_MARGIN_SECONDS),
        processes: account.processes(),
        data_bytes: account.data_bytes(),
    };
    // SAFETY: this process has one thread, so the child may do whatever the parent may.
    let process = unsafe { libc::fork() };
    if process == 0 {
        let (stage, error) = child.become_command();
        let [a, b, c, d] = error.raw_os_error().unwrap_or(0).to_le_bytes();
        // If even this fails, init sees the end of the pipe.
        let _ = rustix::io::write(&status.1, &[stage as u8, a, b, c, d]);
        // SAFETY: ends the child without running anything that was registered in the parent.
        unsafe { libc::_exit(127) }
    }
    if process < 0 {
        return Err(failed("fork", io::Error::last_os_error()));
    }
    drop((stdout.1, stderr.1, status.1));
    let events = events.map(|(read, _)| read);
    let mut failure = [0; 5];
    let received = loop {
        match rustix::io::read(&status.0, &mut failure) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other.map_err(|error| failed("its start", error.into()))?,
        }
    };
    // If the pipe ends without a byte, exec succeeded or the child was killed before. The child's status tells which.
    if received == failure.len() {
        let [stage, errno @ ..] = failure;
        return Err(failed(Stage::words(stage), io::Error::from_raw_os_error(i32::from_le_bytes(errno))));
    }
    for read in [Some(&stdout.0), Some(&stderr.0), events.as_ref()].into_iter().flatten() {
        rustix::fs::fcntl_setfl(read, OFlags::NONBLOCK).map_err(|error| failed("its pipes", error.into()))?;
    }
    Ok(Started { process, stdout: stdout.0, stderr: stderr.0, events })
}

/// Returns a pipe with descriptors above those that the child arranges.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((rustix::io::fcntl_dupfd_cloexec(read, 10)?, rustix::io::fcntl_dupfd_cloexec(write, 10)?))
}

/// Looks a bare name up in the command's own `PATH`. An unknown name stays unchanged, and exec reports the error.
fn find_program(program: &str, environment: &[(String, String)]) -> PathBuf {
    if program.contains('/') {
        return program.into();
    }
    let directories = environment.iter().rev().find(|(name, _)| name == "PATH").map_or("", |(_, value)| value.as_str());
    directories
        .split(':')
        .filter(|directory| directory.starts_with('/'))
        .map(|directory| Path::new(directory).join(program))
        .find(|candidate| candidate.is_file() && rustix::fs::access(candidate, Access::EXEC_OK).is_ok())
        .unwrap_or_else(|| Path::new(OsStr::new(program)).to_owned())
}

struct Child<'a> {
    shield: &'a Shield,
    path: &'a CString,
    arguments: &'a [*const libc::c_char],
    environment: &'a [*const libc::c_char],
    directory: &'a CString,
    input: Option<i32>,
    stdout: i32,
    stderr: i32,
    events: Option<i32>,
    cpu_seconds: u64,
    processes: Option<u32>,
    data_bytes: Option<u64>,
}

impl Child<'_> {
    /// Returns only after a failure.
    fn become_command(&self) -> (Stage, io::Error) {
        let checked = |stage: Stage, result: libc::c_long| {
            if result < 0 { Err((stage, io::Error::last_os_error())) } else { Ok(()) }
        };
        let prepare = || -> Result<(), (Stage, io::Error)> {
            // SAFETY: all calls take plain numbers, or pointers to values that live until exec.
            unsafe {
                checked(Stage::Session, libc::setsid().into())?;
                if let Some(input) = self.input {
                    checked(Stage::Descriptors, libc::dup2(input, 0).into())?;
                }
                checked(Stage::Descriptors, libc::dup2(self.stdout, 1).into())?;
                checked(Stage::Descriptors, libc::dup2(self.stderr, 2).into())?;
                let mut first_closed: libc::c_uint = 3;
                if let Some(events) = self.events {
                    checked(Stage::Descriptors, libc::dup2(events, 3).into())?;
                    first_closed = 4;
                }
                let close =
                    libc::syscall(libc::SYS_close_range, first_closed, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
                if close < 0 {
                    // For kernels before 5.11. Init also marks each of its descriptors as close-on-exec, so this is a
                    // second protection. Any other cause is reported.
                    let error = io::Error::last_os_error();
                    if !matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL | libc::EPERM)) {
                        return Err((Stage::Descriptors, error));
                    }
                }
                limit(libc::RLIMIT_CORE, 0)?;
                limit(libc::RLIMIT_NOFILE, MAX_OPEN_FILES)?;
                limit(libc::RLIMIT_CPU, self.cpu_seconds)?;
                if let Some(processes) = self.processes {
                    limit(libc::RLIMIT_NPROC, processes.into())?;
                }
                if let Some(bytes) = self.data_bytes {
                    limit(libc::RLIMIT_DATA, bytes)?;
                }
                // Root owns this file while the process is not dumpable. Exec would end that state anyway.
                checked(Stage::OutOfMemoryScore, libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0).into())?;
                #[expect(clippy::disallowed_methods, reason = "the stage names the file")]
                std::fs::write("/proc/self/oom_score_adj", "1000").map_err(|error| (Stage::OutOfMemoryScore, error))?;
                checked(Stage::Directory, libc::chdir(self.directory.as_ptr()).into())?;
                for signal in 1..=64 {
                    // Two signals can't be set, which changes nothing.
                    libc::signal(signal, libc::SIG_DFL);
                }
                let mut none: libc::sigset_t = std::mem::zeroed();
                libc::sigemptyset(&mut none);
                checked(Stage::Session, libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut()).into())?;
                self.shield.raise().map_err(|error| (Stage::Shield, error))
            }
        };
        if let Err(failure) = prepare() {
            return failure;
        }
        // SAFETY: both arrays end with a null pointer and hold pointers to texts that outlive the call.
        unsafe { libc::execve(self.path.as_ptr(), self.arguments.as_ptr(), self.environment.as_ptr()) };
        (Stage::Program, io::Error::last_os_error())
    }
}

/// Sets a limit permanently, or keeps a lower one.
fn limit(resource: libc::__rlimit_resource_t, value: libc::rlim_t) -> Result<(), (Stage, io::Error)> {
    let mut current = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointers are to live values.
    unsafe {
        if libc::getrlimit(resource, &mut current) != 0 {
            return Err((Stage::Limits, io::Error::last_os_error()));
        }
        let value = value.min(current.rlim_max);
        let wanted = libc::rlimit { rlim_cur: value, rlim_max: value };
        if libc::setrlimit(resource, &wanted) != 0 {
            return Err((Stage::Limits, io::Error::last_os_error()));
        }
    }
    Ok(())
}
