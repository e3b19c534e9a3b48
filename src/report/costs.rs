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

    /// Returns the sums by task.
    pub fn costs(self) -> Costs {
        let mut milliseconds = self.launches;
        for ((task, _), (prepare, compile)) in self.builds {
            let sum = milliseconds.entry(task).or_default();
            *sum = sum.saturating_add(prepare).saturating_add(compile);
        }
        milliseconds.retain(|_, cost| *cost > 0);
        Costs { schema: COSTS_SCHEMA, milliseconds }
    }
}
