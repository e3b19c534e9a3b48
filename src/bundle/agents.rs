//! The description of a bundle for agents: images, and a workspace for each task. Nothing of a developers' test is in it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::task::{RepositoryName, TaskId, Track};

/// The description of a bundle for agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AgentDescription {
    /// [`SCHEMA`](super::description::SCHEMA).
    pub schema: u32,
    /// The repositories.
    pub repositories: BTreeMap<RepositoryName, AgentRepository>,
    /// Records of finished layers, by the layers' recipes.
    pub layers: BTreeMap<Digest, Digest>,
    /// The record of the software bill of materials.
    pub bill: Digest,
    /// Every record, with its size in bytes.
    pub records: BTreeMap<Digest, u64>,
    /// Every blob of the store, with its size in bytes.
    pub blobs: BTreeMap<Digest, u64>,
}

/// A repository in a bundle for agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AgentRepository {
    /// The record of the built image.
    pub image: Digest,
    /// The workspaces, by task.
    pub tasks: BTreeMap<TaskId, PackedWorkspace>,
}

/// A task's workspace as one archive, with what its audit found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PackedWorkspace {
    /// The archive's blob.
    pub archive: Digest,
    /// Its size in bytes.
    pub size: u64,
    /// The task's track.
    pub track: Track,
    /// Git's id of the one commit.
    pub commit: String,
    /// Number of the project's files and links.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Files of the revision that the workspace lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacking: Vec<String>,
    /// Changed production files that `TASK.md` only names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only_named: Vec<String>,
    /// What of the developers' test other files of the starting tree hold. The protocol keeps these files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Kept>,
    /// Files of the starting tree that the audit could not look at in full.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<Unseen>,
}

/// A part of the developers' test in another file of the starting tree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// The file, relative to the project.
    pub path: String,
    /// The kind of finding, as `audit` names it.
    pub kind: String,
    /// The method or class.
    pub detail: String,
}

/// A file that an audit could not look at in full.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Unseen {
    /// The file, relative to the project.
    pub path: String,
    /// The reason.
    pub reason: String,
}

impl AgentDescription {
    /// Returns all workspaces with their repository and task, sorted by repository and task.
    pub fn workspaces(&self) -> impl Iterator<Item = (&RepositoryName, &TaskId, &PackedWorkspace)> {
        self.repositories
            .iter()
            .flat_map(|(name, repository)| repository.tasks.iter().map(move |(task, packed)| (name, task, packed)))
    }

    /// Returns the records that it names, except for those of layers.
    pub(super) fn named(&self) -> Vec<Digest> {
        let images = self.repositories.values().map(|repository| repository.image);
        [self.bill].into_iter().chain(images).collect()
    }
}
