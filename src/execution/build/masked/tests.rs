//! What is left out of a revision, and what stands for it.

use super::*;

#[test]
fn a_hash_sets_order_is_known() {
    // As `new java.util.HashSet<>(Arrays.asList(…))` iterates.
    let paths = ["/a/B.java", "/a/A.java", "/a/Longer.java", "/x/Y.java"].map(str::to_owned);
    let ordered = hash_order(&paths);
    assert_eq!(ordered, JAVA_ORDER);
    assert_eq!(hash_order(&[]), Vec::<String>::new());
}

/// Returns a masked revision of these files, with what keeps its files alive. Those below `later` are compiled in a second
/// part.
pub(in crate::execution) fn masked(
    files: &[(&str, &[u8])],
    file: &str,
) -> (tempfile::TempDir, Result<MaskedRevision, PreparedError>) {
    masked_of(files, file, |_| ())
}

#[test]
fn tests_in_kotlin_must_not_depend_on_the_file() {
    let class = |name: &str, source: &str| crate::workspace::class_file::sample(name, Some(source));
    let (own, kotlin) = (class("p/ATest", "ATest.java"), class("p/HelpKt", "help.kt"));
    let of = |source: &[u8], more: &str| {
        let files: [(&str, &[u8]); 6] = [
            ("main/kotlin/Main.kt", b"class Main { val test = ATest() }"),
            ("src/p/ATest.java", b"package p; class ATest {}"),
            ("tests/kotlin/help.kt", source),
            ("target/test-classes/p/ATest.class", &own),
            ("target/test-classes/p/HelpKt.class", &kotlin),
            (more, b""),
        ];
        masked(&files, "src/p/ATest.java")
    };
    let fits = |source: &[u8], text: &[u8]| {
        let (_directory, masked) = of(source, "x");
        masked.unwrap().dependents(text).unwrap().is_some()
    };
    let own = b"package p; class ATest {}";
    assert!(fits(b"package p\nfun help() = 1", own), "no test is made of the other source that mentions it");
    assert!(fits(b"package p\nfun help() = 1", b"package p; class ATest { int help = HelpKt.help(); }"));
    assert!(!fits(b"package p\nfun help() = ATest()", own));
    assert!(!fits(b"package p\nfun help(fresh: Fresh) = 1", b"package p; class ATest {} class Fresh {}"));
    assert!(!fits(b"package p\nfun help() = 1", b"package p; class ATest {} class HelpKt {}"));
    assert!(of(b"", "target/kotlin-ic/test-compile/list").1.is_err(), "lists may name the file");
}

/// Returns a masked revision as [`masked`] does, of a build that is changed before.
fn masked_of(
    files: &[(&str, &[u8])],
    file: &str,
    change: impl Fn(&mut CompiledRevision),
) -> (tempfile::TempDir, Result<MaskedRevision, PreparedError>) {
    use crate::digest::Digest;
    use crate::execution::direct::write_files;
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("store"), directory.path()).unwrap();
    let archive = directory.path().join("tree.tar");
    write_files(&archive, files.iter().copied()).unwrap();
    let bytes = fs::read(&archive).unwrap();
    let call = |root: &str| {
        let sources = files.iter().map(|(path, _)| *path);
        let sources = sources.filter(|path| path.starts_with(root) && path.ends_with(".java"));
        serde_json::json!({
            "project": "g:a", "goal": "testCompile", "compiler": "javac", "arguments": [],
            "sources": sources.map(|path| format!("{PROJECT}/{path}")).collect::<Vec<_>>(),
            "source_roots": [format!("{PROJECT}/{root}")], "output": "", "generated_sources": null, "proc": null,
        })
    };
    let calls = serde_json::json!([call("src"), call("later")]);
    let mut revision = CompiledRevision {
        key: Digest::of(b"key"),
        tree: store.put(&bytes).unwrap(),
        tree_bytes: bytes.len() as u64,
        recording: Digest::of(b""),
        module: PROJECT.into(),
        output: format!("{PROJECT}/target/classes"),
        test_output: format!("{PROJECT}/target/test-classes"),
        class_path: Vec::new(),
        jars: BTreeMap::new(),
        test_calls: serde_json::from_value(calls).unwrap(),
        main_calls: Vec::new(),
        settings: Default::default(),
        generates: false,
        unfit: None,
        build_cpu_ms: None,
    };
    change(&mut revision);
    let masked = MaskedRevision::new(&store, Arc::new(revision), file, directory.path());
    (directory, masked)
}

