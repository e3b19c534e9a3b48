//! Builds the images of a selection from their locks, and proves them.

mod preview;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;

use super::disk::Needs;
use super::failures::Failures;
use super::selection::{self, by_repository};
use super::workbench::{Workbench, blocking, repository_image, sets_of};
use super::{Context, agent_images};
use crate::canonical_json::canonical_json;
use crate::digest::Digest;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::execution::container::ToolJars;
use crate::execution::container::limits::ExecutionLimits;
use crate::execution::executor::Executor;
use crate::execution::module::WholeBuilds;
use crate::execution::proof::{self, NeededExecution, Proof, ProofError, ProofStep, Unproven};
use crate::execution::run::record::milliseconds;
use crate::image::{BuiltImage, Catalog, ImageBuilder, LockDigests, ready_tag};
use crate::manifest::RepositoryManifest;
use crate::output::counted;
use crate::resolution::sets::FoundSets;
use crate::task::selector::{Selector, choose};
use crate::task::{Cell, RepositoryName, Side, Task};

/// How much of an image is proven before it counts as ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProofLevel {
    /// Nothing; the image is not ready.
    None,
    /// One gold method for each set of build files and module.
    #[default]
    Quick,
    /// One gold method of every task on both revisions.
    Full,
}

/// Which images are built, and how they are proven.
#[derive(Clone, Debug, Default)]
pub struct BuildRequest {
    /// The tasks that proofs execute.
    pub selector: Selector,
    /// How much is proven.
    pub proof: ProofLevel,
    /// Whether the images for agents are composed as well.
    pub agent: bool,
}

/// The result for a selection's images.
pub struct BuildReport<'a> {
    /// The results of the repositories that did not fail.
    pub built: Vec<Built>,
    failures: Failures<'a>,
}

impl BuildReport<'_> {
    /// Checks that every image was built and no execution of its proof failed.
    ///
    /// # Errors
    /// [`CommandError::Repositories`] or the error of the only repository; [`CommandError::CheckFailed`] if an
    /// execution failed.
    pub fn verdict(self) -> Result<(), CommandError> {
        let unproven: usize = self.built.iter().map(|built| built.unproven.len()).sum();
        let own = match unproven {
            0 => Ok(()),
            unproven => {
                let executions = counted(unproven, "execution", "executions");
                Err(CommandError::CheckFailed { summary: format!("{executions} failed without a network") })
            }
        };
        self.failures.settle("built", own)
    }
}

/// The result for one repository.
#[derive(Debug, Serialize)]
pub struct Built {
    /// The repository.
    pub repository: RepositoryName,
    /// The image's id.
    pub config_digest: Digest,
    /// Its layers, the lowest first.
    pub layers: Vec<BuiltLayer>,
    /// The id of the image for agents, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Digest>,
    /// Whether the present proofs cover the repository's lock.
    pub proven: bool,
    /// Executions that failed.
    pub unproven: Vec<Unproven>,
    /// Milliseconds that composing took.
    pub compose_ms: u64,
    /// Milliseconds that the proof took.
    pub proof_ms: u64,
}

/// A layer of an image.
#[derive(Debug, Serialize)]
pub struct BuiltLayer {
    /// Its content.
    pub kind: crate::lock::LayerKind,
    /// The digest of its archive.
    pub diff_id: Digest,
    /// Bytes of its blob.
    pub size: u64,
}

/// Executes the request; `None` after a dry run, which only tells what would be done.
///
/// # Errors
/// Errors that concern all repositories: of the selection, of the data directory, an interrupt.
pub async fn build<'a>(request: &BuildRequest, context: &'a Context) -> Result<Option<BuildReport<'a>>, CommandError> {
    let chosen = chosen(request, context)?;
    if context.options.dry_run {
        preview::build_images(request, &chosen, context).await?;
        return Ok(None);
    }
    let workbench = Workbench::open(context)?;
    ensure_room(request, &chosen, &workbench).await?;
    let catalog = Catalog::open(&workbench.data_dir)?;
    let (mut engine, mut failures) = (None, Failures::new(chosen.len(), context));
    let one = async |repository: &_, tasks: &Vec<Task>| {
        build_one(request, &workbench, &catalog, &mut engine, repository, tasks).await
    };
    let built = failures.each(&chosen, one).await;
    if let Some(engine) = engine {
        engine.close().await?;
    }
    Ok(Some(BuildReport { built: built?, failures }))
}

/// Checks that there is room for the images.
async fn ensure_room(
    request: &BuildRequest,
    chosen: &BTreeMap<RepositoryName, Vec<Task>>,
    workbench: &Workbench<'_>,
) -> Result<(), CommandError> {
    let mut needs = Needs::new(workbench).await;
    for repository in chosen.keys() {
        if let Ok(manifest) = workbench.manifest(repository) {
            needs.image(&manifest, request.proof != ProofLevel::None, request.agent);
        }
    }
    needs.ensure().await
}

