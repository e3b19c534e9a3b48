//! The built-in engine's own ends: whoever is killed, nothing of a container is left.

use std::process::{Child, Stdio};

use testevo_sandbox::engine::EngineError;
use testevo_sandbox::engine::session::{self, RunEnd};
use testevo_sandbox::engine::spec::{ContainerSpec, Step};
use testevo_sandbox::error::Failure as _;

use super::support::*;
use crate::support::other_process::{is_other_process, other_process};
use crate::support::waiting::{PATIENCE, until};

on_the_native_engine!(
    a_killed_runtime_takes_its_container_along,
    a_killed_engine_takes_its_containers_along,
    a_killed_init_is_told_and_leaves_nothing,
    what_nobody_could_tidy_up_is_swept,
    who_gives_up_leaves_no_container,
    what_still_runs_is_not_waited_for,
    what_can_not_be_made_is_named,
    many_at_once_keep_apart,
    strict_isolation_is_refused_where_a_limit_can_not_be_enforced,
    a_probe_makes_a_container,
);

/// Processes whose command lines hold all of these words, with their parents.
fn processes(words: &[&str]) -> Vec<(u32, u32)> {
    let entries = fs_err::read_dir("/proc").unwrap().flatten();
    let found = entries.filter_map(|entry| {
        let process: u32 = entry.file_name().to_str()?.parse().ok()?;
        let line = fs_err::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let stat = fs_err::read_to_string(entry.path().join("stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let (state, parent) = (fields.next()?, fields.next()?.parse().ok()?);
        (state != "Z" && words.iter().all(|word| line.contains(word))).then_some((process, parent))
    });
    found.collect()
}

/// Names of the control groups that were made for a process.
fn groups_of(process: u32) -> Vec<String> {
    let groups = fs_err::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default();
    let names = groups.lines().filter_map(|line| line.rsplit('/').next());
    names.filter(|name| name.starts_with("testevo-sandbox-")).map(str::to_owned).collect()
}

/// Tells whether a control group of this name exists.
fn group_exists(name: &str) -> bool {
    let mut open = vec![std::path::PathBuf::from("/sys/fs/cgroup")];
    while let Some(directory) = open.pop() {
        for entry in fs_err::read_dir(&directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name() == name {
                    return true;
                }
                open.push(entry.path());
            }
        }
    }
    false
}

/// Places of this machine on which something of containers is mounted: what they mount is for themselves only.
fn mounts() -> Vec<String> {
    let mounts = fs_err::read_to_string("/proc/self/mountinfo").unwrap();
    mounts.lines().filter(|line| line.contains("/.stage")).map(str::to_owned).collect()
}

/// A container's processes and groups, to see them go.
struct Family {
    /// The command, its init and its runtime.
    processes: [u32; 3],
    groups: Vec<String>,
}

impl Family {
    /// Waits until none of the processes is left, and checks that no group is.
    async fn gone(&self) {
        let gone = |process: &u32| !std::path::Path::new(&format!("/proc/{process}")).exists();
        until("the end of all", || self.processes.iter().all(gone).then_some(())).await;
        assert!(!self.groups.iter().any(|name| group_exists(name)), "{:?}", self.groups);
        assert_eq!(mounts(), Vec::<String>::new());
    }
}

/// A time that no other process of the tests has a container sleep for.
fn own_time(number: u32) -> String {
    (1_000_000 + std::process::id() % 100_000 * 10 + number).to_string()
}

/// A container that sleeps for a time that names it.
async fn sleeper(seconds: &str) -> ContainerSpec {
    spec(loaded_image(&*engine().await).await, vec![step(&["sleep", seconds])])
}

fn kill(process: u32) {
    let process = rustix::process::Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
}

/// The family of the process that sleeps so long.
async fn family(seconds: &str) -> Family {
    let (sleeping, init) =
        until("the sleeper", || processes(&["/bin/misbehave", "sleep", seconds]).first().copied()).await;
    let parent =
        |child: u32| processes(&[]).into_iter().find(|(process, _)| *process == child).map(|(_, parent)| parent);
    let runtime = until("its runtime", || parent(init)).await;
    let groups = groups_of(init);
    assert_eq!(groups.is_empty(), by_own_account().await, "its limits are those of control groups");
    Family { processes: [sleeping, init, runtime], groups }
}

/// Runs a sleeper, kills one of its processes, and returns how that is told.
async fn run_and_kill(seconds: &str, which: usize) -> RunEnd {
    let engine = engine().await;
    let spec = sleeper(seconds).await;
    let spool = directory();
    let killing = async {
        let family = family(seconds).await;
        kill(family.processes[which]);
        family
    };
    let (run, family) = tokio::join!(session::run(&*engine, &spec, spool.path()), killing);
    engine.wait_for_removals().await;
    family.gone().await;
    run.unwrap().end
}

async fn a_killed_runtime_takes_its_container_along() {
    assert_eq!(run_and_kill(&own_time(1), 2).await, RunEnd::Killed { signal: 9 });
}

async fn a_killed_init_is_told_and_leaves_nothing() {
    assert_eq!(run_and_kill(&own_time(2), 1).await, RunEnd::Killed { signal: 9 });
}

#[tokio::test]
#[ignore = "run by another test, in a process of its own"]
async fn holds_a_native_container() {
    if !is_other_process() {
        return;
    }
    run_on(Kind::Native);
    let spec = sleeper(&std::env::var("TESTEVO_TEST_TIME").unwrap()).await;
    attempt(&spec).await.unwrap();
}

/// Another process of the tests, ended with this value.
struct Other(Child);

impl Other {
    /// Has another process hold a container that sleeps for this time.
    fn start(time: &str) -> Self {
        let process = other_process("engine::native::holds_a_native_container")
            .env("TESTEVO_TEST_TIME", time)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(process.unwrap())
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn a_killed_engine_takes_its_containers_along() {
    let engine = engine().await;
    loaded_image(&*engine).await;
    let time = own_time(3);
    let mut other = Other::start(&time);
    let family = family(&time).await;
    engine.sweep().await.unwrap();
    assert_eq!(processes(&["/bin/misbehave", "sleep", &time]).len(), 1, "its owner lives");
    other.0.kill().unwrap();
    other.0.wait().unwrap();
    // The runtime tidies up even then; only where it is killed as well something is left to the next start.
    family.gone().await;
}

async fn what_nobody_could_tidy_up_is_swept() {
    let engine = engine().await;
    loaded_image(&*engine).await;
    let time = own_time(5);
    let mut other = Other::start(&time);
    let family = family(&time).await;
    // Stopped, the engine can't see its runtime die.
    let stopped = rustix::process::Pid::from_raw(i32::try_from(other.0.id()).unwrap()).unwrap();
    rustix::process::kill_process(stopped, rustix::process::Signal::STOP).unwrap();
    kill(family.processes[2]);
    other.0.kill().unwrap();
    other.0.wait().unwrap();
    until("the end of the container", || processes(&["/bin/misbehave", "sleep", &time]).is_empty().then_some(())).await;
    // Another test's sweep may come first; after this one nothing is left in any case.
    engine.sweep().await.unwrap();
    family.gone().await;
}

async fn who_gives_up_leaves_no_container() {
    let engine = engine().await;
    let time = own_time(4);
    let spec = sleeper(&time).await;
    let spool = directory();
    let family = tokio::select! {
        run = session::run(&*engine, &spec, spool.path()) => panic!("{run:?}"),
        family = family(&time) => family,
    };
    engine.wait_for_removals().await;
    family.gone().await;
}

async fn what_still_runs_is_not_waited_for() {
    let engine = engine().await;
    let time = own_time(9);
    let spec = sleeper(&time).await;
    let spool = directory();
    let waited = async {
        let family = family(&time).await;
        let over = tokio::time::timeout(PATIENCE, engine.wait_for_removals()).await;
        assert!(over.is_ok(), "it waits for a container that runs");
        assert!(std::path::Path::new(&format!("/proc/{}", family.processes[0])).exists());
        family
    };
    let family = tokio::select! {
        run = session::run(&*engine, &spec, spool.path()) => panic!("{run:?}"),
        family = waited => family,
    };
    engine.wait_for_removals().await;
    family.gone().await;
}

async fn what_can_not_be_made_is_named() {
    let engine = engine().await;
    let image = loaded_image(&*engine).await;
    let inputs = directory();
    let mut said = Vec::new();
    for change in [
        (|spec: &mut ContainerSpec, _| spec.image = testevo_sandbox::digest::Digest::of(b"no image"))
            as fn(&mut ContainerSpec, &std::path::Path),
        |spec, root| spec.mounts.push(mount(&root.join("none"), "/input")),
        |spec, root| spec.mounts.push(mount(root, "relative")),
        |spec, root| spec.mounts.push(mount(root, "/work/../etc")),
    ] {
        let mut spec = spec(image, vec![step(&["say", "hello"])]);
        change(&mut spec, inputs.path());
        let error = session::run(&*engine, &spec, inputs.path()).await.unwrap_err();
        let hint = error.hint().unwrap_or_else(|| "none".to_owned());
        said.push(format!("{error}\nhint: {hint}").replace(&inputs.path().display().to_string(), "[path]"));
        assert!(!matches!(error, EngineError::StartFailed { .. }), "{error}");
    }
    insta::assert_snapshot!("what_can_not_be_made_is_named", said.join("\n\n"));
    engine.wait_for_removals().await;
}

async fn many_at_once_keep_apart() {
    let engine = engine().await;
    let image = loaded_image(&*engine).await;
    let directories: Vec<_> = (0..8).map(|_| directory()).collect();
    let specs: Vec<_> = (0..8)
        .map(|number| spec(image, vec![step(&["say", &number.to_string()]), Step::Run(command(&["self"]))]))
        .collect();
    let all = specs.iter().zip(&directories).map(|(spec, spool)| session::run(&*engine, spec, spool.path()));
    for (number, run) in futures_util::future::join_all(all).await.into_iter().enumerate() {
        let run = run.unwrap();
        let said =
            |index: usize| String::from_utf8_lossy(&run.step(index).unwrap().stdout.bytes().unwrap()).into_owned();
        assert_eq!(said(0), format!("{number}\n"));
        assert!(said(1).contains("processes: 2\n"), "{}", said(1));
    }
    engine.wait_for_removals().await;
}

async fn strict_isolation_is_refused_where_a_limit_can_not_be_enforced() {
    let description = engine().await.describe().await.unwrap();
    let strict = description.require_strict();
    assert_eq!(strict.is_err(), by_own_account().await);
    if let Err(error) = strict {
        assert!(matches!(&error, EngineError::Isolation { missing, .. } if missing.contains(&"memory".to_owned())));
        let error = testevo_sandbox::error::CommandError::from(error);
        assert_eq!(error.exit_status(), testevo_sandbox::error::ExitStatus::Engine);
    }
}

async fn a_probe_makes_a_container() {
    let spool = directory();
    let took = native().probe(spool.path()).await.unwrap();
    assert!(!took.is_zero());
}
