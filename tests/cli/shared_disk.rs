//! Shards on a file system that machines share: it has no locks, shows files late, runs full and vanishes.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde_json::Value;
use testevo_sandbox::application::validate::{ValidateRequest, decided};
use testevo_sandbox::canonical_json::canonical_json;
use testevo_sandbox::cluster::ClusterError;
use testevo_sandbox::cluster::shards::{Seen, look};
use testevo_sandbox::data_dir::{DataDir, DataDirError};
use testevo_sandbox::digest::Digest;
use testevo_sandbox::error::Failure as _;
use testevo_sandbox::execution::run::directory::{RunDirectory, RunDirectoryError};
use testevo_sandbox::execution::run::inputs::{INPUTS_SCHEMA, RunInputs, ShardInputs};
use testevo_sandbox::execution::run::list;
use testevo_sandbox::execution::run::record::{CellRecord, ExecutionPath, Measured, RECORD_SCHEMA};
use testevo_sandbox::outcome::label::cells_of;
use testevo_sandbox::outcome::{InfraReason, Outcome};
use testevo_sandbox::task::Task;
use testevo_sandbox::task::file::load_all;
use testevo_sandbox::task::shard::DIVISION;

use super::import::write_published;
use crate::support::command::CommandLine;
use crate::support::shared_disk::{Locks, SharedDisk, UNTIL_SHOWN};

/// A working directory whose data directory lies on a shared disk.
struct Place {
    disk: SharedDisk,
    /// The data directory as the machine with the disk has it.
    behind: PathBuf,
    tasks: Vec<Task>,
    line: CommandLine,
}

impl Place {
    fn new() -> Self {
        Self::with(Locks::Refused)
    }

    fn with(locks: Locks) -> Self {
        let line = CommandLine::new();
        write_published(&line);
        line.run(&["import", "published"]);
        let (data, behind) = (line.path().join("data"), line.path().join("behind"));
        fs::rename(&data, &behind).unwrap();
        fs::create_dir(&data).unwrap();
        let disk = SharedDisk::mount(&behind, &data, &line.path().join("gone"), locks);
        let tasks = load_all(&behind.join("tasks")).unwrap();
        Self { disk, behind, tasks, line }
    }

    /// Executes a shard on another machine, below one of its data directories. The first of two has one task.
    fn execute(&self, data_dir: &Path, run_id: &str, number: usize) {
        self.execute_with(data_dir, run_id, number, Outcome::Pass);
    }

