//! Launches one test method on a compiled tree, in a JVM and a container of its own. Either path may have built the
//! tree. A launch may have options, such as an agent or the classes of a mutant. Source: protocol §2.3.

pub(in crate::execution) mod agent;
pub mod coverage;
mod program;
mod subclasses;
pub mod tracing;

use std::path::Path;
use std::sync::Arc;

use fs_err as fs;

use self::program::ENGINES;
pub use self::program::{
    Launch, LaunchSteps, OLDEST_JDK_OF_PLATFORM_6, PLATFORM_1, PLATFORM_6, console_for, launch_command, launch_program,
};
use crate::engine::EngineError;
use crate::engine::session::{Captured, ContainerRun};
use crate::engine::spec::{ContainerSpec, PROGRAM_SCHEMA, Program, ReadOnlyMount, StepResult};
use crate::execution::attempt::{Came, attempt};
use crate::execution::build::built::Built;
use crate::execution::container::places::CLASS_ARCHIVE;
use crate::execution::container::pool::Then;
use crate::execution::container::steps::command_end;
use crate::execution::container::temporary::{Spool, TemporaryFile};
use crate::execution::container::{self, RepositoryImage};
use crate::execution::executor::{Executor, Launched};
use crate::execution::fault::{engine_fault, not_done};
use crate::execution::launch::subclasses::worst;
use crate::execution::request::CellIdentity;
use crate::execution::run::logs::{CellLogs, method_name};
use crate::execution::run::record::{CellRecord, ExecutionPath, Measured};
use crate::execution::sharing::Serves;
use crate::outcome::launch::seal::Seal;
use crate::outcome::launch::{LaunchFacts, classify};
use crate::outcome::{ExecReason, Outcome};
use crate::task::MethodId;
use crate::workspace::cells::class_of_method;

/// One method to launch.
#[derive(Clone, Copy, Debug)]
pub struct MethodLaunch<'a> {
    /// Binary name of the test file's class. The method's own class may be nested in it.
    pub class: &'a str,
    /// The method.
    pub method: &'a MethodId,
    /// Options besides the method.
    pub options: &'a LaunchOptions,
    /// The first part of the names of its logs.
    pub name: &'a str,
}

/// Options of a launch besides the method.
#[derive(Clone, Debug, Default)]
pub struct LaunchOptions {
    /// Further arguments for the JVM, such as an agent.
    pub jvm_arguments: Vec<String>,
    /// Further read-only inputs, such as an agent's jar.
    pub mounts: Vec<ReadOnlyMount>,
    /// Files that are sent back afterwards: absolute path, and largest size in bytes.
    pub files: Vec<(String, u64)>,
}

impl Executor {
    /// Launches each method as often as requested, and returns a record for each launch. `before` contains the values
    /// that were measured before the launches.
    ///
    /// # Errors
    /// I/O errors of writing logs and temporary files.
    pub(super) async fn launch_all(
        &self,
        identity: &CellIdentity<'_>,
        built: &Built,
        (class, methods, repeats): (&str, &[MethodId], u32),
        before: &Measured,
        logs: &CellLogs,
    ) -> std::io::Result<Vec<CellRecord>> {
        let mut records = Vec::new();
        let options = LaunchOptions::default();
        for repeat in 1..=repeats {
            for method in methods {
                let name = format!("{}-{repeat}", method_name(class, method));
                let name = match built.path {
                    ExecutionPath::Maven => name,
                    ExecutionPath::Direct => format!("direct-{name}"),
                };
                let launch = MethodLaunch { class, method, options: &options, name: &name };
                let mut one = self.launch(identity.image, built, &launch, logs).await?;
                one.measured = Measured {
                    prepare_ms: before.prepare_ms,
                    compile_ms: before.compile_ms,
                    compile_cpu_ms: before.compile_cpu_ms,
                    compile_peak_bytes: before.compile_peak_bytes,
                    whole_build: before.whole_build,
                    ..one.measured
                };
                records.push(self.record(identity, method, repeat, one));
            }
        }
        Ok(records)
    }

