//! Sorts predictions by model and task while they are read, and says what several of one model for one task are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::keys::nearest;
use super::{
    MOST_FILE_BYTES, MOST_PREDICTIONS, Place, Prediction, Predictions, PredictionsError, Selection, Several, Stray,
    UnknownKey, UnknownTask, shown, too_large,
};
use crate::submission::GOLD;
use crate::task::{Task, TaskId};

/// The first prediction without content.
pub(super) struct Contentless {
    pub(super) place: Place,
    /// An unknown key, and the known one that was probably meant.
    pub(super) unknown: Option<(String, &'static str)>,
    /// How many predictions without content follow.
    pub(super) others: usize,
}

/// The most samples of a model for one task.
pub(super) const MOST_SAMPLES: usize = 1_000;
/// The most models and samples. For each of them every selected task without a prediction is named.
pub(super) const MOST_MODELS: usize = 10_000;
/// The longest name of a model, in characters.
pub(super) const MOST_MODEL_CHARACTERS: usize = 200;
/// The model's name for predictions without one.
const UNNAMED: &str = "unnamed";
/// The most unknown keys that are named.
const MOST_UNKNOWN_KEYS: usize = 100;
/// How alike an unknown id and the task's id are that it probably means.
const ALIKE: f64 = 0.6;

/// Predictions by model and task.
type Collected = BTreeMap<(String, TaskId), Vec<Prediction>>;

/// Collects predictions while they are read.
pub(super) struct Collector<'a> {
    path: &'a Path,
    selection: Selection<'a>,
    known: BTreeMap<&'a str, &'a Task>,
    selected: BTreeSet<&'a str>,
    several: Several,
    /// Predictions by model and task; of samples in the order of the file.
    all: Collected,
    unknown: Vec<UnknownTask>,
    repeated: usize,
    read: usize,
    /// Bytes of all submissions that are kept.
    kept_bytes: u64,
    pub(super) strays: Vec<Stray>,
    unknown_keys: BTreeMap<String, UnknownKey>,
    /// A directory in the directory of predictions that has predictions itself.
    pub(super) nested: Option<PathBuf>,
    /// The first prediction without content, and how many follow.
    pub(super) contentless: Option<Contentless>,
}

impl<'a> Collector<'a> {
    pub(super) fn new(path: &'a Path, selection: Selection<'a>, several: Several) -> Self {
        Self {
            path,
            selection,
            known: selection.known.iter().map(|task| (task.id.as_str(), task)).collect(),
            selected: selection.selected.iter().map(|task| task.id.as_str()).collect(),
            several,
            all: BTreeMap::new(),
            unknown: Vec::new(),
            repeated: 0,
            read: 0,
            kept_bytes: 0,
            strays: Vec::new(),
            unknown_keys: BTreeMap::new(),
            nested: None,
            contentless: None,
        }
    }

