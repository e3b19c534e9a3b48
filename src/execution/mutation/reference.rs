//! Mutants on the reference path, for tasks that the direct path does not fit. Maven decides which mutants compile,
//! each on a fresh tree, and the reference path runs methods on the sampled ones. It is slow and gives the same
//! mutants.

use std::path::Path;

use super::launches::{Passing, limited};
use crate::artifact::key::key;
use crate::digest::Digest;
use crate::engine::session;
use crate::engine::spec::{ContainerLimits, PROGRAM_SCHEMA, Program, Step};
use crate::execution::attempt::ATTEMPTS;
use crate::execution::build::maven::{MavenSettings, maven_command};
use crate::execution::build::prepared::in_tree;
use crate::execution::container::RepositoryImage;
use crate::execution::container::container;
use crate::execution::container::file_name;
use crate::execution::container::places::{HOME, PROJECT, RECORDING, TREE, emptied};
use crate::execution::container::steps::command_end;
use crate::execution::container::temporary::Spool;
use crate::execution::executor::Executor;
use crate::execution::fault::{ExecutionError, NoAnswer, engine_fault, not_done};
use crate::execution::module::ModuleArguments;
use crate::execution::request::{CellRequest, OtherText};
use crate::execution::run::record::CellRecord;
use crate::outcome::compile::{MainSources, main_sources};
use crate::outcome::{CompileReason, InfraReason, Outcome};
use crate::task::MethodId;

/// The most texts in one container. An exclusive run waits for the whole container.
const MOST_TOGETHER: usize = 4;

/// The most bytes of texts in one container: its program contains them.
const MOST_TEXT_BYTES: usize = 4 << 20;

/// The most texts of one source that Maven compiles. This takes some hours.
const MOST_BUILDS: usize = 2_000;

/// The largest recording, in bytes.
const MOST_RECORDING_BYTES: u64 = 32 << 20;

/// Maven's goals. The first compiles the main sources and processes their classes. If siblings' tests are needed for
/// that, the second goal compiles them as well.
const GOALS: [&str; 2] = ["process-classes", "test-compile"];

/// A text that is no Java, whatever surrounds it.
const NO_JAVA: &str = "}\n)(\n";

/// New code as Maven builds it.
#[derive(Clone, Copy)]
pub struct ReferenceBuild<'a> {
    /// Tar archive of the tree.
    pub archive: &'a Path,
    /// The code revision's tree: [`RevisionTree::identity`](crate::workspace::RevisionTree::identity).
    pub tree: &'a str,
    /// The target file's module.
    pub module: &'a ModuleArguments,
}

impl ReferenceBuild<'_> {
    /// Returns the key of the build. The key does not depend on the test file, because main sources are in the tree.
    pub(super) fn key(&self, executor: &Executor, image: &RepositoryImage) -> Digest {
        let (module, recorder) = (self.module.identity(), file_name(&executor.jars.recorder));
        let arguments = &image.maven_arguments;
        key("maven", 2, &(self.tree, module, arguments, recorder, executor.identity, executor.limits.of_builds()))
    }
}

/// Maven as the compiler of one main source.
pub(super) struct MavenCompiler<'a> {
    executor: &'a Executor,
    image: &'a RepositoryImage,
    build: ReferenceBuild<'a>,
    /// The source, absolute in the container.
    path: String,
    goal: &'static str,
}

/// Returns the reason for not building this many texts of one source with Maven; `None` if they are few enough.
pub(super) fn too_many(builds: usize) -> Option<NoAnswer> {
    let cause = || NoAnswer::never(format!("more than {MOST_BUILDS} mutants and lines were to be built by Maven"));
    (builds > MOST_BUILDS).then(cause)
}

/// Whether other executions may run beside a container.
#[derive(Clone, Copy)]
enum Others {
    Run,
    Wait,
}

/// The results of the first texts in a container, and why there is none for the other texts.
struct Said {
    builds: Vec<MainSources>,
    fault: Option<String>,
}

