//! Locks the repositories of a selection, or checks that their locks cover it.

mod preview;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use super::disk::Needs;
use super::failures::Failures;
use super::locks::LockInProgress;
use super::selection::{self, by_repository};
use super::workbench::{Workbench, blocking, sets_of};
use super::{Context, extension_jars};
use crate::artifact::fetch::Client;
use crate::artifact::origin::{Declared, LeftOut, OriginError, OriginName, printable};
use crate::data_dir::HeldLock;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::image::recipe::java_home;
use crate::lock::{self, LockFile as _, LockedJar, MavenFile, RepositoryLock, ToolchainLock};
use crate::manifest::RepositoryManifest;
use crate::output::counted;
use crate::resolution::in_tree::Collector;
use crate::resolution::repository::{BuildSet, LockError, Locking, Slots, Unresolved, WriteTree, empty};
use crate::resolution::sets::FoundSets;
use crate::task::selector::Selector;
use crate::task::{RepositoryName, Task};
use crate::workspace::Repository;
use crate::workspace::cells::write_to;
use crate::workspace::pom::DeclaredRepository;

/// What is locked, and how.
#[derive(Clone, Debug, Default)]
pub struct LockRequest {
    /// The tasks that locks must cover.
    pub selector: Selector,
    /// How the present locks are treated.
    pub mode: Mode,
    /// Whether the tools of agents are locked as well. Tools that are locked stay in any case.
    pub agent: bool,
}

/// How the present locks are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Locks are completed.
    #[default]
    Complete,
    /// Everything is resolved anew. A present lock stays until that is done.
    Update,
    /// Locks are compared with the tasks, and nothing is resolved.
    Check,
}

/// The result for a selection's locks.
pub struct LockReport<'a> {
    /// The results of the repositories that did not fail.
    pub locked: Vec<Locked>,
    mode: Mode,
    failures: Failures<'a>,
}

impl LockReport<'_> {
    /// Checks that every repository is locked for its tasks.
    ///
    /// # Errors
    /// [`CommandError::Repositories`] or the error of the only repository; [`LockError::Unresolved`] if a lock lacks
    /// artifacts; [`CommandError::CheckFailed`] if it is incomplete for another reason.
    pub fn verdict(mut self) -> Result<(), CommandError> {
        let own = self.own_verdict();
        for locked in &self.locked {
            let lost: Vec<&lock::UnresolvedSet> = locked.unresolved.iter().flat_map(|set| &set.artifacts).collect();
            if let Some(first) = lost.first() {
                let sets: BTreeSet<&str> = lost.iter().map(|set| set.build_set.as_str()).collect();
                let (repository, sets) = (locked.repository.clone(), sets.len());
                let error = LockError::Unresolved { repository, sets, first: Box::new((*first).clone()) };
                self.failures.record(&locked.repository, error.into());
            }
        }
        self.failures.settle(if self.mode == Mode::Check { "checked" } else { "locked" }, own)
    }

    fn own_verdict(&self) -> Result<(), CommandError> {
        let mut failed = Vec::new();
        let without_kit = self.locked.iter().filter(|locked| !locked.jdk_locked);
        let kits: BTreeSet<u32> = without_kit.map(|locked| locked.jdk).collect();
        if !kits.is_empty() {
            failed.push(format!("the toolchain lock has no {}", java(&kits)));
        }
        let missing: usize = self.locked.iter().map(|locked| locked.missing_build_sets).sum();
        if missing > 0 {
            let sets = counted(missing, "set of build files is", "sets of build files are");
            failed.push(format!("{sets} not covered by a lock"));
        }
        match failed.is_empty() {
            true => Ok(()),
            false => Err(CommandError::CheckFailed { summary: failed.join("; ") }),
        }
    }
}

/// The result for one repository.
#[derive(Debug, Serialize)]
pub struct Locked {
    /// The repository.
    pub repository: RepositoryName,
    /// The major version of its development kit.
    pub jdk: u32,
    /// Whether the toolchain lock has that kit.
    pub jdk_locked: bool,
    /// Number of locked files.
    pub files: usize,
    /// Their size in bytes.
    pub bytes: u64,
    /// Number of locked metadata files.
    pub metadata: usize,
    /// Number of sets of build files that the lock covers.
    pub build_sets: usize,
    /// Number of sets of the selection's tasks that it does not cover.
    pub missing_build_sets: usize,
    /// Sets that could not be resolved.
    pub unresolved: Vec<UnresolvedSet>,
}

