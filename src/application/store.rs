//! Verifies the store, removes unused blobs, and moves locks with all their bytes between data directories.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;

use super::Context;
use super::archives::ArchiveOutput;
use super::disk::{DiskUse, GivenUp, give_up, give_up_layers};
use super::io_failure::IoFailure;
use super::workbench::{Workbench, blocking, present};
use crate::artifact::made::{PrunePolicy, prune};
use crate::artifact::store::Store;
use crate::data_dir::write_atomically;
use crate::digest::Digest;
use crate::engine::native::{VerifiedLayers, verify_layers};
use crate::error::CommandError;
use crate::garbage::{Verified, verify as verify_blobs};
use crate::lock::archive::{LockArchive, LockArchiveError};
use crate::lock::{LockFile, LockFileError, MismatchError, ToolchainLock};
use crate::manifest::{ManifestError, RepositoryManifest};
use crate::output::{counted, size};
use crate::resolution::door::released::Released;
use crate::task::RepositoryName;
use crate::task::selector::choose;

/// What verifying the store found.
pub struct VerifiedStore {
    /// Blobs, each compared with its name.
    pub blobs: Verified,
    /// Unpacked layers, each compared with its inventory.
    pub layers: VerifiedLayers,
    /// Whether corrupted blobs and layers were removed.
    pub repair: bool,
}

impl VerifiedStore {
    /// Returns the number of damaged unpacked layers.
    pub fn damaged_layers(&self) -> usize {
        self.layers.damaged.iter().map(|damaged| damaged.layer).collect::<BTreeSet<_>>().len()
    }

    /// Reports what was removed, and what could not be.
    pub fn tell(&self, context: &Context) {
        let (blobs, removed) = (self.blobs.corrupted.len(), self.layers.removed);
        if self.repair && blobs > 0 {
            context.events.message(format!("removed {}", counted(blobs, "corrupted blob", "corrupted blobs")));
        }
        if removed > 0 {
            let removed = counted(removed, "damaged unpacked layer", "damaged unpacked layers");
            context.events.message(format!("removed {removed}"));
        }
        if self.repair && removed < self.damaged_layers() {
            context.events.warning("damaged unpacked layers stay: another process runs containers from them");
        }
    }

    /// Checks that the store was sound, or is repaired.
    ///
    /// # Errors
    /// [`CommandError::StoreCorrupted`].
    pub fn verdict(&self) -> Result<(), CommandError> {
        let (blobs, layers) = match self.repair {
            true => (0, self.damaged_layers() - self.layers.removed),
            false => (self.blobs.corrupted.len(), self.damaged_layers()),
        };
        match blobs + layers {
            0 => Ok(()),
            _ => Err(CommandError::StoreCorrupted { blobs, layers }),
        }
    }
}

/// Compares every blob with its name and every unpacked layer with its inventory. `repair` removes corrupted ones,
/// except in a dry run.
///
/// # Errors
/// [`StoreError`](crate::artifact::store::StoreError), [`EngineError`](crate::engine::EngineError).
pub fn verify(repair: bool, context: &Context) -> Result<VerifiedStore, CommandError> {
    let (workbench, repair) = (Workbench::open(context)?, repair && !context.options.dry_run);
    let store = &workbench.store;
    let _stage = context.events.stage("verify store", None, 0);
    let blobs = verify_blobs(store, |_| ())?;
    let layers = verify_layers(&store.root().join("unpacked"), workbench.data_dir.owner(), repair)?;
    if repair {
        for digest in &blobs.corrupted {
            store.remove(digest)?;
        }
    }
    Ok(VerifiedStore { blobs, layers, repair })
}

/// What a collection of garbage removed, or would remove.
pub struct CollectedGarbage {
    /// Blobs, prepared revisions and class archives.
    pub given_up: GivenUp,
    /// Number of pruned records of released files.
    pub released: usize,
    /// Unpacked layers that went for `--max-disk`, with their bytes.
    pub layers: Vec<(Digest, u64)>,
    /// What the data directory takes now, if there is a limit.
    pub disk: Option<DiskUse>,
}

impl CollectedGarbage {
    /// Warns if the data directory takes more than it may.
    pub fn tell(&self, context: &Context) {
        let Some(disk) = self.disk.as_ref().filter(|disk| disk.excess() > 0) else { return };
        let parts: Vec<String> =
            disk.parts.iter().take(MOST_PARTS).map(|(part, bytes)| format!("{part} {}", size(*bytes))).collect();
        context.events.warning(format!(
            "the data directory takes {} and may take {}; its largest parts: {}",
            size(disk.used),
            size(disk.limit),
            parts.join(", ")
        ));
    }
}

/// The most parts of a data directory that a warning names.
const MOST_PARTS: usize = 5;

