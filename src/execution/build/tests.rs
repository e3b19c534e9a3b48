//! Which builds are tried again: tests with scripted containers.

use std::sync::Arc;

use tokio::sync::RwLock;

use super::*;
use crate::data_dir::DataDir;
use crate::engine::frame::Frame;
use crate::engine::scripted::{Said, Scripted, completed, exited, output, step_end};
use crate::engine::spec::{StepResult, Stream};
use crate::execution::attempt::Confirmed;
use crate::execution::scripted::{executor, image, out_of_time, task};
use crate::outcome::CompileReason;
use crate::task::Cell;

/// Builds by a script and returns outcome, attempts and containers. The script is told how many containers were started before, and
/// the lock that second runs of timeouts hold alone.
async fn build(script: impl Fn(usize, &RwLock<()>) -> Said + Send + Sync + 'static) -> (Outcome, u32, usize) {
    let (build, containers) = build_of(None, script).await;
    let BuildEnd::Failed { outcome, .. } = build.end else { panic!("nothing was compiled") };
    assert!(!build.believed, "nothing was confirmed before");
    (outcome, build.attempts, containers)
}

/// Does the same for a submission of which something is confirmed.
async fn build_of(
    confirmed: Option<Confirmed>,
    script: impl Fn(usize, &RwLock<()>) -> Said + Send + Sync + 'static,
) -> (Build, usize) {
    let directory = tempfile::tempdir().unwrap();
    let alone = Arc::new(RwLock::new(()));
    let lock = Arc::clone(&alone);
    let engine = Arc::new(Scripted::new(move |number, _| script(number, &lock)));
    let data_dir = DataDir::open(directory.path()).unwrap();
    let executor = Executor { exclusive: alone, confirmed, ..executor(&engine, &data_dir) };
    let logs = CellLogs::create(None, &task().id, Cell::Nn).unwrap();
    let request = BuildRequest {
        purpose: "compile",
        image: &image(),
        tree: &directory.path().join("tree.tar"),
        module: &ModuleArguments::default(),
        target_file: Some("src/test/java/ATest.java"),
        other_text: None,
        logs: &logs,
    };
    let build = executor.build(&request).await.unwrap();
    (build, engine.started().len())
}

/// What init says of a program whose Maven ended like this.
fn ended(end: StepResult) -> Vec<Frame> {
    let done = || StepResult::Done;
    vec![step_end(0, done()), step_end(1, done()), step_end(2, end)]
}

#[tokio::test]
async fn a_build_that_fails_has_two_retries() {
    let failed = build(|_, alone| {
        assert!(alone.try_write().is_err() && alone.try_read().is_ok(), "others may go on");
        Said { frames: [ended(exited(1)), vec![completed()]].concat(), ends: true }
    });
    assert_eq!(failed.await, (Outcome::InfraFail(InfraReason::Build), 3, 3));
}

#[tokio::test]
async fn a_build_that_ran_out_of_time_is_believed_after_a_second_run_alone() {
    let believed = build(|number, alone| {
        assert_eq!(alone.try_read().is_ok(), number == 0, "the second run is alone");
        let end = if number == 0 { out_of_time() } else { exited(1) };
        let recording = br#"{"event":"recording_started","schema":2}
{"event":"session_started","projects":[{"project":"g:a","basedir":"/work/project","output":"o","test_output":"t"}]}
{"event":"mojo_failed","project":"g:a","plugin":"org.apache.maven.plugins:maven-compiler-plugin:3","goal":"testCompile","compiler_messages":[{"file":"/work/project/src/test/java/ATest.java","line":1,"text":"no"}]}
{"event":"session_ended","success":false}
"#;
        let mut frames = ended(end);
        if number > 0 {
            frames.extend(output(3, Stream::Content, recording));
            frames.push(step_end(3, StepResult::Done));
        }
        frames.push(completed());
        Said { frames, ends: true }
    });
    assert_eq!(believed.await, (Outcome::CompileFail(CompileReason::TargetFile), 2, 2));
    let twice = build(|_, _| Said { frames: ended(out_of_time()), ends: true });
    assert_eq!(twice.await, (Outcome::InfraFail(InfraReason::Build), 2, 2), "two runs are enough");
}

#[tokio::test]
async fn a_file_that_exhausts_the_compiler_has_the_machine_to_itself_once() {
    let compiling = br#"{"event":"recording_started","schema":2}
{"event":"session_started","projects":[{"project":"g:a","basedir":"/work/project","output":"o","test_output":"t"}]}
{"event":"mojo_started","project":"g:a","plugin":"org.apache.maven.plugins:maven-compiler-plugin:3","goal":"testCompile"}
"#;
    let bomb = |_: usize, _: &RwLock<()>| {
        let mut frames = ended(out_of_time());
        frames.extend(output(3, Stream::Content, compiling));
        frames.extend([step_end(3, StepResult::Done), completed()]);
        Said { frames, ends: true }
    };
    let confirmed = Confirmed::default();
    for (attempts, believed) in [(2, false), (1, true)] {
        let (build, containers) = build_of(Some(confirmed.clone()), bomb).await;
        assert!(build.is_exhausted());
        assert_eq!((build.attempts, containers, build.believed), (attempts, attempts as usize, believed));
    }
    // A build that is slow elsewhere says nothing of the file.
    let confirmed = Confirmed::default();
    let slow = |_: usize, _: &RwLock<()>| Said { frames: ended(out_of_time()), ends: true };
    for _ in 0..2 {
        let (build, containers) = build_of(Some(confirmed.clone()), slow).await;
        assert_eq!((containers, build.believed, confirmed.compilations.is_confirmed()), (2, false, false));
    }
}