#[test]
fn sources_that_the_build_leaves_out_play_no_part() {
    let own = crate::workspace::class_file::sample("p/ATest", Some("ATest.java"));
    let of = |left_out: &[u8], excludes: &str, file: &str| {
        let files: [(&str, &[u8]); 5] = [
            ("src/p/ATest.java", b"package p; class ATest {}"),
            ("src/p/Left.java", left_out),
            ("src/generated/p/Made.java", b"package p; class Made {}"),
            ("src/p/notes.txt", b"ATest"),
            ("target/test-classes/p/ATest.class", &own),
        ];
        let leave_out = |revision: &mut CompiledRevision| {
            let call = &mut revision.test_calls[0];
            call.excludes = vec![excludes.to_owned()];
            call.generated_sources = Some(format!("{PROJECT}/src/generated"));
            let named = ["ATest.java", "Kept.java"];
            call.sources.retain(|source| named.iter().any(|name| source.ends_with(name)));
        };
        masked_of(&files, file, leave_out)
    };
    let fits = |left_out: &[u8], text: &[u8]| {
        let (_directory, masked) = of(left_out, "**/Left.java", "src/p/ATest.java");
        masked.unwrap().dependents(text).unwrap().is_some()
    };
    let (alone, text) = (b"package p; class Left { class Inner {} }", b"package p; class ATest { Made made; }");
    assert!(fits(alone, text));
    assert!(!fits(b"package p; class Left extends ATest {}", text), "it would be compiled again where it was before");
    assert!(!fits(alone, b"package p; class ATest extends Left {}"), "the compiler would find it by itself");
    assert!(!fits(alone, b"package p; class ATest { Inner inner; }"));
    assert!(!fits(b"package p; class Left { Fresh fresh; }", b"package p; class ATest {} class Fresh {}"));
    // A file that is not there can't be seen in the list of sources.
    let absent = |excludes: &str, file: &str| of(alone, excludes, file).1.is_ok();
    assert!(absent("**/Left.java", "src/p/BTest.java"));
    assert!(!absent("**/B*.java", "src/p/BTest.java"));
    assert!(!absent("%regex[.*Left.*]", "src/p/BTest.java"), "it can't be told what this leaves out");
    assert!(!absent("**/Left.java", "src/p/Left.java"), "it is there, and the build leaves it out");
}

#[test]
fn a_container_sees_nothing_of_the_file() {
    use crate::workspace::class_file::sample;
    let class = |name: &str, source: &str| sample(name, Some(source));
    let (own, nested) = (class("p/ATest", "ATest.java"), class("p/ATest$B", "ATest.java"));
    let (beside, other) = (class("p/Beside", "ATest.java"), class("p/ATestOther", "ATestOther.java"));
    let elsewhere = class("q/Other", "ATest.java");
    let files: [(&str, &[u8]); 16] = [
        ("bin/p/ATest.class", &own),
        ("src/p/ATest.java", b"package p; class ATest { static class B {} } class Beside {}"),
        ("src/p/ATestOther.java", b"package p; class ATestOther {}"),
        ("src/q/ATest.java", b"package q; class Other {}"),
        ("target/classes/p/Main.class", b"main"),
        ("build/maven-status/x/inputFiles.lst", b"/work/project/src/p/ATest.java"),
        ("target/maven-status/x/inputFiles.lst", b"/work/project/src/p/ATest.java"),
        ("target/org.codehaus.plexus.compiler.javac.JavacCompiler123arguments", b"/work/project/src/p/ATest.java"),
        ("target/surefire-reports/TEST-p.ATest.xml", b"<testsuite/>"),
        ("target/surefire-reports/p.ATest$B.txt", b"Tests run: 1"),
        ("target/surefire-reports/p.ATestOther.txt", b"Tests run: 1"),
        ("target/test-classes/p/ATest$B.class", &nested),
        ("target/test-classes/p/ATest.class", &own),
        ("target/test-classes/p/ATestOther.class", &other),
        ("target/test-classes/p/Beside.class", &beside),
        ("target/test-classes/q/Other.class", &elsewhere),
    ];
    let (_directory, masked) = masked(&files, "src/p/ATest.java");
    let masked = masked.unwrap();
    let left = CompiledTree::open(masked.tree.path()).unwrap();
    let left: Vec<&str> = left.files_below("").map(|(path, _)| path).collect();
    let expected = [
        "src/p/ATestOther.java",
        "src/q/ATest.java",
        "target/classes/p/Main.class",
        "target/surefire-reports/p.ATestOther.txt",
        "target/test-classes/p/ATestOther.class",
        "target/test-classes/q/Other.class",
    ];
    assert_eq!(left, expected);
    let jar = zip::ZipArchive::new(fs::File::open(masked.test_classes.path()).unwrap()).unwrap();
    assert_eq!(jar.len(), 2);
    let path = masked.tree.path().to_owned();
    drop(masked);
    assert!(!path.exists());
}

