//! What evidence adds up to.

pub(crate) mod crosscheck;
pub(crate) mod measurement;
