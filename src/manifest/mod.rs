//! Manifests: the requirements of a repository's build, as facts, defaults for classes of projects, and a user's
//! overrides. File: `manifests/<owner>__<name>.toml`.
//!
//! Locks resolve these requirements. An import rewrites everything but `[overrides]`.

mod file;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use file::{ManifestError, Written};

use crate::digest::Digest;
use crate::task::published::PublishedRepository;
use crate::task::{CloneUrl, RepositoryName};

/// Version of the manifest's schema.
pub const MANIFEST_SCHEMA: u32 = 1;

/// The major versions of Java development kits that images have.
pub const JDK_MAJORS: [u32; 4] = [8, 11, 17, 21];

/// The only development kit with an extension directory: later versions of Java have none (JEP 220).
pub const EXTENSIBLE_JDK: u32 = 8;

/// The most extension jars of a manifest.
const MOST_EXTENSION_JARS: usize = 16;

/// A container's default memory limit in MiB, which is also the memory of one job.
pub const DEFAULT_MEMORY_MIB: u64 = 4096;

/// The default memory of a job of `validate` or `score`, in bytes.
pub const MEMORY_PER_JOB: u64 = DEFAULT_MEMORY_MIB << 20;

/// Returns how many jobs fit into these processors and this memory in bytes, at least 1.
pub fn jobs_at_once(processors: usize, memory_bytes: Option<u64>) -> NonZeroUsize {
    let by_memory = memory_bytes.map_or(processors, |bytes| {
        // A machine reports slightly less memory than its nominal size.
        usize::try_from(bytes.saturating_add(MEMORY_PER_JOB / 8) / MEMORY_PER_JOB).unwrap_or(usize::MAX)
    });
    NonZeroUsize::new(processors.min(by_memory)).unwrap_or(NonZeroUsize::MIN)
}

/// Names [`JDK_MAJORS`] in a sentence.
fn jdk_majors() -> String {
    let [others @ .., last] = JDK_MAJORS.map(|major| major.to_string());
    format!("{} and {last}", others.join(", "))
}

/// A repository's requirements, overrides applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RepositoryManifest {
    /// [`MANIFEST_SCHEMA`].
    pub schema: u32,
    /// The repository.
    pub repository: RepositoryName,
    /// The address from which its sources are cloned.
    pub clone_url: CloneUrl,
    /// The Java version as published.
    pub java_version: u32,
    /// The development kit of its images: one of [`JDK_MAJORS`].
    pub jdk: u32,
    /// How it is built.
    pub build: Build,
    /// The limits of its executions.
    pub limits: Limits,
    /// Jars of the user's for the extension directory of the development kit. Only [`EXTENSIBLE_JDK`] has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extension_jars: Vec<ExtensionJar>,
}

/// A jar of the user's with packages that the image's development kit lacks and that no origin has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ExtensionJar {
    /// The file, absolute or relative to the manifest's directory.
    pub file: PathBuf,
    /// Its digest.
    pub sha256: Digest,
}

/// How a repository is built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// The launcher of its tests.
    pub launcher: Launcher,
    /// Maven arguments that skip goals on which no verdict depends.
    pub skip_flags: Vec<String>,
    /// Further arguments of Maven.
    pub maven_arguments: Vec<String>,
    /// Further Debian packages of its images. Not supported yet: must be empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub debian_packages: Vec<String>,
    /// Whether an override changes Maven's arguments.
    #[serde(skip)]
    pub overridden: bool,
}

/// Which JUnit Platform launches the tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Launcher {
    /// Platform 6 if the project's own JUnit is version 6, else Platform 1.
    #[default]
    Auto,
    /// The newest Platform 1.x, for Jupiter 5 and JUnit 3 and 4.
    Platform1,
    /// Platform 6, for JUnit 6; needs Java 17.
    Platform6,
}

