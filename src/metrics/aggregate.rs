//! Aggregates methods to tasks to tracks: rates, the eight leaderboard fields, values on passing methods, segments,
//! cost caps. Source: protocol §4.
//!
//! Every task has the same weight. `None` means not measured or not defined, never zero.

use std::collections::BTreeMap;

use serde::Serialize;

pub use self::caps::{COST_CAPS, CostCap};
use super::bootstrap::{clustered_interval, interval};
use super::category::Category;
use super::integrity::Integrity;
use crate::task::{RepositoryName, TaskId, Track};

mod caps;
#[cfg(test)]
mod tests;

/// Segments with fewer methods are marked, because their figures are unreliable.
const FEW_METHODS: usize = 20;

/// The scores of one method of a submission.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MethodScore {
    /// The paper's category; `None` leaves the method unscored.
    pub category: Option<Category>,
    /// The stricter view.
    pub strict_success: bool,
    /// Whether the test is what it seems to be.
    pub integrity: Integrity,
    /// The submission's coverage and mutation score.
    pub pred: Adequacy,
    /// The developers' coverage and mutation score.
    pub gold: Adequacy,
}

/// A method's coverage and mutation score; `None` for a value that it lacks, for instance because it did not pass.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Adequacy {
    /// Focal line coverage over executable lines, percent.
    pub coverage: Option<f64>,
    /// Focal line coverage over all lines of the methods, percent.
    pub coverage_range: Option<f64>,
    /// Mutation score, in [0, 1].
    pub mutation: Option<f64>,
    /// Mutation score that counts assertions and exceptions only, in [0, 1].
    pub mutation_strict: Option<f64>,
    /// `coverage`, unless a check shows that it does not come from calls of focal code.
    pub clean_coverage: Option<f64>,
    /// `mutation`, unless a check shows that kills do not come from the mutants' behaviour.
    pub clean_mutation: Option<f64>,
}

/// The scores of one task of a submission.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskScore {
    /// The task.
    pub id: TaskId,
    /// Its repository.
    pub repository: RepositoryName,
    /// Its track.
    pub track: Track,
    /// Date of the new revision, `YYYY-MM-DD`.
    pub date: String,
    /// Java development kit.
    pub jdk: u32,
    /// Its target methods.
    pub methods: Vec<MethodScore>,
    /// Whether there is a submission for the task.
    pub handed_in: bool,
    /// Whether the submission came to a test file; `None` if the run has no result for it.
    pub well_formed: Option<bool>,
    /// Cost of the submission, in US dollars.
    pub cost_usd: Option<f64>,
    /// Tokens that the submission took, if known.
    pub tokens: Option<u64>,
    /// Which values are known. A wide mean with an unknown value is `None`, not 0.
    pub measured: MeasuredAdequacy,
}

/// Which values of a task are known. A submission without a passing method has the known value 0, without a
/// measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeasuredAdequacy {
    /// Coverage of the submission.
    pub coverage_pred: bool,
    /// Coverage of the developers' test.
    pub coverage_gold: bool,
    /// Mutation score of the submission.
    pub mutation_pred: bool,
    /// Mutation score of the developers' test.
    pub mutation_gold: bool,
    /// Whether a value of the developers' test that the run asks for is unknown.
    pub gold_incomplete: bool,
}

