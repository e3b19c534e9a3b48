//! What is tried again and what is not: tests with scripted containers.

use std::sync::Arc;

use tokio::sync::RwLock;

use super::*;
use crate::data_dir::DataDir;
use crate::engine::scripted::{Said, Scripted, completed, step_end};
use crate::execution::scripted::{built, environment, executor, launches, out_of_time, passed, task};
use crate::outcome::InfraReason;
use crate::task::Cell;

/// Launches all methods by a script and returns the outcome and attempts of each, and how many containers there were. The script is told
/// how many containers were started before, what the present one is asked for, and the lock that second runs of timeouts hold alone.
async fn launch(
    trusts_first_timeout: bool,
    script: impl Fn(usize, &ContainerSpec, &RwLock<()>) -> Said + Send + Sync + 'static,
) -> (Vec<(Outcome, u32)>, usize) {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(directory.path()).unwrap();
    let alone = Arc::new(RwLock::new(()));
    let lock = Arc::clone(&alone);
    let engine = Arc::new(Scripted::new(move |number, spec| script(number, spec, &lock)));
    let executor = Executor { exclusive: alone, trusts_first_timeout, ..executor(&engine, &data_dir) };
    let (task, environment, built) = (task(), environment(), built(&data_dir.temporary()));
    let identity = CellIdentity {
        task: &task,
        cell: Cell::Nn,
        environment: &environment,
        tree: "tree",
        swapped: None,
        path: ExecutionPath::Maven,
    };
    let logs = CellLogs::create(None, &task.id, Cell::Nn).unwrap();
    let launches = ("ATest", task.test_methods.as_slice(), 1);
    let records = executor.launch_all(&identity, &built, launches, &Measured::default(), &logs).await.unwrap();
    (records.iter().map(|record| (record.outcome, record.attempts)).collect(), engine.started().len())
}

#[tokio::test]
async fn every_method_has_a_container_of_its_own() {
    let (launched, containers) = launch(false, |number, spec, alone| {
        let launches = launches(spec);
        let [launch @ (step, class, method)] = launches.as_slice() else { panic!("{launches:?}") };
        let nested = "ATest$Inner";
        match (number, class.as_str(), method.as_str()) {
            (0, "ATest", "m") | (3, "ATest", "n") => {
                Said { frames: [passed(launch), vec![completed()]].concat(), ends: true }
            }
            (1 | 2, class, "m") if class == nested => {
                assert_eq!(alone.try_read().is_ok(), number == 1, "the second run is alone");
                Said { frames: vec![step_end(*step, out_of_time())], ends: true }
            }
            other => panic!("{other:?}"),
        }
    })
    .await;
    let timeout = Outcome::ExecFail(ExecReason::Timeout);
    assert_eq!(launched, [(Outcome::Pass, 1), (timeout, 2), (Outcome::Pass, 1)]);
    assert_eq!(containers, 4);
}

#[tokio::test]
async fn faults_of_the_infrastructure_have_two_retries() {
    let (launched, containers) = launch(false, |_, _, _| Said { frames: Vec::new(), ends: true }).await;
    assert_eq!(launched, [(Outcome::InfraFail(InfraReason::Engine), 3); 3]);
    assert_eq!(containers, 9);
}

#[tokio::test]
async fn a_busy_launch_far_below_its_limit_is_believed_at_once() {
    let (launched, containers) = launch(true, |_, spec, _| {
        let StepResult::Ended(end) = out_of_time() else { panic!("a command that was ended has ended") };
        let busy = StepResult::Ended(crate::engine::spec::CommandEnd { cpu_ms: u64::MAX, ..end });
        Said { frames: vec![step_end(launches(spec)[0].0, busy)], ends: true }
    })
    .await;
    assert_eq!(launched, [(Outcome::ExecFail(ExecReason::Timeout), 1); 3]);
    assert_eq!(containers, 3);
}
