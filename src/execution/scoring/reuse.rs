//! Reuses cached results and caches new ones, and makes records of both.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cache::CachedResult;
use super::direct_cell::Executed;
use super::job::{Job, Todo};
use super::on_mutants::{JudgedBy, Mutated, mutation_key};
use super::record::{
    ControlsRecord, CoverageRecord, EmptiedRecord, ExecutionRecord, MutantsRecord, MutationRecord, SCORE_SCHEMA,
    ScoreRecord,
};
use super::run_mutants::RunMutants;
use super::{Scoring, model_directory};
use crate::digest::Digest;
use crate::execution::build::prepared::RevisionInput;
use crate::execution::control::classes::FocalExtent;
use crate::execution::control::{Controlled, control_key};
use crate::execution::executor::Executor;
use crate::execution::fault::NoAnswer;
use crate::execution::launch::coverage::{
    Lines, MethodCoverage, SourceFile, coverage_key, focal_coverage, own_coverage,
};
use crate::execution::mutation::launches::Passing;
use crate::execution::request::CellIdentity;
use crate::execution::run::record::{CellRecord, Measured};
use crate::metrics::coverage::{coverage, coverage_range};
use crate::metrics::mutation::Kills;
use crate::outcome::Outcome;
use crate::outcome::launch::shortened;
use crate::submission::mentions::Finding;
use crate::task::{MethodId, Side};

