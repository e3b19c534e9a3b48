//! Verdicts do not depend on the engine, on how many jobs run at once, or on the number of processors, from the same image, lock
//! and prepared revisions.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use testevo_sandbox::sample::SampleRepository;

use super::demonstration;
use super::verdict::summary;
use super::workshop::Workshop;

/// What a run came to, without what changes from run to run.
fn verdicts(workshop: &Workshop, run: &str) -> Value {
    let text = fs_err::read_to_string(workshop.data_dir.join("runs").join(run).join("verdicts.json")).unwrap();
    let mut verdicts: Value = serde_json::from_str(&text).unwrap();
    assert!(verdicts.as_object_mut().unwrap().remove("volatile").is_some());
    verdicts
}

/// What a run is made with, which decides no verdict.
struct Manner {
    name: &'static str,
    engine: &'static str,
    jobs: &'static str,
    one_processor: bool,
}

impl Manner {
    const fn new(name: &'static str, engine: &'static str, jobs: &'static str) -> Self {
        Self { name, engine, jobs, one_processor: false }
    }
}

const ON_DOCKER: Manner = Manner::new("docker", "docker", "2");
const ON_NATIVE: Manner = Manner::new("native", "native", "2");
const MANY_JOBS: Manner = Manner::new("many-jobs", "docker", "4");
const ONE_PROCESSOR: Manner = Manner { one_processor: true, ..Manner::new("one-processor", "native", "1") };

/// Executes a command in each manner, everything anew, and returns what the last run said; all come to the same.
fn in_every(
    manners: &[Manner],
    workshop: &Workshop,
    repository: &SampleRepository,
    command: &str,
    arguments: &[&str],
) -> Value {
    let mut said = Value::Null;
    let mut first = None;
    for Manner { name, engine, jobs, one_processor } in manners {
        let run = format!("{command}-{name}");
        workshop.forget_run(&run);
        let chosen = [command, repository.name.as_str(), "--engine", engine, "--jobs", jobs, "--run-id", &run];
        let mut process = workshop.command(&[&chosen, arguments, &["--format", "json"]].concat());
        let output = if *one_processor { on_one_processor(|| process.output()) } else { process.output() }.unwrap();
        assert_eq!(output.status.code(), Some(0), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        said = summary(&output);
        let found = verdicts(workshop, &run);
        assert_eq!(*first.get_or_insert_with(|| found.clone()), found, "{name}");
    }
    said
}

/// Does something on one of the processors that this thread may use. Processes that it starts inherit the choice.
fn on_one_processor<T>(work: impl FnOnce() -> T) -> T {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let all = sched_getaffinity(None).unwrap();
    let first = (0..CpuSet::MAX_CPU).find(|number| all.is_set(*number)).unwrap();
    let mut one = CpuSet::new();
    one.set(first);
    sched_setaffinity(None, &one).unwrap();
    let done = work();
    sched_setaffinity(None, &all).unwrap();
    done
}

#[test]
#[ignore = "takes minutes: the demonstration on both paths once more"]
fn full_the_built_in_engine_validates_the_same_on_both_paths() {
    let (repository, workshop) = demonstration::given_alone();
    let chosen = ["--paths", "both", "--no-confirm", "--limit", "1"];
    let said = in_every(&[ON_DOCKER, ON_NATIVE], &workshop, &repository, "validate", &chosen);
    assert_eq!(said["path_differences"], 0, "{said}");
    assert_eq!(said["reproduced"], said["tasks"], "{said}");
}

#[test]
fn scores_do_not_depend_on_the_engine_the_jobs_or_the_processors() {
    let (repository, workshop) = demonstration::given_alone();
    let chosen = ["--predictions", "gold", "--path", "direct", "--no-cache", "--limit", "1"];
    in_every(&[MANY_JOBS, ONE_PROCESSOR], &workshop, &repository, "score", &chosen);
    let found = verdicts(&workshop, "score-one-processor").to_string();
    for measured in ["\"coverage\"", "\"killed\""] {
        assert!(found.contains(measured), "{measured}: {found}");
    }
}

/// Returns the directory of a new control group with a limit of memory, and the file that takes processes. In version 2 a group with
/// processes has none below it that limits them, so the new one stands beside this process's own.
fn limited_group(name: &str, bytes: u64) -> (PathBuf, PathBuf) {
    let own = fs_err::read_to_string("/proc/self/cgroup").unwrap();
    let of = |beginning: &str| own.lines().find_map(|line| line.split_once(beginning).map(|(_, path)| path.to_owned()));
    let (parent, limit) = match of(":memory:") {
        Some(path) => (format!("/sys/fs/cgroup/memory{path}"), "memory.limit_in_bytes"),
        None => (format!("/sys/fs/cgroup{}/..", of("0::").unwrap()), "memory.max"),
    };
    let group = PathBuf::from(parent).join(name);
    fs_err::create_dir_all(&group).unwrap();
    fs_err::write(group.join(limit), bytes.to_string()).unwrap();
    let entrance = group.join("cgroup.procs");
    (group, entrance)
}

/// A scheduler's job may have less memory than a task's container may use. What the kernel ends then is no failure of the test.
#[test]
#[ignore = "makes a control group below its own, which an administrator alone may do"]
fn full_a_job_that_is_short_of_memory_makes_a_fault_and_no_failure() {
    let (repository, workshop) = demonstration::given_alone();
    let chosen = ["score", "--predictions", "gold", "--no-cache", "--no-mutation", "--no-coverage", "--no-controls"];
    let score = |run: &str| {
        workshop.forget_run(run);
        let own = [repository.name.as_str(), "--limit", "1", "--engine", "native", "--jobs", "1", "--run-id", run];
        workshop.command(&[&chosen[..], &own].concat())
    };
    // What a launch needs beside its own memory is there before.
    assert!(score("enough-memory").status().unwrap().success());
    let (group, entrance) = limited_group("short-of-memory", 90 << 20);
    let command = score("short-of-memory");
    let enter = format!("echo $$ > {} && exec \"$@\"", entrance.display());
    let output = Command::new("sh")
        .args(["-c", &enter, "sh"])
        .arg(command.get_program())
        .args(command.get_args())
        .output()
        .unwrap();
    fs_err::remove_dir(&group).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("had no memory left for"), "{said}");
}
