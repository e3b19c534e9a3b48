//! Reports of scoring runs, made from run directories alone: the same directories give the same bytes.
//!
//! [`read`] turns runs into scored tasks, [`figures`] adds them up; the formats are below.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Serialize;

use crate::execution::run_directory::{RunDescription, RunDirectoryError};
use crate::execution::runs::{RunState, StoredRun, describe, read_at};
use crate::execution::scoring::inputs::ScoreInputs;
use crate::execution::scoring::record::{
    CoverageRecord, ExecutionRecord, FocalRecord, MutantsRecord, MutationRecord, ScoreRecord, StartRecord,
    SubmissionRecord,
};
use crate::metrics::aggregate::{MeasuredAdequacy, MethodScore, TaskScore, TrackFigures, success_rates, track_figures};
use crate::metrics::bootstrap::paired;
use crate::metrics::category::{Integrity, Verdict, judge};
use crate::metrics::mutation::MutantSet;
use crate::outcome::Outcome;
use crate::submission::GOLD;
use crate::submission::predictions::UnknownTask;
use crate::task::{MethodId, Side, Task, TaskId, Track};

pub mod formats;
pub mod verdicts;

/// Version of the report's schema.
pub const REPORT_SCHEMA: u32 = 1;

/// The subcommand whose runs are reported here.
pub const COMMAND: &str = "score";

/// Why runs can't be reported.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A run can't be read.
    #[error(transparent)]
    RunDirectory(#[from] RunDirectoryError),
    /// It is the run of another subcommand.
    #[error("the run `{run_id}` is one of `{command}`, and has no scores")]
    OtherCommand {
        /// The run.
        run_id: String,
        /// Its subcommand.
        command: String,
    },
    /// The run has lost its inputs.
    #[error("the run `{0}` has no inputs.json")]
    NoInputs(String),
}

/// One model in one run.
#[derive(Clone, Debug)]
pub struct ScoredModel {
    /// The run.
    pub run_id: String,
    /// The run's directory.
    pub path: PathBuf,
    /// The model.
    pub model: String,
    /// Whether the run came to its end, every method could be judged, and no measurement was lost.
    pub complete: bool,
    /// The selected tasks, sorted by id.
    pub tasks: Vec<ScoredTask>,
    /// Selected tasks that the model has nothing for.
    pub missing: Vec<TaskId>,
    /// Predictions for tasks that are not known.
    pub unknown: Vec<UnknownTask>,
}

/// One task of a model.
#[derive(Clone, Debug)]
pub struct ScoredTask {
    /// The task as it was imported then.
    pub task: Task,
    /// Java development kit.
    pub jdk: u32,
    /// Where its focal methods are; `None` where that was not looked for.
    pub focal: Option<FocalRecord>,
    /// What the submission came to; `None` where it could not be resolved.
    pub submission: Option<SubmissionRecord>,
    /// Whether its starting file compiles; `None` where that was not looked at, as for update tasks.
    pub start: Option<StartRecord>,
    /// Its mutants; empty where there are none.
    pub mutants: Vec<MutantSet>,
    /// Which values were measured.
    pub measured: MeasuredAdequacy,
    /// Its target methods, in published order.
    pub methods: Vec<ScoredMethod>,
}

/// One target method of a task.
#[derive(Clone, Debug)]
pub struct ScoredMethod {
    /// The method.
    pub method: MethodId,
    /// What it comes to.
    pub verdict: Verdict,
    /// Its launches on new code, by repeat.
    pub new: Vec<ExecutionRecord>,
    /// Its launches on old code, by repeat.
    pub old: Vec<ExecutionRecord>,
    /// What it covered, where it passed on new code.
    pub coverage: Option<CoverageRecord>,
    /// What it did to the mutants, where it passed on new code.
    pub mutation: Option<MutationRecord>,
    /// Values for the figures.
    pub score: MethodScore,
}

