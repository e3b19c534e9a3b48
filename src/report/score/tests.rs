use serde_json::{Value, json};

use super::formats::{csv, html, junit, markdown, notes};
use super::*;
use crate::digest::Digest;
use crate::execution::scoring::record::{SCORE_SCHEMA, ScoreRecord, StartRecord, SubmissionFault};
use crate::metrics::aggregate::Figures;
use crate::metrics::category::{Category, Integrity};
use crate::outcome::{CompileReason, ExecReason, HarnessReason, InfraReason, Outcome};
use crate::submission::{ContentKind, EMPTY, GOLD};
use crate::task::Track::{TestGeneration, TestUpdate};
use fixture::{Fixture, Ran};

pub(super) mod fixture;
mod read_back;

const PASS: Outcome = Outcome::Pass;
const ASSERTION: Outcome = Outcome::ExecFail(ExecReason::Assertion);
const TARGET: Outcome = Outcome::CompileFail(CompileReason::TargetFile);
const INFRA: Outcome = Outcome::InfraFail(InfraReason::Engine);

/// A name that every form must escape.
const TWO: &str = "two, \"<b>\" | x";

fn ran<'a>(new: &'a [Outcome], old: &'a [Outcome]) -> Ran<'a> {
    Ran { new, old, covered: None, killed: None }
}

fn passed<'a>(old: &'a [Outcome], covered: usize, killed: [usize; 2]) -> Ran<'a> {
    Ran { new: &[PASS; 2], old, covered: Some(covered), killed: Some(killed) }
}

/// Two models, both tracks, three repositories: something of everything that a report tells apart. Nobody hands anything
/// in for the repository of `t5`, where the developers' tests so do not run.
pub(in crate::report) fn fixture() -> Fixture {
    let mut run = Fixture::new(
        &["one", TWO],
        &[
            ("t1", "o/old", TestUpdate, "2014-03-01", &["A#m1", "A#m2"]),
            ("t2", "o/old", TestGeneration, "2020-02-01", &["B#m"]),
            ("t3", "o/new", TestUpdate, "2021-09-01", &["C#m"]),
            ("t4", "o/new", TestGeneration, "2021-09-01", &["D#m1", "D#m2"]),
            ("t5", "o/left", TestUpdate, "2021-10-01", &["E#m"]),
        ],
    );
    for task in ["t1", "t2", "t3", "t4"] {
        run.gold_runs(task);
    }
    for (task, cost) in [("t1", Some(0.6)), ("t2", Some(2.0)), ("t3", None), ("t4", Some(0.1))] {
        run.hands_in("one", task, cost);
    }
    let flaky = Ran { new: &[PASS, ASSERTION], ..passed(&[PASS; 2], 6, [3, 3]) };
    run.runs("one", "t1", &[flaky, ran(&[ASSERTION; 2], &[ASSERTION; 2])]);
    run.runs("one", "t2", &[passed(&[ASSERTION; 2], 10, [4, 2])]);
    run.runs("one", "t3", &[passed(&[PASS; 2], 4, [1, 0])]);
    run.runs("one", "t4", &[passed(&[TARGET; 2], 8, [2, 2]), passed(&[PASS; 2], 2, [0, 0])]);
    for task in ["t1", "t2"] {
        run.hands_in(TWO, task, None);
    }
    run.runs(TWO, "t1", &[passed(&[PASS; 2], 10, [4, 4]), ran(&[TARGET; 2], &[TARGET; 2])]);
    run.runs(TWO, "t2", &[ran(&[INFRA; 2], &[INFRA; 2])]);
    run.unknown(TWO, ["gone".to_owned()].into_iter());
    run.inputs.not_selected = 2;
    run.inputs.repeated = 1;
    run
}

#[test]
fn a_period_leaves_out_all_about_other_tasks() {
    let since = Some(jiff::civil::date(2021, 9, 1));
    let period = Period { since, until: None };
    let models = fixture().read_of(true, &period).unwrap();
    let report = ScoreReport { period, ..figures(&models) };
    // t3 succeeds and t5 is missing; of t4's two methods one succeeds.
    assert_eq!(of_track(&report, "one", TestUpdate).all.success_percent, Some(50.0));
    assert_eq!(of_track(&report, "one", TestGeneration).all.success_percent, Some(50.0));
    assert_eq!(report.runs[0].missing.iter().map(ToString::to_string).collect::<Vec<_>>(), ["t5"]);
    assert_eq!((report.runs[0].instances.total_instances, report.runs[0].instances.submitted_instances), (3, 2));
    assert_eq!(notes::notes(&report, &models)[0], "only tasks of 2021-09-01 or later");
    let until = Some(jiff::civil::date(2013, 1, 1));
    let error = fixture().read_of(true, &Period { since: None, until }).unwrap_err();
    assert_eq!(error.to_string(), "the run `r1` has no tasks of 2013-01-01 or earlier");
}

