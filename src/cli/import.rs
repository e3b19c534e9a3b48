//! `import`: published task data becomes manifests and tasks. Everything is read and checked before anything is
//! written.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::Context;
use crate::data_dir::{write_atomically, write_for_caller};
use crate::error::CommandError;
use crate::manifest::{ManifestError, RepositoryManifest, Written};
use crate::output::{OutputFormat, Table, counted};
use crate::task::file::{self, Changes, TASK_FILE_SCHEMA, TaskFile, TaskFileError};
use crate::task::published::{self, PublishedRepository};
use crate::task::{RepositoryName, Track};

/// Arguments of `import`.
#[derive(Debug, Args)]
pub(super) struct ImportArguments {
    /// Published files (.json per repository, or .jsonl), or directories of them
    #[arg(required = true, value_name = "DATA")]
    data: Vec<PathBuf>,
    /// Write manifests to this directory, to be looked at or kept; other commands read those of the data directory
    #[arg(long, value_name = "DIRECTORY")]
    manifests: Option<PathBuf>,
    /// Have exactly the given tasks of these repositories; without it tasks of earlier imports stay, and a given one
    /// replaces an earlier one of its id
    #[arg(long)]
    replace: bool,
    /// How results are written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: OutputFormat,
}

#[derive(Serialize)]
struct ImportedRepository<'a> {
    repository: &'a RepositoryName,
    java_version: u32,
    jdk: u32,
    test_update: usize,
    test_generation: usize,
    manifest: Written,
    #[serde(flatten)]
    changes: Changes,
}

#[derive(Serialize)]
struct Summary {
    schema: u32,
    repositories: usize,
    tasks: usize,
    test_update: usize,
    test_generation: usize,
    #[serde(flatten)]
    changes: Changes,
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

pub(super) fn run(arguments: &ImportArguments, context: &Context) -> Result<(), CommandError> {
    let repositories = published::read(&arguments.data)?;
    let data_dir = context.data_dir()?;
    let manifests = arguments.manifests.clone().unwrap_or_else(|| data_dir.join("manifests"));
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
            Err(TaskFileError::Malformed { .. } | TaskFileError::UnknownSchema { .. }) if arguments.replace => {
                Vec::new()
            }
            known => known?,
        };
        let (merged, changes) = file::merge(known, &published.tasks, arguments.replace);
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
        if arguments.manifests.is_some() {
            context.umask.create_directory(&manifests).map_err(ManifestError::from)?;
        }
        for one in prepared.iter().filter(|one| one.written != Written::Unchanged) {
            let (path, bytes) = (&one.manifest_path, one.manifest.as_bytes());
            let written = match &arguments.manifests {
                Some(_) => write_for_caller(path, bytes, context.umask),
                None => write_atomically(path, bytes),
            };
            written.map_err(ManifestError::from)?;
        }
        for (path, file) in &files {
            write_atomically(path, &file.render()?).map_err(TaskFileError::from)?;
        }
        if let Some(elsewhere) = &arguments.manifests {
            let (written, read) = (elsewhere.display(), data_dir.join("manifests"));
            let read = read.display();
            context.events.message(format!("the manifests are in `{written}`; other commands read those in `{read}`"));
        }
    }
    show(&prepared, arguments.format, context)
}

fn prepare<'a>(
    published: &'a PublishedRepository,
    manifests: &std::path::Path,
    changes: Changes,
) -> Result<Prepared<'a>, CommandError> {
    let stem = published.name.file_stem();
    let manifest = RepositoryManifest::of_published(published)?;
    let manifest_path = manifests.join(format!("{stem}.toml"));
    let (text, written) = manifest.render_over(&manifest_path)?;
    Ok(Prepared { published, manifest_path, manifest: text, written, jdk: manifest.jdk, changes })
}

fn show(prepared: &[Prepared<'_>], format: OutputFormat, context: &Context) -> Result<(), CommandError> {
    let count =
        |published: &PublishedRepository, track| published.tasks.iter().filter(|task| task.track == track).count();
    let rows: Vec<ImportedRepository<'_>> = prepared
        .iter()
        .map(|one| ImportedRepository {
            repository: &one.published.name,
            java_version: one.published.java_version,
            jdk: one.jdk,
            test_update: count(one.published, Track::TestUpdate),
            test_generation: count(one.published, Track::TestGeneration),
            manifest: one.written,
            changes: one.changes,
        })
        .collect();
    let mut changes = Changes::default();
    for row in &rows {
        changes += row.changes;
    }
    let summary = Summary {
        schema: 1,
        repositories: rows.len(),
        tasks: prepared.iter().map(|one| one.published.tasks.len()).sum(),
        test_update: rows.iter().map(|row| row.test_update).sum(),
        test_generation: rows.iter().map(|row| row.test_generation).sum(),
        changes,
    };
    match format {
        OutputFormat::Json => {
            rows.iter().try_for_each(|row| context.output.json(row))?;
            context.output.json(&summary)
        }
        OutputFormat::Text => {
            let mut table = Table::new(["repository", "jdk", "update", "generation", "manifest"]);
            for row in &rows {
                let manifest = match row.manifest {
                    Written::New => "new",
                    Written::Updated => "updated",
                    Written::Unchanged => "unchanged",
                };
                table.row([
                    row.repository.as_str(),
                    &row.jdk.to_string(),
                    &row.test_update.to_string(),
                    &row.test_generation.to_string(),
                    manifest,
                ]);
            }
            context.output.table(&table)?;
            let Summary { repositories, tasks, test_update, test_generation, .. } = summary;
            let Changes { new, changed, kept, removed } = changes;
            let removed = if removed > 0 { format!(", {removed} removed") } else { String::new() };
            context.output.line(&format!(
                "{} ({test_update} update, {test_generation} generation) of {}: {new} new, {changed} changed, {kept} \
                 kept{removed}",
                counted(tasks, "task", "tasks"),
                counted(repositories, "repository", "repositories")
            ))
        }
    }
}
