//! Several runs in one report, and what reading takes: predictions within a bound of memory, reports of the whole benchmark
//! in little of it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
use std::time::Instant;

use fs_err as fs;
use serde_json::{Value, json};
use testevo_sandbox::outcome::{ExecReason, Outcome};
use testevo_sandbox::task::Cell;

use super::score::imported;
use crate::support::browser::browse;
use crate::support::command::CommandLine;
use crate::support::scored::ScoredRun;
use crate::support::validated;

/// A patch of a hundred megabytes is a fact that is counted; what reads it keeps to memory of a few times the file.
#[test]
fn predictions_of_any_size_take_memory_by_their_file() {
    let line = imported();
    let long = "+x\\n".repeat(25 << 20);
    let deep = "[".repeat(8 << 20) + &"]".repeat(8 << 20);
    let many = "[],".repeat(24 << 20) + "[]";
    for (what, text) in [
        ("a long patch", format!("{{\"instance_id\":\"t\",\"model_patch\":\"{long}\"}}")),
        ("a deep value", format!("{{\"instance_id\":\"t\",\"model_patch\":null,\"more\":{deep}}}")),
        ("many values", format!("{{\"model_patch\":null,\"more\":[{many}],\"instance_id\":\"t\"}}")),
    ] {
        line.write("p.jsonl", &text);
        let kibibytes = (4 * text.len() + (192 << 20)) >> 10;
        let said = line.run_within(kibibytes, &["score", "--dry-run", "--predictions", "p.jsonl"]);
        assert!(said.contains("`p.jsonl` line 1 names `t`"), "{what}: {said}");
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
    let began = Instant::now();
    let taken = line.measure(&["report", "r1", "--format", "html", "--output", "pages"]);
    assert_eq!(taken.code, Some(0));
    let index = line.path().join("pages/index.html");
    let (peak, bytes) = (taken.peak_bytes >> 20, fs::metadata(&index).unwrap().len());
    eprintln!("   pages: {:5.1} s, {peak:4} MiB at most, {bytes:>9} bytes of index", began.elapsed().as_secs_f64());
    let empty = line.path().join("empty.html");
    fs::write(&empty, "<p>").unwrap();
    for page in [&empty, &index] {
        let began = Instant::now();
        browse(page, line.path(), &["--dump-dom".to_owned()]);
        let (name, seconds) = (page.file_name().unwrap().display(), began.elapsed().as_secs_f64());
        eprintln!("{name}: {seconds:.1} s from the browser's start to its end");
    }
}

/// Writes runs of these ids, models and numbers of tasks: the first tasks are the same in each.
fn written(runs: &[(&str, &[&str], usize)]) -> CommandLine {
    let line = CommandLine::new();
    for (run_id, models, tasks) in runs {
        let models = models.iter().map(|model| (*model).to_owned()).collect();
        ScoredRun { run_id, models, tasks: *tasks, strange: "" }.write(&line.path().join("data"));
    }
    line
}

/// Returns the report of some runs in a form, which must be the same bytes each time.
fn report(line: &CommandLine, runs: &[&str], format: &str) -> String {
    let arguments = [&["report", "--format", format][..], runs].concat();
    let said = line.run(&arguments);
    assert_eq!(line.run(&arguments), said, "{format}");
    said.strip_prefix("exit 0\n---- stdout\n").unwrap_or_else(|| panic!("{said}")).to_owned()
}

/// Returns how many percent of a task's methods are a success, by run, model, track and task, as the CSV has it.
fn success_percent(csv: &str) -> BTreeMap<[String; 4], f64> {
    let mut counts: BTreeMap<[String; 4], (f64, f64)> = BTreeMap::new();
    for row in csv.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let (successes, methods) = counts.entry([0, 1, 2, 6].map(|column| cells[column].to_owned())).or_default();
        *successes += if cells[8] == "Success" { 1.0 } else { 0.0 };
        *methods += 1.0;
    }
    counts.into_iter().map(|(name, (successes, methods))| (name, 100.0 * successes / methods)).collect()
}

