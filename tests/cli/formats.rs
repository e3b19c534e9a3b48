//! What the program writes is what docs/schemas says of it.

use std::path::Path;

use fs_err as fs;
use serde_json::Value;

use super::lock::imported;
use crate::support::command::CommandLine;
use crate::support::scored::ScoredRun;

fn conforms(schema: &str, value: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schemas").join(format!("{schema}.json"));
    let schema: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let wrong: Vec<String> =
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path)).collect();
    assert!(wrong.is_empty(), "{}: {wrong:#?}", path.display());
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn said(line: &CommandLine, arguments: &[&str]) -> Value {
    let text = line.run(arguments);
    let (_, json) = text.split_once('{').unwrap_or_else(|| panic!("{text}"));
    let mut values = serde_json::Deserializer::from_str(&text[text.len() - json.len() - 1..]).into_iter();
    values.next().unwrap().unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn tasks_and_manifests_have_their_schemas() {
    let line = imported();
    let files = |directory: &str| -> Vec<_> {
        let entries = fs::read_dir(line.path().join("data").join(directory)).unwrap();
        let files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        assert!(!files.is_empty(), "{directory}");
        files
    };
    files("tasks").iter().for_each(|path| conforms("tasks", &read(path)));
    for path in files("manifests") {
        let manifest: toml::Value = toml::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        conforms("manifest", &serde_json::to_value(manifest).unwrap());
    }
}

#[test]
fn lines_of_a_data_set_have_their_schema() {
    let line = imported();
    for (audience, answers) in [("agent", false), ("scorer", true)] {
        let arguments = ["export", "dataset", "--audience", audience, "--git-mirror", "mirror/{name}", "-o", audience];
        let text = line.run(&arguments);
        assert!(text.starts_with("exit 0\n"), "{text}");
        let text = fs::read_to_string(line.path().join(audience)).unwrap();
        assert!(text.lines().count() > 1 && text.ends_with('\n'), "{text}");
        for row in text.lines() {
            let row = serde_json::from_str(row).unwrap();
            conforms("dataset", &row);
            assert_eq!(row.get("patch").is_some(), answers, "{row}");
        }
        // A file is never replaced, and stdout has the same lines.
        let again = line.run(&arguments);
        assert!(again.starts_with("exit 2\n") && again.contains("there is a file"), "{again}");
        assert!(line.run(&arguments[..6]).contains(&text), "{audience}");
    }
}

#[test]
fn scoring_runs_and_reports_have_their_schemas() {
    let line = CommandLine::new();
    for run_id in ["small", "large"] {
        let models = vec!["m".to_owned(), "gold".to_owned()];
        ScoredRun { run_id, models, tasks: 6, strange: "<&>" }.write(&line.path().join("data"));
        let run = line.path().join("data/runs").join(run_id);
        conforms("run", &read(&run.join("run.json")));
        conforms("score-inputs", &read(&run.join("inputs.json")));
        let records = fs::read_to_string(run.join("records.jsonl")).unwrap();
        assert!(records.lines().count() > 10);
        records.lines().for_each(|record| conforms("score-record", &serde_json::from_str(record).unwrap()));
    }
    conforms("report", &said(&line, &["report", "small", "large", "--samples", "--format", "json"]));
    conforms("comparison", &said(&line, &["runs", "compare", "small", "large", "--format", "json"]));
}
