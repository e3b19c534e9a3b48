//! Resolves submissions before any execution: their files, and the focal methods of their tasks.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fs_err as fs;
use futures_util::StreamExt as _;
use tokio_util::sync::CancellationToken;

use super::record::{FocalRecord, SCORE_SCHEMA, ScoreRecord, SubmissionFault, SubmissionRecord};
use super::recorded::Done;
use super::{SOURCES, Scoring, blocking, file_name, source_name};
use crate::data_dir::write_below;
use crate::digest::Digest;
use crate::execution::run::directory::RunDirectory;
use crate::execution::run::stage::RunError;
use crate::outcome::launch::shortened;
use crate::outcome::{InfraReason, Outcome};
use crate::submission::Content;
use crate::submission::predictions::{Place, Prediction};
use crate::task::{Side, Task, TaskId};
use crate::workspace::WorkspaceError;

impl Scoring<'_> {
    /// Resolves the submissions that have no record yet. A selected task without a submission of the model counts as an
    /// empty submission.
    pub(super) async fn resolve_all(
        &self,
        run: &mut RunDirectory,
        records: &mut Vec<ScoreRecord>,
        submissions: &Path,
        cancellation: &CancellationToken,
    ) -> Result<(), RunError> {
        let done: BTreeSet<(String, TaskId)> = records
            .iter()
            .filter_map(|record| match record {
                ScoreRecord::Submission(record) => Some((record.model.clone(), record.task_id.clone())),
                _ => None,
            })
            .collect();
        let pairs: Vec<(&str, &Task)> =
            self.pairs().filter(|(model, task)| !done.contains(&((*model).to_owned(), task.id.clone()))).collect();
        if self.measures() {
            self.find_focal(run, records, cancellation).await?;
        }
        let mut resolving = futures_util::stream::iter(pairs)
            .map(|(model, task)| async move {
                let resolved = self.resolve(model, task, submissions).await;
                (model, task, resolved)
            })
            .buffered(self.jobs.max(1));
        while let Some((model, task, resolved)) = resolving.next().await {
            if cancellation.is_cancelled() {
                return Err(RunError::Interrupted);
            }
            let more = match resolved? {
                Ok(record) => vec![ScoreRecord::Submission(record)],
                // The submission can't be resolved now. A continued run tries again.
                Err(cause) => {
                    let known = self.obstacles.fault(task, Side::New).map(|fault| (fault.reason, fault.detail));
                    let (reason, cause) = known.unwrap_or((InfraReason::Source, cause));
                    let outcome = Outcome::InfraFail(reason);
                    let sides = [Side::Old, Side::New].into_iter();
                    sides
                        .filter(|code| self.counts(model, task, *code))
                        .flat_map(|code| self.unexecuted(model, task, code, &task.test_methods, outcome, &cause))
                        .map(ScoreRecord::Execution)
                        .collect()
                }
            };
            for record in more {
                run.append(&record)?;
                records.push(record);
            }
        }
        Ok(())
    }

    async fn find_focal(
        &self,
        run: &mut RunDirectory,
        records: &mut Vec<ScoreRecord>,
        cancellation: &CancellationToken,
    ) -> Result<(), RunError> {
        let sources = run.path().join(SOURCES);
        fs::create_dir_all(&sources)?;
        let known: BTreeSet<TaskId> = Done::of(records).focal.into_keys().cloned().collect();
        let tasks: Vec<&Task> = self.tasks.iter().filter(|task| !known.contains(&task.id)).collect();
        let mut finding = futures_util::stream::iter(tasks)
            .map(|task| async move {
                let (trees, wanted) = (Arc::clone(&self.trees), task.clone());
                let found = blocking(move || {
                    let focal = trees.focal(&wanted)?;
                    let record = FocalRecord { schema: SCORE_SCHEMA, task_id: wanted.id.clone(), focal };
                    let paths: BTreeSet<&str> = record.lines().into_iter().map(|lines| lines.path.as_str()).collect();
                    let read = |path: &str| Ok((source_name(&wanted.rev2, path), trees.new_file(&wanted, path)?));
                    let sources = paths.into_iter().map(read).collect::<Result<Vec<_>, WorkspaceError>>()?;
                    Ok((record, sources))
                });
                (task, found.await)
            })
            .buffered(self.jobs.max(1));
        while let Some((task, found)) = finding.next().await {
            if cancellation.is_cancelled() {
                return Err(RunError::Interrupted);
            }
            match found? {
                Ok((record, files)) => {
                    for (name, file) in files {
                        write_below(run.path(), &sources.join(name), &file)?;
                    }
                    let record = ScoreRecord::Focal(record);
                    run.append(&record)?;
                    records.push(record);
                }
                // Executions need the same sources, and their records name the failure.
                Err(error) => tracing::warn!(task = %task.id, %error, "focal methods can't be looked for"),
            }
        }
        Ok(())
    }

    async fn resolve(
        &self,
        model: &str,
        task: &Task,
        submissions: &Path,
    ) -> std::io::Result<Result<SubmissionRecord, String>> {
        let absent = |content| Prediction {
            content,
            cost_usd: None,
            tokens: None,
            place: Place { path: PathBuf::new(), line: None },
            fence_removed: false,
        };
        let prediction = match self.predictions.models.get(model) {
            Some(tasks) => tasks.get(&task.id).cloned().unwrap_or_else(|| absent(Content::Nothing)),
            None => absent(Content::Gold),
        };
        let (trees, wanted, content) = (Arc::clone(&self.trees), task.clone(), prediction.content.clone());
        let resolved = blocking(move || trees.resolve(&wanted, &content)).await?;
        let resolved = match resolved {
            Ok(resolved) => resolved,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let (post_image, fault) = match resolved.extraction.content {
            Ok(file) => (Some(keep(submissions, &file)?), None),
            Err(fault) => (None, Some(SubmissionFault { reason: fault.reason, detail: shortened(&fault.detail) })),
        };
        let bytes = prediction.content.bytes();
        Ok(Ok(SubmissionRecord {
            schema: SCORE_SCHEMA,
            model: model.to_owned(),
            task_id: task.id.clone(),
            kind: prediction.content.kind(),
            submitted: (!bytes.is_empty()).then(|| Digest::of(bytes)),
            start: resolved.start.map(|start| keep(submissions, &start)).transpose()?,
            post_image,
            fault,
            without: resolved.without,
            shadows: resolved.shadows,
            dropped: resolved.extraction.dropped,
            line_ends_adapted: resolved.extraction.line_ends_adapted,
            cost_usd: prediction.cost_usd,
            tokens: prediction.tokens,
        }))
    }
}

/// Stores a test file by its digest.
fn keep(submissions: &Path, file: &[u8]) -> std::io::Result<Digest> {
    let digest = Digest::of(file);
    let path = submissions.join(file_name(digest));
    // Equal bytes have the same name, and files are written atomically.
    if !path.exists() {
        write_below(submissions.parent().unwrap_or(submissions), &path, file)?;
    }
    Ok(digest)
}
