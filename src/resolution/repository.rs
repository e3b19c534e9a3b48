//! Locks a repository: finds the files that its Maven cache needs by running the real goals.
//!
//! Each distinct set of build files is warmed once, in a container whose only way out is the door. The container's
//! cache shows which paths are needed; their bytes come from the door. The lock is saved after every set, so that an
//! interrupted lock resumes there. A lock only grows: files of an earlier lock stay.

mod error;
mod missing;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fs_err as fs;

use super::door::{DOOR_PORT, Door, DoorContext, Passage};
use crate::artifact::fetch::{Client, FetchError};
use crate::artifact::origin::OriginName;
use crate::artifact::store::Store;
use crate::digest::Digest;
use crate::engine::Engine;
use crate::engine::session::{self, ContainerRun};
use crate::engine::spec::{
    Command, CommandLimits, ContainerLimits, PROGRAM_SCHEMA, Program, ReadOnlyMount, Scratch, Step, StepResult,
};
use crate::event::EventSink;
use crate::execution::build::maven::{COMPILE_GOALS, MavenSettings, maven_command};
use crate::execution::container;
use crate::execution::container::ToolJars;
use crate::execution::container::places;
use crate::execution::container::places::{MAVEN_REPOSITORY, PROJECT};
use crate::execution::module::ModuleArguments;
use crate::lock::{LOCK_SCHEMA, MavenFile, RepositoryLock, UnresolvedSet};
use crate::manifest::RepositoryManifest;
use crate::outcome::compile::{Compilation, CompileFacts, classify};
use crate::outcome::{InfraReason, Outcome};
use crate::task::RepositoryName;
use crate::workspace::WorkspaceError;

pub use self::error::LockError;

const MIB: u64 = 1 << 20;
const SEED: &str = "/testevo/input/seed.tar";
const STAGE: &str = "lock";

/// A distinct set of build files with a module, and a revision with that set.
#[derive(Clone, Debug)]
pub struct BuildSet {
    /// Identity of build files and module.
    pub id: String,
    /// The revision's name in messages.
    pub revision: String,
    /// The task's module.
    pub module: ModuleArguments,
    /// Name of a test class of the module, for Maven's `-Dtest`.
    pub test_class: String,
    /// Whether the tree has further modules.
    pub has_siblings: bool,
}

/// A set whose files Maven could not fully resolve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// The set's revision.
    pub revision: String,
    /// The module's directory, empty for the root.
    pub module: String,
    /// The cause.
    pub cause: String,
    /// The artifacts that it lacks; none if Maven failed for another reason.
    pub artifacts: Vec<UnresolvedSet>,
}

/// Why a set is not resolved.
struct Failed {
    cause: String,
    artifacts: Vec<UnresolvedSet>,
}

/// The parameters of locking a repository.
pub struct Locking<'a> {
    /// Starts containers.
    pub engine: Arc<dyn Engine>,
    /// Fetches from origins into the store.
    pub client: Client,
    /// The store.
    pub store: Store,
    /// Our own jars.
    pub jars: ToolJars,
    /// The toolchain's image, without a Maven cache.
    pub image: Digest,
    /// Major version of its development kit.
    pub jdk: u32,
    /// `JAVA_HOME` in that image.
    pub java_home: String,
    /// The repository.
    pub repository: RepositoryName,
    /// Skips and other arguments of the manifest for Maven.
    pub maven_arguments: &'a [String],
    /// Origins to ask after `central`: those that the repository's POMs declare.
    pub origins: Vec<OriginName>,
    /// Files of Maven repositories inside the trees of sets, by the set's id, then by path. The store has them.
    pub in_tree: BTreeMap<String, BTreeMap<String, MavenFile>>,
    /// `group/artifact` paths of the repository's own modules.
    pub own: BTreeSet<String>,
    /// Versions published after this day do not count.
    pub cutoff: jiff::civil::Date,
    /// Directory for archives and the door's socket.
    pub temporary: PathBuf,
    /// The receiver of progress.
    pub events: EventSink,
}

