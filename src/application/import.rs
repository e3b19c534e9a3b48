//! Makes manifests and tasks of published task data. Everything is read and checked before anything is written.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::Context;
use crate::data_dir::{write_atomically, write_for_caller};
use crate::error::CommandError;
use crate::manifest::{ManifestError, RepositoryManifest, Written};
use crate::task::file::{self, Changes, TASK_FILE_SCHEMA, TaskFile, TaskFileError};
use crate::task::published::{self, PublishedRepository};
use crate::task::{RepositoryName, Track};

/// What is to be imported, and how.
#[derive(Clone, Debug, Default)]
pub struct ImportRequest {
    /// Published files, or directories of them.
    pub data: Vec<PathBuf>,
    /// Where manifests are written; `None` is where other commands read them.
    pub manifests: Option<PathBuf>,
    /// Whether these repositories have exactly the given tasks afterwards.
    pub replace: bool,
}

/// What was imported.
pub struct Imported {
    /// By repository.
    pub repositories: Vec<ImportedRepository>,
    /// Together.
    pub summary: ImportSummary,
}

/// What came of one repository.
#[derive(Serialize)]
pub struct ImportedRepository {
    /// The repository.
    pub repository: RepositoryName,
    /// The published version of Java.
    pub java_version: u32,
    /// The major version of the development kit.
    pub jdk: u32,
    /// Given tasks of the update track.
    pub test_update: usize,
    /// Given tasks of the generation track.
    pub test_generation: usize,
    /// What became of the manifest.
    pub manifest: Written,
    /// What became of tasks.
    #[serde(flatten)]
    pub changes: Changes,
}

/// What came of all repositories together.
#[derive(Serialize)]
pub struct ImportSummary {
    /// The version of this value's shape.
    pub schema: u32,
    /// Repositories.
    pub repositories: usize,
    /// Given tasks.
    pub tasks: usize,
    /// Given tasks of the update track.
    pub test_update: usize,
    /// Given tasks of the generation track.
    pub test_generation: usize,
    /// What became of tasks.
    #[serde(flatten)]
    pub changes: Changes,
}

/// What is about to be written for one repository.
struct Prepared<'a> {
    published: &'a PublishedRepository,
    manifest_path: PathBuf,
    manifest: String,
    written: Written,
    jdk: u32,
    changes: Changes,
}

/// Does what the request says; a dry run does all but write.
///
/// # Errors
/// [`CommandError`] of the kinds for published data, manifests and task files.
pub fn import(request: &ImportRequest, context: &Context) -> Result<Imported, CommandError> {
    let repositories = published::read(&request.data)?;
    let data_dir = context.data_dir()?;
    let manifests = request.manifests.clone().unwrap_or_else(|| data_dir.join("manifests"));
    let tasks = data_dir.join("tasks");
    // What is there decides what is written: nobody may write between.
    let waiting = |owner: &str| context.events.message(format!("waiting for {owner}, which imports"));
    let _held = if context.options.dry_run { None } else { Some(data_dir.lock("import", waiting)?) };
    let mut prepared = Vec::new();
    let mut files = Vec::new();
    for published in &repositories {
        let path = tasks.join(format!("{}.json", published.name.file_stem()));
        let known = match TaskFile::load_of(&path, &published.name) {
            // It is given up with all that is in it.
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
