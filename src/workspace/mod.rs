//! Source trees of revisions, read from git and never checked out.

pub mod java_source;
