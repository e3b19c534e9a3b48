//! Joins the inputs of shards into those of the run that they are parts of.
//!
//! Shards may come from other machines. They are joined only if they are parts of one selection, made in the same way, and complete.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU32;
use std::path::Path;

use fs_err as fs;

use crate::error::{ExitStatus, Failure};
use crate::execution::run::extent::{DEEPEST, DIRECTORIES, RESULT_KEYS};
use crate::execution::run::inputs::{RunInputs, ShardInputs};
use crate::execution::run::reading::{self, RunDirectoryError};
use crate::task::RepositoryName;

/// Why runs can't be joined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// A run executed a whole selection.
    #[error("run `{run}` is no shard")]
    NoShard {
        /// The run.
        run: String,
    },
    /// A shard has not ended.
    #[error("shard {shard}, run `{run}`, is unfinished")]
    Unfinished {
        /// The shard.
        shard: String,
        /// Its run.
        run: String,
    },
    /// Some files of a finished shard can't be seen.
    #[error("shard run `{run}` has finished, but this is not visible here: {what}")]
    Late {
        /// Its run.
        run: String,
        /// What can't be seen.
        what: String,
    },
    /// A shard was made in another way, or of other tasks.
    #[error("run `{run}` is no part of the run that `{first}` is a part of: {what} differ")]
    Foreign {
        /// The run.
        run: String,
        /// The first of the runs.
        first: String,
        /// What differs.
        what: String,
    },
    /// Two runs are the same shard.
    #[error("runs `{first}` and `{second}` are both shard {shard}")]
    Double {
        /// The shard.
        shard: String,
        /// A run.
        first: String,
        /// Another run.
        second: String,
    },
    /// Shards are missing.
    #[error("of {of} shards, these are missing: {missing}")]
    Missing {
        /// The number of shards.
        of: NonZeroU32,
        /// The missing numbers, with commas.
        missing: String,
    },
    /// A shard has a record of a task or model that it does not have.
    #[error("run `{run}` has a record of {of}, which is not part of it")]
    ForeignRecord {
        /// The run.
        run: String,
        /// The task, or the task and the model.
        of: String,
    },
    /// A complete set of shards does not add up to the selection.
    #[error("the tasks of the shards are not the tasks of their selection")]
    OtherTasks,
}

impl Failure for MergeError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Late { .. } => ExitStatus::Infrastructure,
            _ => ExitStatus::BadInput,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NoShard { .. } => "name runs of `validate --shard K/N` or `score --shard K/N`",
            Self::ForeignRecord { .. } => "its records were changed: execute that shard again",
            Self::Unfinished { .. } => "the same command with the same `--shard` resumes it",
            Self::Late { .. } => {
                "a shared file system may show files of other machines late: run the same command again in a minute; files that \
                 were removed are made again by executing that shard again"
            }
            Self::Foreign { .. } => "make all shards from the same locks, tasks and options, with the same program",
            Self::Double { .. } => "name each shard once",
            Self::Missing { .. } => "execute them with `--shard K/N`, and name their runs too",
            Self::OtherTasks => {
                "a shard left out a repository, or had other data: import the same data everywhere, and execute that shard again"
            }
        };
        Some(hint.to_owned())
    }
}

/// A shard: its run, and the run's inputs.
pub struct Part<I> {
    /// The run's id.
    pub run: String,
    /// Whether the run has finished.
    pub finished: bool,
    /// Its inputs.
    pub inputs: I,
}

/// Checks that runs are all shards of one selection, made in the same way, and returns their inputs in the order of their shards.
///
/// # Errors
/// [`MergeError`], but [`MergeError::OtherTasks`].
pub fn ordered<I>(parts: Vec<Part<I>>, run: impl Fn(&I) -> &RunInputs) -> Result<Vec<Part<I>>, MergeError> {
    let mut by_number: BTreeMap<NonZeroU32, Part<I>> = BTreeMap::new();
    let mut first: Option<(String, ShardInputs)> = None;
    for part in parts {
        let Some(own) = run(&part.inputs).shard.clone() else { return Err(MergeError::NoShard { run: part.run }) };
        let (name, known) = first.get_or_insert_with(|| (part.run.clone(), own.clone()));
        let differ = [
            ("numbers of shards", known.shard.of() != own.shard.of()),
            ("selected tasks", known.selection != own.selection),
            ("submissions or options", known.request != own.request),
            ("recorded costs", known.costs != own.costs),
        ];
        if let Some((what, _)) = differ.into_iter().find(|(_, differ)| *differ) {
            return Err(MergeError::Foreign { run: part.run, first: name.clone(), what: what.to_owned() });
        }
        let shard = own.shard.to_string();
        if !part.finished {
            return Err(MergeError::Unfinished { shard, run: part.run });
        }
        match by_number.entry(own.shard.number()) {
            std::collections::btree_map::Entry::Vacant(entry) => drop(entry.insert(part)),
            std::collections::btree_map::Entry::Occupied(entry) => {
                return Err(MergeError::Double { shard, first: entry.get().run.clone(), second: part.run });
            }
        }
    }
    let of = first.map_or(NonZeroU32::MIN, |(_, inputs)| inputs.shard.of());
    let missing: Vec<String> = (1..=of.get())
        .filter(|number| !by_number.keys().any(|known| known.get() == *number))
        .map(|number| number.to_string())
        .collect();
    match missing.is_empty() {
        true => Ok(by_number.into_values().collect()),
        false => Err(MergeError::Missing { of, missing: missing.join(", ") }),
    }
}

