//! Time classes: limits on the time of a task's launches and compilations, derived from the developers' test on new
//! code.
//!
//! The duration of the developers' test is multiplied and rounded up to a class, so that two measurements rarely give
//! different classes. A class is recorded once, beside the tasks (`time-classes/<owner>__<name>.json` in the data
//! directory). It never changes, because execution keys contain it. It limits processor time; wall time only ends
//! programs that sleep.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use fs_err as fs;
use serde::{Deserialize, Serialize};

use crate::canonical_json::canonical_json;
use crate::data_dir::{DataDir, write_atomically};
use crate::execution::container::limits::WALL_TIMES;
use crate::execution::run::record::CellRecord;
use crate::outcome::Outcome;
use crate::task::{Cell, RepositoryName, Revision, Task, TaskId};

const SCHEMA: u32 = 1;

/// Limits of launches in seconds of processor time. A longer test gets the last one.
pub const CLASSES: [u64; 5] = [30, 60, 120, 300, 600];

/// Minimum limit of a launch, as a multiple of the developers' test's time.
const HEADROOM: u64 = 10;

/// Seconds that a compilation gets on top of twice the developers' time, because it compiles another text.
const COMPILE_MORE: u64 = 30;

/// A task's recorded time class. Each part is recorded once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeClass {
    /// The new code of the measurement. A class of another revision counts as absent.
    pub revision: Revision,
    /// Seconds of processor time of a launch: one of [`CLASSES`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_seconds: Option<u64>,
    /// Seconds of processor time of Maven when it compiles a submission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compile_seconds: Option<u64>,
}

/// Durations of the developers' test on new code, in milliseconds; `None` if not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Took {
    /// The longest duration of the launches that passed: [`launch_took`].
    pub launch_ms: Option<u64>,
    /// Processor time of Maven's build.
    pub build_ms: Option<u64>,
}

impl Took {
    /// Returns the longer duration of each part.
    #[must_use]
    pub fn or_longer(self, other: Self) -> Self {
        Self { launch_ms: self.launch_ms.max(other.launch_ms), build_ms: self.build_ms.max(other.build_ms) }
    }

    /// Returns the durations in a task's validation records.
    pub fn of(task: &TaskId, records: &[CellRecord]) -> Self {
        let passed = records
            .iter()
            .filter(|record| record.task_id == *task && record.cell == Cell::Nn && record.outcome == Outcome::Pass);
        let took = passed.map(|record| {
            let measured = &record.measured;
            let launch = measured.launch_cpu_ms.zip(measured.launch_ms);
            Self { launch_ms: launch.map(|(cpu, wall)| launch_took(cpu, wall)), build_ms: measured.compile_cpu_ms }
        });
        took.fold(Self::default(), Self::or_longer)
    }
}

/// Returns the duration of a launch in milliseconds: its processor time, or its wall time divided by [`WALL_TIMES`] if
/// that is more.
pub fn launch_took(cpu_ms: u64, wall_ms: u64) -> u64 {
    cpu_ms.max(wall_ms / WALL_TIMES)
}

/// Returns the class of launches, given the developers' duration.
fn launch_class(took_ms: u64) -> u64 {
    let fits = |seconds: &u64| seconds.saturating_mul(1000) >= took_ms.saturating_mul(HEADROOM);
    CLASSES.into_iter().find(fits).unwrap_or(CLASSES[CLASSES.len() - 1])
}

/// Returns the limit of a compilation in seconds of processor time, given the developers' duration: twice that and half
/// a minute, rounded up to half minutes.
fn compile_class(took_ms: u64) -> u64 {
    let seconds = took_ms.saturating_mul(2).div_ceil(1000).saturating_add(COMPILE_MORE);
    seconds.div_ceil(COMPILE_MORE).saturating_mul(COMPILE_MORE)
}

#[derive(Serialize, Deserialize)]
struct File {
    schema: u32,
    repository: RepositoryName,
    tasks: BTreeMap<TaskId, TimeClass>,
}

/// The recorded classes of a data directory.
#[derive(Clone, Debug)]
pub struct TimeClasses {
    data_dir: DataDir,
}

impl TimeClasses {
    /// Returns the classes of `data_dir`.
    pub fn new(data_dir: &DataDir) -> Self {
        Self { data_dir: data_dir.clone() }
    }

    /// Returns the class of a task; `None` if none is recorded.
    ///
    /// # Errors
    /// I/O errors of reading the repository's file; `InvalidData` for a malformed one, because recorded classes must
    /// not change.
    pub fn get(&self, task: &Task) -> io::Result<Option<TimeClass>> {
        let mut tasks = self.read(&task.repository)?;
        Ok(tasks.remove(&task.id).filter(|class| class.revision == task.rev2))
    }

