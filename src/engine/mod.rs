//! Runs one sealed container at a time: its specification, the engines that start it, and the init inside it.
//!
//! An engine takes a [`ContainerSpec`] and returns a running [`Container`] in one call. No command is started in the
//! container later, and no file is copied in or out. Inputs are read-only mounts; stdin brings the program and the
//! archives that it unpacks. Scratch is memory. Results are the frames that [`init`] sends. Callers use
//! [`session::run`], or [`session::conversation`] for a dialogue.

mod cgroup;
pub mod docker;
pub mod error;
pub mod frame;
pub mod init;
pub mod native;
#[cfg(test)]
pub(crate) mod scripted;
pub mod session;
pub mod spec;

use std::io;
use std::path::PathBuf;
use std::pin::Pin;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWrite;

pub use self::error::EngineError;
use self::spec::ContainerSpec;
use crate::artifact::store::Store;
use crate::digest::Digest;

/// A container engine.
#[async_trait]
pub trait Engine: Send + Sync {
    /// Creates and starts the container. Its output can be read from its first byte. Dropping it ends and removes it.
    ///
    /// # Errors
    /// [`EngineError`]. Nothing is left running then.
    async fn start(&self, spec: &ContainerSpec) -> Result<Container, EngineError>;

    /// Tells the engine the other digests and names of an image, because not every engine finds an image by its config
    /// digest. From then on, the config digest stands for all of them.
    fn introduce(&self, _image: &ImageIdentity) {}

    /// Tells whether the image with this config digest can be started.
    ///
    /// # Errors
    /// [`EngineError::Daemon`].
    async fn has_image(&self, image: &Digest) -> Result<bool, EngineError>;

    /// Loads an image from an archive in the form of `docker load`. Loading an existing image again is no error.
    ///
    /// # Errors
    /// [`EngineError::Daemon`]; [`EngineError::ImageNotLoaded`] if the archive contains another image.
    async fn load_image(
        &self,
        image: &Digest,
        archive: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<(), EngineError>;

    /// Loads an image directly from the store's blobs. An engine that can't do this returns false without doing
    /// anything; the caller then uses [`Engine::load_image`].
    ///
    /// # Errors
    /// [`EngineError::Layers`].
    async fn load_stored(&self, _image: &StoredImage) -> Result<bool, EngineError> {
        Ok(false)
    }

    /// Returns the engine's information about the image with this config digest; `None` if it is not loaded.
    ///
    /// # Errors
    /// [`EngineError::Daemon`].
    async fn inspect_image(&self, image: &Digest) -> Result<Option<EngineImage>, EngineError>;

    /// Gives the image another name, `repository:tag`. Another image with that name loses it.
    ///
    /// # Errors
    /// [`EngineError::ImageMissing`], [`EngineError::Daemon`].
    async fn tag_image(&self, image: &Digest, name: &str) -> Result<(), EngineError>;

    /// Removes a name from the image, if it has the name. With its last name an engine may remove the image.
    ///
    /// # Errors
    /// [`EngineError::Daemon`].
    async fn untag_image(&self, image: &Digest, name: &str) -> Result<(), EngineError>;

    /// Removes our names from the image, and then the image, unless it has other names or a container uses it.
    ///
    /// # Errors
    /// [`EngineError::Daemon`].
    async fn remove_image(&self, image: &Digest) -> Result<ImageRemoval, EngineError>;

    /// Returns the engine's properties, and the limits that it enforces.
    ///
    /// # Errors
    /// [`EngineError::Daemon`].
    async fn describe(&self) -> Result<EngineDescription, EngineError>;

    /// Waits until everything of ended containers is removed. Does not affect running ones.
    async fn wait_for_removals(&self) {}

    /// Removes containers whose owners are dead and returns their number. Containers of living processes stay.
    ///
    /// # Errors
    /// [`EngineError::Daemon`].
    async fn sweep(&self) -> Result<usize, EngineError>;

    /// Ends and removes all containers of this process, and waits until they are gone. Called at the end of the
    /// program, also after an interrupt.
    ///
    /// # Errors
    /// [`EngineError::Daemon`].
    async fn close(&self) -> Result<(), EngineError>;
}

/// The digests and names by which engines know an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageIdentity {
    /// Digest of its configuration.
    pub config_digest: Digest,
    /// Digest of its manifest.
    pub manifest_digest: Digest,
    /// Digests of its uncompressed layers, lowest first.
    pub layers: Vec<Digest>,
    /// Names that this program gives it, `repository:tag`.
    pub names: Vec<String>,
}

