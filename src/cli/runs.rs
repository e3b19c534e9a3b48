//! `runs`: lists, shows and removes runs.

use clap::{Args, Subcommand};
use serde_json::json;

use super::completions;
use super::interrupts::block_on;
use super::{compare, report, score, stdout, validate};
use crate::application::Context;
use crate::application::merge::{MergedRun, costs, merge};
use crate::application::runs::{ListedRun, RunResult, ShownRun, ShownValidation, list, remove, show};
use crate::application::slurm::cancel;
use crate::error::CommandError;
use crate::output::{OutputFormat, Table, counted, mebibytes, size};

/// Arguments of `runs`.
#[derive(Debug, Args)]
pub(super) struct RunsArguments {
    #[command(subcommand)]
    command: RunsCommand,
}

#[derive(Debug, Subcommand)]
enum RunsCommand {
    /// List runs, oldest first. The score counts tasks that came out as published, or methods that succeed
    List {
        /// How results are written
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
        format: OutputFormat,
    },
    /// Show a run's results, also those of an unfinished run
    Show {
        /// The run's id; `latest` is the one that began last
        #[arg(value_name = "RUN", add = completions::runs())]
        run: String,
        /// How results are written
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
        format: OutputFormat,
    },
    /// Merge the runs of all shards (`--shard K/N`) of a selection into one run
    Merge {
        /// Ids of the shards' runs, or their directories, as paths with a slash
        #[arg(value_name = "RUN", required = true, add = completions::runs())]
        runs: Vec<String>,
        /// Name of the merged run
        #[arg(long, value_name = "ID")]
        run_id: Option<String>,
        /// How results are written
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
        format: OutputFormat,
    },
    /// List the results that differ between two runs: outcomes of `validate`, or all that figures of `score` are made of. Exit
    /// code 1 if any differ
    Compare {
        /// The first run's id, or its directory, as a path with a slash
        #[arg(value_name = "RUN", add = completions::runs())]
        one: String,
        /// The second run's
        #[arg(value_name = "OTHER", add = completions::runs())]
        other: String,
        /// How results are written
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
        format: OutputFormat,
    },
    /// End the shards that `--on` has submitted for a run. Rerun that command to resume
    Cancel {
        /// The run's id, as the command told it
        #[arg(value_name = "RUN", add = completions::runs())]
        run: String,
    },
    /// Write the recorded costs of tasks as JSON, for `--weights`
    Costs {
        /// Ids of runs, or their directories, as paths with a slash
        #[arg(value_name = "RUN", required = true, add = completions::runs())]
        runs: Vec<String>,
    },
    /// Remove runs with their records and logs; with --dry-run only say what would go
    Rm {
        /// Ids of runs
        #[arg(value_name = "RUN", required = true, add = completions::runs())]
        runs: Vec<String>,
    },
}

pub(super) fn run(arguments: &RunsArguments, context: &Context) -> Result<(), CommandError> {
    match &arguments.command {
        RunsCommand::List { format } => write_list(&list(context)?, *format),
        RunsCommand::Show { run, format } => match show(run, context)? {
            // A run of `score` has other records, which a report summarises.
            ShownRun::Scoring(runs) => report::write(&runs, *format),
            ShownRun::Validation(shown) => write_validation(&shown, *format),
        },
        RunsCommand::Merge { runs, run_id, format } => match merge(runs, run_id.clone(), context)? {
            None => Ok(()),
            Some(merged) => write_merged(merged, *format, context),
        },
        RunsCommand::Compare { one, other, format } => compare::run([one, other], *format, context),
        RunsCommand::Cancel { run } => {
            let jobs = block_on(context, cancel(run, context))?;
            let verb = if context.options.dry_run { "would be cancelled" } else { "cancelled" };
            stdout::line(&format!("{run}: {} {verb}", counted(jobs, "job", "jobs")))
        }
        RunsCommand::Costs { runs } => stdout::json(&costs(runs, context)?),
        RunsCommand::Rm { runs } => {
            let verb = if context.options.dry_run { "would be removed" } else { "removed" };
            for run in runs {
                let bytes = remove(run, context)?;
                stdout::line(&format!("{run} {verb}, {}", size(bytes)))?;
            }
            Ok(())
        }
    }
}

/// Prints the results of a merged run.
fn write_merged(merged: MergedRun<'_>, format: OutputFormat, context: &Context) -> Result<(), CommandError> {
    match merged {
        MergedRun::Scoring(ended) => score::write(ended, format, None, context),
        MergedRun::Validation(shown) => {
            validate::write(&shown.validated, format)?;
            shown.validated.verdict()
        }
    }
}

fn write_list(runs: &[ListedRun], format: OutputFormat) -> Result<(), CommandError> {
    let bytes: u64 = runs.iter().map(|run| run.entry.bytes).sum();
    match format {
        OutputFormat::Json => {
            runs.iter().try_for_each(stdout::json)?;
            stdout::json(&json!({"schema": 1, "runs": runs.len(), "bytes": bytes}))
        }
        OutputFormat::Text => {
            let mut table = Table::new(["run", "command", "model", "tasks", "score", "started", "state", "MiB"]);
            for ListedRun { entry: run, tasks, results } in runs {
                let (command, started) = match &run.description {
                    Some(description) => (description.command.as_str(), shortened(&description.started)),
                    None => ("", ""),
                };
                let (size, tasks) = (mebibytes(run.bytes), tasks.map(|tasks| tasks.to_string()).unwrap_or_default());
                let (models, score) = in_words(results);
                let cells = [run.run_id.as_str(), command, &models, &tasks, &score, started, run.state.name(), &size];
                table.row(cells);
            }
            stdout::table(&table)?;
            for ListedRun { entry: run, .. } in runs {
                if let Some(reason) = &run.reason {
                    stdout::line(&format!("{} can't be read: {reason}", run.run_id))?;
                }
            }
            stdout::line(&format!("{}, {}", counted(runs.len(), "run", "runs"), size(bytes)))
        }
    }
}

/// Returns a run's models, and how many of their methods, or of the run's tasks, came out well.
fn in_words(results: &[RunResult]) -> (String, String) {
    let models: Vec<&str> = results.iter().filter_map(|result| result.model.as_deref()).collect();
    let score = results.iter().map(|RunResult { model, good, of }| {
        let noun = if model.is_some() { "methods" } else { "tasks" };
        format!("{good}/{of} {noun}")
    });
    (models.join(", "), score.collect::<Vec<_>>().join(", "))
}

/// Returns a time of RFC 3339 without fractions of seconds.
fn shortened(time: &str) -> &str {
    time.split_once('.').map_or(time, |(seconds, _)| seconds)
}

fn write_validation(shown: &ShownValidation, format: OutputFormat) -> Result<(), CommandError> {
    let ShownValidation { run, tasks, done, validated } = shown;
    let description = &run.description;
    match format {
        OutputFormat::Json => stdout::json(&json!({
            "run": description, "state": run.state, "tasks": tasks, "tasks_done": done,
            "records": run.records.len(), "directory": run.path,
        }))?,
        OutputFormat::Text => {
            let finished = description
                .finished
                .as_deref()
                .map_or_else(String::new, |time| format!("\nfinished   {}", shortened(time)));
            stdout::lines(&format!(
                "run        {}\ncommand    {}\nstate      {}\nstarted    {}{finished}\ntasks      {done} of {tasks} done\n\
                 directory  {}\n\n",
                description.run_id,
                description.command,
                run.state.name(),
                shortened(&description.started),
                run.path.display(),
            ))?;
        }
    }
    validate::write(validated, format)
}
