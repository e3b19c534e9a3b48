//! The engine behind a Docker or Podman daemon, over the API that both speak on a Unix socket.
//!
//! Every container has labels that name its owner. So the next process finds the containers of a killed one
//! ([`sweep`](DockerEngine::sweep)), and leaves those of living processes alone.

mod body;
mod connect;
mod container;
mod images;
mod sweep;
mod users;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bollard::Docker;
use bollard::errors::Error as DaemonError;
use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, ImportImageOptionsBuilder,
    RemoveContainerOptionsBuilder, StartContainerOptions,
};
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use tokio_util::task::TaskTracker;

pub use self::connect::{Candidate, Daemon, candidates};
use super::spec::ContainerSpec;
use super::{Container, Engine, EngineDescription, EngineError, EngineImage, ImageIdentity, ImageRemoval};
use crate::data_dir::Owner;
use crate::digest::Digest;

/// A connected daemon.
pub struct DockerEngine {
    shared: Arc<Shared>,
    description: EngineDescription,
    init: PathBuf,
}

/// The engine's state that running containers use.
struct Shared {
    docker: Docker,
    owner: Owner,
    podman: bool,
    users: users::Users,
    /// Images that were introduced, by config digest.
    known: Mutex<BTreeMap<Digest, images::Known>>,
    /// Starts and removals that continue after their caller stopped waiting.
    under_way: TaskTracker,
}

impl DockerEngine {
    /// Connects to the daemon. `owner` is this process; `init` is this program's file from [`super::own_executable`]; in
    /// `directory` lie files that containers are given, as long as the engine is used.
    ///
    /// # Errors
    /// [`EngineError::Unreachable`], [`EngineError::Address`], [`EngineError::Unfit`], [`EngineError::InitFile`],
    /// [`EngineError::Mount`].
    pub async fn connect(daemon: &Daemon, owner: &Owner, init: &Path, directory: &Path) -> Result<Self, EngineError> {
        let init = fs_err::canonicalize(init).map_err(|error| EngineError::InitFile { reason: error.to_string() })?;
        super::check_static(&init)?;
        let connected = connect::connect(daemon).await?;
        let podman = connected.description.name == "podman";
        let users = users::Users::choose(&connected.description.isolation, directory)?;
        let under_way = TaskTracker::new();
        // Closed from the beginning: waiting ends whenever the tracker is empty, and tasks that are added later still
        // count.
        under_way.close();
        let (docker, owner, known) = (connected.docker, owner.clone(), Mutex::default());
        let shared = Arc::new(Shared { docker, owner, podman, users, known, under_way });
        Ok(Self { shared, description: connected.description, init })
    }
}

impl Shared {
    async fn start(
        self: Arc<Self>,
        spec: &ContainerSpec,
        init: &Path,
        name: String,
        body: ContainerCreateBody,
    ) -> Result<Container, EngineError> {
        let options = CreateContainerOptionsBuilder::default().name(&name).build();
        let created = self.docker.create_container(Some(options), body).await.map_err(|error| match error {
            DaemonError::DockerResponseServerError { status_code: 404, ref message } if message.contains("mage") => {
                self.forget(&spec.image);
                EngineError::ImageMissing { image: spec.image }
            }
            error => body::create_refused(spec, init, error),
        })?;
        for warning in &created.warnings {
            tracing::warn!(purpose = spec.purpose, warning, "the engine made the container with a warning");
        }
        // From here on, dropping this value removes the container.
        let control = container::Control::new(Arc::clone(&self), created.id, spec.purpose.clone());
        let failed = |error| EngineError::StartFailed { purpose: spec.purpose.clone(), message: message(error) };
        let options =
            AttachContainerOptionsBuilder::default().stdin(true).stdout(true).stderr(true).stream(true).build();
        let attached = self.docker.attach_container(control.id(), Some(options)).await.map_err(failed)?;
        self.docker.start_container(control.id(), None::<StartContainerOptions>).await.map_err(failed)?;
        Ok(Container {
            input: attached.input,
            output: container::output(attached.output, spec.purpose.clone()),
            control: Box::new(control),
        })
    }

    /// Removes a container, running or not. A missing one is no error.
    async fn remove(&self, id: &str) -> Result<(), EngineError> {
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        match self.docker.remove_container(id, Some(options)).await {
            Ok(()) => Ok(()),
            // 409: another request is removing it.
            Err(DaemonError::DockerResponseServerError { status_code: 404 | 409, .. }) => Ok(()),
            Err(error) => Err(daemon("remove a container", error)),
        }
    }

