//! Locks: every byte of an image by digest, so that building needs no package manager and no resolution.
//!
//! This module reads and writes lock files; the module `resolution` finds their content. A lock contains names of
//! origins, never addresses.

pub mod archive;
pub mod items;
mod maven_file;
mod mismatch;
pub mod policy;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::{Deserialize, Serialize};

pub use maven_file::{MavenFile, release_path};
pub use mismatch::MismatchError;

use crate::artifact::origin::OriginName;
use crate::data_dir::write_atomically;
use crate::digest::Digest;
use crate::error::{ExitStatus, Failure};
use crate::manifest::RepositoryManifest;
use crate::output::without_types;
use crate::task::RepositoryName;

/// The architecture of packages and images, in the terms of Debian and OCI. The engines check Docker's name for the
/// machine.
pub const ARCHITECTURE: &str = "amd64";

/// Version of both lock files' schema.
pub const LOCK_SCHEMA: u32 = 1;

/// The largest lock that is read, in bytes.
const MOST_BYTES: u64 = 64 << 20;

/// Errors of a lock file.
#[derive(Debug, thiserror::Error)]
pub enum LockFileError {
    /// The file does not exist.
    #[error("there is no lock `{path}`")]
    Missing {
        /// The file.
        path: PathBuf,
        /// The repository that needs it, if known.
        repository: Option<RepositoryName>,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The file is not a lock.
    #[error("the lock `{path}` can't be read: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The parser's message.
        reason: String,
    },
    /// A newer program wrote it.
    #[error("the lock `{path}` has schema {found}, this program knows schema {LOCK_SCHEMA}")]
    UnknownSchema {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: u32,
    },
}

impl Failure for LockFileError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Missing { .. } => ExitStatus::Usage,
            Self::Io(_) => ExitStatus::Infrastructure,
            Self::Malformed { .. } | Self::UnknownSchema { .. } => ExitStatus::Mismatch,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Missing { repository: Some(repository), .. } => {
                return Some(format!("run `testevo-sandbox lock {repository}`"));
            }
            Self::Missing { .. } => "run `testevo-sandbox lock NAME` for the repositories that you need",
            Self::Io(_) => "check the permissions of the lock and its directory, and the free space",
            Self::Malformed { .. } => "restore it from a copy or from locks/history, or remove it and run `lock` again",
            Self::UnknownSchema { .. } => "use the program that wrote it",
        };
        Some(hint.to_owned())
    }
}

/// The part of an image that a locked file belongs to, in the order in which layers are stacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayerKind {
    /// Base operating system.
    Base,
    /// A Java development kit.
    Jdk,
    /// Maven, JUnit, JaCoCo, Universal Mutator, Python.
    Tools,
    /// A repository's Maven cache.
    MavenCache,
    /// Tools that agents expect. Images for scoring lack them.
    Agent,
    /// One task's workspace.
    Workspace,
    /// This program and a bundle for scorers.
    Verifier,
}

impl LayerKind {
    /// Tells whether images of the same toolchain and development kit share the layer.
    pub fn is_of_toolchain(self) -> bool {
        matches!(self, Self::Base | Self::Jdk | Self::Tools)
    }
}

/// The inputs of all images. File: `locks/toolchain.lock`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ToolchainLock {
    /// [`LOCK_SCHEMA`].
    pub schema: u32,
    /// Debian packages of the base layer, sorted by name.
    pub base: Vec<DebianPackage>,
    /// Debian packages of each Java development kit beyond the base, ascending by major version.
    pub jdks: Vec<JdkLock>,
    /// Debian packages of the tools layer beyond the base (Python), sorted by name.
    pub tools_packages: Vec<DebianPackage>,
    /// Archives and jars of the tools layer, sorted by role.
    pub tools: Vec<ToolFile>,
    /// The signed indexes from which the packages were chosen.
    pub indexes: Vec<SignedIndex>,
    /// Debian packages of the agent layer beyond base and tools, sorted by name; none unless `lock --agent` asked for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_packages: Vec<DebianPackage>,
}