fn of_track(report: &ScoreReport, model: &str, track: Track) -> TrackFigures {
    report.runs.iter().find(|run| run.model == model).unwrap().tracks[&track].clone()
}

#[test]
fn the_whole_report_of_two_models() {
    let report = serde_json::to_value(figures(&fixture().read(true))).unwrap();
    let mut text = String::new();
    outline(&report, "", &mut text);
    insta::assert_snapshot!(text);
}

#[test]
fn the_markdown_of_two_models() {
    let models = fixture().read(true);
    insta::assert_snapshot!(markdown::render(&figures(&models), &models));
}

/// Writes a value as lines: the path to an object, and below it what it holds that holds nothing in turn.
fn outline(value: &Value, path: &str, text: &mut String) {
    let is_plain = |value: &Value| match value {
        Value::Object(_) => false,
        Value::Array(values) => values.iter().all(|value| !value.is_object() && !value.is_array()),
        _ => true,
    };
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(values) => values.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    text.push_str(&format!("{path}:\n"));
    let mut line = String::new();
    for (name, value) in children.iter().filter(|(_, value)| is_plain(value)) {
        let field = format!("  {name} {value}");
        if line.len() + field.len() > 120 {
            text.push_str(&format!("{line}\n"));
            line.clear();
        }
        line.push_str(&field);
    }
    if !line.is_empty() {
        text.push_str(&format!("{line}\n"));
    }
    for (name, value) in children.iter().filter(|(_, value)| !is_plain(value)) {
        outline(value, &format!("{path}/{name}"), text);
    }
}

