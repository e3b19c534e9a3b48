//! Sorts a run's records while reading them, so that a report of many models never holds them twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::integrity::Evidence;
use crate::digest::Digest;
use crate::execution::scoring::gold::failing;
use crate::execution::scoring::record::{
    ControlsRecord, CoverageRecord, ExecutionRecord, FocalRecord, MutantOutcome, MutationRecord, OwnFocalRecord,
    ScoreRecord, StartRecord, SubmissionRecord,
};
use crate::metrics::aggregate::Adequacy;
use crate::metrics::integrity::Reason;
use crate::metrics::mutation::MutantSet;
use crate::outcome::Outcome;
use crate::submission::GOLD;
use crate::submission::mentions::FindingKind;
use crate::task::{MethodId, Side, TaskId};

/// The records of a run, the last one of each.
#[derive(Default)]
pub(super) struct Gathered {
    /// Records by model and task.
    pub(super) models: BTreeMap<String, BTreeMap<TaskId, OfModel>>,
    /// Records by task.
    pub(super) tasks: BTreeMap<TaskId, OfTask>,
}

/// The records of one task of a model.
#[derive(Default)]
pub(super) struct OfModel {
    pub(super) submission: Option<SubmissionRecord>,
    pub(super) executions: Vec<ExecutionRecord>,
    pub(super) coverage: Vec<CoverageRecord>,
    pub(super) mutation: Vec<MutationRecord>,
    pub(super) controls: Vec<ControlsRecord>,
}

/// The records of a task for all models.
#[derive(Default)]
pub(super) struct OfTask {
    pub(super) focal: Option<Arc<FocalRecord>>,
    pub(super) own: Option<Arc<OwnFocalRecord>>,
    pub(super) start: Option<StartRecord>,
    pub(super) mutants: Arc<Vec<MutantSet>>,
}

/// The results of a task's developers' tests, against which submissions are measured.
#[derive(Default)]
pub(super) struct Reference {
    /// Methods that were launched on new code, or could not be.
    executed: BTreeSet<MethodId>,
    /// Whether a fault kept one from being judged. Then no reference value is known.
    fault: bool,
    /// Whether one fails on new code, although its label says that it passes.
    pub(super) failed: bool,
    lost: BTreeMap<MethodId, Lost>,
    /// Digest of their test file.
    pub(super) file: Option<Digest>,
    /// Results of each method on mutants.
    pub(super) mutants: BTreeMap<MethodId, Arc<Vec<MutantOutcome>>>,
    /// Values of each method.
    pub(super) methods: BTreeMap<MethodId, Adequacy>,
    /// Findings about each method under controls. The same findings do not count for submissions.
    pub(super) found: BTreeMap<MethodId, BTreeSet<Reason>>,
    /// What the classes of each method's file mention.
    pub(super) findings: BTreeMap<MethodId, BTreeSet<FindingKind>>,
}

/// Due measurements that were lost through no fault of the test.
#[derive(Clone, Copy, Default)]
pub(super) struct Lost {
    pub(super) coverage: bool,
    pub(super) mutation: bool,
    pub(super) controls: bool,
}

impl Gathered {
    /// Adds a record. It replaces an earlier one of the same name.
    pub(super) fn add(&mut self, record: ScoreRecord) {
        match record {
            ScoreRecord::Start(record) => {
                let task = self.task(&record.task_id);
                task.start = Some(record);
            }
            ScoreRecord::Mutants(record) => {
                let task = self.task(&record.task_id);
                task.mutants = Arc::new(record.sets);
            }
            ScoreRecord::Focal(record) => {
                let task = self.task(&record.task_id);
                task.focal = Some(Arc::new(record));
            }
            // Its content is in keys and limits already.
            ScoreRecord::TimeClass(_) => {}
            ScoreRecord::OwnFocal(record) => {
                let task = self.task(&record.task_id);
                task.own = Some(Arc::new(record));
            }
            ScoreRecord::Submission(record) => {
                let model = self.model(&record.model, &record.task_id);
                model.submission = Some(record);
            }
            ScoreRecord::Execution(record) => {
                let model = self.model(&record.model, &record.task_id);
                put(&mut model.executions, record, |one, other| {
                    (&one.method, one.code, one.repeat) == (&other.method, other.code, other.repeat)
                });
            }
            ScoreRecord::Coverage(record) => {
                let model = self.model(&record.model, &record.task_id);
                put(&mut model.coverage, record, |one, other| one.method == other.method);
            }
            ScoreRecord::Mutation(record) => {
                let model = self.model(&record.model, &record.task_id);
                put(&mut model.mutation, record, |one, other| one.method == other.method);
            }
            ScoreRecord::Controls(record) => {
                let model = self.model(&record.model, &record.task_id);
                put(&mut model.controls, record, |one, other| one.method == other.method);
            }
        }
    }

