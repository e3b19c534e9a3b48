//! Previews `lock` under `--dry-run`. It reads only this machine, fetches no sources, and writes nothing.

use std::collections::BTreeSet;

use super::{LockRequest, Mode, ensure_room, java, missing_sets};
use crate::application::Context;
use crate::application::failures::Failures;
use crate::application::readiness::sources;
use crate::application::selection::by_repository;
use crate::application::workbench::{Workbench, present, sets_of};
use crate::error::CommandError;
use crate::output::counted;
use crate::resolution::repository::empty;
use crate::task::Task;

/// Tells what `lock` would resolve.
pub(super) async fn lock(request: &LockRequest, tasks: &[Task], context: &Context) -> Result<(), CommandError> {
    let update = request.mode == Mode::Update;
    let workbench = Workbench::open(context)?;
    let events = &context.events;
    let groups = by_repository(tasks);
    let mut failures = Failures::new(groups.len(), context);
    let tell = async |repository: &_, tasks: &Vec<&Task>| {
        let manifest = workbench.manifest(repository)?;
        match sources(&workbench, &manifest, tasks).await? {
            None => events.message(format!("would fetch {repository}: its build files are not here yet")),
            Some(opened) => {
                let found = sets_of(&opened, &manifest, tasks).await?;
                let covered = match update {
                    true => empty(&manifest),
                    false => workbench.covering_lock(&manifest)?,
                };
                let missing = missing_sets(&covered, &found.sets);
                let sets = counted(found.sets.len(), "set of build files", "sets of build files");
                events.message(match missing {
                    0 => format!("{repository} is locked: {sets}"),
                    _ => format!("would resolve {missing} of {sets} of {repository}"),
                });
            }
        }
        Ok(manifest.jdk)
    };
    let wanted: BTreeSet<u32> = failures.each(&groups, tell).await?.into_iter().collect();
    let there = workbench.locked_jdks()?;
    let resolved = match update {
        true => wanted,
        false => &wanted - &there,
    };
    if !resolved.is_empty() {
        events.message(format!("would resolve the toolchain with {}", java(&resolved)));
    }
    let locked = present(workbench.toolchain())?.is_some_and(|lock| !lock.agent_packages.is_empty());
    if (request.agent || locked) && (update || !locked) {
        events.message("would resolve the tools of agents");
    }
    failures.settle("locked", ensure_room(groups.keys(), &workbench).await)
}
