//! The built-in engine: containers without a daemon, as root and as any other user.
//!
//! Each container has a runtime: this program started anew with one thread. The runtime creates the namespaces and
//! outlives init. The engine talks to it over a socket. When the socket closes for any reason, the runtime ends the
//! container. `inside` lists the protections in their order. If no control groups can be created, init enforces the
//! limits by its own account, and [`Isolation::unenforced`] names the limits that the account can't enforce.

mod cgroup;
mod container;
mod delegation;
mod inside;
mod inventory;
mod layers;
mod load;
mod machine;
mod mounts;
mod plan;
mod probe;
pub mod runtime;
mod shortage;
mod unpack;
mod users;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use tokio_util::sync::CancellationToken;

use self::cgroup::Layout;
use self::container::Containers;
use self::layers::Layers;
pub use self::layers::{DamagedFile, VerifiedLayers};
use self::machine::Machine;
use self::plan::Plan;
pub use self::plan::Stage;
use super::spec::{ContainerSpec, DOOR_SOCKET, INIT_PATH, INIT_SUBCOMMAND, InitLimits, ReadOnlyMount};
use super::{Container, Engine, EngineDescription, EngineError, EngineImage, ImageRemoval, Isolation, StoredImage};
use crate::data_dir::Owner;
use crate::digest::Digest;
use crate::event::EventSink;

/// The built-in engine with its unpacked layers.
pub struct NativeEngine {
    layers: Arc<Layers>,
    layout: Layout,
    owner: Owner,
    init: PathBuf,
    containers: Containers,
    /// Ends all containers of this engine.
    end: CancellationToken,
}

impl NativeEngine {
    /// Opens the engine. `unpacked` is the directory of unpacked layers; `owner` is this process; `init` is this
    /// program's file from [`super::own_executable`]; `events` receives messages about damaged layers.
    ///
    /// # Errors
    /// [`EngineError::Layers`], [`EngineError::InitFile`].
    pub fn open(unpacked: &Path, owner: &Owner, init: &Path, events: &EventSink) -> Result<Self, EngineError> {
        let init = fs_err::canonicalize(init).map_err(|error| EngineError::InitFile { reason: error.to_string() })?;
        super::check_static(&init)?;
        Ok(Self {
            layers: Arc::new(Layers::open(unpacked, owner, events)?),
            layout: Layout::find(&Machine, owner),
            owner: owner.clone(),
            init,
            containers: Containers::default(),
            end: CancellationToken::new(),
        })
    }

    /// Removes all unpacked layers except `used`, and returns them with their size on disk in bytes; with `dry_run`
    /// they stay. `None`, with nothing removed, if another process may run containers from such layers.
    ///
    /// # Errors
    /// [`EngineError::Layers`].
    pub fn prune(&self, used: &BTreeSet<Digest>, dry_run: bool) -> Result<Option<Vec<(Digest, u64)>>, EngineError> {
        self.layers.prune(used, dry_run)
    }

    /// Runs a check of an image's layers that may take as long as reading them.
    async fn off_the_runtime<T: Send + 'static>(
        &self,
        image: Digest,
        ask: fn(&Layers, &Digest) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let layers = Arc::clone(&self.layers);
        load::off_the_runtime(move || ask(&layers, &image)).await
    }

    fn unenforced(&self) -> Vec<String> {
        let mut missing = self.layout.unenforced(swap_is_used());
        // The kernel counts processes by user, and exempts only the machine's root.
        if !rustix::process::geteuid().is_root() {
            missing.retain(|name| name != "processes");
        }
        missing
    }

    fn plan(&self, spec: &ContainerSpec) -> Result<Plan, EngineError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let Some(mut layers) = self.layers.of(&spec.image)? else {
            return Err(EngineError::ImageMissing { image: spec.image });
        };
        layers.reverse();
        let input =
            |source: &Path, target: &str| ReadOnlyMount { source: source.to_owned(), target: target.to_owned() };
        let mut inputs = vec![input(&self.init, INIT_PATH)];
        inputs.extend(spec.mounts.iter().cloned());
        let foreign = rustix::process::geteuid().is_root();
        for mount in &inputs {
            super::check_mount(&mount.source, foreign)?;
        }
        inputs.extend(spec.door.iter().map(|door| input(door, DOOR_SOCKET)));
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let held = |controller: &str| self.layout.parents.iter().any(|(name, _)| name == controller);
        let own = InitLimits {
            memory_bytes: (!held("memory")).then_some(spec.limits.memory_bytes),
            processes: (!held("pids")).then_some(spec.limits.processes),
        };
        let mut arguments = vec![INIT_PATH.to_owned(), INIT_SUBCOMMAND.to_owned()];
        if own != InitLimits::default() {
            arguments.push(serde_json::to_string(&own)?);
        }
        Ok(Plan {
            unpacked: self.layers.root().to_owned(),
            layers,
            inputs,
            scratch: spec.scratch.clone(),
            groups: self.layout.groups(&self.owner, number, &spec.limits),
            arguments,
        })
    }
}