#[test]
fn runs_stand_side_by_side_over_the_tasks_that_both_have() {
    let line = written(&[("small", &["one"], 12), ("large", &["one", "two"], 18), ("least", &["one"], 3)]);
    for (runs, models, expected) in [
        (
            &["small", "large", "least"][..],
            &[["small", "one"], ["large", "one"], ["large", "two"], ["least", "one"]][..],
            // An interval needs two tasks, and of the least run's three one is of the other track.
            &[
                ("large", "one", "test_update", 6),
                ("large", "one", "test_generation", 6),
                ("large", "two", "test_update", 6),
                ("large", "two", "test_generation", 6),
                ("least", "one", "test_update", 2),
            ][..],
        ),
        (
            &["large", "small"],
            &[["large", "one"], ["large", "two"], ["small", "one"]],
            &[
                ("large", "two", "test_update", 9),
                ("large", "two", "test_generation", 9),
                ("small", "one", "test_update", 6),
                ("small", "one", "test_generation", 6),
            ],
        ),
        (&["least"], &[["least", "one"]], &[]),
    ] {
        let found: Value = serde_json::from_str(&report(&line, runs, "json")).unwrap();
        let named = |one: &Value| json!([one["run_id"], one["model"]]);
        let listed: Vec<Value> = found["runs"].as_array().unwrap().iter().map(named).collect();
        assert_eq!(listed, models.iter().map(|name| json!(name)).collect::<Vec<_>>(), "in the order of their names");

        let comparisons = found["comparisons"].as_array().unwrap();
        let base = models[0];
        let said = |one: &Value| json!([one["run"], one["base"], one["track"], one["tasks"]]);
        let wanted = |(run, model, track, tasks): &(&str, &str, &str, usize)| json!([[run, model], base, track, tasks]);
        assert_eq!(
            comparisons.iter().map(said).collect::<Vec<_>>(),
            expected.iter().map(wanted).collect::<Vec<_>>(),
            "{runs:?}"
        );

        let rates = success_percent(&report(&line, runs, "csv"));
        for (one, (run, model, track, tasks)) in comparisons.iter().zip(expected) {
            let own = rates.iter().filter(|(name, _)| name[..3] == [*run, *model, *track]);
            let pairs: Vec<f64> = own
                .filter_map(|(name, rate)| {
                    let of_base = [base[0], base[1], *track, name[3].as_str()].map(str::to_owned);
                    Some(rate - rates.get(&of_base)?)
                })
                .collect();
            assert_eq!(pairs.len(), *tasks, "{one}");
            let mean = pairs.iter().sum::<f64>() / pairs.len() as f64;
            let difference = one["success_percent_difference"].as_f64().unwrap();
            assert!((difference - mean).abs() < 1e-9, "{mean}: {one}");
            let [low, high] = [0, 1].map(|end| one["interval"][end].as_f64().unwrap());
            assert!(low <= difference && difference <= high, "{one}");
            // Significant is what both intervals are sure of.
            let sure = |ends: &Value| ends.is_null() || ends[0].as_f64() > Some(0.0) || ends[1].as_f64() < Some(0.0);
            let significant = sure(&one["interval"]) && sure(&one["interval_repositories"]);
            assert_eq!(one["significant"], significant, "{one}");
            // The fixture's first models do the same in every run, and only they.
            assert_eq!((low, high) == (0.0, 0.0), *model == "one", "{one}");
        }
        let text = report(&line, runs, "text");
        assert_eq!(text.matches(&format!(" beside {} {}, ", base[0], base[1])).count(), expected.len(), "{text}");
        let markdown = report(&line, runs, "markdown");
        for one in comparisons {
            let between =
                |ends: &Value| format!("{:+.1} to {:+.1}", ends[0].as_f64().unwrap(), ends[1].as_f64().unwrap());
            let (tasks, repositories) = (between(&one["interval"]), between(&one["interval_repositories"]));
            let [said, cell] =
                if one["significant"] == true { ["significant", "yes"] } else { ["not significant", "no"] };
            let line = format!(" of success, {said}, 95 % interval {tasks}, by repositories {repositories}, ");
            assert!(text.contains(&line), "{line}: {text}");
            let row = format!(" | {tasks} | {repositories} | {cell} |\n");
            assert!(markdown.contains(&row), "{row}: {markdown}");
        }
    }
}