/// Returns the repositories to build, with the tasks for their proofs. Without a proof, locks are enough and tasks need
/// not be imported.
fn chosen(request: &BuildRequest, context: &Context) -> Result<BTreeMap<RepositoryName, Vec<Task>>, CommandError> {
    if request.proof == ProofLevel::None
        && let Some(names) = request.selector.only_patterns()
    {
        let locked = Workbench::open(context)?.locked()?;
        if !locked.is_empty()
            && let Ok(chosen) = choose(names, locked, |repository| repository)
        {
            return Ok(chosen.into_iter().map(|repository| (repository, Vec::new())).collect());
        }
    }
    let tasks = selection::tasks(&request.selector, context)?;
    let groups = by_repository(&tasks).into_iter();
    Ok(groups.map(|(repository, tasks)| (repository, tasks.into_iter().cloned().collect())).collect())
}

async fn build_one(
    request: &BuildRequest,
    workbench: &Workbench<'_>,
    catalog: &Catalog,
    engine: &mut Option<Arc<dyn Engine>>,
    repository: &RepositoryName,
    tasks: &[Task],
) -> Result<Built, CommandError> {
    let started = Instant::now();
    let manifest = workbench.manifest(repository)?;
    let image = image_of(workbench, catalog, &manifest).await?;
    let agent = match request.agent {
        true => Some(agent_images::compose(workbench, &manifest).await?.config_digest),
        false => None,
    };
    let compose_ms = milliseconds(started);
    let started = Instant::now();
    let tasks: Vec<&Task> = tasks.iter().collect();
    // Other processes may build meanwhile, but an image's proof is one file that is always written as a whole.
    let _held = workbench.hold(&format!("prove-{}", repository.file_stem())).await?;
    let (proven, unproven) = prove(request.proof, workbench, catalog, engine, &manifest, &image, &tasks).await?;
    Ok(Built { agent, ..summary(image, proven, unproven, compose_ms, milliseconds(started)) })
}

/// Returns the image of the repository's present locks, and composes it if it does not exist.
async fn image_of(
    workbench: &Workbench<'_>,
    catalog: &Catalog,
    manifest: &RepositoryManifest,
) -> Result<BuiltImage, CommandError> {
    let repository = &manifest.repository;
    let locks = workbench.lock_digests(repository, manifest.jdk)?;
    let present = || -> Result<Option<BuiltImage>, CommandError> {
        Ok(catalog.up_to_date(repository, locks)?.filter(|built| built.is_for(manifest)))
    };
    if let Some(image) = present()? {
        return Ok(image);
    }
    let builder = Arc::new(workbench.image_builder().await?);
    // The process that was waited for may have composed it.
    match present()? {
        Some(image) => Ok(image),
        None => compose(workbench, &builder, manifest, locks).await,
    }
}

async fn compose(
    workbench: &Workbench<'_>,
    builder: &Arc<ImageBuilder>,
    manifest: &RepositoryManifest,
    locks: LockDigests,
) -> Result<BuiltImage, CommandError> {
    let lock = workbench.lock_for(manifest)?;
    let toolchain = workbench.toolchain()?;
    let missing = builder.catalog().missing_inputs(&toolchain, &lock)?;
    workbench.fetch(&missing, &toolchain, &lock).await?;
    let builder = Arc::clone(builder);
    let composing = blocking(move || Ok(builder.build(&toolchain, &lock, locks)?));
    let stage = workbench.context.events.stage("compose image", None, 0);
    stage.during(manifest.repository.as_str(), composing).await
}

/// Executes what the level requires beyond earlier proofs. Returns whether the image is proven now, and what failed.
async fn prove(
    level: ProofLevel,
    workbench: &Workbench<'_>,
    catalog: &Catalog,
    engine: &mut Option<Arc<dyn Engine>>,
    manifest: &RepositoryManifest,
    built: &BuiltImage,
    tasks: &[&Task],
) -> Result<(bool, Vec<Unproven>), CommandError> {
    let path = catalog.proof_path(&built.image.config_digest);
    let selection = selection_digest(level, manifest, tasks)?;
    let mut proof = proof::load(&path)?.unwrap_or_else(|| Proof::new(built.image.config_digest));
    if level == ProofLevel::None || proof.shown_for.contains(&selection) {
        return Ok((settle(workbench, built, &mut proof, &path)?, Vec::new()));
    }
    let opened = workbench.repository(manifest, tasks).await?;
    let found = sets_of(&opened, manifest, tasks).await?;
    // What can't be built can't be proven. A later lock may resolve it.
    let lock = workbench.lock_for(manifest)?;
    let whole = Arc::new(found.whole(&lock));
    let lost: BTreeSet<String> = lock.unresolved.into_iter().map(|set| set.build_set).collect();
    let mut needed = needed(level, tasks, &found, Some(&proof));
    let all = needed.len();
    needed.retain(|execution| !lost.contains(&execution.build_set));
    let is_whole = needed.len() == all;
    if !needed.is_empty() {
        let running = match engine {
            Some(engine) => Arc::clone(engine),
            None => Arc::clone(engine.insert(workbench.engine().await?)),
        };
        let jars = workbench.jars(running.as_ref(), &workbench.toolchain()?).await?;
        workbench.load(running.as_ref(), &built.image, Some(&built.repository), built.jdk).await?;
        // A recorded execution need not be repeated, however this proof ends.
        let mut told = |shown| {
            proof.take(shown);
            proof::store(&path, &proof)
        };
        let git = (opened.path(), &whole);
        let failed = execute(workbench, &running, &jars, manifest, built, &needed, git, &mut told).await?;
        if !failed.is_empty() {
            let proven = settle(workbench, built, &mut proof, &path)?;
            if !proven {
                running.untag_image(&built.image.config_digest, &ready_tag(&built.repository)).await?;
            }
            return Ok((proven, failed));
        }
    }
    if is_whole {
        proof.shown_for.push(selection);
        proof.shown_for.sort();
        proof::store(&path, &proof)?;
    }
    let proven = settle(workbench, built, &mut proof, &path)?;
    if let Some(engine) = engine.as_ref().filter(|_| proven && !needed.is_empty()) {
        engine.tag_image(&built.image.config_digest, &ready_tag(&built.repository)).await?;
    }
    Ok((proven, Vec::new()))
}

