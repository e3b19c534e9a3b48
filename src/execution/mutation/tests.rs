use std::sync::Arc;

use super::*;
use crate::execution::build::masked::tests::masked;
use crate::execution::scripted::image;

/// What a set of mutants is made of.
struct Asked {
    image: RepositoryImage,
    revision: CompiledRevision,
    task_id: TaskId,
    path: &'static str,
    source: &'static [u8],
    lines: Vec<usize>,
}

#[test]
fn every_input_changes_the_key() {
    let (_directory, masked) = masked(&[("src/ATest.java", b"class ATest {}")], "src/ATest.java");
    let revision = Arc::clone(&masked.unwrap().revision);
    let asked = || Asked {
        image: image(),
        revision: revision.as_ref().clone(),
        task_id: "t".parse().unwrap(),
        path: "A.java",
        source: b"class A {}",
        lines: vec![1],
    };
    type Change = fn(&mut Asked);
    let changes: [(&str, Change); 7] = [
        ("image", |asked| asked.image.config_digest = Digest::of(b"other")),
        ("revision", |asked| asked.revision.key = Digest::of(b"other")),
        ("task", |asked| asked.task_id = "u".parse().unwrap()),
        ("path", |asked| asked.path = "B.java"),
        ("source", |asked| asked.source = b"class A { }"),
        ("lines", |asked| asked.lines = vec![2]),
        ("a line more", |asked| asked.lines = vec![1, 2]),
    ];
    let key = |asked: &Asked| {
        let Asked { image, revision, task_id, path, source, lines } = asked;
        mutants_key(image, revision.key, &MutatedFile { task_id, path, source, lines })
    };
    let mut keys = BTreeMap::from([(key(&asked()), "none")]);
    for (name, change) in changes {
        let mut changed = asked();
        change(&mut changed);
        assert_eq!(keys.insert(key(&changed), name), None, "{name}");
    }
}

#[test]
fn a_source_is_read_as_the_mutator_reads_it() {
    assert_eq!(as_mutated("// Jos\u{e9}\r\nclass A {\r}"), "// Jos\nclass A {\n}");
}
