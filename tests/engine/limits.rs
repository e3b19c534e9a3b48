//! Every limit, met.

use testevo_sandbox::engine::session::RunEnd;
use testevo_sandbox::engine::spec::{Command, CommandLimits, LimitReached, Step};

use super::support::*;

on_every_engine!(
    wall_time_ends_a_sleeper,
    processor_time_ends_a_spinner_and_one_that_hides_its_time,
    output_is_cut_and_a_flood_ends_at_once,
    memory_is_told_from_other_ends,
    processors_are_shared_out,
    a_fork_bomb_meets_the_limit_of_processes_and_leaves_nothing,
    scratch_is_bounded,
    what_sockets_hold_is_bounded,
    the_containers_own_deadline_holds_whatever_init_is_told,
    scratch_as_large_as_memory_ends_the_container_and_is_called_so
);

fn limited(arguments: &[&str], change: impl FnOnce(&mut CommandLimits)) -> Step {
    let mut limits = command(arguments).limits;
    change(&mut limits);
    Step::Run(Command { limits, ..command(arguments) })
}

async fn wall_time_ends_a_sleeper() {
    let run = steps(vec![limited(&["sleep", "600"], |limits| limits.wall_seconds = 1), step(&["say", "next"])]).await;
    let end = run.end(0);
    assert_eq!((end.limit, end.signal), (Some(LimitReached::Wall), Some(libc::SIGKILL)));
    let wall = run.step(0).report.as_ref().unwrap().wall_ms;
    assert!((1000..60_000).contains(&wall), "{wall} ms");
    assert_eq!(run.stdout(1), "next\n");
}

async fn processor_time_ends_a_spinner_and_one_that_hides_its_time() {
    let run = steps(vec![
        limited(&["spin"], |limits| limits.cpu_seconds = 1),
        limited(&["spin-in-children"], |limits| (limits.cpu_seconds, limits.wall_seconds) = (1, 20)),
    ])
    .await;
    for index in 0..2 {
        let end = run.end(index);
        if index == 1 && by_own_account().await {
            // Time that no parent collects stands in no account but a control group's: `cpu` is named as not enforced.
            assert!(matches!(end.limit, Some(LimitReached::Cpu | LimitReached::Wall)), "{end:?}");
            continue;
        }
        assert_eq!(end.limit, Some(LimitReached::Cpu), "{end:?}");
        assert!((1000..10_000).contains(&end.cpu_ms), "{end:?}");
    }
}

async fn output_is_cut_and_a_flood_ends_at_once() {
    let flood = |descriptor: &str| Step::Run(Command { events: true, ..command(&["flood", "5000000000", descriptor]) });
    let run = steps(vec![
        limited(&["flood", "3000000"], |limits| limits.output_bytes = 1_000_000),
        flood("1"),
        flood("2"),
        flood("3"),
    ])
    .await;
    let cut = run.end(0);
    assert_eq!((cut.exit_code, cut.limit, cut.dropped_bytes), (Some(0), None, 2_000_000));
    assert_eq!(run.step(0).stdout.length(), 1_000_000);
    assert!(run.step(0).stdout.bytes().unwrap().iter().all(|byte| *byte == b'x'));
    let kept = [&run.step(1).stdout, &run.step(2).stderr, &run.step(3).events];
    for (index, kept) in (1..).zip(kept) {
        let flood = run.end(index);
        assert_eq!(flood.limit, Some(LimitReached::Output), "{index}");
        assert!(flood.dropped_bytes < 70 * MIB, "{index}: {flood:?}");
        assert_eq!(kept.length(), MIB, "{index}");
    }
}

async fn memory_is_told_from_other_ends() {
    let more = "400000000";
    let run = steps(vec![
        step(&["eat-and-hold", "private", more]),
        step(&["eat-and-hold-in-child", "private", more]),
        step(&["abort"]),
        step(&["eat", "private", "10000000"]),
        step(&["kill-itself"]),
    ])
    .await;
    run.assert_completed();
    let killed = run.end(0);
    assert_eq!((killed.signal, killed.limit, killed.memory_limit_kills), (Some(libc::SIGKILL), None, Some(1)));
    let hidden = run.end(1);
    assert_eq!((hidden.exit_code, hidden.memory_limit_kills), (Some(0), Some(1)));
    assert_eq!(run.end(2).memory_limit_kills, Some(0));
    assert_eq!((run.end(3).exit_code, run.end(3).memory_limit_kills), (Some(0), Some(0)));
    assert!(run.end(3).peak_resident_bytes > 10_000_000, "{:?}", run.end(3));
    // The same signal, and nobody's limit.
    let other = run.end(4);
    assert_eq!((other.signal, other.limit, other.memory_limit_kills), (Some(libc::SIGKILL), None, Some(0)));
    assert!(run.run.memory_limit_met && run.run.memory_limit_met_in(0) && !run.run.memory_limit_met_in(4));
}

