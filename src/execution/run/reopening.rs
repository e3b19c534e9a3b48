//! Finished runs in which the machine failed, not the test: how much that is, and how such a run goes on elsewhere.

use std::collections::BTreeMap;
use std::io::{BufReader, BufWriter, Write as _};
use std::path::Path;

use fs_err as fs;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::Deserialize;

use super::directory::{RunDirectoryError, read_description, write_json};
use super::extent::{RECORDS_FILE, RUN_FILE, VERDICTS_FILE};
use super::list::{find, remove};
use super::reading;
use crate::data_dir::DataDir;
use crate::data_dir::shared::lacks_locks;
use crate::outcome::{InfraReason, Outcome};

/// What any record may say of a fault, and of what it is the record.
#[derive(Deserialize)]
struct Line {
    #[serde(flatten)]
    outcome: Option<Outcome>,
    /// Whether a fault cost a measurement.
    #[serde(default)]
    lost: bool,
    cause: Option<String>,
    record: Option<String>,
    model: Option<String>,
    task_id: Option<String>,
    cell: Option<String>,
    code: Option<String>,
    method: Option<String>,
    repeat: Option<u32>,
    path: Option<String>,
}

/// A fault of the machine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    Execution,
    /// No image could be used. The run's inputs lack it, so that no other machine can go on with the run.
    Image,
}

impl Line {
    /// Returns the fault in a record, and what the record is of. Of several records of the same, the last counts.
    fn read(line: &[u8]) -> Option<(String, Fault)> {
        let found: Self = serde_json::from_slice(line).ok()?;
        let fault = match found.outcome {
            Some(Outcome::InfraFail(InfraReason::Image)) => Fault::Image,
            Some(Outcome::InfraFail(reason)) if reason.is_the_machines() => Fault::Execution,
            // What was lost for lack of sources or artifacts is lost everywhere.
            _ if found.lost && found.cause.as_deref().is_some_and(tells_of_the_machine) => Fault::Execution,
            _ => Fault::None,
        };
        let texts = [found.record, found.model, found.task_id, found.cell, found.code, found.method, found.path];
        let name = texts.map(Option::unwrap_or_default).join("\n");
        Some((format!("{name}\n{}", found.repeat.unwrap_or_default()), fault))
    }
}

fn tells_of_the_machine(cause: &str) -> bool {
    let reasons = [InfraReason::Engine, InfraReason::Image, InfraReason::Disk, InfraReason::Killed];
    reasons.into_iter().any(|reason| cause.contains(&Outcome::InfraFail(reason).to_string()))
}

/// Returns the number of records of a run in which a fault of the machine stands instead of an answer.
///
/// # Errors
/// [`RunDirectoryError`].
pub fn machine_faults(data_dir: &DataDir, run_id: &str) -> Result<usize, RunDirectoryError> {
    Ok(faults(&find(data_dir, run_id)?)?.into_values().filter(|fault| *fault != Fault::None).count())
}

fn faults(run: &Path) -> Result<BTreeMap<String, Fault>, RunDirectoryError> {
    let mut faults = BTreeMap::new();
    each_line(&run.join(RECORDS_FILE), |line| {
        faults.extend(Line::read(line));
        Ok(())
    })?;
    Ok(faults)
}

/// Returns the bytes of a run's records, as far as they can be seen.
pub fn recorded_bytes(data_dir: &DataDir, run_id: &str) -> u64 {
    let records = find(data_dir, run_id).and_then(|path| Ok(fs::metadata(path.join(RECORDS_FILE))?));
    records.map_or(0, |records| records.len())
}

