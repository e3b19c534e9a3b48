//! Turns published task data into manifests and tasks. Everything is read and checked before anything is written.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::Context;
use crate::data_dir::{write_atomically, write_for_caller};
use crate::error::CommandError;
use crate::manifest::{ManifestError, RepositoryManifest, Written};
use crate::task::file::{self, Changes, TASK_FILE_SCHEMA, TaskFile, TaskFileError};
use crate::task::published::{self, PublishedRepository};
use crate::task::{RepositoryName, Track};

/// What is imported, and how.
#[derive(Clone, Debug, Default)]
pub struct ImportRequest {
    /// Published files, or directories of them.
    pub data: Vec<PathBuf>,
    /// The directory for manifests; `None` for the one that other commands read.
    pub manifests: Option<PathBuf>,
    /// Whether tasks that are not among the given ones are removed from these repositories.
    pub replace: bool,
}

/// The result of an import.
pub struct Imported {
    /// The result for each repository.
    pub repositories: Vec<ImportedRepository>,
    /// The sums.
    pub summary: ImportSummary,
}

/// The result for one repository.
#[derive(Serialize)]
pub struct ImportedRepository {
    /// The repository.
    pub repository: RepositoryName,
    /// The published version of Java.
    pub java_version: u32,
    /// The major version of the development kit.
    pub jdk: u32,
    /// Number of given tasks of the update track.
    pub test_update: usize,
    /// Number of given tasks of the generation track.
    pub test_generation: usize,
    /// How the manifest was written.
    pub manifest: Written,
    /// How tasks changed.
    #[serde(flatten)]
    pub changes: Changes,
}

/// The result for all repositories together.
#[derive(Serialize)]
pub struct ImportSummary {
    /// Version of this value's schema.
    pub schema: u32,
    /// Number of repositories.
    pub repositories: usize,
    /// Number of given tasks.
    pub tasks: usize,
    /// Number of given tasks of the update track.
    pub test_update: usize,
    /// Number of given tasks of the generation track.
    pub test_generation: usize,
    /// How tasks changed.
    #[serde(flatten)]
    pub changes: Changes,
}

/// The files that will be written for one repository.
struct Prepared<'a> {
    published: &'a PublishedRepository,
    manifest_path: PathBuf,
    manifest: String,
    written: Written,
    jdk: u32,
    changes: Changes,
}

/// Executes the request. A dry run writes nothing.
///
/// # Errors
/// [`CommandError`] of published data, manifests and task files.
pub fn import(request: &ImportRequest, context: &Context) -> Result<Imported, CommandError> {
    let repositories = published::read(&request.data)?;
    let data_dir = context.data_dir()?;
    let manifests = request.manifests.clone().unwrap_or_else(|| data_dir.join("manifests"));
    let tasks = data_dir.join("tasks");
    // The present files decide what is written, so no other process may write in between.
    let waiting = |owner: &str| context.events.message(format!("waiting for {owner}, which imports"));
    let _held = if context.options.dry_run { None } else { Some(data_dir.lock("import", waiting)?) };
    let mut prepared = Vec::new();
    let mut files = Vec::new();
    for published in &repositories {
        let path = tasks.join(format!("{}.json", published.name.file_stem()));
        let known = match TaskFile::load_of(&path, &published.name) {
            // The file is replaced with all its tasks.
            Err(TaskFileError::Malformed { .. } | TaskFileError::UnknownSchema { .. }) if request.replace => Vec::new(),
            known => known?,
        };
        let (merged, changes) = file::merge(known, &published.tasks, request.replace);
        files.push((path, TaskFile { schema: TASK_FILE_SCHEMA, repository: published.name.clone(), tasks: merged }));
        prepared.push(prepare(published, &manifests, changes)?);
    }
    file::check_ids(&tasks, &files)?;
    for one in repositories.iter().filter(|one| one.is_cloned_from_elsewhere) {
        let (name, url) = (&one.name, &one.clone_url);
        context.events.warning(format!("{name} is cloned from {url}: neither its `github_url` nor its name says so"));
    }
    if context.options.dry_run {
        context.events.message("nothing was written: this is a dry run");
    } else {
        if request.manifests.is_some() {
            context.umask.create_directory(&manifests).map_err(ManifestError::from)?;
        }
        for one in prepared.iter().filter(|one| one.written != Written::Unchanged) {
            let (path, bytes) = (&one.manifest_path, one.manifest.as_bytes());
            let written = match &request.manifests {
                Some(_) => write_for_caller(path, bytes, context.umask),
                None => write_atomically(path, bytes),
            };
            written.map_err(ManifestError::from)?;
        }
        for (path, file) in &files {
            write_atomically(path, &file.render()?).map_err(TaskFileError::from)?;
        }
        if let Some(elsewhere) = &request.manifests {
            let (written, read) = (elsewhere.display(), data_dir.join("manifests"));
            let read = read.display();
            context.events.message(format!("the manifests are in `{written}`; other commands read those in `{read}`"));
        }
    }
    Ok(imported(&prepared))
}

fn prepare<'a>(
    published: &'a PublishedRepository,
    manifests: &Path,
    changes: Changes,
) -> Result<Prepared<'a>, CommandError> {
    let stem = published.name.file_stem();
    let manifest = RepositoryManifest::of_published(published)?;
    let manifest_path = manifests.join(format!("{stem}.toml"));
    let (text, written) = manifest.render_over(&manifest_path)?;
    Ok(Prepared { published, manifest_path, manifest: text, written, jdk: manifest.jdk, changes })
}

fn imported(prepared: &[Prepared<'_>]) -> Imported {
    let count =
        |published: &PublishedRepository, track| published.tasks.iter().filter(|task| task.track == track).count();
    let repositories: Vec<ImportedRepository> = prepared
        .iter()
        .map(|one| ImportedRepository {
            repository: one.published.name.clone(),
            java_version: one.published.java_version,
            jdk: one.jdk,
            test_update: count(one.published, Track::TestUpdate),
            test_generation: count(one.published, Track::TestGeneration),
            manifest: one.written,
            changes: one.changes,
        })
        .collect();
    let mut changes = Changes::default();
    for one in &repositories {
        changes += one.changes;
    }
    let summary = ImportSummary {
        schema: 1,
        repositories: repositories.len(),
        tasks: prepared.iter().map(|one| one.published.tasks.len()).sum(),
        test_update: repositories.iter().map(|one| one.test_update).sum(),
        test_generation: repositories.iter().map(|one| one.test_generation).sum(),
        changes,
    };
    Imported { repositories, summary }
}
