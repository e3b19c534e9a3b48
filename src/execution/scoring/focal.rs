//! A task's focal methods, listed and own, for the measurements of its test methods. Source: protocol §4.

use std::collections::{BTreeMap, BTreeSet};

use super::record::{FocalRecord, OwnFocalRecord};
use crate::execution::launch::coverage::{SourceFile, source_files};
use crate::focal::FocalLines;
use crate::focal::own::OwnMethod;
use crate::task::MethodId;

/// A task's focal methods, as its test methods are measured against them.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskFocal {
    /// All listed ones that were found, each extent once.
    pub(super) lines: Vec<FocalLines>,
    own: BTreeMap<MethodId, Vec<OwnMethod>>,
    /// Why own focal methods are unknown because of a fault of ours. Nothing is measured then, and due measurements are
    /// lost.
    pub(super) unknown: Option<String>,
}

impl TaskFocal {
    /// Returns the focal methods of two records.
    pub(super) fn of(focal: &FocalRecord, own: &OwnFocalRecord) -> Self {
        Self {
            lines: focal.lines().into_iter().cloned().collect(),
            own: own.methods.iter().map(|own| (own.method.clone(), own.own.clone())).collect(),
            unknown: own.lost.then(|| own.cause.clone().unwrap_or_default()),
        }
    }

    /// Returns a test method's own ones.
    pub(super) fn own(&self, method: &MethodId) -> &[OwnMethod] {
        self.own.get(method).map_or(&[], Vec::as_slice)
    }

    /// Returns those of a test method's own ones that the task lists: its mutants lie in these.
    pub(super) fn mutated(&self, method: &MethodId) -> Vec<FocalLines> {
        let listed = self.own(method).iter().filter_map(|own| self.lines.get(own.listed?));
        let mut lines: Vec<FocalLines> = Vec::new();
        for one in listed {
            if !lines.iter().any(|known| known.is_same_extent(one)) {
                lines.push(one.clone());
            }
        }
        lines
    }

    /// Returns the files in which something may be covered.
    pub(super) fn files(&self) -> Vec<SourceFile> {
        let own = self.own.values().flatten();
        let own = own.map(|own| SourceFile { package: own.package.clone(), name: own.file.clone() });
        let files: BTreeSet<SourceFile> = source_files(&self.lines).into_iter().chain(own).collect();
        files.into_iter().collect()
    }

    /// Tells whether there is nothing to cover.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.own.values().all(Vec::is_empty) && self.unknown.is_none()
    }
}
