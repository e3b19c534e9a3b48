//! `workspace`: writes what agents get of tasks, and collects predictions from it.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::failures::{Failures, Partial};
use super::readiness::tell_unready;
use super::selection::{by_repository, tasks};
use super::workbench::{Workbench, blocking, whole_builds};
use super::{Context, agent_images};
use crate::agent::collection::{Collected, Target, collect};
use crate::agent::dataset::DatasetRow;
use crate::agent::{AgentError, NewWorkspace, Written, check_free, packing};
use crate::digest::Digest;
use crate::engine::Engine;
use crate::engine::spec::TASK_USER;
use crate::error::CommandError;
use crate::execution::container::temporary::Spool;
use crate::execution::module::WholeBuilds;
use crate::image::recipe::ImageRecipe;
use crate::image::{Catalog, Image, task_tag, with_layer};
use crate::lock::LayerKind;
use crate::manifest::RepositoryManifest;
use crate::output::counted;
use crate::task::selector::Selector;
use crate::task::{RepositoryName, Task, TaskId};
use crate::workspace::Repository;

/// Writes a workspace for each selected task to `output/<task id>`; `None` after a dry run, which only tells what would be
/// written.
///
/// # Errors
/// [`CommandError`] of the selection and the output; an interrupt. Nothing is written if a workspace's place is taken.
pub async fn write(
    selector: &Selector,
    output: &Path,
    context: &Context,
) -> Result<Option<Partial<Vec<Written>>>, CommandError> {
    let tasks = tasks(selector, context)?;
    for task in &tasks {
        check_free(&task.id, &output.join(task.id.as_str()))?;
    }
    if context.options.dry_run {
        preview(&tasks, output, context).await?;
        return Ok(None);
    }
    let workbench = Workbench::open(context)?;
    context.umask.create_directory(output).map_err(AgentError::Io)?;
    let groups = by_repository(&tasks);
    let (mut written, mut failures) = (Vec::new(), Failures::new(groups.len(), context));
    let one = async |repository: &RepositoryName, tasks: &Vec<&Task>| {
        let maker = Maker::open(&workbench, repository, tasks).await?;
        if maker.image.is_none() {
            context.events.warning(format!("{repository} has no image, so its workspaces name none"));
        }
        for task in tasks {
            written.push(maker.write(task, &output.join(task.id.as_str()), context).await?);
        }
        Ok(())
    };
    failures.each(&groups, one).await?;
    Ok(Some(Partial { results: written, verdict: failures.settle("written", Ok(())) }))
}

/// Tells where the tasks would be written, and which sources would be fetched for that.
async fn preview(tasks: &[Task], output: &Path, context: &Context) -> Result<(), CommandError> {
    tell_output(tasks.len(), output, context);
    // What is written may name an image, but needs none.
    tell_unready(tasks, |_| false, "written", context).await
}

/// Tells where so many tasks would be written.
pub(super) fn tell_output(tasks: usize, output: &Path, context: &Context) {
    let tasks = counted(tasks, "task", "tasks");
    context.events.message(format!("would write {tasks} to `{}`", output.display()));
}

/// Tells which images would be composed and loaded for the tasks, and which sources would be fetched for that.
///
/// # Errors
/// [`CommandError::Usage`] if no tools of agents are locked; errors of manifests, locks and sources.
pub(super) async fn preview_images(tasks: &[Task], context: &Context) -> Result<(), CommandError> {
    context.events.message(format!("would load {}", counted(tasks.len(), "image", "images")));
    let workbench = Workbench::open(context)?;
    let catalog = Catalog::open(&workbench.data_dir)?;
    let groups = by_repository(tasks);
    let mut failures = Failures::new(groups.len(), context);
    let tell =
        async |repository: &_, _: &_| agent_images::preview(&workbench, &catalog, &workbench.manifest(repository)?);
    failures.each(&groups, tell).await?;
    failures.settle("loaded", Ok(()))?;
    tell_unready(tasks, |_| false, "loaded", context).await
}

/// A task's image in an engine.
#[derive(Clone, Debug, Serialize)]
pub struct TaskImage {
    /// The task.
    pub task_id: TaskId,
    /// The image's id.
    pub image: Digest,
    /// Its name in the engine.
    pub name: String,
}

