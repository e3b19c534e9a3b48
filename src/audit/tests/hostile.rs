//! Leaks in patches, streams and repositories, and archives that are made to harm who reads them.

use super::*;

const BEFORE: &str = "package p;\n\nclass ATest {\n    @Test void updated() {\n        A a = new A();\n        a.open();\n        a.begin();\n        a.one();\n        assertEquals(1, a.two());\n        a.close();\n    }\n\n    @Test void last() {\n        new A().check();\n    }\n}\n";

fn after() -> String {
    BEFORE.replace(
        "        assertEquals(1, a.two());\n",
        "        assertEquals(2, a.two(\"another argument\"));\n        assertTrue(a.three());\n",
    )
}

/// Returns a patch of the updated test with some lines around.
fn patch(around: u32) -> String {
    let mut options = git2::DiffOptions::new();
    options.context_lines(around);
    let (before, after) = (BEFORE.as_bytes(), after());
    let path = Some(Path::new("ATest.java"));
    let mut patch = git2::Patch::from_buffers(before, path, after.as_bytes(), path, Some(&mut options)).unwrap();
    String::from_utf8(patch.to_buf().unwrap().to_vec()).unwrap()
}

fn updated(content: &[u8]) -> AuditReport {
    audited_for((BEFORE, &after()), content)
}

/// Searches a file for what changed between two texts of the test.
fn audited_for((before, after): (&str, &str), content: &[u8]) -> AuditReport {
    let answer = Secret { test: after.into(), start: Some(before.into()), ..secret("own", "ATest") };
    let hunt = Hunt::new(vec![answer]).unwrap();
    let own = BTreeSet::from(["own".parse().unwrap()]);
    let directory = Directory::new().put("f", content);
    let temporary = tempfile::tempdir().unwrap();
    let mut scanner = Scanner::new(&hunt, &own, AuditLimits::default(), temporary.path());
    scanner.path(directory.0.path(), directory.0.path()).unwrap();
    scanner.finish()
}

#[test]
fn patches_of_an_updated_test_are_found() {
    let quoted = |text: String| text.lines().map(|line| format!("> {line}\n")).collect::<String>();
    let json = serde_json::json!({ "patch": patch(3) }).to_string();
    let html = patch(3).replace('"', "&#x22;");
    for (name, content, kind, place) in [
        // The whole method and, without its first lines, what changed.
        ("whole", patch(10), "method_text", "f!patch"),
        ("plain", patch(2), "changed_text", "f!patch"),
        ("narrow", patch(1), "changed_text", "f!patch"),
        ("quoted", quoted(patch(3)), "changed_text", "f!patch"),
        ("json", json, "changed_text", "f!unescaped!patch"),
        ("html", html, "changed_text", "f!entities!patch"),
        ("pasted", after().lines().skip(7).take(4).collect(), "changed_text", "f"),
    ] {
        let report = updated(content.as_bytes());
        let found = found(&report);
        assert!(found.contains(&(kind, place.to_owned())), "{name}: {found:?}\n{content}");
    }
    // The change of production code, as `TASK.md` shows it, holds nothing of the test.
    let change = "```diff\n--- a/A.java\n+++ b/A.java\n@@ -1,3 +1,4 @@\n class A {\n-    int two() {\n+    int two(String argument) {\n         a.one();\n         a.close();\n```\n- a list\n";
    for clean in [change, BEFORE] {
        assert_eq!(found(&updated(clean.as_bytes())), BTreeSet::new());
    }
}

#[test]
fn the_starting_file_is_clean_in_each_of_its_forms() {
    // The starting file holds the changed lines, but not the whole method, as JSON in JSON or in HTML.
    let after = after();
    let changed = &after[after.find("        a.begin();").unwrap()..after.find("    @Test void last").unwrap()];
    let json = serde_json::Value::from(changed).to_string();
    for escaped in [serde_json::Value::from(json.as_str()).to_string(), json.replace('"', "&quot;")] {
        let comment = format!("// {escaped}\n");
        let (before, after) = (format!("{BEFORE}{comment}"), format!("{after}{comment}"));
        assert_eq!(found(&audited_for((&before, &after), before.as_bytes())), BTreeSet::new(), "{escaped}");
        // The lines alone tell nothing, and the whole method does.
        assert_eq!(found(&audited_for((&before, &after), changed.as_bytes())), BTreeSet::new());
        assert!(!found(&audited_for((&before, &after), after.as_bytes())).is_empty());
        assert!(!found(&audited_for((BEFORE, &after), before.as_bytes())).is_empty(), "{escaped}");
    }
}

