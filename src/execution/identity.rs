//! The identity of executions: a digest of all sources of this program that decide the result of an execution. Every
//! execution key contains it. Kept results survive a build that changes other sources, and none survives a build that
//! changes these.

use crate::digest::Digest;

/// Returns the identity, which the build script computes from the files in `execution-sources.txt`. It is equal in any
/// clone.
pub fn identity() -> Digest {
    Digest::of(env!("TESTEVO_EXECUTION_IDENTITY").as_bytes())
}
