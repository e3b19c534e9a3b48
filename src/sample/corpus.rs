//! Hostile submissions for the sample repositories, each with what must come of it. A case is a test file (`.java`) or a patch
//! (`.patch`), below lines that say so. A test file keeps these lines; a patch is what follows them.
//!
//! ```text
//! // about: no body
//! // proves: R19, hole 6
//! // task: rounding
//! // expect: Success suspect survives_canary no_focal_coverage
//! ```
//!
//! | line | says |
//! |---|---|
//! | `about` | what it does, for people |
//! | `proves` | the numbers of docs/corpus.md's attacks that it stands for |
//! | `task` | the miniature that it is handed in for |
//! | `methods` | the target methods that it is about, if not all |
//! | `expect` | category, `flaky` where chance decides, integrity and its reasons, gravest first; alternatives between ` \| ` |
//! | `without mutants` | the same where no emptied body is run on mutants, if that differs |
//! | `by maven` | the same on the reference path, which has no old bodies, if that differs |
//! | `new`, `old` | outcome of the first launch on new and on old code, if it matters |
//! | `strict` | `yes` or `no`: strict success |
//! | `dropped` | what of a patch is dropped and logged |
//! | `clean coverage`, `clean mutation` | these values, or `none` |
//! | `seconds` | processor time of its launches; without it, that of other submissions |
//! | `repeats` | launches of each method, if more than one |
//! | `pad` | so many bytes of this kind (hexadecimal) follow the text |

use std::num::NonZeroU32;

use super::{SampleError, SampleRepository};

/// How something is handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The test file's whole text.
    File,
    /// A diff.
    Patch,
}

/// What a case may say of its method beside the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// Outcome of the first launch on new code.
    New,
    /// Outcome of the first launch on old code.
    Old,
    /// Strict success.
    Strict,
    /// Dropped files of a patch.
    Dropped,
    /// Clean coverage.
    CleanCoverage,
    /// Clean mutation score.
    CleanMutation,
}

impl Fact {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::New, Self::Old, Self::Strict, Self::Dropped, Self::CleanCoverage, Self::CleanMutation];

    /// Returns its line's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Old => "old",
            Self::Strict => "strict",
            Self::Dropped => "dropped",
            Self::CleanCoverage => "clean coverage",
            Self::CleanMutation => "clean mutation",
        }
    }
}

/// A hostile submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// What it does, for people.
    pub about: &'static str,
    /// The attacks that it stands for.
    pub proves: Vec<&'static str>,
    /// The miniature that it is handed in for.
    pub task: &'static str,
    /// The target methods that it is about; empty for all.
    pub methods: Vec<&'static str>,
    /// What may come of each: category, integrity, reasons.
    pub expected: Vec<&'static str>,
    /// The same where no emptied body is run on mutants.
    pub without_mutants: Vec<&'static str>,
    /// The same on the reference path, where focal methods never get old code's bodies.
    pub by_maven: Vec<&'static str>,
    /// What else must come of it.
    pub facts: Vec<(Fact, &'static str)>,
    /// Seconds of processor time of its launches; `None` for those of other submissions.
    pub seconds: Option<NonZeroU32>,
    /// Launches of each method.
    pub repeats: NonZeroU32,
    /// How it is handed in.
    pub form: Form,
    text: &'static str,
    /// How many bytes follow the text, and which.
    pad: (usize, u8),
}

macro_rules! cases {
    ($($form:ident $name:literal $kind:literal),+ $(,)?) => {
        &[$((Form::$form, $name, include_str!(concat!("hostile/", $name, ".", $kind)))),+]
    };
}

