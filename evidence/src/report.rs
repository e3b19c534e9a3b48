//! Reports of evidence.

pub(crate) mod crosscheck;
pub(crate) mod measurement;
