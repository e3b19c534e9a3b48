//! What goes wrong between host and container: each with its own error, and nothing left behind.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};

use testevo_sandbox::data_dir::Owner;
use testevo_sandbox::digest::Digest;
use testevo_sandbox::engine::docker::{Daemon, DockerEngine};
use testevo_sandbox::engine::session::{self, RunEnd};
use testevo_sandbox::engine::spec::{ProgramEnd, Step};
use testevo_sandbox::engine::{Engine, EngineError};
use testevo_sandbox::error::Failure as _;

use super::support::*;
use crate::support::other_process::{is_other_process, other_process};
use crate::support::waiting::until;

/// An error as the user would see it, without what differs from run to run.
fn shown(error: &EngineError, paths: &[&Path]) -> String {
    let hint = error.hint().unwrap_or_else(|| "none".to_owned());
    let mut text = format!("error: {error}\nhint: {hint}");
    for path in paths {
        text = text.replace(&path.display().to_string(), "[path]");
    }
    text
}

async fn failure(
    engine: &DockerEngine,
    change: impl FnOnce(&mut testevo_sandbox::engine::spec::ContainerSpec),
) -> EngineError {
    let mut spec = spec(loaded_image(engine).await, vec![step(&["say", "hello"])]);
    change(&mut spec);
    let spool = directory();
    let result = session::run(engine, &spec, spool.path()).await;
    engine.wait_for_removals().await;
    result.unwrap_err()
}

#[tokio::test]
async fn what_the_engine_refuses_is_named_with_a_hint() {
    let engine = daemon().await;
    let inputs = directory();
    let root = inputs.path();
    let closed = root.join("closed");
    fs_err::create_dir(&closed).unwrap();
    fs_err::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut said = Vec::new();
    let error = failure(&engine, |spec| spec.image = Digest::of(b"no image")).await;
    assert!(matches!(error, EngineError::ImageMissing { .. }));
    said.push(shown(&error, &[]));
    let error = failure(&engine, |spec| spec.mounts.push(mount(&root.join("none"), "/input"))).await;
    assert!(matches!(error, EngineError::Mount { .. }));
    said.push(shown(&error, &[root]));
    let error = failure(&engine, |spec| spec.mounts.push(mount(&closed, "/input"))).await;
    assert!(matches!(error, EngineError::MountClosed { .. }));
    said.push(shown(&error, &[root]));
    let error = failure(&engine, |spec| spec.mounts.push(mount(root, "relative"))).await;
    assert!(matches!(error, EngineError::CreateRefused { .. }));
    said.push(shown(&error, &[root]));
    let error = failure(&engine, |spec| spec.limits.memory_bytes = 1).await;
    assert!(matches!(error, EngineError::CreateRefused { .. }));
    said.push(shown(&error, &[]));
    insta::assert_snapshot!(said.join("\n\n"));
}

#[tokio::test]
async fn an_init_that_is_none_is_told() {
    let directory = directory();
    let owner = Owner::current().unwrap();
    let with_init = async |name: &str, content: &[u8]| {
        let path = directory.path().join(name);
        fs_err::write(&path, content).unwrap();
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        DockerEngine::connect(&Daemon::Any, &owner, &path, directory.path()).await
    };
    let shell = fs_err::read("/bin/sh").unwrap();
    for (name, content) in [("script", b"#!/bin/true\n".as_slice()), ("dynamic", shell.as_slice())] {
        let refused = with_init(name, content).await.err().unwrap();
        assert!(matches!(refused, EngineError::InitFile { .. }), "{name}: {refused}");
    }
    // Another program: it says something that is no frame, or nothing.
    let other = fs_err::read(misbehave()).unwrap();
    let engine = with_init("other", &other).await.unwrap();
    let spec = spec(loaded_image(&engine).await, vec![step(&["say", "hello"])]);
    let run = session::run(&engine, &spec, directory.path()).await.unwrap();
    assert!(
        matches!(run.end, RunEnd::InitFailed { exit_code: 101, ref message } if message.contains("no such misbehaviour")),
        "{run:?}"
    );
    // A file that no kernel runs.
    let mut broken = fs_err::read(init()).unwrap();
    broken[18..20].copy_from_slice(&[0xff, 0x7f]);
    let engine = with_init("broken", &broken).await.unwrap();
    // Some runtimes notice before the container counts as started.
    match session::run(&engine, &spec, directory.path()).await {
        Err(EngineError::StartFailed { message, .. }) => assert!(message.contains("exec format"), "{message}"),
        Ok(run) => match run.end {
            RunEnd::InitFailed { message, .. } => assert!(message.contains("exec format"), "{message}"),
            other => panic!("{other:?}"),
        },
        Err(other) => panic!("{other}"),
    }
    engine.wait_for_removals().await;
}

