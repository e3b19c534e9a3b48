//! The disk of the data directory: what a command is about to write there, and what goes to make room for it.
//!
//! Commands add up their needs before they write anything. Sizes of things that are not made yet are estimates from
//! measurements (docs/data-directory.md). Other processes may take the same space meanwhile.

mod budget;
mod needs;

use std::io;
use std::path::PathBuf;

use fs_err as fs;

pub use self::budget::{DiskUse, GivenUp};
pub(super) use self::budget::{give_up, give_up_layers};
pub(super) use self::needs::{Needs, not_unpacked};
use super::workbench::Workbench;
use crate::data_dir::size::size_on_disk;
use crate::error::{ExitStatus, Failure};
use crate::host;
use crate::output::size;

/// Why a command does not begin.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The disk has too little free space.
    #[error(
        "about {} are needed in the data directory `{data_dir}`, and {} are free on its disk",
        size(*needed), size(*free)
    )]
    Full {
        /// The data directory.
        data_dir: PathBuf,
        /// What the command is about to write, in bytes.
        needed: u64,
        /// The free space, in bytes.
        free: u64,
    },
    /// The data directory would grow beyond `--max-disk`.
    #[error(
        "about {} are needed in the data directory `{data_dir}`, which takes {} and may take {}",
        size(*needed), size(*used), size(*limit)
    )]
    Limit {
        /// The data directory.
        data_dir: PathBuf,
        /// What the command is about to write, in bytes.
        needed: u64,
        /// What the data directory takes now, in bytes.
        used: u64,
        /// The value of `--max-disk`, in bytes.
        limit: u64,
    },
}

impl Failure for DiskError {
    fn exit_status(&self) -> ExitStatus {
        ExitStatus::Infrastructure
    }

    fn hint(&self) -> Option<String> {
        let room =
            "`runs rm` removes runs, `images prune` unused layers, `store gc --min-age 0` also what was used today";
        Some(match self {
            Self::Full { .. } => format!("make space: {room}; or name another directory with `--data-dir`"),
            Self::Limit { .. } => format!("allow more with `--max-disk`, or make space: {room}"),
        })
    }
}

/// The space that a data directory takes and may take.
struct Room {
    data_dir: PathBuf,
    /// Free bytes of the disk; `None` if its file system does not tell.
    free: Option<u64>,
    /// What the data directory takes and may take, in bytes; `None` without `--max-disk`.
    limit: Option<(u64, u64)>,
}

impl Room {
    /// Measures a data directory. Only a limit makes it necessary to look at every file.
    fn measure(data_dir: PathBuf, places: &[PathBuf], limit: Option<u64>) -> io::Result<Self> {
        let used =
            || places.iter().try_fold(0u64, |sum, place| Ok::<_, io::Error>(sum.saturating_add(size_on_disk(place)?)));
        let limit = limit.map(|limit| Ok::<_, io::Error>((used()?, limit))).transpose()?;
        let free = places.last().and_then(|place| host::free_bytes(place).ok());
        Ok(Self { data_dir, free, limit })
    }

    /// Returns the number of missing bytes, with the error for them; `None` if the need fits.
    fn lacking(&self, needed: u64) -> Option<(u64, DiskError)> {
        let data_dir = || self.data_dir.clone();
        let of_disk = self.free.and_then(|free| Some((needed.checked_sub(free)?, free)));
        let of_disk = of_disk.map(|(lacking, free)| (lacking, DiskError::Full { data_dir: data_dir(), needed, free }));
        let of_limit =
            self.limit.and_then(|(used, limit)| Some((used.saturating_add(needed).checked_sub(limit)?, used, limit)));
        let of_limit = of_limit
            .map(|(lacking, used, limit)| (lacking, DiskError::Limit { data_dir: data_dir(), needed, used, limit }));
        // A need of nothing always fits.
        let both = of_limit.into_iter().chain(of_disk).filter(|(lacking, _)| needed > 0 && *lacking > 0);
        both.max_by_key(|(lacking, _)| *lacking)
    }
}

/// Returns the directories that count as the data directory. Samples have one of their own below the user's, and share
/// its store. The last one lies on the store's disk.
fn places(workbench: &Workbench<'_>) -> io::Result<Vec<PathBuf>> {
    let root = fs::canonicalize(workbench.data_dir.root())?;
    let store = fs::canonicalize(workbench.store.root())?;
    Ok(match store.parent() {
        _ if store.starts_with(&root) => vec![root],
        Some(home) if root.starts_with(home) => vec![home.to_owned()],
        _ => vec![root, store],
    })
}

#[cfg(test)]
mod tests;
