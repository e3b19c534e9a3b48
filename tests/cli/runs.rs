//! `runs` and `explain`: what was executed is listed, shown, explained and removed.

use std::path::{Path, PathBuf};

use fs_err as fs;
use insta::{assert_snapshot, with_settings};
use serde_json::Value;
use testevo_sandbox::canonical_json::canonical_json;
use testevo_sandbox::data_dir::DataDir;
use testevo_sandbox::engine::spec::{Command, CommandLimits, PROGRAM_SCHEMA, Program, Step};
use testevo_sandbox::event::EventSink;
use testevo_sandbox::execution::run::directory::RunDirectory;
use testevo_sandbox::execution::run::inputs::{INPUTS_SCHEMA, RunInputs};
use testevo_sandbox::execution::run::logs::{CellLogs, Logs};
use testevo_sandbox::execution::run::record::{CellRecord, Measured, RECORD_SCHEMA};
use testevo_sandbox::execution::scoring::log_directory;
use testevo_sandbox::outcome::{CompileReason, ExecReason, Outcome};
use testevo_sandbox::task::file::load_all;
use testevo_sandbox::task::{Cell, Side, Task};

use super::import::write_published;
use crate::support::command::CommandLine;
use crate::support::scored::ScoredRun;

fn imported(line: &CommandLine) -> (DataDir, Vec<Task>) {
    write_published(line);
    line.run(&["import", "published"]);
    let data_dir = DataDir::open(&line.path().join("data")).unwrap();
    let tasks = load_all(&data_dir.join("tasks")).unwrap();
    (data_dir, tasks)
}

fn begin(data_dir: &DataDir, run_id: &str, tasks: &[Task]) -> RunDirectory {
    let inputs = RunInputs {
        schema: INPUTS_SCHEMA,
        tasks: tasks.to_vec(),
        images: Default::default(),
        maven_arguments: Default::default(),
        launchers: Default::default(),
        limits: Default::default(),
        surefire: Default::default(),
        paths: Vec::new(),
        repeats: 1,
        tools: None,
        shard: None,
    };
    let inputs = canonical_json(&inputs).unwrap();
    RunDirectory::open(data_dir, "validate", &inputs, Some(run_id), false).unwrap().0
}

/// Records of all methods of a task in a cell.
fn append(run: &mut RunDirectory, task: &Task, cell: Cell, outcome: Outcome, detail: &str) {
    for method in &task.test_methods {
        let executed = cell != Cell::No;
        let record = CellRecord {
            schema: RECORD_SCHEMA,
            task_id: task.id.clone(),
            repository: task.repository.clone(),
            track: task.track,
            cell,
            method: method.clone(),
            repeat: 1,
            path: Default::default(),
            outcome,
            detail: detail.to_owned(),
            attributed: None,
            missing: Vec::new(),
            attempts: u32::from(executed),
            key: None,
            measured: Measured {
                compile_ms: executed.then_some(1200),
                launch_ms: executed.then_some(340),
                whole_build: executed,
                logs: Some(format!("{}/{}", task.id, cell.name())),
                ..Measured::default()
            },
        };
        run.append(&record).unwrap();
    }
}

fn command(argv: &[&str]) -> Command {
    Command {
        argv: argv.iter().map(|argument| (*argument).to_owned()).collect(),
        environment: vec![("TZ".to_owned(), "UTC".to_owned())],
        working_directory: "/work/project".to_owned(),
        limits: CommandLimits { wall_seconds: 1, cpu_seconds: 1, output_bytes: 1, flood_bytes: 1 },
        events: false,
        required: false,
        only_after_success_of: None,
    }
}

/// Keeps a command as the executor does.
fn keep_command(run: &RunDirectory, task: &Task, cell: Cell, name: &str, argv: &[&str]) {
    let command = command(argv);
    let program = Program { schema: PROGRAM_SCHEMA, door_port: None, steps: vec![Step::Run(command)] };
    let kept = Logs::new(run.path().join("logs"), EventSink::none());
    let logs = CellLogs::create(Some(&kept), &task.id, cell).unwrap();
    logs.invocation(name, &program, 0).unwrap();
}

fn check(name: &str, text: &str) {
    let filters = [
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+Z)?", "[TIME]"),
        (r#""bytes":[1-9]\d*"#, r#""bytes":[SIZE]"#),
        (r"sha256:[0-9a-f]{64}", "sha256:[DIGEST]"),
    ];
    with_settings!({filters => filters}, { assert_snapshot!(name, text) });
}

