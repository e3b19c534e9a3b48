//! What goes wrong on the way to images and verdicts, as a user meets it: each with its message, hint and exit code, and
//! nothing half-written left behind.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;

use fs_err as fs;
use insta::{assert_snapshot, with_settings};
use testevo_sandbox::artifact::store::Store;
use testevo_sandbox::data_dir::DataDir;
use testevo_sandbox::digest::Digest;
use testevo_sandbox::lock::{LockFile as _, MavenFile, RepositoryLock};

use super::bundle::Maker;
use super::import::write_published;
use super::lock::{MIRROR, imported};
use crate::support::command::CommandLine;
use crate::support::locks;
use crate::support::waiting::wait_until;

pub(super) const CONTENT: &[u8] = b"the bytes of a jar";
pub(super) const BUILD: [&str; 4] = ["build-images", "first/one", "--proof", "none"];

/// Imports published tasks and writes locks of `first/one` that need one file, which the store does not have.
pub(super) fn locked() -> CommandLine {
    let line = CommandLine::new();
    write_published(&line);
    line.run(&["import", "published"]);
    let data_dir = DataDir::open(&line.path().join("data")).unwrap();
    fs::create_dir_all(data_dir.join("locks")).unwrap();
    let toolchain = locks::toolchain();
    let file = MavenFile {
        path: "g/a/1/a-1.jar".to_owned(),
        origin: "central".to_owned(),
        sha256: Digest::of(CONTENT),
        size: CONTENT.len() as u64,
        own: false,
        released: false,
    };
    let lock = locks::repository("first/one", vec![file], &["set"]);
    toolchain.store(&data_dir.join("locks/toolchain.lock")).unwrap();
    lock.store(&lock_path(&line)).unwrap();
    line
}

fn lock_path(line: &CommandLine) -> PathBuf {
    line.path().join("data/locks/first__one.lock")
}

/// Puts the locked file into the store.
pub(super) fn stored(line: &CommandLine) -> PathBuf {
    let store = Store::of(&DataDir::open(&line.path().join("data")).unwrap()).unwrap();
    store.path(&store.put(CONTENT).unwrap())
}

/// Answers every request with these bytes, for as long as the process lives; returns the address.
fn serve(content: &'static [u8]) -> String {
    serve_by(move |_| Some(content.to_vec()))
}

/// Answers with the files that are below the directory at that moment, as an origin does.
fn serve_below(root: PathBuf) -> String {
    serve_by(move |path| fs::read(root.join(path.trim_start_matches('/'))).ok())
}

/// Answers requests by their path, for as long as the process lives; returns the address.
fn serve_by(content: impl Fn(&str) -> Option<Vec<u8>> + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            // A client that gave up early is none of the server's business.
            let length = stream.read(&mut request).unwrap_or(0);
            let asked = String::from_utf8_lossy(&request[..length]);
            let (status, content) = match asked.split(' ').nth(1).and_then(&content) {
                Some(content) => ("200 OK", content),
                None => ("404 Not Found", Vec::new()),
            };
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", content.len());
            let _ = stream.write_all(&[head.as_bytes(), &content].concat());
        }
    });
    format!("http://{address}")
}

fn check(name: &str, text: &str) {
    let filters = [
        (r"127\.0\.0\.1:[0-9]+", "127.0.0.1:[PORT]"),
        (r"tmp/[0-9]+-[0-9]+-[0-9a-f]{12}/blob-[0-9-]+", "tmp/[OWNER]/[BLOB]"),
        (r"done in [0-9]+ m?s", "done in [TIME]"),
        (r"(?m)^.*; [0-9]+ s so far\n", ""),
        // Other tests' processes die on purpose.
        (r"removed [^\n]* left behind\n", ""),
        // Machines differ in what runs containers.
        (r"(?m)^.* runs the containers\n", ""),
    ];
    with_settings!({filters => filters}, { assert_snapshot!(name, text) });
}

/// Tells what a broken-off build left: images, or anything unfinished.
fn leftovers(line: &CommandLine) -> Vec<String> {
    // The tests' own process holds its part as well.
    let left = |path: &String| {
        path.starts_with("data/images/") || (path.starts_with("data/tmp/") && !path.ends_with(".flock"))
    };
    line.files().into_iter().filter(left).collect()
}

