//! Lists the files of a lock as items to fetch.

use super::{DebianPackage, MavenFile, RepositoryLock, ToolFile, ToolchainLock};
use crate::artifact::fetch::{FetchError, FetchItem};
use crate::artifact::origin::OriginName;

/// Returns the files of a toolchain, with only the Java development kit `jdk`, or with all.
///
/// # Errors
/// [`FetchError::Origin`] for an invalid name of an origin.
pub fn toolchain_items(lock: &ToolchainLock, jdk: Option<u32>) -> Result<Vec<FetchItem>, FetchError> {
    let jdks = lock.jdks.iter().filter(|kit| jdk.is_none_or(|jdk| kit.major == jdk));
    let kits = jdks.flat_map(|kit| &kit.packages);
    let packages = lock.base.iter().chain(kits).chain(&lock.tools_packages).chain(&lock.agent_packages);
    let mut items: Vec<FetchItem> = packages.map(package_item).collect();
    for tool in &lock.tools {
        items.push(tool_item(tool)?);
    }
    Ok(items)
}

/// Returns the files of a repository's Maven cache.
///
/// # Errors
/// [`FetchError::Origin`] for an invalid name of an origin.
pub fn repository_items(lock: &RepositoryLock) -> Result<Vec<FetchItem>, FetchError> {
    lock.files.iter().map(maven_item).collect()
}

pub(crate) fn package_item(package: &DebianPackage) -> FetchItem {
    FetchItem {
        name: format!("{} {}", package.name, package.version),
        origin: OriginName::debian(),
        path: package.path.clone(),
        project: None,
        digest: package.sha256,
        size: package.size,
    }
}

fn tool_item(tool: &ToolFile) -> Result<FetchItem, FetchError> {
    let origin: OriginName = tool.origin.parse()?;
    let project = (origin == OriginName::pypi()).then(|| tool.name.clone());
    let name = format!("{} {}", tool.name, tool.version);
    Ok(FetchItem { name, origin, path: tool.path.clone(), project, digest: tool.sha256, size: tool.size })
}

fn maven_item(file: &MavenFile) -> Result<FetchItem, FetchError> {
    Ok(FetchItem {
        name: file.path.clone(),
        origin: file.origin.parse()?,
        path: file.path_at_origin(),
        project: None,
        digest: file.sha256,
        size: file.size,
    })
}