#[test]
fn runs_are_listed_shown_and_removed() {
    let line = CommandLine::new();
    check("nothing", &line.run(&["runs", "list"]));
    let (data_dir, tasks) = imported(&line);
    let generation = tasks.iter().find(|task| task.id.as_str() == "second_1").unwrap();
    let update = tasks.iter().find(|task| task.id.as_str() == "first_1").unwrap();
    let mut first = begin(&data_dir, "first", std::slice::from_ref(generation));
    append(&mut first, generation, Cell::Nn, Outcome::Pass, "");
    append(&mut first, generation, Cell::No, Outcome::CompileFail(CompileReason::TargetFile), "cannot find symbol");
    first.finish(b"{}").unwrap();
    let mut second = begin(&data_dir, "second", &[update.clone(), generation.clone()]);
    append(&mut second, generation, Cell::Nn, Outcome::ExecFail(ExecReason::Assertion), "expected 1");
    append(&mut second, generation, Cell::No, Outcome::Pass, "");
    append(&mut second, update, Cell::Oo, Outcome::Pass, "");

    check("list", &line.run(&["runs", "list"]));
    check("list-json", &line.run(&["runs", "list", "--format", "json"]));
    check("show-finished", &line.run(&["runs", "show", "first"]));
    check("show-running", &line.run(&["runs", "show", "latest"]));
    check("show-json", &line.run(&["runs", "show", "second", "--format", "json"]));
    check("rm-running", &line.run(&["runs", "rm", "second"]));
    drop(second);
    line.write("data/runs/third/run.json", "{\"schema\": 7}");
    check("list-later", &line.run(&["runs", "list"]));
    check("show-newer", &line.run(&["runs", "show", "third"]));
    check("rm-dry", &line.run(&["runs", "rm", "first", "second", "--dry-run"]));
    check("rm", &line.run(&["runs", "rm", "first", "second", "third"]));
    check("show-unknown", &line.run(&["runs", "show", "first"]));
    check("show-hostile", &line.run(&["runs", "show", "../tasks"]));
    assert!(!line.files().iter().any(|file| file.contains("runs/") || file.contains("removed-")));
}

#[test]
fn a_task_of_a_run_is_explained_with_its_commands() {
    let line = CommandLine::new();
    let (data_dir, tasks) = imported(&line);
    let task = tasks.iter().find(|task| task.id.as_str() == "second_1").unwrap();
    let mut run = begin(&data_dir, "r1", &tasks);
    keep_command(&run, task, Cell::Nn, "compile-1", &["/opt/maven/bin/mvn", "-o", "test-compile", "-Dx=a b"]);
    keep_command(&run, task, Cell::Nn, "first-1-1", &["/bin/java", "-cp", "a:b", "testevo.runner.Main"]);
    keep_command(&run, task, Cell::Nn, "first-1-2", &["/bin/java", "-cp", "a:b", "testevo.runner.Main", "again"]);
    append(&mut run, task, Cell::Nn, Outcome::ExecFail(ExecReason::Timeout), "it hung \u{1b}[31m");
    append(&mut run, task, Cell::No, Outcome::CompileFail(CompileReason::TargetFile), "cannot find symbol");
    check("explain", &line.run(&["explain", "r1", "second_1"]));
    let text = line.run(&["explain", "r1", "second_1", "--format", "json"]);
    let values: Vec<serde_json::Value> =
        text.lines().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(values.len(), 5);
    assert_eq!(values[0]["launch"]["argv"][4], "again");
    let built_whole = |at: usize| &values[at]["record"]["measured"]["whole_build"];
    assert_eq!((built_whole(0), built_whole(3)), (&Value::Bool(true), &Value::Null));
    assert_eq!(values[4]["class"], "differing");
    check("explain-not-executed", &line.run(&["explain", "r1", "first_2"]));
    check("explain-unknown", &line.run(&["explain", "r1", "second_2"]));
}

/// Changes the records of a run as lines of JSON; what is no longer a value goes.
fn change_records(run: &Path, change: impl Fn(&mut Value) -> bool) {
    let path = run.join("records.jsonl");
    let mut lines = String::new();
    for line in fs::read_to_string(&path).unwrap().lines() {
        let mut record: Value = serde_json::from_str(line).unwrap();
        if change(&mut record) {
            lines.push_str(&format!("{record}\n"));
        }
    }
    // It ended like this.
    let description = run.join("run.json");
    let mut value: Value = serde_json::from_slice(&fs::read(&description).unwrap()).unwrap();
    value["extent"]["record_bytes"] = lines.len().into();
    fs::write(description, value.to_string()).unwrap();
    fs::write(path, lines).unwrap();
}

