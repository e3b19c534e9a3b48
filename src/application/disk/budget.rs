//! What goes to make room: what commands make again, the least recently used first.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

use fs_err as fs;
use serde::Serialize;

use super::places;
use crate::application::io_failure::IoFailure;
use crate::application::workbench::Workbench;
use crate::artifact::made::{Described, PrunePolicy, prune};
use crate::artifact::store::Store;
use crate::data_dir::size::size_on_disk;
use crate::digest::Digest;
use crate::error::CommandError;
use crate::execution::build::prepared::Prepared;
use crate::execution::sharing::ClassArchive;
use crate::garbage::{Garbage, collect};
use crate::image::Catalog;
use crate::output::{counted, size};

/// What may go before a command begins. What was used within a day stays, because another process may be using it:
/// processes mark what they use every hour. `store gc` has the same default.
pub(super) const UNUSED: PrunePolicy =
    PrunePolicy { always: Duration::from_secs(24 * 3600), age: Duration::MAX, most_bytes: u64::MAX };

/// What was given up, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenUp {
    /// Blobs that no record names any more.
    pub garbage: Garbage,
    /// Number of prepared revisions.
    pub prepared: usize,
    /// Number of class archives.
    pub class_archives: usize,
    /// Bytes of all that.
    pub bytes: u64,
}

impl fmt::Display for GivenUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prepared = counted(self.prepared, "prepared revision", "prepared revisions");
        let archives = counted(self.class_archives, "class archive", "class archives");
        write!(f, "{prepared}, {archives} and unused blobs, {}", size(self.bytes))
    }
}

/// Prunes prepared revisions and class archives by a policy, and more of them where blobs without a record do not make
/// `wanted` bytes free. Then removes these blobs. The policy's sizes are those of prepared revisions.
pub(in crate::application) fn give_up(
    store: &Store,
    policy: &PrunePolicy,
    wanted: u64,
    dry_run: bool,
) -> Result<GivenUp, CommandError> {
    let unnamed = if wanted > 0 { collect(store, policy.always, true)?.bytes } else { 0 };
    let lacking = wanted.saturating_sub(unnamed);
    let pruned = prune_until::<Prepared>(store, policy, lacking, dry_run);
    let (prepared, bytes) = pruned.map_err(IoFailure::of("pruning prepared revisions"))?;
    let lacking = lacking.saturating_sub(bytes);
    let of_archives = PrunePolicy { most_bytes: u64::MAX, ..*policy };
    let pruned = prune_until::<ClassArchive>(store, &of_archives, lacking, dry_run);
    let (class_archives, more) = pruned.map_err(IoFailure::of("pruning class archives"))?;
    let garbage = collect(store, policy.always, dry_run)?;
    // A dry run leaves descriptions, so the blobs that they name are no garbage yet.
    let pruned = if dry_run { bytes.saturating_add(more) } else { 0 };
    let bytes = garbage.bytes.saturating_add(pruned);
    Ok(GivenUp { garbage, prepared, class_archives, bytes })
}

/// Prunes a kind of products by a policy, and then the least recently used ones until `lacking` bytes are free. Returns
/// the number of removed products and their bytes.
fn prune_until<T: Described>(
    store: &Store,
    policy: &PrunePolicy,
    lacking: u64,
    dry_run: bool,
) -> io::Result<(usize, u64)> {
    let all = prune::<T>(store, &PrunePolicy { age: Duration::MAX, most_bytes: u64::MAX, ..*policy }, true)?.kept_bytes;
    let most_bytes = policy.most_bytes.min(if lacking > 0 { all.saturating_sub(lacking) } else { u64::MAX });
    let pruned = prune::<T>(store, &PrunePolicy { most_bytes, ..*policy }, dry_run)?;
    Ok((pruned.removed, all.saturating_sub(pruned.kept_bytes)))
}

/// Gives up unpacked layers whose blobs the store has until `wanted` bytes are free: first those of no image, then those
/// that were unpacked long ago. Returns them with their bytes; `None` if another process may run containers from them.
pub(in crate::application) fn give_up_layers(
    workbench: &Workbench<'_>,
    wanted: u64,
    dry_run: bool,
) -> Result<Option<Vec<(Digest, u64)>>, CommandError> {
    let unpacked = workbench.store.root().join("unpacked");
    if wanted == 0 || !unpacked.exists() {
        return Ok(Some(Vec::new()));
    }
    let catalog = Catalog::open(&workbench.data_dir)?;
    let again = catalog.layers_with_blobs()?;
    let in_images: BTreeSet<Digest> =
        catalog.all()?.into_iter().flat_map(|built| built.image.layers).map(|layer| layer.diff_id).collect();
    let native = workbench.native()?;
    let all = native.prune(&BTreeSet::new(), true)?.unwrap_or_default();
    let mut keep: BTreeSet<Digest> = all.iter().map(|(layer, _)| *layer).collect();
    let mut candidates = Vec::new();
    for (layer, bytes) in all.into_iter().filter(|(layer, _)| again.contains(layer)) {
        // Naming a finished tree changes its time of change.
        let unpacked = fs::metadata(unpacked.join(layer.hex())).map_err(IoFailure::of("looking for old layers"))?;
        candidates.push((in_images.contains(&layer), unpacked.ctime(), layer, bytes));
    }
    candidates.sort_unstable();
    let mut freed = 0u64;
    for (_, _, layer, bytes) in candidates {
        if freed >= wanted {
            break;
        }
        freed = freed.saturating_add(bytes);
        keep.remove(&layer);
    }
    Ok(native.prune(&keep, dry_run)?)
}

/// What a data directory takes on its disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DiskUse {
    /// All bytes.
    pub used: u64,
    /// The value of `--max-disk`, in bytes.
    pub limit: u64,
    /// Bytes of its parts, the largest first.
    pub parts: Vec<(String, u64)>,
}

impl DiskUse {
    /// Measures the data directory.
    pub(in crate::application) fn measure(workbench: &Workbench<'_>, limit: u64) -> Result<Self, CommandError> {
        let measure = || -> io::Result<Self> {
            let (mut used, mut parts) = (0u64, Vec::new());
            for place in places(workbench)? {
                used = used.saturating_add(size_on_disk(&place)?);
                for part in parts_of(&place)? {
                    let name = part.strip_prefix(&place).unwrap_or(&part).display().to_string();
                    parts.push((name, size_on_disk(&part)?));
                }
            }
            parts.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
            Ok(Self { used, limit, parts })
        };
        measure().map_err(IoFailure::of("measuring the data directory"))
    }

    /// Measures again after something was removed. A dry run only takes the bytes of what would be removed off.
    pub(in crate::application) fn now(
        &mut self,
        workbench: &Workbench<'_>,
        dry_run: bool,
        removed: u64,
    ) -> Result<(), CommandError> {
        match dry_run {
            true => self.used = self.used.saturating_sub(removed),
            false => *self = Self::measure(workbench, self.limit)?,
        }
        Ok(())
    }

    /// Returns the bytes beyond the limit.
    pub fn excess(&self) -> u64 {
        self.used.saturating_sub(self.limit)
    }
}

/// Returns the directories in a data directory, and those in its store instead of the store.
fn parts_of(place: &std::path::Path) -> io::Result<Vec<PathBuf>> {
    let mut parts = Vec::new();
    for entry in fs::read_dir(place)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true if entry.file_name() == "store" => parts.extend(parts_of(&entry.path())?),
            true => parts.push(entry.path()),
            false => {}
        }
    }
    Ok(parts)
}