/// Tells whether the proof covers the lock of the image. If so, the proof records that lock.
fn settle(workbench: &Workbench<'_>, built: &BuiltImage, proof: &mut Proof, path: &Path) -> Result<bool, CommandError> {
    let lock = Some(built.locks.repository);
    if proof.lock == lock {
        return Ok(true);
    }
    let proven = workbench.is_covered(built, proof)?;
    if proven {
        proof.lock = lock;
        proof::store(path, proof)?;
    }
    Ok(proven)
}

/// Returns the digest of a proof's request, so that a finished one is found without reading any repository.
fn selection_digest(level: ProofLevel, manifest: &RepositoryManifest, tasks: &[&Task]) -> Result<Digest, CommandError> {
    let level = if level == ProofLevel::Full { "full" } else { "quick" };
    let bytes = match manifest.build.overridden_arguments() {
        None => canonical_json(&(level, tasks)),
        Some(arguments) => canonical_json(&(level, tasks, arguments)),
    };
    Ok(Digest::of(&bytes.map_err(CommandError::defect)?))
}

#[expect(clippy::too_many_arguments, reason = "each is another thing that an execution needs")]
async fn execute(
    workbench: &Workbench<'_>,
    engine: &Arc<dyn Engine>,
    jars: &ToolJars,
    manifest: &RepositoryManifest,
    built: &BuiltImage,
    needed: &[NeededExecution],
    (git, whole): (&Path, &Arc<WholeBuilds>),
    told: &mut dyn FnMut(ProofStep) -> Result<(), ProofError>,
) -> Result<Vec<Unproven>, CommandError> {
    let limits = ExecutionLimits::from(&manifest.limits);
    let executor = Executor { limits, ..workbench.executor(engine, jars).await? };
    let prepare = workbench.prepare(BTreeMap::from([(built.repository.clone(), git.to_owned())]), whole);
    let jobs = workbench.context.options.jobs.get();
    let image = repository_image(manifest, &built.image);
    Ok(proof::prove(&executor, &image, needed, &prepare, jobs, &workbench.context.events, told).await?)
}

/// Returns one execution for each unproven set, or for every task and side. Adds the executions that failed before
/// because of the image, because only their success makes the proof valid again.
fn needed(level: ProofLevel, tasks: &[&Task], found: &FoundSets, proof: Option<&Proof>) -> Vec<NeededExecution> {
    let failed: BTreeSet<(&str, Cell)> = proof
        .iter()
        .flat_map(|proof| &proof.failed)
        .map(|execution| (execution.task_id.as_str(), execution.cell))
        .collect();
    let mut there: BTreeSet<(&str, Option<(&str, Cell)>)> = BTreeSet::new();
    for execution in proof.iter().flat_map(|proof| &proof.executions) {
        there.insert((execution.build_set.as_str(), None));
        there.insert((execution.build_set.as_str(), Some((execution.task_id.as_str(), execution.cell))));
    }
    let mut needed = Vec::new();
    for task in tasks {
        // Both cells have the new test. On old code it needs everything that the cell `no` needs.
        for (side, cell) in [(Side::New, Cell::Nn), (Side::Old, Cell::No)] {
            let Some(set) = found.set_of(task, side) else { continue };
            let again = level != ProofLevel::None && failed.contains(&(task.id.as_str(), cell));
            let first = match level {
                ProofLevel::None => false,
                ProofLevel::Quick => there.insert((set, None)),
                ProofLevel::Full => there.insert((set, Some((task.id.as_str(), cell)))),
            };
            if again || first {
                needed.push(NeededExecution { build_set: set.to_owned(), task: (*task).clone(), cell });
            }
        }
    }
    needed
}

fn summary(built: BuiltImage, proven: bool, unproven: Vec<Unproven>, compose_ms: u64, proof_ms: u64) -> Built {
    Built {
        repository: built.repository,
        config_digest: built.image.config_digest,
        layers: built
            .image
            .layers
            .iter()
            .map(|layer| BuiltLayer { kind: layer.kind, diff_id: layer.diff_id, size: layer.size })
            .collect(),
        agent: None,
        proven,
        unproven,
        compose_ms,
        proof_ms,
    }
}
