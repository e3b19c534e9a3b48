//! What models hand in: diffs, and files of predictions.

use std::collections::BTreeSet;

use testevo_sandbox::outcome::HarnessReason;
use testevo_sandbox::submission::extraction::{StartingTree, extract};
use testevo_sandbox::submission::patch::{Change, LineKind, parse};
use testevo_sandbox::submission::predictions::{Selection, Several, read};
use testevo_sandbox::submission::{Content, GOLD};
use testevo_sandbox::task::{Task, Track};

use crate::Target;
use crate::scratch::{done, file};

/// Diffs, and the target file's new bytes.
pub(super) const PATCH: Target = Target {
    name: "patch",
    run: patch,
    seeds: patches,
    words: &[
        b"diff --git a/src/test/java/ATest.java b/src/test/java/ATest.java\n",
        b"--- a/src/test/java/ATest.java\n+++ b/src/test/java/ATest.java\n",
        b"@@ -2 +2 @@\n-two\n+2\n",
        b"@@ -0,0 +1 @@\n+x\n",
        b"rename from ",
        b"copy to ",
        b"index 0000000..1111111 100644\n",
        b"new file mode 100644\n",
        b"deleted file mode 100644\n",
        b"GIT binary patch\n",
        b"\\ No newline at end of file\n",
        b"/dev/null",
        b"-- \n",
        b"\"a\\303\\251\"",
        b"999999999",
    ],
    runs: 3000,
    most_bytes: 64 << 10,
    memory: 60,
};

/// Files of predictions, as lines and as one value.
pub(super) const PREDICTIONS: Target = Target {
    name: "predictions",
    run: predictions,
    seeds: prediction_files,
    words: &[
        b"{\"instance_id\":\"t1\",\"model_name_or_path\":\"m\",\"model_patch\":\"\"}\n",
        b"\"instance_id\":",
        b"\"task_id\":\"t2\"",
        b"\"model_file\":",
        b"\"cost_usd\":0.5",
        b"\"tokens\":7",
        b"\\ud800",
        b"\\u0000",
    ],
    runs: 2000,
    most_bytes: 64 << 10,
    memory: 120,
};

const TARGET: &str = "src/test/java/ATest.java";
const START: &[u8] = b"one\ntwo\nthree\nfour\n";
const OTHER: &[u8] = b"b\n";

fn patch(input: &[u8]) {
    let target = done(TARGET.parse());
    let other = |path: &[u8]| {
        assert_ne!(path, TARGET.as_bytes(), "the target is never asked for");
        (path == b"B").then(|| OTHER.to_vec())
    };
    for start in [Some(START), None] {
        let tree = StartingTree { target: &target, start, other: &other };
        let extraction = extract(&Content::Patch(input.to_vec()), &tree);
        match &extraction.content {
            Ok(content) => assert!(content.len() <= START.len() + OTHER.len() + 2 * input.len() && !content.is_empty()),
            Err(fault) => assert!(fault.detail.chars().count() <= 500, "{}", fault.detail),
        }
        for dropped in &extraction.dropped {
            assert!(!dropped.path.contains(char::is_control) && dropped.path.chars().count() <= 400);
        }
        assert_eq!(extract(&Content::Patch(input.to_vec()), &tree), extraction);
    }
    let files = match parse(input) {
        Ok(files) => files,
        Err(error) => return assert!(error.line <= input.len() + 1),
    };
    for one in files {
        for name in one.old.iter().chain(&one.new) {
            assert!(name.split(|byte| *byte == b'/').all(|part| !matches!(part, b"" | b"." | b"..")));
        }
        let Change::Hunks(hunks) = one.change else { continue };
        for hunk in hunks {
            let old = hunk.lines().filter(|line| line.kind != LineKind::Added).count();
            assert_eq!(old, hunk.old_lines);
        }
    }
    // Every file can be had by the patch that puts it in the place of the starting one.
    let expected =
        extract(&Content::File(input.to_vec()), &StartingTree { target: &target, start: Some(START), other: &other });
    let whole = replacing(START, input);
    let found = extract(&Content::Patch(whole), &StartingTree { target: &target, start: Some(START), other: &other });
    match expected.content {
        Ok(content) if !found.line_ends_adapted => assert_eq!(found.content, Ok(content)),
        Ok(_) => {}
        // A fenced file, or a diff in its place, is told by its text. A patch that makes such a file is a patch.
        Err(fault) if fault.reason == HarnessReason::MalformedPatch => {}
        Err(_) => assert!(found.content.is_err()),
    }
}

/// Returns a patch that takes all lines of one text away and adds those of another.
fn replacing(old: &[u8], new: &[u8]) -> Vec<u8> {
    let count = |text: &[u8]| text.split_inclusive(|byte| *byte == b'\n').count();
    let mut patch = format!("--- a/{TARGET}\n+++ b/{TARGET}\n@@ -1,{} ", count(old)).into_bytes();
    patch.extend(format!("+{},{} @@\n", usize::from(!new.is_empty()), count(new)).into_bytes());
    for (sign, text) in [(b'-', old), (b'+', new)] {
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            patch.push(sign);
            patch.extend(line);
            if !line.ends_with(b"\n") {
                patch.extend(b"\n\\ No newline at end of file\n");
            }
        }
    }
    patch
}

