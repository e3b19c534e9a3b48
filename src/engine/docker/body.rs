//! The request that creates a container: every limit and protection in one place.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use bollard::errors::Error as DaemonError;
use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount, MountBindOptions, MountBindOptionsPropagationEnum,
    MountType, ResourcesUlimits,
};

use super::super::EngineError;
use super::super::spec::{ContainerSpec, DOOR_SOCKET, INIT_PATH, INIT_SUBCOMMAND, SOCKET_BUFFERS, Scratch};
use super::Shared;
use crate::data_dir::Owner;

/// Size of `/dev/shm`. It counts as the container's memory.
const SHARED_MEMORY_BYTES: i64 = 64 << 20;

/// The most descriptors that init may have open.
const MAX_OPEN_FILES: i64 = 4096;

/// The most processes of the user of Podman's containers on the whole machine, as Podman limits itself. The control
/// group limits the processes of a container.
const MAX_PROCESSES: i64 = 32_768;

/// Returns the container's name, unique among all processes that ever ran on this machine.
pub(super) fn name(purpose: &str, owner: &Owner, number: u64) -> String {
    let fit = |character: char| if character.is_ascii_alphanumeric() { character } else { '-' };
    let purpose: String = purpose.chars().map(fit).take(60).collect();
    format!("testevo-{purpose}-{owner}-{number}")
}

/// Returns the request for the container. `image` is the daemon's name for its image.
pub(super) fn create_body(
    spec: &ContainerSpec,
    image: String,
    init: &Path,
    shared: &Shared,
    labels: HashMap<String, String>,
) -> Result<ContainerCreateBody, EngineError> {
    let limits = &spec.limits;
    let user = shared.users.number();
    let memory = signed(limits.memory_bytes);
    let mut mounts = vec![mount(init, INIT_PATH)];
    super::super::check_mount(init, true)?;
    for input in &spec.mounts {
        super::super::check_mount(&input.source, true)?;
        mounts.push(mount(&input.source, &input.target));
    }
    mounts.extend(shared.users.files().map(|(file, target)| mount(file, target)));
    if let Some(door) = &spec.door {
        mounts.push(mount(door, DOOR_SOCKET));
    }
    let host_config = HostConfig {
        network_mode: Some("none".into()),
        readonly_rootfs: Some(true),
        cap_drop: Some(vec!["ALL".into()]),
        security_opt: Some(vec!["no-new-privileges".into()]),
        privileged: Some(false),
        memory: Some(memory),
        // Equal to the memory: no swap.
        memory_swap: Some(memory),
        nano_cpus: Some(i64::from(limits.cpus).saturating_mul(1_000_000_000)),
        pids_limit: Some(limits.processes.into()),
        ulimits: Some(ulimits(shared.podman)),
        ipc_mode: Some("private".into()),
        shm_size: Some(SHARED_MEMORY_BYTES),
        // Attached clients receive the frames. A copy on the daemon's disk would have no limit.
        log_config: Some(HostConfigLogConfig { typ: Some("none".into()), config: None }),
        sysctls: Some(SOCKET_BUFFERS.map(|(name, value)| (format!("net.ipv4.{name}"), value.to_owned())).into()),
        init: Some(false),
        auto_remove: Some(false),
        mounts: Some(mounts),
        tmpfs: Some(spec.scratch.iter().map(|scratch| tmpfs(scratch, user, shared.podman)).collect()),
        ..HostConfig::default()
    };
    Ok(ContainerCreateBody {
        image: Some(image),
        // Equal for all containers, and resolvable without a network, because programs ask for their host's address.
        hostname: Some("localhost".into()),
        user: Some(format!("{user}:{user}")),
        working_dir: Some("/".into()),
        entrypoint: Some(vec![INIT_PATH.into(), INIT_SUBCOMMAND.into()]),
        cmd: Some(Vec::new()),
        env: Some(Vec::new()),
        labels: Some(labels),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        open_stdin: Some(true),
        stdin_once: Some(true),
        tty: Some(false),
        host_config: Some(host_config),
        ..ContainerCreateBody::default()
    })
}

/// Returns the limits of single processes. Init sets lower ones for commands.
fn ulimits(podman: bool) -> Vec<ResourcesUlimits> {
    let limit =
        |name: &str, value: i64| ResourcesUlimits { name: Some(name.into()), soft: Some(value), hard: Some(value) };
    let mut limits = vec![limit("core", 0)];
    if podman {
        // Podman's own defaults can exceed the machine's limits. They can also be lower than the limits that Podman
        // itself received.
        limits.push(limit("nofile", MAX_OPEN_FILES));
        let processes = rustix::process::getrlimit(rustix::process::Resource::Nproc).maximum;
        limits.push(limit("nproc", processes.map_or(MAX_PROCESSES, signed).min(MAX_PROCESSES)));
    }
    limits
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn mount(source: &Path, target: &str) -> Mount {
    Mount {
        typ: Some(MountType::BIND),
        source: Some(source.display().to_string()),
        target: Some(target.to_owned()),
        read_only: Some(true),
        bind_options: Some(MountBindOptions {
            propagation: Some(MountBindOptionsPropagationEnum::RPRIVATE),
            ..MountBindOptions::default()
        }),
        ..Mount::default()
    }
}

/// Returns a scratch directory in the API's terms. Tests that unpack native libraries need `exec`. The owner is given
/// because some runtimes take the mode of the image's directory of that name.
fn tmpfs(scratch: &Scratch, user: u32, podman: bool) -> (String, String) {
    // Empty files, directories and links use kernel memory but no page, so their number is limited.
    let inodes = (scratch.size_bytes / 4096).max(16 << 10);
    let mode = if scratch.target == "/tmp" { 1777 } else { 755 };
    let options = if podman {
        // Podman supports fewer options, but one of them gives a directory to the container's user. Files are limited
        // only by their memory. It would also fill a directory from the image, with owners of the image.
        format!("rw,exec,nosuid,nodev,size={},mode={mode},U,notmpcopyup", scratch.size_bytes)
    } else {
        let size = scratch.size_bytes;
        format!("rw,exec,nosuid,nodev,size={size},nr_inodes={inodes},mode={mode},uid={user},gid={user}")
    };
    (scratch.target.clone(), options)
}

/// Turns the daemon's refusal to create a container into an error.
pub(super) fn create_refused(spec: &ContainerSpec, init: &Path, error: DaemonError) -> EngineError {
    let message = super::message(error);
    let sources = spec.mounts.iter().map(|mount| mount.source.clone());
    let all: Vec<PathBuf> = sources.chain(spec.door.clone()).chain([init.to_owned()]).collect();
    // Every source existed on this machine a moment ago.
    let elsewhere = all.into_iter().filter(|_| message.contains("does not exist"));
    match elsewhere.into_iter().find(|path| message.contains(&path.display().to_string())) {
        Some(path) => EngineError::MountElsewhere { path, message },
        None => EngineError::CreateRefused { purpose: spec.purpose.clone(), message },
    }
}