impl Scoring<'_> {
    /// Removes cached executions and coverage from the remaining work.
    pub(super) fn take_kept(
        &self,
        (executor, identity): (&Executor, &CellIdentity<'_>),
        job: &Job<'_>,
        by: ControlledBy<'_>,
        todo: &mut Todo,
        records: &mut Vec<ScoreRecord>,
    ) -> std::io::Result<()> {
        let ControlledBy { files, lines, .. } = by;
        let Todo { methods, cover, mutate, control } = todo;
        for method in std::mem::take(methods) {
            match self.kept(executor, identity, job, &method)? {
                Some(kept) => {
                    let passed = kept.first().is_some_and(|first| first.outcome == Outcome::Pass);
                    cover.extend((passed && !files.is_empty()).then(|| method.clone()));
                    let launch_ms = kept.first().and_then(|first| first.measured.launch_ms);
                    let passing = || Passing { own: job.focal.mutated(&method), method: method.clone(), launch_ms };
                    mutate.extend((passed && !lines.is_empty()).then(passing));
                    control.extend((passed && self.controls_new(job)).then(|| (method.clone(), launch_ms)));
                    records.extend(kept.into_iter().map(ScoreRecord::Execution));
                }
                None => methods.push(method),
            }
        }
        for method in std::mem::take(cover) {
            let key = coverage_key(executor.key(identity, &method, 1, identity.path), files);
            match self.cache.value::<Vec<(SourceFile, Lines)>>(key)? {
                Some(lines) => {
                    let known = MethodCoverage { method, lines: Ok(lines.into_iter().collect()), may_pass: false };
                    records.push(ScoreRecord::Coverage(coverage_record(job, known, true)));
                }
                None => cover.push(method),
            }
        }
        for (method, launch_ms) in std::mem::take(control) {
            let launch = executor.key(identity, &method, 1, identity.path);
            let key = by.key(launch, job, &method);
            match self.cache.value::<KnownControls>(key)? {
                Some(known) => {
                    records.push(ScoreRecord::Controls(controls_record(job, method, Ok(known), true)));
                }
                None => control.push((method, launch_ms)),
            }
        }
        Ok(())
    }

    /// Tells whether a job's passing methods are launched under controls.
    pub(super) fn controls_new(&self, job: &Job<'_>) -> bool {
        self.controls && job.code == Side::New && job.focal.unknown.is_none()
    }

    /// Caches methods' results under controls, and makes records of them.
    pub(super) fn keep_controls(
        &self,
        (executor, identity): (&Executor, &CellIdentity<'_>),
        job: &Job<'_>,
        by: ControlledBy<'_>,
        executed: &Executed,
        records: &mut Vec<ScoreRecord>,
    ) -> std::io::Result<()> {
        for one in &executed.controlled {
            let mutants = executed.emptied.iter().find(|(method, _)| *method == one.method);
            let emptied = one.emptied.as_ref().map(|emptied| EmptiedRecord {
                form: emptied.form,
                outcome: emptied.outcome,
                coverage: emptied
                    .lines
                    .as_ref()
                    .and_then(|lines| coverage(&own_coverage(job.focal.own(&one.method), lines))),
                mutants: mutants.and_then(|(_, result)| result.as_ref().ok().cloned()),
            });
            let known = KnownControls { controls: one.controls.clone(), emptied, findings: one.findings.clone() };
            let fault = mutants.and_then(|(_, result)| result.as_ref().err()).filter(|reason| reason.may_pass());
            let result = match (known.fault(), fault) {
                (None, None) => Ok(known),
                (Some(cause), _) => Err((cause, true)),
                (None, Some(reason)) => Err((reason.cause.clone(), true)),
            };
            if let Ok(known) = &result {
                let launch = executor.key(identity, &one.method, 1, identity.path);
                let key = by.key(launch, job, &one.method);
                self.cache.put_value(&job.task.id, key, known)?;
            }
            records.push(ScoreRecord::Controls(controls_record(job, one.method.clone(), result, false)));
        }
        Ok(())
    }

    /// Removes cached results on mutants from the remaining work, given the judge of the mutants.
    pub(super) fn take_mutated(
        &self,
        (executor, identity, mutants): (&Executor, &CellIdentity<'_>, &RunMutants),
        job: &Job<'_>,
        (lines, by): (&LinesToMutate, JudgedBy),
        mutate: &mut Vec<Passing>,
        records: &mut Vec<ScoreRecord>,
    ) -> std::io::Result<()> {
        for passing in std::mem::take(mutate) {
            let launch = executor.key(identity, &passing.method, 1, identity.path);
            let (own, sources) = (&passing.own, &job.focal.files());
            let key = mutation_key(launch, by, &job.task.id, (lines, own), sources, self.chosen_seed);
            let known = self.cache.value::<Mutated>(key)?;
            match known.filter(|known| mutants.are_met(&job.task.id, &known.sets)) {
                Some(known) => records.extend(mutation_records(job, &passing.method, Ok(known), true)),
                None => mutate.push(passing),
            }
        }
        Ok(())
    }

    /// Caches methods' results on mutants, and makes records of them.
    pub(super) fn keep_mutated(
        &self,
        executor: &Executor,
        identity: &CellIdentity<'_>,
        job: &Job<'_>,
        lines: &LinesToMutate,
        mutated: Vec<(MethodId, Result<Mutated, NoAnswer>)>,
        records: &mut Vec<ScoreRecord>,
    ) -> std::io::Result<()> {
        for (method, result) in mutated {
            if let Ok(known) = &result
                && Kills::of(&known.outcomes()).is_some()
            {
                let launch = executor.key(identity, &method, 1, identity.path);
                let (own, sources) = (&job.focal.mutated(&method), &job.focal.files());
                let key = mutation_key(launch, known.by, &job.task.id, (lines, own), sources, self.chosen_seed);
                self.cache.put_value(&job.task.id, key, known)?;
            }
            records.extend(mutation_records(job, &method, result, false));
        }
        Ok(())
    }

    /// Caches executions and coverage, and makes records of them.
    pub(super) fn keep(
        &self,
        executor: &Executor,
        identity: &CellIdentity<'_>,
        job: &Job<'_>,
        files: &[SourceFile],
        (executed, covered): (Vec<CellRecord>, Vec<MethodCoverage>),
        records: &mut Vec<ScoreRecord>,
    ) -> std::io::Result<()> {
        for record in executed {
            if let Some(result) = CachedResult::of(&record) {
                self.cache.put(&job.task.id, &result)?;
            }
            records.push(ScoreRecord::Execution(executed_record(job, record)));
        }
        for one in covered {
            if let Ok(lines) = &one.lines {
                let lines: Vec<(&SourceFile, &Lines)> = lines.iter().collect();
                let key = coverage_key(executor.key(identity, &one.method, 1, identity.path), files);
                self.cache.put_value(&job.task.id, key, &lines)?;
            }
            records.push(ScoreRecord::Coverage(coverage_record(job, one, false)));
        }
        Ok(())
    }

    /// Returns the records of a method if all its repeats are cached.
    fn kept(
        &self,
        executor: &Executor,
        identity: &CellIdentity<'_>,
        job: &Job<'_>,
        method: &MethodId,
    ) -> std::io::Result<Option<Vec<ExecutionRecord>>> {
        let mut kept = Vec::new();
        for repeat in 1..=self.repeats {
            let key = executor.key(identity, method, repeat, identity.path);
            let Some(result) = self.cache.get(key)? else { return Ok(None) };
            kept.push(ExecutionRecord {
                schema: SCORE_SCHEMA,
                model: job.model.to_owned(),
                task_id: job.task.id.clone(),
                repository: job.task.repository.clone(),
                track: job.task.track,
                code: job.code,
                method: method.clone(),
                repeat,
                outcome: result.outcome,
                detail: result.detail,
                attributed: result.attributed,
                missing: Vec::new(),
                attempts: result.attempts,
                key: Some(key),
                cached: true,
                measured: result.measured,
            });
        }
        Ok(Some(kept))
    }
}

/// What decides controls beside the launch.
#[derive(Clone, Copy)]
pub(super) struct ControlledBy<'a> {
    /// Source files whose coverage is measured.
    pub(super) files: &'a [SourceFile],
    /// Lines to mutate.
    pub(super) lines: &'a LinesToMutate,
    /// Focal methods.
    pub(super) extents: &'a Extents,
    /// The revision of old code whose bodies these get; `None` without any.
    pub(super) old: Option<&'a RevisionInput>,
    /// The seed that the caller of the run chose.
    pub(super) chosen_seed: Option<u64>,
}

impl ControlledBy<'_> {
    /// Returns the key of a method's controls.
    fn key(&self, launch: Digest, job: &Job<'_>, method: &MethodId) -> Digest {
        let measured = (self.files, job.focal.own(method), self.lines, job.focal.mutated(method));
        let extents = self.extents.get(method).map_or(&[][..], Vec::as_slice);
        control_key(launch, (extents, &job.focal.files()), self.old, &measured, self.chosen_seed)
    }
}

