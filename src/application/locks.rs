//! The lock files of the data directory: which there are, whether they are for their manifests, and how a lock that is
//! resolved anew takes the present one's place.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::workbench::Workbench;
use crate::digest::Digest;
use crate::error::CommandError;
use crate::execution::proof::{self, Proof};
use crate::image::{BuiltImage, Catalog, LockDigests};
use crate::lock::{self, LockFile, LockFileError, MismatchError, RepositoryLock, ToolchainLock};
use crate::manifest::{ManifestError, RepositoryManifest};
use crate::output::counted;
use crate::resolution::repository::{BuildSet, empty};
use crate::task::RepositoryName;

impl Workbench<'_> {
    pub(crate) fn toolchain_path(&self) -> PathBuf {
        self.data_dir.join("locks/toolchain.lock")
    }

    /// Returns the toolchain lock as it was when this command first asked for it.
    pub fn toolchain(&self) -> Result<ToolchainLock, CommandError> {
        if let Some(known) = self.toolchain.get() {
            return Ok(known.clone());
        }
        let loaded = ToolchainLock::load(&self.toolchain_path())?;
        Ok(self.toolchain.get_or_init(|| loaded).clone())
    }

    /// Returns the major versions of the development kits that are locked; none where there is no toolchain lock.
    pub(crate) fn locked_jdks(&self) -> Result<BTreeSet<u32>, CommandError> {
        match self.toolchain() {
            // Without these parts a toolchain has no use for kits.
            Ok(lock) if lock.base.is_empty() || lock.tools_packages.is_empty() => Ok(BTreeSet::new()),
            Ok(lock) => Ok(lock.jdks.iter().map(|kit| kit.major).collect()),
            Err(error) if let Some(LockFileError::Missing { .. }) = error.failure() => Ok(BTreeSet::new()),
            Err(error) => Err(error),
        }
    }

    /// Returns the repository's lock with the sets of build files that it covers for this manifest: none where it was
    /// resolved for another one, or is not there.
    pub(crate) fn covering_lock(&self, manifest: &RepositoryManifest) -> Result<RepositoryLock, CommandError> {
        let mut lock = self.repository_lock(&manifest.repository)?.unwrap_or_else(|| empty(manifest));
        if !lock.is_for(manifest) {
            lock.build_sets.clear();
            lock.jdk = manifest.jdk;
        }
        Ok(lock)
    }

    /// Keeps a lock that is about to be replaced.
    pub(crate) fn keep_history(&self, lock: &impl LockFile) -> Result<(), CommandError> {
        lock.store(&self.data_dir.join(format!("locks/history/{}.lock", lock.digest().hex())))?;
        Ok(())
    }

    pub(crate) fn lock_path(&self, repository: &RepositoryName) -> PathBuf {
        self.data_dir.join("locks").join(format!("{}.lock", repository.file_stem()))
    }

    /// Returns where a lock grows that is to take the present one's place. Nothing but `lock` takes it for a lock.
    fn next_lock_path(&self, repository: &RepositoryName) -> PathBuf {
        self.lock_path(repository).with_added_extension("next")
    }

    pub(crate) fn manifest_path(&self, repository: &RepositoryName) -> PathBuf {
        self.data_dir.join("manifests").join(format!("{}.toml", repository.file_stem()))
    }

    /// Returns the repository's lock; `None` where there is none yet.
    pub(crate) fn repository_lock(&self, repository: &RepositoryName) -> Result<Option<RepositoryLock>, CommandError> {
        present(lock_of(repository, &self.lock_path(repository)))
    }

    /// Returns the lock to build the manifest's repository from.
    pub(crate) fn lock_for(&self, manifest: &RepositoryManifest) -> Result<RepositoryLock, CommandError> {
        let lock = lock_of(&manifest.repository, &self.lock_path(&manifest.repository))?;
        if lock.is_for(manifest) {
            return Ok(lock);
        }
        Err(MismatchError::OtherManifest {
            repository: manifest.repository.clone(),
            difference: match (lock.jdk, manifest.jdk) {
                (found, wanted) if found != wanted => format!("for Java {found}, its manifest now says {wanted}"),
                _ => "with other arguments of Maven than its manifest has now".to_owned(),
            },
        }
        .into())
    }

    /// Returns the lock that is to be completed for a manifest: the present one, or one beside it where everything is to
    /// be resolved anew, because that was asked for or because the present one is for another manifest.
    pub(crate) fn growing_lock(
        &self,
        manifest: &RepositoryManifest,
        anew: bool,
    ) -> Result<LockInProgress, CommandError> {
        let repository = &manifest.repository;
        let replaced = match self.repository_lock(repository)? {
            Some(lock) if lock.is_for(manifest) && !anew => {
                return Ok(LockInProgress { lock, path: self.lock_path(repository), replaced: None });
            }
            None => {
                return Ok(LockInProgress { lock: empty(manifest), path: self.lock_path(repository), replaced: None });
            }
            replaced => replaced,
        };
        let path = self.next_lock_path(repository);
        let lock = match present(lock_of(repository, &path))?.filter(|lock| lock.is_for(manifest)) {
            Some(lock) => {
                let name = path.display();
                self.context.events.message(format!("`{name}` is gone on with; without it all begins anew"));
                lock
            }
            None => empty(manifest),
        };
        Ok(LockInProgress { lock, path, replaced })
    }

    /// Has a lock that was resolved anew take the present one's place, unless it lacks one of `sets` that the present one
    /// has for the same manifest.
    pub(crate) fn finish_lock(
        &self,
        growing: &LockInProgress,
        manifest: &RepositoryManifest,
        sets: &[BuildSet],
    ) -> Result<(), CommandError> {
        let Some(replaced) = &growing.replaced else { return Ok(()) };
        let repository = &manifest.repository;
        let lost = growing.lost(manifest, sets);
        if lost > 0 {
            let sets = counted(lost, "set of build files", "sets of build files");
            self.context.events.warning(format!(
                "the present lock of {repository} stays: it has {sets} that can't be resolved anew; `{}` has the rest",
                growing.path.display()
            ));
            return Ok(());
        }
        if *replaced != growing.lock {
            self.keep_history(replaced)?;
        }
        growing.lock.store(&growing.path)?;
        fs_err::rename(&growing.path, self.lock_path(repository)).map_err(LockFileError::Io)?;
        Ok(())
    }

    /// Returns the repositories that have a manifest and a lock, sorted.
    pub(crate) fn locked(&self) -> Result<Vec<RepositoryName>, CommandError> {
        let mut locked = Vec::new();
        let entries = fs_err::read_dir(self.data_dir.join("manifests")).map_err(ManifestError::Io)?;
        for entry in entries {
            let path = entry.map_err(ManifestError::Io)?.path();
            // What a killed writer left unfinished has a hidden name.
            let hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
            if !hidden && path.extension().is_some_and(|extension| extension == "toml") {
                let repository = RepositoryManifest::load(&path)?.repository;
                if path != self.manifest_path(&repository) {
                    let wanted = path.file_stem().map(|stem| stem.to_string_lossy().replacen("__", "/", 1));
                    let wanted = wanted.unwrap_or_default();
                    return Err(MismatchError::OtherRepository { path, found: repository, wanted }.into());
                }
                if self.lock_path(&repository).is_file() {
                    locked.push(repository);
                }
            }
        }
        locked.sort();
        Ok(locked)
    }

    /// Tells whether the image was shown to work for all build sets of its repository's present lock.
    pub(crate) fn is_proven(&self, built: &BuiltImage) -> Result<bool, CommandError> {
        let path = Catalog::open(&self.data_dir)?.proof_path(&built.image.config_digest);
        let Some(proof) = proof::load(&path)?.filter(|proof| proof.config_digest == built.image.config_digest) else {
            return Ok(false);
        };
        match self.repository_lock_digest(&built.repository) {
            Ok(digest) if proof.lock == Some(digest) => return Ok(true),
            Err(error) if let Some(LockFileError::Missing { .. }) = error.failure() => return Ok(false),
            digest => digest?,
        };
        self.is_covered(built, &proof)
    }

    /// Tells whether the proof of an image covers all build sets of its repository's present lock.
    pub(crate) fn is_covered(&self, built: &BuiltImage, proof: &Proof) -> Result<bool, CommandError> {
        Ok(self.repository_lock(&built.repository)?.is_some_and(|lock| proof.covers(&lock.build_sets)))
    }

    /// Returns the digests of what an image is made from: of the toolchain the parts that it has, so that another
    /// development kit in the lock changes nothing for it; of the repository's lock the bytes.
    pub(crate) fn lock_digests(&self, repository: &RepositoryName, jdk: u32) -> Result<LockDigests, CommandError> {
        let repository = self.repository_lock_digest(repository)?;
        let mut known = self.toolchain_digests.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(toolchain) = known.get(&jdk) {
            return Ok(LockDigests { toolchain: *toolchain, repository });
        }
        let mut parts = self.toolchain()?;
        parts.jdks.retain(|kit| kit.major == jdk);
        parts.indexes.clear();
        let toolchain = parts.digest();
        known.insert(jdk, toolchain);
        Ok(LockDigests { toolchain, repository })
    }

    fn repository_lock_digest(&self, repository: &RepositoryName) -> Result<Digest, CommandError> {
        Ok(Digest::of(lock::read(&self.lock_path(repository))?.as_bytes()))
    }
}