/// Figures of a track or of a part of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Figures {
    /// Tasks.
    pub tasks: usize,
    /// Target methods, unscored ones included.
    pub methods: usize,
    /// Methods that could not be judged; they leave numerators and denominators.
    pub unscored: usize,
    /// Tasks with an unknown value of the developers' tests; no mean of that value includes them.
    pub gold_incomplete: usize,
    /// Fewer than twenty methods.
    pub few_methods: bool,
    /// Mean over tasks of the share of methods in the category, percent; likewise below.
    pub success_percent: Option<f64>,
    /// 95 % interval of `success_percent`, by resampling tasks.
    pub success_percent_interval: Option<[f64; 2]>,
    /// 95 % interval of `success_percent`, by resampling repositories and their tasks; `None` for one repository.
    pub success_percent_interval_repositories: Option<[f64; 2]>,
    /// See [`Category::Redundant`].
    pub redundant_percent: Option<f64>,
    /// See [`Category::ExecFail`].
    pub exec_fail_percent: Option<f64>,
    /// See [`Category::CmplFail`].
    pub cmpl_fail_percent: Option<f64>,
    /// See [`Category::HrnsFail`].
    pub hrns_fail_percent: Option<f64>,
    /// See [`super::category::Verdict::strict_success`].
    pub strict_success_percent: Option<f64>,
    /// Success of tests without any finding; `None` if passing tests were not checked.
    pub clean_success_percent: Option<f64>,
    /// Share of suspect methods.
    pub suspect_percent: Option<f64>,
    /// Share of methods with proof of tampering.
    pub tampered_percent: Option<f64>,
    /// Share of resolved tasks among those that could be judged, percent. Every target method of a resolved task is a
    /// [`Category::Success`].
    pub resolved_percent: Option<f64>,
    /// Share of tasks with a result whose submission came to a test file, percent. SWT-Bench calls it well-formedness.
    pub well_formed_percent: Option<f64>,
    /// Wide mean of coverage without doubts. Percent.
    pub clean_coverage_pred: Option<f64>,
    /// Wide mean of mutation scores without doubts, in [0, 1].
    pub clean_mutation_score_pred: Option<f64>,
    /// Wide: methods without a value count as 0. Percent.
    pub avg_coverage_pred: Option<f64>,
    /// Narrow: over methods with a value. Percent.
    pub avg_coverage_pred_success: Option<f64>,
    /// Wide, of the developers' tests. Percent.
    pub avg_coverage_gold: Option<f64>,
    /// Narrow, of the developers' tests. Percent.
    pub avg_coverage_gold_success: Option<f64>,
    /// Wide, over all lines of the focal methods instead of the executable ones. Percent.
    pub avg_coverage_range_pred: Option<f64>,
    /// Narrow, likewise.
    pub avg_coverage_range_pred_success: Option<f64>,
    /// Wide, of the developers' tests, likewise.
    pub avg_coverage_range_gold: Option<f64>,
    /// Narrow, of the developers' tests, likewise.
    pub avg_coverage_range_gold_success: Option<f64>,
    /// Wide, in [0, 1].
    pub avg_mutation_score_pred: Option<f64>,
    /// Narrow, in [0, 1].
    pub avg_mutation_score_pred_success: Option<f64>,
    /// Wide, of the developers' tests, in [0, 1].
    pub avg_mutation_score_gold: Option<f64>,
    /// Narrow, of the developers' tests, in [0, 1].
    pub avg_mutation_score_gold_success: Option<f64>,
    /// Wide mean of mutation scores where only assertions and exceptions kill, in [0, 1].
    pub avg_mutation_score_strict_pred: Option<f64>,
    /// Narrow, likewise.
    pub avg_mutation_score_strict_pred_success: Option<f64>,
    /// Wide, of the developers' tests, likewise.
    pub avg_mutation_score_strict_gold: Option<f64>,
    /// Narrow, of the developers' tests, likewise.
    pub avg_mutation_score_strict_gold_success: Option<f64>,
    /// Coverage of methods that passed on new code and have a value, percent.
    pub cov_on_pass: Option<f64>,
    /// The developers' value on these methods, without methods that lack it.
    pub cov_on_pass_human: Option<f64>,
    /// The difference of the two over methods that have both values.
    pub cov_on_pass_delta: Option<f64>,
    /// Mutation score of methods that passed on new code and have a value, in [0, 1].
    pub mut_on_pass: Option<f64>,
    /// The developers' value on these methods, without methods that lack it.
    pub mut_on_pass_human: Option<f64>,
    /// The difference of the two over methods that have both values.
    pub mut_on_pass_delta: Option<f64>,
    /// Views in which submissions above a cost count as failed; empty without known costs.
    pub cost_caps: Vec<CostCap>,
    /// Costs that one tenth, two tenths and so on to all of the tasks with a known cost do not exceed, in US dollars; empty
    /// without known costs.
    pub cost_deciles_usd: Vec<f64>,
}

