//! Tests with patches that no honest program writes. Each has a typed reason and a list of its other files.

use super::*;

const TARGET: &str = "src/test/java/ATest.java";
const START: &[u8] = b"one\ntwo\nthree\nfour\n";
const HUNK: &str = "@@ -2 +2 @@\n-two\n+2\n";

/// What the tree has at the target's place that other files are read from: nobody may be given it.
const GOLD: &[u8] = b"gold\n";

fn run(patch: &[u8]) -> Extraction {
    run_from(patch, Some(START))
}

fn run_from(patch: &[u8], start: Option<&[u8]>) -> Extraction {
    let target = TARGET.parse().unwrap();
    let other = |path: &[u8]| match path {
        b"B" => Some(b"b\n".to_vec()),
        path => (path == TARGET.as_bytes()).then(|| GOLD.to_vec()),
    };
    extract(&Content::Patch(patch.to_vec()), &StartingTree { target: &target, start, other: &other })
}

/// Returns a patch of the target with these hunks.
fn hunks(hunks: &str) -> String {
    format!("--- a/{TARGET}\n+++ b/{TARGET}\n{hunks}")
}

/// Returns a patch of the target as git writes it, with what follows its first line.
fn git(rest: &str) -> String {
    format!("diff --git a/{TARGET} b/{TARGET}\n{rest}")
}

fn named(old: &str, new: &str) -> String {
    format!("--- {old}\n+++ {new}\n{HUNK}")
}

/// Returns a patch that renames or copies a file to the target's place, and changes nothing in it.
fn moved(how: &str, from: &str) -> String {
    format!("diff --git a/{from} b/{TARGET}\nsimilarity index 100%\n{how} from {from}\n{how} to {TARGET}\n")
}

/// Returns one that also changes it, by a hunk that fits.
fn moved_and_changed(how: &str) -> String {
    format!("{}--- a/B\n+++ b/{TARGET}\n@@ -1 +1 @@\n-b\n+c\n", moved(how, "B").replace("100", "50"))
}

/// Returns a text in an encoding of two bytes.
fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn check(patches: Vec<(&str, impl AsRef<[u8]>)>, expected: HarnessReason) {
    for (what, patch) in patches {
        match run(patch.as_ref()).content {
            Ok(content) => panic!("{what}: {}", String::from_utf8_lossy(&content)),
            Err(fault) => {
                assert_eq!(fault.reason, expected, "{what}: {}", fault.detail);
                assert!(!fault.detail.is_empty() && fault.detail.len() < 300, "{what}: {}", fault.detail);
            }
        }
    }
}

