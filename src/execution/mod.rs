//! Executions: what is run in containers for a cell of a task, and what is kept of it.
//!
//! [`maven`] says what is asked of Maven and of the launcher; [`record`] what is kept of each method;
//! [`run_directory`] where.

pub mod maven;
pub mod record;
pub mod run_directory;