    fn task(&mut self, task: &TaskId) -> &mut OfTask {
        self.tasks.entry(task.clone()).or_default()
    }

    fn model(&mut self, model: &str, task: &TaskId) -> &mut OfModel {
        self.models.entry(model.to_owned()).or_default().entry(task.clone()).or_default()
    }

    /// Returns the results of the developers' tests.
    pub(super) fn reference(&self) -> BTreeMap<TaskId, Reference> {
        let gold = self.models.get(GOLD).into_iter().flatten();
        gold.map(|(task, records)| (task.clone(), Reference::of(records))).collect()
    }
}

fn put<T>(records: &mut Vec<T>, record: T, same: impl Fn(&T, &T) -> bool) {
    match records.iter_mut().find(|known| same(known, &record)) {
        Some(known) => *known = record,
        None => records.push(record),
    }
}

impl OfModel {
    /// Returns the records about a method's integrity.
    pub(super) fn evidence<'a>(&'a self, method: &'a MethodId) -> Evidence<'a> {
        Evidence {
            submission: self.submission.as_ref(),
            executions: &self.executions,
            method: Some(method),
            coverage: self.coverage.iter().find(|record| record.method == *method),
            mutation: self.mutation.iter().find(|record| record.method == *method),
            controls: self.controls.iter().find(|record| record.method == *method && !record.lost),
        }
    }

    /// Returns whether a measurement of these methods was lost.
    pub(super) fn lost(&self, methods: &[MethodId]) -> Lost {
        Lost {
            coverage: self.coverage.iter().any(|record| record.lost && methods.contains(&record.method)),
            mutation: self.mutation.iter().any(|record| record.lost && methods.contains(&record.method)),
            controls: self.controls.iter().any(|record| record.lost && methods.contains(&record.method)),
        }
    }
}

impl Reference {
    fn of(records: &OfModel) -> Self {
        let new = || records.executions.iter().filter(|one| one.code == Side::New);
        let mut reference = Self {
            executed: new().map(|one| one.method.clone()).collect(),
            failed: failing(new()).is_some(),
            file: records.submission.as_ref().and_then(|submission| submission.post_image),
            fault: new().any(|one| matches!(one.outcome, Outcome::InfraFail(_))),
            ..Self::default()
        };
        for record in &records.coverage {
            reference.lost.entry(record.method.clone()).or_default().coverage = record.lost;
            put_coverage(reference.methods.entry(record.method.clone()).or_default(), record);
        }
        for record in &records.mutation {
            reference.lost.entry(record.method.clone()).or_default().mutation = record.lost;
            reference.mutants.insert(record.method.clone(), Arc::new(record.mutants.clone()));
            put_mutation(reference.methods.entry(record.method.clone()).or_default(), record);
        }
        for record in &records.controls {
            reference.lost.entry(record.method.clone()).or_default().controls = record.lost;
        }
        for record in records.controls.iter().filter(|record| !record.lost) {
            let evidence = records.evidence(&record.method);
            reference.found.insert(record.method.clone(), evidence.reasons());
            reference.findings.insert(record.method.clone(), evidence.findings().collect());
        }
        reference
    }

    /// Tells whether all of these methods were executed.
    pub(super) fn ran(&self, methods: &[MethodId]) -> bool {
        methods.iter().all(|method| self.executed.contains(method))
    }

    /// Returns whether a measurement of these methods was lost.
    pub(super) fn lost(&self, methods: &[MethodId]) -> Lost {
        let lost = |kind: fn(&Lost) -> bool| methods.iter().filter_map(|method| self.lost.get(method)).any(kind);
        Lost {
            coverage: self.fault || lost(|lost| lost.coverage),
            mutation: self.fault || lost(|lost| lost.mutation),
            controls: self.fault || lost(|lost| lost.controls),
        }
    }
}

/// Writes a method's coverage to its values.
pub(super) fn put_coverage(values: &mut Adequacy, record: &CoverageRecord) {
    values.coverage = record.coverage;
    values.coverage_range = record.coverage_range;
}

/// Writes a method's results on mutants to its values.
pub(super) fn put_mutation(values: &mut Adequacy, record: &MutationRecord) {
    values.mutation = record.mutation_score;
    let kills = record.kills.filter(|kills| record.mutation_score.is_some() && kills.count > 0);
    values.mutation_strict = kills.map(|kills| kills.killed_strict as f64 / kills.count as f64);
}
