use proptest::prelude::*;
use serde_json::json;

use super::*;

const OLD: &str = "7efa1bc42908926f441b14cdf6291c82f0504081";
const NEW: &str = "f43b283a6862ddf0306c643e19b433056984688f";
const ANCHOR: &str = "6e81e4e4989cd57c332a7ece3b44bd7b21aa66c5918d8b9d64da5e21cd54953a";

fn task_value() -> Value {
    json!({
        "task_id": "owner_name-1__BasicTests_1",
        "rev1": OLD,
        "rev2": NEW,
        "rev1_date": "2020-09-19",
        "rev2_date": "2020-09-19",
        "git_diff_url": format!("https://example.org/owner/name/compare/{OLD}...{NEW}"),
        "test_file": "src/test/java/tests/BasicTests.java",
        "test_methods": ["BasicTests#iterate"],
        "dependency_methods": ["Dotenv$Impl#get", "Dotenv$Impl#get", "Other#<init>"],
        "dependency_method_urls": {"Dotenv$Impl#get": format!("https://example.org/x#diff-{ANCHOR}R110")},
        "n_changes": 1,
        "something_new": {"is": ["tolerated"]},
    })
}

fn repository_value(tasks: Value) -> Value {
    json!({
        "project_name": "owner_name-1",
        "display_name": "owner/name",
        "github_url": "https://github.com/owner/name",
        "git_clone_url": "https://github.com/owner/name.git",
        "java_version": 11,
        "unknown": null,
        "tracks": {"test_update": [], "test_generation": tasks},
    })
}

fn read_text(name: &str, text: &str) -> Result<Vec<PublishedRepository>, PublishedError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    fs::write(&path, text).unwrap();
    read(&[path])
}

fn read_value(value: &Value) -> Result<Vec<PublishedRepository>, PublishedError> {
    read_text("data.json", &value.to_string())
}

#[test]
fn a_published_file_is_read() {
    let repositories = read_value(&repository_value(json!([task_value()]))).unwrap();
    let [repository] = &repositories[..] else { panic!("{repositories:?}") };
    assert_eq!((repository.name.as_str(), repository.java_version), ("owner/name", 11));
    let [task] = &repository.tasks[..] else { panic!("{repository:?}") };
    assert_eq!(task.track, Track::TestGeneration);
    assert_eq!(task.focal_methods.len(), 2, "a method that stands there twice counts once");
    let anchor = task.focal_methods[0].anchor.as_ref().unwrap();
    assert_eq!((anchor.path_sha256.as_str(), anchor.side, anchor.line), (ANCHOR, Side::New, 110));
    assert_eq!(task.focal_methods[1].anchor, None);
}

#[test]
fn json_lines_are_read() {
    let mut line = task_value();
    for (key, value) in repository_value(json!([])).as_object().unwrap() {
        line[key] = value.clone();
    }
    line["track"] = "test_update".into();
    line["old_test_code"] = "class BasicTests {}".into();
    let repositories = read_text("release.jsonl", &format!("{line}\n\n")).unwrap();
    assert_eq!(repositories[0].tasks[0].track, Track::TestUpdate);
    line["track"] = "else".into();
    let error = read_text("release.jsonl", &format!("\n{line}\n")).unwrap_err();
    assert!(error.to_string().contains("task on line 2: the field `track` is not"), "{error}");
}

