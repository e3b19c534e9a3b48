//! The pages that `report --format html` makes, in a real browser: their scripts run, tables sort and filter, a task opens
//! to launches, covered lines, mutants, differences and logs, nothing runs off a phone's screen, and nothing of a
//! stranger's is taken for markup.

use std::collections::BTreeMap;

use fs_err as fs;
use serde_json::{Value, json};
use testevo_sandbox::outcome::Outcome;
use testevo_sandbox::output::visible_lines;
use testevo_sandbox::task::Cell;

use crate::support::browser::browse;
use crate::support::command::CommandLine;
use crate::support::scored::{ScoredRun, starts_compile};
use crate::support::validated;

/// What would show that a text is taken for markup.
const STRANGE: &str =
    "</script></pre><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">&lt;\u{2028}";

/// Loads the pages, uses them as a reader does, and writes down what is to be seen.
const READER: &str = include_str!("page/reader.html");

fn names(values: &Value) -> Vec<String> {
    let values = values.as_array().unwrap_or_else(|| panic!("{values}"));
    values.iter().map(|value| value.as_str().unwrap().to_owned()).collect()
}

fn number(value: &Value, what: &str) -> u64 {
    value[what].as_u64().unwrap_or_else(|| panic!("{what}: {value}"))
}

#[test]
fn a_browser_shows_the_pages() {
    let line = CommandLine::new();
    // The page shows no character that would reorder or hide others.
    let shown = visible_lines(STRANGE);
    assert_ne!(shown, STRANGE);
    let models = vec![format!("one {STRANGE}"), "two".to_owned(), "gold".to_owned()];
    let run = ScoredRun { run_id: "r1", models, tasks: 12, strange: STRANGE };
    run.write(&line.path().join("data"));
    // The last task is not validated, one misses a label, and of some the first method passes on old code.
    validated::write(&line.path().join("data"), "v1", 11, |task, cell, method, label| match cell {
        Cell::On if task == 4 => Some(Outcome::Pass),
        Cell::No if task % 4 == 3 && method.method() == "m0" => Some(Outcome::Pass),
        _ => Some(label),
    });
    let certified = |format| line.run(&["report", "r1", "--certified-by", "v1", "--format", format]);
    // An agent with a stranger's name, which the page shows with the values that the text has.
    let row = |pass: f64, cov: Value| json!({"d": "2024-01-01", "pass": pass, "exec": 1.0 - pass, "cmpl": 0.0, "hrns": 0.0, "cov": cov, "mut": null});
    let entry = json!({"agent": STRANGE, "tasks": [row(1.0, json!(0.75)), row(0.25, Value::Null)]});
    let old = json!({"agent": "old", "tasks": [{"d": "1999-01-01"}]});
    line.write("published.json", &json!({"tracks": {"test_update": [entry, old]}}).to_string());
    let page = line.run(&[
        "report",
        "r1",
        "--certified-by",
        "v1",
        "--format",
        "html",
        "--published",
        "published.json",
        "--since",
        "2000-01-01",
        // On a busy machine progress would be told as well.
        "--quiet",
    ]);
    let page = page.strip_prefix("exit 0\n---- stdout\n").unwrap_or_else(|| panic!("{page}"));
    fs::write(line.path().join("page.html"), page).unwrap();
    let said = line.run(&["report", "r1", "--quiet", "--format", "html", "--output", "pages"]);
    assert_eq!(said, "exit 0\n---- stdout\npages/index.html\n");
    fs::write(line.path().join("reader.html"), READER).unwrap();
    let (document, said) = browse(&line.path().join("reader.html"), line.path(), &["--dump-dom".to_owned()]);
    let seen = document.split_once("<pre id=\"seen\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let seen = seen.unwrap_or_else(|| panic!("{document}\n{said}")).0;
    let seen = ["&lt;<", "&gt;>", "&amp;&"].iter().fold(seen.to_owned(), |text, pair| {
        let (escaped, plain) = pair.split_at(pair.len() - 1);
        text.replace(escaped, plain)
    });
    let seen: Value = serde_json::from_str(&seen).unwrap_or_else(|error| panic!("{error}: {seen}\n{said}"));
    assert_eq!(seen["error"], Value::Null, "{said}");
    shows_the_overview(&seen, &shown);
    shows_published_agents(&seen["published"], &shown);
    shows_certified_tasks(&seen, &certified("csv"));
    shows_the_tasks(&seen, &shown);

    let elements = names(&seen["elements"]);
    assert!(!elements.iter().any(|name| name == "img"), "{elements:?}");
    assert_eq!((&seen["title"], &seen["requests"]), (&Value::from("Scores"), &Value::Array(Vec::new())));
    assert_eq!(seen["after"], "Scores", "the page's policy lets no other script run");
    let complaints: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
    // The one script that the reader itself put there.
    assert!(
        matches!(complaints.as_slice(), [refused] if refused.contains("Content Security Policy")),
        "{complaints:?}"
    );
}

fn shows_the_overview(seen: &Value, shown: &str) {
    let ranking = seen["ranking"].as_array().unwrap();
    assert_eq!(ranking.len(), 2, "a table for each track");
    let sheets = seen["sheets"].as_array().unwrap();
    for (track, sheet) in ranking.iter().zip(sheets) {
        let rows = track.as_array().unwrap();
        let mut runs: Vec<u64> = rows.iter().map(|row| number(row, "run")).collect();
        runs.sort_unstable();
        assert_eq!(runs, [1, 2], "gold, the first by name, is no row");
        for row in rows {
            // The bar says what the table of all figures says.
            let success = row["success"].as_str().unwrap();
            assert!(names(&sheet["up"]).iter().any(|value| value == success), "{row} {sheet}");
            assert!(row["mix"].as_str().unwrap().starts_with(&format!("Success {success} %, Redundant")), "{row}");
        }
        assert!(rows.iter().any(|row| row["said"].as_str().unwrap().contains(&format!("one {shown}"))), "{rows:?}");
    }
    shows_ranks(seen);
    assert_eq!(seen["gold"], 9, "gold is a line in every row, over all and, of models, over certified tasks");
    let counts = |what: &str| -> Vec<u64> {
        seen[what].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).collect()
    };
    assert!(matches!(counts("charts")[..], [4, 2, dots] if dots > 0), "{:?}", seen["charts"]);
    assert_eq!(seen["goldlines"], json!([1, 1, 1, 1]), "gold is a line in every chart");
    for lines in seen["lines"].as_array().unwrap() {
        assert!(lines.as_array().unwrap().len() == 2 && lines[0] != lines[1], "{lines}");
    }
    let facts = seen["facts"].as_str().unwrap();
    for fact in [
        "Run r1, 20",
        "docker 20.10.24",
        "seed 18266007589190443523",
        "coverage, mutants",
        concat!("testevo-sandbox ", env!("CARGO_PKG_VERSION")),
    ] {
        assert!(facts.contains(fact), "{fact}: {facts}");
    }
    assert!(seen["summary"].as_str().unwrap().ends_with(". Only tasks of 2000-01-01 or later."), "{}", seen["summary"]);
    let measures = counts("measures");
    // Clean success is not known without controls.
    assert!(measures.len() == 3 && measures.iter().all(|dots| *dots > 0), "{measures:?}");

    let titles: Vec<&str> = sheets.iter().map(|sheet| sheet["title"].as_str().unwrap()).collect();
    assert!(
        matches!(
            titles[..],
            [
                "All figures, test_update",
                "All figures, test_generation",
                "Certified tasks: those whose published labels hold",
                "Published values, not measured here",
                _,
                _,
                "Cost caps: what is over counts as HrnsFail",
                "Cost in $ that this share of tasks does not exceed",
                "By half-year",
                "By repository",
                "By Java development kit"
            ]
        ),
        "{titles:?}"
    );
    for sheet in sheets.iter().filter(|sheet| sheet["up"][0].is_string()) {
        let value = |text: &String| text.parse::<f64>().unwrap();
        let [up, mut down] = ["up", "down"].map(|way| names(&sheet[way]).iter().map(value).collect::<Vec<f64>>());
        assert!(up.is_sorted(), "{sheet}");
        down.reverse();
        assert_eq!(up, down, "{sheet}");
    }
    for (wide, seen) in seen["wide"].as_array().unwrap().iter().zip(["390", "1024", "1400", "1600"]) {
        assert_eq!(wide[0], true, "at {seen} pixels the page itself has to be scrolled sideways");
        if seen != "1024" {
            assert_eq!(wide[1], json!([0, 0, 0]), "at {seen} pixels columns are hidden");
        }
    }
    let [period, certified, failing, not_selected, unknown] = &names(&seen["notes"])[..] else {
        panic!("{}", seen["notes"])
    };
    assert_eq!(period, "only tasks of 2000-01-01 or later");
    assert!(unknown.contains("1 prediction for an unknown task: gone </script></pre><script>"), "{unknown}");
    assert!(
        certified.starts_with("certified by v1: 9 of 12 tasks; 1 differing: t0004; 2 not_discriminating"),
        "{certified}"
    );
    assert!(failing.starts_with("r1: the developers' tests of 1 task fail on new code"), "{failing}");
    assert_eq!(not_selected, "r1: 3 predictions for tasks that were not selected");

    let tasks = names(&seen["tasks"]);
    assert!(tasks.len() == 12 && tasks.is_sorted(), "{tasks:?}");
    assert_eq!(
        (names(&seen["filtered"]), &seen["address"]),
        (vec!["t0007".to_owned()], &Value::from("#tasks?text=t0007"))
    );
    assert_eq!(names(&seen["linked"]), ["t0003"], "the address decides what is shown");
    let letters = names(&seen["letters"]);
    assert!(
        !letters.is_empty() && letters.len() < 12 && letters.iter().all(|letters| letters.contains('C')),
        "{letters:?}"
    );
    assert!(matches!(seen["reason"].as_u64(), Some(1..12)), "{}", seen["reason"]);
    assert_eq!(seen["old"], json!(["test_generation"]), "only there a pass on old code counts");
    let success = &seen["success"];
    assert_eq!(success[0], success[1]);
    // In the tenth task gold alone succeeds, and in the sixth it does not.
    let tenth = "t0009".to_owned();
    assert!(names(&success[0]).len() == 11 && !names(&success[0]).contains(&tenth), "{success}");
    assert_eq!(seen["successOfGold"], 11, "where gold is the chosen model it counts");
    for order in seen["orders"].as_array().unwrap() {
        assert_eq!(order[0], order[1], "without gold");
    }
    assert_eq!(seen["named"], json!([format!("one {shown}"), format!("one {shown}")]), "a link has names, not places");
    assert_eq!(names(&seen["refused"]), ["t0007"]);
    // A closed task's link has the focus again, in the list as it was.
    assert_eq!(seen["focus"], json!(["task", "#tasks?text=t0003", "t0003", "t0003"]));
    assert_eq!(seen["scrollers"], json!([0, 0]), "what scrolls can be reached with the keyboard, and has a name");
    assert_eq!(seen["skips"], json!([["skip", true], ["skip", true]]));
}

