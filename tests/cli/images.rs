//! `images`: built images are listed, shown, compared, exported and pruned.

use fs_err as fs;
use insta::{assert_snapshot, with_settings};
use testevo_sandbox::data_dir::DataDir;
use testevo_sandbox::engine::{Engine as _, ImageRemoval};
use testevo_sandbox::execution::images::{ensure_loaded, identity};
use testevo_sandbox::execution::proof::{self, PROOF_SCHEMA, Proof, ProvenExecution};
use testevo_sandbox::image::{BuiltImage, Catalog, ImageBuilder, LockDigests, ready_tag, tag};
use testevo_sandbox::lock::{LockFile as _, MavenFile};

use crate::engine::support::daemon;
use crate::support::command::CommandLine;
use crate::support::locks;

/// Builds an image that holds nothing but what the recipe generates and a Maven cache of these files.
fn build(line: &CommandLine, repository: &str, files: &[&str]) -> BuiltImage {
    build_locked(line, repository, files, &[])
}

/// Builds an image as [`build`] does, from a lock that was made for these build sets.
fn build_locked(line: &CommandLine, repository: &str, files: &[&str], build_sets: &[&str]) -> BuiltImage {
    let data_dir = DataDir::open(&line.path().join("data")).unwrap();
    let store = data_dir.store().unwrap();
    let toolchain = locks::toolchain();
    let file = |path: &&str| MavenFile {
        path: (*path).to_owned(),
        origin: "central".to_owned(),
        sha256: store.put(path.as_bytes()).unwrap(),
        size: path.len() as u64,
        own: false,
    };
    let lock = locks::repository(repository, files.iter().map(file).collect(), build_sets);
    toolchain.store(&data_dir.join("locks/toolchain.lock")).unwrap();
    lock.store(&data_dir.join("locks").join(format!("{}.lock", lock.repository.file_stem()))).unwrap();
    let builder = ImageBuilder::new(&data_dir, |_| {}).unwrap();
    let locks = LockDigests { toolchain: toolchain.digest(), repository: lock.digest() };
    builder.build(&toolchain, &lock, locks).unwrap()
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

/// Returns what `images list` says of the only image.
fn listed(line: &CommandLine) -> serde_json::Value {
    let text = line.run(&["images", "list", "--format", "json"]);
    let values: Vec<&str> = text.lines().filter(|line| line.starts_with('[')).collect();
    assert_eq!(values.len(), 1, "one value: {text}");
    serde_json::from_str::<serde_json::Value>(values[0]).unwrap()[0].clone()
}

#[test]
fn an_image_is_proven_once_every_build_set_of_its_lock_was_shown() {
    let line = CommandLine::new();
    let built = build_locked(&line, "first/one", &["g/a/1/a-1.jar"], &["a", "b"]);
    let digest = built.image.config_digest;
    let execution = |set: &str| ProvenExecution {
        build_set: set.to_owned(),
        task_id: "t".parse().unwrap(),
        cell: testevo_sandbox::task::Cell::Nn,
        outcome: "pass".to_owned(),
    };
    let mut proof = Proof {
        schema: PROOF_SCHEMA,
        config_digest: digest,
        executions: vec![execution("a")],
        shown_for: Vec::new(),
        lock: None,
    };
    let path = line.path().join("data/proofs").join(format!("{}.json", digest.hex()));
    assert_eq!(listed(&line)["proven"], false, "there is no proof");
    proof::store(&path, &proof).unwrap();
    assert_eq!(listed(&line)["proven"], false, "one set is missing");
    proof.executions.push(execution("b"));
    proof::store(&path, &proof).unwrap();
    let whole = listed(&line);
    assert_eq!((&whole["proven"], &whole["up_to_date"]), (&true.into(), &true.into()));
    let keys: Vec<&str> = whole["layers"][0].as_object().unwrap().keys().map(String::as_str).collect();
    assert!(["kind", "diff_id", "size"].iter().all(|key| keys.contains(key)), "{keys:?}");

    // Another lock is another image's: what is there is outdated.
    let lock = line.path().join("data/locks/first__one.lock");
    let text = fs::read_to_string(&lock).unwrap();
    fs::write(&lock, text.replace("\"b\"", "\"c\"")).unwrap();
    let outdated = listed(&line);
    assert_eq!((&outdated["proven"], &outdated["up_to_date"]), (&false.into(), &false.into()));
    fs::remove_file(&lock).unwrap();
    assert_eq!(listed(&line)["proven"], false);
    fs::write(&lock, text).unwrap();
    fs::write(&path, "{}").unwrap();
    let broken = line.run(&["images", "list"]);
    assert!(broken.starts_with("exit 6\n") && broken.contains("hint: remove"), "{broken}");
}

#[tokio::test]
async fn an_export_loads_and_what_no_built_image_names_leaves_the_engine() {
    let line = CommandLine::new();
    // The daemon may be shared with other runs of this test: the images must be this one's.
    let jar = format!("g/a/{}/a-1.jar", line.path().file_name().unwrap().to_str().unwrap().trim_start_matches('.'));
    let built = build(&line, "first/one", &[&jar]);
    let image = built.image.config_digest;
    line.run(&["images", "export", "one", "--output", "one.tar"]);
    let archive = fs::read(line.path().join("one.tar")).unwrap();
    let engine = daemon().await;
    let name = tag(&built.image, Some(&built.repository), 8);
    engine.introduce(&identity(&built.image, std::slice::from_ref(&name)));
    let pieces = futures_util::stream::iter([Ok(archive.into())]);
    engine.load_image(&image, Box::pin(pieces)).await.unwrap();
    let loaded = engine.inspect_image(&image).await.unwrap().unwrap();
    assert_eq!(loaded.names, std::slice::from_ref(&name));
    let layers: Vec<_> = built.image.layers.iter().map(|layer| layer.diff_id).collect();
    assert_eq!(loaded.layers, layers);
    engine.tag_image(&image, &ready_tag(&built.repository)).await.unwrap();

    // It was not loaded for this data directory, so it stays.
    let other = build(&line, "first/one", &[&jar.replace("a-1", "a-2")]);
    assert!(!line.run(&["images", "prune"]).contains("loaded image"));
    let data_dir = DataDir::open(&line.path().join("data")).unwrap();
    let catalog = Catalog::open(&data_dir).unwrap();
    catalog.remember_loaded(&built.image, std::slice::from_ref(&name)).unwrap();
    assert_eq!(catalog.loaded_image(&image).unwrap().unwrap().image, built.image);
    assert!(ensure_loaded(&engine, &other.image, catalog.store(), &[]).await.unwrap());
    catalog.remember_loaded(&other.image, &[]).unwrap();
    let text = line.run(&["images", "prune", "--dry-run"]);
    assert!(text.contains("1 loaded image would be removed from the engine") && text.contains(&name), "{text}");
    assert!(engine.has_image(&image).await.unwrap());
    let text = line.run(&["images", "prune"]);
    assert!(text.contains("1 loaded image removed from the engine"), "{text}");
    assert!(!engine.has_image(&image).await.unwrap());
    assert!(engine.has_image(&other.image.config_digest).await.unwrap());
    assert_eq!(engine.remove_image(&other.image.config_digest).await.unwrap(), ImageRemoval::Removed);
    assert_eq!(engine.remove_image(&image).await.unwrap(), ImageRemoval::Absent);
}