#[test]
fn samples_stand_alone_and_as_one_model_in_every_form() {
    let names = ["birch (sample 1)", "birch (sample 2)"];
    let line = written(&[("small", &["atlas", names[0], names[1]], 12), ("again", &["atlas"], 12)]);
    let csv = report(&line, &["small"], "csv");
    for row in csv.lines().skip(1) {
        let (model, sample_of) = (row.split(',').nth(1).unwrap(), row.rsplit(',').next().unwrap());
        assert_eq!(sample_of, if model == "atlas" { "" } else { "birch" }, "{row}");
    }
    let rates = success_percent(&csv);
    let found: Value = serde_json::from_str(&report(&line, &["small"], "json")).unwrap();
    let [sampled] = &found["samples"].as_array().unwrap()[..] else { panic!("{found}") };
    let near = |value: &Value, expected: f64| {
        let value = value.as_f64().unwrap();
        assert!((value - expected).abs() < 1e-9, "{value} and {expected}: {sampled}");
    };
    for track in ["test_update", "test_generation"] {
        let each = sampled["each"][track].as_array().unwrap();
        let mut resolved = Vec::new();
        for (name, one) in names.iter().zip(each) {
            let own = rates.iter().filter(|(of, _)| of[1] == *name && of[2] == track).map(|(_, rate)| *rate);
            let own: Vec<f64> = own.collect();
            assert_eq!((own.len(), &one["tasks"], &one["model"]), (6, &json!(6), &json!(name)));
            near(&one["success_percent"], own.iter().sum::<f64>() / 6.0);
            resolved.push(own.iter().filter(|rate| **rate == 100.0).count() as f64 / 6.0 * 100.0);
            near(&one["resolved_percent"], resolved[resolved.len() - 1]);
        }
        let all = sampled["tracks"][track].as_array().unwrap();
        assert_eq!(all.iter().map(|pass| &pass["k"]).collect::<Vec<_>>(), [&json!(1), &json!(2)]);
        near(&all[0]["pass_percent"], resolved.iter().sum::<f64>() / 2.0);
    }
    for format in ["text", "markdown", "html"] {
        let text = report(&line, &["small"], format);
        assert!(text.contains("Each sample alone, over the tasks of all") && text.contains(names[1]), "{text}");
    }
    // Runs of models of one name are samples if that is wanted, and are not compared with each other then.
    let csv = report(&line, &["small", "again", "--samples"], "csv");
    let of_atlas = csv.lines().filter(|row| row.split(',').nth(1) == Some("atlas"));
    assert!(of_atlas.clone().count() > 24 && of_atlas.clone().all(|row| row.ends_with(",atlas")), "{csv}");
    let compared = |runs: &[&str]| -> Vec<Value> {
        let found: Value = serde_json::from_str(&report(&line, runs, "json")).unwrap();
        found["comparisons"].as_array().unwrap().iter().map(|one| one["run"].clone()).collect()
    };
    let again = json!(["again", "atlas"]);
    assert!(compared(&["small", "again"]).contains(&again));
    assert!(!compared(&["small", "again", "--samples"]).contains(&again));
}

