//! Resolution: how a repository's lock is found, by running its own build where only the door leads out.
//!
//! Everything online about repositories is here; what comes of it is a [`crate::lock::RepositoryLock`].

pub mod allowance;
mod bookkeeping;
pub mod debian;
pub mod door;
pub mod in_tree;
pub mod metadata;
pub mod repository;
pub mod sets;
pub mod toolchain;