    /// As [`Place::execute`]; every execution comes to this.
    fn execute_with(&self, data_dir: &Path, run_id: &str, number: usize, outcome: Outcome) {
        let tasks = if number == 1 { &self.tasks[..1] } else { &self.tasks[1..] };
        let shard = ShardInputs {
            shard: format!("{number}/2").parse().unwrap(),
            selection: Digest::of(&canonical_json(&(DIVISION, &self.tasks)).unwrap()),
            request: decided(&ValidateRequest::default()).unwrap(),
            costs: None,
        };
        let inputs = RunInputs {
            schema: INPUTS_SCHEMA,
            tasks: tasks.to_vec(),
            images: Default::default(),
            maven_arguments: Default::default(),
            launchers: Default::default(),
            limits: Default::default(),
            surefire: Default::default(),
            paths: vec![ExecutionPath::Direct],
            repeats: 1,
            tools: None,
            shard: Some(shard),
        };
        let (data_dir, inputs) = (DataDir::open(data_dir).unwrap(), canonical_json(&inputs).unwrap());
        let mut run = RunDirectory::open(&data_dir, "validate", &inputs, Some(run_id), false).unwrap().0;
        for task in tasks {
            for &cell in cells_of(task.track) {
                for method in &task.test_methods {
                    let record = CellRecord {
                        schema: RECORD_SCHEMA,
                        task_id: task.id.clone(),
                        repository: task.repository.clone(),
                        track: task.track,
                        cell,
                        method: method.clone(),
                        repeat: 1,
                        path: ExecutionPath::Direct,
                        outcome,
                        detail: String::new(),
                        attributed: None,
                        missing: Vec::new(),
                        attempts: 1,
                        key: None,
                        measured: Measured::default(),
                    };
                    run.append(&record).unwrap();
                }
            }
            let logs = run.path().join("logs").join(task.id.as_str());
            fs::create_dir_all(&logs).unwrap();
            fs::write(logs.join("log"), "said\n").unwrap();
        }
        run.finish(br#"{"volatile":{"process":{"wall_ms":1000,"jobs":2}}}"#).unwrap();
    }

    /// Returns the bytes of a merged run's inputs and records, and its logs.
    fn merged(&self, run: &str) -> (Vec<u8>, Vec<u8>, usize) {
        let run = self.behind.join("runs").join(run);
        let description: Value = serde_json::from_slice(&fs::read(run.join("run.json")).unwrap()).unwrap();
        assert!(description["finished"].is_string(), "{description}");
        let read = |name: &str| fs::read(run.join(name)).unwrap();
        (read("inputs.json"), read("records.jsonl"), fs::read_dir(run.join("logs")).unwrap().count())
    }

    /// Executes both shards of a run on another machine, whose results a script copies.
    fn execute_elsewhere(&self, run: &str) {
        let elsewhere = self.line.path().join("elsewhere");
        DataDir::open(&elsewhere).unwrap();
        for number in [1, 2] {
            self.execute(&elsewhere, &format!("{run}-shard-{number}"), number);
        }
    }

    /// Writes a stand-in for one of Slurm's clients, which starts in the working directory.
    fn client(&self, name: &str, script: &str) {
        let place = self.line.path().display();
        self.line.write(&format!("bin/{name}"), &format!("#!/bin/sh\nset -e\ncd '{place}'\n{script}"));
        let path = self.line.path().join("bin").join(name);
        fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Returns `PATH` with the stand-ins first.
    fn path(&self) -> String {
        format!("{}:{}", self.line.path().join("bin").display(), std::env::var("PATH").unwrap())
    }

    fn runs(&self) -> Vec<String> {
        let runs = fs::read_dir(self.behind.join("runs")).unwrap();
        let mut names: Vec<String> = runs.map(|run| run.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

#[test]
fn parts_are_merged_once_they_are_seen_whole() {
    let place = Place::new();
    for number in [1, 2] {
        place.execute(&place.behind, &format!("part-{number}"), number);
    }
    let merge = |run: &str| place.line.run(&["runs", "merge", "part-1", "part-2", "--run-id", run]);
    let data_dir = DataDir::open(&place.line.path().join("data")).unwrap();
    let seen = || look(&data_dir, "part-2").unwrap();
    assert_eq!(seen(), Seen::Whole);
    for hidden in ["", "/run.json"] {
        place.disk.hide(&format!("runs/part-2{hidden}"), UNTIL_SHOWN);
        assert_eq!(seen(), Seen::Unfinished, "{hidden}");
        place.disk.show();
    }
    let log = format!("logs/{}/log", place.tasks[1].id);
    for (hidden, what) in [
        ("inputs.json", "inputs.json"),
        ("verdicts.json", "verdicts.json"),
        ("records.jsonl", " bytes of records.jsonl"),
        ("logs", "2 of 2 logs and other files"),
        (&log, "1 of 2 logs and other files"),
    ] {
        place.disk.hide(&format!("runs/part-2/{hidden}"), UNTIL_SHOWN);
        let Seen::Partly(told) = seen() else { panic!("{hidden}") };
        assert!(told.ends_with(what), "{told}");
        place.disk.show();
    }

    // A file that is as long as it was some records ago.
    place.disk.shorten("runs/part-2/records.jsonl", 100);
    let said = merge("half");
    assert!(said.starts_with("exit 3\n"), "{said}");
    assert!(said.contains("shard run `part-2` has finished, but this is not visible here: "), "{said}");
    assert!(said.contains("hint: a shared file system may show files of other machines late"), "{said}");
    place.disk.hide("runs/part-2", UNTIL_SHOWN);
    let said = merge("half");
    assert!(said.contains("there is no run `part-2`"), "{said}");
    assert_eq!(place.runs(), ["part-1", "part-2"], "nothing is merged half");
    place.disk.show();

    // Nowhere to write, then room again: the same command goes on.
    place.disk.fill(Some("runs/merged/logs"));
    let said = merge("merged");
    assert!(said.starts_with("exit 3\n") && said.contains("error: the disk is full: "), "{said}");
    place.disk.fill(Some(""));
    let said = merge("merged");
    assert!(said.starts_with("exit 3\n") && said.contains("No space left on device"), "{said}");
    place.disk.fill(None);
    let said = merge("merged");
    assert!(said.contains("run merged"), "{said}");
    place.line.run(&["runs", "merge", "part-1", "part-2", "--run-id", "plain", "--data-dir", "behind"]);
    assert_eq!(place.merged("merged"), place.merged("plain"));
    assert_eq!(place.merged("merged").2, 3);
    let verdicts = fs::read(place.behind.join("runs/merged/verdicts.json")).unwrap();
    let verdicts: Value = serde_json::from_slice(&verdicts).unwrap();
    assert_eq!(verdicts["volatile"]["process"]["parts_ms"], 4000, "what the jobs of both took");

    // A server that does not answer is no run without results.
    fs::write(place.line.path().join("gone"), "").unwrap();
    let error = look(&data_dir, "part-2").unwrap_err();
    assert!(matches!(error, ClusterError::Gone(_)), "{error}");
    let error = DataDir::open(&place.line.path().join("data")).unwrap_err();
    assert!(error.to_string().contains("Stale file handle"), "{error}");
    assert!(error.hint().unwrap().starts_with("look whether the file system is mounted"), "{error}");
    let said = merge("again");
    assert!(said.contains("Stale file handle") && said.contains("that its file system answers"), "{said}");
    fs::remove_file(place.line.path().join("gone")).unwrap();
    assert!(place.disk.refused_locks());
}

#[test]
fn without_locks_nothing_of_another_machine_is_taken() {
    let place = Place::new();
    let data = place.line.path().join("data");
    let foreign = place.behind.join("tmp/7-1-0123456789ab");
    fs::create_dir_all(&foreign).unwrap();
    fs::write(foreign.join(".flock"), "").unwrap();
    let data_dir = DataDir::open(&data).unwrap();
    let own = data_dir.temporary();
    // Another process of this machine.
    place.line.run(&["tasks", "list"]);
    assert!(own.is_dir() && foreign.is_dir());
    let refused = data_dir.lock("x", |_| panic!("nobody has it"));
    assert!(matches!(refused, Err(DataDirError::NoLocks { .. })), "nothing is done as if it were locked");
    place.execute(&data, "part-2", 2);
    assert!(place.disk.refused_locks());
    let unfinished = RunDirectory::open(&data_dir, "validate", b"inputs", Some("open"), false).unwrap().0;
    assert!(matches!(list::remove(&data_dir, "open", false), Err(RunDirectoryError::InUse(_))));
    drop(unfinished);
    list::remove(&data_dir, "part-2", false).unwrap();
    assert_eq!(place.runs(), ["open"]);
    data_dir.remove_temporary().unwrap();
}

/// Where each machine keeps locks for itself, a free lock says nothing of other machines' processes.
#[test]
fn with_locks_of_one_machine_only_its_own_dead_are_swept() {
    let place = Place::with(Locks::OfEachMachine);
    let data = place.line.path().join("data");
    let own = DataDir::open(&data).unwrap().temporary();
    // The number of a process that is none: above the highest of Linux.
    let dead = own.file_name().unwrap().to_str().unwrap().replacen(&std::process::id().to_string(), "4194305", 1);
    for name in [&*dead, "7-1-0123456789ab"] {
        let directory = place.behind.join("tmp").join(name);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(".flock"), "").unwrap();
    }
    place.line.run(&["tasks", "list"]);
    assert!(own.is_dir());
    assert!(!place.behind.join("tmp").join(&dead).exists(), "its own dead process's directory goes");
    assert!(place.behind.join("tmp/7-1-0123456789ab").exists(), "another machine's stays");
    assert!(!place.disk.refused_locks());
}

/// A stand-in for Slurm's clients: its one job has executed both shards at once, on another machine. The file system is away
/// for one look.
#[test]
fn late_parts_are_waited_for_and_not_submitted_again() {
    let place = Place::new();
    let line = &place.line;
    place.execute_elsewhere("all");
    place.client(
        "sbatch",
        "cat > /dev/null; echo x >> submitted; cp -r elsewhere/runs/all-shard-* behind/runs\n\
         for shard in 1 2; do echo 0 > behind/sharded/all/shard-$shard.exit; done\necho 7\n",
    );
    place.client("squeue", "echo x >> asked; rm -f gone; if [ $(wc -l < asked) = 3 ]; then touch gone; fi\n");
    // After three looks without it, a shard used to be lost.
    place.disk.hide("runs/all-shard-2/run.json", 3);
    place.disk.shorten("runs/all-shard-1/records.jsonl", 0);
    place.disk.hide("runs/all-shard-1/verdicts.json", 3);
    let path = place.path();
    let command = ["validate", "--on", "slurm", "--shards", "2", "--run-id", "all"];
    std::thread::scope(|scope| {
        let said = scope.spawn(|| line.run_with(&[("PATH", &path)], &command));
        let asked = || fs::read_to_string(line.path().join("asked")).unwrap_or_default().lines().count();
        crate::support::waiting::wait_until("six looks", || (asked() >= 6).then_some(()));
        place.disk.show();
        let said = said.join().unwrap();
        assert!(!said.contains("lost"), "{said}");
        assert!(said.contains("does not answer") && said.contains("it is looked for again"), "{said}");
        assert_eq!(fs::read_to_string(line.path().join("submitted")).unwrap(), "x\n", "{said}");
        assert_eq!(place.runs(), ["all"], "{said}");
    });
    assert_eq!(place.merged("all").2, 3);
    assert!(!place.behind.join("sharded/all").exists());
}

/// An interrupt ends the watching and no job: the same command waits for them again. The client interrupts who asks it,
/// and answers only after that: the watching ends it before.
#[test]
fn an_interrupt_ends_no_job() {
    let place = Place::new();
    place.execute_elsewhere("all");
    place.client(
        "sbatch",
        "cat > /dev/null; echo x >> submitted\n\
         for word; do case $word in --job-name=*) echo ${word#*=} > name;; esac; done\necho 7\n",
    );
    place.client(
        "squeue",
        "if [ -e early ]; then rm early; kill -INT $PPID; exec sleep 60; fi\n\
         [ -e name ] || exit 0\n\
         if [ -e interrupted ]; then cp -r elsewhere/runs/all-shard-* behind/runs\n\
         for shard in 1 2; do echo 0 > behind/sharded/all/shard-$shard.exit; done; exit 0; fi\n\
         touch interrupted; kill -INT $PPID; exec sleep 60\n",
    );
    place.client("scancel", "echo x >> cancelled\n");
    place.client("sacct", "exit 1\n");
    let run = || {
        let command = ["validate", "--on", "slurm", "--shards", "2", "--run-id", "all"];
        place.line.run_with(&[("PATH", &place.path())], &command)
    };
    // Before anything is submitted.
    place.line.write("early", "");
    let said = run();
    assert!(said.starts_with("exit 130\n") && !said.contains("go on"), "{said}");
    assert!(!place.behind.join("sharded/all").exists(), "{said}");
    let said = run();
    assert!(said.starts_with("exit 130\n"), "{said}");
    let goes_on =
        "the shards go on: the same command waits for them again, and `testevo-sandbox runs cancel all` ends them";
    assert!(said.contains(goes_on), "{said}");
    assert!(place.behind.join("sharded/all").exists() && place.runs().is_empty(), "{said}");
    let said = run();
    assert!(said.starts_with("exit 1\n") && said.contains("run all, submitted earlier"), "{said}");
    assert_eq!(place.runs(), ["all"], "{said}");
    assert_eq!(fs::read_to_string(place.line.path().join("submitted")).unwrap(), "x\n");
    assert!(!place.line.path().join("cancelled").exists(), "{said}");
}

/// Without accounts, `sacct` says so and fails. Nobody is bothered with that. Here it brings the results, too.
#[test]
fn a_cluster_without_accounts_is_asked_in_vain() {
    let place = Place::new();
    place.execute_elsewhere("all");
    place.client("sbatch", "cat > /dev/null; echo 7\n");
    place.client("squeue", "");
    place.client(
        "sacct",
        "echo x >> asked; if [ $(wc -l < asked) = 2 ]; then cp -r elsewhere/runs/all-shard-* behind/runs; fi\n\
         echo 'Slurm accounting storage is disabled' >&2; exit 1\n",
    );
    let command = ["validate", "--on", "slurm", "--shards", "2", "--run-id", "all"];
    let said = place.line.run_with(&[("PATH", &place.path())], &command);
    assert!(!said.contains("is not known") && !said.contains("accounting"), "{said}");
    assert_eq!(fs::read_to_string(place.line.path().join("asked")).unwrap(), "x\nx\n", "once for each shard");
    assert_eq!(place.runs(), ["all"], "{said}");
}

/// The accounts say that Slurm ended each of three jobs. After a change of the settings the same command tries anew.
#[test]
fn what_made_shards_fail_may_be_mended() {
    let place = Place::new();
    place.execute_elsewhere("all");
    place.client(
        "sbatch",
        "cat > /dev/null; echo \"$@\" >> submitted; for word; do case $word in --job-name=*) echo ${word#*=} > name;; esac; done\n\
         case $(wc -l < submitted) in 4) for shard in 1 2; do echo 2 > behind/sharded/all/shard-$shard.exit; done;;\n\
         5) cp -r elsewhere/runs/all-shard-* behind/runs;; esac; echo 7\n",
    );
    place.client("squeue", "");
    place.client("sacct", "echo \"7_[1-2]|TIMEOUT|n1|$(cat name)\"\n");
    let command = ["validate", "--on", "slurm", "--run-id", "all"];
    place.line.write("data/settings.toml", "[slurm]\nshards = 2\n");
    let run = |expected: i32| {
        let said = place.line.run_with(&[("PATH", &place.path())], &command);
        assert!(said.starts_with(&format!("exit {expected}\n")), "{said}");
        said
    };
    let said = run(3);
    assert!(
        said.contains("shard 1 of run `all` was lost 3 times; of the last time Slurm says TIMEOUT on n1"),
        "{said}"
    );
    assert!(said.contains("hint: give each shard more `time`"), "{said}");
    // The settings may name another number of shards by now.
    place.line.write("data/settings.toml", "[slurm]\ntime = \"2:00:00\"\nshards = 1\n");
    let said = run(2);
    assert!(said.contains("shard 1 of run `all` failed with exit code 2"), "{said}");
    run(1);
    assert_eq!(place.runs(), ["all"]);
    let submitted = fs::read_to_string(place.line.path().join("submitted")).unwrap();
    assert_eq!(submitted.lines().count(), 5);
    assert!(submitted.lines().all(|line| !line.contains("--exclude") && line.contains("--array=1-2")), "{submitted}");
}

/// Finished runs with the names of a run's shards may be another command's.
#[test]
fn shards_of_another_command_are_not_taken() {
    let place = Place::new();
    for number in [1, 2] {
        place.execute(&place.behind, &format!("all-shard-{number}"), number);
    }
    place.client("squeue", "");
    place.client("sbatch", "cat > /dev/null; echo x >> submitted; echo 7\n");
    let run = |options: &[&str]| {
        let command = ["validate", "--on", "slurm", "--shards", "2", "--run-id", "all"];
        place.line.run_with(&[("PATH", &place.path())], &[&command, options].concat())
    };
    let said = run(&["--repeat", "2"]);
    assert!(said.starts_with("exit 2\n"), "{said}");
    assert!(said.contains("the run `all-shard-1` is there already, of other tasks, predictions or options"), "{said}");
    // Those of the same command are.
    let said = run(&[]);
    assert!(said.starts_with("exit 1\n"), "{said}");
    assert_eq!(place.runs(), ["all"]);
    assert!(!place.line.path().join("submitted").exists());
}

/// On one node the engine failed, so that its shard has finished without an answer. It is executed again elsewhere, and the other
/// shard, whose arguments are wrong, ends the command only after that.
#[test]
fn what_a_node_could_not_do_is_done_again_elsewhere() {
    let place = Place::new();
    place.execute_elsewhere("all");
    let faulty = place.line.path().join("faulty");
    place.execute_with(&faulty, "all-shard-1", 1, Outcome::InfraFail(InfraReason::Engine));
    place.client(
        "sbatch",
        "cat > /dev/null; echo \"$@\" >> submitted; cd behind\n\
         case $(wc -l < ../submitted) in\n\
         1) cp -r ../faulty/runs/all-shard-1 runs; echo n1 > sharded/all/shard-1.node; echo 3 > sharded/all/shard-1.exit\n\
         echo 2 > sharded/all/shard-2.exit;;\n\
         2) cp runs/all-shard-1/records.jsonl runs/all-shard-1/run.json ..; rm -r runs/all-shard-1\n\
         cp -r ../elsewhere/runs/all-shard-1 runs;;\n\
         3) cp -r ../elsewhere/runs/all-shard-2 runs;; esac; echo 7\n",
    );
    place.client("squeue", "");
    place.client("sacct", "exit 1\n");
    let command = ["validate", "--on", "slurm", "--shards", "2", "--run-id", "all"];
    let run = || place.line.run_with(&[("PATH", &place.path())], &command);
    let said = run();
    assert!(said.starts_with("exit 2\n"), "{said}");
    assert!(said.contains("failed with exit code 2") && said.contains("; the other shards go on"), "{said}");
    let again = "shard 1 has 8 faults of its node, and is submitted again: attempt 2 of 3";
    assert!(said.contains(again) && said.contains(", away from n1"), "{said}");
    // What was submitted again was an unfinished run without the faults.
    assert_eq!(fs::read_to_string(place.line.path().join("records.jsonl")).unwrap(), "");
    let description: Value = serde_json::from_slice(&fs::read(place.line.path().join("run.json")).unwrap()).unwrap();
    assert!(description["finished"].is_null() && description.get("extent").is_none(), "{description}");
    let said = run();
    assert!(said.starts_with("exit 1\n"), "{said}");
    assert_eq!(place.runs(), ["all"]);
    let submitted = fs::read_to_string(place.line.path().join("submitted")).unwrap();
    let arrays =
        submitted.lines().map(|line| line.split_whitespace().find(|word| word.starts_with("--array")).unwrap());
    assert_eq!(arrays.collect::<Vec<_>>(), ["--array=1-2", "--array=1", "--array=2"]);
}

/// The shard's own result does not matter: it has no images, and its scratch is there before it looks for any.
#[test]
fn a_scratch_needs_no_lock_of_a_shared_disk_and_writes_nothing_there() {
    let place = Place::new();
    fs::create_dir_all(place.behind.join("store")).unwrap();
    place.disk.only_writable("runs");
    let said = place.line.run(&["validate", "--scratch", "scratch", "--engine", "native", "--shard", "1/2"]);
    assert!(!said.contains("is not used"), "{said}");
    // What it measured beside its run can't be handed over, and no more than that is lost.
    assert_eq!(said.matches("warning: ").count(), 1, "{said}");
    assert!(said.contains("warning: time classes stay on this node: "), "{said}");
    let scratch = fs::read_dir(place.line.path().join("scratch")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::read_link(scratch.join("runs")).unwrap(), place.line.path().join("data/runs"));
    assert!(!fs::symlink_metadata(scratch.join("tmp")).unwrap().is_symlink());
    assert!(!place.disk.refused_locks(), "none was asked for");
}