/// Makes a finished run an unfinished one, without the records of the machine's faults: the same command executes them again. A run
/// that could not use an image is removed.
///
/// # Errors
/// [`RunDirectoryError::InUse`] while a living process uses the run.
pub fn reopen(data_dir: &DataDir, run_id: &str) -> Result<(), RunDirectoryError> {
    let path = find(data_dir, run_id)?;
    let lock = fs::OpenOptions::new().write(true).create(true).truncate(false).open(path.join(".lock"))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(errno) if lacks_locks(errno) => {}
        Err(Errno::WOULDBLOCK) => return Err(RunDirectoryError::InUse(run_id.to_owned())),
        Err(errno) => return Err(std::io::Error::from(errno).into()),
    }
    if faults(&path)?.values().any(|fault| *fault == Fault::Image) {
        drop(lock);
        return remove(data_dir, run_id, false).map(drop);
    }
    let Some(mut description) = read_description(&path)? else {
        return Err(RunDirectoryError::Unknown(run_id.to_owned()));
    };
    // First, so that after a kill the run is unfinished, with records that are found again.
    (description.finished, description.extent) = (None, None);
    write_json(&path.join(RUN_FILE), &description)?;
    match fs::remove_file(path.join(VERDICTS_FILE)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let (records, kept) = (path.join(RECORDS_FILE), path.join(format!("{RECORDS_FILE}.new")));
    let mut out = BufWriter::new(fs::File::create(&kept)?);
    each_line(&records, |line| match Line::read(line) {
        Some((_, Fault::None)) | None => Ok(out.write_all(line)?),
        Some(_) => Ok(()),
    })?;
    out.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_data()?;
    Ok(fs::rename(kept, records)?)
}

fn each_line(
    path: &Path,
    mut take: impl FnMut(&[u8]) -> Result<(), RunDirectoryError>,
) -> Result<(), RunDirectoryError> {
    let Some(file) = reading::open(path)? else { return Ok(()) };
    let (mut reader, mut line) = (BufReader::new(file), Vec::new());
    while reading::read_line(&mut reader, &mut line, path)? {
        take(&line)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::run::directory::RunDirectory;
    use crate::execution::run::directory::tests::record;
    use crate::execution::run::record::CellRecord;

    #[test]
    fn a_reopened_run_lacks_what_the_machine_cost() {
        let directory = tempfile::tempdir().unwrap();
        let data_dir = DataDir::open(directory.path()).unwrap();
        let open = || RunDirectory::open(&data_dir, "validate", b"{}", Some("r"), false);
        let outcomes = [
            Outcome::Pass,
            Outcome::InfraFail(InfraReason::Engine),
            Outcome::InfraFail(InfraReason::Build),
            Outcome::InfraFail(InfraReason::Killed),
        ];
        let (mut run, _) = open().unwrap();
        for (repeat, outcome) in (1..).zip(outcomes) {
            run.append(&CellRecord { outcome, ..record(repeat) }).unwrap();
        }
        assert!(matches!(reopen(&data_dir, "r"), Err(RunDirectoryError::InUse(_))));
        run.finish(b"{}").unwrap();
        assert_eq!(machine_faults(&data_dir, "r").unwrap(), 2);
        assert!(open().is_err(), "it has finished");
        reopen(&data_dir, "r").unwrap();
        let (run, known) = open().unwrap();
        assert_eq!(known.iter().map(|record| record.repeat).collect::<Vec<_>>(), [1, 3]);
        assert!(!run.path().join(VERDICTS_FILE).exists());
        drop(run);
        assert_eq!(machine_faults(&data_dir, "r").unwrap(), 0);

        // What was executed again counts, and a run without an image has other inputs elsewhere.
        let (mut run, _) = open().unwrap();
        for (repeat, outcome) in [(5, Outcome::InfraFail(InfraReason::Disk)), (5, Outcome::Pass)] {
            run.append(&CellRecord { outcome, ..record(repeat) }).unwrap();
        }
        assert_eq!(machine_faults(&data_dir, "r").unwrap(), 0);
        run.append(&CellRecord { outcome: Outcome::InfraFail(InfraReason::Image), ..record(6) }).unwrap();
        run.finish(b"{}").unwrap();
        assert_eq!(machine_faults(&data_dir, "r").unwrap(), 1);
        reopen(&data_dir, "r").unwrap();
        assert!(matches!(find(&data_dir, "r"), Err(RunDirectoryError::Unknown(_))));

        let lost =
            |cause: &str| Line::read(format!(r#"{{"record":"coverage","lost":true,"cause":"{cause}"}}"#).as_bytes());
        assert!(lost("infra_fail(engine): no").unwrap().1 == Fault::Execution);
        assert!(lost("infra_fail(resolution): no").unwrap().1 == Fault::None);
    }
}