/// A set of build files that could not be resolved.
#[derive(Debug, Serialize)]
pub struct UnresolvedSet {
    /// A revision with this set.
    pub revision: String,
    /// The module.
    pub module: String,
    /// The reason.
    pub cause: String,
    /// The artifacts that it lacks; none if Maven failed for another reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<lock::UnresolvedSet>,
}

/// Returns development kits in words: `Java 8, 11`.
fn java(majors: &BTreeSet<u32>) -> String {
    let majors: Vec<String> = majors.iter().map(u32::to_string).collect();
    format!("Java {}", majors.join(", "))
}

/// Executes the request; `None` after a dry run, which only tells what would be done.
///
/// # Errors
/// Errors that concern all repositories: of the selection, the toolchain, the engine, an interrupt.
pub async fn lock<'a>(request: &LockRequest, context: &'a Context) -> Result<Option<LockReport<'a>>, CommandError> {
    let (tasks, mode) = (selection::tasks(&request.selector, context)?, request.mode);
    if context.options.dry_run && mode != Mode::Check {
        preview::lock(request, &tasks, context).await?;
        return Ok(None);
    }
    let workbench = Workbench::open(context)?;
    let groups = by_repository(&tasks);
    if mode != Mode::Check {
        ensure_room(groups.keys(), &workbench).await?;
    }
    let mut failures = Failures::new(groups.len(), context);
    let mut wanted = Vec::new();
    for (repository, tasks) in &groups {
        let Some(manifest) = failures.unless(repository, workbench.manifest(repository))? else { continue };
        if mode != Mode::Check {
            // Without its sources nothing is resolved for a repository, so nothing is downloaded for it.
            let opened = workbench.repository(&manifest, tasks).await;
            if failures.unless(repository, opened)?.is_none() {
                continue;
            }
        }
        wanted.push((manifest, tasks.as_slice()));
    }
    let items = wanted.iter().map(|(manifest, tasks)| (&manifest.repository, (manifest, *tasks)));
    let locked = if mode == Mode::Check {
        let jdks = workbench.locked_jdks()?;
        failures.each(items, async |_, (manifest, tasks)| check(&workbench, manifest, tasks, &jdks).await).await?
    } else if wanted.is_empty() {
        Vec::new()
    } else {
        let client = workbench.client()?;
        let majors: BTreeSet<u32> = wanted.iter().map(|(manifest, _)| manifest.jdk).collect();
        let update = mode == Mode::Update;
        let toolchain = workbench.lock_toolchain(&client, &majors, request.agent, update).await?;
        let engine = workbench.engine().await?;
        let means = LockContext {
            workbench: &workbench,
            engine: &engine,
            client: &client,
            toolchain: &toolchain,
            update,
            slots: Slots::new(context.options.jobs.get()),
            beside_others: wanted.len() > 1,
        };
        let locked = lock_all(&means, items, &mut failures).await;
        engine.close().await?;
        locked?
    };
    Ok(Some(LockReport { locked, mode, failures }))
}

/// Checks that there is room for what is known of repositories before they are resolved.
async fn ensure_room(
    repositories: impl Iterator<Item = &RepositoryName>,
    workbench: &Workbench<'_>,
) -> Result<(), CommandError> {
    let mut needs = Needs::new(workbench).await;
    for manifest in repositories.filter_map(|repository| workbench.manifest(repository).ok()) {
        needs.resolving(&manifest);
    }
    needs.ensure().await
}

async fn check(
    workbench: &Workbench<'_>,
    manifest: &RepositoryManifest,
    tasks: &[&Task],
    jdks: &BTreeSet<u32>,
) -> Result<Locked, CommandError> {
    let opened = workbench.repository(manifest, tasks).await?;
    let found = sets_of(&opened, manifest, tasks).await?;
    let lock = workbench.covering_lock(manifest)?;
    Ok(summary(&lock, jdks.contains(&manifest.jdk), &found.sets, Vec::new()))
}

/// The parameters that all repositories share.
struct LockContext<'a> {
    workbench: &'a Workbench<'a>,
    engine: &'a Arc<dyn Engine>,
    client: &'a Client,
    toolchain: &'a ToolchainLock,
    /// Whether everything is resolved anew.
    update: bool,
    /// The slots of all repositories' sets.
    slots: Slots,
    /// Whether there are several repositories.
    beside_others: bool,
}

