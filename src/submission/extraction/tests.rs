use super::*;
use crate::submission::damage::{damaged, damages};

const TARGET: &str = "src/test/java/ATest.java";

fn run(content: &Content, start: Option<&[u8]>) -> Extraction {
    let target = TARGET.parse().unwrap();
    let other = |path: &[u8]| (path == b"src/test/java/BTest.java").then(|| b"b1\nb2\n".to_vec());
    extract(content, &StartingTree { target: &target, start, other: &other })
}

fn patch(text: &str) -> Content {
    Content::Patch(text.replace("@target@", TARGET).into_bytes())
}

fn text(extraction: &Extraction) -> &str {
    match &extraction.content {
        Ok(content) => std::str::from_utf8(content).unwrap(),
        Err(fault) => panic!("{fault:?}"),
    }
}

fn reason(extraction: &Extraction) -> HarnessReason {
    match &extraction.content {
        Ok(content) => panic!("{}", String::from_utf8_lossy(content)),
        Err(fault) => {
            assert!(!fault.detail.is_empty());
            fault.reason
        }
    }
}

const START: &[u8] = b"one\ntwo\nthree\nfour\n";

#[test]
fn hunks_are_applied_where_they_say() {
    for (hunks, result) in [
        ("@@ -2 +2 @@\n-two\n+2\n", "one\n2\nthree\nfour\n"),
        ("@@ -1,2 +1,2 @@\n-one\n+1\n two\n@@ -4 +4,2 @@\n four\n+five\n", "1\ntwo\nthree\nfour\nfive\n"),
        ("@@ -0,0 +1 @@\n+zero\n", "zero\none\ntwo\nthree\nfour\n"),
        ("@@ -4,0 +5 @@\n+five\n", "one\ntwo\nthree\nfour\nfive\n"),
        ("@@ -4 +4 @@\n-four\n+4\n\\ No newline at end of file\n", "one\ntwo\nthree\n4"),
        ("@@ -1,4 +1 @@\n one\n-two\n-three\n-four\n", "one\n"),
    ] {
        let extraction = run(&patch(&format!("--- a/@target@\n+++ b/@target@\n{hunks}")), Some(START));
        assert_eq!(text(&extraction), result, "{hunks}");
        assert!(!extraction.line_ends_adapted && extraction.dropped.is_empty());
    }
}

#[test]
fn another_base_is_no_base() {
    for hunks in [
        "@@ -2 +2 @@\n-Two\n+2\n",
        "@@ -1 +1 @@\n-two\n+2\n",
        "@@ -3 +3 @@\n-two\n+2\n",
        "@@ -9 +9 @@\n-two\n+2\n",
        "@@ -9,0 +9 @@\n+x\n",
        "@@ -4 +4 @@\n-four\n\\ No newline at end of file\n+4\n",
        "@@ -2 +2 @@\n-two\n+2\n\\ No newline at end of file\n",
        "@@ -2 +2 @@\n-two \n+2\n",
    ] {
        let extraction = run(&patch(&format!("--- a/@target@\n+++ b/@target@\n{hunks}")), Some(START));
        assert_eq!(reason(&extraction), HarnessReason::WrongBase, "{hunks}");
    }
    let made = patch(
        "diff --git a/@target@ b/@target@\nnew file mode 100644\n--- /dev/null\n+++ b/@target@\n@@ -0,0 +1 @@\n+x\n",
    );
    assert_eq!(reason(&run(&made, Some(START))), HarnessReason::WrongBase);
    assert_eq!(text(&run(&made, None)), "x\n");
    let changed = patch("--- a/@target@\n+++ b/@target@\n@@ -1 +1 @@\n-one\n+1\n");
    assert_eq!(reason(&run(&changed, None)), HarnessReason::WrongBase);
}

#[test]
fn line_ends_are_kept_and_adapted_only_as_a_whole() {
    let windows =
        START.iter().flat_map(|b| if *b == b'\n' { vec![b'\r', b'\n'] } else { vec![*b] }).collect::<Vec<_>>();
    let plain = "--- a/@target@\n+++ b/@target@\n@@ -2,2 +2,2 @@\n-two\n+2\n three\n";
    let exact = "--- a/@target@\n+++ b/@target@\n@@ -2,2 +2,2 @@\n-two\r\n+2\r\n three\r\n";
    let expected = "one\r\n2\r\nthree\r\nfour\r\n";
    for (patch_text, start, result, adapted) in [
        (plain, START, "one\n2\nthree\nfour\n", false),
        (exact, windows.as_slice(), expected, false),
        (plain, windows.as_slice(), expected, true),
        (exact, START, "one\n2\nthree\nfour\n", true),
    ] {
        let extraction = run(&patch(patch_text), Some(start));
        assert_eq!((text(&extraction), extraction.line_ends_adapted), (result, adapted), "{patch_text}");
    }
    let mixed = b"one\r\ntwo\nthree\r\nfour\n";
    assert_eq!(reason(&run(&patch(exact), Some(mixed))), HarnessReason::WrongBase);
}