#[test]
fn patches_that_can_not_be_read_are_malformed() {
    check(
        vec![
            ("cut after the first name", format!("--- a/{TARGET}\n")),
            ("cut within a hunk", hunks("@@ -2 +2 @@\n-two\n")),
            ("cut within a hunk's header", hunks("@@ -2 +2 @")),
            ("NUL in a hunk's header", hunks("@@ -2\0 +2 @@\n-two\n+2\n")),
            ("another digit's bytes", hunks("@@ -٢ +2 @@\n-two\n+2\n")),
            ("2^64", hunks("@@ -18446744073709551616 +2 @@\n-two\n+2\n")),
            ("2^64 - 1 lines", hunks("@@ -2,18446744073709551615 +2 @@\n-two\n+2\n")),
            ("2^63", hunks("@@ -9223372036854775808,1 +2 @@\n-two\n+2\n")),
            ("2^31", hunks("@@ -2147483648 +2 @@\n-two\n+2\n")),
            ("start and lines that add up to much", hunks("@@ -999999999,999999999 +2 @@\n-two\n+2\n")),
            ("a negative start", hunks("@@ --2 +2 @@\n-two\n+2\n")),
            ("negative lines", hunks("@@ -2,-1 +2 @@\n-two\n+2\n")),
            ("a signed number", hunks("@@ -+2 +2 @@\n-two\n+2\n")),
            ("a hexadecimal number", hunks("@@ -0x2 +2 @@\n-two\n+2\n")),
            ("line 0", hunks("@@ -0 +0 @@\n-two\n+2\n")),
            ("three ranges", hunks("@@ -2 +2 +2 @@\n-two\n+2\n")),
            ("hunks out of order", hunks("@@ -3 +3 @@\n-three\n+3\n@@ -1 +1 @@\n-one\n+1\n")),
            ("hunks that overlap", hunks("@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n@@ -3 +3 @@\n-three\n+3\n")),
            ("the same hunk twice", hunks(&HUNK.repeat(2))),
            ("a line too few", hunks("@@ -2,2 +2 @@\n-two\n+2\n")),
            ("a line too many", hunks("@@ -2 +2 @@\n-two\n+2\n+3\n")),
            ("more context than told", hunks("@@ -2 +2 @@\n-two\n+2\n three\n")),
            ("an unknown sign", hunks("@@ -2 +2 @@\n-two\n~2\n")),
            ("a tab for a sign", hunks("@@ -2,2 +2,2 @@\n\tone\n-two\n+2\n")),
            ("a marker before any line", hunks("@@ -2 +2 @@\n\\ No newline at end of file\n-two\n+2\n")),
            ("a marker twice", hunks("@@ -2 +2 @@\n-two\n+2\n\\ No newline\n\\ No newline\n")),
            ("a marker amid old lines", hunks("@@ -2,2 +2 @@\n-two\n\\ No newline\n-three\n+2\n")),
            ("a marker amid new lines", hunks("@@ -2 +2,2 @@\n-two\n+2\n\\ No newline\n+3\n")),
            ("an escape of one digit", named(&format!("\"a/{TARGET}\\7\""), &format!("b/{TARGET}"))),
            ("an escape beyond a byte", named(&format!("\"a/{TARGET}\\777\""), &format!("b/{TARGET}"))),
            ("an escape of no octal", named(&format!("\"a/{TARGET}\\089\""), &format!("b/{TARGET}"))),
            ("a hexadecimal escape", named(&format!("\"a/{TARGET}\\x41\""), &format!("b/{TARGET}"))),
            ("a quoted name without an end", named(&format!("\"a/{TARGET}"), &format!("b/{TARGET}"))),
            ("a quoted name that ends in an escape", named("\"a/x\\", "b/x")),
            ("something after a quoted name", named(&format!("\"a/{TARGET}\"x"), &format!("b/{TARGET}"))),
            ("a quoted NUL", named("\"a/x\\000\"", "\"b/x\\000\"")),
            ("no name", named("a/", "b/")),
            ("a binary patch of the target", git("index 1..2\nGIT binary patch\nliteral 4\nLc${NkU|;|M00IC2\n\n")),
            ("binary files that differ", git(&format!("index 1..2\nBinary files a/{TARGET} and b/{TARGET} differ\n"))),
            ("a symbolic link", git(&format!("old mode 100644\nnew mode 120000\n{}", hunks(HUNK)))),
            ("a submodule", git(&format!("index 1..2 160000\n{}", hunks(HUNK)))),
            ("a directory", git(&format!("old mode 100644\nnew mode 040000\n{}", hunks(HUNK)))),
            ("a mode of no file", git(&format!("old mode 100644\nnew mode 777777\n{}", hunks(HUNK)))),
            ("a mode of other digits", git(&format!("old mode 100644\nnew mode 100898\n{}", hunks(HUNK)))),
            ("made and removed", git("new file mode 100644\ndeleted file mode 100644\n")),
            ("renamed from somewhere to nowhere", git("rename from B\n")),
            ("renamed twice", git("rename from B\nrename from C\nrename to D\n")),
            ("removed without saying so", git(&format!("--- a/{TARGET}\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"))),
            ("an absolute name", named(&format!("/{TARGET}"), &format!("/{TARGET}"))),
            ("a name that leads out", named(&format!("a/../{TARGET}"), &format!("b/../{TARGET}"))),
            ("a name that leads out and back", named("a/src/../../x", "b/src/../../x")),
            ("a name with a dot", named(&format!("a/./{TARGET}"), &format!("b/./{TARGET}"))),
            ("a name with an empty part", named("a/src//test", "b/src//test")),
            ("a name in git's own directory", named("a/.GIT/config", "b/.GIT/config")),
            ("one that leads out beside the target", format!("{}{}", hunks(HUNK), named("a/../x", "b/../x"))),
            ("no file twice", named("/dev/null", "/dev/null")),
            ("the target twice", hunks(HUNK).repeat(2)),
            ("the target, and one renamed onto it", {
                let renamed = format!("diff --git a/B b/{TARGET}\nrename from B\nrename to {TARGET}\n");
                format!("{}{renamed}", hunks(HUNK))
            }),
            ("a merge", format!("diff --cc {TARGET}\nindex 1,2..3\n@@@ -1 -1 +1 @@@\n--one\n++1\n")),
            ("a fence after it", hunks("@@ -2 +2 @@\n-two\n+2\n```\n")),
            ("words after it", hunks("@@ -2 +2 @@\n-two\n+2\nThat is all.\n")),
            ("hunks of no file", HUNK.to_owned()),
            ("a byte order mark that hides the names", format!("\u{feff}{}", hunks(HUNK))),
            ("no line feeds", hunks(HUNK).replace('\n', "\r")),
            ("a diff of another form", format!("*** a/{TARGET}\n--- b/{TARGET}\n***************\n*** 2 ****\n! two\n")),
            ("words", "I have added the tests.\n".to_owned()),
            ("a file's text", "class ATest {}\n".to_owned()),
            ("NULs", "\0".repeat(1000)),
        ],
        HarnessReason::MalformedPatch,
    );
    check(
        vec![
            ("two bytes a character", wide(&hunks(HUNK))),
            ("no UTF-8 in a hunk's header", [hunks("@@ -2\u{0} ").as_bytes(), b"\xff+2 @@\n-two\n+2\n"].concat()),
            ("no UTF-8 at all", b"\xff\xfe\xfd\n".repeat(10)),
        ],
        HarnessReason::MalformedPatch,
    );
}