/// Locks repositories side by side, so that one with few sets does not leave slots unused.
///
/// All are prepared before, in their order: an origin's name in locks depends on which repository declares it first.
async fn lock_all<'i>(
    means: &LockContext<'_>,
    items: impl IntoIterator<Item = (&'i RepositoryName, (&'i RepositoryManifest, &'i [&'i Task]))>,
    failures: &mut Failures<'_>,
) -> Result<Vec<Locked>, CommandError> {
    let prepare =
        async |_: &_, (manifest, tasks): (&'i RepositoryManifest, &[&Task])| prepare(means, manifest, tasks).await;
    let prepared = failures.each(items, prepare).await?;
    let prepared = prepared.into_iter().map(|prepared| (&prepared.manifest.repository, prepared));
    let locked = async |_: &_, prepared: Prepared<'_>| prepared.locked(means.workbench).await;
    failures.at_once(means.slots.number(), prepared, locked).await
}

/// A repository whose sets of build files are known.
struct Prepared<'a> {
    manifest: &'a RepositoryManifest,
    found: FoundSets,
    growing: LockInProgress,
    /// How the sets that the lock lacks are resolved; `None` if it lacks none.
    missing: Option<(Locking, WriteTree)>,
    _held: HeldLock,
}

impl Prepared<'_> {
    /// Resolves the sets that the lock lacks. The lock is saved after each.
    async fn locked(mut self, workbench: &Workbench<'_>) -> Result<Locked, CommandError> {
        let unresolved = match &self.missing {
            Some((locking, write_tree)) => {
                let LockInProgress { lock, path, .. } = &mut self.growing;
                let save = |lock: &RepositoryLock| -> Result<(), LockError> { Ok(lock.store(path)?) };
                locking.run(lock, &self.found.sets, write_tree, &save).await?
            }
            None => Vec::new(),
        };
        workbench.finish_lock(&self.growing, self.manifest, &self.found.sets)?;
        Ok(summary(&self.growing.lock, true, &self.found.sets, unresolved))
    }
}

async fn prepare<'a>(
    means: &LockContext<'_>,
    manifest: &'a RepositoryManifest,
    tasks: &[&Task],
) -> Result<Prepared<'a>, CommandError> {
    let (workbench, repository) = (means.workbench, &manifest.repository);
    let held = workbench.hold(&format!("lock-{}", repository.file_stem())).await?;
    let opened = workbench.repository(manifest, tasks).await?;
    let found = sets_of(&opened, manifest, tasks).await?;
    let in_tree = in_tree(workbench, &opened, &found).await?;
    let mut growing = workbench.growing_lock(manifest, means.update)?;
    growing.lock.extension_jars = extension_jars(workbench, manifest).await?;
    let missing = match found.sets.iter().all(|set| growing.lock.build_sets.contains(&set.id)) {
        true => None,
        false => Some(means_of(means, manifest, &opened, &found, in_tree, &growing).await?),
    };
    Ok(Prepared { manifest, found, growing, missing, _held: held })
}

/// Returns the manifest's extension jars and stores them.
async fn extension_jars(
    workbench: &Workbench<'_>,
    manifest: &RepositoryManifest,
) -> Result<Vec<LockedJar>, CommandError> {
    let (manifest, store) = (manifest.clone(), workbench.store.clone());
    let directory = workbench.data_dir.join("manifests");
    blocking(move || Ok(extension_jars::keep(&manifest, &directory, &store)?)).await
}

/// Returns the files of Maven repositories inside the trees of sets, by set, and stores them. They are stored every
/// time, because no origin could restore them.
async fn in_tree(
    workbench: &Workbench<'_>,
    opened: &Repository,
    found: &FoundSets,
) -> Result<BTreeMap<String, BTreeMap<String, MavenFile>>, CommandError> {
    let (name, path, store) = (opened.name().clone(), opened.path().to_owned(), workbench.store.clone());
    let directories = found.in_tree.clone();
    let revisions = found.revisions.clone();
    blocking(move || {
        let mut files = BTreeMap::new();
        let repository = Repository::open(name.clone(), &path)?;
        let mut collector = Collector::new(&store);
        for (set, directories) in directories {
            let collected = collector.collect(&repository.tree(&revisions[&set])?, &directories);
            files.insert(set, collected.map_err(|error| LockError::in_tree(&name, error))?);
        }
        Ok(files)
    })
    .await
}

