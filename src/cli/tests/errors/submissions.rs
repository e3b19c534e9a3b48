//! Errors of submissions and reports.

use super::*;
use crate::report::leaderboard::LeaderboardError;
use crate::report::score::{Period, ReportError};
use crate::submission::predictions::{Difference, Place, PredictionsError};

pub(super) fn of_submissions_and_reports() -> Vec<CommandError> {
    let place = || Place { path: path(), line: Some(3) };
    let mut errors = all([
        PredictionsError::Io(disk()),
        PredictionsError::Io(absent()),
        PredictionsError::Kind(path()),
        PredictionsError::TooLarge { path: path(), found: text("9"), most: text("1") },
        PredictionsError::Malformed { place: place(), reason: text("no JSON") },
        PredictionsError::Field { place: place(), field: "instance_id", reason: text("is missing") },
        PredictionsError::Conflict {
            difference: Difference::Cost,
            task: text("task-1"),
            model: text("model"),
            first: Box::new(place()),
            second: Box::new(place()),
        },
        PredictionsError::Nothing(path()),
    ]);
    errors.extend(all([
        ReportError::OtherCommand { run_id: text("run"), command: text("validate") },
        ReportError::NoInputs(text("run")),
        ReportError::NothingLeft {
            run_id: text("run"),
            period: Period { since: None, until: Some(jiff::civil::date(2013, 1, 1)) },
        },
        ReportError::NoValidation(text("run")),
    ]));
    errors.extend(within(run_directories(), ReportError::RunDirectory));
    errors.extend(all([
        LeaderboardError::Io(disk()),
        LeaderboardError::Io(absent()),
        LeaderboardError::TooLarge { path: path() },
        LeaderboardError::Shape { path: path(), message: text("no `tracks`") },
    ]));
    errors
}
