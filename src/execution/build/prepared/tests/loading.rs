//! Tests with a scripted build: a prepared revision in the store is used only if it is whole.

use std::collections::BTreeSet;
use std::path::PathBuf;

use fs_err as fs;

use super::*;
use crate::artifact::store::Store;
use crate::engine::scripted::{Said, Scripted, completed, exited, output, step_end};
use crate::engine::spec::{StepResult, Stream};
use crate::execution::build::compiled_tree::MOST_READ_BYTES;
use crate::execution::direct::write_files;
use crate::execution::executor::Executor;
use crate::execution::scripted::{executor, image};

const RECORDING: &str = r#"{"event":"recording_started","schema":2}
{"event":"session_started","projects":[{"project":"g:a","basedir":"/work/project","output":"/work/project/target/classes","test_output":"/work/project/target/test-classes"}]}
{"event":"compiler_call","project":"g:a","goal":"compile","compiler":"javac","arguments":[],"sources":[],"generated_sources":null,"output":"/work/project/target/classes","class_path":["/work/project/target/classes"],"proc":null}
{"event":"compiler_call","project":"g:a","goal":"testCompile","compiler":"javac","arguments":[],"sources":["/work/project/src/ATest.java"],"source_roots":["/work/project/src"],"generated_sources":null,"output":"/work/project/target/test-classes","class_path":["/work/project/target/test-classes","/work/project/target/classes"],"proc":null}
{"event":"session_ended","success":true,"failures":[]}
"#;

/// A data directory, and an engine in which every build goes the same way.
struct Place {
    directory: tempfile::TempDir,
    data_dir: DataDir,
    store: Store,
    engine: Arc<Scripted>,
    executor: Executor,
    image: RepositoryImage,
}

impl Place {
    fn new() -> Self {
        let files: [(&str, &[u8]); 3] = [
            ("src/ATest.java", b"class ATest {}"),
            ("target/classes/A.class", b"main"),
            ("target/test-classes/ATest.class", b"test"),
        ];
        Self::of(&files)
    }

    /// Returns one in which every build makes these files.
    fn of(files: &[(&str, &[u8])]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let data_dir = DataDir::open(directory.path()).unwrap();
        let store = Store::of(&data_dir).unwrap();
        let compiled = directory.path().join("compiled.tar");
        write_files(&compiled, files.iter().copied()).unwrap();
        let archive = fs::read(&compiled).unwrap();
        let engine = Arc::new(Scripted::new(move |_, _| {
            let mut frames = vec![step_end(0, StepResult::Done), step_end(1, StepResult::Done), step_end(2, exited(0))];
            let sent: [&[u8]; 3] = [RECORDING.as_bytes(), b"/m2/a.jar", &archive];
            for (step, content) in (3..).zip(sent) {
                frames.extend(output(step, Stream::Content, content));
                frames.push(step_end(step as usize, StepResult::Done));
            }
            frames.push(completed());
            Said { frames, ends: true }
        }));
        let (executor, image) = (executor(&engine, &data_dir), image());
        Self { directory, data_dir, store, engine, executor, image }
    }

    /// Returns the prepared revision as a process sees it that begins now.
    async fn get(&self) -> CompiledRevision {
        self.get_from(&self.begun()).await
    }

    fn begun(&self) -> PreparedRevisions {
        PreparedRevisions::new(&self.data_dir, &self.store, &EventSink::none())
    }

    async fn get_from(&self, revisions: &PreparedRevisions) -> CompiledRevision {
        let module = ModuleArguments::default();
        let input = RevisionInput { tree: "a".repeat(40), module };
        let archive = TemporaryFile::named(self.directory.path(), "tree", "tar");
        fs::copy(self.directory.path().join("compiled.tar"), archive.path()).unwrap();
        let found = revisions.get(&self.executor, &self.image, &input, move || Ok(archive)).await.unwrap();
        match found.as_ref() {
            Prepared::Compiled(revision) => revision.as_ref().clone(),
            Prepared::Failed { outcome, detail } => panic!("{outcome}: {detail}"),
        }
    }

    fn builds(&self) -> usize {
        self.engine.started().len()
    }

    fn description(&self, revision: &CompiledRevision) -> PathBuf {
        self.store.root().join("prepared").join(format!("{}.json", revision.key.hex()))
    }
}

/// Changes one byte of a file in its middle.
fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn a_build_that_makes_too_much_is_unfit_and_kept() {
    let source = vec![b' '; usize::try_from(MOST_READ_BYTES).unwrap() + 1];
    let place = Place::of(&[("src/ATest.java", &source), ("target/test-classes/ATest.class", b"test")]);
    let made = place.get().await;
    assert!(made.unfit.as_deref().is_some_and(|reason| reason.contains("too large")), "{:?}", made.unfit);
    assert_eq!((place.get().await, place.builds()), (made, 1), "the next process finds it");
}

#[tokio::test]
async fn what_was_given_up_meanwhile_is_made_anew() {
    let place = Place::new();
    let revisions = place.begun();
    let made = place.get_from(&revisions).await;
    fs::remove_file(place.store.path(&made.tree)).unwrap();
    assert_eq!((place.get_from(&revisions).await, place.builds()), (made.clone(), 2));
    place.store.verify(&made.tree).unwrap();
    flip(&place.store.path(&made.tree));
    assert_eq!((place.get_from(&revisions).await, place.builds()), (made.clone(), 3), "it was damaged meanwhile");
    place.store.verify(&made.tree).unwrap();
}

#[tokio::test]
async fn a_damaged_blob_is_made_anew() {
    let place = Place::new();
    let made = place.get().await;
    assert_eq!((place.get().await, place.builds()), (made.clone(), 1), "the next process finds it");
    let jars: BTreeSet<Digest> = made.jars.values().copied().collect();
    assert_eq!(made.jars.keys().collect::<Vec<_>>(), ["/work/project/target/classes"]);
    let blobs: Vec<Digest> = [made.tree, made.recording].into_iter().chain(jars).collect();
    for (number, blob) in blobs.iter().enumerate() {
        flip(&place.store.path(blob));
        assert!(place.store.verify(blob).is_err());
        assert_eq!((place.get().await, place.builds()), (made.clone(), 2 + 2 * number), "{blob}");
        place.store.verify(blob).unwrap();
        fs::remove_file(place.store.path(blob)).unwrap();
        assert_eq!((place.get().await, place.builds()), (made.clone(), 3 + 2 * number), "{blob} is missing");
    }
    assert_eq!((place.get().await, place.builds()), (made, 1 + 2 * blobs.len()));
}

#[tokio::test]
async fn a_description_that_is_torn_or_of_another_revision_is_made_anew() {
    let place = Place::new();
    let made = place.get().await;
    let path = place.description(&made);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert_eq!((place.get().await, place.builds()), (made.clone(), 2));
    assert_eq!(fs::read(&path).unwrap(), whole);
    let text = String::from_utf8(whole.clone()).unwrap();
    let other = text.replacen(&made.key.hex(), &Digest::of(b"other").hex(), 1);
    assert_ne!(other, text);
    fs::write(&path, other).unwrap();
    assert_eq!((place.get().await, place.builds()), (made, 3));
    assert_eq!(fs::read(&path).unwrap(), whole);
}

#[tokio::test]
async fn makers_wait_for_one_another() {
    let place = Place::new();
    // Each has a memory of its own, as two processes have.
    let (one, other) = (place.begun(), place.begun());
    let (first, second) = tokio::join!(place.get_from(&one), place.get_from(&other));
    assert_eq!((first, place.builds()), (second, 1));
}