/// Ranks, and the intervals that decide them.
fn shows_ranks(seen: &Value) {
    for (track, matrix) in seen["ranking"].as_array().unwrap().iter().zip(seen["matrix"].as_array().unwrap()) {
        let rows = track.as_array().unwrap();
        for (place, row) in rows.iter().enumerate() {
            let leads = |other: &Value| {
                let cell = &other[place];
                cell[0] == "sure" && cell[1].as_str().unwrap().starts_with('+')
            };
            let better = matrix.as_array().unwrap().iter().filter(|other| leads(other)).count();
            assert_eq!(row["rank"], (better + 1).to_string(), "{row} {matrix}");
            let ends = names(&row["ends"]);
            assert_eq!(ends.len(), if place == 0 { 0 } else { 2 }, "{row}");
            assert!(ends.iter().skip(1).all(|text| text.starts_with("by repositories ")), "{row}");
            // Every outcome is told by its initial, and none by its colour alone.
            for segment in row["segments"].as_array().unwrap() {
                let (initial, text) = (segment[0].as_str().unwrap(), segment[1].as_str().unwrap());
                assert!(text.is_empty() || text.starts_with(initial), "{row}");
            }
        }
    }
}

fn shows_published_agents(seen: &Value, shown: &str) {
    let [rows, order, strict, notes] = [0, 1, 2, 3].map(|part| &seen[part]);
    let name = format!("{shown}published 2 tasks");
    let cells = ["–", &name, "62.5", "–", "–", "S63E38", "– on pass 75.0", "–", "–"];
    assert_eq!(rows, &json!([[cells], []]), "the agent without a task of these days is left out");
    let successes: Vec<f64> = order[0].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
    assert!(successes.len() == 3 && successes.is_sorted_by(|one, other| one >= other), "{successes:?}");
    assert_eq!((strict, notes), (&json!([["–"], []]), &json!(1)));
}

