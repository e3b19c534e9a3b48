//! Directories that an agent took the rights from, and what Harbor's verifiers meet in directories that an agent could write to.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::process::Command;

use super::super::harbor::trials;
use super::*;

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Does something as the user of tasks' containers if this process is root, whom no rights hold back.
fn unprivileged<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let as_user = || {
        if rustix::process::geteuid().is_root() {
            // The user of this thread alone.
            rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(TASK_USER)).unwrap();
        }
        work()
    };
    std::thread::scope(|scope| scope.spawn(as_user).join().unwrap())
}

#[test]
fn a_directory_without_rights_loses_no_target() {
    let setup = Setup::new(Some(OLD_TEST));
    let project = setup.written();
    fs::write(project(TEST), "mine").unwrap();
    chmod(setup.directory.path(), 0o755);
    let collect = || {
        let (task, output, tree) = (&setup.task, setup.output(), setup.repository.tree(&setup.task.rev2).unwrap());
        unprivileged(|| super::collect(&task.into(), &output, &tree))
    };
    for (path, mode) in [("src/main", 0o000), ("", 0o300), ("src/test/java/p", 0o300)] {
        chmod(&project(path), mode);
        let collected = collect().unwrap();
        chmod(&project(path), 0o755);
        assert_eq!(collected.text.as_deref(), Some("mine"), "{path}");
        assert_eq!(
            (collected.incomplete, collected.ignored),
            (Some("a directory can't be read"), Vec::new()),
            "{path}"
        );
    }
    chmod(&project("src/test"), 0o000);
    let refused = collect();
    chmod(&project("src/test"), 0o755);
    assert!(matches!(refused, Err(AgentError::Refused { .. })), "{refused:?}");
}

#[test]
fn a_file_of_another_size_is_not_read() {
    let setup = Setup::new(Some(OLD_TEST));
    let project = setup.written();
    // More bytes than are compared.
    fs::File::create(project("pom.xml")).unwrap().set_len(2 << 30).unwrap();
    let collected = setup.collect().unwrap();
    assert_eq!((collected.ignored, collected.incomplete), (vec!["changed: pom.xml".to_owned()], None));
}

#[test]
fn a_trial_without_rights_is_refused() {
    let setup = Setup::new(Some(OLD_TEST));
    let directory = tempfile::tempdir().unwrap();
    let trial = directory.path().join("trial");
    let project = trial.join("artifacts/work/project");
    fs::create_dir_all(project.join(TEST).parent().unwrap()).unwrap();
    fs::write(project.join(TEST), "mine").unwrap();
    let config = json!({"task": {"path": "tasks/task-1"}, "trial_name": "trial"});
    fs::write(trial.join("config.json"), config.to_string()).unwrap();
    chmod(directory.path(), 0o755);
    let target = || {
        let (trial, task) = (trial.clone(), &setup.task);
        unprivileged(move || trials::find(&trial).unwrap().trials.remove(0).target(task))
    };
    let mine = Some("mine".to_owned());
    chmod(&project, 0o311);
    assert_eq!(target().unwrap(), mine);
    for refused in [project.clone(), trial.join("artifacts/work")] {
        chmod(&refused, 0o000);
        let found = target();
        chmod(&refused, 0o755);
        assert!(matches!(found, Err(AgentError::Refused { .. })), "{}: {found:?}", refused.display());
    }
    assert_eq!(target().unwrap(), mine);
}

/// Runs lines of Python that know the verifiers' modules and a directory `logs`.
fn python(logs: &Path, lines: &str) {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/harbor");
    let stand_ins = r#"
import os, sys, types
clients, logs = sys.argv[1:]
sys.dont_write_bytecode = True
sys.path.insert(0, clients)
for name, member in [("harbor.models.verifier.result", "VerifierResult"), ("harbor.verifier.base", "BaseVerifier")]:
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:end]), types.ModuleType(parts[end - 1]))
    setattr(sys.modules[name], member, type(member, (), {}))
import verify
from testevo_sandbox_harbor import HostVerifier
"#;
    let output =
        Command::new("python3").arg("-c").arg(format!("{stand_ins}{lines}")).args([&clients, logs]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn harbors_verifiers_take_what_an_agent_left() {
    let logs = tempfile::tempdir().unwrap();
    for name in ["report.csv", "scoring.log", "reward.json", "predictions.jsonl"] {
        fs::create_dir_all(logs.path().join(name).join("below")).unwrap();
        fs::write(logs.path().join(name).join("below/file"), "x").unwrap();
    }
    python(
        logs.path(),
        r#"
verify.LOGS = logs
verify.keep("reward.json", "{}")
verify.keep("report.csv", "of the container")
host = HostVerifier.__new__(HostVerifier)
host.trial_paths = types.SimpleNamespace(verifier_dir=logs)
host._keep("scoring.log", b"said")
host._keep("predictions.jsonl", b"line")
"#,
    );
    let read = |name: &str| fs::read_to_string(logs.path().join(name)).unwrap();
    assert_eq!((read("report.csv"), read("scoring.log")), ("of the container".to_owned(), "said".to_owned()));

    let _socket = UnixListener::bind(logs.path().join("socket")).unwrap();
    fs::write(logs.path().join("file"), "mine").unwrap();
    fs::create_dir(logs.path().join("directory")).unwrap();
    python(
        logs.path(),
        r#"
assert verify.target(logs + "/socket") is None
assert verify.target(logs + "/missing") is None
before = os.listdir("/proc/self/fd")
assert verify.target(logs + "/directory") is None
assert os.listdir("/proc/self/fd") == before
assert verify.target(logs + "/file") == "mine"
"#,
    );
}

#[test]
fn a_killed_commands_directory_is_told_and_replaced() {
    for (name, task) in [
        (".task-1.unfinished-12", Some("task-1")),
        (".a.unfinished-b.unfinished-1", Some("a.unfinished-b")),
        ("task-1.unfinished-12", None),
        (".task-1.unfinished-x", None),
        (".task-1", None),
    ] {
        assert_eq!(unfinished_task(name.as_ref()), task, "{name}");
    }
    let setup = Setup::new(None);
    let left = setup.output().with_file_name(format!(".task-1.unfinished-{}", std::process::id()));
    fs::create_dir_all(left.join("below")).unwrap();
    setup.write().unwrap();
    assert!(!left.exists());
}
