//! One cell of one task on the reference path: compile once, launch each method, retry what is our own fault.
//!
//! A compile container gives the compiled tree; each repeat launches the methods in a fresh container from it. Faults of
//! the infrastructure are retried twice and then recorded as such, builds that fail among them. A timeout, of a build as of a
//! method, is believed only after a second run with nothing else running; that of a busy launch on a mutant at once, where its
//! limit is far above what the launch takes otherwise.

mod compile;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fs_err as fs;
use tokio::sync::RwLock;

use self::compile::Compiled;
use super::coverage::{CoverageRequest, MethodCoverage};
use super::fault::{
    ATTEMPTS, Fault, Spool, command_end, file_name, memory_limit_met, milliseconds, not_done, of_engine,
};
use super::key::ExecutionInputs;
use super::limits::ExecutionLimits;
use super::logs::{CellLogs, method_name};
use super::maven::{self, CLASS_ARCHIVE, Launch, ModuleArguments, ToolJars, launch_program};
use super::record::{CellRecord, ExecutionPath, Measured, RECORD_SCHEMA};
use super::sharing::ClassArchives;
use super::surefire::{JvmSettings, Surefire};
use crate::digest::Digest;
use crate::engine::Engine;
use crate::engine::session::{self, ContainerRun};
use crate::engine::spec::{ContainerSpec, ReadOnlyMount};
use crate::manifest::Launcher;
use crate::outcome::launch::LaunchFacts;
use crate::outcome::{CompileReason, ExecReason, Outcome, launch};
use crate::task::{Cell, MethodId, Task};
use crate::workspace::cells::class_of_method;

/// What all cells of a run share.
#[derive(Clone)]
pub struct Executor {
    /// Starts containers.
    pub engine: Arc<dyn Engine>,
    /// The engine's name and version, for records.
    pub engine_name: String,
    /// Protections that the engine could not give, sorted.
    pub isolation_missing: Vec<String>,
    /// Our own jars.
    pub jars: ToolJars,
    /// Limits of every execution.
    pub limits: ExecutionLimits,
    /// For archives and spooled output; everything in it is this process's own.
    pub temporary: PathBuf,
    /// The run's `logs`, where there is a run.
    pub logs: Option<PathBuf>,
    /// What of this program decides executions, a part of every key.
    pub identity: Digest,
    /// Held shared by every execution, and alone by the second run of a timeout. One for all executors of a process.
    pub alone: Arc<RwLock<()>>,
    /// Whether a launch's timeout is believed at once, since its limit is many times what it takes.
    pub believes_timeouts: bool,
    /// What launches of every path map; `None` for launches that load every class anew.
    pub class_archives: Option<Arc<ClassArchives>>,
}

/// What a repository's executions share.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The image's config digest.
    pub image: Digest,
    /// Digest of what images with the same development kit have in common: all but the Maven cache.
    pub toolchain: Digest,
    /// Major version of its development kit.
    pub jdk: u32,
    /// `JAVA_HOME` in the image.
    pub java_home: String,
    /// Skips and other arguments of the manifest for Maven.
    pub maven_arguments: Vec<String>,
    /// The console that launches tests.
    pub launcher: Launcher,
    /// Whether the project's settings for Surefire apply to launches.
    pub surefire: Surefire,
}

/// The tree that a cell is executed on.
#[derive(Clone, Debug)]
pub struct CellInput {
    /// Tar archive of the code revision with the one file swapped.
    pub archive: PathBuf,
    /// Git's id of the code revision's tree.
    pub tree: String,
    /// The swapped file's bytes by digest; `None` where that revision has no such file.
    pub swapped: Option<Digest>,
    /// The target file's module; `None` where it lies in none.
    pub module: Option<ModuleArguments>,
    /// The target file, relative to the tree.
    pub test_file: String,
    /// Binary name of the test file's class; a method's own may be nested in it.
    pub class: String,
}

/// What a source of a cell's tree holds instead of what the code revision has there: a mutant.
#[derive(Clone, Copy, Debug)]
pub struct OtherText<'a> {
    /// Names its logs.
    pub number: usize,
    /// The source, relative to the tree.
    pub path: &'a str,
    /// What it holds.
    pub text: &'a str,
}

