use super::collector::{Collector, MOST_MODEL_CHARACTERS, MOST_MODELS, MOST_SAMPLES};
use super::*;
use crate::submission::damage::{damaged, damages};
use crate::task::Track;

mod mistakes;
mod strange;

pub(super) fn task(id: &str) -> Task {
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
        self.read_several(path, Several::Repetitions)
    }

    fn read_several(&self, path: &Path, several: Several) -> Result<Predictions, PredictionsError> {
        read(path, Selection { known: &self.tasks, selected: &self.tasks[..2] }, several)
    }

    fn text(&self, text: impl AsRef<[u8]>) -> Result<Predictions, PredictionsError> {
        self.read(&self.write("p.json", text))
    }
}

/// How many values a list or dictionary has.
struct Values(usize);

impl<'de> serde::Deserialize<'de> for Values {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Counter;
        impl<'de> serde::de::Visitor<'de> for Counter {
            type Value = Values;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list or dictionary")
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut values: A) -> Result<Values, A::Error> {
                let mut number = 0;
                while values.next_element::<serde::de::IgnoredAny>()?.is_some() {
                    number += 1;
                }
                Ok(Values(number))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut values: A) -> Result<Values, A::Error> {
                let mut number = 0;
                while values.next_entry::<serde::de::IgnoredAny, serde::de::IgnoredAny>()?.is_some() {
                    number += 1;
                }
                Ok(Values(number))
            }
        }
        deserializer.deserialize_any(Counter)
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
fn several_submissions_of_a_model_are_its_samples_if_that_is_wanted() {
    let fixture = Fixture::new();
    let line = |task: &str, model: &str, patch: &str| {
        format!("{{\"instance_id\":\"{task}\",\"model_name_or_path\":\"{model}\",\"model_patch\":\"{patch}\"}}\n")
    };
    let lines = [
        line("t1", "m", "x"),
        line("t1", "m", "y"),
        line("t2", "m", "z"),
        line("t1", "m", "x"),
        line("t1", "one", "x"),
        line("gone", "m", "x"),
    ];
    let samples = |text: &str| fixture.read_several(&fixture.write("p.json", text), Several::Samples);
    let predictions = samples(&lines.concat()).unwrap();
    let names = ["m (sample 1)", "m (sample 2)", "m (sample 3)"];
    assert_eq!(predictions.models.keys().collect::<Vec<_>>(), [&names[..], &["one"]].concat());
    let handed_in = names.map(|name| patch_of(&predictions, name, "t1"));
    assert_eq!(handed_in, ["x", "y", "x"].map(|text| Content::Patch(text.as_bytes().to_vec())));
    assert!(predictions.samples.iter().all(|(name, model)| names.contains(&name.as_str()) && model == "m"));
    assert_eq!((predictions.samples.len(), predictions.repeated, predictions.unknown.len()), (3, 0, 1));
    // A sample that is not there is missing.
    let missing = names.map(|name| predictions.missing[name].len());
    assert_eq!(missing, [0, 1, 1]);

    let taken = samples(&[lines.concat(), line("t2", "m (sample 2)", "x")].concat()).unwrap_err();
    let text = taken.to_string();
    assert!(text.contains("line 7") && text.contains("is the name of a sample of `m`"), "{text}");
    let crowd = samples(&line("t1", "m", "x").repeat(MOST_SAMPLES + 1)).unwrap_err().to_string();
    assert!(crowd.contains("line 1001") && crowd.contains("more than 1000 samples"), "{crowd}");
    let models: String = (0..=MOST_MODELS).map(|model| line("t1", &format!("m{model}"), "x")).collect();
    let models = fixture.text(models).unwrap_err().to_string();
    assert!(models.contains("10001 models and samples, at most 10000"), "{models}");
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

/// Which error it is.
fn kind(error: &PredictionsError) -> &'static str {
    match error {
        PredictionsError::Io(_) => "io",
        PredictionsError::Absent(_) => "absent",
        PredictionsError::Stdin => "stdin",
        PredictionsError::Kind(_) => "kind",
        PredictionsError::TooLarge { .. } => "too large",
        PredictionsError::Malformed { .. } => "malformed",
        PredictionsError::Field { field, .. } => field,
        PredictionsError::Conflict { .. } => "conflict",
        PredictionsError::Nothing { .. } => "nothing",
        PredictionsError::NoTask { .. } => "no task",
        PredictionsError::Nested { .. } => "nested",
        PredictionsError::Unmatched { .. } => "unmatched",
        PredictionsError::OtherName { .. } => "other name",
        PredictionsError::Foreign { .. } => "foreign",
        PredictionsError::NoContent { .. } => "no content",
    }
}

