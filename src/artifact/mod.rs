//! Bytes by digest: the local store, and the origins from which missing bytes are fetched.

pub mod control;
pub mod fetch;
pub mod key;
pub mod made;
pub mod origin;
pub mod pypi;
pub mod store;
