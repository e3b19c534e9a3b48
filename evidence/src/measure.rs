//! `measure`: compares the times of cells on the same tasks. The variants are the paper's literal harness, the reference
//! path, the direct path without and with containers started ahead, and the floor. Its figures are for
//! `docs/performance.md` and its reviewers.

mod clock;
mod comparison;

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use self::clock::{Clock, MeasureError};
use crate::kept::Kept;
use crate::report::measurement::{MeasuredTask, markdown, measurement, text};
use testevo_sandbox::application::Context;
use testevo_sandbox::application::selection;
use testevo_sandbox::cli::interrupts::block_on;
use testevo_sandbox::cli::selector::SelectorArguments;
use testevo_sandbox::cli::stdout;
use testevo_sandbox::error::CommandError;
use testevo_sandbox::task::Task;
use testevo_sandbox::task::selector::spread;

/// Arguments of `measure`.
#[derive(Debug, Args)]
pub(crate) struct MeasureArguments {
    #[command(flatten)]
    selector: SelectorArguments,
    /// Of the chosen tasks at most so many, evenly over repositories
    #[arg(long, help_heading = "Selection", value_name = "N")]
    spread: Option<usize>,
    /// Decides in which order the variants of a cell are executed
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Keep what was measured in this file, a task a line; a task that it has is not measured again
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// How the measurement is written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: MeasureFormat,
}

/// The formats of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum MeasureFormat {
    /// Tables and sentences for people
    #[default]
    Text,
    /// One JSON value with everything
    Json,
    /// The tables in Markdown
    Markdown,
}

pub(crate) fn run(arguments: &MeasureArguments, context: &Context) -> Result<(), CommandError> {
    if context.options.dry_run {
        return Err(CommandError::Usage {
            message: "nothing is measured by a dry run".to_owned(),
            hint: "leave `--dry-run` out".to_owned(),
        });
    }
    let mut tasks = selection::tasks(&arguments.selector.resolve()?, context)?;
    if let Some(most) = arguments.spread {
        tasks = spread(tasks, most);
    }
    let mut kept = Kept::open(arguments.keep.as_deref())?;
    let missing: Vec<&Task> = tasks.iter().filter(|task| !kept.has(&task.id)).collect();
    if !missing.is_empty() {
        block_on(context, measure(&missing, arguments.seed, &mut kept, context))?;
    }
    let measured: Vec<MeasuredTask> = tasks.iter().filter_map(|task| kept.take(&task.id)).collect();
    let measurement = measurement(measured);
    match arguments.format {
        MeasureFormat::Text => stdout::lines(&text(&measurement)),
        MeasureFormat::Json => stdout::json(&measurement),
        MeasureFormat::Markdown => stdout::lines(&markdown(&measurement)),
    }
}

async fn measure(
    tasks: &[&Task],
    seed: u64,
    kept: &mut Kept<MeasuredTask>,
    context: &Context,
) -> Result<(), CommandError> {
    let mut clock = Clock::new(tasks, seed, context).await?;
    let measured = async {
        for (number, task) in tasks.iter().enumerate() {
            let one = match clock.task(task).await {
                Ok(one) => one,
                Err(MeasureError::Interrupted) => return Err(CommandError::Interrupted),
                // Another task may fare better.
                Err(error) => clock.left_out(task, error.to_string()),
            };
            context.events.message(format!("{} of {}: {}", number + 1, tasks.len(), in_short(&one)));
            kept.add(one)?;
        }
        Ok(())
    };
    let measured = measured.await;
    clock.close().await?;
    measured
}

fn in_short(task: &MeasuredTask) -> String {
    let walls = crate::report::measurement::Variant::ALL.map(|variant| {
        let walls = task.cells.iter().filter_map(|cell| Some(cell.times.get(&variant)?.wall_ms));
        format!("{} {} ms", variant.name(), walls.sum::<u64>())
    });
    let floor: u64 = task.cells.iter().filter_map(|cell| cell.floor_ms).sum();
    let left_out: Vec<String> = task.left_out.iter().map(|reason| format!("; left out: {reason}")).collect();
    format!("{} {}, floor {floor} ms{}", task.task_id, walls.join(", "), left_out.concat())
}
