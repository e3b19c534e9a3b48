use serde_json::{Value, json};

use super::index::{facts, runs, segments};
use super::script::script_json;
use super::standing::standings;
use super::*;
use crate::execution::scoring::record::{OwnFocalRecord, SCORE_SCHEMA, ScoreRecord};
use crate::focal::own::{Basis, OwnFocal, OwnMethod};
use crate::metrics::coverage::FocalCoverage;
use crate::outcome::Outcome;
use crate::report::score::tests::fixture::{Fixture, Ran};
use crate::report::score::{ScoreReport, ScoredModel, figures, samples_of_runs, take_as_samples};
use crate::task::Track;

#[test]
fn data_can_not_leave_the_script() {
    let hostile = "</script><script>alert(1)</script><!--&\n";
    let mut text = Vec::new();
    script_json(&mut text, &hostile).unwrap();
    assert!(!text.iter().any(|byte| b"<>&".contains(byte)));
    assert_eq!(serde_json::from_slice::<String>(&text).unwrap(), hostile);
}

#[test]
fn no_text_reorders_what_the_page_shows() {
    let mut text = Vec::new();
    script_json(&mut text, &["a\u{202e}b\u{2066}\tü", "\u{2028}\u{61c}"]).unwrap();
    let shown: Vec<String> = serde_json::from_slice(&text).unwrap();
    assert_eq!(shown, ["a\u{fffd}b\u{fffd}\tü", "\u{fffd}\u{fffd}"]);
}

#[test]
fn headings_break_before_capitals_only() {
    assert_eq!(breakable("CovOnPass"), "Cov<wbr>On<wbr>Pass");
    assert_eq!(breakable("JDK <b>"), "JDK &lt;b&gt;");
}

/// Texts and what they stand on, as the style has them.
const TEXTS: [(&str, &str); 33] = [
    ("ink", "ground"),
    ("ink", "surface"),
    ("ink", "sunken"),
    ("ink", "added"),
    ("ink", "removed"),
    ("ink", "mutant"),
    ("muted", "ground"),
    ("muted", "surface"),
    ("muted", "sunken"),
    ("muted", "added"),
    ("muted", "mutant"),
    ("accent", "ground"),
    ("accent", "surface"),
    ("accent", "sunken"),
    ("accent", "mutant"),
    // Buttons that are pressed.
    ("surface", "accent"),
    ("warn", "warn-ground"),
    ("gold", "ground"),
    ("gold", "surface"),
    ("added-ink", "added"),
    ("removed-ink", "removed"),
    ("removed-ink", "sunken"),
    ("removed-ink", "surface"),
    ("covered", "surface"),
    ("covered", "added"),
    ("missed", "surface"),
    ("missed", "added"),
    ("success-ink", "success"),
    ("redundant-ink", "redundant"),
    ("exec-ink", "exec"),
    ("compile-ink", "compile"),
    ("harness-ink", "harness"),
    ("unscored-ink", "unscored"),
];

/// Segments of the bar of outcomes. Any two can be neighbours, because those between may be missing.
const SEGMENTS: [&str; 6] = ["success", "redundant", "exec", "compile", "harness", "unscored"];

/// The colours of the two schemes.
fn schemes() -> [BTreeMap<&'static str, &'static str>; 2] {
    let (light, dark) = include_str!("colours.css").split_once("prefers-color-scheme: dark").unwrap();
    [light, dark].map(|scheme| {
        let declared = scheme.split("--").skip(1).filter_map(|rest| rest.split_once(':'));
        declared.map(|(name, rest)| (name, rest.split_once(';').unwrap().0.trim())).collect()
    })
}

/// Returns the contrast ratio of two colours as WCAG 2 defines it.
fn contrast(one: &str, other: &str) -> f64 {
    let luminance = |colour: &str| {
        let part = |at: usize| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    };
    let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
    one.max(other) / one.min(other)
}

#[test]
fn texts_have_contrast_and_outcomes_differ_in_more_than_hue() {
    assert!((contrast("#000000", "#ffffff") - 21.0).abs() < 1e-9);
    for (scheme, name) in schemes().iter().zip(["light", "dark"]) {
        let ratio = |one: &str, other: &str| contrast(scheme[one], scheme[other]);
        for (text, ground) in TEXTS {
            assert!(ratio(text, ground) >= 4.5, "{name}: {text} on {ground}: {}", ratio(text, ground));
        }
        for (place, one) in SEGMENTS.iter().enumerate() {
            for other in &SEGMENTS[place + 1..] {
                assert!(ratio(one, other) >= 1.5, "{name}: {one} beside {other}: {}", ratio(one, other));
            }
        }
        // Lines, marks and links of models.
        for model in 0..10 {
            let model = format!("c{model}");
            assert!(ratio(&model, "surface") >= 4.5, "{name}: {model}: {}", ratio(&model, "surface"));
        }
    }
}

