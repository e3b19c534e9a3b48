//! Names the artifacts that a set of build files lacks: from Maven's recording, else from what the door could not give.

use super::BuildSet;
use crate::artifact::origin::{OriginName, printable};
use crate::lock::UnresolvedSet;
use crate::outcome::compile::unresolved;
use crate::outcome::launch::shortened;
use crate::resolution::door::Troubles;

/// The most artifacts that are named for a set. Maven usually ends at the first.
const MOST: usize = 5;

/// Returns the artifacts that Maven asked for in vain, or else the paths that the door could not give.
pub(super) fn missing(
    set: &BuildSet,
    recording: &[u8],
    troubles: &Troubles,
    origins: &[OriginName],
) -> Vec<UnresolvedSet> {
    let (artifacts, pom) = unresolved(recording);
    let named: Vec<UnresolvedSet> = artifacts
        .iter()
        .take(MOST)
        .map(|one| {
            let directory = directory_of(&one.artifact);
            let failed = troubles.failed.iter().find(|(path, _)| {
                directory.as_ref().is_some_and(|directory| path.strip_prefix(directory.as_str()).is_some())
            });
            UnresolvedSet {
                build_set: set.id.clone(),
                artifact: printable(&one.artifact),
                wanted_by: one.wanted_by().or_else(|| pom.clone()).as_deref().map(printable),
                origins: names(origins),
                cause: failed.map_or_else(|| NOWHERE.to_owned(), |(_, trouble)| shortened(&trouble.cause)),
            }
        })
        .collect();
    if !named.is_empty() {
        return named;
    }
    let absent = || troubles.absent.iter().filter(|path| path.ends_with(".pom") || path.ends_with(".jar"));
    match failed(set, troubles, origins) {
        failed if !failed.is_empty() => failed,
        _ => absent().take(MOST).map(|path| of_path(set, path, NOWHERE, origins)).collect(),
    }
}

const NOWHERE: &str = "none of them has it";

/// Returns the paths that origins could not give although they may have them.
pub(super) fn failed(set: &BuildSet, troubles: &Troubles, origins: &[OriginName]) -> Vec<UnresolvedSet> {
    let failed = troubles.failed.iter().take(MOST);
    failed.map(|(path, trouble)| of_path(set, path, &trouble.cause, origins)).collect()
}

fn of_path(set: &BuildSet, path: &str, cause: &str, origins: &[OriginName]) -> UnresolvedSet {
    UnresolvedSet {
        build_set: set.id.clone(),
        artifact: printable(&artifact_of(path)),
        wanted_by: None,
        origins: names(origins),
        cause: shortened(cause),
    }
}

fn names(origins: &[OriginName]) -> Vec<String> {
    origins.iter().map(ToString::to_string).collect()
}

/// Returns the directory in a Maven repository of `group:artifact:extension[:classifier]:version`.
fn directory_of(artifact: &str) -> Option<String> {
    let parts: Vec<&str> = artifact.split(':').collect();
    let (group, name, version) = (parts.first()?, parts.get(1)?, parts.last().filter(|_| parts.len() >= 4)?);
    Some(format!("{}/{name}/{version}/", group.replace('.', "/")))
}

/// Returns the artifact of a path in repository layout, or the path itself if it is of another form.
fn artifact_of(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        [group @ .., artifact, "maven-metadata.xml"] if !group.is_empty() => {
            format!("the versions of {}:{artifact}", group.join("."))
        }
        [group @ .., artifact, version, file] if !group.is_empty() => {
            let extension = file.rsplit('.').next().unwrap_or_default();
            format!("{}:{artifact}:{extension}:{version}", group.join("."))
        }
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_artifacts_name_the_same() {
        assert_eq!(artifact_of("org/x/lib/1.0/lib-1.0.jar"), "org.x:lib:jar:1.0");
        assert_eq!(artifact_of("org/x/lib/maven-metadata.xml"), "the versions of org.x:lib");
        assert_eq!(artifact_of("lib/x"), "lib/x");
        assert_eq!(directory_of("org.x:lib:jar:tests:1.0").as_deref(), Some("org/x/lib/1.0/"));
        assert_eq!(directory_of("lib"), None);
    }
}
