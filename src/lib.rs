//! Locked images, sealed executions and comparable verdicts for TestEvo-Bench tasks.
//!
//! The data flow, in reading order:
//!
//! 1. [`task`] — what the benchmark publishes;
//! 2. [`artifact`] — bytes by digest;
//! 3. [`lock`] — every byte of an image, resolved once;
//! 4. [`image`] — deterministic images from locks;
//! 5. [`engine`] — one sealed container at a time.

pub mod artifact;
pub mod canonical_json;
pub mod cli;
pub mod data_dir;
pub mod digest;
pub mod doctor;
pub mod engine;
pub mod error;
pub mod event;
pub mod execution;
pub mod focal;
pub mod host;
pub mod image;
pub mod java;
pub mod lock;
pub mod manifest;
pub mod metrics;
pub mod outcome;
pub mod output;
pub mod report;
pub mod resolution;
pub mod sample;
pub mod settings;
pub mod submission;
pub mod task;
pub mod umask;
pub mod workspace;
