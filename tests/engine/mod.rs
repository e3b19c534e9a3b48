//! The engines, as root, as a normal user, and a daemon: every limit and every protection, shown by a program that tries.

mod attacks;
mod door;
mod faults;
mod files;
mod hostile;
mod image;
mod limits;
mod mounts;
mod native;
mod podman;
mod program;
pub(crate) mod support;
