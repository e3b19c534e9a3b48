//! What agents get works at first try: their image in Docker, and a shell on a task on every engine, with a prediction that scores.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use fs_err as fs;
use serde_json::Value;
use testevo_sandbox::sample::{Miniature, SampleRepository};
use testevo_sandbox::task::Side;

use super::demonstration;
use super::workshop::Workshop;

/// Programs that agents expect.
const PROGRAMS: &str = "awk bash curl diff file git gzip java less mvn patch ps python3 rg tar tmux unzip xz";

static LOCKED: OnceLock<()> = OnceLock::new();

/// Returns the demonstration with images for agents.
pub(super) fn given() -> (SampleRepository, Workshop) {
    LOCKED.get_or_init(|| {
        let (repository, workshop) = demonstration::given_alone();
        let name = repository.name.as_str();
        let before = workshop.built(&repository.name);
        workshop.run(&["lock", name, "--agent"]);
        workshop.run(&["build-images", name, "--agent", "--proof", "none"]);
        let after = workshop.built(&repository.name);
        assert_eq!((after.image.clone(), after.locks), (before.image, before.locks), "the image for scoring stays");
        assert_eq!(after.agent.unwrap().layers[..4], after.image.layers);
    });
    demonstration::given()
}

pub(super) fn of_name<'a>(repository: &'a SampleRepository, name: &str) -> &'a Miniature {
    repository.miniatures.iter().find(|miniature| miniature.name == name).unwrap()
}

