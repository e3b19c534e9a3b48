//! The lock files of the data directory: listing, comparison with manifests, and replacement by new locks.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::workbench::{Workbench, present};
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

    /// Returns the toolchain lock as this command first read it.
    pub fn toolchain(&self) -> Result<ToolchainLock, CommandError> {
        if let Some(known) = self.toolchain.get() {
            return Ok(known.clone());
        }
        let loaded = ToolchainLock::load(&self.toolchain_path())?;
        Ok(self.toolchain.get_or_init(|| loaded).clone())
    }

    /// Returns the major versions of the locked development kits; none without a toolchain lock.
    pub(crate) fn locked_jdks(&self) -> Result<BTreeSet<u32>, CommandError> {
        // Without base or tools no image can be composed, whatever kits there are.
        let lock = present(self.toolchain())?.filter(|lock| !lock.base.is_empty() && !lock.tools_packages.is_empty());
        Ok(lock.iter().flat_map(|lock| &lock.jdks).map(|kit| kit.major).collect())
    }

    /// Returns the repository's lock with the sets of build files that it covers for this manifest. There are none if
    /// the lock was resolved for another manifest or does not exist.
    pub(crate) fn covering_lock(&self, manifest: &RepositoryManifest) -> Result<RepositoryLock, CommandError> {
        let mut lock = self.repository_lock(&manifest.repository)?.unwrap_or_else(|| empty(manifest));
        if !lock.is_for(manifest) {
            lock.build_sets.clear();
            lock.jdk = manifest.jdk;
        }
        Ok(lock)
    }

    /// Stores a lock. A different lock that it replaces is copied to the history.
    pub(crate) fn replace_lock<L: LockFile + PartialEq>(
        &self,
        present: Option<&L>,
        lock: &L,
        path: &Path,
    ) -> Result<(), CommandError> {
        match present {
            Some(present) if present == lock => return Ok(()),
            Some(present) => self.keep_history(present)?,
            None => {}
        }
        Ok(lock.store(path)?)
    }

    /// Returns the toolchain lock to keep where another data directory's is taken: that one, with the tools of agents that
    /// only the present one has.
    ///
    /// # Errors
    /// [`MismatchError::OtherLock`] if the present lock differs in more, unless it is to be replaced.
    pub(crate) fn taken_toolchain(&self, taken: &ToolchainLock, replace: bool) -> Result<ToolchainLock, CommandError> {
        let path = self.toolchain_path();
        let Some(present) = present(ToolchainLock::load(&path).map_err(CommandError::from))? else {
            return Ok(taken.clone());
        };
        match present.united(taken) {
            Some(united) => Ok(united),
            None if replace => Ok(taken.clone()),
            None => Err(MismatchError::OtherLock { path }.into()),
        }
    }

    /// Copies a lock to the history before it is replaced.
    fn keep_history(&self, lock: &impl LockFile) -> Result<(), CommandError> {
        lock.store(&self.data_dir.join(format!("locks/history/{}.lock", lock.digest().hex())))?;
        Ok(())
    }

    pub(crate) fn lock_path(&self, repository: &RepositoryName) -> PathBuf {
        self.data_dir.join("locks").join(format!("{}.lock", repository.file_stem()))
    }

    /// Returns the path of an unfinished lock that will replace the present one. Only `lock` reads it.
    fn next_lock_path(&self, repository: &RepositoryName) -> PathBuf {
        self.lock_path(repository).with_added_extension("next")
    }

    pub(crate) fn manifest_path(&self, repository: &RepositoryName) -> PathBuf {
        self.data_dir.join("manifests").join(format!("{}.toml", repository.file_stem()))
    }

    /// Returns the repository's lock; `None` if it does not exist.
    pub(crate) fn repository_lock(&self, repository: &RepositoryName) -> Result<Option<RepositoryLock>, CommandError> {
        present(lock_of(repository, &self.lock_path(repository)))
    }

    /// Returns the lock for building the manifest's repository.
    pub(crate) fn lock_for(&self, manifest: &RepositoryManifest) -> Result<RepositoryLock, CommandError> {
        let lock = lock_of(&manifest.repository, &self.lock_path(&manifest.repository))?;
        if lock.is_for(manifest) {
            return Ok(lock);
        }
        Err(MismatchError::OtherManifest {
            repository: manifest.repository.clone(),
            difference: match (lock.jdk, manifest.jdk) {
                (found, wanted) if found != wanted => format!("for Java {found}, its manifest now says {wanted}"),
                _ if lock.maven_arguments == manifest.build.overridden_arguments() => {
                    "with other extension jars than its manifest has now".to_owned()
                }
                _ => "with other arguments of Maven than its manifest has now".to_owned(),
            },
        }
        .into())
    }

    /// Returns the lock to complete for a manifest. It is the present lock, or an unfinished one beside it. The latter
    /// is used if `anew` is set, or the present lock is for another manifest.
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
                self.context.events.message(format!("resuming the unfinished lock `{name}`; remove it to start over"));
                lock
            }
            None => empty(manifest),
        };
        Ok(LockInProgress { lock, path, replaced })
    }

    /// Replaces the present lock by the new one. It stays if the new one lacks one of `sets` that the present one has
    /// for the same manifest.
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
            // Unfinished files of killed writers have hidden names.
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

    /// Tells whether the image is proven for all build sets of its repository's present lock.
    pub(crate) fn is_proven(&self, built: &BuiltImage) -> Result<bool, CommandError> {
        let path = Catalog::open(&self.data_dir)?.proof_path(&built.image.config_digest);
        let Some(proof) = proof::load(&path)?.filter(|proof| proof.config_digest == built.image.config_digest) else {
            return Ok(false);
        };
        match present(self.repository_lock_digest(&built.repository))? {
            None => Ok(false),
            Some(digest) if proof.lock == Some(digest) => Ok(true),
            Some(_) => self.is_covered(built, &proof),
        }
    }

    /// Tells whether the proof of an image covers all build sets of its repository's present lock.
    pub(crate) fn is_covered(&self, built: &BuiltImage, proof: &Proof) -> Result<bool, CommandError> {
        Ok(self.repository_lock(&built.repository)?.is_some_and(|lock| proof.covers(&lock.build_sets)))
    }

    /// Returns the digests of an image's inputs. Only those parts of the toolchain count that the image contains, so
    /// that another development kit in the lock changes nothing. Of the repository's lock, all bytes count.
    pub(crate) fn lock_digests(&self, owner: &RepositoryName, jdk: u32) -> Result<LockDigests, CommandError> {
        let repository = self.repository_lock_digest(owner)?;
        let mut known = self.toolchain_digests.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(toolchain) = known.get(&jdk) {
            return Ok(LockDigests { toolchain: *toolchain, repository });
        }
        let mut parts = self.toolchain().map_err(|error| needed_by(owner, error))?;
        parts.jdks.retain(|kit| kit.major == jdk);
        parts.indexes.clear();
        parts.agent_packages.clear();
        let toolchain = parts.digest();
        known.insert(jdk, toolchain);
        Ok(LockDigests { toolchain, repository })
    }

    fn repository_lock_digest(&self, repository: &RepositoryName) -> Result<Digest, CommandError> {
        let text = lock::read(&self.lock_path(repository)).map_err(CommandError::from);
        Ok(Digest::of(text.map_err(|error| needed_by(repository, error))?.as_bytes()))
    }
}

