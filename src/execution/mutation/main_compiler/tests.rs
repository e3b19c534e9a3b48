use std::slice;

use fs_err as fs;

use super::*;
use crate::artifact::store::Store;
use crate::data_dir::DataDir;
use crate::engine::scripted::{Said, Scripted, exited, step_end};
use crate::execution::build::compiler::tests::{broken, compiled, errors, said};
use crate::execution::build::masked::tests::masked;
use crate::execution::direct::write_files;
use crate::execution::fault::{Remedy, answered};
use crate::execution::scripted::{direct, executor, image};

const SOURCE: &str = "class A { int a() { return 1; } }";
const OTHER_BODY: &str = "class A { int a() { return 2; } }";
const OTHER_DECLARATION: &str = "class A { long a() { return 1; } }";
/// The other source of the call.
const USER: &str = "class B { int b = new A().a(); }";

/// The classes of the build.
const BUILT: [(&str, &[u8]); 2] = [("A.class", b"A"), ("B.class", b"B")];
/// Those that come of another text.
const CHANGED: [(&str, &[u8]); 2] = [("A.class", b"other A"), ("B.class", b"other B")];

/// A compiler that answers so and goes on.
fn lives(answers: &[Vec<u8>]) -> Said {
    Said { frames: said(answers), ends: false }
}

/// A compiler that answers so and is killed then.
fn is_killed(answers: &[Vec<u8>]) -> Said {
    Said { frames: [said(answers), vec![step_end(1, exited(137))]].concat(), ends: true }
}

/// A prepared revision of two main sources, and compilers by a script.
struct Place {
    _directory: tempfile::TempDir,
    engine: Arc<Scripted>,
    direct: Direct,
    executor: Executor,
    image: RepositoryImage,
    revision: CompiledRevision,
}

impl Place {
    /// Returns one whose script is told how many compilers were started before.
    fn new(script: impl Fn(usize) -> Said + Send + Sync + 'static) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let data_dir = DataDir::open(&directory.path().join("data")).unwrap();
        let engine = Arc::new(Scripted::new(move |number, _| script(number)));
        let archive = directory.path().join("tree.tar");
        let files: [(&str, &[u8]); 4] = [
            ("main/A.java", SOURCE.as_bytes()),
            ("main/B.java", USER.as_bytes()),
            ("target/classes/A.class", BUILT[0].1),
            ("target/classes/B.class", BUILT[1].1),
        ];
        write_files(&archive, files.into_iter()).unwrap();
        let call = serde_json::json!({
            "project": "g:a", "goal": "compile", "compiler": "javac", "arguments": [],
            "sources": [format!("{PROJECT}/main/A.java"), format!("{PROJECT}/main/B.java")],
            "output": format!("{PROJECT}/target/classes"), "generated_sources": null, "proc": null,
        });
        let (_other_directory, other) = masked(&[("src/ATest.java", b"class ATest {}")], "src/ATest.java");
        let revision = CompiledRevision {
            tree: Store::of(&data_dir).unwrap().put(&fs::read(&archive).unwrap()).unwrap(),
            main_calls: vec![serde_json::from_value(call).unwrap()],
            ..other.unwrap().revision.as_ref().clone()
        };
        let (direct, executor) = (direct(&engine, &data_dir), executor(&engine, &data_dir));
        Self { _directory: directory, engine, direct, executor, image: image(), revision }
    }

    async fn compiler(&self) -> Result<MainCompiler<'_>, NoAnswer> {
        let Self { direct, executor, image, revision, .. } = self;
        let source = SOURCE.as_bytes();
        answered(MainCompiler::new(direct, executor, image, revision, "main/A.java", source).await).unwrap()
    }

    /// Returns how often compilers were given a text.
    fn given(&self, text: &str) -> usize {
        self.engine.heard().windows(text.len()).filter(|part| *part == text.as_bytes()).count()
    }
}

/// Returns the paths of what comes out otherwise with a text, `None` where it does not compile; of a fault, whether it
/// may pass.
async fn changes(compiler: &MainCompiler<'_>, text: &str) -> Result<Option<Vec<String>>, bool> {
    match answered(compiler.compile(text).await).unwrap() {
        Ok(MainCompilation::Compiled(files)) => Ok(Some(files.into_iter().map(|(path, _)| path).collect())),
        Ok(MainCompilation::Errors) => Ok(None),
        Err(reason) => Err(reason.may_pass()),
    }
}

