//! Counts the results that faults of ours prevented in a run: launches on either side in every repeat, and
//! measurements.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::inputs::ScoreInputs;
use super::record::ScoreRecord;
use super::side_name;
use crate::outcome::Outcome;
use crate::task::{Task, TaskId};

/// A missing result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Its kind.
    pub kind: LeftKind,
    /// The task.
    pub task_id: TaskId,
    /// The model, method, side and repeat, as far as the result has them.
    pub of: String,
    /// Why, in one line.
    pub cause: String,
}

/// Kinds of missing results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftKind {
    /// An outcome on new or on old code.
    Launch,
    /// A coverage.
    Coverage,
    /// A mutation score.
    Mutation,
    /// Whether a starting file compiles.
    Start,
    /// The places of focal methods.
    Focal,
    /// Each test method's own focal methods.
    OwnFocal,
}

impl LeftKind {
    /// Returns the kind's name in singular and plural.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Launch => ("launch", "launches"),
            Self::Coverage => ("coverage", "coverages"),
            Self::Mutation => ("mutation score", "mutation scores"),
            Self::Start => ("starting file", "starting files"),
            Self::Focal => ("task's focal methods", "tasks' focal methods"),
            Self::OwnFocal => ("task's own focal methods by test", "tasks' own focal methods by test"),
        }
    }
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, task_id, of, cause } = self;
        write!(f, "{} of {task_id}", kind.names().0)?;
        if !of.is_empty() {
            write!(f, ", {of}")?;
        }
        write!(f, ": {cause}")
    }
}

impl ScoreInputs {
    /// Returns the results that the records of a run with these inputs lack.
    pub fn left(&self, records: &[ScoreRecord]) -> Vec<Left> {
        let measured = self.coverage || self.mutation || self.controls;
        left(records, if measured { &self.run.tasks } else { &[] })
    }
}

/// Returns the results that a run's records lack. Each record is the last of its name; `measured` are the tasks whose
/// focal methods were searched for.
pub fn left(records: &[ScoreRecord], measured: &[Task]) -> Vec<Left> {
    let mut left = Vec::new();
    let mut found: BTreeSet<&TaskId> = BTreeSet::new();
    let line = |text: Option<&str>| text.and_then(|text| text.lines().next()).unwrap_or_default().to_owned();
    for record in records {
        let (kind, task_id, of, cause) = match record {
            ScoreRecord::Execution(one) => {
                let Outcome::InfraFail(_) = one.outcome else { continue };
                let of = format!("{} {} on {} code, launch {}", one.model, one.method, side_name(one.code), one.repeat);
                (LeftKind::Launch, &one.task_id, of, format!("{}: {}", one.outcome, line(Some(&one.detail))))
            }
            ScoreRecord::Coverage(one) if one.lost => {
                let of = format!("{} {}", one.model, one.method);
                (LeftKind::Coverage, &one.task_id, of, line(one.cause.as_deref()))
            }
            ScoreRecord::Mutation(one) if one.lost => {
                let of = format!("{} {}", one.model, one.method);
                (LeftKind::Mutation, &one.task_id, of, line(one.cause.as_deref()))
            }
            ScoreRecord::Start(one) if one.lost => {
                (LeftKind::Start, &one.task_id, String::new(), line(one.detail.as_deref()))
            }
            ScoreRecord::OwnFocal(one) if one.lost => {
                (LeftKind::OwnFocal, &one.task_id, String::new(), line(one.cause.as_deref()))
            }
            ScoreRecord::Focal(one) => {
                found.insert(&one.task_id);
                continue;
            }
            _ => continue,
        };
        left.push(Left { kind, task_id: task_id.clone(), of, cause });
    }
    left.extend(measured.iter().filter(|task| !found.contains(&task.id)).map(|task| Left {
        kind: LeftKind::Focal,
        task_id: task.id.clone(),
        of: String::new(),
        cause: "the sources can't be read".to_owned(),
    }));
    left
}

/// Returns the number of missing results of each kind.
pub fn counts(left: &[Left]) -> BTreeMap<LeftKind, usize> {
    let mut counts = BTreeMap::new();
    for one in left {
        *counts.entry(one.kind).or_default() += 1;
    }
    counts
}
