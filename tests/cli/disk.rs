//! `--max-disk`: what the data directory may take.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fs_err as fs;
use insta::assert_snapshot;
use serde_json::Value;
use testevo_sandbox::digest::Digest;
use testevo_sandbox::lock::{LockFile as _, MavenFile};

use super::import::write_published;
use crate::support::command::CommandLine;
use crate::support::locks;

/// Imports the published sample and writes a lock for it that names files of so many bytes, which nobody has.
fn locked(line: &CommandLine, sizes: &[u64]) {
    write_published(line);
    line.run(&["import", "published"]);
    let locks_directory = line.path().join("data/locks");
    fs::create_dir_all(&locks_directory).unwrap();
    locks::toolchain().store(&locks_directory.join("toolchain.lock")).unwrap();
    let files = sizes.iter().enumerate().map(|(number, size)| MavenFile {
        path: format!("g/a/{number}/a-{number}.jar"),
        origin: "central".to_owned(),
        sha256: Digest::of(&number.to_le_bytes()),
        size: *size,
        own: false,
        released: false,
    });
    let lock = locks::repository("first/one", files.collect(), &[]);
    lock.store(&locks_directory.join("first__one.lock")).unwrap();
}

/// Returns all files below a directory.
fn files(directory: &Path) -> BTreeSet<PathBuf> {
    let (mut found, mut left) = (BTreeSet::new(), vec![directory.to_owned()]);
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => left.push(path),
                false => drop(found.insert(path)),
            }
        }
    }
    found
}

#[test]
fn a_need_beyond_the_limit_ends_a_command_before_it_writes() {
    let line = CommandLine::new();
    locked(&line, &[3 << 30, 2 << 30]);
    let before = files(&line.path().join("data"));
    let build = ["build-images", "first/one", "--proof", "none", "--engine", "native"];
    let limited = |arguments: &[&str]| {
        let said = line.run(&[&build, arguments].concat());
        // What the data directory takes depends on its file system.
        let (start, rest) = said.split_once("which takes ").unwrap_or_else(|| panic!("{said}"));
        format!("{start}which takes …{}", rest.split_once(" MiB").unwrap().1)
    };
    assert_snapshot!(limited(&["--max-disk", "8"]), @"
    exit 3
    ---- stderr
    needs about 10.0 GiB of disk: 5.0 GiB to fetch, 5.0 GiB for layers
    error: about 10.0 GiB are needed in the data directory `[DIRECTORY]/data`, which takes … and may take 8.0 GiB
    hint: allow more with `--max-disk`, or make space: `runs rm` removes runs, `images prune` unused layers, `store gc --min-age 0` also what was used today
    ");
    assert_snapshot!(limited(&["--max-disk", "8", "--dry-run"]), @"
    exit 3
    ---- stderr
    would fetch 2 files (5.0 GiB) and compose the image of first/one
    would need about 10.0 GiB of disk: 5.0 GiB to fetch, 5.0 GiB for layers
    error: about 10.0 GiB are needed in the data directory `[DIRECTORY]/data`, which takes … and may take 8.0 GiB
    hint: allow more with `--max-disk`, or make space: `runs rm` removes runs, `images prune` unused layers, `store gc --min-age 0` also what was used today
    ");
    assert_eq!(files(&line.path().join("data")), before);

    // Sizes in locks may be the largest numbers of TOML, whose sum is no `u64`.
    locked(&line, &[i64::MAX as u64; 3]);
    assert!(limited(&["--max-disk", "8"]).starts_with("exit 3\n"));
    let without = line.run(&build);
    assert!(without.starts_with("exit 3\n") && without.contains("are free on its disk"), "{without}");
}

#[test]
fn the_limit_comes_from_flag_environment_and_settings() {
    let line = CommandLine::new();
    let limit = |variables: &[(&str, &str)], flags: &[&str]| -> Value {
        let said = line.run_with(variables, &[&["store", "gc", "--format", "json"], flags].concat());
        let json = said.strip_prefix("exit 0\n---- stdout\n").unwrap_or_else(|| panic!("{said}"));
        let value: Value = serde_json::from_str(json).unwrap();
        value["disk"]["limit"].clone()
    };
    assert_eq!(limit(&[], &[]), Value::Null);
    line.write("data/settings.toml", "max_disk = 3\n");
    assert_eq!(limit(&[], &[]), 3u64 << 30);
    let variable = [("TESTEVO_SANDBOX_MAX_DISK", "2")];
    assert_eq!(limit(&variable, &[]), 2u64 << 30);
    assert_eq!(limit(&variable, &["--max-disk", "1"]), 1u64 << 30);
    assert_snapshot!(line.run(&["store", "gc", "--max-disk", "0"]), @"
    exit 2
    ---- stderr
    error: invalid value '0' for '--max-disk <GIB>': it is no whole number from 1 on

    For more information, try '--help'.
    ");
    line.write("data/settings.toml", "max_disk = 0\n");
    assert!(line.run(&["store", "gc"]).starts_with("exit 2\n"));
}
