use super::*;
use crate::execution::run::record::Measured;
use crate::outcome::{ExecReason, Outcome};
use crate::task::Track;

pub(in crate::execution::run) fn record(repeat: u32) -> CellRecord {
    CellRecord {
        schema: RECORD_SCHEMA,
        task_id: "t1".parse().unwrap(),
        repository: "o/n".parse().unwrap(),
        track: Track::TestUpdate,
        cell: Cell::On,
        method: "ATest#m".parse().unwrap(),
        repeat,
        path: Default::default(),
        outcome: Outcome::ExecFail(ExecReason::Assertion),
        detail: "x".to_owned(),
        attributed: None,
        missing: Vec::new(),
        attempts: 1,
        key: None,
        measured: Measured::default(),
    }
}

#[test]
fn a_killed_run_is_continued_without_its_torn_line() {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(directory.path()).unwrap();
    let inputs = b"inputs";
    let (mut run, found) = RunDirectory::open(&data_dir, "validate", inputs, None, false).unwrap();
    assert!(found.is_empty());
    run.append(&record(1)).unwrap();
    run.append(&record(2)).unwrap();
    let records = run.path().join("records.jsonl");
    let run_id = run.run_id().to_owned();
    drop(run);
    let length = fs::metadata(&records).unwrap().len();
    fs::OpenOptions::new().write(true).open(&records).unwrap().set_len(length - 5).unwrap();

    let (mut run, found) = RunDirectory::open(&data_dir, "validate", inputs, None, false).unwrap();
    assert_eq!(run.run_id(), run_id);
    assert_eq!(found, [record(1)]);
    run.append(&record(3)).unwrap();
    run.finish(b"{}").unwrap();

    let (run, found) = RunDirectory::open(&data_dir, "validate", inputs, None, false).unwrap();
    assert_ne!(run.run_id(), run_id, "a finished run is not continued");
    assert!(found.is_empty());
}

#[test]
fn a_named_run_is_continued_only_with_equal_inputs_and_by_one_process() {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(directory.path()).unwrap();
    let open = |inputs: &[u8]| RunDirectory::open(&data_dir, "validate", inputs, Some("r1"), false);
    let first = open(b"a").unwrap();
    assert!(matches!(open(b"a"), Err(RunDirectoryError::InUse(_))));
    assert!(matches!(open(b"b"), Err(RunDirectoryError::OtherInputs { .. })));
    drop(first);
    open(b"a").unwrap().0.finish(b"{}").unwrap();
    assert!(matches!(open(b"a"), Err(RunDirectoryError::Finished { .. })));
    let asked = Asked { command: "validate", inputs: b"a", digest: Digest::of(b"a") };
    let held = RunDirectory::hold::<CellRecord>(data_dir.join("runs").join("r1"), &asked, "r1");
    assert!(matches!(held, Err(RunDirectoryError::Finished { .. })), "it may have ended before the lock was had");
    let bad = RunDirectory::open(&data_dir, "validate", b"", Some("../x"), false);
    assert!(matches!(bad, Err(RunDirectoryError::InvalidId(_))));
}

#[test]
fn a_full_disk_ends_a_run_with_whole_records() {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(directory.path()).unwrap();
    let open = || RunDirectory::open(&data_dir, "validate", b"inputs", Some("r1"), false).unwrap();
    let (mut run, _) = open();
    run.append(&record(1)).unwrap();
    let there = std::mem::replace(&mut run.records, fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    let error = run.append(&record(2)).unwrap_err();
    assert!(matches!(error, RunDirectoryError::Full(_)), "{error}");
    run.records = there;
    run.append(&record(3)).unwrap();
    drop(run);
    assert_eq!(open().1, [record(1), record(3)]);
}
