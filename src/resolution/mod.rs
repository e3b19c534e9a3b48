//! Resolution: finds a repository's lock by running its own build, with the door as the only way out.
//!
//! Everything online about repositories is in this module. The result is a [`crate::lock::RepositoryLock`].

pub mod allowance;
mod bookkeeping;
pub mod debian;
pub mod door;
pub mod in_tree;
pub mod metadata;
pub mod repository;
pub mod sets;
pub mod toolchain;
