//! The results of each submission of a run, method by method.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::gathered::{Gathered, OfModel, Reference, put_coverage, put_mutation};
use super::{COMMAND, Instances, KeptLogs, Period, ReportError};
use crate::digest::Digest;
use crate::execution::run::directory::{RunDescription, RunDirectoryError};
use crate::execution::run::extent::open_file;
use crate::execution::run::list::{RunState, StoredRun, describe, for_each_record, read_without_records};
use crate::execution::scoring::inputs::{ModelInputs, ScoreInputs};
use crate::execution::scoring::record::{
    ControlsRecord, CoverageRecord, ExecutionRecord, FocalRecord, MutantOutcome, MutationRecord, OwnFocalRecord,
    StartRecord, SubmissionRecord,
};
use crate::metrics::aggregate::{MeasuredAdequacy, MethodScore, TaskScore, resolved};
use crate::metrics::category::{Category, OnOldCode, Verdict, judge};
use crate::metrics::integrity::Found;
use crate::metrics::mutation::MutantSet;
use crate::outcome::Outcome;
use crate::submission::ContentKind;
use crate::submission::predictions::UnknownTask;
use crate::task::{MethodId, Side, Task, TaskId, Track};

/// One model in one run.
#[derive(Clone, Debug)]
pub struct ScoredModel {
    /// The run.
    pub run_id: String,
    /// The run's directory.
    pub path: PathBuf,
    /// The model.
    pub model: String,
    /// The model whose sample it is; `None` for a model that is none.
    pub sample_of: Option<String>,
    /// Whether the run ended.
    pub finished: bool,
    /// Whether the run ended with all its records there, every method could be judged, and no measurement was lost.
    pub complete: bool,
    /// What the run says of itself.
    pub facts: Arc<RunFacts>,
    /// Number of tasks whose measurements were lost.
    pub lost: usize,
    /// The selected tasks, sorted by id.
    pub tasks: Vec<ScoredTask>,
    /// Selected tasks without a submission.
    pub missing: Vec<TaskId>,
    /// Its predictions for unknown tasks.
    pub unknown: Vec<UnknownTask>,
    /// Counts of the selected tasks, in the words of other harnesses.
    pub instances: Instances,
    /// Predictions of all the run's models for tasks that were not selected.
    pub not_selected: usize,
    /// Repeated predictions of all the run's models.
    pub repeated: usize,
}

/// What a run says of itself, for its readers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFacts {
    /// Start of the run, RFC 3339.
    pub started: String,
    /// End of the run, RFC 3339; `None` while unfinished.
    pub finished: Option<String>,
    /// Seed of the order of executions, and of the bytes of controls and mutants.
    pub seed: u64,
    /// Launches of every method.
    pub repeats: u32,
    /// What was measured of methods that pass: coverage, mutants, controls.
    pub measured: Vec<&'static str>,
    /// Identity of the program's executions; `None` if nothing was executed, and in runs of earlier programs.
    pub identity: Option<Digest>,
    /// Protections that the engine could not give.
    pub isolation_missing: Vec<String>,
    /// How much of a finished run's records is missing, such as `12 of 40 bytes of records.jsonl`; `None` if nothing is.
    pub records_missing: Option<String>,
}

impl RunFacts {
    fn of(description: &RunDescription, inputs: &ScoreInputs, records_missing: Option<String>) -> Self {
        let tools = inputs.run.tools.as_ref();
        let asked = [("coverage", inputs.coverage), ("mutants", inputs.mutation), ("controls", inputs.controls)];
        Self {
            started: description.started.clone(),
            finished: description.finished.clone(),
            seed: inputs.seed,
            repeats: inputs.run.repeats,
            measured: asked.into_iter().filter(|(_, asked)| *asked).map(|(name, _)| name).collect(),
            identity: tools.map(|tools| tools.identity),
            isolation_missing: tools.map(|tools| tools.isolation_missing.clone()).unwrap_or_default(),
            records_missing,
        }
    }
}

