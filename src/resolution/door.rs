//! The one door of online steps: the only way out of a container that locks.
//!
//! A container has no network. Its init forwards loopback connections to this Unix socket, Maven's settings name it as
//! mirror of everything, and the door answers from the store or else from the origins, hashes and keeps what it gave.
//! The lock is written from what passed here, never from what strangers' plugins left in a cache. Nothing that a
//! container asks for is trusted: paths are validated, sizes bounded, addresses come from the origins alone.

mod error;
mod fetching;
mod find;
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
use crate::artifact::origin::OriginName;
use crate::artifact::store::Store;
use crate::digest::Digest;
use crate::lock::{FrozenMetadata, MavenFile};

/// The mirror's id in `images/settings.xml`; Maven names cached metadata after it.
pub const MIRROR_ID: &str = "testevo";

/// The loopback port that init listens on and the settings name.
pub const DOOR_PORT: u16 = 8099;

/// The largest artifact that passes, in bytes.
const MAX_ARTIFACT_BYTES: u64 = 1 << 30;

/// Refused requests that are kept for messages.
const MAX_REFUSED: usize = 100;

/// What passed the door or was refused, by path.
#[derive(Clone, Debug, Default)]
pub struct Passage {
    /// Files that were given, by path in repository layout.
    pub files: BTreeMap<String, MavenFile>,
    /// Metadata that was given, by the path of its cached form.
    pub metadata: BTreeMap<String, FrozenMetadata>,
    /// Paths that no origin has.
    pub absent: BTreeSet<String>,
    /// Requests that failed for another reason: path and cause.
    pub failed: BTreeMap<String, String>,
    /// Requests for something that is no path of a Maven repository: method and target, as asked; the first ones.
    pub refused: BTreeSet<String>,
    /// Why nothing more is given, if so.
    pub exhausted: Option<Exhausted>,
}

/// What a door answers from.
pub struct DoorContext {
    /// Fetches from origins.
    pub client: Client,
    /// Keeps what passed.
    pub store: Store,
    /// Names of the origins to ask, in order.
    pub origins: Vec<OriginName>,
    /// The day after which a version does not count when Maven asks which there are.
    pub cutoff: jiff::civil::Date,
    /// Java release that builds run on; what needs a newer one is not chosen.
    pub java: u32,
    /// What an earlier lock or another container's passage already has.
    pub known: Passage,
}

/// An open door. Dropped, it closes and its socket goes.
pub struct Door {
    socket: PathBuf,
    shared: Arc<Shared>,
    accepting: tokio::task::JoinHandle<()>,
}

struct Shared {
    client: Client,
    store: Store,
    origins: Mutex<Vec<OriginName>>,
    cutoff: jiff::civil::Date,
    java: u32,
    passage: Mutex<Passage>,
    /// What the tree of the next container has, by path; the store has it.
    in_tree: Mutex<BTreeMap<String, MavenFile>>,
    /// SHA-1 sums of what passed, for `x-checksum-sha1` and `.sha1` requests.
    sums: Mutex<BTreeMap<Digest, String>>,
    allowance: Allowance,
}

impl Door {
    /// Opens a door at `socket`, which every user may connect to.
    ///
    /// # Errors
    /// [`DoorError::Socket`].
    pub fn open(socket: &Path, context: DoorContext) -> Result<Self, DoorError> {
        let error = |source| DoorError::Socket { path: socket.to_owned(), source };
        let listener = bind(socket).map_err(error)?;
        // The task's user is not ours; the directory above keeps other users of the host out.
        let everyone = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        fs_err::set_permissions(socket, everyone).map_err(error)?;
        let shared = Arc::new(Shared {
            client: context.client,
            store: context.store,
            origins: Mutex::new(context.origins),
            cutoff: context.cutoff,
            java: context.java,
            passage: Mutex::new(context.known),
            in_tree: Mutex::default(),
            sums: Mutex::default(),
            allowance: Allowance::new(),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { socket: socket.to_owned(), shared, accepting })
    }

    /// Returns where containers connect.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns what passed so far, together with what was known when it opened.
    pub fn passage(&self) -> Passage {
        Passage { exhausted: self.shared.allowance.exhausted(), ..held(&self.shared.passage).clone() }
    }

    /// Gives these files before origins are asked, in the stead of those that were given so until now.
    pub fn offer(&self, in_tree: BTreeMap<String, MavenFile>) {
        *held(&self.shared.in_tree) = in_tree;
    }

    /// Forgets what was refused or failed, so that the next container's troubles can be told from the last one's.
    pub fn forget_troubles(&self) {
        let mut passage = held(&self.shared.passage);
        passage.failed.clear();
        passage.refused.clear();
        passage.absent.clear();
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.accepting.abort();
        // Nobody can connect any more; a leftover socket file would be swept with its directory.
        let _ = fs_err::remove_file(&self.socket);
    }
}

/// Makes the socket. A socket's address holds some hundred bytes, a data directory's path may be longer: the directory is
/// named by its descriptor.
fn bind(socket: &Path) -> std::io::Result<UnixListener> {
    use std::os::fd::AsRawFd as _;
    let (Some(directory), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(std::io::Error::from(std::io::ErrorKind::InvalidInput));
    };
    let directory = fs_err::File::open(directory)?;
    UnixListener::bind(Path::new(&format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name))
}

/// Takes a lock whose data stays sound even where another holder panicked: every update is a single insertion.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells whether a path can be one of a file in a Maven repository.
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
