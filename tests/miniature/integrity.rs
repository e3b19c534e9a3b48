//! The hostile corpus with a real engine: controls and checks name each submission that passes and tests nothing, or says more of
//! itself than is true. A cross-section of docs/corpus.md; all of it is tried by `cargo test -- --ignored`.

use std::collections::BTreeSet;
use std::path::Path;

use testevo_sandbox::application::selftest::{Manner, groups, predictions_of, selected, tasks_of, tried};
use testevo_sandbox::outcome::{ExecReason, Outcome};
use testevo_sandbox::report::score::{ScoredModel, read};
use testevo_sandbox::sample::SampleRepository;
use testevo_sandbox::sample::corpus::repositories;

use super::demonstration;
use super::workshop::Workshop;

/// What is tried on the direct path without mutants: quick cases of different kinds.
const DIRECT: [&str; 11] = [
    "honest",
    "lying-header",
    "forges",
    "forges-failure-on-old",
    "swallows",
    "shadows",
    "reads-bytes",
    "looks-for-number",
    "fills-probes-by-parts",
    "sees-archives",
    "counts-launches",
];

/// The same of JUnit 4.
const JUNIT4: [&str; 7] = [
    "junit4-honest",
    "junit4-forges-in-initializer",
    "junit4-expects-anything",
    "junit4-rule",
    "junit4-runner",
    "junit4-dead-symbol",
    "junit4-reflects-on-new-member",
];

/// The cases that are tried on the reference path: Maven builds each.
const BY_MAVEN: [&str; 2] = ["honest", "swallows"];

/// The cases that are tried with mutants, which take most of the time: the others say nothing of them.
const ON_MUTANTS: [&str; 3] = ["honest", "helper-of-its-name", "sets-flag"];

#[test]
fn hostile_submissions_come_to_their_verdicts() {
    let (repository, workshop) = demonstration::given_alone();
    for (path, mutation, names) in
        [("direct", false, &DIRECT[..]), ("direct", true, &ON_MUTANTS), ("maven", false, &BY_MAVEN)]
    {
        for model in come_to_their_verdicts(&workshop, &repository, names, path, mutation) {
            let rounding = model.tasks.iter().find(|scored| scored.task.id.as_str().ends_with("__rounding"));
            let method = &rounding.unwrap().methods[0];
            if model.model == "forges" {
                let forged = &method.new[0];
                let facts = (forged.outcome, forged.measured.forged_events);
                assert_eq!(facts, (Outcome::ExecFail(ExecReason::Exit), 1), "{forged:?}");
            }
            if model.model == "honest" || model.model == "swallows" {
                let honest = model.model == "honest";
                assert_eq!(method.verdict.strict_success, honest, "{path} {}", model.model);
                let score = method.score.pred;
                assert_eq!((score.coverage, score.clean_coverage), (Some(100.0), honest.then_some(100.0)), "{path}");
            }
        }
    }
}

#[test]
fn hostile_submissions_in_junit_4_come_to_their_verdicts() {
    let [_, repository] = repositories().unwrap();
    let workshop = Workshop::new(&repository);
    workshop.prepare(&repository, "");
    come_to_their_verdicts(&workshop, &repository, &JUNIT4, "direct", false);
}

/// A submission that prints what it can see of its launch.
const LOOKS_AROUND: &str = r#"package shop;

class StockTest {
    @org.junit.jupiter.api.Test
    void takeTooMuch() throws Exception {
        byte[] bytes = Stock.class.getResourceAsStream("Stock.class").readAllBytes();
        byte[] digest = java.security.MessageDigest.getInstance("SHA-256").digest(bytes);
        System.out.println("bytes " + new java.math.BigInteger(1, digest).toString(16));
        System.out.println("born " + new java.io.File("/etc/hostname").lastModified());
        try {
            org.junit.jupiter.api.Assertions.assertThrows(IllegalArgumentException.class, () -> new Stock(2).take(3));
        } finally {
            System.out.println("ends " + System.currentTimeMillis());
        }
    }
}
"#;