fn shows_certified_tasks(seen: &Value, csv: &str) {
    // The CSV tells each method's category and whether it is certified.
    let mut rates: BTreeMap<(usize, u64, &str), Vec<bool>> = BTreeMap::new();
    for row in csv.lines().skip(3) {
        let cells: Vec<&str> = row.split(',').collect();
        let (track, run) = (usize::from(cells[2] == "test_generation"), 1 + u64::from(cells[1] == "two"));
        if cells[1] != "gold" && cells[26].is_empty() {
            rates.entry((track, run, cells[6])).or_default().push(cells[8] == "Success");
        }
    }
    for track in 0..2 {
        let percent = |run: u64| {
            let of_tasks = rates
                .iter()
                .filter(|(key, _)| (key.0, key.1) == (track, run))
                .map(|(_, is)| is.iter().filter(|success| **success).count() as f64 / is.len() as f64);
            let of_tasks: Vec<f64> = of_tasks.collect();
            format!("{:.1}", 100.0 * of_tasks.iter().sum::<f64>() / of_tasks.len() as f64)
        };
        let mut rows: Vec<Value> = seen["certified"][track].as_array().unwrap().clone();
        rows.sort_by_key(|row| row[0].as_u64());
        assert_eq!(rows, [1, 2].map(|run| json!([run, percent(run)])), "{csv}");
    }
    let said = |track: usize| seen["leftOut"][track]["said"].as_str().unwrap();
    assert!(
        said(0).starts_with("5 certified tasks, 10 methods, by the validation v1. Left out: 1 task and 0"),
        "{}",
        said(0)
    );
    assert!(
        said(1).starts_with("4 certified tasks, 7 methods, by the validation v1. Left out: 1 task and 2"),
        "{}",
        said(1)
    );
    let reasons = |track: usize| &seen["leftOut"][track]["reasons"];
    assert_eq!(reasons(0), &json!([["differing", ["t0004"]]]));
    let expected = json!([["not_discriminating", ["t0003", "t0007"]], ["not_validated", ["t0011"]]]);
    assert_eq!(reasons(1), &expected);
}

