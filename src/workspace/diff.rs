//! Unified diffs of files.

use git2::{DiffOptions, Patch};

use super::WorkspaceError;
use super::tree::RevisionTree;

impl RevisionTree {
    /// Returns the diff of a file at `path`; `None` for one that is not text, empty for equal contents.
    ///
    /// # Errors
    /// [`WorkspaceError::Git`].
    pub fn diff(&self, path: &str, before: &[u8], after: &[u8]) -> Result<Option<String>, WorkspaceError> {
        compared(path, before, after).map_err(|error| self.failed(error))
    }
}

fn compared(path: &str, before: &[u8], after: &[u8]) -> Result<Option<String>, git2::Error> {
    if before.contains(&0) || after.contains(&0) {
        return Ok(None);
    }
    let mut options = DiffOptions::new();
    options.context_lines(3).indent_heuristic(true);
    let mut patch = Patch::from_buffers(before, Some(path.as_ref()), after, Some(path.as_ref()), Some(&mut options))?;
    let text = patch.to_buf()?;
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_names_the_file_and_its_lines() {
        let text = compared("a/B.java", b"one\ntwo\n", b"one\nthree\n").unwrap().unwrap();
        assert!(text.contains("--- a/a/B.java\n+++ b/a/B.java\n") && text.contains("-two\n+three\n"), "{text}");
        assert_eq!(compared("a", b"\0", b"x").unwrap(), None);
    }
}
