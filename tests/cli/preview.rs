//! `--dry-run`: it says what would be done and changes nothing.

use std::collections::BTreeMap;

use insta::assert_snapshot;

use super::failures::{BUILD, locked, stored};
use super::lock::{MIRROR, imported, write_locks};
use crate::support::command::CommandLine;

/// Returns the bytes of every file but those of locks that processes hold.
fn contents(line: &CommandLine) -> BTreeMap<String, Vec<u8>> {
    let files = line.files().into_iter().filter(|file| !file.starts_with("data/locks/.held/"));
    files.map(|file| (file.clone(), fs_err::read(line.path().join(file)).unwrap())).collect()
}

#[test]
fn lock_says_what_it_would_resolve() {
    let line = imported();
    let before = contents(&line);
    let run = |more: &[&str]| line.run(&[&["lock", "--dry-run"], more].concat());
    assert_snapshot!(run(&MIRROR), @r"
    exit 0
    ---- stderr
    would resolve 1 of 1 set of build files of testevo/sample
    would resolve the toolchain with Java 21
    would need about 64.0 MiB of disk: 64.0 MiB to fetch
    ");
    assert_snapshot!(run(&[]), @r"
    exit 0
    ---- stderr
    would fetch testevo/sample: its build files are not here yet
    would resolve the toolchain with Java 21
    would need about 64.0 MiB of disk: 64.0 MiB to fetch
    ");
    assert!(run(&["--offline"]).starts_with("exit 5\n"));
    assert_eq!(contents(&line), before);
    write_locks(&line, &[21]);
    let before = contents(&line);
    assert_snapshot!(run(&MIRROR), @r"
    exit 0
    ---- stderr
    testevo/sample is locked: 1 set of build files
    ");
    assert_snapshot!(run(&[&["--update"], &MIRROR[..]].concat()), @r"
    exit 0
    ---- stderr
    would resolve 1 of 1 set of build files of testevo/sample
    would resolve the toolchain with Java 21
    ");
    assert_eq!(contents(&line), before);
}

#[test]
fn build_images_says_what_it_would_fetch_and_show() {
    let line = locked();
    let before = contents(&line);
    let run = |arguments: &[&str]| line.run(&[arguments, &["--dry-run"]].concat());
    assert_snapshot!(run(&BUILD), @r"
    exit 0
    ---- stderr
    would fetch 1 file (0.0 MiB) and compose the image of first/one
    ");
    assert_snapshot!(run(&["build-images", "first/one"]), @r"
    exit 0
    ---- stderr
    would fetch 1 file (0.0 MiB) and compose the image of first/one
    would fetch first/one, whose sources are not here yet, to prove its image
    ");
    assert_eq!(contents(&line), before);
    stored(&line);
    assert!(line.run(&BUILD).starts_with("exit 0\n"));
    let before = contents(&line);
    assert_snapshot!(run(&BUILD), @r"
    exit 0
    ---- stderr
    first/one has an image of its present locks
    ");
    assert_eq!(contents(&line), before);

    let line = imported();
    write_locks(&line, &[21]);
    let before = contents(&line);
    let run = |more: &[&str]| line.run(&[&["build-images", "--dry-run"], &MIRROR[..], more].concat());
    assert_snapshot!(run(&[]), @r"
    exit 0
    ---- stderr
    would fetch 3 files (0.0 MiB) and compose the image of testevo/sample
    would show by 1 execution without a network that the image of testevo/sample works
    ");
    // Both sides of five tasks.
    assert!(run(&["--proof", "full"]).contains("would show by 10 executions"));
    assert_eq!(contents(&line), before);
}

#[test]
fn validate_says_what_comes_first() {
    let line = locked();
    let run = || line.run(&["validate", "first/one", "second/two", "--dry-run"]);
    assert_snapshot!(run(), @r"
    exit 0
    ---- stderr
    would execute 8 cells of 3 tasks from 2 repositories; in each cell a method takes 1 launch
    warning: first/one has no image of its present locks: run `testevo-sandbox build-images first/one` first
    would fetch first/one, whose sources are not here yet
    warning: second/two has no lock: run `testevo-sandbox lock second/two` first
    would fetch second/two, whose sources are not here yet
    would need about 1.5 MiB of disk: 1.5 MiB for the run
    ");
    stored(&line);
    assert!(line.run(&BUILD).starts_with("exit 0\n"));
    let text = run();
    assert!(!text.contains("first/one has no") && text.contains("second/two has no lock"), "{text}");
    fs_err::remove_file(line.path().join("data/locks/toolchain.lock")).unwrap();
    assert!(run().contains("the toolchain has no lock: run `testevo-sandbox lock first/one` first"));
}

#[test]
fn one_repository_keeps_no_other_from_being_looked_at() {
    let line = locked();
    fs_err::remove_file(line.path().join("data/manifests/first__one.toml")).unwrap();
    let commands = [
        (&["validate"][..], "second/two has no lock"),
        (&["score", "--predictions", "gold"], "second/two has no lock"),
        (&["lock"], "would fetch second/two"),
        (&["build-images"], "(hint: run `testevo-sandbox lock second/two`)"),
    ];
    for (command, other) in commands {
        let text = line.run(&[command, &["first/one", "second/two", "--dry-run"]].concat());
        assert!(text.contains("first/one is left out: there is no manifest"), "{text}");
        assert!(text.contains(other), "{text}");
        assert!(!text.starts_with("exit 0\n"), "{text}");
    }
}

#[test]
fn demo_says_what_it_would_do_before_it_writes_its_sample() {
    let line = CommandLine::new();
    assert_snapshot!(line.run(&["demo", "--dry-run"]), @r"
    exit 0
    ---- stderr
    would write the sample repository, 5 tasks, to `data/demo`, lock it, build its image, validate it and score two submissions
    ");
    assert_eq!(line.files(), Vec::<String>::new());
}

#[test]
fn nothing_is_written_for_agents() {
    let line = imported();
    write_locks(&line, &[21]);
    let before = contents(&line);
    for mirror in [&MIRROR[..], &[]] {
        let run = |arguments: &[&str]| {
            let text = line.run(&[arguments, &["--limit", "2", "--dry-run"], mirror].concat());
            assert_eq!(contents(&line), before, "{arguments:?}");
            assert!(!line.path().join("there").exists(), "{arguments:?}");
            text
        };
        for command in [&["workspace"][..], &["export", "dataset", "--audience", "agent"]] {
            let text = run(&[command, &["-o", "there"]].concat());
            assert!(text.starts_with("exit 0\n") && text.contains("would write 2 tasks to `there`"), "{text}");
            assert_eq!(text.contains("would fetch testevo/sample"), mirror.is_empty(), "{text}");
        }
        let text = run(&["export", "dataset", "--audience", "agent"]);
        assert!(text.starts_with("exit 0\n---- stderr\n") && text.contains("would write 2 tasks to `-`"), "{text}");
        // What agents' images are made of is not locked.
        for command in [&["workspace", "--load"][..], &["export", "harbor", "--audience", "agent", "-o", "there"]] {
            let text = run(command);
            let said = "would load 2 images\nerror: the toolchain lock has no tools of agents";
            assert!(text.starts_with("exit 2\n") && text.contains(said), "{text}");
        }
        let text = run(&["workspace", "--shell", "--save", "there"]);
        assert!(text.starts_with("exit 2\n") && text.contains("can't be told before it is open"), "{text}");
    }
}

#[test]
fn archives_are_neither_read_nor_written() {
    let line = locked();
    let blob = stored(&line);
    assert!(line.run(&BUILD).starts_with("exit 0\n"));
    assert!(line.run(&["store", "export", "--output", "x.tar"]).starts_with("exit 0\n"));
    fs_err::write(&blob, "other bytes").unwrap();
    let before = contents(&line);
    assert_snapshot!(line.run(&["store", "import", "x.tar", "--dry-run"]), @r"
    exit 0
    ---- stderr
    would read `x.tar` and take locks, manifests and bytes into `[DIRECTORY]/data/store`
    ");
    assert!(line.run(&["store", "verify", "--repair", "--dry-run"]).starts_with("exit 6\n"));
    for target in ["--output", "--context"] {
        let text = line.run(&["images", "export", "first/one", target, "y", "--dry-run"]);
        assert!(text.starts_with("exit 0\n") && text.contains("would write the image of first/one, "), "{text}");
    }
    assert_eq!(contents(&line), before);
    assert!(!line.path().join("y").exists());
}
