//! Scoring's values, measured again with common tools: coverage by Maven, Surefire and JaCoCo's agent; mutants by
//! Universal Mutator's own command with the compiler as its judge; outcomes of mutants by Maven. No score depends on
//! these.

pub(crate) mod driven;
pub(crate) mod mutate;
pub(crate) mod rebuilt;

use testevo_sandbox::engine::session::{self, ContainerRun};
use testevo_sandbox::engine::spec::{ContainerLimits, ContainerSpec, Program, ReadOnlyMount, Scratch};
use testevo_sandbox::execution::attempt::ATTEMPTS;
use testevo_sandbox::execution::container::RepositoryImage;
use testevo_sandbox::execution::container::temporary::Spool;
use testevo_sandbox::execution::executor::Executor;
use testevo_sandbox::execution::fault::engine_fault;

/// Runs a container at most [`ATTEMPTS`] times and returns what it came to with the directory of its output, or why it
/// could not be started.
async fn contain(
    executor: &Executor,
    image: &RepositoryImage,
    purpose: &str,
    mounts: Vec<ReadOnlyMount>,
    limits: ContainerLimits,
    program: Program,
) -> std::io::Result<Result<(ContainerRun, Spool), String>> {
    let spec = ContainerSpec {
        purpose: purpose.to_owned(),
        image: image.config_digest,
        mounts,
        door: None,
        scratch: vec![
            Scratch { target: "/work".to_owned(), size_bytes: executor.limits.compile_scratch_bytes },
            Scratch { target: "/tmp".to_owned(), size_bytes: executor.limits.compile_scratch_bytes / 4 },
        ],
        limits,
        program,
    };
    let mut attempt = 1;
    loop {
        let spool = Spool::create(&executor.temporary)?;
        let run = {
            let _shared = executor.exclusive.read().await;
            session::run(executor.engine.as_ref(), &spec, spool.path()).await
        };
        match run {
            Ok(run) => return Ok(Ok((run, spool))),
            Err(_) if attempt < ATTEMPTS => attempt += 1,
            Err(error) => return Ok(Err(engine_fault(&error).detail)),
        }
    }
}
