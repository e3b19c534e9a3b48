//! Submissions: agents' results, read from files and reduced to the target test file's new bytes.
//!
//! [`predictions`] reads files of many predictions. [`patch`] parses diffs. [`extraction`] makes the target file's
//! post-image. [`mentions`] examines the file's compiled classes. No patch is ever applied to a tree, and no text of a
//! submission is used as a path on this machine.

#[cfg(test)]
mod damage;
pub mod extraction;
mod fence;
pub mod mentions;
pub mod patch;
pub mod predictions;
mod quoted;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use fence::Form;

/// The largest accepted submission, in bytes: a patch, or a test file's text.
pub const MOST_SUBMISSION_BYTES: usize = 16 << 20;

/// The largest target file that is compiled, in bytes.
pub const MOST_FILE_BYTES: usize = 4 << 20;

/// The reserved model name for the developers' own tests.
pub const GOLD: &str = "gold";

/// The reserved model name for empty submissions.
pub const EMPTY: &str = "empty";

/// The content of a submission for one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The developers' test file of the new revision.
    Gold,
    /// Nothing.
    Nothing,
    /// A diff against the starting tree.
    Patch(Vec<u8>),
    /// The target file's whole new text.
    File(Vec<u8>),
    /// More than [`MOST_SUBMISSION_BYTES`], and not kept.
    TooLarge {
        /// Its size in bytes.
        bytes: u64,
        /// The content's digest; `None` if it was not read, because reading it might never end.
        digest: Option<Digest>,
    },
}

impl Content {
    /// Returns the content of a text whose size was checked.
    fn of(bytes: Vec<u8>, kind: fn(Vec<u8>) -> Self) -> Self {
        if bytes.len() > MOST_SUBMISSION_BYTES {
            return Self::TooLarge { bytes: bytes.len() as u64, digest: Some(Digest::of(&bytes)) };
        }
        kind(bytes)
    }

    /// Tells whether both contents are equal. Unread content equals nothing.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::TooLarge { digest, .. }, Self::TooLarge { digest: other, .. }) => {
                digest.is_some() && digest == other
            }
            (one, other) => one == other,
        }
    }

    /// Returns the content without the Markdown fence or tags around it; `None` if there are none, or if they are unclear.
    fn without_fence(&self) -> Option<Self> {
        match self {
            Self::Patch(bytes) => fence::unwrapped(bytes, Form::Patch).map(Self::Patch),
            Self::File(bytes) => fence::unwrapped(bytes, Form::File).map(Self::File),
            Self::Gold | Self::Nothing | Self::TooLarge { .. } => None,
        }
    }

    /// Returns the kind of content, for records.
    pub fn kind(&self) -> ContentKind {
        match self {
            Self::Gold => ContentKind::Gold,
            Self::Nothing => ContentKind::Nothing,
            Self::Patch(_) => ContentKind::Patch,
            Self::File(_) => ContentKind::File,
            Self::TooLarge { .. } => ContentKind::TooLarge,
        }
    }

    /// Returns the submitted bytes; empty for gold, for an empty submission, and for too large a one.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Patch(bytes) | Self::File(bytes) => bytes,
            Self::Gold | Self::Nothing | Self::TooLarge { .. } => &[],
        }
    }
}

/// The form of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ContentKind {
    /// The developers' test file.
    Gold,
    /// Nothing at all.
    Nothing,
    /// A diff.
    Patch,
    /// A whole file.
    File,
    /// Too large to read.
    TooLarge,
}
