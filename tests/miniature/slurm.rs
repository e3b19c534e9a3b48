//! Shards on a cluster, with a real Slurm of three nodes on this machine.

use std::process::{Command, Stdio};

use fs_err as fs;

use super::demonstration;
use super::sharding::results;
use super::submissions;
use super::workshop::Workshop;
use crate::support::waiting::wait_until;

/// A cluster that ends with the test.
struct Cluster {
    directory: tempfile::TempDir,
}

impl Cluster {
    fn start() -> Self {
        Self::begin("start")
    }

    /// Starts a cluster that keeps accounts of its jobs.
    fn with_accounts() -> Self {
        Self::begin("account")
    }

    fn begin(action: &str) -> Self {
        let cluster = Self { directory: tempfile::tempdir().unwrap() };
        cluster.script(&[action], &[]);
        cluster
    }

    /// Runs the script that makes clusters.
    fn script(&self, before: &[&str], after: &[&str]) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/slurm/cluster");
        let mut command = Command::new("bash");
        command.arg(script).args(before).arg(self.directory.path()).args(after);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Returns a command that uses the cluster and the built-in engine.
    fn command(&self, workshop: &Workshop, arguments: &[&str]) -> Command {
        let mut command = workshop.command(arguments);
        command.env("SLURM_CONF", self.directory.path().join("slurm.conf")).env("TESTEVO_SANDBOX_ENGINE", "native");
        command
    }