async fn processors_are_shared_out() {
    let engine = engine().await;
    let mut spec = spec(loaded_image(&*engine).await, vec![step(&["spin-threads", "4", "2000"])]);
    spec.limits.cpus = 1;
    let run = finish(&spec).await;
    let (end, wall) = (run.end(0), run.step(0).report.as_ref().unwrap().wall_ms);
    assert_eq!((end.exit_code, end.limit), (Some(0), None), "{end:?}");
    let unenforced = engine.describe().await.unwrap().isolation.unenforced;
    let held = end.cpu_ms < wall + wall / 4;
    assert!(held || unenforced.iter().any(|name| name == "cpu"), "{} ms of processor time in {wall} ms", end.cpu_ms);
}

async fn a_fork_bomb_meets_the_limit_of_processes_and_leaves_nothing() {
    let run = steps(vec![limited(&["fork-bomb"], |limits| limits.wall_seconds = 20), step(&["self"])]).await;
    let end = run.end(0);
    assert!(end.process_limit_hits.unwrap() > 0, "{end:?}");
    assert!(end.leftover_processes > 30, "{end:?}");
    assert!(run.stdout(1).contains("processes: 2\n"), "{}", run.stdout(1));
    assert_eq!(run.end(1).process_limit_hits, Some(0));
}

async fn scratch_is_bounded() {
    let run = steps(vec![step(&["fill", "/work/file"]), step(&["fill", "/dev/shm/file"])]).await;
    assert!(run.stdout(0).contains("StorageFull 28"), "{}", run.stdout(0));
    assert!(run.stdout(1).contains("StorageFull 28"), "{}", run.stdout(1));
}

/// Bytes that wait in sockets which nobody reads are the kernel's memory, and no process's.
async fn what_sockets_hold_is_bounded() {
    let run = steps(vec![step(&["fill-sockets", "400"]), step(&["cat", "/proc/sys/net/ipv4/tcp_rmem"])]).await;
    let (end, said) = (run.end(0), run.stdout(0));
    // Where it is memory like any other the limit of memory may end the command.
    let ended = end.memory_limit_kills.is_some_and(|kills| kills > 0);
    let queued = |kind: &str| -> Option<u64> { said.lines().find_map(|line| line.strip_prefix(kind)?.parse().ok()) };
    let unenforced = engine().await.describe().await.unwrap().isolation.unenforced;
    let [tcp, udp] = [queued("tcp: "), queued("udp: ")];
    if unenforced.iter().any(|name| name == "socket memory") {
        // A connection has two buffers of at most 1 MiB each, one of which does not grow while nobody reads.
        assert!(ended || tcp.is_some_and(|bytes| bytes < 400 * 3 * MIB / 2), "{end:?}: {said}");
    } else {
        assert!(ended || tcp.zip(udp).is_some_and(|(tcp, udp)| tcp + udp < 256 * MIB), "{end:?}: {said}");
    }
    assert_eq!(run.stdout(1).split_whitespace().last(), Some("1048576"));
}

async fn the_containers_own_deadline_holds_whatever_init_is_told() {
    let engine = engine().await;
    let image = loaded_image(&*engine).await;
    let mut spec = spec(image, vec![step(&["say", "before"]), step(&["sleep", "600"])]);
    spec.limits.wall_seconds = 2;
    let run = attempt(&spec).await.unwrap();
    assert_eq!(run.run.end, RunEnd::Deadline);
    assert_eq!(run.stdout(0), "before\n");
    assert!(run.run.step(1).is_none());
}

async fn scratch_as_large_as_memory_ends_the_container_and_is_called_so() {
    let engine = engine().await;
    let image = loaded_image(&*engine).await;
    let mut spec = spec(image, vec![step(&["fill", "/work/file"])]);
    spec.limits.memory_bytes = 64 * MIB;
    spec.scratch[0].size_bytes = 128 * MIB;
    let run = attempt(&spec).await.unwrap();
    // The command is killed first; whether init survives in what is left is the kernel's to decide.
    match run.run.end {
        RunEnd::OutOfMemory => {}
        RunEnd::Program(_) => assert!(run.end(0).memory_limit_kills.unwrap() > 0),
        ref other => panic!("{other:?}"),
    }
    assert!(run.run.memory_limit_met);
}
