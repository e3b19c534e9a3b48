//! Launches of methods, each in a JVM and a container of its own.

use std::path::PathBuf;

use super::{Direct, SwappedTree};
use crate::engine::session::StepOutput;
use crate::engine::spec::{ContainerSpec, PROGRAM_SCHEMA, Program, ReadOnlyMount, StepResult};
use crate::execution::cell::{Environment, Executor, launched};
use crate::execution::fault::{ATTEMPTS, Spool, of_engine};
use crate::execution::logs::CellLogs;
use crate::execution::maven::{self, CLASS_ARCHIVE, Launch, REPLACED, SWAPPED, TREE, direct_launch_program};
use crate::execution::prepared::CompiledRevision;
use crate::execution::record::{ExecutionPath, Measured};
use crate::outcome::{ExecReason, Outcome};
use crate::task::MethodId;
use crate::workspace::cells::class_of_method;

/// One method to launch.
#[derive(Clone, Copy, Debug)]
pub struct MethodLaunch<'a> {
    /// Binary name of the test file's class; the method's own may be nested in it.
    pub class: &'a str,
    /// The method.
    pub method: &'a MethodId,
    /// What else the launch has.
    pub options: &'a LaunchOptions,
    /// Names of its logs begin with this.
    pub name: &'a str,
}

/// What a launch has besides the method itself.
#[derive(Clone, Debug, Default)]
pub struct LaunchOptions {
    /// Further arguments for the JVM, such as an agent.
    pub jvm_arguments: Vec<String>,
    /// Further read-only inputs, such as an agent's jar.
    pub mounts: Vec<ReadOnlyMount>,
    /// Tar archive that is unpacked over the tree, such as a mutant's classes.
    pub replaced: Option<PathBuf>,
    /// Files that are sent back afterwards: absolute path and most bytes.
    pub files: Vec<(String, u64)>,
}

/// What one launch came to.
#[derive(Clone, Debug)]
pub struct LaunchedMethod {
    /// Its outcome.
    pub outcome: Outcome,
    /// A line or two for people.
    pub detail: String,
    /// Containers started for it.
    pub attempts: u32,
    /// Times and machine.
    pub measured: Measured,
    /// The files that were asked for, `None` for one that is not there or too large.
    pub files: Vec<Option<Vec<u8>>>,
}

impl Direct {
    /// Launches one method in a JVM and a container of its own; faults of ours are retried, a timeout is believed only
    /// after a second run with nothing else running, unless the executor believes the first.
    ///
    /// # Errors
    /// The file system's.
    pub async fn launch(
        &self,
        executor: &Executor,
        environment: &Environment,
        swapped: &SwappedTree,
        launch: &MethodLaunch<'_>,
        logs: &CellLogs,
    ) -> std::io::Result<LaunchedMethod> {
        let mut attempt = 1;
        loop {
            let one = {
                let _shared = executor.alone.read().await;
                self.launch_once(executor, environment, swapped, launch, logs, attempt).await?
            };
            match one.outcome {
                Outcome::InfraFail(_) if attempt < ATTEMPTS => attempt += 1,
                Outcome::ExecFail(ExecReason::Timeout) if !executor.believes(&one.measured) => break,
                _ => return Ok(one),
            }
        }
        let _alone = executor.alone.write().await;
        loop {
            attempt += 1;
            let one = self.launch_once(executor, environment, swapped, launch, logs, attempt).await?;
            if attempt > ATTEMPTS || !matches!(one.outcome, Outcome::InfraFail(_)) {
                return Ok(one);
            }
        }
    }

    /// Has a container waiting for a launch on this revision, as far as containers are started ahead; not while a launch is
    /// to run with nothing else.
    pub(super) async fn expect_launch(
        &self,
        executor: &Executor,
        environment: &Environment,
        revision: &CompiledRevision,
    ) {
        let _shared = executor.alone.read().await;
        let (spec, _) = self.container(executor, environment, revision, &LaunchOptions::default()).await;
        self.ahead.expect(&spec);
    }