/// A lock that is being completed.
pub(crate) struct LockInProgress {
    /// What it names so far.
    pub(crate) lock: RepositoryLock,
    /// Where it is saved meanwhile.
    pub(crate) path: PathBuf,
    /// The lock whose place it takes in the end.
    replaced: Option<RepositoryLock>,
}

impl LockInProgress {
    /// Returns how many of the sets the replaced lock has for this manifest and the new one lacks.
    fn lost(&self, manifest: &RepositoryManifest, sets: &[BuildSet]) -> usize {
        let Some(replaced) = self.replaced.as_ref().filter(|replaced| replaced.is_for(manifest)) else { return 0 };
        let has = |lock: &RepositoryLock, set: &BuildSet| lock.build_sets.contains(&set.id);
        sets.iter().filter(|set| has(replaced, set) && !has(&self.lock, set)).count()
    }
}

/// Reads a repository's lock. Its name alone doesn't say whose it is: files get copied.
fn lock_of(repository: &RepositoryName, path: &Path) -> Result<RepositoryLock, CommandError> {
    let lock = RepositoryLock::load(path)?;
    match lock.repository == *repository {
        true => Ok(lock),
        false => Err(MismatchError::OtherRepository {
            path: path.to_owned(),
            found: lock.repository,
            wanted: repository.to_string(),
        }
        .into()),
    }
}

fn present<L>(loaded: Result<L, CommandError>) -> Result<Option<L>, CommandError> {
    match loaded {
        Ok(lock) => Ok(Some(lock)),
        Err(error) if let Some(LockFileError::Missing { .. }) = error.failure() => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
