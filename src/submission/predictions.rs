//! Reads predictions in the forms of agents' harnesses: JSON lines, a JSON list or dictionary, or a directory of
//! patches or test files. Keys of SWE-bench: `instance_id`, `model_patch`, `model_name_or_path`. Our own keys:
//! `model_file` (the test file's whole text), `cost_usd` and `tokens`.
//!
//! Nothing is dropped silently: unknown, missing and repeated predictions are reported. Sizes are bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::{Content, EMPTY, GOLD};
use crate::error::{ExitStatus, Failure};
use crate::task::{Task, TaskId};

mod collector;
mod directory;
mod json;
mod keys;
mod passed_over;
mod raw;
#[cfg(test)]
pub(crate) mod schema;

use collector::Collector;
pub use keys::Foreign;
pub use passed_over::{Stray, StrayKind, UnknownKey};

/// The largest file of predictions, and the most bytes that are kept of a directory.
const MOST_FILE_BYTES: u64 = 1 << 30;
/// The most predictions in one file or directory.
const MOST_PREDICTIONS: usize = 1_000_000;

/// The place of a prediction in its file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// Its line, counted from 1; `None` for the whole file.
    pub line: Option<u64>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "`{}` line {line}", self.path.display()),
            None => write!(f, "`{}`", self.path.display()),
        }
    }
}

/// Why predictions can't be read.
#[derive(Debug, thiserror::Error)]
pub enum PredictionsError {
    /// A file could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Nothing has the path.
    #[error("there is no file or directory `{0}`")]
    Absent(PathBuf),
    /// The path is `-`.
    #[error("predictions can't be read from stdin")]
    Stdin,
    /// The path is neither a regular file nor a directory.
    #[error("`{0}` is neither a file nor a directory of predictions")]
    Kind(PathBuf),
    /// The file is too large.
    #[error("`{path}` is too large: {found}, at most {most}")]
    TooLarge {
        /// The file or directory.
        path: PathBuf,
        /// The actual size or number.
        found: String,
        /// The allowed size or number.
        most: String,
    },
    /// The file is not JSON, or not of a known form.
    #[error("{place} can't be read: {reason}")]
    Malformed {
        /// The place of the problem.
        place: Place,
        /// The parser's reason.
        reason: String,
    },
    /// The file is one of another known format.
    #[error("`{path}` has {format}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: Foreign,
    },
    /// A prediction has no submission.
    #[error(
        "{place} has neither `model_patch` nor `model_file`{}{}",
        unknown.as_ref().map(|(key, _)| format!(", but the unknown key `{key}`")).unwrap_or_default(),
        more(*others)
    )]
    NoContent {
        /// The first prediction without one.
        place: Place,
        /// Its most likely unknown key, and the key that it should be.
        unknown: Option<(String, &'static str)>,
        /// How many further predictions have none.
        others: usize,
    },
    /// A prediction does not name its task.
    #[error(
        "{place} has no `instance_id`{}",
        unknown.as_ref().map(|key| format!(", but the unknown key `{key}`")).unwrap_or_default()
    )]
    NoTask {
        /// The place of the prediction.
        place: Place,
        /// The unknown key that most likely holds the task's id.
        unknown: Option<String>,
    },
    /// A task's id stands below another key of a dictionary, such as a model's name.
    #[error("{place}: the task `{task}` stands below the key `{key}`, where a task's id belongs")]
    Nested {
        /// The place of the key.
        place: Place,
        /// The key.
        key: String,
        /// The task below it.
        task: String,
    },
    /// No prediction is for an imported task.
    #[error("no prediction is for an imported task: {place} names `{id}`{}", more(*others))]
    Unmatched {
        /// The first prediction.
        place: Place,
        /// The id that it names.
        id: String,
        /// The most similar id of an imported task, if one is similar.
        nearest: Option<String>,
        /// A directory below that has predictions.
        nested: Option<PathBuf>,
        /// How many further predictions there are.
        others: usize,
    },
    /// A task's directory has a submission under another name or path than the test file's.
    #[error("`{found}` is not the test file of its task, `{expected}`")]
    OtherName {
        /// The file.
        found: PathBuf,
        /// The test file's path in the repository.
        expected: String,
    },
    /// A field is missing or wrong.
    #[error("{place}: `{field}` {reason}")]
    Field {
        /// The place of the prediction.
        place: Place,
        /// The field.
        field: &'static str,
        /// Why the value is invalid.
        reason: String,
    },
    /// Two different submissions of one model for one task.
    #[error("{first} and {second} differ in {difference}, and both are by `{model}` for the task {task}")]
    Conflict {
        /// The differing field.
        difference: Difference,
        /// The task.
        task: String,
        /// The model.
        model: String,
        /// One place.
        first: Box<Place>,
        /// The other place.
        second: Box<Place>,
    },
    /// The file or directory contains no prediction.
    #[error("`{path}` has no predictions")]
    Nothing {
        /// The file or directory.
        path: PathBuf,
        /// A file in the directory that may have predictions.
        file: Option<PathBuf>,
    },
}

