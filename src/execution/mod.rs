//! Executions: what is run in containers for a cell of a task, and what is kept of it.
//!
//! [`maven`] says what is asked of Maven and of the launcher; [`cell`] runs one cell, [`validation`] many; [`record`] is
//! what is kept of each method, [`run_directory`] where, and [`stage`] runs what there is to do. [`scoring`] does the same for
//! submissions. [`jars`] are our own tools inside containers, [`sharing`] what makes their JVMs start sooner.

mod agent;
pub mod ahead;
mod bounded;
pub mod cell;
pub mod compiled_tree;
pub mod compiler;
pub mod coverage;
pub mod crosscheck;
pub mod direct;
pub mod explain;
mod fault;
pub mod floor;
pub mod identity;
pub mod images;
pub mod inputs;
pub mod jars;
pub mod key;
pub mod limits;
pub mod literal;
pub mod logs;
pub mod masked;
pub mod maven;
pub mod mutation;
pub mod prepared;
pub mod proof;
pub mod record;
pub mod recording;
pub mod run_directory;
pub mod runs;
pub mod scoring;
pub mod sharing;
pub mod stage;
pub mod surefire;
pub mod tracing;
pub mod trees;
pub mod validation;
pub mod verdicts;
