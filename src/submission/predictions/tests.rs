use super::*;
use crate::task::Track;

fn task(id: &str) -> Task {
    Task {
        id: id.parse().unwrap(),
        repository: "o/n".parse().unwrap(),
        track: Track::TestUpdate,
        rev1: "a".repeat(40).parse().unwrap(),
        rev2: "b".repeat(40).parse().unwrap(),
        rev1_date: "2020-01-01".to_owned(),
        rev2_date: "2020-01-01".to_owned(),
        test_file: "src/test/java/ATest.java".parse().unwrap(),
        test_methods: vec!["ATest#m".parse().unwrap()],
        focal_methods: Vec::new(),
    }
}

struct Fixture {
    directory: tempfile::TempDir,
    tasks: Vec<Task>,
}

impl Fixture {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), tasks: vec![task("t1"), task("t2"), task("t3")] }
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// `t3` is imported and not selected.
    fn read(&self, path: &Path) -> Result<Predictions, PredictionsError> {
        read(path, Selection { known: &self.tasks, selected: &self.tasks[..2] })
    }

    fn text(&self, text: impl AsRef<[u8]>) -> Result<Predictions, PredictionsError> {
        self.read(&self.write("p.json", text))
    }
}

fn patch_of(predictions: &Predictions, model: &str, id: &str) -> Content {
    predictions.models[model][&id.parse::<TaskId>().unwrap()].content.clone()
}

