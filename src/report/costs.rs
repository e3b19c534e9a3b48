//! Recorded costs of tasks: the wall time of their executions. Shards are balanced by them.

use std::collections::BTreeMap;

use crate::execution::run::record::{CellRecord, Measured};
use crate::execution::scoring::record::ScoreRecord;
use crate::task::TaskId;
use crate::task::shard::{COSTS_SCHEMA, Costs};

/// Adds up the costs of executions.
///
/// All methods of a build share its time, which counts once. A reused result has the time that it once took. A task that was
/// never launched nor built has no cost.
#[derive(Debug, Default)]
pub struct CostSum {
    /// Preparation and compilation by task and build, in milliseconds.
    builds: BTreeMap<(TaskId, String), (u64, u64)>,
    launches: BTreeMap<TaskId, u64>,
}

impl CostSum {
    /// Adds a record of a validation.
    pub fn add_cell(&mut self, record: &CellRecord) {
        self.add(&record.task_id, format!("{} {}", record.cell.name(), record.path), &record.measured);
    }

    /// Adds a record of a scoring run.
    pub fn add_score(&mut self, record: &ScoreRecord) {
        if let ScoreRecord::Execution(one) = record {
            self.add(&one.task_id, format!("{} {:?}", one.model, one.code), &one.measured);
        }
    }

    fn add(&mut self, task: &TaskId, build: String, measured: &Measured) {
        let (prepare, compile) = self.builds.entry((task.clone(), build)).or_default();
        *prepare = (*prepare).max(measured.prepare_ms.unwrap_or_default());
        *compile = (*compile).max(measured.compile_ms.unwrap_or_default());
        let launch = measured.container_ms.or(measured.launch_ms).unwrap_or_default();
        let sum = self.launches.entry(task.clone()).or_default();
        *sum = sum.saturating_add(launch);
    }

    /// Returns the sums by task. `spent_ms` is the time that the run's jobs had, if it is known: records tell the times of
    /// executions, so that what coverage, controls, mutants and the program itself took is divided in proportion. A run that
    /// reused results had less time than these once took.
    pub fn costs(self, spent_ms: Option<u64>) -> Costs {
        let mut milliseconds = self.launches;
        for ((task, _), (prepare, compile)) in self.builds {
            let sum = milliseconds.entry(task).or_default();
            *sum = sum.saturating_add(prepare).saturating_add(compile);
        }
        milliseconds.retain(|_, cost| *cost > 0);
        let total: u128 = milliseconds.values().map(|cost| u128::from(*cost)).sum();
        if let Some(spent) = spent_ms.map(u128::from).filter(|spent| *spent > total) {
            let whole = |cost: u64| u64::try_from(u128::from(cost) * spent / total.max(1)).unwrap_or(u64::MAX);
            milliseconds.values_mut().for_each(|cost| *cost = whole(*cost));
        }
        Costs { schema: COSTS_SCHEMA, milliseconds }
    }
}

/// Adds costs of another run.
pub fn add(sum: &mut Costs, other: Costs) {
    for (task, cost) in other.milliseconds {
        let of_task = sum.milliseconds.entry(task).or_default();
        *of_task = of_task.saturating_add(cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_took_beyond_its_executions_is_divided() {
        let task = |id: &str| id.parse::<TaskId>().unwrap();
        let sum = || {
            let mut sum = CostSum::default();
            for (id, launch, compile) in [("t1", 100, 100), ("t2", 300, 300), ("t3", 0, 0)] {
                let measured =
                    Measured { container_ms: Some(launch), compile_ms: Some(compile), ..Measured::default() };
                sum.add(&task(id), "new".to_owned(), &measured);
            }
            sum
        };
        let of = |costs: &Costs, id: &str| costs.milliseconds.get(&task(id)).copied();
        for (spent, first, second) in [(None, 200, 600), (Some(700), 200, 600), (Some(4000), 1000, 3000)] {
            let costs = sum().costs(spent);
            assert_eq!([of(&costs, "t1"), of(&costs, "t2"), of(&costs, "t3")], [Some(first), Some(second), None]);
        }
        let mut both = sum().costs(None);
        add(&mut both, sum().costs(Some(4000)));
        assert_eq!(of(&both, "t2"), Some(3600));
        assert!(CostSum::default().costs(Some(9)).milliseconds.is_empty());
    }
}
