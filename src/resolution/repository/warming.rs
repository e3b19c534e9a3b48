//! Warms one set of build files: runs Maven's goals in a container and adds the files that they needed to the lock.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use super::{BuildSet, Failed, LockError, Locking, MIB, held, missing};
use crate::artifact::origin::OriginName;
use crate::engine::session::{self, ContainerRun, StepOutput};
use crate::engine::spec::{
    Command, CommandLimits, ContainerLimits, PROGRAM_SCHEMA, Program, ReadOnlyMount, Scratch, Step, StepResult,
};
use crate::execution::build::maven::{COMPILE_GOALS, MavenSettings, maven_command};
use crate::execution::container;
use crate::execution::container::places::{self, MAVEN_REPOSITORY, PROJECT};
use crate::execution::module::ModuleArguments;
use crate::lock::RepositoryLock;
use crate::outcome::compile::{Compilation, CompileFacts, classify};
use crate::outcome::launch::shortened;
use crate::outcome::{InfraReason, Outcome};
use crate::resolution::door::{DOOR_PORT, Door, Passage, Troubles};

const SEED: &str = "/testevo/input/seed.tar";

/// Memory of a container.
pub(super) const MEMORY_BYTES: u64 = 8192 * MIB;

/// The wall limit covers downloads too.
const COMMAND_LIMITS: CommandLimits =
    CommandLimits { wall_seconds: 1_800, cpu_seconds: 1_800, output_bytes: 8 * MIB, flood_bytes: u64::MAX };

const LIMITS: ContainerLimits =
    ContainerLimits { memory_bytes: MEMORY_BYTES, cpus: 2, processes: 1024, wall_seconds: 3 * 1_800 };

/// How many lines are shown of what a Maven said that did not begin.
const LAST_LINES: usize = 5;

/// What the containers of one set are started with.
pub(super) struct Warming<'a, 'l> {
    pub(super) locking: &'a Locking,
    /// The containers' only way out, which no other set uses meanwhile.
    pub(super) door: &'a Door,
    /// The lock that grows.
    pub(super) lock: &'a Mutex<&'l mut RepositoryLock>,
    /// The archive of the set's tree.
    pub(super) tree: &'a Path,
    /// The archive of the cache so far.
    pub(super) seed: &'a Path,
}

struct WarmSteps {
    maven: usize,
    recording: usize,
    listing: usize,
    /// Whether the last invocation has the goals of executions, so that tests that do not compile are no problem.
    only_compiles: bool,
}

impl Warming<'_, '_> {
    /// Warms a set. Where Maven fails although nothing is missing, a plugin may need the other modules: then all modules
    /// are built, and the lock says so if that succeeds. Returns why some files did not resolve.
    pub(super) async fn part_or_whole(&self, set: &BuildSet) -> Result<Option<Failed>, LockError> {
        held(self.lock).whole_sets.retain(|id| *id != set.id);
        let failed = match self.warm(set).await? {
            Some(failed) if failed.artifacts.is_empty() && set.has_siblings && !set.module.whole => failed,
            other => return Ok(other),
        };
        let whole = BuildSet { module: ModuleArguments { whole: true, ..set.module.clone() }, ..set.clone() };
        if self.warm(&whole).await?.is_some() {
            return Ok(Some(failed));
        }
        {
            let mut lock = held(self.lock);
            lock.whole_sets.push(set.id.clone());
            lock.whole_sets.sort();
        }
        let cause = failed.cause.lines().next().unwrap_or_default();
        self.locking.events.warning(format!(
            "{} at {}: Maven builds all modules, because the module `{}` alone fails: {cause}",
            self.locking.repository, set.revision, set.module.directory
        ));
        Ok(None)
    }

    /// Runs the goals for one set and adds the needed files to the lock. Returns why some did not resolve.
    async fn warm(&self, set: &BuildSet) -> Result<Option<Failed>, LockError> {
        // Usually all goals run at once. Tests may fail; only the files that they need matter.
        let test = vec![
            format!("-Dtest={}", set.test_class),
            "-Dmaven.test.failure.ignore=true".to_owned(),
            "-Dsurefire.timeout=180".to_owned(),
        ];
        let at_once = [(test.clone(), vec!["test", COMPILE_GOALS[1]])];
        if self.goals(set, &at_once).await?.is_none() {
            return Ok(None);
        }
        // Otherwise goal by goal, so that a failing goal does not keep the next one from resolving.
        let one_by_one = [
            (test, vec!["test"]),
            (vec!["-Dmaven.test.skip=true".to_owned()], vec!["test", COMPILE_GOALS[1]]),
            (Vec::new(), COMPILE_GOALS.to_vec()),
        ];
        self.goals(set, &one_by_one).await
    }