/// Prunes prepared revisions, class archives and records of released files by the policy, then removes all blobs that no record names. Blobs
/// younger than the policy's `always` stay. With a limit of the data directory's size, more goes until it is kept: what
/// was used longest ago, and at last unpacked layers. Runs, locks, manifests and tasks stay in any case.
///
/// # Errors
/// [`GarbageError`](crate::garbage::GarbageError), [`IoFailure`] for records that can't be listed or removed,
/// [`EngineError`](crate::engine::EngineError).
pub fn collect_garbage(policy: &PrunePolicy, context: &Context) -> Result<CollectedGarbage, CommandError> {
    let (workbench, dry_run) = (Workbench::open(context)?, context.options.dry_run);
    let _stage = context.events.stage("collect garbage", None, 0);
    let measure = |limit| DiskUse::measure(&workbench, limit);
    let mut disk = context.options.max_disk.map(measure).transpose()?;
    // Class archives and released files are small compared with revisions, so their size is not limited.
    let small = PrunePolicy { most_bytes: u64::MAX, ..*policy };
    let released = prune::<Released>(&workbench.store, &small, dry_run);
    let released = released.map_err(IoFailure::of("pruning records of released files"))?.removed;
    let excess = disk.as_ref().map_or(0, DiskUse::excess);
    let given_up = give_up(&workbench.store, policy, excess, dry_run)?;
    let mut layers = Vec::new();
    if let Some(disk) = &mut disk {
        disk.now(&workbench, dry_run, given_up.bytes)?;
        match give_up_layers(&workbench, disk.excess(), dry_run)? {
            Some(removed) => layers = removed,
            None => context.events.warning("unpacked layers stay: another process runs containers from them"),
        }
        disk.now(&workbench, dry_run, layers.iter().map(|(_, bytes)| bytes).sum())?;
    }
    Ok(CollectedGarbage { given_up, released, layers, disk })
}

/// What is exported, and where to.
#[derive(Clone, Debug)]
pub struct ExportRequest {
    /// Names of repositories, with `*` and `?`; empty for all locked ones.
    pub names: Vec<String>,
    /// The archive.
    pub output: ArchiveOutput,
}

/// Writes locks, manifests and every byte that they name into one archive. Missing bytes are fetched first. A dry run
/// writes nothing.
///
/// # Errors
/// [`CommandError::Usage`] for names without a lock; errors of locks, manifests, origins and the archive; an interrupt.
pub async fn export(request: &ExportRequest, context: &Context) -> Result<(), CommandError> {
    let workbench = Workbench::open(context)?;
    let toolchain = workbench.toolchain()?;
    let mut repositories = BTreeMap::new();
    for repository in locked(&workbench, &request.names)? {
        // A manifest that can't be used here is of no use elsewhere.
        workbench.manifest(&repository)?;
        let path = workbench.lock_path(&repository);
        let lock = workbench
            .repository_lock(&repository)?
            .ok_or_else(|| LockFileError::Missing { path, repository: Some(repository.clone()) })?;
        let text = fs::read_to_string(workbench.manifest_path(&repository)).map_err(ManifestError::Io)?;
        repositories.insert(repository, (lock, text));
    }
    let archive = LockArchive { toolchain, repositories };
    let (blobs, count) = (archive.blobs(), archive.repositories.len());
    let missing: BTreeSet<_> = blobs.keys().copied().filter(|digest| !workbench.store.contains(digest)).collect();
    for (lock, _) in archive.repositories.values() {
        workbench.fetch(&missing, &archive.toolchain, lock).await?;
    }
    let bytes: u64 = blobs.values().sum();
    let what = format!(
        "{} of {}, {}",
        counted(blobs.len(), "blob", "blobs"),
        counted(count, "repository", "repositories"),
        size(bytes)
    );
    if context.options.dry_run {
        context.events.message(format!("would write {what}"));
        return Ok(());
    }
    let (output, umask, store) = (request.output.clone(), context.umask, workbench.store.clone());
    let write = move || {
        let name = output.name();
        let io = |source| LockArchiveError::Io { name: name.clone(), doing: "written", source };
        output.write(umask, io, |out| archive.write(&store, &name, out))
    };
    let stage = context.events.stage("write archive", None, 0);
    context.until_interrupted(blocking(write)).await?;
    drop(stage);
    context.events.message(format!("wrote {what}"));
    Ok(())
}

/// Returns the locked repositories that the names choose; each name must choose one.
fn locked(workbench: &Workbench<'_>, names: &[String]) -> Result<Vec<RepositoryName>, CommandError> {
    let chosen = choose(names, workbench.locked()?, |repository| repository).map_err(|name| CommandError::Usage {
        message: format!("no repository `{name}` has a lock"),
        hint: "run `testevo-sandbox lock` for it first".to_owned(),
    })?;
    match chosen.is_empty() {
        false => Ok(chosen),
        true => Err(CommandError::Usage {
            message: "no repository has a lock".to_owned(),
            hint: "run `testevo-sandbox lock` first".to_owned(),
        }),
    }
}

/// An archive of [`export`].
#[derive(Clone, Debug)]
pub enum ImportSource {
    /// A file.
    File(PathBuf),
    /// The bytes on stdin.
    Stdin,
}

