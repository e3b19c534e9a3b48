//! `tasks focal`: the methods under test, found in the sources, and written beside the tasks.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::json;

use crate::application::Context;
use crate::application::focal::find;
use crate::cli::interrupts::block_on;
use crate::cli::stdout;
use crate::error::CommandError;
use crate::focal::own::OwnFocal;
use crate::focal::store::KnownFocal;
use crate::focal::{Found, extents};
use crate::output::{OutputFormat, Table};
use crate::task::Task;

pub(super) fn run(tasks: &[Task], format: OutputFormat, context: &Context) -> Result<(), CommandError> {
    let found = block_on(context, find(tasks, context))?;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for focal in found.values().flat_map(|known| &known.focal) {
        *counts.entry(rule(&focal.found)).or_default() += 1;
    }
    match format {
        OutputFormat::Json => {
            for (task, known) in &found {
                stdout::json(&json!({ "task_id": task, "focal": known.focal, "own": known.own }))?;
            }
            stdout::json(&json!({ "schema": 1, "tasks": found.len(), "found": counts }))
        }
        OutputFormat::Text => {
            let mut table = Table::new(["task", "method", "found", "lines", "added", "own of", "file"]);
            for (task, known) in &found {
                for focal in &known.focal {
                    let (lines, added, path) = match &focal.found {
                        Found::Resolved(lines) => (
                            format!("{}-{}", lines.first_line, lines.last_line),
                            lines.added.len().to_string(),
                            lines.path.as_str(),
                        ),
                        Found::Gone { .. } | Found::Unresolved { .. } => (String::new(), String::new(), ""),
                    };
                    let (method, found) = (focal.method.as_str(), rule(&focal.found));
                    let own_of = own_of(&focal.found, known);
                    table.row([task.as_str(), method, &found, &lines, &added, &own_of, path]);
                }
            }
            stdout::table(&table)?;
            if found.values().any(|known| known.own.is_none()) {
                let message =
                    "`?`: `score --predictions gold` finds out which test methods have a focal method for their own";
                context.events.message(message.to_owned());
            }
            for (rule, number) in counts {
                stdout::line(&format!("{number} {rule}"))?;
            }
            Ok(())
        }
    }
}

fn rule(found: &Found) -> String {
    match found {
        Found::Resolved(lines) => format!("resolved({})", name(&lines.rule)),
        Found::Gone { .. } => "gone".to_owned(),
        Found::Unresolved { reason } => format!("unresolved({})", name(reason)),
    }
}

/// Names the test methods that have a focal method as their own; `?` if that is unknown.
fn own_of(found: &Found, known: &KnownFocal) -> String {
    let Found::Resolved(lines) = found else { return String::new() };
    let Some(own) = &known.own else { return "?".to_owned() };
    let extents = extents(&known.focal);
    let place = extents.iter().position(|other| other.is_same_extent(lines));
    let has = |own: &&OwnFocal| place.is_some_and(|place| own.places().any(|own| own == place));
    let names: Vec<&str> = own.iter().filter(has).map(|own| own.method.method()).collect();
    if names.len() == own.len() { "all".to_owned() } else { names.join(", ") }
}

/// Returns a unit variant's name in JSON.
fn name(variant: &impl Serialize) -> String {
    serde_json::to_value(variant).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