    /// Runs Maven once for each of `invocations` (arguments and goals) in one container. Returns why the last one
    /// failed, which must be the goals of executions. Compile errors in tests do not count.
    async fn goals(
        &self,
        set: &BuildSet,
        invocations: &[(Vec<String>, Vec<&str>)],
    ) -> Result<Option<Failed>, LockError> {
        let Self { locking, door, .. } = self;
        door.forget_troubles();
        let (program, steps) = self.program(set, invocations);
        let limits = (LIMITS, 3072 * MIB);
        let mut spec =
            container::container("lock", locking.image, self.tree.to_owned(), &locking.jars, limits, program);
        spec.mounts.push(ReadOnlyMount { source: self.seed.to_owned(), target: SEED.to_owned() });
        spec.scratch.push(Scratch { target: MAVEN_REPOSITORY.to_owned(), size_bytes: 3072 * MIB });
        spec.door = Some(door.socket().to_owned());
        let run = session::run(locking.engine.as_ref(), &spec, &locking.temporary).await?;
        self.take(&door.passage(), &self.listing(&run, steps.listing)?);
        if let Some(cause) = door.exhausted() {
            return Err(LockError::Exhausted { repository: locking.repository.clone(), cause });
        }
        let troubles = door.troubles();
        let central = OriginName::central();
        let central = troubles.failed.iter().find(|(_, trouble)| trouble.silent && trouble.origin == central);
        if let Some((path, trouble)) = central {
            let (repository, path, cause) = (locking.repository.clone(), path.clone(), trouble.cause.clone());
            return Err(LockError::Origin { repository, path, cause });
        }
        self.verdict(set, &run, &steps, &troubles)
    }

    fn program(&self, set: &BuildSet, invocations: &[(Vec<String>, Vec<&str>)]) -> (Program, WarmSteps) {
        let mut steps = vec![
            Step::MakeDirectory { path: places::HOME.to_owned() },
            Step::Unpack { archive: places::TREE.to_owned(), into: PROJECT.to_owned() },
            Step::Unpack { archive: SEED.to_owned(), into: MAVEN_REPOSITORY.to_owned() },
        ];
        let mut last = 0;
        for (more, goals) in invocations {
            let arguments: Vec<String> = self.locking.maven_arguments.iter().chain(more).cloned().collect();
            let settings = MavenSettings {
                java_home: self.locking.java_home.clone(),
                arguments: &arguments,
                class_archive: false,
            };
            steps.push(Step::Remove { path: places::RECORDING.to_owned() });
            last = steps.len();
            let command: Command = maven_command(&settings, &set.module, false, goals, COMMAND_LIMITS);
            steps.push(Step::Run(command));
        }
        steps.push(Step::SendFile { path: places::RECORDING.to_owned(), max_bytes: 32 * MIB });
        steps.push(Step::SendListing { root: MAVEN_REPOSITORY.to_owned(), max_files: 200_000 });
        let indexes =
            WarmSteps { maven: last, recording: last + 1, listing: last + 2, only_compiles: invocations.len() > 1 };
        (Program { schema: PROGRAM_SCHEMA, door_port: Some(DOOR_PORT), steps }, indexes)
    }

    fn listing(&self, run: &ContainerRun, step: usize) -> Result<Vec<String>, LockError> {
        let output = run.step(step).filter(|output| output.result() == Some(&StepResult::Done));
        let Some(output) = output else {
            let cause = run.steps.iter().find_map(|output| match output.result()? {
                StepResult::Failed { error: cause, .. } | StepResult::Refused { reason: cause } => Some(cause.clone()),
                _ => None,
            });
            let cause = cause.unwrap_or_else(|| format!("{:?}", run.end));
            return Err(LockError::Container { repository: self.locking.repository.clone(), cause });
        };
        let bytes = output.content.bytes()?;
        let path = |path: &[u8]| {
            String::from_utf8(path.to_vec()).map_err(|_| LockError::FileName {
                repository: self.locking.repository.clone(),
                path: String::from_utf8_lossy(path).into_owned(),
            })
        };
        bytes.split(|byte| *byte == 0).map(path).collect()
    }