/// Joins the inputs of one run after another to those of the first.
pub struct Joining<'a> {
    /// The first run.
    pub first: &'a str,
    /// The run that is joined.
    pub run: &'a str,
}

impl Joining<'_> {
    /// Returns the error that something of the runs differs.
    pub fn foreign(&self, what: &str) -> MergeError {
        MergeError::Foreign { run: self.run.to_owned(), first: self.first.to_owned(), what: what.to_owned() }
    }

    /// Checks that something is the same in both runs.
    ///
    /// # Errors
    /// [`MergeError::Foreign`].
    pub fn same<T: PartialEq>(&self, what: &str, one: &T, other: &T) -> Result<(), MergeError> {
        if one == other { Ok(()) } else { Err(self.foreign(what)) }
    }

    /// Adds what a run knows of its repositories.
    ///
    /// # Errors
    /// [`MergeError::Foreign`] if both runs know something else of one repository.
    pub fn by_repository<T: PartialEq>(
        &self,
        what: &str,
        all: &mut BTreeMap<RepositoryName, T>,
        more: BTreeMap<RepositoryName, T>,
    ) -> Result<(), MergeError> {
        for (repository, value) in more {
            match all.get(&repository) {
                Some(known) if *known != value => return Err(self.foreign(&format!("{what} of {repository}"))),
                Some(_) => {}
                None => drop(all.insert(repository, value)),
            }
        }
        Ok(())
    }
}

impl RunInputs {
    /// Adds the inputs of another shard.
    ///
    /// # Errors
    /// [`MergeError::Foreign`].
    pub fn join(&mut self, other: Self, joining: &Joining<'_>) -> Result<(), MergeError> {
        joining.same("schemas", &self.schema, &other.schema)?;
        joining.same("settings for Surefire", &self.surefire, &other.surefire)?;
        joining.same("paths", &self.paths, &other.paths)?;
        joining.same("repeats", &self.repeats, &other.repeats)?;
        match (&self.tools, other.tools) {
            // A shard without executions needs no tools.
            (None, tools) => self.tools = tools,
            (Some(_), None) => {}
            (Some(own), Some(tools)) => {
                joining.same("programs, or protections of the engines,", own, &tools)?;
            }
        }
        joining.by_repository("images", &mut self.images, other.images)?;
        joining.by_repository("arguments for Maven", &mut self.maven_arguments, other.maven_arguments)?;
        joining.by_repository("launchers", &mut self.launchers, other.launchers)?;
        joining.by_repository("limits", &mut self.limits, other.limits)?;
        self.tasks.extend(other.tasks);
        Ok(())
    }

    /// Ends the joining: sorts the tasks as a selection is sorted, and makes the inputs those of a whole run. Returns the last
    /// shard's description.
    pub fn whole(&mut self) -> Option<ShardInputs> {
        self.tasks.sort_by(|one, other| (&one.repository, &one.id).cmp(&(&other.repository, &other.id)));
        self.shard.take()
    }
}

/// The largest file that is copied, in bytes: more than the logs of a submission may take.
const MOST_FILE_BYTES: u64 = 256 << 20;

/// Copies a shard's logs, sources and disputes into the directory of the merged run, and adds its result keys. Files that
/// are there already stay. Links, other special files and files above 256 MiB are left out, because a shard may come from a
/// stranger.
///
/// # Errors
/// [`RunDirectoryError::Full`], [`RunDirectoryError::Gone`], [`RunDirectoryError::Io`].
pub fn copy_files(shard: &Path, merged: &Path) -> Result<(), RunDirectoryError> {
    let copied = merged.join(".copied");
    for name in DIRECTORIES {
        copy_directory(&shard.join(name), &merged.join(name), (&copied, DEEPEST))?;
    }
    if let Some(keys) = reading::read(&shard.join(RESULT_KEYS))? {
        let mut all = fs::OpenOptions::new().append(true).create(true).open(merged.join(RESULT_KEYS))?;
        all.write_all(&keys)?;
    }
    match fs::remove_file(&copied) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Copies a directory. Each file is written as `copied` first, so that a kill leaves nothing half-written in its place.
fn copy_directory(from: &Path, to: &Path, (copied, depth): (&Path, usize)) -> Result<(), RunDirectoryError> {
    // Neither a link nor a file in place of a directory is followed.
    let is_directory = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let is_there = |path: &Path| fs::symlink_metadata(path).is_ok();
    if !is_directory(from) || depth == 0 || (is_there(to) && !is_directory(to)) {
        return Ok(());
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_directory(&from, &to, (copied, depth - 1))?;
        } else if kind.is_file()
            && !is_there(&to)
            && let Some(file) = reading::open(&from)?
            && file.metadata()?.len() <= MOST_FILE_BYTES
        {
            std::io::copy(&mut file.take(MOST_FILE_BYTES), &mut fs::File::create(copied)?)?;
            fs::rename(copied, &to)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