#[test]
fn reports_about_a_file_that_is_not_there_are_left_out() {
    let files: [(&str, &[u8]); 4] = [
        ("src/p/Beside.java", b"package p; class Beside {}"),
        ("target/surefire-reports/TEST-p.ATest.xml", b"<testsuite/>"),
        ("target/surefire-reports/p.ATest.txt", b"Tests run: 1"),
        ("target/surefire-reports/p.Beside.txt", b"Tests run: 1"),
    ];
    let (_directory, masked) = masked(&files, "src/p/ATest.java");
    let masked = masked.unwrap();
    let left = CompiledTree::open(masked.tree.path()).unwrap();
    let left: Vec<&str> = left.files_below("target").map(|(path, _)| path).collect();
    assert_eq!(left, ["surefire-reports/p.Beside.txt"]);
}

#[test]
fn classes_of_dependents_are_left_out_as_well() {
    use crate::workspace::class_file::sample;
    let class = |name: &str, source: &str| sample(name, Some(source));
    let own = class("ATest", "ATest.java");
    let [reader, synthetic] = ["Reader", "Reader$1"].map(|name| class(name, "Reader.java"));
    let (last, alone) = (class("Last", "Last.java"), class("Alone", "Alone.java"));
    let files: [(&str, &[u8]); 9] = [
        ("src/ATest.java", b"class ATest { static final int OWN = 1; }"),
        ("src/Reader.java", b"class Reader { int own = ATest.OWN; }"),
        ("src/Last.java", b"class Last extends Reader {}"),
        ("src/Alone.java", b"class Alone {}"),
        ("target/test-classes/ATest.class", &own),
        ("target/test-classes/Alone.class", &alone),
        ("target/test-classes/Last.class", &last),
        ("target/test-classes/Reader$1.class", &synthetic),
        ("target/test-classes/Reader.class", &reader),
    ];
    let (_directory, masked) = masked(&files, "src/ATest.java");
    let masked = masked.unwrap();
    let left = CompiledTree::open(masked.tree.path()).unwrap();
    let left: Vec<&str> = left.files_below("target").map(|(path, _)| path).collect();
    assert_eq!(left, ["test-classes/Alone.class"]);
    let jar = zip::ZipArchive::new(fs::File::open(masked.test_classes.path()).unwrap()).unwrap();
    assert_eq!(jar.len(), 1);
    let made = |path: &str, content: &[u8]| (path.to_owned(), content.to_vec());
    let mut all = vec![made("ATest.class", &own), made("Reader.class", &reader), made("Last.class", &last)];
    assert_eq!(masked.unlike_build(&all).unwrap().unwrap(), "`Reader$1.class` is missing", "one of a dependent");
    all.push(made("Reader$1.class", &synthetic));
    assert_eq!(masked.unlike_build(&all).unwrap(), None);
}