impl<'a> MavenCompiler<'a> {
    /// Returns the compiler of the source at `path`, relative to the tree. Checks first that the source itself
    /// compiles and that a text which is not Java does not.
    ///
    /// # Errors
    /// [`ExecutionError`]; its I/O errors are of logs and temporary files.
    pub(super) async fn new(
        executor: &'a Executor,
        image: &'a RepositoryImage,
        build: ReferenceBuild<'a>,
        path: &str,
    ) -> Result<Self, ExecutionError> {
        let mut causes = Vec::new();
        for goal in GOALS {
            let path = format!("{PROJECT}/{path}");
            let this = Self { executor, image, build, path, goal };
            match this.build_of(None).await? {
                MainSources::Compile => return this.controlled().await,
                MainSources::Errors => causes.push(format!("{goal}: the main sources do not compile")),
                MainSources::Ended(cause) | MainSources::Spent(cause) | MainSources::Unclear(cause) => {
                    causes.push(format!("{goal}: {cause}"));
                }
            }
        }
        Err(NoAnswer::never(format!("Maven does not build the code as it is: {}", causes.join("; "))).into())
    }

    /// Returns the compiler if it finds the control's errors.
    async fn controlled(self) -> Result<Self, ExecutionError> {
        if self.compiles(NO_JAVA).await? {
            let path = in_tree(&self.path);
            return Err(NoAnswer::never(format!("Maven builds with errors in `{path}`, or without it")).into());
        }
        Ok(self)
    }

    /// Tells for each text whether it compiles.
    ///
    /// # Errors
    /// [`ExecutionError`]; its I/O errors are of logs and temporary files.
    pub(super) async fn compile(&self, texts: &[&str]) -> Result<Vec<bool>, ExecutionError> {
        let mut compile = Vec::new();
        for together in together(texts) {
            let some: Vec<Option<&str>> = together.iter().copied().map(Some).collect();
            let said = self.once(&some, Others::Run).await?;
            for (index, text) in together.iter().enumerate() {
                compile.push(match said.builds.get(index) {
                    Some(MainSources::Compile) => true,
                    Some(MainSources::Errors) => false,
                    _ => self.compiles(text).await?,
                });
            }
        }
        Ok(compile)
    }

    /// Tells whether a text compiles, in containers of its own. If every build of the text fails in another way, the
    /// text is at fault, provided that the source itself still builds.
    async fn compiles(&self, text: &str) -> Result<bool, ExecutionError> {
        let ended = match self.build_of(Some(text)).await? {
            MainSources::Compile => return Ok(true),
            MainSources::Errors => return Ok(false),
            MainSources::Ended(cause) | MainSources::Spent(cause) | MainSources::Unclear(cause) => cause,
        };
        match self.build_of(None).await? {
            MainSources::Compile => Ok(false),
            _ => Err(NoAnswer::fault(format!("Maven can't tell whether a mutant compiles: {ended}")).into()),
        }
    }