#[test]
fn a_mirror_that_answers_garbage_gives_no_image() {
    let line = locked();
    let origin = format!("central={}", serve(b"<html>log in to the hotel's network</html>"));
    check("garbage-file", &line.run(&[&BUILD[..], &["--origin", &origin]].concat()));
    assert_eq!(leftovers(&line), Vec::<String>::new());
    let origin = format!("debian={}", serve(b"<html>log in to the hotel's network</html>"));
    // Packages are looked for once the sources are there.
    let line = imported();
    check("garbage-index", &line.run(&[&["lock", "--origin", &origin], &MIRROR[..]].concat()));
    assert!(!line.path().join("data/locks/toolchain.lock").exists());
}

#[test]
fn an_origin_that_nobody_serves_is_named() {
    let line = locked();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("central=http://{}", listener.local_addr().unwrap());
    drop(listener);
    check("origin-away", &line.run(&[&BUILD[..], &["--origin", &origin]].concat()));
    check("offline", &line.run(&[&BUILD[..], &["--offline"]].concat()));
    for (name, origin) in [("wrong-origin", "central=ftp://example.org/"), ("wrong-origin-name", "a b=https://a.test")]
    {
        check(name, &line.run(&[&BUILD[..], &["--origin", origin]].concat()));
    }
    assert_eq!(leftovers(&line), Vec::<String>::new());
}

#[test]
fn a_file_that_its_origin_no_longer_has_is_named_until_it_is_back() {
    let line = locked();
    let mut lock = RepositoryLock::load(&lock_path(&line)).unwrap();
    let other = b"the bytes of another jar";
    let file = MavenFile {
        path: "g/b/1/b-1.jar".to_owned(),
        sha256: Digest::of(other),
        size: other.len() as u64,
        ..lock.files[0].clone()
    };
    lock.files.push(file);
    lock.store(&lock_path(&line)).unwrap();
    let served = |name: &str| line.path().join("served").join(name);
    for (path, content) in [("g/a/1/a-1.jar", CONTENT), ("g/b/1/b-1.jar", other)] {
        fs::create_dir_all(served(path).parent().unwrap()).unwrap();
        fs::write(served(path), content).unwrap();
    }
    let origin = format!("central={}", serve_below(line.path().join("served")));
    let build = [&BUILD[..], &["--origin", &origin]].concat();
    assert!(line.run(&build).starts_with("exit 0\n"));
    assert!(line.run(&["store", "export", "first/one", "--output", "kept.tar"]).starts_with("exit 0\n"));

    // In which order files are fetched is no matter.
    let without_progress =
        |text: String| -> String { text.split_inclusive('\n').filter(|line| !line.starts_with("download ")).collect() };
    let forget = || {
        for directory in ["data/store", "data/images"] {
            fs::remove_dir_all(line.path().join(directory)).unwrap();
        }
    };
    let holds = |content: &[u8]| {
        let store = Store::of(&DataDir::open(&line.path().join("data")).unwrap()).unwrap();
        store.contains(&Digest::of(content))
    };
    fs::remove_file(served("g/a/1/a-1.jar")).unwrap();
    forget();
    let before = fs::read(lock_path(&line)).unwrap();
    check("vanished-file", &without_progress(line.run(&build)));
    assert_eq!(leftovers(&line), Vec::<String>::new());
    assert_eq!((holds(CONTENT), holds(other)), (false, true), "what came stays, and no part of what did not");
    assert_eq!(fs::read(lock_path(&line)).unwrap(), before);
    assert!(line.run(&["images", "list"]).starts_with("exit 0\n"));
    // Only what is missing is asked for, once it is back.
    fs::remove_file(served("g/b/1/b-1.jar")).unwrap();
    fs::write(served("g/a/1/a-1.jar"), CONTENT).unwrap();
    let text = line.run(&build);
    assert!(text.starts_with("exit 0\n"), "{text}");
    assert_eq!(leftovers(&line), ["data/images/first__one.json"]);

    // What the hint says helps where it never comes back.
    forget();
    fs::remove_dir_all(line.path().join("served")).unwrap();
    let text = line.run(&build);
    assert!(text.starts_with("exit 5\n") && text.contains("2 of 2 files could not be fetched"), "{text}");
    assert!(["g/a/1/a-1.jar: failed", "g/b/1/b-1.jar: failed"].iter().all(|named| text.contains(named)), "{text}");
    assert!(line.run(&["store", "import", "kept.tar"]).starts_with("exit 0\n"));
    let text = line.run(&build);
    assert!(text.starts_with("exit 0\n"), "{text}");
}