fn scored(line: &CommandLine, run_id: &str) -> PathBuf {
    line.run(&["runs", "list"]);
    let models = vec!["one".to_owned(), "two".to_owned()];
    ScoredRun { run_id, models, tasks: 2, strange: "" }.write(&line.path().join("data"))
}

#[test]
fn a_kept_result_is_explained_with_the_logs_of_the_run_that_executed_it() {
    let line = CommandLine::new();
    let (first, second) = (scored(&line, "first"), scored(&line, "second"));
    let logs = first.join("logs").join(log_directory("one", &"t0000".parse().unwrap(), Side::New));
    let command = serde_json::to_vec(&command(&["/bin/java", "testevo.runner.Main"])).unwrap();
    fs::write(logs.join("m0-1-1.command.json"), command).unwrap();
    change_records(&second, |record| {
        if record["record"] == "execution" {
            record["cached"] = true.into();
            record["measured"].as_object_mut().unwrap().remove("logs");
            record["measured"]["whole_build"] = true.into();
            record["missing"] = vec!["vendor", "large.bin"].into();
        }
        true
    });
    let explain = |run: &str| line.run(&["explain", run, "t0000", "--model", "one"]);
    let shell = "      launch 0.7 s\n        $ cd /work/project && env -i TZ=UTC /bin/java testevo.runner.Main\n";
    for (run, whose) in [("first", ""), ("second", ", of run first")] {
        let text = explain(run);
        let place = format!("      logs {}{whose}\n{shell}", logs.display())
            .replace(line.path().to_str().unwrap(), "[DIRECTORY]");
        assert!(text.contains(&place), "{text}");
        assert!(!text.contains("model       two"), "{text}");
    }
    let facts = ["      Maven builds all modules, because ", "      the tree lacks vendor, large.bin\n"];
    let told = |run: &str| facts.map(|fact| explain(run).contains(fact));
    assert_eq!((told("first"), told("second")), ([false; 2], [true; 2]));
    // A report shows the same logs.
    let page = |run: &str| line.run(&["report", run, "--quiet", "--format", "html"]);
    let of_first = ",\"run\":\"first\"}";
    assert!(page("second").contains(of_first) && page("second").contains("m0-1-1.command.json"));
    assert!(!page("first").contains(of_first) && page("first").contains("m0-1-1.command.json"));
    line.run(&["report", "second", "--format", "instances", "--output", "out"]);
    let instances = |line: &CommandLine| {
        let is_report = |file: &String| file.starts_with("out/") && file.ends_with("/report.json");
        let files = line.files().into_iter().filter(is_report);
        files.map(|file| fs::read_to_string(line.path().join(file)).unwrap()).collect::<String>()
    };
    assert!(instances(&line).contains("/runs/first/logs/"), "{}", instances(&line));
    // Without that run nobody knows them.
    line.run(&["runs", "rm", "first"]);
    assert!(!explain("second").contains("logs"));
    assert!(!page("second").contains(of_first) && !page("second").contains("m0-1-1.command.json"));
    let text = line.run(&["explain", "second", "t0000", "--model", "nobody"]);
    assert!(text.starts_with("exit 2\n") && text.contains("no model `nobody`") && text.contains("one, two"), "{text}");
}

