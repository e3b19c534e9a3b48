//! Locks a repository: finds the files that its Maven cache needs by running the real goals.
//!
//! Each distinct set of build files is warmed once, in a container whose only way out is its door. The container's
//! cache shows which paths are needed; their bytes come from the door. The lock is saved after every set, so that an
//! interrupted lock resumes there. A lock only grows: files of an earlier lock stay.

mod error;
mod missing;
mod warming;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fs_err as fs;
use tokio::sync::Semaphore;

use self::warming::{MEMORY_BYTES, Warming};
use super::door::{Door, DoorContext, Passage};
use crate::artifact::fetch::{Client, FetchError};
use crate::artifact::origin::OriginName;
use crate::artifact::store::Store;
use crate::digest::Digest;
use crate::engine::Engine;
use crate::event::EventSink;
use crate::execution::container::ToolJars;
use crate::execution::container::temporary::TemporaryFile;
use crate::execution::module::ModuleArguments;
use crate::host;
use crate::lock::{LOCK_SCHEMA, MavenFile, RepositoryLock, UnresolvedSet};
use crate::manifest::RepositoryManifest;
use crate::task::RepositoryName;
use crate::thread::blocking;
use crate::workspace::WorkspaceError;

pub use self::error::LockError;

const MIB: u64 = 1 << 20;
const STAGE: &str = "lock";

/// The sets of build files that may be warmed at once, over all repositories of a command.
#[derive(Clone, Debug)]
pub struct Slots {
    number: usize,
    free: Arc<Semaphore>,
}

impl Slots {
    /// Returns slots for `jobs` sets, but no more than their containers' limits fit into the memory.
    pub fn new(jobs: usize) -> Self {
        let fit = host::memory_bytes().map_or(usize::MAX, |bytes| {
            // A machine reports slightly less memory than its nominal size.
            usize::try_from((bytes + MEMORY_BYTES / 8) / MEMORY_BYTES).unwrap_or(usize::MAX)
        });
        let number = jobs.min(fit).max(1);
        Self { number, free: Arc::new(Semaphore::new(number)) }
    }

    /// Returns the number of slots, at least 1.
    pub fn number(&self) -> usize {
        self.number
    }
}

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

/// Writes the tree of a set to an archive.
pub type WriteTree = Arc<dyn Fn(&BuildSet, &Path) -> Result<(), WorkspaceError> + Send + Sync>;

/// The parameters of locking a repository.
pub struct Locking {
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
    pub maven_arguments: Vec<String>,
    /// Origins to ask after `central`: those that the repository's POMs declare.
    pub origins: Vec<OriginName>,
    /// Files of Maven repositories inside the trees of sets, by the set's id, then by path. The store has them.
    pub in_tree: BTreeMap<String, BTreeMap<String, MavenFile>>,
    /// `group/artifact` paths of the repository's own modules.
    pub own: BTreeSet<String>,
    /// Versions published after this day do not count.
    pub cutoff: jiff::civil::Date,
    /// Whether files are fetched although another lock has fetched them before.
    pub anew: bool,
    /// The slots of sets that are warmed.
    pub slots: Slots,
    /// Whether the command locks other repositories meanwhile. The stage of progress has the repository's name then.
    pub beside_others: bool,
    /// Directory for archives and the door's socket.
    pub temporary: PathBuf,
    /// The receiver of progress.
    pub events: EventSink,
}

impl Locking {
    /// Warms every set that `lock` lacks, several at once. `archive` writes the tree of a set; `save` is called after each.
    /// An error ends it once the sets that are being warmed are saved.
    ///
    /// # Errors
    /// [`LockError`].
    pub async fn run(
        &self,
        lock: &mut RepositoryLock,
        sets: &[BuildSet],
        archive: &WriteTree,
        save: &(dyn Fn(&RepositoryLock) -> Result<(), LockError> + Sync),
    ) -> Result<Vec<Unresolved>, LockError> {
        let missing: Vec<&BuildSet> = sets.iter().filter(|set| !lock.build_sets.contains(&set.id)).collect();
        if missing.is_empty() {
            return Ok(Vec::new());
        }
        fs::create_dir_all(&self.temporary)?;
        self.ensure(lock).await?;
        let doors = self.doors(lock, missing.len())?;
        let stage = match self.beside_others {
            true => format!("{STAGE} {}", self.repository),
            false => STAGE.to_owned(),
        };
        let stage = self.events.stage(&stage, Some(sets.len() as u64), (sets.len() - missing.len()) as u64);
        let lock = Mutex::new(lock);
        let waiting = Mutex::new(missing.into_iter().enumerate());
        let workers = doors.iter().map(async |door| {
            let mut seed = Seed { file: TemporaryFile::named(&self.temporary, "seed", "tar"), files: None };
            let mut unresolved = Vec::new();
            // Slots are never closed.
            while let Ok(_slot) = self.slots.free.acquire().await
                && let Some((index, set)) = { held(&waiting).next() }
            {
                let item = format!("{} {} {}", self.repository, set.revision, set.module.directory);
                stage.item_started(&item);
                let warmed = self.set(door, &lock, (&mut seed, archive), set).await;
                let failure = warmed.inspect_err(|_| held(&waiting).by_ref().for_each(drop))?;
                let mut lock = held(&lock);
                lock.settle(&set.id, failure.as_ref().map(|failed| failed.artifacts.as_slice()));
                save(&lock)?;
                let outcome = if failure.is_some() { "unresolved" } else { "resolved" };
                stage.item_finished(&item, format!("{outcome}, {} files", lock.files.len()), failure.is_some());
                unresolved.extend(failure.map(|Failed { cause, artifacts }| {
                    let (revision, module) = (set.revision.clone(), set.module.directory.clone());
                    (index, Unresolved { revision, module, cause, artifacts })
                }));
            }
            Ok::<_, LockError>(unresolved)
        });
        let mut unresolved = Vec::new();
        for ended in futures_util::future::join_all(workers).await {
            unresolved.extend(ended?);
        }
        if unresolved.is_empty() {
            let files = held(&lock).files.clone();
            doors[0].remember(&files).await?;
        }
        unresolved.sort_by_key(|(index, _)| *index);
        Ok(unresolved.into_iter().map(|(_, one)| one).collect())
    }

