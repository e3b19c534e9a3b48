//! Files and directories that no harness would write.

use super::*;

#[test]
fn strange_files_lose_nothing() {
    let fixture = Fixture::new();
    let deep = format!(
        "{{\"model_patch\":null,\"instance_id\":\"t1\",\"more\":{}{}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    for (text, counts) in [
        ("{\"model_patch\":null,\"instance_id\":\"\"}", [0, 1, 0, 0]),
        ("{\"model_patch\":null,\"instance_id\":\"T1\"}", [0, 1, 0, 0]),
        ("{\"model_patch\":null,\"instance_id\":\"t1 \"}", [0, 1, 0, 0]),
        ("{\"model_patch\":null,\"instance_id\":\"t1\\u0000\"}", [0, 1, 0, 0]),
        ("{\"model_patch\":null,\"instance_id\":\"../t1\"}", [0, 1, 0, 0]),
        ("{\"model_patch\":null,\"instance_id\":\"\\u202et1\"}", [0, 1, 0, 0]),
        ("{\"model_patch\":null,\"task_id\":\"t1\"}", [1, 0, 0, 0]),
        ("{\"model_patch\":null,\"task_id\":\"t9\",\"instance_id\":\"t1\"}", [1, 0, 0, 0]),
        ("{\"\\u0074\\u0031\":{\"model_patch\":null}}", [1, 0, 0, 0]),
        ("{\"t1\":{\"model_patch\":null},\"t1\":{\"model_patch\":null}}", [1, 0, 0, 1]),
        (
            "{\"t1\":{\"model_patch\":null},\"t2\":{\"model_patch\":null},\"t3\":{\"model_patch\":null},\"t4\":{\"model_patch\":null}}",
            [2, 1, 1, 0],
        ),
        (
            "[{\"model_patch\":null,\"instance_id\":\"t1\",\"cost_usd\":1e308},{\"model_patch\":null,\"instance_id\":\"t1\",\"cost_usd\":1e308}]",
            [1, 0, 0, 1],
        ),
        (
            "[{\"model_patch\":null,\"instance_id\":\"t1\",\"model_name_or_path\":\"a\"},{\"model_patch\":null,\"instance_id\":\"t1\"}]",
            [2, 0, 0, 0],
        ),
        (
            "{\"model_patch\":null,\"instance_id\":\"t1\"}\r\n\r\n{\"model_patch\":null,\"instance_id\":\"t3\"}\r\n",
            [1, 0, 1, 0],
        ),
        ("\r\r{\"model_patch\":null,\"instance_id\":\"t1\"}\r", [1, 0, 0, 0]),
        (
            "[\r{\"model_patch\":null,\"instance_id\":\"t1\"},\r{\"model_patch\":null,\"instance_id\":\"t2\"}\r]\r",
            [2, 0, 0, 0],
        ),
        ("{\"instance_id\":\"t1\",\"tokens\":18446744073709551615,\"model_patch\":\"\\u0000\"}", [1, 0, 0, 0]),
        (&deep, [1, 0, 0, 0]),
    ] {
        // A file whose ids are all unknown is refused.
        let (text, counts) = match counts {
            [0, unknown, others @ ..] => {
                let known = "{\"model_patch\":null,\"instance_id\":\"t2\"}";
                (format!("{text}\n{known}\n"), [1, unknown, others[0], others[1]])
            }
            counts => (text.to_owned(), counts),
        };
        let predictions = fixture.text(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let found: usize = predictions.models.values().map(BTreeMap::len).sum();
        let all = [found, predictions.unknown.len(), predictions.not_selected, predictions.repeated];
        assert_eq!(all, counts, "{}", &text[..text.len().min(100)]);
        let shown = |id: &str| id.chars().all(|c| !c.is_control());
        assert!(predictions.unknown.iter().all(|unknown| shown(&unknown.id)));
    }
}

/// Writes something that is not a prediction below the directory that is given.
type Strange = fn(&Path);

/// What is found: predictions, unknown ones and repeated ones, or which error.
type Read = Result<[usize; 3], &'static str>;

#[test]
fn strange_directories_are_typed_errors() {
    use std::os::unix::ffi::OsStringExt as _;
    use std::os::unix::fs::symlink;
    let pipe = |path: PathBuf| {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    };

    let cases: [(&str, Strange, Read); 22] = [
        ("nothing", |_| {}, Err("nothing")),
        ("only what is hidden", |at| fs::write(at.join(".t1.patch"), "x").unwrap(), Err("nothing")),
        ("a link", |at| symlink("/etc/passwd", at.join("t1.patch")).unwrap(), Err("kind")),
        ("a link to nothing", |at| symlink("nowhere", at.join("t1.patch")).unwrap(), Err("kind")),
        ("a link to itself", |at| symlink("t1.patch", at.join("t1.patch")).unwrap(), Err("kind")),
        ("a link to a directory", |at| symlink("..", at.join("t1")).unwrap(), Err("kind")),
        ("a socket", |at| drop(std::os::unix::net::UnixListener::bind(at.join("t1.patch")).unwrap()), Err("kind")),
        ("another ending", |at| fs::write(at.join("t1.txt"), "x").unwrap(), Err("malformed")),
        ("a stray file alone", |at| fs::write(at.join("notes.txt"), "x").unwrap(), Err("nothing")),
        ("an ending of other letters", |at| fs::write(at.join("t1.PATCH"), "x").unwrap(), Err("malformed")),
        ("no ending", |at| fs::write(at.join("t1"), "x").unwrap(), Err("malformed")),
        (
            "two for one task",
            |at| {
                fs::write(at.join("t1.patch"), "x").unwrap();
                fs::write(at.join("t1.diff"), "y").unwrap();
            },
            Err("conflict"),
        ),
        (
            "one twice",
            |at| {
                fs::write(at.join("t1.patch"), "x").unwrap();
                fs::write(at.join("t1.diff"), "x").unwrap();
            },
            Ok([1, 0, 1]),
        ),
        ("a directory for a test file", |at| fs::create_dir_all(at.join("t1/ATest.java")).unwrap(), Err("kind")),
        ("a directory in place of a patch", |at| fs::create_dir(at.join("t1.patch")).unwrap(), Err("unmatched")),
        ("a task's directory without its file", |at| fs::create_dir(at.join("t1")).unwrap(), Ok([1, 0, 0])),
        ("a name of other letters", |at| fs::write(at.join("T1.patch"), "x").unwrap(), Err("unmatched")),
        ("a name of two lines", |at| fs::write(at.join("t1\n\u{1b}[2J.patch"), "x").unwrap(), Err("unmatched")),
        (
            "a name that is no UTF-8",
            |at| {
                let name = std::ffi::OsString::from_vec(b"t1\xff.patch".to_vec());
                fs::write(at.join(name), "x").unwrap();
            },
            Err("unmatched"),
        ),
        (
            "links and sockets of other names",
            |at| {
                fs::write(at.join("t1.patch"), "x").unwrap();
                symlink("/etc/passwd", at.join("notes")).unwrap();
                symlink("nowhere", at.join("other.patch")).unwrap();
                drop(std::os::unix::net::UnixListener::bind(at.join("socket")).unwrap());
            },
            Ok([1, 0, 0]),
        ),
        (
            "another file in a task's directory",
            |at| {
                fs::create_dir(at.join("t1")).unwrap();
                fs::write(at.join("t1/Wrong.java"), "x").unwrap();
            },
            Err("other name"),
        ),
        (
            "a link in a task's directory",
            |at| {
                fs::create_dir(at.join("t1")).unwrap();
                symlink("/etc", at.join("t1/logs")).unwrap();
            },
            Ok([1, 0, 0]),
        ),
    ];
    for (what, make, expected) in cases {
        let fixture = Fixture::new();
        let directory = fixture.directory.path().join("agent");
        fs::create_dir(&directory).unwrap();
        make(&directory);
        let found = fixture.read(&directory);
        let shown = found.as_ref().map_err(ToString::to_string).err();
        let found = found.as_ref().map_err(kind).map(|predictions| {
            let found = predictions.models.values().map(BTreeMap::len).sum();
            [found, predictions.unknown.len(), predictions.repeated]
        });
        assert_eq!(found, expected, "{what}: {shown:?}");
    }
    // Nobody writes into these pipes: what waited for them would wait forever.
    let fixture = Fixture::new();
    let directory = fixture.directory.path().join("agent");
    fs::create_dir_all(directory.join("t2/src/test/java")).unwrap();
    for name in ["t1.patch", "t1", "t2/ATest.java", "t2/src/test/java/ATest.java"] {
        pipe(directory.join(name));
        assert_eq!(kind(&fixture.read(&directory).unwrap_err()), "kind", "{name}");
        fs::remove_file(directory.join(name)).unwrap();
    }
    fs::remove_dir(directory.join("t2/src/test/java")).unwrap();
    symlink("/etc", directory.join("t2/src/test/java")).unwrap();
    assert_eq!(kind(&fixture.read(&directory).unwrap_err()), "kind");
    pipe(fixture.directory.path().join("p.jsonl"));
    for path in [fixture.directory.path().join("p.jsonl"), PathBuf::from("/dev/null")] {
        assert_eq!(kind(&fixture.read(&path).unwrap_err()), "kind");
    }
    assert_eq!(kind(&fixture.read(Path::new("nowhere")).unwrap_err()), "absent");
}

/// Files of holes take no time to make and would take long to read: their size is looked at before.
#[test]
fn files_of_any_size_are_not_read_in_vain() {
    let fixture = Fixture::new();
    let hollow = |name: &str, bytes: u64| {
        let path = fixture.write(name, "");
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(bytes).unwrap();
        path
    };
    assert_eq!(kind(&fixture.read(&hollow("p.jsonl", 1 << 40)).unwrap_err()), "too large");
    hollow("agent/t1.patch", 100 << 20);
    hollow("agent/t2/ATest.java", 1 << 40);
    let predictions = fixture.read(&fixture.directory.path().join("agent")).unwrap();
    assert_eq!(patch_of(&predictions, "agent", "t1"), Content::TooLarge { bytes: 100 << 20, digest: None });
    assert_eq!(patch_of(&predictions, "agent", "t2"), Content::TooLarge { bytes: 1 << 40, digest: None });
    // Of what is not read nobody can say that it is the same.
    hollow("agent/t1.diff", 100 << 20);
    assert_eq!(kind(&fixture.read(&fixture.directory.path().join("agent")).unwrap_err()), "conflict");
}
