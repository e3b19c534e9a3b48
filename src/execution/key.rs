//! Execution keys: equal keys mean equal inputs.

use serde::Serialize;

use crate::artifact::key::key;
use crate::digest::Digest;
use crate::execution::container::Surefire;
use crate::execution::container::limits::ExecutionLimits;
use crate::execution::run::record::ExecutionPath;
use crate::manifest::Launcher;

/// Everything that decides the result of an execution.
#[derive(Debug, Serialize)]
pub struct ExecutionInputs<'a> {
    /// The image's config digest.
    pub image: Digest,
    /// The code revision's tree: [`RevisionTree::identity`](crate::workspace::RevisionTree::identity).
    pub tree: &'a str,
    /// The swapped file's path.
    pub test_file: &'a str,
    /// The swapped file's bytes.
    pub swapped: Option<Digest>,
    /// The method.
    pub method: &'a str,
    /// Arguments of the manifest for Maven.
    pub maven_arguments: &'a [String],
    /// The console that launches tests.
    pub launcher: Launcher,
    /// Whether the project's settings for Surefire apply.
    pub surefire: Surefire,
    /// The path that runs.
    pub path: ExecutionPath,
    /// The launcher's jar by digest.
    pub runner: &'a str,
    /// The recorder's jar by digest.
    pub recorder: &'a str,
    /// The compiler's jar by digest.
    pub compiler: &'a str,
    /// The identity of executions of this program.
    pub identity: Digest,
    /// Limits.
    pub limits: ExecutionLimits,
    /// Counted from 1.
    pub repeat: u32,
    /// Whether launches map class archives, which change the order of identity hash codes.
    pub class_archive: bool,
    /// Protections that the engine could not give.
    pub isolation_missing: &'a [String],
}

impl ExecutionInputs<'_> {
    /// Returns the key. The identity covers the fixed flags of commands.
    pub fn key(&self) -> Digest {
        key("execution", 5, self)
    }
}

#[cfg(test)]
mod tests;
