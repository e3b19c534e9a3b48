use super::*;

const START: &str = r#"{"event":"run_started","schema":1,"class":"p.A","method":"m","platform":"1","java":"8","ms":0}"#;
const DISCOVERED: &str = r#"{"event":"discovered","id":"i","leaf":true,"match":"exact","class":"p.A","ms":1}"#;
const STARTED: &str = r#"{"event":"started","id":"i","leaf":true,"ms":2}"#;
const GOOD: &str = r#"{"event":"finished","id":"i","leaf":true,"status":"SUCCESSFUL","ms":3}"#;

fn finish(status: i32, started: u64, successful: u64, failed: u64) -> String {
    format!(
        r#"{{"event":"run_finished","status":{status},"leaves":{{"discovered":{started},"registered":0,"started":{started},"successful":{successful},"failed":{failed},"aborted":0,"skipped":0,"not_run":0}},"containers_not_successful":0,"report_complete":true,"ms":4}}"#
    )
}

fn thrown(class: &str, message: &str, kind: &str) -> String {
    format!(
        r#"{{"event":"finished","id":"i","leaf":true,"status":"FAILED","throwable":{{"class":"{class}","message":"{message}","frames":1,"stack":["p.A.m(A.java:3)"],"kind":"{kind}","causes":[]}},"ms":3}}"#
    )
}

fn end(exit_code: i32) -> CommandEnd {
    CommandEnd {
        exit_code: Some(exit_code),
        signal: None,
        limit: None,
        cpu_ms: 1,
        peak_resident_bytes: 1,
        dropped_bytes: 0,
        leftover_processes: 0,
        process_limit_hits: Some(0),
        memory_limit_kills: Some(0),
    }
}

fn verdict(end: &CommandEnd, oom_killed: bool, events: &[&str]) -> Outcome {
    whole_verdict(end, oom_killed, events).outcome
}

fn whole_verdict(end: &CommandEnd, oom_killed: bool, events: &[&str]) -> LaunchVerdict {
    let events = events.join("\n");
    classify(&LaunchFacts {
        end,
        oom_killed,
        events: events.as_bytes(),
        seal: None,
        class: "p.A",
        declared_in: "p.A",
        method: "m",
    })
    .0
}

#[test]
fn a_pass_needs_events_and_exit_status_to_agree() {
    let whole = [START, DISCOVERED, STARTED, GOOD, &finish(0, 1, 1, 0)];
    assert_eq!(verdict(&end(0), false, &whole), Outcome::Pass);
    assert_eq!(verdict(&end(1), false, &whole), Outcome::ExecFail(ExecReason::Exit));
    assert_eq!(verdict(&end(0), true, &whole), Outcome::ExecFail(ExecReason::OutOfMemory));
    let killed = CommandEnd { exit_code: None, signal: Some(9), ..end(0) };
    assert_eq!(verdict(&killed, false, &whole), Outcome::ExecFail(ExecReason::Exit));
    for left_out in 0..whole.len() {
        let mut events = whole.to_vec();
        events.remove(left_out);
        let passed = verdict(&end(0), false, &events) == Outcome::Pass;
        // The single success event is the only one that the counts can stand in for.
        assert_eq!(passed, left_out == 3, "without event {left_out}");
    }
}

#[test]
fn nothing_but_the_requested_method_passes() {
    let other = START.replace("\"m\"", "\"n\"");
    let whole = [&other, DISCOVERED, STARTED, GOOD, &finish(0, 1, 1, 0)];
    assert_ne!(verdict(&end(0), false, &whole), Outcome::Pass);
    let twice = [START, DISCOVERED, STARTED, GOOD, &finish(0, 1, 1, 0), &finish(0, 1, 1, 0)];
    assert_ne!(verdict(&end(0), false, &twice), Outcome::Pass, "events after the end are forged");
}

#[test]
fn reasons_are_the_most_specific_ones() {
    let timeout = CommandEnd { limit: Some(LimitReached::Wall), exit_code: None, signal: Some(9), ..end(0) };
    for (end, events, reason) in [
        (end(1), vec![START, DISCOVERED, STARTED], ExecReason::Exit),
        (end(0), vec![], ExecReason::Exit),
        (timeout, vec![START, DISCOVERED, STARTED], ExecReason::Timeout),
        (end(2), vec![START, &finish(2, 0, 0, 0)], ExecReason::NotDiscovered),
        (end(2), vec![START, DISCOVERED, &finish(2, 0, 0, 0)], ExecReason::NoLeaf),
    ] {
        assert_eq!(verdict(&end, false, &events), Outcome::ExecFail(reason), "{events:?}");
    }
    for (class, message, kind, reason) in [
        ("java.lang.AssertionError", "x", "assertion", ExecReason::Assertion),
        ("java.lang.IllegalStateException", "x", "exception", ExecReason::Exception),
        ("java.lang.OutOfMemoryError", "Java heap space", "out_of_memory", ExecReason::OutOfMemory),
        ("java.lang.OutOfMemoryError", "unable to create native thread", "out_of_memory", ExecReason::Pids),
        ("java.io.IOException", "No space left on device", "exception", ExecReason::Disk),
    ] {
        let events = [START, DISCOVERED, STARTED, &thrown(class, message, kind), &finish(1, 1, 0, 1)];
        assert_eq!(verdict(&end(1), false, &events), Outcome::ExecFail(reason), "{class}: {message}");
    }
}

#[test]
fn running_out_of_processes_is_not_called_running_out_of_memory() {
    let error = thrown("java.lang.OutOfMemoryError", "unable to create native thread", "out_of_memory");
    let found = whole_verdict(&end(1), false, &[START, DISCOVERED, STARTED, &error]);
    assert!(found.detail.starts_with("no further process or thread could be made: java.lang."), "{}", found.detail);
    let died = CommandEnd { process_limit_hits: Some(1), ..end(1) };
    let found = whole_verdict(&died, false, &[START, DISCOVERED, STARTED]);
    assert_eq!(found.outcome, Outcome::ExecFail(ExecReason::Pids));
    assert_eq!(found.detail, "no further process or thread could be made");
}

#[test]
fn a_skipped_test_is_skipped() {
    let skipped = r#"{"event":"skipped","id":"i","leaf":true,"reason":"disabled","ms":2}"#;
    let finish = finish(1, 0, 0, 0);
    let events = [START, DISCOVERED, skipped, &finish];
    assert_eq!(verdict(&end(1), false, &events), Outcome::ExecFail(ExecReason::Skipped));
}
