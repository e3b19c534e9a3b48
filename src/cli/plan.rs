//! `plan`: how long a scoring run takes on several nodes.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args;

use super::selector::SelectorArguments;
use super::stdout;
use crate::application::Context;
use crate::application::plan::plan;
use crate::error::CommandError;
use crate::output::{OutputFormat, Table, counted};
use crate::report::plan::{Plan, Workload};
use crate::task::shard::MOST_SHARDS;

/// Arguments of `plan`.
#[derive(Debug, Args)]
pub(super) struct PlanArguments {
    #[command(flatten)]
    selector: SelectorArguments,
    /// Recorded costs of one model's run, which `runs costs` writes
    #[arg(long, value_name = "FILE")]
    costs: PathBuf,
    /// Models that are scored
    #[arg(long, value_name = "M", default_value = "1", value_parser = models)]
    models: NonZeroU32,
    /// Numbers of nodes; each executes one shard, with `--jobs` tasks at once
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,2,4,8,16,32", value_parser = nodes)]
    nodes: Vec<NonZeroU32>,
    /// Seconds that a node needs before its first task
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = super::options::whole::<u32>)]
    start: u32,
    /// How results are written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: OutputFormat,
}

/// The most models of a plan.
const MOST_MODELS: u32 = 100_000;

/// Parses a number of models.
fn models(text: &str) -> Result<NonZeroU32, String> {
    let models = text.parse::<NonZeroU32>().ok().filter(|models| models.get() <= MOST_MODELS);
    models.ok_or_else(|| format!("it is no number from 1 to {MOST_MODELS}"))
}

/// Parses a number of nodes.
fn nodes(text: &str) -> Result<NonZeroU32, String> {
    let nodes = text.parse::<NonZeroU32>().ok().filter(|nodes| nodes.get() <= MOST_SHARDS);
    nodes.ok_or_else(|| format!("it is no number from 1 to {MOST_SHARDS}"))
}

pub(super) fn run(arguments: &PlanArguments, context: &Context) -> Result<(), CommandError> {
    let workload = Workload {
        models: arguments.models.get().into(),
        jobs: context.options.jobs.get(),
        start_ms: u64::from(arguments.start) * 1000,
    };
    let plan = plan(&arguments.selector.resolve()?, &arguments.costs, &workload, &arguments.nodes, context)?;
    match arguments.format {
        OutputFormat::Json => stdout::json(&plan),
        OutputFormat::Text => {
            let mut table = Table::new(["nodes", "wall time", "core hours", "busy"]);
            for one in &plan.estimates {
                table.row([
                    one.nodes.to_string(),
                    duration(one.wall_ms),
                    format!("{:.1}", one.core_ms as f64 / 3_600_000.0),
                    format!("{:.0} %", one.busy * 100.0),
                ]);
            }
            stdout::table(&table)?;
            stdout::lines(&footer(&plan))
        }
    }
}

/// Returns hours and minutes, or minutes and seconds.
fn duration(milliseconds: u64) -> String {
    let seconds = milliseconds.div_ceil(1000);
    match seconds / 3600 {
        0 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        hours => format!("{hours}h {:02}m", seconds % 3600 / 60),
    }
}

fn footer(plan: &Plan) -> String {
    let (tasks, models) = (counted(plan.tasks, "task", "tasks"), counted(plan.models as usize, "model", "models"));
    let estimated = plan.tasks - plan.recorded;
    let mut text = format!("{tasks}, {models}, {} at once on a node", plan.jobs);
    if estimated > 0 {
        text.push_str(&format!(
            "; costs of {} are estimated by numbers of methods",
            counted(estimated, "task", "tasks")
        ));
    }
    if let Some(bend) = plan.bend {
        text.push_str(&format!("\ntwice the nodes still save a third of the time up to {bend}"));
    }
    text + "\n"
}
