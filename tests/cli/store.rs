//! `store`: verified, cleaned up, exported and imported.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use fs_err as fs;
use insta::assert_snapshot;
use serde_json::{Value, json};
use testevo_sandbox::artifact::store::Store;
use testevo_sandbox::data_dir::DataDir;
use testevo_sandbox::digest::Digest;
use testevo_sandbox::execution::build::prepared::{CompiledRevision, PREPARED_SCHEMA, Prepared};
use testevo_sandbox::execution::build::surefire::JvmSettings;
use testevo_sandbox::lock::{JdkLock, LockFile as _, MavenFile, ToolchainLock};

use super::import::write_published;
use crate::support::command::CommandLine;
use crate::support::locks;

/// Imports the published sample and writes locks for it whose bytes are in the store; returns the jar's digest.
fn locked(line: &CommandLine) -> Digest {
    write_published(line);
    line.run(&["import", "published"]);
    let data_dir = DataDir::open(&line.path().join("data")).unwrap();
    let jar = Store::of(&data_dir).unwrap().put(b"a jar").unwrap();
    fs::create_dir_all(data_dir.join("locks")).unwrap();
    let toolchain = locks::toolchain();
    toolchain.store(&data_dir.join("locks/toolchain.lock")).unwrap();
    let manifest = fs::read_dir(data_dir.join("manifests")).unwrap().next().unwrap().unwrap().path();
    let stem = manifest.file_stem().unwrap().to_str().unwrap().to_owned();
    let file = MavenFile {
        path: "g/a/1/a-1.jar".to_owned(),
        origin: "central".to_owned(),
        sha256: jar,
        size: 5,
        own: false,
        released: false,
    };
    let lock = locks::repository(&stem.replacen("__", "/", 1), vec![file], &[]);
    lock.store(&data_dir.join(format!("locks/{stem}.lock"))).unwrap();
    jar
}

fn blob(line: &CommandLine, digest: &Digest) -> PathBuf {
    line.path().join("data/store/blobs/sha256").join(digest.hex())
}

