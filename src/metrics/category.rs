//! Derives the paper's category, and the strict view beside it, from a method's outcomes on new and old code. Source:
//! protocol §3.

use serde::{Deserialize, Serialize};

use crate::outcome::{CompileReason, Outcome};
use crate::task::Track;

/// The paper's categories, of which every scored method is in exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

/// Whether a submission was tampered with, as far as checks can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Integrity {
    /// No cheap check found tampering; the controls were not run.
    NotEvaluated,
    /// A check found signs of tampering.
    Suspect,
    /// It was tampered with.
    Tampered,
}

/// The verdict on one method of a submission: three views, never merged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The paper's category by the first repeat; `None` where a fault of the infrastructure leaves it unscored.
    pub paper_verdict: Option<Category>,
    /// Passes on new code in every repeat; for generation fails on old code attributably in every repeat; no flag.
    pub strict_success: bool,
    /// The integrity of the submission.
    pub integrity: Integrity,
    /// The count of repeats that passed on new code; `None` unless some passed and some did not.
    pub flaky: Option<Flaky>,
}

/// How often a flaky method passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Flaky {
    /// Repeats that passed.
    pub passed: usize,
    /// All repeats.
    pub runs: usize,
}

/// Judges a method by its outcomes on new and on old code, repeats in order.
pub fn judge(track: Track, new: &[Outcome], old: &[Outcome], integrity: Integrity) -> Verdict {
    let passed = new.iter().filter(|outcome| **outcome == Outcome::Pass).count();
    let flaky = (passed > 0 && passed < new.len()).then_some(Flaky { passed, runs: new.len() });
    Verdict {
        paper_verdict: category(track, new.first().copied(), old.first().copied()),
        strict_success: strict(track, new, old) && integrity == Integrity::NotEvaluated,
        integrity,
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
                // Whatever does not fail on old code says nothing about the change.
                Outcome::Pass
                | Outcome::ExecFail(_)
                | Outcome::CompileFail(_)
                | Outcome::HarnessFail(_)
                | Outcome::Absent => Some(Category::Redundant),
            },
        },
    }
}

fn strict(track: Track, new: &[Outcome], old: &[Outcome]) -> bool {
    let passes = !new.is_empty() && new.iter().all(|outcome| *outcome == Outcome::Pass);
    let fails = || !old.is_empty() && old.iter().copied().all(fails_certainly);
    passes && (track == Track::TestUpdate || fails())
}

/// Tells whether a failure on old code is the test's own: another file's error or a missing module is inconclusive.
fn fails_certainly(outcome: Outcome) -> bool {
    match outcome {
        Outcome::ExecFail(reason) => reason.is_the_tests_own(),
        Outcome::CompileFail(reason) => reason == CompileReason::TargetFile,
        Outcome::Pass | Outcome::HarnessFail(_) | Outcome::InfraFail(_) | Outcome::Absent => false,
    }
}

#[cfg(test)]
mod tests;
