//! `demo` does the whole job: tasks, lock, image, proof and validation of the sample that the program carries.

use std::sync::OnceLock;

use testevo_sandbox::sample::SampleRepository;

use super::proof;
use super::workshop::{Hold, Workshop};

/// What the demonstration said, which is given once.
static SAID: OnceLock<String> = OnceLock::new();

/// Returns the sample of the demonstration, which was given: it is imported, locked, built, proven and validated. Other tests
/// work with it as well.
pub(super) fn given() -> (SampleRepository, Workshop) {
    held(Hold::Together)
}

/// The same for a test that changes settings or data which others read.
pub(super) fn given_alone() -> (SampleRepository, Workshop) {
    held(Hold::Alone)
}

fn held(hold: Hold) -> (SampleRepository, Workshop) {
    let repository = SampleRepository::demo().unwrap();
    SAID.get_or_init(|| Workshop::of_demonstration(&repository, Hold::Alone).demonstrate());
    let workshop = Workshop::of_demonstration(&repository, hold);
    (repository, workshop)
}

#[test]
fn the_demonstration_is_given_and_explained() {
    let (repository, workshop) = given();
    let said = SAID.get().unwrap();
    let outcomes = said.find("What the four executions came to").unwrap_or_else(|| panic!("{said}"));
    let scores = outcomes + said[outcomes..].find("\n5. Score").unwrap_or_else(|| panic!("{said}"));
    insta::assert_snapshot!("demonstration", &said[outcomes..scores]);
    assert!(said.starts_with("This demonstration takes") && said.contains("minutes"), "{said}");
    // The commands of its steps can be typed as they stand there.
    for step in ["import", "lock", "build-images", "validate", "score"] {
        let line = said.lines().find_map(|line| line.strip_prefix(&format!("$ testevo-sandbox {step} ")));
        let line = line.unwrap_or_else(|| panic!("{step}: {said}"));
        let command = format!("'{}' {step} {line} --dry-run", env!("CARGO_BIN_EXE_testevo-sandbox"));
        let output = std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }

    // What it says of the two submissions holds, and its next commands work.
    let next: Vec<&str> = said.lines().rev().take(3).collect();
    let [_, csv, explain] = next[..] else { panic!("{said}") };
    let [explained, csv] = [explain, csv].map(|command| {
        let words = command.strip_prefix("$ testevo-sandbox ").unwrap_or_else(|| panic!("{command}"));
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_testevo-sandbox"))
            .args(words.split_whitespace())
            .output()
            .unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    });
    assert!(explained.contains("hasty") && !explained.contains("careful"), "{explained}");
    let cell = |model: &str, heading: &str| {
        let cells = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
        let column = cells(csv.lines().next().unwrap()).iter().position(|cell| cell == heading).unwrap();
        csv.lines().map(cells).find(|row| row[1] == model).unwrap()[column].clone()
    };
    for (model, score) in [("careful", "1"), ("hasty", "0")] {
        let found = ["category", "mutation_score_pred"].map(|heading| cell(model, heading));
        assert_eq!(found, ["Success", score], "{csv}");
    }
    let index = said.lines().find(|line| line.ends_with("/index.html")).unwrap_or_else(|| panic!("{said}"));
    assert!(fs_err::read_to_string(index).unwrap().contains("Certified tasks: those whose published labels hold"));

    // Its sources are compiled for Java 21, so that nothing older launches them.
    assert_eq!(workshop.built(&repository.name).jdk, 21);
    assert_eq!(repository.jdk, 21);
    proof::is_proven(&workshop, &repository);
    let nested = workshop.data_dir.join("store");
    let shared = workshop.data_dir.parent().unwrap().join("store");
    assert_eq!(fs_err::canonicalize(nested).unwrap(), fs_err::canonicalize(shared).unwrap(), "bytes are shared");
}
