//! Whole commands that are killed or interrupted: the same command goes on, a neighbour is left alone, nothing stays behind.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use fs_err as fs;
use testevo_sandbox::execution::run::record::{CellRecord, ExecutionPath};

use super::workshop::Workshop;
use crate::support::miniature;
use crate::support::waiting::wait_until;

/// Few enough tasks for a short test, enough for one to be killed in the middle.
const TASKS: [&str; 2] = ["*__assertion", "*__compile-target"];

/// A running `validate`; killed with the value.
struct Validate {
    process: Child,
    records: PathBuf,
}

impl Validate {
    fn start(workshop: &Workshop, run_id: &str) -> Self {
        Self::of(workshop, run_id, &TASKS)
    }

    /// Starts it with these options and tasks.
    fn of(workshop: &Workshop, run_id: &str, more: &[&str]) -> Self {
        let arguments = [&["validate", "--no-confirm", "--run-id", run_id][..], more].concat();
        let process = workshop.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { process, records: workshop.data_dir.join("runs").join(run_id).join("records.jsonl") }
    }

    /// Waits until a cell was recorded.
    fn wait_for_a_record(&mut self) {
        wait_until("a record", || {
            assert!(self.process.try_wait().unwrap().is_none(), "it ended before anything was recorded");
            fs::metadata(&self.records).is_ok_and(|metadata| metadata.len() > 0).then_some(())
        });
    }

    fn lines(&self) -> usize {
        fs::read_to_string(&self.records).unwrap().lines().count()
    }
}

impl Drop for Validate {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Containers that the process made and that are still there.
pub(super) fn containers(process: u32) -> Vec<String> {
    let format = "{{.ID}} {{.Label \"testevo-sandbox.owner\"}}";
    let listed = Command::new("docker").args(["ps", "--all", "--no-trunc", "--format", format]).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let owner = format!(" {process}-");
    let text = String::from_utf8(listed.stdout).unwrap();
    text.lines().filter(|line| line.contains(&owner)).map(str::to_owned).collect()
}

/// Temporary directories that the process made and that are still there.
fn temporaries(data_dir: &Path, process: u32) -> Vec<String> {
    let names = fs::read_dir(data_dir.join("tmp")).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    names.filter(|name| name.starts_with(&format!("{process}-"))).collect()
}

/// Every process that this one has started, or one of those.
fn descendants(process: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> = numbers
        .filter_map(|number| {
            let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
            Some((number, stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?))
        })
        .collect();
    let mut found = vec![process];
    let mut next = 0;
    while next < found.len() {
        let parent = found[next];
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(number, _)| *number));
        next += 1;
    }
    found.split_off(1)
}

/// Control groups of containers that the process made and that are still there.
fn groups(process: u32) -> Vec<String> {
    let (mut open, mut found) = (vec![PathBuf::from("/sys/fs/cgroup")], Vec::new());
    let text = format!("-{process}-");
    while let Some(directory) = open.pop() {
        // Those of others come and go meanwhile.
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            }
            if name.starts_with("testevo-sandbox-") && name.contains(&text) {
                found.push(name);
            }
        }
    }
    found
}

/// What a finished run came to, without the block that may differ.
pub(super) fn verdicts(data_dir: &Path, run_id: &str) -> serde_json::Value {
    let path = data_dir.join("runs").join(run_id).join("verdicts.json");
    let mut value: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    value.as_object_mut().unwrap().remove("volatile").unwrap();
    value
}

