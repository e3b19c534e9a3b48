//! Harbor's trials: a task that was exported for it, its verifier on this machine, and the predictions of its job.
//!
//! Harbor itself is not installed. Two stand-ins for its modules have what the verifier's class takes from them.

use std::path::{Path, PathBuf};
use std::process::Command;

use fs_err as fs;
use serde_json::{Value, json};
use testevo_sandbox::metrics::category::Category;
use testevo_sandbox::sample::Miniature;
use testevo_sandbox::task::Side;

use super::agents::{given, of_name, task_of};
use super::workshop::Workshop;

/// Calls the verifier as Harbor does, for each trial, and prints the rewards.
const CALLER: &str = r#"
import asyncio, json, pathlib, sys
from types import SimpleNamespace as Namespace
from testevo_sandbox_harbor import HostVerifier, ScoringError

async def main(program, options, task, trials):
    verifiers = []
    for trial in map(pathlib.Path, trials):
        paths = Namespace(trial_dir=trial, verifier_dir=trial / "verifier")
        described = Namespace(config=Namespace(metadata={"task_id": task}))
        verifiers.append(HostVerifier(
            program=program, options=options, task=described, trial_paths=paths, environment=None, logger=None,
            override_env=None, verifier_env=None, step_name=None))
    results = await asyncio.gather(*(one.verify() for one in verifiers), return_exceptions=True)
    for result in results:
        told = str(result) if isinstance(result, ScoringError) else result.rewards
        print(json.dumps(told))

asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]))
"#;

/// What the verifier passes on to `score`, which it splits as a shell does.
const OPTIONS: &str = "--engine native --no-mutation";

const BASE: &str = r#"
class BaseVerifier:
    def __init__(self, *, task, trial_paths, environment, override_env=None, logger=None, verifier_env=None, step_name=None):
        self.task, self.trial_paths = task, trial_paths
"#;

const RESULT: &str = r#"
class VerifierResult:
    def __init__(self, rewards):
        self.rewards = rewards
"#;

/// Writes modules under Harbor's names.
fn stand_ins(directory: &Path) {
    for (path, text) in [("verifier/base.py", BASE), ("models/verifier/result.py", RESULT)] {
        let path = directory.join("harbor").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

struct Job<'a> {
    directory: PathBuf,
    task: &'a str,
    miniature: &'a Miniature,
}

impl Job<'_> {
    /// Writes a trial that has collected its target file, as Harbor does before it verifies.
    fn trial(&self, name: &str, target: Option<&[u8]>) -> PathBuf {
        let directory = self.directory.join(name);
        let target_path = directory.join("artifacts/work/project").join(self.miniature.test_file.as_str());
        fs::create_dir_all(target_path.parent().unwrap()).unwrap();
        fs::create_dir(directory.join("verifier")).unwrap();
        fs::write(directory.join("artifacts/manifest.json"), "[]").unwrap();
        let config = json!({"task": {"path": format!("tasks/{}", self.task)}, "trial_name": name});
        fs::write(directory.join("config.json"), config.to_string()).unwrap();
        if let Some(target) = target {
            fs::write(target_path, target).unwrap();
        }
        directory
    }

    /// Writes what Harbor writes when a trial has ended.
    fn end(&self, name: &str, exception: Value) {
        let result = json!({
            "trial_name": name, "task_name": format!("testevo-bench/{}", self.task), "task_id": {"path": "tasks/x"},
            "agent_execution": {"started_at": "2026-01-01T00:00:00Z"}, "agent_info": {"name": "agent", "version": "1", "model_info": {"name": "model", "provider": null}},
            "agent_result": {"n_input_tokens": 7, "n_output_tokens": 5, "cost_usd": 0.5}, "exception_info": exception,
        });
        fs::write(self.directory.join(name).join("result.json"), result.to_string()).unwrap();
    }
}

