use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::*;
use crate::data_dir::DataDir;
use crate::engine::scripted::{Said, Scripted};
use crate::execution::container::RepositoryImage;
use crate::execution::executor::Executor;
use crate::execution::request::CellIdentity;
use crate::execution::scripted::{executor, image, task};
use crate::task::{Cell, MethodId, Task};

fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

fn inputs<'a>(arguments: &'a [String], missing: &'a [String]) -> ExecutionInputs<'a> {
    ExecutionInputs {
        image: digest("image"),
        tree: "tree",
        test_file: "ATest.java",
        swapped: Some(digest("text")),
        method: "ATest#m",
        maven_arguments: arguments,
        launcher: Launcher::Auto,
        surefire: Surefire::Project,
        path: ExecutionPath::Maven,
        runner: "runner",
        recorder: "recorder",
        compiler: "compiler",
        identity: digest("identity"),
        limits: ExecutionLimits::from(&crate::manifest::Limits::default()),
        repeat: 1,
        class_archive: false,
        isolation_missing: missing,
    }
}

#[test]
fn every_input_changes_the_key() {
    type Change = fn(&mut ExecutionInputs<'_>);
    let changes: [(&str, Change); 17] = [
        ("image", |inputs| inputs.image = digest("other")),
        ("tree", |inputs| inputs.tree = "other"),
        ("test_file", |inputs| inputs.test_file = "BTest.java"),
        ("swapped", |inputs| inputs.swapped = Some(digest("texT"))),
        ("method", |inputs| inputs.method = "ATest#n"),
        ("maven_arguments", |inputs| inputs.maven_arguments = &[]),
        ("launcher", |inputs| inputs.launcher = Launcher::Platform6),
        ("surefire", |inputs| inputs.surefire = Surefire::None),
        ("path", |inputs| inputs.path = ExecutionPath::Direct),
        ("runner", |inputs| inputs.runner = "other"),
        ("recorder", |inputs| inputs.recorder = "other"),
        ("compiler", |inputs| inputs.compiler = "other"),
        ("identity", |inputs| inputs.identity = digest("other")),
        ("limits", |inputs| inputs.limits.launch_heap_mib += 1),
        ("repeat", |inputs| inputs.repeat = 2),
        ("class_archive", |inputs| inputs.class_archive = true),
        ("isolation_missing", |inputs| inputs.isolation_missing = &[]),
    ];
    let (arguments, missing) = (["-Dx".to_owned()], ["seccomp".to_owned()]);
    let fields = |inputs: &ExecutionInputs<'_>| serde_json::to_value(inputs).unwrap().as_object().unwrap().clone();
    let base = inputs(&arguments, &missing);
    assert_eq!(fields(&base).len(), changes.len(), "every field has its row");
    assert_eq!(base.key(), inputs(&arguments, &missing).key());
    let mut keys = BTreeMap::from([(base.key(), "none")]);
    for (name, change) in changes {
        let mut changed = inputs(&arguments, &missing);
        change(&mut changed);
        let (before, after) = (fields(&base), fields(&changed));
        let differing: Vec<&String> = before.keys().filter(|field| before[*field] != after[*field]).collect();
        assert_eq!(differing, [name], "the row changes its field and no other");
        assert_eq!(keys.insert(changed.key(), name), None, "{name}");
    }
    let mut absent = inputs(&arguments, &missing);
    absent.swapped = None;
    assert_eq!(keys.insert(absent.key(), "no file"), None);
}

/// Returns the paths of all numbers in a value.
fn numbers(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| numbers(value, &format!("{path}/{name}"), found))
        }
        Value::Number(_) => found.push(path.to_owned()),
        other => panic!("{path}: {other}"),
    }
}

#[test]
fn every_limit_changes_the_key() {
    let base = inputs(&[], &[]);
    let limits = serde_json::to_value(base.limits).unwrap();
    let mut paths = Vec::new();
    numbers(&limits, "", &mut paths);
    assert_eq!(paths.len(), 2 * 4 + 2 * 4 + 3, "{paths:?}");
    let mut keys = BTreeMap::from([(base.key(), String::new())]);
    for path in paths {
        let mut changed = limits.clone();
        let number = changed.pointer_mut(&path).unwrap();
        // One limit is the largest number that there is.
        *number = Value::from(number.as_u64().unwrap().wrapping_sub(1));
        let changed = ExecutionInputs { limits: serde_json::from_value(changed).unwrap(), ..inputs(&[], &[]) };
        assert_eq!(keys.insert(changed.key(), path.clone()), None, "{path}");
    }
}

/// What an executor is asked to launch.
struct Asked {
    executor: Executor,
    image: RepositoryImage,
    task: Task,
    tree: String,
    swapped: Option<Digest>,
    method: MethodId,
    repeat: u32,
    path: ExecutionPath,
}

impl Asked {
    fn key(&self) -> Digest {
        let Self { executor, image, task, tree, swapped, method, repeat, path } = self;
        let (cell, swapped, path) = (Cell::Nn, *swapped, *path);
        let identity = CellIdentity { task, cell, image, tree, swapped, path };
        executor.key(&identity, method, *repeat, path)
    }
}

#[test]
fn what_an_executor_is_asked_for_is_in_the_key() {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(directory.path()).unwrap();
    let engine = Arc::new(Scripted::new(|_, _| Said { frames: Vec::new(), ends: true }));
    let asked = || Asked {
        executor: executor(&engine, &data_dir),
        image: image(),
        task: task(),
        tree: "tree".to_owned(),
        swapped: Some(digest("text")),
        method: "ATest#m".parse().unwrap(),
        repeat: 1,
        path: ExecutionPath::Direct,
    };
    type Change = fn(&mut Asked);
    let changes: [(&str, Change); 16] = [
        ("image", |asked| asked.image.config_digest = digest("other")),
        ("arguments", |asked| asked.image.maven_arguments = vec!["-Dx".to_owned()]),
        ("launcher", |asked| asked.image.launcher = Launcher::Platform1),
        ("surefire", |asked| asked.image.surefire = Surefire::None),
        ("test file", |asked| asked.task.test_file = "BTest.java".parse().unwrap()),
        ("tree", |asked| asked.tree = "other".to_owned()),
        ("text", |asked| asked.swapped = Some(digest("texT"))),
        ("method", |asked| asked.method = "ATest#n".parse().unwrap()),
        ("repeat", |asked| asked.repeat = 2),
        ("path", |asked| asked.path = ExecutionPath::Maven),
        ("runner", |asked| asked.executor.jars.runner = "/x/other-runner".into()),
        ("recorder", |asked| asked.executor.jars.recorder = "/x/other-recorder".into()),
        ("compiler", |asked| asked.executor.jars.compiler = "/x/other-compiler".into()),
        ("identity", |asked| asked.executor.identity = digest("other")),
        ("limits", |asked| asked.executor.limits.launch_command.wall_seconds += 1),
        ("isolation", |asked| asked.executor.isolation_missing = vec!["seccomp".to_owned()]),
    ];
    let mut keys = BTreeMap::from([(asked().key(), "none")]);
    for (name, change) in changes {
        let mut changed = asked();
        change(&mut changed);
        assert_eq!(keys.insert(changed.key(), name), None, "{name}");
    }
    // Where our files lie, when and for which task is no part of it: results are found from every data directory.
    let mut same = asked();
    same.executor.temporary = "/elsewhere".into();
    same.executor.jars.runner = std::path::Path::new("/elsewhere").join(same.executor.jars.runner.file_name().unwrap());
    same.task.id = "u".parse().unwrap();
    assert!(keys.contains_key(&same.key()));
}
