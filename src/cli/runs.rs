//! `runs`: lists, shows and removes runs.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{report, stdout, validate};
use crate::application::Context;
use crate::application::run::tasks_of;
use crate::application::validate::Validated;
use crate::error::CommandError;
use crate::execution::run::list::{RunEntry, RunState, StoredRun, describe, find, list, read, remove};
use crate::output::{OutputFormat, Table, counted};
use crate::report::score::COMMAND;
use crate::task::Task;

/// Arguments of `runs`.
#[derive(Debug, Args)]
pub(super) struct RunsArguments {
    #[command(subcommand)]
    command: RunsCommand,
}

#[derive(Debug, Subcommand)]
enum RunsCommand {
    /// List runs, oldest first
    List {
        /// How results are written
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
        format: OutputFormat,
    },
    /// Show what a run came to, or so far
    Show {
        /// The run's id; `latest` is the one that began last
        #[arg(value_name = "RUN")]
        run: String,
        /// How results are written
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
        format: OutputFormat,
    },
    /// Remove runs with their records and logs; with --dry-run only say what would go
    Rm {
        /// Ids of runs
        #[arg(value_name = "RUN", required = true)]
        runs: Vec<String>,
    },
}

pub(super) fn run(arguments: &RunsArguments, context: &Context) -> Result<(), CommandError> {
    match &arguments.command {
        RunsCommand::List { format } => write_list(&list(context.data_dir()?)?, *format),
        RunsCommand::Show { run, format } => {
            let path = find(context.data_dir()?, run)?;
            // Scores are another kind of records, and a report says what they came to.
            if describe(&path).is_ok_and(|description| description.command == COMMAND) {
                return report::show(path, *format);
            }
            show(&read(context.data_dir()?, run)?, *format, context)
        }
        RunsCommand::Rm { runs } => remove_all(runs, context),
    }
}

fn write_list(runs: &[RunEntry], format: OutputFormat) -> Result<(), CommandError> {
    let bytes: u64 = runs.iter().map(|run| run.bytes).sum();
    match format {
        OutputFormat::Json => {
            runs.iter().try_for_each(stdout::json)?;
            stdout::json(&json!({"schema": 1, "runs": runs.len(), "bytes": bytes}))
        }
        OutputFormat::Text => {
            let mut table = Table::new(["run", "command", "started", "state", "MB"]);
            for run in runs {
                let (command, started) = match &run.description {
                    Some(description) => (description.command.as_str(), shortened(&description.started)),
                    None => ("", ""),
                };
                let state = match &run.reason {
                    Some(reason) => format!("{}: {reason}", run.state.name()),
                    None => run.state.name().to_owned(),
                };
                table.row([run.run_id.as_str(), command, started, &state, &megabytes(run.bytes)]);
            }
            stdout::table(&table)?;
            stdout::line(&format!("{}, {} MB", counted(runs.len(), "run", "runs"), megabytes(bytes)))
        }
    }
}

/// Returns a time of RFC 3339 without fractions of seconds.
fn shortened(time: &str) -> &str {
    time.split_once('.').map_or(time, |(seconds, _)| seconds)
}

fn show(run: &StoredRun, format: OutputFormat, context: &Context) -> Result<(), CommandError> {
    let all = tasks_of(run, context)?;
    let repeats = run.inputs.as_ref().map_or(1, |inputs| inputs.repeats);
    let done: Vec<Task> = match run.state {
        RunState::Finished => all.clone(),
        // Cells that were not executed yet are nobody's fault.
        _ => all.iter().filter(|task| run.has_all_of(task, repeats)).cloned().collect(),
    };
    let description = &run.description;
    match format {
        OutputFormat::Json => stdout::json(&json!({
            "run": description, "state": run.state, "tasks": all.len(), "tasks_done": done.len(),
            "records": run.records.len(), "directory": run.path,
        }))?,
        OutputFormat::Text => {
            let finished = description
                .finished
                .as_deref()
                .map_or_else(String::new, |time| format!("\nfinished   {}", shortened(time)));
            stdout::lines(&format!(
                "run        {}\ncommand    {}\nstate      {}\nstarted    {}{finished}\ntasks      {} of {} done\n\
                 directory  {}\n\n",
                description.run_id,
                description.command,
                run.state.name(),
                shortened(&description.started),
                done.len(),
                all.len(),
                run.path.display(),
            ))?;
        }
    }
    validate::write(&Validated::of(&description.run_id, &done, run.records.clone()), format)
}

fn remove_all(runs: &[String], context: &Context) -> Result<(), CommandError> {
    let dry_run = context.options.dry_run;
    for run in runs {
        let bytes = remove(context.data_dir()?, run, dry_run)?;
        let verb = if dry_run { "would be removed" } else { "removed" };
        stdout::line(&format!("{run} {verb}, {} MB", megabytes(bytes)))?;
    }
    Ok(())
}

fn megabytes(bytes: u64) -> String {
    let tenths = (bytes + 50_000) / 100_000;
    format!("{}.{}", tenths / 10, tenths % 10)
}