/// Each value of docs/protocol.md §4 for two tasks, computed by hand beside it.
#[test]
fn every_aggregate_is_the_one_computed_by_hand() {
    let mut run = Fixture::new(
        &["m"],
        &[
            ("t1", "o/old", TestGeneration, "2020-02-01", &["A#m1", "A#m2"]),
            ("t2", "o/new", TestGeneration, "2021-09-01", &["B#m1", "B#m2"]),
        ],
    );
    for task in ["t1", "t2"] {
        run.submission(GOLD, task, ContentKind::Gold, None);
    }
    let fails = ran(&[ASSERTION; 2], &[]);
    run.runs(GOLD, "t1", &[passed(&[], 8, [2, 1]), passed(&[], 4, [1, 1])]);
    run.runs(GOLD, "t2", &[passed(&[], 10, [4, 2]), fails]);
    run.hands_in("m", "t1", Some(0.6));
    run.hands_in("m", "t2", Some(0.1));
    // Success and Redundant, then twice CmplFail.
    run.runs("m", "t1", &[passed(&[ASSERTION; 2], 6, [3, 2]), passed(&[PASS; 2], 2, [0, 0])]);
    run.runs("m", "t2", &[ran(&[TARGET; 2], &[TARGET; 2]); 2]);
    let figures = of_track(&figures(&run.read(true)), "m", TestGeneration);
    let mut found = serde_json::to_value(&figures.all).unwrap();
    for drawn in ["success_percent_interval", "success_percent_interval_repositories"] {
        assert!(found.as_object_mut().unwrap().remove(drawn).unwrap().is_array(), "{drawn}");
    }
    let cap = |cap: f64, over: usize, [success, hrns_fail]: [f64; 2], cost: f64| {
        json!({
            "cap_usd": cap, "tasks_over": over, "tasks_without_cost": 0,
            "success_percent": success, "hrns_fail_percent": hrns_fail,
            "method_success_percent": success, "method_hrns_fail_percent": hrns_fail,
            "mean_cost_usd": cost, "mean_tokens": null,
        })
    };
    let rates = json!({
        "tasks": 2, "methods": 4, "unscored": 0, "gold_incomplete": 0, "few_methods": true,
        // Rates are means over tasks: 1 of 2 and 0 of 2; 0 of 2 and 2 of 2.
        "success_percent": 25.0, "redundant_percent": 25.0, "cmpl_fail_percent": 50.0, "exec_fail_percent": 0.0,
        "hrns_fail_percent": 0.0, "strict_success_percent": 25.0, "tampered_percent": 0.0,
        // No task has a Success in every method; both submissions came to a file.
        "resolved_percent": 0.0, "well_formed_percent": 100.0,
        // No controls were launched.
        "clean_success_percent": null, "suspect_percent": null, "clean_coverage_pred": null,
        "clean_mutation_score_pred": null,
    });
    let means = json!({
        // Of ten lines: (60 + 20) / 2 and 0; narrow t1 alone.
        "avg_coverage_pred": 20.0, "avg_coverage_pred_success": 40.0,
        // (80 + 40) / 2 and (100 + 0) / 2; narrow 60 and 100.
        "avg_coverage_gold": 55.0, "avg_coverage_gold_success": 80.0,
        // Of twenty lines: half of these.
        "avg_coverage_range_pred": 10.0, "avg_coverage_range_pred_success": 20.0,
        "avg_coverage_range_gold": 27.5, "avg_coverage_range_gold_success": 40.0,
        // Of four mutants: (3/4 + 0) / 2 and 0; narrow t1 alone.
        "avg_mutation_score_pred": 0.1875, "avg_mutation_score_pred_success": 0.375,
        // (2/4 + 1/4) / 2 and (4/4 + 0) / 2; narrow 3/8 and 1.
        "avg_mutation_score_gold": 0.4375, "avg_mutation_score_gold_success": 0.6875,
        // Strictly (2/4 + 0) / 2 and 0; (1/4 + 1/4) / 2 and (2/4 + 0) / 2, narrow 1/4 and 1/2.
        "avg_mutation_score_strict_pred": 0.125, "avg_mutation_score_strict_pred_success": 0.25,
        "avg_mutation_score_strict_gold": 0.25, "avg_mutation_score_strict_gold_success": 0.375,
        // Only the methods of t1 passed: 60 and 20 beside 80 and 40; 3/4 and 0 beside 2/4 and 1/4.
        "cov_on_pass": 40.0, "cov_on_pass_human": 60.0, "cov_on_pass_delta": -20.0,
        "mut_on_pass": 0.375, "mut_on_pass_human": 0.375, "mut_on_pass_delta": 0.0,
        // Under half a dollar t1 counts as not handed in.
        "cost_caps": [cap(3.0, 0, [25.0, 0.0], 0.35), cap(1.0, 0, [25.0, 0.0], 0.35), cap(0.5, 1, [0.0, 50.0], 0.1)],
        "cost_deciles_usd": [0.1, 0.1, 0.1, 0.1, 0.1, 0.6, 0.6, 0.6, 0.6, 0.6],
    });
    let expected = [rates, means].into_iter().flat_map(|part| part.as_object().unwrap().clone());
    assert_eq!(found, Value::Object(expected.collect()));
    let success = |parts: &BTreeMap<String, Figures>| -> Vec<(String, Option<f64>)> {
        parts.iter().map(|(part, figures)| (part.clone(), figures.success_percent)).collect()
    };
    let parts = |first: &str, second: &str, shares: [f64; 2]| {
        vec![(first.to_owned(), Some(shares[0])), (second.to_owned(), Some(shares[1]))]
    };
    assert_eq!(success(&figures.by_segment), parts("2020-H1", "2021-H2", [50.0, 0.0]));
    assert_eq!(success(&figures.by_repository), parts("o/new", "o/old", [0.0, 50.0]));
    assert_eq!(success(&figures.by_jdk), parts("17", "8", [0.0, 50.0]));
}

/// What a model left out is 0 in its wide means, whether or not anybody else tried it.
#[test]
fn what_was_not_handed_in_counts_as_zero() {
    let models = fixture().read(true);
    let report = figures(&models);
    let of = |model| of_track(&report, model, TestUpdate).all;
    // One passing method of two in t1, nothing for t3, and t5, of which not even the mutants are known.
    assert_eq!((of(TWO).avg_coverage_pred, of(TWO).avg_mutation_score_pred), (Some(50.0 / 3.0), Some(0.5 / 3.0)));
    assert_eq!(of("one").avg_mutation_score_pred, Some((0.375 + 0.25) / 3.0));
    // Gold's means are over the two tasks that it ran for, and the report says so.
    assert_eq!((of(TWO).avg_coverage_gold, of(TWO).avg_mutation_score_gold), (Some(80.0), Some(0.5)));
    assert_eq!((of(TWO).tasks, of(TWO).gold_incomplete), (3, 1));
    let [one, two] = report.runs.as_slice() else { panic!("{report:?}") };
    assert_eq!((one.gold_incomplete, two.gold_incomplete), (1, 1));
    assert!(one.complete, "all that was handed in is scored");
    assert!(!two.complete, "a method could not be judged");
}