/// The limits of executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Memory of a compiling container, in MiB.
    pub compile_memory_mib: u64,
    /// Scratch of a compiling container, in MiB; part of its memory.
    pub compile_scratch_mib: u64,
    /// Processors of a compiling container.
    pub compile_cpus: u32,
    /// Processes and threads of a compiling container.
    pub compile_processes: u32,
    /// Wall time of Maven, in seconds.
    pub compile_wall_seconds: u64,
    /// Memory of a launching container, in MiB.
    pub run_memory_mib: u64,
    /// Largest heap of a test's JVM, in MiB.
    pub run_heap_mib: u64,
    /// Scratch of a launching container, in MiB; part of its memory.
    pub run_scratch_mib: u64,
    /// Processors of a launching container.
    pub run_cpus: u32,
    /// Processes and threads of a launching container.
    pub run_processes: u32,
    /// Processor time of a test's JVM, in seconds.
    pub run_cpu_seconds: u64,
    /// Wall time of a test's JVM, in seconds.
    pub run_wall_seconds: u64,
    /// The most kept output of each stream of a command, in MiB.
    pub output_mib: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            compile_memory_mib: DEFAULT_MEMORY_MIB,
            compile_scratch_mib: 2048,
            compile_cpus: 2,
            compile_processes: 1024,
            compile_wall_seconds: 600,
            run_memory_mib: DEFAULT_MEMORY_MIB,
            run_heap_mib: 2560,
            run_scratch_mib: 1024,
            run_cpus: 2,
            run_processes: 512,
            run_cpu_seconds: 300,
            run_wall_seconds: 600,
            output_mib: 8,
        }
    }
}

impl Limits {
    /// Returns the first limit that is out of bounds: its name, its value, and its least and greatest allowed value.
    /// Zero is not allowed, because engines take it for no limit.
    fn out_of_bounds(&self) -> Option<(&'static str, u64, u64, u64)> {
        const MOST_MIB: u64 = 1 << 20;
        const MOST_SECONDS: u64 = 7 * 86_400;
        const MOST_CPUS: u64 = 1024;
        const MOST_PROCESSES: u64 = 1 << 20;
        // Fields are named one by one, so that a new limit can't be forgotten.
        let Self {
            compile_memory_mib,
            compile_scratch_mib,
            compile_cpus,
            compile_processes,
            compile_wall_seconds,
            run_memory_mib,
            run_heap_mib,
            run_scratch_mib,
            run_cpus,
            run_processes,
            run_cpu_seconds,
            run_wall_seconds,
            output_mib,
        } = *self;
        [
            ("compile_memory_mib", compile_memory_mib, 64, MOST_MIB),
            ("compile_scratch_mib", compile_scratch_mib, 16, MOST_MIB),
            ("compile_cpus", compile_cpus.into(), 1, MOST_CPUS),
            ("compile_processes", compile_processes.into(), 32, MOST_PROCESSES),
            ("compile_wall_seconds", compile_wall_seconds, 1, MOST_SECONDS),
            ("run_memory_mib", run_memory_mib, 64, MOST_MIB),
            ("run_heap_mib", run_heap_mib, 16, MOST_MIB),
            ("run_scratch_mib", run_scratch_mib, 16, MOST_MIB),
            ("run_cpus", run_cpus.into(), 1, MOST_CPUS),
            ("run_processes", run_processes.into(), 32, MOST_PROCESSES),
            ("run_cpu_seconds", run_cpu_seconds, 1, MOST_SECONDS),
            ("run_wall_seconds", run_wall_seconds, 1, MOST_SECONDS),
            ("output_mib", output_mib, 1, 1024),
        ]
        .into_iter()
        .find(|(_, value, least, most)| !(least..=most).contains(&value))
    }
}

impl Default for Build {
    fn default() -> Self {
        Self {
            launcher: Launcher::Auto,
            skip_flags: SKIP_FLAGS.iter().map(|flag| (*flag).to_owned()).collect(),
            maven_arguments: Vec::new(),
            debian_packages: Vec::new(),
            overridden: false,
        }
    }
}

impl Build {
    /// Returns all of Maven's arguments: the skips, then the further ones.
    pub fn arguments(&self) -> Vec<String> {
        self.skip_flags.iter().chain(&self.maven_arguments).cloned().collect()
    }

    /// Returns the digest of Maven's arguments if an override changes them, because Maven's resolution depends on them.
    pub fn overridden_arguments(&self) -> Option<Digest> {
        // Arguments contain no control characters.
        self.overridden.then(|| Digest::of(self.arguments().join("\n").as_bytes()))
    }
}