#[test]
fn a_corrupted_blob_is_found_named_and_removed() {
    let line = CommandLine::new();
    let jar = locked(&line);
    assert_snapshot!(line.run(&["store", "verify"]), @"
    exit 0
    ---- stdout
    1 blob sound, 0.0 MiB read
    ");
    fs::write(blob(&line, &jar), "other").unwrap();
    assert_snapshot!(line.run(&["store", "verify"]), @"
    exit 6
    ---- stdout
    corrupted: sha256:fc8bd814a3051a9717431182d5af2a2d654481aac82a028c05c73afa4ca38823
    0 blobs sound, 0.0 MiB read
    ---- stderr
    error: 1 of the store's blobs hold other bytes than their names promise
    hint: `store verify --repair` removes them; `build-images` fetches or makes them again
    ");
    assert_snapshot!(line.run(&["store", "export", "--output", "x.tar"]), @"
    exit 6
    ---- stderr
    error: blob sha256:fc8bd814a3051a9717431182d5af2a2d654481aac82a028c05c73afa4ca38823 in the store holds other bytes (sha256:d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa)
    hint: remove `[DIRECTORY]/data/store/blobs/sha256/fc8bd814a3051a9717431182d5af2a2d654481aac82a028c05c73afa4ca38823`; `build-images` fetches or makes it again
    ");
    assert!(!line.path().join("x.tar").exists());
    assert_snapshot!(line.run(&["store", "verify", "--repair", "--format", "json"]), @r#"
    exit 0
    ---- stdout
    {"bytes":5,"corrupted":["sha256:fc8bd814a3051a9717431182d5af2a2d654481aac82a028c05c73afa4ca38823"],"layers":{"bytes":0,"damaged":[],"removed":0,"sound":0,"unknown":0},"repaired":true,"schema":1,"sound":0}
    ---- stderr
    removed 1 corrupted blob
    "#);
    assert!(!blob(&line, &jar).exists());
}

#[test]
fn only_garbage_goes() {
    let line = CommandLine::new();
    let jar = locked(&line);
    let store = Store::of(&DataDir::open(&line.path().join("data")).unwrap()).unwrap();
    let garbage = store.put(b"nothing names it").unwrap();
    assert_snapshot!(line.run(&["store", "gc"]), @"
    exit 0
    ---- stdout
    0 blobs removed, 0.0 MiB; 1 in use, 1 too young to tell
    ");
    assert_snapshot!(line.run(&["store", "gc", "--min-age", "0", "--dry-run"]), @"
    exit 0
    ---- stdout
    1 blob would be removed, 0.0 MiB; 1 in use, 0 too young to tell
    ");
    assert!(store.contains(&garbage));
    assert_snapshot!(line.run(&["store", "gc", "--min-age", "0", "--format", "json"]), @r#"
    exit 0
    ---- stdout
    {"bytes":16,"class_archives":0,"disk":null,"dry_run":false,"layers":[],"prepared":0,"released":0,"removed":["sha256:576dd080bf7394bb172e12308b368b1acd5e1bc98e61de6c14432a94a95e0ddf"],"schema":1,"used":1,"young":0}
    "#);
    assert!(!store.contains(&garbage) && store.contains(&jar));
}

/// Describes a prepared revision that was last used so long ago; returns the description's path, and its blobs.
fn prepared(line: &CommandLine, unused: Duration) -> (PathBuf, [Digest; 2]) {
    let store = Store::of(&DataDir::open(&line.path().join("data")).unwrap()).unwrap();
    let (key, tree) = (Digest::of(b"a key"), store.put(b"a compiled tree").unwrap());
    let recording = store.put(b"a recording").unwrap();
    let revision = CompiledRevision {
        key,
        tree,
        tree_bytes: 15,
        recording,
        module: "/work/project".to_owned(),
        output: String::new(),
        test_output: String::new(),
        class_path: Vec::new(),
        jars: Default::default(),
        test_calls: Vec::new(),
        main_calls: Vec::new(),
        settings: JvmSettings::default(),
        generates: false,
        unfit: None,
        build_cpu_ms: None,
    };
    let state = Prepared::Compiled(Box::new(revision));
    let path = store.root().join("prepared").join(format!("{}.json", key.hex()));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(
        &path,
        json!({ "schema": PREPARED_SCHEMA, "key": key, "blobs": [tree, recording], "value": state }).to_string(),
    )
    .unwrap();
    fs::File::open(&path).unwrap().file().set_modified(SystemTime::now() - unused).unwrap();
    (path, [tree, recording])
}

#[test]
fn prepared_revisions_go_by_age_and_by_size() {
    let line = CommandLine::new();
    let collected = |more: &[&str]| -> Value {
        let said = line.run(&[&["store", "gc", "--format", "json"], more].concat());
        serde_json::from_str(said.strip_prefix("exit 0\n---- stdout\n").unwrap_or_else(|| panic!("{said}"))).unwrap()
    };
    let hour = Duration::from_secs(3600);
    for (limits, given_up) in [
        (&[][..], 0),
        (&["--prepared-days", "4"], 0),
        (&["--prepared-days", "2"], 1),
        (&["--prepared-days", "0"], 1),
        (&["--prepared-gib", "1"], 0),
        (&["--prepared-gib", "0"], 1),
        // A run may be at it.
        (&["--prepared-days", "0", "--prepared-gib", "0", "--min-age", "80"], 0),
    ] {
        let (path, _) = prepared(&line, 75 * hour);
        assert_eq!(collected(&[limits, &["--dry-run"]].concat())["prepared"], given_up, "{limits:?}");
        assert!(path.exists(), "{limits:?}: only told");
        assert_eq!(collected(limits)["prepared"], given_up, "{limits:?}");
        assert_eq!(path.exists(), given_up == 0, "{limits:?}");
    }

    let (path, blobs) = prepared(&line, 75 * hour);
    let found = collected(&["--min-age", "0"]);
    assert_eq!((&found["used"], &found["removed"]), (&json!(2), &json!([])), "what a description names is in use");
    let found = collected(&["--min-age", "0", "--prepared-days", "0"]);
    let removed: Vec<&str> = found["removed"].as_array().unwrap().iter().map(|blob| blob.as_str().unwrap()).collect();
    let mut expected = blobs.map(|blob| blob.to_string());
    expected.sort();
    assert_eq!(removed, expected, "with it go its blobs");
    assert!(!path.exists());
    let (_, blobs) = prepared(&line, 75 * hour);
    assert_snapshot!(line.run(&["store", "gc", "--prepared-gib", "0", "--min-age", "1"]), @"
    exit 0
    ---- stdout
    0 blobs removed, 0.0 MiB; 0 in use, 2 too young to tell
    1 prepared revision removed
    ");
    assert!(blobs.iter().all(|digest| blob(&line, digest).exists()), "blobs that are young stay whoever named them");
}

#[test]
fn an_exported_lock_is_taken_elsewhere_and_never_over_another_one() {
    let line = CommandLine::new();
    let jar = locked(&line);
    assert_snapshot!(line.run(&["store", "export", "nothing/*", "--output", "x.tar"]), @"
    exit 2
    ---- stderr
    error: no repository `nothing/*` has a lock
    hint: run `testevo-sandbox lock` for it first
    ");
    assert_snapshot!(line.run(&["store", "export", "--output", "x.tar"]), @"
    exit 0
    ---- stderr
    wrote 1 blob of 1 repository, 0.0 MiB
    ");

    let there = CommandLine::new();
    fs::copy(line.path().join("x.tar"), there.path().join("x.tar")).unwrap();
    assert_snapshot!(there.run(&["store", "import", "x.tar"]), @"
    exit 0
    ---- stderr
    took 1 blob of 1 repository
    ");
    assert!(blob(&there, &jar).exists());
    let files = |line: &CommandLine| -> Vec<String> {
        line.files().into_iter().filter(|path| path.starts_with("data/locks/") && path.ends_with(".lock")).collect()
    };
    assert_eq!(files(&there), files(&line));
    for path in files(&line) {
        assert_eq!(fs::read(line.path().join(&path)).unwrap(), fs::read(there.path().join(&path)).unwrap());
    }
    // Locks and bytes are enough for an image; no task was imported here.
    let image = |line: &CommandLine| {
        let text = line.run(&["build-images", "--proof", "none", "--offline", "--format", "json"]);
        let built: serde_json::Value = serde_json::from_str(text.lines().nth(2).unwrap()).unwrap();
        built["config_digest"].clone()
    };
    assert_eq!(image(&there), image(&line));
    // The same again changes nothing; another lock is not replaced unless asked for, and is kept then.
    assert!(there.run(&["store", "import", "x.tar"]).starts_with("exit 0"));
    let path = there.path().join("data/locks/toolchain.lock");
    let mut toolchain = ToolchainLock::load(&path).unwrap();
    toolchain.jdks.push(JdkLock { major: 21, packages: Vec::new() });
    toolchain.store(&path).unwrap();
    assert_snapshot!(there.run(&["store", "import", "x.tar"]), @"
    exit 6
    ---- stderr
    error: the lock `[DIRECTORY]/data/locks/toolchain.lock` is not the archive's
    hint: import with `--replace`, which keeps it in locks/history, or into another `--data-dir`
    ");
    assert!(there.run(&["store", "import", "x.tar", "--replace"]).starts_with("exit 0"));
    let kept = toolchain.digest().hex();
    assert!(there.path().join(format!("data/locks/history/{kept}.lock")).is_file());
}

#[test]
fn what_a_strangers_manifest_changes_is_told_and_what_makes_no_sense_refused() {
    let line = CommandLine::new();
    locked(&line);
    let manifest = fs::read_dir(line.path().join("data/locks")).unwrap().find_map(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        Some(format!("data/manifests/{}.toml", name.strip_suffix(".lock").filter(|stem| *stem != "toolchain")?))
    });
    let manifest = manifest.unwrap();
    let text = fs::read_to_string(line.path().join(&manifest)).unwrap();
    let own = format!("{text}clone_url = \"file:///etc\"\nlimits.run_memory_mib = 65536\n");
    line.write(&manifest, &own);
    assert!(line.run(&["store", "export", "--output", "x.tar"]).starts_with("exit 0"));
    let there = CommandLine::new();
    fs::copy(line.path().join("x.tar"), there.path().join("x.tar")).unwrap();
    let told = there.run(&["store", "import", "x.tar"]);
    for expected in ["exit 0\n", "cloned from file:///etc\n", "overrides `clone_url`, `limits.run_memory_mib`\n"] {
        assert!(told.contains(expected), "{told}");
    }
    // It is this machine's now.
    assert!(!there.run(&["store", "import", "x.tar"]).contains("warning"));

    // Of the same length, so that nothing but the value is wrong with the archive.
    let bytes = fs::read(line.path().join("x.tar")).unwrap();
    let good = b"run_memory_mib = 65536";
    let at: Vec<usize> = (0..bytes.len() - good.len()).filter(|at| bytes[*at..].starts_with(good)).collect();
    let mut bytes = bytes;
    for at in at {
        bytes[at..at + good.len()].copy_from_slice(b"run_memory_mib = 0    ");
    }
    fs::write(there.path().join("y.tar"), bytes).unwrap();
    fs::remove_file(there.path().join(&manifest)).unwrap();
    let refused = there.run(&["store", "import", "y.tar"]);
    assert!(refused.starts_with("exit 4\n") && refused.contains("0 as `limits.run_memory_mib`"), "{refused}");
    assert!(!there.path().join(&manifest).exists());
}

/// Returns the permissions of a file or directory below the working directory.
fn mode(line: &CommandLine, path: impl AsRef<std::path::Path>) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(line.path().join(path)).unwrap().permissions().mode() & 0o777
}

#[test]
fn containers_may_read_what_is_stored_and_others_only_what_the_caller_lets_them() {
    for (umask, directory, file, blobs) in [("077", 0o700, 0o600, 0o644), ("002", 0o775, 0o664, 0o664)] {
        let (line, there) = (CommandLine::new(), CommandLine::new());
        let jar = locked(&line);
        assert!(line.run_under(umask, &[], &["store", "export", "--output", "x.tar"]).starts_with("exit 0"));
        assert_eq!(mode(&line, "x.tar"), file, "{umask}");
        fs::rename(line.path().join("x.tar"), there.path().join("x.tar")).unwrap();
        assert!(there.run_under(umask, &[], &["store", "import", "x.tar"]).starts_with("exit 0"));
        assert_eq!(mode(&there, "data"), directory, "{umask}");
        assert_eq!(mode(&there, blob(&there, &jar)), blobs, "{umask}");
    }
}

#[test]
fn what_is_no_archive_is_refused() {
    let line = CommandLine::new();
    line.write("x.tar", "garbage that is no archive at all");
    assert_snapshot!(line.run(&["store", "import", "x.tar"]), @"
    exit 4
    ---- stderr
    error: the archive `x.tar` can't be used: failed to read entire block
    hint: copy it again from where `store export` wrote it, and compare the sizes
    ");
    assert_snapshot!(line.run(&["store", "import", "y.tar"]), @"
    exit 3
    ---- stderr
    error: the archive `y.tar` could not be read
      caused by: failed to open file `y.tar`: No such file or directory (os error 2)
    hint: check the file's permissions and the free space
    ");
}
