//! Archives: trees that containers send, packages and distributions that images are made of, archives of locks.

use std::collections::BTreeMap;
use std::io::{Cursor, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;
use fs_err as fs;
use testevo_sandbox::artifact::store::Store;
use testevo_sandbox::digest::Digest;
use testevo_sandbox::execution::build::compiled_tree::{CompiledTree, EntryKind, append_file};
use testevo_sandbox::image::recipe::{ImageRecipe, LayerRecipe, Package, Source};
use testevo_sandbox::image::{TreePath, compose_recipe, read_index};
use testevo_sandbox::lock::LayerKind;
use testevo_sandbox::lock::archive::LockArchive;
use testevo_sandbox::resolution::metadata::java_release_of;

use super::locks::{repository_lock, toolchain_lock};
use crate::Target;
use crate::scratch::{Fresh, done};

pub(super) const TAR_WORDS: &[&[u8]] = &[
    b"ustar\x0000",
    b"ustar  \0",
    b"././@LongLink",
    b"30 path=target/classes/A.class\n",
    b"20 size=99999999999\n",
    b"22 GNU.sparse.major=1\n",
    b"00000000144\0",
    b"77777777777\0",
    b"\x80\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff",
    b"0",
    b"2",
    b"5",
    b"L",
    b"x",
    b"S",
];

/// A compiled tree: positions in it, and archives that are written from it.
pub(super) const TREE: Target = Target {
    name: "tree",
    run: tree,
    seeds: || {
        vec![
            tree_archive(&[
                ("src/test/java/p/ATest.java", b"package p; class ATest {}"),
                ("target/classes/p/A.class", b"no class"),
                ("target/classes/META-INF/MANIFEST.MF", b""),
                ("target/test-classes/p/ATest.class", &[7; 700]),
            ]),
            odd_tree(),
        ]
    },
    words: TAR_WORDS,
    runs: 1250,
    most_bytes: 64 << 10,
    memory: 60,
};

/// A tarball of the tools layer: what is in it becomes a layer.
pub(super) const LAYER: Target = Target {
    name: "layer",
    run: |input| {
        let mut packed = GzEncoder::new(Vec::new(), Compression::none());
        done(packed.write_all(input));
        let tarball = |digest| Source::Tarball { name: "maven.tar.gz".to_owned(), digest, into: path("opt/maven") };
        compose("layer", &done(packed.finish()), tarball);
    },
    seeds: || {
        let long = format!("apache/{}/x", "d".repeat(120));
        vec![tree_archive(&[("apache/bin/mvn", b"#!/bin/sh\n"), ("apache/LICENSE", b"x"), (&long, b"")]), odd_tree()]
    },
    words: TAR_WORDS,
    runs: 300,
    most_bytes: 64 << 10,
    memory: 60,
};

/// A Debian package: an `ar` archive of compressed tar archives.
pub(super) const DEB: Target = Target {
    name: "deb",
    run: |input| {
        let package = |digest| {
            let text = str::to_owned;
            let size = input.len() as u64;
            Source::Package(Package { name: text("x"), version: text("1"), architecture: text("amd64"), digest, size })
        };
        compose("deb", input, package);
    },
    seeds: || ["", ".gz", ".xz", ".zst"].into_iter().map(deb).collect(),
    words: &[
        b"!<arch>\n",
        b"debian-binary   ",
        b"control.tar     ",
        b"data.tar.xz     ",
        b"_x              ",
        b"`\n",
        b"4294967295",
        b"Package: x\n",
        b"Depends: y (>= 1)\n",
        b"Version: 1\n",
    ],
    runs: 300,
    most_bytes: 64 << 10,
    memory: 60,
};

/// A wheel or a source archive of a Python distribution.
pub(super) const WHEEL: Target = Target {
    name: "wheel",
    run: |input| {
        let wheel = |digest| Source::PythonDistribution {
            name: "x-1-py3-none-any.whl".to_owned(),
            digest,
            into: path("opt/python"),
        };
        compose("wheel", input, wheel);
    },
    seeds: || {
        vec![zipped(&[
            ("x/__init__.py", b"x = 1\n"),
            ("x-1.dist-info/METADATA", b"Name: x\n"),
            ("x-1.data/scripts/run", b"#!python\n"),
        ])]
    },
    words: ZIP_WORDS,
    runs: 300,
    most_bytes: 32 << 10,
    memory: 200,
};

/// A jar, of which the release of Java is wanted that its classes need.
pub(super) const JAR: Target = Target {
    name: "jar",
    run: |input| {
        if let Ok(Some(release)) = java_release_of(Cursor::new(input)) {
            assert!(release <= 65_535);
        }
    },
    seeds: || {
        vec![zipped(&[
            ("META-INF/MANIFEST.MF", b"Manifest-Version: 1.0\n"),
            ("p/A.class", &[0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 52]),
        ])]
    },
    words: ZIP_WORDS,
    runs: 2000,
    most_bytes: 32 << 10,
    memory: 200,
};

const ZIP_WORDS: &[&[u8]] =
    &[b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07", b"../", b"\x01\0\x18\0", b".class"];

/// An archive of locks with the blobs that they name.
pub(super) const LOCK_ARCHIVE: Target = Target {
    name: "lock_archive",
    run: lock_archive,
    seeds: lock_archives,
    words: &[
        b"archive.json",
        b"locks/toolchain.lock",
        b"locks/o__n.lock",
        b"manifests/o__n.toml",
        b"blobs/sha256/",
        b"{\"schema\":1,\"repositories\":[]}",
        b"././@LongLink",
        b"30 path=locks/toolchain.lock\n",
    ],
    runs: 400,
    most_bytes: 64 << 10,
    memory: 120,
};

fn path(text: &str) -> TreePath {
    done(text.parse())
}

/// Returns a tar archive as containers send it.
pub(super) fn tree_archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, content) in files {
        done(append_file(&mut builder, path, content));
    }
    done(builder.into_inner())
}

