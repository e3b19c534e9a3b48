//! The mutants that a run's tests meet. Each set is made once, so that the developers' tests and every submission meet
//! the same set, with or without results of other runs. Sets lie in the run's directory until the run ends, so that a
//! resumed run has them.

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

/// Where a run keeps its mutants until it has ended, by key.
const MUTANTS: &str = "mutants";

/// The mutants of a run.
pub(super) struct RunMutants {
    directory: PathBuf,
    own: ResultCache,
    /// A lock for each set, held while a job makes the set, so that other jobs wait for it.
    making: Mutex<HashMap<Digest, Arc<tokio::sync::Mutex<()>>>>,
    /// Why there are none, and never will be: found out once.
    none: Mutex<HashMap<Digest, NoAnswer>>,
    /// Digests of the sets that tests of a task met.
    met: Mutex<BTreeMap<TaskId, Digest>>,
}

impl RunMutants {
    /// Returns those of the run in a directory that has these records.
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

    /// Returns the set of a key: the run's own, another run's where `others` may be read, or what `make` makes.
    ///
    /// # Errors
    /// [`ExecutionError`].
    pub(super) async fn get(
        &self,
        key: Digest,
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
            self.own.put_value(key, &known)?;
            return Ok(known);
        }
        let made = make.await;
        match &made {
            Ok(made) => {
                self.own.put_value(key, made)?;
                others.put_value(key, made)?;
            }
            Err(ExecutionError::NoAnswer(reason)) if !reason.may_pass() => {
                self.none.lock().unwrap_or_else(PoisonError::into_inner).insert(key, reason.clone());
            }
            Err(_) => {}
        }
        made
    }

    /// Tells whether these are the sets that all other tests of the task met. The first ones are.
    pub(super) fn are_met(&self, task_id: &TaskId, sets: &[MutantSet]) -> bool {
        let digest = digest(sets);
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        *met.entry(task_id.clone()).or_insert(digest) == digest
    }

    /// Removes what only this run needed.
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