/// One cell to execute.
#[derive(Clone, Copy)]
pub struct CellRequest<'a> {
    /// The task.
    pub task: &'a Task,
    /// The cell.
    pub cell: Cell,
    /// Its tree.
    pub input: &'a CellInput,
    /// The repository's environment.
    pub environment: &'a Environment,
    /// Methods to launch.
    pub methods: &'a [MethodId],
    /// Repeats of each launch, at least 1.
    pub repeats: u32,
    /// The path that was asked for; where it is the direct one, that did not fit.
    pub path: ExecutionPath,
    /// Whether every launch gets a container of its own: what is not trusted never shares one.
    pub apart: bool,
    /// What is changed in the code besides; such records have no key.
    pub other_text: Option<OtherText<'a>>,
}

/// What a record is about.
#[derive(Clone, Copy)]
pub struct CellIdentity<'a> {
    /// The task.
    pub task: &'a Task,
    /// The cell.
    pub cell: Cell,
    /// The repository's environment.
    pub environment: &'a Environment,
    /// Git's id of the code revision's tree.
    pub tree: &'a str,
    /// The swapped file's bytes by digest.
    pub swapped: Option<Digest>,
    /// The path that was asked for.
    pub path: ExecutionPath,
}

/// A compiled tree and how its methods are launched.
pub(super) struct Ready {
    pub(super) archive: PathBuf,
    pub(super) class_path: Vec<String>,
    pub(super) settings: JvmSettings,
}

/// What one method's launch came to.
pub(super) struct Launched {
    pub(super) outcome: Outcome,
    pub(super) detail: String,
    pub(super) attempts: u32,
    pub(super) measured: Measured,
}

/// Returns what a launch in a container that ended came to, and keeps what it said. `test_class` is the test file's.
pub(super) fn launched(
    run: &ContainerRun,
    steps: &maven::LaunchSteps,
    test_class: &str,
    method: &MethodId,
    (logs, name): (&CellLogs, &str),
    attempts: u32,
    base: &Measured,
) -> std::io::Result<Launched> {
    logs.command(name, run.step(steps.java))?;
    for (report, engine) in steps.reports.into_iter().zip(["jupiter", "vintage"]) {
        logs.file(name, &format!(".{engine}.xml"), run.step(report))?;
    }
    let Some((output, end)) = run.step(steps.java).zip(command_end(run, steps.java)) else {
        let fault = not_done(run, "launch");
        let (outcome, measured) = (Outcome::InfraFail(fault.reason), base.clone());
        return Ok(Launched { outcome, detail: fault.detail, attempts, measured });
    };
    let events = output.events.bytes()?;
    let oom_killed = memory_limit_met(run, end);
    let class = class_of_method(test_class, method);
    let facts = LaunchFacts { end, oom_killed, events: &events, class: &class, method: method.method() };
    let verdict = launch::classify(&facts);
    Ok(Launched {
        outcome: verdict.outcome,
        detail: verdict.detail,
        attempts,
        measured: Measured {
            launch_ms: output.report.as_ref().map(|report| report.wall_ms),
            launch_cpu_ms: Some(end.cpu_ms),
            launch_peak_bytes: Some(end.peak_resident_bytes),
            oom_killed,
            dropped_bytes: end.dropped_bytes,
            ..base.clone()
        },
    })
}

impl Executor {
    /// Executes a cell and returns a record per method and repeat.
    ///
    /// # Errors
    /// Only where logs or temporary files can't be written; every other trouble is an outcome.
    pub async fn run_cell(&self, request: &CellRequest<'_>) -> std::io::Result<Vec<CellRecord>> {
        Ok(self.run_and_cover(request, None).await?.0)
    }