/// Returns an archive with directories, links, long names and extended headers.
fn odd_tree() -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let header = |kind, size| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_mode(0o755);
        header.set_mtime(1_000_000_000);
        header
    };
    let long = format!("a/{}/b", "x".repeat(150));
    done(builder.append_data(&mut header(tar::EntryType::Directory, 0), "a", &b""[..]));
    done(builder.append_data(&mut header(tar::EntryType::Regular, 3), &long, &b"one"[..]));
    done(builder.append_link(&mut header(tar::EntryType::Symlink, 0), "a/link", &long));
    done(builder.append_link(&mut header(tar::EntryType::Link, 0), "a/same", &long));
    done(builder.append_pax_extensions([("path", &b"a/pax"[..]), ("mtime", b"1")]));
    done(builder.append_data(&mut header(tar::EntryType::Regular, 2), "a/short", &b"in"[..]));
    // A file with holes: the archive has fewer bytes than the file.
    let mut sparse = header(tar::EntryType::GNUSparse, 512);
    done(sparse.set_path("a/sparse"));
    if let Some(gnu) = sparse.as_gnu_mut() {
        gnu.sparse[0].offset = *b"00000010000\0";
        gnu.sparse[0].numbytes = *b"00000001000\0";
        gnu.realsize = *b"00000011000\0";
    }
    sparse.set_cksum();
    done(builder.append(&sparse, &[1_u8; 512][..]));
    done(builder.into_inner())
}

fn tree(input: &[u8]) {
    let directory = Fresh::new("tree");
    let at = |name: &str| directory.path().join(name);
    done(fs::write(at("tree.tar"), input));
    let Ok(tree) = CompiledTree::open(&at("tree.tar")) else { return };
    for directory in ["", "target/classes", "a"] {
        for (path, place) in tree.files_below(directory) {
            let whole = if directory.is_empty() { path.to_owned() } else { format!("{directory}/{path}") };
            assert!(tree.file(&whole).is_some());
            if let Ok(content) = tree.read(place) {
                assert!(content.len() <= input.len());
                assert!(done(tree.holds(place, &content)));
            }
        }
    }
    let _ = tree.classes_of("target/classes", "p", "A.java");
    let _ = tree.write_jar("target/classes", |path| path.ends_with("B.class"), Cursor::new(Vec::new()));

    let rewritten = |name: &str, other: &[u8]| {
        let path = at(name);
        done(fs::write(&path, other));
        CompiledTree::open(&path)
    };
    let names = |tree: &CompiledTree| tree.files_below("").map(|(path, _)| path.to_owned()).collect::<Vec<_>>();
    let mut out = done(fs::File::create(at("without.tar")));
    if tree.write_without(|path| path == "target/classes/p/A.class", &mut out).is_ok() {
        let without = done(CompiledTree::open(&at("without.tar")));
        assert!(names(&without).iter().all(|path| path != "target/classes/p/A.class"));
    }
    // New contents for one file that is there and one that is not.
    let there = tree.files_below("").map(|(path, _)| path.to_owned()).next();
    let missing = "src/new/File.java".to_owned();
    let files: BTreeMap<&str, &[u8]> =
        there.iter().chain([&missing]).map(|path| (path.as_str(), &b"other content"[..])).collect();
    let mut other = Vec::new();
    if tree.write_with(&files, &mut other).is_ok() {
        assert!(other.len() <= input.len() + 4096);
        other.extend([0; 1024]);
        let other = done(rewritten("with.tar", &other));
        for (path, content) in files {
            let EntryKind::File(place) = other.at(path) else { panic!("`{path}` is no file any more") };
            assert_eq!(done(other.read(place)), content, "`{path}`");
        }
    }
}