#[test]
fn two_runs_are_compared_result_by_result() {
    let line = written(&[("small", &["one"], 12), ("large", &["one", "two"], 18)]);
    let said = line.run(&["runs", "compare", "small", "small"]);
    assert!(said.starts_with("exit 0\n") && said.contains(" results in both runs, 0 values differ"), "{said}");
    let said = line.run(&["runs", "compare", "small", "large", "--format", "json"]);
    assert!(said.starts_with("exit 1\n") && said.contains("the runs small and large differ"), "{said}");
    let value = said.split_once("---- stdout\n").unwrap().1.lines().next().unwrap();
    let value: Value = serde_json::from_str(value).unwrap();
    assert_eq!(value["only"][1].as_array().unwrap().len(), 6, "{value}");
    assert_eq!(value["only_models"], json!([[], ["two"]]));
    assert_eq!(value["differing"], json!([]), "both have the same results of the same tasks");
}

#[test]
fn two_validations_are_compared_execution_by_execution() {
    let line = CommandLine::new();
    let write = |run_id, tasks, outcome: &dyn Fn(usize, Cell, Outcome) -> Option<Outcome>| {
        validated::write(&line.path().join("data"), run_id, tasks, |task, cell, _, label| outcome(task, cell, label));
    };
    write("one", 5, &|_, _, label| Some(label));
    // A label is missed, and a cell has no record; the sixth task is another's alone.
    write("two", 6, &|task, cell, label| match (task, cell) {
        (2, Cell::Nn) => Some(Outcome::ExecFail(ExecReason::Assertion)),
        (3, Cell::No) => None,
        _ => Some(label),
    });
    let said = line.run(&["runs", "compare", "one", "one"]);
    assert!(said.starts_with("exit 0\n") && said.contains("30 results in both runs, 0 values differ\n"), "{said}");
    let said = line.run(&["runs", "compare", "one", "two"]);
    let expected = ["exit 1\n", "only in two: t0005\n", "only in one: 1 result of tasks that both have\n"];
    assert!(expected.iter().all(|part| said.contains(part)), "{said}");
    assert!(said.contains("29 results in both runs, 3 values differ: outcome 3\n"), "{said}");
    assert!(said.contains("the runs one and two differ"), "{said}");
    let said = line.run(&["runs", "compare", "one", "two", "--format", "json"]);
    let value = said.split_once("---- stdout\n").unwrap().1.lines().next().unwrap();
    let value: Value = serde_json::from_str(value).unwrap();
    assert_eq!((&value["only_results"], &value["command"]), (&json!([1, 0]), &json!("validate")));
    assert_eq!(value["differing_by"], json!({"outcome": 3}));
    let of = "nn a.T2#m0 direct";
    let expected =
        json!({"task": "t0002", "of": of, "what": "outcome", "one": "pass", "other": "exec_fail(assertion)"});
    assert_eq!(value["differing"][0], expected);
}

/// Returns the days of a run's tasks.
fn dates_of(line: &CommandLine, run_id: &str) -> BTreeSet<String> {
    let inputs = fs::read(line.path().join("data/runs").join(run_id).join("inputs.json")).unwrap();
    let inputs: Value = serde_json::from_slice(&inputs).unwrap();
    let date = |task: &Value| task["rev2_date"].as_str().unwrap().to_owned();
    inputs["tasks"].as_array().unwrap().iter().map(date).collect()
}

