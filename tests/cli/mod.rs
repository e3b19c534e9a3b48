//! Subcommands as a user meets them: what they print, and how they fail.

mod agent_bundle;
mod bundle;
mod completions;
mod disk;
mod doctor;
mod failures;
mod formats;
mod help;
mod images;
mod import;
mod interrupts;
mod lock;
mod page;
mod pictures;
mod preview;
mod proxy;
mod registry;
mod report;
mod runs;
mod schedulers;
mod score;
mod settings;
mod shared_disk;
mod slurm;
mod store;
mod tasks;
