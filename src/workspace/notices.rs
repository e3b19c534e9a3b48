//! Notices about missing parts of trees. Executions continue without submodules and without contents that no compiler
//! reads, and readers of their outcomes must know.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use super::tree::{RevisionTree, TreeReport};
use crate::event::EventSink;
use crate::output::counted;
use crate::task::{RepositoryName, Revision};

/// The most paths of a kind that are named.
const MOST_NAMED: usize = 3;

/// Sends each revision's notices about missing parts once.
#[derive(Debug)]
pub struct Notices {
    events: EventSink,
    told: Mutex<BTreeSet<(RepositoryName, Revision)>>,
}

impl Notices {
    /// Returns notices that go to `events`.
    pub fn new(events: EventSink) -> Self {
        Self { events, told: Mutex::default() }
    }

    /// Warns of the parts that a tree lacks, once for its revision.
    pub(super) fn tell(&self, tree: &RevisionTree, unusual: &TreeReport) {
        let Some(lacks) = lacks(unusual) else { return };
        let revision = (tree.repository().clone(), tree.revision().clone());
        if self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(revision) {
            self.events.warning(format!("{} at {}: its tree lacks {lacks}", tree.repository(), tree.revision()));
        }
    }
}

/// Returns the missing parts in words; `None` if there are none.
fn lacks(unusual: &TreeReport) -> Option<String> {
    let parts: Vec<String> = [
        (&unusual.submodules, "submodule", "submodules"),
        (&unusual.lfs_pointers, "content that is in git-lfs's store", "contents that are in git-lfs's store"),
        (&unusual.missing_blobs, "content that the repository lacks", "contents that the repository lacks"),
    ]
    .into_iter()
    .filter(|(paths, _, _)| !paths.is_empty())
    .map(|(paths, one, several)| {
        let mut named: Vec<String> =
            paths.iter().take(MOST_NAMED).map(|path| path.chars().take(100).collect()).collect();
        if paths.len() > MOST_NAMED {
            named.push("…".to_owned());
        }
        format!("{} ({})", counted(paths.len(), one, several), named.join(", "))
    })
    .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