/// What is imported, and how.
#[derive(Clone, Debug)]
pub struct ImportRequest {
    /// The archive.
    pub source: ImportSource,
    /// Whether locks that differ are replaced.
    pub replace: bool,
}

/// Takes locks, manifests and bytes from an archive of [`export`]. A present manifest stays, because it may have its user's
/// overrides. A dry run reads nothing.
///
/// # Errors
/// [`LockArchiveError`], [`ManifestError`]; [`MismatchError::OtherLock`] for a lock that differs without
/// [`ImportRequest::replace`]; an interrupt.
pub async fn import(request: ImportRequest, context: &Context) -> Result<(), CommandError> {
    let workbench = &Workbench::open(context)?;
    let ImportRequest { source, replace } = request;
    let name = match &source {
        ImportSource::File(path) => path.display().to_string(),
        ImportSource::Stdin => "-".to_owned(),
    };
    if context.options.dry_run {
        // What an archive holds is known only after its bytes are in the store.
        let store = workbench.store.root().display();
        context.events.message(format!("would read `{name}` and take locks, manifests and bytes into `{store}`"));
        return Ok(());
    }
    let (store, archive_name) = (workbench.store.clone(), name.clone());
    let read = move || Ok(read_archive(&source, &archive_name, &store)?);
    let stage = context.events.stage("read archive", None, 0);
    let archive = context.until_interrupted(blocking(read)).await?;
    drop(stage);
    // Everything is checked before anything is changed.
    for (repository, (_, text)) in &archive.repositories {
        let path = format!("{name}: manifests/{}.toml", repository.file_stem());
        let manifest = RepositoryManifest::parse(Path::new(&path), text)?;
        if manifest.repository != *repository {
            return Err(LockArchiveError::Malformed {
                name,
                reason: format!("`{path}` is the manifest of {}", manifest.repository),
            }
            .into());
        }
        // A present manifest stays, so the archive's has no effect.
        if !workbench.manifest_path(repository).exists() {
            tell_of(&manifest, &RepositoryManifest::overridden_keys(Path::new(&path), text)?, context);
        }
    }
    let mut held = vec![workbench.hold("lock-toolchain").await?];
    for repository in archive.repositories.keys() {
        held.push(workbench.hold(&format!("lock-{}", repository.file_stem())).await?);
    }
    let taken = workbench.taken_toolchain(&archive.toolchain, replace)?;
    for (repository, (lock, _)) in &archive.repositories {
        refuse_other(workbench.repository_lock(repository)?.as_ref(), lock, &workbench.lock_path(repository), replace)?;
    }
    let path = workbench.toolchain_path();
    let toolchain = present(ToolchainLock::load(&path).map_err(CommandError::from))?;
    workbench.replace_lock(toolchain.as_ref(), &taken, &path)?;
    for (repository, (lock, manifest)) in &archive.repositories {
        let path = workbench.manifest_path(repository);
        // A present manifest may contain its user's overrides.
        if !path.exists() {
            let write = || {
                fs::create_dir_all(workbench.data_dir.join("manifests"))?;
                write_atomically(&path, manifest.as_bytes())
            };
            write().map_err(ManifestError::Io)?;
        }
        let present = workbench.repository_lock(repository)?;
        workbench.replace_lock(present.as_ref(), lock, &workbench.lock_path(repository))?;
    }
    let repositories = counted(archive.repositories.len(), "repository", "repositories");
    context.events.message(format!("took {} of {repositories}", counted(archive.blobs().len(), "blob", "blobs")));
    Ok(())
}

fn read_archive(source: &ImportSource, name: &str, store: &Store) -> Result<LockArchive, LockArchiveError> {
    match source {
        ImportSource::Stdin => LockArchive::read(&mut io::stdin().lock(), name, store),
        ImportSource::File(path) => {
            let io = |source| LockArchiveError::Io { name: name.to_owned(), doing: "read", source };
            let file = fs::File::open(path).map_err(io)?;
            LockArchive::read(&mut io::BufReader::with_capacity(1 << 20, file), name, store)
        }
    }
}

/// Warns of the parts of an untrusted manifest that do not follow from published data.
fn tell_of(manifest: &RepositoryManifest, overridden: &[String], context: &Context) {
    let (name, url) = (&manifest.repository, &manifest.clone_url);
    if url.scheme() != "https" {
        context.events.warning(format!("the archive has {name} cloned from {url}"));
    }
    if !overridden.is_empty() {
        let keys = overridden.join("`, `");
        context.events.warning(format!("the archive's manifest of {name} overrides `{keys}`"));
    }
}

/// Refuses a lock that differs from the one that is there, unless it is to be replaced.
///
/// # Errors
/// [`MismatchError::OtherLock`].
pub(super) fn refuse_other<L: LockFile + PartialEq>(
    present: Option<&L>,
    taken: &L,
    path: &Path,
    replace: bool,
) -> Result<(), CommandError> {
    if replace || present.is_none_or(|present| present == taken) {
        return Ok(());
    }
    Err(MismatchError::OtherLock { path: path.to_owned() }.into())
}