#[test]
fn dependents_are_found_through_what_they_inherit() {
    let files: [(&str, &[u8]); 5] = [
        ("src/ATest.java", b"class ATest { class Inner {} }"),
        ("src/Middle.java", b"class Middle extends ATest {}"),
        ("src/Last.java", b"class Last extends Middle { Inner inner; }"),
        ("src/New.java", b"class New { Fresh fresh; }"),
        ("src/Alone.java", b"class Alone {}"),
    ];
    let (_directory, masked) = masked(&files, "src/ATest.java");
    let masked = masked.unwrap();
    let dependents = |text: &[u8]| -> Vec<String> {
        let mut found: Vec<String> =
            masked.dependents(text).unwrap().unwrap().into_iter().map(|(path, _)| path).collect();
        found.sort();
        found
    };
    let path = |name: &str| format!("{PROJECT}/src/{name}.java");
    assert_eq!(dependents(b"class ATest {}"), [path("Last"), path("Middle")]);
    assert_eq!(dependents(b"class ATest {} class Fresh {}"), [path("Last"), path("Middle"), path("New")]);
}

#[test]
fn parts_see_what_is_compiled_before_them() {
    use crate::workspace::class_file::sample;
    let (first, second) = (sample("ATest", Some("ATest.java")), sample("Later", Some("Later.java")));
    let files: [(&str, &[u8]); 5] = [
        ("src/ATest.java", b"class ATest {}"),
        ("src/BTest.java", b"class BTest {}"),
        ("later/Later.java", b"class Later { BTest test; }"),
        ("target/test-classes/ATest.class", &first),
        ("target/test-classes/Later.class", &second),
    ];
    let classes = |masked: &MaskedRevision| {
        let jar = zip::ZipArchive::new(fs::File::open(masked.test_classes.path()).unwrap()).unwrap();
        jar.file_names().map(|name| name.unwrap().into_owned()).collect::<Vec<_>>()
    };
    let (_directory, early) = masked(&files, "src/ATest.java");
    let early = early.unwrap();
    assert_eq!(classes(&early), [""; 0]);
    assert!(CompiledTree::open(early.tree.path()).unwrap().file("target/test-classes/Later.class").is_some());
    assert!(early.dependents(b"class ATest {}").unwrap().is_some());
    assert!(early.dependents(b"class ATest {} class BTest {}").unwrap().is_none(), "Later mentions it");
    let (_directory, late) = masked(&files, "later/Later.java");
    let late = late.unwrap();
    assert_eq!(classes(&late), ["ATest.class"]);
    assert!(late.dependents(b"class Later {} class ATest {}").unwrap().is_some(), "parts before it do not see it");
}

#[test]
fn files_that_the_build_copies_are_unfit() {
    let own = crate::workspace::class_file::sample("ATest", Some("ATest.java"));
    let with = |path: &str| {
        let files: [(&str, &[u8]); 3] = [
            ("src/ATest.java", b"class ATest {}"),
            ("target/test-classes/ATest.class", &own),
            (path, b"class ATest {}"),
        ];
        masked(&files, "src/ATest.java").1.err()
    };
    for copy in ["target/test-classes/p/ATest.java", "target/classes/ATest.java", "other/Copy.txt"] {
        assert!(with(copy).is_some(), "{copy}");
    }
    let files: [(&str, &[u8]); 1] = [("target/test-classes/BTest.java", b"class BTest {}")];
    assert!(masked(&files, "src/BTest.java").1.is_err(), "of a file that is not there, too");
}

#[test]
fn the_builds_own_classes_are_told_from_others() {
    use crate::workspace::class_file::sample;
    let (own, nested) = (sample("ATest", Some("ATest.java")), sample("ATest$B", Some("ATest.java")));
    let files: [(&str, &[u8]); 3] = [
        ("src/ATest.java", b"class ATest { class B {} }"),
        ("target/test-classes/ATest$B.class", &nested),
        ("target/test-classes/ATest.class", &own),
    ];
    let (_directory, masked) = masked(&files, "src/ATest.java");
    let masked = masked.unwrap();
    let class = |name: &str, content: &[u8]| (name.to_owned(), content.to_vec());
    let whole = [class("ATest.class", &own), class("ATest$B.class", &nested)];
    let unlike = |classes: &[(String, Vec<u8>)]| masked.unlike_build(classes).unwrap();
    assert_eq!(unlike(&whole), None);
    assert_eq!(unlike(&whole[..1]).unwrap(), "`ATest$B.class` is missing");
    let (length, built) = (nested.len(), own.len());
    let other = format!("`ATest.class` has other bytes ({length}, the build's {built})");
    assert_eq!(unlike(&[class("ATest.class", &nested), class("ATest$B.class", &nested)]).unwrap(), other);
    assert_eq!(unlike(&[]).unwrap(), "`ATest$B.class` is missing");
    let more = [&whole[..], &[class("ATest$C.class", &nested)]].concat();
    assert_eq!(unlike(&more).unwrap(), "the build made no `ATest$C.class`");
}