fn more(others: usize) -> String {
    match others {
        0 => String::new(),
        _ => format!(" (and {} more like this)", crate::output::counted(others, "prediction", "predictions")),
    }
}

/// The field in which two predictions of one model for one task differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The submitted content.
    Content,
    /// The cost.
    Cost,
    /// Tokens used for it.
    Tokens,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Content => "what they hand in",
            Self::Cost => "`cost_usd`",
            Self::Tokens => "`tokens`",
        })
    }
}

impl Failure for PredictionsError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Io(error) if error.kind() == io::ErrorKind::NotFound => ExitStatus::Usage,
            Self::Absent(_) | Self::Stdin => ExitStatus::Usage,
            Self::Io(_) => ExitStatus::Infrastructure,
            _ => ExitStatus::BadInput,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Foreign { format, .. } => format.advice(),
            Self::NoContent { unknown: Some((key, known)), .. } => {
                return Some(format!(
                    "rename `{key}` to `{known}`; write `\"model_patch\": null` where a model hands in nothing"
                ));
            }
            Self::NoContent { unknown: None, .. } => "write `\"model_patch\": null` where a model hands in nothing",
            Self::Io(error) if error.kind() != io::ErrorKind::NotFound => {
                "check the permissions of what `--predictions` names, and that its file system answers"
            }
            Self::Io(_) | Self::Kind(_) => {
                "`--predictions` takes a JSON file, a directory, or one of the words `gold` and `empty`"
            }
            Self::TooLarge { .. } => "split the predictions and score each part in a run of its own",
            Self::Absent(path) => match path.to_str().map(str::to_lowercase).as_deref() {
                Some(GOLD) => "write `gold` in small letters for the developers' tests",
                Some(EMPTY) => "write `empty` in small letters for empty submissions",
                _ => "`--predictions` takes a JSON file, a directory, or one of the words `gold` and `empty`",
            },
            Self::Stdin => "write them to a file, and name the file",
            Self::NoTask { unknown: Some(key), .. } => {
                return Some(format!("rename `{key}` to `instance_id`; `testevo-sandbox tasks list` shows the ids"));
            }
            Self::NoTask { unknown: None, .. } => {
                "write the task's id as `instance_id`; `testevo-sandbox tasks list` shows the ids"
            }
            Self::Nested { key, .. } => {
                return Some(format!(
                    "write a dictionary by the tasks' ids: `{{\"<task id>\": {{\"model_name_or_path\": \"{key}\", \"model_patch\": …}}}}`"
                ));
            }
            Self::Unmatched { nested: Some(directory), .. } => {
                return Some(format!("a directory has one model's predictions: name `{}`", directory.display()));
            }
            Self::Unmatched { nearest: Some(nearest), .. } => return Some(format!("did you mean `{nearest}`?")),
            Self::Unmatched { .. } => {
                "`testevo-sandbox tasks list` shows the ids, and `testevo-sandbox import` adds tasks"
            }
            Self::OtherName { expected, .. } => {
                let name = expected.rsplit('/').next().unwrap_or(expected);
                return Some(format!(
                    "put the test file into the task's directory as `{name}`, or replace the directory by `<task id>.patch`"
                ));
            }
            Self::Nothing { file: Some(file), .. } => {
                return Some(format!("name the file itself after `--predictions`: `{}`", file.display()));
            }
            Self::Malformed { .. } | Self::Nothing { file: None, .. } => {
                "write a line of JSON per prediction with `instance_id`, `model_name_or_path` and `model_patch`, or name \
                 a directory of `<task id>.patch` files"
            }
            Self::Field { .. } => "correct the line; nothing was scored",
            Self::Conflict { .. } => {
                "keep one of the two, give them different `model_name_or_path`s, or count them as samples with `--samples`"
            }
        };
        Some(hint.to_owned())
    }
}

/// One submission, as read.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The submitted content.
    pub content: Content,
    /// Cost of making it, in US dollars.
    pub cost_usd: Option<f64>,
    /// Tokens used for it.
    pub tokens: Option<u64>,
    /// Its place in the file.
    pub place: Place,
    /// Whether a Markdown fence around it was removed.
    pub fence_removed: bool,
}

impl Prediction {
    /// Returns the field in which another prediction differs. The place makes no difference; the cost does, because of
    /// cost caps.
    fn difference(&self, other: &Self) -> Option<Difference> {
        let differences = [
            (!self.content.is_same(&other.content), Difference::Content),
            (self.cost_usd != other.cost_usd, Difference::Cost),
            (self.tokens != other.tokens, Difference::Tokens),
        ];
        differences.into_iter().find_map(|(differs, difference)| differs.then_some(difference))
    }
}

/// A prediction for an unknown task.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnknownTask {
    /// The id in the file, shortened and without control characters.
    pub id: String,
    /// The model.
    pub model: String,
    /// Its place.
    pub place: Place,
}

