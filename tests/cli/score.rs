//! `score` and `report` without an engine: bad predictions are named, nothing handed in is scored as nothing, and reports
//! come from run directories alone.

use std::collections::BTreeMap;

use serde_json::Value;
use testevo_sandbox::sample::SampleRepository;

use crate::support::command::CommandLine;

/// Imports the sample repository, whose sources stand beside.
pub(super) fn imported() -> CommandLine {
    let line = CommandLine::new();
    let demo = SampleRepository::demo().unwrap();
    let pairs = demo.write_git(&line.path().join(format!("sources/{}", demo.name.name()))).unwrap();
    line.write("demo.json", &demo.published(&pairs));
    line.run(&["import", "demo.json"]);
    line
}

fn score(line: &CommandLine, arguments: &[&str]) -> String {
    let all = ["score", "--git-mirror", "sources/{name}"];
    line.run(&[&all[..], arguments].concat())
}

fn stdout(text: &str) -> &str {
    let text = text.split_once("---- stdout\n").unwrap().1;
    text.split_once("---- stderr\n").map_or(text, |(stdout, _)| stdout)
}

#[test]
fn nothing_handed_in_is_scored_without_an_engine() {
    let line = imported();
    let text = score(&line, &["--predictions", "empty", "--run-id", "r1", "--format", "json"]);
    assert!(text.starts_with("exit 0\n"), "{text}");
    let report: Value = serde_json::from_str(stdout(&text)).unwrap();
    let run = &report["runs"][0];
    assert_eq!((&run["model"], &run["complete"]), (&Value::from("empty"), &Value::from(true)));
    let counts = ["total", "submitted", "incomplete", "empty_patch", "completed", "error"];
    assert_eq!(counts.map(|name| run[format!("{name}_instances")].as_u64()), [5, 5, 0, 5, 0, 0].map(Some));
    assert_eq!(run["empty_patch_ids"].as_array().map(Vec::len), Some(5), "{run}");
    for (track, figures) in run["tracks"].as_object().unwrap() {
        assert_eq!(figures["hrns_fail_percent"], 100.0, "{track}");
        assert_eq!(figures["success_percent"], 0.0, "{track}");
        assert_eq!((&figures["avg_coverage_pred"], &figures["avg_coverage_gold"]), (&Value::from(0.0), &Value::Null));
        assert_eq!(figures["gold_incomplete"], figures["tasks"], "{track}");
    }
    // The same directory gives the same bytes, by its id as by its path.
    assert_eq!(stdout(&line.run(&["report", "r1", "--format", "json"])), stdout(&text));
    let by_path = line.run(&["report", "data/runs/r1", "--format", "json"]);
    assert_eq!(stdout(&by_path), stdout(&text));
    for format in ["text", "markdown", "csv", "junit", "html"] {
        let once = line.run(&["report", "r1", "--format", format]);
        assert!(once.starts_with("exit 0\n") && once.contains("HrnsFail"), "{format}: {once}");
        assert_eq!(once, line.run(&["report", "r1", "--format", format]), "{format}");
    }
    assert!(line.run(&["runs", "show", "r1"]).contains("HrnsFail%"));
    let again = score(&line, &["--predictions", "empty", "--run-id", "r1"]);
    assert!(again.contains("has finished already"), "{again}");
    let task = report_task(&line);
    let explained = line.run(&["explain", "r1", &task]);
    assert!(explained.contains("harness_fail(empty)") && explained.contains("there is no prediction"), "{explained}");
}

/// Returns the id of an imported task.
fn first_task(line: &CommandLine) -> String {
    let tasks = line.run(&["tasks", "list", "--format", "json"]);
    let task: Value = serde_json::from_str(stdout(&tasks).lines().next().unwrap()).unwrap();
    task["task_id"].as_str().or(task["id"].as_str()).unwrap().to_owned()
}

fn report_task(line: &CommandLine) -> String {
    let csv = line.run(&["report", "r1", "--format", "csv"]);
    csv.lines().find(|line| line.starts_with("r1,")).unwrap().split(',').nth(6).unwrap().to_owned()
}

#[test]
fn every_repeat_has_its_records_and_the_seed_is_kept() {
    let line = imported();
    let mut seeds = Vec::new();
    for (run, repeats, more) in [
        ("once", 1, &[][..]),
        ("again", 1, &[]),
        ("twice", 2, &["--repeat", "2"]),
        ("seeded", 1, &["--seed", "7"]),
        ("both", 2, &["--repeat", "2", "--seed", "18446744073709551615"]),
    ] {
        let text = score(&line, &[&["--predictions", "empty", "--run-id", run], more].concat());
        assert!(text.starts_with("exit 0\n"), "{text}");
        let read = |name: &str| fs_err::read_to_string(line.path().join(format!("data/runs/{run}/{name}"))).unwrap();
        let inputs: Value = serde_json::from_str(&read("inputs.json")).unwrap();
        assert_eq!(inputs["repeats"], repeats, "{run}");
        seeds.push(inputs["seed"].as_u64().unwrap());
        let mut launches: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for record in read("records.jsonl").lines().map(|record| serde_json::from_str::<Value>(record).unwrap()) {
            if record["record"] == "execution" {
                let name = format!("{} {} {}", record["task_id"], record["method"], record["code"]);
                launches.entry(name).or_default().push(record["repeat"].as_u64().unwrap());
            }
        }
        assert!(!launches.is_empty());
        for (name, found) in launches {
            assert_eq!(found, (1..=repeats).collect::<Vec<_>>(), "{run} {name}");
        }
    }
    let [once, again, twice, seeded, both] = seeds[..] else { panic!("five runs") };
    assert_eq!((once, seeded, both), (again, 7, u64::MAX), "what is scored decides the seed where nobody gives one");
    assert_ne!(once, twice);
    for argument in ["--repeat", "--seed"] {
        let text = score(&line, &["--predictions", "empty", argument, if argument == "--repeat" { "0" } else { "-1" }]);
        assert!(text.starts_with("exit 2\n"), "{text}");
    }
}

