//! Compiling a cell with Maven: faults of the infrastructure are retried, a build that runs out of time is believed after a
//! second run with nothing else running.

use fs_err as fs;

use super::{CellRequest, Executor, Ready};
use crate::engine::session::{self, Captured, ContainerRun};
use crate::engine::spec::{ContainerSpec, LimitReached};
use crate::execution::fault::{
    ATTEMPTS, Fault, Spool, command_end, done, memory_limit_met, not_done, of_engine, unique,
};
use crate::execution::logs::CellLogs;
use crate::execution::maven::{self, MavenSettings, ModuleArguments, PROJECT, compile_program};
use crate::execution::recording::Recording;
use crate::execution::surefire::{JvmSettings, Surefire};
use crate::outcome::Outcome;
use crate::outcome::compile::{Compilation, CompileFacts, classify};

/// What came of compiling.
pub(super) enum Compiled {
    Ready(Ready),
    Failed { outcome: Outcome, detail: String },
}

/// What one compile container came to.
struct CompileAttempt {
    compiled: Compiled,
    /// What Maven used, where that can be told.
    cost: Option<CompileCost>,
    /// Maven met its limit of wall or processor time.
    ran_out_of_time: bool,
}

impl CompileAttempt {
    fn is_fault(&self) -> bool {
        matches!(self.compiled, Compiled::Failed { outcome: Outcome::InfraFail(_), .. })
    }
}

/// What Maven used.
#[derive(Clone, Copy)]
pub(super) struct CompileCost {
    pub(super) cpu_ms: u64,
    pub(super) peak_resident_bytes: u64,
}

impl From<Fault> for Compiled {
    fn from(fault: Fault) -> Self {
        Self::Failed { outcome: Outcome::InfraFail(fault.reason), detail: fault.detail }
    }
}

impl Executor {
    /// Returns what came of compiling, after how many attempts, and what the last one used where that can be told.
    pub(super) async fn compile(
        &self,
        request: &CellRequest<'_>,
        module: &ModuleArguments,
        logs: &CellLogs,
    ) -> std::io::Result<(Compiled, u32, Option<CompileCost>)> {
        let settings = MavenSettings {
            java_home: request.environment.java_home.clone(),
            arguments: &request.environment.maven_arguments,
        };
        let other_text = request.other_text.map(|other| (other.path, other.text));
        let (program, steps) = compile_program(&settings, module, &self.limits, other_text);
        let spec = maven::container(
            "compile",
            request.environment.image,
            request.input.archive.clone(),
            &self.jars,
            (self.limits.compile, self.limits.compile_scratch_bytes),
            program,
        );
        let mut attempt = 1;
        loop {
            let one = {
                let _shared = self.alone.read().await;
                self.compile_once(request, module, &spec, &steps, attempt, logs).await?
            };
            if one.ran_out_of_time {
                break;
            }
            if attempt == ATTEMPTS || !one.is_fault() {
                return Ok((one.compiled, attempt, one.cost));
            }
            attempt += 1;
        }
        let _alone = self.alone.write().await;
        loop {
            attempt += 1;
            let one = self.compile_once(request, module, &spec, &steps, attempt, logs).await?;
            if attempt > ATTEMPTS || one.ran_out_of_time || !one.is_fault() {
                return Ok((one.compiled, attempt, one.cost));
            }
        }
    }

    async fn compile_once(
        &self,
        request: &CellRequest<'_>,
        module: &ModuleArguments,
        spec: &ContainerSpec,
        steps: &maven::CompileSteps,
        attempt: u32,
        logs: &CellLogs,
    ) -> std::io::Result<CompileAttempt> {
        let spool = Spool::create(&self.temporary)?;
        let name = format!("compile-{attempt}");
        logs.invocation(&name, &spec.program, steps.maven)?;
        let run = match session::run(self.engine.as_ref(), spec, spool.path()).await {
            Ok(run) => run,
            Err(error) => {
                let compiled = of_engine(&error).into();
                return Ok(CompileAttempt { compiled, cost: None, ran_out_of_time: false });
            }
        };
        logs.command(&name, run.step(steps.maven))?;
        logs.file(&name, ".recording.jsonl", run.step(steps.recording))?;
        let end = command_end(&run, steps.maven);
        let cost = end.map(|end| CompileCost { cpu_ms: end.cpu_ms, peak_resident_bytes: end.peak_resident_bytes });
        let limit = end.and_then(|end| end.limit);
        let compiled = self.compiled(request, module, &run, steps)?.unwrap_or_else(Compiled::from);
        Ok(CompileAttempt {
            compiled,
            cost,
            ran_out_of_time: matches!(limit, Some(LimitReached::Wall | LimitReached::Cpu)),
        })
    }

    fn compiled(
        &self,
        request: &CellRequest<'_>,
        module: &ModuleArguments,
        run: &ContainerRun,
        steps: &maven::CompileSteps,
    ) -> std::io::Result<Result<Compiled, Fault>> {
        let Some(end) = command_end(run, steps.maven) else { return Ok(Err(not_done(run, "compile"))) };
        let recording = match run.step(steps.recording) {
            Some(output) => output.content.bytes()?.into_owned(),
            None => Vec::new(),
        };
        let verdict = classify(&CompileFacts {
            end,
            oom_killed: memory_limit_met(run, end),
            recording: &recording,
            module: &module.path(),
            target_file: &format!("{PROJECT}/{}", request.input.test_file),
            changes_main: request.other_text.is_some(),
        });
        let (test_output, output) = match verdict {
            Compilation::Compiled { test_output, output } => (test_output, output),
            Compilation::Failed { outcome, detail } => return Ok(Ok(Compiled::Failed { outcome, detail })),
        };
        let (Some(dependencies), Some(archive)) = (done(run, steps.class_path), done(run, steps.archive)) else {
            return Ok(Err(not_done(run, "compile")));
        };
        let dependencies = dependencies.content.bytes()?;
        let mut class_path = vec![test_output, output];
        let dependencies = String::from_utf8_lossy(&dependencies);
        class_path.extend(dependencies.trim().split(':').filter(|part| !part.is_empty()).map(str::to_owned));
        let kept = self.temporary.join(format!("compiled-{}.tar", unique()));
        match &archive.content {
            Captured::File { path, .. } => fs::rename(path, &kept)?,
            Captured::Memory(bytes) => fs::write(&kept, bytes)?,
        }
        let settings = match (request.environment.surefire, Recording::read(&recording).tests_of(&module.path())) {
            (Surefire::Project, Some(tests)) => JvmSettings::of(tests, &module.path(), self.limits.launch_heap_mib),
            _ => JvmSettings::default(),
        };
        Ok(Ok(Compiled::Ready(Ready { archive: kept, class_path, settings })))
    }
}