/// Nothing is executed then, and nothing measured: what is handed in is known to be 0, and of gold nothing is known.
#[test]
fn of_nothing_handed_in_all_is_known() {
    for kind in [None, Some(ContentKind::Nothing)] {
        let mut run = Fixture::new(
            &[EMPTY],
            &[
                ("t1", "o/n", TestUpdate, "2021-09-01", &["A#m"]),
                ("t2", "o/n", TestUpdate, "2021-09-01", &["B#m1", "B#m2"]),
            ],
        );
        (run.inputs.coverage, run.inputs.mutation) = (false, false);
        if let Some(kind) = kind {
            run.hands_in(EMPTY, "t1", None);
            let inputs = run.inputs.models.get_mut(EMPTY).unwrap();
            inputs.submissions.values_mut().for_each(|submission| submission.kind = kind);
            let fault = [Outcome::HarnessFail(crate::outcome::HarnessReason::Empty)];
            run.runs(EMPTY, "t1", &[ran(&fault, &fault)]);
        }
        let report = figures(&run.read(true));
        let figures = of_track(&report, EMPTY, TestUpdate).all;
        assert_eq!((figures.avg_coverage_pred, figures.avg_mutation_score_pred), (Some(0.0), Some(0.0)));
        assert_eq!((figures.avg_coverage_range_pred, figures.avg_mutation_score_strict_pred), (Some(0.0), Some(0.0)));
        assert_eq!((figures.avg_coverage_pred_success, figures.avg_mutation_score_pred_success), (None, None));
        assert_eq!((figures.avg_coverage_gold, figures.avg_mutation_score_gold), (None, None));
        assert_eq!((figures.hrns_fail_percent, figures.gold_incomplete), (Some(100.0), 2));
        assert!(report.runs[0].complete);
    }
}

#[test]
fn what_was_not_to_be_measured_has_no_mean() {
    let mut run = fixture();
    (run.inputs.coverage, run.inputs.mutation) = (true, false);
    let report = figures(&run.read(true));
    let figures = of_track(&report, TWO, TestUpdate).all;
    assert_eq!(figures.avg_coverage_pred, Some(50.0 / 3.0));
    assert_eq!((figures.avg_mutation_score_pred, figures.avg_mutation_score_gold), (None, None));
}

/// Where gold's counts are to come yet, nothing is known of a method that passed; one that did not pass is 0 all the same.
#[test]
fn what_gold_has_not_run_for_is_in_no_mean() {
    let tasks: [(&str, &str, Track, &str, &[&str]); 3] = [
        ("t1", "o/n", TestUpdate, "2021-09-01", &["A#m"]),
        ("t2", "o/n", TestUpdate, "2021-09-01", &["B#m"]),
        ("t3", "o/n", TestUpdate, "2021-09-01", &["C#m"]),
    ];
    let written = |gold: &dyn Fn(&mut Fixture), ended| {
        let mut run = Fixture::new(&["m"], &tasks);
        for task in ["t1", "t2", "t3"] {
            run.hands_in("m", task, None);
        }
        run.runs("m", "t1", &[passed(&[PASS; 2], 10, [4, 4])]);
        run.runs("m", "t2", &[passed(&[PASS; 2], 10, [4, 4])]);
        run.runs("m", "t3", &[ran(&[ASSERTION; 2], &[PASS; 2])]);
        run.gold_runs("t1");
        gold(&mut run);
        let report = figures(&run.read(ended));
        (of_track(&report, "m", TestUpdate).all, report.runs[0].complete)
    };
    // Resolved, but not launched when the run was stopped; and launched, its launches on mutants lost.
    let stopped = |run: &mut Fixture| run.submission(GOLD, "t2", ContentKind::Gold, None);
    let lost = |run: &mut Fixture| {
        run.submission(GOLD, "t2", ContentKind::Gold, None);
        run.runs(GOLD, "t2", &[Ran { covered: Some(8), ..ran(&[PASS; 2], &[]) }]);
        run.kills(GOLD, "t2", &"B#m".parse().unwrap(), None);
        run.gold_runs("t3");
    };
    for (gold, ended, incomplete) in [(&stopped as &dyn Fn(&mut Fixture), false, 2), (&lost, true, 1)] {
        let (figures, complete) = written(gold, ended);
        assert_eq!((figures.gold_incomplete, complete), (incomplete, false));
        assert_eq!(figures.avg_mutation_score_pred, Some(0.5), "t1 with 1, t3 with 0, t2 not at all");
        assert_eq!((figures.mut_on_pass, figures.mut_on_pass_human), (Some(1.0), Some(0.5)));
        assert_eq!(figures.avg_coverage_pred, Some(200.0 / 3.0), "a submission's coverage needs no gold");
    }
}

