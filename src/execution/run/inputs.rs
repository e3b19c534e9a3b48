//! The inputs that decide a validation's results. A run keeps them in `inputs.json`, and their digest in `run.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::execution::container::RepositoryImage;
use crate::execution::container::Surefire;
use crate::execution::container::ToolJars;
use crate::execution::container::file_name;
use crate::execution::container::limits::ExecutionLimits;
use crate::execution::run::record::ExecutionPath;
use crate::manifest::Launcher;
use crate::task::shard::Shard;
use crate::task::{RepositoryName, Task};

/// Version of the file's schema.
pub const INPUTS_SCHEMA: u32 = 1;

/// The inputs of a run. An unfinished run may be resumed only with equal inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunInputs {
    /// [`INPUTS_SCHEMA`].
    pub schema: u32,
    /// The tasks as imported at the run's start.
    pub tasks: Vec<Task>,
    /// Config digests of the images.
    pub images: BTreeMap<RepositoryName, Digest>,
    /// Skips and other arguments for Maven.
    pub maven_arguments: BTreeMap<RepositoryName, Vec<String>>,
    /// Launchers that manifests name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub launchers: BTreeMap<RepositoryName, Launcher>,
    /// Limits of every execution.
    pub limits: BTreeMap<RepositoryName, ExecutionLimits>,
    /// Whether projects' settings for Surefire apply.
    #[serde(default)]
    pub surefire: Surefire,
    /// The paths that every cell is executed on.
    #[serde(default)]
    pub paths: Vec<ExecutionPath>,
    /// Launches of every method and cell.
    pub repeats: u32,
    /// Our programs; `None` if nothing is executed, and in runs of earlier programs that did not record them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<RunTools>,
    /// The part of a selection that the run executes; `None` for all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardInputs>,
}

/// The part of a selection that a run executes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShardInputs {
    /// Which part.
    pub shard: Shard,
    /// Digest of all selected tasks, and of the version of the rule that divides them.
    pub selection: Digest,
    /// Digest of everything else that decides the whole run: submissions, options, limits from the command line.
    pub request: Digest,
    /// Digest of the recorded costs by which the selection was divided; `None` if its numbers of methods decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub costs: Option<Digest>,
}

/// Returns the images in the inputs of any run. Their configurations are blobs.
///
/// # Errors
/// The bytes are not the inputs of a run.
pub fn images_of(inputs: &[u8]) -> serde_json::Result<Vec<Digest>> {
    #[derive(Deserialize)]
    struct Naming {
        #[serde(default)]
        images: BTreeMap<RepositoryName, Digest>,
    }
    serde_json::from_slice(inputs).map(|Naming { images }| images.into_values().collect())
}

/// Programs of our own that decide results, and the protections that the engine can't give.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunTools {
    /// The identity of executions. Earlier programs wrote the digest of the whole program here.
    #[serde(rename = "init")]
    pub identity: Digest,
    /// The launcher's jar by digest.
    pub runner: String,
    /// The recorder's jar by digest.
    pub recorder: String,
    /// The compiler's jar by digest.
    pub compiler: String,
    /// Protections that the engine could not give, sorted.
    pub isolation_missing: Vec<String>,
    /// Whether launches map class archives.
    #[serde(default)]
    pub class_archives: bool,
}

impl RunTools {
    /// Returns the tools, given jars whose file names are their digests.
    pub fn new(identity: Digest, jars: &ToolJars, isolation_missing: Vec<String>, class_archives: bool) -> Self {
        let name = |path| file_name(path).to_owned();
        let (runner, recorder, compiler) = (name(&jars.runner), name(&jars.recorder), name(&jars.compiler));
        Self { identity, runner, recorder, compiler, isolation_missing, class_archives }
    }
}

impl RunInputs {
    /// Returns the inputs of a run with these images, without the tools.
    pub fn new(
        tasks: &[Task],
        images: &BTreeMap<RepositoryName, RepositoryImage>,
        limits: &BTreeMap<RepositoryName, ExecutionLimits>,
        surefire: Surefire,
        paths: &[ExecutionPath],
        repeats: u32,
    ) -> Self {
        let of = |(name, image): (&RepositoryName, &RepositoryImage)| {
            ((name.clone(), image.config_digest), (name.clone(), image.maven_arguments.clone()))
        };
        let (digests, maven_arguments) = images.iter().map(of).unzip();
        Self {
            schema: INPUTS_SCHEMA,
            tasks: tasks.to_vec(),
            images: digests,
            maven_arguments,
            launchers: images
                .iter()
                .filter(|(_, image)| image.launcher != Launcher::Auto)
                .map(|(name, image)| (name.clone(), image.launcher))
                .collect(),
            limits: limits.clone(),
            surefire,
            paths: paths.to_vec(),
            repeats,
            tools: None,
            shard: None,
        }
    }
}
