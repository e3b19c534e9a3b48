//! `tasks focal`: the methods under test, found in the sources, and written beside the tasks.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::json;

use super::super::workbench::{Workbench, blocking, by_repository};
use crate::cli::Context;
use crate::error::CommandError;
use crate::focal::own::OwnFocal;
use crate::focal::store::{self, KnownFocal};
use crate::focal::{Found, extents, resolve};
use crate::output::{OutputFormat, Table};
use crate::task::{RepositoryName, Task, TaskId};
use crate::workspace::Repository;

pub(super) fn run(tasks: &[Task], format: OutputFormat, context: &Context) -> Result<(), CommandError> {
    let found = context.block_on(find(tasks, context))?;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for focal in found.values().flat_map(|known| &known.focal) {
        *counts.entry(rule(&focal.found)).or_default() += 1;
    }
    match format {
        OutputFormat::Json => {
            for (task, known) in &found {
                context.output.json(&json!({ "task_id": task, "focal": known.focal, "own": known.own }))?;
            }
            context.output.json(&json!({ "schema": 1, "tasks": found.len(), "found": counts }))
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
            context.output.table(&table)?;
            if found.values().any(|known| known.own.is_none()) {
                let message =
                    "`?`: `score --predictions gold` finds out which test methods have a focal method for their own";
                context.events.message(message.to_owned());
            }
            for (rule, number) in counts {
                context.output.line(&format!("{number} {rule}"))?;
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

/// Names the test methods that a focal method is an own one of; `?` where that is not known yet.
fn own_of(found: &Found, known: &KnownFocal) -> String {
    let Found::Resolved(lines) = found else { return String::new() };
    let Some(own) = &known.own else { return "?".to_owned() };
    let extents = extents(&known.focal);
    let place = extents.iter().position(|other| other.is_same_extent(lines));
    let has = |own: &&OwnFocal| place.is_some_and(|place| own.places().any(|own| own == place));
    let names: Vec<&str> = own.iter().filter(has).map(|own| own.method.method()).collect();
    if names.len() == own.len() { "all".to_owned() } else { names.join(", ") }
}

/// Returns a unit variant's name as JSON has it.
fn name(variant: &impl Serialize) -> String {
    serde_json::to_value(variant).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

async fn find(tasks: &[Task], context: &Context) -> Result<BTreeMap<TaskId, KnownFocal>, CommandError> {
    let workbench = Workbench::open(context)?;
    let mut all = BTreeMap::new();
    for (repository, tasks) in by_repository(tasks) {
        let manifest = workbench.manifest(&repository)?;
        let path = workbench.repository(&manifest, &tasks).await?.path().to_owned();
        let tasks: Vec<Task> = tasks.into_iter().cloned().collect();
        let name = repository.clone();
        let found = blocking(move || {
            let repository = Repository::open(name, &path)?;
            let found = tasks.iter().map(|task| {
                let focal = resolve(&repository, task)?;
                Ok((task.id.clone(), KnownFocal { focal, own: None }))
            });
            found.collect::<Result<BTreeMap<_, _>, CommandError>>()
        })
        .await?;
        let wanted: Vec<TaskId> = found.keys().cloned().collect();
        keep(&workbench, &repository, found).await?;
        let mut kept = store::kept(&workbench.data_dir.join("focal"), &repository).map_err(CommandError::Runtime)?;
        all.extend(wanted.into_iter().filter_map(|task| kept.remove_entry(&task)));
    }
    Ok(all)
}

/// Keeps beside the tasks what was found for some of a repository's.
pub(in crate::cli) async fn keep(
    workbench: &Workbench<'_>,
    repository: &RepositoryName,
    found: BTreeMap<TaskId, KnownFocal>,
) -> Result<(), CommandError> {
    // Another process may add its own to the same file.
    let _held = workbench.hold(&format!("focal-{}", repository.file_stem())).await?;
    store::keep(&workbench.data_dir.join("focal"), repository, found).map_err(CommandError::Runtime)
}
