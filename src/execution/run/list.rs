//! Lists, reads and removes existing runs without resuming them.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;
use rustix::fs::{FlockOperation, flock};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::data_dir::DataDir;
use crate::data_dir::shared::{is_gone, lacks_locks};
use crate::digest::Digest;
use crate::execution::run::directory::{
    RunDescription, RunDirectoryError, RunRecord, each_record, is_run_id, latest, read_description,
};
use crate::execution::run::extent::{INPUTS_FILE, RECORDS_FILE, RUN_FILE};
use crate::execution::run::inputs::{INPUTS_SCHEMA, RunInputs, ShardInputs};
use crate::execution::run::reading;
use crate::execution::run::record::CellRecord;
use crate::outcome::label::cells_of;
use crate::output::json_problem;
use crate::task::{Cell, Task};

/// Names the run that began last.
pub const LATEST: &str = "latest";

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// The run finished.
    Finished,
    /// It was interrupted or killed, and can be continued.
    Unfinished,
    /// A living process uses it.
    Running,
    /// Its description can't be read.
    Unreadable,
}

impl RunState {
    /// Returns the name used in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Unfinished => "unfinished",
            Self::Running => "running",
            Self::Unreadable => "unreadable",
        }
    }
}

/// A run as it is listed.
#[derive(Clone, Debug, Serialize)]
pub struct RunEntry {
    /// Its directory's name.
    pub run_id: String,
    /// The run's state.
    pub state: RunState,
    /// The run's description; `None` if it can't be read.
    pub description: Option<RunDescription>,
    /// Why the run can't be read.
    pub reason: Option<String>,
    /// Bytes of all its files.
    pub bytes: u64,
}

/// A run with its inputs and records.
#[derive(Clone, Debug)]
pub struct StoredRun<I = RunInputs, R = CellRecord> {
    /// Its directory.
    pub path: PathBuf,
    /// The run's state.
    pub state: RunState,
    /// The run's description.
    pub description: RunDescription,
    /// The inputs; `None` for runs that kept none.
    pub inputs: Option<I>,
    /// The records so far, the last one of each execution.
    pub records: Vec<R>,
}

impl StoredRun {
    /// Tells whether every cell and method of the task has a record for each repeat.
    pub fn has_all_of(&self, task: &Task, repeats: u32) -> bool {
        let there: BTreeSet<(Cell, &str, u32)> = self
            .records
            .iter()
            .filter(|record| record.task_id == task.id)
            .map(|record| (record.cell, record.method.as_str(), record.repeat))
            .collect();
        cells_of(task.track).iter().all(|cell| {
            task.test_methods
                .iter()
                .all(|method| (1..=repeats).all(|repeat| there.contains(&(*cell, method.as_str(), repeat))))
        })
    }
}

/// Returns all runs of the data directory, oldest first, then unreadable ones.
///
/// # Errors
/// [`RunDirectoryError::Io`].
pub fn list(data_dir: &DataDir) -> Result<Vec<RunEntry>, RunDirectoryError> {
    let mut runs = Vec::new();
    for entry in fs::read_dir(data_dir.join("runs"))? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(run_id) = name.to_str().filter(|name| is_run_id(name) && entry.path().is_dir()) else { continue };
        let (description, reason) = match read_description(&entry.path()) {
            Ok(Some(description)) => (Some(description), None),
            Ok(None) => (None, Some("it has no run.json: its making was cut off".to_owned())),
            Err(error) => (None, Some(error.to_string())),
        };
        let state = match &description {
            Some(description) => state(&entry.path(), description)?,
            None => RunState::Unreadable,
        };
        let bytes = size(&entry.path())?;
        runs.push(RunEntry { run_id: run_id.to_owned(), state, description, reason, bytes });
    }
    let started = |run: &RunEntry| run.description.as_ref().map(|description| description.started.clone());
    runs.sort_by_cached_key(|run| (run.description.is_none(), started(run), run.run_id.clone()));
    Ok(runs)
}

/// Reads a run by its id; [`LATEST`] names the run that began last. A truncated last record is skipped and stays in the
/// file.
///
/// # Errors
/// [`RunDirectoryError`].
pub fn read(data_dir: &DataDir, run_id: &str) -> Result<StoredRun, RunDirectoryError> {
    read_at(find(data_dir, run_id)?)
}

/// Reads a run by its directory, for inputs of type `I` and records of type `R`.
///
/// # Errors
/// [`RunDirectoryError`].
pub fn read_at<I: DeserializeOwned, R: RunRecord>(path: PathBuf) -> Result<StoredRun<I, R>, RunDirectoryError> {
    let mut records = Vec::new();
    for_each_record(&path, |record| records.push(record))?;
    let StoredRun { path, state, description, inputs, .. } = read_without_records::<I>(path)?;
    Ok(StoredRun { path, state, description, inputs, records: latest(records) })
}

/// Reads a run by its directory, without its records.
///
/// # Errors
/// [`RunDirectoryError`].
pub fn read_without_records<I: DeserializeOwned>(path: PathBuf) -> Result<StoredRun<I, ()>, RunDirectoryError> {
    let description = describe(&path)?;
    let state = state(&path, &description)?;
    Ok(StoredRun { inputs: read_inputs(&path, &description)?, path, state, description, records: Vec::new() })
}

/// Reads the records of a run one by one, in the order of writing. Of several records with one name, the last one
/// counts.
///
/// # Errors
/// [`RunDirectoryError`].
pub fn for_each_record<R: RunRecord>(path: &Path, take: impl FnMut(R)) -> Result<(), RunDirectoryError> {
    let path = path.join(RECORDS_FILE);
    match reading::open(&path)? {
        Some(mut file) => each_record(&mut file, &path, take).map(drop),
        None => Ok(()),
    }
}