/// Reads all unpacked layers in a directory and compares them with their inventories. With `repair`, damaged ones are
/// removed unless another process may use them.
///
/// # Errors
/// [`EngineError::Layers`].
pub fn verify_layers(unpacked: &Path, owner: &Owner, repair: bool) -> Result<VerifiedLayers, EngineError> {
    if !unpacked.exists() {
        return Ok(VerifiedLayers::default());
    }
    Layers::open(unpacked, owner, &EventSink::none())?.verify(repair)
}

/// Tells whether the machine could swap a container's memory to a disk.
fn swap_is_used() -> bool {
    fs_err::read_to_string("/proc/swaps").map_or(true, |text| text.lines().count() > 1)
}

#[async_trait]
impl Engine for NativeEngine {
    async fn start(&self, spec: &ContainerSpec) -> Result<Container, EngineError> {
        if !self.layers.is_known(&spec.image)?
            && let Some(file) = self.off_the_runtime(spec.image, Layers::damage).await?
        {
            return Err(EngineError::ImageDamaged { image: spec.image, file });
        }
        let plan = self.plan(spec)?;
        let purpose = spec.purpose.clone();
        let (init, containers, end) = (self.init.clone(), self.containers.clone(), self.end.child_token());
        // A task of its own, so that it completes even if the caller gives up. If nobody receives the container,
        // dropping the answer ends it.
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let (name, starting) = (purpose.clone(), self.containers.leaving.token());
        self.containers.all.spawn(async move {
            drop(sender.send(container::start(&init, plan, name, &containers, end).await));
            drop(starting);
        });
        receiver
            .await
            .unwrap_or_else(|_| Err(EngineError::StartFailed { purpose, message: "the start was broken off".into() }))
    }

    async fn has_image(&self, image: &Digest) -> Result<bool, EngineError> {
        Ok(self.layers.is_known(image)? || self.off_the_runtime(*image, Layers::is_whole).await?)
    }

    async fn load_image(
        &self,
        image: &Digest,
        archive: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<(), EngineError> {
        load::from_archive(&self.layers, &self.owner, *image, archive).await
    }

    async fn load_stored(&self, image: &StoredImage) -> Result<bool, EngineError> {
        load::from_store(&self.layers, image.clone()).await?;
        Ok(true)
    }

    async fn inspect_image(&self, image: &Digest) -> Result<Option<EngineImage>, EngineError> {
        self.layers.inspect(image)
    }

    async fn tag_image(&self, image: &Digest, name: &str) -> Result<(), EngineError> {
        self.layers.tag(image, name)
    }

    async fn untag_image(&self, image: &Digest, name: &str) -> Result<(), EngineError> {
        self.layers.untag(image, name)
    }

    async fn remove_image(&self, image: &Digest) -> Result<ImageRemoval, EngineError> {
        self.layers.remove(image)
    }

    async fn describe(&self) -> Result<EngineDescription, EngineError> {
        let names = rustix::system::uname();
        let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
        Ok(EngineDescription {
            name: "native".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            api_version: super::spec::PROGRAM_SCHEMA.to_string(),
            address: "this program".into(),
            kernel: text(names.release()),
            architecture: text(names.machine()),
            runtime: "testevo-sandbox".into(),
            cgroup_version: Some(self.layout.version).filter(|version| *version > 0),
            storage: "overlay".into(),
            storage_directory: Some(self.layers.root().to_owned()),
            processors: crate::host::processors().get() as u64,
            memory_bytes: crate::host::memory_bytes().unwrap_or(0),
            isolation: Isolation {
                rootless: !rustix::process::geteuid().is_root(),
                seccomp: true,
                user_namespace: true,
                mandatory_access_control: None,
                unenforced: self.unenforced(),
            },
        })
    }

    async fn wait_for_removals(&self) {
        self.containers.leaving.wait().await;
    }

    async fn sweep(&self) -> Result<usize, EngineError> {
        let layout = self.layout.clone();
        let swept = tokio::task::spawn_blocking(move || layout.sweep()).await;
        swept
            .unwrap_or_else(|error| Err(io::Error::other(error)))
            .map_err(|source| EngineError::Layers { doing: "removing what dead containers left".into(), source })
    }

    async fn close(&self) -> Result<(), EngineError> {
        self.end.cancel();
        self.containers.all.wait().await;
        Ok(())
    }
}
