use super::*;
use crate::data_dir::DataDir;
use crate::engine::scripted::{Said, Scripted, exited, step_end};
use crate::execution::attempt::Confirmed;
use crate::execution::build::compiler::tests::{broken, compiled, said};
use crate::execution::build::masked::tests::masked;
use crate::execution::direct::Swap;
use crate::execution::fault::{Remedy, answered};
use crate::execution::scripted::{direct, executor, image};
use crate::outcome::CompileReason;
use crate::workspace::class_file::sample;

const OWN: &[u8] = b"class ATest {}";
const OTHER: &[u8] = b"class ATest { int x; }";

/// A revision with the file and a source that has nothing to do with it; their classes.
fn revision() -> (tempfile::TempDir, Arc<MaskedRevision>, [Vec<u8>; 2]) {
    let classes = ["ATest", "Alone"].map(|name| sample(name, Some(&format!("{name}.java"))));
    let files: [(&str, &[u8]); 4] = [
        ("src/ATest.java", OWN),
        ("src/Alone.java", b"class Alone {}"),
        ("target/test-classes/ATest.class", &classes[0]),
        ("target/test-classes/Alone.class", &classes[1]),
    ];
    let (directory, masked) = masked(&files, "src/ATest.java");
    (directory, Arc::new(masked.unwrap()), classes)
}

