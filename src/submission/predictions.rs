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

mod directory;
mod json;
mod keys;

pub use keys::Foreign;

/// The largest file of predictions, and the most bytes that are kept of a directory.
const MOST_FILE_BYTES: u64 = 1 << 30;
/// The most predictions in one file or directory.
const MOST_PREDICTIONS: usize = 1_000_000;
/// The longest name of a model, in characters.
const MOST_MODEL_CHARACTERS: usize = 200;
/// The model's name for predictions without one.
const UNNAMED: &str = "unnamed";

/// The place of a prediction in its file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
    #[error("`{0}` has no predictions")]
    Nothing(PathBuf),
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
            Self::Io(_) | Self::Kind(_) => {
                "`--predictions` takes a JSON file, a directory, or one of the words `gold` and `empty`"
            }
            Self::TooLarge { .. } => "split the predictions and score each part in a run of its own",
            Self::Malformed { .. } | Self::Nothing(_) => {
                "write a line of JSON per prediction with `instance_id`, `model_name_or_path` and `model_patch`, or name \
                 a directory of `<task id>.patch` files"
            }
            Self::Field { .. } => "correct the line; nothing was scored",
            Self::Conflict { .. } => "keep one of the two, or give them different `model_name_or_path`s",
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
    /// Files of a directory that are no predictions, sorted.
    pub strays: Vec<PathBuf>,
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

    /// Removes the Markdown fences around submissions, and returns how many.
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
pub fn read(path: &Path, selection: Selection<'_>) -> Result<Predictions, PredictionsError> {
    let metadata = fs::metadata(path)?;
    let mut collector = Collector::new(path, selection);
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

/// The first prediction without content.
struct Contentless {
    place: Place,
    /// An unknown key, and the known one that was probably meant.
    unknown: Option<(String, &'static str)>,
    /// How many predictions without content follow.
    others: usize,
}

/// Collects predictions while they are read.
struct Collector<'a> {
    path: &'a Path,
    selection: Selection<'a>,
    known: BTreeMap<&'a str, &'a Task>,
    selected: BTreeSet<&'a str>,
    all: BTreeMap<(String, TaskId), Prediction>,
    unknown: Vec<UnknownTask>,
    repeated: usize,
    read: usize,
    /// Bytes of all submissions that are kept.
    kept_bytes: u64,
    strays: Vec<PathBuf>,
    /// The first prediction without content, and how many follow.
    contentless: Option<Contentless>,
}

impl<'a> Collector<'a> {
    fn new(path: &'a Path, selection: Selection<'a>) -> Self {
        Self {
            path,
            selection,
            known: selection.known.iter().map(|task| (task.id.as_str(), task)).collect(),
            selected: selection.selected.iter().map(|task| task.id.as_str()).collect(),
            all: BTreeMap::new(),
            unknown: Vec::new(),
            repeated: 0,
            read: 0,
            kept_bytes: 0,
            strays: Vec::new(),
            contentless: None,
        }
    }

    fn task(&self, id: &str) -> Option<&'a Task> {
        self.known.get(id).copied()
    }

    fn add(&mut self, id: &str, model: Option<&str>, prediction: Prediction) -> Result<(), PredictionsError> {
        self.read += 1;
        if self.read > MOST_PREDICTIONS {
            let (found, most) = ("more predictions".to_owned(), format!("{MOST_PREDICTIONS}"));
            return Err(too_large(self.path, found, most));
        }
        let model = model_name(model.unwrap_or(UNNAMED))
            .map_err(|reason| field(&prediction.place, "model_name_or_path", reason))?;
        let Some(task) = self.task(id) else {
            self.unknown.push(UnknownTask { id: shown(id), model, place: prediction.place });
            return Ok(());
        };
        let key = (model, task.id.clone());
        match self.all.get(&key) {
            None => {
                self.kept_bytes += prediction.content.bytes().len() as u64;
                if self.kept_bytes > MOST_FILE_BYTES {
                    let (found, most) = ("more bytes".to_owned(), format!("{MOST_FILE_BYTES}"));
                    return Err(too_large(self.path, found, most));
                }
                self.all.insert(key, prediction);
            }
            Some(first) => {
                let Some(difference) = first.difference(&prediction) else {
                    self.repeated += 1;
                    return Ok(());
                };
                return Err(PredictionsError::Conflict {
                    difference,
                    task: key.1.to_string(),
                    model: key.0,
                    first: Box::new(first.place.clone()),
                    second: Box::new(prediction.place),
                });
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Predictions, PredictionsError> {
        if let Some(Contentless { place, unknown, others }) = self.contentless {
            return Err(PredictionsError::NoContent { place, unknown, others });
        }
        if self.read == 0 {
            return Err(PredictionsError::Nothing(self.path.to_owned()));
        }
        let mut predictions = Predictions {
            unknown: self.unknown,
            repeated: self.repeated,
            strays: self.strays,
            ..Predictions::default()
        };
        predictions.unknown.sort();
        // A model without predictions for known tasks is scored all the same, with every task missing.
        for unknown in &predictions.unknown {
            predictions.models.entry(unknown.model.clone()).or_default();
        }
        for ((model, task), prediction) in self.all {
            let tasks = predictions.models.entry(model).or_default();
            if self.selected.contains(task.as_str()) {
                tasks.insert(task, prediction);
            } else {
                predictions.not_selected += 1;
            }
        }
        for (model, tasks) in &predictions.models {
            let selected = self.selection.selected.iter().map(|task| &task.id);
            let missing = selected.filter(|id| !tasks.contains_key(*id)).cloned().collect();
            predictions.missing.insert(model.clone(), missing);
        }
        Ok(predictions)
    }
}

fn model_name(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("is empty".to_owned());
    }
    if text.chars().count() > MOST_MODEL_CHARACTERS {
        return Err(format!("is longer than {MOST_MODEL_CHARACTERS} characters"));
    }
    if text.chars().any(char::is_control) {
        return Err("has control characters".to_owned());
    }
    if text == GOLD {
        return Err(format!("may not be `{GOLD}`, which stands for the developers' own tests"));
    }
    Ok(text.to_owned())
}

fn field(place: &Place, field: &'static str, reason: String) -> PredictionsError {
    PredictionsError::Field { place: place.clone(), field, reason }
}

/// Returns an untrusted id in a form that is safe to show.
fn shown(id: &str) -> String {
    id.chars().take(200).map(crate::output::visible).collect()
}

#[cfg(test)]
mod tests;