#[test]
fn every_colour_of_a_text_is_looked_at() {
    // Each name that the style gives a text, but for those of models, is in the list above.
    let style = include_str!("style.css");
    let texts = ["{ color: var(--", "; color: var(--"].into_iter().flat_map(|mark| style.split(mark).skip(1));
    for (name, _) in texts.filter_map(|rest| rest.split_once(')')) {
        let models = name.len() == 2 && name.starts_with('c');
        assert!(models || TEXTS.iter().any(|(text, _)| *text == name), "{name}");
    }
}

/// One sample resolves both tasks, one the first, and the other model neither.
#[test]
fn a_model_with_samples_has_one_row_with_their_mean() {
    let names = ["m (sample 1)", "m (sample 2)", "other"];
    let task = |id| (id, "a/one", Track::TestUpdate, "2024-01-01", &["T#a"][..]);
    let mut run = Fixture::new(&names, &[task("t1"), task("t2")]);
    run.inputs.samples = [names[0], names[1]].map(|name| (name.to_owned(), "m".to_owned())).into();
    let pass = Ran { new: &[Outcome::Pass; 2], old: &[], covered: None, killed: None };
    for (name, task, cost) in [(names[0], "t1", 1.0), (names[1], "t1", 2.0), (names[1], "t2", 6.0)] {
        run.hands_in(name, task, Some(cost));
        run.runs(name, task, &[pass]);
    }
    let models = run.read(true);
    let standing = &standings(&figures(&models), &models)[0];
    let rows = standing["rows"].as_array().unwrap();
    let said = |row: &Value| {
        json!([
            row["run"],
            row["model"],
            row["readings"]["paper"]["percent"],
            row["mix"][0],
            row["mix"][4],
            row["cost"]
        ])
    };
    assert_eq!(
        rows.iter().map(said).collect::<Vec<_>>(),
        [json!([0, "m", 75.0, 75.0, 25.0, 3.0]), json!([2, null, 0.0, 0.0, 100.0, null])]
    );
    let samples: Vec<Value> = rows[0]["samples"].as_array().unwrap().iter().map(said).collect();
    assert_eq!(
        samples,
        [json!([0, null, 50.0, 50.0, 50.0, 1.0]), json!([1, null, 100.0, 100.0, 0.0, 4.0])],
        "each with its own place"
    );
    assert_eq!(rows[0]["pass"], json!([[1, 75.0, 2], [2, 100.0, 2]]), "each with its number of tasks");
    assert_eq!((&rows[0]["tasks"], &rows[0]["methods"], &rows[0]["with_cost"]), (&json!(2), &json!(2), &json!(2)));
    let pairs = standing["pairs"]["paper"].as_array().unwrap();
    let pairs: Vec<Value> =
        pairs.iter().map(|pair| json!([pair["one"], pair["other"], pair["difference"], pair["tasks"]])).collect();
    assert_eq!(pairs, [json!([0, 2, 75.0, 2])], "samples do not compete with each other");
    let ranks: Vec<Value> = runs(&models).iter().map(|run| json!([run["rank"], run["sample"]])).collect();
    assert_eq!(ranks, [json!([0, 0]), json!([0, 1]), json!([1, 0])], "samples of a model share its colour");
    let segments: Vec<Value> = segments(&figures(&models), &models)
        .iter()
        .map(|one| json!([one["run"], one["segment"], one["methods"], one["few"], one["success"]]))
        .collect();
    assert_eq!(segments, [json!([0, "2024-H1", 2, true, 75.0]), json!([2, "2024-H1", 2, true, 0.0])]);
}

/// Two runs of one model without a common task have no mean, and stay in the ranking.
#[test]
fn samples_without_a_common_task_stand_each_for_itself() {
    let update = |id| (id, "a/one", Track::TestUpdate, "2024-01-01", &["T#a"][..]);
    let run = |id: &str, task, passes: bool| {
        let mut run = Fixture::new(&["m"], &[update(task)]);
        if passes {
            run.hands_in("m", task, None);
            run.runs("m", task, &[Ran { new: &[Outcome::Pass; 2], old: &[], covered: None, killed: None }]);
        }
        let mut models = run.read(true);
        models[0].run_id = id.to_owned();
        models
    };
    let of = |models: &mut Vec<ScoredModel>| {
        take_as_samples(models);
        let report = ScoreReport { samples: samples_of_runs(models), ..figures(models) };
        let standing = standings(&report, models).remove(0);
        let said = |row: &Value| json!([row["run"], row["model"], row["readings"]["paper"]["percent"]]);
        standing["rows"].as_array().unwrap().iter().map(said).collect::<Vec<_>>()
    };
    let mut apart = [run("r1", "t1", true), run("r2", "t2", false)].concat();
    assert_eq!(of(&mut apart), [json!([0, null, 100.0]), json!([1, null, 0.0])]);
    let mut together = [run("r1", "t1", true), run("r2", "t1", false)].concat();
    assert_eq!(of(&mut together), [json!([0, "m", 50.0])]);
}

