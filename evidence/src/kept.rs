//! Results of tasks in a file, a JSON line each, so that interrupted work of hours can be resumed.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use fs_err as fs;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::report::crosscheck::{CROSSCHECK_SCHEMA, CheckedTask};
use crate::report::measurement::{MEASUREMENT_SCHEMA, MeasuredTask};
use testevo_sandbox::application::io_failure::IoFailure;
use testevo_sandbox::error::CommandError;
use testevo_sandbox::task::TaskId;

/// The result of a task. The first field of its JSON is `schema`.
pub(crate) trait OfTask: Serialize + DeserializeOwned {
    /// The command that keeps it.
    const COMMAND: &str;
    /// The version that is understood.
    const SCHEMA: u32;

    /// Returns its version.
    fn schema(&self) -> u32;

    /// Returns the task.
    fn id(&self) -> &TaskId;

    /// Tells whether a fault of ours kept something from being found out: it is tried again.
    fn is_lost(&self) -> bool;
}

impl OfTask for MeasuredTask {
    const COMMAND: &str = "measure";
    const SCHEMA: u32 = MEASUREMENT_SCHEMA;

    fn schema(&self) -> u32 {
        self.schema
    }

    fn id(&self) -> &TaskId {
        &self.task_id
    }

    fn is_lost(&self) -> bool {
        false
    }
}

impl OfTask for CheckedTask {
    const COMMAND: &str = "crosscheck";
    const SCHEMA: u32 = CROSSCHECK_SCHEMA;

    fn schema(&self) -> u32 {
        self.schema
    }

    fn id(&self) -> &TaskId {
        &self.task_id
    }

    fn is_lost(&self) -> bool {
        self.lost
    }
}

/// The results of tasks, and their file.
pub(crate) struct Kept<T> {
    tasks: BTreeMap<TaskId, T>,
    file: Option<fs::File>,
}

/// What every line begins with.
const BEGIN: &str = "{\"schema\":";

impl<T: OfTask> Kept<T> {
    /// Reads the file, if it exists; a truncated last line, which a killed process leaves, is cut off.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, CommandError> {
        let Some(path) = path else { return Ok(Self { tasks: BTreeMap::new(), file: None }) };
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(IoFailure::of("reading earlier results")(error)),
        };
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let unusable = |number: usize, reason: String| CommandError::Usage {
            message: format!("line {} of `{}` is of no task: {reason}", number + 1, path.display()),
            hint: format!("name a file that `{} --keep` wrote, or a new one", T::COMMAND),
        };
        let mut tasks = BTreeMap::new();
        let lines = bytes[..whole].split_inclusive(|byte| *byte == b'\n');
        let number = lines.clone().count();
        for (number, line) in lines.enumerate() {
            let task: T = serde_json::from_slice(line).map_err(|error| unusable(number, error.to_string()))?;
            if task.schema() != T::SCHEMA {
                return Err(unusable(number, format!("it has schema {}, not {}", task.schema(), T::SCHEMA)));
            }
            tasks.insert(task.id().clone(), task);
        }
        // What is cut off must be the beginning of a line of ours.
        let begin = &BEGIN.as_bytes()[..BEGIN.len().min(bytes.len() - whole)];
        if !bytes[whole..].starts_with(begin) {
            return Err(unusable(number, "it begins otherwise".to_owned()));
        }
        let open = || -> std::io::Result<fs::File> {
            let file = fs::OpenOptions::new().append(true).create(true).open(path)?;
            file.set_len(whole as u64)?;
            Ok(file)
        };
        Ok(Self { tasks, file: Some(open().map_err(IoFailure::of("opening the file of results"))?) })
    }

    /// Tells whether the task's result is final.
    pub(crate) fn has(&self, id: &TaskId) -> bool {
        self.tasks.get(id).is_some_and(|task| !task.is_lost())
    }

    /// Adds a task's result and writes it.
    pub(crate) fn add(&mut self, task: T) -> Result<(), CommandError> {
        if let Some(file) = &mut self.file {
            let line = serde_json::to_string(&task).map_err(CommandError::defect)? + "\n";
            file.write_all(line.as_bytes()).map_err(IoFailure::of("writing results"))?;
        }
        self.tasks.insert(task.id().clone(), task);
        Ok(())
    }

    /// Returns a task's result.
    pub(crate) fn take(&mut self, id: &TaskId) -> Option<T> {
        self.tasks.remove(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::crosscheck::CheckSetting;
    use crate::report::measurement::Setting;

    fn task(id: &str) -> MeasuredTask {
        MeasuredTask {
            schema: MEASUREMENT_SCHEMA,
            setting: Setting { engine: "docker 1".into(), version: "0".into(), processors: 2, seed: 7 },
            load: 0.5,
            task_id: id.parse().unwrap(),
            repository: "o/n".parse().unwrap(),
            cells: Vec::new(),
            revisions: Vec::new(),
            left_out: Vec::new(),
        }
    }

    #[test]
    fn what_was_measured_before_a_kill_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kept.jsonl");
        let open = || Kept::<MeasuredTask>::open(Some(&path));
        let mut kept = open().unwrap();
        kept.add(task("t1")).unwrap();
        kept.add(task("t2")).unwrap();
        let length = fs::metadata(&path).unwrap().len();
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(length - 3).unwrap();

        let mut kept = open().unwrap();
        assert_eq!(["t1", "t2"].map(|id| kept.has(&id.parse().unwrap())), [true, false]);
        kept.add(task("t3")).unwrap();
        let mut kept = open().unwrap();
        assert_eq!(kept.take(&"t1".parse().unwrap()), Some(task("t1")));
        assert!(kept.has(&"t3".parse().unwrap()));

        fs::write(&path, "{\"schema\":1}\n").unwrap();
        assert!(matches!(open(), Err(CommandError::Usage { .. })));
    }

    #[test]
    fn what_was_lost_is_tried_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kept.jsonl");
        let id: TaskId = "t1".parse().unwrap();
        let task = |lost| CheckedTask {
            schema: CROSSCHECK_SCHEMA,
            setting: CheckSetting { engine: "docker 1".into(), version: "0".into() },
            task_id: id.clone(),
            repository: "o/n".parse().unwrap(),
            coverage: Vec::new(),
            mutants: Vec::new(),
            left_out: None,
            lost,
        };
        for lost in [true, false] {
            let mut kept = Kept::open(Some(&path)).unwrap();
            assert!(!kept.has(&id));
            kept.add(task(lost)).unwrap();
            assert_eq!(kept.has(&id), !lost);
        }
        let mut kept = Kept::<CheckedTask>::open(Some(&path)).unwrap();
        assert_eq!(kept.take(&id), Some(task(false)));
    }
}
