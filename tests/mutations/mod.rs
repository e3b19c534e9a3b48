//! The scorer's own mutation test: each check that stands between a hostile submission and a better verdict is removed in turn, and
//! at least one case of docs/corpus.md must come to something else. A check that nothing misses is no check, or has no case.
//!
//! `cargo test --test main -- --ignored --nocapture removed_check` builds a copy of this tree once, in which every check asks a
//! variable whether it is to be left out, and tries the cases of each check without it. `MUTATIONS=canary,null` chooses.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The variable that names the check which the copy leaves out.
const WITHOUT: &str = "TESTEVO_WITHOUT";

/// Stands in a replacement for whether its check is left out.
const IS_LEFT_OUT: &str = "@left_out@";

/// A check, how to leave it out, and who must notice.
struct Mutation {
    check: &'static str,
    file: &'static str,
    /// Stands in the file once.
    anchor: &'static str,
    replacement: &'static str,
    cases: &'static [&'static str],
    /// Whether mutants are needed to notice.
    mutation: bool,
}

const fn mutation(
    check: &'static str,
    file: &'static str,
    [anchor, replacement]: [&'static str; 2],
    cases: &'static [&'static str],
) -> Mutation {
    Mutation { check, file, anchor, replacement, cases, mutation: false }
}

const INTEGRITY: &str = "src/report/score/integrity.rs";
const REASONS: &str = "src/metrics/integrity.rs";
const CATEGORY: &str = "src/metrics/category.rs";
const LAUNCH: &str = "src/outcome/launch.rs";
const EXTRACTION: &str = "src/submission/extraction.rs";

