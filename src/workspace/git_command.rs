//! Fetches with the user's own `git`, which knows the machine's proxies, certificates and credentials.
//!
//! Git checks nothing out, runs no hook, prompts for nothing, and uses only the protocols of [`CloneUrl`]. Dropping the
//! future ends its git process.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use fs_err as fs;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, set_parent_process_death_signal, setsid,
};
use tokio::io::AsyncReadExt as _;

use super::WorkspaceError;
use crate::task::{CloneUrl, RepositoryName, Revision};

/// The longest displayed message of git, in characters.
const MOST_MESSAGE: usize = 600;
/// The most bytes that are kept of git's messages.
const MOST_KEPT: usize = 64 << 10;
/// How long git may take to clean up after it was told to end, in seconds.
const GRACE_SECONDS: i64 = 2;

/// Fetches commits into the bare repository `path`, which is created if missing. Only these commits are fetched if the
/// server allows it, else all branches and tags.
///
/// # Errors
/// [`WorkspaceError::Fetch`], [`WorkspaceError::GitCommand`], [`WorkspaceError::Io`].
pub(super) async fn fetch(
    repository: &RepositoryName,
    url: &CloneUrl,
    path: &Path,
    revisions: &[Revision],
) -> Result<(), WorkspaceError> {
    fs::create_dir_all(path)?;
    sweep(path)?;
    // Harmless for an existing repository. Completes one whose creation was interrupted.
    git(repository, path, ["init", "--quiet", "--bare", "--template=", "."]).await?;
    let quiet = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"];
    let hashes = revisions.iter().map(Revision::as_str);
    let by_hash = quiet.into_iter().chain(["--depth=1", "--", url.as_str()]).chain(hashes);
    match git(repository, path, by_hash).await {
        Ok(()) => return Ok(()),
        // Servers may refuse commits that no branch points at. Fetching everything shows whether that is the cause.
        Err(WorkspaceError::Fetch { message, .. }) => tracing::debug!(%repository, message, "no fetch by commit"),
        Err(error) => return Err(error),
    }
    let unshallow = path.join("shallow").exists().then_some("--unshallow");
    let everything = ["--", url.as_str(), "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"];
    git(repository, path, quiet.into_iter().chain(unshallow).chain(everything)).await
}

/// Removes files that git left after a power failure. They would keep the next git from working, or stay for ever. The
/// caller holds the repository's lock, and our git does not outlive its process.
fn sweep(path: &Path) -> io::Result<()> {
    let absent_is_fine = |removed: io::Result<()>| match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    absent_is_fine(fs::remove_file(path.join("shallow.lock")))?;
    let packs = match fs::read_dir(path.join("objects/pack")) {
        Ok(packs) => packs,
        Err(error) => return absent_is_fine(Err(error)),
    };
    for entry in packs {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(b"tmp_") {
            absent_is_fine(fs::remove_file(entry.path()))?;
        }
    }
    Ok(())
}

async fn git<'a>(
    repository: &RepositoryName,
    directory: &Path,
    arguments: impl IntoIterator<Item = &'a str>,
) -> Result<(), WorkspaceError> {
    let mut command = bare_git();
    command
        .args(authorities(directory)?)
        .args(arguments.into_iter().map(OsStr::new))
        .current_dir(directory)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut running = Running::start(command).map_err(WorkspaceError::GitCommand)?;
    let said = running.said().await?;
    let status = running.child.wait().await?;
    if status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&said);
    let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(4)..].join("; ");
    let message = if last.is_empty() { status.to_string() } else { last };
    Err(WorkspaceError::Fetch { repository: repository.clone(), message: message.chars().take(MOST_MESSAGE).collect() })
}

/// A git process with its child processes. Dropping it ends them before the lock on the repository is released.
struct Running {
    child: tokio::process::Child,
}

