//! Parts of predictions that are ignored: unknown keys of a file, and entries of a directory that are no predictions.

use std::fmt;
use std::path::PathBuf;

use super::Place;

/// A key of a prediction that is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKey {
    /// The key, shortened and without control characters.
    pub key: String,
    /// The first prediction with it.
    pub place: Place,
    /// The known key that it probably means, which the prediction lacks.
    pub meant: Option<&'static str>,
}

/// An entry of a directory that is no prediction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stray {
    /// Its path.
    pub path: PathBuf,
    /// The reason.
    pub kind: StrayKind,
}

/// Why an entry of a directory is no prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StrayKind {
    /// A file of another name.
    OtherName,
    /// A file that may have predictions as JSON.
    Json,
    /// A link, which is not followed.
    Link,
    /// Neither a file nor a directory, such as a pipe.
    Special,
    /// A task's directory without its test file. It counts as handed in empty.
    NoTestFile,
    /// A directory within a task's directory that can't be read.
    Unreadable,
}

impl fmt::Display for Stray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.kind {
            StrayKind::OtherName => {
                write!(f, "`{path}` is no prediction and is left out: it is no `<task id>.patch`, `.diff` or `.java`")
            }
            StrayKind::Json => {
                write!(f, "`{path}` is left out; to score its predictions, name the file itself after `--predictions`")
            }
            StrayKind::Link => write!(f, "`{path}` is a link and is left out: links in a directory are not followed"),
            StrayKind::Special => write!(f, "`{path}` is left out: it is neither a file nor a directory"),
            StrayKind::NoTestFile => write!(f, "`{path}` has no test file and counts as handed in empty"),
            StrayKind::Unreadable => write!(f, "`{path}` is left out: the directory can't be read"),
        }
    }
}
