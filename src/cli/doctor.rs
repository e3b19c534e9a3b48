//! `doctor`: what this machine offers, what to do about what it lacks, and what the sources of tasks lack.

use std::fmt::Write as _;

use clap::Args;

use super::interrupts::block_on;
use super::on::Cluster;
use super::selector::SelectorArguments;
use super::stdout;
use crate::application::Context;
use crate::application::doctor::examine;
use crate::application::nodes::nodes;
use crate::application::sources::{Gaps, look};
use crate::doctor::Report;
use crate::error::CommandError;
use crate::output::{OutputFormat, counted};
use crate::task::selector::Selector;

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub(super) struct DoctorArguments {
    /// Look at the trees of tasks instead of the machine, and list what they lack: submodules, contents in git-lfs's
    /// store, contents that the mirror does not have
    #[arg(long)]
    sources: bool,
    /// Look at every node of the cluster instead of this machine, by a job on each
    #[arg(long, value_enum, value_name = "CLUSTER", conflicts_with = "sources")]
    on: Option<Cluster>,
    #[command(flatten)]
    selector: SelectorArguments,
    /// How results are written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: OutputFormat,
}

pub(super) fn run(arguments: &DoctorArguments, context: &Context) -> Result<(), CommandError> {
    if arguments.sources {
        return sources(arguments, context);
    }
    if arguments.selector.resolve()? != Selector::default() {
        return Err(CommandError::Usage {
            message: "a selection of tasks is looked at with `--sources` only".to_owned(),
            hint: "add `--sources`, or name no tasks".to_owned(),
        });
    }
    if let Some(Cluster::Slurm) = arguments.on {
        return on_nodes(arguments.format, context);
    }
    let examined = block_on(context, async { Ok(examine(context).await) })?;
    match arguments.format {
        OutputFormat::Json => stdout::json(&examined.report)?,
        OutputFormat::Text => stdout::lines(&text(&examined.report))?,
    }
    examined.verdict()
}

fn on_nodes(format: OutputFormat, context: &Context) -> Result<(), CommandError> {
    let found = block_on(context, nodes(context))?;
    match format {
        OutputFormat::Json => found.iter().try_for_each(stdout::json)?,
        OutputFormat::Text => {
            let mut text = String::new();
            for node in &found {
                let _ = writeln!(text, "{:<4}  {}", node.status, node.node);
                for check in &node.checks {
                    let _ = writeln!(text, "      {:<4}  {}  {}", check.status, check.check, check.detail);
                    if let Some(advice) = &check.advice {
                        let _ = writeln!(text, "            → {advice}");
                    }
                }
            }
            stdout::lines(&text)?;
        }
    }
    match found.iter().filter(|node| node.status == "fail").count() {
        0 => Ok(()),
        failed => Err(CommandError::CheckFailed {
            summary: format!("{} can't execute shards", counted(failed, "node", "nodes")),
        }),
    }
}

fn sources(arguments: &DoctorArguments, context: &Context) -> Result<(), CommandError> {
    let found = block_on(context, look(&arguments.selector.resolve()?, context))?;
    match arguments.format {
        OutputFormat::Json => stdout::json(&found.gaps)?,
        OutputFormat::Text => stdout::lines(&gaps(&found.gaps))?,
    }
    found.verdict()
}

/// Returns a line for each tree that lacks something, and below it its tasks.
fn gaps(gaps: &Gaps) -> String {
    let mut text = String::new();
    for tree in &gaps.lacking {
        let lacks = tree.lacks.in_words().unwrap_or_default();
        let _ = writeln!(text, "{} at {}: its tree lacks {lacks}", tree.repository, tree.revision);
        for task in &tree.tasks {
            let _ = writeln!(text, "    {task}");
        }
    }
    let tasks = counted(gaps.tasks, "task", "tasks");
    let _ = match gaps.lacking.len() {
        0 => writeln!(text, "the trees of {tasks} lack nothing"),
        lacking => writeln!(
            text,
            "{} of the trees of {tasks} {} contents; what misses its label there is `infra_fail(source)`",
            lacking,
            if lacking == 1 { "lacks" } else { "lack" }
        ),
    };
    text
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    let width = report.checks.iter().map(|check| check.check.len()).max().unwrap_or(0);
    for check in &report.checks {
        let _ = writeln!(text, "{:<4}  {:<width$}  {}", check.status.name(), check.check, check.detail);
        if let Some(advice) = &check.advice {
            let _ = writeln!(text, "{:<4}  {:<width$}  → {advice}", "", "");
        }
    }
    text
}