const MUTATIONS: [Mutation; 37] = [
    mutation(
        "canary",
        INTEGRITY,
        [
            "self.under(Control::Canary) == Some(Outcome::Pass)),",
            "!@left_out@ && self.under(Control::Canary) == Some(Outcome::Pass)),",
        ],
        &["swallows"],
    ),
    mutation(
        "canary-is-an-assertion",
        "src/workspace/class_file/edit/bodies.rs",
        [
            "self.throwing(ASSERTION_ERROR, Some(message), added)?",
            "self.throwing(if @left_out@ { \"java/lang/Error\" } else { ASSERTION_ERROR }, Some(message), added)?",
        ],
        &["swallows-assertions"],
    ),
    mutation(
        "replaces",
        INTEGRITY,
        ["|kind| kind == FindingKind::Replaces", "|kind| !@left_out@ && kind == FindingKind::Replaces"],
        &["shadows"],
    ),
    mutation(
        "null",
        INTEGRITY,
        [
            "self.under(Control::Null).is_some_and(is_failure)",
            "!@left_out@ && self.under(Control::Null).is_some_and(is_failure)",
        ],
        &["reads-bytes"],
    ),
    mutation(
        "old-bodies",
        INTEGRITY,
        [
            "self.under(Control::OldBodies) == Some(Outcome::Pass)",
            "!@left_out@ && self.under(Control::OldBodies) == Some(Outcome::Pass)",
        ],
        &["junit4-reflects-on-new-member"],
    ),
    mutation(
        "old-bodies-of-failing-tests",
        INTEGRITY,
        ["|reason| fails || *reason", "|reason| @left_out@ || fails || *reason"],
        &["reads-place"],
    ),
    mutation(
        "null-changes-bytes",
        "src/execution/rebuilding.rs",
        [
            "Ok(content) => Ok((path.clone(), content)),",
            "Ok(content) => Ok((path.clone(), if @left_out@ { bytes.clone() } else { content })),",
        ],
        &["class-hash"],
    ),
    mutation(
        "null-changes-numbers",
        "src/workspace/class_file/edit.rs",
        [
            "|one| numbers.other(one, &mut added)",
            "|one| if @left_out@ { Ok(None) } else { numbers.other(one, &mut added) }",
        ],
        &["looks-for-number"],
    ),
    mutation(
        "shadows",
        INTEGRITY,
        ["submission| !submission.shadows.is_empty()", "submission| !@left_out@ && !submission.shadows.is_empty()"],
        &["shadows"],
    ),
    mutation(
        "forged-events",
        INTEGRITY,
        ["one| one.measured.forged_events > 0", "one| !@left_out@ && one.measured.forged_events > 0"],
        &["forges"],
    ),
    mutation(
        "forged-events-on-old-code",
        INTEGRITY,
        [
            "(Reason::ForgedEvents, self.launches()",
            "(Reason::ForgedEvents, self.launches().filter(|one| !@left_out@ || one.code == Side::New)",
        ],
        &["forges-failure-on-old"],
    ),
    mutation(
        "signatures",
        "src/outcome/launch/seal.rs",
        [
            "let mut next = self;",
            "let mut next = self;\n            if @left_out@ && signature.first() != Some(&b' ') {\n                own.push(line);\n                continue;\n            }",
        ],
        &["forges", "forges-failure-on-old"],
    ),
    mutation(
        "no-report",
        INTEGRITY,
        [
            "one.code == Side::New && one.measured.unreported",
            "!@left_out@ && one.code == Side::New && one.measured.unreported",
        ],
        &["removes-report"],
    ),
    Mutation {
        mutation: true,
        ..mutation(
            "body-tests-nothing",
            INTEGRITY,
            [
                "(Reason::BodyTestsNothing, self.body_tests_nothing())",
                "(Reason::BodyTestsNothing, !@left_out@ && self.body_tests_nothing())",
            ],
            &["busy-setup"],
        )
    },
    Mutation {
        mutation: true,
        ..mutation(
            "overloads-of-tests",
            "src/execution/control/hollow.rs",
            ["if tests.is_empty() { all }", "if @left_out@ || tests.is_empty() { all }"],
            &["helper-of-its-name"],
        )
    },
    Mutation {
        mutation: true,
        ..mutation(
            "forms-of-bodies",
            "src/execution/control.rs",
            [
                "self.forms(method).await?.into_iter()",
                "self.forms(method).await?.into_iter().take(if @left_out@ { 1 } else { 9 })",
            ],
            &["sets-flag"],
        )
    },
    mutation(
        "no-focal-coverage",
        INTEGRITY,
        ["|record| self.covers_nothing(record)", "|record| !@left_out@ && self.covers_nothing(record)"],
        &["empty"],
    ),
    mutation(
        "mentions",
        INTEGRITY,
        ["|kind| reason_of(kind) == Reason::Mentions", "|kind| !@left_out@ && reason_of(kind) == Reason::Mentions"],
        &["plants-coverage"],
    ),
    mutation(
        "swallows",
        INTEGRITY,
        ["|kind| reason_of(kind) == Reason::Swallows", "|kind| !@left_out@ && reason_of(kind) == Reason::Swallows"],
        &["intercepts"],
    ),
    mutation(
        "spoils-coverage",
        REASONS,
        [
            "|reason| reason.is_proof() || matches!(reason, Reason::Replaces | Reason::SurvivesCanary)",
            "|reason| !@left_out@ && (reason.is_proof() || *reason == Reason::SurvivesCanary)",
        ],
        &["fills-probes-by-parts"],
    ),
    Mutation {
        mutation: true,
        ..mutation(
            "spoils-kills",
            REASONS,
            [
                "self.spoils_coverage() || self.reasons.contains(&Reason::LooksAtBytes)",
                "!@left_out@ && (self.spoils_coverage() || self.reasons.contains(&Reason::LooksAtBytes))",
            ],
            &["reads-bytes"],
        )
    },
    Mutation {
        mutation: true,
        ..mutation(
            "unmutated",
            "src/report/score/scored.rs",
            ["is_some_and(|on| on != Outcome::Pass)", "is_some_and(|on| !@left_out@ && on != Outcome::Pass)"],
            &["junit4-non-ascii"],
        )
    },
    mutation(
        "strict-needs-integrity",
        CATEGORY,
        ["&& integrity < Integrity::Suspect", "&& (@left_out@ || integrity < Integrity::Suspect)"],
        &["expects-anything"],
    ),
    mutation(
        "attribution",
        CATEGORY,
        ["attributed != Some(false)", "(@left_out@ || attributed != Some(false))"],
        &["junit4-dead-symbol"],
    ),
    mutation(
        "inconclusive",
        "src/outcome/mod.rs",
        [
            "Self::ExecFail(reason) => reason.is_the_tests_own(),",
            "Self::ExecFail(reason) => @left_out@ || reason.is_the_tests_own(),",
        ],
        &["exits-on-old"],
    ),
    mutation(
        "redundant",
        CATEGORY,
        [
            "Track::TestGeneration => match old? {",
            "Track::TestGeneration if @left_out@ => Some(Category::Success),\n            Track::TestGeneration => match old? {",
        ],
        &["empty-generation"],
    ),
    mutation(
        "no-leaf",
        LAUNCH,
        ["if finished.leaves.started == 0 {", "if !@left_out@ && finished.leaves.started == 0 {"],
        &["no-leaf"],
    ),
    mutation(
        "aborted",
        LAUNCH,
        ["if finished.leaves.aborted > 0 {", "if !@left_out@ && finished.leaves.aborted > 0 {"],
        &["skips"],
    ),
    mutation(
        "outside-of-the-tree",
        "src/submission/patch/header.rs",
        [
            "if name.split(|byte| *byte == b'/').any(outside) || name.contains(&0) {",
            "if !@left_out@ && (name.split(|byte| *byte == b'/').any(outside) || name.contains(&0)) {",
        ],
        &["outside", "git-hook"],
    ),
    mutation(
        "regular-file",
        EXTRACTION,
        [
            "file.mode.filter(|mode| !matches!(mode, 0o100_644 | 0o100_755))",
            "file.mode.filter(|mode| !@left_out@ && !matches!(mode, 0o100_644 | 0o100_755))",
        ],
        &["symlink"],
    ),
    mutation(
        "exact-hunks",
        EXTRACTION,
        [
            "if lines.get(at).and_then(|found| found.strip_prefix(text)) != Some(end) {",
            "if !@left_out@ && lines.get(at).and_then(|found| found.strip_prefix(text)) != Some(end) {",
        ],
        &["wrong-base"],
    ),
    mutation("text", EXTRACTION, ["if content.contains(&0) {", "if !@left_out@ && content.contains(&0) {"], &["nul"]),
    mutation(
        "dropped-is-logged",
        EXTRACTION,
        [
            "if !made && extraction.dropped.len() < MOST_DROPPED {",
            "if !@left_out@ && !made && extraction.dropped.len() < MOST_DROPPED {",
        ],
        &["lying-header"],
    ),
    mutation(
        "interceptors",
        "src/submission/mentions.rs",
        ["if intercepts(&class) {", "if !@left_out@ && intercepts(&class) {"],
        &["intercepts-generation"],
    ),
    mutation(
        "proxies",
        "src/submission/mentions.rs",
        ["in proxied(&class) {", "in proxied(&class).filter(|_| !@left_out@) {"],
        &["intercepts-by-proxy"],
    ),
    mutation(
        "overrides",
        "src/submission/mentions.rs",
        ["overrides(superclass(name), &one.around)", "!@left_out@ && overrides(superclass(name), &one.around)"],
        &["junit4-forgets"],
    ),
    mutation(
        "broad-expectations",
        "src/submission/mentions.rs",
        ["if expects && BROAD.contains(&&*one.class) {", "if !@left_out@ && expects && BROAD.contains(&&*one.class) {"],
        &["junit4-expects-anything"],
    ),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// An anchor that is gone, or stands there twice, means that somebody changed a check: the table is to be changed with it.
#[test]
fn every_anchor_stands_in_its_file_once() {
    for mutation in &MUTATIONS {
        let text = fs_err::read_to_string(root().join(mutation.file)).unwrap();
        assert_eq!(text.matches(mutation.anchor).count(), 1, "{}: {}", mutation.check, mutation.anchor);
        assert_eq!(mutation.replacement.matches(IS_LEFT_OUT).count(), 1, "{}", mutation.check);
    }
}

#[test]
#[ignore = "builds a copy of the program and takes half an hour"]
#[expect(clippy::print_stderr, reason = "what misses each check is for people")]
fn a_removed_check_is_missed_by_a_case() {
    let chosen = std::env::var("MUTATIONS").unwrap_or_default();
    let chosen: Vec<&str> = chosen.split(',').filter(|name| !name.is_empty()).collect();
    let unknown = chosen.iter().find(|name| !MUTATIONS.iter().any(|mutation| mutation.check == **name));
    assert_eq!(unknown, None, "no such check");
    let wanted = |mutation: &&Mutation| chosen.is_empty() || chosen.contains(&mutation.check);
    let mutations: Vec<&Mutation> = MUTATIONS.iter().filter(wanted).collect();
    let program = built();
    // What is wrong with every check in place is nobody's removal.
    for mutants in [false, true] {
        let cases =
            mutations.iter().filter(|mutation| mutation.mutation == mutants).flat_map(|mutation| mutation.cases);
        let mut cases: Vec<&str> = cases.copied().collect();
        cases.sort_unstable();
        cases.dedup();
        if !cases.is_empty() {
            let output = selftest(&program, "", &cases, mutants);
            assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        }
    }
    let mut unmissed = Vec::new();
    for mutation in mutations {
        let output = selftest(&program, mutation.check, mutation.cases, mutation.mutation);
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1)), "{}: {}", mutation.check, said(&output));
        eprintln!("without {}: {}", mutation.check, if code == Some(1) { "missed" } else { "NOT MISSED" });
        for line in String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.contains(" instead of ")) {
            eprintln!("    {line}");
        }
        if code == Some(0) {
            unmissed.push(mutation.check);
        }
    }
    assert!(unmissed.is_empty(), "no case misses {unmissed:?}");
}