#[test]
fn malformed_files_are_typed_errors_that_name_the_file() {
    let fixture = Fixture::new();
    let of = |field: &str| format!("{{\"instance_id\":\"t1\",{field}}}").into_bytes();
    let text = |text: &str| text.as_bytes().to_vec();
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let long = "m".repeat(MOST_MODEL_CHARACTERS + 1);
    let texts: Vec<(Vec<u8>, &str)> = vec![
        (text(""), "nothing"),
        (text("  \n\n"), "nothing"),
        (text("\u{feff}"), "nothing"),
        (text("[]"), "nothing"),
        (text("{}"), "nothing"),
        (text("null"), "malformed"),
        (text("1"), "malformed"),
        (text("\"gold\""), "malformed"),
        (text("true"), "malformed"),
        (text("\0"), "malformed"),
        (vec![b'\0'; 4096], "malformed"),
        (wide("{\"instance_id\":\"t1\"}"), "malformed"),
        (wide("\u{feff}{\"instance_id\":\"t1\"}"), "malformed"),
        (text("\u{feff}\u{feff}{\"instance_id\":\"t1\"}"), "malformed"),
        (b"\x1f\x8b\x08\0\0\0\0\0".to_vec(), "malformed"),
        (text("instance_id,model_patch\nt1,x\n"), "malformed"),
        (text("- instance_id: t1\n"), "malformed"),
        // Cut off, or of more than one piece.
        (text("{"), "malformed"),
        (text("["), "malformed"),
        (text("}"), "malformed"),
        (text("{\"instance_id\":\"t1\""), "malformed"),
        (text("{\"instance_id\":\"t"), "malformed"),
        (text("{\"instance_id\":\"t1\",\"model_patch\":\"a\\"), "malformed"),
        (text("{\"instance_id\":\"t1\"}\n{\"instance_id\":\"t2\""), "malformed"),
        (text("[{\"instance_id\":\"t1\"}"), "malformed"),
        (text("[{\"instance_id\":\"t1\"},"), "malformed"),
        (text("[{\"instance_id\":\"t1\"},]"), "malformed"),
        (text("[{\"instance_id\":\"t1\"}{\"instance_id\":\"t2\"}]"), "malformed"),
        (text("[{\"instance_id\":\"t1\"}]]"), "malformed"),
        (text("[{\"instance_id\":\"t1\"}]\n{\"instance_id\":\"t2\"}"), "malformed"),
        (text("{\"t1\":{}} x"), "malformed"),
        (text("{\"t1\":{},}"), "malformed"),
        (text("{\"instance_id\":\"t1\"}{\"instance_id\":\"t2\"}"), "malformed"),
        (text("{\"instance_id\":\"t1\"}\r{\"instance_id\":\"t2\"}\r"), "malformed"),
        (text("{\"instance_id\":\"t1\"},\n{\"instance_id\":\"t2\"}\n"), "malformed"),
        (text("{\"instance_id\":\"t1\"}\n// a comment\n"), "malformed"),
        (text("{'instance_id':'t1'}"), "malformed"),
        (text("{instance_id:\"t1\"}"), "malformed"),
        // Other types than they should have.
        (text("[1]"), "malformed"),
        (text("[null]"), "malformed"),
        (text("[{}]"), "no task"),
        (text("[\"t1\"]"), "malformed"),
        (text("{\"t1\"}"), "malformed"),
        (text("{\"t1\":}"), "malformed"),
        (text("{\"t1\":1}"), "malformed"),
        (text("{\"t1\":\"patch\"}"), "model_patch"),
        (text("{\"t1\":[\"patch\"]}"), "malformed"),
        (text("{\"instance_id\":1}"), "malformed"),
        (text("{\"instance_id\":[\"t1\"]}"), "malformed"),
        (text("{\"instance_id\":null}\n{}"), "no task"),
        (text("{\"instance_id\":\"t1\"}\n{\"model_patch\":\"x\"}"), "no task"),
        (text("{\"instance_id\":\"t1\"}\n[]"), "malformed"),
        (of("\"model_patch\":1"), "malformed"),
        (of("\"model_patch\":[\"a\",\"b\"]"), "malformed"),
        (of("\"model_patch\":{}"), "malformed"),
        (of("\"model_patch\":true"), "malformed"),
        (of("\"model_file\":0"), "malformed"),
        (of("\"model_name_or_path\":7"), "malformed"),
        // Texts that are none.
        (of("\"model_patch\":\"\\ud800\""), "malformed"),
        (of("\"model_patch\":\"\\udc00\\ud800\""), "malformed"),
        (of("\"model_patch\":\"\\u12\""), "malformed"),
        (of("\"model_patch\":\"\\x41\""), "malformed"),
        (of("\"model_patch\":\"a\tb\""), "malformed"),
        (of("\"model_patch\":\"a\0b\""), "malformed"),
        ([b"{\"instance_id\":\"t1\",\"model_patch\":\"", &b"\xff\"}"[..]].concat(), "malformed"),
        ([b"{\"instance_id\":\"t1\",\"model_patch\":\"", &b"\xc0\x80\"}"[..]].concat(), "malformed"),
        (text("{\"instance_id\":\"t1\",\"model_patch\":\"a\nb\"}"), "malformed"),
        // Twice, or against itself.
        (of("\"instance_id\":\"t1\""), "malformed"),
        (of("\"model_patch\":\"x\",\"model_patch\":\"y\""), "malformed"),
        (of("\"model_patch\":\"x\",\"model_file\":\"y\""), "model_file"),
        (text("{\"t1\":{\"instance_id\":\"t2\"}}"), "instance_id"),
        (text("{\"t1\":{\"model_patch\":\"x\"},\"t1\":{\"model_patch\":\"y\"}}"), "conflict"),
        (
            text("[{\"instance_id\":\"t1\",\"model_patch\":\"x\"},{\"task_id\":\"t1\",\"model_file\":\"x\"}]"),
            "conflict",
        ),
        (text("{\"instance_id\":\"t3\",\"model_patch\":\"x\"}\n{\"instance_id\":\"t3\"}"), "conflict"),
        (text("{\"t1\":{\"cost_usd\":1e308},\"t1\":{\"cost_usd\":0}}"), "conflict"),
        (text("{\"t1\":{\"tokens\":7},\"t1\":{}}"), "conflict"),
        // Numbers that are none, or too large.
        (of("\"cost_usd\":-1"), "cost_usd"),
        (of("\"cost_usd\":-1e-300"), "cost_usd"),
        (of("\"cost_usd\":1e999"), "malformed"),
        (of("\"cost_usd\":NaN"), "malformed"),
        (of("\"cost_usd\":Infinity"), "malformed"),
        (of("\"cost_usd\":\"1\""), "malformed"),
        (of("\"cost_usd\":01"), "malformed"),
        (of("\"tokens\":-1"), "malformed"),
        (of("\"tokens\":1.5"), "malformed"),
        (of("\"tokens\":18446744073709551616"), "malformed"),
        (of(&format!("\"tokens\":{}", "9".repeat(100_000))), "malformed"),
        // Names that are none.
        (of("\"model_name_or_path\":\"\""), "model_name_or_path"),
        (of("\"model_name_or_path\":\" \""), "model_name_or_path"),
        (of("\"model_name_or_path\":\"gold\""), "model_name_or_path"),
        (of("\"model_name_or_path\":\" gold \""), "model_name_or_path"),
        (of("\"model_name_or_path\":\"a\\nb\""), "model_name_or_path"),
        (of("\"model_name_or_path\":\"a\\u0000\""), "model_name_or_path"),
        (of("\"model_name_or_path\":\"a\\u009b2J\""), "model_name_or_path"),
        (of(&format!("\"model_name_or_path\":\"{long}\"")), "model_name_or_path"),
        // Deep ones.
        (text(&"[".repeat(100_000)), "malformed"),
        (text(&"{\"a\":".repeat(100_000)), "malformed"),
        (of(&format!("\"model_patch\":{}", "[".repeat(100_000))), "malformed"),
        (of(&format!("\"model_patch\":{}{}", "[".repeat(100_000), "]".repeat(100_000))), "malformed"),
        (of(&format!("\"more\":{}{}", "[".repeat(100_000), "}".repeat(100_000))), "malformed"),
    ];
    for (text, expected) in texts {
        let shown = String::from_utf8_lossy(&text[..text.len().min(80)]).into_owned();
        let error = fixture.text(&text).map(|found| panic!("{shown}: {found:?}")).unwrap_err();
        assert_eq!(kind(&error), expected, "{shown}: {error}");
        let said = error.to_string();
        assert!(said.contains("p.json") && said.len() < 600, "{shown}: {said}");
        assert!(error.hint().is_some());
    }
    let error = fixture.text("{\"instance_id\":\"t1\"}\n\n{\"instance_id\":\"t2\",}").unwrap_err();
    assert!(error.to_string().contains("line 3"), "{error}");
}

