//! Tasks: the benchmark's published data, as types that are valid once they exist.
//!
//! A task names one test file at one pair of revisions. Nothing here reads repositories or runs commands.

mod clone_url;
pub mod file;
pub mod published;
pub mod selector;
pub mod shard;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use clone_url::{CloneUrl, InvalidCloneUrl};

/// A text that is invalid for its type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no {what}")]
pub struct InvalidText {
    /// The expected form, in words.
    pub what: &'static str,
    /// The text, shortened and without control characters.
    pub text: String,
}

impl InvalidText {
    fn new(what: &'static str, text: &str) -> Self {
        Self { what, text: text.chars().take(120).map(crate::output::visible).collect() }
    }
}

macro_rules! text_type {
    ($(#[$doc:meta])* $name:ident, $what:literal, $valid:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidText;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let valid: fn(&str) -> bool = $valid;
                if valid(text) { Ok(Self(text.to_owned())) } else { Err(InvalidText::new($what, text)) }
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidText;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_type!(
    /// A task's published id: 1 to 200 of `[A-Za-z0-9._+-]`, starting with a letter or digit, so that it is also a
    /// safe file name and never an option.
    TaskId,
    "task id",
    |text| is_safe_name(text, 200)
);

text_type!(
    /// A full commit hash, 40 lower-case hexadecimal digits.
    Revision,
    "full commit hash",
    |text| text.len() == 40 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
);

text_type!(
    /// A repository as `owner/name`. No owner has `__` in it or ends in `_`, so that no two repositories have one
    /// [`RepositoryName::file_stem`].
    RepositoryName,
    "repository of the form owner/name",
    |text| text
        .split_once('/')
        .is_some_and(|(owner, name)| is_safe_name(owner, 100)
            && !owner.contains("__")
            && !owner.ends_with('_')
            && is_safe_name(name, 100))
);

text_type!(
    /// A path inside a repository: relative, `/` between non-empty parts, none of them `.`, `..` or `.git`.
    RepositoryPath,
    "relative path inside a repository",
    |text| !text.is_empty()
        && text.len() <= 1024
        && !text.starts_with('-')
        && !text.chars().any(|c| c.is_control() || c == '\\')
        && text.split('/').all(|part| !matches!(part, "" | "." | "..") && !part.eq_ignore_ascii_case(".git"))
);

text_type!(
    /// A test or production method as `Class#method`; nested classes by their binary names.
    MethodId,
    "method of the form Class#method",
    |text| text.len() <= 500
        && text.split_once('#').is_some_and(|(class, method)| {
            !class.is_empty() && class.split(['.', '$']).all(is_java_identifier) && is_method_name(method)
        })
);

fn is_safe_name(text: &str, most: usize) -> bool {
    text.len() <= most
        && text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'+' | b'-'))
        && !text.contains("..")
}

fn is_java_identifier(text: &str) -> bool {
    text.chars().next().is_some_and(|c| c.is_alphabetic() || matches!(c, '_' | '$') || c.is_ascii_digit())
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$'))
}

fn is_method_name(text: &str) -> bool {
    matches!(text, "<init>" | "<clinit>") || is_java_identifier(text)
}

impl MethodId {
    /// Returns the class part.
    pub fn class(&self) -> &str {
        self.0.split_once('#').map_or("", |(class, _)| class)
    }

    /// Returns the method part.
    pub fn method(&self) -> &str {
        self.0.split_once('#').map_or("", |(_, method)| method)
    }
}

impl RepositoryName {
    /// Returns the part before the slash.
    pub fn owner(&self) -> &str {
        self.0.split_once('/').map_or("", |(owner, _)| owner)
    }

    /// Returns the part after the slash.
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or("", |(_, name)| name)
    }

    /// Returns `owner__name`, the form in file names, which is unique for every repository.
    pub fn file_stem(&self) -> String {
        self.0.replacen('/', "__", 1)
    }

    /// Returns the repository with this [`RepositoryName::file_stem`].
    pub fn of_file_stem(stem: &str) -> Option<Self> {
        stem.replacen("__", "/", 1).parse().ok().filter(|name: &Self| name.file_stem() == stem)
    }
}

/// The benchmark's two tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Track {
    /// The test exists and must follow the code.
    TestUpdate,
    /// A test for changed code must be written.
    TestGeneration,
}

/// Which revision's code, or which revision's test file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// rev1.
    Old,
    /// rev2.
    New,
}

/// One of the four combinations of test revision × code revision, in the order of the paper's notation `T_x@C_y`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Cell {
    /// T_old@C_old.
    Oo,
    /// T_new@C_new.
    Nn,
    /// T_old@C_new.
    On,
    /// T_new@C_old.
    No,
}

impl Cell {
    /// All cells, in reporting order.
    pub const ALL: [Self; 4] = [Self::Oo, Self::Nn, Self::On, Self::No];

    /// Returns the side whose test file the cell has.
    pub fn test(self) -> Side {
        match self {
            Self::Oo | Self::On => Side::Old,
            Self::Nn | Self::No => Side::New,
        }
    }

    /// Returns the side whose code the cell has.
    pub fn code(self) -> Side {
        match self {
            Self::Oo | Self::No => Side::Old,
            Self::Nn | Self::On => Side::New,
        }
    }

    /// Returns the two-letter name used in reports and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Oo => "oo",
            Self::Nn => "nn",
            Self::On => "on",
            Self::No => "no",
        }
    }
}

/// A focal (dependency) method with the place of its change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FocalMethod {
    /// `Class#method`.
    pub method: MethodId,
    /// The published anchor; `None` if there is none.
    pub anchor: Option<Anchor>,
}

/// A line in one file of the comparison between two revisions. Source: protocol §4.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Anchor {
    /// SHA-256 of the file's path, hexadecimal.
    pub path_sha256: String,
    /// Which revision the line belongs to: `R` is new, `L` is old.
    pub side: Side,
    /// The line, counted from 1.
    pub line: u32,
}

/// One task, validated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Task {
    /// Published id.
    pub id: TaskId,
    /// Its repository.
    pub repository: RepositoryName,
    /// Its track.
    pub track: Track,
    /// Old revision.
    pub rev1: Revision,
    /// New revision.
    pub rev2: Revision,
    /// Date of rev1, `YYYY-MM-DD`.
    pub rev1_date: String,
    /// Date of rev2, `YYYY-MM-DD`.
    pub rev2_date: String,
    /// The target test file.
    pub test_file: RepositoryPath,
    /// The target test methods.
    pub test_methods: Vec<MethodId>,
    /// The focal methods.
    pub focal_methods: Vec<FocalMethod>,
}

impl Task {
    /// Returns the revision of a side.
    pub fn revision(&self, side: Side) -> &Revision {
        match side {
            Side::Old => &self.rev1,
            Side::New => &self.rev2,
        }
    }
}

#[cfg(test)]
mod tests;