/// Reads scoring runs from their directories.
///
/// # Errors
/// [`ReportError`].
pub fn read(paths: &[PathBuf]) -> Result<Vec<ScoredModel>, ReportError> {
    let mut models = Vec::new();
    for path in paths {
        let RunDescription { run_id, command, .. } = describe(path)?;
        if command != COMMAND {
            return Err(ReportError::OtherCommand { run_id, command });
        }
        models.extend(scored_models(read_at(path.clone())?)?);
    }
    Ok(models)
}

/// Returns what each model of a run came to.
///
/// # Errors
/// [`ReportError::NoInputs`].
pub fn scored_models(run: StoredRun<ScoreInputs, ScoreRecord>) -> Result<Vec<ScoredModel>, ReportError> {
    let run_id = run.description.run_id;
    let inputs = run.inputs.ok_or_else(|| ReportError::NoInputs(run_id.clone()))?;
    let mut submissions: BTreeMap<(String, TaskId), SubmissionRecord> = BTreeMap::new();
    let mut executions: BTreeMap<(String, TaskId), Vec<ExecutionRecord>> = BTreeMap::new();
    let mut focal: BTreeMap<TaskId, FocalRecord> = BTreeMap::new();
    let mut covered: BTreeMap<(String, TaskId, MethodId), CoverageRecord> = BTreeMap::new();
    let mut mutants: BTreeMap<TaskId, MutantsRecord> = BTreeMap::new();
    let mut starts: BTreeMap<TaskId, StartRecord> = BTreeMap::new();
    let mut mutated: BTreeMap<(String, TaskId, MethodId), MutationRecord> = BTreeMap::new();
    for record in run.records {
        match record {
            ScoreRecord::Start(record) => {
                starts.insert(record.task_id.clone(), record);
            }
            ScoreRecord::Mutants(record) => {
                mutants.insert(record.task_id.clone(), record);
            }
            ScoreRecord::Mutation(record) => {
                mutated.insert((record.model.clone(), record.task_id.clone(), record.method.clone()), record);
            }
            ScoreRecord::Focal(record) => {
                focal.insert(record.task_id.clone(), record);
            }
            ScoreRecord::Coverage(record) => {
                covered.insert((record.model.clone(), record.task_id.clone(), record.method.clone()), record);
            }
            ScoreRecord::Submission(record) => {
                submissions.insert((record.model.clone(), record.task_id.clone()), record);
            }
            ScoreRecord::Execution(record) => {
                executions.entry((record.model.clone(), record.task_id.clone())).or_default().push(record);
            }
        }
    }
    let measured_against: BTreeSet<TaskId> =
        submissions.keys().filter(|(model, _)| model == GOLD).map(|(_, task)| task.clone()).collect();
    let faults = executions.iter().filter(|((model, _), _)| model == GOLD).filter(|(_, records)| {
        records.iter().any(|one| one.code == Side::New && matches!(one.outcome, Outcome::InfraFail(_)))
    });
    // Where the developers' test could not be judged, nothing that it is compared with is known.
    let gold_faults: BTreeSet<TaskId> = faults.map(|((_, task), _)| task.clone()).collect();
    let mut models = Vec::new();
    for (model, handed_in) in inputs.models {
        let mut tasks = Vec::new();
        let mut whole = true;
        for task in &inputs.run.tasks {
            let key = (model.clone(), task.id.clone());
            let mut methods = scored_methods(task, executions.remove(&key).unwrap_or_default());
            for method in &mut methods {
                let of = |model: &str| covered.get(&(model.to_owned(), task.id.clone(), method.method.clone()));
                method.coverage = of(&model).cloned();
                method.score.coverage_pred = method.coverage.as_ref().and_then(|record| record.coverage);
                method.score.coverage_gold = of(GOLD).and_then(|record| record.coverage);
                let of = |model: &str| mutated.get(&(model.to_owned(), task.id.clone(), method.method.clone()));
                method.mutation = of(&model).cloned();
                method.score.mutation_gold = of(GOLD).and_then(|record| record.mutation_score);
                // Without gold's counts nothing is known of the mutants themselves.
                method.score.mutation_pred = method
                    .mutation
                    .as_ref()
                    .and_then(|record| record.mutation_score)
                    .filter(|_| method.score.mutation_gold.is_some());
            }
            let lost = |model: &str| {
                let of = |method: &MethodId| (model.to_owned(), task.id.clone(), method.clone());
                let any = |lost: &dyn Fn(&MethodId) -> bool| task.test_methods.iter().any(lost);
                (
                    any(&|method| covered.get(&of(method)).is_some_and(|record| record.lost)),
                    any(&|method| mutated.get(&of(method)).is_some_and(|record| record.lost)),
                )
            };
            let focal = focal.get(&task.id).cloned();
            // The developers' test is run only where some model handed something in for the repository.
            let gold_ran = model == GOLD || measured_against.contains(&task.id);
            let (pred_lost, gold_lost) = (lost(&model), lost(GOLD));
            let gold_fault = gold_faults.contains(&task.id);
            let gold_lost = (gold_lost.0 || gold_fault, gold_lost.1 || gold_fault);
            let (coverage, mutation) = (inputs.coverage && focal.is_some(), inputs.mutation && focal.is_some());
            let measured = MeasuredAdequacy {
                coverage_pred: coverage && !pred_lost.0,
                coverage_gold: coverage && gold_ran && !gold_lost.0,
                mutation_pred: mutation && gold_ran && !pred_lost.1 && !gold_lost.1,
                mutation_gold: mutation && gold_ran && !gold_lost.1,
            };
            whole &= focal.is_some() || !(inputs.coverage || inputs.mutation);
            whole &= ![pred_lost.0, pred_lost.1, gold_lost.0, gold_lost.1].contains(&true);
            tasks.push(ScoredTask {
                jdk: inputs.jdks.get(&task.repository).copied().unwrap_or_default(),
                focal: focal.filter(|_| inputs.coverage || inputs.mutation),
                start: starts.get(&task.id).cloned(),
                mutants: mutants.get(&task.id).map(|record| record.sets.clone()).unwrap_or_default(),
                measured,
                submission: submissions.remove(&key),
                methods,
                task: task.clone(),
            });
        }
        tasks.sort_by(|one, other| one.task.id.cmp(&other.task.id));
        let judged = tasks.iter().flat_map(|task| &task.methods).all(|method| method.verdict.paper_verdict.is_some());
        models.push(ScoredModel {
            run_id: run_id.clone(),
            path: run.path.clone(),
            model,
            complete: judged && whole && run.state == RunState::Finished,
            tasks,
            missing: handed_in.missing,
            unknown: inputs.unknown.clone(),
        });
    }
    Ok(models)
}