/// The focal methods of each test method.
pub(super) type Extents = BTreeMap<MethodId, Vec<FocalExtent>>;

/// The cached results of a method's controls.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct KnownControls {
    controls: Vec<Controlled>,
    emptied: Option<EmptiedRecord>,
    findings: Vec<Finding>,
}

impl KnownControls {
    /// Returns the fault of ours that ended a launch.
    fn fault(&self) -> Option<String> {
        let controls = self.controls.iter().map(|one| (one.outcome, one.not_applicable.as_deref()));
        let mut outcomes = controls.chain(self.emptied.iter().map(|emptied| (Some(emptied.outcome), None)));
        let is_fault = |(outcome, _): &(Option<Outcome>, _)| matches!(outcome, Some(Outcome::InfraFail(_)));
        let (fault, cause) = outcomes.find(is_fault)?;
        let cause = cause.unwrap_or("a fault of the infrastructure ended a launch under a control");
        Some(format!("{}: {cause}", fault?))
    }
}

/// Returns the record of a method's controls; without results, of the reason and whether another try may help.
pub(super) fn controls_record(
    job: &Job<'_>,
    method: MethodId,
    result: Result<KnownControls, (String, bool)>,
    cached: bool,
) -> ControlsRecord {
    let (known, cause) = match result {
        Ok(known) => (known, None),
        Err(cause) => (KnownControls { controls: Vec::new(), emptied: None, findings: Vec::new() }, Some(cause)),
    };
    ControlsRecord {
        schema: SCORE_SCHEMA,
        model: job.model.to_owned(),
        task_id: job.task.id.clone(),
        method,
        controls: known.controls,
        emptied: known.emptied,
        findings: known.findings,
        lost: cause.as_ref().is_some_and(|(_, may_pass)| *may_pass),
        cause: cause.map(|(cause, _)| shortened(&cause)),
        cached,
        isolation_missing: job.isolation_missing.to_vec(),
    }
}