impl ToolchainLock {
    /// Returns an empty lock.
    pub fn empty() -> Self {
        Self {
            schema: LOCK_SCHEMA,
            base: Vec::new(),
            jdks: Vec::new(),
            tools_packages: Vec::new(),
            tools: Vec::new(),
            indexes: Vec::new(),
            agent_packages: Vec::new(),
        }
    }
}

impl ToolchainLock {
    /// Tells whether images for scoring are the same with both locks.
    fn makes_images_of(&self, other: &Self) -> bool {
        self.base == other.base
            && self.jdks == other.jdks
            && self.tools_packages == other.tools_packages
            && self.tools == other.tools
    }

    /// Returns the lock with the tools of agents that only `other` has. `None` if the locks differ in anything else.
    pub fn united(&self, other: &Self) -> Option<Self> {
        let (own, of_other) = (&self.agent_packages, &other.agent_packages);
        if !self.makes_images_of(other) || !(own.is_empty() || of_other.is_empty() || own == of_other) {
            return None;
        }
        let mut united = self.clone();
        if own.is_empty() && !of_other.is_empty() {
            united.agent_packages.clone_from(of_other);
            united.indexes.extend(other.indexes.iter().cloned());
            let key = |index: &SignedIndex| (index.suite.clone(), index.in_release);
            united.indexes.sort_by_key(key);
            united.indexes.dedup_by_key(|index| key(index));
        }
        Some(united)
    }
}

/// One Java development kit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JdkLock {
    /// Major version: one of [`crate::manifest::JDK_MAJORS`].
    pub major: u32,
    /// Its packages, sorted by name.
    pub packages: Vec<DebianPackage>,
}

/// A Debian package by digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DebianPackage {
    /// Package name.
    pub name: String,
    /// Full version.
    pub version: String,
    /// `amd64` or `all`.
    pub architecture: String,
    /// Suite of the index that lists it.
    pub suite: String,
    /// Path below the origin `debian`, such as `pool/main/…/x.deb`.
    pub path: String,
    /// Digest of the `.deb`.
    pub sha256: Digest,
    /// Size in bytes.
    pub size: u64,
}

/// A signed index from which packages were chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SignedIndex {
    /// Suite.
    pub suite: String,
    /// Digest of the signed `InRelease`.
    pub in_release: Digest,
    /// Its `Date` field.
    pub date: String,
    /// Fingerprints of the keys that signed it, upper-case hexadecimal.
    pub signed_by: Vec<String>,
}

/// The role of a file in the tools layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ToolRole {
    /// Maven's binary archive (`.tar.gz`), unpacked to `/opt/maven` without its first directory.
    Maven,
    /// `/opt/junit/console.jar`: the Platform 1.x standalone console.
    JunitConsole,
    /// `/opt/junit6/console.jar`: the Platform 6 standalone console (Java 17).
    Junit6Console,
    /// `/opt/jacoco/agent.jar`.
    JacocoAgent,
    /// `/opt/jacoco/cli.jar`.
    JacocoCli,
    /// A wheel or source archive of Universal Mutator or of a requirement, unpacked to `/opt/python`.
    Python,
}

/// A file of the tools layer by digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ToolFile {
    /// The file's role.
    pub role: ToolRole,
    /// Project name, such as `universalmutator`.
    pub name: String,
    /// Version.
    pub version: String,
    /// `central` or `pypi`.
    pub origin: String,
    /// Path below the origin; for `pypi` the file's name.
    pub path: String,
    /// Digest of the file.
    pub sha256: Digest,
    /// Size in bytes.
    pub size: u64,
}

