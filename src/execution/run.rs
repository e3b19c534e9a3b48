//! Runs: what one command executes, and what is kept of it in a directory.
//!
//! [`stage`] runs jobs, [`record`] is what is kept of each method, [`directory`] where; [`list`] looks at the runs that are there.

pub mod directory;
pub mod explain;
pub mod inputs;
pub mod list;
pub mod logs;
mod reading;
pub mod record;
pub mod stage;
pub mod verdicts;
