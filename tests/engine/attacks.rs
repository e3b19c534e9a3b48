//! What programs try that want out, or more than their share, beyond what the other modules show.

use testevo_sandbox::engine::spec::CommandEnd;

use super::support::*;

on_every_engine!(
    nothing_of_the_machine_can_be_seen_or_steered,
    no_namespace_no_foreign_socket_no_keys,
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

async fn memory_of_every_kind_has_its_limit() {
    let more = "400000000";
    let kinds = ["eat", "eat-heap", "eat-shared", "eat-memfd"];
    let run = steps(kinds.into_iter().map(|kind| step(&[kind, more])).collect()).await;
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