#[tokio::test]
async fn a_program_of_another_version_is_rejected() {
    let engine = daemon().await;
    let mut spec = spec(loaded_image(&engine).await, vec![step(&["say", "hello"])]);
    spec.program.schema = 99;
    let run = finish(&spec).await;
    let RunEnd::Program(ProgramEnd::Rejected { reason }) = &run.run.end else { panic!("{:?}", run.run) };
    assert_eq!(reason, "the program has schema 99, this init knows 1");
}

/// The containers that this process's tests, or a process with this number, have at the moment.
fn containers(process: u32) -> Vec<String> {
    let format = "--format={{.ID}} {{.Label \"testevo-sandbox.owner\"}}";
    let listed = Process::new("docker").args(["ps", "--all", "--no-trunc", format]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let owner = format!(" {process}-");
    listed.lines().filter(|line| line.contains(&owner)).map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

/// Another process that runs a container until it is killed: this test binary, asked for one test.
struct Other {
    process: Child,
    container: String,
}

impl Other {
    async fn start() -> Self {
        let process = other_process("engine::faults::holds_a_container")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let container = until("a container of the other process", || containers(process.id()).pop()).await;
        Self { process, container }
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = Process::new("docker").args(["rm", "--force", &self.container]).output();
    }
}

#[tokio::test]
#[ignore = "run by other tests, in a process of its own"]
async fn holds_a_container() {
    if !is_other_process() {
        return;
    }
    steps(vec![step(&["sleep", "600"])]).await;
}

#[tokio::test]
async fn a_dead_owners_container_goes_and_a_living_neighbours_stays() {
    let engine = daemon().await;
    loaded_image(&engine).await;
    let (mut dead, living) = (Other::start().await, Other::start().await);
    engine.sweep().await.unwrap();
    assert_eq!(containers(dead.process.id()).len(), 1, "its owner lives");
    dead.kill();
    assert_eq!(containers(dead.process.id()).len(), 1, "nobody has removed it yet");
    assert!(engine.sweep().await.unwrap() >= 1);
    assert!(containers(dead.process.id()).is_empty());
    assert_eq!(containers(living.process.id()), std::slice::from_ref(&living.container));
}

#[tokio::test]
async fn a_container_that_is_killed_or_removed_from_outside_is_told_so() {
    let engine = daemon().await;
    let image = loaded_image(&engine).await;
    for (action, removed) in [("kill", false), ("rm", true)] {
        let mut spec = spec(image, vec![step(&["sleep", "600"])]);
        spec.purpose = format!("victim-{action}");
        let spool = directory();
        let run = session::run(&engine, &spec, spool.path());
        let kill = async {
            let name = until("the victim", || {
                let filter = format!("name=testevo-victim-{action}-{}-", std::process::id());
                let listed = Process::new("docker").args(["ps", "--quiet", "--filter", &filter]).output().unwrap();
                Some(String::from_utf8(listed.stdout).unwrap().trim().to_owned()).filter(|name| !name.is_empty())
            });
            let arguments = if removed { vec!["rm", "--force"] } else { vec!["kill"] };
            let status = Process::new("docker").args(arguments).arg(name.await).output().unwrap().status;
            assert!(status.success());
        };
        let (run, ()) = tokio::join!(run, kill);
        match run {
            Ok(run) => assert_eq!(run.end, RunEnd::Killed { signal: 9 }),
            Err(EngineError::Vanished { .. }) if removed => {}
            other => panic!("{action}: {other:?}"),
        }
    }
    engine.wait_for_removals().await;
}

#[tokio::test]
async fn who_gives_up_leaves_no_container() {
    let engine = daemon().await;
    let mut spec = spec(loaded_image(&engine).await, vec![step(&["say", "begun"]), step(&["sleep", "600"])]);
    spec.purpose = "given-up".into();
    let spool = directory();
    let filter = format!("name=testevo-given-up-{}-", std::process::id());
    let listed = || {
        let listed = Process::new("docker").args(["ps", "--all", "--quiet", "--filter", &filter]).output().unwrap();
        !listed.stdout.is_empty()
    };
    tokio::select! {
        run = session::run(&engine, &spec, spool.path()) => panic!("{run:?}"),
        () = until("the container", || listed().then_some(())) => {}
    }
    engine.wait_for_removals().await;
    until("its removal", || (!listed()).then_some(())).await;
}

/// The largest resident size that this process had, in KiB.
fn peak() -> u64 {
    let status = fs_err::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
#[ignore = "run by another test, in a process of its own"]
async fn listens_to_much() {
    if !is_other_process() {
        return;
    }
    let image = loaded_image(&daemon().await).await;
    let before = peak();
    let mut large = command(&["flood", "2000000000"]);
    large.limits.output_bytes = 400 * MIB;
    large.limits.flood_bytes = u64::MAX;
    let run = finish(&spec(image, vec![Step::Run(large)])).await;
    assert_eq!(run.step(0).stdout.length(), 400 * MIB);
    assert!(peak() - before < 30 << 10, "{before} KiB before, {} KiB after", peak());
}

#[tokio::test]
async fn memory_stays_flat_whatever_is_printed() {
    loaded_image(&daemon().await).await;
    let output = other_process("engine::faults::listens_to_much").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
