//! The description of a bundle: the configuration blob of its manifest. Each audience has a form of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::BundleError;
use super::agents::AgentDescription;
use super::layout::Layout;
use super::runs::PackedRun;
use crate::canonical_json::canonical_json;
use crate::digest::Digest;
use crate::task::{RepositoryName, Revision, TaskId};

/// Version of the description's schema.
pub const SCHEMA: u32 = 1;

/// Type of a bundle in `index.json` and in its manifest.
pub const ARTIFACT_TYPE: &str = "application/vnd.testevo-sandbox.bundle.v1";
/// Media type of the description.
const DESCRIPTION_TYPE: &str = "application/vnd.testevo-sandbox.bundle.description.v1+json";
/// Media type of the records: locks, manifests, tasks and small files beside them.
const RECORD_TYPE: &str = "application/vnd.testevo-sandbox.bundle.record.v1";
/// Media type of sources: objects of git.
const SOURCES_TYPE: &str = "application/vnd.testevo-sandbox.bundle.objects.v1+zstd";
/// Media type of workspaces: tar archives in zstd.
const WORKSPACE_TYPE: &str = "application/vnd.testevo-sandbox.bundle.workspace.v1.tar+zstd";
/// Media type of finished runs: tar archives in zstd.
const RUN_TYPE: &str = "application/vnd.testevo-sandbox.bundle.run.v1.tar+zstd";
/// Media type of blobs that go into the store.
const BLOB_TYPE: &str = "application/vnd.testevo-sandbox.bundle.blob.v1";
/// The key of an image's name among the annotations of its descriptor.
pub(super) const IMAGE_NAME: &str = "org.opencontainers.image.ref.name";
/// Media type of manifests.
pub const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

/// Largest index, in bytes.
pub const MOST_INDEX_BYTES: u64 = 4 << 20;
/// Largest manifest or description, in bytes.
pub(super) const MOST_DESCRIPTION_BYTES: u64 = 64 << 20;
/// Largest total size of the records, in bytes.
const MOST_RECORD_BYTES: u64 = 256 << 20;
/// Largest blob, in bytes.
pub(super) const MOST_BLOB_BYTES: u64 = 16 << 30;

/// Whom a bundle is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Audience {
    /// Whoever scores submissions. The developers' tests are in the bundle.
    Scorer,
    /// Whoever runs agents. No task's answer is in its workspace.
    Agent,
}

impl fmt::Display for Audience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scorer => "scorer",
            Self::Agent => "agent",
        })
    }
}

/// The kinds of things that are made once and go into bundles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MadeKind {
    /// Prepared revisions.
    Prepared,
    /// Class archives.
    ClassArchive,
    /// Our own jars.
    Jars,
}

/// A description of a thing that is made once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Described {
    /// The kind.
    pub kind: MadeKind,
    /// The key.
    pub key: Digest,
    /// The record with the description's bytes.
    pub record: Digest,
}

/// The jar whose modification time stands in class archives. A JVM rejects an archive with another time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Runner {
    /// The jar's blob.
    pub jar: Digest,
    /// Its modification time in seconds since the epoch.
    pub modified: u64,
}

/// A blob with objects of git.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SourceBlob {
    /// The blob.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
}

/// A repository in a bundle. Digests are those of records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RepositoryContent {
    /// The task ids, sorted.
    pub tasks: Vec<TaskId>,
    /// The record of the built image.
    pub image: Digest,
    /// The repository's lock.
    pub lock: Digest,
    /// Its manifest.
    pub manifest: Digest,
    /// Its task file, with the bundle's tasks only.
    pub task_file: Digest,
    /// The tasks' time classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_classes: Option<Digest>,
    /// Revisions of the tasks, sorted.
    pub revisions: Vec<Revision>,
    /// Blobs whose objects together make these revisions.
    pub sources: Vec<SourceBlob>,
}

/// The description of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "audience", rename_all = "snake_case")]
pub enum Description {
    /// Of one for scorers.
    Scorer(Box<ScorerDescription>),
    /// Of one for agents.
    Agent(Box<AgentDescription>),
}

/// The description of a bundle for scorers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ScorerDescription {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Identity of the executions that made its prepared revisions. Only a program with the same identity uses them.
    pub identity: Digest,
    /// The record of the toolchain's lock.
    pub toolchain: Digest,
    /// The repositories.
    pub repositories: BTreeMap<RepositoryName, RepositoryContent>,
    /// Things that are made once, sorted.
    pub made: Vec<Described>,
    /// The jar that class archives refer to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<Runner>,
    /// Finished runs of its tasks, sorted: the developers' tests scored, and the validation that certifies tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<PackedRun>,
    /// Records of finished layers, by the layers' recipes.
    pub layers: BTreeMap<Digest, Digest>,
    /// The record of the software bill of materials.
    pub bill: Digest,
    /// Every record, with its size in bytes.
    pub records: BTreeMap<Digest, u64>,
    /// Every blob of the store, with its size in bytes.
    pub blobs: BTreeMap<Digest, u64>,
}

