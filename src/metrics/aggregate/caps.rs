//! Cost caps: views in which a submission above a cost counts as not handed in. Source: protocol §4.

use serde::Serialize;

use super::{TaskScore, mean, scored};
use crate::metrics::category::Category;

/// Cost caps, in US dollars.
pub const COST_CAPS: [f64; 3] = [3.0, 1.0, 0.5];

/// A view in which submissions over a cost count as [`Category::HrnsFail`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CostCap {
    /// The cap, in US dollars.
    pub cap_usd: f64,
    /// Tasks over the cap.
    pub tasks_over: usize,
    /// Tasks with a submission of unknown cost; they count as within the cap.
    pub tasks_without_cost: usize,
    /// Mean over tasks, percent (the paper's Table 3).
    pub success_percent: Option<f64>,
    /// Mean over tasks of the share of methods that are [`Category::HrnsFail`], including those over the cap, percent.
    pub hrns_fail_percent: Option<f64>,
    /// Share of successful methods among all methods, percent (the paper's Table 10).
    pub method_success_percent: Option<f64>,
    /// Share of [`Category::HrnsFail`] among all methods, percent.
    pub method_hrns_fail_percent: Option<f64>,
    /// Mean cost of the tasks within the cap whose cost is known, in US dollars.
    pub mean_cost_usd: Option<f64>,
    /// Mean number of tokens of the tasks within the cap whose tokens are known.
    pub mean_tokens: Option<f64>,
}

/// Returns the view of each cap; empty if no cost is known.
pub(super) fn cost_caps(tasks: &[&TaskScore]) -> Vec<CostCap> {
    if tasks.iter().all(|task| task.cost_usd.is_none()) {
        return Vec::new();
    }
    COST_CAPS.into_iter().map(|cap_usd| capped(tasks, cap_usd)).collect()
}

fn capped(tasks: &[&TaskScore], cap_usd: f64) -> CostCap {
    let is_over = |task: &TaskScore| task.cost_usd.is_some_and(|cost| cost > cap_usd);
    let counts: Vec<Counts> = tasks.iter().map(|task| Counts::of(task, is_over(task))).collect();
    let within = || tasks.iter().filter(|task| !is_over(task));
    let all = counts.iter().fold(Counts::default(), Counts::plus);
    CostCap {
        cap_usd,
        tasks_over: tasks.iter().filter(|task| is_over(task)).count(),
        tasks_without_cost: tasks.iter().filter(|task| task.handed_in && task.cost_usd.is_none()).count(),
        success_percent: mean(counts.iter().map(|one| one.percent(one.success))),
        hrns_fail_percent: mean(counts.iter().map(|one| one.percent(one.hrns_fail))),
        method_success_percent: all.percent(all.success),
        method_hrns_fail_percent: all.percent(all.hrns_fail),
        mean_cost_usd: mean(within().map(|task| task.cost_usd)),
        mean_tokens: mean(within().map(|task| task.tokens.map(|tokens| tokens as f64))),
    }
}

/// Returns the cumulative share of tasks by cost: the costs in US dollars that one tenth, two tenths and so on to all of the
/// tasks with a known cost do not exceed; empty if no cost is known.
pub(super) fn cost_deciles(tasks: &[&TaskScore]) -> Vec<f64> {
    let mut costs: Vec<f64> = tasks.iter().filter_map(|task| task.cost_usd).collect();
    costs.sort_by(f64::total_cmp);
    let of_tenth = |tenth: usize| costs.get((tenth * costs.len()).div_ceil(10).wrapping_sub(1)).copied();
    (1..=10).filter_map(of_tenth).collect()
}

/// Methods of a task under a cap.
#[derive(Clone, Copy, Default)]
struct Counts {
    methods: usize,
    success: usize,
    hrns_fail: usize,
}

impl Counts {
    /// A submission over the cap counts as missing, so every method fails, even one that could not be judged.
    fn of(task: &TaskScore, is_over: bool) -> Self {
        if is_over {
            return Self { methods: task.methods.len(), success: 0, hrns_fail: task.methods.len() };
        }
        let number = |category| scored(task).filter(|method| method.category == Some(category)).count();
        Self {
            methods: scored(task).count(),
            success: number(Category::Success),
            hrns_fail: number(Category::HrnsFail),
        }
    }

    fn plus(self, other: &Self) -> Self {
        Self {
            methods: self.methods + other.methods,
            success: self.success + other.success,
            hrns_fail: self.hrns_fail + other.hrns_fail,
        }
    }

    fn percent(&self, number: usize) -> Option<f64> {
        (self.methods > 0).then(|| 100.0 * number as f64 / self.methods as f64)
    }
}