#[test]
fn another_source_stands_for_a_file_that_is_not_there() {
    use crate::workspace::class_file::sample;
    let class = |name: &str, source: &str| sample(name, Some(source));
    let (beside, elsewhere) = (class("p/Beside", "Beside.java"), class("q/Short", "Short.java"));
    let of = |files: &[(&str, &[u8])]| masked(files, "src/p/ATest.java").1.unwrap();
    let sources: [(&str, &[u8]); 3] = [
        ("src/p/Beside.java", b"package p; /* long */ class Beside {}"),
        ("src/p/package-info.java", b"package p;"),
        ("src/q/Short.java", b"package q; class Short {}"),
    ];
    let classes: [(&str, &[u8]); 2] =
        [("target/test-classes/p/Beside.class", &beside), ("target/test-classes/q/Short.class", &elsewhere)];
    let shown = |masked: &MaskedRevision| masked.shown().unwrap().map(|(path, _)| path);
    let path = |name: &str| Some(format!("{PROJECT}/src/{name}.java"));
    let both = of(&[&sources[..], &classes[..]].concat());
    assert_eq!(shown(&both), path("p/Beside"));
    let made = [("p/Beside.class".to_owned(), beside.clone())];
    assert_eq!(both.unlike_build(&made).unwrap(), None);
    let missing = Some("`p/Beside.class` is missing".to_owned());
    assert_eq!(both.unlike_build(&[("q/Short.class".to_owned(), elsewhere.clone())]).unwrap(), missing);
    assert_eq!(both.unlike_build(&[]).unwrap(), missing);
    assert_eq!(shown(&of(&[&sources[..], &classes[1..]].concat())), path("q/Short"));
    assert_eq!(shown(&of(&sources)), None, "no source has classes");
}

#[test]
fn what_is_too_large_to_be_read_is_unfit() {
    let own = crate::workspace::class_file::sample("ATest", Some("ATest.java"));
    let of = |length: u64| {
        let settings = vec![b'#'; usize::try_from(length).unwrap()];
        let files: [(&str, &[u8]); 3] = [
            ("src/ATest.java", b"class ATest {}"),
            ("src/lombok.config", &settings),
            ("target/test-classes/ATest.class", &own),
        ];
        masked(&files, "src/ATest.java").1.err()
    };
    assert!(of(MOST_READ_BYTES).is_none());
    let unfit = of(MOST_READ_BYTES + 1).unwrap();
    assert!(matches!(unfit, PreparedError::Unfit(reason) if reason.contains("`src/lombok.config`")));
}

#[test]
fn files_that_are_not_compiled_with_the_others_are_unfit() {
    let unnamed = crate::workspace::class_file::sample("ATest", None);
    let files: [(&str, &[u8]); 2] =
        [("src/ATest.java", b"class ATest {}"), ("target/test-classes/ATest.class", &unnamed)];
    assert!(masked(&files, "src/ATest.java").1.is_err(), "it can't be told which classes are its own");
    let large = vec![0; usize::try_from(crate::workspace::class_file::MOST_CLASS_BYTES).unwrap() + 1];
    for odd in [&b"no class"[..], &large] {
        let files: [(&str, &[u8]); 2] = [("src/ATest.java", b"class ATest {}"), ("target/test-classes/Odd.class", odd)];
        assert!(masked(&files, "src/ATest.java").1.is_err(), "it may be one of the file's");
    }
    assert!(masked(&files, "other/BTest.java").1.is_err(), "it lies in no source root");
    assert!(masked(&files, "src/BTest.java").1.is_ok());
}

const JAVA_ORDER: [&str; 4] = ["/a/A.java", "/x/Y.java", "/a/Longer.java", "/a/B.java"];
