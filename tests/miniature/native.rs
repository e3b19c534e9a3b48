//! The built-in engine comes to what Docker comes to, from the same image, lock and prepared revisions.

use serde_json::Value;
use testevo_sandbox::sample::SampleRepository;

use super::demonstration;
use super::execution::Workshop;
use super::verdict::summary;

/// What a run came to, without what changes from run to run.
fn verdicts(workshop: &Workshop, run: &str) -> Value {
    let text = fs_err::read_to_string(workshop.data_dir.join("runs").join(run).join("verdicts.json")).unwrap();
    let mut verdicts: Value = serde_json::from_str(&text).unwrap();
    assert!(verdicts.as_object_mut().unwrap().remove("volatile").is_some());
    verdicts
}

/// Executes a command on both engines, everything anew, and returns what the built-in one said; both come to the same.
fn on_both(workshop: &Workshop, repository: &SampleRepository, command: &str, arguments: &[&str]) -> Value {
    let mut said = Vec::new();
    let mut found = Vec::new();
    for engine in ["docker", "native"] {
        let run = format!("{command}-on-{engine}");
        let chosen = [command, repository.name.as_str(), "--engine", engine, "--run-id", &run, "--fresh"];
        let output = workshop.command(&[&chosen, arguments, &["--format", "json"]].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{engine}: {}", String::from_utf8_lossy(&output.stderr));
        said.push(summary(&output));
        found.push(verdicts(workshop, &run));
    }
    assert_eq!(found[0], found[1]);
    said.swap_remove(1)
}

#[test]
fn the_built_in_engine_validates_the_same_on_both_paths() {
    let (repository, workshop) = demonstration::given();
    let said = on_both(&workshop, &repository, "validate", &["--paths", "both"]);
    assert_eq!(said["path_differences"], 0, "{said}");
    assert_eq!(said["reproduced"], said["tasks"], "{said}");
}

#[test]
fn the_built_in_engine_scores_the_same_with_coverage_and_mutants() {
    let (repository, workshop) = demonstration::given();
    let chosen = ["--predictions", "gold", "--path", "direct", "--no-cache", "--limit", "1"];
    on_both(&workshop, &repository, "score", &chosen);
    let found = verdicts(&workshop, "score-on-native").to_string();
    for measured in ["\"coverage\"", "\"killed\""] {
        assert!(found.contains(measured), "{measured}: {found}");
    }
}