/// What [`changes`] returns of these paths.
fn changed(paths: &[&str]) -> Result<Option<Vec<String>>, bool> {
    Ok(Some(paths.iter().copied().map(str::to_owned).collect()))
}

#[tokio::test]
async fn a_changed_declaration_is_compiled_with_all_sources() {
    let place = Place::new(|_| {
        lives(&[
            compiled(&BUILT[..1], &[]),
            compiled(&CHANGED[..1], &[]),
            compiled(&CHANGED[..1], &[]),
            compiled(&BUILT, &[]),
            compiled(&CHANGED, &[]),
            compiled(&CHANGED[..1], &[]),
            errors(),
        ])
    });
    let compiler = place.compiler().await.unwrap();
    assert_eq!(changes(&compiler, OTHER_BODY).await, changed(&["target/classes/A.class"]));
    assert_eq!((place.given(OTHER_BODY), place.given(USER)), (1, 0), "a body concerns no other source");
    let both = changed(&["target/classes/A.class", "target/classes/B.class"]);
    assert_eq!(changes(&compiler, OTHER_DECLARATION).await, both);
    assert_eq!((place.given(OTHER_DECLARATION), place.given(USER)), (2, 2), "once as the build has it");
    assert_eq!(changes(&compiler, OTHER_DECLARATION).await, Ok(None), "it compiles alone, and the other does not");
    assert_eq!((place.given(OTHER_DECLARATION), place.given(USER)), (4, 3));
    assert_eq!((place.given(SOURCE), place.engine.started().len()), (2, 1));
}

#[tokio::test]
async fn nothing_is_compiled_with_others_that_the_build_changes_afterwards() {
    let alone = || compiled(&CHANGED[..1], &[]);
    let woven = compiled(&[BUILT[0], CHANGED[1]], &[]);
    let place = Place::new(move |_| lives(&[compiled(&BUILT[..1], &[]), alone(), alone(), woven.clone()]));
    let compiler = place.compiler().await.unwrap();
    assert_eq!(changes(&compiler, OTHER_BODY).await, changed(&["target/classes/A.class"]), "it concerns no other");
    let reason = answered(compiler.compile(OTHER_DECLARATION).await).unwrap().err().unwrap();
    assert!(reason.remedy == Remedy::AskMaven && reason.cause.contains("`target/classes/B.class`"), "{reason:?}");
    assert_eq!((place.given(OTHER_DECLARATION), place.given(USER)), (1, 1));
}

#[tokio::test]
async fn where_the_source_comes_out_otherwise_alone_every_text_is_compiled_with_all() {
    let place = Place::new(|_| {
        lives(&[compiled(&CHANGED[..1], &[]), compiled(&BUILT, &[]), compiled(&[CHANGED[0], BUILT[1]], &[])])
    });
    let compiler = place.compiler().await.unwrap();
    assert_eq!(place.given(USER), 1);
    assert_eq!(changes(&compiler, OTHER_BODY).await, changed(&["target/classes/A.class"]));
    assert_eq!((place.given(OTHER_BODY), place.given(USER)), (1, 2));

    let place = Place::new(|_| lives(&[compiled(&CHANGED[..1], &[]), compiled(&[BUILT[0], CHANGED[1]], &[])]));
    let reason = place.compiler().await.err().unwrap();
    assert!(reason.cause.contains("`target/classes/B.class`"), "{reason:?}");
    assert_eq!(reason.remedy, Remedy::AskMaven, "{reason:?}");
}

#[tokio::test]
async fn what_the_compiler_breaks_on_every_time_does_not_compile() {
    // One that breaks is ended.
    let place = Place::new(|number| match number {
        0 => lives(&[compiled(&BUILT[..1], &[]), broken()]),
        1..=3 => lives(&[broken()]),
        _ => lives(&[compiled(&CHANGED[..1], &[])]),
    });
    let compiler = place.compiler().await.unwrap();
    assert_eq!(changes(&compiler, OTHER_BODY).await, Ok(None));
    assert_eq!((place.given(OTHER_BODY), place.engine.started().len()), (3, 3));
    assert_eq!(changes(&compiler, OTHER_BODY).await, changed(&["target/classes/A.class"]), "it broke once");
    assert_eq!((place.given(OTHER_BODY), place.engine.started().len()), (5, 5));
    assert_eq!(place.given(SOURCE), 1, "the source is in no doubt");
}

