//! Shards are the same run: what is merged of them equals what one machine makes of the whole selection.

use std::process::Stdio;

use fs_err as fs;
use serde_json::{Value, json};
use testevo_sandbox::sample::SampleRepository;

use super::demonstration;
use super::workshop::Workshop;

/// Returns a run's inputs, and its verdicts without what differs between equal runs.
pub(super) fn results(workshop: &Workshop, run: &str) -> (Value, Value) {
    let read = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(workshop.data_dir.join("runs").join(run).join(name)).unwrap()).unwrap()
    };
    let mut verdicts = read("verdicts.json");
    assert!(verdicts.as_object_mut().unwrap().remove("volatile").is_some());
    (read("inputs.json"), serde_json::from_str(&verdicts.to_string().replace(run, "RUN")).unwrap())
}

/// Executes a command as a whole and in two shards, which have more arguments, merges these, and compares the two.
fn check(workshop: &Workshop, repository: &SampleRepository, command: &[&str], of_shards: &[&str]) -> [String; 4] {
    let name = command[0];
    let [whole, one, two, merged] = ["single", "one", "two", "merged"].map(|part| format!("{name}-{part}"));
    for run in [&whole, &one, &two, &merged] {
        let directory = workshop.data_dir.join("runs").join(run);
        if directory.exists() {
            fs::remove_dir_all(directory).unwrap();
        }
    }
    let selected = repository.name.to_string();
    let execute = |more: &[&str]| workshop.run(&[command, &["--format", "json", &selected], more].concat());
    execute(&["--run-id", &whole]);
    execute(&[of_shards, &["--run-id", &two, "--shard", "2/2"]].concat());
    let (code, output) = workshop.try_run(&["runs", "merge", &two]);
    assert_eq!(code, Some(4), "{output}");
    assert!(output.contains("of 2 shards, these are missing: 1"), "{output}");
    execute(&[of_shards, &["--run-id", &one, "--shard", "1/2"]].concat());
    // One of them as another machine would give it.
    let path = workshop.data_dir.join("runs").join(&two);
    workshop.run(&["runs", "merge", &one, path.to_str().unwrap(), "--run-id", &merged]);
    let (expected, found) = (results(workshop, &whole), results(workshop, &merged));
    assert_eq!(found.0, expected.0, "{name}: inputs");
    assert_eq!(found.1, expected.1, "{name}: verdicts");
    let tasks = |run: &str| results(workshop, run).0["tasks"].as_array().unwrap().len();
    assert!(tasks(&one) > 0 && tasks(&two) > 0 && tasks(&one) + tasks(&two) == tasks(&whole));
    [whole, one, two, merged]
}

#[test]
fn merged_shards_are_a_whole_run() {
    let (repository, workshop) = demonstration::given();
    let [whole, one, _, merged] = check(&workshop, &repository, &["validate", "--no-confirm"], &[]);
    for (runs, message) in [
        (vec![&*whole], "is no shard"),
        (vec![&*one, &*one], "are both shard 1/2"),
        (vec![&*one, &*merged], "is no shard"),
    ] {
        let (code, output) = workshop.try_run(&[&["runs", "merge"], &runs[..]].concat());
        assert_eq!(code, Some(4), "{output}");
        assert!(output.contains(message), "{output}");
    }
    let costs = tempfile::NamedTempFile::new().unwrap();
    let written = workshop.command(&["runs", "costs", &whole]).output().unwrap();
    assert!(written.status.success());
    fs::write(costs.path(), &written.stdout).unwrap();
    let costs = costs.path().to_str().unwrap();
    let gold = ["score", "--predictions", "gold", "--no-mutation"];
    let [unsharded, .., scored] = check(&workshop, &repository, &gold, &["--weights", costs]);
    for format in ["text", "markdown", "json", "csv"] {
        let report = |run: &str| {
            let output = workshop.command(&["report", run, "--format", format]).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap().replace(run, "RUN")
        };
        assert_eq!(report(&scored), report(&unsharded), "{format}");
    }
    let (code, output) = workshop.try_run(&["runs", "merge", &one, &scored]);
    assert_eq!(code, Some(4), "{output}");
    assert!(output.contains("commands differ"), "{output}");

    // Every label of the sample holds, but one method for generation passes on old code as well.
    workshop.run(&["runs", "compare", &whole, &merged]);
    let report = ["report", &scored, "--certified-by", &merged, "--format", "json"];
    let report = workshop.command(&report).output().unwrap();
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let certified = &report["certified"];
    assert_eq!(certified["validation"], json!(merged));
    let excluded = json!([
        {"task": "testevo__sample__fixed-bug", "method": "StockTest#takeAll", "reason": "not_discriminating"}
    ]);
    assert_eq!(certified["excluded"], excluded);
    let tracks = |report: &Value| report["runs"][0]["tracks"].clone();
    let (all, certified) = (tracks(&report), tracks(certified));
    assert_eq!(certified["test_update"], all["test_update"]);
    let methods = |tracks: &Value| tracks["test_generation"]["methods"].as_u64().unwrap();
    assert_eq!(methods(&certified) + 1, methods(&all));
}