#[test]
fn patches_that_leave_no_new_test_are_empty() {
    check(
        vec![
            ("nothing", String::new()),
            ("blank lines", " \n\t\n\r\n".to_owned()),
            ("only another file", named("a/pom.xml", "b/pom.xml")),
            ("a name of other letters", named("a/src/test/java/aTEST.java", "b/src/test/java/aTEST.java")),
            ("backslashes for slashes", {
                let name = TARGET.replace('/', "\\");
                named(&format!("a/{name}"), &format!("b/{name}"))
            }),
            ("a name that goes on", named(&format!("a/{TARGET}.txt"), &format!("b/{TARGET}.txt"))),
            ("a name with a blank at its end", named(&format!("a/{TARGET} "), &format!("b/{TARGET} "))),
            ("a name that ends early", named("a/src/test/java", "b/src/test/java")),
            (
                "another name in other bytes",
                named("a/src/test/java/A\u{422}est.java", "b/src/test/java/A\u{422}est.java"),
            ),
            ("only its mode", git("old mode 100644\nnew mode 100755\n")),
            ("only an index line", git("index 1..2 100644\n")),
            ("removed", git("deleted file mode 100644\nindex 1..0\n")),
            ("removed by a diff without headers", hunks("@@ -1,4 +0,0 @@\n-one\n-two\n-three\n-four\n")),
            ("removed in favour of nothing", format!("--- a/{TARGET}\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n")),
            (
                "renamed away",
                format!("diff --git a/{TARGET} b/Other.java\nrename from {TARGET}\nrename to Other.java\n"),
            ),
            ("copied away", format!("diff --git a/{TARGET} b/Other.java\ncopy from {TARGET}\ncopy to Other.java\n")),
            ("changed into itself", hunks("@@ -2 +2 @@\n-two\n+two\n")),
            ("a hunk of no lines", hunks("@@ -1,0 +1,0 @@\n")),
            ("blank lines in place of it", hunks("@@ -1,4 +1 @@\n-one\n-two\n-three\n-four\n+ \n")),
        ],
        HarnessReason::Empty,
    );
}

