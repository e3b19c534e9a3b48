//! The project's own artifacts, which a Maven cache may hold in a later version: its classes and sources show the new code, and
//! jars of tests the answer.

use std::cmp::Ordering;

use quick_xml::Reader;
use quick_xml::events::Event;

use crate::workspace::{BuildFiles, RevisionTree, WorkspaceError};

/// An artifact that a module of the project makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnArtifact {
    /// Its directory in a Maven repository, `group/as/path/artifact`.
    pub directory: String,
    /// Its version at the new revision; `None` if its POM does not say it plainly.
    pub version: Option<String>,
}

impl OwnArtifact {
    /// Tells whether a version of the artifact may be of the new revision or later. A release belongs to its snapshot's time.
    pub(super) fn may_be_later(&self, version: &str) -> bool {
        let Some(own) = &self.version else { return true };
        compared(&numbers(version), &numbers(own)) != Ordering::Less
    }
}

/// Returns the artifacts of a tree's modules.
pub(super) fn own_artifacts(tree: &RevisionTree) -> Result<Vec<OwnArtifact>, WorkspaceError> {
    let files = BuildFiles::read(tree)?;
    let mut own = Vec::new();
    for (path, facts) in files.poms() {
        let Some(directory) = facts.as_ref().ok().and_then(|facts| facts.artifact_directory()) else { continue };
        let text = files.files().get(path).and_then(|content| content.as_deref());
        own.push(OwnArtifact { directory, version: text.and_then(version) });
    }
    Ok(own)
}

/// Returns the version in a POM, or its parent's; `None` if it is not plain text.
fn version(pom: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(pom);
    let mut reader = Reader::from_str(&text);
    let (mut path, mut own, mut parent) = (Vec::new(), None, None);
    loop {
        match reader.read_event().ok()? {
            Event::Start(element) => path.push(element.local_name().as_ref().to_owned()),
            Event::End(_) => {
                path.pop();
            }
            Event::Text(text) => {
                let text = text.xml10_content().trim().to_owned();
                let names: Vec<&str> = path.iter().map(String::as_str).collect();
                match names.as_slice() {
                    [_, "version"] => own = Some(text),
                    [_, "parent", "version"] => parent = Some(text),
                    _ => {}
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    own.or(parent).filter(|version| !version.contains("${"))
}

/// Returns the leading numbers of a version.
fn numbers(version: &str) -> Vec<u64> {
    let parts = version.trim_start_matches(['v', 'V']).split(['.', '-', '_']);
    parts.map_while(|part| part.parse().ok()).collect()
}

fn compared(one: &[u64], other: &[u64]) -> Ordering {
    let longest = one.len().max(other.len());
    let at = |numbers: &[u64], index: usize| numbers.get(index).copied().unwrap_or_default();
    (0..longest)
        .map(|index| at(one, index).cmp(&at(other, index)))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let own = |version: &str| OwnArtifact { directory: "g/a".to_owned(), version: Some(version.to_owned()) };
        for (own_version, version, later) in [
            ("1.13.2-SNAPSHOT", "1.13.1", false),
            ("1.13.2-SNAPSHOT", "1.13.2", true),
            ("1.9", "1.10", true),
            ("2.0.0", "1.99.9", false),
            ("1.0", "1.0.0", true),
        ] {
            assert_eq!(own(own_version).may_be_later(version), later, "{version} beside {own_version}");
        }
        assert!(OwnArtifact { directory: "g/a".to_owned(), version: None }.may_be_later("0.1"));
    }

    #[test]
    fn a_pom_says_its_version_or_its_parents() {
        let of = |text: &str| version(text.as_bytes());
        let parent = "<parent><version>1</version></parent>";
        let other = "<dependencies><dependency><version>9</version></dependency></dependencies>";
        assert_eq!(of(&format!("<project>{parent}<version> 2 </version>{other}</project>")).as_deref(), Some("2"));
        assert_eq!(of(&format!("<project>{parent}{other}</project>")).as_deref(), Some("1"));
        assert_eq!(of("<project><version>${revision}</version></project>"), None);
    }
}