/// Builds the copy, in which every check asks whether it is left out.
fn built() -> PathBuf {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutations/tree");
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output().unwrap();
    assert!(listed.status.success(), "{}", said(&listed));
    let listed = String::from_utf8(listed.stdout).unwrap();
    for path in listed.split('\0').filter(|path| !path.is_empty() && root().join(path).is_file()) {
        let text = mutated(path, fs_err::read(root().join(path)).unwrap());
        let target = copy.join(path);
        // What is the same keeps its time, so that a second build is short.
        if fs_err::read(&target).is_ok_and(|found| found == text) {
            continue;
        }
        fs_err::create_dir_all(target.parent().unwrap()).unwrap();
        fs_err::write(target, text).unwrap();
    }
    let target = copy.with_file_name("target");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--bin", "testevo-sandbox"]).current_dir(&copy).env("CARGO_TARGET_DIR", &target);
    // The copy may lie below this tree: then cargo reads the settings of both, and would take these flags twice.
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags().join("\u{1f}"));
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    target.join("x86_64-unknown-linux-gnu/debug/testevo-sandbox")
}

/// Returns the flags that programs are built with.
fn flags() -> Vec<String> {
    let text = fs_err::read_to_string(root().join(".cargo/config.toml")).unwrap();
    let settings: toml::Table = text.parse().unwrap();
    let flags = settings["target"]["x86_64-unknown-linux-gnu"]["rustflags"].as_array().unwrap();
    flags.iter().map(|flag| flag.as_str().unwrap().to_owned()).collect()
}

