//! The floor of the direct path: a cell's java command lines in sequence, on one unpacked tree in one container. The
//! difference shows the cost of a container for each method. No verdict depends on it.

use std::path::Path;

use crate::literal::LiteralError;
use testevo_sandbox::engine::session;
use testevo_sandbox::engine::spec::{PROGRAM_SCHEMA, Program, ReadOnlyMount, Step};
use testevo_sandbox::execution::container;
use testevo_sandbox::execution::container::RepositoryImage;
use testevo_sandbox::execution::container::limits::ExecutionLimits;
use testevo_sandbox::execution::container::places::{CLASS_ARCHIVE, HOME, PROJECT, TEMPORARY, TREE, XML_DIRECTORY};
use testevo_sandbox::execution::container::steps::command_end;
use testevo_sandbox::execution::container::temporary::Spool;
use testevo_sandbox::execution::direct::SwappedTree;
use testevo_sandbox::execution::executor::Executor;
use testevo_sandbox::execution::fault::not_done;
use testevo_sandbox::execution::launch;
use testevo_sandbox::execution::launch::{Launch, launch_command};
use testevo_sandbox::task::MethodId;
use testevo_sandbox::workspace::cells::class_of_method;

/// What is put over the tree: the swapped file and classes.
const SWAPPED: &str = "/testevo/input/swapped.tar";

/// The result of one JVM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FloorLaunch {
    /// Wall time of the JVM, in milliseconds.
    pub(crate) wall_ms: u64,
    /// It ended with 0.
    pub(crate) passed: bool,
}

/// Launches the methods of a test file's class, or of classes nested in it, and returns each outcome.
///
/// # Errors
/// [`LiteralError`].
pub(crate) async fn floor(
    executor: &Executor,
    image: &RepositoryImage,
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
            java_home: &image.java_home,
            console: launch::console_for(&revision.class_path, image.jdk, image.launcher),
            module: &revision.module,
            class_path: &revision.class_path,
            class,
            method: method.method(),
            settings: &revision.settings,
            class_archive: class_archive.is_some(),
            seal: None,
        })
        .collect();
    let (program, commands) = floor_program(&launches, &executor.limits);
    let mut limits = executor.limits.launch;
    limits.wall_seconds = 60 + executor.limits.launch_command.wall_seconds * methods.len() as u64;
    let scratch = (limits, executor.limits.launch_scratch_bytes);
    let tree = swapped.masked.tree.path().to_owned();
    let mut spec = container::container("floor", image.config_digest, tree, &executor.jars, scratch, program);
    let text = swapped.built.archives.last().cloned().unwrap_or_default();
    spec.mounts.push(ReadOnlyMount { source: text, target: SWAPPED.to_owned() });
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
