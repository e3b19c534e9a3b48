//! Joins the inputs of shards of a scoring run.

use std::collections::BTreeMap;

use crate::execution::run::inputs::ShardInputs;
use crate::execution::run::merge::{Joining, MergeError};
use crate::execution::scoring::inputs::ScoreInputs;
use crate::submission::predictions::UnknownTask;
use crate::task::TaskId;

impl ScoreInputs {
    /// Adds the inputs of another shard.
    ///
    /// # Errors
    /// [`MergeError::Foreign`].
    pub fn join(&mut self, other: Self, joining: &Joining<'_>) -> Result<(), MergeError> {
        joining.same("seeds", &self.seed, &other.seed)?;
        // Where the file of predictions lies may differ between machines.
        let unknown = |inputs: &Self| -> Vec<(String, String, Option<u64>)> {
            let of = |one: &UnknownTask| (one.id.clone(), one.model.clone(), one.place.line);
            inputs.unknown.iter().map(of).collect()
        };
        joining.same("predictions for unknown tasks", &unknown(self), &unknown(&other))?;
        joining.same(
            "numbers of predictions",
            &(self.not_selected, self.repeated),
            &(other.not_selected, other.repeated),
        )?;
        let measured = |inputs: &Self| (inputs.coverage, inputs.mutation, inputs.controls);
        joining.same("measurements", &measured(self), &measured(&other))?;
        joining.by_repository("development kits", &mut self.jdks, other.jdks)?;
        joining.same("samples", &self.samples, &other.samples)?;
        joining.same("models", &self.models.keys().collect::<Vec<_>>(), &other.models.keys().collect())?;
        for (model, inputs) in other.models {
            let own = self.models.entry(model).or_default();
            own.submissions.extend(inputs.submissions);
            own.missing.extend(inputs.missing);
        }
        self.run.join(other.run, joining)
    }

    /// Ends the joining: brings everything into the order of a whole run, and makes the inputs those of one.
    pub fn whole(&mut self) -> Option<ShardInputs> {
        let shard = self.run.whole();
        let at: BTreeMap<&TaskId, usize> = self.run.tasks.iter().enumerate().map(|(at, task)| (&task.id, at)).collect();
        for model in self.models.values_mut() {
            model.missing.sort_by_key(|task| at.get(task).copied());
        }
        shard
    }
}
