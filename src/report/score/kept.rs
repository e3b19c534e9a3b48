//! The logs of kept results. They lie in the run that executed the result, and can be shown while that run is there.
//!
//! `explain`, the page and the files of instances find them with this module. Reading the logs is not its work.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{COMMAND, ScoredModel, ScoredTask};
use crate::data_dir::DataDir;
use crate::digest::Digest;
use crate::execution::run::directory::RunDirectoryError;
use crate::execution::run::list::{find, for_each_record, list};
use crate::execution::scoring::log_directory;
use crate::execution::scoring::record::{ExecutionRecord, ScoreRecord};
use crate::task::Side;

/// Logs of kept results in the run that executed these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptLogs {
    /// Whose code the launches ran on.
    pub code: Side,
    /// The run.
    pub run_id: String,
    /// The run's directory.
    pub run: PathBuf,
    /// The cell's directory below `logs`.
    pub directory: String,
}

/// Returns the keys of all kept results.
pub fn kept_keys(models: &[ScoredModel]) -> BTreeSet<Digest> {
    models.iter().flat_map(|model| &model.tasks).flat_map(kept).filter_map(|record| record.key).collect()
}

fn kept(scored: &ScoredTask) -> impl Iterator<Item = &ExecutionRecord> {
    let launches = scored.methods.iter().flat_map(|method| method.new.iter().chain(&method.old));
    launches.filter(|record| record.cached)
}

/// Finds the executions of these keys in all runs of `score` of a data directory, and returns what `of` makes of the run's id,
/// its directory and the record. Runs that can't be read are skipped.
///
/// # Errors
/// [`RunDirectoryError`] if the runs can't be listed.
pub fn executions_of<T>(
    keys: &BTreeSet<Digest>,
    data_dir: &DataDir,
    of: impl Fn(&str, &Path, ExecutionRecord) -> T,
) -> Result<BTreeMap<Digest, T>, RunDirectoryError> {
    let mut found = BTreeMap::new();
    if keys.is_empty() {
        return Ok(found);
    }
    for entry in list(data_dir)? {
        if entry.description.is_none_or(|description| description.command != COMMAND) {
            continue;
        }
        let run = find(data_dir, &entry.run_id)?;
        let read = for_each_record(&run, |record| {
            if let ScoreRecord::Execution(record) = record
                && let Some(key) = record.key.filter(|key| !record.cached && keys.contains(key))
            {
                found.insert(key, of(&entry.run_id, &run, record));
            }
        });
        if let Err(error) = read {
            tracing::debug!(run = entry.run_id, %error, "its logs are not looked for");
        }
    }
    Ok(found)
}

/// Sets the logs of kept results with these keys, as far as the runs of a data directory have them.
///
/// # Errors
/// As [`executions_of`].
pub fn find_kept_logs(
    models: &mut [ScoredModel],
    keys: &BTreeSet<Digest>,
    data_dir: &DataDir,
) -> Result<(), RunDirectoryError> {
    let logs_of = |run_id: &str, run: &Path, record: ExecutionRecord| {
        // The record only tells that logs exist. Their place follows from its other fields.
        let directory = log_directory(&record.model, &record.task_id, record.code);
        let is_there = record.measured.logs.as_ref() == Some(&directory);
        let logs = KeptLogs { code: record.code, run_id: run_id.to_owned(), run: run.to_owned(), directory };
        is_there.then(|| Arc::new(logs))
    };
    let found = executions_of(keys, data_dir, logs_of)?;
    for scored in models.iter_mut().flat_map(|model| &mut model.tasks) {
        let mut logs: Vec<Arc<KeptLogs>> = Vec::new();
        for one in kept(scored).filter_map(|record| found.get(&record.key?)?.as_ref()) {
            if !logs.contains(one) {
                logs.push(Arc::clone(one));
            }
        }
        scored.kept_logs = logs;
    }
    Ok(())
}