impl Running {
    fn start(mut command: Command) -> io::Result<Self> {
        // In a session of its own git ends with its helpers, and no helper can wait for input from a terminal.
        let begin = || -> io::Result<()> {
            setsid()?;
            Ok(set_parent_process_death_signal(Some(Signal::TERM))?)
        };
        // SAFETY: the closure makes two system calls and allocates nothing.
        unsafe {
            command.pre_exec(begin);
        }
        Ok(Self { child: tokio::process::Command::from(command).spawn()? })
    }

    /// Reads git's stderr until it is closed, and returns its end.
    async fn said(&mut self) -> io::Result<Vec<u8>> {
        let mut said = Vec::new();
        let Some(stderr) = &mut self.child.stderr else { return Ok(said) };
        while stderr.read_buf(&mut said).await? > 0 {
            let before = said.len().saturating_sub(MOST_KEPT);
            said.drain(..before);
        }
        Ok(said)
    }

    /// Ends the processes: first so that git can remove unfinished files, then in any case.
    fn end(group: Pid) -> io::Result<()> {
        kill_process_group(group, Signal::TERM)?;
        // If the kernel can't report the end, there is no grace period.
        let waited = pidfd_open(group, PidfdFlags::empty()).and_then(|git| {
            let grace = Timespec { tv_sec: GRACE_SECONDS, tv_nsec: 0 };
            poll(&mut [PollFd::new(&git, PollFlags::IN)], Some(&grace))
        });
        kill_process_group(group, Signal::KILL)?;
        Ok(waited.map(drop)?)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process keeps its id until it is waited for, so the id can't belong to another one.
        let group = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(Err(error)) = group.map(Self::end) {
            tracing::warn!("git could not be ended: {error}");
        }
    }
}

/// Returns git with only the user's own settings.
fn bare_git() -> Command {
    let mut command = Command::new("git");
    // A git that runs this program, for example from a hook, must not direct the git that this program runs.
    for (name, _) in std::env::vars_os() {
        let keep = ["GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_SSL_", "GIT_PROXY_", "GIT_CONFIG_", "GIT_HTTP_"];
        let text = name.to_string_lossy();
        if text.starts_with("GIT_") && !keep.iter().any(|kept| text.starts_with(kept)) {
            command.env_remove(&name);
        }
    }
    if std::env::var_os("GIT_SSH_COMMAND").is_none() && std::env::var_os("GIT_SSH").is_none() {
        command.env("GIT_SSH_COMMAND", "ssh -o BatchMode=yes");
    }
    command
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ALLOW_PROTOCOL", CloneUrl::SCHEMES.join(":"))
        .env("GIT_DIR", ".")
        .env("LC_ALL", "C")
        .args(["-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", "-c", "maintenance.auto=false"])
        // Loose objects would be written one by one, so an interrupted fetch could leave a commit without its files.
        .args(["-c", "fetch.unpackLimit=1"])
        .args(["-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=60", "-c", "credential.interactive=false"])
        .stdin(Stdio::null());
    command
}

/// Returns the options that make git trust the same certificates as this program, because git ignores `SSL_CERT_FILE`.
/// The user's settings of git take precedence.
fn authorities(directory: &Path) -> Result<Vec<OsString>, WorkspaceError> {
    let file = std::env::var_os("SSL_CERT_FILE").filter(|file| Path::new(file).is_file());
    let Some(file) = file.filter(|_| std::env::var_os("GIT_SSL_CAINFO").is_none()) else { return Ok(Vec::new()) };
    // In git itself, settings for a single address take precedence.
    let set = bare_git()
        .args(["config", "--get", "http.sslCAInfo"])
        .current_dir(directory)
        .output()
        .map_err(WorkspaceError::GitCommand)?;
    if set.status.success() {
        return Ok(Vec::new());
    }
    // Git runs in another directory.
    let mut option = OsString::from("http.sslCAInfo=");
    option.push(std::path::absolute(file)?);
    Ok(vec!["-c".into(), option])
}