/// A track with its parts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrackFigures {
    /// Of all tasks.
    #[serde(flatten)]
    pub all: Figures,
    /// By half-year of the new revision; `Older` is before 2015.
    pub by_segment: BTreeMap<String, Figures>,
    /// By repository.
    pub by_repository: BTreeMap<String, Figures>,
    /// By Java development kit.
    pub by_jdk: BTreeMap<String, Figures>,
}

/// Returns the figures of one track's tasks.
pub fn track_figures(tasks: &[&TaskScore]) -> TrackFigures {
    let by = |key: fn(&TaskScore) -> String| {
        let mut groups: BTreeMap<String, Vec<&TaskScore>> = BTreeMap::new();
        for task in tasks {
            groups.entry(key(task)).or_default().push(task);
        }
        groups.into_iter().map(|(key, tasks)| (key, figures(&tasks))).collect()
    };
    TrackFigures {
        all: figures(tasks),
        by_segment: by(|task| segment(&task.date)),
        by_repository: by(|task| task.repository.to_string()),
        by_jdk: by(|task| task.jdk.to_string()),
    }
}

/// Returns the half-year of a date `YYYY-MM-DD`.
pub fn segment(date: &str) -> String {
    let year: Option<u32> = date.get(..4).and_then(|year| year.parse().ok());
    let month: Option<u32> = date.get(5..7).and_then(|month| month.parse().ok());
    match (year, month) {
        (Some(year), Some(month)) if year >= 2015 => format!("{year}-H{}", if month <= 6 { 1 } else { 2 }),
        _ => "Older".to_owned(),
    }
}

impl Figures {
    /// Returns the mean over tasks of the share of methods in the category, percent.
    pub fn percent_of(&self, category: Category) -> Option<f64> {
        match category {
            Category::Success => self.success_percent,
            Category::Redundant => self.redundant_percent,
            Category::ExecFail => self.exec_fail_percent,
            Category::CmplFail => self.cmpl_fail_percent,
            Category::HrnsFail => self.hrns_fail_percent,
        }
    }
}

