//! Compiles the starting file of generation tasks on new code, because the result changes the meaning of a submission.
//! Source: protocol §3.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::new_code::{NewCode, swap};
use super::record::{SCORE_SCHEMA, ScoreRecord, StartRecord};
use super::{Scoring, blocking};
use crate::artifact::key::key;
use crate::digest::Digest;
use crate::event::EventSink;
use crate::execution::cell::FailedCell;
use crate::execution::direct::Swap;
use crate::execution::fault::{ExecutionError, Fault, NoAnswer, answered};
use crate::execution::request::{CellIdentity, CellRequest};
use crate::execution::run::directory::RunDirectory;
use crate::execution::run::record::ExecutionPath;
use crate::execution::run::stage::{RunError, Stage};
use crate::outcome::{InfraReason, Outcome};
use crate::task::{Cell, Side, Task, TaskId, Track};

/// Whether a starting file compiles, and its first error; `None` without a starting file.
type Compiles = Option<(bool, Option<String>)>;

impl Scoring<'_> {
    /// Compiles the starting files without a record, each once, and returns all records.
    pub(super) async fn compile_starts(
        &self,
        run: &mut RunDirectory,
        records: Vec<ScoreRecord>,
        (events, cancellation): (&EventSink, &CancellationToken),
    ) -> Result<Vec<ScoreRecord>, RunError> {
        let mut known: BTreeSet<TaskId> = BTreeSet::new();
        let mut handed_in: BTreeSet<TaskId> = BTreeSet::new();
        for record in &records {
            match record {
                ScoreRecord::Start(start) if !start.lost => {
                    known.insert(start.task_id.clone());
                }
                ScoreRecord::Submission(one) if one.post_image.is_some() => {
                    handed_in.insert(one.task_id.clone());
                }
                _ => {}
            }
        }
        let all = self.tasks.iter().filter(|task| {
            task.track == Track::TestGeneration
                && handed_in.contains(&task.id)
                && self.images.contains_key(&task.repository)
        });
        let (done, wanted): (Vec<&Task>, Vec<&Task>) = all.partition(|task| known.contains(&task.id));
        let done = done.len();
        let jobs = wanted.into_iter().map(|task| {
            let compiled = async move {
                let (start_compiles, detail, lost) = match answered(self.start_compiles(task).await)? {
                    Ok(None) => (None, None, false),
                    Ok(Some((compiles, detail))) => (Some(compiles), detail, false),
                    Err(reason) => (None, Some(reason.cause), true),
                };
                let task_id = task.id.clone();
                let record = StartRecord { schema: SCORE_SCHEMA, task_id, start_compiles, detail, lost };
                Ok(vec![ScoreRecord::Start(record)])
            };
            (task.id.to_string(), compiled)
        });
        let summary = |records: &[ScoreRecord]| match records {
            [ScoreRecord::Start(StartRecord { start_compiles: Some(true), .. })] => ("compiles".to_owned(), false),
            [ScoreRecord::Start(StartRecord { start_compiles: Some(false), .. })] => {
                ("does not compile".to_owned(), false)
            }
            [ScoreRecord::Start(StartRecord { lost: true, .. })] => ("lost".to_owned(), true),
            _ => ("no file".to_owned(), false),
        };
        let stage = Stage { name: "starting files", jobs: self.jobs, done, events, cancellation };
        stage.run(run, records, jobs, summary).await
    }

    /// Compiles the starting file of a task on its new code. A cached answer is reused.
    async fn start_compiles(&self, task: &Task) -> Result<Compiles, ExecutionError> {
        let fault = |outcome: Outcome, detail: &str| NoAnswer::fault(format!("{outcome}: {detail}"));
        let none = |detail: &str| Err(fault(Outcome::InfraFail(InfraReason::Source), detail).into());
        if let Some(Fault { reason, detail }) = self.obstacles.fault(task, Side::New) {
            return Err(fault(Outcome::InfraFail(reason), &detail).into());
        }
        let (Some(image), Some(executor), Some(method)) =
            (self.images.get(&task.repository), self.executors.get(&task.repository), task.test_methods.first())
        else {
            return none("the repository has no image");
        };
        let (trees, wanted) = (Arc::clone(&self.trees), task.clone());
        let described = blocking(move || {
            let Some(start) = trees.start(&wanted)? else { return Ok(None) };
            let facts = trees.describe(&wanted, Side::New, start.clone())?;
            Ok(Some((start, facts)))
        });
        let (start, facts) = match described.await? {
            Ok(Some(described)) => described,
            Ok(None) => return Ok(None),
            Err(error) => return none(&error.to_string()),
        };
        let Some(module) = &facts.module else {
            return Ok(Some((false, Some("the target file lies in no module of this tree".to_owned()))));
        };
        let path = if self.direct.is_some() { ExecutionPath::Direct } else { ExecutionPath::Maven };
        let identity = CellIdentity { task, cell: Cell::On, image, tree: &facts.tree, swapped: facts.swapped(), path };
        let key = start_key(executor.key(&identity, method, 1, path));
        if let Some(known) = self.cache.value::<(bool, Option<String>)>(key)? {
            return Ok(Some(known));
        }
        let mut compiles = None;
        if let Some(direct) = &self.direct {
            let on = NewCode { trees: &self.revisions, task, tree: &facts.tree, module };
            compiles = match swap(direct, (executor, image), &on, &start).await? {
                Some(Swap::Compiled(_)) => Some((true, None)),
                Some(Swap::Failed { detail, .. }) => Some((false, Some(detail))),
                None => None,
            };
        }
        let compiles = match compiles {
            Some(compiles) => compiles,
            None => {
                let (trees, wanted, facts) = (Arc::clone(&self.trees), task.clone(), facts.clone());
                let written = blocking(move || trees.write(&wanted, Side::New, &start, &facts)).await?;
                let input = match written {
                    Ok(input) => input,
                    Err(error) => return none(&error.to_string()),
                };
                let methods = &task.test_methods;
                let (cell, path) = (Cell::On, ExecutionPath::Maven);
                let request =
                    CellRequest { task, cell, input: &input, image, methods, repeats: 1, path, other_text: None };
                let built = executor.build_cell(&request, module).await?;
                match built.0 {
                    Ok(_) => (true, None),
                    Err(FailedCell { outcome: Outcome::CompileFail(_), detail, .. }) => (false, Some(detail)),
                    Err(FailedCell { outcome, detail, .. }) => return Err(fault(outcome, &detail).into()),
                }
            }
        };
        self.cache.put_value(&task.id, key, &compiles)?;
        Ok(Some(compiles))
    }
}

/// Returns the key of a starting file's result, given the key of a launch on the file.
pub(super) fn start_key(launch: Digest) -> Digest {
    key("start", 2, &launch)
}
