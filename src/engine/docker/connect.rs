//! Finds the daemon and reads its description.

use std::path::PathBuf;
use std::time::Duration;

use bollard::models::{SystemInfo, SystemInfoCgroupVersionEnum, SystemVersion};
use bollard::{API_DEFAULT_VERSION, Docker};

use super::super::{EngineDescription, EngineError, Isolation};

/// Longest time in seconds for one answer. A loaded machine may need long to start a container.
const TIMEOUT_SECONDS: u64 = 300;

/// Longest time for one candidate to describe itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// Which daemon to talk to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Daemon {
    /// `DOCKER_HOST`, else Docker's usual socket, else Podman's.
    Any,
    /// `DOCKER_HOST`, else Docker's usual socket.
    Docker,
    /// `CONTAINER_HOST`, else Podman's usual sockets.
    Podman,
    /// The daemon at this address, `unix:///path`.
    At(String),
}

impl Daemon {
    /// Returns the addresses to try, in order.
    fn addresses(&self, variable: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
        let docker = || "unix:///var/run/docker.sock".to_owned();
        let podman = || {
            let own = variable("XDG_RUNTIME_DIR").map(PathBuf::from).unwrap_or_else(|| {
                let user = rustix::process::getuid().as_raw();
                PathBuf::from(format!("/run/user/{user}"))
            });
            [own.join("podman/podman.sock"), PathBuf::from("/run/podman/podman.sock")]
                .map(|path| format!("unix://{}", path.display()))
        };
        match self {
            Self::At(address) => vec![address.clone()],
            // If a daemon is named, no other one is tried.
            Self::Any | Self::Docker => match variable("DOCKER_HOST") {
                Some(address) => vec![address],
                None if *self == Self::Docker => vec![docker()],
                None => [docker()].into_iter().chain(podman()).collect(),
            },
            Self::Podman => variable("CONTAINER_HOST").map_or_else(|| podman().to_vec(), |address| vec![address]),
        }
    }
}

/// A daemon and its description of itself.
pub(super) struct Connected {
    pub(super) docker: Docker,
    pub(super) description: EngineDescription,
}

/// Talks to the first daemon that answers within [`PATIENCE`].
pub(super) async fn connect(daemon: &Daemon) -> Result<Connected, EngineError> {
    let mut tried = Vec::new();
    for address in daemon.addresses(&environment) {
        if !address.starts_with("unix:///") {
            return Err(EngineError::Address { address });
        }
        match tokio::time::timeout(PATIENCE, reach(&address)).await {
            Ok(Ok(said)) => {
                let description = describe(&address, &said);
                check(&description, &said.info)?;
                return Ok(Connected { docker: said.docker, description });
            }
            Ok(Err(error)) => tried.push(format!("{address} ({})", cause(&error))),
            Err(_) => tried.push(format!("{address} ({})", silent())),
        }
    }
    Err(EngineError::Unreachable { tried })
}

/// A possible daemon, as `doctor` shows it.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its address.
    pub address: String,
    /// Its description of itself, or why it can't be used.
    pub found: Result<EngineDescription, String>,
}

impl Candidate {
    /// Returns why it can't be used; empty if it can.
    pub fn failure(&self) -> &str {
        self.found.as_ref().err().map_or("", String::as_str)
    }
}

/// Asks every configured daemon, in the order in which [`DockerEngine::connect`](super::DockerEngine::connect) tries
/// them.
pub async fn candidates(daemon: &Daemon) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for address in daemon.addresses(&environment) {
        let found = match tokio::time::timeout(PATIENCE, examine(&address)).await {
            Ok(found) => found,
            Err(_) => Err(silent()),
        };
        candidates.push(Candidate { address, found });
    }
    candidates
}

async fn examine(address: &str) -> Result<EngineDescription, String> {
    if !address.starts_with("unix:///") {
        return Err("it is no Unix socket (unix:///path)".to_owned());
    }
    let said = reach(address).await.map_err(|error| cause(&error))?;
    let description = describe(address, &said);
    check(&description, &said.info).map_err(|error| match error {
        EngineError::Unfit { reason, .. } => reason,
        error => error.to_string(),
    })?;
    Ok(description)
}

