//! A task's focal methods, listed and own, for the measurements of its test methods. Source: protocol §4.

use std::collections::{BTreeMap, BTreeSet};

use super::record::{FocalRecord, OwnFocalRecord};
use crate::execution::control::classes::FocalExtent;
use crate::execution::launch::coverage::{SourceFile, source_files};
use crate::focal::FocalLines;
use crate::focal::own::{Basis, OwnMethod};
use crate::task::MethodId;

/// A task's focal methods, for the measurements of its test methods.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskFocal {
    /// All listed focal methods that were found, each extent once.
    pub(super) lines: Vec<FocalLines>,
    own: BTreeMap<MethodId, Vec<OwnMethod>>,
    /// Test methods whose developers' test passes on new code, as its trace shows.
    passing: BTreeSet<MethodId>,
    /// Why own focal methods are unknown because of a fault of ours. Nothing is measured then, and the due measurements
    /// are lost.
    pub(super) unknown: Option<String>,
}

impl TaskFocal {
    /// Returns the focal methods of two records.
    pub(super) fn of(focal: &FocalRecord, own: &OwnFocalRecord) -> Self {
        Self {
            lines: focal.lines().into_iter().cloned().collect(),
            own: own.methods.iter().map(|own| (own.method.clone(), own.own.clone())).collect(),
            passing: own
                .methods
                .iter()
                .filter(|own| own.basis != Basis::NotTraced)
                .map(|own| own.method.clone())
                .collect(),
            unknown: own.lost.then(|| own.cause.clone().unwrap_or_default()),
        }
    }

    /// Returns a test method's own focal methods.
    pub(super) fn own(&self, method: &MethodId) -> &[OwnMethod] {
        self.own.get(method).map_or(&[], Vec::as_slice)
    }

    /// Tells whether the developers' test is known to pass on new code.
    pub(super) fn gold_passes(&self, method: &MethodId) -> bool {
        self.passing.contains(method)
    }

    /// Returns those of a test method's own focal methods that the task lists. Its mutants lie in these.
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

    /// Returns the focal methods of each test method: the task's listed ones and its own.
    pub(super) fn extents(&self, methods: &[MethodId]) -> BTreeMap<MethodId, Vec<FocalExtent>> {
        let listed = || {
            self.lines.iter().map(|lines| {
                let file = lines.path.rsplit('/').next().unwrap_or(&lines.path).to_owned();
                let (package, first_line, last_line) = (lines.package.clone(), lines.first_line, lines.last_line);
                FocalExtent { package, file, first_line, last_line }
            })
        };
        let own = |method: &MethodId| {
            self.own(method)
                .iter()
                .map(|own| FocalExtent {
                    package: own.package.clone(),
                    file: own.file.clone(),
                    first_line: own.first_line,
                    last_line: own.last_line,
                })
                .collect::<Vec<_>>()
        };
        let of = |method: &MethodId| {
            let extents: BTreeSet<FocalExtent> = listed().chain(own(method)).collect();
            (method.clone(), extents.into_iter().collect())
        };
        methods.iter().map(of).collect()
    }

    /// Returns the source files of all focal methods. Their coverage is measured.
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
