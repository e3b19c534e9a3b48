//! `images`: built images are listed, shown, compared, exported and pruned.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::process::Command;

use fs_err as fs;
use insta::{assert_snapshot, with_settings};
use testevo_sandbox::artifact::store::Store;
use testevo_sandbox::data_dir::{DataDir, Owner};
use testevo_sandbox::digest::Digest;
use testevo_sandbox::engine::native::NativeEngine;
use testevo_sandbox::engine::{Engine as _, ImageRemoval};
use testevo_sandbox::event::EventSink;
use testevo_sandbox::execution::container::images::{ensure_loaded, identity};
use testevo_sandbox::execution::proof::{self, Proof, ProofStep, ProvenExecution, Unproven};
use testevo_sandbox::image::{BuiltImage, Catalog, ImageBuilder, LockDigests, environment, ready_tag, tag};
use testevo_sandbox::lock::{LockFile as _, MavenFile};

use crate::engine::support::{daemon, init};
use crate::support::command::CommandLine;
use crate::support::locks;

/// Builds an image that holds nothing but what the recipe generates and a Maven cache of these files.
fn build(line: &CommandLine, repository: &str, files: &[&str]) -> BuiltImage {
    build_locked(line, repository, files, &[])
}

/// Builds an image as [`build`] does, from a lock that was made for these build sets.
fn build_locked(line: &CommandLine, repository: &str, files: &[&str], build_sets: &[&str]) -> BuiltImage {
    let data_dir = DataDir::open(&line.path().join("data")).unwrap();
    let store = Store::of(&data_dir).unwrap();
    let toolchain = locks::toolchain();
    let file = |path: &&str| MavenFile {
        path: (*path).to_owned(),
        origin: "central".to_owned(),
        sha256: store.put(path.as_bytes()).unwrap(),
        size: path.len() as u64,
        own: false,
        released: false,
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
        (r"sha256:[0-9a-f]{64}|sha256:[0-9a-f]+…[0-9a-f]+", "sha256:[DIGEST]"),
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

/// Prunes, and returns the unpacked layers that are told of.
fn pruned(line: &CommandLine, more: &[&str]) -> BTreeSet<Digest> {
    let text = line.run(&[&["images", "prune", "--format", "json"][..], more].concat());
    let value = text.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{text}"));
    let value: serde_json::Value = serde_json::from_str(value).unwrap();
    let layers = value["unpacked"].as_array().unwrap().iter();
    layers.map(|layer| serde_json::from_value(layer["diff_id"].clone()).unwrap()).collect()
}

#[tokio::test]
async fn unpacked_layers_that_no_built_image_names_are_pruned() {
    let line = CommandLine::new();
    let [earlier, present] = ["g/a/1/a-1.jar", "g/a/2/a-2.jar"].map(|jar| build(&line, "first/one", &[jar]));
    let store = Store::of(&DataDir::open(&line.path().join("data")).unwrap()).unwrap();
    let unpacked = line.path().join("data/store/unpacked");
    let open = || NativeEngine::open(&unpacked, &Owner::current().unwrap(), &init(), &EventSink::none()).unwrap();
    let engine = open();
    for built in [&earlier, &present] {
        assert!(ensure_loaded(&engine, &built.image, &store, &[]).await.unwrap());
    }
    let layers =
        |built: &BuiltImage| -> BTreeSet<Digest> { built.image.layers.iter().map(|one| one.diff_id).collect() };
    let named = layers(&present);
    let doomed = &layers(&earlier) - &named;
    let are_there = |layers: &BTreeSet<Digest>| layers.iter().all(|layer| unpacked.join(layer.hex()).is_dir());
    assert_eq!(doomed.len(), 1, "the other layers are shared");

    assert_eq!(pruned(&line, &["--dry-run"]), doomed);
    let text = line.run(&["images", "prune", "--dry-run"]);
    assert!(text.contains("\nbuilt-in engine: 1 unpacked layer would be removed, "), "{text}");
    // An engine of another process may run containers from them: this test's.
    let text = line.run(&["images", "prune"]);
    assert!(text.contains("unpacked layers stay: another process runs containers from them"), "{text}");
    assert!(are_there(&doomed) && are_there(&named));

    drop(engine);
    assert_eq!(pruned(&line, &[]), doomed);
    assert!(!are_there(&doomed) && are_there(&named));
    let engine = open();
    assert!(!engine.has_image(&earlier.image.config_digest).await.unwrap());
    assert!(engine.has_image(&present.image.config_digest).await.unwrap());
    drop(engine);
    assert_eq!(pruned(&line, &[]), BTreeSet::new());
}

#[tokio::test]
async fn a_damaged_unpacked_layer_is_named_and_unpacked_anew() {
    let line = CommandLine::new();
    let built = build(&line, "first/one", &["g/a/1/a-1.jar"]);
    let store = Store::of(&DataDir::open(&line.path().join("data")).unwrap()).unwrap();
    let unpacked = line.path().join("data/store/unpacked");
    let (told, hears) = std::sync::mpsc::channel();
    let events = EventSink::new(move |event| told.send(format!("{event:?}")).unwrap());
    let open = || NativeEngine::open(&unpacked, &Owner::current().unwrap(), &init(), &events).unwrap();
    assert!(ensure_loaded(&open(), &built.image, &store, &[]).await.unwrap());
    let sound = line.run(&["store", "verify"]);
    let layers = format!("\n{} unpacked layers sound, ", built.image.layers.len());
    assert!(sound.starts_with("exit 0") && sound.contains(&layers), "{sound}");

    let tree = unpacked.join(built.image.layers[0].diff_id.hex());
    let mut open_directories = vec![tree];
    let mut file = None;
    while let Some(directory) = open_directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let (path, found) = {
                let entry = entry.unwrap();
                (entry.path(), entry.metadata().unwrap())
            };
            if found.is_dir() {
                open_directories.push(path);
            } else if found.is_file() && found.len() > 0 {
                file = Some(path);
            }
        }
    }
    let file = file.unwrap();
    let whole = fs::read(&file).unwrap();
    let mut bytes = whole.clone();
    bytes[0] ^= 1;
    fs::write(&file, bytes).unwrap();
    let damaged = line.run(&["store", "verify"]);
    let named = format!("\ndamaged: `{}`: it holds other bytes\n", file.display())
        .replace(line.path().to_str().unwrap(), "[DIRECTORY]");
    assert!(damaged.starts_with("exit 6") && damaged.contains(&named), "{damaged}\n{named}");

    let engine = open();
    assert!(!engine.has_image(&built.image.config_digest).await.unwrap());
    assert!(ensure_loaded(&engine, &built.image, &store, &[]).await.unwrap(), "it is unpacked anew");
    assert!(hears.try_iter().any(|event| event.contains("is damaged and unpacked anew")));
    assert_eq!(fs::read(&file).unwrap(), whole);
    drop(engine);
    assert_eq!(line.run(&["store", "verify"]), sound);
    assert!(!ensure_loaded(&open(), &built.image, &store, &[]).await.unwrap());
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
    let text = line.run(&["images", "export", "one", "--context", "context"]);
    assert!(text.starts_with("exit 2\n") && text.contains("`context` is not empty"), "{text}");
    assert!(text.contains("hint: name an empty directory") && !text.contains("free space"), "{text}");

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
    let mut proof = Proof { executions: vec![execution("a")], ..Proof::new(digest) };
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

    // What the image failed since then counts, and counts no more once it holds.
    proof.lock = Some(built.locks.repository);
    proof.take(ProofStep::Failed(Unproven {
        build_set: "b".to_owned(),
        task_id: "u".parse().unwrap(),
        cell: testevo_sandbox::task::Cell::No,
        outcome: "infra_fail(resolution)".to_owned(),
        detail: String::new(),
    }));
    proof::store(&path, &proof).unwrap();
    assert_eq!(listed(&line)["proven"], false, "a task's execution failed");
    proof.take(ProofStep::Held(ProvenExecution {
        task_id: "u".parse().unwrap(),
        cell: testevo_sandbox::task::Cell::No,
        ..execution("b")
    }));
    proof::store(&path, &proof).unwrap();
    assert_eq!(listed(&line), whole);

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

/// Returns what a tool says on its standard output.
fn tool(line: &CommandLine, name: &str, arguments: &[&str]) -> String {
    let output = Command::new(name).args(arguments).current_dir(line.path()).output();
    let output = output.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(output.status.success(), "{name} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The identity of an image's configuration and layers is what another tool reads from the exported archive.
#[test]
fn other_tools_read_what_is_exported() {
    let line = CommandLine::new();
    let image = build(&line, "first/one", &["g/a/1/a-1.jar"]).image;
    line.run(&["images", "export", "one", "--output", "one.tar"]);
    let raw = tool(&line, "skopeo", &["inspect", "--config", "--raw", "oci-archive:one.tar"]);
    assert_eq!(Digest::of(raw.trim_end_matches('\n').as_bytes()), image.config_digest, "{raw}");
    let config: serde_json::Value = serde_json::from_str(&raw).unwrap();
    let layers: Vec<String> = image.layers.iter().map(|layer| layer.diff_id.to_string()).collect();
    assert_eq!(config["rootfs"], serde_json::json!({ "type": "layers", "diff_ids": layers }));
    let manifest = tool(&line, "skopeo", &["inspect", "--raw", "oci-archive:one.tar"]);
    assert_eq!(Digest::of(manifest.as_bytes()), image.manifest_digest);
    // Reading every blob, a copy compares each with its digest.
    tool(&line, "skopeo", &["--insecure-policy", "copy", "oci-archive:one.tar", "dir:copied"]);
    let copied = fs::read(line.path().join("copied").join(image.layers[0].digest.hex())).unwrap();
    assert_eq!(Digest::of(&copied), image.layers[0].digest);
}

/// Returns what `docker save` gives of an image: its files by path, upper layers over lower ones, each with kind, mode, owner,
/// time, target and content.
fn saved(line: &CommandLine, image: &str) -> BTreeMap<String, String> {
    tool(line, "docker", &["save", "--output", "saved.tar", image]);
    let mut parts = BTreeMap::new();
    let mut archive = tar::Archive::new(fs::File::open(line.path().join("saved.tar")).unwrap());
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        parts.insert(entry.path().unwrap().to_str().unwrap().to_owned(), content);
    }
    let manifest: serde_json::Value = serde_json::from_slice(&parts["manifest.json"]).unwrap();
    let mut files = BTreeMap::new();
    for layer in manifest[0]["Layers"].as_array().unwrap() {
        let bytes = parts[layer.as_str().unwrap()].as_slice();
        let mut plain = Vec::new();
        match bytes.starts_with(&[0x1f, 0x8b]) {
            true => flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain).unwrap(),
            false => {
                plain.extend_from_slice(bytes);
                0
            }
        };
        for entry in tar::Archive::new(plain.as_slice()).entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().to_string_lossy().trim_matches('/').to_owned();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            let header = entry.header();
            let (kind, mode) = (header.entry_type(), header.mode().unwrap() & 0o7777);
            let owner = (header.uid().unwrap(), header.gid().unwrap());
            let target = entry.link_name().unwrap().map(|target| target.display().to_string());
            let (time, content) = (header.mtime().unwrap(), Digest::of(&content));
            files.insert(path, format!("{kind:?} {mode:o} {owner:?} {time} {target:?} {content}"));
        }
    }
    files
}

