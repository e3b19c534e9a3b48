//! The work of commands, as functions of plain values that any program can call, without an argument parser or a
//! terminal.
//!
//! Each command has a file with its request, its work and its result. Results are values; messages and progress are
//! events. `cli` turns arguments into requests and prints results.

mod agent_images;
pub mod agents;
pub mod archives;
pub mod audit;
pub mod build;
pub mod bundle;
pub mod compare;
pub mod context;
pub mod disk;
mod disputes;
pub mod doctor;
mod extension_jars;
mod failures;
pub mod focal;
pub mod harbor;
pub mod images;
pub mod import;
pub mod io_failure;
pub mod lock;
mod locks;
pub mod merge;
pub mod names;
pub mod nodes;
pub mod plan;
mod readiness;
pub mod report;
mod revisions;
pub mod run;
pub mod runs;
pub mod sample;
pub mod score;
pub mod scratch;
pub mod selection;
pub mod selftest;
pub mod shard;
pub mod shell;
pub mod slurm;
pub mod sources;
pub mod store;
pub mod validate;
pub mod workbench;

pub use context::{Context, Options};
pub use failures::Partial;