/// Returns the description of the run in a directory.
///
/// # Errors
/// [`RunDirectoryError`].
pub fn describe(path: &Path) -> Result<RunDescription, RunDirectoryError> {
    match read_description(path)? {
        Some(description) => Ok(description),
        None => Err(malformed(&path.join(RUN_FILE), "it is missing")),
    }
}

/// Returns what can't be seen of a finished run's files; `None` if all can, and for other runs.
///
/// # Errors
/// [`RunDirectoryError`].
pub fn missing(path: &Path, description: &RunDescription) -> Result<Option<String>, RunDirectoryError> {
    match description.extent {
        Some(extent) => extent.missing(path, description.inputs),
        None => Ok(None),
    }
}

/// Removes a run with all its files and returns their size in bytes; with `dry_run` nothing is removed.
///
/// # Errors
/// [`RunDirectoryError::InUse`] while a living process uses the run.
pub fn remove(data_dir: &DataDir, run_id: &str, dry_run: bool) -> Result<u64, RunDirectoryError> {
    let path = find(data_dir, run_id)?;
    let lock = fs::OpenOptions::new().write(true).create(true).truncate(false).open(path.join(".lock"))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        // Without locks, a run is free once it has finished.
        Err(errno) if lacks_locks(errno) && describe(&path)?.finished.is_some() => {}
        Err(_) => return Err(RunDirectoryError::InUse(run_id.to_owned())),
    }
    let bytes = size(&path)?;
    if !dry_run {
        // Moved away first, in one step. After a kill the rest is swept, and never mistaken for a run.
        let doomed = data_dir.temporary().join(format!("removed-{run_id}"));
        fs::rename(&path, &doomed)?;
        // NFS keeps a removed file below another name while it is open, and a directory with it.
        drop(lock);
        fs::remove_dir_all(&doomed)?;
    }
    Ok(bytes)
}

/// Returns the directory of a run; [`LATEST`] names the run that began last.
///
/// # Errors
/// [`RunDirectoryError::Unknown`], [`RunDirectoryError::InvalidId`].
pub fn find(data_dir: &DataDir, run_id: &str) -> Result<PathBuf, RunDirectoryError> {
    if !is_run_id(run_id) {
        return Err(RunDirectoryError::InvalidId(run_id.chars().take(120).collect()));
    }
    let path = data_dir.join("runs").join(run_id);
    match fs::metadata(&path) {
        Ok(found) if found.is_dir() => return Ok(path),
        // Not there is another thing than out of reach.
        Err(error) if is_gone(&error) => return Err(error.into()),
        _ => {}
    }
    if run_id == LATEST {
        let latest = list(data_dir)?.into_iter().rfind(|run| run.description.is_some());
        if let Some(run) = latest {
            return Ok(data_dir.join("runs").join(run.run_id));
        }
    }
    Err(RunDirectoryError::Unknown(run_id.to_owned()))
}

fn state(path: &Path, description: &RunDescription) -> Result<RunState, RunDirectoryError> {
    if description.finished.is_some() {
        return Ok(RunState::Finished);
    }
    let lock = match fs::File::open(path.join(".lock")) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(RunState::Unfinished),
        Err(error) => return Err(error.into()),
    };
    // The kernel drops a lock with its owner, so the lock file alone tells nothing.
    match flock(&lock, FlockOperation::NonBlockingLockShared) {
        Err(errno) if !lacks_locks(errno) => Ok(RunState::Running),
        _ => Ok(RunState::Unfinished),
    }
}

/// Returns which part of a selection a run executes; `None` for a whole one.
///
/// # Errors
/// [`RunDirectoryError`].
pub fn shard_at(path: &Path) -> Result<Option<ShardInputs>, RunDirectoryError> {
    #[derive(Deserialize)]
    struct Naming {
        #[serde(default)]
        shard: Option<ShardInputs>,
    }
    let inputs: Option<Naming> = read_inputs(path, &describe(path)?)?;
    Ok(inputs.and_then(|inputs| inputs.shard))
}

fn read_inputs<I: DeserializeOwned>(path: &Path, description: &RunDescription) -> Result<Option<I>, RunDirectoryError> {
    let file = path.join(INPUTS_FILE);
    let Some(bytes) = reading::read(&file)? else { return Ok(None) };
    if Digest::of(&bytes) != description.inputs {
        return Err(malformed(&file, "its digest is not the one in run.json"));
    }
    let value: serde_json::Value =
        serde_json::from_slice(&bytes).map_err(|error| malformed(&file, json_problem(&error)))?;
    match value.get("schema").and_then(serde_json::Value::as_u64) {
        Some(found) if found > u64::from(INPUTS_SCHEMA) => Err(RunDirectoryError::UnknownSchema {
            path: file,
            found: u32::try_from(found).unwrap_or(u32::MAX),
            known: INPUTS_SCHEMA,
        }),
        _ => serde_json::from_value(value).map(Some).map_err(|error| malformed(&file, json_problem(&error))),
    }
}

fn malformed(path: &Path, reason: impl ToString) -> RunDirectoryError {
    RunDirectoryError::Malformed { path: path.to_owned(), reason: reason.to_string() }
}

/// Returns the bytes of all regular files below `directory`. Files that vanish meanwhile count nothing.
fn size(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => directories.push(entry.path()),
                Ok(metadata) => bytes += metadata.len(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