/// What `docker build` makes of an exported context has the image's files, variables, user and directory.
#[test]
fn an_exported_context_can_be_built() {
    let line = CommandLine::new();
    let built = build(&line, "first/one", &[&own_jar(&line)]);
    line.run(&["images", "export", "one", "--output", "one.tar"]);
    line.run(&["images", "export", "one", "--context", "context"]);
    let loaded = tag(&built.image, Some(&built.repository), 8);
    let name = loaded.replace("testevo-sandbox/", "testevo-sandbox-context/");
    tool(&line, "docker", &["load", "--input", "one.tar"]);
    tool(&line, "docker", &["build", "--tag", &name, "context"]);
    let [ours, theirs] = [&loaded, &name].map(|image| {
        let config = tool(&line, "docker", &["image", "inspect", "--format", "{{json .Config}}", image]);
        let config: serde_json::Value = serde_json::from_str(&config).unwrap();
        // Builders put PATH first.
        let mut variables: Vec<String> = serde_json::from_value(config["Env"].clone()).unwrap();
        variables.sort();
        (variables, ["User", "WorkingDir"].map(|key| config[key].clone()), saved(&line, image))
    });
    tool(&line, "docker", &["image", "rm", &loaded, &name]);
    assert_eq!(ours.0, environment(8).into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>());
    assert_eq!((&theirs.0, &theirs.1), (&ours.0, &ours.1));
    assert!(ours.2.keys().any(|path| path.ends_with("a-1.jar")), "{:?}", ours.2);
    let differ = |path: &&String| ours.2.get(*path) != theirs.2.get(*path);
    assert_eq!(ours.2.keys().chain(theirs.2.keys()).find(differ), None);
}