/// An image whose layers lie in the store.
#[derive(Clone, Debug)]
pub struct StoredImage {
    /// Digest of its configuration.
    pub config_digest: Digest,
    /// Its layers, lowest first.
    pub layers: Vec<StoredLayer>,
    /// The store with their blobs.
    pub store: Store,
}

/// A layer in the store.
#[derive(Clone, Copy, Debug)]
pub struct StoredLayer {
    /// Digest of the uncompressed archive.
    pub diff_id: Digest,
    /// Digest of the blob, which may be compressed by gzip.
    pub digest: Digest,
    /// Size of the uncompressed archive in bytes.
    pub uncompressed_size: u64,
}

/// An image in an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EngineImage {
    /// Its names, `repository:tag`.
    pub names: Vec<String>,
    /// Digests of its uncompressed layers, lowest first.
    pub layers: Vec<Digest>,
    /// Size of its layers in bytes. Other images may share layers.
    pub size_bytes: u64,
}

/// The result of removing an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "removal", rename_all = "snake_case")]
pub enum ImageRemoval {
    /// It was removed.
    Removed,
    /// It did not exist.
    Absent,
    /// It stays.
    Kept {
        /// The reason.
        reason: String,
    },
}

/// A started container.
pub struct Container {
    /// Its init's stdin.
    pub input: Pin<Box<dyn AsyncWrite + Send>>,
    /// Its init's stdout and stderr, until both are closed.
    pub output: BoxStream<'static, Result<OutputPiece, EngineError>>,
    /// Ends the container and reports its end.
    pub control: Box<dyn ContainerControl>,
}

/// Some bytes of a container's output.
#[derive(Clone, Debug)]
pub enum OutputPiece {
    /// Frames.
    Stdout(Bytes),
    /// Init's error messages.
    Stderr(Bytes),
}

/// The handle on a running container.
#[async_trait]
pub trait ContainerControl: Send + Sync {
    /// Waits until it has ended, then removes it.
    ///
    /// # Errors
    /// [`EngineError::Vanished`], [`EngineError::Daemon`].
    async fn wait(&mut self) -> Result<ContainerExit, EngineError>;

    /// Ends it at once. An ended container is no error.
    ///
    /// # Errors
    /// [`EngineError::Daemon`].
    async fn kill(&mut self) -> Result<(), EngineError>;
}

/// How a container's init ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContainerExit {
    /// Exit status, or 128 plus the signal's number if a signal ended the container.
    pub exit_code: i64,
    /// Why the kernel ended some process for its memory, not necessarily init; `None` if it ended none.
    pub memory_kill: Option<MemoryKill>,
}

/// Why the kernel ended a process for its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKill {
    /// The container met its own limit.
    Limit,
    /// The machine, or a control group above the container's, had no memory left.
    Shortage,
    /// The same, but the container has no control group for memory: the process may belong to another container of this
    /// engine.
    ShortageNearby,
}

/// The properties of an engine.
#[derive(Clone, Debug, Serialize)]
pub struct EngineDescription {
    /// `docker`, `podman` or `native`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The API version in use.
    pub api_version: String,
    /// The engine's address.
    pub address: String,
    /// The kernel of its containers.
    pub kernel: String,
    /// Its machine's architecture, such as `x86_64`.
    pub architecture: String,
    /// The low-level runtime, such as `runc`.
    pub runtime: String,
    /// 1 or 2; `None` if the engine does not say.
    pub cgroup_version: Option<u8>,
    /// The storage driver for images and containers, such as `overlay2`.
    pub storage: String,
    /// The storage directory, on the engine's machine.
    pub storage_directory: Option<PathBuf>,
    /// Processors that the engine may use.
    pub processors: u64,
    /// Memory that the engine may use, in bytes.
    pub memory_bytes: u64,
    /// The engine's protections.
    pub isolation: Isolation,
}

impl EngineDescription {
    /// Checks that every limit is enforced.
    ///
    /// # Errors
    /// [`EngineError::Isolation`].
    pub fn require_strict(&self) -> Result<(), EngineError> {
        if self.isolation.unenforced.is_empty() {
            return Ok(());
        }
        Err(EngineError::Isolation { engine: self.name.clone(), missing: self.isolation.unenforced.clone() })
    }
}

