//! Resolves the toolchain lock: the policy's packages and tools at the present state of the origins.
//!
//! An existing lock is kept and only completed, unless everything is resolved anew. Afterwards all bytes of the lock
//! are in the store.

pub(crate) mod requirement;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use jiff::Timestamp;

use self::requirement::{RequirementError, check_requirements};
use super::debian::archive::{Archive, ArchiveError, Suite, package_files};
use super::debian::index::{Package, PackageIndex};
use super::debian::relation::parse_relations;
use super::debian::resolve::{Installed, Request, ResolveError, Root, named, resolve};
use crate::artifact::control::paragraphs;
use crate::artifact::fetch::{Client, FetchError, FetchManyError};
use crate::artifact::origin::OriginName;
use crate::artifact::pypi;
use crate::error::{ExitStatus, Failure};
use crate::event::RunningStage;
use crate::lock::items::{package_item, toolchain_items};
use crate::lock::policy::{DebianPolicy, ToolPolicy, ToolchainPolicy};
use crate::lock::{DebianPackage, JdkLock, SignedIndex, ToolFile, ToolRole, ToolchainLock};

/// The largest file of a tool, in bytes.
const MAX_TOOL: u64 = 256 << 20;

/// Why a toolchain can't be locked.
#[derive(Debug, thiserror::Error)]
pub enum ToolchainError {
    /// A suite's index can't be used.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A file could not be fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// Several files could not be fetched.
    #[error(transparent)]
    FetchMany(#[from] FetchManyError),
    /// No set of packages was found.
    #[error("the packages of {layer} can't be resolved: {reason}")]
    Resolve {
        /// The layer.
        layer: String,
        /// The problem.
        reason: Box<ResolveError>,
    },
    /// The policy has no such Java development kit.
    #[error("there is no JDK {major}, only {known:?}")]
    UnknownJdk {
        /// The requested major version.
        major: u32,
        /// The known major versions.
        known: Vec<u32>,
    },
    /// A locked package can't be read.
    #[error("the locked package `{package}` can't be read: {reason}")]
    LockedPackage {
        /// The package.
        package: String,
        /// The problem.
        reason: String,
    },
    /// A Python project needs another one that is not locked.
    #[error(transparent)]
    Requirement(#[from] RequirementError),
}

impl Failure for ToolchainError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Fetch(error) => error.exit_status(),
            Self::FetchMany(error) => error.exit_status(),
            Self::Archive(error) => error.exit_status(),
            Self::Resolve { .. } => ExitStatus::Origin,
            Self::UnknownJdk { .. } => ExitStatus::Usage,
            Self::LockedPackage { .. } | Self::Requirement(_) => ExitStatus::Mismatch,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Archive(error) => error.hint(),
            Self::Fetch(error) => error.hint(),
            Self::FetchMany(error) => error.hint(),
            Self::Resolve { .. } => Some(
                "the archive may have moved on since the lock was made, or be changing right now: \
                 try again, then `lock --update`"
                    .to_owned(),
            ),
            Self::LockedPackage { .. } => Some("resolve anew with `lock --update`".to_owned()),
            Self::UnknownJdk { .. } => Some("set `jdk` in the repository's manifest to one of these".to_owned()),
            Self::Requirement(_) => Some(
                "the origin `pypi` may have a newer release with other requirements: keep the lock, or use a newer program"
                    .to_owned(),
            ),
        }
    }
}

/// How an existing lock is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// The lock is kept, and missing parts are added.
    Keep,
    /// Everything is resolved anew.
    Update,
    /// Everything is resolved anew and compared with the lock. Packages are not downloaded.
    Check,
}

/// The parameters of locking a toolchain.
#[derive(Clone, Debug)]
pub struct ToolchainRequest<'a> {
    /// The policy from which the lock is resolved.
    pub policy: &'a ToolchainPolicy,
    /// Java development kits that the lock must have. Those of the previous lock stay in any case.
    pub jdks: BTreeSet<u32>,
    /// Whether the lock must have the tools of agents. Those of the previous lock stay in any case.
    pub agent: bool,
    /// How the previous lock is treated.
    pub mode: LockMode,
    /// The most parallel downloads.
    pub jobs: NonZeroUsize,
}

