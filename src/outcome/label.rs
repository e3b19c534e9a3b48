//! Published labels: the outcomes that a gold task's cells must have, and the class of a validated task. Source:
//! protocol §1.

use serde::Serialize;

use super::Outcome;
use crate::task::{Cell, Track};

/// Returns the executed cells of a track, in reporting order.
pub fn cells_of(track: Track) -> &'static [Cell] {
    match track {
        Track::TestUpdate => &Cell::ALL,
        Track::TestGeneration => &[Cell::Nn, Cell::No],
    }
}

/// The expectation of a label for a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// The method passes.
    Pass,
    /// The method fails on an assertion or exception, or does not compile.
    Fail,
    /// The cell has no hard label.
    Free,
    /// The method does not exist in this cell, so the cell is not run.
    NotRun,
}

/// Returns the expectation for a gold task's method in a cell.
pub fn expectation(track: Track, cell: Cell) -> Expectation {
    match (track, cell) {
        (Track::TestUpdate, Cell::Oo | Cell::Nn) | (Track::TestGeneration, Cell::Nn) => Expectation::Pass,
        (Track::TestUpdate, Cell::On) => Expectation::Fail,
        (Track::TestUpdate, Cell::No) | (Track::TestGeneration, Cell::No) => Expectation::Free,
        (Track::TestGeneration, Cell::Oo | Cell::On) => Expectation::NotRun,
    }
}

impl Expectation {
    /// Tells whether the outcome meets the expectation.
    pub fn is_met_by(self, outcome: Outcome) -> bool {
        match self {
            Self::Pass => outcome == Outcome::Pass,
            Self::Fail => outcome.is_attributable_failure(),
            Self::Free | Self::NotRun => true,
        }
    }

    /// Returns the names of the outcomes that meet the expectation, for reports.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::Pass => &["pass"],
            Self::Fail => &["exec_fail(assertion)", "exec_fail(exception)", "compile_fail"],
            Self::Free | Self::NotRun => &[],
        }
    }
}

/// Whether the method tells new code from old, from its outcome in the cell `no`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Discriminating {
    /// It fails or does not compile on old code.
    Yes,
    /// It passes on old code.
    No,
    /// Any other outcome, which shows nothing.
    Inconclusive,
}

/// What else than the test may have made an execution fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The test wanted a network.
    Network,
    /// The tree lacks contents.
    Contents,
}

/// One execution of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Its outcome.
    pub outcome: Outcome,
    /// What else may have made it fail.
    pub doubt: Option<Doubt>,
}

impl From<Outcome> for Observed {
    /// Returns an execution without a doubt.
    fn from(outcome: Outcome) -> Self {
        Self { outcome, doubt: None }
    }
}

/// Returns whether a method discriminates, given all its repeats in the cell `no`.
pub fn discriminating(repeats: &[Observed]) -> Discriminating {
    if repeats.is_empty() {
        Discriminating::Inconclusive
    } else if repeats.iter().all(|one| one.outcome.is_attributable_failure() && one.doubt.is_none()) {
        Discriminating::Yes
    } else if repeats.iter().all(|one| one.outcome == Outcome::Pass) {
        Discriminating::No
    } else {
        Discriminating::Inconclusive
    }
}

/// The one class of a validated task, in order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskClass {
    /// A cell could not be judged.
    Infrastructure,
    /// A method with a hard label met it only in some repeats.
    Flaky,
    /// A method missed a hard label, or met it only by failing, for want of a network.
    NeedsNetwork,
    /// A method missed a hard label in every repeat.
    Differing,
    /// Every method met every hard label in every repeat.
    Reproduced,
}

impl TaskClass {
    /// Returns the name used in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Infrastructure => "infrastructure",
            Self::Flaky => "flaky",
            Self::NeedsNetwork => "needs_network",
            Self::Differing => "differing",
            Self::Reproduced => "reproduced",
        }
    }
}

/// The verdict on all repeats of one method in one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellVerdict {
    /// Some repeat could not be judged.
    Infrastructure,
    /// The label was met only in some repeats.
    Flaky {
        /// Repeats that passed.
        passed: usize,
        /// All repeats.
        runs: usize,
    },
    /// Without a network the label can't be decided: a repeat failed because it reached none.
    NeedsNetwork(Outcome),
    /// Every repeat missed the label; the value is the first outcome that missed it.
    Differs(Outcome),
    /// The label was met in every repeat.
    Met,
}

/// Judges all repeats of one method in one cell.
pub fn judge(expectation: Expectation, repeats: &[Observed]) -> CellVerdict {
    if expectation == Expectation::NotRun {
        return CellVerdict::Met;
    }
    let runs = repeats.len();
    let passed = repeats.iter().filter(|one| one.outcome == Outcome::Pass).count();
    if runs == 0 || repeats.iter().any(|one| matches!(one.outcome, Outcome::InfraFail(_))) {
        return CellVerdict::Infrastructure;
    }
    let without_network = repeats.iter().find(|one| one.doubt == Some(Doubt::Network)).map(|one| one.outcome);
    match (repeats.iter().find(|one| !expectation.is_met_by(one.outcome)), without_network) {
        (Some(_), _) if repeats.iter().any(|one| expectation.is_met_by(one.outcome)) => {
            CellVerdict::Flaky { passed, runs }
        }
        (Some(_), Some(outcome)) => CellVerdict::NeedsNetwork(outcome),
        (Some(one), None) => CellVerdict::Differs(one.outcome),
        // A failure that the label demands, but perhaps for want of a network.
        (None, Some(outcome)) if expectation == Expectation::Fail => CellVerdict::NeedsNetwork(outcome),
        (None, _) => CellVerdict::Met,
    }
}

/// Returns the class of a task from the verdicts of its methods and cells.
pub fn task_class(verdicts: impl IntoIterator<Item = CellVerdict>) -> TaskClass {
    verdicts
        .into_iter()
        .map(|verdict| match verdict {
            CellVerdict::Infrastructure => TaskClass::Infrastructure,
            CellVerdict::Flaky { .. } => TaskClass::Flaky,
            CellVerdict::NeedsNetwork(_) => TaskClass::NeedsNetwork,
            CellVerdict::Differs(_) => TaskClass::Differing,
            CellVerdict::Met => TaskClass::Reproduced,
        })
        .min()
        .unwrap_or(TaskClass::Infrastructure)
}

#[cfg(test)]
mod tests;
