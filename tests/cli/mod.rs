//! Subcommands as a user meets them: what they print, and how they fail.

mod help;
mod images;
mod import;
mod tasks;
