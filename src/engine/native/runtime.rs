//! The runtime of one container: a process of this program with one thread, between the engine and the container's
//! init.
//!
//! A program with threads must never create namespaces, so the engine starts its own file anew. Standard input is a
//! socket: the `Plan` arrives with the container's three standard streams, and `Message`s leave. When the other end
//! closes for any reason, the runtime ends the container and removes all of it.

use std::ffi::OsStr;
use std::io::{self, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::pipe::{PipeFlags, pipe_with};

use super::super::MemoryKill;
use super::cgroup::{Entrance, Group};
use super::inside::{self, GO, GO_AND_LEAVE_USERS};
use super::plan::{Failure, MAX_LINE, Message, Plan, RUNTIME_SUBCOMMAND, Stage};
use super::users::{self, Users};

/// Since Linux 5.7: creates the process in a control group of version 2.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Tells whether this process was started as a runtime. Must be called before threads exist.
pub fn is_wanted() -> bool {
    std::env::args_os().nth(1).as_deref() == Some(OsStr::new(RUNTIME_SUBCOMMAND))
}

/// Runs as the runtime until its container is removed.
pub fn main() -> ExitCode {
    // SAFETY: standard input belongs to nobody else in this process.
    let socket = UnixStream::from(unsafe { OwnedFd::from_raw_fd(0) });
    let mut engine = Engine { socket };
    match engine.receive() {
        Ok((plan, streams)) => serve(&mut engine, &plan, streams),
        Err(error) => {
            engine.say(&Message::Failed(Failure::new(Stage::Request, error.to_string(), error)));
            ExitCode::FAILURE
        }
    }
}

fn serve(engine: &mut Engine, plan: &Plan, streams: [OwnedFd; 3]) -> ExitCode {
    let mut groups = Groups::default();
    let ended = match start(plan, streams, &mut groups) {
        Ok(container) => {
            engine.say(&Message::Started);
            container.wait(engine).map_err(|error| Failure::new(Stage::Init, "waiting for its end", error))
        }
        Err(failure) => Err(failure),
    };
    let memory_kill = groups.memory_kill();
    let removed = groups.remove();
    match ended.and_then(|exit_code| removed.map(|()| exit_code)) {
        Ok(exit_code) => {
            engine.say(&Message::Ended { exit_code, memory_kill });
            ExitCode::SUCCESS
        }
        Err(failure) => {
            engine.say(&Message::Failed(failure));
            ExitCode::FAILURE
        }
    }
}

/// The other end of standard input.
struct Engine {
    socket: UnixStream,
}

impl Engine {
    /// Receives the plan: a line of JSON, with the three streams at its first byte.
    fn receive(&mut self) -> io::Result<(Plan, [OwnedFd; 3])> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut line = vec![0; 64 << 10];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = recvmsg(&self.socket, &mut [IoSliceMut::new(&mut line)], &mut ancillary, flags)?;
        line.truncate(received.bytes);
        let mut streams = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                streams.extend(descriptors);
            }
        }
        let streams: [OwnedFd; 3] =
            streams.try_into().map_err(|_| io::Error::other("the container's streams did not come along"))?;
        let mut rest = [0; 4096];
        while line.last() != Some(&b'\n') {
            let length = self.socket.read(&mut rest)?;
            if length == 0 || line.len() + length > MAX_LINE {
                return Err(io::Error::other("the request is cut off or too long"));
            }
            line.extend_from_slice(&rest[..length]);
        }
        Ok((serde_json::from_slice(&line).map_err(io::Error::other)?, streams))
    }

    fn say(&mut self, message: &Message) {
        if let Ok(mut line) = serde_json::to_vec(message) {
            line.push(b'\n');
            // The engine may be gone. The container is cleaned up all the same.
            let _ = self.socket.write_all(&line);
        }
    }
}

/// The control groups that were created so far.
#[derive(Default)]
struct Groups<'a> {
    made: Vec<&'a Group>,
}

impl Groups<'_> {
    fn memory_kill(&self) -> Option<MemoryKill> {
        self.made.iter().find_map(|group| group.memory_kill())
    }

    fn remove(&mut self) -> Result<(), Failure> {
        let mut removed = Ok(());
        for group in self.made.drain(..) {
            if let Err(error) = group.remove() {
                removed = Err(Failure::new(Stage::Groups, group.directory.display().to_string(), error));
            }
        }
        removed
    }
}

/// A running container.
struct Running {
    process: libc::pid_t,
    descriptor: OwnedFd,
    /// Kept open: its end tells the container that this process is gone.
    alive: OwnedFd,
}