/// Composes a layer of one source.
fn compose(target: &str, input: &[u8], source: impl FnOnce(Digest) -> Source) {
    let directory = Fresh::new(target);
    let store = done(Store::open(&directory.path().join("store"), &directory.path().join("tmp")));
    let source = source(done(store.put(input)));
    let layer = LayerRecipe { kind: LayerKind::Base, sources: vec![source] };
    let recipe = ImageRecipe { jdk: 17, repository: None, layers: vec![layer] };
    let Ok(image) = compose_recipe(&recipe, &store, 1) else { return };
    // The same inputs are the same image, and what is remembered of its layer can be read.
    assert_eq!(compose_recipe(&recipe, &store, 1).ok().as_ref(), Some(&image));
    let records = done(fs::read_dir(store.root().join("layers")));
    for record in records {
        let record = done(serde_json::from_slice(&done(fs::read(done(record).path()))));
        for path in done(read_index(&store, &record)).keys() {
            assert!(path.as_str().split('/').all(|part| !matches!(part, "" | "." | "..")), "{path}");
        }
    }
}

fn deb(compression: &str) -> Vec<u8> {
    let packed = |bytes: Vec<u8>| match compression {
        ".gz" => {
            let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
            done(packed.write_all(&bytes));
            done(packed.finish())
        }
        ".xz" => {
            let mut packed = liblzma::write::XzEncoder::new(Vec::new(), 0);
            done(packed.write_all(&bytes));
            done(packed.finish())
        }
        ".zst" => done(zstd::encode_all(bytes.as_slice(), 1)),
        _ => bytes,
    };
    let control = b"Package: x\nVersion: 1\nArchitecture: amd64\nStatus: install\nDescription: x\n more\n";
    let control = packed(tree_archive(&[("control", control), ("md5sums", b"")]));
    let data = packed(tree_archive(&[("usr/share/doc/x/copyright", b"free\n"), ("usr/bin/x", b"#!/bin/sh\n")]));
    let mut bytes = b"!<arch>\n".to_vec();
    let names = ["debian-binary".to_owned(), format!("control.tar{compression}"), format!("data.tar{compression}")];
    for (name, content) in names.iter().zip([b"2.0\n".to_vec(), control, data]) {
        bytes.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 100_644, content.len()).into_bytes());
        bytes.extend(&content);
        bytes.resize(bytes.len().next_multiple_of(2), b'\n');
    }
    bytes
}

fn zipped(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (number, (path, content)) in files.iter().enumerate() {
        let method = [zip::CompressionMethod::Stored, zip::CompressionMethod::Deflated][number % 2];
        done(writer.start_file(*path, zip::write::SimpleFileOptions::default().compression_method(method)));
        done(writer.write_all(content));
    }
    done(writer.finish()).into_inner()
}

fn store(directory: &Fresh) -> Store {
    done(Store::open(&directory.path().join("store"), &directory.path().join("tmp")))
}

fn lock_archive(input: &[u8]) {
    let directory = Fresh::new("lock_archive");
    let store = store(&directory);
    let read = LockArchive::read(&mut &*input, "archive.tar", &store);
    for blob in done(store.list()) {
        done(store.verify(&blob.digest));
    }
    let Ok(archive) = read else { return };
    let mut written = Vec::new();
    // A lock may say another size of a blob than it has; then nothing is written.
    if archive.write(&store, "archive.tar", &mut written).is_ok() {
        assert_eq!(done(LockArchive::read(&mut written.as_slice(), "archive.tar", &store)), archive);
    }
}

fn lock_archives() -> Vec<Vec<u8>> {
    let directory = Fresh::new("lock_archive_seeds");
    let store = store(&directory);
    let (mut toolchain, mut lock) = (toolchain_lock(), repository_lock());
    let blob = b"blob";
    let digest = done(store.put(blob));
    let kits = toolchain.jdks.iter_mut().flat_map(|kit| &mut kit.packages);
    for package in toolchain.base.iter_mut().chain(kits).chain(&mut toolchain.agent_packages) {
        (package.sha256, package.size) = (digest, blob.len() as u64);
    }
    toolchain.tools_packages.clear();
    for tool in &mut toolchain.tools {
        (tool.sha256, tool.size) = (digest, blob.len() as u64);
    }
    for file in &mut lock.files {
        (file.sha256, file.size) = (digest, blob.len() as u64);
    }
    for jar in &mut lock.extension_jars {
        (jar.sha256, jar.size) = (digest, blob.len() as u64);
    }
    let archive = LockArchive {
        toolchain,
        repositories: BTreeMap::from([(lock.repository.clone(), (lock, "schema = 1\n".to_owned()))]),
    };
    let mut written = Vec::new();
    done(archive.write(&store, "archive.tar", &mut written));
    vec![written, tree_archive(&[("archive.json", b"{\"schema\":1,\"repositories\":[]}")])]
}
