use super::*;
use crate::execution::run::record::{Measured, RECORD_SCHEMA};
use crate::execution::scripted::task;
use crate::outcome::ExecReason;

#[test]
fn what_the_developers_test_took_is_rounded_up_with_headroom() {
    for (took_ms, class) in [
        (0, 30),
        (600, 30),
        (3_000, 30),
        (3_001, 60),
        (6_000, 60),
        (12_000, 120),
        (12_001, 300),
        (60_000, 600),
        (250_000, 600),
        (u64::MAX, 600),
    ] {
        assert_eq!(launch_class(took_ms), class, "{took_ms}");
    }
    for (took_ms, seconds) in [(0, 30), (1, 60), (15_000, 60), (15_001, 90), (20_000, 90), (60_000, 150)] {
        assert_eq!(compile_class(took_ms), seconds, "{took_ms}");
    }
}

#[test]
fn a_sleeping_test_counts_by_the_wall_limit_that_it_needs() {
    // One that slept, one that the machine kept waiting, one that used several processors.
    for (cpu_ms, wall_ms, took) in [(500, 20_000, 5_000), (5_000, 20_000, 5_000), (9_000, 5_000, 9_000)] {
        assert_eq!(launch_took(cpu_ms, wall_ms), took);
        // Ten times what it took in wall time is within the limit of wall time.
        assert!(launch_class(launch_took(cpu_ms, wall_ms)) * WALL_TIMES * 1000 >= wall_ms * HEADROOM);
    }
}

#[test]
fn a_class_is_recorded_once_and_holds_whatever_is_measured_later() {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(directory.path()).unwrap();
    let classes = TimeClasses::new(&data_dir);
    let (first, mut second) = (task(), task());
    second.id = "u".parse().unwrap();
    assert_eq!(classes.get(&first).unwrap(), None);
    assert_eq!(classes.record(&first, Took::default()).unwrap(), None);
    assert!(!data_dir.join("time-classes").exists(), "nothing was measured");

    let took = |launch_ms, build_ms| Took { launch_ms, build_ms };
    let of = |launch_seconds, compile_seconds| {
        Some(TimeClass { revision: first.rev2.clone(), launch_seconds, compile_seconds })
    };
    assert_eq!(classes.record(&first, took(Some(4_000), None)).unwrap(), of(Some(60), None));
    // A busy machine, another one, a later program: a missing part is added, the other stays.
    assert_eq!(classes.record(&first, took(Some(40_000), Some(20_000))).unwrap(), of(Some(60), Some(90)));
    assert_eq!(classes.record(&first, took(Some(1), Some(1))).unwrap(), of(Some(60), Some(90)));
    classes.record(&second, took(Some(1), None)).unwrap();
    assert_eq!(TimeClasses::new(&data_dir).get(&first).unwrap(), of(Some(60), Some(90)));

    // What was measured on other code says nothing.
    let other = Task { rev2: "c".repeat(40).parse().unwrap(), ..task() };
    assert_eq!(classes.get(&other).unwrap(), None);
    let whole = fs::read_to_string(classes.path(&first.repository)).unwrap();
    for bad in ["{".to_owned(), whole.replace("\"schema\":1", "\"schema\":7"), whole.replace(":60", ":61")] {
        fs::write(classes.path(&first.repository), bad).unwrap();
        for error in [classes.get(&first).unwrap_err(), classes.record(&first, took(Some(1), None)).unwrap_err()] {
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "what was recorded is never replaced in silence");
        }
    }
}

#[test]
fn a_validation_says_what_passing_launches_on_new_code_took() {
    let task = task();
    let record = |cell, outcome, (launch_cpu_ms, launch_ms), compile_cpu_ms| CellRecord {
        schema: RECORD_SCHEMA,
        task_id: task.id.clone(),
        repository: task.repository.clone(),
        track: task.track,
        cell,
        method: task.test_methods[0].clone(),
        repeat: 1,
        path: Default::default(),
        outcome,
        detail: String::new(),
        attributed: None,
        missing: Vec::new(),
        attempts: 1,
        key: None,
        measured: Measured {
            launch_cpu_ms: Some(launch_cpu_ms),
            launch_ms: Some(launch_ms),
            compile_cpu_ms,
            ..Measured::default()
        },
    };
    let timeout = Outcome::ExecFail(ExecReason::Timeout);
    let records = [
        record(Cell::Nn, Outcome::Pass, (1_000, 900), None),
        record(Cell::Nn, Outcome::Pass, (2_000, 12_000), Some(7)),
        record(Cell::Nn, timeout, (300_000, 300_000), Some(9)),
        record(Cell::Oo, Outcome::Pass, (5_000, 5_000), Some(9)),
    ];
    assert_eq!(Took::of(&task.id, &records), Took { launch_ms: Some(3_000), build_ms: Some(7) });
    assert_eq!(Took::of(&"u".parse().unwrap(), &records), Took::default());
}
