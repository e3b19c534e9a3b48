//! The part of fuzzing that CI does: each target over its seeds, over what once failed, and over a bounded number of random changes.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use fuzz::{TARGETS, Target};

/// As much stack as threads of the program have that parse.
const STACK_BYTES: usize = 2 << 20;
/// A whole target takes a few seconds of processor time; what takes longer than this on a busy machine hangs.
const PATIENCE: Duration = Duration::from_secs(900);

fn bounded(name: &str) {
    let target = Target::named(name).unwrap();
    let failures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
    // Where the stack overflows, the runtime says the thread's name and ends the process.
    let current = failures.join(format!("{name}.current"));
    let thread = format!("fuzz target {name}, input in {}", current.display());
    let (sender, receiver) = channel();
    let run = move || drop(sender.send(target.bounded(&failures)));
    let thread = std::thread::Builder::new().name(thread).stack_size(STACK_BYTES).spawn(run).unwrap();
    match receiver.recv_timeout(PATIENCE) {
        Ok(Ok(inputs)) => assert!(inputs > 100, "{inputs}"),
        Ok(Err(failure)) => panic!("{failure}"),
        Err(RecvTimeoutError::Timeout) => {
            panic!("the target `{name}` hangs; try it again with\n  cargo run -p fuzz -- {name} {}", current.display())
        }
        Err(RecvTimeoutError::Disconnected) => panic!("the target `{name}` ended: {:?}", thread.join()),
    }
}

macro_rules! targets {
    ($($name:ident)*) => {
        $(#[test] fn $name() { bounded(stringify!($name)); })*

        #[test]
        fn every_target_is_tested() {
            let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

targets! {
    frames
    session
    compiler
    events
    coverage
    trace
    recording
    mutants
    class_reader
    class_editor
    java
    java_scanner
    patch
    predictions
    tree
    layer
    deb
    wheel
    jar
    lock_archive
    bundle
    objects
    run
    audit
    workspace
    trial
    control
    packages
    release
    pom
    metadata
    locks
    manifest
    settings
    published
    records
    kept
    names
}