fn silent() -> String {
    format!("no answer within {} seconds", PATIENCE.as_secs())
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A daemon's description of itself, and the user who listens there.
struct Said {
    docker: Docker,
    version: SystemVersion,
    info: SystemInfo,
    user: Option<u32>,
}

async fn reach(address: &str) -> Result<Said, bollard::errors::Error> {
    let docker = Docker::connect_with_unix(address, TIMEOUT_SECONDS, API_DEFAULT_VERSION)?;
    let docker = docker.negotiate_version().await?;
    let version = docker.version().await?;
    let info = docker.info().await?;
    Ok(Said { docker, version, info, user: user_at(address).await })
}

/// Returns the user who listens at an address.
async fn user_at(address: &str) -> Option<u32> {
    let stream = tokio::net::UnixStream::connect(address.strip_prefix("unix://")?).await.ok()?;
    stream.peer_cred().ok().map(|peer| peer.uid())
}

/// Returns the innermost cause. The outer ones only say that a client has an error.
fn cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

fn describe(address: &str, said: &Said) -> EngineDescription {
    let Said { docker, version, info, user } = said;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let components = version.components.iter().flatten();
    let podman = components.into_iter().any(|component| component.name.to_lowercase().contains("podman"));
    let options: Vec<&str> = info.security_options.iter().flatten().map(String::as_str).collect();
    let has = |name: &str| options.iter().any(|option| option.split(',').any(|part| part == format!("name={name}")));
    // Podman does not report this in Docker's API.
    let rootless = has("rootless") || (podman && user.is_some_and(|user| user != 0));
    // The daemon reports the machine's groups. A user's containers have no groups of version 1, whatever is requested.
    let groupless = podman && rootless && info.cgroup_version != Some(SystemInfoCgroupVersionEnum::_2);
    // Groups of version 1 count this memory separately, and no daemon limits it there.
    let with_sockets = info.memory_limit == Some(true) && info.cgroup_version == Some(SystemInfoCgroupVersionEnum::_2);
    let unenforced = [
        ("memory", info.memory_limit),
        ("swap", info.swap_limit),
        ("cpu", info.cpu_cfs_quota),
        ("processes", info.pids_limit),
        ("socket memory", Some(with_sockets)),
    ];
    EngineDescription {
        name: if podman { "podman" } else { "docker" }.into(),
        version: text(&version.version),
        api_version: docker.client_version().to_string(),
        address: address.to_owned(),
        kernel: text(&info.kernel_version),
        architecture: text(&info.architecture),
        runtime: text(&info.default_runtime),
        cgroup_version: match info.cgroup_version {
            Some(SystemInfoCgroupVersionEnum::_1) => Some(1),
            Some(SystemInfoCgroupVersionEnum::_2) => Some(2),
            Some(SystemInfoCgroupVersionEnum::EMPTY) | None => None,
        },
        storage: text(&info.driver),
        storage_directory: info.docker_root_dir.as_ref().filter(|path| !path.is_empty()).map(PathBuf::from),
        processors: info.ncpu.and_then(|number| number.try_into().ok()).unwrap_or(0),
        memory_bytes: info.mem_total.and_then(|number| number.try_into().ok()).unwrap_or(0),
        isolation: Isolation {
            rootless,
            seccomp: has("seccomp"),
            user_namespace: has("userns"),
            mandatory_access_control: ["apparmor", "selinux"].into_iter().find(|name| has(name)).map(str::to_owned),
            unenforced: unenforced
                .into_iter()
                .filter(|(_, enforced)| groupless || *enforced != Some(true))
                .map(|(name, _)| name.to_owned())
                .collect(),
        },
    }
}

fn check(description: &EngineDescription, info: &SystemInfo) -> Result<(), EngineError> {
    let unfit = |reason: String| EngineError::Unfit { address: description.address.clone(), reason };
    match info.os_type.as_deref() {
        Some("linux") | None => {}
        Some(other) => return Err(unfit(format!("it runs containers of the operating system {other}, not linux"))),
    }
    match description.architecture.as_str() {
        "x86_64" | "amd64" => Ok(()),
        other => Err(unfit(format!("images are for x86_64, its machine is {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_daemon_is_the_only_one_tried() {
        let named = |name: &str| (name == "DOCKER_HOST").then(|| "unix:///elsewhere.sock".to_owned());
        assert_eq!(Daemon::Any.addresses(&named), ["unix:///elsewhere.sock"]);
        assert_eq!(Daemon::Docker.addresses(&named), ["unix:///elsewhere.sock"]);
        let runtime = |name: &str| (name == "XDG_RUNTIME_DIR").then(|| "/run/user/7".to_owned());
        let expected =
            ["unix:///var/run/docker.sock", "unix:///run/user/7/podman/podman.sock", "unix:///run/podman/podman.sock"];
        assert_eq!(Daemon::Any.addresses(&runtime), expected);
        assert_eq!(Daemon::Podman.addresses(&runtime), expected[1..]);
    }

    #[tokio::test]
    async fn an_absent_daemon_is_named_with_its_cause() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("none.sock");
        let absent = connect(&Daemon::At(format!("unix://{}", socket.display()))).await;
        assert!(matches!(absent, Err(EngineError::Unreachable { ref tried }) if tried[0].contains("none.sock")));
        drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        let dead = connect(&Daemon::At(format!("unix://{}", socket.display()))).await;
        assert!(matches!(dead, Err(EngineError::Unreachable { ref tried }) if tried[0].contains("refused")));
        let remote = connect(&Daemon::At("tcp://127.0.0.1:1".into())).await;
        assert!(matches!(remote, Err(EngineError::Address { .. })));
    }
}
