//! Trees that lack contents: submodules, contents in git-lfs's store, contents that the git repository does not have. A
//! failure on such a tree says nothing of the test. Validation and scoring decide which failures this concerns.

use super::run::record::{CellRecord, MOST_MISSING};
use crate::outcome::launch::shortened;
use crate::outcome::{InfraReason, Outcome};
use crate::output::counted;

/// Tells whether missing contents of the tree may be the reason for an outcome.
pub(super) fn may_need_contents(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Pass | Outcome::Absent => false,
        Outcome::InfraFail(reason) => matches!(reason, InfraReason::Build | InfraReason::Source),
        Outcome::ExecFail(_) | Outcome::CompileFail(_) | Outcome::HarnessFail(_) => true,
    }
}

/// Names missing paths in a record.
pub(super) fn name_missing(record: &mut CellRecord, missing: &[String]) {
    record.missing = missing.iter().take(MOST_MISSING).cloned().collect();
}

/// Names missing paths in a record, and makes its outcome a fault of the sources. Source: protocol §3.
pub(super) fn blame_sources(record: &mut CellRecord, missing: &[String]) {
    name_missing(record, missing);
    let lacks = format!("the tree lacks {}", counted(missing.len(), "content", "contents"));
    record.detail = shortened(&format!("{lacks}, and the outcome was {}: {}", record.outcome, record.detail));
    record.outcome = Outcome::InfraFail(InfraReason::Source);
}