    /// Returns the container of launches with these options, its program still empty, and the console in it.
    async fn container(
        &self,
        executor: &Executor,
        environment: &Environment,
        revision: &CompiledRevision,
        options: &LaunchOptions,
    ) -> (ContainerSpec, &'static str) {
        let console = maven::console_for(&revision.class_path, environment.jdk, environment.launcher);
        let archive = match options.jvm_arguments.is_empty() {
            true => executor.class_archive(environment, console).await,
            // An agent looks at every class as it is loaded: the reference path's such launches have none either.
            false => None,
        };
        let limits = (executor.limits.launch, executor.limits.launch_scratch_bytes);
        let program = Program { schema: PROGRAM_SCHEMA, door_port: None, steps: Vec::new() };
        let mut spec = maven::container_without_tree("launch", environment.image, &executor.jars, limits, program);
        spec.mounts.extend(options.mounts.iter().cloned());
        spec.mounts.extend(archive.map(|source| ReadOnlyMount { source, target: CLASS_ARCHIVE.to_owned() }));
        (spec, console)
    }

    async fn launch_once(
        &self,
        executor: &Executor,
        environment: &Environment,
        swapped: &SwappedTree,
        &MethodLaunch { class, method, options, name }: &MethodLaunch<'_>,
        logs: &CellLogs,
        attempt: u32,
    ) -> std::io::Result<LaunchedMethod> {
        let revision = &swapped.masked.revision;
        let mut settings = revision.settings.clone();
        settings.arguments.extend(options.jvm_arguments.iter().cloned());
        let (mut spec, console) = self.container(executor, environment, revision, options).await;
        let method_class = class_of_method(class, method);
        let launch = Launch {
            java_home: &environment.java_home,
            console,
            module: &revision.module,
            class_path: &revision.class_path,
            class: &method_class,
            method: method.method(),
            settings: &settings,
            class_archive: spec.mounts.iter().any(|mount| mount.target == CLASS_ARCHIVE),
        };
        let (program, steps) =
            direct_launch_program(&launch, options.replaced.is_some(), &options.files, &executor.limits);
        spec.program = program;
        let name_of = |path: &'static str| path.rsplit('/').next().unwrap_or(path);
        let mut files = vec![(name_of(TREE), swapped.masked.tree.as_path()), (name_of(SWAPPED), &swapped.archive)];
        files.extend(options.replaced.as_deref().map(|archive| (name_of(REPLACED), archive)));
        let base = Measured { path: ExecutionPath::Direct, ..executor.measured(logs) };
        let name = format!("{name}-{attempt}");
        logs.invocation(&name, &spec.program, steps.launch.java)?;
        let spool = Spool::create(&executor.temporary)?;
        let run = match self.ahead.run(&spec, &files, spool.path()).await {
            Ok(run) => run,
            Err(error) => {
                let fault = of_engine(&error);
                return Ok(LaunchedMethod {
                    outcome: Outcome::InfraFail(fault.reason),
                    detail: fault.detail,
                    attempts: attempt,
                    measured: base,
                    files: Vec::new(),
                });
            }
        };
        let one = launched(&run, &steps.launch, class, method, (logs, &name), attempt, &base)?;
        let content = |step: usize| -> std::io::Result<Option<Vec<u8>>> {
            match run.step(step) {
                Some(output) if output.result() == Some(&StepResult::Done) => bytes_of(output).map(Some),
                _ => Ok(None),
            }
        };
        let files = steps.files.iter().map(|step| content(*step)).collect::<std::io::Result<_>>()?;
        let measured = Measured {
            container_ms: u64::try_from(run.wall.as_millis()).ok(),
            begin_ms: run.until_begun.and_then(|begun| u64::try_from(begun.as_millis()).ok()),
            ..one.measured
        };
        Ok(LaunchedMethod { outcome: one.outcome, detail: one.detail, attempts: one.attempts, measured, files })
    }
}

fn bytes_of(output: &StepOutput) -> std::io::Result<Vec<u8>> {
    Ok(output.content.bytes()?.into_owned())
}