fn shows_the_tasks(seen: &Value, shown: &str) {
    let opened = seen["opened"].as_array().unwrap();
    let sum = |what: &str| opened.iter().map(|task| number(task, what)).sum::<u64>();
    assert_eq!(sum("launches"), 3 * 2 * (1..=3).sum::<u64>() * 4, "each method on new and on old code");
    assert!(sum("covered") > 0 && sum("missed") > 0 && sum("failures") > 0, "{opened:?}");
    assert_eq!(seen["steps"], 12, "Back leads from each task to the one before it");
    assert_eq!(seen["back"], json!([false, "Scores"]), "an unknown task leads to the overview");
    for task in opened {
        assert_eq!((&task["hidden"], names(&task["empty"])), (&Value::Bool(true), Vec::new()), "{task}");
        assert_eq!(format!("{} – Scores", names(&task["name"])[0]), task["title"].as_str().unwrap());
        let (source, mutants) = (names(&task["source"]), names(&task["mutants"]));
        assert_eq!((source.len(), number(task, "around"), &task["kept"]), (27, 6, &Value::from("pre")), "{task}");
        assert!(source[3].starts_with("    List<String> names(") && source[4].contains(shown), "{source:?}");
        let number_of = names(&task["name"])[0].strip_prefix('t').unwrap().parse::<usize>().unwrap();
        let left = names(&task["left"]);
        assert_eq!(left.len(), usize::from(number_of % 5 == 3), "{task}");
        assert!(left.iter().all(|mutant| mutant.contains(".java:30 Mutant ")), "{left:?}");
        assert!(mutants.len() == 10 && mutants.iter().any(|mutant| mutant.contains("killed by")), "{mutants:?}");
        assert!(
            mutants.iter().all(|mutant| mutant.contains(" return number + ")),
            "each says what it changes: {mutants:?}"
        );
        assert!(number(task, "added") > 0 && number(task, "removed") > 0, "{task}");
        assert!(names(&task["logs"])[0].contains(shown), "{task}");
        // Coverage is shown with all lines that it counts, also those of a method that the task does not list.
        let own = names(&task["own"]);
        let parts = [" of 20 lines of 2 methods: C", "#names ", " of 16, Helper#of 2 of 4."];
        assert!(own.iter().all(|note| parts.iter().all(|part| note.contains(part))), "{own:?}");
        let scores = "Scores count all own focal methods of a test method: ";
        let told = names(&task["notes"]).iter().filter(|note| note.starts_with(scores)).count();
        assert_eq!(told, usize::from(!own.is_empty()), "{task}");
        // Generation tasks are those with odd numbers, and only they have a file whose compilation is looked at.
        let index = number_of;
        let said = |how: &str| vec![format!("The file that it starts from {how} on new code.")];
        let expected = match (index.is_multiple_of(2), starts_compile(index)) {
            (true, _) => Vec::new(),
            (false, true) => said("compiles"),
            (false, false) => said("does not compile"),
        };
        assert_eq!(names(&task["start"]), expected, "{task}");
    }
    assert_eq!(seen["narrow"], json!([true, true, true]), "nothing of a task runs off the screen");

    let alone = &seen["alone"];
    assert_eq!(alone["title"], "t0007 – Scores");
    for what in ["launches", "covered", "added", "removed", "failures"] {
        assert!(number(alone, what) > 0, "{what}: {alone}");
    }
    let diffs = names(&alone["diffs"]);
    assert!(diffs.contains(&"Against the developers' file".to_owned()) && seen["pressed"] == "true", "{diffs:?}");
    let around = ["../index.html#tasks?text=t00", "t0006.html#from=tasks?text=t00", "t0008.html#from=tasks?text=t00"];
    assert_eq!(names(&seen["around"]), around, "the list's filter goes along");
    assert_eq!(names(&seen["kept"]), ["tasks/t0007.html#from=tasks?text=t0007"]);
    assert_eq!(seen["phone"], true);
    let links: Vec<String> = (0..12).map(|task| format!("tasks/t{task:04}.html")).collect();
    assert_eq!(names(&seen["links"]), links);
}