fn scored_methods(task: &Task, mut records: Vec<ExecutionRecord>) -> Vec<ScoredMethod> {
    records.sort_by_key(|record| record.repeat);
    let of = |method: &MethodId, code: Side| -> Vec<ExecutionRecord> {
        records.iter().filter(|record| record.method == *method && record.code == code).cloned().collect()
    };
    let outcomes = |records: &[ExecutionRecord]| records.iter().map(|record| record.outcome).collect::<Vec<Outcome>>();
    task.test_methods
        .iter()
        .map(|method| {
            let (new, old) = (of(method, Side::New), of(method, Side::Old));
            let verdict = judge(task.track, &outcomes(&new), &outcomes(&old), Integrity::NotEvaluated);
            let score = MethodScore {
                category: verdict.paper_verdict,
                strict_success: verdict.strict_success,
                ..MethodScore::default()
            };
            ScoredMethod { method: method.clone(), verdict, new, old, coverage: None, mutation: None, score }
        })
        .collect()
}

impl ScoredModel {
    /// Returns what the figures are made of.
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
                cost_usd: scored.submission.as_ref().and_then(|submission| submission.cost_usd),
                measured: scored.measured,
            })
            .collect()
    }
}

/// The whole report, as `--format json` has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScoreReport {
    /// [`REPORT_SCHEMA`].
    pub schema: u32,
    /// A model of a run each.
    pub runs: Vec<RunFigures>,
    /// Each run beside the first one, over the tasks that both have.
    pub comparisons: Vec<Comparison>,
}

