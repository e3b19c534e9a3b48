//! Run directories: append-only records of one invocation. A run can be resumed and reported from its directory.
//!
//! ```text
//! runs/<run id>/run.json        what was asked for; equal inputs may continue an unfinished run
//!               inputs.json     what decides the results, by the digest in run.json
//!               records.jsonl   one record a line; a torn last line is what a kill leaves and is cut off
//!               verdicts.json   the results, once finished
//!               logs/<task id>/<cell>/…
//!               disputes/<task id>.md  what shows that a task's labels do not hold
//!               result-keys     keys of the kept results that `score` used or made, one a line
//! ```

use std::collections::BTreeMap;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

use fs_err as fs;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::data_dir::shared::{lacks_locks, wait_written};
use crate::data_dir::{DataDir, write_atomically};
use crate::digest::Digest;
use crate::execution::run::extent::{Extent, INPUTS_FILE, RECORDS_FILE, RUN_FILE, VERDICTS_FILE};
use crate::execution::run::reading;
pub use crate::execution::run::reading::RunDirectoryError;
use crate::execution::run::record::{CellRecord, ExecutionPath, RECORD_SCHEMA};
use crate::output::json_problem;
use crate::task::{Cell, MethodId, TaskId};

const RUN_SCHEMA: u32 = 1;

/// A line of a run's `records.jsonl`.
pub trait RunRecord: Serialize + DeserializeOwned {
    /// The newest schema that this program writes.
    const SCHEMA: u32;

    /// Names the execution of a record. Of several records with the same name, the last counts.
    type Name: Ord;

    /// Returns its schema.
    fn schema(&self) -> u32;

    /// Returns the name of the record's execution.
    fn name(&self) -> Self::Name;
}

impl RunRecord for CellRecord {
    const SCHEMA: u32 = RECORD_SCHEMA;

    type Name = (TaskId, Cell, MethodId, u32, ExecutionPath);

    fn schema(&self) -> u32 {
        self.schema
    }

    fn name(&self) -> Self::Name {
        (self.task_id.clone(), self.cell, self.method.clone(), self.repeat, self.path)
    }
}

/// The description of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunDescription {
    /// Schema of `run.json`.
    pub schema: u32,
    /// The run's id.
    pub run_id: String,
    /// The subcommand.
    pub command: String,
    /// Digest of everything that decides the results.
    pub inputs: Digest,
    /// Start of the run, RFC 3339.
    pub started: String,
    /// End of the run, RFC 3339; `None` while unfinished.
    pub finished: Option<String>,
    /// What the finished run consists of; `None` while unfinished, and for runs of earlier programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extent: Option<Extent>,
}

/// An open run, held exclusively by this process.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    description: RunDescription,
    records: fs::File,
    /// Length of the complete records in bytes.
    whole_bytes: u64,
    _lock: fs::File,
}

impl RunDirectory {
    /// Opens the run `run_id`. Without an id, resumes the newest unfinished run with equal inputs unless `fresh`, or
    /// starts a new one. `inputs` are the bytes of the run's inputs. Returns the run and its records.
    ///
    /// # Errors
    /// [`RunDirectoryError`].
    pub fn open(
        data_dir: &DataDir,
        command: &str,
        inputs: &[u8],
        run_id: Option<&str>,
        fresh: bool,
    ) -> Result<(Self, Vec<CellRecord>), RunDirectoryError> {
        Self::open_of(data_dir, command, inputs, run_id, fresh)
    }

