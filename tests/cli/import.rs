//! `import`: what published data becomes, and that hostile data does no harm.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::command::CommandLine;

const OLD: &str = "7efa1bc42908926f441b14cdf6291c82f0504081";
const NEW: &str = "f43b283a6862ddf0306c643e19b433056984688f";

fn task(id: &str) -> Value {
    json!({
        "task_id": id,
        "rev1": OLD,
        "rev2": NEW,
        "rev1_date": "2020-09-19",
        "rev2_date": "2020-09-20",
        "test_file": "src/test/java/ATest.java",
        "test_methods": ["ATest#first", "ATest#second"],
        "dependency_methods": ["A#get"],
        "dependency_method_urls": {"A#get": format!("https://example.org/#diff-{}R7", "0".repeat(64))},
    })
}

fn repository(name: &str, java_version: u32, update: &[Value], generation: &[Value]) -> Value {
    json!({
        "display_name": name,
        "github_url": format!("https://github.com/{name}"),
        "git_clone_url": format!("https://github.com/{name}.git"),
        "java_version": java_version,
        "tracks": {"test_update": update, "test_generation": generation},
    })
}

/// Writes the data of two repositories.
pub(super) fn write_published(line: &CommandLine) {
    let first = repository("first/one", 8, &[task("first_1")], &[task("first_2")]);
    line.write("published/first.json", &first.to_string());
    let second = repository("second/two", 16, &[], &[task("second_1")]);
    line.write("published/second.json", &second.to_string());
}