#[test]
fn bad_predictions_are_named_and_nothing_is_scored() {
    let line = imported();
    line.write("twice.jsonl", "{\"instance_id\":\"x\"}\n{\"instance_id\":3}\n");
    line.write("key.jsonl", "{\"instance_id\":\"x\",\"prediction\":\"--- a\"}\n");
    let task = first_task(&line);
    let upper = task.to_uppercase();
    line.write("ids.jsonl", &format!("{{\"instance_id\":\"{upper}\",\"model_patch\":\"--- a\"}}\n"));
    line.write(&format!("models/a/{task}.patch"), "--- a");
    line.write(&format!("names/{task}/Wrong.java"), "class Wrong {}");
    line.write("mini/preds.json", "{}");
    for (predictions, code, words) in [
        ("missing.jsonl", 2, "there is no file or directory `missing.jsonl`"),
        ("Gold", 2, "write `gold` in small letters"),
        ("-", 2, "predictions can't be read from stdin"),
        ("ids.jsonl", 4, &format!("did you mean `{task}`?")),
        ("models", 4, "name `models/a`"),
        ("names", 4, "Wrong.java` is not the test file of its task"),
        ("mini", 4, "name the file itself after `--predictions`: `mini/preds.json`"),
        ("twice.jsonl", 4, "`twice.jsonl` line 2 can't be read"),
        ("demo.json", 4, "published TestEvo-Bench tasks"),
        ("key.jsonl", 4, "rename `prediction` to `model_patch`"),
    ] {
        let text = score(&line, &["--predictions", predictions]);
        assert!(
            text.starts_with(&format!("exit {code}\n")) && text.contains(words) && text.contains("hint: "),
            "{text}"
        );
    }
    assert!(!line.files().iter().any(|file| file.contains("data/runs/")));
}

#[test]
fn unknown_and_missing_tasks_are_told() {
    let line = imported();
    let of = |id: &str| {
        format!("{{\"instance_id\":\"{id}\",\"model_name_or_path\":\"m\",\"model_patch\":null,\"cost\":1.5}}\n")
    };
    line.write("p.jsonl", &(of("gone") + &of(&first_task(&line))));
    let text = score(&line, &["--predictions", "p.jsonl", "--run-id", "r1"]);
    assert!(text.contains("`p.jsonl` line 1: there is no task `gone`"), "{text}");
    assert!(text.contains("m has nothing for 4 selected tasks, which count as failed"), "{text}");
    let keys = "warning: `p.jsonl` line 1: unknown keys are ignored: `cost` (did you mean `cost_usd`?)";
    assert_eq!(text.matches(keys).count(), 1, "{text}");
    for format in ["text", "markdown", "html"] {
        let report = line.run(&["report", "r1", "--format", format]);
        assert!(report.contains("r1 m: 1 prediction for an unknown task: gone in "), "{format}: {report}");
        assert!(report.contains("r1 m: nothing for 4 selected tasks, which count as HrnsFail: "), "{format}: {report}");
    }
}

#[test]
fn fences_are_told_before_and_after_scoring() {
    let line = imported();
    let id = first_task(&line);
    let diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";
    for submission in [
        serde_json::json!(format!("```diff\n{diff}```\n")),
        serde_json::json!({ "model_patch": format!("```bash\nmvn test\n```\n  ```diff\n{diff}  ```\n") }),
        serde_json::json!({ "model_patch": format!("<patch>\n{diff}</patch>\n") }),
        serde_json::json!({ "model_file": "```java\nclass A {}\n```\n" }),
        serde_json::json!({ "model_file": "Here is the file:\n```java\nclass A {}\n```\n" }),
    ] {
        line.write("p.json", &serde_json::json!({ &id: submission }).to_string());
        for more in [&["--dry-run"][..], &["--dry-run", "--strip-fences"]] {
            let text = score(&line, &[&["--predictions", "p.json"], more].concat());
            assert_eq!(text.contains("markdown_fence"), more.len() == 1, "{text}");
            assert_eq!(text.contains("1 submission, of which 1 can't be read,"), more.len() == 1, "{text}");
            assert_eq!(text.contains("removed the Markdown fences around 1 submission"), more.len() == 2, "{text}");
        }
    }
    // A fence that can't be chosen, and a diff in place of a file.
    let two = format!("```diff\n{diff}```\n").repeat(2);
    line.write("p.json", &serde_json::json!({ &id: { "model_patch": two } }).to_string());
    let text = score(&line, &["--predictions", "p.json", "--dry-run", "--strip-fences"]);
    assert!(text.contains("around 0 submissions") && text.contains("`--strip-fences` can't choose one"), "{text}");
    line.write("p.json", &serde_json::json!({ &id: { "model_file": diff } }).to_string());
    let text = score(&line, &["--predictions", "p.json", "--dry-run"]);
    assert!(text.contains("HrnsFail: diff_as_file: the test file is a diff"), "{text}");
}

#[test]
fn a_run_of_another_command_has_no_report() {
    let line = imported();
    line.write("data/runs/v/run.json", "{\"schema\":1,\"run_id\":\"v\",\"command\":\"validate\",\"inputs\":\"sha256:0000000000000000000000000000000000000000000000000000000000000000\",\"started\":\"x\",\"finished\":null}");
    let text = line.run(&["report", "v"]);
    assert!(text.starts_with("exit 2\n") && text.contains("is one of `validate`"), "{text}");
}
