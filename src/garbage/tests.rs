use serde_json::{Value, json};

use super::*;
use crate::execution::proof::Proof;
use crate::image::Image;
use crate::lock::{
    DebianPackage, JdkLock, LockFile as _, MavenFile, RepositoryLock, SignedIndex, ToolFile, ToolRole, ToolchainLock,
};

/// A data directory with a blob for each name in its store.
struct Place {
    directory: tempfile::TempDir,
    store: Store,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("store"), &directory.path().join("tmp")).unwrap();
        Self { directory, store }
    }

    fn blob(&self, name: &str) -> Digest {
        self.store.put(name.as_bytes()).unwrap()
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn collect(&self, dry_run: bool) -> Result<Garbage, GarbageError> {
        collect(&self.store, Duration::ZERO, dry_run)
    }

    /// Returns an image of three blobs, as JSON has it.
    fn image(&self, name: &str) -> Value {
        let blob = |part: &str| self.blob(&format!("{name} {part}"));
        let (diff_id, recipe) = (Digest::of(b"diff id"), Digest::of(b"recipe"));
        let layer = json!({
            "kind": "base", "diff_id": diff_id, "digest": blob("layer"), "size": 1, "uncompressed_size": 1,
            "recipe": recipe,
        });
        json!({ "config_digest": blob("config"), "manifest_digest": blob("manifest"), "layers": [layer] })
    }
}

fn toolchain(blobs: [Digest; 5]) -> ToolchainLock {
    let package = |sha256| DebianPackage {
        name: "p".to_owned(),
        version: "1".to_owned(),
        architecture: "amd64".to_owned(),
        suite: "s".to_owned(),
        path: "x.deb".to_owned(),
        sha256,
        size: 1,
    };
    let [base, kit, python, tool, in_release] = blobs;
    let tool = ToolFile {
        role: ToolRole::Maven,
        name: "maven".to_owned(),
        version: "1".to_owned(),
        origin: "central".to_owned(),
        path: "x".to_owned(),
        sha256: tool,
        size: 1,
    };
    let (suite, date) = ("s".to_owned(), "d".to_owned());
    ToolchainLock {
        base: vec![package(base)],
        jdks: vec![JdkLock { major: 8, packages: vec![package(kit)] }],
        tools_packages: vec![package(python)],
        tools: vec![tool],
        indexes: vec![SignedIndex { suite, in_release, date, signed_by: Vec::new() }],
        ..ToolchainLock::empty()
    }
}

fn repository_lock(sha256: Digest) -> RepositoryLock {
    let (path, origin) = ("a.jar".to_owned(), "central".to_owned());
    RepositoryLock {
        schema: lock::LOCK_SCHEMA,
        repository: "o/n".parse().unwrap(),
        jdk: 8,
        maven_arguments: None,
        files: vec![MavenFile { path, origin, sha256, size: 1, own: false, released: false }],
        metadata: Vec::new(),
        build_sets: Vec::new(),
        whole_sets: Vec::new(),
        unresolved: Vec::new(),
        extension_jars: Vec::new(),
    }
}

/// A kind's record, by name, with the blobs that it names.
fn records(place: &Place) -> Vec<(&'static str, Vec<u8>, Vec<Digest>)> {
    let of = |value: &Value| serde_json::to_vec(value).unwrap();
    let five = ["base", "kit", "python", "tool", "in release"].map(|name| place.blob(name));
    let [old, now, next] = ["old jar", "jar", "next jar"].map(|name| place.blob(name));
    let [built, previous, loaded] = ["built", "previous", "loaded"].map(|name| place.image(name));
    let blobs = |image: &Value| serde_json::from_value::<Image>(image.clone()).unwrap().blobs().collect::<Vec<_>>();
    let lock = |jar| repository_lock(jar).render().into_bytes();
    let locks = json!({ "toolchain": Digest::of(b"t"), "repository": Digest::of(b"r") });
    let catalog = json!({
        "schema": 1, "repository": "o/n", "jdk": 8, "image": built, "locks": locks, "recipe_version": 1,
        "previous": previous,
    });
    let [shown, run, index, made] = ["shown", "run", "index", "made"].map(|name| place.blob(name));
    let proof = serde_json::to_vec(&Proof::new(shown)).unwrap();
    let (own, record) = (place.blob("own layer"), place.image("own"));
    let record = json!({ "schema": 1, "layer": record["layers"][0], "index": index });
    // As earlier programs wrote them.
    let [tree, jar] = ["tree", "earlier jar"].map(|name| place.blob(name));
    let earlier = json!({ "schema": 5, "key": Digest::of(b"k"), "value": { "tree": tree, "jars": { "a": jar } } });
    let description = json!({ "schema": 99, "key": Digest::of(b"key"), "blobs": [made], "value": null });
    vec![
        ("locks/toolchain.lock", toolchain(five).render().into_bytes(), five.to_vec()),
        ("locks/o__n.lock", lock(now), vec![now]),
        ("locks/o__n.lock.next", lock(next), vec![next]),
        ("locks/history/old.lock", lock(old), vec![old]),
        ("images/o__n.json", of(&catalog), [blobs(&built), blobs(&previous)].concat()),
        ("images/loaded/HEX", of(&json!({ "image": loaded, "tags": ["x"] })), blobs(&loaded)),
        ("proofs/x.json", proof, vec![shown]),
        ("store/layers/x.json", of(&record), vec![own, index]),
        ("store/jars/x.json", of(&description), vec![made]),
        ("store/prepared/x.json", of(&earlier), vec![tree, jar]),
        ("runs/r1/inputs.json", of(&json!({ "schema": 1, "images": { "o/n": run } })), vec![run]),
    ]
}

