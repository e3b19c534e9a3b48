//! What programs try that want out, or more than their share, beyond what the other modules show.

use testevo_sandbox::engine::spec::CommandEnd;

use super::support::*;

on_every_engine!(
    nothing_of_the_machine_can_be_seen_or_steered,
    no_namespace_no_foreign_socket_no_keys,
    no_mark_stays_on_the_machine,
    memory_of_every_kind_has_its_limit,
);

async fn nothing_of_the_machine_can_be_seen_or_steered() {
    let run = steps(vec![step(&["look-around"])]).await;
    let refusals = vec![(r"(?m)^write (.*): \w+ \d+$", "write $1: refused")];
    insta::with_settings!({filters => refusals}, {
        insta::assert_snapshot!("nothing_of_the_machine_can_be_seen_or_steered", run.stdout(0));
    });
}

async fn no_namespace_no_foreign_socket_no_keys() {
    let run = steps(vec![step(&["namespaces"])]).await;
    insta::assert_snapshot!("no_namespace_no_foreign_socket_no_keys", run.stdout(0));
}

/// What a container leaves there tells later ones how many were before them, and so launches on mutants from others.
async fn no_mark_stays_on_the_machine() {
    let times = || {
        let of = |name| fs_err::metadata(format!("/dev/{name}")).unwrap().modified().unwrap();
        ["null", "zero", "full", "random", "urandom"].map(of)
    };
    let before = times();
    let run = steps(vec![step(&["leave-marks"])]).await;
    let said = run.stdout(0);
    let refused: Vec<&str> = said.lines().filter(|line| line.ends_with(" 95")).collect();
    assert_eq!(refused.len(), 3, "{said}");
    assert_eq!(said.lines().count(), 8, "{said}");
    // Podman without root may bind the machine's own nodes (docs/security.md).
    if !is_podman_without_root() {
        assert_eq!(times(), before, "{said}");
    }
}

async fn memory_of_every_kind_has_its_limit() {
    let more = "400000000";
    let kinds = ["private", "heap", "shared", "memfd"];
    // Held until the limit ends it: an account that looks now and then sees nothing of what is gone before its next look.
    let run = steps(kinds.into_iter().map(|kind| step(&["eat-and-hold", kind, more])).collect()).await;
    run.assert_completed();
    let killed = |end: &CommandEnd| (end.signal, end.limit, end.memory_limit_kills.is_some_and(|kills| kills > 0));
    for index in 0..3 {
        assert_eq!(killed(run.end(index)), (Some(libc::SIGKILL), None, true), "{:?}", run.end(index));
    }
    // Where nobody adds such memory up there is none.
    match by_own_account().await {
        true => assert!(run.stdout(3).starts_with("memfd: Unsupported"), "{}", run.stdout(3)),
        false => assert_eq!(killed(run.end(3)), (Some(libc::SIGKILL), None, true), "{:?}", run.end(3)),
    }
}

/// `tests/engine/mounts.rs` shows it for the built-in engine.
#[tokio::test]
async fn a_daemons_containers_run_as_nobody_on_the_machine() {
    for kind in [Kind::Daemon, Kind::Podman] {
        run_on(kind);
        is_nobody_on_the_machine().await;
    }
}

async fn is_nobody_on_the_machine() {
    let maps = ["/proc/self/uid_map", "/proc/self/gid_map", "/etc/passwd", "/etc/group"];
    let mut program: Vec<_> = maps.into_iter().map(|path| step(&["cat", path])).collect();
    program.push(step(&["self"]));
    let run = steps(program).await;
    run.assert_completed();
    let described = run.stdout(4);
    for (index, (kind, known)) in [("user", "/etc/passwd"), ("group", "/etc/group")].into_iter().enumerate() {
        let (_, number) = described.split_once(&format!("{kind}: [")).unwrap();
        let inside: u32 = number.split_once(',').unwrap().0.parse().unwrap();
        let map = run.stdout(index);
        let ranges: Vec<u32> = map.split_whitespace().map(|number| number.parse().unwrap()).collect();
        let range = ranges.chunks(3).find(|range| (range[0]..range[0].saturating_add(range[2])).contains(&inside));
        let outside = range.map(|range| inside - range[0] + range[1]).unwrap();
        let machines = fs_err::read_to_string(known).unwrap();
        let is_somebody = machines.lines().any(|line| line.split(':').nth(2) == Some(&outside.to_string()));
        let is_oneself = outside == rustix::process::geteuid().as_raw() && outside != 0;
        assert!(is_oneself || !is_somebody, "{kind} {outside}");
        // Where images name the user, containers do so by the number that it has there.
        let line = format!("task:x:{inside}:");
        let named = run.stdout(2 + index);
        assert!(named.is_empty() || named.contains(&line), "{named}");
    }
}
