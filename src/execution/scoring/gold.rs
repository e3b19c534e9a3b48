//! Finds developers' tests that fail on new code although their time class shows an earlier pass. The machine or the
//! image may be the cause, so no other result of the task can be trusted. A run keeps no result of such a task for
//! other runs. A developers' test that never passed may simply differ from its published label.

use std::collections::BTreeMap;

use super::Scoring;
use super::record::{ExecutionRecord, ScoreRecord};
use crate::outcome::Outcome;
use crate::submission::GOLD;
use crate::task::{MethodId, Side, TaskId};

/// Returns the first developers' method of a task that fails on new code, with its outcome. A method that passes in any
/// repeat does not fail, and a fault of ours does not count.
pub fn failing<'a>(executions: impl IntoIterator<Item = &'a ExecutionRecord>) -> Option<(&'a MethodId, Outcome)> {
    let mut methods: BTreeMap<&MethodId, (Option<Outcome>, bool)> = BTreeMap::new();
    for one in executions {
        if one.model == GOLD && one.code == Side::New {
            let (failed, passed) = methods.entry(&one.method).or_default();
            match one.outcome {
                Outcome::Pass => *passed = true,
                Outcome::InfraFail(_) => {}
                other => *failed = failed.or(Some(other)),
            }
        }
    }
    methods.into_iter().find_map(|(method, (failed, passed))| Some((method, failed.filter(|_| !passed)?)))
}

/// Returns the tasks of a run whose developers' tests fail on new code, each with the first method and its outcome.
fn failing_tasks(records: &[ScoreRecord]) -> BTreeMap<TaskId, String> {
    let mut tasks: BTreeMap<&TaskId, Vec<&ExecutionRecord>> = BTreeMap::new();
    for record in records {
        if let ScoreRecord::Execution(one) = record
            && one.model == GOLD
        {
            tasks.entry(&one.task_id).or_default().push(one);
        }
    }
    let failing = tasks.into_iter().filter_map(|(task, executions)| Some((task, failing(executions)?)));
    failing.map(|(task, (method, outcome))| (task.clone(), format!("{method}: {outcome}"))).collect()
}

/// Returns the tasks of a finished run whose developers' tests fail on new code and passed there before, as
/// [`Scoring::doubtful`] found them: they have a recorded time class.
pub fn doubtful_in(records: &[ScoreRecord]) -> BTreeMap<TaskId, String> {
    let mut failing = failing_tasks(records);
    let classed = |task: &TaskId| {
        records.iter().any(|record| match record {
            ScoreRecord::TimeClass(class) => class.task_id == *task && class.launch_seconds.is_some(),
            _ => false,
        })
    };
    failing.retain(|task, _| classed(task));
    failing
}

impl Scoring<'_> {
    /// Returns the tasks whose developers' tests fail on new code and passed there before, each with the first method and its
    /// outcome.
    ///
    /// # Errors
    /// I/O errors of reading time classes.
    pub fn doubtful(&self, records: &[ScoreRecord]) -> std::io::Result<BTreeMap<TaskId, String>> {
        let mut failing = failing_tasks(records);
        for task in self.tasks {
            let passed_before = || -> std::io::Result<bool> {
                match &self.time_classes {
                    Some(classes) => Ok(classes.get(task)?.is_some_and(|class| class.launch_seconds.is_some())),
                    None => Ok(false),
                }
            };
            if failing.contains_key(&task.id) && !passed_before()? {
                failing.remove(&task.id);
            }
        }
        Ok(failing)
    }

    /// Stops keeping results of doubtful tasks, and removes the kept results of these records' executions.
    pub(super) fn distrust_failing(&self, records: &[ScoreRecord]) -> std::io::Result<()> {
        let failing = self.doubtful(records)?;
        for task in failing.keys() {
            self.cache.distrust(task)?;
        }
        for record in records {
            if let ScoreRecord::Execution(one) = record
                && let Some(key) = one.key.filter(|_| failing.contains_key(&one.task_id))
            {
                self.cache.remove(key)?;
            }
        }
        Ok(())
    }
}
