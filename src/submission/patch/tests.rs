use super::*;

fn names(text: &str) -> Vec<(Option<String>, Option<String>)> {
    let text_of = |name: Option<Vec<u8>>| name.map(|name| String::from_utf8(name).unwrap());
    let files = parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}\n{error}"));
    files.into_iter().map(|file| (text_of(file.old), text_of(file.new))).collect()
}

fn both(name: &str) -> (Option<String>, Option<String>) {
    (Some(name.to_owned()), Some(name.to_owned()))
}

const HUNK: &str = "@@ -1 +1 @@\n-a\n+b\n";

#[test]
fn names_are_those_that_git_means() {
    for (text, expected) in [
        (
            format!("diff --git a/x/T.java b/x/T.java\nindex 1..2 100644\n--- a/x/T.java\n+++ b/x/T.java\n{HUNK}"),
            both("x/T.java"),
        ),
        (format!("--- a/x/T.java\t2020-01-01 00:00:00\n+++ b/x/T.java\t2020-01-01\n{HUNK}"), both("x/T.java")),
        (format!("--- x/T.java.orig\n+++ x/T.java\n{HUNK}"), both("x/T.java")),
        (format!("diff -u x/T.java x/T.java\n--- x/T.java\n+++ x/T.java\n{HUNK}"), both("x/T.java")),
        (format!("diff --git x/T.java x/T.java\n--- x/T.java\n+++ x/T.java\n{HUNK}"), both("x/T.java")),
        (format!("diff --git i/x w/x\n--- i/x\n+++ w/x\n{HUNK}"), both("x")),
        (
            format!(
                "diff --git \"a/\\303\\244 b\" \"b/\\303\\244 b\"\n--- \"a/\\303\\244 b\"\n+++ \"b/\\303\\244 b\"\n{HUNK}"
            ),
            both("ä b"),
        ),
        (format!("diff --git a/x y b/x y\n--- a/x y\t\n+++ b/x y\t\n{HUNK}"), both("x y")),
        ("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n".to_owned(), both("x")),
        ("diff --git a/x b/x\nnew file mode 100644\nindex 0000000..e69de29\n".to_owned(), (None, Some("x".to_owned()))),
        (
            "diff --git a/x b/x\ndeleted file mode 100644\nindex e69de29..0000000\n".to_owned(),
            (Some("x".to_owned()), None),
        ),
        (
            "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n".to_owned(),
            (Some("x".to_owned()), Some("y".to_owned())),
        ),
        ("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+b\n".to_owned(), (None, Some("x".to_owned()))),
        ("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n".to_owned(), (Some("x".to_owned()), None)),
        (format!("diff --git a/T.java b/T.java\n--- a/pom.xml\n+++ b/pom.xml\n{HUNK}"), both("pom.xml")),
    ] {
        assert_eq!(names(&text), std::slice::from_ref(&expected), "{text}");
        // A patch that passed through Windows has other line ends in its headers.
        assert_eq!(names(&text.replace('\n', "\r\n")), [expected], "{text}");
    }
    let lying = format!("diff --git a/T b/T\n--- a/pom.xml\n+++ b/pom.xml\n{HUNK}");
    assert!(parse(lying.as_bytes()).unwrap()[0].lying_header);
}

#[test]
fn several_files_and_hunks_follow_each_other() {
    let text = "From 1234 Mon Sep 17\nSubject: [PATCH] it's @@ fine\n---\n x | 2 +-\n\n\
        diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ class X {\n-a\n+b\n c\n@@ -9 +9,2 @@\n d\n+--- e\n\
        diff --git a/i.png b/i.png\nindex 1..2 100644\nGIT binary patch\nliteral 4\nLc${NkU|;|M00IC2\n\nliteral 0\nHcmV?d00001\n\n\
        diff --git a/j.png b/j.png\nBinary files a/j.png and b/j.png differ\n\
        diff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n-- \n2.43.0\n\n";
    let files = parse(text.as_bytes()).unwrap();
    assert_eq!(files.len(), 4);
    let Change::Hunks(hunks) = &files[0].change else { panic!() };
    let added = HunkLine { kind: LineKind::Added, text: b"--- e", ended: true };
    assert_eq!(hunks[1].lines().nth(1), Some(added));
    assert_eq!((&files[1].change, &files[2].change), (&Change::Binary, &Change::Binary));
    let Change::Hunks(hunks) = &files[3].change else { panic!() };
    let added = HunkLine { kind: LineKind::Added, text: b"b", ended: false };
    assert_eq!(hunks[0].lines().nth(1), Some(added));
}

