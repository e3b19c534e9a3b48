//! Subcommands as a user meets them: what they print, and how they fail.

mod doctor;
mod failures;
mod help;
mod images;
mod import;
mod page;
mod report;
mod runs;
mod score;
mod store;
mod tasks;