impl RepositoryManifest {
    /// Tells whether the manifest names extension jars with these digests, in any order, and no others.
    pub fn has_extension_jars(&self, digests: impl Iterator<Item = Digest>) -> bool {
        let named: BTreeSet<Digest> = self.extension_jars.iter().map(|jar| jar.sha256).collect();
        digests.collect::<BTreeSet<_>>() == named
    }

    /// Returns the manifest of a published repository, with the defaults for its class of projects.
    ///
    /// # Errors
    /// [`ManifestError::UnsupportedJava`].
    pub fn of_published(published: &PublishedRepository) -> Result<Self, ManifestError> {
        let java_version = published.java_version;
        // Sources for a version without a kit of ours are built with the next newer one.
        let jdk = JDK_MAJORS
            .into_iter()
            .find(|jdk| *jdk >= java_version)
            .ok_or_else(|| ManifestError::UnsupportedJava { repository: published.name.clone(), java_version })?;
        Ok(Self {
            schema: MANIFEST_SCHEMA,
            repository: published.name.clone(),
            clone_url: published.clone_url.clone(),
            java_version,
            jdk,
            build: Build::default(),
            limits: Limits::default(),
            extension_jars: Vec::new(),
        })
    }
}

/// Style checks, audits, reports and signatures: unneeded in every project tried, and without influence on tests. The
/// others need a network, `.git` or Node, which a build lacks: downloads, git hooks, revision numbers from git, front
/// ends.
const SKIP_FLAGS: [&str; 61] = [
    "-Dair.check.skip-all=true",
    "-Danimal.sniffer.skip=true",
    "-Darchunit.skip=true",
    "-Dbasepom.check.skip-all=true",
    "-Dcheckstyle.skip=true",
    "-Dcobertura.skip=true",
    "-Dcpd.skip=true",
    "-Ddependency-check.skip=true",
    "-Ddownload.plugin.skip=true",
    "-Denforcer.skip=true",
    "-DfailIfNoTests=false",
    "-Dfindbugs.skip=true",
    "-Dfmt.skip=true",
    "-Dforbiddenapis.skip=true",
    "-Dformatter.skip=true",
    "-Dgcf.skip=true",
    "-Dgitbuildhook.gitconfig.skip=true",
    "-Dgitbuildhook.init.skip=true",
    "-Dgitbuildhook.install.skip=true",
    "-Dgpg.skip=true",
    "-Dimpsort.skip=true",
    "-Djacoco.skip=true",
    "-Djapicmp.skip=true",
    "-Dlicense.skip=true",
    "-Dlicense.skipAddThirdParty=true",
    "-Dlicense.skipCheckLicense=true",
    "-Dlicense.skipUpdateLicense=true",
    "-Dmaven.buildNumber.doCheck=false",
    "-Dmaven.buildNumber.doUpdate=false",
    "-Dmaven.buildNumber.revisionOnScmFailure=unknown",
    "-Dmaven.gitcommitid.skip=true",
    "-Dmaven.javadoc.skip=true",
    "-Dmdep.analyze.skip=true",
    "-Dmodernizer.skip=true",
    "-Dpmd.skip=true",
    "-Drat.skip=true",
    "-Drevapi.skip=true",
    "-Dskip.bower=true",
    "-Dskip.bun=true",
    "-Dskip.corepack=true",
    "-Dskip.ember=true",
    "-Dskip.grunt=true",
    "-Dskip.gulp=true",
    "-Dskip.installbun=true",
    "-Dskip.installnodecorepack=true",
    "-Dskip.installnodenpm=true",
    "-Dskip.installnodepnpm=true",
    "-Dskip.installyarn=true",
    "-Dskip.jspm=true",
    "-Dskip.karma=true",
    "-Dskip.npm=true",
    "-Dskip.npx=true",
    "-Dskip.pnpm=true",
    "-Dskip.webpack=true",
    "-Dskip.yarn=true",
    "-Dsort.skip=true",
    "-Dspotbugs.skip=true",
    "-Dspotless.apply.skip=true",
    "-Dspotless.check.skip=true",
    "-Dsurefire.failIfNoSpecifiedTests=false",
    "-DtrimStackTrace=false",
];