/// What every form for people says.
const NOTES: [&str; 5] = [
    "r1 one: nothing for 1 selected task, which counts as HrnsFail: t5",
    "r1 one: 1 method passed in some repeats only: t1 A#m1 (1 of 2)",
    "r1 one: 1 task has no cost and counts as within every cap",
    "r1: 2 predictions for tasks that were not selected",
    "r1: 1 prediction there before, equal in bytes and cost",
];

#[test]
fn tasks_whose_developers_tests_fail_are_named() {
    let mut run = fixture();
    run.runs(GOLD, "t2", &[ran(&[ASSERTION; 2], &[])]);
    let models = run.read(true);
    let report = figures(&models);
    assert_eq!(report.runs[0].gold_failed, ["t2".parse().unwrap()]);
    let notes = notes::notes(&report, &models).join("\n");
    let text = "r1: the developers' tests of 1 task fail on new code, where their labels say that they pass: t2";
    assert!(notes.contains(text), "{notes}");
}

#[test]
fn what_was_tampered_with_keeps_its_category_and_is_no_strict_success() {
    let mut run = fixture();
    let submission = run.records.iter_mut().find_map(|record| match record {
        ScoreRecord::Submission(one) if one.model == "one" && one.task_id.as_str() == "t3" => Some(one),
        _ => None,
    });
    submission.unwrap().shadows = vec!["a.Focal".to_owned()];
    let models = run.read(true);
    let of = |task: &str| {
        let scored = models[0].tasks.iter().find(|scored| scored.task.id.as_str() == task).unwrap();
        let verdict = &scored.methods[0].verdict;
        (verdict.paper_verdict, verdict.strict_success, verdict.integrity)
    };
    assert_eq!(of("t3"), (Some(Category::Success), false, Integrity::Tampered));
    assert_eq!(of("t2"), (Some(Category::Success), true, Integrity::NotEvaluated));
    let notes = notes::notes(&figures(&models), &models);
    let said = "r1 one: tampered: 1 test file declares types of the project again: t3";
    assert!(notes.iter().any(|note| note == said), "{notes:?}");
    assert!(!notes.iter().any(|note| note.contains("tampered") && note.contains(TWO)), "{notes:?}");
}

#[test]
fn what_is_missing_unknown_or_uncertain_is_named_in_every_form() {
    let mut run = fixture();
    run.unknown(TWO, (0..200).map(|number| format!("x{number}")));
    let models = run.read(true);
    let report = figures(&models);
    let notes = notes::notes(&report, &models);
    for note in NOTES {
        assert_eq!(notes.iter().filter(|found| *found == note).count(), 1, "{note}: {notes:?}");
    }
    let about_two = [
        format!("r1 {TWO}: nothing for 3 selected tasks, which count as HrnsFail: t3, t4, t5"),
        format!("r1 {TWO}: 201 predictions for unknown tasks: gone in `p.jsonl` line 3, x0 in `p.jsonl` line 3"),
    ];
    for note in &about_two {
        assert_eq!(notes.iter().filter(|found| found.starts_with(note)).count(), 1, "{note}: {notes:?}");
    }
    assert!(notes.iter().any(|note| note.contains("not measured, for 1 task") && note.ends_with(": t5")), "{notes:?}");
    assert!(notes.iter().any(|note| note.ends_with("x8 in `p.jsonl` line 3, and 191 more")), "{notes:?}");
    assert!(notes.iter().all(|note| note.len() < 600), "{notes:?}");

    let text = markdown::render(&report, &models);
    let mut page = Vec::new();
    html::write(&mut page, &report, &models).unwrap();
    let page = String::from_utf8(page).unwrap();
    for note in NOTES {
        assert!(text.contains(&format!("- {}\n", note.replace('#', "\\#"))), "{note}: {text}");
        assert!(page.contains(&format!("<li>{note}</li>")), "{note}");
    }
    for form in [&text, &page] {
        assert!(form.contains("and 191 more") && !form.contains("<b>"));
        for title in ["By repository", "By Java development kit", "By half-year", "Cost caps", "Narrow means"] {
            assert!(form.contains(title), "{title}");
        }
    }

    let [one, two] = report.runs.as_slice() else { panic!("{report:?}") };
    assert_eq!((one.unknown_count, two.unknown_count, two.unknown.len()), (0, 201, MOST_UNKNOWN));
    assert_eq!((one.missing_count, two.missing_count, one.not_selected, one.repeated), (1, 3, 2, 1));
    assert_eq!(one.flaky.len(), 1);
    assert!(two.flaky.is_empty());
}

