//! Builds the images of a selection from their locks, and proves them.

mod preview;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;

use super::Context;
use super::failures::Failures;
use super::selection::{self, by_repository};
use super::workbench::{Workbench, blocking, environment, sets_of};
use crate::canonical_json::canonical_json;
use crate::digest::Digest;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::execution::container::ToolJars;
use crate::execution::container::limits::ExecutionLimits;
use crate::execution::executor::Executor;
use crate::execution::proof::{self, NeededExecution, Proof, ProofError, ProofStep, Unproven};
use crate::execution::run::record::milliseconds;
use crate::image::{BuiltImage, Catalog, ImageBuilder, LockDigests, ready_tag};
use crate::manifest::RepositoryManifest;
use crate::output::counted;
use crate::resolution::sets::FoundSets;
use crate::task::selector::{Selector, repository_fits};
use crate::task::{Cell, RepositoryName, Side, Task};

/// How much of an image is shown to work before it is called ready.
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

/// Which images are to be built, and how they are proven.
#[derive(Clone, Debug, Default)]
pub struct BuildRequest {
    /// The tasks that proofs execute.
    pub selector: Selector,
    /// How much is proven.
    pub proof: ProofLevel,
}

/// What came of a selection's images.
pub struct BuildReport<'a> {
    /// The repositories that did not fail.
    pub built: Vec<Built>,
    failures: Failures<'a>,
}

impl BuildReport<'_> {
    /// Says whether every image was built and nothing failed in its proof.
    ///
    /// # Errors
    /// [`CommandError::Repositories`] or the error of the only repository; [`CommandError::CheckFailed`] where an execution
    /// failed.
    pub fn verdict(self) -> Result<(), CommandError> {
        self.failures.settle("built")?;
        let unproven: usize = self.built.iter().map(|built| built.unproven.len()).sum();
        if unproven > 0 {
            let executions = counted(unproven, "execution", "executions");
            return Err(CommandError::CheckFailed { summary: format!("{executions} failed without a network") });
        }
        Ok(())
    }
}

/// What came of one repository.
#[derive(Debug, Serialize)]
pub struct Built {
    /// The repository.
    pub repository: RepositoryName,
    /// The image's id.
    pub config_digest: Digest,
    /// Its layers, the lowest first.
    pub layers: Vec<BuiltLayer>,
    /// Whether the proofs until now cover the repository's lock.
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
    /// What it holds.
    pub kind: crate::lock::LayerKind,
    /// The digest of its archive.
    pub diff_id: Digest,
    /// Bytes of its blob.
    pub size: u64,
}

/// Does what the request says; `None` after a dry run, which only tells what would be done.
///
/// # Errors
/// What concerns all repositories: the selection, the data directory, an interrupt.
pub async fn build<'a>(request: &BuildRequest, context: &'a Context) -> Result<Option<BuildReport<'a>>, CommandError> {
    let chosen = chosen(request, context)?;
    if context.options.dry_run {
        preview::build_images(request.proof, &chosen, context).await?;
        return Ok(None);
    }
    let workbench = Workbench::open(context)?;
    let catalog = Catalog::open(&workbench.data_dir)?;
    let (mut engine, mut failures) = (None, Failures::new(chosen.len(), context));
    let one = async |repository: &_, tasks: &Vec<Task>| {
        build_one(request.proof, &workbench, &catalog, &mut engine, repository, tasks).await
    };
    let built = failures.each(&chosen, one).await;
    if let Some(engine) = engine {
        engine.close().await?;
    }
    Ok(Some(BuildReport { built: built?, failures }))
}

/// Returns the repositories to build with the tasks to prove them by. Without a proof locks are enough: their tasks need not
/// have been imported.
fn chosen(request: &BuildRequest, context: &Context) -> Result<BTreeMap<RepositoryName, Vec<Task>>, CommandError> {
    if request.proof == ProofLevel::None
        && let Some(names) = request.selector.only_patterns()
    {
        let locked = Workbench::open(context)?.locked()?;
        let fits = |name: &String| locked.iter().any(|repository| repository_fits(name, repository));
        if !locked.is_empty() && names.iter().all(fits) {
            let chosen = |repository: &RepositoryName| {
                names.is_empty() || names.iter().any(|name| repository_fits(name, repository))
            };
            return Ok(locked.into_iter().filter(chosen).map(|repository| (repository, Vec::new())).collect());
        }
    }
    let tasks = selection::tasks(&request.selector, context)?;
    let groups = by_repository(&tasks).into_iter();
    Ok(groups.map(|(repository, tasks)| (repository, tasks.into_iter().cloned().collect())).collect())
}

