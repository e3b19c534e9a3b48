//! The pool with scripted compilers, and what is said to them and by them.

use super::messages::replace;
use super::*;
use crate::engine::frame::Frame;
use crate::engine::scripted::{Said, Scripted, exited, output, step_end};
use crate::engine::spec::Stream;
use crate::execution::scripted::image;

/// What a compiler is started with that maps no class archive.
fn bare(image: &RepositoryImage) -> Start<'_> {
    Start { image, class_archive: None }
}

/// What a compiler says that starts and answers so.
pub(in crate::execution) fn said(answers: &[Vec<u8>]) -> Vec<Frame> {
    let mut bytes = SCHEMA.to_be_bytes().to_vec();
    for answer in answers {
        bytes.extend(counted(answer));
    }
    output(1, Stream::Events, &bytes)
}

/// An answer with these classes, and these files that processors made.
pub(in crate::execution) fn compiled(classes: &[(&str, &[u8])], generated: &[(&str, &[u8])]) -> Vec<u8> {
    // Compiled, without trouble, errors and other diagnostics.
    let mut answer = vec![0; 13];
    for files in [classes, generated] {
        answer.extend(u32::try_from(files.len()).unwrap().to_be_bytes());
        for (path, content) in files {
            answer.extend([counted(path.as_bytes()), counted(content)].concat());
        }
    }
    answer
}

/// An answer of a compiler that finds errors, and names none.
pub(in crate::execution) fn errors() -> Vec<u8> {
    [vec![1], vec![0; 20]].concat()
}

/// An answer of a compiler that breaks.
pub(in crate::execution) fn broken() -> Vec<u8> {
    [vec![2], vec![0; 20]].concat()
}

/// Bytes after how many they are.
fn counted(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}

/// What a compiler says that starts and answers so many requests.
fn compiler(answers: usize) -> Vec<Frame> {
    said(&vec![compiled(&[], &[]); answers])
}

#[test]
fn plugins_of_the_compiler_find_its_packages_open() {
    let opened = |jdk: u32| {
        let execution = RepositoryImage { jdk, ..image() };
        let spec = container(bare(&execution), Path::new("jar"), Path::new("inputs"));
        let Some(Step::Converse(command)) = spec.program.steps.last() else { panic!("{spec:?}") };
        command.argv.iter().filter(|argument| argument.starts_with("--add-opens=jdk.compiler/")).count()
    };
    assert_eq!([8, 11, 17, 21].map(opened), [0, 0, OPENED.len(), OPENED.len()]);
}

#[test]
fn a_class_archive_is_mounted_where_the_jvm_looks_for_it() {
    let execution = image();
    let archive = Path::new("/store/archive");
    let start = Start { class_archive: Some(archive), ..bare(&execution) };
    let spec = container(start, Path::new("jar"), Path::new("inputs"));
    let Some(Step::Converse(command)) = spec.program.steps.last() else { panic!("{spec:?}") };
    let mounted = spec.mounts.iter().find(|mount| mount.source == archive).unwrap();
    let named = format!("-XX:SharedArchiveFile={}", mounted.target);
    let before_main = |word: &String| command.argv.iter().take_while(|word| *word != "-cp").any(|other| other == word);
    assert!(before_main(&named) && before_main(&"-Xshare:auto".to_owned()), "{command:?}");
}

#[tokio::test]
async fn one_that_is_killed_is_lost_and_the_next_request_is_served_anew() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Arc::new(Scripted::new(|number, _| match number {
        // It answers once and is killed then.
        0 => Said { frames: [compiler(1), vec![step_end(1, exited(137))]].concat(), ends: true },
        _ => Said { frames: compiler(2), ends: false },
    }));
    let jar = directory.path().join("compiler.jar");
    let pool = Compilers::new(Arc::<Scripted>::clone(&engine), jar, directory.path().to_owned(), 1);
    let (execution, request) = (image(), CompileRequest::default());
    let ask = async || pool.compile(bare(&execution), &request).await.unwrap();
    assert!(matches!(ask().await, CompileAnswer::Compiled { .. }));
    assert!(matches!(ask().await, CompileAnswer::Lost(cause) if cause.contains("it ended")));
    assert!(fs::read_dir(directory.path()).unwrap().next().is_none(), "it left its inputs");
    assert!(matches!(ask().await, CompileAnswer::Compiled { .. }));
    assert!(matches!(ask().await, CompileAnswer::Compiled { .. }));
    assert_eq!(engine.started(), ["compiler", "compiler"], "the second one goes on");
}