    /// Launches one method; a method of an abstract class or an interface, in each of its concrete subclasses. Its
    /// outcome is then the worst of them. If there is no such subclass, the launcher finds no test.
    ///
    /// # Errors
    /// I/O errors of writing logs and temporary files.
    pub async fn launch(
        &self,
        image: &RepositoryImage,
        built: &Built,
        launch: &MethodLaunch<'_>,
        logs: &CellLogs,
    ) -> std::io::Result<Launched> {
        let class = class_of_method(launch.class, launch.method);
        let found = built.family.subclasses(&class, launch.method.method()).unwrap_or_default();
        if found.classes.is_empty() {
            return self.launch_in(&class, image, built, launch, logs).await;
        }
        let mut launches = Vec::new();
        for (number, subclass) in found.classes.iter().enumerate() {
            let name = format!("{}-subclass-{}", launch.name, number + 1);
            let one = MethodLaunch { name: &name, ..*launch };
            launches.push(self.launch_in(subclass, image, built, &one, logs).await?);
        }
        Ok(worst(launches, found))
    }

    /// Launches one method in a class. A timeout counts only after a second run with nothing else running, with two exceptions:
    /// the executor trusts the first timeout, or an earlier timeout of the submission was confirmed.
    ///
    /// # Errors
    /// I/O errors of writing logs and temporary files.
    async fn launch_in(
        &self,
        run_class: &str,
        image: &RepositoryImage,
        built: &Built,
        launch: &MethodLaunch<'_>,
        logs: &CellLogs,
    ) -> std::io::Result<Launched> {
        let once = async |number| self.launch_once((image, built), launch, run_class, logs, number).await;
        let came = |one: &Launched| match one.outcome {
            Outcome::InfraFail(_) => Came::Fault,
            Outcome::ExecFail(ExecReason::Timeout) if !self.trusts_timeout(&one.measured) => Came::OutOfTime,
            _ => Came::Answer,
        };
        let confirmed = self.confirmed.as_ref().map(|confirmed| &confirmed.launches);
        let tried = attempt(&self.exclusive, confirmed, once, came).await?;
        let mut launched = tried.answer;
        launched.measured.believed = tried.believed;
        Ok(launched)
    }

    /// Starts a container ahead for a launch with this class path, unless the pool starts none ahead. Does nothing
    /// during an exclusive run.
    pub(super) async fn expect_launch(&self, image: &RepositoryImage, class_path: &[String]) {
        let _shared = self.exclusive.read().await;
        let (spec, _) = self.launch_container(image, class_path, &LaunchOptions::default()).await;
        self.pool.expect(&spec);
    }

    /// Returns the container of launches with these options, without a program, and the console's path in it.
    async fn launch_container(
        &self,
        image: &RepositoryImage,
        class_path: &[String],
        options: &LaunchOptions,
    ) -> (ContainerSpec, &'static str) {
        let console = console_for(class_path, image.jdk, image.launcher);
        let archive = match options.jvm_arguments.is_empty() {
            true => self.class_archive(image, Serves::Launches(console)).await,
            // An agent must see every class while it is loaded.
            false => None,
        };
        let limits = (self.limits.launch, self.limits.launch_scratch_bytes);
        let program = Program { schema: PROGRAM_SCHEMA, door_port: None, steps: Vec::new() };
        let mut spec = container::container_without_tree("launch", image.config_digest, &self.jars, limits, program);
        spec.mounts.extend(options.mounts.iter().cloned());
        spec.mounts.extend(archive.map(|source| ReadOnlyMount { source, target: CLASS_ARCHIVE.to_owned() }));
        (spec, console)
    }