#[test]
fn patches_of_another_file_are_of_a_wrong_base() {
    let made = format!("new file mode 100644\n--- /dev/null\n+++ b/{TARGET}\n@@ -0,0 +1 @@\n+x\n");
    check(
        vec![
            ("made where it is", git(&made)),
            ("made where it is, without git's headers", format!("--- /dev/null\n+++ b/{TARGET}\n@@ -0,0 +1 @@\n+x\n")),
            ("another line", hunks("@@ -2 +2 @@\n-zwei\n+2\n")),
            ("a line elsewhere", hunks("@@ -3 +3 @@\n-two\n+2\n")),
            ("a line beyond its end", hunks("@@ -999999999 +2 @@\n-two\n+2\n")),
            ("a place beyond its end", hunks("@@ -999999999,0 +2 @@\n+2\n")),
            ("other blanks", hunks("@@ -2 +2 @@\n-two \n+2\n")),
            ("other letters", hunks("@@ -2 +2 @@\n-Two\n+2\n")),
            ("more lines than it has", hunks("@@ -4,2 +4 @@\n-four\n-five\n+4\n")),
            ("no line feed at its end", hunks("@@ -4 +4 @@\n-four\n\\ No newline at end of file\n+4\n")),
            ("a line without an end amid others", hunks("@@ -2 +2 @@\n-two\n+2\n\\ No newline at end of file\n")),
            ("line ends of both kinds", hunks("@@ -2,2 +2,2 @@\n-two\r\n+2\n three\n")),
            ("moved from nowhere", moved("rename", "Z")),
            ("moved from elsewhere", format!("{}--- a/B\n+++ b/{TARGET}\n{HUNK}", moved("rename", "B"))),
            // Git refuses these as well: "already exists in working directory".
            ("another file renamed onto it", moved("rename", "B")),
            ("another file copied onto it", moved("copy", "B")),
            ("another file renamed onto it and changed", moved_and_changed("rename")),
            ("another file copied onto it and changed", moved_and_changed("copy")),
            ("renamed onto itself", moved("rename", TARGET)),
            ("copied onto itself", moved("copy", TARGET)),
        ],
        HarnessReason::WrongBase,
    );
}

/// Where an agent starts without the target file nothing can be in its way, and there is none that could be moved.
#[test]
fn only_what_is_there_is_moved_to_an_empty_place() {
    for how in ["rename", "copy"] {
        for (patch, made) in [(moved(how, "B"), "b\n"), (moved_and_changed(how), "c\n")] {
            assert_eq!(run_from(patch.as_bytes(), None).content.as_deref(), Ok(made.as_bytes()), "{patch}");
        }
        let misfit = format!("{}--- a/B\n+++ b/{TARGET}\n{HUNK}", moved(how, "B"));
        for patch in [moved(how, "Z"), moved(how, TARGET), misfit] {
            let fault = run_from(patch.as_bytes(), None).content.unwrap_err();
            assert_eq!(fault.reason, HarnessReason::WrongBase, "{patch}: {}", fault.detail);
        }
    }
}

#[test]
fn what_a_patch_makes_must_be_a_text_of_some_size() {
    let long = "+".to_owned() + &"x".repeat(1 << 20) + "\n";
    check(vec![("5 MiB", hunks(&format!("@@ -0,0 +1,5 @@\n{}", long.repeat(5))))], HarnessReason::Size);
    check(
        vec![
            ("NUL", hunks("@@ -2 +2 @@\n-two\n+\0\n").into_bytes()),
            ("no UTF-8", [hunks("@@ -2 +2 @@\n-two\n+").as_bytes(), b"\xff\n"].concat()),
            ("half a pair", [hunks("@@ -2 +2 @@\n-two\n+").as_bytes(), b"\xed\xa0\x80\n"].concat()),
        ],
        HarnessReason::Encoding,
    );
}

/// The list of dropped files is for people: it is short, and nothing in it steers a terminal.
#[test]
fn what_is_dropped_is_listed_within_bounds() {
    let long = "d/".repeat(5000) + "x";
    let others = [
        named("\"a/x\\033[2J\\n\"", "\"b/x\\033[2J\\n\""),
        named(&format!("a/{long}"), &format!("b/{long}")),
        format!("diff --git a/{TARGET} b/{TARGET}\n{}", named("a/pom.xml", "b/pom.xml")),
        "diff --git a/Z b/Z\nnew file mode 120000\n--- /dev/null\n+++ b/Z\n@@ -0,0 +1 @@\n+/etc/passwd\n".to_owned(),
    ];
    let extraction = run((others.concat() + &hunks(HUNK)).as_bytes());
    assert_eq!(extraction.content.unwrap(), b"one\n2\nthree\nfour\n");
    let paths: Vec<&str> = extraction.dropped.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(paths, ["Z", &long[..MOST_SHOWN], "pom.xml", "x\u{fffd}[2J\u{fffd}"]);
    assert_eq!(extraction.dropped.iter().map(|one| one.lying_header).filter(|lying| *lying).count(), 1);
    let many: String = (0..MOST_DROPPED + 5).map(|file| named(&format!("a/{file}"), &format!("b/{file}"))).collect();
    let extraction = run((many + &hunks(HUNK)).as_bytes());
    assert!(extraction.content.is_ok());
    assert_eq!(extraction.dropped.len(), MOST_DROPPED);
}
