//! Joins the inputs of shards of a scoring run.

use crate::execution::run::inputs::ShardInputs;
use crate::execution::run::merge::{Joining, MergeError};
use crate::execution::scoring::inputs::ScoreInputs;
use crate::task::TaskId;

impl ScoreInputs {
    /// Adds the inputs of another shard.
    ///
    /// # Errors
    /// [`MergeError::Foreign`].
    pub fn join(&mut self, other: Self, joining: &Joining<'_>) -> Result<(), MergeError> {
        joining.same("seeds", &self.seed, &other.seed)?;
        joining.same("predictions for unknown tasks", &self.unknown, &other.unknown)?;
        joining.same(
            "numbers of predictions",
            &(self.not_selected, self.repeated),
            &(other.not_selected, other.repeated),
        )?;
        // A shard without submissions measures nothing, whatever was asked for.
        match (self.run.tools.is_some(), other.run.tools.is_some()) {
            (true, true) => {
                let measured = |inputs: &Self| (inputs.coverage, inputs.mutation, inputs.controls);
                joining.same("measurements", &measured(self), &measured(&other))?;
            }
            (false, true) => {
                (self.coverage, self.mutation, self.controls) = (other.coverage, other.mutation, other.controls);
            }
            (_, false) => {}
        }
        joining.by_repository("development kits", &mut self.jdks, other.jdks)?;
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
        let at = |task: &TaskId| self.run.tasks.iter().position(|known| known.id == *task);
        for model in self.models.values_mut() {
            model.missing.sort_by_key(at);
        }
        shard
    }
}
