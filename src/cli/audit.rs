//! `audit`: says whether the developers' tests can be found where agents look.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::completions;
use super::interrupts::block_on;
use super::stdout;
use crate::application::Context;
use crate::application::audit::{AuditRequest, Audited, audit};
use crate::error::CommandError;
use crate::output::{OutputFormat, counted};
use crate::task::selector::Selector;

/// Arguments of `audit`.
#[derive(Debug, Args)]
pub(super) struct AuditArguments {
    /// Directories, files, bundles for agents, and repositories (owner/name) whose images are built
    #[arg(required = true, value_name = "PATH|REPOSITORY")]
    subjects: Vec<String>,
    /// Repositories and task ids, with * and ?, whose answers must not be there; without it each workspace's own task, and all tasks elsewhere
    #[arg(long, value_name = "NAME", add = completions::selected())]
    task: Vec<String>,
    /// A bundle that an audited one was based on
    #[arg(long, value_name = "BUNDLE")]
    base: Vec<PathBuf>,
    /// How results are written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: OutputFormat,
}

pub(super) fn run(arguments: &AuditArguments, context: &Context) -> Result<(), CommandError> {
    let selector = Selector { patterns: arguments.task.clone(), ..Selector::default() };
    let tasks = (!arguments.task.is_empty()).then_some(selector);
    let request = AuditRequest { subjects: arguments.subjects.clone(), tasks, bases: arguments.base.clone() };
    let (mut clean, mut leaking, mut incomplete, mut cross) = (0, 0, 0, 0);
    let each = |audited: Audited| {
        let report = &audited.report;
        let leaks = report.leaks().count();
        cross += report.findings.len() - leaks;
        clean += usize::from(report.is_clean());
        leaking += usize::from(leaks > 0);
        incomplete += usize::from(!report.is_complete());
        match arguments.format {
            OutputFormat::Json => stdout::json(&audited),
            OutputFormat::Text => stdout::lines(&description(&audited)),
        }
    };
    block_on(context, audit(&request, context, each))?;
    let total = json!({
        "schema": 1, "clean": clean, "leaking": leaking, "incomplete": incomplete, "cross_task_findings": cross,
    });
    if arguments.format == OutputFormat::Json {
        stdout::json(&total)?;
    } else {
        stdout::line(&format!("{clean} clean, {leaking} with leaks, {incomplete} not looked at in full"))?;
    }
    if leaking > 0 {
        return Err(CommandError::CheckFailed {
            summary: format!("the answer can be found in {}", counted(leaking, "place", "places")),
        });
    }
    if incomplete > 0 {
        return Err(CommandError::CheckFailed {
            summary: format!("{} could not be looked at in full", counted(incomplete, "place", "places")),
        });
    }
    Ok(())
}

/// Returns the findings of an audit, one a line.
pub(super) fn description(audited: &Audited) -> String {
    let report = &audited.report;
    let state = match (report.leaks().next().is_some(), report.is_complete()) {
        (true, _) => "leaks",
        (false, true) => "clean",
        (false, false) => "not looked at in full",
    };
    let entries = counted(report.entries as usize, "entry", "entries");
    let mut text = format!("{}: {state} ({entries}, {} bytes)\n", audited.subject, report.bytes);
    for finding in &report.findings {
        let task = finding.task_id.as_ref().map_or("-", crate::task::TaskId::as_str);
        let cross = if finding.cross_task { "  cross_task" } else { "" };
        text.push_str(&format!(
            "  {}{cross}  {}  at byte {}: {}  (task {task})\n",
            finding.kind.name(),
            finding.place,
            finding.offset,
            finding.detail
        ));
    }
    for place in &report.not_looked_at {
        text.push_str(&format!("  not looked at: {}: {}\n", place.place, place.reason));
    }
    if report.not_listed > 0 {
        text.push_str(&format!("  and {} more\n", report.not_listed));
    }
    text
}