#[test]
fn a_scratch_takes_what_is_used_and_changes_no_verdict() {
    let (repository, workshop) = demonstration::given();
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let scratch = directory.path().to_str().unwrap();
    let score = ["score", "--predictions", "gold", "--no-mutation", "--no-coverage", "--no-controls", "--no-cache"];
    let command = |run: &str, more: &[&str]| {
        workshop.forget_run(run);
        let own = [repository.name.as_str(), "--limit", "2", "--engine", "native", "--run-id", run];
        workshop.command(&[&score[..], &own, more].concat())
    };
    let execute = |run: &str, more: &[&str]| {
        let output = command(run, more).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    execute("without-scratch", &[]);
    // Two shards of one node take what they need at once.
    let beside = command("beside", &["--scratch", scratch]).stdout(Stdio::null()).spawn().unwrap();
    execute("with-scratch", &["--scratch", scratch]);
    let beside = beside.wait_with_output().unwrap();
    assert!(beside.status.success(), "{beside:?}");
    for run in ["with-scratch", "beside"] {
        assert_eq!(results(&workshop, run).1, results(&workshop, "without-scratch").1, "{run}");
    }
    let [own] =
        fs::read_dir(scratch).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>().try_into().unwrap();
    let count = |part: &str| fs::read_dir(own.join(part)).unwrap().count();
    // Four layers and the inventory of each; of blobs only what is mounted, not the layers that they were unpacked from.
    assert!(count("store/unpacked") >= 8, "{}", count("store/unpacked"));
    let blobs = count("store/blobs/sha256");
    let layers = &workshop.built(&repository.name).image.layers;
    assert!(blobs > 0 && layers.iter().all(|layer| !own.join("store/blobs/sha256").join(layer.digest.hex()).exists()));
    assert!(count("store/prepared") > 0 && count("store/jars") > 0);
    execute("with-scratch", &["--scratch", scratch]);
    assert_eq!(count("store/blobs/sha256"), blobs, "everything was there");
}

#[test]
fn verdicts_are_equal_whatever_executes_them() {
    let (repository, workshop) = demonstration::given_alone();
    let selected = repository.name.to_string();
    let validate = ["validate", "--no-confirm", "--format", "json", &selected];
    let mut verdicts = Vec::new();
    for (run, more, processors) in [
        ("equal-docker", &["--engine", "docker", "--jobs", "2"][..], None),
        ("equal-alone", &["--engine", "native", "--jobs", "1", "--repeat", "2"], Some("0")),
    ] {
        let directory = workshop.data_dir.join("runs").join(run);
        if directory.exists() {
            fs::remove_dir_all(directory).unwrap();
        }
        let command = workshop.command(&[&validate[..], more, &["--run-id", run]].concat());
        let mut command = match processors {
            None => command,
            Some(processors) => {
                let mut bound = std::process::Command::new("taskset");
                bound.args(["--cpu-list", processors]).arg(command.get_program()).args(command.get_args());
                bound
            }
        };
        let output = command.output().unwrap();
        assert!(output.status.success(), "{run}: {}", String::from_utf8_lossy(&output.stderr));
        // Each repeat is a row of its own, after the first one, and comes to the same.
        let mut value = results(&workshop, run).1;
        let rows = value["verdicts"].as_array_mut().unwrap();
        assert!(!rows.is_empty());
        rows.iter_mut().for_each(|row| drop(row.as_object_mut().unwrap().remove("repeat").unwrap()));
        rows.dedup();
        verdicts.push((run, value));
    }
    for (run, found) in &verdicts[1..] {
        assert_eq!(*found, verdicts[0].1, "{run}");
    }
}