#[test]
fn published_data_becomes_manifests_and_tasks() {
    let line = CommandLine::new();
    write_published(&line);
    assert_snapshot!(line.run(&["import", "published", "--dry-run"]), @r"
    exit 0
    ---- stdout
    repository  jdk  update  generation  manifest
    first/one   8    1       1           new
    second/two  17   0       1           new
    3 tasks (1 update, 2 generation) of 2 repositories: 3 new, 0 changed, 0 kept
    ---- stderr
    nothing was written: this is a dry run
    ");
    assert_snapshot!(line.run(&["import", "published"]), @r"
    exit 0
    ---- stdout
    repository  jdk  update  generation  manifest
    first/one   8    1       1           new
    second/two  17   0       1           new
    3 tasks (1 update, 2 generation) of 2 repositories: 3 new, 0 changed, 0 kept
    ");
    let manifest = fs_err::read_to_string(line.path().join("data/manifests/second__two.toml")).unwrap();
    assert_snapshot!("manifest", manifest);
    let own = manifest.replace("# jdk = 11", "jdk = 21 # mine");
    line.write("data/manifests/second__two.toml", &own);
    assert_snapshot!(line.run(&["import", "published", "--format", "json"]), @r#"
    exit 0
    ---- stdout
    {"repository":"first/one","java_version":8,"jdk":8,"test_update":1,"test_generation":1,"manifest":"unchanged","new":0,"changed":0,"kept":2,"removed":0}
    {"repository":"second/two","java_version":16,"jdk":17,"test_update":0,"test_generation":1,"manifest":"unchanged","new":0,"changed":0,"kept":1,"removed":0}
    {"schema":1,"repositories":2,"tasks":3,"test_update":1,"test_generation":2,"new":0,"changed":0,"kept":3,"removed":0}
    "#);
    assert_eq!(fs_err::read_to_string(line.path().join("data/manifests/second__two.toml")).unwrap(), own);
    assert_snapshot!(line.run(&["import", "published/first.json", "--manifests", "elsewhere"]), @r"
    exit 0
    ---- stdout
    repository  jdk  update  generation  manifest
    first/one   8    1       1           new
    2 tasks (1 update, 1 generation) of 1 repository: 0 new, 0 changed, 2 kept
    ---- stderr
    the manifests are in `elsewhere`; other commands read those in `[DIRECTORY]/data/manifests`
    ");
    assert!(line.path().join("elsewhere/first__one.toml").is_file());
}

#[test]
fn tasks_of_earlier_imports_stay() {
    let line = CommandLine::new();
    let import = |update: &[Value], generation: &[Value], options: &[&str]| {
        line.write("data.json", &repository("first/one", 8, update, generation).to_string());
        line.run(&[&["import", "data.json"], options].concat())
    };
    let ids = || {
        let listed = line.run(&["tasks", "list", "--format", "json"]);
        let ids = listed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        ids.filter_map(|task| Some(task["id"].as_str()?.to_owned())).collect::<Vec<_>>()
    };
    assert!(import(&[task("first_1")], &[], &[]).contains(": 1 new, 0 changed, 0 kept\n"));
    assert!(import(&[], &[task("first_2")], &[]).contains(": 1 new, 0 changed, 1 kept\n"));
    assert_eq!(ids(), ["first_1", "first_2"]);
    let mut other = task("first_2");
    other["test_methods"] = json!(["ATest#first"]);
    assert!(import(&[], &[other.clone()], &["--dry-run"]).contains(": 0 new, 1 changed, 1 kept\n"));
    assert!(import(&[], &[other.clone()], &[]).contains(": 0 new, 1 changed, 1 kept\n"));
    assert!(import(&[], &[other], &[]).contains(": 0 new, 0 changed, 2 kept\n"));
    assert_eq!(ids(), ["first_1", "first_2"]);
    assert!(import(&[task("first_3")], &[], &["--replace"]).contains(": 1 new, 0 changed, 0 kept, 2 removed\n"));
    assert_eq!(ids(), ["first_3"]);
    // What can't be read holds nothing that could stay, and only those who say so lose it.
    line.write("data/tasks/first__one.json", "[");
    let refused = import(&[task("first_3")], &[], &[]);
    assert!(
        refused.starts_with("exit 4\n") && refused.contains("`testevo-sandbox import --replace DATA`"),
        "{refused}"
    );
    assert!(import(&[task("first_3")], &[], &["--replace"]).starts_with("exit 0\n"));
    assert_eq!(ids(), ["first_3"]);
}

#[test]
fn an_id_is_one_tasks_in_all_repositories() {
    let line = CommandLine::new();
    line.write("first.json", &repository("first/one", 8, &[task("same_1")], &[]).to_string());
    line.write("second.json", &repository("second/two", 8, &[task("same_1")], &[]).to_string());
    line.write("moved.json", &repository("first/one", 8, &[task("first_2")], &[]).to_string());
    assert!(line.run(&["import", "first.json"]).starts_with("exit 0\n"));
    let refused = line.run(&["import", "second.json"]);
    assert_snapshot!(refused, @r"
    exit 4
    ---- stderr
    error: second/two can't have the task same_1: `[DIRECTORY]/data/tasks/first__one.json` has one of this id
    hint: nothing was imported; leave the task out of the data, or import into another `--data-dir`
    ");
    assert_eq!(line.run(&["import", "second.json", "--dry-run"]), refused);
    assert!(line.run(&["tasks", "list"]).starts_with("exit 0\n"));
    assert!(!line.path().join("data/manifests/second__two.toml").exists());
    // A task that stays is there as much as one that is given.
    assert!(line.run(&["import", "moved.json", "second.json"]).starts_with("exit 4\n"));
    assert!(line.run(&["import", "moved.json", "second.json", "--replace"]).starts_with("exit 0\n"));
    // An earlier program wrote both files.
    let text = fs_err::read_to_string(line.path().join("data/tasks/second__two.json")).unwrap();
    line.write("data/tasks/first__one.json", &text.replace("second/two", "first/one"));
    assert_snapshot!(line.run(&["tasks", "list"]), @r"
    exit 4
    ---- stderr
    error: the task same_1 is in `[DIRECTORY]/data/tasks/first__one.json` and in `[DIRECTORY]/data/tasks/second__two.json`
    hint: remove one of the two files, and import its data again without that task
    ");
}

#[test]
fn failures_name_file_and_task_and_write_nothing() {
    let line = CommandLine::new();
    write_published(&line);
    let mut wrong = task("bad_1");
    wrong["rev2"] = OLD.into();
    line.write("published/zz.json", &repository("bad/one", 8, &[wrong], &[]).to_string());
    assert_snapshot!(line.run(&["import", "published"]), @r"
    exit 4
    ---- stderr
    error: `published/zz.json`, task `bad_1`: contradiction: `rev1` and `rev2` are the same commit
    hint: nothing was imported; decide which one is right, and correct or leave out the other
    ");
    line.write("published/zz.json", &repository("bad/one", 8, &[task("first_1")], &[]).to_string());
    assert_snapshot!(line.run(&["import", "published"]), @r"
    exit 4
    ---- stderr
    error: `published/zz.json`, task `first_1`: the same id is in `published/first.json` too
    hint: nothing was imported; decide which one is right, and correct or leave out the other
    ");
    line.write("published/zz.json", &repository("bad/one", 99, &[], &[]).to_string());
    assert_snapshot!(line.run(&["import", "published"]), @r"
    exit 4
    ---- stderr
    error: bad/one needs Java 99; there are development kits for 8, 11, 17 and 21
    hint: leave the repository's file out of the import
    ");
    assert_snapshot!(line.run(&["import", "absent.json"]), @r"
    exit 4
    ---- stderr
    error: `absent.json`: failed to open file `absent.json`: No such file or directory (os error 2)
    hint: name files, or directories of files, as the benchmark publishes them
    ");
    line.write("published/zz.json", "{\"display_name\": ");
    assert_snapshot!(line.run(&["import", "published/zz.json"]), @r"
    exit 4
    ---- stderr
    error: `published/zz.json`: it is truncated: it ends within a value
    hint: name the published per-repository .json files, a .jsonl release, or a directory of them
    ");
    let written: Vec<String> = line.files().into_iter().filter(|file| file.contains("__")).collect();
    assert_eq!(written, Vec::<String>::new());
}

#[test]
fn sources_from_elsewhere_are_told_of() {
    let line = CommandLine::new();
    let mut moved = repository("first/one", 8, &[task("first_1")], &[]);
    for (url, told) in [
        ("https://github.com/First/One", false),
        ("ssh://git@github.com/first/one.git/", false),
        ("https://mirror.example/first/one.git", true),
        ("https://github.com/first/two.git", true),
        ("file:///srv/github.com/first/one.git", true),
    ] {
        moved["git_clone_url"] = url.into();
        line.write("data.json", &moved.to_string());
        let text = line.run(&["import", "data.json"]);
        let warning =
            format!("warning: first/one is cloned from {url}: neither its `github_url` nor its name says so\n");
        assert!(text.starts_with("exit 0") && text.contains(&warning) == told, "{url}: {text}");
        // Without that address the name is all there is to go by.
        let mut homeless = moved.clone();
        homeless.as_object_mut().unwrap().remove("github_url");
        line.write("data.json", &homeless.to_string());
        let text = line.run(&["import", "data.json"]);
        assert!(text.starts_with("exit 0") && text.contains(&warning) == told, "{url}: {text}");
    }
}

#[test]
fn what_stands_twice_is_refused() {
    let line = CommandLine::new();
    let text = repository("first/one", 8, &[task("first_1")], &[]).to_string();
    line.write("data.json", &text.replace("\"rev2\":", "\"rev1\":\"0\",\"rev2\":"));
    assert_snapshot!(line.run(&["import", "data.json"]), @r"
    exit 4
    ---- stderr
    error: `data.json`: contradiction: the field `rev1` stands twice in one object
    hint: nothing was imported; decide which one is right, and correct or leave out the other
    ");
}

#[test]
fn manifests_elsewhere_are_as_the_caller_wants_files() {
    use std::os::unix::fs::PermissionsExt as _;
    for (umask, directory, file) in [("077", 0o700, 0o600), ("002", 0o775, 0o664)] {
        let line = CommandLine::new();
        write_published(&line);
        let text = line.run_under(umask, &[], &["import", "published", "--manifests", "mine"]);
        assert!(text.starts_with("exit 0\n"), "{text}");
        let mode = |path: &str| fs_err::metadata(line.path().join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("mine"), mode("mine/first__one.toml")), (directory, file), "{umask}");
    }
}

#[test]
fn directories_are_not_searched_for_more() {
    let line = CommandLine::new();
    line.write("published/deeper/first.json", &repository("first/one", 8, &[], &[]).to_string());
    assert_snapshot!(line.run(&["import", "published"]), @r"
    exit 4
    ---- stderr
    error: `published`: it has no file that ends in .json or .jsonl
    hint: name the published per-repository .json files, a .jsonl release, or a directory of them; directories in it are not looked into
    ");
}

#[test]
fn hostile_data_does_no_harm() {
    let line = CommandLine::new();
    line.write("elsewhere/kept", "");
    let hostile_task = |field: &str, value: Value| {
        let mut task = task("x_1");
        task[field] = value;
        repository("owner/name", 8, &[task], &[])
    };
    let hostile_repository = |field: &str, value: Value| {
        let mut repository = repository("owner/name", 8, &[task("x_1")], &[]);
        repository[field] = value;
        repository
    };
    let touch = "ext::sh -c touch% harm";
    let before = line.files();
    for (index, value) in [
        hostile_task("task_id", json!("../../elsewhere/kept")),
        hostile_task("task_id", json!("-rf")),
        hostile_task("task_id", json!("a\u{1b}]0;owned\u{7}\u{9b}2J")),
        hostile_task("task_id", json!("a\0b")),
        hostile_task("rev1", json!("--upload-pack=touch harm")),
        hostile_task("rev1", json!("HEAD")),
        hostile_task("test_file", json!("/etc/ATest.java")),
        hostile_task("test_file", json!("a/../../ATest.java")),
        hostile_task("test_file", json!(".git/hooks/ATest.java")),
        hostile_task("test_methods", json!(["ATest#\u{1b}[31m"])),
        hostile_task("test_methods", json!(["ATest#a;touch harm"])),
        hostile_task("test_methods", json!(vec!["ATest#a"; 100_000])),
        hostile_task("rev2_date", json!("9999999-01-01")),
        hostile_repository("git_clone_url", json!(touch)),
        hostile_repository("git_clone_url", json!("--upload-pack=touch harm")),
        hostile_repository("git_clone_url", json!("ssh://-oProxyCommand=touch%20harm/x")),
        hostile_repository("display_name", json!("../../elsewhere")),
        // It would have the files of `owner/name__more`.
        repository("owner__name/more", 8, &[task("x_1")], &[]),
        hostile_repository("java_version", json!(-1)),
        hostile_repository("java_version", json!(1e300)),
        json!([[[[]]]]),
    ]
    .into_iter()
    .enumerate()
    {
        line.write("data.json", &value.to_string());
        let text = line.run(&["import", "data.json"]);
        assert!(text.starts_with("exit 4\n"), "{index}: {text}");
        assert!(text.contains("error: ") && text.contains("hint: ") && text.contains("data.json"), "{index}: {text}");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{index}: {text:?}");
        assert!(!line.files().iter().any(|file| file.contains("__") || file.contains("harm")), "{index}");
    }
    line.write("data.json", &format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000)));
    assert!(line.run(&["import", "data.json"]).starts_with("exit 4\n"));
    for kept in before {
        assert!(line.files().contains(&kept), "{kept}");
    }
}
