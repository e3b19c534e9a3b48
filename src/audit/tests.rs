//! Planted leaks of each kind are found, with their places, and nothing is found in what is clean.

mod hostile;

use std::collections::BTreeSet;
use std::io::{Cursor, Write as _};
use std::path::Path;
use std::time::Duration;

use ::base64::Engine as _;
use fs_err as fs;

use super::*;
use crate::workspace::class_file;

const START: &str =
    "package p;\n\nclass ATest {\n    @Test void old() {\n        assertEquals(1, new A().one());\n    }\n}\n";
const METHOD: &str = "    @Test void added() {\n        String text = \"a\\n\" + 'x';\n        assertEquals(text, new A().two(3 < 4));\n    }\n";
const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

fn test_file() -> String {
    START.replace("    @Test void old", &format!("{METHOD}\n    @Test void old"))
}

fn secret(task: &str, class: &str) -> Secret {
    Secret {
        task: task.parse().unwrap(),
        test: test_file().replace("ATest", class).into_bytes(),
        start: Some(START.replace("ATest", class).into_bytes()),
        class: format!("p.{class}"),
        commit: COMMIT.to_owned(),
        artifacts: vec![OwnArtifact { directory: "org/own/core".to_owned(), version: Some("1.2-SNAPSHOT".to_owned()) }],
    }
}

struct Directory(tempfile::TempDir);

impl Directory {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn put(self, path: &str, content: &[u8]) -> Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    fn audited_within(&self, limits: AuditLimits) -> AuditReport {
        let hunt = Hunt::new(vec![secret("own", "ATest")]).unwrap();
        let own = BTreeSet::from(["own".parse().unwrap()]);
        let temporary = tempfile::tempdir().unwrap();
        let mut scanner = Scanner::new(&hunt, &own, limits, temporary.path());
        scanner.path(self.0.path(), self.0.path()).unwrap();
        let report = scanner.finish();
        assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0, "indexes of packs are removed");
        report
    }

    fn audited(&self) -> AuditReport {
        self.audited_within(AuditLimits::default())
    }
}

/// Returns a report's findings as `kind place`.
fn found(report: &AuditReport) -> BTreeSet<(&'static str, String)> {
    assert_eq!(report.not_looked_at, Vec::new());
    report.findings.iter().map(|finding| (finding.kind.name(), finding.place.clone())).collect()
}

/// Asserts that a single file is found as `kind` at `place`.
fn assert_leaks(path: &str, content: &[u8], kind: &'static str, place: &str) {
    let found = found(&Directory::new().put(path, content).audited());
    assert!(found.contains(&(kind, place.to_owned())), "{path}: {found:?}");
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(content).unwrap();
    out.finish().unwrap()
}

fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, path, *content).unwrap();
    }
    archive.into_inner().unwrap()
}

fn ar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, content) in files {
        archive.extend(format!("{name:<48}{:<10}`\n", content.len()).into_bytes());
        archive.extend_from_slice(content);
        archive.resize(archive.len().next_multiple_of(2), b'\n');
    }
    archive
}

fn zlib(content: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(content).unwrap();
    out.finish().unwrap()
}

fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (path, content) in files {
        archive.start_file(*path, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

#[test]
fn texts_are_found_in_any_layout() {
    let test = test_file();
    let json = serde_json::json!({ "model_file": test }).to_string();
    let html = METHOD.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    let patch: String = METHOD.lines().map(|line| format!("+{line}\n")).collect();
    let comment: String = METHOD.lines().map(|line| format!("        // {line}\n")).collect();
    let quoted: String = METHOD.lines().map(|line| format!("> * {line}\r\n")).collect();
    let wide: Vec<u8> = METHOD.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let joined = METHOD.replace('\n', " ");
    let json_in_json = serde_json::json!({ "outer": json }).to_string();
    let thrice = serde_json::json!([json_in_json]).to_string();
    let json_in_html = json.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    for (name, content, kind, place) in [
        ("whole", test.as_bytes(), "test_file", "whole"),
        ("whole", test.as_bytes(), "test_text", "whole"),
        ("within", format!("x {test} y").as_bytes(), "test_text", "within"),
        ("tabs", METHOD.replace("    ", "\t\t").as_bytes(), "method_text", "tabs"),
        ("joined", joined.as_bytes(), "method_text", "joined"),
        ("change.patch", patch.as_bytes(), "method_text", "change.patch"),
        ("A.java", comment.as_bytes(), "method_text", "A.java"),
        ("mail", quoted.as_bytes(), "method_text", "mail"),
        ("wide", &wide, "method_text", "wide"),
        ("predictions.jsonl", json.as_bytes(), "test_text", "predictions.jsonl!unescaped"),
        ("twice.json", json_in_json.as_bytes(), "test_text", "twice.json!unescaped!unescaped"),
        ("thrice.json", thrice.as_bytes(), "test_text", "thrice.json!unescaped!unescaped!unescaped"),
        ("report.html", html.as_bytes(), "method_text", "report.html!entities"),
        ("json.html", json_in_html.as_bytes(), "test_text", "json.html!entities!unescaped"),
        ("notes", format!("see {COMMIT}").as_bytes(), "commit_id", "notes"),
    ] {
        assert_leaks(name, content, kind, place);
    }
    let report = Directory::new().put("a", format!("// one\n  {METHOD}").as_bytes()).audited();
    let [finding] = report.findings.as_slice() else { panic!("{report:?}") };
    assert_eq!((finding.detail.as_str(), finding.offset), ("ATest#added", 24), "the name's place in the file");
}

#[test]
fn encodings_and_archives_are_opened() {
    let test = test_file();
    let base64 = ::base64::engine::general_purpose::STANDARD.encode(METHOD);
    let lines: String = base64.as_bytes().chunks(76).map(|line| String::from_utf8_lossy(line) + "\n").collect();
    let each_line = |before: &str, after: &str| -> String {
        lines.lines().map(|line| format!("{before}{line}{after}\n")).collect()
    };
    for (before, after, at) in [
        ("    ", "", 4),
        ("// ", "", 3),
        ("> > ", "", 4),
        ("   * ", "", 5),
        ("\"", "\" +", 1),
        ("'", "',", 1),
        ("# ", " \\", 2),
    ] {
        assert_leaks("b", each_line(before, after).as_bytes(), "method_text", &format!("b!base64@{at}"));
    }
    // The mark of an added line is a letter of base64.
    for before in ["+", "> +"] {
        assert_leaks("b", each_line(before, "").as_bytes(), "method_text", "b!patch!base64@0");
    }
    let escaped = format!("{{\"text\": \"{}\"}}", lines.replace('\n', "\\n"));
    assert_leaks("b", escaped.as_bytes(), "method_text", "b!unescaped!base64@10");
    let url = ::base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(&test);
    assert_leaks("b", format!("key: {base64}").as_bytes(), "method_text", "b!base64@5");
    assert_leaks("b", lines.as_bytes(), "method_text", "b!base64@0");
    assert_leaks("b", format!("xy{url}").as_bytes(), "test_file", "b!base64@2");
    let twice =
        ::base64::engine::general_purpose::STANDARD.encode(::base64::engine::general_purpose::STANDARD.encode(&test));
    assert_leaks("b", twice.as_bytes(), "test_file", "b!base64@0!base64@0");
    let files: &[(&str, &[u8])] = &[("d/ATest.java", test.as_bytes())];
    let jar = zip(files);
    let nested = zip(&[("lib/inner.jar", &jar)]);
    let zstd = zstd::stream::encode_all(&tar(files)[..], 1).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(test.as_bytes()).unwrap();
    let deb = ar(&[("debian-binary", b"2.0"), ("data.tar.gz", &gzip(&tar(files)))]);
    for (name, content, place) in [
        ("a.gz", gzip(test.as_bytes()), "a.gz!gzip"),
        ("a.xz", xz.finish().unwrap(), "a.xz!xz"),
        ("a.tar", tar(files), "a.tar!d/ATest.java"),
        ("a.tar.zst", zstd, "a.tar.zst!zstd!d/ATest.java"),
        ("a.jar", jar.clone(), "a.jar!d/ATest.java"),
        ("sfx", [b"#!/bin/sh\n".as_slice(), &jar].concat(), "sfx!d/ATest.java"),
        ("outer.jar", nested, "outer.jar!lib/inner.jar!d/ATest.java"),
        ("a.deb", deb, "a.deb!data.tar.gz!gzip!d/ATest.java"),
    ] {
        assert_leaks(name, &content, "test_file", place);
    }
    let encoded = ::base64::engine::general_purpose::STANDARD.encode(&jar);
    assert_leaks("j", encoded.as_bytes(), "test_file", "j!base64@0!d/ATest.java");
}

#[test]
fn a_layers_deleted_file_is_found() {
    // An upper layer's whiteout hides the file in a container, not in the image.
    let lower = gzip(&tar(&[("work/ATest.java", test_file().as_bytes())]));
    let upper = gzip(&tar(&[("work/.wh.ATest.java", b"")]));
    let layout = Directory::new()
        .put("oci-layout", b"{\"imageLayoutVersion\":\"1.0.0\"}")
        .put("blobs/sha256/aa", &lower)
        .put("blobs/sha256/bb", &upper);
    let found = found(&layout.audited());
    assert!(found.contains(&("test_file", "blobs/sha256/aa!gzip!work/ATest.java".to_owned())), "{found:?}");
    assert!(found.iter().all(|(_, place)| !place.contains("/bb")));
}

#[test]
fn classes_and_later_artifacts_are_found() {
    assert_leaks("x.class", &class_file::sample("p/ATest", None), "class_file", "x.class");
    assert_leaks("y.class", &class_file::sample("p/ATest$Inner", None), "class_file", "y.class");
    let cache = "cache/org/own/core/1.3/core-1.3-tests.jar";
    assert_leaks(cache, b"", "later_artifact", cache);
    let other = Directory::new()
        .put("z.class", &class_file::sample("p/ATestOther", None))
        .put("cache/org/own/core/1.1/core-1.1.jar", b"")
        .put("cache/org/own/core/1.3/core-1.3.pom", b"")
        .put("cache/org/own/other/1.3/other-1.3.jar", b"");
    assert_eq!(found(&other.audited()), BTreeSet::new());
}

/// Makes a repository with one commit, and returns its git directory.
fn repository(path: &Path) -> git2::Repository {
    let git = git2::Repository::init(path).unwrap();
    commit(&git, &[("A.java", "class A {}\n")], &[]);
    git
}

fn commit(git: &git2::Repository, files: &[(&str, &str)], parents: &[git2::Oid]) -> git2::Oid {
    let mut builder = git.treebuilder(None).unwrap();
    for (name, text) in files {
        builder.insert(name, git.blob(text.as_bytes()).unwrap(), 0o100_644).unwrap();
    }
    let tree = git.find_tree(builder.write().unwrap()).unwrap();
    let author = git2::Signature::new("a", "a@b", &git2::Time::new(1, 0)).unwrap();
    let parents: Vec<git2::Commit<'_>> = parents.iter().map(|id| git.find_commit(*id).unwrap()).collect();
    let id = git.commit(None, &author, &author, "m", &tree, &parents.iter().collect::<Vec<_>>()).unwrap();
    fs::write(git.path().join("refs/heads/main"), format!("{id}\n")).unwrap();
    id
}

#[test]
fn objects_of_git_are_found() {
    let directory = Directory::new();
    let git = repository(&directory.0.path().join("w"));
    assert_eq!(found(&directory.audited()), BTreeSet::new(), "one commit is clean");
    // A loose object that nothing names.
    let id = git.blob(test_file().as_bytes()).unwrap().to_string();
    let loose = format!("w/.git/objects/{}/{}!blob", &id[..2], &id[2..]);
    assert!(found(&directory.audited()).contains(&("test_file", loose)));
    // The same in a pack alone.
    let mut packed = git2::Buf::new();
    let mut builder = git.packbuilder().unwrap();
    builder.insert_object(id.parse().unwrap(), None).unwrap();
    builder.write_buf(&mut packed).unwrap();
    let pack = Directory::new().put("x/objects/pack/pack-1.pack", &packed);
    assert!(found(&pack.audited()).contains(&("test_file", format!("x/objects/pack/pack-1.pack!{id}!blob"))));
    let bundle = [format!("# v2 git bundle\n{COMMIT} refs/heads/main\n\n").as_bytes(), &packed].concat();
    assert_leaks("later.bundle", &bundle, "test_file", &format!("later.bundle!{id}!blob"));
}

#[test]
fn later_commits_and_names_of_them_are_found() {
    let directory = Directory::new();
    let git = repository(&directory.0.path().join("w"));
    let first = git.refname_to_id("refs/heads/main").unwrap();
    let kinds = |directory: &Directory| -> BTreeSet<&str> {
        found(&directory.audited()).into_iter().map(|(kind, _)| kind).collect()
    };
    let unreachable = commit(&git, &[("A.java", "class A { int later; }\n")], &[first]);
    fs::write(git.path().join("refs/heads/main"), format!("{first}\n")).unwrap();
    assert_eq!(kinds(&directory), BTreeSet::from(["commits"]));
    let id = unreachable.to_string();
    fs::remove_file(git.path().join("objects").join(&id[..2]).join(&id[2..])).unwrap();
    assert_eq!(kinds(&directory), BTreeSet::new());
    for (path, content, kind) in [
        ("refs/tags/v2", id.clone(), "reference"),
        ("packed-refs", format!("{id} refs/heads/later\n"), "reference"),
        ("ORIG_HEAD", id.clone(), "reference"),
        ("logs/HEAD", format!("{first} {id} A <a@b> 1 +0000\tcommit: later\n"), "reflog"),
        ("objects/info/alternates", "/srv/mirror/objects\n".to_owned(), "alternates"),
        ("config", "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = x\n".to_owned(), "remote"),
    ] {
        let file = git.path().join(path);
        let before = fs::read(&file).ok();
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, content).unwrap();
        assert_eq!(kinds(&directory), BTreeSet::from([kind]), "{path}");
        match before {
            Some(before) => fs::write(&file, before).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
    }
}

#[test]
fn commit_ids_in_names_are_told_once() {
    let named = format!("v-{COMMIT}");
    let archive = tar(&[(&format!("{named}/a"), b"x"), (&format!("{named}/b"), b"y")]);
    let directory = Directory::new()
        .put(&format!("d/{named}/a"), b"x")
        .put(&format!("d/{named}/below/b"), b"y")
        .put(&format!("e/{COMMIT}.zip"), &zip(&[("f", b"x")]))
        .put("g.tar", &archive);
    fs::create_dir(directory.0.path().join(COMMIT)).unwrap();
    let places = [COMMIT.to_owned(), format!("d/{named}"), format!("e/{COMMIT}.zip"), format!("g.tar!{named}")];
    let report = directory.audited();
    assert_eq!(found(&report), BTreeSet::from(places.map(|place| ("commit_id", place))));
    assert!(report.findings.iter().all(|finding| finding.offset == 0 && finding.detail == COMMIT), "{report:?}");
}

#[test]
fn what_is_clean_has_no_finding() {
    let clean = Directory::new()
        .put("src/ATest.java", START.as_bytes())
        .put("src/B.java", b"class B { void added() { new A().two(3); } }")
        .put("a.tar.gz", &gzip(&tar(&[("ATest.java", START.as_bytes())])))
        .put("words", "plain words in a text. ".repeat(1000).as_bytes())
        .put("BZhello", b"BZh is no archive")
        .put("x", b"x^2 begins like compressed data");
    std::os::unix::fs::symlink("/", clean.0.path().join("root")).unwrap();
    let report = clean.audited();
    assert!(report.is_clean() && report.findings.is_empty(), "{report:?}");
}

#[test]
fn another_tasks_test_is_told_apart() {
    let hunt = Hunt::new(vec![secret("own", "ATest"), secret("other", "BTest")]).unwrap();
    let own = BTreeSet::from(["own".parse().unwrap()]);
    let directory = Directory::new().put("BTest.java", test_file().replace("ATest", "BTest").as_bytes());
    let mut scanner = Scanner::new(&hunt, &own, AuditLimits::default(), directory.0.path());
    scanner.path(directory.0.path(), directory.0.path()).unwrap();
    let report = scanner.finish();
    let kinds: BTreeSet<(&str, bool)> =
        report.findings.iter().map(|finding| (finding.kind.name(), finding.cross_task)).collect();
    // The method is the same in both.
    assert_eq!(
        kinds,
        BTreeSet::from([("method_text", false), ("method_text", true), ("test_file", true), ("test_text", true)])
    );
}

#[test]
fn what_is_not_looked_at_is_said() {
    let limits = AuditLimits { depth: 3, entry_bytes: 1 << 20, ..AuditLimits::default() };
    let reasons = |directory: &Directory, limits| -> Vec<String> {
        let report = directory.audited_within(limits);
        assert!(!report.is_clean());
        report.not_looked_at.into_iter().map(|place| place.reason).collect()
    };
    let mut deep = test_file().into_bytes();
    (0..5).for_each(|_| deep = gzip(&deep));
    assert_eq!(reasons(&Directory::new().put("a", &deep), limits), ["archives are nested too deep"]);
    let bomb = gzip(&vec![b' '; 3 << 20]);
    assert_eq!(reasons(&Directory::new().put("a", &bomb), limits), ["it has more than 1048576 bytes"]);
    let total = AuditLimits { total_bytes: 1 << 20, ..limits };
    assert!(reasons(&Directory::new().put("a", &bomb), total)[0].contains("limit of bytes"));
    let hasty = AuditLimits { time: Duration::ZERO, ..limits };
    assert!(reasons(&Directory::new().put("a", b"x"), hasty)[0].contains("time is over"));
    let few = AuditLimits { entries: 2, ..limits };
    let many = Directory::new().put("a", b"x").put("b", b"x").put("c", b"x");
    assert!(reasons(&many, few)[0].contains("too many files"));
    let cut = gzip(test_file().as_bytes());
    assert_eq!(reasons(&Directory::new().put("a", &cut[..cut.len() / 2]), limits).len(), 1);
    assert_eq!(reasons(&Directory::new().put("a", b"7z\xbc\xaf\x27\x1c"), limits), ["it is 7z, which is not unpacked"]);
    assert_eq!(reasons(&Directory::new().put("a", b"PACK\0\0\0\x02\0\0\0\x09"), limits).len(), 1);
    let special = Directory::new();
    let _socket = std::os::unix::net::UnixListener::bind(special.0.path().join("socket")).unwrap();
    assert_eq!(reasons(&special, limits), ["it is a pipe, socket or device"]);
}

#[test]
fn nothing_to_look_for_is_an_error() {
    let same = Secret { start: Some(test_file().into_bytes()), ..secret("own", "ATest") };
    assert!(matches!(Hunt::new(vec![same]), Err(AuditError::Nothing(_))));
}
