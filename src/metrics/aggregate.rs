//! From methods to tasks to tracks: rates, the eight leaderboard fields, values on passing methods, segments, cost caps.
//! Source: protocol §4.
//!
//! Every task weighs the same. `None` means not measured or not defined, never zero.

use std::collections::BTreeMap;

use serde::Serialize;

use super::bootstrap::interval;
use super::category::Category;
use crate::task::{RepositoryName, TaskId, Track};

/// A segment with fewer methods is marked: its figures say little.
const FEW_METHODS: usize = 20;

/// Cost caps, in US dollars.
pub const COST_CAPS: [f64; 3] = [3.0, 1.0, 0.5];

/// What is known of one method of a submission.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MethodScore {
    /// The paper's category; `None` leaves the method unscored.
    pub category: Option<Category>,
    /// The stricter view.
    pub strict_success: bool,
    /// Focal line coverage in percent.
    pub coverage_pred: Option<f64>,
    /// The same of the developers' test.
    pub coverage_gold: Option<f64>,
    /// Mutation score in [0, 1].
    pub mutation_pred: Option<f64>,
    /// The same of the developers' test.
    pub mutation_gold: Option<f64>,
}

/// What is known of one task of a submission.
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
    /// What the submission cost, in US dollars.
    pub cost_usd: Option<f64>,
    /// What was measured at all: where it was not, a wide mean is not 0 but nothing.
    pub measured: MeasuredAdequacy,
}

/// Which values were measured for a task.
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
}

/// A track's figures, or those of a part of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Tasks.
    pub tasks: usize,
    /// Target methods, unscored ones included.
    pub methods: usize,
    /// Methods that could not be judged; they leave numerators and denominators.
    pub unscored: usize,
    /// Fewer than twenty methods.
    pub few_methods: bool,
    /// Mean over tasks of the share of methods in the category, percent; likewise below.
    pub success_percent: Option<f64>,
    /// 95 % interval of it by resampling tasks.
    pub success_percent_interval: Option<[f64; 2]>,
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
    /// Wide: methods without a value count as 0. Percent.
    pub avg_coverage_pred: Option<f64>,
    /// Narrow: over methods with a value. Percent.
    pub avg_coverage_pred_success: Option<f64>,
    /// Wide, of the developers' tests. Percent.
    pub avg_coverage_gold: Option<f64>,
    /// Narrow, of the developers' tests. Percent.
    pub avg_coverage_gold_success: Option<f64>,
    /// Wide, in [0, 1].
    pub avg_mutation_score_pred: Option<f64>,
    /// Narrow, in [0, 1].
    pub avg_mutation_score_pred_success: Option<f64>,
    /// Wide, of the developers' tests, in [0, 1].
    pub avg_mutation_score_gold: Option<f64>,
    /// Narrow, of the developers' tests, in [0, 1].
    pub avg_mutation_score_gold_success: Option<f64>,
    /// Coverage over methods that passed on new code and have a value, percent.
    pub cov_on_pass: Option<f64>,
    /// The developers' value on the same methods.
    pub cov_on_pass_human: Option<f64>,
    /// The one minus the other.
    pub cov_on_pass_delta: Option<f64>,
    /// Mutation score over methods that passed on new code and have a value, in [0, 1].
    pub mut_on_pass: Option<f64>,
    /// The developers' value on the same methods.
    pub mut_on_pass_human: Option<f64>,
    /// The one minus the other.
    pub mut_on_pass_delta: Option<f64>,
    /// Views in which submissions over a cost count as failed; empty where no costs are known.
    pub cost_caps: Vec<CostCap>,
}

/// A view in which submissions over a cost count as [`Category::HrnsFail`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostCap {
    /// The cap, in US dollars.
    pub cap_usd: f64,
    /// Tasks over the cap.
    pub tasks_over: usize,
    /// Mean over tasks, percent (the paper's Table 3).
    pub success_percent: Option<f64>,
    /// Over all methods alike, percent (the paper's Table 10).
    pub method_success_percent: Option<f64>,
}

/// A track with its parts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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

