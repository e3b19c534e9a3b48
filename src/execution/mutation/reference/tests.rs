//! What Maven's builds come to: tests with scripted containers.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use super::*;
use crate::data_dir::DataDir;
use crate::engine::scripted::{Said, Scripted, completed, exited, output, step_end};
use crate::engine::spec::{ContainerSpec, StepResult, Stream};
use crate::execution::fault;
use crate::execution::scripted::{executor, image};

/// What a build's main sources come to in a script.
#[derive(Clone, Copy, PartialEq)]
enum Comes {
    Well,
    Errors,
    /// Another goal fails.
    Otherwise,
    /// It says nothing.
    Silent,
    /// The container is gone.
    Gone,
}

/// Answers each build of a container by the text that it is given, `None` for the source as it is.
fn answered(spec: &ContainerSpec, comes: impl Fn(Option<&str>) -> Comes) -> Said {
    let (mut frames, mut text) = (Vec::new(), None);
    let mut said = String::new();
    for (index, step) in spec.program.steps.iter().enumerate() {
        let end = match step {
            Step::Write { content, .. } => {
                text = Some(content.as_str());
                StepResult::Done
            }
            Step::Run(_) => {
                let (events, code) = match comes(text.take()) {
                    Comes::Well => (r#"{"event":"session_ended","success":true}"#.to_owned(), 0),
                    Comes::Errors => (failed("compile", r#"{"file":"/A.java","line":1,"text":"no"}"#), 1),
                    Comes::Otherwise => (failed("check", ""), 1),
                    Comes::Silent => (String::new(), 1),
                    Comes::Gone => return Said { frames, ends: true },
                };
                said = format!("{{\"event\":\"recording_started\",\"schema\":2}}\n{events}\n");
                exited(code)
            }
            Step::SendFile { .. } => {
                frames.extend(output(u32::try_from(index).unwrap(), Stream::Content, said.as_bytes()));
                StepResult::Done
            }
            _ => StepResult::Done,
        };
        frames.push(step_end(index, end));
    }
    frames.push(completed());
    Said { frames, ends: true }
}

fn failed(goal: &str, messages: &str) -> String {
    format!(
        r#"{{"event":"mojo_failed","project":"g:a","plugin":"p:q:1","goal":"{goal}","compiler_messages":[{messages}]}}"#
    )
}

/// Asks for texts, in containers that answer so; returns the answers, or the cause and whether it may pass, and how many
/// builds each container had.
async fn asked(
    texts: &[&str],
    comes: impl Fn(Option<&str>) -> Comes + Send + Sync + 'static,
) -> (Result<Vec<bool>, (String, bool)>, Vec<usize>) {
    let builds: Arc<Mutex<Vec<usize>>> = Arc::default();
    let counted = Arc::clone(&builds);
    let engine = Arc::new(Scripted::new(move |_, spec| {
        counted.lock().unwrap().push(spec.program.steps.iter().filter(|step| matches!(step, Step::Run(_))).count());
        answered(spec, &comes)
    }));
    let directory = tempfile::tempdir().unwrap();
    let executor = executor(&engine, &DataDir::open(directory.path()).unwrap());
    let image = image();
    let module = ModuleArguments::default();
    let build = ReferenceBuild { archive: Path::new("tree.tar"), tree: "t", module: &module };
    let compiler = match fault::answered(MavenCompiler::new(&executor, &image, build, "A.java").await).unwrap() {
        Ok(compiler) => compiler,
        Err(reason) => return (Err((reason.cause.clone(), reason.may_pass())), builds.lock().unwrap().clone()),
    };
    let answers = fault::answered(compiler.compile(texts).await).unwrap();
    let builds = builds.lock().unwrap().clone();
    (answers.map_err(|reason| (reason.cause.clone(), reason.may_pass())), builds)
}

/// Builds as they should be: what is no Java has errors.
fn sound(text: Option<&str>) -> Comes {
    match text {
        None | Some("good") => Comes::Well,
        Some("odd") => Comes::Otherwise,
        Some(_) => Comes::Errors,
    }
}

#[tokio::test]
async fn each_text_is_built_and_four_share_a_container() {
    let (answers, builds) = asked(&["good", "bad", "good", "good", "bad"], sound).await;
    assert_eq!(answers, Ok(vec![true, false, true, true, false]));
    assert_eq!(builds, [1, 1, 4, 1], "as it is, no Java, and the texts");
    assert_eq!(asked(&[], sound).await.0, Ok(Vec::new()));
}

#[tokio::test]
async fn a_build_that_ends_otherwise_every_time_is_the_texts_doing() {
    let (answers, builds) = asked(&["good", "odd", "bad"], sound).await;
    assert_eq!(answers, Ok(vec![true, false, false]));
    assert_eq!(builds, [1, 1, 3, 1, 1, 1, 1], "three more of it, and the source as it is");
}

#[tokio::test]
async fn a_fault_says_nothing_of_a_text() {
    // The container goes at the third build, and so does each that is tried for it alone.
    let (answers, builds) = asked(&["good", "good", "gone", "good"], |text| match text {
        Some("gone") => Comes::Gone,
        text => sound(text),
    })
    .await;
    assert!(matches!(&answers, Err((_, true))), "{answers:?}");
    assert_eq!(builds, [1, 1, 4, 1, 1, 1]);
    let (answers, builds) = asked(&[], |_| Comes::Gone).await;
    assert!(matches!(&answers, Err((_, true))), "{answers:?}");
    assert_eq!(builds, [1; 3], "no other goal is tried");
}

#[tokio::test]
async fn a_build_that_says_nothing_is_not_the_texts_doing() {
    // The first build is one of several; the three after it are the text's own.
    for answers in [[Comes::Silent; 4], [Comes::Otherwise, Comes::Otherwise, Comes::Silent, Comes::Otherwise]] {
        let said = Mutex::new(answers.into_iter());
        let (answers, builds) = asked(&["odd"], move |text| match text {
            Some("odd") => said.lock().unwrap().next().unwrap(),
            text => sound(text),
        })
        .await;
        assert!(matches!(&answers, Err((_, true))), "{answers:?}");
        assert_eq!(builds, [1; 6], "as it is, no Java, and the text four times");
    }
}

#[tokio::test]
async fn a_build_that_does_not_say_what_compiles_is_no_judge() {
    let (answers, builds) = asked(&["good"], |_| Comes::Well).await;
    let (cause, may_pass) = answers.unwrap_err();
    assert!(!may_pass && cause.contains("builds with errors in `A.java`"), "{cause}");
    assert_eq!(builds, [1, 1]);
    let (answers, builds) = asked(&["good"], |_| Comes::Otherwise).await;
    let (cause, may_pass) = answers.unwrap_err();
    assert!(!may_pass && cause.contains("process-classes: p:q:1:check failed in g:a"), "{cause}");
    assert_eq!(builds, [1; 6], "three for each goal");
}

#[tokio::test]
async fn no_build_sees_what_another_left() {
    let engine: Arc<Scripted> = Arc::new(Scripted::new(|_, spec| {
        let steps = &spec.program.steps;
        let runs = steps.iter().enumerate().filter(|(_, step)| matches!(step, Step::Run(_))).map(|(at, _)| at);
        let mut from = 0;
        for run in runs {
            let before = &steps[from..run];
            for path in ["/work", "/tmp", "/dev/shm"] {
                let emptied =
                    before.iter().any(|step| matches!(step, Step::Empty { path: emptied } if emptied == path));
                assert!(emptied, "{path}: {before:?}");
            }
            assert!(before.iter().any(|step| matches!(step, Step::Unpack { .. })), "{before:?}");
            from = run + 1;
        }
        answered(spec, sound)
    }));
    let directory = tempfile::tempdir().unwrap();
    let executor = executor(&engine, &DataDir::open(directory.path()).unwrap());
    let (image, module) = (image(), ModuleArguments::default());
    let build = ReferenceBuild { archive: Path::new("tree.tar"), tree: "t", module: &module };
    let compiler = MavenCompiler::new(&executor, &image, build, "A.java").await.unwrap();
    assert_eq!(compiler.compile(&["good", "bad"]).await.unwrap(), [true, false]);
}

#[test]
fn every_input_of_a_build_changes_its_key() {
    let directory = tempfile::tempdir().unwrap();
    let (engine, data_dir) =
        (Arc::new(Scripted::new(|_, _| panic!("nothing is built"))), DataDir::open(directory.path()).unwrap());
    let key = |tree: &str, directory_of: &str, argument: &str, identity: &[u8], seconds: u64| {
        let module = ModuleArguments { directory: directory_of.to_owned(), ..ModuleArguments::default() };
        let image = RepositoryImage { maven_arguments: vec![argument.to_owned()], ..image() };
        let mut executor = Executor { identity: Digest::of(identity), ..executor(&engine, &data_dir) };
        executor.limits.compile_command.wall_seconds = seconds;
        ReferenceBuild { archive: Path::new("a"), tree, module: &module }.key(&executor, &image)
    };
    let keys = [
        key("t", "m", "-Da", b"i", 1),
        key("u", "m", "-Da", b"i", 1),
        key("t", "n", "-Da", b"i", 1),
        key("t", "m", "-Db", b"i", 1),
        key("t", "m", "-Da", b"j", 1),
        key("t", "m", "-Da", b"i", 2),
    ];
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
    assert_eq!(keys[0], key("t", "m", "-Da", b"i", 1));
}

#[test]
fn texts_are_taken_together_as_far_as_a_program_holds_them() {
    let large = "x".repeat(MOST_TEXT_BYTES / 2 + 1);
    let sizes = |texts: &[&str]| -> Vec<usize> { together(texts).into_iter().map(<[_]>::len).collect() };
    assert_eq!(sizes(&[]), Vec::<usize>::new());
    assert_eq!(sizes(&["a", "b", "c", "d", "e"]), [4, 1]);
    assert_eq!(sizes(&["a", &large, &large, "b"]), [2, 2]);
    assert_eq!(sizes(&[&large, &large]), [1, 1]);
}

#[test]
fn too_many_builds_are_not_begun() {
    assert!(too_many(MOST_BUILDS).is_none());
    assert!(too_many(MOST_BUILDS + 1).is_some_and(|reason| !reason.may_pass()));
}