    /// Adds the files to the lock that are in the container's cache and passed the door.
    fn take(&self, passage: &Passage, listing: &[String]) {
        let mut lock = held(self.lock);
        let mut files: BTreeMap<String, _> = lock.files.drain(..).map(|file| (file.path.clone(), file)).collect();
        let mut metadata: BTreeMap<String, _> =
            lock.metadata.drain(..).map(|frozen| (frozen.path.clone(), frozen)).collect();
        for path in listing {
            if let Some(file) = passage.files.get(path)
                && !files.contains_key(path)
            {
                let below = |own: &String| path.strip_prefix(own.as_str()).is_some_and(|rest| rest.starts_with('/'));
                let own = self.locking.own.iter().any(below);
                // The project's own test jars of another version may contain the answer.
                if own && (path.ends_with("-tests.jar") || path.ends_with("-test-sources.jar")) {
                    continue;
                }
                let mut file = file.clone();
                file.own = own;
                files.insert(path.clone(), file);
            }
            if let Some(frozen) = passage.metadata.get(path) {
                metadata.entry(path.clone()).or_insert_with(|| frozen.clone());
            }
        }
        lock.files = files.into_values().collect();
        lock.metadata = metadata.into_values().collect();
    }

    fn verdict(
        &self,
        set: &BuildSet,
        run: &ContainerRun,
        steps: &WarmSteps,
        troubles: &Troubles,
    ) -> Result<Option<Failed>, LockError> {
        let maven = run.step(steps.maven);
        let Some((maven, StepResult::Ended(end))) = maven.and_then(|output| Some((output, output.result()?))) else {
            return Ok(Some(Failed { cause: "Maven was not run".to_owned(), artifacts: Vec::new() }));
        };
        let recording = match run.step(steps.recording) {
            Some(output) => output.content.bytes()?.into_owned(),
            None => Vec::new(),
        };
        let facts = CompileFacts {
            end,
            oom_killed: run.memory_limit_met,
            recording: &recording,
            module: &set.module.path(),
            // Without a target file: dependencies have resolved, whichever test does not compile.
            target_file: "",
            changes_main: false,
        };
        let (outcome, mut cause) = match classify(&facts) {
            Compilation::Compiled { .. } => return Ok(self.locking.without(set, troubles)),
            Compilation::Failed { outcome: Outcome::CompileFail(_), .. } if steps.only_compiles => {
                return Ok(self.locking.without(set, troubles));
            }
            Compilation::Failed { outcome, detail, .. } => (outcome, detail),
        };
        if outcome == Outcome::InfraFail(InfraReason::Build) && !troubles.refused.is_empty() {
            let refused: Vec<&str> = troubles.refused.iter().take(3).map(String::as_str).collect();
            cause.push_str(&format!("\n  needs network: it asked for {}", refused.join(", ")));
        }
        // A JVM that refuses an option of `.mvn/jvm.config`, or a Maven that refuses an argument, ends before the recorder begins.
        if recording.is_empty() {
            for line in last_lines(maven)? {
                cause.push_str(&format!("\n  {line}"));
            }
        }
        let asked = self.locking.asked();
        let artifacts = match outcome {
            Outcome::InfraFail(InfraReason::Resolution) => missing::missing(set, &recording, troubles, &asked),
            _ => missing::failed(set, troubles, &asked),
        };
        Ok(Some(Failed { cause, artifacts }))
    }
}

/// Returns the last lines that a command wrote to standard output, and those that it wrote to standard error.
fn last_lines(output: &StepOutput) -> std::io::Result<Vec<String>> {
    let mut all = Vec::new();
    for captured in [&output.stdout, &output.stderr] {
        let bytes = captured.bytes()?;
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        all.extend(last.iter().map(|line| shortened(line)));
    }
    Ok(all)
}

impl Locking {
    /// Returns why a set is not resolved although Maven succeeded: an origin that may have a file could not give it. What
    /// an origin has that only a POM names, and that does not answer or is closed, Maven did without.
    pub(super) fn without(&self, set: &BuildSet, troubles: &Troubles) -> Option<Failed> {
        let unbearable = troubles.failed.values().find(|trouble| !trouble.is_bearable());
        if let Some(trouble) = unbearable {
            let cause = format!("Maven succeeded without it, but it can't be taken for missing: {}", trouble.cause);
            return Some(Failed { cause, artifacts: missing::failed(set, troubles, &self.asked()) });
        }
        if let Some((path, trouble)) = troubles.failed.iter().next() {
            let origin = &trouble.origin;
            self.events.warning(format!(
                "{}: Maven did without {path}: {}. If the origin is gone for good, give `--origin {origin}=`",
                self.repository, trouble.cause
            ));
        }
        None
    }
}
