//! Fetching with the user's own `git`, which knows the machine's proxies, certificates and credentials.
//!
//! Nothing is checked out, no hook runs, nothing is asked, and only the protocols of [`CloneUrl`] are used.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

use fs_err as fs;

use super::WorkspaceError;
use crate::task::{CloneUrl, RepositoryName, Revision};

/// What is shown of git's complaints, in characters.
const MOST_MESSAGE: usize = 600;

/// Fetches commits into the bare repository `path`, which is made where missing: just these commits where the server
/// gives them, else all branches and tags.
///
/// # Errors
/// [`WorkspaceError::Fetch`], [`WorkspaceError::GitCommand`], [`WorkspaceError::Io`].
pub(super) fn fetch(
    repository: &RepositoryName,
    url: &CloneUrl,
    path: &Path,
    revisions: &[Revision],
) -> Result<(), WorkspaceError> {
    fs::create_dir_all(path)?;
    // Harmless where the repository exists; completes one whose making was interrupted.
    git(repository, path, ["init", "--quiet", "--bare", "--template=", "."])?;
    let quiet = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"];
    let hashes = revisions.iter().map(Revision::as_str);
    let by_hash = quiet.into_iter().chain(["--depth=1", "--", url.as_str()]).chain(hashes);
    match git(repository, path, by_hash) {
        Ok(()) => return Ok(()),
        // Servers may refuse commits that no branch points at; whether it is that shows when all is asked for.
        Err(WorkspaceError::Fetch { message, .. }) => tracing::debug!(%repository, message, "no fetch by commit"),
        Err(error) => return Err(error),
    }
    let unshallow = path.join("shallow").exists().then_some("--unshallow");
    let everything = ["--", url.as_str(), "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"];
    git(repository, path, quiet.into_iter().chain(unshallow).chain(everything))
}

fn git<'a>(
    repository: &RepositoryName,
    directory: &Path,
    arguments: impl IntoIterator<Item = &'a str>,
) -> Result<(), WorkspaceError> {
    let mut command = bare_git();
    let output = command
        .args(authorities(directory)?)
        .args(arguments.into_iter().map(OsStr::new))
        .current_dir(directory)
        .output()
        .map_err(WorkspaceError::GitCommand)?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(4)..].join("; ");
    let message = if last.is_empty() { output.status.to_string() } else { last };
    Err(WorkspaceError::Fetch { repository: repository.clone(), message: message.chars().take(MOST_MESSAGE).collect() })
}

/// Returns git with nothing but the user's own settings.
fn bare_git() -> Command {
    let mut command = Command::new("git");
    // A git that runs us, from a hook for example, must not direct the one that we run.
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
        .args(["-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=60", "-c", "credential.interactive=false"])
        .stdin(Stdio::null());
    command
}

/// Returns the options that make git trust whom the rest of this program trusts: git does not know `SSL_CERT_FILE`.
/// Whom the user's settings of git name goes before.
fn authorities(directory: &Path) -> Result<Vec<OsString>, WorkspaceError> {
    let file = std::env::var_os("SSL_CERT_FILE").filter(|file| Path::new(file).is_file());
    let Some(file) = file.filter(|_| std::env::var_os("GIT_SSL_CAINFO").is_none()) else { return Ok(Vec::new()) };
    // What is set for one address alone has precedence in git itself.
    let set = bare_git()
        .args(["config", "--get", "http.sslCAInfo"])
        .current_dir(directory)
        .output()
        .map_err(WorkspaceError::GitCommand)?;
    if set.status.success() {
        return Ok(Vec::new());
    }
    // Git runs in another directory than this program.
    let mut option = OsString::from("http.sslCAInfo=");
    option.push(std::path::absolute(file)?);
    Ok(vec!["-c".into(), option])
}
