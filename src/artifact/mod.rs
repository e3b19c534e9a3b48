//! Bytes by digest: the local store and the origins that serve what is missing.

pub mod debian;
pub mod discover;
pub mod fetch;
pub mod garbage;
pub mod origin;
pub mod pypi;
pub mod store;