#[test]
fn a_report_is_over_the_wanted_days_and_by_a_validation() {
    let line = written(&[("small", &["one"], 12)]);
    let said = line.run(&["report", "small", "--since", "2200-01-01"]);
    assert!(said.starts_with("exit 2\n") && said.contains("has no tasks of 2200-01-01 or later"), "{said}");
    let all: Value = serde_json::from_str(&report(&line, &["small"], "json")).unwrap();
    let some: Value = serde_json::from_str(&report(&line, &["small", "--since", "1990-01-01"], "json")).unwrap();
    assert_eq!(some["period"], json!({"since": "1990-01-01", "until": null}));
    assert_eq!(some["runs"], all["runs"]);
    // Some of the days leave some of the tasks, and every form says which days.
    let dates: BTreeSet<String> = dates_of(&line, "small");
    let middle = dates.iter().nth(dates.len() / 2).unwrap();
    let early: Value = serde_json::from_str(&report(&line, &["small", "--until", middle], "json")).unwrap();
    let number = |value: &Value| value["runs"][0]["total_instances"].as_u64().unwrap();
    assert!((1..number(&all)).contains(&number(&early)), "{} of {}", number(&early), number(&all));
    let period = format!("{middle} or earlier");
    for format in ["text", "markdown", "junit", "html"] {
        assert!(report(&line, &["small", "--until", middle], format).contains(&period), "{format}");
    }
    let said = line.run(&["report", "small", "--certified-by", "small"]);
    assert!(said.starts_with("exit 2\n") && said.contains("is no finished run of `validate`"), "{said}");
}

#[test]
fn single_results_lie_where_other_harnesses_leave_them() {
    let line = written(&[("small", &["one"], 12)]);
    let said = line.run(&["report", "small", "--format", "instances"]);
    assert!(said.starts_with("exit 2\n") && said.contains("--output"), "{said}");
    let said = line.run(&["report", "small", "--format", "instances", "-o", "out"]);
    assert!(said.starts_with("exit 0\n"), "{said}");
    let read = |path: &str| -> Value { serde_json::from_slice(&fs::read(line.path().join(path)).unwrap()).unwrap() };
    let files = line.files();
    let named = files.iter().find_map(|file| file.strip_prefix("out/")?.strip_suffix(".small.json")).unwrap();
    let summary = read(&format!("out/{named}.small.json"));
    let ids = |key: &str| summary[key].as_array().unwrap().clone();
    assert!(!ids("resolved_ids").is_empty() && !ids("unresolved_ids").is_empty(), "{summary}");
    let all = [ids("resolved_ids"), ids("unresolved_ids")].concat();
    assert_eq!(all.len(), ids("completed_ids").len());
    // A task is resolved if the CSV has nothing but successes for it.
    let rates = success_percent(&report(&line, &["small"], "csv"));
    let mut generated = 0;
    for id in &all {
        let id = id.as_str().unwrap();
        let instance = &read(&format!("out/small/{named}/{id}/report.json"))[id];
        let rate = rates.iter().find(|(name, _)| name[3] == id).unwrap().1;
        assert_eq!(instance["resolved"], json!(*rate == 100.0), "{id}: {instance}");
        assert_eq!(instance["resolved"], json!(ids("resolved_ids").contains(&json!(id))));
        if let Some(status) = instance.get("tests_status").map(|status| &status["FAIL_TO_PASS"]) {
            let count = |key: &str| status[key].as_array().unwrap().len();
            assert_eq!(count("success") + count("failure"), instance["methods"].as_object().unwrap().len());
            generated += 1;
        }
    }
    assert!(generated > 0 && generated < all.len(), "{generated}");
    let reports = files.iter().filter(|file| file.ends_with("/report.json")).count();
    assert_eq!(reports, all.len(), "only completed instances have one");
    let said = line.run(&["report", "small", "--format", "instances", "-o", "out"]);
    assert!(said.starts_with("exit 2\n") && said.contains("is not empty"), "{said}");
}

#[test]
fn a_run_is_named_once() {
    let line = written(&[("small", &["one"], 3), ("other", &["one"], 3)]);
    for again in ["small", "latest", "./data/runs/small"] {
        let said = line.run(&["report", "other", "small", again, "--samples"]);
        let twice = if again == "latest" { "other" } else { "small" };
        // Of two runs that began in one second the later one in the alphabet is the latest.
        let expected = format!("the run `{twice}` is named twice");
        let is_told = said.contains(&expected) || again == "latest" && said.contains("the run `small` is named twice");
        assert!(said.starts_with("exit 2\n") && is_told, "{said}");
    }
    // What is written for both runs is read again.
    let board = report(&line, &["small", "other"], "leaderboard");
    line.write("board.json", &board);
    let said = line.run(&["report", "small", "--published", "board.json", "--format", "html"]);
    assert!(said.starts_with("exit 0\n"), "{said}");
}

