use std::sync::Arc;

use serde_json::json;

use super::calibration::{Agreement, Value, calibrate};
use super::*;
use crate::metrics::aggregate::{Adequacy, MeasuredAdequacy, MethodScore};
use crate::metrics::category::{Category, Integrity, judge};
use crate::metrics::integrity::Found;
use crate::outcome::{ExecReason, Outcome};
use crate::report::score::{Instances, ScoredMethod, ScoredModel, ScoredTask, figures};
use crate::task::Task;

fn parsed(value: &serde_json::Value) -> Result<Leaderboard, String> {
    parse(value.to_string().as_bytes())
}

fn row(d: &str, values: [Option<f64>; 6]) -> serde_json::Value {
    let [pass, exec, hrns, cov, mutation, disc] = values;
    json!({"d": d, "pass": pass, "exec": exec, "cmpl": 0.0, "hrns": hrns, "cov": cov, "mut": mutation, "disc": disc})
}

fn file(rows: Vec<serde_json::Value>) -> serde_json::Value {
    let entry = json!({
        "agent": "A", "model": "m", "organization": null, "submission_date": "2026-05-01", "paper_url": "", "tasks": rows,
    });
    json!({"generated_at": "2026-05-08", "metric_definitions": {}, "tracks": {"test_generation": [entry]}})
}

#[test]
fn means_weigh_tasks_alike_and_pass_over_what_has_no_value() {
    let one = row("2020-01-01", [Some(1.0), Some(0.0), Some(0.0), Some(0.5), None, Some(0.5)]);
    let two = row("2020-01-02", [Some(0.5), Some(0.5), Some(0.0), Some(1.0), Some(0.25), Some(0.5)]);
    let three = row("2020-01-02", [Some(0.0), Some(0.0), Some(1.0), None, None, Some(0.0)]);
    let means = agents_means(&parsed(&file(vec![one, two, three])).unwrap());
    let [means] = means.as_slice() else { panic!("{means:?}") };
    assert_eq!((means.name.as_str(), means.tasks), ("A / m", 3));
    let rounded = |value: Option<f64>| value.map(|value| (value * 100.0).round() / 100.0);
    assert_eq!(rounded(means.success_percent), Some(33.33));
    assert_eq!(rounded(means.redundant_percent), Some(16.67));
    assert_eq!(rounded(means.exec_fail_percent), Some(16.67));
    assert_eq!((means.cmpl_fail_percent, rounded(means.hrns_fail_percent)), (Some(0.0), Some(33.33)));
    assert_eq!((means.cov_on_pass, means.mut_on_pass), (Some(75.0), Some(0.25)));
}

#[test]
fn an_excerpt_by_groups_is_the_same_rows() {
    let row = |cov: f64| json!({"pass": 1.0, "exec": 0.0, "cmpl": 0.0, "hrns": 0.0, "cov": cov, "mut": null});
    let excerpt = json!({"source": "x", "groups": [
        {"track": "test_update", "date": "2020-01-01", "tasks": ["t1", "t2"], "agents": {"A / m": [row(0.5), row(1.0)]}},
        {"track": "test_update", "date": "2020-02-01", "tasks": ["t3"], "agents": {"A / m": [row(0.0)], "B": [row(0.1)]}},
    ]});
    let leaderboard = parsed(&excerpt).unwrap();
    let entries = &leaderboard.tracks[&Track::TestUpdate];
    let of = |entry: &Entry| (entry.name(), entry.tasks.iter().map(|row| row.d.clone()).collect::<Vec<_>>());
    let dates = |dates: &[&str]| dates.iter().map(|date| (*date).to_owned()).collect::<Vec<_>>();
    assert_eq!(of(&entries[0]), ("A / m".to_owned(), dates(&["2020-01-01", "2020-01-01", "2020-02-01"])));
    assert_eq!(of(&entries[1]), ("B".to_owned(), dates(&["2020-02-01"])));
    assert_eq!(means(Track::TestUpdate, &entries[0]).success_percent, Some(100.0));
}

#[test]
fn what_is_no_leaderboard_is_named() {
    let ok = row("2020-01-01", [Some(1.0), Some(0.0), Some(0.0), None, None, None]);
    assert!(parsed(&file(vec![ok.clone()])).is_ok());
    let with = |key: &str, value: serde_json::Value| {
        let mut row = ok.clone();
        row[key] = value;
        parsed(&file(vec![ok.clone(), row])).unwrap_err()
    };
    assert_eq!(with("cov", json!(100.0)), "test_generation, A / m, row 2: `cov` is 100, not between 0 and 1");
    assert_eq!(with("d", json!("May")), "test_generation, A / m, row 2: `d` is `May`, no date");
    assert!(with("pass", json!("1")).contains("invalid type"));
    assert_eq!(parsed(&json!({"runs": []})).unwrap_err(), "it has neither `tracks` nor `groups`");
    assert!(parsed(&json!({"tracks": {"other": []}})).unwrap_err().contains("other"));
    assert!(parse(b"{").is_err());
}

