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
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::execution::scoring::record::{MutantsRecord, SCORE_SCHEMA};

    fn mutants(path: &str) -> Mutants {
        Mutants { set: MutantSet { path: path.to_owned(), ..MutantSet::default() }, texts: vec!["text".to_owned()] }
    }

    fn path_of(found: Mutants) -> String {
        found.set.path
    }

    #[tokio::test]
    async fn a_set_is_made_once_a_run_though_no_other_runs_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let (run, results) = (directory.path().join("run"), directory.path().join("results"));
        let others = ResultCache::new(results.clone(), false);
        let key = Digest::of(b"key");
        others.put_value(key, &mutants("of another run")).unwrap();
        let made = AtomicUsize::new(0);
        let make = || async {
            let number = made.fetch_add(1, Ordering::Relaxed);
            // Long enough for the other one to come.
            tokio::task::yield_now().await;
            Ok(mutants(&format!("made {number}")))
        };
        let begun = RunMutants::of(&run, &[]);
        let (one, other) = tokio::join!(begun.get(key, &others, make()), begun.get(key, &others, make()));
        assert_eq!([one, other].map(|found| path_of(found.unwrap())), ["made 0", "made 0"]);
        assert_eq!(path_of(begun.get(Digest::of(b"other"), &others, make()).await.unwrap()), "made 1");

        let continued = RunMutants::of(&run, &[]);
        assert_eq!(path_of(continued.get(key, &others, make()).await.unwrap()), "made 0", "the run is the same");
        continued.remove().unwrap();
        continued.remove().unwrap();
        assert_eq!(path_of(continued.get(key, &others, make()).await.unwrap()), "made 2");

        let reading = ResultCache::new(results, true);
        let next = RunMutants::of(&directory.path().join("next"), &[]);
        assert_eq!(path_of(next.get(key, &reading, make()).await.unwrap()), "made 2", "the last that was kept");
        let never = || async { Err(NoAnswer::never("no source").into()) };
        for make in [never(), never()] {
            assert!(next.get(Digest::of(b"none"), &reading, make).await.is_err());
        }
        assert!(next.get(Digest::of(b"none"), &reading, make()).await.is_err(), "found out once");
        let fault = || async { Err(NoAnswer::fault("no engine").into()) };
        assert!(next.get(Digest::of(b"third"), &reading, fault()).await.is_err());
        assert_eq!(path_of(next.get(Digest::of(b"third"), &reading, make()).await.unwrap()), "made 3", "tried again");
    }

    #[test]
    fn all_tests_of_a_task_meet_the_same_sets() {
        let sets = |path: &str| vec![mutants(path).set];
        let task = |id: &str| id.parse::<TaskId>().unwrap();
        let record = MutantsRecord { schema: SCORE_SCHEMA, task_id: task("known"), sets: sets("a") };
        let met = RunMutants::of(Path::new(""), &[ScoreRecord::Mutants(record)]);
        for (id, path, expected) in [
            ("known", "b", false),
            ("known", "a", true),
            ("first", "b", true),
            ("first", "a", false),
            ("first", "b", true),
            ("other", "a", true),
        ] {
            assert_eq!(met.are_met(&task(id), &sets(path)), expected, "{id} {path}");
        }
    }
}