#[test]
fn missing_and_wrong_fields_are_named_with_their_task() {
    let id = "owner_name-1__BasicTests_1";
    let diff = format!("https://example.org/x/compare/{NEW}...{OLD}");
    let (ups, deep) = ("../".repeat(4) + "A.java", "a/".repeat(600) + "A.java");
    for (field, value, expected) in [
        ("rev1", Value::Null, "`rev1` is not a text"),
        ("rev1", "HEAD".into(), "`HEAD` is no full commit hash"),
        ("rev1", "--upload-pack=x".into(), "is no full commit hash"),
        ("rev1", NEW.into(), "the same commit"),
        ("git_diff_url", diff.into(), "compares other commits"),
        ("rev1_date", "2020-09-20".into(), "is after `rev2_date`"),
        ("rev1_date", "2020-9-2".into(), "is no date"),
        ("rev1_date", "2020-09-19T00:00".into(), "is no date"),
        ("test_file", "/etc/BasicTests.java".into(), "is no relative path"),
        ("test_file", ups.into(), "is no relative path"),
        ("test_file", deep.into(), "is no relative path"),
        ("test_file", ".git/BasicTests.java".into(), "is no relative path"),
        ("test_file", "a\0/BasicTests.java".into(), "is no relative path"),
        ("test_file", "src/BasicTests.kt".into(), "is no .java file"),
        ("test_file", "src/OtherTests.java".into(), "is not of `src/OtherTests.java`"),
        ("test_methods", json!([]), "is empty"),
        ("test_methods", json!(["BasicTests#a", "BasicTests#a"]), "stands there twice"),
        ("test_methods", json!(["BasicTests"]), "is no method"),
        ("test_methods", json!([1]), "is not a list of texts"),
        ("test_methods", json!("BasicTests#a"), "is not a list of texts"),
        ("dependency_methods", json!(["$(id)#a"]), "is no method"),
        ("dependency_method_urls", json!({"Else#get": "x"}), "names Else#get"),
        ("dependency_method_urls", json!({"Other#<init>": "x"}), "is no address"),
        ("dependency_method_urls", json!({"Other#<init>": format!("#diff-{ANCHOR}X1")}), "is no address"),
        ("dependency_method_urls", json!({"Other#<init>": format!("#diff-{ANCHOR}R0")}), "is no address"),
        ("dependency_method_urls", json!({"Other#<init>": format!("#diff-{ANCHOR}R+1")}), "is no address"),
        ("test_method_urls", json!({"BasicTests#iterate": format!("#diff-{ANCHOR}R1")}), "is of another file"),
    ] {
        let mut task = task_value();
        task[field] = value.clone();
        let error = read_value(&repository_value(json!([task]))).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains(id) && error.contains("data.json"), "{value}: {error}");
    }
    for field in ["rev1", "rev2", "rev1_date", "rev2_date", "test_file", "test_methods", "dependency_methods"] {
        let mut task = task_value();
        task.as_object_mut().unwrap().remove(field);
        let error = read_value(&repository_value(json!([task]))).unwrap_err().to_string();
        assert!(error.contains(&format!("task `{id}`: the field `{field}` is missing")), "{error}");
    }
}

#[test]
fn hostile_ids_never_reach_a_terminal_or_path() {
    for id in ["../../x", "-x", "a\u{1b}[2J", "a\0", ""] {
        let mut task = task_value();
        task["task_id"] = id.into();
        let error = read_value(&repository_value(json!([task]))).unwrap_err().to_string();
        assert!(error.contains("is no task id") && !error.chars().any(char::is_control), "{error:?}");
    }
    for (field, value) in [
        ("display_name", json!("../x")),
        ("display_name", json!("other/name")),
        ("git_clone_url", json!("ext::sh -c x")),
        ("git_clone_url", json!("--upload-pack=x")),
        ("java_version", json!(0)),
        ("java_version", json!("x")),
        ("tracks", json!([])),
        ("tracks", json!({"test_update": []})),
        ("tracks", json!({"test_update": [[]], "test_generation": []})),
    ] {
        let mut repository = repository_value(json!([]));
        repository[field] = value;
        let error = read_value(&repository).unwrap_err().to_string();
        assert!(error.contains("data.json") && error.contains(field), "{error}");
    }
}

#[test]
fn the_same_task_twice_is_an_error_and_files_may_add_up() {
    let error = read_value(&repository_value(json!([task_value(), task_value()]))).unwrap_err();
    assert!(matches!(error.problem, Problem::DuplicateTask { .. }), "{error}");

    let directory = tempfile::tempdir().unwrap();
    let mut second = task_value();
    second["task_id"] = "another".into();
    fs::write(directory.path().join("a.json"), repository_value(json!([task_value()])).to_string()).unwrap();
    fs::write(directory.path().join("b.json"), repository_value(json!([second])).to_string()).unwrap();
    fs::write(directory.path().join("README"), "no data").unwrap();
    let paths = [directory.path().to_owned()];
    assert_eq!(read(&paths).unwrap()[0].tasks.len(), 2);

    let mut other = repository_value(json!([]));
    other["java_version"] = 17.into();
    fs::write(directory.path().join("c.json"), other.to_string()).unwrap();
    assert!(matches!(read(&paths).unwrap_err().problem, Problem::Contradiction(_)));
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(read(&[empty.path().to_owned()]).unwrap_err().problem, Problem::NoFiles));
}

proptest! {
    #[test]
    fn any_bytes_are_an_error_or_data(text in "\\PC*") {
        let _ = read_text("data.json", &text);
    }

    #[test]
    fn any_values_are_an_error_or_a_safe_task(field in "rev1|test_file|task_id|test_methods", value in "\\PC{0,40}") {
        let mut task = task_value();
        task[field] = value.into();
        if let Ok(repositories) = read_value(&repository_value(json!([task]))) {
            let task = &repositories[0].tasks[0];
            prop_assert!(!task.id.as_str().contains('/') && !task.test_file.as_str().contains(".."));
        }
    }
}
