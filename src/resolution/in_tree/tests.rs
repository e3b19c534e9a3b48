use super::*;
use crate::workspace::Repository;

#[test]
fn files_are_collected_by_directory_and_each_content_once() {
    let directory = tempfile::tempdir().unwrap();
    let git = git2::Repository::init(directory.path().join("git")).unwrap();
    for (path, text) in [
        ("one/g/a/1/a-1.jar", "first"),
        ("one/g/a/1/a-1.jar.sha1", "sum"),
        ("one/g/b/1/b-1.jar", "same"),
        ("one/g/p/1/p-1.jar", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"),
        ("one/src/test/java/ATest.java", "answer"),
        ("other/g/c/1/c-1.jar", "not declared"),
        ("two/g/a/1/a-1.jar", "second"),
        ("two/g/c/1/c-1.jar", "same"),
    ] {
        let path = git.workdir().unwrap().join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }
    let link = git.workdir().unwrap().join("one/g/l/1/l-1.jar");
    fs_err::create_dir_all(link.parent().unwrap()).unwrap();
    fs_err::os::unix::fs::symlink("../../../src/test/java/ATest.java", link).unwrap();
    let mut index = git.index().unwrap();
    index.add_all(["*"], git2::IndexAddOption::FORCE, None).unwrap();
    let tree = git.find_tree(index.write_tree().unwrap()).unwrap();
    let author = git2::Signature::new("a", "a@example.invalid", &git2::Time::new(0, 0)).unwrap();
    let commit = git.commit(None, &author, &author, "", &tree, &[]).unwrap();
    let repository = Repository::open("o/n".parse().unwrap(), git.path()).unwrap();
    let tree = repository.tree(&commit.to_string().parse().unwrap()).unwrap();

    let store = Store::open(&directory.path().join("store"), &directory.path().join("tmp")).unwrap();
    let mut collector = Collector::new(&store);
    let directories = BTreeSet::from(["one".to_owned(), "two".to_owned()]);
    let files = collector.collect(&tree, &directories).unwrap();
    let found: Vec<(&str, Vec<u8>)> =
        files.values().map(|file| (file.path.as_str(), store.read(&file.sha256).unwrap())).collect();
    let expected = [("g/a/1/a-1.jar", "first"), ("g/b/1/b-1.jar", "same"), ("g/c/1/c-1.jar", "same")];
    assert_eq!(found, expected.map(|(path, text)| (path, text.as_bytes().to_vec())));
    assert!(files.values().all(|file| file.origin == "project-tree" && !file.own));
    // Bytes of a path that another directory has are kept as well: an older lock may name them.
    assert!(store.contains(&Digest::of(b"second")));
    assert_eq!(collector.bytes, "first".len() as u64 + "same".len() as u64 + "second".len() as u64);

    collector.files = MOST_FILES;
    assert!(matches!(collector.collect(&tree, &directories), Err(InTreeError::Exhausted(Exhausted::Tree))));
    let mut collector = Collector { bytes: MOST_BYTES, ..Collector::new(&store) };
    assert!(matches!(collector.collect(&tree, &directories), Err(InTreeError::Exhausted(Exhausted::Tree))));
}

#[test]
fn artifacts_are_told_from_everything_else() {
    for path in
        ["g/a/1.0/a-1.0.jar", "org/g/a-b/1/a-b-1.pom", "g/a/1-SNAPSHOT/a-1-20200101.0101-1.jar", "g/a/1/a-1-x.zip"]
    {
        assert!(is_artifact(path), "{path}");
    }
    for path in [
        "a/1.0/a-1.0.jar",
        "g/a/1.0/b-1.0.jar",
        "g/a/1.0/a-2.0.jar",
        "g/a/1.0/a-1.0.jar.sha1",
        "g/a/1.0/a-1.0.jar.asc",
        "g/a/maven-metadata.xml",
        "g/a/1.0/maven-metadata.xml",
        "g/a/1.0/_remote.repositories",
        "src/test/java/p/ATest.java",
        "src/test/java/ATest.java",
        "g/../a/1.0/a-1.0.jar",
        "",
    ] {
        assert!(!is_artifact(path), "{path}");
    }
}