#[test]
fn only_the_target_counts_and_the_rest_is_listed() {
    let extraction = run(
        &patch(
            "diff --git a/@target@ b/@target@\n--- a/pom.xml\n+++ b/pom.xml\n@@ -1 +1 @@\n-a\n+b\n\
             diff --git \"a/\\056mvn/jvm.config\" \"b/\\056mvn/jvm.config\"\nnew file mode 100644\n--- /dev/null\n+++ \"b/\\056mvn/jvm.config\"\n@@ -0,0 +1 @@\n+-Xmx1m\n\
             diff --git a/pom.xml b/src/test/java/Pom.java\nsimilarity index 100%\nrename from pom.xml\nrename to src/test/java/Pom.java\n\
             diff --git a/lib b/lib\nnew file mode 160000\n--- /dev/null\n+++ b/lib\n@@ -0,0 +1 @@\n+Subproject commit 1234\n\
             diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n\
             diff --git a/@target@ b/@target@\nold mode 100644\nnew mode 100755\n--- a/@target@\n+++ b/@target@\n@@ -2 +2 @@\n-two\n+2\n",
        ),
        Some(START),
    );
    assert_eq!(text(&extraction), "one\n2\nthree\nfour\n");
    let dropped: Vec<(&str, bool)> =
        extraction.dropped.iter().map(|one| (one.path.as_str(), one.lying_header)).collect();
    assert_eq!(
        dropped,
        [
            (".mvn/jvm.config", false),
            ("lib", false),
            ("pom.xml", true),
            ("run.sh", false),
            ("src/test/java/Pom.java", false)
        ]
    );
}

#[test]
fn what_can_not_be_a_test_file_is_named() {
    use HarnessReason as R;
    let whole = |text: &str| Content::File(text.as_bytes().to_vec());
    for (content, expected) in [
        (Content::Nothing, R::Empty),
        (Content::TooLarge { bytes: 50 << 20, digest: None }, R::Size),
        (Content::Patch(Vec::new()), R::Empty),
        (patch("\n"), R::Empty),
        (patch("I would add a test."), R::MalformedPatch),
        (patch("--- a/../evil\n+++ b/../evil\n@@ -0,0 +1 @@\n+x\n"), R::MalformedPatch),
        (patch("--- a/pom.xml\n+++ b/pom.xml\n@@ -1 +1 @@\n-a\n+b\n"), R::Empty),
        (patch("diff --git a/@target@ b/@target@\nold mode 100644\nnew mode 100755\n"), R::Empty),
        (patch("--- a/@target@\n+++ /dev/null\n@@ -1,4 +0,0 @@\n-one\n-two\n-three\n-four\n"), R::Empty),
        (patch("--- a/@target@\n+++ b/@target@\n@@ -1,4 +0,0 @@\n-one\n-two\n-three\n-four\n"), R::Empty),
        (
            patch("diff --git a/@target@ b/X.java\nsimilarity index 100%\nrename from @target@\nrename to X.java\n"),
            R::Empty,
        ),
        (
            patch("diff --git a/@target@ b/@target@\nindex 1..2\nBinary files a/@target@ and b/@target@ differ\n"),
            R::MalformedPatch,
        ),
        (
            patch(
                "diff --git a/@target@ b/@target@\ndeleted file mode 100644\nindex 1..0\ndiff --git a/@target@ b/@target@\nnew file mode 120000\n--- /dev/null\n+++ b/@target@\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n",
            ),
            R::MalformedPatch,
        ),
        (
            patch(
                "diff --git a/@target@ b/@target@\nindex 1..2 120000\n--- a/@target@\n+++ b/@target@\n@@ -2 +2 @@\n-two\n+2\n",
            ),
            R::MalformedPatch,
        ),
        (whole(std::str::from_utf8(START).unwrap()), R::Empty),
        (whole(" \n"), R::Empty),
        (whole("class A {\0}"), R::Encoding),
        (Content::File(b"class A { String s = \"\xe4\"; }".to_vec()), R::Encoding),
        (Content::File(vec![b'x'; MOST_FILE_BYTES + 1]), R::Size),
    ] {
        assert_eq!(reason(&run(&content, Some(START))), expected, "{content:?}");
    }
    let latin: &[u8] = b"class A { String s = \"\xe4\"; }";
    let changed = Content::File([latin, b"\n"].concat());
    assert!(run(&changed, Some(latin)).content.is_ok(), "a file that never was UTF-8 may stay so");
}