fn figures(tasks: &[&TaskScore]) -> Figures {
    let methods: usize = tasks.iter().map(|task| task.methods.len()).sum();
    let judged: usize = tasks.iter().map(|task| scored(task).count()).sum();
    let rate = |fits: &dyn Fn(&MethodScore) -> bool| mean(tasks.iter().map(|task| rate_of(task, fits)));
    let percent = |category| rate(&|method| method.category == Some(category));
    let [coverage_pred, range_pred] = [COVERAGE, COVERAGE_RANGE]
        .map(|value| means(tasks, |method| value(&method.pred), |measured| measured.coverage_pred));
    let [coverage_gold, range_gold] = [COVERAGE, COVERAGE_RANGE]
        .map(|value| means(tasks, |method| value(&method.gold), |measured| measured.coverage_gold));
    let [mutation_pred, strict_pred] = [MUTATION, MUTATION_STRICT]
        .map(|value| means(tasks, |method| value(&method.pred), |measured| measured.mutation_pred));
    let [mutation_gold, strict_gold] = [MUTATION, MUTATION_STRICT]
        .map(|value| means(tasks, |method| value(&method.gold), |measured| measured.mutation_gold));
    let clean_coverage = means(tasks, |method| method.pred.clean_coverage, |measured| measured.coverage_pred);
    let clean_mutation = means(tasks, |method| method.pred.clean_mutation, |measured| measured.mutation_pred);
    let evaluated = evaluated(tasks);
    let (coverage, mutation) = (on_pass(tasks, Measure::Coverage), on_pass(tasks, Measure::Mutation));
    Figures {
        tasks: tasks.len(),
        methods,
        unscored: methods - judged,
        gold_incomplete: tasks.iter().filter(|task| task.measured.gold_incomplete).count(),
        few_methods: methods < FEW_METHODS,
        success_percent: percent(Category::Success),
        success_percent_interval: interval(&success_rates(tasks)),
        success_percent_interval_repositories: {
            let mut rates: BTreeMap<&RepositoryName, Vec<f64>> = BTreeMap::new();
            for task in tasks {
                rates.entry(&task.repository).or_default().extend(success_rates(&[task]));
            }
            clustered_interval(rates.values().map(Vec::as_slice))
        },
        redundant_percent: percent(Category::Redundant),
        exec_fail_percent: percent(Category::ExecFail),
        cmpl_fail_percent: percent(Category::CmplFail),
        hrns_fail_percent: percent(Category::HrnsFail),
        strict_success_percent: rate(&|method| method.strict_success),
        clean_success_percent: evaluated
            .then(|| rate(&|method| method.category == Some(Category::Success) && method.integrity == Integrity::Clean))
            .flatten(),
        suspect_percent: evaluated.then(|| rate(&|method| method.integrity == Integrity::Suspect)).flatten(),
        tampered_percent: rate(&|method| method.integrity == Integrity::Tampered),
        resolved_percent: share(tasks, |task| resolved(task.methods.iter().map(|method| method.category))),
        well_formed_percent: share(tasks, |task| task.well_formed),
        clean_coverage_pred: clean_coverage.wide.filter(|_| evaluated),
        clean_mutation_score_pred: clean_mutation.wide.filter(|_| evaluated),
        avg_coverage_pred: coverage_pred.wide,
        avg_coverage_pred_success: coverage_pred.narrow,
        avg_coverage_gold: coverage_gold.wide,
        avg_coverage_gold_success: coverage_gold.narrow,
        avg_coverage_range_pred: range_pred.wide,
        avg_coverage_range_pred_success: range_pred.narrow,
        avg_coverage_range_gold: range_gold.wide,
        avg_coverage_range_gold_success: range_gold.narrow,
        avg_mutation_score_pred: mutation_pred.wide,
        avg_mutation_score_pred_success: mutation_pred.narrow,
        avg_mutation_score_gold: mutation_gold.wide,
        avg_mutation_score_gold_success: mutation_gold.narrow,
        avg_mutation_score_strict_pred: strict_pred.wide,
        avg_mutation_score_strict_pred_success: strict_pred.narrow,
        avg_mutation_score_strict_gold: strict_gold.wide,
        avg_mutation_score_strict_gold_success: strict_gold.narrow,
        cov_on_pass: coverage.pred,
        cov_on_pass_human: coverage.human,
        cov_on_pass_delta: coverage.delta,
        mut_on_pass: mutation.pred,
        mut_on_pass_human: mutation.human,
        mut_on_pass_delta: mutation.delta,
        cost_caps: caps::cost_caps(tasks),
        cost_deciles_usd: caps::cost_deciles(tasks),
    }
}

/// Tells whether controls were launched for a passing method, or no method passes.
fn evaluated(tasks: &[&TaskScore]) -> bool {
    let passes = |method: &&MethodScore| method.category.is_some_and(Category::passed_on_new);
    let mut passing = tasks.iter().flat_map(|task| scored(task)).filter(passes).peekable();
    passing.peek().is_none() || passing.any(|method| method.integrity > Integrity::NotEvaluated)
}

/// A value of a method, of the submission or of the developers' test.
type Value = fn(&Adequacy) -> Option<f64>;

const COVERAGE: Value = |adequacy| adequacy.coverage;
const COVERAGE_RANGE: Value = |adequacy| adequacy.coverage_range;
const MUTATION: Value = |adequacy| adequacy.mutation;
const MUTATION_STRICT: Value = |adequacy| adequacy.mutation_strict;

/// A wide and a narrow mean.
struct MeanPair {
    wide: Option<f64>,
    narrow: Option<f64>,
}

fn means(
    tasks: &[&TaskScore],
    value: impl Fn(&MethodScore) -> Option<f64>,
    measured: fn(&MeasuredAdequacy) -> bool,
) -> MeanPair {
    MeanPair {
        wide: mean(tasks.iter().filter(|task| measured(&task.measured)).map(|task| wide_of(task, &value))),
        narrow: mean(tasks.iter().map(|task| mean(scored(task).map(&value)))),
    }
}

/// A measure of a test's adequacy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Focal line coverage, percent.
    Coverage,
    /// Mutation score, in [0, 1].
    Mutation,
}

