//! What several tests share.

pub(crate) mod browser;
pub(crate) mod command;
pub(crate) mod imports;
pub(crate) mod locks;
pub(crate) mod miniature;
pub(crate) mod other_process;
pub(crate) mod png;
pub(crate) mod scored;
pub(crate) mod shared_disk;
pub(crate) mod validated;
pub(crate) mod waiting;