    /// Executes a cell as [`Executor::run_cell`] does, then launches again, with the coverage agent on board, what passed
    /// in the first repeat and what is asked for besides. Returns what each of these covered.
    ///
    /// # Errors
    /// As [`Executor::run_cell`].
    pub async fn run_and_cover(
        &self,
        request: &CellRequest<'_>,
        cover: Option<&CoverageRequest<'_>>,
    ) -> std::io::Result<(Vec<CellRecord>, Vec<MethodCoverage>)> {
        let started = std::time::Instant::now();
        let mut logs = CellLogs::create(self.logs.as_deref(), &request.task.id, request.cell)?;
        if let Some(OtherText { number, .. }) = request.other_text {
            logs = logs.below(&format!("mutant-{number}"))?;
        }
        let identity = CellIdentity {
            task: request.task,
            cell: request.cell,
            environment: request.environment,
            tree: &request.input.tree,
            swapped: request.input.swapped,
            path: request.path,
        };
        let all = |outcome, detail: &str, attempts, measured: &Measured| {
            let launched = || Launched { outcome, detail: detail.to_owned(), attempts, measured: measured.clone() };
            let records = self.records(&identity, request.methods, request.repeats, launched);
            unkeyed(request, records)
        };
        let mut measured = self.measured(&logs);
        if request.input.swapped.is_none() {
            return Ok((all(Outcome::Absent, "the revision has no such test file", 0, &measured), Vec::new()));
        }
        let Some(module) = &request.input.module else {
            let detail = "the target file lies in no module of this tree";
            let records = all(Outcome::CompileFail(CompileReason::NoModule), detail, 0, &measured);
            return Ok((records, Vec::new()));
        };
        let (compiled, attempts, cost) = self.compile(request, module, &logs).await?;
        measured.compile_ms = Some(milliseconds(started));
        measured.compile_cpu_ms = cost.map(|cost| cost.cpu_ms);
        measured.compile_peak_bytes = cost.map(|cost| cost.peak_resident_bytes);
        let ready = match compiled {
            Compiled::Ready(ready) => ready,
            Compiled::Failed { outcome, detail } => {
                return Ok((all(outcome, &detail, attempts, &measured), Vec::new()));
            }
        };
        let mut records = Vec::new();
        for repeat in 1..=request.repeats {
            let together = if request.apart { 1 } else { request.methods.len().max(1) };
            for methods in request.methods.chunks(together) {
                let methods: Vec<&MethodId> = methods.iter().collect();
                let launched = self.launch(request, module, &ready, &methods, repeat, &logs).await?;
                for (method, mut one) in methods.into_iter().zip(launched) {
                    if one.outcome == Outcome::ExecFail(ExecReason::Timeout) && !self.believes(&one.measured) {
                        let attempt = one.attempts + 1;
                        one = self.launch_alone(request, module, &ready, method, (repeat, attempt), &logs).await?;
                    }
                    one.measured = Measured {
                        compile_ms: measured.compile_ms,
                        compile_cpu_ms: measured.compile_cpu_ms,
                        compile_peak_bytes: measured.compile_peak_bytes,
                        ..one.measured
                    };
                    records.push(self.record(&identity, method, repeat, one));
                }
            }
        }
        let covered = match cover {
            Some(cover) => {
                let passed = records.iter().filter(|record| record.repeat == 1 && record.outcome == Outcome::Pass);
                let methods: Vec<MethodId> =
                    cover.methods.iter().chain(passed.map(|record| &record.method)).cloned().collect();
                self.cover(request, cover, &ready, &module.path(), &methods, &logs).await?
            }
            None => Vec::new(),
        };
        remove(&ready.archive)?;
        Ok((unkeyed(request, records), covered))
    }

    /// Returns the key of one launch on a path: what was executed under it need not be executed again.
    pub fn key(&self, identity: &CellIdentity<'_>, method: &MethodId, repeat: u32, path: ExecutionPath) -> Digest {
        let inputs = ExecutionInputs {
            image: identity.environment.image,
            tree: identity.tree,
            test_file: identity.task.test_file.as_str(),
            swapped: identity.swapped,
            method: method.as_str(),
            maven_arguments: &identity.environment.maven_arguments,
            launcher: identity.environment.launcher,
            surefire: identity.environment.surefire,
            path,
            runner: file_name(&self.jars.runner),
            recorder: file_name(&self.jars.recorder),
            compiler: file_name(&self.jars.compiler),
            identity: self.identity,
            limits: self.limits,
            repeat,
            class_archive: self.maps_class_archives(identity.environment),
            isolation_missing: &self.isolation_missing,
        };
        inputs.key()
    }

