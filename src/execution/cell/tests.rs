//! What records of a cell say: tests with scripted containers.

use std::sync::Arc;

use super::*;
use crate::data_dir::DataDir;
use crate::digest::Digest;
use crate::engine::scripted::{Said, Scripted, completed};
use crate::execution::container::temporary::TemporaryFile;
use crate::execution::request::CellInput;
use crate::execution::scripted::{compiled, executor, image, launches, passed, task};
use crate::outcome::InfraReason;
use crate::task::Cell;

/// Executes a cell by a script, twice, and returns its records. A build compiles or never ends; what is nested never has a verdict.
async fn records(builds: bool, swapped: bool, module: bool) -> Vec<CellRecord> {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(directory.path()).unwrap();
    let engine = Arc::new(Scripted::new(move |_, spec| match spec.purpose.as_str() {
        "compile" if builds => Said { frames: compiled(), ends: true },
        "launch" => {
            let launches = launches(spec);
            let passing = launches.iter().filter(|(_, class, _)| class == "ATest");
            Said { frames: passing.flat_map(|launch| passed(spec, launch)).chain([completed()]).collect(), ends: true }
        }
        _ => Said { frames: Vec::new(), ends: true },
    }));
    let isolation_missing = vec!["memory".to_owned(), "swap".to_owned()];
    let executor = Executor { isolation_missing, ..executor(&engine, &data_dir) };
    let (task, image) = (task(), image());
    let input = CellInput {
        archive: TemporaryFile::named(directory.path(), "tree", "tar"),
        tree: "c".repeat(40),
        swapped: swapped.then(|| Digest::of(b"text")),
        text: swapped.then(|| b"text".to_vec()),
        module: module.then(ModuleArguments::default),
        test_file: task.test_file.to_string(),
        class: "ATest".to_owned(),
    };
    let request = CellRequest {
        task: &task,
        cell: Cell::Nn,
        input: &input,
        image: &image,
        methods: &task.test_methods,
        repeats: 2,
        path: ExecutionPath::Maven,
        other_text: None,
    };
    executor.run_cell(&request).await.unwrap()
}

#[tokio::test]
async fn every_record_of_a_cell_names_what_the_engine_can_not_enforce() {
    let lost = Outcome::InfraFail(InfraReason::Engine);
    for ((builds, swapped, module), outcomes) in [
        ((true, true, true), [Outcome::Pass, lost, Outcome::Pass]),
        ((false, true, true), [lost; 3]),
        ((true, false, true), [Outcome::Absent; 3]),
        ((true, true, false), [Outcome::CompileFail(CompileReason::NoModule); 3]),
    ] {
        let records = records(builds, swapped, module).await;
        let found: Vec<Outcome> = records.iter().map(|record| record.outcome).collect();
        assert_eq!(found, [outcomes; 2].concat());
        for record in records {
            assert_eq!(record.measured.isolation_missing, ["memory", "swap"], "{record:?}");
        }
    }
}