/// One task of a model.
#[derive(Clone, Debug)]
pub struct ScoredTask {
    /// The task as imported at the run's start.
    pub task: Arc<Task>,
    /// Java development kit.
    pub jdk: u32,
    /// Config digest of its repository's image; `None` if the run has none.
    pub image: Option<Digest>,
    /// The places of its focal methods; `None` if they were not searched for.
    pub focal: Option<Arc<FocalRecord>>,
    /// Each test method's own focal methods; `None` if nothing was measured, and in runs of earlier programs.
    pub own: Option<Arc<OwnFocalRecord>>,
    /// The resolved submission; `None` if it could not be resolved.
    pub submission: Option<SubmissionRecord>,
    /// Whether its starting file compiles; `None` if not checked, as for update tasks.
    pub start: Option<StartRecord>,
    /// Its mutants; empty if it has none.
    pub mutants: Arc<Vec<MutantSet>>,
    /// Which values are known.
    pub measured: MeasuredAdequacy,
    /// Digest of the developers' test file; `None` if the run did not resolve it.
    pub gold_file: Option<Digest>,
    /// Whether one of its developers' tests fails on new code.
    pub gold_failed: bool,
    /// Logs of its kept results in other runs; empty unless [`find_kept_logs`](super::find_kept_logs) looked for them.
    pub kept_logs: Vec<Arc<KeptLogs>>,
    /// Its target methods, in published order.
    pub methods: Vec<ScoredMethod>,
}

/// One target method of a task.
#[derive(Clone, Debug)]
pub struct ScoredMethod {
    /// The method.
    pub method: MethodId,
    /// Its verdict.
    pub verdict: Verdict,
    /// Its launches on new code, by repeat.
    pub new: Vec<ExecutionRecord>,
    /// Its launches on old code, by repeat.
    pub old: Vec<ExecutionRecord>,
    /// Its coverage, if it passed on new code.
    pub coverage: Option<CoverageRecord>,
    /// Its results on mutants, if it passed on new code.
    pub mutation: Option<MutationRecord>,
    /// Results of the developers' method on mutants; empty if unknown.
    pub gold_mutants: Arc<Vec<MutantOutcome>>,
    /// Its results under controls, if it passed on new code.
    pub controls: Option<ControlsRecord>,
    /// Findings about it, and which of them count.
    pub found: Found,
    /// Values for the figures.
    pub score: MethodScore,
}

/// Reads scoring runs from their directories.
///
/// # Errors
/// [`ReportError`].
pub fn read(paths: &[PathBuf]) -> Result<Vec<ScoredModel>, ReportError> {
    read_of(paths, &Period::default())
}

/// Reads the tasks of a period from scoring runs.
///
/// # Errors
/// [`ReportError`].
pub fn read_of(paths: &[PathBuf], period: &Period) -> Result<Vec<ScoredModel>, ReportError> {
    let mut models = Vec::new();
    let mut known: Vec<RunDescription> = Vec::new();
    for path in paths {
        let description = describe(path)?;
        // A copy is the same run, too.
        if known.contains(&description) {
            return Err(ReportError::Twice(description.run_id));
        }
        if description.command != COMMAND {
            let (run_id, command) = (description.run_id, description.command);
            return Err(ReportError::OtherCommand { run_id, command });
        }
        let run: StoredRun<ScoreInputs, ()> = read_without_records(path.clone())?;
        let mut gathered = Gathered::default();
        for_each_record(path, |record| gathered.add(record))?;
        let missing = missing_records(path, &description)?;
        models.extend(scored_models((run, missing), gathered, period)?);
        known.push(description);
    }
    Ok(models)
}

/// Returns how much of a finished run's records is missing; `None` if nothing is.
fn missing_records(path: &Path, description: &RunDescription) -> Result<Option<String>, RunDirectoryError> {
    let finished = description.extent.filter(|_| description.finished.is_some());
    let Some(extent) = finished else { return Ok(None) };
    let there = open_file(path, Path::new("records.jsonl"))?.map_or(0, |(_, bytes)| bytes);
    let missing = extent.record_bytes.saturating_sub(there);
    Ok((missing > 0).then(|| format!("{missing} of {} bytes of records.jsonl", extent.record_bytes)))
}