#[tokio::test]
async fn what_the_compiler_is_lost_on_does_not_compile_if_the_source_does() {
    let answers = [("compiles", Some(compiled(&BUILT[..1], &[]))), ("errors", Some(errors())), ("is lost", None)];
    for (name, answer) in answers {
        let (expected, asked) = match name {
            "compiles" => (Ok(None), 2),
            "errors" => (Err(true), 2),
            _ => (Err(true), 4),
        };
        let place = Place::new(move |number| match (number, &answer) {
            (0, _) => is_killed(&[compiled(&BUILT[..1], &[])]),
            (1 | 2, _) | (_, None) => is_killed(&[]),
            (_, Some(answer)) => lives(slice::from_ref(answer)),
        });
        let compiler = place.compiler().await.unwrap();
        assert_eq!(changes(&compiler, OTHER_BODY).await, expected, "the source {name}");
        assert_eq!((place.given(OTHER_BODY), place.given(SOURCE)), (3, asked), "the source {name}");
    }
}

/// Returns the paths that change with each text, compiled together; `None` for a text that does not compile.
async fn changes_of_all(compiler: &MainCompiler<'_>, texts: &[&str]) -> Vec<Option<Vec<String>>> {
    let compilations = answered(compiler.compile_all(texts).await).unwrap().unwrap();
    let changes = compilations.into_iter().map(|compilation| match compilation {
        MainCompilation::Compiled(files) => Some(files.into_iter().map(|(path, _)| path).collect()),
        MainCompilation::Errors => None,
    });
    changes.collect()
}

#[tokio::test]
async fn texts_are_compiled_together_and_each_as_it_is_by_itself() {
    let own = || Some(vec!["target/classes/A.class".to_owned()]);
    let both = || Some(vec!["target/classes/A.class".to_owned(), "target/classes/B.class".to_owned()]);
    let place = Place::new(|_| {
        lives(&[
            compiled(&BUILT[..1], &[]),
            // Of the three together.
            errors(),
            compiled(&CHANGED[..1], &[]),
            compiled(&CHANGED[..1], &[]),
            // Of the last with all sources, after the source itself.
            compiled(&BUILT, &[]),
            compiled(&CHANGED, &[]),
        ])
    });
    let compiler = place.compiler().await.unwrap();
    let texts = ["class A { int a() { return }", OTHER_BODY, OTHER_DECLARATION];
    assert_eq!(changes_of_all(&compiler, &texts).await, [None, own(), both()]);
    assert_eq!((place.given(OTHER_BODY), place.given(OTHER_DECLARATION), place.given(USER)), (1, 2, 2));
    assert!(changes_of_all(&compiler, &[]).await.is_empty());

    // Where no text is compiled alone, the other sources are sent once.
    let place = Place::new(|_| {
        lives(&[
            compiled(&CHANGED[..1], &[]),
            compiled(&BUILT, &[]),
            compiled(&[CHANGED[0], BUILT[1]], &[]),
            compiled(&CHANGED, &[]),
        ])
    });
    let compiler = place.compiler().await.unwrap();
    assert_eq!(changes_of_all(&compiler, &[OTHER_BODY, OTHER_DECLARATION]).await, [own(), both()]);
    assert_eq!((place.given(OTHER_BODY), place.given(OTHER_DECLARATION), place.given(USER)), (1, 1, 2));
}

#[tokio::test]
async fn a_text_that_a_compiler_fails_on_has_requests_of_its_own() {
    let own = || Some(vec!["target/classes/A.class".to_owned()]);
    let place = Place::new(|number| match number {
        0 => lives(&[compiled(&BUILT[..1], &[]), compiled(&CHANGED[..1], &[]), broken()]),
        1..=3 => lives(&[broken()]),
        _ => lives(&[compiled(&CHANGED[..1], &[]), compiled(&CHANGED[..1], &[]), errors()]),
    });
    let compiler = place.compiler().await.unwrap();
    let (breaking, last) = ("class A { int a() { return 3; } }", "class A { int a() { return 4; } }");
    assert_eq!(changes_of_all(&compiler, &[OTHER_BODY, breaking, last]).await, [own(), None, own()]);
    assert_eq!((place.given(OTHER_BODY), place.given(breaking), place.given(last)), (1, 4, 2));
    // From then on each has.
    assert_eq!(changes_of_all(&compiler, &[OTHER_BODY, last]).await, [own(), None]);
    assert_eq!(place.engine.started().len(), 5);
}
