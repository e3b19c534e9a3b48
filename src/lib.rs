//! Locked images, sealed executions and comparable verdicts for TestEvo-Bench tasks.
//!
//! In reading order, which is the order of the data flow:
//!
//! 1. [`task`] — the benchmark's published tasks; [`manifest`] — the requirements of a repository's build;
//! 2. [`artifact`] — bytes by digest; [`lock`] — every byte of an image; [`resolution`] — the choice of a lock's bytes;
//! 3. [`image`] — deterministic images from locks;
//! 4. [`engine`] — one sealed container at a time;
//! 5. [`workspace`] — revision trees from git; [`java`] and [`focal`] — the methods under test in them;
//!    [`submission`] — models' predictions;
//! 6. [`execution`] — runs in containers and their records; [`outcome`] — the meaning of an execution;
//! 7. [`metrics`] — figures from outcomes; [`report`] — reports of whole runs;
//! 8. [`application`] — the work of each command; [`cli`] — arguments and output; [`doctor`] — checks of this machine;
//!    [`sample`] — the projects of `demo`, `selftest` and tests;
//! 9. [`bundle`] — what scoring or agents need of tasks, in one place; [`agent`] — workspaces and predictions of agents;
//!    [`audit`] — the search for developers' tests in them; [`cluster`] — shards on Slurm.
//!
//! Below all of them: [`data_dir`], [`settings`], [`error`] (exit codes and hints), [`event`], [`output`], [`host`],
//! [`thread`], [`umask`], `member` (names in tar archives), [`digest`] and [`canonical_json`]. Above them, [`garbage`] finds unused bytes.

pub mod agent;
pub mod application;
pub mod artifact;
pub mod audit;
pub mod bundle;
pub mod canonical_json;
pub mod cli;
pub mod cluster;
pub mod data_dir;
pub mod digest;
pub mod doctor;
pub mod engine;
pub mod error;
pub mod event;
pub mod execution;
pub mod focal;
pub mod garbage;
pub mod host;
pub mod image;
pub mod java;
pub mod lock;
pub mod manifest;
mod member;
pub mod metrics;
pub mod outcome;
pub mod output;
pub mod report;
pub mod resolution;
pub mod sample;
pub mod settings;
pub mod submission;
pub mod task;
pub mod thread;
pub mod umask;
pub mod workspace;
