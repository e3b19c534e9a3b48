//! The evidence's own tools on the sample repository: a real engine, real Maven, the mutator itself.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Once;

use serde_json::{Value, json};
use testevo_sandbox::sample::SampleRepository;

/// The sample of the demonstration, which was given: it is imported, locked, built, proven and validated.
struct Sample {
    repository: String,
    data_dir: PathBuf,
}

impl Sample {
    /// Gives the demonstration where the program's own tests give it, so that nothing is resolved twice.
    fn given() -> Self {
        static GIVEN: Once = Once::new();
        let parent = Path::new(env!("CARGO_TARGET_TMPDIR")).join("miniatures/data");
        GIVEN.call_once(|| {
            let program = Path::new(env!("CARGO_BIN_EXE_evidence")).with_file_name("testevo-sandbox");
            assert!(program.is_file(), "`{}` is not built: test the whole workspace", program.display());
            fs_err::create_dir_all(&parent).unwrap();
            let output = Command::new(program).args(["demo", "--data-dir"]).arg(&parent).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        });
        let repository = SampleRepository::demo().unwrap().name.to_string();
        Self { repository, data_dir: parent.join("demo") }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evidence"));
        command.args(arguments).args([self.repository.as_str(), "--format", "json", "--jobs", "1", "--data-dir"]);
        command.arg(&self.data_dir).arg("--git-mirror").arg(self.data_dir.join("sources/{owner}__{name}"));
        command.output().unwrap()
    }
}

/// Returns the JSON that a command ended with.
fn found(output: &Output) -> Value {
    let said = || String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", said()))
}

/// Maven with JaCoCo and the mutator's own command say the same as scoring; what is kept is not found out again, and a
/// difference fails the command.
#[test]
fn other_tools_say_the_same() {
    let sample = Sample::given();
    let directory = tempfile::tempdir().unwrap();
    let keep = directory.path().join("checked.jsonl");
    let command = || sample.run(&["crosscheck", "--limit", "1", "--ends", "2", "--keep", keep.to_str().unwrap()]);
    let output = command();
    let checked = found(&output);
    assert_eq!(output.status.code(), Some(0), "{checked}");
    let number = |kind: &str, field: &str| checked[kind][field].as_u64().unwrap();
    for kind in ["coverage", "mutants", "ends"] {
        assert!(number(kind, "compared") > 0, "{checked}");
        assert_eq!((number(kind, "equal"), number(kind, "left_out")), (number(kind, "compared"), 0), "{checked}");
    }
    assert!(checked["lines"][1].as_u64().unwrap() > 0, "{checked}");
    for kind in 0..4 {
        assert!(checked["mutants_compared"][kind].as_u64().unwrap() > 0, "{checked}");
    }

    let text = fs_err::read_to_string(&keep).unwrap();
    let mut tasks: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    tasks[0]["coverage"][0]["files"][0]["covered"]["only_theirs"] = json!(["12345"]);
    fs_err::write(&keep, tasks.iter().map(|task| format!("{task}\n")).collect::<String>()).unwrap();
    let output = command();
    assert_eq!(output.status.code(), Some(1));
    let differences = found(&output)["differences"].clone();
    assert_eq!(differences.as_array().map(Vec::len), Some(1), "{differences}");
    assert!(differences[0].as_str().unwrap().ends_with("covered lines only theirs: 12345"), "{differences}");
}

/// Every variant of executing a cell is measured, and both paths come to the same.
#[test]
fn every_way_is_measured() {
    let output = Sample::given().run(&["measure", "--limit", "1"]);
    let measured = found(&output);
    assert_eq!(output.status.code(), Some(0), "{measured}");
    let task = &measured["tasks"][0];
    assert_eq!(task["left_out"], json!([]), "{measured}");
    let cells = task["cells"].as_array().unwrap();
    assert!(!cells.is_empty(), "{measured}");
    for cell in cells {
        assert_eq!(cell["times"].as_object().unwrap().len(), 4, "{cell}");
        assert!(cell["times"].as_object().unwrap().values().all(|times| times["wall_ms"].as_u64().unwrap() > 0));
    }
}