/// What is strange and can be read is counted, each once: models, unknown ids, unselected ones, repeated ones.
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
    assert!(matches!(fixture.read(&fixture.directory.path().join("other")), Err(PredictionsError::Nothing { .. })));
}

#[test]
fn missing_submissions_name_the_unknown_key_and_the_nearest_known_one() {
    let fixture = Fixture::new();
    let line = "{\"instance_id\":\"t1\",\"model_name_or_path\":\"m\",\"prediction\":\"x\"}\n";
    let error = fixture.text(line.to_owned() + &line.replace("t1", "t2")).unwrap_err();
    assert_eq!(error.exit_status(), ExitStatus::BadInput);
    let said = error.to_string();
    assert!(said.contains("line 1") && said.contains("`prediction`") && said.contains("1 prediction more"), "{said}");
    assert!(error.hint().unwrap().contains("rename `prediction` to `model_patch`"), "{error}");
    let error = fixture.text("{\"instance_id\":\"t1\"}").unwrap_err();
    assert!(error.hint().unwrap().contains("\"model_patch\": null"), "{error}");
}

#[test]
fn files_of_other_harnesses_are_told_by_name() {
    let fixture = Fixture::new();
    let multi = "{\"org\":\"o\",\"repo\":\"n\",\"number\":7,\"fix_patch\":\"--- a\"}";
    for (text, format) in [
        (multi.to_owned(), Foreign::MultiSweBench),
        (format!("{multi}\n{multi}\n"), Foreign::MultiSweBench),
        (format!("[{multi}]"), Foreign::MultiSweBench),
        ("{\"instance_id\":\"t1\",\"test_result\":{\"git_patch\":\"x\"}}".to_owned(), Foreign::OpenHands),
        ("[{\"instance_id\":\"t1\",\"patch\":\"x\",\"prefix\":\"m\"}]".to_owned(), Foreign::SweBenchPro),
        ("{\n\"project_name\": \"x\",\n\"tracks\": {}}".to_owned(), Foreign::Published),
    ] {
        let error = fixture.text(&text).unwrap_err();
        assert!(matches!(error, PredictionsError::Foreign { format: found, .. } if found == format), "{text}: {error}");
    }
    // What has a submission is read, whatever else it has.
    let own = multi.replace("fix_patch", "model_patch").replace("\"org\"", "\"instance_id\":\"t1\",\"org\"");
    assert_eq!(fixture.text(format!("[{own}]")).unwrap().models["unnamed"].len(), 1);
}

