//! A validation that never happened, of the tasks of a [`ScoredRun`](super::scored::ScoredRun).

use std::collections::BTreeMap;
use std::path::Path;

use testevo_sandbox::canonical_json::canonical_json;
use testevo_sandbox::data_dir::DataDir;
use testevo_sandbox::execution::run::directory::RunDirectory;
use testevo_sandbox::execution::run::inputs::{INPUTS_SCHEMA, RunInputs};
use testevo_sandbox::execution::run::record::{CellRecord, ExecutionPath, Measured, RECORD_SCHEMA};
use testevo_sandbox::outcome::label::cells_of;
use testevo_sandbox::outcome::{ExecReason, Outcome};
use testevo_sandbox::task::{Cell, MethodId, Task};

use super::scored::task;

/// Writes a run of `validate` below a data directory. `outcome` says what a method comes to in a cell, from the task's
/// number and the published label; `None` for no record.
pub(crate) fn write(
    data_dir: &Path,
    run_id: &str,
    tasks: usize,
    outcome: impl Fn(usize, Cell, &MethodId, Outcome) -> Option<Outcome>,
) {
    let tasks: Vec<Task> = (0..tasks).map(task).collect();
    let inputs = RunInputs {
        schema: INPUTS_SCHEMA,
        tasks: tasks.clone(),
        images: BTreeMap::new(),
        maven_arguments: BTreeMap::new(),
        launchers: BTreeMap::new(),
        limits: BTreeMap::new(),
        surefire: Default::default(),
        paths: vec![ExecutionPath::Direct],
        repeats: 1,
        tools: None,
        shard: None,
    };
    let data_dir = DataDir::open(data_dir).unwrap();
    let inputs = canonical_json(&inputs).unwrap();
    let opened = RunDirectory::open_of::<CellRecord>(&data_dir, "validate", &inputs, Some(run_id), false);
    let mut run = opened.unwrap().0;
    let failed = Outcome::ExecFail(ExecReason::Assertion);
    for (number, task) in tasks.iter().enumerate() {
        for &cell in cells_of(task.track) {
            let label = if matches!(cell, Cell::Oo | Cell::Nn) { Outcome::Pass } else { failed };
            for method in &task.test_methods {
                let Some(outcome) = outcome(number, cell, method, label) else { continue };
                let record = CellRecord {
                    schema: RECORD_SCHEMA,
                    task_id: task.id.clone(),
                    repository: task.repository.clone(),
                    track: task.track,
                    cell,
                    method: method.clone(),
                    repeat: 1,
                    path: ExecutionPath::Direct,
                    outcome,
                    detail: String::new(),
                    attributed: None,
                    missing: Vec::new(),
                    attempts: 1,
                    key: None,
                    measured: Measured::default(),
                };
                run.append(&record).unwrap();
            }
        }
    }
    run.finish(b"{}").unwrap();
}