/// A running command; killed with the value.
pub(super) struct Running(pub(super) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "takes minutes: a repository is resolved three times"]
fn full_a_lock_for_other_arguments_takes_the_present_ones_place_when_it_is_whole() {
    let sample = miniature::part("modules-8", "relocked-8", &["1-sibling", "2-absent-module"]);
    let workshop = Workshop::new(&sample);
    workshop.prepare(&sample, "");
    let path = workshop.data_dir.join("locks").join(format!("{}.lock", sample.name.file_stem()));
    let next = path.with_added_extension("next");
    let before = fs::read_to_string(&path).unwrap();
    let name = sample.name.to_string();

    // Whoever wants other arguments of Maven gets no image that was resolved without them.
    workshop.import(&sample, "\nbuild.maven_arguments = [\"-Dtestevo.sandbox.test=true\"]\n");
    let (code, said) = workshop.try_run(&["build-images", "--proof", "none", &name]);
    assert_eq!(code, Some(6), "{said}");
    let (code, _) = workshop.try_run(&["lock", "--check", &name]);
    assert_eq!(code, Some(1), "the lock covers nothing of it");

    // Killed after the first set: the present lock is as it was.
    let process = workshop.command(&["lock", &name]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut killed = Running(process);
    wait_until("a build set to be resolved", || {
        assert!(killed.0.try_wait().unwrap().is_none(), "it ended before anything was saved");
        next.exists().then_some(())
    });
    drop(killed);
    assert_eq!(fs::read_to_string(&path).unwrap(), before);

    // The same command goes on and ends it.
    workshop.run(&["lock", &name]);
    assert!(!next.exists());
    let after = fs::read_to_string(&path).unwrap();
    assert!(after.contains("maven_arguments = \"sha256:") && !before.contains("maven_arguments"), "{after}");
    workshop.run(&["build-images", "--proof", "none", &name]);

    // Without the override nothing of it is left.
    workshop.prepare(&sample, "");
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
}

#[test]
#[ignore = "takes a minute: the same is tried on the built-in engine"]
fn full_a_killed_run_goes_on_and_its_neighbour_is_left_alone() {
    let sample = miniature::load("jupiter-17");
    let workshop = Workshop::new(&sample);
    workshop.prepare(&sample, "");
    for run in ["killed", "neighbour", "interrupted"] {
        let directory = workshop.data_dir.join("runs").join(run);
        if directory.exists() {
            fs::remove_dir_all(directory).unwrap();
        }
    }
    let mut killed = Validate::start(&workshop, "killed");
    let mut neighbour = Validate::start(&workshop, "neighbour");
    killed.wait_for_a_record();
    let dead = killed.process.id();
    killed.process.kill().unwrap();
    killed.process.wait().unwrap();
    let before = killed.lines();

    // The next start takes what the dead one left; the neighbour, which runs, notices nothing.
    let mut continued = Validate::start(&workshop, "killed");
    continued.wait_for_a_record();
    assert!(continued.process.wait().unwrap().success());
    assert!(neighbour.process.wait().unwrap().success());
    assert_eq!((containers(dead), temporaries(&workshop.data_dir, dead)), (Vec::new(), Vec::new()));
    let verdict = verdicts(&workshop.data_dir, "killed");
    assert_eq!(verdict, verdicts(&workshop.data_dir, "neighbour"));
    assert_eq!(verdict["summary"]["tasks"], TASKS.len());
    assert!(before >= 1 && continued.lines() == neighbour.lines(), "what was recorded is not executed again");

    // An interrupt cleans up before it ends.
    let mut interrupted = Validate::start(&workshop, "interrupted");
    interrupted.wait_for_a_record();
    let process = interrupted.process.id();
    let sent = Command::new("kill").args(["-INT", &process.to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(interrupted.process.wait().unwrap().code(), Some(130));
    assert_eq!((containers(process), temporaries(&workshop.data_dir, process)), (Vec::new(), Vec::new()));
    workshop.run(&[&["validate", "--no-confirm", "--run-id", "interrupted"][..], &TASKS].concat());
    assert_eq!(verdicts(&workshop.data_dir, "interrupted"), verdict);
}

#[test]
#[ignore = "takes minutes: Maven compiles what the compiler can not"]
fn full_a_compiler_that_is_killed_costs_one_cell_the_direct_path_and_no_verdict() {
    let sample = miniature::load("jupiter-17");
    let workshop = Workshop::new(&sample);
    workshop.prepare(&sample, "");
    let directory = workshop.data_dir.join("runs/compiler-killed");
    if directory.exists() {
        fs::remove_dir_all(directory).unwrap();
    }
    // One cell is under way when the compiler goes.
    let mut validate = Validate::of(&workshop, "compiler-killed", &[&TASKS[..], &["--jobs", "1"]].concat());
    validate.wait_for_a_record();
    let name = format!("testevo-compiler-{}-", validate.process.id());
    let docker = |arguments: &[&str]| {
        let output = Command::new("docker").args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let listed = docker(&["ps", "--no-trunc", "--quiet", "--filter", &format!("name={name}")]);
    let [compiler] = listed.lines().collect::<Vec<_>>()[..] else { panic!("one compiler is warm: {listed:?}") };
    docker(&["kill", compiler]);
    assert!(validate.process.wait().unwrap().success());

    let records = fs::read_to_string(&validate.records).unwrap();
    let records: Vec<CellRecord> = records.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let lost = |record: &&CellRecord| {
        record.measured.unfit.as_ref().is_some_and(|reason| reason.starts_with("the warm compiler was lost"))
    };
    let first = records.iter().position(|record| lost(&record)).expect("some cell met it");
    let (task, cell) = (&records[first].task_id, records[first].cell);
    for record in records.iter().filter(lost) {
        assert_eq!((&record.task_id, record.cell, record.measured.path), (task, cell, ExecutionPath::Maven));
    }
    let after = records[first..].iter().filter(|record| record.measured.path == ExecutionPath::Direct);
    assert!(after.filter(|record| record.measured.compile_ms.is_some()).count() > 0, "the next cell was served anew");
    for miniature in &sample.miniatures {
        for method in &miniature.methods {
            let task = format!("{}__{}", sample.name.file_stem(), miniature.name);
            let own = records.iter().filter(|record| record.task_id.as_str() == task && record.method == method.id);
            for record in own {
                assert!(method.expected[&record.cell].contains(&record.outcome), "{task} {:?}", record.outcome);
            }
        }
    }
}

#[test]
fn a_killed_run_on_the_built_in_engine_leaves_no_process_no_group_no_mount_and_no_directory() {
    let sample = miniature::load("jupiter-17");
    let workshop = Workshop::new(&sample);
    workshop.prepare(&sample, "");
    let run = workshop.data_dir.join("runs/killed-native");
    if run.exists() {
        fs::remove_dir_all(run).unwrap();
    }
    let arguments = ["--engine", "native", TASKS[0]];
    let mut killed = Validate::of(&workshop, "killed-native", &arguments);
    let process = killed.process.id();
    let is_init = |process: &u32| {
        fs::read(format!("/proc/{process}/cmdline")).is_ok_and(|line| line.starts_with(b"/testevo/init\0"))
    };
    let family = wait_until("a container", || {
        assert!(killed.process.try_wait().unwrap().is_none(), "it ended without a container");
        Some(descendants(process)).filter(|family| family.iter().any(is_init))
    });
    killed.process.kill().unwrap();
    killed.process.wait().unwrap();
    let lives = |process: &u32| Path::new(&format!("/proc/{process}")).exists();
    wait_until("the end of all", || (!family.iter().any(lives)).then_some(()));

    // The next start takes the rest, and ends what was begun.
    let mut continued = Validate::of(&workshop, "killed-native", &arguments);
    assert!(continued.process.wait().unwrap().success());
    let none = Vec::<String>::new();
    assert_eq!(groups(process), none);
    assert_eq!(temporaries(&workshop.data_dir, process), none);
    let layers = fs::read_dir(workshop.data_dir.join("store/unpacked")).unwrap();
    let unfinished = format!(".unfinished-{process}-");
    assert!(!layers.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with(&unfinished)));
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(workshop.data_dir.to_str().unwrap()), "{mounts}");
}