#[tokio::test]
async fn texts_are_answered_in_order_up_to_the_first_that_the_compiler_fails_on() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Arc::new(Scripted::new(|number, _| match number {
        0 => Said { frames: said(&[errors(), compiled(&[], &[]), compiled(&[], &[]), broken()]), ends: false },
        _ => Said { frames: [compiler(1), vec![step_end(1, exited(137))]].concat(), ends: true },
    }));
    let jar = directory.path().join("compiler.jar");
    let pool = Compilers::new(Arc::<Scripted>::clone(&engine), jar, directory.path().to_owned(), 1);
    let (execution, request) = (image(), CompileRequest::default());
    let ask = async |texts: &[&str]| pool.compile_each(bare(&execution), &request, ("/v", texts)).await.unwrap();
    let both = ask(&["a", "b"]).await;
    assert!(matches!(both[..], [CompileAnswer::Errors(_), CompileAnswer::Compiled { .. }]), "{both:?}");
    let before_it_broke = ask(&["c", "d", "e"]).await;
    assert!(matches!(before_it_broke[..], [CompileAnswer::Compiled { .. }]), "{before_it_broke:?}");
    let before_it_was_killed = ask(&["f", "g"]).await;
    assert!(matches!(before_it_was_killed[..], [CompileAnswer::Compiled { .. }]), "{before_it_was_killed:?}");
    assert_eq!(engine.started(), ["compiler", "compiler"], "one that broke serves nobody else");
}

#[tokio::test]
async fn one_that_had_its_requests_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    // Every one could answer more.
    let engine = Arc::new(Scripted::new(|_, _| Said { frames: compiler(5), ends: false }));
    let (jar, own) = (directory.path().join("compiler.jar"), directory.path().join("own"));
    let pool = Compilers::new(Arc::<Scripted>::clone(&engine), jar, own.clone(), 1);
    let pool = Compilers { most_requests: 2, ..pool };
    for (started, alive) in [(1, 1), (1, 0), (2, 1), (2, 0), (3, 1)] {
        let answer = pool.compile(bare(&image()), &CompileRequest::default()).await.unwrap();
        assert!(matches!(answer, CompileAnswer::Compiled { .. }));
        let left = fs::read_dir(&own).unwrap().count();
        assert_eq!((engine.started().len(), left), (started, alive), "one that is replaced takes its inputs with it");
    }
}

#[tokio::test]
async fn one_that_is_silent_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Arc::new(Scripted::new(|number, _| {
        // The first says no more than that it is there, the second begins an answer, the third gives one.
        let frames = match number {
            0 => said(&[]),
            1 => output(1, Stream::Events, &[SCHEMA.to_be_bytes(), 21u32.to_be_bytes()].concat()),
            _ => compiler(1),
        };
        Said { frames, ends: false }
    }));
    let (jar, own) = (directory.path().join("compiler.jar"), directory.path().join("own"));
    let pool = Compilers::new(Arc::<Scripted>::clone(&engine), jar, own, 1);
    let pool = Compilers { patience: Duration::from_millis(1), ..pool };
    let (execution, request) = (image(), CompileRequest::default());
    // The pool's usual patience would outlive this one.
    let ask =
        async || tokio::time::timeout(REQUEST / 2, pool.compile(bare(&execution), &request)).await.unwrap().unwrap();
    for _ in 0..2 {
        let answer = ask().await;
        assert!(matches!(&answer, CompileAnswer::Lost(cause) if cause.contains("took too long")), "{answer:?}");
    }
    assert!(matches!(ask().await, CompileAnswer::Compiled { .. }));
    assert_eq!(engine.started().len(), 3);
}

