//! The shared parts of execution containers: our own jars, the scratch space, the environment of commands.

pub mod images;
pub mod jars;
pub mod limits;
pub mod places;
pub mod pool;
pub mod steps;
pub mod temporary;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::engine::spec::{ContainerLimits, ContainerSpec, Program, ReadOnlyMount, Scratch};
use crate::execution::container::places::{CLASS_ARCHIVE, HOME, RECORDER, RUNNER, TREE};
use crate::manifest::Launcher;

/// Options of every JVM of ours, of methods and of the warm compiler.
pub(in crate::execution) const JVM_OPTIONS: [&str; 8] = [
    "-XX:ActiveProcessorCount=2",
    // A method's JVM ends before the second compiler would pay off.
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Dfile.encoding=UTF-8",
    "-Duser.language=en",
    "-Duser.country=US",
    "-Duser.timezone=UTC",
    "-Djava.awt.headless=true",
];

/// Returns the options of a JVM that maps a class archive. The JVM ignores an archive that does not fit. Without the last
/// option newer JVMs would report that on stdout.
pub(in crate::execution) fn class_archive_options() -> [String; 3] {
    [format!("-XX:SharedArchiveFile={CLASS_ARCHIVE}"), "-Xshare:auto".to_owned(), "-Xlog:cds*=off".to_owned()]
}

/// Whether a project's settings for Surefire apply to launches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Surefire {
    /// The settings apply, without agents.
    #[default]
    Project,
    /// No settings apply: the paper's literal launch.
    None,
}

/// A repository's image, and what its manifest chooses for all executions in it.
#[derive(Clone, Debug)]
pub struct RepositoryImage {
    /// The image's config digest.
    pub config_digest: Digest,
    /// Digest of all layers that images with the same development kit share: all but the Maven cache.
    pub toolchain: Digest,
    /// Major version of its development kit.
    pub jdk: u32,
    /// `JAVA_HOME` in the image.
    pub java_home: String,
    /// Skips and other arguments of the manifest for Maven.
    pub maven_arguments: Vec<String>,
    /// The console that launches tests.
    pub launcher: Launcher,
    /// Whether the project's settings for Surefire apply to launches.
    pub surefire: Surefire,
}

/// Our own jars on the host.
#[derive(Clone, Debug)]
pub struct ToolJars {
    /// `images/runner`, compiled.
    pub runner: PathBuf,
    /// `images/recorder`, compiled.
    pub recorder: PathBuf,
    /// `images/compiler`, compiled.
    pub compiler: PathBuf,
    /// `images/tracer`, compiled.
    pub tracer: PathBuf,
}

impl ToolJars {
    /// Returns the paths of our jars below `directory`, which need not exist.
    #[cfg(test)]
    pub(crate) fn below(directory: &Path) -> Self {
        let [runner, recorder, compiler, tracer] =
            ["runner", "recorder", "compiler", "tracer"].map(|name| directory.join(name));
        Self { runner, recorder, compiler, tracer }
    }

    fn mounts(&self) -> [ReadOnlyMount; 2] {
        [
            ReadOnlyMount { source: self.runner.clone(), target: RUNNER.to_owned() },
            ReadOnlyMount { source: self.recorder.clone(), target: RECORDER.to_owned() },
        ]
    }
}

/// Returns a container that has `tree` as its only input besides our own files.
pub fn container(
    purpose: &str,
    image: Digest,
    tree: PathBuf,
    jars: &ToolJars,
    (limits, scratch_bytes): (ContainerLimits, u64),
    program: Program,
) -> ContainerSpec {
    let mut spec = container_without_tree(purpose, image, jars, (limits, scratch_bytes), program);
    spec.mounts.insert(0, ReadOnlyMount { source: tree, target: TREE.to_owned() });
    spec
}

/// Returns a container that has no input besides our own files.
pub fn container_without_tree(
    purpose: &str,
    image: Digest,
    jars: &ToolJars,
    (limits, scratch_bytes): (ContainerLimits, u64),
    program: Program,
) -> ContainerSpec {
    ContainerSpec {
        purpose: purpose.to_owned(),
        image,
        mounts: jars.mounts().into(),
        door: None,
        scratch: vec![
            Scratch { target: "/work".to_owned(), size_bytes: scratch_bytes },
            Scratch { target: "/tmp".to_owned(), size_bytes: scratch_bytes / 4 },
        ],
        limits,
        program,
    }
}

/// Returns the environment variables of every command; none comes from the host.
pub(super) fn environment(java_home: &str, more: &[(&str, String)]) -> Vec<(String, String)> {
    let mut environment: Vec<(String, String)> = [
        ("HOME", HOME.to_owned()),
        ("JAVA_HOME", java_home.to_owned()),
        ("LANG", "en_US.UTF-8".to_owned()),
        ("LC_ALL", "en_US.UTF-8".to_owned()),
        ("PATH", format!("{java_home}/bin:/opt/maven/bin:/usr/local/bin:/usr/bin:/bin")),
        ("TZ", "UTC".to_owned()),
        ("USER", "task".to_owned()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    environment.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    environment.sort();
    environment
}

/// Returns the name of a jar's file, which is its digest.
pub(super) fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}