    /// Opens a run as [`RunDirectory::open`] does, for records of type `R`.
    ///
    /// # Errors
    /// [`RunDirectoryError`].
    pub fn open_of<R: RunRecord>(
        data_dir: &DataDir,
        command: &str,
        inputs: &[u8],
        run_id: Option<&str>,
        fresh: bool,
    ) -> Result<(Self, Vec<R>), RunDirectoryError> {
        let asked = Asked { command, digest: Digest::of(inputs), inputs };
        let runs = data_dir.join("runs");
        if let Some(run_id) = run_id {
            if !is_run_id(run_id) {
                return Err(RunDirectoryError::InvalidId(run_id.chars().take(120).collect()));
            }
            let path = runs.join(run_id);
            if asked.continued(&path, run_id)?.is_some() && fresh {
                return Err(RunDirectoryError::Finished { run_id: run_id.to_owned() });
            }
            fs::create_dir_all(&path)?;
            return Self::hold(path, &asked, run_id);
        }
        if !fresh {
            for (run_id, path) in unfinished(&runs, &asked)? {
                match Self::hold(path, &asked, &run_id) {
                    // Another process has used, finished or removed it in the meantime.
                    Err(RunDirectoryError::InUse(_) | RunDirectoryError::Finished { .. }) => {}
                    Err(RunDirectoryError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => {}
                    other => return other,
                }
            }
        }
        let started = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S").to_string();
        let mut run_id = format!("{command}-{started}");
        let mut number = 1;
        // The first process to create the directory gets the name, because two runs may begin in the same second.
        while let Err(error) = fs::create_dir(runs.join(&run_id)) {
            if error.kind() != std::io::ErrorKind::AlreadyExists {
                return Err(error.into());
            }
            number += 1;
            run_id = format!("{command}-{started}-{number}");
        }
        Self::hold(runs.join(&run_id), &asked, &run_id)
    }

    /// Takes an existing run directory for this process alone, and begins the run if no process has done so.
    fn hold<R: RunRecord>(path: PathBuf, asked: &Asked<'_>, run_id: &str) -> Result<(Self, Vec<R>), RunDirectoryError> {
        let options =
            |path: PathBuf| fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let lock = options(path.join(".lock"))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(RunDirectoryError::InUse(run_id.to_owned())),
            // Without locks, whoever gives out runs, such as a scheduler, gives each to one process.
            Err(errno) if lacks_locks(errno) => tracing::warn!("no lock on {}", path.display()),
            Err(error) => return Err(std::io::Error::from(error).into()),
        }
        // Read under the lock: before, another process may have begun or finished the run.
        let description = match asked.continued(&path, run_id)? {
            Some(found) => found,
            None => asked.begin(&path, run_id)?,
        };
        let mut records = options(path.join(RECORDS_FILE))?;
        let (found, whole_bytes) = read_records(&mut records, &path.join(RECORDS_FILE))?;
        records.set_len(whole_bytes)?;
        records.seek(std::io::SeekFrom::End(0))?;
        Ok((Self { path, description, records, whole_bytes, _lock: lock }, found))
    }

    /// Returns the run's id.
    pub fn run_id(&self) -> &str {
        &self.description.run_id
    }

    /// Returns the run's directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends one record. After a kill or on a full disk, the record is either complete or absent.
    ///
    /// # Errors
    /// [`RunDirectoryError::Full`] if the disk has no space; other I/O errors of writing `records.jsonl`.
    pub fn append(&mut self, record: &impl RunRecord) -> Result<(), RunDirectoryError> {
        let mut line = serde_json::to_vec(record).map_err(std::io::Error::other)?;
        line.push(b'\n');
        if let Err(source) = self.records.write_all(&line) {
            // If this fails, the next process removes the incomplete record, as after a kill.
            let cut = self.records.set_len(self.whole_bytes);
            let sought = self.records.seek(std::io::SeekFrom::Start(self.whole_bytes));
            if let Err(error) = cut.and(sought.map(drop)) {
                tracing::debug!("{error}");
            }
            return Err(source.into());
        }
        self.whole_bytes += line.len() as u64;
        Ok(())
    }

    /// Writes `verdicts.json` and marks the run as finished.
    ///
    /// # Errors
    /// Errors of listing the run's files and of writing `verdicts.json` and `run.json`.
    pub fn finish(mut self, verdicts: &[u8]) -> Result<(), RunDirectoryError> {
        self.records.sync_data()?;
        wait_written(&self.path)?;
        write_atomically(&self.path.join(VERDICTS_FILE), verdicts)?;
        self.description.extent = Some(Extent::of(&self.path, self.whole_bytes)?);
        self.description.finished = Some(jiff::Timestamp::now().to_string());
        write_json(&self.path.join(RUN_FILE), &self.description)
    }
}

/// The run that a command wants.
struct Asked<'a> {
    command: &'a str,
    inputs: &'a [u8],
    /// The inputs' digest.
    digest: Digest,
}