/// Coverage (percent) and mutation score of a method.
type Values = (Option<f64>, Option<f64>);
/// Id, track, date and methods of a task.
type OfTask<'a> = (&'a str, Track, &'a str, &'a [Values]);
/// Date, coverage and mutation score of a row.
type OfRow<'a> = (&'a str, Option<f64>, Option<f64>);

/// Returns the developers' tests of tasks.
fn gold(tasks: &[OfTask<'_>]) -> ScoredModel {
    let task = |(id, track, date, methods): &OfTask<'_>| {
        let names: Vec<_> = (0..methods.len()).map(|number| format!("ATest#m{number}").parse().unwrap()).collect();
        let task = Task {
            id: id.parse().unwrap(),
            repository: "o/n".parse().unwrap(),
            track: *track,
            rev1: "a".repeat(40).parse().unwrap(),
            rev2: "b".repeat(40).parse().unwrap(),
            rev1_date: (*date).to_owned(),
            rev2_date: (*date).to_owned(),
            test_file: "ATest.java".parse().unwrap(),
            test_methods: names.clone(),
            focal_methods: Vec::new(),
        };
        let method = |(method, (coverage, mutation)): (_, &(Option<f64>, Option<f64>))| {
            let failed = Outcome::ExecFail(ExecReason::Assertion);
            let verdict = judge(*track, &[Outcome::Pass], &[failed.into()], Integrity::NotEvaluated);
            let pred = Adequacy { coverage: *coverage, mutation: *mutation, ..Adequacy::default() };
            let score = MethodScore { category: Some(Category::Success), pred, ..MethodScore::default() };
            ScoredMethod {
                method,
                verdict,
                new: Vec::new(),
                old: Vec::new(),
                coverage: None,
                mutation: None,
                gold_mutants: Arc::default(),
                controls: None,
                found: Found::default(),
                score,
            }
        };
        ScoredTask {
            task: Arc::new(task),
            jdk: 17,
            image: None,
            focal: None,
            own: None,
            submission: None,
            start: None,
            mutants: Arc::default(),
            gold_file: None,
            gold_failed: false,
            kept_logs: Vec::new(),
            measured: MeasuredAdequacy { coverage_pred: true, mutation_pred: true, ..MeasuredAdequacy::default() },
            methods: names.into_iter().zip(*methods).map(method).collect(),
        }
    };
    ScoredModel {
        finished: true,
        run_id: "r".to_owned(),
        path: PathBuf::new(),
        model: "gold".to_owned(),
        sample_of: None,
        complete: true,
        facts: Arc::default(),
        lost: 0,
        tasks: tasks.iter().map(task).collect(),
        missing: Vec::new(),
        unknown: Vec::new(),
        instances: Instances::default(),
        not_selected: 0,
        repeated: 0,
    }
}

