//! What a shell is opened on: a task's workspace as an archive, and the image for agents.

use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::agent::collection::Target;
use crate::agent::{AgentError, packing};
use crate::application::agents::{Maker, one_task};
use crate::application::bundle::import::import;
use crate::application::bundle::load::agent_image;
use crate::application::bundle::unpack::{UnpackRequest, Unpacked, unpack_one};
use crate::application::workbench::{Workbench, blocking};
use crate::application::{Context, agent_images};
use crate::engine::spec::TASK_USER;
use crate::error::CommandError;
use crate::image::Image;
use crate::manifest::Limits;
use crate::task::RepositoryName;
use crate::task::selector::Selector;

/// Where the workspace and the image come from.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'a> {
    /// The sources and locks of the one selected task.
    Selected(&'a Selector),
    /// A bundle for agents, whose images are imported.
    Bundle(&'a UnpackRequest),
}

/// What a container for a shell is made of.
pub(super) struct Opening {
    pub(super) target: Target,
    pub(super) repository: RepositoryName,
    /// The image for agents.
    pub(super) image: Image,
    pub(super) jdk: u32,
    pub(super) limits: Limits,
    /// The workspace.
    pub(super) archive: PathBuf,
}

impl Opening {
    /// Takes the workspace into the directory `spool`.
    pub(super) async fn of(origin: Origin<'_>, workbench: &Workbench<'_>, spool: &Path) -> Result<Self, CommandError> {
        match origin {
            Origin::Selected(selector) => Self::of_selected(selector, workbench, spool).await,
            Origin::Bundle(request) => Self::of_bundle(request, workbench, spool).await,
        }
    }

    async fn of_selected(selector: &Selector, workbench: &Workbench<'_>, spool: &Path) -> Result<Self, CommandError> {
        let task = one_task(selector, workbench.context)?;
        let manifest = workbench.manifest(&task.repository)?;
        let image = agent_images::compose(workbench, &manifest).await?;
        let maker = Maker::open(workbench, &task.repository, &[&task]).await?;
        let directory = spool.join("workspace");
        maker.write(&task, &directory, workbench.context).await?;
        let archive = pack(directory, spool, workbench.context).await?;
        let (target, repository) = (Target::from(&task), task.repository);
        Ok(Self { target, repository, image, jdk: manifest.jdk, limits: manifest.limits, archive })
    }

    async fn of_bundle(request: &UnpackRequest, workbench: &Workbench<'_>, spool: &Path) -> Result<Self, CommandError> {
        let directory = spool.join("workspace");
        let Unpacked { facts, limits, .. } = unpack_one(request, &directory, true, workbench.context).await?;
        import(&request.import(), workbench.context).await?;
        let repository = facts.repository.clone();
        let (jdk, image) = agent_image(&repository, workbench)?;
        let archive = pack(directory, spool, workbench.context).await?;
        Ok(Self { target: facts.into(), repository, image, jdk, limits, archive })
    }
}

/// Packs a workspace for the container, and removes its directory.
async fn pack(directory: PathBuf, spool: &Path, context: &Context) -> Result<PathBuf, CommandError> {
    let archive = spool.join("workspace.tar");
    let path = archive.clone();
    let pack = move || {
        let packed = packing::plain(&directory, "", TASK_USER, io::BufWriter::new(fs::File::create(path)?))?;
        packed.into_inner().map_err(io::IntoInnerError::into_error)?;
        fs::remove_dir_all(&directory)
    };
    context.until_interrupted(blocking(move || Ok(pack().map_err(AgentError::Io)?))).await?;
    Ok(archive)
}
