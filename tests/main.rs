//! The integration tests, as one binary.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod architecture;
mod cli;
mod engine;
mod identity;
mod miniature;
mod mutations;
mod support;