#[test]
fn lzma_is_told_by_its_header() {
    let header =
        |dictionary: u32, size: u64| [&[0x5d_u8][..], &dictionary.to_le_bytes(), &size.to_le_bytes(), b"rest"].concat();
    let mut contents = vec![header(1 << 16, 5), header(1 << 31, (1 << 40) - 1)];
    for dictionary in [1 << 16, 1 << 20, 1 << 23, 1 << 25] {
        let mut options = liblzma::stream::LzmaOptions::new_preset(0).unwrap();
        options.dict_size(dictionary);
        let stream = liblzma::stream::Stream::new_lzma_encoder(&options).unwrap();
        let mut lzma = liblzma::write::XzEncoder::new_stream(Vec::new(), stream);
        lzma.write_all(test_file().as_bytes()).unwrap();
        contents.push(lzma.finish().unwrap());
        contents.push(header(dictionary, u64::MAX));
    }
    for content in contents {
        let report = Directory::new().put("a", &content).audited();
        let [place] = report.not_looked_at.as_slice() else { panic!("{content:x?}: {report:?}") };
        assert_eq!(place.reason, "it is LZMA, which is not unpacked");
    }
    for other in [header(3 << 16, 5), header(1 << 20, 1 << 40), header(0, 0), b"\x5d\0\0\x80\0".to_vec()] {
        assert!(Directory::new().put("a", &other).audited().is_clean(), "{other:x?}");
    }
}

#[test]
fn tar_without_a_magic_is_told_by_its_checksum() {
    let content = gzip(test_file().as_bytes());
    let mut header = tar::Header::new_old();
    header.set_path("d/data.gz").unwrap();
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    let mut archive = tar::Builder::new(Vec::new());
    archive.append(&header, content.as_slice()).unwrap();
    let archive = archive.into_inner().unwrap();
    assert_eq!(archive[257..265], [0; 8]);
    assert_leaks("a.tar", &archive, "test_file", "a.tar!d/data.gz!gzip");
    let encoded = ::base64::engine::general_purpose::STANDARD.encode(&archive);
    assert_leaks("b", encoded.as_bytes(), "test_file", "b!base64@0!d/data.gz!gzip");
    // Any other content is none, and neither is half a header.
    let mut changed = archive.clone();
    changed[0] ^= 1;
    for other in [&changed[..], &archive[..511]] {
        assert!(Directory::new().put("a", other).audited().is_clean());
    }
}

#[test]
fn what_inflates_is_looked_at() {
    let test = test_file();
    let encoded = ::base64::engine::general_purpose::STANDARD.encode(zlib(test.as_bytes()));
    assert_leaks("z", &zlib(test.as_bytes()), "test_file", "z!zlib");
    assert_leaks("z", &zlib(&gzip(test.as_bytes())), "test_file", "z!zlib!gzip");
    assert_leaks("b", encoded.as_bytes(), "test_file", "b!base64@0!zlib");
    let skipped = [b"\x52\x2a\x4d\x18\x04\0\0\0skip".to_vec(), zstd::stream::encode_all(test.as_bytes(), 1).unwrap()];
    assert_leaks("s", &skipped.concat(), "test_file", "s!zstd");
    for (content, name) in [
        (&b"\x1f\x9d\x90rest"[..], "compress (.Z)"),
        (b"LZIP\x01\x0c", "lzip"),
        (b"\x02\x21\x4c\x18rest", "LZ4"),
        (b"\x24\xb5\x2f\xfdrest", "an early zstd"),
    ] {
        let report = Directory::new().put("a", content).audited();
        let [place] = report.not_looked_at.as_slice() else { panic!("{report:?}") };
        assert_eq!(place.reason, format!("it is {name}, which is not unpacked"));
    }
}

#[test]
fn hostile_archives_of_ar_do_no_harm() {
    let test = test_file();
    // A name outside of the names, which are missing; and one that says it has gigabytes.
    for name in ["/99", "#1/4000000000"] {
        assert_leaks("a", &ar(&[(name, test.as_bytes())]), "test_file", &format!("a!{name}"));
    }
    // BSD's names stand before the content, which is compressed here.
    let packed = [b"data.gz\0\0\0\0\0".as_slice(), &gzip(test.as_bytes())].concat();
    assert_leaks("a", &ar(&[("#1/12", &packed)]), "test_file", "a!data.gz!gzip");
    let long = ar(&[("//", b"a long name of a member.o/\n"), ("/0", test.as_bytes())]);
    assert_leaks("a", &long, "test_file", "a!a long name of a member.o");
    let huge = format!("!<arch>\n{:<48}{:<10}`\n{test}", "//", 4_000_000_000_u64);
    let report = Directory::new().put("a", huge.as_bytes()).audited();
    assert!(report.findings.iter().any(|finding| finding.place == "a!//"), "{report:?}");
    assert_eq!(report.not_looked_at[0].reason, "the archive is truncated");
    let report = Directory::new().put("a", b"!<arch>\nshort").audited();
    assert_eq!(report.not_looked_at[0].reason, "a member's header is malformed");
}