/// One model in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunFigures {
    /// The run.
    pub run_id: String,
    /// The model.
    pub model: String,
    /// Whether the run came to its end, every method could be judged, and no measurement was lost.
    pub complete: bool,
    /// Selected tasks that the model has nothing for; they count as failed.
    pub missing: Vec<TaskId>,
    /// Ids of predictions for tasks that are not known, of all models of the run.
    pub unknown: Vec<String>,
    /// The tracks that the run has tasks of.
    pub tracks: BTreeMap<Track, TrackFigures>,
}

/// The difference of two runs in success percent, over the tasks that both have scored.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Run and model of the one.
    pub run: (String, String),
    /// Run and model that it is compared with.
    pub base: (String, String),
    /// The track.
    pub track: Track,
    /// Tasks that both have scored.
    pub tasks: usize,
    /// Mean difference, percentage points.
    pub success_percent_difference: f64,
    /// Its 95 % interval by resampling tasks.
    pub interval: [f64; 2],
}

/// Adds scored models up.
pub fn figures(models: &[ScoredModel]) -> ScoreReport {
    let scores: Vec<Vec<TaskScore>> = models.iter().map(ScoredModel::task_scores).collect();
    let runs = models.iter().zip(&scores).map(|(model, scores)| run_figures(model, scores)).collect();
    let mut comparisons = Vec::new();
    for (model, score) in models.iter().zip(&scores).skip(1) {
        comparisons.extend(
            [Track::TestUpdate, Track::TestGeneration]
                .into_iter()
                .filter_map(|track| compare((&models[0], &scores[0]), (model, score), track)),
        );
    }
    ScoreReport { schema: REPORT_SCHEMA, runs, comparisons }
}

fn run_figures(model: &ScoredModel, scores: &[TaskScore]) -> RunFigures {
    let mut tracks: BTreeMap<Track, Vec<&TaskScore>> = BTreeMap::new();
    for score in scores {
        tracks.entry(score.track).or_default().push(score);
    }
    RunFigures {
        run_id: model.run_id.clone(),
        model: model.model.clone(),
        complete: model.complete,
        missing: model.missing.clone(),
        unknown: model.unknown.iter().map(|unknown| unknown.id.clone()).collect(),
        tracks: tracks.into_iter().map(|(track, tasks)| (track, track_figures(&tasks))).collect(),
    }
}

fn compare(
    (base, base_scores): (&ScoredModel, &[TaskScore]),
    (model, scores): (&ScoredModel, &[TaskScore]),
    track: Track,
) -> Option<Comparison> {
    let by_task = |scores: &[TaskScore]| -> BTreeMap<TaskId, f64> {
        let of_track = scores.iter().filter(|score| score.track == track);
        of_track.filter_map(|score| Some((score.id.clone(), *success_rates(&[score]).first()?))).collect()
    };
    let (base_rates, rates) = (by_task(base_scores), by_task(scores));
    let pairs: Vec<(f64, f64)> = rates.iter().filter_map(|(id, rate)| Some((*rate, *base_rates.get(id)?))).collect();
    let (difference, interval) = paired(&pairs)?;
    let named = |model: &ScoredModel| (model.run_id.clone(), model.model.clone());
    Some(Comparison {
        run: named(model),
        base: named(base),
        track,
        tasks: pairs.len(),
        success_percent_difference: difference,
        interval,
    })
}