#[test]
fn a_run_that_has_lost_records_is_told_as_incomplete() {
    let line = written(&[("small", &["one"], 12)]);
    let records = line.path().join("data/runs/small/records.jsonl");
    let text = fs::read_to_string(&records).unwrap();
    // The last record is that of mutants of a method, which no launch is lost with.
    let last = text.trim_end().rfind('\n').unwrap() + 1;
    fs::write(&records, &text[..last]).unwrap();
    let missing = format!("{} of {} bytes of records.jsonl", text.len() - last, text.len());
    let said = line.run(&["report", "small"]);
    assert!(said.contains(&format!("incomplete: run small of one: {missing} are missing")), "{said}");
    assert!(said.contains(&format!("{missing} of run small are missing: ")), "{said}");
    let said = line.run(&["report", "small", "--format", "json"]);
    assert!(said.contains("\"complete\":false") && said.contains(&format!("{missing} of run small are")), "{said}");
}

#[test]
fn what_is_no_run_is_told_as_such() {
    let line = written(&[("small", &["one"], 3)]);
    let said = line.run(&["report", "small", "--certified-by", "latest"]);
    assert!(said.starts_with("exit 2\n") && said.contains("no run of `validate` has finished"), "{said}");
    validated::write(&line.path().join("data"), "v1", 3, |_, _, _, label| Some(label));
    line.write("file", "");
    for (arguments, expected) in [
        (&["report", "./data"][..], "`./data` is no run: it has no `run.json`"),
        (&["report", "./file"], "`./file` is no run: it is no directory"),
        (&["report", "./none"], "`./none` is no run: there is no such directory"),
        (&["report", "./file/small"], "`./file/small` is no run: there is no such directory"),
        (&["report", "small", "--certified-by", "./data"], "`./data` is no run: it has no `run.json`"),
        (&["runs", "merge", "./data"], "`./data` is no run: it has no `run.json`"),
        (&["runs", "compare", "small", "v1"], "the run `small` is one of `score`, and the run `v1` one of `validate`"),
    ] {
        let said = line.run(arguments);
        assert!(said.starts_with("exit 2\n") && said.contains(expected), "{said}");
        for advice in ["remove", "free space", "shards"] {
            assert!(!said.contains(advice), "{said}");
        }
    }
}

#[test]
fn a_report_is_written_to_a_file_as_a_whole() {
    let line = written(&[("small", &["one", "gold"], 6)]);
    for format in ["text", "json", "markdown", "csv", "junit", "leaderboard"] {
        let arguments = ["report", "small", "--format", format, "--output"];
        // The second time it replaces the file.
        for _ in 0..2 {
            let said = line.run(&[&arguments[..], &["written"]].concat());
            assert_eq!(said, "exit 0\n---- stdout\nwritten\n", "{format}");
        }
        let stdout = report(&line, &["small"], format);
        let written = fs::read_to_string(line.path().join("written")).unwrap();
        match format {
            // A file is no terminal: all columns stand in one table.
            "text" => {
                assert!(written.lines().any(|row| row.contains("Success%") && row.contains("MutHuman")), "{written}")
            }
            _ => assert_eq!(written, stdout, "{format}"),
        }
        assert_eq!(line.run(&[&arguments[..], &["-"]].concat()), format!("exit 0\n---- stdout\n{stdout}"), "{format}");
        let said = line.run(&[&arguments[..], &["data"]].concat());
        assert!(said.starts_with("exit 2\n") && said.contains("`data` is a directory"), "{said}");
        let said = line.run(&[&arguments[..], &["none/written"]].concat());
        assert!(said.starts_with("exit 3\n") && said.contains("writing the report `none/written` failed"), "{said}");
    }
    let left: Vec<String> = line.files().into_iter().filter(|file| !file.starts_with("data/")).collect();
    assert_eq!(left, ["written"]);
}