fn figures(tasks: &[&TaskScore]) -> Figures {
    let methods: usize = tasks.iter().map(|task| task.methods.len()).sum();
    let judged: usize = tasks.iter().map(|task| scored(task).count()).sum();
    let rate = |fits: &dyn Fn(&MethodScore) -> bool| mean(tasks.iter().map(|task| rate_of(task, fits)));
    let percent = |category| rate(&|method| method.category == Some(category));
    let wide = |value: Value, measured: fn(&MeasuredAdequacy) -> bool| {
        mean(tasks.iter().filter(|task| measured(&task.measured)).map(|task| wide_of(task, value)))
    };
    let narrow = |value: Value| mean(tasks.iter().map(|task| mean(scored_values(task, value))));
    let on_pass = |pred: Value, of: Value| {
        mean(tasks.iter().map(|task| {
            let passed = scored(task).filter(|method| method.category.is_some_and(Category::passed_on_new));
            mean(passed.filter(|method| pred(method).is_some()).map(of))
        }))
    };
    let minus = |one: Option<f64>, other: Option<f64>| Some(one? - other?);
    let (coverage_pred, coverage_gold): (Value, Value) = (|method| method.coverage_pred, |method| method.coverage_gold);
    let (mutation_pred, mutation_gold): (Value, Value) = (|method| method.mutation_pred, |method| method.mutation_gold);
    let (cov, cov_human) = (on_pass(coverage_pred, coverage_pred), on_pass(coverage_pred, coverage_gold));
    let (mutation, mutation_human) = (on_pass(mutation_pred, mutation_pred), on_pass(mutation_pred, mutation_gold));
    Figures {
        tasks: tasks.len(),
        methods,
        unscored: methods - judged,
        few_methods: methods < FEW_METHODS,
        success_percent: percent(Category::Success),
        success_percent_interval: interval(&success_rates(tasks)),
        redundant_percent: percent(Category::Redundant),
        exec_fail_percent: percent(Category::ExecFail),
        cmpl_fail_percent: percent(Category::CmplFail),
        hrns_fail_percent: percent(Category::HrnsFail),
        strict_success_percent: rate(&|method| method.strict_success),
        avg_coverage_pred: wide(coverage_pred, |measured| measured.coverage_pred),
        avg_coverage_pred_success: narrow(coverage_pred),
        avg_coverage_gold: wide(coverage_gold, |measured| measured.coverage_gold),
        avg_coverage_gold_success: narrow(coverage_gold),
        avg_mutation_score_pred: wide(mutation_pred, |measured| measured.mutation_pred),
        avg_mutation_score_pred_success: narrow(mutation_pred),
        avg_mutation_score_gold: wide(mutation_gold, |measured| measured.mutation_gold),
        avg_mutation_score_gold_success: narrow(mutation_gold),
        cov_on_pass: cov,
        cov_on_pass_human: cov_human,
        cov_on_pass_delta: minus(cov, cov_human),
        mut_on_pass: mutation,
        mut_on_pass_human: mutation_human,
        mut_on_pass_delta: minus(mutation, mutation_human),
        cost_caps: cost_caps(tasks),
    }
}

type Value = fn(&MethodScore) -> Option<f64>;

/// Returns the share of successful methods of each task that has a scored one, in percent.
pub fn success_rates(tasks: &[&TaskScore]) -> Vec<f64> {
    tasks.iter().filter_map(|task| rate_of(task, &|method| method.category == Some(Category::Success))).collect()
}

fn scored(task: &TaskScore) -> impl Iterator<Item = &MethodScore> {
    task.methods.iter().filter(|method| method.category.is_some())
}

fn scored_values(task: &TaskScore, value: Value) -> impl Iterator<Item = Option<f64>> {
    scored(task).map(value)
}

fn rate_of(task: &TaskScore, fits: &dyn Fn(&MethodScore) -> bool) -> Option<f64> {
    let number = scored(task).count();
    (number > 0).then(|| 100.0 * scored(task).filter(|method| fits(method)).count() as f64 / number as f64)
}

fn wide_of(task: &TaskScore, value: Value) -> Option<f64> {
    let number = scored(task).count();
    (number > 0).then(|| scored_values(task, value).flatten().sum::<f64>() / number as f64)
}

/// Returns the mean of the values that are there.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let (sum, number) = values.flatten().fold((0.0, 0usize), |(sum, number), value| (sum + value, number + 1));
    (number > 0).then(|| sum / number as f64)
}

