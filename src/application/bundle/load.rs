//! `workspace --load --bundle`: images of tasks from a bundle for agents, without locks, tasks' data, a mirror or the network.

use super::import::import;
use super::opened::lacks_agent;
use super::unpack::{Chosen, UnpackRequest, archive_of, holder_of};
use crate::agent::AgentError;
use crate::application::Context;
use crate::application::agents::{TaskImage, load_image, with_workspace};
use crate::application::failures::Partial;
use crate::application::workbench::{Workbench, blocking};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::execution::container::temporary::Spool;
use crate::image::recipe::ImageRecipe;
use crate::image::{Catalog, Image};
use crate::output::counted;
use crate::task::RepositoryName;

/// Imports the bundle's images, and loads an image for each selected task into the engine: the image for agents with the task's
/// workspace on top. A dry run only tells how many, and loads none.
///
/// # Errors
/// Those of [`write()`](super::unpack::write) and [`import()`]; [`CommandError::Usage`] without an image for agents; errors of
/// the engine.
pub async fn load(request: &UnpackRequest, context: &Context) -> Result<Partial<Vec<TaskImage>>, CommandError> {
    let (opened, chosen) = request.open(context)?;
    opened.check_agents(chosen.iter().map(|chosen| &chosen.repository))?;
    for chosen in &chosen {
        holder_of(&opened, chosen)?;
    }
    if context.options.dry_run {
        context.events.message(format!("would load {}", counted(chosen.len(), "image", "images")));
        return Ok(Partial { results: Vec::new(), verdict: Ok(()) });
    }
    let workbench = Workbench::open(context)?;
    import(&request.import(), context).await?;
    let engine = workbench.engine().await?;
    let one = async |chosen: Chosen, engine: &dyn Engine| {
        let (repository, commit) = (chosen.repository.clone(), chosen.packed.commit.clone());
        let (task, archive) = (chosen.task.clone(), archive_of(&opened, &chosen)?);
        let (jdk, agent) = agent_image(&repository, &workbench)?;
        let spool = Spool::create(&workbench.data_dir.temporary()).map_err(AgentError::Io)?;
        let directory = spool.path().join("workspace");
        let path = directory.clone();
        let unpack = blocking(move || Ok(chosen.unpack(archive, &path)?));
        context.until_interrupted(unpack).await?;
        let recipe = ImageRecipe::of_finished(jdk, repository.clone());
        let image = with_workspace((&agent, &recipe), directory, (&task, &commit), &workbench).await?;
        load_image(&image, (&task, &repository), &workbench, engine).await
    };
    let mut loaded = Vec::new();
    let loading = async {
        for chosen in chosen {
            loaded.push(one(chosen, engine.as_ref()).await?);
        }
        Ok(())
    };
    let verdict = loading.await;
    let closed = engine.close().await;
    // What is in the engine is told, whatever came after it.
    Ok(Partial { results: loaded, verdict: verdict.and(closed.map_err(Into::into)) })
}

/// Returns the image for agents that a bundle brought, with the major version of its Java development kit.
///
/// # Errors
/// [`CommandError::Usage`] if there is none: another command replaced the image meanwhile.
pub(in crate::application) fn agent_image(
    repository: &RepositoryName,
    workbench: &Workbench<'_>,
) -> Result<(u32, Image), CommandError> {
    let built = Catalog::open(&workbench.data_dir)?.get(repository)?;
    built.and_then(|built| Some((built.jdk, built.agent?))).ok_or_else(|| lacks_agent(repository))
}