/// A manifest of an image in a bundle, for `index.json`.
pub struct ImageReference {
    /// The manifest.
    pub manifest: Digest,
    /// Its size in bytes.
    pub size: u64,
    /// The image's name for engines.
    pub name: String,
}

impl Description {
    /// Returns the bundle's audience.
    pub fn audience(&self) -> Audience {
        match self {
            Self::Scorer(_) => Audience::Scorer,
            Self::Agent(_) => Audience::Agent,
        }
    }

    /// Returns every record, with its size in bytes.
    pub fn records(&self) -> &BTreeMap<Digest, u64> {
        match self {
            Self::Scorer(description) => &description.records,
            Self::Agent(description) => &description.records,
        }
    }

    /// Returns every blob of the store, with its size in bytes.
    pub fn blobs(&self) -> &BTreeMap<Digest, u64> {
        match self {
            Self::Scorer(description) => &description.blobs,
            Self::Agent(description) => &description.blobs,
        }
    }

    /// Returns the records of finished layers, by the layers' recipes.
    pub fn layers(&self) -> &BTreeMap<Digest, Digest> {
        match self {
            Self::Scorer(description) => &description.layers,
            Self::Agent(description) => &description.layers,
        }
    }

    /// Returns the record of each repository's image, sorted by repository.
    pub fn images(&self) -> impl Iterator<Item = (&RepositoryName, &Digest)> {
        let (scorer, agent) = match self {
            Self::Scorer(description) => (Some(&description.repositories), None),
            Self::Agent(description) => (None, Some(&description.repositories)),
        };
        let scorer = scorer.into_iter().flatten().map(|(name, content)| (name, &content.image));
        scorer.chain(agent.into_iter().flatten().map(|(name, repository)| (name, &repository.image)))
    }

    /// Returns the blobs of sources in the bundle.
    pub fn sources(&self) -> impl Iterator<Item = &SourceBlob> {
        let scorer = match self {
            Self::Scorer(description) => Some(description),
            Self::Agent(_) => None,
        };
        scorer
            .into_iter()
            .flat_map(|description| description.repositories.values())
            .flat_map(|content| &content.sources)
    }

    /// Returns the finished runs in the bundle.
    pub fn runs(&self) -> &[PackedRun] {
        match self {
            Self::Scorer(description) => &description.runs,
            Self::Agent(_) => &[],
        }
    }