/// Loads an image for each selected task into the engine: the image for agents with the task's workspace on top. A dry run
/// only tells how many, and loads none.
///
/// # Errors
/// [`CommandError`] of the selection and the engine; an interrupt.
pub async fn load(selector: &Selector, context: &Context) -> Result<Partial<Vec<TaskImage>>, CommandError> {
    let tasks = tasks(selector, context)?;
    if context.options.dry_run {
        preview_images(&tasks, context).await?;
        return Ok(Partial { results: Vec::new(), verdict: Ok(()) });
    }
    let workbench = Workbench::open(context)?;
    let engine = workbench.engine().await?;
    let groups = by_repository(&tasks);
    let (mut loaded, mut failures) = (Vec::new(), Failures::new(groups.len(), context));
    let one = async |repository: &RepositoryName, tasks: &Vec<&Task>| {
        let (agent, recipe) = agent_images::compose_by(&workbench, &workbench.manifest(repository)?).await?;
        let maker = Maker::open(&workbench, repository, tasks).await?;
        for task in tasks {
            loaded.push(maker.load(task, (&agent, &recipe), &workbench, engine.as_ref()).await?);
        }
        Ok(())
    };
    let ended = failures.each(&groups, one).await;
    engine.close().await?;
    ended?;
    Ok(Partial { results: loaded, verdict: failures.settle("loaded", Ok(())) })
}

/// Tells where a data set of the selected tasks would be written, and which sources would be fetched for that.
///
/// # Errors
/// [`CommandError`] of selections and sources.
pub async fn preview_dataset(
    selector: &Selector,
    output: Option<&Path>,
    context: &Context,
) -> Result<(), CommandError> {
    preview(&tasks(selector, context)?, output.unwrap_or(Path::new("-")), context).await
}

/// Hands over the selected tasks as lines of a data set, one after the other; `answered` for scorers. Returns the number
/// of lines. A repository that fails has none.
///
/// # Errors
/// [`CommandError`] of the selection and of `take`; an interrupt.
pub async fn dataset(
    selector: &Selector,
    answered: bool,
    context: &Context,
    mut take: impl FnMut(&DatasetRow) -> Result<(), CommandError>,
) -> Result<Partial<usize>, CommandError> {
    let tasks = tasks(selector, context)?;
    let workbench = Workbench::open(context)?;
    let groups = by_repository(&tasks);
    let (mut lines, mut failures) = (0, Failures::new(groups.len(), context));
    for (repository, tasks) in &groups {
        let rows = rows(&workbench, repository, tasks, answered).await;
        for row in failures.unless(repository, rows)?.into_iter().flatten() {
            take(&row)?;
            lines += 1;
        }
    }
    Ok(Partial { results: lines, verdict: failures.settle("written", Ok(())) })
}

/// Returns the lines of a repository's tasks.
async fn rows(
    workbench: &Workbench<'_>,
    repository: &RepositoryName,
    tasks: &[&Task],
    answered: bool,
) -> Result<Vec<DatasetRow>, CommandError> {
    let maker = Maker::open(workbench, repository, tasks).await?;
    let mut rows = Vec::new();
    for task in tasks {
        rows.push(maker.row(task, answered, workbench.context).await?);
    }
    Ok(rows)
}

/// What the workspaces of a repository's tasks are made of.
pub(super) struct Maker {
    /// A git directory with every revision of the tasks.
    pub(super) sources: PathBuf,
    manifest: RepositoryManifest,
    image: Option<Image>,
    whole: WholeBuilds,
    temporary: PathBuf,
}

impl Maker {
    /// Opens the sources of the tasks, which are of one repository.
    pub(super) async fn open(
        workbench: &Workbench<'_>,
        repository: &RepositoryName,
        tasks: &[&Task],
    ) -> Result<Self, CommandError> {
        let manifest = workbench.manifest(repository)?;
        let built = Catalog::open(&workbench.data_dir)?.get(repository)?.filter(|built| built.is_for(&manifest));
        let sources = workbench.repository(&manifest, tasks).await?;
        let whole = match workbench.repository_lock(repository)?.filter(|lock| lock.is_for(&manifest)) {
            Some(lock) => whole_builds(&sources, &manifest, &lock, tasks).await?,
            // Without a lock of this manifest nothing is known to need all modules.
            None => WholeBuilds::default(),
        };
        let image = built.map(|built| built.agent.unwrap_or(built.image));
        let temporary = workbench.data_dir.temporary();
        Ok(Self { sources: sources.path().to_owned(), manifest, image, whole, temporary })
    }

    /// Returns the task's line of a data set.
    async fn row(&self, task: &Task, answered: bool, context: &Context) -> Result<DatasetRow, CommandError> {
        self.with(task, context, move |workspace| workspace.dataset_row(answered)).await
    }

    /// Writes the workspace of a task.
    pub(super) async fn write(&self, task: &Task, output: &Path, context: &Context) -> Result<Written, CommandError> {
        let output = output.to_owned();
        self.with(task, context, move |workspace| workspace.write(&output)).await
    }

