use serde_json::json;

use super::*;

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
