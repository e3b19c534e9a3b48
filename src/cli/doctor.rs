//! `doctor`: what this machine offers, and what to do about what it lacks.

use std::fmt::Write as _;

use clap::Args;

use super::interrupts::block_on;
use super::stdout;
use crate::application::Context;
use crate::application::doctor::examine;
use crate::doctor::Report;
use crate::error::CommandError;
use crate::output::OutputFormat;

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub(super) struct DoctorArguments {
    /// How results are written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: OutputFormat,
}

pub(super) fn run(arguments: &DoctorArguments, context: &Context) -> Result<(), CommandError> {
    let examined = block_on(context, async { Ok(examine(context).await) })?;
    match arguments.format {
        OutputFormat::Json => stdout::json(&examined.report)?,
        OutputFormat::Text => stdout::lines(&text(&examined.report))?,
    }
    examined.verdict()
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
