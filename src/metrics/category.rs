//! Derives the paper's category, and the strict view beside it, from a method's outcomes on new and old code. Source:
//! protocol §3.

use serde::{Deserialize, Serialize};

pub use super::integrity::Integrity;
use super::integrity::Reason;
use crate::outcome::{CompileReason, Outcome};
use crate::task::Track;

/// The paper's categories, of which every scored method is in exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Passes on new code; for generation it also fails or does not compile on old code.
    Success,
    /// Generation only: passes on new code, and does not fail on old code.
    Redundant,
    /// Does not pass on new code.
    ExecFail,
    /// Does not compile on new code.
    CmplFail,
    /// No test, or the edit can't be applied.
    HrnsFail,
}

impl Category {
    /// All of them, in the order of the paper's tables.
    pub const ALL: [Self; 5] = [Self::Success, Self::Redundant, Self::ExecFail, Self::CmplFail, Self::HrnsFail];

    /// Returns the paper's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "Success",
            Self::Redundant => "Redundant",
            Self::ExecFail => "ExecFail",
            Self::CmplFail => "CmplFail",
            Self::HrnsFail => "HrnsFail",
        }
    }

    /// Tells whether the method passed on new code.
    pub fn passed_on_new(self) -> bool {
        matches!(self, Self::Success | Self::Redundant)
    }
}

/// The verdict on one method of a submission: three views, never merged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The paper's category by the first repeat; `None` if a fault of the infrastructure leaves it unscored.
    pub paper_verdict: Option<Category>,
    /// Passes on new code in every repeat; for generation fails on old code attributably in every repeat; no flag.
    pub strict_success: bool,
    /// Whether the test is what it seems to be.
    pub integrity: Integrity,
    /// Why it is suspect or tampered with, gravest first.
    pub reasons: Vec<Reason>,
    /// Findings that do not count, because the developers' test has them as well.
    pub off: Vec<Reason>,
    /// The count of repeats that passed on new code; `None` unless some passed and some did not.
    pub flaky: Option<Flaky>,
}

/// How often a flaky method passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Flaky {
    /// Repeats that passed.
    pub passed: usize,
    /// All repeats.
    pub runs: usize,
}

/// A launch on old code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnOldCode {
    /// Its outcome.
    pub outcome: Outcome,
    /// Whether a compile error of the test file lies in code that the method reaches. `None` if that was not examined,
    /// as in earlier programs; then each error of the file counts.
    pub attributed: Option<bool>,
}

impl From<Outcome> for OnOldCode {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, attributed: None }
    }
}

/// Judges a method by its outcomes on new and on old code, repeats in order.
pub fn judge(track: Track, new: &[Outcome], old: &[OnOldCode], integrity: Integrity) -> Verdict {
    let passed = new.iter().filter(|outcome| **outcome == Outcome::Pass).count();
    let flaky = (passed > 0 && passed < new.len()).then_some(Flaky { passed, runs: new.len() });
    Verdict {
        paper_verdict: category(track, new.first().copied(), old.first().map(|old| old.outcome)),
        strict_success: strict(track, new, old) && integrity < Integrity::Suspect,
        integrity,
        reasons: Vec::new(),
        off: Vec::new(),
        flaky,
    }
}

fn category(track: Track, new: Option<Outcome>, old: Option<Outcome>) -> Option<Category> {
    match new? {
        Outcome::InfraFail(_) => None,
        Outcome::HarnessFail(_) | Outcome::Absent => Some(Category::HrnsFail),
        Outcome::CompileFail(_) => Some(Category::CmplFail),
        Outcome::ExecFail(_) => Some(Category::ExecFail),
        Outcome::Pass => match track {
            Track::TestUpdate => Some(Category::Success),
            Track::TestGeneration => match old? {
                Outcome::InfraFail(_) => None,
                old if old.is_attributable_failure() => Some(Category::Success),
                // An outcome that is no failure on old code tells nothing about the change.
                Outcome::Pass
                | Outcome::ExecFail(_)
                | Outcome::CompileFail(_)
                | Outcome::HarnessFail(_)
                | Outcome::Absent => Some(Category::Redundant),
            },
        },
    }
}

fn strict(track: Track, new: &[Outcome], old: &[OnOldCode]) -> bool {
    let passes = !new.is_empty() && new.iter().all(|outcome| *outcome == Outcome::Pass);
    passes && (track == Track::TestUpdate || fails_on_old_code(old))
}

/// Tells whether every launch on old code ended with a failure that is the test's own.
pub fn fails_on_old_code(old: &[OnOldCode]) -> bool {
    !old.is_empty() && old.iter().copied().all(fails_certainly)
}

/// Tells whether a failure on old code is the test's own. Errors of another file or of another method, and a missing module,
/// are inconclusive.
fn fails_certainly(OnOldCode { outcome, attributed }: OnOldCode) -> bool {
    match outcome {
        Outcome::ExecFail(reason) => reason.is_the_tests_own(),
        Outcome::CompileFail(reason) => reason == CompileReason::TargetFile && attributed != Some(false),
        Outcome::Pass | Outcome::HarnessFail(_) | Outcome::InfraFail(_) | Outcome::Absent => false,
    }
}

#[cfg(test)]
mod tests;