/// A repository's Maven cache. File: `locks/<owner>__<name>.lock`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RepositoryLock {
    /// [`LOCK_SCHEMA`].
    pub schema: u32,
    /// The repository.
    pub repository: RepositoryName,
    /// The major version of the Java development kit in its images.
    pub jdk: u32,
    /// Digest of Maven's arguments; `None` if no override of the manifest changes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maven_arguments: Option<Digest>,
    /// Files of the cache, sorted by path.
    pub files: Vec<MavenFile>,
    /// Frozen metadata, sorted by path.
    pub metadata: Vec<FrozenMetadata>,
    /// Build sets for which the cache was warmed, by identity, sorted.
    pub build_sets: Vec<String>,
    /// Those of `build_sets` for which Maven builds all modules, sorted: it fails for the task's module and what that
    /// depends on alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub whole_sets: Vec<String>,
    /// Build sets that lack an artifact, sorted by identity. Tasks on them can't be executed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unresolved: Vec<UnresolvedSet>,
    /// The manifest's extension jars, sorted by digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extension_jars: Vec<LockedJar>,
}

/// A jar of the user's by digest. It has no origin: `lock` copies it from the user's file into the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LockedJar {
    /// Digest of the file.
    pub sha256: Digest,
    /// Size in bytes.
    pub size: u64,
}

/// A build set that lacks an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnresolvedSet {
    /// Its identity.
    pub build_set: String,
    /// The artifact, as `group:artifact:extension:version` or `the versions of group:artifact`.
    pub artifact: String,
    /// What wants it, such as a plugin's goal or a module; `None` if Maven did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted_by: Option<String>,
    /// The origins that were asked.
    pub origins: Vec<String>,
    /// Why they gave nothing, in one line.
    pub cause: String,
}

impl std::fmt::Display for UnresolvedSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} did not resolve", self.artifact)?;
        if let Some(wanted_by) = &self.wanted_by {
            write!(f, "; it is wanted by {wanted_by}")?;
        }
        write!(f, "; asked: {}; {}", self.origins.join(", "), self.cause)
    }
}

impl RepositoryLock {
    /// Tells whether Maven builds all modules for a build set.
    pub fn builds_whole(&self, build_set: &str) -> bool {
        self.whole_sets.binary_search_by(|one| one.as_str().cmp(build_set)).is_ok()
    }

    /// Records that a build set is resolved, or which artifacts it lacks.
    pub fn settle(&mut self, build_set: &str, lacking: Option<&[UnresolvedSet]>) {
        self.unresolved.retain(|one| one.build_set != build_set);
        match lacking {
            None => {
                self.build_sets.push(build_set.to_owned());
                self.build_sets.sort();
            }
            Some(artifacts) => {
                self.unresolved.extend(artifacts.iter().cloned());
                self.unresolved.sort_by(|a, b| (&a.build_set, &a.artifact).cmp(&(&b.build_set, &b.artifact)));
            }
        }
    }

    /// Tells whether the lock was resolved for the present manifest. Otherwise its build sets were resolved with
    /// another Java or other arguments of Maven, and the lock may lack needed files.
    pub fn is_for(&self, manifest: &RepositoryManifest) -> bool {
        self.jdk == manifest.jdk
            && self.maven_arguments == manifest.build.overridden_arguments()
            && manifest.has_extension_jars(self.extension_jars.iter().map(|jar| jar.sha256))
    }
}

/// Metadata whose content at the origin changes with time, so the lock contains its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FrozenMetadata {
    /// Path in the cache, `…/maven-metadata-<mirror id>.xml`.
    pub path: String,
    /// How its version was chosen, in words.
    pub rule: String,
    /// The chosen version; `None` if none was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<String>,
    /// The file's text.
    pub content: String,
}

/// A type of lock file.
pub trait LockFile: Serialize + serde::de::DeserializeOwned {
    /// Returns the file's exact bytes.
    fn render(&self) -> String {
        // Serialising plain data to TOML fails only for maps with non-text keys, which locks do not have.
        toml::to_string(self).unwrap_or_else(|error| unreachable!("a lock is plain data: {error}"))
    }

    /// Returns the digest of the file's bytes.
    fn digest(&self) -> Digest {
        Digest::of(self.render().as_bytes())
    }

