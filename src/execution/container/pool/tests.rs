use super::*;
use crate::digest::Digest;
use crate::engine::scripted::{Said, Scripted, completed};
use crate::engine::spec::ContainerLimits;

fn spec() -> ContainerSpec {
    ContainerSpec {
        purpose: "launch".to_owned(),
        image: Digest::of(b"image"),
        mounts: Vec::new(),
        door: None,
        scratch: Vec::new(),
        limits: ContainerLimits { memory_bytes: 1, cpus: 1, processes: 1, wall_seconds: 60 },
        program: Program { schema: PROGRAM_SCHEMA, door_port: None, steps: Vec::new() },
    }
}

/// Launches once and returns how many containers have been started since the beginning, waiting ones included.
async fn launch(pool: &ContainerPool, engine: &Scripted, spool: &Path) -> usize {
    let run = pool.run(&spec(), &[], spool, Then::StartNext).await.unwrap();
    assert!(run.is_complete());
    pool.settled().await;
    engine.started().len()
}

#[tokio::test]
async fn one_that_is_expected_is_started_once() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Arc::new(Scripted::new(|_, _| Said { frames: vec![completed()], ends: true }));
    let pool = ContainerPool::new(Arc::<Scripted>::clone(&engine), 1);
    pool.expect(&spec());
    pool.expect(&spec());
    pool.settled().await;
    pool.expect(&spec());
    pool.settled().await;
    assert_eq!(engine.started().len(), 1);
    assert_eq!(launch(&pool, &engine, directory.path()).await, 2, "it was used, and the next started");
    let none = ContainerPool::new(Arc::<Scripted>::clone(&engine), 0);
    none.expect(&spec());
    none.settled().await;
    assert_eq!(engine.started().len(), 2, "none may wait");
}

#[tokio::test]
async fn one_that_waited_long_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let engine = Arc::new(Scripted::new(|_, _| Said { frames: vec![completed()], ends: true }));
    let mut pool = ContainerPool::new(Arc::<Scripted>::clone(&engine), 1);
    assert_eq!(launch(&pool, &engine, directory.path()).await, 2, "the one that was used, and the next");
    assert_eq!(launch(&pool, &engine, directory.path()).await, 3, "the next was used");
    pool.most_waiting = Duration::ZERO;
    assert_eq!(launch(&pool, &engine, directory.path()).await, 5, "nobody used the one that had waited");
}
