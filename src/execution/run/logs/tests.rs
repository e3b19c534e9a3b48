use std::collections::BTreeSet;
use std::sync::Mutex;

use super::*;
use crate::event::Event;

/// Returns logs below a directory, with so much room for each submission, and what is told of them.
fn kept(root: &Path, whole: u64) -> (Logs, Arc<Mutex<Vec<String>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let events = EventSink::new(move |event| {
        if let Event::Warning { text } = event {
            heard.lock().unwrap().push(text);
        }
    });
    (Logs { root: root.to_owned(), rooms: Arc::new(Rooms::new(events, whole)) }, told)
}

fn program(word: &str) -> Program {
    let limits =
        crate::engine::spec::CommandLimits { wall_seconds: 1, cpu_seconds: 1, output_bytes: 1, flood_bytes: 1 };
    let command = Command {
        argv: vec![word.to_owned()],
        environment: Vec::new(),
        working_directory: "/work".to_owned(),
        limits,
        events: false,
        required: false,
        only_after_success_of: None,
    };
    Program { schema: crate::engine::spec::PROGRAM_SCHEMA, door_port: None, steps: vec![Step::Run(command)] }
}

#[test]
fn no_two_names_share_their_logs() {
    let root = tempfile::tempdir().unwrap();
    let logs = CellLogs::create(Some(&kept(root.path(), MOST_LOG_BYTES).0), &"t".parse().unwrap(), Cell::Nn).unwrap();
    let long = "m".repeat(160);
    let names = [
        "m-1-1".to_owned(),
        "m-1-2".to_owned(),
        format!("{long}-1-1"),
        format!("{long}-1-2"),
        format!("{long}n-1-1"),
        "gr\u{f6}\u{df}e-1-1".to_owned(),
        "gr\u{fc}\u{df}e-1-1".to_owned(),
        "A$B_C.m-1-1".to_owned(),
        "A$B$C.m-1-1".to_owned(),
        "../../m-1-1".to_owned(),
    ];
    for name in &names {
        logs.invocation(name, &program(name), 0).unwrap();
        logs.keep(name, ".stdout", &Captured::Memory(b"out".to_vec()), 0).unwrap();
    }
    let directory = root.path().join("t/nn");
    let files = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<String> = files.collect();
    assert_eq!(files.len(), 2 * names.len(), "{files:?}");
    assert!(files.contains("m-1-1.stdout") && files.iter().all(|file| file.len() < 200), "{files:?}");
    for name in &names {
        let command = command_of(&directory, name).unwrap().unwrap();
        assert_eq!(command.argv, [name.as_str()]);
    }
    assert!(command_of(&directory, "n-1-1").unwrap().is_none());
}

#[test]
fn methods_of_other_classes_than_the_test_files_go_by_both() {
    for (id, name) in [("ATest#m", "m"), ("p.ATest#m", "m"), ("ATest$B#m", "ATest$B.m"), ("BTest#m", "BTest.m")] {
        assert_eq!(method_name("p.ATest", &id.parse().unwrap()), name);
    }
}