/// Returns a file of the copy: checks of one anchor ask one after the other.
fn mutated(path: &str, bytes: Vec<u8>) -> Vec<u8> {
    let of_file: Vec<&Mutation> = MUTATIONS.iter().filter(|mutation| mutation.file == path).collect();
    if of_file.is_empty() && path != "src/lib.rs" {
        return bytes;
    }
    let mut text = String::from_utf8(bytes).unwrap();
    if path == "src/lib.rs" {
        text.push_str(&format!(
            "\n/// Tells whether a check is left out.\npub fn left_out(check: &str) -> bool {{\n    std::env::var(\"{WITHOUT}\").is_ok_and(|name| name == check)\n}}\n"
        ));
    }
    for mutation in of_file {
        assert_eq!(text.matches(mutation.anchor).count(), 1, "{}: {}", mutation.check, mutation.anchor);
        let asks = format!("crate::left_out(\"{}\")", mutation.check);
        text = text.replace(mutation.anchor, &mutation.replacement.replace(IS_LEFT_OUT, &asks));
    }
    text.into_bytes()
}

fn selftest(program: &Path, without: &str, cases: &[&str], mutants: bool) -> Output {
    let data_dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("miniatures/data");
    fs_err::create_dir_all(&data_dir).unwrap();
    let mut command = Command::new(program);
    command.arg("selftest").args(cases).arg("--data-dir").arg(data_dir).env(WITHOUT, without);
    if !mutants {
        command.arg("--no-mutation");
    }
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}
