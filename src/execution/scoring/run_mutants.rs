//! The mutants that a run's tests meet. Each set is made once, so that the developers' tests and every submission meet
//! the same set, with or without results of other runs. Sets stay in the run's directory until the run ends, for a
//! resumed run.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fs_err as fs;

use super::cache::ResultCache;
use super::record::ScoreRecord;
use crate::artifact::key::key;
use crate::digest::Digest;
use crate::execution::fault::{ExecutionError, NoAnswer};
use crate::execution::mutation::Mutants;
use crate::metrics::mutation::MutantSet;
use crate::task::TaskId;

/// Subdirectory of a run's mutants by key, until the run ends.
const MUTANTS: &str = "mutants";

/// The mutants of a run.
pub(super) struct RunMutants {
    directory: PathBuf,
    own: ResultCache,
    /// A lock for each set, held while a job makes the set, so that other jobs wait for it.
    making: Mutex<HashMap<Digest, Arc<tokio::sync::Mutex<()>>>>,
    /// Final reasons for which sets do not exist.
    none: Mutex<HashMap<Digest, NoAnswer>>,
    /// Digests of the sets that a task's tests met.
    met: Mutex<BTreeMap<TaskId, Digest>>,
}

impl RunMutants {
    /// Returns the mutants of the run in a directory with these records.
    pub(super) fn of(run: &Path, records: &[ScoreRecord]) -> Self {
        let directory = run.join(MUTANTS);
        let met = records.iter().filter_map(|record| match record {
            ScoreRecord::Mutants(one) => Some((one.task_id.clone(), digest(&one.sets))),
            _ => None,
        });
        Self {
            own: ResultCache::new(directory.clone(), true),
            directory,
            making: Mutex::default(),
            none: Mutex::default(),
            met: Mutex::new(met.collect()),
        }
    }

    /// Returns a task's set for a key: the run's own, another run's if `others` may be read, or the result of `make`.
    ///
    /// # Errors
    /// [`ExecutionError`].
    pub(super) async fn get(
        &self,
        (task, key): (&TaskId, Digest),
        others: &ResultCache,
        make: impl Future<Output = Result<Mutants, ExecutionError>>,
    ) -> Result<Mutants, ExecutionError> {
        let turn = Arc::clone(self.making.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default());
        let _mine = turn.lock().await;
        if let Some(reason) = self.none.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Err(reason.clone().into());
        }
        if let Some(known) = self.own.value(key)? {
            return Ok(known);
        }
        if let Some(known) = others.value::<Mutants>(key)? {
            self.own.put_value(task, key, &known)?;
            return Ok(known);
        }
        let made = make.await;
        match &made {
            Ok(made) => {
                self.own.put_value(task, key, made)?;
                others.put_value(task, key, made)?;
            }
            Err(ExecutionError::NoAnswer(reason)) if !reason.may_pass() => {
                self.none.lock().unwrap_or_else(PoisonError::into_inner).insert(key, reason.clone());
            }
            Err(_) => {}
        }
        made
    }

    /// Tells whether all other tests of the task met the same sets. True for the first ones.
    pub(super) fn are_met(&self, task_id: &TaskId, sets: &[MutantSet]) -> bool {
        let digest = digest(sets);
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        *met.entry(task_id.clone()).or_insert(digest) == digest
    }

    /// Removes the sets that only this run needs.
    ///
    /// # Errors
    /// I/O errors of removing the run's sets.
    pub(super) fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn digest(sets: &[MutantSet]) -> Digest {
    key("mutant sets", 1, sets)
}

#[cfg(test)]
mod tests;
