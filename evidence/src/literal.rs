//! Baselines of the direct path: the paper's literal harness, and Maven alone. The literal harness uses one container a
//! cell: it runs Maven, then the console launcher for each method in the same container. No verdict depends on these.

use std::path::Path;

use testevo_sandbox::engine::EngineError;
use testevo_sandbox::engine::session::{self, ContainerRun};
use testevo_sandbox::engine::spec::{Command, ContainerLimits, PROGRAM_SCHEMA, Program, Step, StepResult};
use testevo_sandbox::execution::build::maven::{COMPILE_GOALS, MavenSettings, class_path_file, maven_command};
use testevo_sandbox::execution::container;
use testevo_sandbox::execution::container::RepositoryImage;
use testevo_sandbox::execution::container::limits::ExecutionLimits;
use testevo_sandbox::execution::container::places::{HOME, PROJECT, TREE};
use testevo_sandbox::execution::container::steps::command_end;
use testevo_sandbox::execution::container::temporary::Spool;
use testevo_sandbox::execution::executor::Executor;
use testevo_sandbox::execution::fault::not_done;
use testevo_sandbox::execution::module::ModuleArguments;
use testevo_sandbox::execution::request::CellInput;
use testevo_sandbox::task::MethodId;
use testevo_sandbox::workspace::cells::class_of_method;

/// Index of Maven in every program here.
const MAVEN: usize = 2;

/// Why a baseline has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LiteralError {
    /// The engine refused or lost the container.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Temporary files can't be written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The container did not do its steps.
    #[error("{0}")]
    NotDone(String),
}

/// A cell for the paper's harness.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiteralCell<'a> {
    /// The repository's image.
    pub(crate) image: &'a RepositoryImage,
    /// The cell's tree and class.
    pub(crate) input: &'a CellInput,
    /// The target file's module.
    pub(crate) module: &'a ModuleArguments,
    /// The console jar in the image.
    pub(crate) console: &'a str,
    /// Methods to launch.
    pub(crate) methods: &'a [MethodId],
}

/// The result of the paper's harness for a cell: exit statuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LiteralVerdict {
    /// Maven ended with 0.
    pub(crate) compiled: bool,
    /// For each method, whether the console exited with 0; false where it was not started.
    pub(crate) passed: Vec<bool>,
}

/// Executes a cell as the paper's harness does.
///
/// # Errors
/// [`LiteralError`].
pub(crate) async fn literal(executor: &Executor, cell: &LiteralCell<'_>) -> Result<LiteralVerdict, LiteralError> {
    let program = literal_program(cell, &executor.limits);
    let run = run(executor, cell.image, "literal", cell.input.archive.path(), program).await?;
    let ended_well = |step: usize| match run.step(step).and_then(|output| output.result()) {
        Some(StepResult::Ended(end)) => Ok(end.exit_code == Some(0)),
        Some(StepResult::Skipped) => Ok(false),
        _ => Err(LiteralError::NotDone(not_done(&run, "literal").detail)),
    };
    let compiled = ended_well(MAVEN)?;
    let passed = (1..=cell.methods.len()).map(|number| ended_well(MAVEN + number)).collect::<Result<_, _>>()?;
    Ok(LiteralVerdict { compiled, passed })
}

/// Runs `mvn -o test -DskipTests` for a module of the tree in `archive`, and tells whether it exited with 0.
///
/// # Errors
/// [`LiteralError`].
pub(crate) async fn skip_tests(
    executor: &Executor,
    image: &RepositoryImage,
    module: &ModuleArguments,
    archive: &Path,
) -> Result<bool, LiteralError> {
    let mut maven = plain_maven(image, module, &["test"], &executor.limits);
    maven.argv.push("-DskipTests".to_owned());
    let program = Program { schema: PROGRAM_SCHEMA, door_port: None, steps: unpacked_then(maven) };
    let run = run(executor, image, "maven", archive, program).await?;
    match command_end(&run, MAVEN) {
        Some(end) => Ok(end.exit_code == Some(0)),
        None => Err(LiteralError::NotDone(not_done(&run, "maven").detail)),
    }
}

async fn run(
    executor: &Executor,
    image: &RepositoryImage,
    purpose: &str,
    archive: &Path,
    program: Program,
) -> Result<ContainerRun, LiteralError> {
    let limits = ContainerLimits { wall_seconds: 3_600, ..executor.limits.compile };
    let scratch = (limits, executor.limits.compile_scratch_bytes);
    let spec = container::container(purpose, image.config_digest, archive.to_owned(), &executor.jars, scratch, program);
    let spool = Spool::create(&executor.temporary)?;
    Ok(session::run(executor.engine.as_ref(), &spec, spool.path()).await?)
}

/// Returns Maven's command without our recorder.
pub(crate) fn plain_maven(
    image: &RepositoryImage,
    module: &ModuleArguments,
    goals: &[&str],
    limits: &ExecutionLimits,
) -> Command {
    let settings =
        MavenSettings { java_home: image.java_home.clone(), arguments: &image.maven_arguments, class_archive: false };
    let mut maven = maven_command(&settings, module, true, goals, limits.compile_command);
    maven.argv.retain(|argument| !argument.starts_with("-Dmaven.ext.") && !argument.starts_with("-Dtestevo."));
    maven
}

/// Returns steps of which [`MAVEN`] is the command.
fn unpacked_then(maven: Command) -> Vec<Step> {
    vec![
        Step::MakeDirectory { path: HOME.to_owned() },
        Step::Unpack { archive: TREE.to_owned(), into: PROJECT.to_owned() },
        Step::Run(maven),
    ]
}

fn literal_program(cell: &LiteralCell<'_>, limits: &ExecutionLimits) -> Program {
    let maven = plain_maven(cell.image, cell.module, &COMPILE_GOALS, limits);
    let directory = cell.module.path();
    // The class path is in a file that Maven wrote, which takes a shell to name.
    let script = "exec \"$1\" -jar \"$2\" execute --disable-banner --details none --include-engine junit-jupiter \
                  --include-engine junit-vintage --class-path \
                  \"target/test-classes:target/classes:$(cat \"$3\")\" --select-method \"$4\"";
    let java = format!("{}/bin/java", cell.image.java_home);
    let class_path = class_path_file(cell.module);
    let mut steps = unpacked_then(maven.clone());
    for method in cell.methods {
        let selected = format!("{}#{}", class_of_method(&cell.input.class, method), method.method());
        let words: [&str; 8] = ["/bin/sh", "-c", script, "sh", &java, cell.console, &class_path, &selected];
        steps.push(Step::Run(Command {
            argv: words.map(str::to_owned).into(),
            environment: maven.environment.clone(),
            working_directory: directory.clone(),
            limits: limits.launch_command,
            events: false,
            required: false,
            only_after_success_of: Some(MAVEN),
        }));
    }
    Program { schema: PROGRAM_SCHEMA, door_port: None, steps }
}
