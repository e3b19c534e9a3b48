//! Scoring the miniatures: the developers' tests come to the categories that their expected outcomes mean, and submissions
//! made by hand to the category that each was made for.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;

use serde_json::{Value, json};
use testevo_sandbox::metrics::category::{Category, Integrity, judge};
use testevo_sandbox::sample::{Miniature, SampleRepository};
use testevo_sandbox::task::{Cell, Track};

use super::demonstration;
use super::interruption::{Running, verdicts};
use super::submissions;
use super::workshop::Workshop;
use crate::support::miniature;
use crate::support::waiting::wait_until;

/// Scores the developers' tests of a repository that was built, and compares categories.
pub(super) fn gold_is_scored_as_expected(workshop: &Workshop, repository: &SampleRepository) {
    let found = score(workshop, repository, "gold", &["--no-coverage", "--no-mutation", "--no-controls"]);
    let mut wrong = Vec::new();
    for miniature in &repository.miniatures {
        for method in &miniature.methods {
            let mut possible = BTreeSet::new();
            for new in &method.expected[&Cell::Nn] {
                for old in &method.expected[&Cell::No] {
                    let verdict = judge(miniature.track, &[*new], &[(*old).into()], Integrity::NotEvaluated);
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

/// Where the developers' test does not pass for lack of contents, no submission is to blame. Where it passes, one is.
pub(super) fn a_submission_answers_for_no_missing_contents(workshop: &Workshop, repository: &SampleRepository) {
    let task = format!("{}__lacking-tree", repository.name.file_stem());
    let text = "package mini;\nimport static org.junit.jupiter.api.Assertions.assertEquals;\nclass PictureTest {\n  \
                @org.junit.jupiter.api.Test void begins() throws Exception { assertEquals(0x89, new Picture().firstByte()); }\n  \
                @org.junit.jupiter.api.Test void hasName() { assertEquals(\"other.png\", new Picture().name()); }\n}\n";
    let line = json!({ "instance_id": task, "model_name_or_path": "other", "model_file": text });
    let file = workshop.sources.join("lacking-tree.jsonl");
    fs_err::write(&file, format!("{line}\n")).unwrap();
    workshop.forget_run("score-lacking");
    let chosen = ["--no-mutation", "--no-controls", "--run-id", "score-lacking"];
    let (code, said) =
        workshop.try_run(&[&["score", &task, "--predictions", file.to_str().unwrap()], &chosen[..]].concat());
    assert_eq!(code, Some(3), "{said}");
    let records = records(workshop, "score-lacking");
    let on_new_code = |model: &str, method: &str| {
        let mut all = of_kind(&records, "execution").filter(|one| one["code"] == "new" && one["model"] == model);
        let one = all.find(|one| one["method"] == method).unwrap_or_else(|| panic!("{model} {method}: {records:?}"));
        (one["outcome"].clone(), one["reason"].clone(), one["missing"].clone())
    };
    let lacks = (json!("infra_fail"), json!("source"), json!(["src/main/resources/mini/picture.png"]));
    for model in ["gold", "other"] {
        assert_eq!(on_new_code(model, "PictureTest#begins"), lacks, "{model}");
    }
    let failed = (json!("exec_fail"), json!("assertion"), Value::Null);
    assert_eq!(on_new_code("other", "PictureTest#hasName"), failed);
    assert_eq!(on_new_code("gold", "PictureTest#hasName").0, "pass");
}

/// Five and more for each category, on both tracks; an update can't be redundant.
#[test]
fn submissions_made_for_a_category_come_to_it() {
    let (repository, workshop) = demonstration::given_alone();
    let mut expected = BTreeMap::new();
    let mut made: BTreeMap<(Track, &str), BTreeSet<&str>> = BTreeMap::new();
    for miniature in &repository.miniatures {
        for submission in submissions::all(miniature) {
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
    fs_err::write(&file, submissions::lines(&repository)).unwrap();
    let focal = workshop.data_dir.join(format!("focal/{}.json", repository.name.file_stem()));
    if focal.exists() {
        fs_err::remove_file(&focal).unwrap();
    }
    let chosen = ["--no-mutation", "--no-controls"];
    let found = score(&workshop, &repository, file.to_str().unwrap(), &chosen);
    let focal: Value = serde_json::from_slice(&fs_err::read(focal).unwrap()).unwrap();
    for miniature in &repository.miniatures {
        let kept = &focal["tasks"][format!("{}__{}", repository.name.file_stem(), miniature.name)];
        let found = &kept["focal"];
        assert_eq!(
            (found[0]["found"].as_str(), found.as_array().map(Vec::len)),
            (Some("resolved"), Some(1)),
            "{focal}"
        );
        assert!(kept["own"].as_array().unwrap().iter().all(|own| own["basis"] == "called"), "{focal}");
    }
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
    assert_eq!(score(&workshop, &repository, file.to_str().unwrap(), &chosen), found);
    let kept = cached(&records(&workshop, &run_of(&repository)), |_| true);
    assert!(kept.len() > 100 && kept.iter().all(|cached| *cached), "{kept:?}");
}

/// A file with a new name in one method does not compile on old code: each method is Success, and only that one strictly.
#[test]
fn a_sibling_of_a_new_name_is_no_strict_success() {
    siblings_are_told_apart(&[&["--path", "direct", "--no-cache"], &["--path", "direct"]]);
}

#[test]
#[ignore = "takes a minute: Maven compiles each submission"]
fn full_a_sibling_of_a_new_name_is_no_strict_success_by_maven() {
    siblings_are_told_apart(&[&["--path", "maven", "--no-cache"]]);
}

fn siblings_are_told_apart(ways: &[&[&str]]) {
    let (repository, workshop) = demonstration::given_alone();
    let task = format!("{}__new-class", repository.name.file_stem());
    let text = "package shop;\nimport org.junit.jupiter.api.Test;\nclass VoucherTest {\n  @Test void valid() { new Voucher(\"A\").isValid(); }\n  \
                @Test void blank() { }\n}\n";
    let line = json!({ "instance_id": task, "model_name_or_path": "siblings", "model_file": text });
    let file = workshop.sources.join("siblings.jsonl");
    fs_err::write(&file, format!("{line}\n")).unwrap();
    for more in ways {
        let more = [&["--no-mutation", "--no-coverage"], *more].concat();
        let records = scored(&workshop, "score-siblings", &[&task], file.to_str().unwrap(), &more);
        let old = of_kind(&records, "execution").filter(|one| one["model"] == "siblings" && one["code"] == "old");
        let old: Vec<&Value> = old.collect();
        assert_eq!(old.len(), 2, "{records:?}");
        for record in old {
            let (_, method) = record["method"].as_str().unwrap().split_once('#').unwrap();
            assert_eq!(record["attributed"], json!(method == "valid"), "{more:?}: {record}");
        }
        let (_, csv) = workshop.try_run(&["report", "score-siblings", "--format", "csv"]);
        let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        for (method, strict) in [("VoucherTest#valid", "true"), ("VoucherTest#blank", "false")] {
            let row = rows.iter().find(|row| row[1] == "siblings" && row[7] == method).unwrap();
            assert_eq!((row[8], row[9], row[22]), ("Success", strict, strict), "{csv}");
        }
    }
    let (_, said) = workshop.try_run(&["explain", "score-siblings", &task]);
    assert_eq!(said.matches("does not compile on old code, but not because of this method").count(), 1, "{said}");
}

/// One byte of a patch makes another submission, and what is kept is read only where that is wanted.
#[test]
fn a_result_is_found_again_by_every_byte_of_its_patch() {
    let (repository, workshop) = demonstration::given_alone();
    let miniature = repository.miniatures.iter().find(|miniature| miniature.name == "fixed-bug").unwrap();
    let task = format!("{}__{}", repository.name.file_stem(), miniature.name);
    let file = workshop.sources.join("one.jsonl");
    let chosen = ["--no-mutation", "--no-controls"];
    // No earlier run of the tests has scored it.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    for (last, more, expected) in
        [("a", &[][..], false), ("a", &[], true), ("b", &[], false), ("b", &[], true), ("b", &["--no-cache"], false)]
    {
        let patch = submissions::commented(miniature, &format!("{now}{last}"));
        let line = json!({ "instance_id": task, "model_name_or_path": "one", "model_patch": patch });
        fs_err::write(&file, format!("{line}\n")).unwrap();
        let found = scored(&workshop, "score-one", &[&task], file.to_str().unwrap(), &[&chosen[..], more].concat());
        let own = cached(&found, |record| record["model"] == "one");
        // Each method on both sides, and what it covers.
        assert_eq!(own, vec![expected; 3 * miniature.methods.len()], "{last} {more:?}");
        let gold = cached(&found, |record| record["model"] == "gold");
        assert!(!gold.is_empty());
        assert!(more.is_empty() || gold.iter().all(|cached| !cached), "{gold:?}");
    }
}

/// A run that is killed after a launch, and again after a coverage, goes on to what an undisturbed one comes to.
#[test]
fn a_killed_run_comes_to_the_same() {
    let (repository, workshop) = demonstration::given_alone();
    let chosen = ["--repeat", "2", "--seed", "5", "--no-cache", "--limit", "1"];
    let undisturbed = scored(&workshop, "score-undisturbed", &[repository.name.as_str()], "gold", &chosen);
    let mut launches: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for record in of_kind(&undisturbed, "execution") {
        let name = format!("{} {} {}", record["task_id"], record["method"], record["code"]);
        launches.entry(name).or_default().push(record["repeat"].as_u64().unwrap());
    }
    assert!(launches.values().all(|repeats| *repeats == [1, 2]), "{launches:?}");
    mutants_are_accounted_for(&undisturbed);
    let expected = verdicts(&workshop.data_dir, "score-undisturbed");
    let run = "score-killed";
    workshop.forget_run(run);
    let directory = workshop.data_dir.join("runs").join(run);
    let arguments =
        [&["score", repository.name.as_str(), "--predictions", "gold", "--run-id", run][..], &chosen].concat();
    let file = directory.join("records.jsonl");
    let mut before = String::new();
    for kind in ["execution", "coverage"] {
        let process = workshop.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut killed = Running(process);
        let begin = format!("{{\"record\":\"{kind}\"");
        let is_there =
            || fs_err::read_to_string(&file).is_ok_and(|text| text.lines().any(|line| line.starts_with(&begin)));
        wait_until("a record", || {
            assert!(killed.0.try_wait().unwrap().is_none(), "it ended without a record of {kind}");
            is_there().then_some(())
        });
        drop(killed);
        assert!(!directory.join("verdicts.json").exists(), "it was killed in the midst");
        // Records of one cell come together: as if it had been killed while it wrote the one behind.
        let text = fs_err::read_to_string(&file).unwrap();
        assert!(text.starts_with(&before), "what was recorded stays");
        let at = text.lines().position(|line| line.starts_with(&begin)).unwrap();
        before = text.lines().take(at + 1).map(|line| format!("{line}\n")).collect();
        fs_err::write(&file, format!("{before}{begin},\"schema\":1,")).unwrap();
    }
    workshop.run(&arguments);
    assert_eq!(verdicts(&workshop.data_dir, run), expected);
    assert!(fs_err::read_to_string(&file).unwrap().starts_with(&before), "what was recorded stays");
    assert!(!directory.join("mutants").exists(), "what only this run needed is gone");
}

/// The developers' tests meet mutants: every one that was made is accounted for, and some are killed.
fn mutants_are_accounted_for(records: &[Value]) {
    let sets: Vec<&Value> = of_kind(records, "mutants").flat_map(|record| record["sets"].as_array().unwrap()).collect();
    assert!(!sets.is_empty(), "{records:?}");
    for set in sets {
        let number = |field: &str| set[field].as_u64().unwrap();
        let kept = set["kept"].as_array().unwrap().len() as u64;
        assert!((1..=10).contains(&kept), "{set}");
        let accounted = kept + number("compile_failed") + number("redundant") + number("capped_out");
        assert_eq!(number("emitted"), accounted, "{set}");
    }
    let killed = |record: &Value| record["kills"]["killed"].as_u64().is_some_and(|killed| killed > 0);
    assert!(of_kind(records, "mutation").any(killed), "{records:?}");
}

/// Where Maven says which mutants compile and builds them, they are the same ones and become the same.
#[test]
#[ignore = "takes minutes: Maven compiles every mutant"]
fn full_mutants_are_the_same_where_maven_builds_them() {
    let (repository, workshop) = demonstration::given_alone();
    let chosen = ["--path", "direct", "--no-coverage", "--no-cache", "--limit", "1"];
    let records = scored(&workshop, "score-mutants", &[repository.name.as_str()], "gold", &chosen);
    let task = of_kind(&records, "mutants").next().unwrap()["task_id"].as_str().unwrap();
    let by_maven = ["--path", "maven", "--no-coverage", "--no-cache"];
    let rebuilt = scored(&workshop, "score-mutants-rebuilt", &[task], "gold", &by_maven);
    let of_task = |records: &[Value], kind, what: &[&str]| -> Vec<Value> {
        let own = of_kind(records, kind).filter(|record| record["task_id"] == task);
        let mut found: Vec<Value> =
            own.map(|record| what.iter().map(|field| record[*field].clone()).collect()).collect();
        found.sort_by_key(Value::to_string);
        found.dedup();
        found
    };
    for (kind, what) in [("mutants", &["sets"][..]), ("mutation", &["method", "mutants", "cause"])] {
        let found = of_task(&rebuilt, kind, what);
        assert!(!found.is_empty(), "{kind}: {rebuilt:?}");
        assert_eq!(found, of_task(&records, kind, what), "{kind}");
    }
}

/// What a build does to classes after the compiler is in what is measured of them, though the method is launched on the direct
/// path; other releases' classes are none of it. What was found out is found again.
pub(super) fn the_builds_classes_are_measured(workshop: &Workshop, repository: &SampleRepository, miniature: &str) {
    let task = format!("{}__{miniature}", repository.name.file_stem());
    for (cache, cached) in [(&["--no-cache"][..], false), (&[], true)] {
        let chosen = [cache, &["--no-controls"]].concat();
        let records = scored(workshop, "score-woven", &[&task], "gold", &chosen);
        let new: Vec<&Value> = of_kind(&records, "execution").filter(|record| record["code"] == "new").collect();
        assert!(
            new.iter().all(|record| record["outcome"] == "pass" && record["measured"]["path"] == "direct"),
            "{new:?}"
        );
        let [coverage] = of_kind(&records, "coverage").collect::<Vec<_>>()[..] else { panic!("{records:?}") };
        assert_eq!(coverage["coverage"], 100.0, "{coverage}");
        let [mutation] = of_kind(&records, "mutation").collect::<Vec<_>>()[..] else { panic!("{records:?}") };
        assert!(mutation["kills"]["killed"].as_u64().is_some_and(|killed| killed > 0), "{mutation}");
        assert_eq!((&mutation["cause"], &mutation["cached"]), (&Value::Null, &json!(cached)), "{mutation}");
    }
}

/// A test method is measured against the methods that the developers' one calls, listed or not, and every submission's method of its
/// name against the same, whatever it calls itself. What was found out is found again, and shown.
#[test]
fn own_focal_methods_are_measured() {
    let repository = miniature::load("jupiter-17");
    let workshop = Workshop::new(&repository);
    workshop.prepare(&repository, "");
    let task = format!("{}__own-focal", repository.name.file_stem());
    let other = "package mini;\nclass LimitsTest {\n  @org.junit.jupiter.api.Test void lowIsRefused() { new Limits().high(3); }\n  \
                 @org.junit.jupiter.api.Test void highIsMoved() { new Limits().high(3); }\n}\n";
    let line = json!({ "instance_id": task, "model_name_or_path": "other", "model_file": other });
    let file = workshop.sources.join("own-focal.jsonl");
    fs_err::write(&file, format!("{line}\n")).unwrap();
    let mut classes = None;
    for cache in [&["--no-cache"][..], &[], &["--path", "maven", "--no-mutation"]] {
        let records = scored(&workshop, "score-own-focal", &[&task], file.to_str().unwrap(), cache);
        let [own] = of_kind(&records, "own_focal").collect::<Vec<_>>()[..] else { panic!("{records:?}") };
        let own = |method: &str| {
            let found = own["methods"].as_array().unwrap().iter().find(|one| one["method"] == method);
            let found = found.unwrap_or_else(|| panic!("{own}"));
            let own =
                found["own"].as_array().unwrap().iter().map(|one| json!([one["name"], one["listed"], one["lines"]]));
            (found["basis"].as_str().unwrap().to_owned(), own.collect::<Vec<_>>())
        };
        // The first run measured it, and both parts hold from then on.
        let [class] = of_kind(&records, "time_class").collect::<Vec<_>>()[..] else { panic!("{records:?}") };
        assert_eq!(class["launch_seconds"], 30, "{class}");
        assert!(class["compile_seconds"].as_u64().is_some_and(|seconds| seconds >= 60), "{class}");
        let settled = classes.get_or_insert_with(|| class.clone());
        assert_eq!(class, settled);
        // JaCoCo marks no line of a method that throws before its first probe; it is called all the same. Neither what a called
        // method calls nor a constructor is own.
        let called = "called".to_owned();
        assert_eq!(own("LimitsTest#lowIsRefused"), (called.clone(), vec![json!(["Limits#low", 0, [7]])]));
        let moved = vec![json!(["Limits#high", 1, [11, 12]]), json!(["Limits#describe", null, [16]])];
        assert_eq!(own("LimitsTest#highIsMoved"), (called, moved));
        let of = |kind, model: &str, method: &str| {
            let found = of_kind(&records, kind).find(|one| one["model"] == model && one["method"] == method);
            found.unwrap_or_else(|| panic!("{kind} {model} {method}: {records:?}")).clone()
        };
        for (model, method, coverage, whole) in [
            ("gold", "LimitsTest#lowIsRefused", 0.0, 0),
            ("gold", "LimitsTest#highIsMoved", 100.0, 2),
            ("other", "LimitsTest#lowIsRefused", 0.0, 2),
            ("other", "LimitsTest#highIsMoved", 200.0 / 3.0, 2),
        ] {
            let record = of("coverage", model, method);
            assert_eq!(record["coverage"], coverage, "{record}");
            let lines = record["focal"].as_array().unwrap();
            let covered = lines.iter().map(|one| one["covered"].as_array().unwrap().len()).sum::<usize>();
            assert_eq!((lines.len(), covered), (2, whole), "what it covers elsewhere is kept: {record}");
        }
        if cache.contains(&"--no-mutation") {
            continue;
        }
        let sets = of_kind(&records, "mutants").next().unwrap_or_else(|| panic!("{records:?}"));
        let kept = sets["sets"][0]["kept"].as_array().unwrap();
        let lines = |lines: std::ops::RangeInclusive<u64>| {
            kept.iter().filter(|one| lines.contains(&one["line"].as_u64().unwrap())).count()
        };
        let (low, high) = (lines(6..=8), lines(10..=13));
        assert!(low > 0 && high > 0 && low + high == kept.len(), "{sets}");
        for (method, count) in [("LimitsTest#lowIsRefused", low), ("LimitsTest#highIsMoved", high)] {
            for model in ["gold", "other"] {
                let record = of("mutation", model, method);
                let number = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
                assert_eq!(number(&record["kills"]["count"]), count, "{record}");
                assert_eq!(record["mutants"].as_array().unwrap().len(), count, "{record}");
                assert_eq!(number(&record["elsewhere"]), kept.len() - count, "{record}");
            }
        }
        assert!(of("mutation", "gold", "LimitsTest#highIsMoved")["kills"]["killed"].as_u64().unwrap() > 0);
        assert_eq!(of("mutation", "other", "LimitsTest#lowIsRefused")["kills"]["killed"], 0);
    }
    let (code, shown) = workshop.try_run(&["tasks", "focal", &task]);
    assert_eq!(code, Some(0));
    let row = |method: &str| shown.lines().find(|line| line.contains(method)).unwrap_or_else(|| panic!("{shown}"));
    assert!(
        row("Limits#low").contains("  lowIsRefused  ") && row("Limits#high").contains("  highIsMoved  "),
        "{shown}"
    );
}

type Categories = BTreeMap<(String, String, String), String>;

/// Returns the run that a repository is scored in.
fn run_of(repository: &SampleRepository) -> String {
    format!("score-{}", repository.name.file_stem())
}

/// Scores what is selected in a run that begins anew, and returns its records.
fn scored(workshop: &Workshop, run: &str, selected: &[&str], predictions: &str, more: &[&str]) -> Vec<Value> {
    let directory = workshop.data_dir.join("runs").join(run);
    if directory.exists() {
        fs_err::remove_dir_all(&directory).unwrap();
    }
    let named = ["--predictions", predictions, "--run-id", run];
    workshop.run(&[&["score"], selected, &named, more].concat());
    records(workshop, run)
}

fn records(workshop: &Workshop, run: &str) -> Vec<Value> {
    let text = fs_err::read_to_string(workshop.data_dir.join("runs").join(run).join("records.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_kind<'a>(records: &'a [Value], kind: &'static str) -> impl Iterator<Item = &'a Value> {
    records.iter().filter(move |record| record["record"] == kind)
}

/// Returns whether each launch and each coverage was found by its key, of those that can be.
fn cached(records: &[Value], wanted: impl Fn(&Value) -> bool) -> Vec<bool> {
    let launches = of_kind(records, "execution").filter(|record| !record["key"].is_null());
    let covered = of_kind(records, "coverage").filter(|record| record["cause"].is_null());
    launches.chain(covered).filter(|record| wanted(record)).map(|record| record["cached"] == true).collect()
}

/// Scores predictions for a repository's miniatures and returns the category of each model, miniature and method.
fn score(workshop: &Workshop, repository: &SampleRepository, predictions: &str, more: &[&str]) -> Categories {
    let run = run_of(repository);
    let task = |miniature: &Miniature| format!("{}__{}", repository.name.file_stem(), miniature.name);
    let tasks: Vec<String> = repository.miniatures.iter().map(task).collect();
    let mut arguments = vec!["score", "--predictions", predictions, "--format", "json"];
    arguments.extend(tasks.iter().map(String::as_str));
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