    fn try_run(&self, workshop: &Workshop, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.command(workshop, arguments).output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.code(), said)
    }

    fn run(&self, workshop: &Workshop, arguments: &[&str]) -> String {
        let (code, said) = self.try_run(workshop, arguments);
        assert_eq!(code, Some(0), "{arguments:?}\n{said}");
        said
    }

    /// Returns the answer of one of Slurm's clients.
    fn ask(&self, client: &str, arguments: &[&str]) -> String {
        let output = Command::new(client)
            .args(arguments)
            .env("SLURM_CONF", self.directory.path().join("slurm.conf"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.script(&["stop"], &[]);
    }
}

/// Removes what earlier tests left of these runs.
fn remove_runs(workshop: &Workshop, beginning: &str) {
    // A test that failed may have left its settings.
    let _ = fs::remove_file(workshop.data_dir.join("settings.toml"));
    for part in ["runs", "sharded"] {
        let Ok(entries) = fs::read_dir(workshop.data_dir.join(part)) else { continue };
        for entry in entries.map(|entry| entry.unwrap()) {
            if entry.file_name().to_str().unwrap().starts_with(beginning) {
                fs::remove_dir_all(entry.path()).unwrap();
            }
        }
    }
}

/// Returns the processes of this machine, containers' among them, in whose arguments or environment this text stands.
fn processes_with(text: &str) -> Vec<u32> {
    let of_process = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let numbers = fs::read_dir("/proc").unwrap().filter_map(|entry| of_process(entry.unwrap()));
    let has = |number: &u32| {
        ["cmdline", "environ"].iter().any(|file| {
            // A process may end meanwhile.
            let bytes = fs::read(format!("/proc/{number}/{file}")).unwrap_or_default();
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
        })
    };
    numbers.filter(has).collect()
}

/// Returns the names of runs that begin so.
fn runs(workshop: &Workshop, beginning: &str) -> Vec<String> {
    let entries = fs::read_dir(workshop.data_dir.join("runs")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(beginning)).collect()
}

#[test]
fn shards_on_slurm_are_a_whole_run() {
    let (repository, workshop) = demonstration::given_alone();
    remove_runs(&workshop, "slurm-");
    let cluster = Cluster::start();
    let selected = repository.name.to_string();
    let validate = ["validate", "--no-confirm", "--format", "json", &selected, "--run-id"];
    cluster.run(&workshop, &[&validate[..], &["slurm-whole"]].concat());
    let expected = results(&workshop, "slurm-whole");

    // Every node of this machine can execute shards.
    let said = cluster.run(&workshop, &["doctor", "--on", "slurm"]);
    for node in ["n1", "n2", "n3"] {
        assert!(said.lines().any(|line| line.ends_with(&format!("  {node}")) && !line.starts_with("fail")), "{said}");
    }

    // But for one that is drained, where a job would wait for ever.
    cluster.ask("scontrol", &["update", "nodename=n3", "state=drain", "reason=test"]);
    let (_, said) = cluster.try_run(&workshop, &["doctor", "--on", "slurm"]);
    assert!(said.contains("Slurm gives it no jobs: it is drained"), "{said}");
    cluster.ask("scontrol", &["update", "nodename=n3", "state=resume"]);

    // Slurm says itself what it does not like, and nothing is left of that.
    let settings = workshop.data_dir.join("settings.toml");
    fs::write(&settings, "[slurm]\npartition = \"nowhere\"\n").unwrap();
    let on_slurm = |run: &'static str| [&validate[..], &[run, "--on", "slurm", "--shards", "3"]].concat();
    let (code, said) = cluster.try_run(&workshop, &on_slurm("slurm-merged"));
    fs::remove_file(&settings).unwrap();
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("invalid partition specified: nowhere"), "{said}");
    assert!(!workshop.data_dir.join("sharded/slurm-merged").exists());

    // Each node has a disk of its own, and that of one is full.
    let scratch = cluster.directory.path().join("scratch");
    let full = format!("{}.n3", scratch.display());
    cluster.script(&["in"], &["n3", "mount", "-t", "tmpfs", "-o", "size=1m", "none", &full]);
    fs::write(&settings, format!("[slurm]\nscratch = \"{}.$SLURMD_NODENAME\"\n", scratch.display())).unwrap();

    // Submitted and left alone, ended, and taken up again by the same command.
    let detached = [&on_slurm("slurm-merged")[..], &["--detach"]].concat();
    let said = cluster.run(&workshop, &detached);
    assert!(said.contains("submitted 3 shards as job"), "{said}");
    let said = cluster.run(&workshop, &detached);
    assert!(!said.contains("submitted 3 shards"), "{said}");
    let (code, said) =
        cluster.try_run(&workshop, &["validate", "--run-id", "slurm-merged", "--on", "slurm", "--detach"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("was submitted with other arguments, tasks or predictions"), "{said}");
    cluster.run(&workshop, &["runs", "cancel", "slurm-merged"]);
    wait_until("the jobs are gone", || cluster.ask("squeue", &["--noheader"]).trim().is_empty().then_some(()));
    wait_until("no process of theirs is left", || processes_with("slurm-merged-shard-").is_empty().then_some(()));
    let said = cluster.run(&workshop, &on_slurm("slurm-merged"));
    fs::remove_file(&settings).unwrap();
    assert!(said.contains("submitted earlier"), "{said}");
    assert_eq!(results(&workshop, "slurm-merged"), expected);
    let own = |node: &str| fs::read_dir(format!("{}.{node}", scratch.display())).unwrap().count();
    assert!(own("n1") == 1 && own("n2") == 1, "nodes with room use their disks");

    // The merged run alone is left.
    assert_eq!(runs(&workshop, "slurm-merged"), ["slurm-merged"]);
    assert!(!workshop.data_dir.join("sharded/slurm-merged").exists());
    let (code, said) = cluster.try_run(&workshop, &on_slurm("slurm-merged"));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("has finished already"), "{said}");
    let (code, said) = cluster.try_run(&workshop, &["runs", "cancel", "slurm-merged"]);
    assert_eq!(code, Some(2), "{said}");
}

#[test]
fn accounts_tell_how_a_forgotten_job_ended() {
    let (repository, workshop) = demonstration::given_alone();
    remove_runs(&workshop, "accounts-");
    let cluster = Cluster::with_accounts();
    let selected = repository.name.to_string();
    let validate = ["validate", "--no-confirm", "--format", "json", &selected, "--run-id", "accounts-merged"];
    let on_slurm = [&validate[..], &["--on", "slurm", "--shards", "3"]].concat();
    let settings = workshop.data_dir.join("settings.toml");
    fs::write(&settings, "[slurm]\noptions = [\"--hold\"]\n").unwrap();
    cluster.run(&workshop, &[&on_slurm[..], &["--detach"]].concat());
    fs::remove_file(&settings).unwrap();
    let job = cluster.ask("squeue", &["--noheader", "--format=%F"]).trim().to_owned();
    cluster.ask("scancel", &[&job]);
    wait_until("the controller forgets the job", || {
        cluster.ask("squeue", &["--noheader", "--states=all"]).trim().is_empty().then_some(())
    });
    let said = cluster.run(&workshop, &on_slurm);
    for shard in 1..=3 {
        let lost = format!("shard {shard} was lost (Slurm says CANCELLED), and is submitted again");
        assert!(said.contains(&lost), "{said}");
    }
    assert_eq!(runs(&workshop, "accounts-merged"), ["accounts-merged"]);
}