/// Returns a leaderboard of update rows, for each agent.
fn agents(rows: &[&[OfRow<'_>]]) -> Leaderboard {
    let row = |(date, cov, mutation): &OfRow<'_>| Row {
        d: (*date).to_owned(),
        cov: *cov,
        mutation: *mutation,
        pass: Some(if cov.is_some() { 1.0 } else { 0.0 }),
        ..Row::default()
    };
    let entry = |(number, rows): (usize, &&[OfRow<'_>])| Entry {
        agent: format!("agent {number}"),
        tasks: rows.iter().map(row).collect(),
        ..Entry::default()
    };
    let entries = rows.iter().enumerate().map(entry).collect();
    let tracks = BTreeMap::from([(Track::TestUpdate, entries)]);
    Leaderboard { generated_at: None, metric_definitions: serde_json::Value::Null, tracks }
}

#[test]
fn gold_is_held_against_rows_that_only_dates_tell_apart() {
    let update = Track::TestUpdate;
    let (one, two, three, four) = ("2020-01-01", "2020-02-02", "2020-03-03", "2020-04-04");
    let model = gold(&[
        // Equal, by the mean over its methods.
        ("t1", update, one, &[(Some(50.0), Some(0.5)), (Some(100.0), None)]),
        // A multiset, of which one is equal.
        ("t2", update, two, &[(Some(100.0), None)]),
        ("t3", update, two, &[(Some(20.0), Some(1.0))]),
        // Agents differ; ours is one of them.
        ("t4", update, three, &[(Some(66.666), Some(0.0))]),
        // Rows of other tasks as well.
        ("t5", update, four, &[(Some(10.0), None)]),
    ]);
    let board = agents(&[
        &[
            (one, Some(0.75), Some(0.5)),
            (two, Some(0.3), None),
            (two, Some(1.0), None),
            (three, Some(0.6667), Some(0.0)),
            (four, Some(0.1), None),
            (four, Some(0.2), None),
        ],
        &[
            (one, Some(0.75), Some(0.25)),
            (two, Some(1.0), None),
            (two, Some(0.3), None),
            (three, Some(0.9), Some(0.0)),
            (four, Some(0.1), None),
            (four, Some(0.2), None),
        ],
        // One that does not pass says nothing of the tasks.
        &[
            (one, None, None),
            (two, None, None),
            (two, None, None),
            (three, None, None),
            (four, None, None),
            (four, None, None),
        ],
    ]);
    let found = calibrate(&[&model], &board);
    let [coverage, mutation] = found.agreement.as_slice() else { panic!("{found:?}") };
    let counts = |one: &Agreement| [one.tasks, one.by_task, one.by_multiset, one.left_out];
    assert_eq!((coverage.value, counts(coverage)), (Value::Coverage, [5, 2, 2, 1]));
    assert_eq!((coverage.agreed, coverage.equal_where_agreed), (3, 2));
    assert_eq!((coverage.published, coverage.equal_to_some), (4, 3));
    let rounded = |value: Option<f64>| value.map(|value| (value * 1000.0).round() / 1000.0);
    assert_eq!(rounded(coverage.mean), Some(0.654), "over compared tasks alone");
    // Smallest beside smallest: 0, -0.1, 0, and 0.667 beside the mean of 0.667 and 0.9.
    assert_eq!((rounded(coverage.mean_difference), rounded(coverage.median_difference)), (Some(-0.054), Some(-0.05)));
    assert_eq!((mutation.value, counts(mutation)), (Value::Mutation, [5, 2, 2, 1]));
    assert_eq!((mutation.agreed, mutation.equal_where_agreed), (1, 1));
    assert_eq!((mutation.published, mutation.equal_to_some), (2, 2));
    assert_eq!((mutation.both_undefined, mutation.only_ours, mutation.only_theirs), (1, 1, 0));
    let differing: Vec<(Value, &str, bool)> =
        found.differences.iter().map(|one| (one.value, one.date.as_str(), one.agreed)).collect();
    assert_eq!(differing, [(Value::Coverage, two, true), (Value::Mutation, two, false)]);
}

#[test]
fn runs_are_written_in_the_leaderboards_shape() {
    let model =
        gold(&[("t1", Track::TestGeneration, "2020-01-01", &[(Some(50.0), None), (Some(100.0 / 3.0), Some(1.0))])]);
    let board = leaderboard(&[model], Some("2026-01-01T00:00:00Z".to_owned()));
    let value = serde_json::to_value(&board).unwrap();
    let row = json!({
        "d": "2020-01-01", "pass": 1.0, "exec": 0.0, "cmpl": 0.0, "hrns": 0.0, "cov": 0.4167, "mut": 1.0, "disc": 1.0,
    });
    assert_eq!(value["tracks"]["test_generation"][0]["tasks"], json!([row]));
    assert_eq!(parse(value.to_string().as_bytes()).unwrap(), board, "what is written is read");
}

/// Two runs of one id may come from two machines.
#[test]
fn no_two_entries_have_one_name() {
    let model = gold(&[("t1", Track::TestUpdate, "2020-01-01", &[(Some(50.0), None)])]);
    let board = leaderboard(&[model.clone(), model.clone(), ScoredModel { run_id: "s".to_owned(), ..model }], None);
    let names: Vec<_> = board.tracks[&Track::TestUpdate].iter().map(Entry::name).collect();
    assert_eq!(names, ["gold (r)", "gold (r) #2", "gold (s)"]);
    let value = serde_json::to_value(&board).unwrap();
    assert!(parse(value.to_string().as_bytes()).is_ok(), "what is written is read");
}

/// No value of the developers' tests is known, which decides nothing of a submission's.
#[test]
fn the_leaderboard_has_the_reports_values() {
    let update = Track::TestUpdate;
    let model = gold(&[
        ("t1", update, "2020-01-01", &[(Some(50.0), Some(0.5)), (Some(100.0), None)]),
        ("t2", update, "2020-01-02", &[(Some(25.0), Some(0.25)), (None, None)]),
    ]);
    let board = leaderboard(std::slice::from_ref(&model), None);
    let [means] = &agents_means(&board)[..] else { panic!("{board:?}") };
    let report = figures(&[model]);
    let figures = &report.runs[0].tracks[&update].all;
    assert_eq!((means.cov_on_pass, means.mut_on_pass), (Some(50.0), Some(0.375)));
    assert_eq!((figures.cov_on_pass, figures.mut_on_pass), (means.cov_on_pass, means.mut_on_pass));
}