    /// Removes a container in the background. After a failure, the next sweep removes it.
    fn remove_later(self: &Arc<Self>, id: String) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            tracing::warn!(container = id, "left to the next sweep: the program is at its end");
            return;
        };
        let shared = Arc::clone(self);
        let removal = async move {
            if let Err(error) = shared.remove(&id).await {
                tracing::warn!(container = id, %error, "left to the next sweep");
            }
        };
        self.under_way.spawn_on(removal, &runtime);
    }
}

/// Wraps a daemon's error without a variant of its own.
fn daemon(operation: &'static str, source: DaemonError) -> EngineError {
    EngineError::Daemon { operation, source: Box::new(source) }
}

/// Returns the daemon's message if it answered, else the error's.
fn message(error: DaemonError) -> String {
    match error {
        DaemonError::DockerResponseServerError { message, .. } => message.trim().to_owned(),
        other => other.to_string(),
    }
}

#[async_trait]
impl Engine for DockerEngine {
    async fn start(&self, spec: &ContainerSpec) -> Result<Container, EngineError> {
        // One counter for all engines of the process, because the names of their containers contain the same owner.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = body::name(&spec.purpose, &self.shared.owner, number);
        let labels = sweep::labels(&self.shared.owner, spec.limits.wall_seconds);
        let image = self.shared.reference(&spec.image).await?;
        let body = body::create_body(spec, image, &self.init, &self.shared, labels)?;
        let (shared, spec, init) = (Arc::clone(&self.shared), spec.clone(), self.init.clone());
        let purpose = spec.purpose.clone();
        // A task of its own, so that it completes even if the caller gives up. Otherwise a created container without a
        // known number could not be removed. If nobody receives the container, the task removes it.
        let (sender, receiver) = tokio::sync::oneshot::channel();
        self.shared.under_way.spawn(async move {
            drop(sender.send(shared.start(&spec, &init, name, body).await));
        });
        receiver
            .await
            .unwrap_or_else(|_| Err(EngineError::StartFailed { purpose, message: "the start was broken off".into() }))
    }

    fn introduce(&self, image: &ImageIdentity) {
        self.shared.introduce(image);
    }

    async fn has_image(&self, image: &Digest) -> Result<bool, EngineError> {
        Ok(images::find(&self.shared, image).await?.is_some())
    }

    async fn load_image(
        &self,
        image: &Digest,
        archive: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<(), EngineError> {
        let options = ImportImageOptionsBuilder::default().quiet(true).build();
        // The answer begins after the daemon has read the archive, which may take long.
        let patient = self.shared.docker.clone().with_timeout(LOAD_TIMEOUT);
        let mut answers = patient.import_image_stream(options, archive, None::<HashMap<_, _>>);
        let mut last = String::new();
        while let Some(answer) = answers.next().await {
            let answer = answer.map_err(|error| daemon("load an image", error))?;
            if let Some(text) = answer.stream {
                last = text.trim().chars().take(200).collect();
            }
        }
        if self.has_image(image).await? {
            return Ok(());
        }
        Err(EngineError::ImageNotLoaded { image: *image, answer: last })
    }

    async fn inspect_image(&self, image: &Digest) -> Result<Option<EngineImage>, EngineError> {
        images::inspect(&self.shared, image).await
    }

    async fn tag_image(&self, image: &Digest, name: &str) -> Result<(), EngineError> {
        images::tag(&self.shared, image, name).await
    }

    async fn untag_image(&self, image: &Digest, name: &str) -> Result<(), EngineError> {
        images::untag(&self.shared, image, name).await
    }

    async fn remove_image(&self, image: &Digest) -> Result<ImageRemoval, EngineError> {
        images::remove(&self.shared, image).await
    }

    async fn describe(&self) -> Result<EngineDescription, EngineError> {
        Ok(self.description.clone())
    }

    async fn wait_for_removals(&self) {
        self.shared.under_way.wait().await;
    }

    async fn sweep(&self) -> Result<usize, EngineError> {
        sweep::sweep(&self.shared).await
    }

    async fn close(&self) -> Result<(), EngineError> {
        sweep::remove_own(&self.shared).await?;
        self.wait_for_removals().await;
        Ok(())
    }
}

/// Longest time for reading an image.
const LOAD_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(3600);

#[cfg(test)]
mod tests;