    /// Builds one text, or the source itself for `None`, until the build has a result for main sources, in at most
    /// [`ATTEMPTS`] containers. After an exceeded limit, the next try runs with nothing else running. Another failure
    /// counts only if every try has it.
    async fn build_of(&self, text: Option<&str>) -> Result<MainSources, ExecutionError> {
        let (mut others, mut fault) = (Others::Run, None);
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let mut said = self.once(&[text], others).await?;
            match said.builds.pop() {
                Some(build @ (MainSources::Compile | MainSources::Errors)) => return Ok(build),
                Some(MainSources::Unclear(cause)) => fault = Some(cause),
                Some(build) => {
                    if matches!(build, MainSources::Spent(_)) {
                        others = Others::Wait;
                    }
                    last = Some(build);
                }
                None => fault = Some(said.fault.unwrap_or_default()),
            }
        }
        match (fault, last) {
            (None, Some(build)) => Ok(build),
            (fault, _) => Err(NoAnswer::fault(fault.unwrap_or_default()).into()),
        }
    }

    /// Builds texts in one container; `None` stands for the source itself.
    async fn once(&self, texts: &[Option<&str>], others: Others) -> std::io::Result<Said> {
        let limits = &self.executor.limits;
        let class_archive = self.executor.archive_of_compilers(self.image).await;
        let (program, steps) = self.program(texts, class_archive.is_some());
        let seconds = texts.len() as u64 * limits.compile_command.wall_seconds + 60;
        let whole = ContainerLimits { wall_seconds: seconds, ..limits.compile };
        let (image, archive) = (self.image.config_digest, self.build.archive.to_owned());
        let scratch = (whole, limits.compile_scratch_bytes);
        let mut spec = container("judge", image, archive, &self.executor.jars, scratch, program);
        spec.mounts.extend(class_archive);
        let spool = Spool::create(&self.executor.temporary)?;
        let ran = {
            let run = session::run(self.executor.engine.as_ref(), &spec, spool.path());
            match others {
                Others::Run => {
                    let _shared = self.executor.exclusive.read().await;
                    run.await
                }
                Others::Wait => {
                    let _exclusive = self.executor.exclusive.write().await;
                    run.await
                }
            }
        };
        let run = match ran {
            Ok(run) => run,
            Err(error) => return Ok(Said { builds: Vec::new(), fault: Some(engine_fault(&error).detail) }),
        };
        let mut builds = Vec::new();
        for (maven, recording) in steps {
            let Some(end) = command_end(&run, maven) else {
                return Ok(Said { builds, fault: Some(not_done(&run, "compile").detail) });
            };
            let recorded = match run.step(recording) {
                Some(output) => output.content.bytes()?.into_owned(),
                None => Vec::new(),
            };
            builds.push(main_sources(end, run.memory_limit_met_in(maven), &recorded));
        }
        Ok(Said { builds, fault: None })
    }

    /// Returns the program, and for each text the indexes of Maven's step and of its recording. Scratch is emptied
    /// between builds.
    fn program(&self, texts: &[Option<&str>], class_archive: bool) -> (Program, Vec<(usize, usize)>) {
        let settings = MavenSettings {
            java_home: self.image.java_home.clone(),
            arguments: &self.image.maven_arguments,
            class_archive,
        };
        let limits = self.executor.limits.compile_command;
        let maven = maven_command(&settings, self.build.module, true, &[self.goal], limits);
        let (mut steps, mut builds) = (Vec::new(), Vec::new());
        for text in texts {
            steps.extend(emptied());
            steps.push(Step::MakeDirectory { path: HOME.to_owned() });
            steps.push(Step::Unpack { archive: TREE.to_owned(), into: PROJECT.to_owned() });
            steps.extend(text.map(|text| Step::Write { path: self.path.clone(), content: text.to_owned() }));
            steps.push(Step::Run(maven.clone()));
            steps.push(Step::SendFile { path: RECORDING.to_owned(), max_bytes: MOST_RECORDING_BYTES });
            builds.push((steps.len() - 2, steps.len() - 1));
        }
        (Program { schema: PROGRAM_SCHEMA, door_port: None, steps }, builds)
    }
}

/// Splits texts into groups, one for each container.
fn together<'a, 'b>(texts: &'b [&'a str]) -> Vec<&'b [&'a str]> {
    let (mut groups, mut first, mut bytes) = (Vec::new(), 0, 0);
    for (index, text) in texts.iter().enumerate() {
        let is_full = index - first == MOST_TOGETHER || bytes + text.len() > MOST_TEXT_BYTES;
        if index > first && is_full {
            groups.push(&texts[first..index]);
            (first, bytes) = (index, 0);
        }
        bytes += text.len();
    }
    groups.extend((first < texts.len()).then(|| &texts[first..]));
    groups
}

/// Runs methods on a mutant of a source on the reference path, and returns their outcomes in order.
///
/// # Errors
/// I/O errors of writing logs and temporary files.
pub async fn run(
    executor: &Executor,
    request: &CellRequest<'_>,
    methods: &[Passing],
    mutant: OtherText<'_>,
) -> std::io::Result<Vec<Outcome>> {
    let names: Vec<MethodId> = methods.iter().map(|one| one.method.clone()).collect();
    let mutated = CellRequest { methods: &names, repeats: 1, other_text: Some(mutant), ..*request };
    let slowest = methods.iter().filter_map(|one| one.launch_ms).max();
    let mut limited = limited(executor, slowest);
    // All methods get the limit of the slowest one, because one build serves them all. A method of unknown duration may
    // be slower.
    limited.trusts_first_timeout &= methods.iter().all(|one| one.launch_ms.is_some());
    let records = limited.run_cell(&mutated).await?;
    let outcome = |record: CellRecord| match record.outcome {
        // The test compiled without the mutant, so an exhausted compiler is not the mutant's fault.
        Outcome::CompileFail(CompileReason::Resource) => Outcome::InfraFail(InfraReason::Build),
        outcome => outcome,
    };
    Ok(records.into_iter().map(outcome).collect())
}

#[cfg(test)]
mod tests;