#[test]
fn every_kind_keeps_what_it_names_and_nothing_goes_while_one_can_not_be_read() {
    let place = Place::new();
    let hex = Digest::of(b"image").hex();
    let records = records(&place);
    let kept: BTreeSet<Digest> = records.iter().flat_map(|(.., blobs)| blobs).copied().collect();
    let garbage: BTreeSet<Digest> =
        place.store.list().unwrap().into_iter().map(|blob| blob.digest).filter(|blob| !kept.contains(blob)).collect();
    let parts: BTreeSet<&str> =
        PARTS.iter().filter(|part| part.names != NamedBlobs::None).map(|part| part.path).collect();
    let covered = |part: &&str| records.iter().any(|(path, ..)| path.starts_with(part.trim_end_matches("/*")));
    assert!(parts.iter().filter(|part| !part.starts_with("store/")).all(covered), "every kind has its record");
    for (path, bytes, _) in &records {
        place.write(&path.replace("HEX", &hex), bytes);
    }
    let found = place.collect(true).unwrap();
    assert_eq!((found.blobs.into_iter().collect(), found.used), (garbage, kept.len()));
    for (path, bytes, blobs) in &records {
        let path = place.write(&path.replace("HEX", &hex), "{");
        // What is young may be needed by somebody who is about to replace it.
        match collect(&place.store, Duration::from_secs(3600), false) {
            Err(GarbageError::Record { path: named, .. }) => assert_eq!(named, fs::canonicalize(&path).unwrap()),
            other => panic!("{}: {other:?}", path.display()),
        }
        fs::remove_file(&path).unwrap();
        let found: BTreeSet<Digest> = place.collect(true).unwrap().blobs.into_iter().collect();
        assert!(blobs.iter().all(|blob| found.contains(blob)), "{} alone names them", path.display());
        fs::write(&path, bytes).unwrap();
    }
    place.collect(false).unwrap();
    assert_eq!(place.store.list().unwrap().len(), kept.len());
}

#[test]
fn what_names_no_blob_keeps_none_and_young_ones_stay() {
    let place = Place::new();
    let [garbage, kept] = ["garbage", "kept"].map(|name| place.blob(name));
    for path in ["results/ab/x.json", "runs/r1/records.jsonl", "focal/x.json", "tmp/x", "locks/.x.lock.7-1"] {
        place.write(path, garbage.hex());
    }
    place.write("images/loaded/of-no-image", "{");
    place.write(&format!("images/loaded/{}", kept.hex()), "");
    // A data directory that lies in this one and shares its store.
    place.write("demo/locks/o__n.lock", repository_lock(kept).render());
    std::os::unix::fs::symlink("../store", place.directory.path().join("demo/store")).unwrap();
    let young = collect(&place.store, Duration::from_secs(3600), false).unwrap();
    assert_eq!((young.blobs.len(), young.young, young.used), (0, 1, 1));
    let dry = place.collect(true).unwrap();
    assert_eq!((dry.blobs, dry.bytes), (vec![garbage], 7));
    let from_within = Store::open(&place.directory.path().join("demo/store"), &place.directory.path().join("tmp"));
    assert!(place.store.contains(&garbage));
    assert_eq!(collect(&from_within.unwrap(), Duration::ZERO, false).unwrap().blobs, [garbage]);
    assert!(!place.store.contains(&garbage) && place.store.contains(&kept));
}

#[test]
fn corrupted_blobs_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("store"), &directory.path().join("tmp")).unwrap();
    store.put(b"sound").unwrap();
    let bad = store.put(b"bad").unwrap();
    fs::write(store.path(&bad), "worse").unwrap();
    let verified = verify(&store, |_| ()).unwrap();
    assert_eq!((verified.sound, verified.bytes, verified.corrupted), (1, 10, vec![bad]));
}

#[test]
fn a_run_of_a_stranger_makes_nobody_wait_and_leads_nowhere() {
    for kind in ["pipe", "link"] {
        let place = Place::new();
        let inputs = place.write("runs/r1/inputs.json", "");
        fs::remove_file(&inputs).unwrap();
        match kind {
            "pipe" => rustix::fs::mkfifoat(rustix::fs::CWD, &inputs, rustix::fs::Mode::RUSR).unwrap(),
            _ => fs_err::os::unix::fs::symlink("/dev/zero", &inputs).unwrap(),
        }
        assert!(matches!(place.collect(false), Err(GarbageError::Record { .. })), "{kind}");
    }
}

#[test]
fn an_old_description_that_is_damaged_names_nothing() {
    let place = Place::new();
    let blob = place.blob("blob");
    place.write("store/jars/x.json", "{");
    assert_eq!(place.collect(true).unwrap().blobs, [blob]);
}