fn scored_models(
    (run, records_missing): (StoredRun<ScoreInputs, ()>, Option<String>),
    mut gathered: Gathered,
    period: &Period,
) -> Result<Vec<ScoredModel>, ReportError> {
    let run_id = run.description.run_id.clone();
    let mut inputs = run.inputs.ok_or_else(|| ReportError::NoInputs(run_id.clone()))?;
    let whole = run.state == RunState::Finished && records_missing.is_none();
    let facts = Arc::new(RunFacts::of(&run.description, &inputs, records_missing));
    if !period.is_unbounded() {
        inputs.run.tasks.retain(|task| period.has(task));
        if inputs.run.tasks.is_empty() {
            return Err(ReportError::NothingLeft { run_id, period: *period });
        }
        let left: BTreeSet<&TaskId> = inputs.run.tasks.iter().map(|task| &task.id).collect();
        for handed_in in inputs.models.values_mut() {
            handed_in.missing.retain(|task| left.contains(task));
            handed_in.submissions.retain(|task, _| left.contains(task));
        }
    }
    let reference = gathered.reference();
    let mut tasks: Vec<Arc<Task>> = inputs.run.tasks.into_iter().map(Arc::new).collect();
    tasks.sort_by(|one, other| one.id.cmp(&other.id));
    // An empty submission executes nothing. A run of only such models measures nothing, and their zeros are known.
    let nothing_handed_in = inputs.models.values().all(is_nothing);
    let mut models = Vec::new();
    for (model, handed_in) in inputs.models {
        let mut records = gathered.models.remove(&model).unwrap_or_default();
        let context = Context {
            coverage: inputs.coverage,
            mutation: inputs.mutation,
            nothing_handed_in,
            gathered: &gathered,
            reference: &reference,
        };
        let mut lost = 0;
        let tasks: Vec<ScoredTask> = tasks
            .iter()
            .map(|task| {
                let jdk = inputs.jdks.get(&task.repository).copied().unwrap_or_default();
                let (scored, is_whole) = context.scored_task(task, jdk, records.remove(&task.id).unwrap_or_default());
                lost += usize::from(!is_whole);
                let image = inputs.run.images.get(&task.repository).copied();
                ScoredTask { image, ..scored }
            })
            .collect();
        let judged = tasks.iter().flat_map(|task| &task.methods).all(|method| method.verdict.paper_verdict.is_some());
        let sample_of = inputs.samples.get(&model).cloned();
        let name = sample_of.as_ref().unwrap_or(&model);
        let unknown = inputs.unknown.iter().filter(|unknown| unknown.model == *name).cloned().collect();
        models.push(ScoredModel {
            run_id: run_id.clone(),
            path: run.path.clone(),
            model,
            sample_of,
            finished: run.state == RunState::Finished,
            complete: judged && lost == 0 && whole,
            facts: Arc::clone(&facts),
            lost,
            instances: Instances::of(&handed_in.submissions, &tasks),
            tasks,
            missing: handed_in.missing,
            unknown,
            not_selected: inputs.not_selected,
            repeated: inputs.repeated,
        });
    }
    Ok(models)
}

/// Tells whether a model has no submission for any selected task.
fn is_nothing(handed_in: &ModelInputs) -> bool {
    handed_in.submissions.values().all(|submission| submission.kind == ContentKind::Nothing)
}

/// The inputs that decide a model's scores, besides its records.
struct Context<'a> {
    /// Whether coverage was measured in the run.
    coverage: bool,
    /// Whether mutants were made in the run.
    mutation: bool,
    /// Whether no model of the run has a submission.
    nothing_handed_in: bool,
    gathered: &'a Gathered,
    reference: &'a BTreeMap<TaskId, Reference>,
}

