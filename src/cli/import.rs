//! `import`: published task data becomes manifests and tasks. Everything is read and checked before anything is
//! written.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::Context;
use crate::data_dir::write_atomically;
use crate::error::CommandError;
use crate::manifest::{ManifestError, RepositoryManifest, Written};
use crate::output::{OutputFormat, Table, counted};
use crate::task::file::{TASK_FILE_SCHEMA, TaskFile, TaskFileError};
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
}

#[derive(Serialize)]
struct Summary {
    schema: u32,
    repositories: usize,
    tasks: usize,
    test_update: usize,
    test_generation: usize,
}

/// What is about to be written for one repository.
struct Prepared<'a> {
    published: &'a PublishedRepository,
    manifest_path: PathBuf,
    manifest: String,
    written: Written,
    jdk: u32,
    tasks_path: PathBuf,
    tasks: Vec<u8>,
}

pub(super) fn run(arguments: &ImportArguments, context: &Context) -> Result<(), CommandError> {
    let repositories = published::read(&arguments.data)?;
    let data_dir = context.data_dir()?;
    let manifests = arguments.manifests.clone().unwrap_or_else(|| data_dir.join("manifests"));
    let tasks = data_dir.join("tasks");
    let prepared = repositories
        .iter()
        .map(|published| prepare(published, &manifests, &tasks))
        .collect::<Result<Vec<_>, CommandError>>()?;
    for one in repositories.iter().filter(|one| one.is_cloned_from_elsewhere) {
        let (name, url) = (&one.name, &one.clone_url);
        context.events.warning(format!("{name} is cloned from {url}, which is not its `github_url`"));
    }
    if context.options.dry_run {
        context.events.message("nothing was written: this is a dry run");
    } else {
        fs_err::create_dir_all(&manifests).map_err(ManifestError::from)?;
        for one in &prepared {
            if one.written != Written::Unchanged {
                write_atomically(&one.manifest_path, one.manifest.as_bytes()).map_err(ManifestError::from)?;
            }
            write_atomically(&one.tasks_path, &one.tasks).map_err(TaskFileError::from)?;
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
    tasks: &std::path::Path,
) -> Result<Prepared<'a>, CommandError> {
    let stem = published.name.file_stem();
    let manifest = RepositoryManifest::of_published(published)?;
    let manifest_path = manifests.join(format!("{stem}.toml"));
    let (text, written) = manifest.render_over(&manifest_path)?;
    let file =
        TaskFile { schema: TASK_FILE_SCHEMA, repository: published.name.clone(), tasks: published.tasks.clone() };
    Ok(Prepared {
        published,
        manifest_path,
        manifest: text,
        written,
        jdk: manifest.jdk,
        tasks_path: tasks.join(format!("{stem}.json")),
        tasks: file.render()?,
    })
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
        })
        .collect();
    let summary = Summary {
        schema: 1,
        repositories: rows.len(),
        tasks: prepared.iter().map(|one| one.published.tasks.len()).sum(),
        test_update: rows.iter().map(|row| row.test_update).sum(),
        test_generation: rows.iter().map(|row| row.test_generation).sum(),
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
            context.output.line(&format!(
                "{} ({test_update} update, {test_generation} generation) of {}",
                counted(tasks, "task", "tasks"),
                counted(repositories, "repository", "repositories")
            ))
        }
    }
}
