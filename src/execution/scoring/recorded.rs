//! The work that a run's records show as done.

use std::collections::{BTreeMap, BTreeSet};

use super::record::{FocalRecord, OwnFocalRecord, ScoreRecord, SubmissionRecord, TimeClassRecord};
use crate::outcome::Outcome;
use crate::task::{MethodId, Side, TaskId};

/// The finished work of a run.
pub(super) struct Done<'a> {
    pub(super) submissions: BTreeMap<(&'a str, &'a TaskId), &'a SubmissionRecord>,
    pub(super) focal: BTreeMap<&'a TaskId, &'a FocalRecord>,
    pub(super) own: BTreeMap<&'a TaskId, &'a OwnFocalRecord>,
    pub(super) executions: BTreeSet<(&'a str, &'a TaskId, Side, &'a MethodId, u32)>,
    /// Methods that passed on new code in the first repeat, with the duration of their JVM in milliseconds.
    pub(super) passed: BTreeMap<(&'a str, &'a TaskId, &'a MethodId), Option<u64>>,
    pub(super) covered: BTreeSet<(&'a str, &'a TaskId, &'a MethodId)>,
    pub(super) mutated: BTreeSet<(&'a str, &'a TaskId, &'a MethodId)>,
    pub(super) controlled: BTreeSet<(&'a str, &'a TaskId, &'a MethodId)>,
    pub(super) time_classes: BTreeMap<&'a TaskId, &'a TimeClassRecord>,
}

impl<'a> Done<'a> {
    /// Sorts the records.
    pub(super) fn of(records: &'a [ScoreRecord]) -> Self {
        let mut done = Self {
            submissions: BTreeMap::new(),
            focal: BTreeMap::new(),
            own: BTreeMap::new(),
            executions: BTreeSet::new(),
            passed: BTreeMap::new(),
            covered: BTreeSet::new(),
            mutated: BTreeSet::new(),
            controlled: BTreeSet::new(),
            time_classes: BTreeMap::new(),
        };
        for record in records {
            match record {
                ScoreRecord::Submission(one) => {
                    done.submissions.insert((&one.model, &one.task_id), one);
                }
                ScoreRecord::Focal(one) => {
                    done.focal.insert(&one.task_id, one);
                }
                ScoreRecord::OwnFocal(one) => {
                    done.own.insert(&one.task_id, one);
                }
                // An execution that never began, because something of ours was missing, may be possible now.
                ScoreRecord::Execution(one) if one.attempts == 0 && matches!(one.outcome, Outcome::InfraFail(_)) => {}
                ScoreRecord::Execution(one) => {
                    done.executions.insert((&one.model, &one.task_id, one.code, &one.method, one.repeat));
                    if one.code == Side::New && one.repeat == 1 && one.outcome == Outcome::Pass {
                        done.passed.insert((&one.model, &one.task_id, &one.method), one.measured.launch_ms);
                    }
                }
                ScoreRecord::Coverage(one) if one.lost => {}
                ScoreRecord::Mutation(one) if one.lost => {}
                ScoreRecord::Controls(one) if one.lost => {}
                ScoreRecord::Coverage(one) => {
                    done.covered.insert((&one.model, &one.task_id, &one.method));
                }
                ScoreRecord::Mutation(one) => {
                    done.mutated.insert((&one.model, &one.task_id, &one.method));
                }
                ScoreRecord::Controls(one) => {
                    done.controlled.insert((&one.model, &one.task_id, &one.method));
                }
                ScoreRecord::TimeClass(one) => {
                    done.time_classes.insert(&one.task_id, one);
                }
                ScoreRecord::Mutants(_) | ScoreRecord::Start(_) => {}
            }
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::run::record::Measured;
    use crate::execution::scoring::record::{ExecutionRecord, MutationRecord, SCORE_SCHEMA};
    use crate::outcome::InfraReason;
    use crate::task::Track;

    fn execution(outcome: Outcome, attempts: u32) -> ScoreRecord {
        ScoreRecord::Execution(ExecutionRecord {
            schema: SCORE_SCHEMA,
            model: "m".into(),
            task_id: "t1".parse().unwrap(),
            repository: "o/n".parse().unwrap(),
            track: Track::TestUpdate,
            code: Side::New,
            method: "ATest#m".parse().unwrap(),
            repeat: 1,
            outcome,
            detail: String::new(),
            missing: Vec::new(),
            attributed: None,
            attempts,
            key: None,
            cached: false,
            measured: Measured::default(),
        })
    }

    fn mutation(lost: bool) -> ScoreRecord {
        ScoreRecord::Mutation(MutationRecord {
            schema: SCORE_SCHEMA,
            model: "m".into(),
            task_id: "t1".parse().unwrap(),
            method: "ATest#m".parse().unwrap(),
            kills: None,
            elsewhere: 0,
            mutation_score: None,
            mutants: Vec::new(),
            unmutated: None,
            cause: Some("x".into()),
            lost,
            cached: false,
            isolation_missing: Vec::new(),
        })
    }

    #[test]
    fn what_was_lost_or_never_tried_is_not_done() {
        let fault = Outcome::InfraFail(InfraReason::Source);
        for (record, executed, mutated) in [
            (execution(Outcome::Pass, 1), 1, 0),
            (execution(fault, 3), 1, 0),
            (execution(fault, 0), 0, 0),
            (mutation(false), 0, 1),
            (mutation(true), 0, 0),
        ] {
            let records = [record];
            let done = Done::of(&records);
            assert_eq!((done.executions.len(), done.mutated.len()), (executed, mutated), "{records:?}");
        }
    }
}
