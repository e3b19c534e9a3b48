//! What decides the results of a scoring run: `inputs.json`. It has everything that a validation's has, so that runs can be
//! listed alike.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::execution::run::inputs::RunInputs;
use crate::submission::ContentKind;
use crate::submission::predictions::{Predictions, UnknownTask};
use crate::task::{RepositoryName, TaskId};

/// Equal inputs may continue an unfinished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoreInputs {
    /// Tasks, images, limits and repeats.
    #[serde(flatten)]
    pub run: RunInputs,
    /// Java development kits of the repositories.
    pub jdks: BTreeMap<RepositoryName, u32>,
    /// Seed of the order of executions.
    pub seed: u64,
    /// Whether coverage is measured.
    pub coverage: bool,
    /// Whether mutants are made and run.
    pub mutation: bool,
    /// What was handed in, by model.
    pub models: BTreeMap<String, ModelInputs>,
    /// Predictions for tasks that are not known.
    pub unknown: Vec<UnknownTask>,
    /// Predictions for tasks that were not selected.
    pub not_selected: usize,
    /// Predictions that were there before with equal bytes.
    pub repeated: usize,
}

/// What one model handed in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelInputs {
    /// Its submissions for selected tasks.
    pub submissions: BTreeMap<TaskId, SubmissionInput>,
    /// Selected tasks that it has none for.
    pub missing: Vec<TaskId>,
}

/// One submission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubmissionInput {
    /// In which form it was handed in.
    pub kind: ContentKind,
    /// Digest of its bytes.
    pub digest: Digest,
    /// What making it cost, in US dollars.
    pub cost_usd: Option<f64>,
    /// Tokens used for it.
    pub tokens: Option<u64>,
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
