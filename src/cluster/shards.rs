//! What the files of shards tell, where a shared file system may show them late, and what follows for a shard without a job.

use std::time::Duration;

use super::ClusterError;
use super::ended::Ended;
use super::sharded_run::AskedInputs;
use crate::data_dir::DataDir;
use crate::execution::run::directory::RunDirectoryError;
use crate::execution::run::list::{describe, find, missing, shard_at};
use crate::execution::run::reopening;

/// What the files of a run tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The run has not finished, as far as can be seen.
    Unfinished,
    /// It has finished, but some of its files can't be seen.
    Partly(String),
    /// It has finished, and so many of its records are faults of the machine, which another attempt may mend.
    Faulty(usize),
    /// All of the finished run can be seen.
    Whole,
}

/// Looks at the files of a run.
///
/// # Errors
/// [`ClusterError::Gone`], [`ClusterError::Io`].
pub fn look(data_dir: &DataDir, run_id: &str) -> Result<Seen, ClusterError> {
    let look = || -> Result<Seen, RunDirectoryError> {
        let path = find(data_dir, run_id)?;
        let description = describe(&path)?;
        Ok(match description.finished {
            None => Seen::Unfinished,
            Some(_) => missing(&path, &description)?.map_or(Seen::Whole, Seen::Partly),
        })
    };
    match look() {
        Err(RunDirectoryError::Io(error) | RunDirectoryError::Gone(error)) => Err(error.into()),
        // A job that has just begun its run may not have described it yet.
        Err(_) => Ok(Seen::Unfinished),
        Ok(seen) => Ok(seen),
    }
}

/// Tells whether a finished run is this shard of what was asked.
///
/// # Errors
/// As [`look`].
pub fn is_part(
    data_dir: &DataDir,
    run_id: &str,
    (shard, of): (u32, u32),
    asked: &AskedInputs,
) -> Result<bool, ClusterError> {
    let found = match find(data_dir, run_id).and_then(|path| shard_at(&path)) {
        Err(RunDirectoryError::Io(error) | RunDirectoryError::Gone(error)) => return Err(error.into()),
        found => found.ok().flatten(),
    };
    Ok(found.is_some_and(|found| {
        let part = (found.shard.number().get(), found.shard.of().get());
        (part, found.selection, found.request) == ((shard, of), asked.selection, asked.request)
    }))
}

/// Tells whether a run exists and has finished, even if some of its files can't be seen.
///
/// # Errors
/// As [`look`].
pub fn has_finished(data_dir: &DataDir, run_id: &str) -> Result<bool, ClusterError> {
    match find(data_dir, run_id).and_then(|path| describe(&path)) {
        Err(RunDirectoryError::Io(error) | RunDirectoryError::Gone(error)) => Err(error.into()),
        found => Ok(found.is_ok_and(|description| description.finished.is_some())),
    }
}

/// Returns the number of records of a finished run in which a fault of its machine stands instead of an answer.
///
/// # Errors
/// As [`look`].
pub fn machine_faults(data_dir: &DataDir, run_id: &str) -> Result<usize, ClusterError> {
    match reopening::machine_faults(data_dir, run_id) {
        Err(RunDirectoryError::Io(error) | RunDirectoryError::Gone(error)) => Err(error.into()),
        // Whoever merges the run tells what is wrong with it.
        found => Ok(found.unwrap_or_default()),
    }
}

/// How often Slurm may know nothing of an unfinished shard before anything follows.
pub const MOST_LOOKS: u32 = 3;
/// How long a job's exit code may stay unseen before its shard counts as lost. NFS keeps what it knows of a directory for a
/// minute.
pub const UNSEEN: Duration = Duration::from_secs(75);
/// How long the files of a shard whose job has done all may stay unseen.
const LATE: Duration = Duration::from_secs(300);

/// What follows for a shard that has no job and is not seen whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Its files may still appear.
    Waits,
    /// Its job was killed, or failed in a way that another attempt may mend.
    Lost,
    /// Its job has ended with this exit code, and would again.
    Failed(u8),
    /// Its job has done all, but its files do not appear.
    Late(Duration),
}

/// Returns the fate of a shard without a job. `exit` is the exit code of its last job, and `ended` the way in which Slurm ended
/// that job; both may be unknown. The shard was found without a job `looks` times in a row, the first time `since` ago.
pub fn fate(seen: &Seen, exit: Option<u8>, ended: Option<&Ended>, looks: u32, since: Duration) -> Fate {
    match (seen, exit) {
        // Codes 0 and 1 mean that the run has its results, so a new attempt would do nothing.
        (Seen::Partly(_) | Seen::Whole, _) | (Seen::Unfinished, Some(0 | 1)) => match since < LATE {
            true => Fate::Waits,
            false => Fate::Late(since),
        },
        _ if looks < MOST_LOOKS => Fate::Waits,
        // Bad arguments, inputs or origins are the same at the next attempt. A node may lack an engine, or have damaged bytes.
        (Seen::Unfinished, Some(status @ (2 | 4 | 5))) => Fate::Failed(status),
        (Seen::Unfinished, Some(_)) | (Seen::Faulty(_), _) => Fate::Lost,
        (Seen::Unfinished, None) => match since < UNSEEN && !ended.is_some_and(Ended::was_killed) {
            true => Fate::Waits,
            false => Fate::Lost,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_not_be_late_is_lost() {
        let partly = Seen::Partly("records.jsonl".to_owned());
        let (soon, minutes, long) = (Duration::from_secs(5), UNSEEN, LATE);
        for (seen, exit, looks, since, expected) in [
            (&Seen::Unfinished, None, 2, minutes, Fate::Waits),
            (&Seen::Unfinished, None, 9, soon, Fate::Waits),
            (&Seen::Unfinished, None, 9, minutes, Fate::Lost),
            (&Seen::Unfinished, Some(3), 2, soon, Fate::Waits),
            (&Seen::Unfinished, Some(3), 3, soon, Fate::Lost),
            (&Seen::Unfinished, Some(2), 2, soon, Fate::Waits),
            (&Seen::Unfinished, Some(2), 3, soon, Fate::Failed(2)),
            (&Seen::Unfinished, Some(7), 3, soon, Fate::Lost),
            (&Seen::Faulty(2), Some(3), 2, soon, Fate::Waits),
            (&Seen::Faulty(2), None, 3, soon, Fate::Lost),
            (&Seen::Unfinished, Some(0), 99, minutes, Fate::Waits),
            (&Seen::Unfinished, Some(1), 99, long, Fate::Late(long)),
            (&partly, None, 99, minutes, Fate::Waits),
            (&partly, Some(2), 99, long, Fate::Late(long)),
        ] {
            assert_eq!(fate(seen, exit, None, looks, since), expected, "{seen:?} {exit:?} {looks} {since:?}");
        }
        let ended = |state: &str| Ended { state: state.to_owned(), node: None };
        for (state, looks, expected) in [
            ("TIMEOUT", 3, Fate::Lost),
            ("TIMEOUT", 2, Fate::Waits),
            ("COMPLETED", 9, Fate::Waits),
            ("FAILED", 9, Fate::Waits),
        ] {
            assert_eq!(fate(&Seen::Unfinished, None, Some(&ended(state)), looks, soon), expected, "{state} {looks}");
        }
        // Its script had written this before.
        assert_eq!(fate(&Seen::Unfinished, Some(0), Some(&ended("TIMEOUT")), 9, soon), Fate::Waits);
    }
}
