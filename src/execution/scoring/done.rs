//! What a run's records say is done.

use std::collections::{BTreeMap, BTreeSet};

use super::record::{FocalRecord, ScoreRecord, SubmissionRecord};
use crate::outcome::Outcome;
use crate::task::{MethodId, Side, TaskId};

/// What a run has already.
pub(super) struct Done<'a> {
    pub(super) submissions: BTreeMap<(&'a str, &'a TaskId), &'a SubmissionRecord>,
    pub(super) focal: BTreeMap<&'a TaskId, &'a FocalRecord>,
    pub(super) executions: BTreeSet<(&'a str, &'a TaskId, Side, &'a MethodId, u32)>,
    /// Methods that passed on new code in the first repeat.
    pub(super) passed: BTreeSet<(&'a str, &'a TaskId, &'a MethodId)>,
    pub(super) covered: BTreeSet<(&'a str, &'a TaskId, &'a MethodId)>,
    pub(super) mutated: BTreeSet<(&'a str, &'a TaskId, &'a MethodId)>,
}

impl<'a> Done<'a> {
    /// Sorts the records.
    pub(super) fn of(records: &'a [ScoreRecord]) -> Self {
        let mut done = Self {
            submissions: BTreeMap::new(),
            focal: BTreeMap::new(),
            executions: BTreeSet::new(),
            passed: BTreeSet::new(),
            covered: BTreeSet::new(),
            mutated: BTreeSet::new(),
        };
        for record in records {
            match record {
                ScoreRecord::Submission(one) => {
                    done.submissions.insert((&one.model, &one.task_id), one);
                }
                ScoreRecord::Focal(one) => {
                    done.focal.insert(&one.task_id, one);
                }
                ScoreRecord::Execution(one) => {
                    done.executions.insert((&one.model, &one.task_id, one.code, &one.method, one.repeat));
                    if one.code == Side::New && one.repeat == 1 && one.outcome == Outcome::Pass {
                        done.passed.insert((&one.model, &one.task_id, &one.method));
                    }
                }
                ScoreRecord::Coverage(one) => {
                    done.covered.insert((&one.model, &one.task_id, &one.method));
                }
                ScoreRecord::Mutation(one) => {
                    done.mutated.insert((&one.model, &one.task_id, &one.method));
                }
                ScoreRecord::Mutants(_) => {}
            }
        }
        done
    }
}
