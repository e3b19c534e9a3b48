use super::super::Status;
use super::*;
use crate::engine::Isolation;

fn description() -> EngineDescription {
    EngineDescription {
        name: "docker".into(),
        version: "20".into(),
        api_version: "1.41".into(),
        address: "unix:///a".into(),
        kernel: "6".into(),
        architecture: "x86_64".into(),
        runtime: "runc".into(),
        cgroup_version: Some(2),
        storage: "overlay2".into(),
        storage_directory: None,
        processors: 2,
        memory_bytes: 1,
        isolation: Isolation {
            rootless: false,
            seccomp: true,
            user_namespace: false,
            mandatory_access_control: None,
            unenforced: Vec::new(),
        },
    }
}

fn status_of(engines: &Engines, check: &str) -> Vec<Status> {
    engines.checks.iter().filter(|found| found.check == check).map(|found| found.status).collect()
}

#[test]
fn one_engine_is_enough() {
    let absent = || Candidate { address: "unix:///b".into(), found: Err("No such file or directory".into()) };
    let found = judge(vec![absent(), Candidate { address: "unix:///a".into(), found: Ok(description()) }]);
    assert!(found.missing.is_none());
    assert_eq!(status_of(&found, "engine"), [Status::Ok, Status::Ok]);
    let found = judge(vec![absent()]);
    assert!(matches!(found.missing, Some(EngineError::Unreachable { ref tried }) if tried.len() == 1));
    assert_eq!(status_of(&found, "engine"), [Status::Fail]);
    assert!(status_of(&found, "limits").is_empty());
}

#[test]
fn what_is_not_enforced_is_named() {
    let mut weak = description();
    weak.isolation.unenforced = vec!["swap".into()];
    weak.isolation.seccomp = false;
    let found = judge(vec![Candidate { address: "unix:///a".into(), found: Ok(weak) }]);
    assert_eq!(status_of(&found, "limits"), [Status::Warn]);
    assert_eq!(status_of(&found, "isolation"), [Status::Warn]);
    assert!(found.checks.iter().any(|check| check.detail == "not enforced: swap"));
}