/// Returns how many bytes the logs of a task take, without what is said in them of what is missing.
fn taken(root: &Path, task: &str) -> usize {
    let below = |directory: &Path| -> Vec<PathBuf> {
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let files = below(&root.join(task)).into_iter().flat_map(|cell| below(&cell));
    files.map(|file| fs::read(file).unwrap().iter().filter(|byte| **byte == b'x').count()).sum()
}

#[test]
fn all_logs_of_a_submission_share_a_limit_and_say_what_they_lack() {
    let root = tempfile::tempdir().unwrap();
    let task: TaskId = "t".parse().unwrap();
    let flood = Captured::Memory(vec![b'x'; 5000]);
    let write = |logs: &Logs, methods: std::ops::Range<usize>| {
        for cell in [Cell::Nn, Cell::No] {
            let logs = CellLogs::create(Some(logs), &task, cell).unwrap();
            for method in methods.clone() {
                logs.keep(&format!("m{method}-1-1"), ".stdout", &flood, 0).unwrap();
            }
        }
    };
    let (logs, _) = kept(root.path(), 8000);
    write(&logs, 0..14);
    let whole = taken(root.path(), "t");
    assert!((7000..=8000).contains(&whole), "an eighth for each, until nothing is left: {whole}");
    let first = fs::read_to_string(root.path().join("t/nn/m0-1-1.stdout")).unwrap();
    let said = "\n[4000 bytes were dropped here: the logs of a submission have a limit]\n";
    assert_eq!(first, format!("{}{said}", "x".repeat(1000)));
    let last = fs::read_to_string(root.path().join("t/no/m13-1-1.stdout")).unwrap();
    assert!(last.starts_with("\n[5000 bytes were dropped here: "), "{last}");

    // What is written again takes the place of what was there; a run that is continued goes on with what is left.
    write(&logs, 0..3);
    assert!(taken(root.path(), "t") <= whole);
    write(&kept(root.path(), 8000).0, 14..20);
    assert!(taken(root.path(), "t") <= whole);

    // Another submission has its own.
    let other = logs.below("model");
    write(&other, 0..1);
    assert_eq!(taken(&root.path().join("model"), "t"), 2000);
}

#[test]
fn what_is_cut_stays_what_its_name_says() {
    let root = tempfile::tempdir().unwrap();
    let (logs, _) = kept(root.path(), 8 * 25);
    let logs = CellLogs::create(Some(&logs), &"t".parse().unwrap(), Cell::Nn).unwrap();
    let lines = Captured::Memory(b"{\"event\":1}\n".repeat(4));
    logs.keep("m", ".events.jsonl", &lines, 3).unwrap();
    logs.keep("m", ".jupiter.xml", &Captured::Memory(b"<testsuite>".repeat(4)), 0).unwrap();
    let read = |name: &str| fs::read_to_string(root.path().join("t/nn").join(name)).unwrap();
    let events = read("m.events.jsonl");
    let parsed: Vec<serde_json::Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((parsed.len(), &parsed[2]["dropped_bytes"]), (3, &serde_json::json!(2 * 12 + 3)), "{events}");
    assert!(
        read("m.jupiter.xml").ends_with("<!-- 19 bytes were dropped here: the logs of a submission have a limit -->\n")
    );
    // What init dropped is said too, where all that came is there.
    logs.keep("n", ".stdout", &Captured::Memory(b"out".to_vec()), 7).unwrap();
    assert_eq!(read("n.stdout"), "out\n[7 bytes were dropped here: the output of a command has a limit]\n");
}

#[test]
fn a_full_disk_loses_logs_and_is_told_once() {
    let root = tempfile::tempdir().unwrap();
    let (logs, told) = kept(root.path(), MOST_LOG_BYTES);
    let logs = CellLogs::create(Some(&logs), &"t".parse().unwrap(), Cell::Nn).unwrap();
    let directory = root.path().join("t/nn");
    for name in ["m-1-1", "m-2-1"] {
        // What is written there meets a full disk.
        for suffix in [".stdout", COMMAND_SUFFIX] {
            std::os::unix::fs::symlink("/dev/full", directory.join(format!("{name}{suffix}"))).unwrap();
        }
        logs.invocation(name, &program(name), 0).unwrap();
        logs.keep(name, ".stdout", &Captured::Memory(b"out".to_vec()), 0).unwrap();
    }
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0, "no log is there in part");
    let told = told.lock().unwrap();
    assert!(matches!(told.as_slice(), [one] if one.starts_with("logs are lost, results are not: ")), "{told:?}");
    // Other errors are errors.
    std::os::unix::fs::symlink("/nowhere/file", directory.join("n.stdout")).unwrap();
    assert!(logs.keep("n", ".stdout", &Captured::Memory(b"out".to_vec()), 0).is_err());
}