/// Gold and the submissions of each category, a shard for each task: a node goes in the middle, it and another can't write one
/// shard's results, the third has a full disk.
#[test]
#[ignore = "takes minutes: a node's daemon has to be missed first"]
fn full_what_nodes_can_not_do_is_done_elsewhere() {
    let (repository, workshop) = demonstration::given_alone();
    remove_runs(&workshop, "hard-");
    let cluster = Cluster::start();
    let predictions = workshop.sources.join("all-predictions.jsonl");
    fs::write(&predictions, submissions::lines(&repository)).unwrap();
    let score =
        ["score", "--predictions", predictions.to_str().unwrap(), "--format", "json", "--no-cache", "--no-mutation"];
    let score = [&score[..], &[repository.name.as_str(), "--run-id"]].concat();
    cluster.run(&workshop, &[&score[..], &["hard-whole"]].concat());
    let expected = results(&workshop, "hard-whole");

    let scratch = cluster.directory.path().join("scratch").display().to_string();
    cluster.script(&["in"], &["n3", "mount", "-t", "tmpfs", "-o", "size=1m", "none", &format!("{scratch}.n3")]);
    let settings = workshop.data_dir.join("settings.toml");
    fs::write(&settings, format!("[slurm]\nscratch = \"{scratch}.$SLURMD_NODENAME\"\n")).unwrap();
    let sealed = workshop.data_dir.join("runs/hard-merged-shard-1");
    fs::create_dir_all(&sealed).unwrap();
    let sealed = sealed.to_str().unwrap();
    for node in ["n1", "n2"] {
        cluster.script(&["in"], &[node, "mount", "--bind", sealed, sealed]);
        cluster.script(&["in"], &[node, "mount", "-o", "remount,bind,ro", sealed]);
    }
    let on_slurm = [&score[..], &["hard-merged", "--on", "slurm", "--shards", "5"]].concat();
    let mut command = cluster.command(&workshop, &on_slurm);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let records = workshop.data_dir.join("runs/hard-merged-shard-2/records.jsonl");
    wait_until("shard 2 has a record", || fs::metadata(&records).ok().filter(|file| file.len() > 0));
    cluster.script(&["lose"], &["n2"]);
    let output = child.wait_with_output().unwrap();
    fs::remove_file(&settings).unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("shard 1 was lost (Slurm says FAILED on n1)") && said.contains(", away from n1"), "{said}");
    assert_eq!(results(&workshop, "hard-merged"), expected, "{said}");
    assert_eq!(runs(&workshop, "hard-merged"), ["hard-merged"]);
}

#[test]
#[ignore = "takes minutes: a node's daemon has to be missed first"]
fn full_what_a_lost_node_did_is_done_elsewhere() {
    let (repository, workshop) = demonstration::given_alone();
    remove_runs(&workshop, "lost-");
    let cluster = Cluster::start();
    let selected = repository.name.to_string();
    let score = ["score", "--predictions", "gold", "--format", "json", &selected, "--no-cache", "--run-id"];
    cluster.run(&workshop, &[&score[..], &["lost-whole"]].concat());
    let expected = results(&workshop, "lost-whole");
    let on_slurm = [&score[..], &["lost-merged", "--on", "slurm", "--shards", "3"]].concat();
    let mut command = cluster.command(&workshop, &on_slurm);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let records = workshop.data_dir.join("runs/lost-merged-shard-2/records.jsonl");
    wait_until("shard 2 has a record", || fs::metadata(&records).ok().filter(|file| file.len() > 0));
    let nodes = cluster.ask("squeue", &["--noheader", "--array", "--format=%K %N"]);
    let node = nodes.lines().find_map(|line| line.trim().strip_prefix("2 ")).unwrap().trim().to_owned();
    cluster.script(&["lose"], &[&node]);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains(&format!("shard 2 was lost (Slurm says NODE_FAIL on {node})")), "{said}");
    assert!(said.contains(&format!(", away from {node}")), "{said}");
    assert_eq!(results(&workshop, "lost-merged"), expected);
    assert_eq!(runs(&workshop, "lost-merged"), ["lost-merged"]);
}