#[test]
fn every_form_gives_the_same_predictions() {
    let fixture = Fixture::new();
    let one = r#"{"instance_id":"t1","model_name_or_path":"m","model_patch":"x","cost_usd":0.5,"tokens":7,"more":[1]}"#;
    for text in [
        one.to_owned(),
        format!("\u{feff}\n{one}\n\n"),
        format!("{one}\r\n{one}\r\n"),
        format!("[{one}]"),
        format!("[\n {one},\n {one}\n]\n"),
        format!("{{\"t1\": {one}}}"),
        r#"{"t1": {"model_name_or_path": "m", "model_patch": "x", "cost_usd": 0.5, "tokens": 7}}"#.to_owned(),
        "{\n\"t1\":\n{\"model_name_or_path\": \"m\", \"model_patch\": \"x\", \"cost_usd\": 0.5, \"tokens\": 7}\n}\n"
            .to_owned(),
    ] {
        let predictions = fixture.text(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let prediction = &predictions.models["m"][&"t1".parse().unwrap()];
        assert_eq!(prediction.content, Content::Patch(b"x".to_vec()), "{text}");
        assert_eq!((prediction.cost_usd, prediction.tokens), (Some(0.5), Some(7)));
        assert_eq!(predictions.missing["m"], ["t2".parse().unwrap()]);
    }
}

#[test]
fn what_is_unknown_missing_unselected_or_twice_is_told() {
    let fixture = Fixture::new();
    let predictions = fixture
        .text(
            "{\"instance_id\":\"t1\",\"model_name_or_path\":\"m\",\"model_patch\":\"x\"}\n\
             {\"instance_id\":\"t1\",\"model_name_or_path\":\"m\",\"model_patch\":\"x\"}\n\
             {\"instance_id\":\"t1\",\"model_name_or_path\":\"n\",\"model_patch\":null}\n\
             {\"instance_id\":\"t3\",\"model_name_or_path\":\"n\",\"model_patch\":\"z\"}\n\
             {\"instance_id\":\"gone\\u0007\",\"model_patch\":\"z\"}\n",
        )
        .unwrap();
    assert_eq!(predictions.repeated, 1);
    assert_eq!(predictions.not_selected, 1);
    assert_eq!(predictions.unknown.len(), 1);
    assert_eq!(predictions.unknown[0].id, "gone\u{fffd}");
    assert_eq!((predictions.unknown[0].model.as_str(), predictions.unknown[0].place.line), ("unnamed", Some(5)));
    assert_eq!(patch_of(&predictions, "n", "t1"), Content::Nothing);
    assert_eq!(predictions.missing["n"], ["t2".parse().unwrap()]);
}

#[test]
fn different_bytes_for_one_task_are_an_error_that_names_both_lines() {
    let fixture = Fixture::new();
    let line =
        |patch: &str| format!("{{\"instance_id\":\"t1\",\"model_name_or_path\":\"m\",\"model_patch\":\"{patch}\"}}");
    for text in [format!("{}\n\n{}\n", line("x"), line("y")), format!("[{},\n\n{}]", line("x"), line("y"))] {
        let error = fixture.text(&text).unwrap_err().to_string();
        assert!(error.contains("line 1") && error.contains("line 3") && error.contains("`m`"), "{error}");
    }
}

#[test]
fn forty_malformed_files_are_typed_errors_that_name_the_file() {
    let fixture = Fixture::new();
    let deep = "[".repeat(100_000);
    let long = format!("{{\"instance_id\":\"t1\",\"model_name_or_path\":\"{}\"}}", "m".repeat(300));
    let texts: [&[u8]; 40] = [
        b"",
        b"  \n\n",
        b"[]",
        b"{}",
        b"null",
        b"1",
        b"\"gold\"",
        b"true",
        b"{",
        b"[",
        b"}",
        b"[{}]",
        b"[{},",
        b"[1]",
        b"[null]",
        b"[[]]",
        b"{\"t1\"}",
        b"{\"t1\":}",
        b"{\"t1\":1}",
        b"{\"t1\":\"patch\"}",
        b"{\"t1\":{}} x",
        b"{\"t1\":{\"instance_id\":\"t2\"}}",
        b"{\"instance_id\":1}",
        b"{\"instance_id\":null}\n{}",
        b"{\"instance_id\":\"t1\"}\n{\"model_patch\":\"x\"}",
        b"{\"instance_id\":\"t1\",\"model_patch\":1}",
        b"{\"instance_id\":\"t1\",\"model_patch\":\"x\",\"model_patch\":\"y\"}",
        b"{\"instance_id\":\"t1\",\"model_patch\":\"x\",\"model_file\":\"y\"}",
        b"{\"instance_id\":\"t1\",\"model_patch\":\"\\ud800\"}",
        b"{\"instance_id\":\"t1\",\"model_patch\":\"\xff\"}",
        b"{\"instance_id\":\"t1\",\"model_patch\":\"a\nb\"}",
        b"{\"instance_id\":\"t1\",\"cost_usd\":-1}",
        b"{\"instance_id\":\"t1\",\"cost_usd\":1e999}",
        b"{\"instance_id\":\"t1\",\"cost_usd\":\"1\"}",
        b"{\"instance_id\":\"t1\",\"tokens\":-1}",
        b"{\"instance_id\":\"t1\",\"model_name_or_path\":\" \"}",
        b"{\"instance_id\":\"t1\",\"model_name_or_path\":\"gold\"}",
        b"{\"instance_id\":\"t1\",\"model_name_or_path\":\"a\\nb\"}",
        deep.as_bytes(),
        long.as_bytes(),
    ];
    for text in texts {
        let shown = String::from_utf8_lossy(&text[..text.len().min(80)]).into_owned();
        let error = fixture.text(text).map(|found| panic!("{shown}: {found:?}")).unwrap_err();
        assert!(error.to_string().contains("p.json"), "{shown}: {error}");
        assert!(!error.hint().is_empty());
    }
    let error = fixture.text("{\"instance_id\":\"t1\"}\n\n{\"instance_id\":\"t2\",}").unwrap_err();
    assert!(error.to_string().contains("line 3"), "{error}");
}

#[test]
fn directories_hold_patches_or_test_files() {
    let fixture = Fixture::new();
    fixture.write("agent/t1.patch", "p");
    fixture.write("agent/t2/src/test/java/ATest.java", "class ATest {}");
    fixture.write("agent/.hidden", "x");
    fixture.write("agent/other.diff", "x");
    let predictions = fixture.read(&fixture.directory.path().join("agent")).unwrap();
    assert_eq!(patch_of(&predictions, "agent", "t1"), Content::Patch(b"p".to_vec()));
    assert_eq!(patch_of(&predictions, "agent", "t2"), Content::File(b"class ATest {}".to_vec()));
    assert_eq!(predictions.unknown[0].id, "other");
    fixture.write("agent/t2.java", "different");
    assert!(matches!(fixture.read(&fixture.directory.path().join("agent")), Err(PredictionsError::Conflict { .. })));
    std::os::unix::fs::symlink("/etc/passwd", fixture.directory.path().join("agent/t3.patch")).unwrap();
    let linked = fixture.read(&fixture.directory.path().join("agent"));
    assert!(linked.is_err());
    fixture.write("other/readme.txt", "x");
    assert!(matches!(fixture.read(&fixture.directory.path().join("other")), Err(PredictionsError::Malformed { .. })));
}

#[test]
fn what_is_too_large_is_kept_as_a_fact_and_not_as_bytes() {
    let fixture = Fixture::new();
    let huge = "x".repeat(crate::submission::MOST_SUBMISSION_BYTES + 1);
    let predictions = fixture.text(format!("{{\"instance_id\":\"t1\",\"model_patch\":\"{huge}\"}}")).unwrap();
    assert_eq!(patch_of(&predictions, "unnamed", "t1"), Content::TooLarge { bytes: huge.len() as u64 });
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
        let _ = Fixture::new().text(bytes);
    }

    /// Every way of cutting or changing a good file ends in predictions or an error, never in lost ones.
    #[test]
    fn damaged_files_never_lose_predictions_silently(cut in 0usize..200, byte in proptest::prelude::any::<u8>()) {
        let good = "{\"instance_id\":\"t1\",\"model_patch\":\"x\"}\n{\"instance_id\":\"t2\",\"model_patch\":\"y\"}\n";
        let mut bytes = good.as_bytes().to_vec();
        let at = cut % bytes.len();
        bytes[at] = byte;
        if let Ok(predictions) = Fixture::new().text(bytes) {
            let found: usize = predictions.models.values().map(BTreeMap::len).sum();
            // A changed id may be unknown, unselected, or the other's; then the bytes differ or are equal.
            proptest::prop_assert_eq!(
                found + predictions.unknown.len() + predictions.not_selected + predictions.repeated, 2
            );
        }
    }
}