    pub(super) fn task(&self, id: &str) -> Option<&'a Task> {
        self.known.get(id).copied()
    }

    /// Tells whether all predictions so far are for unknown tasks.
    pub(super) fn knows_none(&self) -> bool {
        self.all.is_empty()
    }

    /// Notes a key that is not read. `lacks` tells whether its object lacks a known key.
    pub(super) fn unknown_key(&mut self, key: &str, place: &Place, lacks: impl Fn(&str) -> bool) {
        if self.unknown_keys.len() < MOST_UNKNOWN_KEYS && !self.unknown_keys.contains_key(key) {
            let found = UnknownKey { key: shown(key), place: place.clone(), meant: nearest(key, lacks) };
            self.unknown_keys.insert(key.to_owned(), found);
        }
    }

    pub(super) fn add(
        &mut self,
        id: &str,
        model: Option<&str>,
        prediction: Prediction,
    ) -> Result<(), PredictionsError> {
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
        if let (Several::Repetitions, Some(first)) = (self.several, self.all.get(&key).and_then(|all| all.first())) {
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
        self.kept_bytes += prediction.content.bytes().len() as u64;
        if self.kept_bytes > MOST_FILE_BYTES {
            let (found, most) = ("more bytes".to_owned(), format!("{MOST_FILE_BYTES}"));
            return Err(too_large(self.path, found, most));
        }
        let place = prediction.place.clone();
        let samples = self.all.entry(key).or_default();
        samples.push(prediction);
        if samples.len() > MOST_SAMPLES {
            let reason = format!("has more than {MOST_SAMPLES} samples for the task {}", task.id);
            return Err(field(&place, "model_name_or_path", reason));
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Predictions, PredictionsError> {
        if let Some(Contentless { place, unknown, others }) = self.contentless {
            return Err(PredictionsError::NoContent { place, unknown, others });
        }
        if self.read == 0 {
            return Err(PredictionsError::Nothing { path: self.path.to_owned(), file: None });
        }
        if let (true, Some(first)) = (self.all.is_empty(), self.unknown.first()) {
            return Err(PredictionsError::Unmatched {
                place: first.place.clone(),
                id: first.id.clone(),
                nearest: nearest_id(&self.known, &first.id).map(str::to_owned),
                nested: self.nested,
                others: self.unknown.len() - 1,
            });
        }
        let mut predictions = Predictions {
            samples: samples(&self.all),
            unknown: self.unknown,
            repeated: self.repeated,
            strays: self.strays,
            unknown_keys: self.unknown_keys.into_values().collect(),
            ..Predictions::default()
        };
        predictions.unknown.sort();
        let models: BTreeSet<&str> = self.all.keys().map(|(model, _)| model.as_str()).collect();
        let found = models.len() + predictions.samples.len();
        if found > MOST_MODELS {
            return Err(too_large(self.path, format!("{found} models and samples"), MOST_MODELS.to_string()));
        }
        for (name, model) in &predictions.samples {
            if let Some(place) = first_place(&self.all, name) {
                return Err(field(&place, "model_name_or_path", format!("is the name of a sample of `{model}`")));
            }
            predictions.models.entry(name.clone()).or_default();
        }
        let sampled: BTreeSet<String> = predictions.samples.values().cloned().collect();
        // A model without predictions for known tasks is scored all the same, with every task missing.
        for unknown in predictions.unknown.iter().filter(|unknown| !sampled.contains(&unknown.model)) {
            predictions.models.entry(unknown.model.clone()).or_default();
        }
        for ((model, task), samples) in self.all {
            for (index, prediction) in samples.into_iter().enumerate() {
                let name = if sampled.contains(&model) { sample_name(&model, index + 1) } else { model.clone() };
                let tasks = predictions.models.entry(name).or_default();
                if self.selected.contains(task.as_str()) {
                    tasks.insert(task.clone(), prediction);
                } else {
                    predictions.not_selected += 1;
                }
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

/// Returns the imported task's id that is most like an unknown one.
fn nearest_id<'a>(known: &BTreeMap<&'a str, &'a Task>, id: &str) -> Option<&'a str> {
    let id = id.to_lowercase();
    let likeness = |known: &str| strsim::normalized_damerau_levenshtein(&id, &known.to_lowercase());
    let alike = known.keys().map(|known| (likeness(known), *known)).filter(|(like, _)| *like >= ALIKE);
    alike.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, known)| known)
}

/// Returns the original model of each sample, for models with several samples of a task.
fn samples(all: &Collected) -> BTreeMap<String, String> {
    let mut most: BTreeMap<&str, usize> = BTreeMap::new();
    for ((model, _), samples) in all {
        let number = most.entry(model).or_default();
        *number = samples.len().max(*number);
    }
    let several = most.into_iter().filter(|(_, number)| *number > 1);
    several
        .flat_map(|(model, number)| (1..=number).map(|sample| (sample_name(model, sample), model.to_owned())))
        .collect()
}

/// Returns the place of a model's first prediction.
fn first_place(all: &Collected, model: &str) -> Option<Place> {
    let of_model = all.iter().filter(|((name, _), _)| name == model);
    of_model.flat_map(|(_, samples)| samples).map(|prediction| prediction.place.clone()).min()
}

/// Returns the name under which a model's sample is scored, counted from 1.
fn sample_name(model: &str, sample: usize) -> String {
    format!("{model} (sample {sample})")
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

pub(super) fn field(place: &Place, field: &'static str, reason: String) -> PredictionsError {
    PredictionsError::Field { place: place.clone(), field, reason }
}