    /// Opens a door for each of the sets that are warmed at once.
    fn doors(&self, lock: &RepositoryLock, sets: usize) -> Result<Vec<Door>, LockError> {
        // Every user who can connect to the door can read origins with this user's credentials, so its directory is
        // private.
        let private = self.temporary.join("door");
        std::os::unix::fs::DirBuilderExt::mode(std::fs::DirBuilder::new().recursive(true), 0o700).create(&private)?;
        let socket = |number| private.join(format!("{}-{number}.sock", self.repository.file_stem()));
        let context = DoorContext {
            client: self.client.clone(),
            store: self.store.clone(),
            origins: self.asked(),
            cutoff: self.cutoff,
            java: self.jdk,
            known: passage_of(lock),
            own: self.own.iter().cloned().chain(self.artifacts_in_tree()).collect(),
            anew: self.anew,
        };
        let mut doors = vec![Door::open(&socket(0), context)?];
        for number in 1..self.at_once().min(sets) {
            doors.push(doors[0].another(&socket(number))?);
        }
        Ok(doors)
    }

    /// Returns the `group/artifact` paths of what the tree of any set has. Not every set is offered all of them.
    fn artifacts_in_tree(&self) -> impl Iterator<Item = String> {
        self.in_tree.values().flat_map(BTreeMap::keys).filter_map(|path| Some(path.rsplitn(3, '/').nth(2)?.to_owned()))
    }

    /// Returns how many sets are warmed at once. Which tree's file is served for a path would depend on which set comes first,
    /// so sets with files in their trees are warmed in a row.
    fn at_once(&self) -> usize {
        if self.in_tree.is_empty() { self.slots.number() } else { 1 }
    }

    /// Warms a set. Returns why some files did not resolve.
    async fn set(
        &self,
        door: &Door,
        lock: &Mutex<&mut RepositoryLock>,
        (seed, archive): (&mut Seed, &WriteTree),
        set: &BuildSet,
    ) -> Result<Option<Failed>, LockError> {
        let known = held(lock).clone();
        seed.write(known, &self.store).await?;
        let tree = TemporaryFile::named(&self.temporary, "lock", "tar");
        let (archive, wanted, path) = (Arc::clone(archive), set.clone(), tree.path().to_owned());
        blocking(move || archive(&wanted, &path)).await?;
        door.offer(self.in_tree.get(&set.id).cloned().unwrap_or_default());
        let warming = Warming { locking: self, door, lock, tree: tree.path(), seed: seed.file.path() };
        warming.part_or_whole(set).await
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
            self.client.fetch(&origin, &file.path_at_origin(), Some(&file.sha256), file.size).await?;
        }
        Ok(())
    }
}

/// An archive of a lock's cache, with which containers start.
struct Seed {
    file: TemporaryFile,
    /// The number of files that it has; `None` before it is written.
    files: Option<usize>,
}

impl Seed {
    /// Writes the cache of `lock` unless that is done.
    async fn write(&mut self, lock: RepositoryLock, store: &Store) -> Result<(), LockError> {
        let files = lock.files.len() + lock.metadata.len();
        if self.files != Some(files) {
            let (path, store) = (self.file.path().to_owned(), store.clone());
            self.files = None;
            blocking(move || write_cache(&path, &lock, &store)).await?;
            self.files = Some(files);
        }
        Ok(())
    }
}

/// Writes an archive of a lock's cache.
fn write_cache(path: &Path, lock: &RepositoryLock, store: &Store) -> Result<(), LockError> {
    let mut archive = tar::Builder::new(std::io::BufWriter::new(fs::File::create(path)?));
    let header = |size| {
        let mut header = tar::Header::new_gnu();
        header.set_size(size);
        header.set_mode(0o644);
        header.set_mtime(0);
        header
    };
    for file in &lock.files {
        let blob = store.open_sound(&file.sha256)?;
        archive.append_data(&mut header(file.size), &file.path, blob)?;
    }
    for frozen in &lock.metadata {
        let size = frozen.content.len() as u64;
        archive.append_data(&mut header(size), &frozen.path, frozen.content.as_bytes())?;
    }
    archive.into_inner()?.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    Ok(())
}

/// Takes a lock. A panic ends all workers, so nobody uses its data after one.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn passage_of(lock: &RepositoryLock) -> Passage {
    Passage {
        files: lock.files.iter().map(|file| (file.path.clone(), file.clone())).collect(),
        metadata: lock.metadata.iter().map(|frozen| (frozen.path.clone(), frozen.clone())).collect(),
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