    /// Returns every blob that the bundle names, with its size and media type.
    fn all(&self) -> BTreeMap<Digest, (u64, &'static str)> {
        let of = |found: &BTreeMap<Digest, u64>, kind: &'static str| {
            found.iter().map(|(digest, size)| (*digest, (*size, kind))).collect::<BTreeMap<_, _>>()
        };
        let mut all = of(self.blobs(), BLOB_TYPE);
        all.extend(of(self.records(), RECORD_TYPE));
        all.extend(self.sources().map(|blob| (blob.digest, (blob.size, SOURCES_TYPE))));
        all.extend(self.runs().iter().map(|run| (run.archive, (run.size, RUN_TYPE))));
        if let Self::Agent(description) = self {
            let workspaces = description.workspaces();
            all.extend(workspaces.map(|(_, _, packed)| (packed.archive, (packed.size, WORKSPACE_TYPE))));
        }
        all
    }

    /// Returns every blob that the bundle names, with its size in bytes.
    pub fn sizes(&self) -> BTreeMap<Digest, u64> {
        self.all().into_iter().map(|(digest, (size, _))| (digest, size)).collect()
    }

    /// Returns the ids of all tasks.
    pub fn tasks(&self) -> BTreeSet<TaskId> {
        match self {
            Self::Scorer(description) => {
                description.repositories.values().flat_map(|content| content.tasks.iter().cloned()).collect()
            }
            Self::Agent(description) => description.workspaces().map(|(_, task, _)| task.clone()).collect(),
        }
    }

    /// Returns the bytes of the description, of the bundle's manifest and of `index.json`.
    ///
    /// # Errors
    /// Errors of serialisation, which plain data never causes.
    pub fn render(&self, images: &[ImageReference]) -> serde_json::Result<[Vec<u8>; 3]> {
        let description = canonical_json(self)?;
        let layers = self.all().into_iter().map(|(digest, (size, kind))| descriptor(kind, &digest, size));
        let manifest = canonical_json(&json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "artifactType": ARTIFACT_TYPE,
            "config": descriptor(DESCRIPTION_TYPE, &Digest::of(&description), description.len() as u64),
            "layers": layers.collect::<Vec<_>>(),
        }))?;
        let mut bundle = descriptor(MANIFEST_TYPE, &Digest::of(&manifest), manifest.len() as u64);
        bundle["artifactType"] = ARTIFACT_TYPE.into();
        let images = images.iter().map(|image| {
            let mut of_image = descriptor(MANIFEST_TYPE, &image.manifest, image.size);
            of_image["annotations"] = json!({(IMAGE_NAME): image.name});
            of_image["platform"] = json!({"architecture": crate::lock::ARCHITECTURE, "os": "linux"});
            of_image
        });
        let index = canonical_json(&json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": std::iter::once(bundle).chain(images).collect::<Vec<_>>(),
        }))?;
        Ok([description, manifest, index])
    }

    /// Reads and checks the description that the bytes of a bundle's `index.json` lead to. Returns it with the digests of
    /// the bundle's manifest and of the description.
    ///
    /// # Errors
    /// [`BundleError`].
    pub fn read(layout: &Layout, index: &[u8]) -> Result<(Self, [Digest; 2]), BundleError> {
        let malformed = |reason: String| layout.malformed(reason);
        let json = |bytes: &[u8], what: &str| -> Result<serde_json::Value, BundleError> {
            serde_json::from_slice(bytes).map_err(|error| malformed(format!("{what}: {error}")))
        };
        let index = json(index, "index.json")?;
        let found = index.get("manifests").and_then(|manifests| manifests.as_array()).into_iter().flatten();
        let ours: Vec<_> =
            found.filter(|one| one.get("artifactType").is_some_and(|kind| kind == ARTIFACT_TYPE)).collect();
        let [bundle] = ours.as_slice() else {
            return Err(malformed(format!("index.json names {} bundles instead of one", ours.len())));
        };
        let manifest_bytes = read_descriptor(layout, Some(bundle), "index.json")?;
        let manifest = json(&manifest_bytes, "the bundle's manifest")?;
        let bytes = read_descriptor(layout, manifest.get("config"), "the bundle's manifest")?;
        let value = json(&bytes, "the bundle's description")?;
        match value.get("schema").and_then(serde_json::Value::as_u64) {
            Some(found) if found == u64::from(SCHEMA) => {}
            Some(found) => return Err(BundleError::UnknownSchema { name: layout.name().to_owned(), found }),
            None => return Err(malformed("its description has no `schema`".to_owned())),
        }
        let description: Self =
            serde_json::from_value(value).map_err(|error| malformed(format!("its description: {error}")))?;
        description.check().map_err(malformed)?;
        // What a stranger's tools see of the bundle is what this program reads.
        let [_, own, _] = description.render(&[]).map_err(|error| malformed(error.to_string()))?;
        match own == manifest_bytes {
            true => Ok((description, [Digest::of(&manifest_bytes), Digest::of(&bytes)])),
            false => Err(malformed("its manifest does not follow from its description".to_owned())),
        }
    }

    /// Checks sizes, and that every record that is named is listed.
    fn check(&self) -> Result<(), String> {
        let records: u128 = self.records().values().map(|size| u128::from(*size)).sum();
        if records > u128::from(MOST_RECORD_BYTES) {
            return Err(format!("its records have {records} bytes, more than {MOST_RECORD_BYTES}"));
        }
        if let Some((digest, (size, _))) = self.all().into_iter().find(|(_, (size, _))| *size > MOST_BLOB_BYTES) {
            return Err(format!("blob {digest} has {size} bytes, more than {MOST_BLOB_BYTES}"));
        }
        let named = match self {
            Self::Scorer(description) => description.named(),
            Self::Agent(description) => description.named(),
        };
        let mut named = named.into_iter().chain(self.layers().values().copied());
        if let Some(missing) = named.find(|digest| !self.records().contains_key(digest)) {
            return Err(format!("record {missing} is named and not listed"));
        }
        let ids = self.runs().iter().map(|run| &run.run_id);
        if !ids.is_sorted_by(|one, next| one < next) {
            return Err("its runs are not sorted, or one is there twice".to_owned());
        }
        match self {
            Self::Scorer(description) => match &description.runner {
                Some(runner) if !description.blobs.contains_key(&runner.jar) => {
                    Err(format!("blob {} is named and not listed", runner.jar))
                }
                _ => Ok(()),
            },
            Self::Agent(description) => description.check(),
        }
    }
}

impl ScorerDescription {
    /// Returns the records that it names, except for those of layers.
    fn named(&self) -> Vec<Digest> {
        let of_repositories = self.repositories.values().flat_map(|content| {
            let RepositoryContent { lock, manifest, task_file, image, time_classes, .. } = content;
            [*lock, *manifest, *task_file, *image].into_iter().chain(*time_classes)
        });
        let made = self.made.iter().map(|made| made.record);
        [self.toolchain, self.bill].into_iter().chain(of_repositories).chain(made).collect()
    }
}

fn descriptor(media_type: &str, digest: &Digest, size: u64) -> serde_json::Value {
    json!({"mediaType": media_type, "digest": digest, "size": size})
}

/// Returns the checked bytes that a descriptor names.
fn read_descriptor(layout: &Layout, descriptor: Option<&serde_json::Value>, of: &str) -> Result<Vec<u8>, BundleError> {
    #[derive(Deserialize)]
    struct Named {
        digest: Digest,
        size: u64,
    }
    let named: Named = descriptor
        .ok_or_else(|| "a descriptor is missing".to_owned())
        .and_then(|value| Named::deserialize(value).map_err(|error| error.to_string()))
        .map_err(|reason| layout.malformed(format!("{of}: {reason}")))?;
    if named.size > MOST_DESCRIPTION_BYTES {
        return Err(layout.malformed(format!("{of} names {} bytes", named.size)));
    }
    layout.read_blob(&named.digest, named.size)
}