#[test]
fn texts_that_begin_as_a_diff_may_stand_under_a_tasks_id() {
    let fixture = Fixture::new();
    let diff = "--- a/x\n+++ b/x\n";
    let text = serde_json::json!({"t1": diff, "t2": {"model_patch": format!("Here:\n```diff\n{diff}```\n")}});
    let mut predictions = fixture.text(text.to_string()).unwrap();
    assert_eq!(patch_of(&predictions, "unnamed", "t1"), Content::Patch(diff.into()));
    assert_eq!(predictions.strip_fences(), 1);
    assert_eq!(patch_of(&predictions, "unnamed", "t2"), Content::Patch(diff.into()));
    let removed = |id: &str| predictions.models["unnamed"][&id.parse().unwrap()].fence_removed;
    assert_eq!((removed("t1"), removed("t2")), (false, true));
    assert!(fixture.text("{\"t1\":\"fixed it\"}").unwrap_err().to_string().contains("does not begin as a diff"));
}

#[test]
fn truncated_lines_are_told_as_such() {
    let fixture = Fixture::new();
    let line = "{\"instance_id\":\"t1\",\"model_patch\":\"x\"}\n";
    for text in [format!("{line}{}", &line[..30]), line[..30].to_owned(), format!("[{line},\n{}", &line[..30])] {
        let said = fixture.text(&text).unwrap_err().to_string();
        assert!(said.contains("p.json") && said.contains(" line ") && said.contains("truncated"), "{said}");
    }
    let said = fixture.text(format!("{line}7\n")).unwrap_err().to_string();
    assert!(said.contains("line 2") && said.contains("expected an object with") && !said.contains("Raw"), "{said}");
}

