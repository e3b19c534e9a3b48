//! Execution keys: equal keys mean equal inputs. Source: design §7.

use serde::Serialize;

use super::limits::ExecutionLimits;
use super::record::ExecutionPath;
use super::surefire::Surefire;
use crate::digest::Digest;
use crate::manifest::Launcher;

/// Everything that decides what an execution does.
#[derive(Debug, Serialize)]
pub struct ExecutionInputs<'a> {
    /// The image's config digest.
    pub image: Digest,
    /// Git's id of the code revision's tree.
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
    /// The init by digest.
    pub init: Digest,
    /// Limits.
    pub limits: ExecutionLimits,
    /// Counted from 1.
    pub repeat: u32,
    /// Whether launches map class archives: identity hash codes come in another order then.
    pub class_archive: bool,
    /// Protections that the engine could not give.
    pub isolation_missing: &'a [String],
}

impl ExecutionInputs<'_> {
    /// Returns the key.
    pub fn key(&self) -> Digest {
        /// The commands' fixed flags stand in the program, whose digest is the init's.
        #[derive(Serialize)]
        struct Keyed<'a> {
            schema: u32,
            inputs: &'a ExecutionInputs<'a>,
        }
        let keyed = Keyed { schema: 4, inputs: self };
        match serde_json::to_vec(&keyed) {
            Ok(bytes) => Digest::of(&bytes),
            Err(error) => unreachable!("the inputs are plain data: {error}"),
        }
    }
}