    /// Loads the image of a task into the engine: the given image for agents with the task's workspace on top.
    pub(super) async fn load(
        &self,
        task: &Task,
        agent: (&Image, &ImageRecipe),
        workbench: &Workbench<'_>,
        engine: &dyn Engine,
    ) -> Result<TaskImage, CommandError> {
        let image = self.image_of(task, agent, workbench).await?;
        load_image(&image, (&task.id, &task.repository), workbench, engine).await
    }

    /// Composes the image of a task.
    async fn image_of(
        &self,
        task: &Task,
        (agent, recipe): (&Image, &ImageRecipe),
        workbench: &Workbench<'_>,
    ) -> Result<Image, CommandError> {
        let spool = Spool::create(&self.temporary).map_err(AgentError::Io)?;
        let directory = spool.path().join("workspace");
        let written = self.write(task, &directory, workbench.context).await?;
        with_workspace((agent, recipe), directory, (&task.id, &written.commit), workbench).await
    }

    /// Makes something of the task's parameters, where it may block.
    pub(super) async fn with<T: Send + 'static>(
        &self,
        task: &Task,
        context: &Context,
        make: impl FnOnce(NewWorkspace<'_>) -> Result<T, AgentError> + Send + 'static,
    ) -> Result<T, CommandError> {
        let Self { sources, manifest, image, whole, temporary } = self;
        let (sources, manifest, image, whole) = (sources.clone(), manifest.clone(), image.clone(), whole.clone());
        let (task, temporary) = (task.clone(), temporary.clone());
        let work = blocking(move || {
            let repository = Repository::open(task.repository.clone(), &sources)?;
            let spool = Spool::create(&temporary).map_err(AgentError::Io)?;
            let workspace = NewWorkspace {
                repository: &repository,
                task: &task,
                manifest: &manifest,
                image: image.as_ref(),
                whole: &whole,
                archive: &spool.path().join("tree.tar"),
            };
            make(workspace).map_err(CommandError::from)
        });
        context.until_interrupted(work).await
    }
}

/// Composes an image with the workspace of a task in `directory`, whose one commit is `commit`, on top of an image for agents.
pub(super) async fn with_workspace(
    (agent, recipe): (&Image, &ImageRecipe),
    directory: PathBuf,
    (task, commit): (&TaskId, &str),
    workbench: &Workbench<'_>,
) -> Result<Image, CommandError> {
    let (agent, recipe, store) = (agent.clone(), recipe.clone(), workbench.store.clone());
    let key = Digest::of(format!("{} {task} {commit}", agent.config_digest).as_bytes());
    let compose = blocking(move || {
        let write = |out: &mut dyn Write| packing::plain(&directory, "work/", TASK_USER, out).map(drop);
        Ok(with_layer((&agent, &recipe), LayerKind::Workspace, key, &store, write)?)
    });
    workbench.context.until_interrupted(compose).await
}

/// Loads the image of a task into the engine.
pub(super) async fn load_image(
    image: &Image,
    (task, repository): (&TaskId, &RepositoryName),
    workbench: &Workbench<'_>,
    engine: &dyn Engine,
) -> Result<TaskImage, CommandError> {
    let name = task_tag(image, task, repository);
    workbench.load_as(engine, image, &name).await?;
    Ok(TaskImage { task_id: task.clone(), image: image.config_digest, name })
}

/// Returns the one selected task.
///
/// # Errors
/// [`CommandError::Usage`] for several tasks; errors of the selection.
pub(super) fn one_task(selector: &Selector, context: &Context) -> Result<Task, CommandError> {
    one(tasks(selector, context)?)
}

/// Returns the one of what was selected.
///
/// # Errors
/// [`CommandError::Usage`] for several.
pub(super) fn one<T>(mut selected: Vec<T>) -> Result<T, CommandError> {
    match (selected.pop(), selected.len()) {
        (Some(one), 0) => Ok(one),
        (_, others) => Err(CommandError::Usage {
            message: format!("{} tasks are selected, but a workspace is of one", others + 1),
            hint: "name one task's id".to_owned(),
        }),
    }
}

/// Collects the prediction that an agent left in the workspace of the one selected task.
///
/// # Errors
/// [`CommandError::Usage`] for several tasks; [`CommandError`] of sources and of what the agent left.
pub async fn collect_one(
    selector: &Selector,
    workspace: PathBuf,
    context: &Context,
) -> Result<(Target, Collected), CommandError> {
    let task = one_task(selector, context)?;
    let workbench = Workbench::open(context)?;
    let manifest = workbench.manifest(&task.repository)?;
    let repository = workbench.repository(&manifest, &[&task]).await?;
    blocking(move || {
        let target = Target::from(&task);
        let collected = collect(&target, &workspace, &repository.tree(&task.rev2)?)?;
        Ok((target, collected))
    })
    .await
}