impl Locking<'_> {
    /// Warms every set that `lock` lacks. `archive` writes the tree of a set; `save` is called after each.
    ///
    /// # Errors
    /// [`LockError`].
    pub async fn run(
        &self,
        lock: &mut RepositoryLock,
        sets: &[BuildSet],
        archive: &(dyn Fn(&BuildSet) -> Result<PathBuf, WorkspaceError> + Sync),
        save: &(dyn Fn(&RepositoryLock) -> Result<(), LockError> + Sync),
    ) -> Result<Vec<Unresolved>, LockError> {
        let missing: Vec<&BuildSet> = sets.iter().filter(|set| !lock.build_sets.contains(&set.id)).collect();
        let mut unresolved = Vec::new();
        if missing.is_empty() {
            return Ok(unresolved);
        }
        fs::create_dir_all(&self.temporary)?;
        // Every user who can connect to the door can read origins with this user's credentials, so its directory is
        // private.
        let private = self.temporary.join("door");
        std::os::unix::fs::DirBuilderExt::mode(std::fs::DirBuilder::new().recursive(true), 0o700).create(&private)?;
        let socket = private.join(format!("{}.sock", self.repository.file_stem()));
        let origins = self.asked();
        let door = Door::open(
            &socket,
            DoorContext {
                client: self.client.clone(),
                store: self.store.clone(),
                origins,
                cutoff: self.cutoff,
                java: self.jdk,
                known: passage_of(lock),
            },
        )?;
        self.ensure(lock).await?;
        let stage = self.events.stage(STAGE, Some(sets.len() as u64), (sets.len() - missing.len()) as u64);
        let mut seed: Option<(usize, PathBuf)> = None;
        for set in missing {
            let item = format!("{} {} {}", self.repository, set.revision, set.module.directory);
            stage.item_started(&item);
            let names = lock.files.len() + lock.metadata.len();
            let seed_path = match seed.take() {
                Some((count, path)) if count == names => path,
                _ => self.seed(lock)?,
            };
            seed = Some((names, seed_path.clone()));
            let tree = archive(set)?;
            door.offer(self.in_tree.get(&set.id).cloned().unwrap_or_default());
            let failure = self.warm_part_or_whole(&door, lock, set, &tree, &seed_path).await;
            fs::remove_file(&tree)?;
            let failure = failure?;
            lock.unresolved.retain(|one| one.build_set != set.id);
            let outcome = match failure {
                None => {
                    lock.build_sets.push(set.id.clone());
                    lock.build_sets.sort();
                    "resolved"
                }
                Some(Failed { cause, artifacts }) => {
                    let module = set.module.directory.clone();
                    lock.unresolved.extend(artifacts.iter().cloned());
                    lock.unresolved.sort_by(|a, b| (&a.build_set, &a.artifact).cmp(&(&b.build_set, &b.artifact)));
                    unresolved.push(Unresolved { revision: set.revision.clone(), module, cause, artifacts });
                    "unresolved"
                }
            };
            save(lock)?;
            stage.item_finished(&item, format!("{outcome}, {} files", lock.files.len()), outcome == "unresolved");
        }
        Ok(unresolved)
    }

    /// Returns the origins that are asked, in order.
    fn asked(&self) -> Vec<OriginName> {
        let mut origins = vec![OriginName::central()];
        origins.extend(self.origins.iter().cloned());
        origins
    }

    /// Fetches the files of an earlier lock into the store, because containers start with them.
    async fn ensure(&self, lock: &RepositoryLock) -> Result<(), LockError> {
        for file in lock.files.iter().filter(|file| self.store.sound(&file.sha256).is_err()) {
            let origin = file.origin.parse().map_err(FetchError::Origin)?;
            self.client.fetch(&origin, &file.path, Some(&file.sha256), file.size).await?;
        }
        Ok(())
    }

    /// Writes the lock's cache, with which containers start.
    fn seed(&self, lock: &RepositoryLock) -> Result<PathBuf, LockError> {
        let path = self.temporary.join(format!("seed-{}.tar", self.repository.file_stem()));
        let mut archive = tar::Builder::new(std::io::BufWriter::new(fs::File::create(&path)?));
        let header = |size| {
            let mut header = tar::Header::new_gnu();
            header.set_size(size);
            header.set_mode(0o644);
            header.set_mtime(0);
            header
        };
        for file in &lock.files {
            let blob = self.store.open_sound(&file.sha256)?;
            archive.append_data(&mut header(file.size), &file.path, blob)?;
        }
        for frozen in &lock.metadata {
            let size = frozen.content.len() as u64;
            archive.append_data(&mut header(size), &frozen.path, frozen.content.as_bytes())?;
        }
        archive.into_inner()?.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        Ok(path)
    }

    /// Warms a set. Where Maven fails although nothing is missing, a plugin may need the other modules: then all modules
    /// are built, and the lock says so if that succeeds. Returns why some files did not resolve.
    async fn warm_part_or_whole(
        &self,
        door: &Door,
        lock: &mut RepositoryLock,
        set: &BuildSet,
        tree: &Path,
        seed: &Path,
    ) -> Result<Option<Failed>, LockError> {
        lock.whole_sets.retain(|id| *id != set.id);
        let failed = match self.warm(door, lock, set, tree, seed).await? {
            Some(failed) if failed.artifacts.is_empty() && set.has_siblings && !set.module.whole => failed,
            other => return Ok(other),
        };
        let whole = BuildSet { module: ModuleArguments { whole: true, ..set.module.clone() }, ..set.clone() };
        if self.warm(door, lock, &whole, tree, seed).await?.is_some() {
            return Ok(Some(failed));
        }
        lock.whole_sets.push(set.id.clone());
        lock.whole_sets.sort();
        let cause = failed.cause.lines().next().unwrap_or_default();
        self.events.warning(format!(
            "{} at {}: Maven builds all modules, because the module `{}` alone fails: {cause}",
            self.repository, set.revision, set.module.directory
        ));
        Ok(None)
    }

    /// Runs the goals for one set and adds the needed files to the lock. Returns why some did not resolve.
    async fn warm(
        &self,
        door: &Door,
        lock: &mut RepositoryLock,
        set: &BuildSet,
        tree: &Path,
        seed: &Path,
    ) -> Result<Option<Failed>, LockError> {
        // Usually all goals run at once. Tests may fail; only the files that they need matter.
        let test = vec![
            format!("-Dtest={}", set.test_class),
            "-Dmaven.test.failure.ignore=true".to_owned(),
            "-Dsurefire.timeout=180".to_owned(),
        ];
        let at_once = [(test.clone(), vec!["test", COMPILE_GOALS[1]])];
        if self.goals(door, lock, set, tree, seed, &at_once).await?.is_none() {
            return Ok(None);
        }
        // Otherwise goal by goal, so that a failing goal does not keep the next one from resolving.
        let one_by_one = [
            (test, vec!["test"]),
            (vec!["-Dmaven.test.skip=true".to_owned()], vec!["test", COMPILE_GOALS[1]]),
            (Vec::new(), COMPILE_GOALS.to_vec()),
        ];
        self.goals(door, lock, set, tree, seed, &one_by_one).await
    }

    /// Runs Maven once for each of `invocations` (arguments and goals) in one container. Returns why the last one
    /// failed, which must be the goals of executions. Compile errors in tests do not count.
    async fn goals(
        &self,
        door: &Door,
        lock: &mut RepositoryLock,
        set: &BuildSet,
        tree: &Path,
        seed: &Path,
        invocations: &[(Vec<String>, Vec<&str>)],
    ) -> Result<Option<Failed>, LockError> {
        door.forget_troubles();
        let (program, steps) = self.program(set, invocations);
        let mut spec =
            container::container("lock", self.image, tree.to_owned(), &self.jars, (LIMITS, 3072 * MIB), program);
        spec.mounts.push(ReadOnlyMount { source: seed.to_owned(), target: SEED.to_owned() });
        spec.scratch.push(Scratch { target: MAVEN_REPOSITORY.to_owned(), size_bytes: 3072 * MIB });
        spec.door = Some(door.socket().to_owned());
        let run = session::run(self.engine.as_ref(), &spec, &self.temporary).await?;
        let passage = door.passage();
        self.take(lock, &passage, &self.listing(&run, steps.listing)?);
        if let Some(cause) = passage.exhausted {
            return Err(LockError::Exhausted { repository: self.repository.clone(), cause });
        }
        let central = OriginName::central();
        let central = passage.failed.iter().find(|(_, trouble)| trouble.silent && trouble.origin == central);
        if let Some((path, trouble)) = central {
            let (repository, path, cause) = (self.repository.clone(), path.clone(), trouble.cause.clone());
            return Err(LockError::Origin { repository, path, cause });
        }
        self.verdict(set, &run, &steps, &passage)
    }

    fn program(&self, set: &BuildSet, invocations: &[(Vec<String>, Vec<&str>)]) -> (Program, WarmSteps) {
        let mut steps = vec![
            Step::MakeDirectory { path: "/work/home".to_owned() },
            Step::Unpack { archive: places::TREE.to_owned(), into: PROJECT.to_owned() },
            Step::Unpack { archive: SEED.to_owned(), into: MAVEN_REPOSITORY.to_owned() },
        ];
        let mut last = 0;
        for (more, goals) in invocations {
            let arguments: Vec<String> = self.maven_arguments.iter().chain(more).cloned().collect();
            let settings = MavenSettings { java_home: self.java_home.clone(), arguments: &arguments };
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
            return Err(LockError::Container { repository: self.repository.clone(), cause });
        };
        let bytes = output.content.bytes()?;
        Ok(bytes.split(|byte| *byte == 0).filter_map(|path| String::from_utf8(path.to_vec()).ok()).collect())
    }

    /// Adds the files to the lock that are in the container's cache and passed the door.
    fn take(&self, lock: &mut RepositoryLock, passage: &Passage, listing: &[String]) {
        let mut files: BTreeMap<String, _> = lock.files.drain(..).map(|file| (file.path.clone(), file)).collect();
        let mut metadata: BTreeMap<String, _> =
            lock.metadata.drain(..).map(|frozen| (frozen.path.clone(), frozen)).collect();
        for path in listing {
            if let Some(file) = passage.files.get(path)
                && !files.contains_key(path)
            {
                let own = self
                    .own
                    .iter()
                    .any(|own| path.strip_prefix(own.as_str()).is_some_and(|rest| rest.starts_with('/')));
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
        passage: &Passage,
    ) -> Result<Option<Failed>, LockError> {
        let Some(StepResult::Ended(end)) = run.step(steps.maven).and_then(|output| output.result()) else {
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
            Compilation::Compiled { .. } => return Ok(self.without(set, passage)),
            Compilation::Failed { outcome: Outcome::CompileFail(_), .. } if steps.only_compiles => {
                return Ok(self.without(set, passage));
            }
            Compilation::Failed { outcome, detail, .. } => (outcome, detail),
        };
        if outcome == Outcome::InfraFail(InfraReason::Build) && !passage.refused.is_empty() {
            let refused: Vec<&str> = passage.refused.iter().take(3).map(String::as_str).collect();
            cause.push_str(&format!("\n  needs network: it asked for {}", refused.join(", ")));
        }
        let artifacts = match outcome {
            Outcome::InfraFail(InfraReason::Resolution) => missing::missing(set, &recording, passage, &self.asked()),
            _ => missing::failed(set, passage, &self.asked()),
        };
        Ok(Some(Failed { cause, artifacts }))
    }

    /// Returns why a set is not resolved although Maven succeeded: an origin that may have a file could not give it. What
    /// an origin has that only a POM names, and that does not answer, Maven did without.
    fn without(&self, set: &BuildSet, passage: &Passage) -> Option<Failed> {
        let unbearable = passage.failed.values().find(|trouble| !trouble.is_bearable());
        if let Some(trouble) = unbearable {
            let cause = format!("Maven succeeded without it, but it can't be taken for missing: {}", trouble.cause);
            return Some(Failed { cause, artifacts: missing::failed(set, passage, &self.asked()) });
        }
        if let Some((path, trouble)) = passage.failed.iter().next() {
            let origin = &trouble.origin;
            self.events.warning(format!(
                "{}: the origin `{origin}` does not answer; Maven did without {path}. If it is gone for good, give `--origin {origin}=`",
                self.repository
            ));
        }
        None
    }
}

struct WarmSteps {
    maven: usize,
    recording: usize,
    listing: usize,
    /// Whether the last invocation has the goals of executions, so that tests that do not compile are no problem.
    only_compiles: bool,
}

/// The wall limit covers downloads too.
const COMMAND_LIMITS: CommandLimits =
    CommandLimits { wall_seconds: 1_800, cpu_seconds: 1_800, output_bytes: 8 * MIB, flood_bytes: u64::MAX };

const LIMITS: ContainerLimits =
    ContainerLimits { memory_bytes: 8192 * MIB, cpus: 2, processes: 1024, wall_seconds: 3 * 1_800 };

fn passage_of(lock: &RepositoryLock) -> Passage {
    Passage {
        files: lock.files.iter().map(|file| (file.path.clone(), file.clone())).collect(),
        metadata: lock.metadata.iter().map(|frozen| (frozen.path.clone(), frozen.clone())).collect(),
        ..Passage::default()
    }
}

/// Returns an empty lock.
pub fn empty(manifest: &RepositoryManifest) -> RepositoryLock {
    RepositoryLock {
        schema: LOCK_SCHEMA,
        repository: manifest.repository.clone(),
        jdk: manifest.jdk,
        maven_arguments: manifest.build.overridden_arguments(),
        files: Vec::new(),
        metadata: Vec::new(),
        build_sets: Vec::new(),
        whole_sets: Vec::new(),
        unresolved: Vec::new(),
        extension_jars: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