#[test]
fn names_in_tar_archives_are_bounded() {
    let member = |kind: tar::EntryType, content: &[u8]| {
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_cksum();
        archive.append(&header, content).unwrap();
        // Without the end of the archive.
        let mut bytes = archive.into_inner().unwrap();
        bytes.truncate(512 + content.len().next_multiple_of(512));
        bytes
    };
    let test = test_file();
    let file = tar(&[("short", test.as_bytes())]);
    for kind in [tar::EntryType::GNULongName, tar::EntryType::GNULongLink, tar::EntryType::XHeader] {
        let archive = [member(kind, &vec![b'x'; 3 << 20]), file.clone()].concat();
        let report = Directory::new().put("a", &archive).audited();
        assert!(report.not_looked_at[0].reason.contains("extension has more than"), "{report:?}");
        assert!(report.findings.iter().any(|finding| finding.kind == Kind::TestFile), "{report:?}");
    }
    let long = format!("d/{}", "n".repeat(200));
    assert_leaks("a", &tar(&[(&long, test.as_bytes())]), "test_file", &format!("a!{long}"));
    let named = [member(tar::EntryType::XHeader, b"16 path=d/other\n"), file.clone()].concat();
    assert_leaks("a", &named, "test_file", "a!d/other");
    let comment = format!(" comment={METHOD}\n");
    let comment = format!("{}{comment}", comment.len() + 3);
    let told = [member(tar::EntryType::XHeader, comment.as_bytes()), file.clone()].concat();
    assert_leaks("a", &told, "method_text", "a!extension");
    // Readers do not agree where such a member ends.
    let sized = [member(tar::EntryType::XHeader, b"10 size=7\n"), file].concat();
    let report = Directory::new().put("a", &sized).audited();
    assert!(report.not_looked_at[0].reason.contains("another size"), "{report:?}");
}

#[test]
fn xz_has_a_limit_of_memory() {
    let mut options = liblzma::stream::LzmaOptions::new_preset(0).unwrap();
    options.dict_size(96 << 20);
    let mut filters = liblzma::stream::Filters::new();
    filters.lzma2(&options);
    let stream = liblzma::stream::Stream::new_stream_encoder(&filters, liblzma::stream::Check::Crc32).unwrap();
    let mut xz = liblzma::write::XzEncoder::new_stream(Vec::new(), stream);
    xz.write_all(test_file().as_bytes()).unwrap();
    let report = Directory::new().put("a.xz", &xz.finish().unwrap()).audited();
    assert!(!report.is_complete(), "{report:?}");
}

#[test]
fn names_and_logs_of_repositories_are_found() {
    let directory = Directory::new();
    let git = repository(&directory.0.path().join("logs/w"));
    let first = git.refname_to_id("refs/heads/main").unwrap();
    let id = COMMIT.replace('0', "a");
    let zeros = "0".repeat(40);
    assert_eq!(found(&directory.audited()), BTreeSet::new());
    for (path, content, kind) in [
        ("logs/HEAD", format!("{zeros} {first} A <a@b> 1 +0000\tclone: from x\n"), "reflog"),
        ("logs/refs/heads/main", format!("{zeros} {first} A <a@b> 1 +0000\tcommit (initial): m\n"), "reflog"),
        ("refs/replace/x", id.clone(), "reference"),
        ("refs/original/refs/heads/main", id.clone(), "reference"),
        ("refs/changes/01/1/1", id.clone(), "reference"),
        ("refs/tags/long", "ab".repeat(32), "reference"),
        ("REBASE_HEAD", id.clone(), "reference"),
        ("reftable/0x1.ref", "REFT\u{1}".to_owned(), "reference"),
        ("config", "[core]\n[Remote \"origin\"]\n\turl = x\n".to_owned(), "remote"),
        ("config", "[include]\n\tpath = ../other\n".to_owned(), "remote"),
        ("config.worktree", "[includeIf \"gitdir:/\"]\n\tpath = x\n".to_owned(), "remote"),
        ("../sub/.git", "gitdir: /srv/repository/.git/modules/sub\n".to_owned(), "alternates"),
        ("commondir", "../../elsewhere\n".to_owned(), "alternates"),
    ] {
        let file = git.path().join(path);
        let before = fs::read(&file).ok();
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, content).unwrap();
        let kinds: BTreeSet<&str> = found(&directory.audited()).into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, BTreeSet::from([kind]), "{path}");
        match before {
            Some(before) => fs::write(&file, before).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
    }
}
