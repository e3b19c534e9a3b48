use std::collections::BTreeSet;

use super::*;

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
    let logs = CellLogs::create(Some(root.path()), &"t".parse().unwrap(), Cell::Nn).unwrap();
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
        logs.keep(name, ".stdout", b"out").unwrap();
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
