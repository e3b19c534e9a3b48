//! The inputs that decide a scoring run's results: `inputs.json`. It has all fields of a validation's inputs, so that
//! one reader lists both kinds of runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::execution::run::inputs::RunInputs;
use crate::submission::ContentKind;
use crate::submission::predictions::{Predictions, UnknownTask};
use crate::task::{RepositoryName, TaskId};

/// The inputs. An unfinished run can be continued only with equal inputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ScoreInputs {
    /// Tasks, images, limits and repeats.
    #[serde(flatten)]
    pub run: RunInputs,
    /// Java development kits of the repositories.
    pub jdks: BTreeMap<RepositoryName, u32>,
    /// Seed of the order of executions, and of the bytes of controls and mutants.
    pub seed: u64,
    /// Whether coverage is measured.
    pub coverage: bool,
    /// Whether mutants are made and run.
    pub mutation: bool,
    /// Whether methods that pass are launched under controls.
    #[serde(default)]
    pub controls: bool,
    /// Whether Markdown fences around submissions were removed before anything else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strip_fences: bool,
    /// Whose samples the models are that are samples of one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub samples: BTreeMap<String, String>,
    /// The submissions, by model.
    pub models: BTreeMap<String, ModelInputs>,
    /// Predictions for unknown tasks.
    pub unknown: Vec<UnknownTask>,
    /// Predictions for tasks that were not selected.
    pub not_selected: usize,
    /// Repeated predictions with equal bytes.
    pub repeated: usize,
}

/// The submissions of one model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ModelInputs {
    /// Its submissions for selected tasks.
    pub submissions: BTreeMap<TaskId, SubmissionInput>,
    /// Selected tasks without a submission.
    pub missing: Vec<TaskId>,
}

/// One submission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SubmissionInput {
    /// The form of the submission.
    pub kind: ContentKind,
    /// Digest of its bytes.
    pub digest: Digest,
    /// Cost of making it, in US dollars.
    pub cost_usd: Option<f64>,
    /// Tokens used for it.
    pub tokens: Option<u64>,
    /// Whether a Markdown fence around it was removed; the digest is of what was inside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fence_removed: bool,
}

impl ModelInputs {
    /// Returns the inputs of each model of some predictions.
    pub fn of(predictions: &Predictions) -> BTreeMap<String, Self> {
        let mut models = BTreeMap::new();
        for (model, tasks) in &predictions.models {
            let submissions = tasks
                .iter()
                .map(|(task, prediction)| {
                    let input = SubmissionInput {
                        kind: prediction.content.kind(),
                        digest: Digest::of(prediction.content.bytes()),
                        cost_usd: prediction.cost_usd,
                        tokens: prediction.tokens,
                        fence_removed: prediction.fence_removed,
                    };
                    (task.clone(), input)
                })
                .collect();
            let missing = predictions.missing.get(model).cloned().unwrap_or_default();
            models.insert(model.clone(), Self { submissions, missing });
        }
        models
    }
}