pub(super) fn coverage_record(job: &Job<'_>, measured: MethodCoverage, cached: bool) -> CoverageRecord {
    let lost = measured.lines.is_err() && measured.may_pass;
    let (focal, own, cause) = match measured.lines {
        Ok(lines) => {
            let own = own_coverage(job.focal.own(&measured.method), &lines);
            (focal_coverage(&job.focal.lines, &lines), own, None)
        }
        Err(cause) => (Vec::new(), Vec::new(), Some(shortened(&cause))),
    };
    CoverageRecord {
        schema: SCORE_SCHEMA,
        model: job.model.to_owned(),
        task_id: job.task.id.clone(),
        method: measured.method,
        coverage: coverage(&own),
        coverage_range: coverage_range(&own),
        own: Some(own),
        focal,
        cause,
        lost,
        cached,
        isolation_missing: job.isolation_missing.to_vec(),
    }
}

/// Lines to mutate, by file.
pub(super) type LinesToMutate = BTreeMap<String, Vec<usize>>;

pub(super) fn mutation_records(
    job: &Job<'_>,
    method: &MethodId,
    result: Result<Mutated, NoAnswer>,
    cached: bool,
) -> Vec<ScoreRecord> {
    let may_pass = result.as_ref().is_err_and(NoAnswer::may_pass);
    let (sets, mutants, unmutated, cause) = match result {
        Ok(mutated) => (mutated.sets, mutated.mutants, mutated.unmutated, None),
        Err(reason) => (Vec::new(), Vec::new(), None, Some(shortened(&reason.cause))),
    };
    let kept: usize = sets.iter().map(|set| set.kept.len()).sum();
    let elsewhere = kept.saturating_sub(mutants.len());
    let outcomes: Vec<Outcome> = mutants.iter().map(|mutant| mutant.outcome).collect();
    let kills = if cause.is_none() { Kills::of(&outcomes) } else { None };
    let lost = may_pass || (cause.is_none() && kills.is_none());
    let ended = "a fault of the infrastructure ended a launch on a mutant";
    let mutation = MutationRecord {
        schema: SCORE_SCHEMA,
        model: job.model.to_owned(),
        task_id: job.task.id.clone(),
        method: method.clone(),
        kills,
        elsewhere,
        mutation_score: kills.as_ref().and_then(Kills::score),
        mutants,
        unmutated,
        cause: cause.or_else(|| kills.is_none().then(|| ended.to_owned())),
        lost,
        cached,
        isolation_missing: job.isolation_missing.to_vec(),
    };
    let sets = MutantsRecord { schema: SCORE_SCHEMA, task_id: job.task.id.clone(), sets };
    let known = (!sets.sets.is_empty()).then_some(ScoreRecord::Mutants(sets));
    known.into_iter().chain([ScoreRecord::Mutation(mutation)]).collect()
}

fn executed_record(job: &Job<'_>, record: CellRecord) -> ExecutionRecord {
    let logs = record.measured.logs.as_ref().map(|logs| format!("{}/{logs}", model_directory(job.model)));
    ExecutionRecord {
        schema: SCORE_SCHEMA,
        model: job.model.to_owned(),
        task_id: record.task_id,
        repository: record.repository,
        track: record.track,
        code: job.code,
        method: record.method,
        repeat: record.repeat,
        outcome: record.outcome,
        detail: record.detail,
        attributed: record.attributed,
        missing: record.missing,
        attempts: record.attempts,
        key: record.key,
        cached: false,
        measured: Measured { logs, ..record.measured },
    }
}
