//! Records measurements that a fault of ours prevented. They count for nothing, and the next run tries again.

use std::collections::BTreeSet;

use super::job::Job;
use super::record::ScoreRecord;
use super::reuse::{controls_record, coverage_record, mutation_records};
use crate::execution::fault::NoAnswer;
use crate::execution::launch::coverage::MethodCoverage;
use crate::outcome::Outcome;
use crate::task::{MethodId, Side};

/// The cause of a missing measurement without a known fault.
const AGAIN: &str = "the method passed and could not be launched again";

/// The measurements that passing methods need.
#[derive(Clone, Copy)]
pub(super) struct Due {
    pub(super) coverage: bool,
    pub(super) mutation: bool,
    pub(super) controls: bool,
}

/// Returns lost records for the missing measurements of a job: for methods that passed before and were to be measured,
/// and for those that pass now.
pub(super) fn unmeasured(job: &Job<'_>, due: Due, records: &[ScoreRecord], cause: Option<&str>) -> Vec<ScoreRecord> {
    let (mut passed, mut covered, mut mutated) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut controlled = BTreeSet::new();
    for record in records {
        match record {
            ScoreRecord::Execution(one) if (one.code, one.repeat, one.outcome) == (Side::New, 1, Outcome::Pass) => {
                passed.insert(&one.method);
            }
            ScoreRecord::Coverage(one) => {
                covered.insert(&one.method);
            }
            ScoreRecord::Mutation(one) => {
                mutated.insert(&one.method);
            }
            ScoreRecord::Controls(one) => {
                controlled.insert(&one.method);
            }
            _ => {}
        }
    }
    let cause = cause.unwrap_or(AGAIN);
    let lacking = |due: bool, before: BTreeSet<&MethodId>, known: &BTreeSet<&MethodId>| -> Vec<MethodId> {
        let wanted = before.union(&passed).filter(|method| due && !known.contains(*method));
        wanted.map(|method| (*method).clone()).collect()
    };
    let cover = lacking(due.coverage, job.cover.iter().collect(), &covered).into_iter().map(|method| {
        let measured = MethodCoverage { method, lines: Err(cause.to_owned()), may_pass: true };
        ScoreRecord::Coverage(coverage_record(job, measured, false))
    });
    let mutate = lacking(due.mutation, job.mutate.iter().map(|passing| &passing.method).collect(), &mutated);
    let mutate = mutate.iter().flat_map(|method| mutation_records(job, method, Err(NoAnswer::fault(cause)), false));
    let control = lacking(due.controls, job.control.iter().map(|(method, _)| method).collect(), &controlled);
    let control = control
        .into_iter()
        .map(|method| ScoreRecord::Controls(controls_record(job, method, Err((cause.to_owned(), true)), false)));
    cover.chain(mutate).chain(control).collect()
}