impl Asked<'_> {
    fn is_of(&self, found: &RunDescription) -> bool {
        found.inputs == self.digest && found.command == self.command
    }

    /// Returns the description of the run in a directory if it can be continued; `None` if no run was begun there. A
    /// run that can't be continued is an error.
    fn continued(&self, path: &Path, run_id: &str) -> Result<Option<RunDescription>, RunDirectoryError> {
        let run_id = || run_id.to_owned();
        match read_description(path)? {
            Some(found) if !self.is_of(&found) => Err(RunDirectoryError::OtherInputs { run_id: run_id() }),
            Some(found) if found.finished.is_some() => Err(RunDirectoryError::Finished { run_id: run_id() }),
            found => Ok(found),
        }
    }

    fn begin(&self, path: &Path, run_id: &str) -> Result<RunDescription, RunDirectoryError> {
        fs::create_dir_all(path.join("logs"))?;
        write_atomically(&path.join(INPUTS_FILE), self.inputs)?;
        let description = RunDescription {
            schema: RUN_SCHEMA,
            run_id: run_id.to_owned(),
            command: self.command.to_owned(),
            inputs: self.digest,
            started: jiff::Timestamp::now().to_string(),
            finished: None,
            extent: None,
        };
        write_json(&path.join(RUN_FILE), &description)?;
        Ok(description)
    }
}

/// Tells whether a text can name a run.
pub fn is_run_id(text: &str) -> bool {
    text.len() <= 100
        && text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), RunDirectoryError> {
    let mut bytes = serde_json::to_vec_pretty(value).map_err(std::io::Error::other)?;
    bytes.push(b'\n');
    Ok(write_atomically(path, &bytes)?)
}

pub(in crate::execution) fn read_description(path: &Path) -> Result<Option<RunDescription>, RunDirectoryError> {
    let file = path.join(RUN_FILE);
    let Some(text) = reading::read(&file)? else { return Ok(None) };
    let malformed =
        |reason: serde_json::Error| RunDirectoryError::Malformed { path: file.clone(), reason: json_problem(&reason) };
    let value: serde_json::Value = serde_json::from_slice(&text).map_err(malformed)?;
    match value.get("schema").and_then(serde_json::Value::as_u64) {
        Some(found) if found > u64::from(RUN_SCHEMA) => {
            let found = u32::try_from(found).unwrap_or(u32::MAX);
            Err(RunDirectoryError::UnknownSchema { path: file, found, known: RUN_SCHEMA })
        }
        _ => serde_json::from_value(value).map(Some).map_err(malformed),
    }
}

/// Returns the unfinished runs with the wanted inputs by id and directory, newest first.
fn unfinished(runs: &Path, asked: &Asked<'_>) -> Result<Vec<(String, PathBuf)>, RunDirectoryError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(runs)? {
        let path = entry?.path();
        // A run that can't be read is not continued. `runs list` shows it.
        if let Ok(Some(run)) = read_description(&path)
            && asked.is_of(&run)
            && run.finished.is_none()
        {
            found.push((run.started, run.run_id, path));
        }
    }
    found.sort();
    Ok(found.into_iter().rev().map(|(_, run_id, path)| (run_id, path)).collect())
}

/// Returns the complete records of the file, the last one of each name, and the length of all. An incomplete last line
/// is left out.
pub(in crate::execution) fn read_records<R: RunRecord>(
    file: &mut fs::File,
    path: &Path,
) -> Result<(Vec<R>, u64), RunDirectoryError> {
    let mut records = Vec::new();
    let whole_bytes = each_record(file, path, |record| records.push(record))?;
    Ok((latest(records), whole_bytes))
}

/// Reads the complete records of the file one by one and returns their length. An incomplete last line is left out.
pub(in crate::execution) fn each_record<R: RunRecord>(
    file: &mut fs::File,
    path: &Path,
    mut take: impl FnMut(R),
) -> Result<u64, RunDirectoryError> {
    let mut whole_bytes = 0;
    let mut reader = std::io::BufReader::new(file);
    let mut line = Vec::new();
    for number in 1.. {
        if !reading::read_line(&mut reader, &mut line, path)? || line.last() != Some(&b'\n') {
            break;
        }
        let malformed = |reason: String| RunDirectoryError::Malformed { path: path.to_owned(), reason };
        let record: R = serde_json::from_slice(&line)
            .map_err(|error| malformed(format!("record {number}: {}", json_problem(&error))))?;
        if record.schema() > R::SCHEMA {
            return Err(RunDirectoryError::UnknownSchema {
                path: path.to_owned(),
                found: record.schema(),
                known: R::SCHEMA,
            });
        }
        take(record);
        whole_bytes += line.len() as u64;
    }
    Ok(whole_bytes)
}

/// Keeps the last record of each name, sorted. An interrupted cell is executed again as a whole, so records may repeat.
pub fn latest<R: RunRecord>(records: Vec<R>) -> Vec<R> {
    let mut by_name = BTreeMap::new();
    for record in records {
        by_name.insert(record.name(), record);
    }
    by_name.into_values().collect()
}

#[cfg(test)]
pub(super) mod tests;