#[tokio::test]
async fn inputs_whose_files_are_gone_take_no_disk() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Arc::new(Scripted::new(|_, _| Said { frames: compiler(3), ends: false }));
    let own = directory.path().join("own");
    let pool = Compilers::new(engine, directory.path().join("compiler.jar"), own.clone(), 1);
    let request = |name: &str| {
        let file = directory.path().join(name);
        fs::write(&file, name).unwrap();
        let input = Input { file, name: name.to_owned() };
        CompileRequest { inputs: BTreeMap::from([("/o".to_owned(), input)]), ..CompileRequest::default() }
    };
    let linked = || -> Vec<String> {
        let inputs = fs::read_dir(&own).unwrap().next().unwrap().unwrap().path();
        let names = fs::read_dir(inputs).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    let (first, second) = (request("first"), request("second"));
    let execution = image();
    for request in [&first, &second] {
        pool.compile(bare(&execution), request).await.unwrap();
    }
    assert_eq!(linked(), ["first.jar", "second.jar"]);
    fs::remove_file(directory.path().join("first")).unwrap();
    pool.compile(bare(&execution), &second).await.unwrap();
    assert_eq!(linked(), ["second.jar"]);
}

#[test]
fn paths_in_arguments_are_replaced() {
    let replaced = BTreeMap::from([("/work/project/target/classes", "/i/a.jar".to_owned())]);
    for (argument, expected) in [
        ("/work/project/target/classes", "/i/a.jar"),
        ("/x.jar:/work/project/target/classes:", "/x.jar:/i/a.jar:"),
        ("/work/project/target/classes/p", "/work/project/target/classes/p"),
        ("m=/work/project/target/classes:/y", "m=/i/a.jar:/y"),
        ("-Akey=value", "-Akey=value"),
        ("-g", "-g"),
    ] {
        assert_eq!(replace(argument, &replaced), expected);
    }
}

#[test]
fn requests_are_framed() {
    let request = CompileRequest {
        arguments: vec!["-d".into(), "/o".into(), "-cp".into(), "/o".into()],
        output: "/o".into(),
        ..CompileRequest::default()
    };
    let message = encode(&request, ("/v", &["one", "two"]), &BTreeMap::from([("/o", "/j".to_owned())]));
    assert_eq!(usize::try_from(u32::from_be_bytes(message[..4].try_into().unwrap())).unwrap(), message.len() - 4);
    let text = String::from_utf8_lossy(&message);
    assert_eq!((text.matches("/o").count(), text.matches("/j").count()), (2, 1), "what is written to stays");
    let texts = [counted(b"/v"), 2u32.to_be_bytes().to_vec(), counted(b"one"), counted(b"two")].concat();
    assert!(message.ends_with(&texts), "{text}");
}

#[test]
fn answers_are_understood_or_refused() {
    let text = |text: &str| counted(text.as_bytes());
    let answer = |path: &str| {
        let mut answer = vec![0];
        answer.extend(text(""));
        answer.extend([0; 8]);
        for path in [path, "/g/G.java"] {
            answer.extend([0, 0, 0, 1]);
            answer.extend(text(path));
            answer.extend(text("CONTENT"));
        }
        answer
    };
    let whole = answer("p/A.class");
    let Some(CompileAnswer::Compiled { classes, generated }) = decode(&whole) else { panic!() };
    assert_eq!(classes, [("p/A.class".to_owned(), b"CONTENT".to_vec())]);
    assert_eq!(generated[0].0, "/g/G.java");
    for length in 0..whole.len() {
        assert!(decode(&whole[..length]).is_none(), "{length}");
    }
    for path in ["../A.class", "/A.class", "p//A.class"] {
        assert!(decode(&answer(path)).is_none(), "{path}");
    }
    let mut errors = vec![1];
    errors.extend(text(""));
    errors.extend([0, 0, 0, 2]);
    for (file, line, column) in [("/work/project/A.java", 7i64, 3i64), ("", -1, -1)] {
        errors.extend(text(file));
        errors.extend(line.to_be_bytes());
        errors.extend(column.to_be_bytes());
        errors.extend(text("compiler.err.x"));
        errors.extend(text("no"));
    }
    errors.extend([0; 12]);
    let Some(CompileAnswer::Errors(found)) = decode(&errors) else { panic!() };
    let error = |file: Option<&str>, line, column| {
        let (code, message) = ("compiler.err.x".to_owned(), "no".to_owned());
        Diagnostic { file: file.map(str::to_owned), line, column, code, message }
    };
    assert_eq!(found, [error(Some("/work/project/A.java"), 7, 3), error(None, -1, -1)]);
}

#[test]
fn a_text_may_take_twenty_times_as_long_as_the_revisions_own_within_bounds() {
    let seconds = Duration::from_secs;
    for (own, expected) in [(0, 30), (1, 30), (2, 40), (6, 120), (7, 120)] {
        assert_eq!(patience(seconds(own)), seconds(expected), "{own}");
    }
}
