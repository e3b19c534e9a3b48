//! A test: the key of a prepared revision contains everything that decides its content.

use super::*;
use crate::engine::scripted::{Said, Scripted};
use crate::execution::container::Surefire;
use crate::execution::scripted::{executor, image};

/// What is prepared.
struct Asked {
    executor: Executor,
    image: RepositoryImage,
    revision: RevisionInput,
}

#[test]
fn every_input_changes_the_key() {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(directory.path()).unwrap();
    let engine = Arc::new(Scripted::new(|_, _| Said { frames: Vec::new(), ends: true }));
    let asked = || Asked {
        executor: executor(&engine, &data_dir),
        image: image(),
        revision: RevisionInput { tree: "tree".to_owned(), module: ModuleArguments::default() },
    };
    type Change = fn(&mut Asked);
    let changes: [(&str, Change); 14] = [
        ("image", |asked| asked.image.config_digest = Digest::of(b"other")),
        ("arguments", |asked| asked.image.maven_arguments = vec!["-Dx".to_owned()]),
        ("an argument more", |asked| asked.image.maven_arguments = vec!["-Dx".to_owned(), "-Dy".to_owned()]),
        ("surefire", |asked| asked.image.surefire = Surefire::None),
        ("tree", |asked| asked.revision.tree = "other".to_owned()),
        ("module", |asked| asked.revision.module.directory = "core".to_owned()),
        ("start", |asked| asked.revision.module.start = "core".to_owned()),
        ("profiles", |asked| asked.revision.module.profiles = vec!["core".to_owned()]),
        ("whole", |asked| asked.revision.module.whole = true),
        ("tests switched off", |asked| asked.revision.module.skips_tests = true),
        ("recorder", |asked| asked.executor.jars.recorder = "/x/other".into()),
        ("identity", |asked| asked.executor.identity = Digest::of(b"other")),
        ("limits of the build", |asked| asked.executor.limits.compile.memory_bytes += 1),
        ("limits of launches", |asked| asked.executor.limits.launch_heap_mib += 1),
    ];
    let key = |asked: &Asked| crate::execution::build::prepared::key(&asked.executor, &asked.image, &asked.revision);
    assert_eq!(key(&asked()), key(&asked()));
    let mut keys = BTreeMap::from([(key(&asked()), "none")]);
    // What only launches or submissions have is no part of it: tasks of several classes share a revision.
    let mut of_a_task = asked();
    of_a_task.executor.limits = of_a_task.executor.limits.within(Some(30), Some(60));
    assert_eq!(key(&of_a_task), key(&asked()));
    for (name, change) in changes {
        let mut changed = asked();
        change(&mut changed);
        assert_eq!(keys.insert(key(&changed), name), None, "{name}");
    }
}
