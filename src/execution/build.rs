//! Builds a tree with Maven, tests included. The reference path launches methods on such a tree, and prepared revisions
//! are made of one. Source: protocol §2.2.

pub mod built;
pub mod compiled_tree;
pub mod compiler;
pub mod masked;
pub mod maven;
pub mod merged;
mod patterns;
pub mod prepared;
pub mod recording;
pub mod surefire;

use std::path::Path;

use crate::engine::session::{self, Captured, ContainerRun};
use crate::engine::spec::{ContainerSpec, LimitReached};
use crate::execution::attempt::{Came, attempt};
use crate::execution::build::maven::{CompileSteps, MavenSettings, compile_program};
use crate::execution::build::recording::Recording;
use crate::execution::build::surefire::JvmSettings;
use crate::execution::container::Surefire;
use crate::execution::container::limits::ExecutionLimits;
use crate::execution::container::places::PROJECT;
use crate::execution::container::steps::{command_end, done};
use crate::execution::container::temporary::Spool;
use crate::execution::container::{RepositoryImage, container};
use crate::execution::executor::Executor;
use crate::execution::fault::{Fault, engine_fault, not_done};
use crate::execution::module::ModuleArguments;
use crate::execution::request::OtherText;
use crate::execution::run::logs::CellLogs;
use crate::java::reach::Place;
use crate::outcome::compile::{Compilation, CompileFacts, classify};
use crate::outcome::{CompileReason, InfraReason, Outcome};

/// A tree to build.
#[derive(Clone, Copy)]
pub(super) struct BuildRequest<'a> {
    /// The container's purpose.
    pub(super) purpose: &'a str,
    pub(super) image: &'a RepositoryImage,
    /// Tar archive of the tree.
    pub(super) tree: &'a Path,
    pub(super) module: &'a ModuleArguments,
    /// The target file, relative to the tree. Errors in any other file are not the target's. `None` for a build without
    /// a target file.
    pub(super) target_file: Option<&'a str>,
    /// A text that replaces a source while it is compiled.
    pub(super) other_text: Option<OtherText<'a>>,
    pub(super) logs: &'a CellLogs,
}

/// Maven's result for a tree.
pub(super) struct MavenBuild {
    /// The directory of the module's main classes.
    pub(super) output: String,
    /// The directory of its test classes.
    pub(super) test_output: String,
    /// Class directories and jars of the test class path, in Maven's order.
    pub(super) class_path: Vec<String>,
    /// The recorder's recording.
    pub(super) recording: Vec<u8>,
    /// The compiled tree.
    pub(super) archive: Captured,
    /// Keeps the directory of `archive`, if the archive is a file there.
    _spool: Spool,
}

impl MavenBuild {
    /// Returns the project's Surefire settings that launches take.
    pub(super) fn settings(
        &self,
        recording: &Recording,
        module: &str,
        image: &RepositoryImage,
        heap_mib: u64,
    ) -> JvmSettings {
        match (image.surefire, recording.tests_of(module)) {
            (Surefire::Project, Some(tests)) => JvmSettings::of(tests, module, image.jdk, heap_mib),
            _ => JvmSettings::default(),
        }
    }
}

/// The result of a build.
pub(super) enum BuildEnd {
    Built(Box<MavenBuild>),
    /// Either Maven failed, or a compilation did. If the target file does not compile, its errors' places are listed.
    Failed {
        outcome: Outcome,
        detail: String,
        places: Vec<Place>,
    },
}

impl BuildEnd {
    fn fault(Fault { reason, detail }: Fault) -> Self {
        Self::Failed { outcome: Outcome::InfraFail(reason), detail, places: Vec::new() }
    }
}

/// The resources that Maven used.
#[derive(Clone, Copy)]
pub(super) struct BuildCost {
    pub(super) cpu_ms: u64,
    pub(super) peak_resident_bytes: u64,
}

/// A build's result with its cost.
pub(super) struct Build {
    pub(super) end: BuildEnd,
    /// Number of containers that were used.
    pub(super) attempts: u32,
    /// Maven's cost in the last container; `None` if unknown.
    pub(super) cost: Option<BuildCost>,
    /// Whether an exhausted limit counted without a second run.
    pub(super) believed: bool,
    ran_out_of_time: bool,
}

impl Build {
    /// Tells whether another try may give another result. A build of a revision's own tree (`is_own`) gives the same
    /// result again; the reference path then builds it anew for the cell.
    fn came(&self, is_own: bool) -> Came {
        match self.end {
            BuildEnd::Failed { outcome: Outcome::InfraFail(InfraReason::Build | InfraReason::Image), .. } if is_own => {
                Came::Answer
            }
            _ if self.ran_out_of_time && is_own => Came::Answer,
            _ if self.ran_out_of_time && self.is_exhausted() => Came::OutOfTime,
            _ if self.ran_out_of_time => Came::Slow,
            BuildEnd::Failed { outcome: Outcome::InfraFail(_), .. } => Came::Fault,
            _ => Came::Answer,
        }
    }

