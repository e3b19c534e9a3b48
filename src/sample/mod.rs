//! Sample repositories: small Maven projects with a scripted history, each task with its expected outcomes.
//!
//! A repository consists of text archives ([`archive`]): one with files of every revision, and one for each
//! *miniature*, which is a task with its two revisions. [`SampleRepository::write_git`] makes a real git repository of
//! them, with the same commits on every machine. [`SampleRepository::published`] makes the data that `import` reads.
//! The program embeds the repository of `demo`; the others belong to the tests. Nothing here builds or runs anything.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::error::{ExitStatus, Failure};
use crate::outcome::Outcome;
use crate::task::{Cell, InvalidText, MethodId, RepositoryName, RepositoryPath, Side, Track};

pub mod archive;
pub mod corpus;
mod git;
mod published;

pub use git::RevisionPair;

/// The placeholder for [`PLUGINS`] in a sample's POM.
const PLUGINS_PLACEHOLDER: &str = "@plugins@";

/// The plugin versions of every sample, so that all of them need the same few files.
const PLUGINS: &str = include_str!("plugins.xml");

/// A sample that can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// An archive is malformed.
    #[error("sample `{name}`: {reason}")]
    Malformed {
        /// The archive's name.
        name: String,
        /// The problem.
        reason: String,
    },
    /// Git failed.
    #[error("the sample's repository could not be written to `{path}`")]
    Git {
        /// The repository's directory.
        path: std::path::PathBuf,
        /// The cause.
        source: git2::Error,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl Failure for SampleError {
    fn exit_status(&self) -> ExitStatus {
        ExitStatus::Infrastructure
    }

    fn hint(&self) -> Option<String> {
        Some("check the data directory's permissions and free space".to_owned())
    }
}

/// Files by their path in the repository.
pub type Files = BTreeMap<RepositoryPath, Vec<u8>>;

/// A repository whose history is one pair of revisions per miniature.
#[derive(Clone, Debug)]
pub struct SampleRepository {
    /// Its name.
    pub name: RepositoryName,
    /// The required Java development kit.
    pub jdk: u32,
    /// Its miniatures, in the order of the history.
    pub miniatures: Vec<Miniature>,
}

/// A small task: two revisions, a test file, and the expected outcomes.
#[derive(Clone, Debug)]
pub struct Miniature {
    /// The archive's name; becomes part of the task's id.
    pub name: String,
    /// Its lesson, a sentence without its final period.
    pub shows: String,
    /// Its track.
    pub track: Track,
    /// The target test file.
    pub test_file: RepositoryPath,
    /// The target methods in published order, with their outcomes.
    pub methods: Vec<MiniatureMethod>,
    /// The methods under test.
    pub focal: Vec<MiniatureFocal>,
    old: Files,
    new: Files,
}

/// A target method with its expected outcomes.
#[derive(Clone, Debug)]
pub struct MiniatureMethod {
    /// `Class#method`.
    pub id: MethodId,
    /// Correct outcomes by cell; more than one where chance decides.
    pub expected: BTreeMap<Cell, Vec<Outcome>>,
}

/// A method under test, with the place of its declaration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MiniatureFocal {
    /// `Class#method`.
    pub method: MethodId,
    /// The file that declares it, in the new revision if that has it.
    pub file: RepositoryPath,
    /// A text whose first occurrence in the file is in the declaration's first line.
    pub anchor: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RepositoryHeader {
    repository: RepositoryName,
    jdk: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MiniatureHeader {
    shows: String,
    track: Track,
    test_file: RepositoryPath,
    methods: Vec<MethodId>,
    #[serde(default)]
    focal: Vec<MiniatureFocal>,
    expected: BTreeMap<MethodId, BTreeMap<Cell, String>>,
    /// Files that are stored with CRLF line ends.
    #[serde(default)]
    crlf: Vec<RepositoryPath>,
    /// Files of the repository's own archive that this miniature lacks.
    #[serde(default)]
    without: Vec<RepositoryPath>,
}

impl SampleRepository {
    /// Returns two submissions for the demonstration's task `rounding`, as a file of predictions: one asserts what changed,
    /// the other asserts nothing.
    pub fn demo_predictions() -> &'static str {
        include_str!("demo/predictions.jsonl")
    }

    /// Returns the repository of `demo`.
    ///
    /// # Errors
    /// [`SampleError`], which tests rule out.
    pub fn demo() -> Result<Self, SampleError> {
        Self::parse(
            include_str!("demo/repository.txtar"),
            &[
                ("rounding", include_str!("demo/1-rounding.txtar")),
                ("renamed-method", include_str!("demo/2-renamed-method.txtar")),
                ("new-class", include_str!("demo/3-new-class.txtar")),
                ("fixed-bug", include_str!("demo/4-fixed-bug.txtar")),
                ("stricter-input", include_str!("demo/5-stricter-input.txtar")),
            ],
        )
    }

    /// Reads a repository from its own archive and those of its miniatures, each with its name.
    ///
    /// # Errors
    /// [`SampleError::Malformed`].
    pub fn parse(repository: &str, miniatures: &[(&str, &str)]) -> Result<Self, SampleError> {
        let malformed = |reason: String| SampleError::Malformed { name: "repository".to_owned(), reason };
        let archive = archive::parse(repository);
        let header: RepositoryHeader =
            toml::from_str(archive.comment).map_err(|error| malformed(error.message().to_owned()))?;
        let mut common = Files::new();
        for (path, text) in archive.files {
            add(&mut common, path, text).map_err(|error| malformed(error.to_string()))?;
        }
        let miniatures =
            miniatures.iter().map(|(name, text)| Miniature::parse(name, text, &common)).collect::<Result<_, _>>()?;
        Ok(Self { name: header.repository, jdk: header.jdk, miniatures })
    }
}

impl Miniature {
    /// Returns the whole tree of a side.
    pub fn files(&self, side: Side) -> &Files {
        match side {
            Side::Old => &self.old,
            Side::New => &self.new,
        }
    }

    fn parse(name: &str, text: &str, common: &Files) -> Result<Self, SampleError> {
        let malformed = |reason: String| SampleError::Malformed { name: name.to_owned(), reason };
        let archive = archive::parse(text);
        let header: MiniatureHeader =
            toml::from_str(archive.comment).map_err(|error| malformed(error.message().to_owned()))?;
        let mut shared = common.clone();
        shared.retain(|path, _| !header.without.contains(path));
        let (mut old, mut new) = (shared.clone(), shared);
        for (path, text) in archive.files {
            let (side, path) = path.split_once('/').unwrap_or(("", path));
            let added = match side {
                "old" => add(&mut old, path, text),
                "new" => add(&mut new, path, text),
                "both" => add(&mut old, path, text).and_then(|()| add(&mut new, path, text)),
                _ => return Err(malformed(format!("`{side}/{path}` is not below `both`, `old` or `new`"))),
            };
            added.map_err(|error| malformed(error.to_string()))?;
        }
        for path in &header.crlf {
            for files in [&mut old, &mut new] {
                if let Some(content) = files.get_mut(path) {
                    *content = String::from_utf8_lossy(content).replace('\n', "\r\n").into_bytes();
                }
            }
        }
        if !new.contains_key(&header.test_file) {
            return Err(malformed(format!("the new revision has no `{}`", header.test_file)));
        }
        let methods = header
            .methods
            .into_iter()
            .map(|id| {
                let cells =
                    header.expected.get(&id).ok_or_else(|| malformed(format!("nothing is expected of `{id}`")))?;
                expected(cells).map(|expected| MiniatureMethod { id, expected }).map_err(malformed)
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            name: name.to_owned(),
            shows: header.shows,
            track: header.track,
            test_file: header.test_file,
            methods,
            focal: header.focal,
            old,
            new,
        })
    }
}

fn add(files: &mut Files, path: &str, text: &str) -> Result<(), InvalidText> {
    let path: RepositoryPath = path.parse()?;
    files.insert(path, text.replace(PLUGINS_PLACEHOLDER, PLUGINS.trim_end()).into_bytes());
    Ok(())
}

fn expected(cells: &BTreeMap<Cell, String>) -> Result<BTreeMap<Cell, Vec<Outcome>>, String> {
    Cell::ALL
        .into_iter()
        .map(|cell| {
            let text = cells.get(&cell).ok_or_else(|| format!("nothing is expected in cell {}", cell.name()))?;
            text.split(" | ").map(outcome).collect::<Result<_, _>>().map(|outcomes| (cell, outcomes))
        })
        .collect()
}

/// Parses the [`Outcome`] from its `Display` form.
fn outcome(text: &str) -> Result<Outcome, String> {
    let (name, reason) = match text.split_once('(') {
        Some((name, rest)) => (name, rest.strip_suffix(')')),
        None => (text, None),
    };
    serde_json::from_value(serde_json::json!({ "outcome": name, "reason": reason }))
        .map_err(|_| format!("`{text}` is no outcome"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_outcome_displays_as_is_read_back() {
        for text in
            ["pass", "absent", "exec_fail(assertion)", "compile_fail(other_test_file)", "infra_fail(resolution)"]
        {
            assert_eq!(outcome(text).unwrap().to_string(), text);
        }
        assert!(outcome("exec_fail(bored)").is_err());
        assert!(outcome("exec_fail").is_err());
    }

    #[test]
    fn the_demo_shows_both_tracks_and_every_file_is_embedded() {
        let demo = SampleRepository::demo().unwrap();
        assert_eq!(demo.miniatures.len(), 5);
        for track in [Track::TestUpdate, Track::TestGeneration] {
            assert!(demo.miniatures.iter().any(|miniature| miniature.track == track));
        }
        let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sample/demo");
        // Beside the miniatures: the repository and the predictions.
        assert_eq!(fs_err::read_dir(directory).unwrap().count(), demo.miniatures.len() + 2);
    }

    #[test]
    fn files_of_a_side_stand_over_common_ones() {
        let repository = "repository = \"a/b\"\njdk = 17\n-- pom.xml --\n<a>@plugins@</a>\n-- x --\ncommon\n";
        let miniature = "shows = \"s\"\ntrack = \"test_update\"\ntest_file = \"t\"\nmethods = []\ncrlf = [\"t\"]\n\
             [expected]\n-- both/t --\n1\n2\n-- new/x --\nnew\n";
        let sample = SampleRepository::parse(repository, &[("m", miniature)]).unwrap();
        let at = |side, path: &str| {
            String::from_utf8(sample.miniatures[0].files(side)[&path.parse().unwrap()].clone()).unwrap()
        };
        assert_eq!(at(Side::Old, "x"), "common\n");
        assert_eq!(at(Side::New, "x"), "new\n");
        assert_eq!(at(Side::Old, "t"), "1\r\n2\r\n");
        assert!(at(Side::New, "pom.xml").contains("maven-compiler-plugin"));
    }
}
