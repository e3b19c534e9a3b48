//! What every case must say, what all of them together stand for, and their table in the documentation.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::*;

/// Where the table of cases stands.
fn table() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/corpus.md")
}

#[test]
fn every_case_says_what_it_is_for() {
    let samples = repositories().unwrap();
    let known: Vec<&str> =
        ["about", "proves", "task", "methods", "expect", "without mutants", "by maven", "seconds", "repeats", "pad"]
            .into_iter()
            .chain(Fact::ALL.map(Fact::name))
            .collect();
    let miniatures: Vec<_> = samples.iter().flat_map(|sample| &sample.miniatures).collect();
    for (case, (_, _, text)) in cases().iter().zip(CASES) {
        let name = case.name;
        for (field, value) in header_of(text) {
            assert!(known.contains(&field) && !value.is_empty(), "{name}: `{field}`");
        }
        let fields: BTreeSet<&str> = header_of(text).map(|(field, _)| field).collect();
        assert_eq!(fields.len(), header_of(text).count(), "{name}: a line stands there twice");
        let miniature = miniatures.iter().find(|miniature| miniature.name == case.task);
        let miniature = miniature.unwrap_or_else(|| panic!("{name}: no task {}", case.task));
        assert!(!case.about.is_empty() && !case.proves.is_empty(), "{name}");
        for expected in case.expected.iter().chain(&case.without_mutants).chain(&case.by_maven) {
            assert!(expected.split_whitespace().count() >= 2, "{name}: {expected}");
        }
        for method in &case.methods {
            assert!(miniature.methods.iter().any(|known| known.id.method() == *method), "{name}: {method}");
        }
        for (field, is_read) in
            [("seconds", case.seconds.is_some()), ("repeats", case.repeats > NonZeroU32::MIN), ("pad", case.pad.0 > 0)]
        {
            assert_eq!(fields.contains(field), is_read, "{name}: {field}");
        }
    }
    let names: BTreeSet<&str> = cases().iter().map(|case| case.name).collect();
    assert_eq!(names.len(), CASES.len(), "each name is a model's");
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sample/hostile");
    assert_eq!(fs_err::read_dir(directory).unwrap().count(), CASES.len(), "every file is a case");
}

#[test]
fn a_patch_is_what_follows_its_header() {
    for case in cases().iter().filter(|case| case.form == Form::Patch) {
        let text = case.submission();
        assert!(text.is_empty() || text.starts_with("diff --git "), "{}: {text}", case.name);
    }
}

#[test]
fn a_text_is_padded_with_what_its_header_says() {
    let text = "// pad: 3 78\nclass A {}\n";
    assert_eq!(case(Form::File, "a", text).submission(), format!("{text}xxx"));
}

/// Attacks are the rows of the documentation's first table. Each has a case, and no case is of another.
#[test]
fn every_attack_has_a_case() {
    let text = fs_err::read_to_string(table()).unwrap();
    let attack = |line: &str| line.strip_prefix("| ")?.split_once(" |").map(|(id, _)| id.to_owned());
    let is_attack = |id: &String| id.starts_with('R') || id.starts_with("hole ");
    let attacks: BTreeSet<String> =
        text.lines().take_while(|line| *line != "## Cases").filter_map(attack).filter(is_attack).collect();
    let tried: BTreeSet<String> = cases().iter().flat_map(|case| &case.proves).map(|id| (*id).to_owned()).collect();
    assert_eq!(tried, attacks);
    let numbered: Vec<String> = (1..=40).map(|number| format!("R{number:02}")).collect();
    assert!(numbered.iter().all(|id| attacks.contains(id)), "{attacks:?}");
}

/// The table of cases is written anew by `RENDER_CORPUS=1 cargo test --lib corpus`.
#[test]
fn the_documentation_has_every_case() {
    let mut rendered =
        "## Cases\n\n| case | attack | what it does | task | what must come of it |\n|---|---|---|---|---|\n"
            .to_owned();
    for case in cases() {
        let mut expected = case.expected.join(" or ");
        if case.without_mutants != case.expected {
            expected = format!("{expected}; without mutants {}", case.without_mutants.join(" or "));
        }
        if case.by_maven != case.without_mutants {
            expected = format!("{expected}; by Maven {}", case.by_maven.join(" or "));
        }
        for (fact, value) in &case.facts {
            expected = format!("{expected}; {}: {value}", fact.name());
        }
        let proves = case.proves.join(", ");
        rendered.push_str(&format!("| {} | {proves} | {} | {} | {expected} |\n", case.name, case.about, case.task));
    }
    let text = fs_err::read_to_string(table()).unwrap();
    let (above, found) = text.split_at(text.find("## Cases\n").unwrap());
    if std::env::var_os("RENDER_CORPUS").is_some() {
        fs_err::write(table(), format!("{above}{rendered}")).unwrap();
        return;
    }
    assert_eq!(found, rendered, "RENDER_CORPUS=1 writes it anew");
}
