//! Executions: programs in containers for a cell of a task, and their records.
//!
//! The modules, in the order of one execution:
//! - [`trees`] reads the tree of a revision, [`module`] finds the arguments that give Maven a task's module, and [`request`]
//!   holds the input of a cell;
//! - [`build`] compiles a revision's tree: Maven on the reference path, the warm compiler on the direct path;
//! - [`container`] holds what all containers share: places, limits, our jars, images in engines, temporary files;
//! - [`executor`] holds what the executions of a repository share, and [`sharing`] the class archives that their JVMs map;
//! - [`launch`] runs one test method on a compiled tree, with coverage or the tracer if a score needs them;
//! - [`cell`] and [`direct`] execute a whole cell, each on its own path; [`attempt`] decides about retries, and [`fault`]
//!   names the reasons for a missing answer, [`obstacle`] those that are known before;
//! - `attribution` finds the methods of a file that have compile errors of their own, and `contents` says what a tree without
//!   some of its contents can't decide;
//! - [`key`] makes execution keys, which contain [`identity`], the digest of this program's sources; [`order`] shuffles
//!   executions, and [`time_class`] limits their time;
//! - [`validation`] executes the cells of tasks, [`proof`] executes those that prove an image, [`scoring`] executes
//!   submissions, [`mutation`] runs them on mutants, and [`control`] finds tests that test nothing; `rebuilding` changes
//!   class files for both without a change of behaviour;
//! - [`run`] keeps the records of one command.

pub mod attempt;
mod attribution;
pub mod build;
pub mod cell;
pub mod container;
mod contents;
pub mod control;
pub mod direct;
pub mod executor;
pub mod fault;
pub mod identity;
pub mod key;
pub mod launch;
pub mod module;
pub mod mutation;
pub mod obstacle;
pub mod order;
pub mod proof;
mod rebuilding;
pub mod request;
pub mod run;
pub mod scoring;
#[cfg(test)]
mod scripted;
pub mod sharing;
pub mod time_class;
pub mod trees;
pub mod validation;
