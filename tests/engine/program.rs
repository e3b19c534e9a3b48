//! What an init does when nobody misbehaves.

use testevo_sandbox::engine::session::RunEnd;
use testevo_sandbox::engine::spec::{ProgramEnd, Step, StepResult};

use super::support::*;

on_every_engine!(a_command_runs_sealed, streams_and_statuses_are_told_apart);

async fn a_command_runs_sealed() {
    let mut described = command(&["self"]);
    described.environment.push(("GREETING".into(), "hello".into()));
    let run = steps(vec![Step::Run(described)]).await;
    run.assert_completed();
    assert_eq!(run.end(0).exit_code, Some(0));
    insta::assert_snapshot!("a_command_runs_sealed", as_named_by_images(run.stdout(0)));
}

async fn streams_and_statuses_are_told_apart() {
    let mut streams = command(&["streams"]);
    streams.events = true;
    let mut bare_name = command(&["exit", "0"]);
    bare_name.argv[0] = "misbehave".into();
    let run = steps(vec![
        Step::Run(streams),
        step(&["exit", "3"]),
        step(&["abort"]),
        Step::Run(bare_name),
        Step::Run(testevo_sandbox::engine::spec::Command { only_after_success_of: Some(1), ..command(&["exit", "0"]) }),
        Step::Run(testevo_sandbox::engine::spec::Command { only_after_success_of: Some(3), ..command(&["exit", "0"]) }),
        Step::Run(testevo_sandbox::engine::spec::Command { required: true, ..command(&["exit", "7"]) }),
        step(&["say", "never"]),
    ])
    .await;
    assert_eq!(run.stdout(0), "to stdout\n");
    assert_eq!(*run.step(0).stderr.bytes().unwrap(), *b"to stderr\n");
    assert_eq!(*run.step(0).events.bytes().unwrap(), *b"to events\n");
    assert_eq!((run.end(1).exit_code, run.end(1).signal), (Some(3), None));
    assert_eq!((run.end(2).exit_code, run.end(2).signal), (None, Some(libc::SIGABRT)));
    assert_eq!(run.end(3).exit_code, Some(0));
    assert_eq!(*run.result(4), StepResult::Skipped);
    assert_eq!(run.end(5).exit_code, Some(0));
    assert_eq!(run.end(6).exit_code, Some(7));
    assert_eq!(run.run.end, RunEnd::Program(ProgramEnd::Stopped { step: 6 }));
    assert!(run.run.step(7).is_none());
}
