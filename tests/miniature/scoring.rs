//! Scoring the miniatures: the developers' tests come to the categories that their expected outcomes mean, and submissions
//! made by hand to the category that each was made for.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use testevo_sandbox::metrics::category::{Category, Integrity, judge};
use testevo_sandbox::outcome::Outcome;
use testevo_sandbox::sample::{Miniature, SampleRepository};
use testevo_sandbox::task::{Cell, Side, Track};
use testevo_sandbox::workspace::java_source::package_of;

use super::demonstration;
use super::execution::Workshop;

/// Scores the developers' tests of a repository that was built, and compares categories.
pub(super) fn gold_is_scored_as_expected(workshop: &Workshop, repository: &SampleRepository) {
    let found = score(workshop, repository, "gold", &["--no-coverage", "--no-mutation"]);
    let mut wrong = Vec::new();
    for miniature in &repository.miniatures {
        for method in &miniature.methods {
            let mut possible = BTreeSet::new();
            for new in &method.expected[&Cell::Nn] {
                for old in &method.expected[&Cell::No] {
                    let verdict = judge(miniature.track, &[*new], &[*old], Integrity::NotEvaluated);
                    possible.insert(verdict.paper_verdict.map_or("", |category| category.name()));
                }
            }
            // A miniature whose class does not declare a method has no such cell: the parser sees that before.
            let got = &found[&("gold".to_owned(), miniature.name.clone(), method.id.to_string())];
            if !possible.contains(got.as_str()) {
                wrong.push(format!("{} {}: {got}, expected {possible:?}", miniature.name, method.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", repository.name, wrong.join("\n"));
}

/// Five of each category and more, on both tracks.
#[test]
fn submissions_made_for_a_category_come_to_it() {
    let (repository, workshop) = demonstration::given();
    let mut lines = String::new();
    let mut expected = BTreeMap::new();
    for miniature in &repository.miniatures {
        for (model, content, category) in submissions(miniature) {
            let task = format!("{}__{}", repository.name.file_stem(), miniature.name);
            let mut line = json!({ "instance_id": task, "model_name_or_path": model });
            for (field, text) in content {
                line[field] = json!(text);
            }
            lines.push_str(&format!("{line}\n"));
            for method in &miniature.methods {
                // What is the developers' own passes on old code where theirs does.
                let passes = miniature.track == Track::TestGeneration
                    && method.expected.get(&Cell::No).is_some_and(|outcomes| outcomes.contains(&Outcome::Pass));
                let category = if category == Category::Success && passes { Category::Redundant } else { category };
                expected.insert((model.to_owned(), miniature.name.clone(), method.id.to_string()), category);
            }
        }
    }
    let file = workshop.sources.join("predictions.jsonl");
    fs_err::write(&file, lines).unwrap();
    let found = score(&workshop, &repository, file.to_str().unwrap(), &["--no-mutation"]);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for ((model, task, method), category) in &found {
        let Some(wanted) = expected.get(&(model.clone(), task.clone(), method.clone())) else { continue };
        assert_eq!(category, wanted.name(), "{model} {task} {method}");
        *counts.entry(wanted.name()).or_default() += 1;
    }
    for category in Category::ALL {
        assert!(counts.get(category.name()).is_some_and(|number| *number >= 5), "{category:?}: {counts:?}");
    }
    // Everything was executed before, so nothing is executed again, and the same comes of it.
    assert_eq!(score(&workshop, &repository, file.to_str().unwrap(), &["--no-mutation"]), found);
}

/// The developers' tests meet mutants: every one that was made is accounted for, and some are killed.
#[test]
fn mutants_are_made_and_killed() {
    let (repository, workshop) = demonstration::given();
    let run = "score-mutants";
    let directory = workshop.data_dir.join("runs").join(run);
    if directory.exists() {
        fs_err::remove_dir_all(&directory).unwrap();
    }
    let chosen = ["--predictions", "gold", "--path", "direct", "--no-coverage", "--no-cache", "--limit", "2"];
    workshop.run(&[&["score", repository.name.as_str(), "--run-id", run][..], &chosen].concat());
    let text = fs_err::read_to_string(directory.join("records.jsonl")).unwrap();
    let records: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_kind = |kind: &'static str| records.iter().filter(move |record| record["record"] == kind);
    let sets: Vec<&serde_json::Value> =
        of_kind("mutants").flat_map(|record| record["sets"].as_array().unwrap()).collect();
    assert!(!sets.is_empty(), "{text}");
    for set in sets {
        let number = |field: &str| set[field].as_u64().unwrap();
        let kept = set["kept"].as_array().unwrap().len() as u64;
        assert!((1..=10).contains(&kept), "{set}");
        let accounted = kept + number("compile_failed") + number("redundant") + number("capped_out");
        assert_eq!(number("emitted"), accounted, "{set}");
    }
    let killed = |record: &&serde_json::Value| record["kills"]["killed"].as_u64().is_some_and(|killed| killed > 0);
    assert!(of_kind("mutation").any(|record| killed(&record)), "{text}");
}

type Submission = (&'static str, Vec<(&'static str, String)>, Category);

fn submissions(miniature: &Miniature) -> Vec<Submission> {
    let gold = text(miniature, Side::New).unwrap();
    let start = text(miniature, Side::Old);
    let patch = patch(miniature, start.as_deref().unwrap_or(""), &gold);
    let file = |body: &str| vec![("model_file", test_file(miniature, &gold, body))];
    let mut made = vec![
        ("whole-file", vec![("model_file", gold.clone())], Category::Success),
        ("patch", vec![("model_patch", patch.clone())], Category::Success),
        ("patch-with-more", vec![("model_patch", format!("{patch}{POM}"))], Category::Success),
        ("assertion", file("throw new AssertionError(1);"), Category::ExecFail),
        ("exception", file("throw new IllegalStateException();"), Category::ExecFail),
        ("exit", file("System.exit(0);"), Category::ExecFail),
        ("type-error", file("int x = \"\";"), Category::CmplFail),
        ("no-java", file("int = ;"), Category::CmplFail),
        ("nothing", Vec::new(), Category::HrnsFail),
        ("other-file", vec![("model_patch", POM.to_owned())], Category::HrnsFail),
        ("words", vec![("model_patch", "I could not do it.".to_owned())], Category::HrnsFail),
        ("no-method", vec![("model_file", "class Nothing {}".to_owned())], Category::HrnsFail),
        ("nul", vec![("model_file", format!("{gold}\0"))], Category::HrnsFail),
    ];
    if let Some(start) = start {
        made.push(("unchanged", vec![("model_file", start)], Category::HrnsFail));
    }
    if miniature.track == Track::TestGeneration {
        made.push(("no-assertion", file(""), Category::Redundant));
        made.push(("sure-assertion", file("org.junit.jupiter.api.Assertions.assertTrue(true);"), Category::Redundant));
        made.push(("prints", file("System.out.println(\"BUILD SUCCESS\");"), Category::Redundant));
    }
    made
}

const POM: &str = "diff --git a/pom.xml b/pom.xml\n--- a/pom.xml\n+++ b/pom.xml\n@@ -1 +1 @@\n-x\n+y\n";

fn text(miniature: &Miniature, side: Side) -> Option<String> {
    let bytes = miniature.files(side).get(&miniature.test_file)?;
    Some(String::from_utf8(bytes.clone()).unwrap())
}

/// Returns a test file whose target methods all do the same.
fn test_file(miniature: &Miniature, gold: &str, body: &str) -> String {
    let package = package_of(gold.as_bytes());
    let class = miniature.test_file.as_str().rsplit('/').next().unwrap().trim_end_matches(".java").to_owned();
    let methods: String = miniature
        .methods
        .iter()
        .map(|method| {
            format!(
                "    @org.junit.jupiter.api.Test\n    void {}() throws Exception {{ {body} }}\n",
                method.id.method()
            )
        })
        .collect();
    format!("package {package};\n\nclass {class} {{\n{methods}}}\n")
}

fn patch(miniature: &Miniature, start: &str, gold: &str) -> String {
    let path = miniature.test_file.as_str();
    let file = std::path::Path::new(path);
    let mut patch = git2::Patch::from_buffers(start.as_bytes(), Some(file), gold.as_bytes(), Some(file), None).unwrap();
    let text = String::from_utf8(patch.to_buf().unwrap().to_vec()).unwrap();
    if !start.is_empty() {
        return text;
    }
    let hunks = text.split_once("@@").unwrap().1;
    format!("diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@{hunks}")
}

type Categories = BTreeMap<(String, String, String), String>;

/// Scores predictions and returns the category of each model, miniature and method.
fn score(workshop: &Workshop, repository: &SampleRepository, predictions: &str, more: &[&str]) -> Categories {
    let mut arguments = vec!["score", repository.name.as_str(), "--predictions", predictions, "--format", "json"];
    let run = format!("score-{}", repository.name.file_stem());
    let directory = workshop.data_dir.join("runs").join(&run);
    if directory.exists() {
        fs_err::remove_dir_all(&directory).unwrap();
    }
    arguments.extend(["--run-id", &run]);
    arguments.extend(more);
    let (code, said) = workshop.try_run(&arguments);
    assert!(matches!(code, Some(0 | 3)), "{said}");
    let (_, csv) = workshop.try_run(&["report", &run, "--format", "csv"]);
    let prefix = format!("{}__", repository.name.file_stem());
    csv.lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let task = cells[6].strip_prefix(&prefix).unwrap().to_owned();
            ((cells[1].to_owned(), task, cells[7].to_owned()), cells[8].to_owned())
        })
        .collect()
}