#[test]
fn a_file_may_be_moved_to_the_targets_place() {
    let renamed = patch(
        "diff --git a/src/test/java/BTest.java b/@target@\nsimilarity index 50%\nrename from src/test/java/BTest.java\nrename to @target@\n\
         --- a/src/test/java/BTest.java\n+++ b/@target@\n@@ -2 +2 @@\n-b2\n+x\n",
    );
    assert_eq!(text(&run(&renamed, None)), "b1\nx\n");
    let copied = patch("diff --git a/@target@ b/C.java\nsimilarity index 100%\ncopy from @target@\ncopy to C.java\n");
    let extraction = run(&copied, Some(START));
    assert_eq!((reason(&extraction), extraction.dropped.len()), (HarnessReason::Empty, 1));
}

const GOOD: &str = "diff --git \"a/\\303\\244\" \"b/\\303\\244\"\nold mode 100644\nnew mode 100755\nindex 1..2\n\
    --- \"a/\\303\\244\"\n+++ \"b/\\303\\244\"\n@@ -9 +9 @@ f\n-x\n\\ No newline at end of file\n+y\n\
    diff --git a/@target@ b/@target@\nindex 1..2 100644\n--- a/@target@\n+++ b/@target@\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2b\n three\n\
    @@ -4 +5 @@ f\n-four\n+4\n\
    diff --git a/p b/q\nsimilarity index 90%\nrename from p\nrename to q\n--- a/p\n+++ b/q\n@@ -1 +1 @@\n-a\n+b\n";

/// Returns what git makes of the target file; `None` where it refuses the patch or makes nothing of the file.
fn applied_by_git(patch: &[u8]) -> Option<Vec<u8>> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(TARGET);
    fs_err::create_dir_all(file.parent().unwrap()).unwrap();
    fs_err::write(&file, START).unwrap();
    fs_err::write(directory.path().join("patch"), patch).unwrap();
    // Other files are none of its business here, as they are none of ours.
    let output = std::process::Command::new("git")
        .args(["apply", "--whitespace=nowarn", &format!("--include={TARGET}"), "patch"])
        .current_dir(directory.path())
        .env("GIT_CEILING_DIRECTORIES", directory.path())
        .output()
        .unwrap();
    let applied = fs_err::read(&file).unwrap_or_default();
    (output.status.success() && applied != START).then_some(applied)
}

#[test]
fn git_applies_the_good_patch_as_well() {
    let good = GOOD.replace("@target@", TARGET);
    let ours = run(&Content::Patch(good.clone().into_bytes()), Some(START));
    assert_eq!(text(&ours), "one\n2\n2b\nthree\n4\n");
    assert_eq!(applied_by_git(good.as_bytes()).unwrap(), text(&ours).as_bytes());
}

fn edited() -> impl proptest::strategy::Strategy<Value = (Vec<String>, Vec<String>)> {
    let line = || "[ab]{0,2}\r?";
    let file = || proptest::collection::vec(line(), 0..12);
    (file(), file())
}

