//! `images`: built images are listed, shown, compared, exported and pruned.

use fs_err as fs;
use insta::{assert_snapshot, with_settings};
use testevo_sandbox::data_dir::DataDir;
use testevo_sandbox::image::{ImageBuilder, LockDigests};
use testevo_sandbox::lock::{JdkLock, LockFile as _, MavenFile, RepositoryLock, ToolchainLock};

use crate::support::command::CommandLine;

/// Builds an image that holds nothing but what the recipe generates and a Maven cache of these files.
fn build(line: &CommandLine, repository: &str, files: &[&str]) {
    let data_dir = DataDir::open(&line.path().join("data")).unwrap();
    let store = data_dir.store().unwrap();
    let toolchain = ToolchainLock {
        schema: 1,
        base: Vec::new(),
        jdks: vec![JdkLock { major: 8, packages: Vec::new() }],
        tools_packages: Vec::new(),
        tools: Vec::new(),
        indexes: Vec::new(),
    };
    let file = |path: &&str| MavenFile {
        path: (*path).to_owned(),
        origin: "central".to_owned(),
        sha256: store.put(path.as_bytes()).unwrap(),
        size: path.len() as u64,
        own: false,
    };
    let lock = RepositoryLock {
        schema: 1,
        repository: repository.parse().unwrap(),
        jdk: 8,
        files: files.iter().map(file).collect(),
        metadata: Vec::new(),
        build_sets: Vec::new(),
    };
    let builder = ImageBuilder::new(&data_dir, |_| {}).unwrap();
    let locks = LockDigests { toolchain: toolchain.digest(), repository: lock.digest() };
    builder.build(&toolchain, &lock, locks).unwrap();
}

/// Compares what the program prints, but for what changes with every version of the recipe or compressor.
fn check(name: &str, line: &CommandLine, arguments: &[&str]) {
    let filters = [
        (r"sha256:[0-9a-f]{64}", "sha256:[DIGEST]"),
        (r"\b[0-9a-f]{12}\b", "[SHORT DIGEST]"),
        (r#""recipe_version":[0-9]+"#, r#""recipe_version":[VERSION]"#),
        (r#""(size|uncompressed_size|bytes)":[1-9][0-9]*"#, r#""$1":[SIZE]"#),
    ];
    with_settings!({filters => filters}, { assert_snapshot!(name, line.run(arguments)) });
}

#[test]
fn images_are_listed_and_shown() {
    let line = CommandLine::new();
    check("nothing", &line, &["images", "list"]);
    check("nothing-json", &line, &["images", "list", "--format", "json"]);
    build(&line, "first/one", &["g/a/1/a-1.jar"]);
    build(&line, "second/two", &["g/b/1/b-1.jar"]);
    check("list", &line, &["images", "list"]);
    check("list-json", &line, &["images", "list", "t*", "--format", "json"]);
    check("show", &line, &["images", "show", "one"]);
    check("licenses", &line, &["images", "show", "one", "--licenses"]);
    check("unknown", &line, &["images", "show", "three"]);
    check("ambiguous", &line, &["images", "show", "*"]);
}

#[test]
fn a_changed_image_is_compared_with_what_it_was_and_the_rest_pruned() {
    let line = CommandLine::new();
    build(&line, "first/one", &["g/a/1/a-1.jar"]);
    check("no-other", &line, &["images", "diff", "one"]);
    build(&line, "first/one", &["g/a/2/a-2.jar"]);
    check("difference", &line, &["images", "diff", "one"]);
    check("no-difference", &line, &["images", "diff", "one", "one"]);
    check("prune-dry-run", &line, &["images", "prune", "--dry-run"]);
    check("prune", &line, &["images", "prune", "--format", "json"]);
    check("prune-again", &line, &["images", "prune"]);
    check("pruned-difference", &line, &["images", "diff", "one"]);
}

#[test]
fn an_image_is_exported_whole_or_not_at_all() {
    let line = CommandLine::new();
    build(&line, "first/one", &["g/a/1/a-1.jar"]);
    check("export-nowhere", &line, &["images", "export", "one"]);
    assert_eq!(line.run(&["images", "export", "one", "--output", "out/one.tar"]).lines().next(), Some("exit 3"));
    check("export", &line, &["images", "export", "one", "--output", "one.tar"]);
    assert!(line.path().join("one.tar").is_file());
    check("context", &line, &["images", "export", "one", "--context", "context"]);
    assert!(line.path().join("context/layers/maven-cache.tar.gz").is_file());

    // Every layer blob is damaged: none may reach a file.
    let blobs = line.path().join("data/store/blobs/sha256");
    for entry in fs::read_dir(&blobs).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        if bytes.starts_with(&[0x1f, 0x8b]) {
            bytes[20] ^= 1;
            fs::write(&path, bytes).unwrap();
        }
    }
    fs::remove_file(line.path().join("one.tar")).unwrap();
    let text = line.run(&["images", "export", "one", "--output", "one.tar"]);
    assert!(text.starts_with("exit 6\n") && text.contains("hint: remove"), "{text}");
    assert!(!line.path().join("one.tar").exists());
    assert!(!line.files().iter().any(|file| file.contains("unfinished")));
}
