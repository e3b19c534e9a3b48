//! Waits for children: init reaps every process of the container, including orphans.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

/// The children of process 1, orphans included.
pub(super) struct Children {
    signals: OwnedFd,
}

/// A child that ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) process: i32,
    pub(super) exit_code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) cpu: Duration,
    pub(super) peak_resident_bytes: u64,
}

impl Children {
    /// Blocks every signal and watches for ended children. Children of init unblock their own signals.
    pub(super) fn watch() -> io::Result<Self> {
        // SAFETY: the sets are initialised by sigfillset and sigemptyset before they are used, and the descriptor that
        // signalfd returns belongs to nobody else.
        unsafe {
            let mut all = MaybeUninit::<libc::sigset_t>::zeroed().assume_init();
            libc::sigfillset(&mut all);
            if libc::sigprocmask(libc::SIG_SETMASK, &all, std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error());
            }
            let mut children = MaybeUninit::<libc::sigset_t>::zeroed().assume_init();
            libc::sigemptyset(&mut children);
            libc::sigaddset(&mut children, libc::SIGCHLD);
            let signals = libc::signalfd(-1, &children, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if signals < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self { signals: OwnedFd::from_raw_fd(signals) })
        }
    }

    /// Returns the descriptor that becomes readable when a child ends. Call [`Children::acknowledge`] before reaping.
    pub(super) fn readiness(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }

    /// Clears the notification of ended children.
    pub(super) fn acknowledge(&self) -> io::Result<()> {
        let mut notice = [0; size_of::<libc::signalfd_siginfo>()];
        match rustix::io::read(&self.signals, &mut notice) {
            Ok(_) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reaps one ended child, if there is one.
    pub(super) fn next_ended(&self) -> io::Result<Reaped> {
        let mut status = 0;
        // SAFETY: rusage is plain data for which zero bytes are a value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are to live values.
        let process = unsafe { libc::wait4(-1, &mut status, libc::WNOHANG | libc::__WALL, &mut usage) };
        match process {
            0 => Ok(Reaped::NoneYet),
            process if process > 0 => Ok(Reaped::One(Ended {
                process,
                exit_code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
                signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
                cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
                peak_resident_bytes: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
            })),
            _ => match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::ECHILD) => Ok(Reaped::Childless),
                error => Err(error),
            },
        }
    }

    /// Kills every other process of the container and reaps all of them. `each` gets every one.
    pub(super) fn end_all(&self, mut each: impl FnMut(Ended)) -> io::Result<()> {
        // Killing takes long only while the kernel frees a process's memory or waits for a device.
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            // SAFETY: no memory is involved. As process 1 of a process namespace, this call reaches only that
            // namespace.
            unsafe { libc::kill(-1, libc::SIGKILL) };
            loop {
                match self.next_ended()? {
                    Reaped::One(ended) => each(ended),
                    Reaped::Childless => return Ok(()),
                    Reaped::NoneYet => break,
                }
            }
            let rest = deadline.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return Err(io::Error::other("processes of the container did not end within a minute of SIGKILL"));
            }
            wait_readable(&self.signals, rest.min(Duration::from_millis(100)))?;
            self.acknowledge()?;
        }
    }
}

/// What [`Children::next_ended`] found.
pub(super) enum Reaped {
    One(Ended),
    NoneYet,
    Childless,
}

fn wait_readable(descriptor: &OwnedFd, time: Duration) -> io::Result<()> {
    let timeout = timespec(time);
    match poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the time in the form that poll takes.
pub(super) fn timespec(time: Duration) -> rustix::event::Timespec {
    rustix::event::Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    }
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0))
        + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
}
