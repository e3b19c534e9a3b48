//! Errors of submissions and reports.

use super::*;
use crate::report::leaderboard::LeaderboardError;
use crate::report::score::{Period, ReportError};
use crate::submission::predictions::{Difference, Place, PredictionsError};

pub(super) fn of_submissions_and_reports() -> Vec<CommandError> {
    let place = || Place { path: path(), line: Some(3) };
    let unmatched = |nearest, nested| PredictionsError::Unmatched {
        place: place(),
        id: text("tusk-1"),
        nearest,
        nested,
        others: 2,
    };
    let mut errors = all([
        PredictionsError::Io(disk()),
        PredictionsError::Io(unopened()),
        PredictionsError::Absent(path()),
        PredictionsError::Absent("Gold".into()),
        PredictionsError::Absent("Empty".into()),
        PredictionsError::Stdin,
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
        PredictionsError::Nothing { path: path(), file: None },
        PredictionsError::Nothing { path: path(), file: Some("file/preds.json".into()) },
        PredictionsError::NoTask { place: place(), unknown: None },
        PredictionsError::NoTask { place: place(), unknown: Some(text("id")) },
        PredictionsError::Nested { place: place(), key: text("model"), task: text("task-1") },
        unmatched(None, None),
        unmatched(Some(text("task-1")), None),
        unmatched(None, Some("file/model".into())),
        PredictionsError::OtherName {
            found: "file/task-1/Wrong.java".into(),
            expected: text("src/test/java/ATest.java"),
        },
    ]);
    errors.extend(all([
        ReportError::OtherCommand { run_id: text("run"), command: text("validate") },
        ReportError::NoInputs(text("run")),
        ReportError::NothingLeft {
            run_id: text("run"),
            period: Period { since: None, until: Some(jiff::civil::date(2013, 1, 1)) },
        },
        ReportError::NoValidation(text("run")),
        ReportError::NeverValidated,
        ReportError::NoRun { path: path(), reason: "it has no `run.json`" },
        ReportError::Twice(text("run")),
        ReportError::Incomparable {
            run: text("run"),
            command: text("score"),
            other: text("other"),
            other_command: text("validate"),
        },
    ]));
    errors.extend(within(run_directories(), ReportError::RunDirectory));
    errors.extend(all([
        LeaderboardError::Io(disk()),
        LeaderboardError::Io(unopened()),
        LeaderboardError::TooLarge { path: path() },
        LeaderboardError::Shape { path: path(), message: text("no `tracks`") },
    ]));
    errors
}
