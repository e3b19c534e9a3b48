//! What several tests share.

pub(crate) mod command;
pub(crate) mod miniature;