    /// Records the parts of a task's class that are not recorded yet, and returns the class; `None` if no part is
    /// known.
    ///
    /// # Errors
    /// As [`TimeClasses::get`], and I/O errors of writing.
    pub fn record(&self, task: &Task, took: Took) -> io::Result<Option<TimeClass>> {
        if took == Took::default() {
            return self.get(task);
        }
        // Another process may write to the same file.
        let name = format!("time-classes-{}", task.repository.file_stem());
        let _held = self.data_dir.lock(&name, |_| {}).map_err(io::Error::other)?;
        let mut tasks = self.read(&task.repository)?;
        let before = tasks.get(&task.id).filter(|class| class.revision == task.rev2);
        let class = TimeClass {
            revision: task.rev2.clone(),
            launch_seconds: before.and_then(|class| class.launch_seconds).or(took.launch_ms.map(launch_class)),
            compile_seconds: before.and_then(|class| class.compile_seconds).or(took.build_ms.map(compile_class)),
        };
        if before != Some(&class) {
            tasks.insert(task.id.clone(), class.clone());
            self.write(&task.repository, tasks)?;
        }
        Ok(Some(class))
    }

    /// Returns a file with the recorded classes of these tasks of a repository; `None` if none is recorded.
    ///
    /// # Errors
    /// As [`TimeClasses::get`].
    pub fn export(&self, repository: &RepositoryName, tasks: &[&Task]) -> io::Result<Option<Vec<u8>>> {
        let mut tasks_of = self.read(repository)?;
        let given =
            |id: &TaskId, class: &TimeClass| tasks.iter().any(|task| task.id == *id && task.rev2 == class.revision);
        tasks_of.retain(|id, class| given(id, class));
        if tasks_of.is_empty() {
            return Ok(None);
        }
        Ok(Some(canonical_json(&File { schema: SCHEMA, repository: repository.clone(), tasks: tasks_of })?))
    }

    /// Records the classes of a file of [`TimeClasses::export`]. A task keeps a class that is recorded for its revision.
    /// Returns the tasks whose recorded class differs.
    ///
    /// # Errors
    /// As [`TimeClasses::get`], and I/O errors of writing.
    pub fn adopt(&self, repository: &RepositoryName, bytes: &[u8]) -> io::Result<Vec<TaskId>> {
        let given = parse(bytes, repository).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))?;
        let name = format!("time-classes-{}", repository.file_stem());
        let _held = self.data_dir.lock(&name, |_| {}).map_err(io::Error::other)?;
        let mut tasks = self.read(repository)?;
        let (before, mut other) = (tasks.clone(), Vec::new());
        for (id, class) in given {
            match tasks.get(&id).filter(|present| present.revision == class.revision) {
                Some(present) if *present != class => other.push(id),
                Some(_) => {}
                None => drop(tasks.insert(id, class)),
            }
        }
        if tasks != before {
            self.write(repository, tasks)?;
        }
        Ok(other)
    }

    /// Records the classes of a file of another data directory, which are right where both have one of a task.
    ///
    /// # Errors
    /// As [`TimeClasses::adopt`].
    pub fn take_over(&self, repository: &RepositoryName, bytes: &[u8]) -> io::Result<()> {
        let given = parse(bytes, repository).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))?;
        let name = format!("time-classes-{}", repository.file_stem());
        let _held = self.data_dir.lock(&name, |_| {}).map_err(io::Error::other)?;
        let mut tasks = self.read(repository)?;
        let before = tasks.clone();
        tasks.extend(given);
        if tasks != before {
            self.write(repository, tasks)?;
        }
        Ok(())
    }

    fn write(&self, repository: &RepositoryName, tasks: BTreeMap<TaskId, TimeClass>) -> io::Result<()> {
        let path = self.path(repository);
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        let file = File { schema: SCHEMA, repository: repository.clone(), tasks };
        write_atomically(&path, &canonical_json(&file)?)
    }

    fn path(&self, repository: &RepositoryName) -> PathBuf {
        self.data_dir.join("time-classes").join(format!("{}.json", repository.file_stem()))
    }

    fn read(&self, repository: &RepositoryName) -> io::Result<BTreeMap<TaskId, TimeClass>> {
        let path = self.path(repository);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(error),
        };
        let wrong = |why: &str| {
            let text = format!("`{}` can't be read: {why}; remove it, and classes are measured anew", path.display());
            io::Error::new(io::ErrorKind::InvalidData, text)
        };
        parse(&bytes, repository).map_err(|why| wrong(&why))
    }
}

/// Returns the classes in the bytes of a repository's file.
///
/// # Errors
/// The reason for which the file is malformed.
pub fn parse(bytes: &[u8], repository: &RepositoryName) -> Result<BTreeMap<TaskId, TimeClass>, String> {
    let file: File = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if (file.schema, &file.repository) != (SCHEMA, repository) {
        return Err("it is of another schema or repository".to_owned());
    }
    let is_class = |class: &TimeClass| {
        class.launch_seconds.is_none_or(|seconds| CLASSES.contains(&seconds)) && class.compile_seconds != Some(0)
    };
    match file.tasks.values().all(is_class) {
        true => Ok(file.tasks),
        false => Err("it has a class that there is none of".to_owned()),
    }
}

#[cfg(test)]
mod tests;
