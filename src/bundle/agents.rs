//! The description of a bundle for agents: images, and a workspace for each task. Nothing of a developers' test is in it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::manifest::Limits;
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
    /// The limits of its executions, which a shell has, too; `None` for the default ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
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

    /// Returns the limits of a repository's executions.
    pub fn limits_of(&self, repository: &RepositoryName) -> Limits {
        self.repositories.get(repository).and_then(|found| found.limits).unwrap_or_default()
    }

    /// Checks that no task is in two repositories, and that every limit is one that a manifest may have.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        if let Some((_, task, _)) = self.workspaces().find(|(_, task, _)| !seen.insert(*task)) {
            return Err(format!("the task {task} is in two repositories"));
        }
        let mut limits = self.repositories.iter().filter_map(|(name, found)| Some((name, found.limits?)));
        limits.try_for_each(|(name, limits)| limits.check().map_err(|reason| format!("the limits of {name}: {reason}")))
    }

    /// Returns the records that it names, except for those of layers.
    pub(super) fn named(&self) -> Vec<Digest> {
        let images = self.repositories.values().map(|repository| repository.image);
        [self.bill].into_iter().chain(images).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_of_two_repositories_and_impossible_limits_are_refused() {
        let archive = Digest::of(b"");
        let packed = PackedWorkspace {
            archive,
            size: 0,
            track: Track::TestGeneration,
            commit: String::new(),
            files: 0,
            bytes: 0,
            lacking: Vec::new(),
            only_named: Vec::new(),
            kept: Vec::new(),
            unseen: Vec::new(),
        };
        let repository = |task: &str, limits: Option<Limits>| AgentRepository {
            image: archive,
            limits,
            tasks: BTreeMap::from([(task.parse().unwrap(), packed.clone())]),
        };
        let of = |repositories: [AgentRepository; 2]| {
            let names = ["owner/one", "owner/two"].map(|name| name.parse().unwrap());
            AgentDescription {
                schema: 1,
                repositories: names.into_iter().zip(repositories).collect(),
                layers: BTreeMap::new(),
                bill: archive,
                records: BTreeMap::new(),
                blobs: BTreeMap::new(),
            }
        };
        let large = Limits { compile_memory_mib: 8192, ..Limits::default() };
        let sound = of([repository("one-1", Some(large)), repository("two-1", None)]);
        sound.check().unwrap();
        assert_eq!(sound.limits_of(&"owner/one".parse().unwrap()), large);
        assert_eq!(sound.limits_of(&"owner/two".parse().unwrap()), Limits::default());
        let twice = of([repository("one-1", None), repository("one-1", None)]).check().unwrap_err();
        assert_eq!(twice, "the task one-1 is in two repositories");
        // Engines take zero for no limit.
        let none = Limits { compile_cpus: 0, ..Limits::default() };
        let refused = of([repository("one-1", None), repository("two-1", Some(none))]).check().unwrap_err();
        assert!(refused.starts_with("the limits of owner/two: `compile_cpus` is 0"), "{refused}");
    }
}
