//! Files of Maven caches, and where origins have them.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// The end of a snapshot's version.
const SNAPSHOT: &str = "-SNAPSHOT";

/// A file of the Maven cache by digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MavenFile {
    /// Path in repository layout, `group/artifact/version/file`.
    pub path: String,
    /// Name of the origin that served it.
    pub origin: String,
    /// Digest of the file.
    pub sha256: Digest,
    /// Size in bytes.
    pub size: u64,
    /// Whether the file is an artifact of the repository's own project.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
    /// Whether it is the release's file, which stands in for the file of the snapshot that `path` names. No origin had the
    /// snapshot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub released: bool,
}

impl MavenFile {
    /// Returns the path at the origin. It is another one for a release's file that stands in for a snapshot's.
    pub fn path_at_origin(&self) -> String {
        let release = if self.released { release_path(&self.path) } else { None };
        release.unwrap_or_else(|| self.path.clone())
    }
}

/// Returns the path of the release's file for the path of a snapshot's file; `None` for other paths, and for snapshots with a
/// time in the file's name.
pub fn release_path(path: &str) -> Option<String> {
    let (directory, file) = path.rsplit_once('/')?;
    let (of_artifact, version) = directory.rsplit_once('/')?;
    let (_, artifact) = of_artifact.rsplit_once('/')?;
    let release = version.strip_suffix(SNAPSHOT).filter(|release| !release.is_empty())?;
    let rest = file.strip_prefix(artifact)?.strip_prefix('-')?.strip_prefix(version)?;
    rest.starts_with(['.', '-']).then(|| format!("{of_artifact}/{release}/{artifact}-{release}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshots_file_has_a_releases_path() {
        assert_eq!(release_path("g/h/a/1.2-SNAPSHOT/a-1.2-SNAPSHOT.pom").as_deref(), Some("g/h/a/1.2/a-1.2.pom"));
        assert_eq!(release_path("g/a/1-SNAPSHOT/a-1-SNAPSHOT-x.jar").as_deref(), Some("g/a/1/a-1-x.jar"));
        for other in [
            "g/a/1/a-1.jar",
            "g/a/1-SNAPSHOT/a-1-20240102.030405-6.jar",
            "g/a/1-SNAPSHOT/b-1-SNAPSHOT.jar",
            "g/a/-SNAPSHOT/a--SNAPSHOT.jar",
            "g/a/1-SNAPSHOT/a-1-SNAPSHOT",
            "a/1-SNAPSHOT/a-1-SNAPSHOT.jar",
        ] {
            assert_eq!(release_path(other), None, "{other}");
        }
    }
}
