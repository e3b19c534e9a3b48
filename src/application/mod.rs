//! What commands do, as functions of plain values that anybody can call: there is no argument parser and no terminal here.
//!
//! Each command has a file with its request, its work and its result. Results are values; messages and progress are events.
//! `cli` makes requests from arguments and prints results.

pub mod build;
pub mod context;
mod failures;
pub mod focal;
pub mod import;
pub mod lock;
mod locks;
mod readiness;
pub mod run;
pub mod score;
pub mod selection;
pub mod validate;
pub mod workbench;

pub use context::{Context, Options};