impl Measure {
    fn value(self) -> Value {
        match self {
            Self::Coverage => COVERAGE,
            Self::Mutation => MUTATION,
        }
    }

    /// Tells whether the submission's values of a task are known.
    fn is_known(self, measured: MeasuredAdequacy) -> bool {
        match self {
            Self::Coverage => measured.coverage_pred,
            Self::Mutation => measured.mutation_pred,
        }
    }
}

/// Returns a task's CovOnPass or MutOnPass: the submission's mean over methods that passed on new code and have a value.
/// `None` if there is no such method, or a measurement of the task was lost. Then the other methods' mean is not the task's.
pub fn on_pass_of(task: &TaskScore, measure: Measure) -> Option<f64> {
    let value = measure.value();
    mean_on_pass(task, measure, |method| value(&method.pred))
}

fn mean_on_pass(task: &TaskScore, measure: Measure, value: impl Fn(&MethodScore) -> Option<f64>) -> Option<f64> {
    let passed = scored(task).filter(|method| method.category.is_some_and(Category::passed_on_new));
    mean(passed.map(value)).filter(|_| measure.is_known(task.measured))
}

/// Means over methods that passed on new code.
struct OnPass {
    pred: Option<f64>,
    human: Option<f64>,
    delta: Option<f64>,
}

fn on_pass(tasks: &[&TaskScore], measure: Measure) -> OnPass {
    let value = measure.value();
    // The reference and the difference compare the two tests on the same methods.
    let both = |of: fn(&MethodScore) -> &Adequacy| {
        let has_both = |method: &MethodScore| value(&method.pred).and(value(&method.gold)).is_some();
        let of_both = |method: &MethodScore| value(of(method)).filter(|_| has_both(method));
        mean(tasks.iter().map(|task| mean_on_pass(task, measure, of_both)))
    };
    let (pred, human) = (both(|method| &method.pred), both(|method| &method.gold));
    OnPass {
        pred: mean(tasks.iter().map(|task| on_pass_of(task, measure))),
        human,
        delta: pred.zip(human).map(|(pred, human)| pred - human),
    }
}

/// Tells whether a task with methods of these categories is resolved: every one is a [`Category::Success`]. `None` if that
/// depends on a method that could not be judged.
pub fn resolved(categories: impl Iterator<Item = Option<Category>>) -> Option<bool> {
    let mut resolved = Some(true);
    for category in categories {
        match category {
            Some(Category::Success) => {}
            // What failed can't be resolved, whatever another method would come to.
            Some(_) => return Some(false),
            None => resolved = None,
        }
    }
    resolved
}

/// Returns the share of the tasks for which this is true among those for which it is known, percent.
fn share(tasks: &[&TaskScore], is: fn(&TaskScore) -> Option<bool>) -> Option<f64> {
    mean(tasks.iter().map(|task| is(task).map(|is| if is { 100.0 } else { 0.0 })))
}

/// Returns each task's share of successful methods, in percent, for tasks with a scored method.
pub fn success_rates(tasks: &[&TaskScore]) -> Vec<f64> {
    tasks.iter().filter_map(|task| rate_of(task, &|method| method.category == Some(Category::Success))).collect()
}

fn scored(task: &TaskScore) -> impl Iterator<Item = &MethodScore> {
    task.methods.iter().filter(|method| method.category.is_some())
}

fn rate_of(task: &TaskScore, fits: &dyn Fn(&MethodScore) -> bool) -> Option<f64> {
    let number = scored(task).count();
    (number > 0).then(|| 100.0 * scored(task).filter(|method| fits(method)).count() as f64 / number as f64)
}

fn wide_of(task: &TaskScore, value: impl Fn(&MethodScore) -> Option<f64>) -> Option<f64> {
    let number = scored(task).count();
    (number > 0).then(|| scored(task).filter_map(value).sum::<f64>() / number as f64)
}

/// Returns the mean of the known values; `None` if there are none.
pub fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let (sum, number) = values.flatten().fold((0.0, 0usize), |(sum, number), value| (sum + value, number + 1));
    (number > 0).then(|| sum / number as f64)
}