    async fn launch_once(
        &self,
        (image, built): (&RepositoryImage, &Built),
        &MethodLaunch { class, method, options, name }: &MethodLaunch<'_>,
        run_class: &str,
        logs: &CellLogs,
        number: u32,
    ) -> std::io::Result<Launched> {
        let mut settings = built.settings.clone();
        settings.arguments.extend(options.jvm_arguments.iter().cloned());
        let (mut spec, console) = self.launch_container(image, &built.class_path, options).await;
        let launch = Launch {
            java_home: &image.java_home,
            console,
            module: &built.module,
            class_path: &built.class_path,
            class: run_class,
            method: method.method(),
            settings: &settings,
            class_archive: spec.mounts.iter().any(|mount| mount.target == CLASS_ARCHIVE),
            seal: Some(Seal::random()?),
        };
        let archives: Vec<_> = built.archives.iter().map(|path| path.as_path()).collect();
        let base = Measured { path: built.path, ..self.measured(logs) };
        let fault = |error: &EngineError| {
            let fault = engine_fault(error);
            let outcome = Outcome::InfraFail(fault.reason);
            let measured = base.clone();
            Launched { outcome, detail: fault.detail, attempts: number, measured, files: Vec::new() }
        };
        let length = |path: &&Path| match fs::metadata(path) {
            Ok(found) => Ok(found.len()),
            Err(source) => Err(EngineError::Archive { path: path.to_path_buf(), source }),
        };
        let lengths: Vec<u64> = match archives.iter().map(length).collect() {
            Ok(lengths) => lengths,
            Err(error) => return Ok(fault(&error)),
        };
        let (program, steps) = launch_program(&launch, &lengths, &options.files, &self.limits);
        spec.program = program;
        let name = format!("{name}-{number}");
        logs.invocation(&name, &spec.program, steps.java)?;
        let spool = Spool::create(&self.temporary)?;
        // On the reference path, Maven builds between launches, for longer than a container may wait.
        let then = match built.path {
            ExecutionPath::Direct => Then::StartNext,
            ExecutionPath::Maven => Then::Nothing,
        };
        match self.pool.run(&spec, &archives, spool.path(), then).await {
            Ok(run) => {
                let declared_in = class_of_method(class, method);
                let asked = Asked { class: run_class, declared_in: &declared_in, method, seal: launch.seal };
                launched(&run, &steps, &asked, (logs, &name), number, base.clone(), &self.temporary)
            }
            Err(error) => Ok(fault(&error)),
        }
    }
}

/// The parameters of a launch, and the key that signs its events.
struct Asked<'a> {
    class: &'a str,
    declared_in: &'a str,
    method: &'a MethodId,
    seal: Option<Seal>,
}

/// Returns the result of a launch in a container that ended, and logs its output.
fn launched(
    run: &ContainerRun,
    steps: &LaunchSteps,
    asked: &Asked<'_>,
    (logs, name): (&CellLogs, &str),
    attempts: u32,
    base: Measured,
    temporary: &Path,
) -> std::io::Result<Launched> {
    logs.command(name, run.step(steps.java))?;
    let mut reported = false;
    for (report, engine) in steps.reports.into_iter().zip(ENGINES) {
        reported |= run.step(report).is_some_and(|output| output.result() == Some(&StepResult::Done));
        logs.file(name, &format!(".{engine}.xml"), run.step(report))?;
    }
    let mut measured = Measured {
        container_ms: u64::try_from(run.wall.as_millis()).ok(),
        begin_ms: run.until_begun.and_then(|begun| u64::try_from(begun.as_millis()).ok()),
        ..base
    };
    let Some((output, end)) = run.step(steps.java).zip(command_end(run, steps.java)) else {
        let fault = not_done(run, "launch");
        let outcome = Outcome::InfraFail(fault.reason);
        return Ok(Launched { outcome, detail: fault.detail, attempts, measured, files: Vec::new() });
    };
    let events = output.events.bytes()?;
    let oom_killed = run.memory_limit_met_in(steps.java);
    let &Asked { class, declared_in, method, seal } = asked;
    let facts = LaunchFacts { end, oom_killed, events: &events, seal, class, declared_in, method: method.method() };
    let (verdict, said) = classify(&facts);
    measured = Measured {
        launch_ms: output.report.as_ref().map(|report| report.wall_ms),
        launch_cpu_ms: Some(end.cpu_ms),
        launch_peak_bytes: Some(end.peak_resident_bytes),
        oom_killed,
        dropped_bytes: end.dropped_bytes,
        forged_events: said.forged,
        network_missed: said.network_missed,
        unreported: verdict.outcome == Outcome::Pass && said.report_complete && !reported,
        ..measured
    };
    let files = steps.files.iter().map(|step| sent(run, *step, temporary)).collect::<std::io::Result<_>>()?;
    Ok(Launched { outcome: verdict.outcome, detail: verdict.detail, attempts, measured, files })
}

/// Returns the file that a step sent, moved out of the launch's spool; `None` if it is missing or too large.
fn sent(run: &ContainerRun, step: usize, temporary: &Path) -> std::io::Result<Option<Arc<TemporaryFile>>> {
    let done = run.step(step).filter(|output| output.result() == Some(&StepResult::Done));
    let Some(output) = done else { return Ok(None) };
    let file = TemporaryFile::named(temporary, "sent", "data");
    match &output.content {
        Captured::Memory(bytes) => fs::write(file.path(), bytes)?,
        Captured::File { path, .. } => fs::rename(path, file.path())?,
    }
    Ok(Some(Arc::new(file)))
}

#[cfg(test)]
mod tests;