#[test]
fn what_is_no_patch_is_a_typed_error() {
    use PatchErrorReason as R;
    let header = "--- a/x\n+++ b/x\n";
    let git = "diff --git a/x b/x\n";
    let hunk = |hunk: &str| format!("{header}{hunk}");
    let git = |rest: &str| format!("{git}{rest}");
    for (text, reason) in [
        ("Sorry, I could not do it.".to_owned(), R::NoDiff),
        ("class A {}\n".to_owned(), R::NoDiff),
        (HUNK.to_owned(), R::StrayLine),
        (format!("text\n{HUNK}"), R::StrayLine),
        (hunk("@@ -1 +1 @@\n-a\n"), R::HunkCounts),
        (hunk("@@ -1 +1 @@\n-a\n+b\n+c\n"), R::StrayLine),
        (hunk("@@ -1,2 +1 @@\n-a\n+b\n"), R::HunkCounts),
        (hunk("@@ -1 +1 @@\n-a\n*b\n"), R::HunkCounts),
        (hunk("@@ -1 +1 @@\n\\ No newline\n-a\n+b\n"), R::HunkCounts),
        (hunk("@@ -1,2 +1 @@\n-a\n\\ No newline\n-b\n+c\n"), R::HunkCounts),
        (hunk("@@ -1 +1 @@\n-a\n\\ No\n\\ No\n+b\n"), R::HunkCounts),
        (hunk("@@ -1 +1 @@\n-a\n+b\n- stray\n"), R::StrayLine),
        (hunk("@@ -1 +1 @@\n-a\n+b\n```\n"), R::StrayLine),
        (hunk("@@ -x +1 @@\n-a\n+b\n"), R::HunkHeader),
        (hunk("@@ -1 +1\n-a\n+b\n"), R::HunkHeader),
        (hunk("@@ -1, +1 @@\n-a\n+b\n"), R::HunkHeader),
        (hunk("@@ -1 -1 @@\n-a\n+b\n"), R::HunkHeader),
        (hunk("@@ -0 +1 @@\n-a\n+b\n"), R::HunkHeader),
        (hunk("@@ -99999999999999999999 +1 @@\n-a\n+b\n"), R::HunkHeader),
        (hunk("@@ -1 +1 @@x\n-a\n+b\n"), R::HunkHeader),
        (hunk("@@ -5 +5 @@\n-a\n+b\n@@ -5 +5 @@\n-a\n+b\n"), R::HunkOrder),
        (hunk("@@ -5 +5 @@\n-a\n+b\n@@ -1 +1 @@\n-a\n+b\n"), R::HunkOrder),
        (hunk("@@@ -1 -1 +1 @@@\n--a\n++b\n"), R::Combined),
        ("diff --cc x\nindex 1,2..3\n".to_owned(), R::Combined),
        ("diff --combined x\n".to_owned(), R::Combined),
        (format!("--- a/../evil\n+++ b/../evil\n{HUNK}"), R::OutsideTree),
        (format!("--- a/.git/hooks/x\n+++ b/.git/hooks/x\n{HUNK}"), R::OutsideTree),
        (format!("--- /etc/passwd\n+++ /etc/passwd\n{HUNK}"), R::OutsideTree),
        (format!("--- a/x//y\n+++ b/x//y\n{HUNK}"), R::OutsideTree),
        (format!("--- \"a/\\056git/x\"\n+++ \"b/\\056git/x\"\n{HUNK}"), R::OutsideTree),
        (format!("--- \"a/x\\q\"\n+++ b/x\n{HUNK}"), R::Name),
        (format!("--- \"a/x\n+++ b/x\n{HUNK}"), R::Name),
        (format!("--- /dev/null\n+++ /dev/null\n{HUNK}"), R::Name),
        (format!("--- \t\n+++ b/x\n{HUNK}"), R::Name),
        (git("new file mode 100644\ndeleted file mode 100644\n"), R::Header),
        (git("index 1..2 100644\nindex 1..2 100644\n"), R::Header),
        (git("new file mode 99\n"), R::Header),
        (git("rename from x\n"), R::Header),
        (git("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n"), R::Header),
        (git("--- a/x\n"), R::Header),
        (git(&format!("--- a/x\n+++ b/y\n{HUNK}")), R::Names),
        (git(&format!("rename from x\nrename to y\n--- a/x\n+++ b/z\n{HUNK}")), R::Names),
        ("diff --git a/x b/y\n".to_owned(), R::Names),
        ("diff --git a/x y z\n".to_owned(), R::Name),
    ] {
        match parse(text.as_bytes()) {
            Err(error) => assert_eq!(error.reason, reason, "{text}"),
            Ok(found) => panic!("{text}\n{found:?}"),
        }
    }
    assert_eq!(parse(b" \n\r\n"), Ok(Vec::new()));
}

/// Work and memory follow a patch's size and no power of it: each of these takes a few megabytes, and would take hours
/// where anything is looked at once for each of its parts.
#[test]
fn no_patch_is_slow_to_read() {
    let hunks = |number: usize| {
        let hunks = (1..=number).map(|line| format!("@@ -{line} +{line} @@\n-a\n+b\n")).collect::<String>();
        format!("--- a/x\n+++ b/x\n{hunks}")
    };
    let lines = 1 << 20;
    for (text, expected) in [
        (format!("diff --git {}", " ".repeat(8 << 20)), Some(PatchErrorReason::Name)),
        (format!("diff --git {0} {0}", " x".repeat(1 << 20)), None),
        (format!("--- a/x\n+++ b/x\n@@ -0,0 +1,{lines} @@\n{}", "+\n".repeat(lines)), None),
        ("--- a\n".repeat(1 << 20), Some(PatchErrorReason::NoDiff)),
        ("-- \n".repeat(1 << 20), Some(PatchErrorReason::NoDiff)),
        (format!("diff --git a/x b/x\n{}", "\n".repeat(4 << 20)), None),
        (format!("--- \"a/{}\n", "\\303".repeat(1 << 20)), Some(PatchErrorReason::NoDiff)),
        (hunks(MOST_HUNKS), None),
        (hunks(MOST_HUNKS + 1), Some(PatchErrorReason::TooMuch)),
        ("diff --git a/x b/x\n".repeat(MOST_FILES + 1), Some(PatchErrorReason::TooMuch)),
    ] {
        let found = parse(text.as_bytes()).err().map(|error| error.reason);
        assert_eq!(found, expected, "{}", &text[..text.len().min(60)]);
    }
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400)) {
        let _ = parse(&bytes);
    }
}