/// A list of the bytes that classes had under another seed, or with another submission, names no mutant and no control. A
/// container's age does not tell how long the launch before took.
#[test]
fn launches_tell_nothing_of_other_launches() {
    let (repository, workshop) = demonstration::given();
    let task = format!("{}__fixed-bug", repository.name.file_stem());
    let directory = tempfile::tempdir().unwrap();
    let mut seen = BTreeSet::new();
    for (seed, models) in [("1", &["one", "other"][..]), ("2", &["one"])] {
        let predictions = directory.path().join(format!("{seed}.jsonl"));
        let line = |model: &&str| {
            let file = format!("// {model}\n{LOOKS_AROUND}");
            serde_json::json!({ "instance_id": task, "model_name_or_path": model, "model_file": file }).to_string()
        };
        fs_err::write(&predictions, models.iter().map(line).collect::<Vec<_>>().join("\n")).unwrap();
        let run = format!("score-looks-around-{seed}");
        let place = workshop.data_dir.join("runs").join(&run);
        if place.exists() {
            fs_err::remove_dir_all(&place).unwrap();
        }
        let named = ["--predictions", predictions.to_str().unwrap(), "--run-id", &run, "--seed", seed];
        workshop.run(&[&["score", &task], &named[..], &["--no-cache", "--jobs", "1"]].concat());
        let printed = printed_below(&place.join("logs"));
        let bytes: Vec<&str> = printed.iter().filter(|one| one.is_changed).map(|one| one.bytes.as_str()).collect();
        // Four controls, and mutants.
        assert!(bytes.len() > 5 * models.len(), "{printed:#?}");
        for bytes in bytes {
            assert!(seen.insert(bytes.to_owned()), "seed {seed}: {bytes} was there before: {printed:#?}");
        }
        for pair in printed.windows(2) {
            assert!(
                pair[0].ends <= pair[1].born,
                "a container was there before the launch before had ended: {printed:#?}"
            );
        }
    }
}

/// What one launch printed.
#[derive(Debug)]
struct Printed {
    ends: u64,
    born: u64,
    bytes: String,
    /// Whether its classes are a mutant's or a control's.
    is_changed: bool,
}

/// Returns what launches printed, in their order.
fn printed_below(logs: &Path) -> Vec<Printed> {
    let (mut printed, mut left) = (Vec::new(), vec![logs.to_owned()]);
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(fs_err::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap();
        if !name.ends_with(".stdout") {
            continue;
        }
        let text = fs_err::read_to_string(&path).unwrap();
        let of = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(|value| value.trim().to_owned());
        let (Some(bytes), Some(born), Some(ends)) = (of("bytes "), of("born "), of("ends ")) else { continue };
        let is_changed = name.starts_with("mutant-") || name.starts_with("control-");
        printed.push(Printed { ends: ends.parse().unwrap(), born: born.parse().unwrap(), bytes, is_changed });
    }
    printed.sort_by_key(|one| one.ends);
    printed
}

/// Scores cases, and compares each with what must come of it.
fn come_to_their_verdicts(
    workshop: &Workshop,
    repository: &SampleRepository,
    names: &[&str],
    path: &str,
    mutation: bool,
) -> Vec<ScoredModel> {
    let samples = std::slice::from_ref(repository);
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let cases = selected(&names).unwrap();
    assert_eq!(groups(&cases).len(), 1, "one run has one limit of time and one number of repeats");
    let stem = repository.name.file_stem();
    let predictions = workshop.sources.join(format!("hostile-{stem}.jsonl"));
    fs_err::write(&predictions, predictions_of(samples, &cases)).unwrap();
    let run = format!("score-hostile-{stem}-{path}");
    let directory = workshop.data_dir.join("runs").join(&run);
    if directory.exists() {
        fs_err::remove_dir_all(&directory).unwrap();
    }
    let tasks = tasks_of(samples, &cases);
    let tasks: Vec<&str> = tasks.iter().map(String::as_str).collect();
    let named = ["--predictions", predictions.to_str().unwrap(), "--run-id", &run, "--path", path];
    let no_mutation: &[&str] = if mutation { &[] } else { &["--no-mutation"] };
    workshop.run(&[&["score"], &tasks[..], &named, no_mutation].concat());
    let models = read(&[directory]).unwrap();
    let tried = tried(&models, &cases, Manner { mutation, path: serde_json::from_value(path.into()).unwrap() });
    let wrong: Vec<_> = tried.iter().filter(|one| !one.as_expected).collect();
    assert!(tried.len() >= cases.len() && wrong.is_empty(), "{path}: {wrong:#?}");
    models
}

/// The whole corpus, as a user tries it, on both paths, with and without mutants: half an hour.
#[test]
#[ignore = "takes half an hour"]
fn the_whole_corpus_comes_to_its_verdicts() {
    let (_, workshop) = demonstration::given_alone();
    let data_dir = workshop.data_dir.parent().unwrap();
    for arguments in [&[][..], &["--no-mutation"], &["--path", "maven"]] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_testevo-sandbox"));
        let output = command.arg("selftest").args(arguments).arg("--data-dir").arg(data_dir).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{arguments:?}\n{said}{}", String::from_utf8_lossy(&output.stderr));
    }
}
