//! The door of online steps: the only way out of a container during `lock`.
//!
//! A container has no network. Its init forwards loopback connections to the door's Unix socket, and Maven's settings
//! name the door as mirror of everything. The door answers from the store or from the origins; it hashes and records
//! the files. The lock is written from these records, never from the contents of a cache that untrusted plugins can
//! change. Requests of a container are untrusted: paths are validated, sizes are limited, and addresses come only from
//! the origins.

mod error;
mod fetching;
mod find;
pub mod released;
mod serving;
mod versions;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::UnixListener;

pub use self::error::DoorError;
use self::serving::accept;
use super::allowance::{Allowance, Exhausted};
use crate::artifact::fetch::Client;
use crate::artifact::made::MadeError;
use crate::artifact::origin::OriginName;
use crate::artifact::store::Store;
use crate::digest::Digest;
use crate::lock::{FrozenMetadata, MavenFile};

/// The mirror's id in `images/settings.xml`. Maven names cached metadata after it.
pub const MIRROR_ID: &str = "testevo";

/// The loopback port of init's listener, which the settings name.
pub const DOOR_PORT: u16 = 8099;

/// The largest artifact that passes the door, in bytes.
const MAX_ARTIFACT_BYTES: u64 = 1 << 30;

/// The most refused requests that are recorded for messages.
const MAX_REFUSED: usize = 100;

/// What the doors of one lock served.
#[derive(Clone, Debug, Default)]
pub struct Passage {
    /// Files that were served, by path in repository layout.
    pub files: BTreeMap<String, MavenFile>,
    /// Metadata that was served, by the path of its cached form.
    pub metadata: BTreeMap<String, FrozenMetadata>,
}

/// Requests of one container that were not served.
#[derive(Clone, Debug, Default)]
pub struct Troubles {
    /// Paths that no origin has.
    pub absent: BTreeSet<String>,
    /// Requests that failed for another reason, by path.
    pub failed: BTreeMap<String, Trouble>,
    /// The first requests whose target is not a path of a Maven repository: method and target, unchanged.
    pub refused: BTreeSet<String>,
}

/// Why an origin that may have a file did not serve it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The origin.
    pub origin: OriginName,
    /// The cause, which names origin and path.
    pub cause: String,
    /// Whether the origin did not answer at all.
    pub silent: bool,
    /// Whether the origin lets nobody in (status 401 or 403), or has web pages in place of files.
    pub closed: bool,
    /// Whether only a POM gives the origin's address.
    pub declared: bool,
}

impl Trouble {
    /// Tells whether a build may do without what the origin has: only a POM names the origin, and it does not answer or is
    /// closed. Any other failure may be one of the moment, or of the machine's network or settings.
    pub fn is_bearable(&self) -> bool {
        (self.silent || self.closed) && self.declared
    }
}

/// The sources of a door's answers.
pub struct DoorContext {
    /// Fetches from origins.
    pub client: Client,
    /// The store for files that pass.
    pub store: Store,
    /// Names of the origins, in the order of requests.
    pub origins: Vec<OriginName>,
    /// Versions that were published after this day are not offered to Maven.
    pub cutoff: jiff::civil::Date,
    /// Java release of the builds. Versions that need a newer one are not chosen.
    pub java: u32,
    /// The passage of an earlier lock or another container.
    pub known: Passage,
    /// `group/artifact` paths of the repository's own modules. No release stands in for a snapshot of these: it has later code.
    pub own: BTreeSet<String>,
    /// Whether files are fetched although another lock has fetched them before.
    pub anew: bool,
}

/// An open door for one container at a time. Dropping it closes the door and removes its socket.
pub struct Door {
    socket: PathBuf,
    asker: Arc<Asker>,
    accepting: tokio::task::JoinHandle<()>,
}

/// What the containers of one door see and are refused.
struct Asker {
    sources: Arc<Sources>,
    troubles: Mutex<Troubles>,
    /// Files in the tree of the next container, by path. The store has them.
    in_tree: Mutex<BTreeMap<String, MavenFile>>,
}