#[test]
fn mutants_on_which_a_method_passes_are_explained_with_what_they_change() {
    let line = CommandLine::new();
    scored(&line, "first");
    let second = scored(&line, "second");
    let explain = |run: &str| line.run(&["explain", run, "t0000"]);
    let json = line.run(&["explain", "first", "t0000", "--format", "json"]);
    let models = json.lines().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str(line).unwrap());
    let (mut passes, mut sets) = (0, Vec::new());
    for model in models.collect::<Vec<Value>>() {
        let methods = model["methods"].as_array().unwrap();
        let outcomes = methods.iter().filter_map(|method| method["mutation"]["mutants"].as_array()).flatten();
        passes += outcomes.filter(|one| one["outcome"] == "pass").count();
        sets.extend(model["mutants"].as_array().unwrap().clone());
    }
    assert!(passes > 0 && sets.iter().all(|set| set["kept"][0]["text"] == "return number + 5;"), "{json}");
    let shown = |run: &str, line: &str| explain(run).matches(line).count();
    let place = "  survived  src/main/java/C0.java:5";
    assert_eq!(shown("first", &format!("{place}  return number + 5;\n")), passes, "{}", explain("first"));
    let put = |run: &Path, text: Option<&str>| {
        change_records(run, |record| {
            for kept in record["sets"].as_array_mut().into_iter().flatten() {
                for kept in kept["kept"].as_array_mut().unwrap() {
                    match text {
                        Some(text) => kept["text"] = text.into(),
                        None => drop(kept.as_object_mut().unwrap().remove("text")),
                    }
                }
            }
            true
        });
    };
    put(&second, Some(""));
    assert_eq!(shown("second", &format!("{place}  (an empty line)\n")), passes);
    put(&second, Some("x\n  survived  forged\u{1b}[31m"));
    let forged = explain("second");
    assert_eq!((forged.matches("\n  survived  forged").count(), forged.matches('\u{1b}').count()), (0, 0), "{forged}");
    // A run of an earlier version has no text; another run on the same page has it.
    put(&second, None);
    assert_eq!(shown("second", &format!("{place}\n")), passes);
    let page = |runs: &[&str]| line.run(&[&["report", "--quiet", "--format", "html"], runs].concat());
    assert!(page(&["second", "first"]).contains("return number + 5;"), "the first run of the page has no text");
    assert!(!page(&["second"]).contains("return number + 5;"));
}

#[test]
fn what_an_unfinished_run_has_not_executed_is_told_as_such() {
    let line = CommandLine::new();
    let run = scored(&line, "first");
    // The second task is one of generation, and needs old code.
    change_records(&run, |record| {
        let is_of = |task: &str| record["record"] == "execution" && record["task_id"] == task;
        !(is_of("t0000") || is_of("t0001") && record["code"] == "old")
    });
    let show = || line.run(&["runs", "show", "first"]);
    let text = show();
    assert!(text.contains("first one: 1 method unscored, not executed on new code: t0000 a.T0#m0\n"), "{text}");
    assert!(text.contains("incomplete: run first of one: 3 methods are unscored\n"), "{text}");
    let description = run.join("run.json");
    let mut value: Value = serde_json::from_slice(&fs::read(&description).unwrap()).unwrap();
    value["finished"] = Value::Null;
    fs::write(&description, value.to_string()).unwrap();
    let text = show();
    let said = |methods: &str, side: &str, names: &str| {
        format!("first one: {methods} unscored, not executed on {side} code yet: the run is not finished: {names}\n")
    };
    assert!(text.contains(&said("1 method", "new", "t0000 a.T0#m0")), "{text}");
    assert!(text.contains(&said("2 methods", "old", "t0001 a.T1#m0, t0001 a.T1#m1")), "{text}");
    let lacks = "first one: the run is not finished, 3 methods are unscored";
    let page = line.run(&["report", "first", "--format", "html"]);
    assert!(page.contains(&format!("\"incomplete\":[\"{lacks}\"")), "the page says what is missing");
    // The list counts what is there.
    let text = line.run(&["runs", "list"]);
    assert!(text.contains("one, two") && text.contains(" methods, ") && text.contains("unfinished"), "{text}");
}

#[test]
fn unscored_methods_are_grouped_by_reason() {
    let line = CommandLine::new();
    line.run(&["runs", "list"]);
    let models = vec!["one".to_owned()];
    let run = ScoredRun { run_id: "first", models, tasks: 12, strange: "" }.write(&line.path().join("data"));
    // One task keeps its launches on new code, and is one of generation.
    change_records(&run, |record| {
        let is_other = record["model"] != "one" || record["record"] != "execution";
        is_other || record["task_id"] == "t0001" && record["code"] == "new"
    });
    let text = line.run(&["report", "first"]);
    let unscored: Vec<&str> = text.lines().filter(|line| line.contains(" unscored, ")).collect();
    // Twelve tasks have twenty-four methods, two of them in the task that is left.
    assert_eq!(
        unscored,
        [
            "first one: 22 methods unscored, not executed on new code: t0000 a.T0#m0, t0002 a.T2#m0, t0002 a.T2#m1, \
             t0002 a.T2#m2, t0003 a.T3#m0, t0004 a.T4#m0, t0004 a.T4#m1, t0005 a.T5#m0, t0005 a.T5#m1, t0005 a.T5#m2, \
             and 12 more",
            "first one: 2 methods unscored, not executed on old code: t0001 a.T1#m0, t0001 a.T1#m1",
        ]
    );
}
