//! Executions: what is run in containers for a cell of a task, and what is kept of it.
//!
//! [`maven`] says what is asked of Maven and of the launcher; [`cell`] runs one cell, [`validation`] many; [`record`] is
//! what is kept of each method, [`run_directory`] where, and [`stage`] runs what there is to do. [`scoring`] does the same for
//! submissions. [`jars`] are our own tools inside containers, [`sharing`] what makes their JVMs start sooner.

mod agent;
pub mod attempt;
mod build;
pub mod built;
pub mod cell;
pub mod compiled_tree;
pub mod compiler;
pub mod container;
pub mod coverage;
pub mod direct;
pub mod executor;
pub mod explain;
pub mod fault;
pub mod identity;
pub mod images;
pub mod inputs;
pub mod jars;
pub mod key;
pub mod launch;
pub mod limits;
pub mod logs;
pub mod masked;
pub mod maven;
pub mod mutation;
pub mod places;
pub mod pool;
pub mod prepared;
pub mod proof;
pub mod record;
pub mod recording;
pub mod request;
pub mod run_directory;
mod run_file;
pub mod runs;
pub mod scoring;
#[cfg(test)]
mod scripted;
pub mod sharing;
pub mod stage;
pub mod steps;
pub mod surefire;
pub mod temporary;
pub mod tracing;
pub mod trees;
pub mod validation;
pub mod verdicts;