/// The protections that an engine enforces, a part of every record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Isolation {
    /// The daemon runs without root's rights.
    pub rootless: bool,
    /// A filter of system calls is in force.
    pub seccomp: bool,
    /// User ids in containers differ from those outside.
    pub user_namespace: bool,
    /// `apparmor` or `selinux`; `None` if neither is in force.
    pub mandatory_access_control: Option<String>,
    /// Limits that the engine can't enforce, by name: `memory`, `swap`, `cpu`, `processes`, `socket memory` (memory of
    /// sockets that the control group does not count). Empty means strict.
    pub unenforced: Vec<String>,
}

/// Runs this process as a container's init or runtime if an engine started it as one; `None` if a user started it.
/// Every program that starts containers calls this first in its `main`, because engines start their own executable
/// again.
pub fn inside_container() -> Option<std::process::ExitCode> {
    // Init must not start threads, because it forks. It must not parse arguments as the command line does either.
    if init::is_wanted() {
        return Some(init::main());
    }
    // The process that makes a container's namespaces must not have threads either.
    native::runtime::is_wanted().then(native::runtime::main)
}

/// Returns this program's own file, which becomes the init of containers.
///
/// # Errors
/// [`EngineError::InitFile`] if the file was deleted or replaced since the start.
pub fn own_executable() -> Result<PathBuf, EngineError> {
    use std::os::unix::fs::MetadataExt as _;
    let unusable = |reason: String| EngineError::InitFile { reason };
    let path = std::env::current_exe().map_err(|error| unusable(format!("its file is not known: {error}")))?;
    let identity = |path: &std::path::Path| fs_err::metadata(path).map(|found| (found.dev(), found.ino()));
    // The link leads to the running file itself, even if another file has its name now.
    let running = identity(std::path::Path::new("/proc/self/exe")).map_err(|error| unusable(error.to_string()))?;
    match identity(&path) {
        Ok(found) if found == running => Ok(path),
        Ok(_) => Err(unusable(format!("`{}` was replaced since it was started", path.display()))),
        Err(error) => Err(unusable(error.to_string())),
    }
}

/// Checks that the file is a program that needs no other file of the host.
///
/// # Errors
/// [`EngineError::InitFile`] for anything except a statically linked 64-bit ELF program.
pub(crate) fn check_static(path: &std::path::Path) -> Result<(), EngineError> {
    use std::io::Read as _;
    use std::os::unix::fs::FileExt as _;
    let unusable = |reason: &str| EngineError::InitFile { reason: format!("`{}` {reason}", path.display()) };
    let unreadable = |error: io::Error| EngineError::InitFile { reason: error.to_string() };
    let mut file = fs_err::File::open(path).map_err(unreadable)?;
    let mut header = [0; 64];
    match file.read_exact(&mut header) {
        Ok(()) if header.starts_with(b"\x7fELF\x02\x01") => {}
        Ok(()) => return Err(unusable("is no ELF program")),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(unusable("is no ELF program")),
        Err(error) => return Err(unreadable(error)),
    }
    // Offset, size and number of the program headers. A header of type 3 names a dynamic loader.
    let word = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let offset = header[32..40].iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    for index in 0..u64::from(word(56)) {
        let mut kind = [0; 4];
        let at = offset.saturating_add(index * u64::from(word(54)));
        file.file().read_exact_at(&mut kind, at).map_err(unreadable)?;
        if u32::from_le_bytes(kind) == 3 {
            return Err(unusable("is not linked statically, so it would not run inside images"));
        }
    }
    Ok(())
}

/// Checks a container's input. A damaged blob or a closed file would otherwise show as an error in the container, or as
/// another result. If the container's user is `foreign`, everybody must have access.
pub(crate) fn check_mount(path: &std::path::Path, foreign: bool) -> Result<(), EngineError> {
    use std::os::unix::fs::MetadataExt as _;
    let unusable = |source| EngineError::Mount { path: path.to_owned(), source };
    if !path.is_absolute() {
        return Err(unusable(io::Error::new(io::ErrorKind::InvalidInput, "the path is not absolute")));
    }
    // Not fs_err, because the error names the path already.
    let found = std::fs::metadata(path).map_err(unusable)?;
    let needed = if found.is_dir() { 0o005 } else { 0o004 };
    if foreign && found.mode() & needed != needed {
        return Err(EngineError::MountClosed { path: path.to_owned(), mode: found.mode() & 0o7777 });
    }
    Ok(Store::check_if_blob(path)?)
}
