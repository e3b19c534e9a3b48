//! Notices about missing parts of trees. Executions continue without submodules and without contents that no compiler
//! reads, and readers of their outcomes must know.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use super::tree::{RevisionTree, TreeReport};
use crate::event::EventSink;
use crate::task::{RepositoryName, Revision};

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
        let Some(lacks) = unusual.in_words() else { return };
        let revision = (tree.repository().clone(), tree.revision().clone());
        if self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(revision) {
            self.events.warning(format!("{} at {}: its tree lacks {lacks}", tree.repository(), tree.revision()));
        }
    }
}
