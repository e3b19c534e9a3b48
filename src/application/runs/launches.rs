//! The logs and commands of a scoring run's executions. A kept result has those of the run that executed it, as long as
//! that run is there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::data_dir::DataDir;
use crate::engine::spec::Command;
use crate::error::CommandError;
use crate::execution::run::directory::RunDirectoryError;
use crate::execution::run::explain::commands;
use crate::execution::scoring::log_directory;
use crate::execution::scoring::record::ExecutionRecord;
use crate::report::score::{ScoredModel, executions_of, kept_keys};
use crate::task::{MethodId, Side, TaskId};

/// The logs and commands of one execution.
#[derive(Clone, Debug, Serialize)]
pub struct Launch {
    /// The run that executed it.
    pub run_id: String,
    /// Directory of its logs.
    pub logs: PathBuf,
    /// The command that compiled the tree; `None` on the direct path.
    pub compile: Option<Command>,
    /// The command that launched the method; `None` if it was not launched.
    pub launch: Option<Command>,
}

/// Launches by task, code, method and repeat.
pub type Launches = BTreeMap<(TaskId, Side, MethodId, u32), Launch>;

/// A kept result's execution, and the run that it belongs to.
struct Origin {
    run_id: String,
    run: PathBuf,
    record: ExecutionRecord,
}

/// Returns the launches of each model, in the models' order.
///
/// # Errors
/// [`RunDirectoryError`] for logs that this program did not write.
pub(super) fn launches(models: &[ScoredModel], data_dir: &DataDir) -> Result<Vec<Launches>, CommandError> {
    let origin = |run_id: &str, run: &Path, record| Origin { run_id: run_id.to_owned(), run: run.to_owned(), record };
    let origins = executions_of(&kept_keys(models), data_dir, origin)?;
    let of_model = |model: &ScoredModel| -> Result<Launches, CommandError> {
        let mut launches = Launches::new();
        for record in records(model) {
            let origin = record.key.filter(|_| record.cached).and_then(|key| origins.get(&key));
            let found = match origin {
                Some(Origin { run_id, run, record }) => launch(run_id, run, record)?,
                None => launch(&model.run_id, &model.path, record)?,
            };
            let name = (record.task_id.clone(), record.code, record.method.clone(), record.repeat);
            launches.extend(found.map(|found| (name, found)));
        }
        Ok(launches)
    };
    models.iter().map(of_model).collect()
}

fn records(model: &ScoredModel) -> impl Iterator<Item = &ExecutionRecord> {
    let methods = model.tasks.iter().flat_map(|task| &task.methods);
    methods.flat_map(|method| method.new.iter().chain(&method.old))
}

/// Returns a record's logs and commands. The record only tells that logs exist; their place follows from its other fields.
fn launch(run_id: &str, run: &Path, record: &ExecutionRecord) -> Result<Option<Launch>, RunDirectoryError> {
    let relative = log_directory(&record.model, &record.task_id, record.code);
    let logs = run.join("logs").join(&relative);
    if record.measured.logs.as_ref() != Some(&relative) || !logs.is_dir() {
        return Ok(None);
    }
    let (compile, launch) = commands(&logs, &record.method, record.repeat, (&record.measured, &record.detail))?;
    Ok(Some(Launch { run_id: run_id.to_owned(), logs, compile, launch }))
}