/// All predictions for the selected tasks, and counts of the others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Predictions {
    /// Submissions by model and task.
    pub models: BTreeMap<String, BTreeMap<TaskId, Prediction>>,
    /// Predictions for ids that no imported task has.
    pub unknown: Vec<UnknownTask>,
    /// Number of predictions for tasks that were not selected.
    pub not_selected: usize,
    /// Number of repeated predictions, equal in bytes, cost and tokens.
    pub repeated: usize,
    /// Selected tasks without a prediction, by model.
    pub missing: BTreeMap<String, Vec<TaskId>>,
    /// Whose samples the models are that are samples of one.
    pub samples: BTreeMap<String, String>,
    /// Entries of a directory that are no predictions, sorted.
    pub strays: Vec<Stray>,
    /// Keys that are not read, each once, sorted.
    pub unknown_keys: Vec<UnknownKey>,
}

/// What several predictions of one model for one task are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Several {
    /// Repetitions if they are equal, else an error.
    #[default]
    Repetitions,
    /// Samples, in the order of the file. Each sample of a model is scored as a model of its own.
    Samples,
}

/// The tasks that predictions may name.
#[derive(Clone, Copy, Debug)]
pub struct Selection<'a> {
    /// All imported tasks.
    pub known: &'a [Task],
    /// The selected ones.
    pub selected: &'a [Task],
}

impl Predictions {
    /// Leaves out the predictions for other tasks than these. The counts stay those of the whole selection.
    pub fn retain(&mut self, tasks: &[Task]) {
        let kept: BTreeSet<&TaskId> = tasks.iter().map(|task| &task.id).collect();
        self.models.values_mut().for_each(|model| model.retain(|task, _| kept.contains(task)));
        self.missing.values_mut().for_each(|missing| missing.retain(|task| kept.contains(task)));
    }

    /// Returns the developers' tests for every selected task.
    pub fn gold(selected: &[Task]) -> Self {
        Self::literal(GOLD, &Content::Gold, selected)
    }

    /// Returns empty submissions for every selected task.
    pub fn empty(selected: &[Task]) -> Self {
        Self::literal(EMPTY, &Content::Nothing, selected)
    }

    /// Removes the Markdown fences and tags around submissions, and returns how many.
    pub fn strip_fences(&mut self) -> usize {
        let mut removed = 0;
        for prediction in self.models.values_mut().flat_map(BTreeMap::values_mut) {
            if let Some(content) = prediction.content.without_fence() {
                (prediction.content, prediction.fence_removed) = (content, true);
                removed += 1;
            }
        }
        removed
    }

    fn literal(model: &str, content: &Content, selected: &[Task]) -> Self {
        let place = Place { path: PathBuf::from(model), line: None };
        let prediction =
            Prediction { content: content.clone(), cost_usd: None, tokens: None, place, fence_removed: false };
        let tasks = selected.iter().map(|task| (task.id.clone(), prediction.clone())).collect();
        Self {
            models: BTreeMap::from([(model.to_owned(), tasks)]),
            missing: BTreeMap::from([(model.to_owned(), Vec::new())]),
            ..Self::default()
        }
    }
}

/// Reads a file or directory of predictions.
///
/// # Errors
/// [`PredictionsError`]. If a file has an error anywhere, none of its predictions is returned.
pub fn read(path: &Path, selection: Selection<'_>, several: Several) -> Result<Predictions, PredictionsError> {
    if path == Path::new("-") {
        return Err(PredictionsError::Stdin);
    }
    let metadata = match fs::metadata(path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Err(PredictionsError::Absent(path.to_owned()));
        }
        found => found?,
    };
    let mut collector = Collector::new(path, selection, several);
    if metadata.is_dir() {
        directory::read(path, &mut collector)?;
    } else if metadata.is_file() {
        if metadata.len() > MOST_FILE_BYTES {
            return Err(too_large(path, format!("{} bytes", metadata.len()), format!("{MOST_FILE_BYTES} bytes")));
        }
        // The file may grow while it is read.
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
        let mut file = io::Read::take(fs::File::open(path)?, MOST_FILE_BYTES + 1);
        io::Read::read_to_end(&mut file, &mut bytes)?;
        if bytes.len() as u64 > MOST_FILE_BYTES {
            return Err(too_large(path, "it grows".to_owned(), format!("{MOST_FILE_BYTES} bytes")));
        }
        json::read(path, &bytes, &mut collector)?;
    } else {
        return Err(PredictionsError::Kind(path.to_owned()));
    }
    collector.finish()
}

fn too_large(path: &Path, found: String, most: String) -> PredictionsError {
    PredictionsError::TooLarge { path: path.to_owned(), found, most }
}

/// Returns an untrusted id in a form that is safe to show.
fn shown(id: &str) -> String {
    id.chars().take(200).map(crate::output::visible).collect()
}

#[cfg(test)]
mod tests;
