use super::*;
use crate::execution::run::record::MOST_MISSING;
use crate::outcome::{CompileReason, ExecReason};
use crate::task::Track;

fn record(cell: Cell, outcome: Outcome) -> CellRecord {
    CellRecord {
        schema: RECORD_SCHEMA,
        task_id: "t1".parse().unwrap(),
        repository: "o/n".parse().unwrap(),
        track: Track::TestUpdate,
        cell,
        method: "ATest#m".parse().unwrap(),
        repeat: 1,
        path: ExecutionPath::Direct,
        outcome,
        detail: "java.io.FileNotFoundException: data.bin".into(),
        attributed: None,
        missing: Vec::new(),
        attempts: 1,
        key: None,
        measured: Measured::default(),
    }
}

#[test]
fn a_label_missed_on_a_tree_that_lacks_contents_is_a_fault_of_the_sources() {
    let exception = Outcome::ExecFail(ExecReason::Exception);
    let source = Outcome::InfraFail(InfraReason::Source);
    let missing = vec!["vendor".to_owned()];
    for (cell, outcome, judged) in [
        (Cell::Nn, exception, source),
        (Cell::Nn, Outcome::CompileFail(CompileReason::TargetFile), source),
        (Cell::Nn, Outcome::InfraFail(InfraReason::Build), source),
        // What meets its label counts, and a cell without one keeps its outcome.
        (Cell::On, exception, exception),
        (Cell::No, exception, exception),
    ] {
        let mut one = record(cell, outcome);
        assert!(may_need_contents(one.outcome), "{cell:?} {outcome}");
        judge_by_contents(&mut one, &[]);
        assert_eq!(one, record(cell, outcome), "a whole tree changes nothing");
        judge_by_contents(&mut one, &missing);
        assert_eq!((one.outcome, &one.missing), (judged, &missing), "{cell:?} {outcome}");
        assert!(one.detail.contains("FileNotFoundException"), "{}", one.detail);
    }
    for outcome in [Outcome::Pass, Outcome::InfraFail(InfraReason::Engine)] {
        assert!(!may_need_contents(outcome), "{outcome}");
    }
    let mut one = record(Cell::Nn, exception);
    judge_by_contents(&mut one, &vec!["a".to_owned(); 50]);
    assert_eq!(one.missing.len(), MOST_MISSING);
    assert!(one.detail.starts_with("the tree lacks 50 contents"), "{}", one.detail);
}