impl Context<'_> {
    /// Returns the task's results, and whether no measurement was lost.
    fn scored_task(&self, task: &Arc<Task>, jdk: u32, records: OfModel) -> (ScoredTask, bool) {
        let shared = self.gathered.tasks.get(&task.id);
        let reference = self.reference.get(&task.id);
        let pred_lost = records.lost(&task.test_methods);
        let gold_lost = reference.map(|reference| reference.lost(&task.test_methods)).unwrap_or_default();
        let own = shared.and_then(|shared| shared.own.clone());
        // Without own focal methods nothing is measured, as without focal methods.
        let own_lost = own.as_ref().is_some_and(|own| own.lost);
        let focal = shared.and_then(|shared| shared.focal.clone()).filter(|_| !own_lost);
        let lost = [pred_lost, gold_lost].map(|lost| lost.coverage || lost.mutation || lost.controls);
        let looked_for = self.coverage || self.mutation;
        let whole = (focal.is_some() || !looked_for) && !lost.contains(&true);
        let mut methods = scored_methods(task, &records, reference);
        let OfModel { submission, executions: _, mut coverage, mut mutation, mut controls } = records;
        let passed = methods.iter().any(|method| method.verdict.paper_verdict.is_some_and(Category::passed_on_new));
        // The developers' test runs only if some model has a submission for the repository.
        let gold_ran = reference.is_some_and(|reference| reference.ran(&task.test_methods));
        let gold_known = |lost: bool| focal.is_some() && gold_ran && !lost;
        let (coverage_gold, mutation_gold) = (gold_known(gold_lost.coverage), gold_known(gold_lost.mutation));
        let [coverage_wanted, mutation_wanted] =
            [self.coverage, self.mutation].map(|measured| measured || self.nothing_handed_in);
        let measured = MeasuredAdequacy {
            // Without a passing method every method counts as 0, and no measurement could be lost.
            coverage_pred: coverage_wanted && (!passed || (focal.is_some() && !pred_lost.coverage)),
            coverage_gold: self.coverage && coverage_gold,
            mutation_pred: mutation_wanted && (!passed || (mutation_gold && !pred_lost.mutation)),
            mutation_gold: self.mutation && mutation_gold,
            gold_incomplete: (coverage_wanted && !coverage_gold) || (mutation_wanted && !mutation_gold),
        };
        for scored in &mut methods {
            let gold =
                reference.and_then(|reference| reference.methods.get(&scored.method)).copied().unwrap_or_default();
            scored.coverage = take(&mut coverage, |record| record.method == scored.method);
            scored.mutation = take(&mut mutation, |record| record.method == scored.method);
            scored.controls = take(&mut controls, |record| record.method == scored.method);
            scored.score.gold = gold;
            if let Some(record) = &scored.coverage {
                put_coverage(&mut scored.score.pred, record);
            }
            // Without gold's counts the mutants themselves are unknown.
            if let (Some(record), Some(_)) = (&scored.mutation, gold.mutation) {
                put_mutation(&mut scored.score.pred, record);
            }
            let (found, pred) = (&scored.found, &mut scored.score.pred);
            pred.clean_coverage = pred.coverage.filter(|_| !found.spoils_coverage());
            // Nobody is to blame, but such a test would kill without a mutation as well.
            let resembles =
                scored.mutation.as_ref().and_then(|record| record.unmutated).is_some_and(|on| on != Outcome::Pass);
            pred.clean_mutation = pred.mutation.filter(|_| !found.spoils_kills() && !resembles);
        }
        let task = ScoredTask {
            task: Arc::clone(task),
            jdk,
            image: None,
            focal: focal.filter(|_| looked_for),
            own: own.filter(|own| looked_for && !own.lost),
            submission,
            start: shared.and_then(|shared| shared.start.clone()),
            mutants: shared.map(|shared| Arc::clone(&shared.mutants)).unwrap_or_default(),
            measured,
            gold_file: reference.and_then(|reference| reference.file),
            gold_failed: reference.is_some_and(|reference| reference.failed),
            kept_logs: Vec::new(),
            methods,
        };
        (task, whole)
    }
}

fn take<T>(records: &mut Vec<T>, wanted: impl Fn(&T) -> bool) -> Option<T> {
    records.iter().position(wanted).map(|at| records.swap_remove(at))
}