#[test]
fn a_corrupted_blob_gives_no_image() {
    let line = locked();
    let path = stored(&line);
    fs::write(&path, b"the bytes of a war").unwrap();
    check("corrupted-blob", &line.run(&BUILD));
    assert_eq!(leftovers(&line), Vec::<String>::new());
    // What the hint says helps.
    fs::remove_file(&path).unwrap();
    let origin = format!("central={}", serve(CONTENT));
    let text = line.run(&[&BUILD[..], &["--origin", &origin]].concat());
    assert!(text.starts_with("exit 0"), "{text}");
}

#[test]
fn a_build_that_is_killed_in_a_download_leaves_nothing_to_the_next() {
    let line = locked();
    // Sends a part and then nothing, until the client is gone.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("central=http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", CONTENT.len());
        stream.write_all(&[head.as_bytes(), &CONTENT[..4]].concat()).unwrap();
        // The end, or a reset: either is that of the client.
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let mut build = line.start(&[&BUILD[..], &["--origin", &origin]].concat());
    let unfinished = || line.files().into_iter().find(|file| file.starts_with("data/tmp/") && file.contains("/blob-"));
    wait_until("a part of a file", || {
        assert!(build.try_wait().unwrap().is_none(), "it ended before anything was written");
        unfinished()
    });
    build.kill().unwrap();
    build.wait().unwrap();
    assert!(unfinished().is_some(), "a killed process removes nothing");
    let origin = format!("central={}", serve(CONTENT));
    let text = line.run(&[&BUILD[..], &["--origin", &origin]].concat());
    assert!(text.starts_with("exit 0\n"), "{text}");
    assert_eq!(leftovers(&line), ["data/images/first__one.json"]);
}

#[test]
fn a_lock_that_is_none_is_named() {
    let line = locked();
    let (path, text) = (lock_path(&line), fs::read_to_string(lock_path(&line)).unwrap());
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    check("torn-lock", &line.run(&BUILD));
    fs::write(&path, text.replace("schema = 1", "schema = 2")).unwrap();
    check("newer-lock", &line.run(&BUILD));
    fs::write(&path, text.replace("origin = \"central\"", "origin = \"/ a\\u0007\"")).unwrap();
    check("lock-of-an-impossible-origin", &line.run(&BUILD));
    fs::write(&path, b"schema = 1\nrepository = \"\xff\"\n").unwrap();
    check("lock-that-is-no-text", &line.run(&BUILD));
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    check("lock-that-is-a-directory", &line.run(&BUILD));
    fs::remove_dir(&path).unwrap();
    // Larger than any lock, without its bytes being anywhere.
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    check("lock-without-end", &line.run(&BUILD));
    fs::write(&path, text.replace("g/a/1/a-1.jar", "../../../etc/passwd")).unwrap();
    stored(&line);
    check("hostile-lock", &line.run(&BUILD));
    fs::remove_file(&path).unwrap();
    check("no-lock", &line.run(&BUILD));
    assert_eq!(leftovers(&line), Vec::<String>::new());
}

#[test]
fn what_is_another_repositorys_is_not_taken() {
    let line = locked();
    stored(&line);
    let name = |from: &str, to: &str| {
        let (from, to) = (line.path().join("data").join(from), line.path().join("data").join(to));
        fs::copy(from, to).unwrap();
    };
    name("locks/first__one.lock", "locks/second__two.lock");
    let build = ["build-images", "second/two", "--proof", "none"];
    check("lock-of-another-repository", &line.run(&build));
    assert!(line.run(&["store", "export", "--output", "x.tar"]).starts_with("exit 6\n"));
    assert!(!line.path().join("x.tar").exists());
    fs::remove_file(line.path().join("data/locks/second__two.lock")).unwrap();
    name("manifests/first__one.toml", "manifests/second__two.toml");
    check("manifest-of-another-repository", &line.run(&["lock", "second/two", "--check"]));
    for all in [&build[..], &["store", "export", "--output", "x.tar"]] {
        assert!(line.run(all).starts_with("exit 6\n"));
    }
    assert_eq!(leftovers(&line), Vec::<String>::new());
}

