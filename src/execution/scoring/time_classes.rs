//! Time limits of a task's submissions, settled once for a run before the first execution.

use std::collections::BTreeSet;

use super::Scoring;
use super::record::{SCORE_SCHEMA, ScoreRecord, TimeClassRecord};
use crate::execution::run::directory::RunDirectory;
use crate::execution::run::stage::RunError;
use crate::execution::time_class::{TimeClass, Took};
use crate::task::{Task, TaskId};
use crate::thread::blocking;

impl Scoring<'_> {
    /// Records the present time classes of all executed tasks without a record. All submissions of the run have the
    /// same limits, also after the run is continued.
    pub(super) async fn settle_classes(
        &self,
        run: &mut RunDirectory,
        records: &mut Vec<ScoreRecord>,
    ) -> Result<(), RunError> {
        let known = records.iter().filter_map(|record| match record {
            ScoreRecord::TimeClass(one) => Some(one.task_id.clone()),
            _ => None,
        });
        let known: BTreeSet<TaskId> = known.collect();
        let is_new = |task: &&Task| !known.contains(&task.id) && self.images.contains_key(&task.repository);
        let Some(classes) = &self.time_classes else { return Ok(()) };
        for task in self.tasks.iter().filter(is_new) {
            let (classes, wanted) = (classes.clone(), task.clone());
            let class: Option<TimeClass> = blocking(move || classes.get(&wanted)).await?;
            let record = ScoreRecord::TimeClass(TimeClassRecord {
                schema: SCORE_SCHEMA,
                task_id: task.id.clone(),
                launch_seconds: class.as_ref().and_then(|class| class.launch_seconds),
                compile_seconds: class.as_ref().and_then(|class| class.compile_seconds),
            });
            run.append(&record)?;
            records.push(record);
        }
        Ok(())
    }

    /// Records in the data directory how long the developers' test took, unless a class is recorded.
    pub(super) async fn record_class(&self, task: &Task, took: Took) -> std::io::Result<()> {
        let Some(classes) = self.time_classes.clone() else { return Ok(()) };
        let task = task.clone();
        blocking(move || classes.record(&task, took).map(drop)).await
    }
}

#[cfg(test)]
mod tests;