proptest::proptest! {
    /// What git makes of two files is read back as the second, whatever their line ends and last lines.
    #[test]
    fn diffs_of_git_give_the_new_file((old, new) in edited(), old_end: bool, new_end: bool, context in 0u32..4) {
        let whole = |lines: &[String], end: bool| {
            let text = lines.join("\n");
            if end && !lines.is_empty() { text + "\n" } else { text }
        };
        let (old, new) = (whole(&old, old_end), whole(&new, new_end));
        proptest::prop_assume!(old != new && !new.trim().is_empty() && !old.is_empty());
        let mut options = git2::DiffOptions::new();
        options.context_lines(context);
        let path = std::path::Path::new(TARGET);
        let mut made = git2::Patch::from_buffers(old.as_bytes(), Some(path), new.as_bytes(), Some(path), Some(&mut options)).unwrap();
        let bytes = made.to_buf().unwrap().to_vec();
        let extraction = run(&Content::Patch(bytes.clone()), Some(old.as_bytes()));
        proptest::prop_assert_eq!(
            extraction.content.as_deref(), Ok(new.as_bytes()), "{}", String::from_utf8_lossy(&bytes)
        );
        proptest::prop_assert!(!extraction.line_ends_adapted);
    }

    #[test]
    fn no_patch_makes_it_panic(bytes in "(--- a/src/test/java/ATest.java\n\\+\\+\\+ b/src/test/java/ATest.java\n)?(@@ -[0-9],[0-3] \\+[0-9],[0-3] @@\n([ +-][a-c]\n){0,4}){0,3}") {
        let _ = run(&Content::Patch(bytes.into_bytes()), Some(START));
    }

    /// Whatever becomes of a good patch, it comes to a test file or to a reason, and no file that it touches is lost. Where
    /// git applies it too, the same file comes of it.
    #[test]
    fn damaged_patches_come_to_a_file_or_a_reason(damages in damages()) {
        let bytes = damaged(GOOD.replace("@target@", TARGET).as_bytes(), &damages);
        let extraction = run(&Content::Patch(bytes.clone()), Some(START));
        let shown = || String::from_utf8_lossy(&bytes).into_owned();
        match &extraction.content {
            Ok(content) => {
                proptest::prop_assert!(content != START && !content.contains(&0), "{}", shown());
                proptest::prop_assert!(std::str::from_utf8(content).is_ok_and(|text| !text.trim().is_empty()));
                // Where a hunk has no old lines git goes by other numbers than those of the old file.
                let placed = |file: &FilePatch<'_>| match &file.change {
                    Change::Hunks(hunks) => hunks.iter().all(|hunk| hunk.old_lines > 0),
                    Change::Binary => true,
                };
                let comparable = !extraction.line_ends_adapted && patch::parse(&bytes).unwrap().iter().all(placed);
                if let Some(theirs) = comparable.then(|| applied_by_git(&bytes)).flatten() {
                    proptest::prop_assert_eq!(content, &theirs, "{}", shown());
                }
            }
            Err(fault) => proptest::prop_assert!(!fault.detail.is_empty(), "{}", shown()),
        }
        match patch::parse(&bytes) {
            Ok(files) => {
                let ours = files.iter().filter(|file| file.new.as_deref() == Some(TARGET.as_bytes())).count();
                let twice = matches!(&extraction.content, Err(fault) if fault.detail.contains("twice"));
                proptest::prop_assert!(twice || ours + extraction.dropped.len() == files.len(), "{}", shown());
            }
            Err(_) => proptest::prop_assert_eq!(reason(&extraction), HarnessReason::MalformedPatch),
        }
    }
}

#[test]
fn a_fenced_submission_is_malformed_and_says_why() {
    let diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";
    let (fence, java) = (format!("```diff\n{diff}```\n"), "```java\nclass A {}\n```\n");
    let (patch, file) = (|text: String| Content::Patch(text.into()), |text: String| Content::File(text.into()));
    for (content, detail) in [
        (
            patch(format!("Sure:\n{fence}")),
            "markdown_fence: the patch lies in a Markdown fence, which `--strip-fences` removes",
        ),
        (patch(format!("  ```diff\n{diff}  ```\n")), "markdown_fence: the patch lies in a Markdown fence"),
        (patch(format!("```bash\nmvn test\n```\n{fence}")), "markdown_fence: the patch lies in a Markdown fence"),
        (patch(format!("<patch>\n{diff}</patch>\n")), "markdown_fence: the patch lies between tags"),
        (
            patch(fence.repeat(2)),
            "markdown_fence: 2 of 2 Markdown fences or pairs of tags hold a diff, so `--strip-fences` can't choose one",
        ),
        (file(java.to_owned()), "markdown_fence: the test file lies in a Markdown fence"),
        (file(format!("Here is the file:\n{java}")), "markdown_fence: the test file lies in a Markdown fence"),
        (
            file("```\nx\n```\n".to_owned()),
            "markdown_fence: no Markdown fence or pair of tags in the test file holds a Java type",
        ),
        (
            file("```java\nclass A {\n".to_owned()),
            "markdown_fence: a Markdown fence begins in the test file and does not end",
        ),
        (
            file(format!("class ATest {{}}\n{java}")),
            "markdown_fence: a Java type stands outside of the test file's Markdown fences, so `--strip-fences` removes none",
        ),
        (
            file("```\n/*\n```\n```\n*/ class A {}\n```\n".to_owned()),
            "markdown_fence: a Markdown fence in the test file ends within a comment or text block",
        ),
        (file(diff.to_owned()), "diff_as_file: the test file is a diff"),
    ] {
        let target = "x".parse().unwrap();
        let tree = StartingTree { target: &target, start: Some(b"a\n"), other: &|_| None };
        let fault = extract(&content, &tree).content.unwrap_err();
        assert_eq!(fault.reason, HarnessReason::MalformedPatch, "{content:?}");
        assert!(fault.detail.starts_with(detail), "{}", fault.detail);
        assert_eq!(unreadable_anywhere(&content), Some(fault.detail));
    }
    assert_eq!(unreadable_anywhere(&file("class A {}\n".to_owned())), None);
}