fn cost_caps(tasks: &[&TaskScore]) -> Vec<CostCap> {
    if tasks.iter().all(|task| task.cost_usd.is_none()) {
        return Vec::new();
    }
    let cap = |cap_usd: f64| {
        let over = |task: &TaskScore| task.cost_usd.is_some_and(|cost| cost > cap_usd);
        let counted = |task: &TaskScore| {
            let within = !over(task);
            let successes = scored(task).filter(|method| within && method.category == Some(Category::Success)).count();
            (successes, scored(task).count())
        };
        let rates = tasks.iter().map(|task| match counted(task) {
            (_, 0) => None,
            (successes, number) => Some(100.0 * successes as f64 / number as f64),
        });
        let (successes, number) = tasks
            .iter()
            .map(|task| counted(task))
            .fold((0, 0), |sum, (successes, number)| (sum.0 + successes, sum.1 + number));
        CostCap {
            cap_usd,
            tasks_over: tasks.iter().filter(|task| over(task)).count(),
            success_percent: mean(rates),
            method_success_percent: (number > 0).then(|| 100.0 * successes as f64 / number as f64),
        }
    };
    COST_CAPS.into_iter().map(cap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn method(category: Option<Category>, coverage: Option<f64>, gold: Option<f64>) -> MethodScore {
        MethodScore { category, coverage_pred: coverage, coverage_gold: gold, ..MethodScore::default() }
    }

    fn task(id: &str, methods: Vec<MethodScore>) -> TaskScore {
        TaskScore {
            id: id.parse().unwrap(),
            repository: "o/n".parse().unwrap(),
            track: Track::TestGeneration,
            date: "2020-07-01".to_owned(),
            jdk: 8,
            methods,
            cost_usd: None,
            measured: MeasuredAdequacy { coverage_pred: true, coverage_gold: true, ..MeasuredAdequacy::default() },
        }
    }

    #[test]
    fn every_task_weighs_the_same_and_what_is_unscored_leaves() {
        let success = Some(Category::Success);
        let tasks = [
            task(
                "a",
                vec![
                    method(success, None, None),
                    method(Some(Category::ExecFail), None, None),
                    method(None, None, None),
                ],
            ),
            task("b", vec![method(success, None, None)]),
            task("c", vec![method(None, None, None)]),
        ];
        let figures = track_figures(&tasks.iter().collect::<Vec<_>>()).all;
        assert_eq!((figures.tasks, figures.methods, figures.unscored), (3, 5, 2));
        assert_eq!(figures.success_percent, Some(75.0));
        assert_eq!(figures.exec_fail_percent, Some(25.0));
        let sum = [
            figures.success_percent,
            figures.redundant_percent,
            figures.exec_fail_percent,
            figures.cmpl_fail_percent,
            figures.hrns_fail_percent,
        ];
        assert_eq!(sum.iter().flatten().sum::<f64>(), 100.0);
    }

    #[test]
    fn wide_counts_missing_values_as_zero_and_narrow_leaves_them_out() {
        let pass = Some(Category::Redundant);
        let tasks = [
            task("a", vec![method(pass, Some(80.0), Some(60.0)), method(Some(Category::CmplFail), None, Some(100.0))]),
            task("b", vec![method(Some(Category::ExecFail), None, None)]),
        ];
        let figures = track_figures(&tasks.iter().collect::<Vec<_>>()).all;
        assert_eq!(figures.avg_coverage_pred, Some(20.0));
        assert_eq!(figures.avg_coverage_pred_success, Some(80.0));
        assert_eq!(figures.avg_coverage_gold, Some(40.0));
        assert_eq!(figures.avg_coverage_gold_success, Some(80.0));
        assert_eq!(
            (figures.cov_on_pass, figures.cov_on_pass_human, figures.cov_on_pass_delta),
            (Some(80.0), Some(60.0), Some(20.0))
        );
        assert_eq!((figures.mut_on_pass, figures.avg_mutation_score_pred_success), (None, None));
    }

    #[test]
    fn over_the_cap_is_failed() {
        let success = Some(Category::Success);
        let mut tasks = [task("a", vec![method(success, None, None); 3]), task("b", vec![method(success, None, None)])];
        tasks[1].cost_usd = Some(2.0);
        let caps = track_figures(&tasks.iter().collect::<Vec<_>>()).all.cost_caps;
        let found: Vec<_> =
            caps.iter().map(|cap| (cap.tasks_over, cap.success_percent, cap.method_success_percent)).collect();
        assert_eq!(found, [(0, Some(100.0), Some(100.0)), (1, Some(50.0), Some(75.0)), (1, Some(50.0), Some(75.0))]);
    }

    #[test]
    fn segments_are_half_years() {
        for (date, name) in
            [("2014-12-31", "Older"), ("2015-01-01", "2015-H1"), ("2020-06-30", "2020-H1"), ("2020-07-01", "2020-H2")]
        {
            assert_eq!(segment(date), name);
        }
    }
}