#[test]
fn pages_are_written_to_a_new_directory_only() {
    let line = CommandLine::new();
    let models = vec!["one".to_owned()];
    ScoredRun { run_id: "r1", models, tasks: 3, strange: "" }.write(&line.path().join("data"));
    let pages = |more: &[&str]| line.run(&[&["report", "r1", "--output", "pages"], more].concat());
    assert!(pages(&["--format", "html"]).starts_with("exit 0\n"));
    let mut written: Vec<_> =
        fs::read_dir(line.path().join("pages/tasks")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    written.sort();
    assert_eq!(written, ["t0000.html", "t0001.html", "t0002.html"]);
    let said = pages(&["--format", "html"]);
    assert!(said.starts_with("exit 2\n") && said.contains("`pages` is not empty"), "{said}");
    let said = pages(&[]);
    assert!(said.starts_with("exit 2\n") && said.contains("`pages` is a directory, and a report"), "{said}");
}

#[test]
fn a_page_of_runs_with_other_tasks_says_so() {
    let line = CommandLine::new();
    let write = |run_id, models: &[&str], tasks| {
        let models = models.iter().map(|model| (*model).to_owned()).collect();
        ScoredRun { run_id, models, tasks, strange: "" }.write(&line.path().join("data"));
    };
    write("large", &["atlas", "birch", "cedar", "dune", "elm"], 12);
    write("small", &["fjord"], 6);
    let pages = |runs: &[&str]| {
        let page = line.run(&[&["report", "--quiet", "--format", "html"], runs].concat());
        let page = page.strip_prefix("exit 0\n---- stdout\n").unwrap_or_else(|| panic!("{page}")).to_owned();
        fs::write(line.path().join("page.html"), &page).unwrap();
        let shown = browse(&line.path().join("page.html"), line.path(), &["--dump-dom".to_owned()]).0;
        (page, shown)
    };
    let (page, shown) = pages(&["large", "small"]);
    let told = |shown: &str, text: &str| shown.matches(text).count();
    let sentence = "These models were not scored on the same tasks; ";
    assert_eq!(told(&shown, sentence), 6, "above ranking, costs and half-years of each track");
    let tasks = |number: usize| format!("<small class=\"tasks\">{number} tasks</small>");
    assert_eq!((told(&shown, &tasks(6)), told(&shown, &tasks(3))), (10, 2), "each row has its number");
    // The fifth model costs a few cents, and not nothing.
    let data = page.split_once("id=\"data\">").and_then(|(_, rest)| rest.split_once("</script>")).unwrap().0;
    let data: Value = serde_json::from_str(data).unwrap();
    let cost = data["standings"][0]["rows"][4]["cost"].as_f64().unwrap();
    assert!((0.01..0.1).contains(&cost), "{cost}");
    assert!(shown.contains(&format!("<div>${cost:.3}</div>")), "{cost}");
    let (_, shown) = pages(&["large"]);
    assert_eq!((told(&shown, sentence), told(&shown, "<small class=\"tasks\">")), (0, 0));
}