fn patches() -> Vec<Vec<u8>> {
    let git = |rest: &str| format!("diff --git a/{TARGET} b/{TARGET}\n{rest}").into_bytes();
    let hunk = "@@ -1,3 +1,3 @@ class A\n one\n-two\n+2\n three\n";
    vec![
        replacing(START, b"x\ny"),
        git(&format!("index 1234567..89abcde 100644\n--- a/{TARGET}\n+++ b/{TARGET}\n{hunk}")),
        git(&format!("deleted file mode 100644\n--- a/{TARGET}\n+++ /dev/null\n@@ -1,4 +0,0 @@\n-one\n-two\n-three\n-four\n")),
        git(&format!("new file mode 100644\n--- /dev/null\n+++ b/{TARGET}\n@@ -0,0 +1 @@\n+new\n")),
        format!("diff --git a/B b/{TARGET}\nsimilarity index 50%\nrename from B\nrename to {TARGET}\n--- a/B\n+++ b/{TARGET}\n@@ -1 +1 @@\n-b\n+c\n").into(),
        git("GIT binary patch\nliteral 1\nIcmZPo00001\n\n"),
        format!("From 1 Mon\nSubject: x\n---\n{hunk}-- \n2.40\n").into(),
        format!("--- \"a/\\303\\251\"\n+++ \"b/\\303\\251\"\n{hunk}--- a/{TARGET}\t2020\r\n+++ b/{TARGET}\r\n{hunk}").into(),
        format!("--- a/{TARGET}\n+++ b/{TARGET}\n@@ -1 +1 @@\n-one\n+1\n@@ -4 +4 @@\n-four\n+4\n\\ No newline at end of file\n").into(),
    ]
}

pub(super) fn task(id: &str) -> Task {
    Task {
        id: done(id.parse()),
        repository: done("o/n".parse()),
        track: Track::TestGeneration,
        rev1: done("0".repeat(40).parse()),
        rev2: done("1".repeat(40).parse()),
        rev1_date: "2024-01-01".to_owned(),
        rev2_date: "2024-01-02".to_owned(),
        test_file: done(TARGET.parse()),
        test_methods: vec![done("ATest#m".parse())],
        focal_methods: Vec::new(),
    }
}

fn predictions(input: &[u8]) {
    let known = [task("t1"), task("t2"), task("t3")];
    let selection = Selection { known: &known, selected: &known[..2] };
    let sampled = read(&file("samples.jsonl", input), selection, Several::Samples);
    let read = |name, bytes: &[u8]| read(&file(name, bytes), selection, Several::Repetitions);
    match read("predictions.jsonl", input) {
        Ok(found) => {
            let ids: BTreeSet<_> = found.models.values().flat_map(|tasks| tasks.keys()).collect();
            assert!(ids.into_iter().all(|id| selection.selected.iter().any(|task| task.id == *id)));
            assert!(found.models.keys().all(|model| !model.contains(char::is_control) && model != GOLD));
            assert_eq!(found.models.keys().collect::<Vec<_>>(), found.missing.keys().collect::<Vec<_>>());
        }
        Err(error) => assert!(error.to_string().chars().count() <= 2000, "{error}"),
    }
    if let Ok(found) = sampled {
        assert!(found.samples.keys().all(|name| found.models.contains_key(name)));
        assert!(found.samples.values().all(|model| !found.models.contains_key(model)));
        assert_eq!(found.repeated, 0);
    }
    // Any text comes through as it is, in each of the forms.
    let text = String::from_utf8_lossy(input).into_owned();
    let one = serde_json::json!({ "instance_id": "t1", "model_name_or_path": "m", "model_patch": text });
    let mut line = one.to_string();
    line.push('\n');
    let forms = [line, format!("[{one}]"), serde_json::json!({ "t1": one }).to_string()];
    for form in forms {
        let found = done(read("predictions-2.json", form.as_bytes()));
        let content = &found.models["m"][&known[0].id].content;
        match text.trim_ascii().is_empty() {
            true => assert!(content.bytes().trim_ascii().is_empty()),
            false => assert_eq!(content.bytes(), text.as_bytes()),
        }
    }
}

fn prediction_files() -> Vec<Vec<u8>> {
    let one = |id: &str| {
        format!(
            "{{\"instance_id\":\"{id}\",\"model_name_or_path\":\"m\",\"model_patch\":\"--- a/x\\n+++ b/x\\n\",\"cost_usd\":0.25,\"tokens\":12}}"
        )
    };
    vec![
        format!("{}\n{}\n", one("t1"), one("t2")).into(),
        format!("[{},{}]", one("t1"), one("t3")).into(),
        format!("{{\"t1\":{},\"t2\":{{\"model_name_or_path\":\"m\",\"model_file\":\"class A {{}}\"}}}}", one("t1"))
            .into(),
        b"{\"task_id\":\"t1\",\"model_name_or_path\":\"m\",\"model_file\":null,\"other\":[[[{}]]]}\n".to_vec(),
        format!("\u{feff}{}\n", one("unknown")).into(),
        [b"[".repeat(3000), b"]".repeat(3000)].concat(),
    ]
}