    /// Tells whether the file at test exhausts the compiler.
    fn is_exhausted(&self) -> bool {
        matches!(self.end, BuildEnd::Failed { outcome: Outcome::CompileFail(CompileReason::Resource), .. })
    }
}

impl Executor {
    /// Builds a tree. A failed build counts as a fault of the infrastructure and is retried; a failed compilation is
    /// not.
    ///
    /// # Errors
    /// I/O errors of writing logs and temporary files.
    pub(super) async fn build(&self, request: &BuildRequest<'_>) -> std::io::Result<Build> {
        let image = request.image;
        let class_archive = self.archive_of_compilers(image).await;
        let settings = MavenSettings {
            java_home: image.java_home.clone(),
            arguments: &image.maven_arguments,
            class_archive: class_archive.is_some(),
        };
        let is_own = request.target_file.is_none();
        let command = self.limits.submission_compile_command.filter(|_| !is_own);
        let of_maven =
            ExecutionLimits { compile_command: command.unwrap_or(self.limits.compile_command), ..self.limits };
        let (program, steps) = compile_program(&settings, request.module, &of_maven, request.other_text);
        let limits = (self.limits.compile, self.limits.compile_scratch_bytes);
        let (image, tree) = (image.config_digest, request.tree.to_owned());
        let mut spec = container(request.purpose, image, tree, &self.jars, limits, program);
        spec.mounts.extend(class_archive);
        let once = async |number| self.build_once(request, &spec, &steps, number).await;
        let confirmed = self.confirmed.as_ref().map(|confirmed| &confirmed.compilations).filter(|_| !is_own);
        let tried = attempt(&self.exclusive, confirmed, once, |build: &Build| build.came(is_own)).await?;
        let mut build = tried.answer;
        build.believed = tried.believed;
        // A compiler that exhausts another limit than time needs no second run.
        if let Some(confirmed) = confirmed.filter(|_| build.is_exhausted()) {
            confirmed.confirm();
        }
        Ok(build)
    }

    async fn build_once(
        &self,
        request: &BuildRequest<'_>,
        spec: &ContainerSpec,
        steps: &CompileSteps,
        number: u32,
    ) -> std::io::Result<Build> {
        let (spool, logs) = (Spool::create(&self.temporary)?, request.logs);
        let name = format!("compile-{number}");
        logs.invocation(&name, &spec.program, steps.maven)?;
        let run = match session::run(self.engine.as_ref(), spec, spool.path()).await {
            Ok(run) => run,
            Err(error) => {
                let fault = engine_fault(&error);
                let end = BuildEnd::fault(fault);
                return Ok(Build { end, attempts: number, cost: None, believed: false, ran_out_of_time: false });
            }
        };
        logs.command(&name, run.step(steps.maven))?;
        logs.file(&name, ".recording.jsonl", run.step(steps.recording))?;
        let ended = command_end(&run, steps.maven);
        let cost = ended.map(|end| BuildCost { cpu_ms: end.cpu_ms, peak_resident_bytes: end.peak_resident_bytes });
        let limit = ended.and_then(|end| end.limit);
        Ok(Build {
            end: end(request, &run, steps, spool)?,
            attempts: number,
            cost,
            believed: false,
            ran_out_of_time: matches!(limit, Some(LimitReached::Wall | LimitReached::Cpu)),
        })
    }
}

/// Returns the build's result, given how its container ended.
fn end(
    request: &BuildRequest<'_>,
    run: &ContainerRun,
    steps: &CompileSteps,
    spool: Spool,
) -> std::io::Result<BuildEnd> {
    let lost = || {
        let fault = not_done(run, request.purpose);
        Ok(BuildEnd::fault(fault))
    };
    let Some(end) = command_end(run, steps.maven) else { return lost() };
    let recording = match run.step(steps.recording) {
        Some(output) => output.content.bytes()?.into_owned(),
        None => Vec::new(),
    };
    let verdict = classify(&CompileFacts {
        end,
        oom_killed: run.memory_limit_met_in(steps.maven),
        recording: &recording,
        module: &request.module.path(),
        target_file: &request.target_file.map_or_else(String::new, |file| format!("{PROJECT}/{file}")),
        changes_main: request.other_text.is_some(),
    });
    let (test_output, output) = match verdict {
        Compilation::Compiled { test_output, output } => (test_output, output),
        Compilation::Failed { outcome, detail, places } => {
            let places = places.into_iter().map(|(line, column)| Place { line, column }).collect();
            return Ok(BuildEnd::Failed { outcome, detail, places });
        }
    };
    let (Some(dependencies), Some(archive)) = (done(run, steps.class_path), done(run, steps.archive)) else {
        return lost();
    };
    let dependencies = dependencies.content.bytes()?;
    let mut class_path = vec![test_output.clone(), output.clone()];
    let dependencies = String::from_utf8_lossy(&dependencies);
    class_path.extend(dependencies.trim().split(':').filter(|part| !part.is_empty()).map(str::to_owned));
    let archive = archive.content.clone();
    Ok(BuildEnd::Built(Box::new(MavenBuild { output, test_output, class_path, recording, archive, _spool: spool })))
}

#[cfg(test)]
mod tests;
