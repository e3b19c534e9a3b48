//! Podman's own ways: a service of a user without rights, and what a killed process left there.

use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};
use std::time::{Duration, Instant};

use testevo_sandbox::data_dir::Owner;
use testevo_sandbox::engine::docker::{Daemon, DockerEngine};
use testevo_sandbox::engine::session;
use testevo_sandbox::engine::{Engine, EngineError};
use testevo_sandbox::error::Failure as _;

use super::support::*;
use crate::support::other_process::{is_other_process, other_process};
use crate::support::waiting::PATIENCE;

/// A service of Podman that runs for a user without rights, with everything that it keeps; ended with this value.
struct OwnService {
    process: Child,
    home: tempfile::TempDir,
}

impl OwnService {
    /// Starts the service as a user without rights; where this one has none it is that one.
    fn start() -> Self {
        use std::os::unix::process::CommandExt as _;
        let home = directory();
        let log = fs_err::File::create(home.path().join("log")).unwrap();
        let runtime = home.path().join("runtime");
        fs_err::create_dir(&runtime).unwrap();
        let mut process = Process::new("podman");
        if rustix::process::geteuid().is_root() {
            for directory in [home.path(), &runtime] {
                std::os::unix::fs::chown(directory, Some(NOBODY), Some(NOBODY)).unwrap();
            }
            process.uid(NOBODY).gid(NOBODY);
        }
        let process = process
            // It starts itself anew in a namespace of its user's.
            .process_group(0)
            .args(["system", "service", "--time=0", &format!("unix://{}", home.path().join("podman.sock").display())])
            .current_dir(home.path())
            .env("HOME", home.path())
            .env("XDG_RUNTIME_DIR", &runtime)
            // With either it would be a client of another service.
            .env_remove("CONTAINER_HOST")
            .env_remove("CONTAINER_CONNECTION")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.into_file())
            .spawn()
            .expect("`.ci/engine` installs podman");
        Self { process, home }
    }

    /// Returns the service as an engine, once it answers.
    async fn engine(&mut self) -> DockerEngine {
        let address = Daemon::At(format!("unix://{}", self.home.path().join("podman.sock").display()));
        let started = Instant::now();
        loop {
            match DockerEngine::connect(&address, &Owner::current().unwrap(), &init(), self.home.path()).await {
                Ok(_) => return reached(&address).await,
                Err(error) => {
                    let said = || fs_err::read_to_string(self.home.path().join("log")).unwrap();
                    assert!(self.process.try_wait().unwrap().is_none(), "it ended: {}", said());
                    assert!(started.elapsed() < PATIENCE, "{error}: {}", said());
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
    }
}

impl Drop for OwnService {
    fn drop(&mut self) {
        if let Some(group) = i32::try_from(self.process.id()).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.process.wait();
        // What holds a user's namespace for later starts.
        for pause in files_of(self.home.path(), "pause.pid") {
            let number = fs_err::read_to_string(pause).ok().and_then(|number| number.trim().parse().ok());
            if let Some(process) = number.and_then(rustix::process::Pid::from_raw) {
                let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
            }
        }
    }
}

/// Files of this name below a directory.
fn files_of(root: &Path, name: &str) -> Vec<PathBuf> {
    let (mut open, mut found) = (vec![root.to_owned()], Vec::new());
    while let Some(directory) = open.pop() {
        for entry in fs_err::read_dir(directory).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                Ok(_) if entry.file_name() == name => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found
}

#[tokio::test]
async fn a_users_own_service_says_what_it_can_not_hold_and_which_step_fails() {
    let mut service = OwnService::start();
    let engine = service.engine().await;
    let description = engine.describe().await.unwrap();
    assert_eq!((description.name.as_str(), description.isolation.rootless), ("podman", true));
    if description.cgroup_version == Some(1) {
        assert_eq!(description.isolation.unenforced, ["memory", "swap", "cpu", "processes", "socket memory"]);
        assert!(matches!(description.require_strict(), Err(EngineError::Isolation { .. })));
    }
    let spool = directory();
    let run = session::run(&engine, &spec(load(&engine).await, vec![step(&["say", "hello"])]), spool.path()).await;
    engine.wait_for_removals().await;
    match run {
        Ok(run) => assert_eq!(&*run.step(0).unwrap().stdout.bytes().unwrap(), b"hello\n"),
        // Without a range of users of its own there is nobody whom the command could be; where control groups are hybrid
        // crun does not come so far.
        Err(error @ EngineError::StartFailed { .. }) => {
            let remedies = ["--add-subuids", "have Podman use runc"];
            assert!(error.hint().is_some_and(|hint| remedies.iter().any(|remedy| hint.contains(remedy))), "{error}");
        }
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
#[ignore = "run by another test, in a process of its own"]
async fn holds_a_container() {
    if !is_other_process() {
        return;
    }
    run_on(Kind::Podman);
    steps(vec![step(&["sleep", "600"])]).await;
}

/// How many containers of a process there are.
async fn containers(address: &str, process: u32) -> usize {
    use bollard::query_parameters::ListContainersOptionsBuilder;
    let podman = bollard::Docker::connect_with_unix(address, 60, bollard::API_DEFAULT_VERSION).unwrap();
    let podman = podman.negotiate_version().await.unwrap();
    let options = ListContainersOptionsBuilder::default().all(true).build();
    let started = Instant::now();
    let all = loop {
        match podman.list_containers(Some(options.clone())).await {
            // While Podman cleans up it lists a state that the interface does not know.
            Err(bollard::errors::Error::JsonDataError { .. }) if started.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            listed => break listed.unwrap(),
        }
    };
    let owner = format!("{process}-");
    let owners = all.iter().filter_map(|container| container.labels.as_ref()?.get("testevo-sandbox.owner"));
    owners.filter(|found| found.starts_with(&owner)).count()
}

#[tokio::test]
async fn what_a_killed_process_left_is_swept() {
    run_on(Kind::Podman);
    let engine = podman().await;
    loaded_image(&engine).await;
    let address = engine.describe().await.unwrap().address;
    let mut other =
        other_process("engine::podman::holds_a_container").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    while containers(&address, other.id()).await == 0 {
        assert!(other.try_wait().unwrap().is_none(), "it ended before it had a container");
        assert!(started.elapsed() < PATIENCE, "there is no container");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    engine.sweep().await.unwrap();
    assert_eq!(containers(&address, other.id()).await, 1, "its owner lives");
    other.kill().unwrap();
    other.wait().unwrap();
    // Another test's sweep may come first; after this one nothing is left in any case.
    engine.sweep().await.unwrap();
    assert_eq!(containers(&address, other.id()).await, 0);
}