/// Returns a file that no other run of the test has: its images must be its own, even where they share the daemon.
fn own_jar(line: &CommandLine) -> String {
    format!("g/a/{}/a-1.jar", line.path().file_name().unwrap().to_str().unwrap().trim_start_matches('.'))
}

#[tokio::test]
async fn an_export_loads_and_what_no_built_image_names_leaves_the_engine() {
    let line = CommandLine::new();
    let jar = own_jar(&line);
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
    let ready = ready_tag(&built.repository);
    for _ in 0..2 {
        engine.tag_image(&image, &ready).await.unwrap();
        assert!(engine.inspect_image(&image).await.unwrap().unwrap().names.contains(&ready));
        // A name that it does not have is off it already.
        for _ in 0..2 {
            engine.untag_image(&image, &ready).await.unwrap();
            assert_eq!(engine.inspect_image(&image).await.unwrap().unwrap().names, std::slice::from_ref(&name));
        }
    }
    engine.tag_image(&image, &ready).await.unwrap();

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
    assert!(text.contains("\nengine: 1 image would be removed, unless in use") && text.contains(&name), "{text}");
    assert!(engine.has_image(&image).await.unwrap());
    let text = line.run(&["images", "prune"]);
    assert!(text.contains("\nengine: 1 image removed"), "{text}");
    assert!(!engine.has_image(&image).await.unwrap());
    assert!(engine.has_image(&other.image.config_digest).await.unwrap());
    assert_eq!(engine.remove_image(&other.image.config_digest).await.unwrap(), ImageRemoval::Removed);
    assert_eq!(engine.remove_image(&image).await.unwrap(), ImageRemoval::Absent);
}