fn start<'a>(plan: &'a Plan, streams: [OwnedFd; 3], groups: &mut Groups<'a>) -> Result<Running, Failure> {
    for group in &plan.groups {
        // Recorded before creation, because an incomplete group must be removed as well.
        groups.made.push(group);
        group.make().map_err(|error| Failure::new(Stage::Groups, group.directory.display().to_string(), error))?;
    }
    let mut entrances = Vec::new();
    for group in &plan.groups {
        let refused = |error| Failure::new(Stage::Placement, group.directory.display().to_string(), error);
        entrances.push(group.open().map_err(refused)?);
    }
    let piped = |error: rustix::io::Errno| Failure::new(Stage::Namespaces, "pipes", error);
    let (go_read, go_write) = pipe_with(PipeFlags::CLOEXEC).map_err(piped)?;
    let (status_read, status_write) = pipe_with(PipeFlags::CLOEXEC).map_err(piped)?;
    let mut descriptor: libc::c_int = -1;
    let flags = libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_PIDFD;
    // SAFETY: clone_args is plain data for which zero bytes are a value.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = flags as u64;
    arguments.pidfd = (&raw mut descriptor) as u64;
    arguments.exit_signal = libc::SIGCHLD as u64;
    let mut refused = Stage::Namespaces;
    for entrance in &entrances {
        if let Entrance::ByBirth(group) = entrance {
            arguments.flags |= CLONE_INTO_CGROUP;
            arguments.cgroup = group.as_raw_fd() as u64;
            refused = Stage::Placement;
        }
    }
    // SAFETY: this process has one thread, and without CLONE_VM the child has a copy of everything, as after fork.
    let process =
        unsafe { libc::syscall(libc::SYS_clone3, &raw mut arguments, size_of::<libc::clone_args>()) } as libc::pid_t;
    if process < 0 {
        let error = io::Error::last_os_error();
        let stage = match error.raw_os_error() {
            Some(libc::EACCES | libc::EBUSY | libc::EOPNOTSUPP) => refused,
            _ => Stage::Namespaces,
        };
        return Err(Failure::new(stage, "clone3", error));
    }
    if process == 0 {
        drop((go_write, status_read));
        let failure = inside::become_init(plan, streams, &entrances, &go_read);
        let told = serde_json::to_vec(&failure).unwrap_or_default();
        // If even this fails, the other end sees an init that never began.
        let _ = rustix::io::write(&status_write, &told);
        // SAFETY: ends the child without running anything that was registered in the parent.
        unsafe { libc::_exit(127) }
    }
    // SAFETY: the kernel has just given this descriptor to this process.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    drop((go_read, status_write, streams, entrances));
    let running = Running { process, descriptor, alive: go_write };
    let begun = running.begin(status_read);
    if begun.is_err() {
        running.kill();
        // The failure of the start is the one to report.
        let _ = running.reap();
    }
    begun.map(|()| running)
}

impl Running {
    /// Gives the process its users and groups, lets it continue, and waits until it is the init or has failed.
    fn begin(&self, status: OwnedFd) -> Result<(), Failure> {
        let users = users::map(self.process).map_err(|error| Failure::new(Stage::Users, "", error))?;
        let word = match users {
            Users::Task => GO,
            Users::Many => GO_AND_LEAVE_USERS,
        };
        rustix::io::write(&self.alive, &[word]).map_err(|error| Failure::new(Stage::Namespaces, "go", error))?;
        let mut told = Vec::new();
        std::fs::File::from(status)
            .read_to_end(&mut told)
            .map_err(|error| Failure::new(Stage::Init, "its report", error))?;
        // If the pipe ends without a byte, the start succeeded.
        if told.is_empty() {
            return Ok(());
        }
        Err(serde_json::from_slice(&told)
            .unwrap_or_else(|error| Failure::new(Stage::Init, "its report", io::Error::other(error))))
    }

    fn kill(&self) {
        // SAFETY: no memory is involved. A process that has ended already is no error.
        unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.descriptor.as_raw_fd(),
                libc::SIGKILL,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            );
        }
    }

    /// Waits until the init has ended. Ends it when the engine requests that or is gone.
    fn wait(&self, engine: &Engine) -> io::Result<i64> {
        let mut listening = true;
        loop {
            let interest = if listening { PollFlags::IN } else { PollFlags::empty() };
            let mut waiting = [PollFd::new(&self.descriptor, PollFlags::IN), PollFd::new(&engine.socket, interest)];
            let number = if listening { 2 } else { 1 };
            match poll(&mut waiting[..number], None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            if !waiting[0].revents().is_empty() {
                return self.reap();
            }
            if listening && !waiting[1].revents().is_empty() {
                // A message and the end of the socket mean the same.
                self.kill();
                listening = false;
            }
        }
    }

    fn reap(&self) -> io::Result<i64> {
        let mut status = 0;
        loop {
            // SAFETY: the pointer is to a live value.
            match unsafe { libc::waitpid(self.process, &mut status, libc::__WALL) } {
                -1 => match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::Interrupted => {}
                    error => return Err(error),
                },
                _ if libc::WIFSIGNALED(status) => return Ok(128 + i64::from(libc::WTERMSIG(status))),
                _ => return Ok(libc::WEXITSTATUS(status).into()),
            }
        }
    }
}