    /// Tells whether a launch that time ended is believed without a second one: it used a processor for half of its time at
    /// least. One that waited may have waited for the machine.
    pub(super) fn believes(&self, measured: &Measured) -> bool {
        let half = self.limits.launch_command.wall_seconds.saturating_mul(500);
        self.believes_timeouts && measured.launch_cpu_ms.is_some_and(|used| used >= half)
    }

    pub(super) fn measured(&self, logs: &CellLogs) -> Measured {
        Measured {
            engine: self.engine_name.clone(),
            isolation_missing: self.isolation_missing.clone(),
            logs: logs.relative(),
            ..Measured::default()
        }
    }

    /// Returns a record for each method and repeat, all alike.
    pub(super) fn records(
        &self,
        identity: &CellIdentity<'_>,
        methods: &[MethodId],
        repeats: u32,
        launched: impl Fn() -> Launched,
    ) -> Vec<CellRecord> {
        let repeats = (1..=repeats).flat_map(|repeat| methods.iter().map(move |method| (repeat, method)));
        repeats.map(|(repeat, method)| self.record(identity, method, repeat, launched())).collect()
    }

    pub(super) fn record(
        &self,
        identity: &CellIdentity<'_>,
        method: &MethodId,
        repeat: u32,
        launched: Launched,
    ) -> CellRecord {
        let path = launched.measured.path;
        CellRecord {
            schema: RECORD_SCHEMA,
            task_id: identity.task.id.clone(),
            repository: identity.task.repository.clone(),
            track: identity.task.track,
            cell: identity.cell,
            method: method.clone(),
            repeat,
            path: identity.path,
            outcome: launched.outcome,
            detail: launched.detail,
            attempts: launched.attempts,
            key: (launched.attempts > 0).then(|| self.key(identity, method, repeat, path)),
            measured: launched.measured,
        }
    }

    /// Compiles a cell's tree as the reference path does; where it does not, says what that comes to and why.
    ///
    /// # Errors
    /// The file system's.
    pub async fn compiles(
        &self,
        request: &CellRequest<'_>,
        module: &ModuleArguments,
    ) -> std::io::Result<Result<(), (Outcome, String)>> {
        let logs = CellLogs::create(self.logs.as_deref(), &request.task.id, request.cell)?;
        match self.compile_tree(request, module, &logs).await? {
            Ok(ready) => remove(&ready.archive).map(Ok),
            Err(failed) => Ok(Err(failed)),
        }
    }

    /// Returns a cell's tree as the reference path compiles it; where it does not, what that comes to and why.
    pub(super) async fn compile_tree(
        &self,
        request: &CellRequest<'_>,
        module: &ModuleArguments,
        logs: &CellLogs,
    ) -> std::io::Result<Result<Ready, (Outcome, String)>> {
        Ok(match self.compile(request, module, logs).await?.0 {
            Compiled::Ready(ready) => Ok(ready),
            Compiled::Failed { outcome, detail } => Err((outcome, detail)),
        })
    }

    async fn launch_alone(
        &self,
        request: &CellRequest<'_>,
        module: &ModuleArguments,
        ready: &Ready,
        method: &MethodId,
        (repeat, mut attempt): (u32, u32),
        logs: &CellLogs,
    ) -> std::io::Result<Launched> {
        let _alone = self.alone.write().await;
        let spec = self.launch_spec(request, module, ready, &[method]).await;
        loop {
            let mut launched = self.launch_once(request, &spec, &[method], repeat, attempt, logs).await?;
            match launched.pop() {
                Some(launched) if matches!(launched.outcome, Outcome::InfraFail(_)) && attempt <= ATTEMPTS => {
                    attempt += 1;
                }
                Some(launched) => return Ok(launched),
                None => return Err(std::io::Error::other("a launch of one method gave no result")),
            }
        }
    }