/// Returns the [`Locking`] that resolves the sets which a lock lacks, and the function that writes their trees.
async fn means_of(
    means: &LockContext<'_>,
    manifest: &RepositoryManifest,
    opened: &Repository,
    found: &FoundSets,
    in_tree: BTreeMap<String, BTreeMap<String, MavenFile>>,
    growing: &LockInProgress,
) -> Result<(Locking, WriteTree), CommandError> {
    let LockContext { workbench, engine, client, toolchain, .. } = *means;
    let repository = &manifest.repository;
    let jars = workbench.jars(engine.as_ref(), toolchain).await?;
    // Extension jars are in the image that Maven resolves with; the cache is not.
    let extended = RepositoryLock { extension_jars: growing.lock.extension_jars.clone(), ..empty(manifest) };
    let extended = (!extended.extension_jars.is_empty()).then_some(&extended);
    let image = workbench.compose(toolchain, manifest.jdk, extended).await?;
    workbench.load(engine.as_ref(), &image, None, manifest.jdk).await?;
    let locking = Locking {
        engine: Arc::clone(engine),
        client: client.clone(),
        store: workbench.store.clone(),
        jars,
        image: image.config_digest,
        jdk: manifest.jdk,
        java_home: java_home(manifest.jdk),
        repository: repository.clone(),
        maven_arguments: manifest.build.arguments(),
        origins: declared_origins(client, &found.repositories, !found.in_tree.is_empty())?,
        in_tree,
        own: found.own.clone(),
        cutoff: found.cutoff,
        anew: means.update,
        slots: means.slots.clone(),
        beside_others: means.beside_others,
        temporary: workbench.data_dir.temporary(),
        events: workbench.context.events.clone(),
    };
    let (revisions, name, git) = (found.revisions.clone(), repository.clone(), opened.path().to_owned());
    let notices = Arc::clone(&workbench.notices);
    let write_tree: WriteTree = Arc::new(move |set, path| {
        let opened = Repository::open(name.clone(), &git)?;
        write_to(&opened.tree(&revisions[&set.id])?, None, path, &notices)
    });
    Ok((locking, write_tree))
}

/// Records the addresses of the repositories that POMs declare, and returns their names. Reports refused ones, except
/// for repositories inside the tree if some were found there.
fn declared_origins(
    client: &Client,
    repositories: &BTreeSet<DeclaredRepository>,
    some_in_tree: bool,
) -> Result<Vec<OriginName>, OriginError> {
    let mut names = Vec::new();
    let mut left_out = BTreeSet::new();
    for declared in repositories {
        match client.origins().declare(&declared.id, &declared.url)? {
            Declared::Known(name) if name == OriginName::central() || names.contains(&name) => {}
            Declared::Known(name) => names.push(name),
            // Maven has repositories for plugins and for other artifacts. One that is both is reported once.
            Declared::LeftOut(_) if some_in_tree && declared.path_in_tree().is_some() => {}
            Declared::LeftOut(reason) => {
                left_out.insert((printable(&declared.id), reason));
            }
        }
    }
    for (id, reason) in left_out {
        let meant = match reason {
            LeftOut::Id => String::new(),
            LeftOut::Address | LeftOut::Private => format!("; if it is needed, give `--origin {id}=URL`"),
        };
        client
            .events()
            .warning(format!("the repository `{id}`, which a POM declares, {reason}: it is not asked{meant}"));
    }
    Ok(names)
}

/// Returns the number of sets that a lock does not cover.
fn missing_sets(lock: &RepositoryLock, sets: &[BuildSet]) -> usize {
    sets.iter().filter(|set| !lock.build_sets.contains(&set.id)).count()
}

fn summary(lock: &RepositoryLock, jdk_locked: bool, sets: &[BuildSet], unresolved: Vec<Unresolved>) -> Locked {
    Locked {
        repository: lock.repository.clone(),
        jdk: lock.jdk,
        jdk_locked,
        files: lock.files.len(),
        bytes: lock.files.iter().map(|file| file.size).sum(),
        metadata: lock.metadata.len(),
        build_sets: lock.build_sets.len(),
        missing_build_sets: missing_sets(lock, sets),
        unresolved: unresolved
            .into_iter()
            .map(|Unresolved { revision, module, cause, artifacts }| UnresolvedSet {
                revision,
                module,
                cause,
                artifacts,
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests;
