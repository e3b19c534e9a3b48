//! The identity of executions: a digest of everything in this program that decides what an execution does. Keys name it, so that
//! what is kept outlives a build that changes something else, and nothing outlives one that changes this.

use crate::digest::Digest;

/// Returns the identity, which the build script makes of what `execution-sources.txt` lists; it is equal in any clone.
pub fn identity() -> Digest {
    Digest::of(env!("TESTEVO_EXECUTION_IDENTITY").as_bytes())
}