/// What all doors of one lock share.
struct Sources {
    client: Client,
    store: Store,
    origins: Mutex<Vec<OriginName>>,
    cutoff: jiff::civil::Date,
    java: u32,
    passage: Mutex<Passage>,
    own: BTreeSet<String>,
    anew: bool,
    /// SHA-1 checksums of files that passed, for `x-checksum-sha1` and `.sha1` requests.
    sums: Mutex<BTreeMap<Digest, String>>,
    allowance: Allowance,
}

impl Door {
    /// Opens a door at `socket`. Every user may connect.
    ///
    /// # Errors
    /// [`DoorError::Socket`].
    pub fn open(socket: &Path, context: DoorContext) -> Result<Self, DoorError> {
        let sources = Sources {
            client: context.client,
            store: context.store,
            origins: Mutex::new(context.origins),
            cutoff: context.cutoff,
            java: context.java,
            passage: Mutex::new(context.known),
            own: context.own,
            anew: context.anew,
            sums: Mutex::default(),
            allowance: Allowance::new(),
        };
        Self::to(Arc::new(sources), socket)
    }

    /// Opens a door for another container at the same time. What passes one of them passes the other, too.
    ///
    /// # Errors
    /// [`DoorError::Socket`].
    pub fn another(&self, socket: &Path) -> Result<Self, DoorError> {
        Self::to(Arc::clone(&self.asker.sources), socket)
    }

    fn to(sources: Arc<Sources>, socket: &Path) -> Result<Self, DoorError> {
        let error = |source| DoorError::Socket { path: socket.to_owned(), source };
        let listener = bind(socket).map_err(error)?;
        // The container's user is another one. The parent directory excludes other users of the host.
        let everyone = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        fs_err::set_permissions(socket, everyone).map_err(error)?;
        let asker = Arc::new(Asker { sources, troubles: Mutex::default(), in_tree: Mutex::default() });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&asker)));
        Ok(Self { socket: socket.to_owned(), asker, accepting })
    }

    /// Returns the socket's path.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns the files and metadata that have passed the door so far, with those that were known at its opening.
    pub fn passage(&self) -> Passage {
        held(&self.asker.sources.passage).clone()
    }

    /// Returns the requests that were not served since [`Door::forget_troubles`].
    pub fn troubles(&self) -> Troubles {
        held(&self.asker.troubles).clone()
    }

    /// Returns the limit that the lock reached, if any.
    pub fn exhausted(&self) -> Option<Exhausted> {
        self.asker.sources.allowance.exhausted()
    }

    /// Remembers the released files among these for other locks. Maven has used them.
    ///
    /// # Errors
    /// [`MadeError`].
    pub async fn remember(&self, files: &[MavenFile]) -> Result<(), MadeError> {
        released::remember(&self.asker.sources, files).await
    }

    /// Serves these files before origins are asked, in place of the previously offered ones.
    pub fn offer(&self, in_tree: BTreeMap<String, MavenFile>) {
        *held(&self.asker.in_tree) = in_tree;
    }

    /// Forgets the requests that were not served, so that those of the next container are recorded alone.
    pub fn forget_troubles(&self) {
        *held(&self.asker.troubles) = Troubles::default();
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.accepting.abort();
        // The door is closed. A leftover socket file would be swept with its directory.
        let _ = fs_err::remove_file(&self.socket);
    }
}

/// Creates the socket. A socket's address has about a hundred bytes, and a data directory's path may be longer. So the
/// directory is named by its descriptor.
fn bind(socket: &Path) -> std::io::Result<UnixListener> {
    use std::os::fd::AsRawFd as _;
    let (Some(directory), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(std::io::Error::from(std::io::ErrorKind::InvalidInput));
    };
    let directory = fs_err::File::open(directory)?;
    UnixListener::bind(Path::new(&format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name))
}

/// Takes a lock. Its data is sound even if another holder panicked, because every update is a single insertion.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells whether a path is a valid path of a file in a Maven repository.
pub fn is_repository_path(path: &str) -> bool {
    path.len() <= 1024
        && path.contains('/')
        && path.split('/').all(|part| {
            !matches!(part, "" | "." | "..")
                && part.len() <= 255
                && part
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'+' | b'$' | b'~'))
        })
}

#[cfg(test)]
mod tests;
