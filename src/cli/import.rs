//! `import`: published task data becomes manifests and tasks; trials of Harbor's become predictions.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::stdout;
use crate::application::Context;
use crate::application::harbor::{self, Chosen};
use crate::application::import::{ImportRequest, ImportSummary, Imported, import};
use crate::error::CommandError;
use crate::manifest::Written;
use crate::output::{OutputFormat, Table, counted};
use crate::task::TaskId;
use crate::task::file::Changes;

/// Arguments of `import`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct ImportArguments {
    #[command(subcommand)]
    command: Option<ImportCommand>,
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

#[derive(Debug, Subcommand)]
enum ImportCommand {
    /// Print the predictions that Harbor's trials left, as JSON lines
    Harbor {
        /// The directory of a job, or of one trial
        #[arg(value_name = "JOBDIR")]
        directory: PathBuf,
        /// The model's name in the predictions [default: each trial's agent and model]
        #[arg(long, value_name = "NAME")]
        model: Option<String>,
        /// The task of the one trial that JOBDIR is [default: what the trial tells]
        #[arg(long, value_name = "ID")]
        task: Option<TaskId>,
    },
}

pub(super) fn run(arguments: &ImportArguments, context: &Context) -> Result<(), CommandError> {
    if let Some(ImportCommand::Harbor { directory, model, task }) = &arguments.command {
        return trials(directory, &Chosen { model: model.clone(), task: task.clone() }, context);
    }
    let (data, manifests) = (arguments.data.clone(), arguments.manifests.clone());
    let request = ImportRequest { data, manifests, replace: arguments.replace };
    execute(&request, arguments.format, context)
}

fn trials(directory: &Path, chosen: &Chosen, context: &Context) -> Result<(), CommandError> {
    match harbor::predictions(directory, chosen, context, stdout::json)? {
        0 => Ok(()),
        lost => Err(CommandError::InfrastructureLeft {
            summary: format!("{} no prediction; run them again in Harbor", has(lost)),
        }),
    }
}

fn has(lost: usize) -> String {
    let verb = if lost == 1 { "has" } else { "have" };
    format!("{} {verb}", counted(lost, "trial", "trials"))
}

/// Imports and writes the results.
pub(super) fn execute(request: &ImportRequest, format: OutputFormat, context: &Context) -> Result<(), CommandError> {
    let Imported { repositories: rows, summary } = &import(request, context)?;
    match format {
        OutputFormat::Json => {
            rows.iter().try_for_each(stdout::json)?;
            stdout::json(summary)
        }
        OutputFormat::Text => {
            let mut table = Table::new(["repository", "jdk", "update", "generation", "manifest"]);
            for row in rows {
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
            stdout::table(&table)?;
            let ImportSummary { repositories, tasks, test_update, test_generation, changes, .. } = *summary;
            let Changes { new, changed, kept, removed } = changes;
            let removed = if removed > 0 { format!(", {removed} removed") } else { String::new() };
            stdout::line(&format!(
                "{} ({test_update} update, {test_generation} generation) of {}: {new} new, {changed} changed, {kept} \
                 kept{removed}",
                counted(tasks, "task", "tasks"),
                counted(repositories, "repository", "repositories")
            ))
        }
    }
}
