//! `workspace`: writes what agents get of tasks, and collects predictions from it.

use std::path::{Path, PathBuf};

use super::Context;
use super::selection::{by_repository, tasks};
use super::workbench::{Workbench, blocking, whole_builds};
use crate::agent::collection::{Collected, collect};
use crate::agent::{AgentError, NewWorkspace, Written, check_free};
use crate::error::CommandError;
use crate::execution::container::temporary::Spool;
use crate::execution::module::WholeBuilds;
use crate::image::Catalog;
use crate::task::Task;
use crate::task::selector::Selector;
use crate::workspace::Repository;

/// Writes a workspace for each selected task to `output/<task id>`.
///
/// # Errors
/// [`CommandError`] of selections, sources and files. Nothing is written if a workspace's place is taken.
pub async fn write(selector: &Selector, output: &Path, context: &Context) -> Result<Vec<Written>, CommandError> {
    let tasks = tasks(selector, context)?;
    for task in &tasks {
        check_free(&task.id, &output.join(task.id.as_str()))?;
    }
    let workbench = Workbench::open(context)?;
    context.umask.create_directory(output).map_err(AgentError::Io)?;
    let mut written = Vec::new();
    for (repository, tasks) in by_repository(&tasks) {
        let manifest = workbench.manifest(&repository)?;
        let image = Catalog::open(&workbench.data_dir)?.get(&repository)?.filter(|built| built.is_for(&manifest));
        if image.is_none() {
            context.events.warning(format!("{repository} has no image, so its workspaces name none"));
        }
        let sources = workbench.repository(&manifest, &tasks).await?;
        let whole = match workbench.lock_for(&manifest) {
            Ok(lock) => whole_builds(&sources, &manifest, &lock, &tasks).await?,
            // Without a lock nothing is known to need all modules.
            Err(_) => WholeBuilds::default(),
        };
        let path = sources.path().to_owned();
        for task in tasks.into_iter().cloned().collect::<Vec<Task>>() {
            let (output, path, manifest) = (output.to_owned(), path.clone(), manifest.clone());
            let image = image.as_ref().map(|built| built.image.clone());
            let (temporary, whole) = (workbench.data_dir.temporary(), whole.clone());
            let work = blocking(move || {
                let repository = Repository::open(task.repository.clone(), &path)?;
                let spool = Spool::create(&temporary).map_err(AgentError::Io)?;
                let workspace = NewWorkspace {
                    repository: &repository,
                    task: &task,
                    manifest: &manifest,
                    image: image.as_ref(),
                    whole: &whole,
                    archive: &spool.path().join("tree.tar"),
                };
                workspace.write(&output.join(task.id.as_str())).map_err(CommandError::from)
            });
            written.push(context.until_interrupted(work).await?);
        }
    }
    Ok(written)
}

/// Collects the prediction that an agent left in the workspace of the one selected task.
///
/// # Errors
/// [`CommandError::Usage`] for several tasks; [`CommandError`] of sources and of what the agent left.
pub async fn collect_one(
    selector: &Selector,
    workspace: PathBuf,
    context: &Context,
) -> Result<(Task, Collected), CommandError> {
    let selected = tasks(selector, context)?;
    let [task] = selected.as_slice() else {
        return Err(CommandError::Usage {
            message: format!("{} tasks are selected, but a workspace is of one", selected.len()),
            hint: "name one task's id".to_owned(),
        });
    };
    let workbench = Workbench::open(context)?;
    let manifest = workbench.manifest(&task.repository)?;
    let repository = workbench.repository(&manifest, &[task]).await?;
    let task = task.clone();
    blocking(move || {
        let collected = collect(&task, &workspace, &repository.tree(&task.rev2)?)?;
        Ok((task, collected))
    })
    .await
}