    /// Reads a lock file.
    ///
    /// # Errors
    /// [`LockFileError`].
    fn load(path: &Path) -> Result<Self, LockFileError> {
        Self::parse(path, &read(path)?)
    }

    /// Reads a lock file's text; `path` is its name in errors.
    ///
    /// # Errors
    /// [`LockFileError::Malformed`], [`LockFileError::UnknownSchema`].
    fn parse(path: &Path, text: &str) -> Result<Self, LockFileError> {
        let malformed = |reason: String| LockFileError::Malformed { path: path.to_owned(), reason };
        // The schema is checked first: a newer file must not be called malformed.
        let table: toml::Table = toml::from_str(text).map_err(|error| malformed(error.message().to_owned()))?;
        match table.get("schema").and_then(toml::Value::as_integer) {
            Some(schema) if schema == i64::from(LOCK_SCHEMA) => {}
            Some(schema) => {
                let found = u32::try_from(schema).unwrap_or(u32::MAX);
                return Err(LockFileError::UnknownSchema { path: path.to_owned(), found });
            }
            None => return Err(malformed("it has no `schema`".to_owned())),
        }
        let lock: Self =
            table.try_into().map_err(|error: toml::de::Error| malformed(without_types(error.message())))?;
        for origin in lock.origins() {
            origin.parse::<OriginName>().map_err(|error| malformed(error.to_string()))?;
        }
        Ok(lock)
    }

    /// Returns the blobs that the lock names.
    fn blobs(&self) -> Vec<Digest>;

    /// Returns the names of origins in the lock, unchanged.
    fn origins(&self) -> impl Iterator<Item = &str>;

    /// Writes the lock file atomically.
    ///
    /// # Errors
    /// I/O errors of writing `path`.
    fn store(&self, path: &Path) -> Result<(), LockFileError> {
        Ok(write_atomically(path, self.render().as_bytes())?)
    }
}

impl LockFile for ToolchainLock {
    fn origins(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.origin.as_str())
    }

    fn blobs(&self) -> Vec<Digest> {
        let packages = self.base.iter().chain(&self.tools_packages).chain(&self.agent_packages);
        let packages = packages.chain(self.jdks.iter().flat_map(|kit| &kit.packages)).map(|package| package.sha256);
        let tools = self.tools.iter().map(|tool| tool.sha256);
        packages.chain(tools).chain(self.indexes.iter().map(|index| index.in_release)).collect()
    }
}

impl LockFile for RepositoryLock {
    fn origins(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| file.origin.as_str())
    }

    fn blobs(&self) -> Vec<Digest> {
        let jars = self.extension_jars.iter().map(|jar| jar.sha256);
        self.files.iter().map(|file| file.sha256).chain(jars).collect()
    }
}

/// Returns the blobs that a lock of either kind names; `path` is its name in errors.
///
/// # Errors
/// [`LockFileError::Malformed`], [`LockFileError::UnknownSchema`].
pub fn blobs_of(path: &Path, text: &str) -> Result<Vec<Digest>, LockFileError> {
    let is_repository = toml::from_str::<toml::Table>(text).is_ok_and(|table| table.contains_key("repository"));
    match is_repository {
        true => RepositoryLock::parse(path, text).map(|lock| lock.blobs()),
        false => ToolchainLock::parse(path, text).map(|lock| lock.blobs()),
    }
}

/// Reads a lock file's text.
///
/// # Errors
/// [`LockFileError::Missing`], [`LockFileError::Malformed`] for a file that is not text, [`LockFileError::Io`].
pub fn read(path: &Path) -> Result<String, LockFileError> {
    let malformed = |reason: String| LockFileError::Malformed { path: path.to_owned(), reason };
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Err(malformed("it is no file".to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(LockFileError::Missing { path: path.to_owned(), repository: None });
        }
        Err(error) => return Err(error.into()),
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(malformed(format!("it is larger than {MOST_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| malformed(error.utf8_error().to_string()))
}
