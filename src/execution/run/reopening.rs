//! Finished runs in which the machine failed, not the test: how much that is, and how such a run goes on elsewhere.

use std::io::{BufReader, BufWriter, Write as _};
use std::path::Path;

use fs_err as fs;
use rustix::fs::{FlockOperation, flock};
use serde::Deserialize;

use super::directory::{RunDirectoryError, read_description, write_json};
use super::extent::{RECORDS_FILE, RUN_FILE, VERDICTS_FILE};
use super::list::find;
use super::reading;
use crate::data_dir::DataDir;
use crate::data_dir::shared::lacks_locks;
use crate::outcome::Outcome;

/// What any record may say of a fault.
#[derive(Deserialize)]
struct Line {
    #[serde(flatten)]
    outcome: Option<Outcome>,
    /// Whether a fault cost a measurement.
    #[serde(default)]
    lost: bool,
}

impl Line {
    fn is_the_machines_fault(line: &[u8]) -> bool {
        let found: Option<Self> = serde_json::from_slice(line).ok();
        found.is_some_and(|found| {
            found.lost || matches!(found.outcome, Some(Outcome::InfraFail(reason)) if reason.is_the_machines())
        })
    }
}

/// Returns the number of records of a run in which a fault of the machine stands instead of an answer.
///
/// # Errors
/// [`RunDirectoryError`].
pub fn machine_faults(data_dir: &DataDir, run_id: &str) -> Result<usize, RunDirectoryError> {
    let mut faults = 0;
    each_line(&find(data_dir, run_id)?.join(RECORDS_FILE), |line| {
        faults += usize::from(Line::is_the_machines_fault(line));
        Ok(())
    })?;
    Ok(faults)
}

/// Returns the bytes of a run's records, as far as they can be seen.
pub fn recorded_bytes(data_dir: &DataDir, run_id: &str) -> u64 {
    let records = find(data_dir, run_id).and_then(|path| Ok(fs::metadata(path.join(RECORDS_FILE))?));
    records.map_or(0, |records| records.len())
}

/// Makes a finished run an unfinished one, without the records of the machine's faults: the same command executes them again.
///
/// # Errors
/// [`RunDirectoryError::InUse`] while a living process uses the run.
pub fn reopen(data_dir: &DataDir, run_id: &str) -> Result<(), RunDirectoryError> {
    let path = find(data_dir, run_id)?;
    let lock = fs::OpenOptions::new().write(true).create(true).truncate(false).open(path.join(".lock"))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(errno) if lacks_locks(errno) => {}
        Err(_) => return Err(RunDirectoryError::InUse(run_id.to_owned())),
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
    each_line(&records, |line| match Line::is_the_machines_fault(line) {
        true => Ok(()),
        false => Ok(out.write_all(line)?),
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
    use crate::outcome::InfraReason;

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
        assert!(Line::is_the_machines_fault(br#"{"record":"coverage","lost":true}"#));
        assert!(!Line::is_the_machines_fault(br#"{"record":"coverage","lost":false,"coverage":1.0}"#));
    }
}
