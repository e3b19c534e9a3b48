use serde::de::IntoDeserializer as _;

use super::*;

#[test]
fn a_failure_names_step_path_and_cause() {
    let errno = io::Error::from_raw_os_error(libc::EPERM);
    let failure = Failure::new(Stage::Processes, "proc", errno);
    let line = serde_json::to_string(&Message::Failed(failure)).unwrap();
    let Message::Failed(read) = serde_json::from_str(&line).unwrap() else { panic!("{line}") };
    assert_eq!(read.to_string(), "mounting /proc (proc): Operation not permitted (os error 1)");
    assert!(read.stage.remedy(read.errno).unwrap().contains("systempaths=unconfined"));
}

#[test]
fn the_number_is_found_within_an_error_that_names_a_file() {
    let error = fs_err::read("/nowhere/at/all").unwrap_err();
    assert_eq!(Failure::new(Stage::Mounts, "", error).errno, libc::ENOENT);
    assert_eq!(Failure::new(Stage::Mounts, "", io::Error::other("no number")).errno, 0);
}

#[test]
fn known_refusals_have_a_remedy() {
    for (stage, errno, word) in [
        (Stage::Namespaces, libc::ENOSPC, "max_user_namespaces"),
        (Stage::Namespaces, libc::EPERM, "unprivileged_userns_clone"),
        (Stage::Staging, libc::EACCES, "AppArmor"),
        (Stage::Layers, libc::EINVAL, "5.12"),
        (Stage::Placement, libc::EACCES, "Delegate=yes"),
    ] {
        assert!(stage.remedy(errno).unwrap().contains(word), "{stage:?}");
    }
    assert_eq!(Stage::Identity.remedy(libc::EINVAL), None);
}

#[test]
fn every_step_that_can_be_forbidden_has_a_remedy() {
    // By number, so that none can be left out.
    let stages = (0_u32..).map_while(|number| {
        let found: Result<Stage, serde::de::value::Error> = Stage::deserialize(number.into_deserializer());
        found.ok()
    });
    let stages: Vec<Stage> = stages.collect();
    assert_eq!((stages.first(), stages.last()), (Some(&Stage::Request), Some(&Stage::Init)));
    for stage in stages {
        for errno in [libc::EPERM, libc::EACCES] {
            assert!(stage.remedy(errno).is_some(), "{stage:?}: {}", io::Error::from_raw_os_error(errno));
        }
    }
}