const CASES: &[(Form, &str, &str)] = cases![
    File "honest" "java",
    Patch "honest-patch" "patch",
    File "honest-generation" "java",
    File "junit4-honest" "java",
    Patch "empty-patch" "patch",
    Patch "outside" "patch",
    Patch "git-hook" "patch",
    Patch "symlink" "patch",
    Patch "symlink-anew" "patch",
    Patch "wrong-base" "patch",
    Patch "lying-header" "patch",
    Patch "quoted-path" "patch",
    Patch "renames-pom" "patch",
    Patch "submodule" "patch",
    File "nul" "java",
    File "large" "java",
    File "exits" "java",
    File "exits-by-escape" "java",
    File "forges" "java",
    File "forges-in-initializer" "java",
    File "forges-by-shell" "java",
    File "forges-report" "java",
    File "removes-report" "java",
    File "forges-failure-on-old" "java",
    File "junit4-forges" "java",
    File "junit4-forges-in-initializer" "java",
    File "junit4-forges-by-shell" "java",
    File "disabled" "java",
    File "skips" "java",
    File "no-leaf" "java",
    File "one-of-three-fails" "java",
    File "nested-only" "java",
    File "junit4-ignored" "java",
    File "junit4-assumes" "java",
    File "empty" "java",
    File "empty-generation" "java",
    File "busy-setup" "java",
    File "sets-flag" "java",
    File "inherits-body" "java",
    File "busy-factory" "java",
    File "helper-of-its-name" "java",
    File "no-assertion" "java",
    File "calls-only" "java",
    File "junit4-empty" "java",
    File "junit4-busy-before" "java",
    File "junit4-throws-expected" "java",
    File "swallows" "java",
    File "swallows-assertions" "java",
    File "intercepts" "java",
    File "intercepts-generation" "java",
    File "intercepts-by-proxy" "java",
    File "expects-anything" "java",
    File "background" "java",
    File "prints-success" "java",
    File "junit4-expects-anything" "java",
    File "junit4-rule" "java",
    File "junit4-runner" "java",
    File "instance-factory" "java",
    File "junit4-forgets" "java",
    File "shadows" "java",
    File "junit4-shadows" "java",
    File "signature-probe" "java",
    File "reflects-on-new-class" "java",
    File "looks-for-text" "java",
    File "reads-source" "java",
    File "exits-on-old" "java",
    File "loops-on-old" "java",
    File "enabled-on-new" "java",
    File "reads-place" "java",
    File "junit4-dead-symbol" "java",
    File "junit4-own-symbol" "java",
    File "looks-for-text-by-parts" "java",
    File "junit4-reflects-on-new-member" "java",
    File "junit4-calls-new-member" "java",
    File "reads-bytes" "java",
    File "class-hash" "java",
    File "looks-for-number" "java",
    File "sniffs-mutants" "java",
    File "sniffs-agents" "java",
    File "sees-archives" "java",
    File "counts-launches" "java",
    File "reads-command-line" "java",
    File "junit4-reads-bytes" "java",
    File "fills-probes" "java",
    File "fills-probes-by-parts" "java",
    File "plants-coverage" "java",
    File "junit4-fills-probes" "java",
    File "flips-coin" "java",
    File "poisons-classes" "java",
    File "writes-beside-classes" "java",
    File "leaves-process" "java",
    File "junit4-non-ascii" "java",
    File "looks-around" "java",
    File "forks" "java",
    File "threads" "java",
    File "floods" "java",
    File "fills-disk" "java",
    File "fills-heap" "java",
    File "sleeps" "java",
    File "javac-bomb" "java",
];

impl Case {
    /// Returns the text of the submission: the case's file, followed by its padding.
    pub fn submission(&self) -> String {
        let (count, byte) = self.pad;
        let pad = char::from(byte).to_string().repeat(count);
        format!("{}{pad}", self.text)
    }

    /// Returns the id of the task that it is handed in for; `None` where none of the repositories has it.
    pub fn task_id(&self, samples: &[SampleRepository]) -> Option<String> {
        let has = |sample: &&SampleRepository| sample.miniatures.iter().any(|miniature| miniature.name == self.task);
        samples.iter().find(has).map(|sample| format!("{}__{}", sample.name.file_stem(), self.task))
    }
}

/// Returns the repositories that cases are handed in for: the demonstration's, with Jupiter, and one with JUnit 4.
///
/// # Errors
/// None that the tests would not meet first.
pub fn repositories() -> Result<[SampleRepository; 2], SampleError> {
    let junit4 = SampleRepository::parse(
        include_str!("junit4/repository.txtar"),
        &[("ledger", include_str!("junit4/1-ledger.txtar")), ("currency", include_str!("junit4/2-currency.txtar"))],
    )?;
    Ok([SampleRepository::demo()?, junit4])
}

/// Returns all cases, in the order of a table.
pub fn cases() -> Vec<Case> {
    CASES.iter().map(|(form, name, text)| case(*form, name, text)).collect()
}

fn case(form: Form, name: &'static str, text: &'static str) -> Case {
    let header = |field: &str| header_of(text).find(|(known, _)| *known == field).map(|(_, value)| value);
    let alternatives = |text: &'static str| text.split(" | ").collect::<Vec<_>>();
    let expected = alternatives(header("expect").unwrap_or_default());
    let without_mutants = header("without mutants").map_or_else(|| expected.clone(), alternatives);
    let pad = header("pad").and_then(|pad| pad.split_once(' '));
    let pad = pad.and_then(|(count, byte)| Some((count.parse().ok()?, u8::from_str_radix(byte, 16).ok()?)));
    Case {
        name,
        about: header("about").unwrap_or_default(),
        proves: header("proves").into_iter().flat_map(|all| all.split(", ")).collect(),
        task: header("task").unwrap_or_default(),
        methods: header("methods").into_iter().flat_map(str::split_whitespace).collect(),
        by_maven: header("by maven").map_or_else(|| without_mutants.clone(), alternatives),
        without_mutants,
        expected,
        facts: Fact::ALL.into_iter().filter_map(|fact| Some((fact, header(fact.name())?))).collect(),
        seconds: header("seconds").and_then(|seconds| seconds.parse().ok()),
        repeats: header("repeats").and_then(|repeats| repeats.parse().ok()).unwrap_or(NonZeroU32::MIN),
        form,
        text: match form {
            Form::File => text,
            Form::Patch => {
                let above: usize = text.split_inclusive('\n').take(header_of(text).count()).map(str::len).sum();
                &text[above..]
            }
        },
        pad: pad.unwrap_or_default(),
    }
}

/// Returns the lines above a submission, as name and value.
fn header_of(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    text.lines().map_while(|line| line.strip_prefix("// ")?.split_once(": "))
}

#[cfg(test)]
mod tests;
