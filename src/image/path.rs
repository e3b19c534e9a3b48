//! Paths inside an image: relative, normalised, and unable to name anything outside it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A path below an image's root without a leading slash, such as `usr/bin/java`. No part is empty, `.` or `..`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TreePath(String);

/// A text that can't be a path inside an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no path inside an image", text.escape_debug())]
pub struct InvalidTreePath {
    /// The text, shortened.
    pub text: String,
}

const MAX_LENGTH: usize = 2048;
const MAX_PART: usize = 255;

impl TreePath {
    /// Returns the path of an archive's member name; `None` for the root itself (`./`).
    ///
    /// # Errors
    /// [`InvalidTreePath`] for absolute paths, `..`, empty parts, control characters and over-long names.
    pub fn parse(text: &str) -> Result<Option<Self>, InvalidTreePath> {
        let invalid = || InvalidTreePath { text: text.chars().take(120).collect() };
        let mut rest = text;
        while let Some(shorter) = rest.strip_prefix("./") {
            rest = shorter;
        }
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.is_empty() || rest == "." {
            return if text.is_empty() || text.starts_with('/') { Err(invalid()) } else { Ok(None) };
        }
        let sound = rest.len() <= MAX_LENGTH
            && !rest.chars().any(char::is_control)
            && rest.split('/').all(|part| !matches!(part, "" | "." | "..") && part.len() <= MAX_PART);
        if sound { Ok(Some(Self(rest.to_owned()))) } else { Err(invalid()) }
    }

    /// Returns the text, without a leading slash.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path's parent directory; `None` directly below the root.
    pub fn parent(&self) -> Option<Self> {
        self.0.rsplit_once('/').map(|(parent, _)| Self(parent.to_owned()))
    }

    /// Returns `self/name`.
    ///
    /// # Errors
    /// [`InvalidTreePath`], as [`TreePath::parse`].
    pub fn join(&self, name: &str) -> Result<Self, InvalidTreePath> {
        name_of(Self::parse(&format!("{}/{name}", self.0)), name)
    }

    /// Tells whether the path is `directory` or below it.
    pub fn is_within(&self, directory: &str) -> bool {
        self.0.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

fn name_of(parsed: Result<Option<TreePath>, InvalidTreePath>, text: &str) -> Result<TreePath, InvalidTreePath> {
    parsed?.ok_or_else(|| InvalidTreePath { text: text.chars().take(120).collect() })
}

impl std::str::FromStr for TreePath {
    type Err = InvalidTreePath;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        name_of(Self::parse(text), text)
    }
}

impl TryFrom<String> for TreePath {
    type Error = InvalidTreePath;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<TreePath> for String {
    fn from(path: TreePath) -> Self {
        path.0
    }
}

impl fmt::Display for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_names_are_normalised_or_refused() {
        for (text, expected) in [("./usr/bin/", Some("usr/bin")), ("a", Some("a")), ("./", None), (".", None)] {
            let found = TreePath::parse(text).unwrap();
            assert_eq!(found.as_ref().map(TreePath::as_str), expected, "{text}");
        }
        for bad in ["", "/", "/etc", "..", "../a", "a/../b", "a//b", "a/./b", "a\0b", "a\nb", &"x".repeat(256)] {
            assert!(TreePath::parse(bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn containment_is_by_whole_parts() {
        let path: TreePath = "usr/share/man/man1".parse().unwrap();
        assert!(path.is_within("usr/share/man"));
        assert!(!path.is_within("usr/share/ma"));
    }
}