#[test]
fn one_repository_that_fails_keeps_no_other_from_its_image() {
    let line = locked();
    stored(&line);
    let build = ["build-images", "*", "--proof", "none"];
    let second = line.path().join("data/locks/second__two.lock");
    fs::write(&second, "schema = 2\n").unwrap();
    let text = line.run(&build);
    let (stdout, stderr) = text.split_once("---- stderr\n").unwrap();
    assert!(stdout.starts_with("exit 6\n") && stdout.contains("\nfirst/one "), "{text}");
    check("one-fails", stderr);
    assert!(line.path().join("data/images/first__one.json").is_file());
    // The worst decides, whichever comes first.
    fs::write(lock_path(&line), "schema = 1\n").unwrap();
    fs::remove_file(line.path().join("data/manifests/second__two.toml")).unwrap();
    fs::remove_file(line.path().join("data/images/first__one.json")).unwrap();
    check("both-fail", &line.run(&["build-images", "first/one", "second/two"]));
    check("both-locks-fail", &line.run(&["lock", "--check", "--offline"]));
}

#[test]
fn one_repository_without_sources_keeps_no_other_from_what_agents_and_scorers_get() {
    let maker = Maker::new();
    write_published(&maker.line);
    maker.fine(&["import", "published"]);
    let number = maker.tasks();
    for (arguments, done, written) in [
        (&["workspace", "-o", "all"][..], "written", format!("\n{number} workspaces\n")),
        (&["export", "dataset", "--audience", "agent", "-o", "all.jsonl"], "written", format!("\n{number} tasks\n")),
        (&["bundle", "create", "-o", "all.tar"], "bundled", format!("\nwrote {number} tasks, ")),
    ] {
        let text = maker.run(arguments);
        assert!(text.contains(&written), "{text}");
        assert!(text.contains(&format!("error: 2 of 3 repositories could not be {done}\n")), "{text}");
        for repository in ["first/one", "second/two"] {
            let row = text.split(&format!("\n{repository}: ")).nth(1).unwrap_or_else(|| panic!("{text}"));
            assert!(row.lines().nth(1).unwrap().starts_with("  hint: "), "{text}");
        }
        // A bundle asks for a lock before it asks for sources.
        assert!(text.starts_with(if done == "bundled" { "exit 2\n" } else { "exit 5\n" }), "{text}");
        // Where nothing is left nothing is written.
        let output = arguments.last().unwrap().replace("all", "none");
        let last = arguments.len() - 1;
        let text = maker.run(&[&arguments[..last], &[&output, "first/one", "second/two"]].concat());
        assert!(text.contains(&format!("error: 2 of 2 repositories could not be {done}\n")), "{text}");
        assert!(!maker.line.files().iter().any(|file| file.starts_with("none")), "{text}");
    }
    let text = maker.run(&["workspace", "--dry-run", "-o", "dry"]);
    assert!(text.starts_with("exit 5\n") && text.contains("2 of 3 repositories"), "{text}");
    let lines = fs::read_to_string(maker.line.path().join("all.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), number);
    maker.fine(&["bundle", "verify", "all.tar", "--unsigned"]);
}

/// Writes overrides into the manifest of `first/one`.
fn override_manifest(line: &CommandLine, overrides: &str) {
    let path = line.path().join("data/manifests/first__one.toml");
    let text = fs::read_to_string(&path).unwrap();
    let (facts, _) = text.rsplit_once("\n[overrides]\n").unwrap();
    fs::write(path, format!("{facts}\n[overrides]\n{overrides}\n")).unwrap();
}

#[test]
fn a_lock_for_another_manifest_gives_no_image() {
    let line = locked();
    stored(&line);
    assert!(line.run(&BUILD).starts_with("exit 0"));
    // Where there is no daemon the built-in engine marks its place.
    let files = || -> Vec<String> {
        line.files().into_iter().filter(|path| !path.starts_with("data/store/unpacked/")).collect()
    };
    let before = files();
    override_manifest(&line, "jdk = 11");
    check("lock-of-another-java", &line.run(&BUILD));
    override_manifest(&line, "build.maven_arguments = [\"-Pother\"]");
    check("lock-of-other-arguments", &line.run(&BUILD));
    let text = line.run(&["validate", "first/one"]);
    assert!(text.contains("has no image of its present locks"), "{text}");
    assert_eq!(files(), before);
    override_manifest(&line, "build.debian_packages = [\"openjfx\"]");
    check("unsupported-override", &line.run(&BUILD));
    // What changes nothing of what Maven resolves leaves all as it was.
    override_manifest(&line, "limits.run_cpus = 1");
    assert!(line.run(&BUILD).starts_with("exit 0"));
}

#[test]
fn a_lock_that_still_grows_is_none_but_its_bytes_are_kept() {
    let line = locked();
    let next = lock_path(&line).with_added_extension("next");
    fs::rename(lock_path(&line), &next).unwrap();
    let blob = stored(&line);
    assert!(line.run(&BUILD).starts_with("exit 2"), "there is no lock");
    assert!(line.run(&["store", "export", "--output", "x.tar"]).contains("no repository has a lock"));
    assert!(line.run(&["store", "gc", "--min-age", "0"]).starts_with("exit 0"));
    assert!(blob.exists());
    fs::remove_file(&next).unwrap();
    assert!(line.run(&["store", "gc", "--min-age", "0"]).starts_with("exit 0"));
    assert!(!blob.exists());
}

#[test]
fn what_is_missing_for_a_verdict_is_named() {
    let line = locked();
    stored(&line);
    let absent = [("DOCKER_HOST", "unix:///nowhere/docker.sock")];
    check("no-daemon", &line.run_with(&absent, &["validate", "first/one", "--engine", "docker"]));
    for address in ["unix:///nowhere/docker.sock", "tcp://127.0.0.1:1"] {
        let said = line.run_with(&[("DOCKER_HOST", address)], &["validate", "first/one"]);
        assert!(said.contains(": the built-in engine runs the containers"), "{said}");
        assert!(said.contains("has no image of its present locks"), "{said}");
    }
    check("no-task", &line.run(&["validate", "first_3"]));
    check("no-image", &line.run(&["validate", "first/one"]));
    line.run(&BUILD);
    check("no-mirror", &line.run(&["build-images", "first/one", "--git-mirror", "mirrors/{owner}/{name}"]));
    let mirror = line.path().join("mirrors/first/one");
    git2::Repository::init_bare(&mirror).unwrap();
    check("no-revision", &line.run(&["build-images", "first/one", "--git-mirror", "mirrors/{owner}/{name}"]));
}

#[test]
fn an_engine_that_can_not_hold_what_is_required_is_refused() {
    let line = locked();
    stored(&line);
    let run = |more: &[&str]| {
        let arguments = [&["validate", "first/one", "--engine", "native"], more].concat();
        line.run_confined("mount -t tmpfs tmpfs /sys/fs/cgroup", &arguments)
    };
    let refused = run(&["--require-isolation", "strict"]);
    assert!(refused.starts_with("exit 7\n"), "{refused}");
    assert!(refused.contains("memory") && refused.contains("doctor"), "{refused}");
    let taken = run(&["--require-isolation", "any"]);
    assert!(taken.contains("has no image of its present locks"), "{taken}");
}

#[test]
fn a_full_disk_leaves_nothing_half_written() {
    let line = locked();
    stored(&line);
    // Content that no compressor makes small, for a disk of a mebibyte.
    let mut state = 1_u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    let jar: Vec<u8> = (0..768 << 10).map(|_| noise()).collect();
    let store = Store::of(&DataDir::open(&line.path().join("data")).unwrap()).unwrap();
    let digest = store.put(&jar).unwrap();
    let mut lock = RepositoryLock::load(&lock_path(&line)).unwrap();
    lock.files[0].sha256 = digest;
    lock.files[0].size = jar.len() as u64;
    lock.store(&lock_path(&line)).unwrap();
    // A file system of its own, that goes with the process; no privilege is needed for it. Its space is enough for what
    // the command expects, and too little for the small files beside that.
    let program = assert_cmd::cargo::cargo_bin("testevo-sandbox");
    let script = "mount -t tmpfs -o size=4m tmpfs small && cp -r data small/ && \
                  mount -o remount,size=$(($(du -sk small | cut -f1) + 776))k small && \"$0\" \"$@\" --data-dir small/data; \
                  code=$?; find small/data/images small/data/tmp -type f >left 2>/dev/null; exit $code";
    fs::create_dir(line.path().join("small")).unwrap();
    let output = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
        .arg(&program)
        .args(BUILD)
        .current_dir(line.path())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    check("disk-full", &said.replace(line.path().to_str().unwrap(), "[DIRECTORY]"));
    assert_eq!(fs::read_to_string(line.path().join("left")).unwrap(), "");
}
