//! Scoring the miniatures: the developers' tests come to the categories that their expected outcomes mean, and submissions
//! made by hand to the category that each was made for.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use testevo_sandbox::metrics::category::{Category, Integrity, judge};
use testevo_sandbox::sample::SampleRepository;
use testevo_sandbox::task::{Cell, Track};

use super::demonstration;
use super::execution::Workshop;
use super::submissions;
use super::verdict::summary;

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

/// Five and more for each category, on both tracks; an update can't be redundant.
#[test]
fn submissions_made_for_a_category_come_to_it() {
    let (repository, workshop) = demonstration::given();
    let mut lines = String::new();
    let mut expected = BTreeMap::new();
    let mut made: BTreeMap<(Track, &str), BTreeSet<&str>> = BTreeMap::new();
    for miniature in &repository.miniatures {
        for submission in submissions::all(miniature) {
            let task = format!("{}__{}", repository.name.file_stem(), miniature.name);
            let mut line = json!({ "instance_id": task, "model_name_or_path": submission.name });
            if let Some((field, text)) = &submission.content {
                line[field] = json!(text);
            }
            lines.push_str(&format!("{line}\n"));
            for method in &miniature.methods {
                let category = submission.expected(miniature, method).name();
                made.entry((miniature.track, category)).or_default().insert(submission.name);
                let name = (submission.name.to_owned(), miniature.name.clone(), method.id.to_string());
                expected.insert(name, category.to_owned());
            }
        }
    }
    for track in [Track::TestUpdate, Track::TestGeneration] {
        for category in Category::ALL {
            let names = made.get(&(track, category.name())).cloned().unwrap_or_default();
            let possible = category != Category::Redundant || track == Track::TestGeneration;
            assert_eq!(names.len() >= 5, possible, "{track:?} {category:?}: {names:?}");
        }
    }
    let file = workshop.sources.join("predictions.jsonl");
    fs_err::write(&file, lines).unwrap();
    let found = score(&workshop, &repository, file.to_str().unwrap(), &["--no-mutation"]);
    let mut wrong = Vec::new();
    for (name, category) in &expected {
        let got = found.get(name);
        if got != Some(category) {
            wrong.push(format!("{name:?}: {got:?}, expected {category}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // What a model hands in nothing for is a failure of its own, never left out.
    for (name, category) in found.iter().filter(|(name, _)| !expected.contains_key(name)) {
        assert_eq!(category, Category::HrnsFail.name(), "{name:?}");
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

/// Maven with JaCoCo and the mutator's own command say the same as scoring; what is kept is not found out again, and a
/// difference fails the command.
#[test]
fn other_tools_say_the_same() {
    let (repository, workshop) = demonstration::given();
    let keep = workshop.sources.join("checked.jsonl");
    if keep.exists() {
        fs_err::remove_file(&keep).unwrap();
    }
    let chosen = ["crosscheck", repository.name.as_str(), "--limit", "2", "--ends", "4", "--format", "json", "--keep"];
    let command = || workshop.command(&[&chosen[..], &[keep.to_str().unwrap()]].concat()).output().unwrap();
    let output = command();
    let found = summary(&output);
    assert_eq!(output.status.code(), Some(0), "{found}");
    let number = |kind: &str, field: &str| found[kind][field].as_u64().unwrap();
    for kind in ["coverage", "mutants", "ends"] {
        assert!(number(kind, "compared") > 0, "{found}");
        assert_eq!((number(kind, "equal"), number(kind, "left_out")), (number(kind, "compared"), 0), "{found}");
    }
    assert!(found["lines"][1].as_u64().unwrap() > 0, "{found}");
    for kind in 0..4 {
        assert!(found["mutants_compared"][kind].as_u64().unwrap() > 0, "{found}");
    }

    let text = fs_err::read_to_string(&keep).unwrap();
    let mut tasks: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let file = &mut tasks[0]["coverage"][0]["files"][0];
    file["covered"]["only_theirs"] = json!(["12345"]);
    fs_err::write(&keep, tasks.iter().map(|task| format!("{task}\n")).collect::<String>()).unwrap();
    let output = command();
    assert_eq!(output.status.code(), Some(1));
    let differences = summary(&output)["differences"].clone();
    assert_eq!(differences.as_array().map(Vec::len), Some(1), "{differences}");
    assert!(differences[0].as_str().unwrap().ends_with("covered lines only theirs: 12345"), "{differences}");
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
