//! The floor of the direct path: the java command lines of a cell, one after the other on one unpacked tree in one
//! container. What a container for each method costs shows against it; nothing of it decides a verdict.

use std::path::Path;

use super::cell::{Environment, Executor};
use super::direct::SwappedTree;
use super::fault::{Spool, command_end, not_done};
use super::limits::ExecutionLimits;
use super::literal::LiteralError;
use super::maven::{
    self, CLASS_ARCHIVE, HOME, Launch, PROJECT, SWAPPED, TEMPORARY, TREE, XML_DIRECTORY, launch_command,
};
use crate::engine::session;
use crate::engine::spec::{PROGRAM_SCHEMA, Program, ReadOnlyMount, Step};
use crate::task::MethodId;
use crate::workspace::cells::class_of_method;

/// What one JVM came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloorLaunch {
    /// Wall time of the JVM, in milliseconds.
    pub wall_ms: u64,
    /// It ended with 0.
    pub passed: bool,
}

/// Launches the methods of a test file's class, or of classes nested in it, and returns what each came to.
///
/// # Errors
/// [`LiteralError`].
pub async fn floor(
    executor: &Executor,
    environment: &Environment,
    swapped: &SwappedTree,
    class_archive: Option<&Path>,
    (class, methods): (&str, &[MethodId]),
) -> Result<Vec<FloorLaunch>, LiteralError> {
    let revision = &swapped.masked.revision;
    let classes: Vec<String> = methods.iter().map(|method| class_of_method(class, method)).collect();
    let launches: Vec<Launch<'_>> = methods
        .iter()
        .zip(&classes)
        .map(|(method, class)| Launch {
            java_home: &environment.java_home,
            console: maven::console_for(&revision.class_path, environment.jdk, environment.launcher),
            module: &revision.module,
            class_path: &revision.class_path,
            class,
            method: method.method(),
            settings: &revision.settings,
            class_archive: class_archive.is_some(),
        })
        .collect();
    let (program, commands) = floor_program(&launches, &executor.limits);
    let mut limits = executor.limits.launch;
    limits.wall_seconds = 60 + executor.limits.launch_command.wall_seconds * methods.len() as u64;
    let scratch = (limits, executor.limits.launch_scratch_bytes);
    let tree = swapped.masked.tree.clone();
    let mut spec = maven::container("floor", environment.image, tree, &executor.jars, scratch, program);
    spec.mounts.push(ReadOnlyMount { source: swapped.archive.clone(), target: SWAPPED.to_owned() });
    let archive =
        class_archive.map(|source| ReadOnlyMount { source: source.to_owned(), target: CLASS_ARCHIVE.to_owned() });
    spec.mounts.extend(archive);
    let spool = Spool::create(&executor.temporary)?;
    let run = session::run(executor.engine.as_ref(), &spec, spool.path()).await?;
    let launched = commands.into_iter().map(|step| {
        let report = run.step(step).and_then(|output| output.report.as_ref());
        match report.zip(command_end(&run, step)) {
            Some((report, end)) => Ok(FloorLaunch { wall_ms: report.wall_ms, passed: end.exit_code == Some(0) }),
            None => Err(LiteralError::NotDone(not_done(&run, "floor").detail)),
        }
    });
    launched.collect()
}

/// Returns the program and the indexes of its JVMs.
fn floor_program(launches: &[Launch<'_>], limits: &ExecutionLimits) -> (Program, Vec<usize>) {
    let mut steps: Vec<Step> =
        [HOME, TEMPORARY, XML_DIRECTORY].map(|path| Step::MakeDirectory { path: path.to_owned() }).into();
    let unpack = |archive: &str| Step::Unpack { archive: archive.to_owned(), into: PROJECT.to_owned() };
    steps.extend([TREE, SWAPPED].map(unpack));
    steps.extend(launches.first().map(Launch::directories).unwrap_or_default());
    let first = steps.len();
    steps.extend(launches.iter().map(|launch| Step::Run(launch_command(launch, limits))));
    let commands = (first..steps.len()).collect();
    (Program { schema: PROGRAM_SCHEMA, door_port: None, steps }, commands)
}