/// Returns the id of a miniature's task.
pub(super) fn task_of(workshop: &Workshop, miniature: &Miniature) -> String {
    let output = workshop.command(&["tasks", "list", "--format", "json"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let tasks = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut of_file = tasks.filter(|task| task["test_file"] == miniature.test_file.as_str());
    of_file.next().unwrap()["id"].as_str().unwrap().to_owned()
}

/// Runs a script in a task's shell. Returns exit code, stdout and stderr.
fn shell(workshop: &Workshop, arguments: &[&str], script: &str) -> (Option<i32>, String, String) {
    run_script(workshop.command(&[&["workspace", "--shell"], arguments].concat()), script)
}

fn run_script(mut command: Command, script: &str) -> (Option<i32>, String, String) {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_shell_has_all_that_agents_expect_and_no_way_out() {
    has_all_and_no_way_out(&["native", "docker"]);
}

#[test]
#[ignore = "loads the image into one more engine"]
fn full_a_shell_in_podman_has_all_that_agents_expect() {
    has_all_and_no_way_out(&["podman"]);
}

fn has_all_and_no_way_out(engines: &[&str]) {
    let (repository, workshop) = given();
    let miniature = of_name(&repository, "rounding");
    let task = task_of(&workshop, miniature);
    let script = format!(
        "for program in {PROGRAMS}; do command -v $program >/dev/null || echo \"no $program\"; done\n\
         git status --short; git log --format=%s; git commit -q --allow-empty -m x; git log --oneline | wc -l\n\
         mvn -o -q test-compile && ls target/test-classes | wc -l\n\
         touch ~/x; echo \"home $?\"; [ $(id -u) != 0 ] && echo user\n\
         echo \"routes $(tail -n +2 /proc/net/route | wc -l)\"\n\
         python3 -c 'import pty; pty.openpty(); print(\"terminal\")'\n\
         echo to stderr >&2; exit 3\n"
    );
    for engine in engines {
        let (code, said, errors) = shell(&workshop, &[&task, "--engine", engine], &script);
        assert_eq!(code, Some(1), "{engine}: {said}{errors}");
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines, ["Starting tree", "2", "1", "home 0", "user", "routes 0", "terminal"], "{engine}: {errors}");
        assert!(errors.contains("to stderr\n") && errors.contains("the script ended with status 3"), "{errors}");
    }
}

#[test]
fn what_a_shell_leaves_is_a_prediction() {
    let (repository, workshop) = given();
    let miniature = of_name(&repository, "new-class");
    let task = task_of(&workshop, miniature);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("predictions.jsonl");
    let gold = &miniature.files(Side::New)[&miniature.test_file];
    let save = ["--engine", "native", "--save", file.to_str().unwrap(), "--model", "by hand"];
    let path = miniature.test_file.as_str();
    let script = format!("mkdir -p $(dirname {path}); cat > {path} <<'END'\n{}END\n", String::from_utf8_lossy(gold));
    let (code, _, errors) = shell(&workshop, &[&[task.as_str()][..], &save].concat(), &script);
    assert_eq!(code, Some(0), "{errors}");
    let prediction: Value = serde_json::from_str(fs::read_to_string(&file).unwrap().trim()).unwrap();
    assert_eq!(prediction["model_file"].as_str().unwrap().as_bytes(), gold.as_slice());
    workshop.forget_run("by-shell");
    let score =
        ["score", "--predictions", file.to_str().unwrap(), "--no-mutation", "--no-coverage", "--run-id", "by-shell"];
    workshop.run(&[&score[..], &[&task, "--engine", "native", "--no-controls"]].concat());
    let verdicts = fs::read(workshop.data_dir.join("runs/by-shell/verdicts.json")).unwrap();
    let verdicts: Value = serde_json::from_slice(&verdicts).unwrap();
    let records = verdicts["verdicts"].as_array().unwrap();
    let passed = |record: &&Value| {
        (&record["model"], &record["code"], &record["outcome"]) == (&"by hand".into(), &"new".into(), &"pass".into())
    };
    assert_eq!(records.iter().filter(passed).count(), miniature.methods.len(), "{records:?}");

    // What is no file is told, and no prediction is made of it.
    let (code, _, errors) = shell(
        &workshop,
        &[&[task.as_str()][..], &save].concat(),
        &format!("mkdir -p $(dirname {path}); mkfifo {path}\n"),
    );
    assert_eq!(code, Some(4), "{errors}");
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 1, "{errors}");
}

#[test]
fn a_terminal_is_one_in_the_shell_and_stays_as_it_was_outside() {
    let (repository, workshop) = given();
    let task = task_of(&workshop, of_name(&repository, "rounding"));
    let program = workshop.command(&["workspace", "--shell", &task, "--engine", "native"]);
    let words = std::iter::once(program.get_program()).chain(program.get_args());
    let words: Vec<String> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    let line = format!("stty rows 33 cols 77; {}; echo \"code $?\"; stty -a", words.join(" "));
    // `script` gives its command a terminal.
    let mut child = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It is typed ahead, and the terminal's own line discipline keeps it until the shell is there.
    child.stdin.as_mut().unwrap().write_all(b"stty size; tty; echo $TERM$((40 + 2)); exit\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    for expected in ["33 77", "/dev/pts/0", "42", "code 0", " icanon", " echo"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn the_image_for_agents_is_one_for_docker() {
    let (repository, workshop) = given();
    let name = repository.name.as_str();
    let load = ["images", "load", name, "--agent", "--engine", "docker"];
    let output = workshop.command(&load).output().unwrap();
    let image = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    assert!(image.starts_with("testevo-sandbox/testevo/sample/agent:"), "{image}");
    // No command is named: the image's own is a shell.
    let mut docker = Command::new("docker");
    docker.args(["run", "--rm", "-i", "--network", "none", &image]);
    let mut child = docker.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"id -u; pwd; git --version\n").unwrap();
    let said = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    assert!(said.starts_with("1000\n/work\ngit version"), "{said}");

    let directory = tempfile::tempdir().unwrap();
    let archive = directory.path().join("agent.tar");
    workshop.run(&["images", "export", name, "--agent", "-o", archive.to_str().unwrap()]);
    let mut skopeo = Command::new("skopeo");
    let output = skopeo.args(["inspect", "--config", &format!("oci-archive:{}", archive.display())]).output().unwrap();
    let config: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(config["config"]["Cmd"], serde_json::json!(["/bin/bash"]));
}

#[test]
#[ignore = "loads one more image into Docker"]
fn full_a_tasks_image_has_its_workspace() {
    let (repository, workshop) = given();
    let miniature = of_name(&repository, "rounding");
    let task = task_of(&workshop, miniature);
    let load = ["workspace", &task, "--load", "--engine", "docker", "--format", "json"];
    let output = workshop.command(&load).output().unwrap();
    let loaded: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!(loaded["task_id"].as_str(), Some(&*task));
    let image = loaded["name"].as_str().unwrap();
    let script =
        "id -u; pwd; git status --short; git log --format=%s; mvn -o -q test-compile && ls ../TASK.md ../home -d";
    let output =
        Command::new("docker").args(["run", "--rm", "--network", "none", image, "bash", "-c", script]).output();
    let said = String::from_utf8(output.unwrap().stdout).unwrap();
    assert_eq!(said.lines().collect::<Vec<_>>(), ["1000", "/work/project", "Starting tree", "../TASK.md", "../home"]);
    let again = workshop.command(&load).output().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&again.stdout).unwrap(), loaded, "equal workspaces are equal images");
}

