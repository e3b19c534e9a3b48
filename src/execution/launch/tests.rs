//! What is tried again and what is not: tests with scripted containers.

use std::sync::Arc;

use tokio::sync::RwLock;

use super::*;
use crate::data_dir::DataDir;
use crate::engine::scripted::{Said, Scripted, completed, output, step_end};
use crate::engine::spec::{CommandEnd, Stream};
use crate::execution::attempt::Confirmed;
use crate::execution::container::places::PROJECT;
use crate::execution::launch::agent::Agent;
use crate::execution::scripted::{built, executor, image, launches, out_of_time, passed, task};
use crate::outcome::InfraReason;
use crate::task::Cell;

/// Launches all methods by a script and returns the outcome and attempts of each, and how many containers there were. The script is told
/// how many containers were started before, what the present one is asked for, and the lock that second runs of timeouts hold alone.
async fn launch(
    trusts_first_timeout: bool,
    script: impl Fn(usize, &ContainerSpec, &RwLock<()>) -> Said + Send + Sync + 'static,
) -> (Vec<(Outcome, u32)>, usize) {
    let (records, containers) = launch_of(None, trusts_first_timeout, script).await;
    assert!(records.iter().all(|record| !record.measured.believed), "nothing was confirmed before");
    (records.iter().map(|record| (record.outcome, record.attempts)).collect(), containers)
}

/// Does the same for a submission of which something is confirmed, and returns the records.
async fn launch_of(
    confirmed: Option<Confirmed>,
    trusts_first_timeout: bool,
    script: impl Fn(usize, &ContainerSpec, &RwLock<()>) -> Said + Send + Sync + 'static,
) -> (Vec<CellRecord>, usize) {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(directory.path()).unwrap();
    let alone = Arc::new(RwLock::new(()));
    let lock = Arc::clone(&alone);
    let engine = Arc::new(Scripted::new(move |number, spec| script(number, spec, &lock)));
    let executor = Executor { exclusive: alone, trusts_first_timeout, confirmed, ..executor(&engine, &data_dir) };
    let (task, image, built) = (task(), image(), built(&data_dir.temporary()));
    let identity = CellIdentity {
        task: &task,
        cell: Cell::Nn,
        image: &image,
        tree: "tree",
        swapped: None,
        path: ExecutionPath::Maven,
    };
    let logs = CellLogs::create(None, &task.id, Cell::Nn).unwrap();
    let launches = ("ATest", task.test_methods.as_slice(), 1);
    let records = executor.launch_all(&identity, &built, launches, &Measured::default(), &logs).await.unwrap();
    (records, engine.started().len())
}

#[tokio::test]
async fn every_method_has_a_container_of_its_own() {
    let (launched, containers) = launch(false, |number, spec, alone| {
        let launches = launches(spec);
        let [launch @ (step, class, method)] = launches.as_slice() else { panic!("{launches:?}") };
        let nested = "ATest$Inner";
        match (number, class.as_str(), method.as_str()) {
            (0, "ATest", "m") | (3, "ATest", "n") => {
                Said { frames: [passed(spec, launch), vec![completed()]].concat(), ends: true }
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
async fn an_agents_output_stays_on_disk() {
    // The first of them is captured in memory, the second one in the spool.
    const SIZES: [usize; 2] = [10, 300_000];
    let directory = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(directory.path()).unwrap();
    let engine = Arc::new(Scripted::new(|number, spec| {
        let launches = launches(spec);
        let sent = spec.program.steps.len() - 1;
        let content = output(u32::try_from(sent).unwrap(), Stream::Content, &vec![7; SIZES[number]]);
        let end = vec![step_end(sent, StepResult::Done), completed()];
        Said { frames: [passed(spec, &launches[0]), content, end].concat(), ends: true }
    }));
    let executor = executor(&engine, &data_dir);
    let (task, image, built) = (task(), image(), built(&data_dir.temporary()));
    let logs = CellLogs::create(None, &task.id, Cell::Nn).unwrap();
    let agent = Agent {
        name: "test",
        argument: "-javaagent:agent.jar".to_owned(),
        writes: (format!("{PROJECT}/data"), 1 << 20),
        mounts: Vec::new(),
    };
    let methods = [&task.test_methods[0], &task.test_methods[2]].into_iter();
    let launched = executor.launch_with(&agent, &image, &built, ("ATest", &logs), methods).await.unwrap();
    assert_eq!(launched.len(), 2);
    for (one, size) in launched.into_iter().zip(SIZES) {
        let files = one.data.unwrap();
        let [file] = files.as_slice() else { panic!("{files:?}") };
        assert_eq!(fs::read(file.path()).unwrap(), vec![7; size]);
        let path = file.path().to_owned();
        drop(files);
        assert!(!path.exists());
    }
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
        let busy = StepResult::Ended(CommandEnd { cpu_ms: u64::MAX, ..end });
        Said { frames: vec![step_end(launches(spec)[0].0, busy)], ends: true }
    })
    .await;
    assert_eq!(launched, [(Outcome::ExecFail(ExecReason::Timeout), 1); 3]);
    assert_eq!(containers, 3);
}

#[tokio::test]
async fn a_submission_whose_methods_all_sleep_has_the_machine_to_itself_once() {
    let confirmed = Confirmed::default();
    let sleeps = |_: usize, spec: &ContainerSpec, alone: &RwLock<()>| {
        let step = launches(spec)[0].0;
        let is_alone = alone.try_read().is_err();
        let StepResult::Ended(end) = out_of_time() else { panic!("a command that was ended has ended") };
        // What the container says tells whether anything else could run.
        let cpu_ms = u64::from(is_alone);
        Said { frames: vec![step_end(step, StepResult::Ended(CommandEnd { cpu_ms, ..end }))], ends: true }
    };
    let of = |records: Vec<CellRecord>| -> Vec<(Outcome, u32, bool, Option<u64>)> {
        let of = |one: CellRecord| (one.outcome, one.attempts, one.measured.believed, one.measured.launch_cpu_ms);
        records.into_iter().map(of).collect()
    };
    let timeout = Outcome::ExecFail(ExecReason::Timeout);
    let (records, containers) = launch_of(Some(confirmed.clone()), false, sleeps).await;
    let believed = (timeout, 1, true, Some(0));
    assert_eq!(of(records), [(timeout, 2, false, Some(1)), believed, believed]);
    assert_eq!(containers, 4);
    assert!(confirmed.launches.is_confirmed() && !confirmed.mutants.is_confirmed());

    // Also on the other side, or in another repeat.
    let (records, _) = launch_of(Some(confirmed), false, sleeps).await;
    assert_eq!(of(records), [believed; 3]);
}
