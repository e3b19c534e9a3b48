//! What reading takes: predictions within a bound of memory, reports of the whole benchmark in little of it.

use std::time::Instant;

use super::score::imported;
use crate::support::command::CommandLine;
use crate::support::scored::ScoredRun;

/// A patch of a hundred megabytes is a fact that is counted; what reads it keeps to memory of a few times the file.
#[test]
fn predictions_of_any_size_take_memory_by_their_file() {
    let line = imported();
    let long = "+x\\n".repeat(25 << 20);
    let deep = "[".repeat(8 << 20) + &"]".repeat(8 << 20);
    let many = "[],".repeat(24 << 20) + "[]";
    for (what, text) in [
        ("a long patch", format!("{{\"instance_id\":\"t\",\"model_patch\":\"{long}\"}}")),
        ("a deep value", format!("{{\"instance_id\":\"t\",\"more\":{deep}}}")),
        ("many values", format!("{{\"more\":[{many}],\"instance_id\":\"t\"}}")),
    ] {
        line.write("p.jsonl", &text);
        let kibibytes = (4 * text.len() + (192 << 20)) >> 10;
        let said = line.run_within(kibibytes, &["score", "--dry-run", "--predictions", "p.jsonl"]);
        assert!(said.contains("there is no task `t`"), "{what}: {said}");
    }
}

/// Reports of as many tasks as the benchmark has, of ten models. Prints what each form takes.
#[test]
#[expect(clippy::print_stderr, reason = "figures for people")]
#[ignore = "writes a hundred thousand files; docs/scoring.md says what came of it"]
fn a_report_of_everything_takes_little() {
    let line = CommandLine::new();
    let models = (0..10).map(|model| format!("model-{model}")).collect();
    ScoredRun { run_id: "r1", models, tasks: 1255, strange: "<&>" }.write(&line.path().join("data"));
    for format in ["text", "json", "markdown", "csv", "junit", "html"] {
        let began = Instant::now();
        let taken = line.measure(&["report", "r1", "--format", format]);
        let seconds = began.elapsed().as_secs_f64();
        let (peak, bytes) = (taken.peak_bytes >> 20, taken.stdout_bytes);
        eprintln!("{format:>8}: {seconds:5.1} s, {peak:4} MiB at most, {bytes:>9} bytes written");
        assert_eq!(taken.code, Some(0), "{format}");
        assert!(peak < 250, "{format}: {peak} MiB");
    }
}
