use super::*;
use crate::execution::run::record::{Measured, RECORD_SCHEMA};
use crate::outcome::{ExecReason, Outcome};

fn task() -> Task {
    Task {
        id: "t1".parse().unwrap(),
        repository: "o/n".parse().unwrap(),
        track: Track::TestUpdate,
        rev1: "a".repeat(40).parse().unwrap(),
        rev2: "b".repeat(40).parse().unwrap(),
        rev1_date: "2020-01-01".to_owned(),
        rev2_date: "2020-01-01".to_owned(),
        test_file: "src/test/java/ATest.java".parse().unwrap(),
        test_methods: vec!["ATest#m".parse().unwrap()],
        focal_methods: Vec::new(),
    }
}

fn record(task: &Task, cell: Cell, path: ExecutionPath, repeat: u32, outcome: Outcome, detail: &str) -> CellRecord {
    CellRecord {
        schema: RECORD_SCHEMA,
        task_id: task.id.clone(),
        repository: task.repository.clone(),
        track: task.track,
        cell,
        method: task.test_methods[0].clone(),
        repeat,
        path,
        outcome,
        detail: detail.to_owned(),
        attributed: None,
        missing: Vec::new(),
        attempts: 1,
        key: None,
        measured: Measured::default(),
    }
}

#[test]
fn a_dispute_says_what_was_executed_and_what_changed() {
    let task = task();
    let fails = Outcome::ExecFail(ExecReason::Assertion);
    let hostile = "expected: <1>\n```\n# \u{1b}[31mforged";
    let records = [
        record(&task, Cell::Nn, ExecutionPath::Maven, 1, Outcome::Pass, ""),
        record(&task, Cell::Nn, ExecutionPath::Maven, 2, fails, hostile),
        record(&task, Cell::Nn, ExecutionPath::Direct, 1, Outcome::Pass, ""),
        record(&task, Cell::On, ExecutionPath::Direct, 1, Outcome::Pass, ""),
    ];
    let long = "+x\n".repeat(MOST_DIFF_BYTES);
    let dispute = Dispute {
        task: &task,
        class: TaskClass::Flaky,
        records: &records,
        image: Digest::of(b"image"),
        jdk: 17,
        test_diff: "-old\n+new\n",
        code_diff: &long,
        only_named: &["data.bin".to_owned()],
    };
    let text = dispute.markdown();
    assert!(text.starts_with("# A label that holds only at times: `t1`\n"), "{text}");
    for part in [
        "| new test, new code | pass | 1 × exec\\_fail(assertion), 1 × pass | 1 × pass | **no** |",
        "compile\\_fail | not executed | 1 × pass | **no** |",
        "| new test, old code | nothing | not executed | not executed | yes |",
        "```diff\n-old\n+new\n```\n",
        // What a test said can't end its block, nor steer a terminal.
        "````\nexpected: <1>\n```\n# \u{fffd}[31mforged\n````\n",
        "Changed too, but too large or no text: data.bin.",
        "testevo-sandbox validate t1 --paths both --repeat 2\n",
    ] {
        assert!(text.contains(part), "{part}\n{}", &text[..2_000]);
    }
    assert!(text.len() < 2 * MOST_DIFF_BYTES && text.contains(" bytes are shown."), "{}", text.len());
}
