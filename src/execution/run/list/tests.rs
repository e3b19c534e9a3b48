use super::*;
use crate::canonical_json::canonical_json;
use crate::execution::run::directory::RunDirectory;

fn inputs() -> Vec<u8> {
    let inputs = RunInputs {
        schema: INPUTS_SCHEMA,
        tasks: Vec::new(),
        images: Default::default(),
        maven_arguments: Default::default(),
        launchers: Default::default(),
        limits: Default::default(),
        surefire: Default::default(),
        paths: Vec::new(),
        repeats: 1,
        tools: None,
        shard: None,
    };
    canonical_json(&inputs).unwrap()
}

#[test]
fn living_runs_are_told_from_dead_ones_and_stay() {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(directory.path()).unwrap();
    let state_of = |run: &str| list(&data_dir).unwrap().into_iter().find(|entry| entry.run_id == run).unwrap().state;
    let open = || RunDirectory::open(&data_dir, "validate", &inputs(), Some("r1"), false).unwrap().0;
    let run = open();
    assert_eq!(state_of("r1"), RunState::Running);
    assert!(matches!(remove(&data_dir, "r1", false), Err(RunDirectoryError::InUse(_))));
    drop(run);
    assert_eq!(state_of("r1"), RunState::Unfinished);
    assert_eq!(read(&data_dir, LATEST).unwrap().inputs.unwrap().repeats, 1);
    open().finish(b"{}").unwrap();
    assert_eq!(state_of("r1"), RunState::Finished);
    assert!(remove(&data_dir, "r1", true).unwrap() > 0);
    assert_eq!(state_of("r1"), RunState::Finished);
    remove(&data_dir, "r1", false).unwrap();
    assert!(matches!(read(&data_dir, "r1"), Err(RunDirectoryError::Unknown(_))));
    assert!(matches!(read(&data_dir, LATEST), Err(RunDirectoryError::Unknown(_))));
    assert!(matches!(remove(&data_dir, "../tmp", false), Err(RunDirectoryError::InvalidId(_))));
}

#[test]
fn what_can_not_be_read_is_listed_and_named() {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(directory.path()).unwrap();
    drop(RunDirectory::open(&data_dir, "validate", &inputs(), Some("r1"), false).unwrap());
    fs::write(directory.path().join("runs/r1/inputs.json"), "{}").unwrap();
    assert!(matches!(read(&data_dir, "r1"), Err(RunDirectoryError::Malformed { .. })));
    let file = |name: &str| directory.path().join("runs/r1").join(name);
    let endless = |name: &str| fs::File::create(file(name)).unwrap().set_len(1 << 40).unwrap();
    endless("inputs.json");
    assert!(matches!(read(&data_dir, "r1"), Err(RunDirectoryError::Malformed { .. })));
    fs::write(file("inputs.json"), inputs()).unwrap();
    assert_eq!(read(&data_dir, "r1").unwrap().records, []);
    endless("records.jsonl");
    assert!(matches!(read(&data_dir, "r1"), Err(RunDirectoryError::Malformed { .. })));
    fs::write(file("run.json"), "{").unwrap();
    let entry = list(&data_dir).unwrap().remove(0);
    assert_eq!((entry.state, entry.reason.is_some()), (RunState::Unreadable, true));
    remove(&data_dir, "r1", false).unwrap();
}