    /// Launches methods in one container, and those again that a fault of ours kept from a verdict: what has one keeps it,
    /// and each has a container of its own then, so that what one of them does costs no other its attempts.
    async fn launch(
        &self,
        request: &CellRequest<'_>,
        module: &ModuleArguments,
        ready: &Ready,
        methods: &[&MethodId],
        repeat: u32,
        logs: &CellLogs,
    ) -> std::io::Result<Vec<Launched>> {
        let mut launched: Vec<Option<Launched>> = methods.iter().map(|_| None).collect();
        for attempt in 1..=ATTEMPTS {
            let is_open =
                |one: &Option<Launched>| one.as_ref().is_none_or(|one| matches!(one.outcome, Outcome::InfraFail(_)));
            let open: Vec<usize> = (0..methods.len()).filter(|at| is_open(&launched[*at])).collect();
            let together = if attempt == 1 { open.len().max(1) } else { 1 };
            for group in open.chunks(together) {
                let some: Vec<&MethodId> = group.iter().map(|at| methods[*at]).collect();
                let _shared = self.alone.read().await;
                let spec = self.launch_spec(request, module, ready, &some).await;
                let found = self.launch_once(request, &spec, &some, repeat, attempt, logs).await?;
                for (at, one) in group.iter().zip(found) {
                    launched[*at] = Some(one);
                }
            }
        }
        Ok(launched.into_iter().flatten().collect())
    }

    async fn launch_spec(
        &self,
        request: &CellRequest<'_>,
        module: &ModuleArguments,
        ready: &Ready,
        methods: &[&MethodId],
    ) -> (ContainerSpec, Vec<maven::LaunchSteps>) {
        let (module, environment) = (module.path(), request.environment);
        let console = maven::console_for(&ready.class_path, environment.jdk, environment.launcher);
        let archive = self.class_archive(environment, console).await;
        let classes: Vec<String> = methods.iter().map(|method| class_of_method(&request.input.class, method)).collect();
        let launches: Vec<Launch<'_>> = methods
            .iter()
            .zip(&classes)
            .map(|(method, class)| Launch {
                java_home: &environment.java_home,
                console,
                module: &module,
                class_path: &ready.class_path,
                class,
                method: method.method(),
                settings: &ready.settings,
                class_archive: archive.is_some(),
            })
            .collect();
        let (program, steps) = launch_program(&launches, &self.limits);
        let mut limits = self.limits.launch;
        // The container's own limit is for an init that hangs: methods have theirs.
        limits.wall_seconds = 60 + self.limits.launch_command.wall_seconds * methods.len() as u64;
        let scratch = (limits, self.limits.launch_scratch_bytes);
        let tree = ready.archive.clone();
        let mut spec = maven::container("launch", environment.image, tree, &self.jars, scratch, program);
        spec.mounts.extend(archive.map(|source| ReadOnlyMount { source, target: CLASS_ARCHIVE.to_owned() }));
        (spec, steps)
    }

    async fn launch_once(
        &self,
        request: &CellRequest<'_>,
        (spec, steps): &(ContainerSpec, Vec<maven::LaunchSteps>),
        methods: &[&MethodId],
        repeat: u32,
        attempt: u32,
        logs: &CellLogs,
    ) -> std::io::Result<Vec<Launched>> {
        let base = self.measured(logs);
        let blame = |fault: Fault| Launched {
            outcome: Outcome::InfraFail(fault.reason),
            detail: fault.detail,
            attempts: attempt,
            measured: base.clone(),
        };
        let spool = Spool::create(&self.temporary)?;
        let class = &request.input.class;
        let name = |method: &MethodId| format!("{}-{repeat}-{attempt}", method_name(class, method));
        for (method, steps) in methods.iter().zip(steps) {
            logs.invocation(&name(method), &spec.program, steps.java)?;
        }
        let run = match session::run(self.engine.as_ref(), spec, spool.path()).await {
            Ok(run) => run,
            Err(error) => return Ok(methods.iter().map(|_| blame(of_engine(&error))).collect()),
        };
        let ended = methods.iter().zip(steps);
        ended
            .map(|(method, steps)| {
                let name = name(method);
                launched(&run, steps, class, method, (logs, &name), attempt, &base)
            })
            .collect()
    }
}

/// Takes the keys from records of code with a text of its own: keys do not name it, and nothing of a mutant's may be found
/// under that of the code without it.
fn unkeyed(request: &CellRequest<'_>, mut records: Vec<CellRecord>) -> Vec<CellRecord> {
    if request.other_text.is_some() {
        records.iter_mut().for_each(|record| record.key = None);
    }
    records
}

pub(super) fn remove(path: &Path) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
