use super::*;
use crate::execution::run::record::{Measured, RECORD_SCHEMA};
use crate::outcome::ExecReason;

fn task(track: Track) -> Task {
    Task {
        id: "t".parse().unwrap(),
        repository: "o/n".parse().unwrap(),
        track,
        rev1: "a".repeat(40).parse().unwrap(),
        rev2: "b".repeat(40).parse().unwrap(),
        rev1_date: "2020-01-01".to_owned(),
        rev2_date: "2020-01-01".to_owned(),
        test_file: "src/test/java/ATest.java".parse().unwrap(),
        test_methods: vec!["ATest#m".parse().unwrap()],
        focal_methods: Vec::new(),
    }
}

fn record(cell: Cell, repeat: u32, outcome: Outcome) -> CellRecord {
    CellRecord {
        schema: RECORD_SCHEMA,
        task_id: "t".parse().unwrap(),
        repository: "o/n".parse().unwrap(),
        track: Track::TestUpdate,
        cell,
        method: "ATest#m".parse().unwrap(),
        repeat,
        path: ExecutionPath::Maven,
        outcome,
        detail: String::new(),
        attributed: None,
        missing: Vec::new(),
        attempts: 1,
        key: None,
        measured: Measured::default(),
    }
}

const ASSERTION: Outcome = Outcome::ExecFail(ExecReason::Assertion);

fn class_of(track: Track, records: &[CellRecord]) -> (TaskClass, ValidationSummary) {
    let tasks = [task(track)];
    let (summary, classed) = summarize("r", &tasks, records);
    (classed[0].class, summary)
}

#[test]
fn an_update_task_needs_three_labels() {
    let records = [
        record(Cell::Oo, 1, Outcome::Pass),
        record(Cell::Nn, 1, Outcome::Pass),
        record(Cell::On, 1, ASSERTION),
        record(Cell::No, 1, Outcome::Pass),
    ];
    let (class, summary) = class_of(Track::TestUpdate, &records);
    assert_eq!((class, summary.reproduced), (TaskClass::Reproduced, 1));
    let (class, summary) = class_of(Track::TestUpdate, &records[..3]);
    assert_eq!((class, summary.infrastructure.len()), (TaskClass::Infrastructure, 1), "a missing cell is no label");
    let mut missed = records;
    missed[2].outcome = Outcome::Pass;
    let (class, summary) = class_of(Track::TestUpdate, &missed);
    assert_eq!((class, summary.differing[0].got), (TaskClass::Differing, "pass"));
}

#[test]
fn a_generation_task_needs_one_label_and_tells_discrimination() {
    let records = [record(Cell::Nn, 1, Outcome::Pass), record(Cell::No, 1, Outcome::Pass)];
    let (class, summary) = class_of(Track::TestGeneration, &records);
    assert_eq!(class, TaskClass::Reproduced);
    assert_eq!(summary.discriminating, DiscriminatingCounts { methods: 1, yes: 0, no: 1, inconclusive: 0 });
    assert_eq!(summary.not_discriminating.len(), 1);
}

#[test]
fn paths_are_compared_by_outcome_and_reason() {
    let direct = |record: CellRecord| CellRecord { path: ExecutionPath::Direct, ..record };
    let error = Outcome::ExecFail(ExecReason::Exception);
    let mut records = vec![record(Cell::Nn, 1, Outcome::Pass), direct(record(Cell::Nn, 1, Outcome::Pass))];
    records.extend([record(Cell::No, 1, ASSERTION), direct(record(Cell::No, 1, ASSERTION))]);
    assert_eq!(class_of(Track::TestGeneration, &records).1.path_differences, Some(0));
    assert_eq!(class_of(Track::TestGeneration, &records[..1]).1.path_differences, None);
    records[3].outcome = error;
    let summary = class_of(Track::TestGeneration, &records).1;
    assert_eq!((summary.path_differences, summary.differing_paths[0].cell), (Some(1), Cell::No));
    assert_eq!(summary.discriminating.yes, 1, "the reference path decides");
    records.pop();
    assert_eq!(class_of(Track::TestGeneration, &records).1.differing_paths[0].direct, "no record");
}

#[test]
fn a_task_is_in_one_class_alone() {
    let fault = Outcome::InfraFail(InfraReason::Engine);
    let of_all = [
        record(Cell::Oo, 1, Outcome::Pass),
        record(Cell::Oo, 2, Outcome::Pass),
        // Differs, is flaky, could not be judged: each alone would be a class.
        record(Cell::On, 1, Outcome::Pass),
        record(Cell::On, 2, Outcome::Pass),
        record(Cell::Nn, 1, Outcome::Pass),
        record(Cell::Nn, 2, ASSERTION),
        record(Cell::No, 1, Outcome::Pass),
        record(Cell::No, 2, fault),
    ];
    for (last, expected) in
        [(fault, (TaskClass::Infrastructure, 0, 0, 1)), (Outcome::Pass, (TaskClass::Flaky, 0, 1, 0))]
    {
        let mut records = of_all.clone();
        records[7].outcome = last;
        let (class, summary) = class_of(Track::TestUpdate, &records);
        let lists = (summary.differing.len(), summary.flaky.len(), summary.infrastructure.len());
        assert_eq!((class, lists.0, lists.1, lists.2), expected);
        assert_eq!(summary.reproduced, 0);
    }
    let mut records = of_all;
    (records[5].outcome, records[7].outcome) = (Outcome::Pass, Outcome::Pass);
    let (class, summary) = class_of(Track::TestUpdate, &records);
    assert_eq!((class, summary.differing.len(), summary.flaky.len()), (TaskClass::Differing, 1, 0));
}

#[test]
fn flaky_methods_are_counted_over_repeats() {
    let records = [
        record(Cell::Nn, 1, Outcome::Pass),
        record(Cell::Nn, 2, ASSERTION),
        record(Cell::No, 1, ASSERTION),
        record(Cell::No, 2, ASSERTION),
    ];
    let (class, summary) = class_of(Track::TestGeneration, &records);
    assert_eq!((class, summary.flaky[0].passed, summary.flaky[0].runs), (TaskClass::Flaky, 1, 2));
}
