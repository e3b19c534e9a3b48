//! The engine against the real daemon: every limit and every protection, shown by a program that tries.

mod door;
mod faults;
mod files;
mod hostile;
mod limits;
mod program;
pub(crate) mod support;
