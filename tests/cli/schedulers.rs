//! The scripts and manifests for schedulers that docs/schedulers.md gives.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use fs_err as fs;

fn script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}")).unwrap();
    fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs the script for ssh with two hosts, and returns whether it succeeded and what was called, sorted.
fn shards_over_ssh(program: &str) -> (bool, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("hosts"), "one\ntwo\n").unwrap();
    // As ssh does, it passes the words on to a shell.
    script(&path("ssh"), "shift\nexec sh -c \"$*\"\n");
    script(
        &path("program"),
        // A line at once, because two shards write at the same time.
        &format!("cd '{}'\necho \"$(printf '%s|' \"$@\")\" >> said\n{program}", directory.path().display()),
    );
    let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/schedulers/ssh-shards"))
        .arg(path("hosts"))
        .args(["3", "june", "score", "--predictions", "it's a file", "--data-dir", "/a b"])
        .envs([("SSH", path("ssh")), ("PROGRAM", path("program"))])
        .output()
        .unwrap();
    let mut said: Vec<String> = fs::read_to_string(path("said")).unwrap().lines().map(str::to_owned).collect();
    said.sort();
    (output.status.success(), said)
}

#[test]
fn shards_over_ssh_are_tried_again_and_merged() {
    let shard = |number: u32| {
        format!("score|--predictions|it's a file|--data-dir|/a b|--shard|{number}/3|--run-id|june-shard-{number}|")
    };
    let merge = "runs|merge|june-shard-1|june-shard-2|june-shard-3|--run-id|june|--data-dir|/a b|".to_owned();
    // The second shard's host fails once; the third shard's checks fail, which is a result.
    let (fine, said) = shards_over_ssh(
        "case $* in *shard-2) [ -e once ] || { touch once; exit 255; } ;; *' 3/3 '*) exit 1 ;; esac\nexit 0\n",
    );
    assert!(fine);
    assert_eq!(said, [merge.clone(), shard(1), shard(2), shard(2), shard(3)]);
    // A host that lacks an engine does not end a shard: another host has it.
    let (fine, said) = shards_over_ssh("case $* in *shard-2) [ -e once ] || { touch once; exit 7; } ;; esac\nexit 0\n");
    assert!(fine);
    assert_eq!(said, [merge.clone(), shard(1), shard(2), shard(2), shard(3)]);
    // What is wrong with the arguments is not tried again, and merging tells what is missing.
    let (fine, said) = shards_over_ssh("case $1 in score) exit 2 ;; *) exit 4 ;; esac\n");
    assert!(!fine);
    assert_eq!(said, [merge, shard(1), shard(2), shard(3)]);
}

#[test]
#[ignore = "installs PyPI's kubernetes-validate"]
fn the_job_for_kubernetes_fits_the_schema() {
    let directory = tempfile::tempdir().unwrap();
    let fine = |command: &mut Command| {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    };
    fine(Command::new("python3").args(["-m", "venv"]).arg(directory.path()));
    fine(Command::new(directory.path().join("bin/pip")).args(["install", "--quiet", "kubernetes-validate"]));
    let job = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/schedulers/kubernetes.yaml");
    fine(Command::new(directory.path().join("bin/kubernetes-validate")).args(["--strict", job]));
}