#[test]
fn the_output_of_a_report_keeps_its_kind() {
    let line = written(&[("small", &["one"], 3)]);
    let path = |name: &str| line.path().join(name);
    line.write("elsewhere/target", "old");
    fs::set_permissions(path("elsewhere/target"), std::fs::Permissions::from_mode(0o640)).unwrap();
    for (link, target) in [("link", "elsewhere/target"), ("dangling", "elsewhere/new")] {
        symlink(target, path(link)).unwrap();
        let said = line.run(&["report", "small", "-o", link]);
        assert_eq!(said, format!("exit 0\n---- stdout\n{link}\n"));
        assert!(path(link).is_symlink() && fs::read_to_string(path(target)).unwrap().starts_with("run small\n"));
    }
    assert_eq!(fs::metadata(path("elsewhere/target")).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(std::process::Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
    // Open for both, it takes bytes without a reader.
    let mut pipe = fs::OpenOptions::new().read(true).write(true).open(path("pipe")).unwrap();
    assert_eq!(line.run(&["report", "small", "-o", "pipe"]), "exit 0\n");
    assert!(fs::metadata(path("pipe")).unwrap().file_type().is_fifo());
    let mut start = [0; 10];
    pipe.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"run small\n");
    // A page has one form for stdout, and single results have none.
    let page = report(&line, &["small"], "html");
    let said = line.run(&["report", "small", "--format", "html", "-o", "-"]);
    assert_eq!(said, format!("exit 0\n---- stdout\n{page}"));
    let said = line.run(&["report", "small", "--format", "instances", "-o", "-"]);
    assert!(said.starts_with("exit 2\n") && said.contains("writes several files") && !path("-").exists(), "{said}");
}

#[test]
fn a_run_elsewhere_is_reported_without_a_data_directory() {
    let line = written(&[("small", &["one"], 3)]);
    fs::rename(line.path().join("data/runs/small"), line.path().join("small")).unwrap();
    fs::remove_dir_all(line.path().join("data")).unwrap();
    // Logs of kept results are looked for in other runs.
    let records = line.path().join("small/records.jsonl");
    let text = fs::read_to_string(&records).unwrap();
    assert!(text.contains("\"cached\":false"), "{text}");
    fs::write(&records, text.replace("\"cached\":false", "\"cached\":true ")).unwrap();
    let said = line.run(&["report", "./small", "--format", "html", "-o", "page"]);
    assert!(said.starts_with("exit 0\n") && !line.path().join("data").exists(), "{said}");
}

#[test]
fn no_name_of_a_model_forges_a_line() {
    let line = written(&[("small", &["one", "evil\nrun fake: everything is complete"], 12)]);
    let text = report(&line, &["small"], "text");
    assert!(text.contains("small one beside small evil\\nrun fake: everything is complete, "), "{text}");
    assert!(!text.lines().any(|line| line.starts_with("run fake")), "{text}");
}

#[test]
fn the_one_run_of_a_report_is_named_once() {
    let line = written(&[("score-20261126T152152", &["one", "two"], 6), ("small", &["one"], 3)]);
    let text = report(&line, &["score-20261126T152152"], "text");
    assert!(text.starts_with("run score-20261126T152152\nmodel  track  "), "{text}");
    let figures = text.split_once("\n\nCost caps").unwrap().0;
    for table in figures.split("\n\n") {
        // Every table has what tells rows apart: two models with two tracks each.
        let rows: BTreeSet<Vec<&str>> = table.lines().map(|line| line.split_whitespace().take(2).collect()).collect();
        assert!(rows.len() >= 5, "{table}");
    }
    let both = report(&line, &["score-20261126T152152", "small"], "text");
    assert!(both.starts_with("run  ") && both.contains("model  track"), "{both}");
}