/// Every selected task is in exactly one list, as in SWE-bench's run reports, and lists are as long as their counts say.
#[test]
fn instances_are_told_apart_as_other_harnesses_do() {
    let mut run = fixture();
    let inputs = &mut run.inputs.models.get_mut("one").unwrap().submissions;
    for (task, kind, bytes) in [
        // Gold's bytes are not kept, and so look like none.
        ("t1", ContentKind::Gold, &b""[..]),
        ("t2", ContentKind::Patch, b""),
        ("t4", ContentKind::Nothing, b""),
    ] {
        let input = inputs.get_mut(&task.parse::<TaskId>().unwrap()).unwrap();
        (input.kind, input.digest) = (kind, Digest::of(bytes));
    }
    let submission = run.records.iter_mut().find_map(|record| match record {
        ScoreRecord::Submission(one) if one.model == "one" && one.task_id.as_str() == "t3" => Some(one),
        _ => None,
    });
    submission.unwrap().fault = Some(SubmissionFault { reason: HarnessReason::WrongBase, detail: "x".to_owned() });
    let report = serde_json::to_value(figures(&run.read(true))).unwrap();
    for (run, name, ids) in [
        (0, "submitted", &["t1", "t2", "t3", "t4"][..]),
        (0, "incomplete", &["t5"]),
        (0, "empty_patch", &["t2", "t4"]),
        (0, "completed", &["t1"]),
        // One of its two methods fails.
        (0, "resolved", &[]),
        (0, "unresolved", &["t1"]),
        (0, "well_formed", &["t1"]),
        (0, "error", &["t3"]),
        (1, "submitted", &["t1", "t2"]),
        (1, "incomplete", &["t3", "t4", "t5"]),
        (1, "empty_patch", &[]),
        (1, "completed", &["t1"]),
        // A fault of the infrastructure is no verdict there either.
        (1, "error", &["t2"]),
    ] {
        let run = &report["runs"][run];
        assert_eq!(run[format!("{name}_ids")], Value::from(ids), "{name}: {run}");
        assert_eq!(run[format!("{name}_instances")], Value::from(ids.len()), "{name}: {run}");
        assert_eq!((&run["total_instances"], &run["incomplete_ids"]), (&Value::from(5), &run["missing"]), "{run}");
    }
    let whole = figures(&fixture().read(true));
    let one = &whole.runs[0].instances;
    let named = |ids: &[TaskId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!((named(&one.resolved_ids), one.resolved_instances), (vec!["t2".to_owned(), "t3".to_owned()], 2));
    assert_eq!((named(&one.unresolved_ids), one.unresolved_instances), (vec!["t1".to_owned(), "t4".to_owned()], 2));
    let update = of_track(&whole, "one", TestUpdate).all;
    // Of t1, t3 and t5 the second is resolved, and the last has no submission.
    assert_eq!((update.resolved_percent, update.well_formed_percent), (Some(100.0 / 3.0), Some(200.0 / 3.0)));
    // What an unfinished run has not come to is no verdict so far.
    let mut run = Fixture::new(&["m"], &[("t1", "o/n", TestUpdate, "2021-09-01", &["A#m"])]);
    run.hands_in("m", "t1", None);
    let models = run.read(false);
    let instances = &models[0].instances;
    assert_eq!((instances.completed_instances, instances.error_instances), (0, 1), "{instances:?}");
    let task = |id| (id, "o/n", TestUpdate, "2021-09-01", &["A#m"][..]);
    let mut run = Fixture::new(&["m"], &[task("t1"), task("t2")]);
    ["t1", "t2"].iter().for_each(|id| run.hands_in("m", id, None));
    run.records.pop();
    let update = of_track(&figures(&run.read(false)), "m", TestUpdate).all;
    assert_eq!(update.well_formed_percent, Some(100.0), "the second task has no record yet");
}
