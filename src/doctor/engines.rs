//! Checks container engines: which ones answer, which limits they enforce, and how they isolate containers.

use std::path::Path;

use serde_json::json;

use super::{Check, machine};
use crate::engine::docker::{Candidate, Daemon, candidates};
use crate::engine::{EngineDescription, EngineError, own_executable};
use crate::error::Failure as _;

/// The result of checking engines.
#[derive(Debug)]
pub struct Engines {
    /// A check for each candidate, then those of the first engine that answers.
    pub checks: Vec<Check>,
    /// Why no engine can be used; `None` if one can.
    pub missing: Option<EngineError>,
}

/// Checks every daemon that `daemon` names.
pub async fn engines(daemon: &Daemon) -> Engines {
    judge(candidates(daemon).await)
}

fn judge(candidates: Vec<Candidate>) -> Engines {
    let mut checks = Vec::new();
    let usable = candidates.iter().find_map(|candidate| candidate.found.as_ref().ok());
    for candidate in &candidates {
        let address = &candidate.address;
        checks.push(match &candidate.found {
            Ok(found) => answering(found).with(json!(found)),
            // Another engine answers, so this one is not needed.
            Err(reason) if usable.is_some() => Check::ok("engine", format!("not at {address}: {reason}"))
                .with(json!({"address": address, "reason": reason})),
            Err(reason) => Check::fail("engine", format!("not at {address}: {reason}"), advice(reason))
                .with(json!({"address": address, "reason": reason})),
        });
    }
    let missing = match usable {
        Some(found) => {
            checks.extend([limits(found), isolation(found)]);
            checks.extend(found.storage_directory.as_deref().filter(|path| path.exists()).map(storage));
            None
        }
        None => {
            let tried = candidates.iter().map(|one| format!("{} ({})", one.address, one.failure())).collect();
            Some(EngineError::Unreachable { tried })
        }
    };
    checks.push(program());
    Engines { checks, missing }
}

fn answering(found: &EngineDescription) -> Check {
    let cgroup = found.cgroup_version.map_or_else(|| "unknown".to_owned(), |version| version.to_string());
    Check::ok(
        "engine",
        format!(
            "{} {} at {}: API {}, runtime {}, cgroup version {cgroup}, storage {}, kernel {}",
            found.name, found.version, found.address, found.api_version, found.runtime, found.storage, found.kernel
        ),
    )
}

/// Returns the advice for an engine that can't be used for this reason.
fn advice(reason: &str) -> &'static str {
    let reason = reason.to_lowercase();
    if reason.contains("permission denied") {
        "let this user open the socket: add it to the group `docker`, or use a rootless daemon of its own"
    } else if reason.contains("refused") {
        "the socket is there but nobody listens: start the daemon"
    } else if reason.contains("no such file") || reason.contains("not found") {
        "install and start Docker or Podman (`podman system service` opens Podman's socket), or name its socket in \
         DOCKER_HOST"
    } else if reason.contains("unix socket") {
        "containers mount files of this machine: name a local socket, unix:///path, in DOCKER_HOST"
    } else {
        "look at the daemon's log"
    }
}

pub(super) fn limits(found: &EngineDescription) -> Check {
    let missing = &found.isolation.unenforced;
    let facts = json!({"unenforced": missing});
    if missing.is_empty() {
        return Check::ok("limits", "memory, swap, cpu and processes are enforced").with(facts);
    }
    let advice = "what is not enforced stands in every record; give the daemon's machine those cgroup controllers \
                  (kernel parameters `cgroup_enable=memory swapaccount=1`, or delegation for an engine without root's \
                  rights: `systemd-run --user --scope -p Delegate=yes`)";
    Check::warn("limits", format!("not enforced: {}", missing.join(", ")), advice).with(facts)
}

pub(super) fn isolation(found: &EngineDescription) -> Check {
    let isolation = &found.isolation;
    let yes = |fact: bool, name: &str| format!("{}{name}", if fact { "" } else { "no " });
    let detail = [
        if isolation.rootless { "an engine without root's rights" } else { "an engine with root's rights" }.to_owned(),
        yes(isolation.seccomp, "seccomp filter"),
        yes(isolation.user_namespace, "user namespace"),
        isolation.mandatory_access_control.clone().unwrap_or_else(|| "no AppArmor or SELinux".to_owned()),
    ]
    .join(", ");
    let check = if isolation.seccomp {
        Check::ok("isolation", detail)
    } else {
        Check::warn("isolation", detail, "have the daemon filter system calls: its seccomp profile is switched off")
    };
    check.with(json!(isolation))
}

fn storage(directory: &Path) -> Check {
    machine::disk("the engine's directory", directory)
}

/// Checks that this program can serve as the init of containers.
pub fn program() -> Check {
    match own_executable() {
        Ok(path) => Check::ok("program", format!("`{}` can be the containers' init", path.display())),
        Err(error) => {
            let advice = error.hint().unwrap_or_else(|| "start the program again from its file".to_owned());
            Check::fail("program", error.to_string(), advice)
        }
    }
}

#[cfg(test)]
mod tests;
