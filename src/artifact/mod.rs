//! Bytes by digest: the local store and the origins that serve what is missing.

pub mod store;
