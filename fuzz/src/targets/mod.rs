//! The targets, a file for each kind of format.

mod agents;
mod archives;
mod bundles;
mod classes;
mod containers;
mod files;
mod locks;
mod origins;
mod runs;
mod sources;
mod submissions;

use crate::Target;

/// All targets.
pub const TARGETS: &[Target] = &[
    containers::FRAMES,
    containers::SESSION,
    containers::COMPILER,
    runs::EVENTS,
    runs::COVERAGE,
    runs::TRACE,
    runs::RECORDING,
    runs::MUTANTS,
    classes::READER,
    classes::EDITOR,
    sources::PARSED,
    sources::SCANNED,
    submissions::PATCH,
    submissions::PREDICTIONS,
    archives::TREE,
    archives::LAYER,
    archives::DEB,
    archives::WHEEL,
    archives::JAR,
    archives::LOCK_ARCHIVE,
    bundles::BUNDLE,
    bundles::OBJECTS,
    bundles::RUN,
    agents::AUDIT,
    agents::WORKSPACE,
    agents::TRIAL,
    origins::CONTROL,
    origins::PACKAGES,
    origins::RELEASE,
    origins::POM,
    origins::METADATA,
    locks::LOCKS,
    files::MANIFEST,
    files::SETTINGS,
    files::PUBLISHED,
    files::RECORDS,
    files::KEPT,
    files::NAMES,
];