async fn build_one(
    level: ProofLevel,
    workbench: &Workbench<'_>,
    catalog: &Catalog,
    engine: &mut Option<Arc<dyn Engine>>,
    repository: &RepositoryName,
    tasks: &[Task],
) -> Result<Built, CommandError> {
    let started = Instant::now();
    let manifest = workbench.manifest(repository)?;
    let image = image_of(workbench, catalog, &manifest).await?;
    let compose_ms = milliseconds(started);
    let started = Instant::now();
    let tasks: Vec<&Task> = tasks.iter().collect();
    // Others may build meanwhile, but what is shown of an image is kept in one file, which is written as a whole.
    let _held = workbench.hold(&format!("prove-{}", repository.file_stem())).await?;
    let (proven, unproven) = prove(level, workbench, catalog, engine, &manifest, &image, &tasks).await?;
    Ok(summary(image, proven, unproven, compose_ms, milliseconds(started)))
}

/// Returns the image of the repository's present locks, composed where there is none yet.
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
    let builder = Arc::new(builder(workbench).await?);
    // Who was waited for may have composed it.
    match present()? {
        Some(image) => Ok(image),
        None => compose(workbench, &builder, manifest, locks).await,
    }
}

/// Returns a builder, once no other process has one; an interrupt ends the wait.
async fn builder(workbench: &Workbench<'_>) -> Result<ImageBuilder, CommandError> {
    let (data_dir, events) = (workbench.data_dir.clone(), workbench.context.events.clone());
    let waiting = move |owner: &str| events.message(format!("waiting for {owner}, which builds images"));
    let builder = blocking(move || Ok(ImageBuilder::new(&data_dir, waiting)?));
    workbench.context.until_interrupted(builder).await
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
    blocking(move || Ok(builder.build(&toolchain, &lock, locks)?)).await
}

/// Shows what the level asks and earlier proofs lack; tells whether the image is proven now, and what failed.
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
    let needed = needed(level, tasks, &found, Some(&proof));
    if !needed.is_empty() {
        let running = match engine {
            Some(engine) => Arc::clone(engine),
            None => Arc::clone(engine.insert(workbench.engine().await?)),
        };
        let jars = workbench.jars(running.as_ref(), &workbench.toolchain()?).await?;
        workbench.load(running.as_ref(), &built.image, Some(&built.repository), built.jdk).await?;
        // What was shown need not be shown again, however this ends.
        let mut told = |shown| {
            proof.take(shown);
            proof::store(&path, &proof)
        };
        let failed = execute(workbench, &running, &jars, manifest, built, &needed, opened.path(), &mut told).await?;
        if !failed.is_empty() {
            let proven = settle(workbench, built, &mut proof, &path)?;
            if !proven {
                running.untag_image(&built.image.config_digest, &ready_tag(&built.repository)).await?;
            }
            return Ok((proven, failed));
        }
    }
    proof.shown_for.push(selection);
    proof.shown_for.sort();
    proof::store(&path, &proof)?;
    let proven = settle(workbench, built, &mut proof, &path)?;
    if let Some(engine) = engine.as_ref().filter(|_| proven && !needed.is_empty()) {
        engine.tag_image(&built.image.config_digest, &ready_tag(&built.repository)).await?;
    }
    Ok((proven, Vec::new()))
}

/// Tells whether the proof covers the lock that the image was made from, and remembers it where it does.
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

/// Returns the identity of what a proof is asked for, so that an old one is found without reading any repository.
fn selection_digest(level: ProofLevel, manifest: &RepositoryManifest, tasks: &[&Task]) -> Result<Digest, CommandError> {
    let level = if level == ProofLevel::Full { "full" } else { "quick" };
    let bytes = match manifest.build.overridden_arguments() {
        None => canonical_json(&(level, tasks)),
        Some(arguments) => canonical_json(&(level, tasks, arguments)),
    };
    Ok(Digest::of(&bytes.map_err(|error| CommandError::Output(error.into()))?))
}

#[expect(clippy::too_many_arguments, reason = "each is another thing that an execution needs")]
async fn execute(
    workbench: &Workbench<'_>,
    engine: &Arc<dyn Engine>,
    jars: &ToolJars,
    manifest: &RepositoryManifest,
    built: &BuiltImage,
    needed: &[NeededExecution],
    git: &Path,
    told: &mut dyn FnMut(ProofStep) -> Result<(), ProofError>,
) -> Result<Vec<Unproven>, CommandError> {
    let limits = ExecutionLimits::from(&manifest.limits);
    let executor = Executor { limits, ..workbench.executor(engine, jars).await? };
    let prepare = workbench.prepare(BTreeMap::from([(built.repository.clone(), git.to_owned())]));
    let jobs = workbench.context.options.jobs.get();
    let environment = environment(manifest, &built.image);
    Ok(proof::prove(&executor, &environment, needed, &prepare, jobs, &workbench.context.events, told).await?)
}

/// Returns one execution for each set that was not shown yet, or for every task and side; and what the image failed before,
/// which only the same execution can make good.
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
        // The new test stands in both: on old code it shows what the cell `no` needs.
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
        proven,
        unproven,
        compose_ms,
        proof_ms,
    }
}
