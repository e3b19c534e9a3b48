//! Executions: what runs in containers for a cell of a task, and what is kept of it.
//!
//! In the order of one execution:
//! - [`build`] compiles a revision's tree: Maven on the reference path, the warm compiler on the direct path;
//! - [`container`] holds what all containers share: places, limits, our jars, images in engines, temporary files;
//! - [`launch`] runs one test method on a compiled tree, with coverage or the tracer where a score needs them;
//! - [`cell`] and [`direct`] execute a whole cell, each on its own path; [`attempt`] says when a try is repeated, [`fault`] why
//!   there is no answer;
//! - [`validation`] executes the cells of tasks, [`proof`] those that show an image to be ready, [`scoring`] submissions,
//!   [`mutation`] mutants;
//! - [`run`] is what one command executes, and what it keeps.

pub mod attempt;
pub mod build;
pub mod cell;
pub mod container;
pub mod direct;
pub mod executor;
pub mod fault;
pub mod identity;
pub mod key;
pub mod launch;
pub mod mutation;
pub mod proof;
pub mod request;
pub mod run;
pub mod scoring;
#[cfg(test)]
mod scripted;
pub mod trees;
pub mod validation;