/// Returns the toolchain's lock. If nothing is missing, it equals the previous one, and only bytes that the store has
/// lost are fetched.
///
/// # Errors
/// [`ToolchainError`].
pub async fn lock_toolchain(
    client: &Client,
    request: &ToolchainRequest<'_>,
    previous: Option<&ToolchainLock>,
) -> Result<ToolchainLock, ToolchainError> {
    let policy = request.policy;
    let mut wanted = request.jdks.clone();
    wanted.extend(previous.iter().flat_map(|lock| lock.jdks.iter().map(|jdk| jdk.major)));
    let mut lock = match (request.mode, previous) {
        (LockMode::Keep, Some(previous)) => previous.clone(),
        _ => ToolchainLock::empty(),
    };
    let missing: BTreeSet<u32> =
        wanted.into_iter().filter(|major| !lock.jdks.iter().any(|jdk| jdk.major == *major)).collect();
    // The stage of downloads follows this one.
    let stage = client.events().stage("toolchain", None, 0);
    let agent = request.agent || previous.is_some_and(|lock| !lock.agent_packages.is_empty());
    let agent = agent && lock.agent_packages.is_empty();
    if lock.base.is_empty() || lock.tools_packages.is_empty() || !missing.is_empty() || agent {
        lock_packages(client, policy, (&missing, agent), &mut lock, &stage).await?;
    }
    for tool in &policy.tool_files {
        if !lock.tools.iter().any(|locked| locked.role == tool.role && locked.name == tool.name) {
            lock.tools.push(stage.during(&tool.name, lock_tool(client, tool)).await?);
        }
    }
    drop(stage);
    lock.tools.sort_by(|a, b| (a.role, &a.name).cmp(&(b.role, &b.name)));
    if request.mode != LockMode::Check {
        client.fetch_all(&toolchain_items(&lock, None)?, request.jobs, client.events()).await?;
    }
    let python: Vec<&ToolFile> = lock.tools.iter().filter(|tool| tool.role == ToolRole::Python).collect();
    check_requirements(client.store(), &python, policy)?;
    Ok(lock)
}

/// Adds the packages that the lock lacks: base, tools, the `missing` development kits, and the tools of agents if `agent`.
async fn lock_packages(
    client: &Client,
    policy: &ToolchainPolicy,
    (missing, agent): (&BTreeSet<u32>, bool),
    lock: &mut ToolchainLock,
    stage: &RunningStage,
) -> Result<(), ToolchainError> {
    let known = || policy.jdks.iter().map(|jdk| jdk.major).collect();
    let mut kits = Vec::new();
    for major in missing {
        kits.push(policy.jdk(*major).ok_or_else(|| ToolchainError::UnknownJdk { major: *major, known: known() })?);
    }
    let mut archive = Archive::new(client, &policy.debian, Timestamp::now());
    let mut suites: BTreeMap<&str, Suite> = BTreeMap::new();
    for name in kits.iter().map(|kit| kit.suite.as_str()).chain([policy.debian.suite.as_str()]) {
        if !suites.contains_key(name) {
            let suite = stage.during(&format!("Debian's index of {name}"), archive.suite(name)).await?;
            suites.insert(name, suite);
        }
    }
    let (debian, suite) = (&policy.debian, policy.debian.suite.as_str());
    let main = indexes(&suites, &[suite]);
    if lock.base.is_empty() {
        lock.base = resolved("the base", &main, debian, &policy.base.packages, None, &BTreeMap::new())?;
    }
    let installed = stage.during("the base's packages", installed(client, &lock.base, &main)).await?;
    if lock.tools_packages.is_empty() {
        lock.tools_packages = resolved("the tools", &main, debian, &policy.tools.packages, None, &installed)?;
    }
    for kit in kits {
        let both = indexes(&suites, &[suite, &kit.suite]);
        let layer = format!("JDK {}", kit.major);
        let packages = resolved(&layer, &both, debian, &kit.packages, Some(&kit.suite), &installed)?;
        lock.jdks.push(JdkLock { major: kit.major, packages });
    }
    lock.jdks.sort_by_key(|jdk| jdk.major);
    if agent {
        let mut below =
            stage.during("the tools' packages", self::installed(client, &lock.tools_packages, &main)).await?;
        below.extend(installed);
        lock.agent_packages = resolved("the agent's tools", &main, debian, &policy.agent.packages, None, &below)?;
    }
    lock.indexes.extend(suites.into_values().map(|suite| suite.signed));
    let key = |index: &SignedIndex| (index.suite.clone(), index.in_release);
    lock.indexes.sort_by_key(key);
    lock.indexes.dedup_by_key(|index| key(index));
    Ok(())
}