#[test]
fn what_is_too_large_is_kept_as_a_fact_and_not_as_bytes() {
    let fixture = Fixture::new();
    let huge = "x".repeat(crate::submission::MOST_SUBMISSION_BYTES + 1);
    let predictions = fixture.text(format!("{{\"instance_id\":\"t1\",\"model_patch\":\"{huge}\"}}")).unwrap();
    let digest = Some(crate::digest::Digest::of(huge.as_bytes()));
    let known = Content::TooLarge { bytes: huge.len() as u64, digest };
    assert_eq!(patch_of(&predictions, "unnamed", "t1"), known);
    // Two of one length are one only where their bytes are.
    let line = |patch: &str| format!("{{\"instance_id\":\"t1\",\"model_patch\":\"{patch}\"}}\n");
    let same = fixture.text(line(&huge) + &line(&huge)).unwrap();
    assert_eq!((same.repeated, patch_of(&same, "unnamed", "t1")), (1, known));
    let error = fixture.text(line(&huge) + &line(&huge.replace('x', "y"))).unwrap_err().to_string();
    assert!(error.contains("line 1") && error.contains("line 2"), "{error}");
}

#[test]
fn equal_bytes_of_another_cost_are_an_error_that_names_both_lines() {
    let fixture = Fixture::new();
    for (one, other, field) in [
        ("\"cost_usd\":1", "\"cost_usd\":2", "`cost_usd`"),
        ("\"cost_usd\":1", "\"more\":1", "`cost_usd`"),
        ("\"cost_usd\":1,\"tokens\":5", "\"cost_usd\":1,\"tokens\":6", "`tokens`"),
    ] {
        let line = |more: &str| format!("{{\"instance_id\":\"t1\",\"model_patch\":\"x\",{more}}}\n");
        let error = fixture.text(line(one) + "\n" + &line(other)).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("line 1") && said.contains("line 3") && said.contains(field), "{said}");
        assert_eq!(kind(&error), "conflict");
    }
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
        let _ = Fixture::new().text(bytes);
    }

    /// Every way of damaging a good file ends in predictions or an error, never in lost ones: another reader of JSON finds
    /// as many in it.
    #[test]
    fn damaged_files_never_lose_predictions_silently(form in 0usize..3, damages in damages()) {
        let ours = ["t1", "t2", "t3", "t4"].map(|id| {
            format!("\"model_name_or_path\":\"m {id}\",\"model_patch\":\"--- a\\n+++ b\\n\",\"instance_id\":\"{id}\"")
        });
        let good = match form {
            0 => ours.map(|one| format!("{{{one}}}\n")).concat(),
            1 => format!("[{}]", ours.map(|one| format!("{{{one}}}")).join(",\n")),
            _ => format!("{{{}}}", ours.map(|one| format!("\"{}\":{{{one}}}", &one[one.len() - 3..one.len() - 1])).join(",\n")),
        };
        let bytes = damaged(good.as_bytes(), &damages);
        let tasks = [task("t1"), task("t2"), task("t3")];
        let path = Path::new("p.json");
        let mut collector = Collector::new(path, Selection { known: &tasks, selected: &tasks[..2] }, Several::default());
        let read = json::read(path, &bytes, &mut collector).and_then(|()| collector.finish());
        if let Ok(predictions) = read {
            let found: usize = predictions.models.values().map(BTreeMap::len).sum();
            let counted = found + predictions.unknown.len() + predictions.not_selected + predictions.repeated;
            let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
            let whole: Result<Values, _> = serde_json::from_slice(bytes);
            let lines = || serde_json::Deserializer::from_slice(bytes).into_iter::<serde::de::IgnoredAny>().filter(Result::is_ok).count();
            // An object in one line may be either a prediction or a dictionary of some.
            let expected = [whole.map_or(0, |Values(number)| number), lines()];
            proptest::prop_assert!(expected.contains(&counted), "{counted}: {}", String::from_utf8_lossy(bytes));
        }
    }
}