/// Of two samples one has a further task, in which it succeeds.
#[test]
fn rows_and_curves_of_samples_are_over_the_tasks_of_all() {
    let update = |id| (id, "a/one", Track::TestUpdate, "2024-01-01", &["T#a"][..]);
    let run = |id: &str, tasks: &[&'static str], succeeds: &str| {
        let mut run = Fixture::new(&["m"], &tasks.iter().copied().map(update).collect::<Vec<_>>());
        run.hands_in("m", succeeds, None);
        run.runs("m", succeeds, &[Ran { new: &[Outcome::Pass; 2], old: &[], covered: Some(5), killed: None }]);
        let mut models = run.read(true);
        models[0].run_id = id.to_owned();
        models
    };
    let mut models = [run("r1", &["t1", "t2"], "t2"), run("r2", &["t1"], "t1")].concat();
    take_as_samples(&mut models);
    let report = ScoreReport { samples: samples_of_runs(&models), ..figures(&models) };
    let standing = standings(&report, &models).remove(0);
    let row = &standing["rows"][0];
    // Of the task of both one sample succeeds and covers half, and the other has nothing.
    let said = json!([row["readings"]["paper"]["percent"], row["tasks"], row["coverage"], row["samples"][0]["tasks"]]);
    assert_eq!(said, json!([50.0, 1, 25.0, 2]));
    assert_eq!(row["pass"], json!([[1, 50.0, 1], [2, 100.0, 1]]));
    let segments = segments(&report, &models);
    let [segment] = &segments[..] else { panic!("{segments:?}") };
    assert_eq!(json!([segment["success"], segment["methods"], segment["samples"]]), json!([50.0, 1, 2]));
}

#[test]
fn rows_over_different_tasks_are_told() {
    let update = |id| (id, "a/one", Track::TestUpdate, "2024-01-01", &["T#a"][..]);
    let run = |name, tasks: &[&'static str]| {
        Fixture::new(&[name], &tasks.iter().copied().map(update).collect::<Vec<_>>()).read(true)
    };
    let both = &["t1", "t2"][..];
    for (name, tasks, differ) in [
        ("n", both, Value::Null),
        ("n", &["t1"], json!("models")),
        ("gold", both, Value::Null),
        ("gold", &["t1"], json!("gold")),
    ] {
        let models = [run("m", both), run(name, tasks)].concat();
        assert_eq!(standings(&figures(&models), &models)[0]["differ"], differ, "{name} {tasks:?}");
    }
    // The numbers of their tasks are equal, but no task is the same.
    let models = [run("m", &["t1"]), run("n", &["t2"])].concat();
    assert_eq!(standings(&figures(&models), &models)[0]["differ"], "apart");
}

#[test]
fn a_seed_keeps_all_its_digits() {
    let mut run = Fixture::new(&["m"], &[("t1", "a/one", Track::TestUpdate, "2024-01-01", &["T#a"])]);
    run.inputs.seed = 18_266_007_589_190_443_523;
    assert_eq!(facts(&run.read(true))["runs"][0]["seed"], "18266007589190443523");
}

/// The task lists one of the two methods that the developers' test calls.
#[test]
fn a_score_is_shown_with_all_own_focal_methods() {
    let mut run = Fixture::new(&["m"], &[("t1", "a/one", Track::TestUpdate, "2024-01-01", &["T#a"])]);
    run.hands_in("m", "t1", None);
    run.runs("m", "t1", &[Ran { new: &[Outcome::Pass; 2], old: &[], covered: Some(2), killed: None }]);
    let helper = FocalCoverage { first_line: 30, last_line: 32, lines: vec![30, 31, 32], covered: vec![30, 31, 32] };
    for record in &mut run.records {
        if let ScoreRecord::Coverage(record) = record {
            record.own = Some(vec![record.focal[0].clone(), helper.clone()]);
        }
    }
    let method = |name: &str, listed| OwnMethod {
        package: "a".to_owned(),
        file: "C.java".to_owned(),
        first_line: 1,
        last_line: 2,
        name: name.to_owned(),
        lines: vec![1, 2],
        listed,
    };
    let own = vec![method("C#listed", Some(0)), method("C#helper", None)];
    run.records.push(ScoreRecord::OwnFocal(OwnFocalRecord {
        schema: SCORE_SCHEMA,
        task_id: "t1".parse().unwrap(),
        methods: vec![OwnFocal { method: "T#a".parse().unwrap(), basis: Basis::Called, own, cause: None }],
        cause: None,
        lost: false,
        isolation_missing: Vec::new(),
    }));
    let models = run.read(true);
    let value = task::task(&models, &[(0, &models[0].tasks[0])], &mut Attachments::default());
    let expected = json!({
        "methods": 2, "covered": 5, "lines": 13, "each": [["C#listed", 2, 10], ["C#helper", 3, 3]],
    });
    assert_eq!(value["models"][0]["methods"][0]["own_lines"], expected);
}
