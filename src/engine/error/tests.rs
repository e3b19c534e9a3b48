use super::*;

#[test]
fn a_runtime_that_refuses_the_machines_groups_is_told_from_other_failures() {
    // Podman 4.3.1 with crun 1.8.1.
    let message = "preparing container 0 for attach: crun: cgroups in hybrid mode not supported, drop all controllers from \
                       cgroupv2: OCI runtime error";
    let hint = EngineError::StartFailed { purpose: "test".into(), message: message.into() }.hint();
    assert!(hint.is_some_and(|hint| hint.contains("runc")));
}

#[test]
fn who_reads_what_doctor_says_is_not_sent_to_doctor() {
    // As many numbers as the kernel has, and none at all.
    for errno in 0..=133 {
        for stage in [Stage::Namespaces, Stage::Layers, Stage::Identity] {
            let (purpose, message) = ("probe".to_owned(), String::new());
            let hint = EngineError::NativeStep { purpose, stage, errno, message }.hint().unwrap();
            assert!(!hint.contains("doctor"), "{stage:?} {errno}: {hint}");
        }
    }
}

#[test]
fn a_daemon_without_users_to_give_away_is_told_from_other_failures() {
    let hint = |message: &str| {
        EngineError::StartFailed { purpose: "test".into(), message: message.to_owned() }.hint().unwrap_or_default()
    };
    for message in [
        // Podman 4.3.1 with runc 1.1.5, with scratch and without.
        "runc create failed: error mounting \"tmpfs\" to rootfs at \"/work\": mount tmpfs:/tmp/a (via /proc/self/fd/6), \
             flags: 0x6, data: size=16777216,mode=755,uid=1000,gid=1000: invalid argument: OCI runtime error",
        "runc create failed: unable to start container process: unable to setup user: invalid argument",
    ] {
        assert!(hint(message).contains("--add-subuids"), "{message}");
    }
    for message in ["exec format error", "mount tmpfs, data: size=1,uid=1000,gid=1000: no space left on device"] {
        assert!(hint(message).contains("the engine's own words"), "{message}");
    }
}
