//! Bundles: the archive, what its description says, and the sources in it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use fs_err as fs;
use testevo_sandbox::artifact::store::Store;
use testevo_sandbox::bundle::description::{RepositoryContent, SCHEMA, ScorerDescription, SourceBlob};
use testevo_sandbox::bundle::layout::INDEX;
use testevo_sandbox::bundle::objects::ids;
use testevo_sandbox::bundle::runs::{Expected, PackedRun, RunArchive, unpack};
use testevo_sandbox::bundle::writing::{Content, NewBundle};
use testevo_sandbox::bundle::{Described, Description, Layout, MadeKind, names};
use testevo_sandbox::digest::Digest;

use super::archives::TAR_WORDS;
use crate::Target;
use crate::scratch::{done, file, root};

/// A bundle's archive, or the description in one: that is JSON.
pub(super) const BUNDLE: Target = Target {
    name: "bundle",
    run: |input| match input.starts_with(b"{") {
        true => described(input),
        false => archived(input),
    },
    seeds: || vec![archive(&description()), done(serde_json::to_vec(&description()))],
    words: TAR_WORDS,
    runs: 800,
    most_bytes: 64 << 10,
    memory: 400,
};

/// Objects of git, before they are compressed.
pub(super) const OBJECTS: Target = Target {
    name: "objects",
    run: |input| {
        let mut packed = done(zstd::Encoder::new(Vec::new(), 1));
        done(packed.write_all(input));
        let packed = done(packed.finish());
        if let Ok(ids) = ids(&packed[..]) {
            assert!(ids.len() <= input.len() / 9 + 1, "each object has nine bytes before its content");
        }
    },
    seeds: || vec![objects(&[(3, b"class A {}\n"), (2, b""), (1, b"tree 0\n")])],
    words: &[b"\x01", b"\x02", b"\x03", b"\x04", &[0xff; 8], &[0; 8], b"\x05\0\0\0\0\0\0\0"],
    runs: 2000,
    most_bytes: 32 << 10,
    memory: 400,
};

/// A run's archive, before it is compressed.
pub(super) const RUN: Target = Target {
    name: "run",
    run: |input| {
        let mut packed = done(zstd::Encoder::new(Vec::new(), 1));
        done(packed.write_all(input));
        let (packed, place) = (done(packed.finish()), root().join("run"));
        let _ = fs::remove_dir_all(&place);
        done(fs::create_dir_all(&place));
        let is_file = |path: &Path| path == Path::new("run.json") || path.starts_with("logs");
        let expected = Expected { is_file, most_result_bytes: 1 << 20 };
        let checked = unpack(&packed[..], None, &expected);
        let written = unpack(&packed[..], Some(&place), &expected);
        assert!(checked.is_ok() || written.is_err(), "what is refused must not be written as whole");
        for entry in done(fs::read_dir(&place)) {
            let name = done(entry).file_name();
            assert!(name == "run" || name == "results", "{name:?} is no part of a run");
        }
    },
    seeds: || {
        let mut packed = done(RunArchive::new(Vec::new()));
        for (path, text) in [("run/logs/a/b", "log"), ("run/run.json", "{}")] {
            done(packed.add(Path::new(path), text.len() as u64, text.as_bytes()));
        }
        let packed = done(packed.finish());
        vec![done(zstd::decode_all(&packed[..]))]
    },
    words: TAR_WORDS,
    runs: 800,
    most_bytes: 64 << 10,
    memory: 400,
};

/// Reads an archive as `bundle verify` does.
fn archived(input: &[u8]) {
    let path = file("bundle.tar", input);
    let Ok(layout) = Layout::open(&path) else { return };
    for name in layout.blob_names().unwrap_or_default() {
        assert!(Digest::from_hex(&name).is_ok(), "{name} is no name of a blob");
    }
    let Ok(Some(index)) = layout.read(INDEX, 1 << 20) else { return };
    let Ok((description, _)) = Description::read(&layout, &index) else { return };
    // Whatever it says, it is no reason to stop.
    let _ = names::check(&layout, &description, &index);
    for (digest, size) in description.sizes() {
        if layout.check_blob(&digest, size).is_ok() {
            assert!(size <= input.len() as u64);
        }
    }
}

/// Reads a description out of the bundle that is written of it.
fn described(input: &[u8]) {
    let Ok(description) = serde_json::from_slice::<Description>(input) else { return };
    let path = file("bundle.tar", &archive(&description));
    let layout = Layout::open(&path).unwrap_or_else(|error| panic!("what is written is not read: {error}"));
    let Ok(Some(index)) = layout.read(INDEX, 4 << 20) else { return };
    if let Ok((read, _)) = Description::read(&layout, &index) {
        assert_eq!(read, description);
    }
}

/// Returns the archive of a bundle with this description and without other blobs.
fn archive(description: &Description) -> Vec<u8> {
    let [bytes, manifest, index] = done(description.render(&[]));
    let blobs = [bytes, manifest].map(|bytes| (Digest::of(&bytes), (bytes.len() as u64, Content::Bytes(bytes))));
    let bundle = NewBundle { index, signature: None, blobs: BTreeMap::from(blobs) };
    let mut out = Vec::new();
    done(bundle.write_archive(&done(Store::open(&root().join("no-store"), root())), "bundle", &mut out));
    out
}

fn description() -> Description {
    let digest = |text: &str| Digest::of(text.as_bytes());
    let records = ["toolchain", "bill", "image", "lock", "manifest", "tasks", "made", "layer"];
    let content = RepositoryContent {
        tasks: vec![done("t1".parse())],
        image: digest("image"),
        lock: digest("lock"),
        manifest: digest("manifest"),
        task_file: digest("tasks"),
        time_classes: None,
        revisions: vec![done("a".repeat(40).parse())],
        sources: vec![SourceBlob { digest: digest("sources"), size: 9 }],
    };
    Description::Scorer(Box::new(ScorerDescription {
        schema: SCHEMA,
        identity: digest("identity"),
        toolchain: digest("toolchain"),
        repositories: BTreeMap::from([(done("o/n".parse()), content)]),
        made: vec![Described { kind: MadeKind::Prepared, key: digest("key"), record: digest("made") }],
        runner: None,
        runs: vec![PackedRun { run_id: "gold".to_owned(), archive: digest("archive"), size: 7 }],
        layers: BTreeMap::from([(digest("recipe"), digest("layer"))]),
        bill: digest("bill"),
        records: records.iter().map(|text| (digest(text), text.len() as u64)).collect(),
        blobs: BTreeMap::from([(digest("blob"), 4)]),
    }))
}

fn objects(all: &[(u8, &[u8])]) -> Vec<u8> {
    let one = |(kind, content): &(u8, &[u8])| [&[*kind][..], &(content.len() as u64).to_le_bytes(), content].concat();
    all.iter().flat_map(one).collect()
}