/// Whoever has a bundle for agents and nothing else, neither tasks' data nor locks, works in a shell as well, and collects from it.
#[test]
#[ignore = "takes minutes: `bundle create` searches the whole image for answers"]
fn full_a_bundle_is_enough_for_a_shell_and_for_an_image() {
    let (repository, workshop) = given();
    let miniature = of_name(&repository, "new-class");
    let task = task_of(&workshop, miniature);
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let [bundle, data, file] = ["bundle", "data", "predictions.jsonl"].map(|name| directory.path().join(name));
    let create = ["bundle", "create", "--audience", "agent", repository.name.as_str(), "-o"];
    workshop.run(&[&create[..], &[bundle.to_str().unwrap()]].concat());
    let path = miniature.test_file.as_str();
    let script = format!(
        "mkdir -p $(dirname {path}); echo 'package shop; class Left {{}}' > {path}; mvn -o -q test-compile; echo compiled $?\n"
    );
    for engine in ["native", "docker"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_testevo-sandbox"));
        command.args(["workspace", &task, "--shell", "--bundle"]).arg(&bundle).args(["--unsigned", "--offline"]);
        command.args(["--engine", engine, "--save"]).arg(&file).args(["--model", "m", "--data-dir"]).arg(&data);
        let (code, said, errors) = run_script(command, &script);
        assert_eq!((code, said.as_str()), (Some(0), "compiled 0\n"), "{errors}");
    }
    // The task's image from the bundle is the one that is made where the locks are.
    let load = ["workspace", &task, "--load", "--engine", "docker", "--format", "json"];
    let here = workshop.command(&load).output().unwrap();
    let mut there = Command::new(env!("CARGO_BIN_EXE_testevo-sandbox"));
    there.args(load).args(["--offline", "--unsigned", "--bundle"]).arg(&bundle).arg("--data-dir").arg(&data);
    let there = there.output().unwrap();
    assert!(there.status.success(), "{}", String::from_utf8_lossy(&there.stderr));
    assert_eq!(String::from_utf8_lossy(&there.stdout), String::from_utf8_lossy(&here.stdout));
    assert!(!data.join("locks/toolchain.lock").exists(), "a bundle for agents has no locks");
    let lines = fs::read_to_string(&file).unwrap();
    let expected = serde_json::json!({
        "instance_id": task, "model_name_or_path": "m", "model_file": "package shop; class Left {}\n",
    });
    let predictions: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(predictions, [expected.clone(), expected]);
}

#[test]
fn without_locked_tools_it_is_said_what_to_do() {
    let repository = SampleRepository::demo().unwrap();
    let workshop = Workshop::apart(&repository);
    workshop.import(&repository, "");
    let (code, said) = workshop.try_run(&["workspace", "--shell", "--limit", "1"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("run `testevo-sandbox lock testevo/sample`"), "{said}");
}
