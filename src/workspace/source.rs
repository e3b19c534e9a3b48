//! Finds a repository: in the user's mirror, or in a clone of our own that `git` creates and completes.

use std::path::{Path, PathBuf};

use super::WorkspaceError;
use super::git_command;
use super::tree::Repository;
use crate::data_dir::{DataDir, HeldLock};
use crate::event::EventSink;
use crate::task::{CloneUrl, RepositoryName, Revision};
use crate::thread::blocking;

/// A path with placeholders for a repository's owner and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorTemplate(String);

impl MirrorTemplate {
    /// Parses a template such as `/srv/mirrors/{owner}/{name}.git`.
    ///
    /// # Errors
    /// [`WorkspaceError::MirrorTemplate`] if all repositories would have one path.
    pub fn new(template: &str) -> Result<Self, WorkspaceError> {
        if template.contains("{name}") {
            Ok(Self(template.to_owned()))
        } else {
            Err(WorkspaceError::MirrorTemplate { template: template.to_owned() })
        }
    }

    /// Returns the path of a repository in the mirror.
    pub fn path(&self, repository: &RepositoryName) -> PathBuf {
        // In this order, because an owner or name can't contain braces and so no inserted text looks like a
        // placeholder.
        PathBuf::from(self.0.replace("{owner}", repository.owner()).replace("{name}", repository.name()))
    }
}

/// The sources of repositories.
#[derive(Clone)]
pub struct Sources {
    /// Local repositories, which are never changed. Without a mirror, clones in the data directory are used.
    pub mirror: Option<MirrorTemplate>,
    /// The data directory, for clones.
    pub data_dir: DataDir,
    /// Whether fetching is disabled.
    pub offline: bool,
    /// Receives messages about fetching.
    pub events: EventSink,
}

impl Sources {
    /// Opens a repository that has all of `revisions`. Missing commits of a clone are fetched from `url`; a mirror is
    /// never changed. Dropping the future ends its fetch.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub async fn open(
        &self,
        repository: &RepositoryName,
        url: &CloneUrl,
        revisions: &[Revision],
    ) -> Result<Repository, WorkspaceError> {
        let Some(mirror) = &self.mirror else { return self.open_clone(repository, url, revisions).await };
        let path = mirror.path(repository);
        let (repository, revisions) = (repository.clone(), revisions.to_vec());
        blocking(move || {
            if !path.is_dir() {
                return Err(WorkspaceError::MirrorMissing { repository, path });
            }
            whole(&repository, path, &revisions)
        })
        .await
    }

    async fn open_clone(
        &self,
        repository: &RepositoryName,
        url: &CloneUrl,
        revisions: &[Revision],
    ) -> Result<Repository, WorkspaceError> {
        let path = self.data_dir.join("repositories").join(format!("{}.git", repository.file_stem()));
        let _lock = self.lock(repository).await?;
        let look = (repository.clone(), path.clone(), revisions.to_vec());
        let (opened, wanted) = blocking::<_, WorkspaceError>(move || {
            let (repository, path, revisions) = look;
            let opened = existing(&repository, &path)?;
            let wanted = opened.as_ref().map(|opened| missing(opened, &revisions)).transpose()?;
            Ok((opened, wanted.unwrap_or(revisions)))
        })
        .await?;
        if let Some(opened) = opened.filter(|_| wanted.is_empty()) {
            return Ok(opened);
        }
        if self.offline {
            let revision = match wanted.into_iter().next() {
                Some(revision) => revision,
                // No revision was requested, and there is no clone.
                None => return Err(WorkspaceError::MirrorMissing { repository: repository.clone(), path }),
            };
            return Err(WorkspaceError::Offline { repository: repository.clone(), revision });
        }
        self.events.message(format!("fetching {} commits of {repository}", wanted.len()));
        let stage = self.events.stage("git fetch", None, 0);
        stage.during(repository.as_str(), git_command::fetch(repository, url, &path, &wanted)).await?;
        let (repository, revisions) = (repository.clone(), revisions.to_vec());
        blocking(move || whole(&repository, path, &revisions)).await
    }

    /// Takes the lock on a repository's clone, and waits if another process has it.
    async fn lock(&self, repository: &RepositoryName) -> Result<HeldLock, WorkspaceError> {
        let (data_dir, events, repository) = (self.data_dir.clone(), self.events.clone(), repository.clone());
        let name = format!("repository-{}", repository.file_stem());
        let waiting = move |owner: &str| events.message(format!("waiting for {owner}, which fetches {repository}"));
        blocking(move || Ok(data_dir.lock(&name, waiting)?)).await
    }
}

/// Opens a repository that must have all of these commits.
fn whole(repository: &RepositoryName, path: PathBuf, revisions: &[Revision]) -> Result<Repository, WorkspaceError> {
    let opened = Repository::open(repository.clone(), &path)?;
    match missing(&opened, revisions)?.into_iter().next() {
        None => Ok(opened),
        Some(revision) => Err(WorkspaceError::RevisionMissing { repository: repository.clone(), revision, path }),
    }
}

fn existing(repository: &RepositoryName, path: &Path) -> Result<Option<Repository>, WorkspaceError> {
    // A run that was killed while cloning leaves a directory without these.
    if !path.join("HEAD").is_file() || !path.join("objects").is_dir() {
        return Ok(None);
    }
    Repository::open(repository.clone(), path).map(Some)
}

fn missing(repository: &Repository, revisions: &[Revision]) -> Result<Vec<Revision>, WorkspaceError> {
    let mut missing = Vec::new();
    for revision in revisions {
        if !repository.has(revision)? && !missing.contains(revision) {
            missing.push(revision.clone());
        }
    }
    Ok(missing)
}