fn scored_methods(task: &Task, of_model: &OfModel, reference: Option<&Reference>) -> Vec<ScoredMethod> {
    let mut records = of_model.executions.clone();
    records.sort_by_key(|record| record.repeat);
    let outcomes = |records: &[ExecutionRecord]| records.iter().map(|record| record.outcome).collect::<Vec<Outcome>>();
    let on_old_code = |records: &[ExecutionRecord]| -> Vec<OnOldCode> {
        let launches = records.iter();
        launches.map(|one| OnOldCode { outcome: one.outcome, attributed: one.attributed }).collect()
    };
    task.test_methods
        .iter()
        .map(|method| {
            let [new, old] = [Side::New, Side::Old].map(|code| -> Vec<ExecutionRecord> {
                records.extract_if(.., |record| record.method == *method && record.code == code).collect()
            });
            let evidence = of_model.evidence(method);
            let gold = reference.and_then(|reference| reference.found.get(method));
            let known = reference.and_then(|reference| reference.findings.get(method));
            // A mention in the developers' test excuses no mention of another kind.
            let gold = gold.zip(known).map(|(gold, known)| gold - &evidence.beyond(known));
            let found = Found::of(evidence.of_submission(&on_old_code(&old)), gold.as_ref());
            let integrity = found.integrity(evidence.is_conclusive() && gold.is_some());
            let verdict = Verdict {
                reasons: found.reasons.iter().copied().collect(),
                off: found.off.iter().copied().collect(),
                ..judge(task.track, &outcomes(&new), &on_old_code(&old), integrity)
            };
            let score = MethodScore {
                category: verdict.paper_verdict,
                strict_success: verdict.strict_success,
                integrity,
                ..MethodScore::default()
            };
            ScoredMethod {
                method: method.clone(),
                verdict,
                new,
                old,
                coverage: None,
                mutation: None,
                gold_mutants: reference.and_then(|one| one.mutants.get(method)).cloned().unwrap_or_default(),
                controls: None,
                found,
                score,
            }
        })
        .collect()
}

impl ScoredMethod {
    /// Returns the reason, in one line, for which the method has no verdict.
    pub fn unscored_reason(&self, track: Track, finished: bool) -> String {
        let fault = self.new.iter().chain(&self.old).find(|record| matches!(record.outcome, Outcome::InfraFail(_)));
        if let Some(record) = fault {
            return match record.detail.lines().next() {
                Some(detail) => detail.to_owned(),
                None => record.outcome.to_string(),
            };
        }
        let missing = match (self.new.is_empty(), self.old.is_empty()) {
            (true, _) => "not executed on new code",
            (false, true) if track == Track::TestGeneration => "not executed on old code",
            (false, _) => "not executed in every repeat",
        };
        if finished { missing.to_owned() } else { format!("{missing} yet: the run is not finished") }
    }
}

impl ScoredTask {
    /// Tells whether every target method is a success; `None` if that depends on a method that could not be judged.
    pub fn is_resolved(&self) -> Option<bool> {
        resolved(self.methods.iter().map(|method| method.verdict.paper_verdict))
    }
}

impl ScoredModel {
    /// Returns the tasks of a track.
    pub fn tasks_of(&self, track: Track) -> BTreeSet<&TaskId> {
        self.tasks.iter().filter(|scored| scored.task.track == track).map(|scored| &scored.task.id).collect()
    }

    /// Tells whether a task's submission came to a test file; `None` if it was handed in and the run has no result for it.
    fn is_well_formed(&self, scored: &ScoredTask) -> Option<bool> {
        // All lists of ids are sorted.
        let is = |ids: &[TaskId]| ids.binary_search(&scored.task.id).is_ok();
        let found = &self.instances;
        let is_open = scored.submission.is_none() && is(&found.submitted_ids) && !is(&found.empty_patch_ids);
        (!is_open).then(|| is(&found.well_formed_ids))
    }

    /// Returns the scores that the figures aggregate.
    pub fn task_scores(&self) -> Vec<TaskScore> {
        self.tasks
            .iter()
            .map(|scored| TaskScore {
                id: scored.task.id.clone(),
                repository: scored.task.repository.clone(),
                track: scored.task.track,
                date: scored.task.rev2_date.clone(),
                jdk: scored.jdk,
                methods: scored.methods.iter().map(|method| method.score).collect(),
                // For an unresolved submission only this is known.
                handed_in: scored.submission.as_ref().is_none_or(|submission| submission.kind != ContentKind::Nothing),
                well_formed: self.is_well_formed(scored),
                cost_usd: scored.submission.as_ref().and_then(|submission| submission.cost_usd),
                tokens: scored.submission.as_ref().and_then(|submission| submission.tokens),
                measured: scored.measured,
            })
            .collect()
    }
}
