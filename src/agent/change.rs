//! The change between a task's revisions, as agents see it: a diff of production files. Tests are left out, because a test file
//! that moved with the target could show the developers' text.

use std::collections::BTreeSet;

use crate::task::RepositoryPath;
use crate::workspace::{EntryKind, RevisionTree, WorkspaceError};

/// The most bytes of one file's diff, and of all together.
const MOST_FILE_BYTES: usize = 128 << 10;
const MOST_BYTES: usize = 512 << 10;
/// The largest file that is compared, in bytes.
const MOST_COMPARED_BYTES: usize = 4 << 20;

/// Directories and ends of file names by which a file is taken for a test.
const DIRECTORIES: [&str; 6] = ["test", "tests", "testing", "it", "itest", "testFixtures"];
const NAMES: [&str; 6] = ["Test.java", "Tests.java", "TestCase.java", "IT.java", "ITCase.java", "TestUtils.java"];

/// The change of production files.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// Unified diffs, by path.
    pub text: String,
    /// Files that changed and are not in the text: too large, binary or unreadable.
    pub only_named: Vec<String>,
}

/// Returns the change between two revisions without tests. `class` is the binary name of the target file's class.
///
/// # Errors
/// [`WorkspaceError`].
pub fn between(
    old: &RevisionTree,
    new: &RevisionTree,
    target: &RepositoryPath,
    class: &str,
) -> Result<Change, WorkspaceError> {
    let test_root = test_root(target.as_str(), class);
    let paths: BTreeSet<&Vec<u8>> = old.entries().keys().chain(new.entries().keys()).collect();
    let mut change = Change::default();
    for bytes in paths {
        let Ok(path) = std::str::from_utf8(bytes) else { continue };
        let (before, after) = (old.entry(path), new.entry(path));
        let same = before.map(|entry| (entry.kind, entry.id())) == after.map(|entry| (entry.kind, entry.id()));
        if same || is_test(path, target.as_str(), &test_root) {
            continue;
        }
        let is_file = |entry: Option<crate::workspace::TreeEntry>| {
            entry.is_none_or(|entry| matches!(entry.kind, EntryKind::File | EntryKind::Executable))
        };
        let compared = match (is_file(before) && is_file(after)).then(|| (readable(old, path), readable(new, path))) {
            Some((before, after)) => match (before?, after?) {
                (Some(before), Some(after)) => new.diff(path, &before, &after)?,
                _ => None,
            },
            None => None,
        };
        match compared {
            Some(text) if text.len() <= MOST_FILE_BYTES && change.text.len() + text.len() <= MOST_BYTES => {
                change.text.push_str(&text);
            }
            _ => change.only_named.push(path.to_owned()),
        }
    }
    Ok(change)
}

/// Returns the directory that the target's package begins in, with a slash at its end; empty if it is the root.
fn test_root(target: &str, class: &str) -> String {
    let relative = format!("{}.java", class.replace('.', "/"));
    target.strip_suffix(&relative).unwrap_or_default().to_owned()
}

fn is_test(path: &str, target: &str, test_root: &str) -> bool {
    let mut parts: Vec<&str> = path.split('/').collect();
    let name = parts.pop().unwrap_or_default();
    path == target
        || (!test_root.is_empty() && !test_root.contains("main/") && path.starts_with(test_root))
        || parts.iter().any(|part| DIRECTORIES.contains(part))
        || NAMES.iter().any(|end| name.ends_with(end))
        || (name.starts_with("Test") && name.ends_with(".java"))
}

/// Returns a file's content, empty if the tree has no such file; `None` if it is missing or too large.
fn readable(tree: &RevisionTree, path: &str) -> Result<Option<Vec<u8>>, WorkspaceError> {
    match tree.read(path) {
        Ok(content) => Ok(Some(content.unwrap_or_default()).filter(|content| content.len() <= MOST_COMPARED_BYTES)),
        Err(WorkspaceError::MissingBlob { .. } | WorkspaceError::HostileTree { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_told_from_production_files() {
        let target = "core/src/test/java/p/ATest.java";
        let root = test_root(target, "p.ATest");
        assert_eq!(root, "core/src/test/java/");
        assert_eq!(test_root("ATest.java", "ATest"), "");
        for (path, expected) in [
            (target, true),
            ("core/src/test/java/p/Helper.java", true),
            ("core/src/test/resources/data.json", true),
            ("other/src/main/java/p/BTest.java", true),
            ("core/src/main/java/p/A.java", false),
            ("core/src/main/java/p/Latest.java", false),
            ("pom.xml", false),
        ] {
            assert_eq!(is_test(path, target, &root), expected, "{path}");
        }
        // A test among the sources hides none of them.
        let root = test_root("src/main/java/p/ATest.java", "p.ATest");
        assert!(!is_test("src/main/java/p/A.java", "src/main/java/p/ATest.java", &root));
    }
}