/// An unfinished lock.
pub(crate) struct LockInProgress {
    /// Its content so far.
    pub(crate) lock: RepositoryLock,
    /// Its present path.
    pub(crate) path: PathBuf,
    /// The lock that it replaces in the end.
    replaced: Option<RepositoryLock>,
}

impl LockInProgress {
    /// Returns the number of sets that the replaced lock has for this manifest and the new one lacks.
    fn lost(&self, manifest: &RepositoryManifest, sets: &[BuildSet]) -> usize {
        let Some(replaced) = self.replaced.as_ref().filter(|replaced| replaced.is_for(manifest)) else { return 0 };
        let has = |lock: &RepositoryLock, set: &BuildSet| lock.build_sets.contains(&set.id);
        sets.iter().filter(|set| has(replaced, set) && !has(&self.lock, set)).count()
    }
}

/// Returns the error with the repository that needs the missing lock, which its hint names.
fn needed_by(repository: &RepositoryName, error: CommandError) -> CommandError {
    match error.failure() {
        Some(LockFileError::Missing { path, .. }) => {
            LockFileError::Missing { path: path.clone(), repository: Some(repository.clone()) }.into()
        }
        _ => error,
    }
}

/// Reads a repository's lock. Files get copied, so the repository in the file is compared with its name.
fn lock_of(repository: &RepositoryName, path: &Path) -> Result<RepositoryLock, CommandError> {
    let lock = RepositoryLock::load(path).map_err(|error| needed_by(repository, error.into()))?;
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

#[cfg(test)]
mod tests;