/// Returns the packages of the named suites in their order, each once.
fn indexes<'a>(suites: &'a BTreeMap<&str, Suite>, names: &[&str]) -> Vec<&'a PackageIndex> {
    let mut seen = BTreeSet::new();
    let distinct = names.iter().copied().filter(|name| seen.insert(*name));
    distinct.filter_map(|name| suites.get(name).map(|suite| &suite.index)).collect()
}

fn resolved(
    layer: &str,
    suites: &[&PackageIndex],
    policy: &DebianPolicy,
    roots: &[String],
    suite: Option<&str>,
    installed: &BTreeMap<String, Installed>,
) -> Result<Vec<DebianPackage>, ToolchainError> {
    let roots = roots.iter().map(|name| Root { name, suite }).collect();
    let found = resolve(suites, &Request { roots, installed, dropped: &policy.dropped });
    let found =
        found.map_err(|reason| ToolchainError::Resolve { layer: layer.to_owned(), reason: Box::new(reason) })?;
    Ok(found.into_iter().map(locked).collect())
}

fn locked(package: &Package) -> DebianPackage {
    DebianPackage {
        name: package.name.clone(),
        version: package.version_text.clone(),
        architecture: package.architecture.clone(),
        suite: package.suite.clone(),
        path: package.path.clone(),
        sha256: package.sha256,
        size: package.size,
    }
}

/// Returns the locked packages for the resolver. The packages that they provide are in the index, or in the package
/// itself if the archive has a newer version.
async fn installed(
    client: &Client,
    packages: &[DebianPackage],
    suites: &[&PackageIndex],
) -> Result<BTreeMap<String, Installed>, ToolchainError> {
    let mut installed = BTreeMap::new();
    for package in packages {
        let unreadable = |reason: String| ToolchainError::LockedPackage { package: package.name.clone(), reason };
        let version = package.version.parse().map_err(|_| unreadable("its version is none".to_owned()))?;
        let listed = named(suites, &package.name).map_err(|error| unreadable(error.to_string()))?;
        let provides = match listed.into_iter().find(|listed| listed.sha256 == package.sha256) {
            Some(listed) => listed.provides.clone(),
            None => {
                let item = package_item(package);
                client.fetch(&item.origin, &item.path, Some(&item.digest), item.size).await?;
                let control = package_files(client.store(), &package.sha256, &package.name, 0, &|_| false);
                let control = control.map_err(|error| unreadable(error.to_string()))?.control;
                let provides = paragraphs(&control).next().and_then(|fields| fields.get("Provides"));
                let relations = parse_relations(&provides.unwrap_or_default());
                let relations = relations.map_err(|error| unreadable(error.to_string()))?.into_iter().flatten();
                relations.map(|relation| (relation.name, relation.version.map(|(_, version)| version))).collect()
            }
        };
        installed.insert(package.name.clone(), Installed { version, provides });
    }
    Ok(installed)
}

async fn lock_tool(client: &Client, tool: &ToolPolicy) -> Result<ToolFile, ToolchainError> {
    let expected = &tool.sha256;
    let (sha256, size) = if tool.origin == OriginName::pypi() {
        pypi::fetch_file(client, &tool.origin, &tool.name, &tool.path, expected, MAX_TOOL).await?
    } else {
        client.fetch(&tool.origin, &tool.path, Some(expected), MAX_TOOL).await?
    };
    Ok(ToolFile {
        role: tool.role,
        name: tool.name.clone(),
        version: tool.version.clone(),
        origin: tool.origin.to_string(),
        path: tool.path.clone(),
        sha256,
        size,
    })
}

#[cfg(test)]
mod tests;