/// Writes the program as a verifier's argument names it: with the global options of the tests.
fn wrapper(workshop: &Workshop, directory: &Path) -> PathBuf {
    let command = workshop.command(&[]);
    let quote = |word: &std::ffi::OsStr| format!("'{}'", word.to_str().unwrap());
    let options: Vec<String> = command.get_args().map(quote).collect();
    let path = directory.join("program");
    fs::write(&path, format!("#!/bin/sh\nexec {} \"$@\" {}\n", quote(command.get_program()), options.join(" ")))
        .unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// What a verifier's compose file allows its container, as `docker run` takes it.
const ALLOWED: [(&str, &str); 5] = [
    ("--cap-add", "SYS_ADMIN"),
    ("--security-opt", "seccomp=unconfined"),
    ("--security-opt", "apparmor=unconfined"),
    ("--security-opt", "systempaths=unconfined"),
    ("--volume", "/var/lib/testevo-sandbox"),
];

/// Runs a verifier's container as Harbor does, with a target file at its place.
fn verify_in_container(
    exported: &Value,
    target: (&str, &Path),
    allowed: &[(&str, &str)],
    logs: &Path,
) -> std::process::Output {
    let mut docker = Command::new("docker");
    docker.args(["run", "--rm", "--init", "--network", "none", "--user", "root"]);
    docker.args(["--env", "TESTEVO_OPTIONS=--no-mutation"]);
    let text = fs::read_to_string(Path::new(exported["path"].as_str().unwrap()).join("task.toml")).unwrap();
    let toml: toml::Value = toml::from_str(&text).unwrap();
    for (name, value) in toml["verifier"]["env"].as_table().unwrap() {
        docker.args(["--env", &format!("{name}={}", value.as_str().unwrap())]);
    }
    docker.args(allowed.iter().flat_map(|(option, value)| [option, value]));
    docker.args(["--volume", &format!("{}:{}:ro", target.1.display(), target.0)]);
    docker.args(["--volume", &format!("{}:/logs/verifier", logs.display())]);
    docker.args([toml["verifier"]["environment"]["docker_image"].as_str().unwrap(), "/tests/test.sh"]).output().unwrap()
}

/// A verifier's container gives the rewards that the host gives, and none where it may not make containers.
fn a_container_gives_the_same_rewards(workshop: &Workshop, export: &[&str], target: (&str, &[u8]), expected: &Value) {
    let directory = tempfile::tempdir().unwrap();
    let (tasks, file) = (directory.path().join("tasks"), directory.path().join("target"));
    fs::write(&file, target.1).unwrap();
    let mut export = export.to_vec();
    *export.iter_mut().skip_while(|word| **word != "-o").nth(1).unwrap() = tasks.to_str().unwrap();
    export.extend(["--verifier", "image"]);
    let output = workshop.command(&export).output().unwrap();
    let exported: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let compose = Path::new(exported["path"].as_str().unwrap()).join("tests/docker-compose.yaml");
    let compose = fs::read_to_string(compose).unwrap();
    assert!(ALLOWED.iter().all(|(_, value)| compose.contains(value)), "{compose}");
    assert!(compose.contains("network_mode: none"), "{compose}");

    for (name, allowed) in [("allowed", &ALLOWED[..]), ("stock", &[])] {
        let logs = directory.path().join(name);
        fs::create_dir(&logs).unwrap();
        for forged in ["reward.json", "reward.txt"] {
            fs::write(logs.join(forged), "1").unwrap();
        }
        let output = verify_in_container(&exported, (target.0, &file), allowed, &logs);
        let reward = fs::read_to_string(logs.join("reward.json"));
        if allowed.is_empty() {
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!((output.status.code(), reward.is_err()), (Some(1), true), "{said}");
            assert!(!logs.join("reward.txt").exists(), "{said}");
            assert!(said.contains("no reward: `score` ended with exit code 3"), "{said}");
        } else {
            assert!(output.status.success(), "{output:?}");
            assert_eq!(serde_json::from_str::<Value>(&reward.unwrap()).unwrap(), *expected);
        }
        assert!(logs.join("scoring.log").exists());
    }
}

#[test]
fn trials_are_scored_on_the_host_and_become_predictions() {
    let (repository, workshop) = given();
    let miniature = of_name(&repository, "new-class");
    let task = task_of(&workshop, miniature);
    let directory = tempfile::tempdir().unwrap();
    let tasks = directory.path().join("tasks");
    let audience = ["--audience", "scorer", "--network", "compose", "--engine", "docker", "--format", "json"];
    let export = [&["export", "harbor", &task, "-o", tasks.to_str().unwrap()][..], &audience].concat();
    let output = workshop.command(&export).output().unwrap();
    let exported: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let image = exported["image"].as_str().unwrap();
    let toml = fs::read_to_string(tasks.join(&task).join("task.toml")).unwrap();
    assert!(toml.contains(&format!("docker_image = \"{image}\"")), "{toml}");
    let (code, said) = workshop.try_run(&export);
    assert_eq!(code, Some(2), "what is there is not written over: {said}");

    // The solution is run as Harbor's `oracle` runs it: as the agent's user, in the task's image.
    let path = format!("/work/project/{}", miniature.test_file);
    let solution = format!("{}:/solution:ro", tasks.join(&task).join("solution").display());
    let output = Command::new("docker")
        .args(["run", "--rm", "--network", "none", "--user", "1000", "-v", &solution, image, "sh", "-c"])
        .arg(format!("/solution/solve.sh && cat {path}"))
        .output()
        .unwrap();
    let gold = &miniature.files(Side::New)[&miniature.test_file];
    assert_eq!(output.stdout, *gold, "{output:?}");

    let job = Job { directory: directory.path().join("job"), task: &task, miniature };
    let oracle = job.trial("oracle", Some(&output.stdout));
    let nop = job.trial("nop", None);
    let broken = job.trial("broken", Some(b"package mini; class"));
    let foreign = job.trial("foreign", None);
    // What can't be read leaves no reward.
    fs::write(foreign.join("config.json"), "{").unwrap();
    // An agent may have left links where the verifier writes.
    let outside = directory.path().join("outside");
    for name in ["predictions.jsonl", "scoring.log", "report.csv"] {
        std::os::unix::fs::symlink(&outside, oracle.join("verifier").join(name)).unwrap();
    }
    stand_ins(directory.path());
    let caller = directory.path().join("call.py");
    fs::write(&caller, CALLER).unwrap();
    let mut python = Command::new("python3");
    python.arg(caller).arg(wrapper(&workshop, directory.path())).arg(OPTIONS).arg(&task);
    python
        .args([&oracle, &nop, &broken, &foreign])
        .env("PYTHONPATH", format!("{}:{}", tasks.display(), directory.path().display()));
    let output = python.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let rewards: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [success, nothing, broken_reward, fault] = &rewards[..] else { panic!("{output:?}") };
    assert_eq!(*success, json!({"reward": 1.0, "strict": 1.0, "clean": 1.0, "coverage": 1.0}), "{output:?}");
    a_container_gives_the_same_rewards(&workshop, &export, (&path, gold), success);
    let none = json!({"reward": 0.0, "strict": 0.0, "clean": 0.0});
    assert_eq!((nothing, broken_reward), (&none, &none), "{output:?}");
    let fault = fault.as_str().unwrap();
    assert!(
        fault.contains("`import` ended with exit code 4") && fault.contains("foreign/config.json` can't be read"),
        "{fault}"
    );
    assert!(!outside.exists(), "no link is followed");
    let category = |trial: &Path| {
        let table = fs::read_to_string(trial.join("verifier/report.csv")).unwrap();
        Category::ALL
            .map(Category::name)
            .into_iter()
            .find(|category| table.contains(&format!(",{category},")))
            .unwrap_or_else(|| panic!("{table}"))
    };
    assert_eq!([&oracle, &nop, &broken].map(|trial| category(trial)), ["Success", "HrnsFail", "CmplFail"]);

    // The whole job becomes predictions, but for what says nothing about an agent.
    fs::remove_dir_all(foreign).unwrap();
    job.end("oracle", Value::Null);
    job.end("broken", json!({"exception_type": "AgentTimeoutError"}));
    job.end("nop", json!({"exception_type": "EnvironmentStartTimeoutError"}));
    let output = workshop.command(&["import", "harbor", job.directory.to_str().unwrap()]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{errors}");
    assert!(
        errors.contains("job/nop`: EnvironmentStartTimeoutError") && errors.contains("1 trial has no prediction"),
        "{errors}"
    );
    let lines = String::from_utf8_lossy(&output.stdout);
    let predictions: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let prediction = |text: &[u8]| {
        json!({
            "instance_id": task, "model_name_or_path": "agent/model", "model_file": String::from_utf8_lossy(text),
            "cost_usd": 0.5, "tokens": 12,
        })
    };
    assert_eq!(predictions, [prediction(b"package mini; class"), prediction(gold)]);
}