#[tokio::test]
async fn what_needs_all_sources_to_be_shown_is_compiled_with_all() {
    let (directory, masked, [own, alone]) = revision();
    let (otherwise, changed) = (sample("ATest$1", Some("ATest.java")), sample("ATest$2", Some("ATest.java")));
    let answers = [
        compiled(&[("ATest.class", &otherwise)], &[]),
        compiled(&[("ATest.class", &own), ("Alone.class", &alone)], &[]),
        compiled(&[("ATest.class", &changed), ("Alone.class", &alone)], &[]),
    ];
    let engine = Arc::new(Scripted::new(move |_, _| Said { frames: said(&answers), ends: false }));
    let data_dir = DataDir::open(&directory.path().join("data")).unwrap();
    let (executor, direct) = (executor(&engine, &data_dir), direct(&engine, &data_dir));
    let (answer, made) = direct.compile_proven(&executor, &image(), &masked, OTHER).await.unwrap();
    let CompileAnswer::Compiled { classes, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(classes[0].1, changed);
    assert!(made.is_empty());
    assert_eq!(masked.proven.get().unwrap(), &Ok(Proof { reach: Reach::Part, generates: false }));
    let heard = engine.heard();
    let said = |text: &str| heard.windows(text.len()).filter(|part| *part == text.as_bytes()).count();
    // Among the files and among the sources, of three requests and of two.
    assert_eq!((said("/work/project/src/ATest.java"), said("/work/project/src/Alone.java")), (6, 4));
}

#[tokio::test]
async fn what_processors_made_of_the_own_text_is_kept_in_mind() {
    let (directory, masked, [own, _]) = revision();
    let resource: [(&str, &[u8]); 1] = [("/work/project/target/test-classes/META-INF/x", b"x")];
    let foreign = sample("Foreign", Some("Foreign.java"));
    let answers = [compiled(&[("ATest.class", &own)], &resource), compiled(&[("ATest.class", &own)], &[])];
    let engine = Arc::new(Scripted::new(move |_, _| Said { frames: said(&answers), ends: false }));
    let data_dir = DataDir::open(&directory.path().join("data")).unwrap();
    let (executor, direct) = (executor(&engine, &data_dir), direct(&engine, &data_dir));
    let (_, made) = direct.compile_proven(&executor, &image(), &masked, OTHER).await.unwrap();
    assert!(made.is_empty());
    assert_eq!(masked.proven.get().unwrap(), &Ok(Proof { reach: Reach::Dependents, generates: true }));

    // A class that belongs to no source, and no source of it.
    let files: [(&str, &[u8]); 3] = [
        ("src/ATest.java", OWN),
        ("target/test-classes/ATest.class", &own),
        ("target/test-classes/Foreign.class", &foreign),
    ];
    let (_directory, masked) = crate::execution::build::masked::tests::masked(&files, "src/ATest.java");
    let masked = Arc::new(masked.unwrap());
    let answer = compiled(&[("ATest.class", &own), ("Foreign.class", &foreign)], &[]);
    let engine = Arc::new(Scripted::new(move |_, _| Said { frames: said(&vec![answer.clone(); 2]), ends: false }));
    let direct = self::direct(&engine, &data_dir);
    let found = direct.compile_proven(&executor, &image(), &masked, OTHER).await;
    let named = "`/Foreign.class` comes from no source";
    assert_eq!(answered(found).unwrap().unwrap_err(), NoAnswer::unfit(format!("{OTHERWISE}: {named}")));
}

/// An answer of a compiler that finds one error.
fn wrong() -> Vec<u8> {
    let text = |text: &str| [&u32::try_from(text.len()).unwrap().to_be_bytes(), text.as_bytes()].concat();
    let place = [3u64.to_be_bytes(), 1u64.to_be_bytes()].concat();
    let error = [text("/work/project/src/ATest.java"), place, text("compiler.err.what"), text("what?")].concat();
    // No trouble, one error, no other diagnostics, no files.
    [vec![1], vec![0; 4], 1u32.to_be_bytes().to_vec(), error, vec![0; 12]].concat()
}

#[tokio::test]
async fn the_first_difference_from_the_build_is_told() {
    let other = sample("ATest$1", Some("ATest.java"));
    let (own, otherwise) = (sample("ATest", Some("ATest.java")).len(), other.len());
    let bytes = format!("`ATest.class` has other bytes ({otherwise}, the build's {own})");
    let error = "it finds an error in /work/project/src/ATest.java, line 3: what?".to_owned();
    for (answer, expected) in [(compiled(&[("ATest.class", &other)], &[]), bytes), (wrong(), error)] {
        let (directory, masked, _) = revision();
        let engine = Arc::new(Scripted::new(move |_, _| Said { frames: said(&vec![answer.clone(); 2]), ends: false }));
        let data_dir = DataDir::open(&directory.path().join("data")).unwrap();
        let (executor, direct) = (executor(&engine, &data_dir), direct(&engine, &data_dir));
        let found = direct.compile_proven(&executor, &image(), &masked, OTHER).await;
        assert_eq!(answered(found).unwrap().unwrap_err(), NoAnswer::unfit(format!("{OTHERWISE}: {expected}")));
    }
}

#[tokio::test]
async fn what_a_compiler_broke_or_was_lost_on_is_asked_again() {
    let (directory, masked, [own, _]) = revision();
    let answer = compiled(&[("ATest.class", &own)], &[]);
    let engine = Arc::new(Scripted::new(move |number, _| match number {
        0 => Said { frames: said(&[broken()]), ends: false },
        1 => Said { frames: [said(&[]), vec![step_end(1, exited(137))]].concat(), ends: true },
        _ => Said { frames: said(std::slice::from_ref(&answer)), ends: false },
    }));
    let data_dir = DataDir::open(&directory.path().join("data")).unwrap();
    let (executor, direct) = (executor(&engine, &data_dir), direct(&engine, &data_dir));
    for trouble in ["broken", "lost"] {
        let found = direct.compile_proven(&executor, &image(), &masked, OWN).await;
        assert!(answered(found).unwrap().is_err_and(|reason| reason.may_pass()), "{trouble}");
        assert!(masked.proven.get().is_none(), "{trouble}");
    }
    direct.compile_proven(&executor, &image(), &masked, OWN).await.unwrap();
    assert_eq!(masked.proven.get().unwrap(), &Ok(Proof { reach: Reach::Dependents, generates: false }));
    assert_eq!(engine.started().len(), 3);
}

#[tokio::test]
async fn what_a_compiler_is_lost_on_is_believed_where_the_submission_exhausted_one_before() {
    let confirmed = Confirmed::default();
    for is_confirmed in [false, true] {
        let (directory, masked, [own, _]) = revision();
        let answers = [compiled(&[("ATest.class", &own)], &[]), broken()];
        let engine = Arc::new(Scripted::new(move |_, _| Said { frames: said(&answers), ends: false }));
        let data_dir = DataDir::open(&directory.path().join("data")).unwrap();
        let executor = Executor { confirmed: Some(confirmed.clone()), ..executor(&engine, &data_dir) };
        let direct = direct(&engine, &data_dir);
        let swap = answered(direct.swap(&executor, &image(), &masked, OTHER).await).unwrap();
        match (is_confirmed, swap) {
            (false, Err(reason)) => assert_eq!(reason.remedy, Remedy::AskMaven),
            (true, Ok(Swap::Failed { reason, detail, errors })) => {
                assert_eq!((reason, errors.len()), (CompileReason::Resource, 0));
                assert!(detail.starts_with("the compiler: "), "{detail}");
            }
            (_, Err(reason)) => panic!("{reason}"),
            (_, Ok(_)) => panic!("it was not confirmed"),
        }
        confirmed.compilations.confirm();
    }
}
