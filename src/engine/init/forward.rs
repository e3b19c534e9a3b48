//! The container's end of the door: forwards connections to a loopback port to the host's socket, byte by byte.
//!
//! The port is init's own, so no command can take it. A child process forwards, and lives as long as one command. The
//! command runs as the same user and could kill the child, but it would only lose its own network.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, IntoRawFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};

use super::super::spec::DOOR_SOCKET;

/// Connections at a time; more wait in the listener's queue.
const MAX_CONNECTIONS: usize = 128;

/// Bytes under way per direction of a connection.
const BUFFER: usize = 64 << 10;

/// The listening end.
pub(super) struct Door {
    listener: TcpListener,
}

impl Door {
    /// Listens on the port, if there is one.
    pub(super) fn open(port: Option<u16>) -> Result<Option<Self>, String> {
        let Some(port) = port else { return Ok(None) };
        let open = || -> io::Result<Self> {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
            listener.set_nonblocking(true)?;
            Ok(Self { listener })
        };
        open().map(Some).map_err(|error| format!("the door's port {port} can't be listened on: {error}"))
    }

    /// Starts the child that forwards connections, and returns its process number.
    pub(super) fn start(&self) -> io::Result<i32> {
        // SAFETY: this process has one thread, so the child may do whatever the parent may.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                // The child reports a failure only by its end. Connections are then refused.
                let status = match serve(&self.listener) {
                    Ok(()) => 0,
                    Err(_) => 1,
                };
                // SAFETY: ends the child without running anything that was registered in the parent.
                unsafe { libc::_exit(status) }
            }
            process => Ok(process),
        }
    }
}

fn serve(listener: &TcpListener) -> io::Result<()> {
    // Only init may send frames.
    let null = fs_err::OpenOptions::new().write(true).open("/dev/null")?.into_file().into_raw_fd();
    for descriptor in [1, 2] {
        // SAFETY: no memory is involved.
        if unsafe { libc::dup2(null, descriptor) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    let mut connections: Vec<Connection> = Vec::new();
    loop {
        let accepting = connections.len() < MAX_CONNECTIONS;
        let mut waiting = Vec::with_capacity(connections.len() * 2 + 1);
        waiting.push(PollFd::new(listener, if accepting { PollFlags::IN } else { PollFlags::empty() }));
        for connection in &connections {
            let (inside, outside) = connection.interests();
            waiting.push(PollFd::from_borrowed_fd(connection.inside.as_fd(), inside));
            waiting.push(PollFd::from_borrowed_fd(connection.outside.as_fd(), outside));
        }
        match poll(&mut waiting, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let gone = PollFlags::HUP | PollFlags::ERR;
        let gone: Vec<bool> = waiting[1..].iter().map(|entry| entry.revents().intersects(gone)).collect();
        for (connection, gone) in connections.iter_mut().zip(gone.chunks_exact(2)) {
            (connection.inside_gone, connection.outside_gone) = (gone[0], gone[1]);
        }
        connections.retain_mut(Connection::advance);
        while connections.len() < MAX_CONNECTIONS {
            match listener.accept() {
                Ok((inside, _)) => {
                    // Without the host's end the connection is dropped. The command sees it as refused.
                    if let Ok(connection) = Connection::open(inside) {
                        connections.push(connection);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if matches!(error.raw_os_error(), Some(libc::ECONNABORTED | libc::EINTR)) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

struct Connection {
    inside: TcpStream,
    outside: UnixStream,
    outward: Direction,
    inward: Direction,
    /// Whether poll reported the end of this side. It would repeat the report.
    inside_gone: bool,
    outside_gone: bool,
}

impl Connection {
    fn open(inside: TcpStream) -> io::Result<Self> {
        let outside = UnixStream::connect(DOOR_SOCKET)?;
        outside.set_nonblocking(true)?;
        inside.set_nonblocking(true)?;
        inside.set_nodelay(true)?;
        let (outward, inward) = (Direction::default(), Direction::default());
        Ok(Self { inside, outside, outward, inward, inside_gone: false, outside_gone: false })
    }

    fn interests(&self) -> (PollFlags, PollFlags) {
        let flags = |reads: &Direction, writes: &Direction| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, reads.wants_more());
            flags.set(PollFlags::OUT, writes.has_some());
            flags
        };
        (flags(&self.outward, &self.inward), flags(&self.inward, &self.outward))
    }

    /// Moves the available bytes. Tells whether the connection is still alive.
    fn advance(&mut self) -> bool {
        let Self { inside, outside, outward, inward, inside_gone, outside_gone } = self;
        let outward_lives = outward.advance(&mut &*inside, &mut &*outside, &|| outside.shutdown(Shutdown::Write));
        let inward_lives = inward.advance(&mut &*outside, &mut &*inside, &|| inside.shutdown(Shutdown::Write));
        match (outward_lives, inward_lives) {
            // A closed end without remaining bytes can't receive any either.
            (Ok(outward), Ok(inward)) => {
                (outward || !*inside_gone) && (inward || !*outside_gone) && (outward || inward)
            }
            _ => false,
        }
    }
}

/// Bytes on their way from one end to the other.
#[derive(Default)]
struct Direction {
    buffer: Vec<u8>,
    written: usize,
    ended: bool,
    closed: bool,
}

impl Direction {
    fn wants_more(&self) -> bool {
        !self.ended && self.buffer.is_empty()
    }

    fn has_some(&self) -> bool {
        !self.buffer.is_empty()
    }

    fn advance(
        &mut self,
        from: &mut dyn Read,
        to: &mut dyn Write,
        close: &dyn Fn() -> io::Result<()>,
    ) -> io::Result<bool> {
        loop {
            if self.wants_more() {
                self.buffer.resize(BUFFER, 0);
                let length = match from.read(&mut self.buffer) {
                    Ok(length) => length,
                    Err(error) => {
                        self.buffer.clear();
                        return later(error);
                    }
                };
                self.buffer.truncate(length);
                self.written = 0;
                self.ended = length == 0;
            }
            while self.written < self.buffer.len() {
                match to.write(&self.buffer[self.written..]) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(written) => self.written += written,
                    Err(error) => return later(error),
                }
            }
            self.buffer.clear();
            if self.ended {
                if !self.closed {
                    self.closed = true;
                    close()?;
                }
                return Ok(false);
            }
        }
    }
}

/// Tells that a call would block or was interrupted; it is retried after the next poll.
fn later(error: io::Error) -> io::Result<bool> {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(true),
        _ => Err(error),
    }
}
