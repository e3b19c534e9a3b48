//! Runs: the executions of one command, and their records in a directory.
//!
//! [`stage`] executes jobs, [`record`] defines the record of each method, [`directory`] writes records, and [`list`]
//! reads existing runs.

pub mod directory;
pub mod explain;
pub mod extent;
pub mod inputs;
pub mod list;
pub mod logs;
pub mod merge;
pub(in crate::execution) mod reading;
pub mod record;
pub mod reopening;
pub mod stage;
pub mod verdicts;
