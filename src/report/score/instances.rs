//! A run's tasks under keys of SWE-bench's run reports, for programs that read such reports.
//!
//! Only keys with the same meaning are here. SWE-bench resolves a task or does not, while each target method here has a
//! category of its own. A task counts as resolved if every target method is a Success.

use std::collections::BTreeMap;

use serde::Serialize;

use super::ScoredTask;
use crate::digest::Digest;
use crate::execution::scoring::inputs::SubmissionInput;
use crate::submission::ContentKind;
use crate::task::TaskId;

/// The selected tasks, each in exactly one of four lists: incomplete, empty, completed, error. Completed ones are resolved or
/// unresolved. Well-formed ones are completed or in error. All lists are sorted.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Instances {
    /// Selected tasks.
    pub total_instances: usize,
    /// How many of them have a prediction of the model.
    pub submitted_instances: usize,
    /// Ids of the submitted tasks.
    pub submitted_ids: Vec<TaskId>,
    /// Selected tasks without a submission.
    pub incomplete_instances: usize,
    /// Ids of the tasks without a submission.
    pub incomplete_ids: Vec<TaskId>,
    /// Number of predictions without a patch, or with an empty one.
    pub empty_patch_instances: usize,
    /// Ids of the tasks with an empty patch.
    pub empty_patch_ids: Vec<TaskId>,
    /// Number of submitted tasks with a test file whose target methods could all be judged.
    pub completed_instances: usize,
    /// Ids of the completed tasks.
    pub completed_ids: Vec<TaskId>,
    /// Number of completed tasks of which every target method is a Success.
    pub resolved_instances: usize,
    /// Ids of the resolved tasks.
    pub resolved_ids: Vec<TaskId>,
    /// Number of the other completed tasks.
    pub unresolved_instances: usize,
    /// Ids of the unresolved tasks.
    pub unresolved_ids: Vec<TaskId>,
    /// Number of submitted tasks whose submission came to a test file: it is there and fits. SWT-Bench calls their share
    /// well-formedness.
    pub well_formed_instances: usize,
    /// Ids of the well-formed tasks.
    pub well_formed_ids: Vec<TaskId>,
    /// Number of submitted tasks without such a test file, or with a method that is not judged.
    pub error_instances: usize,
    /// Ids of the tasks with an error.
    pub error_ids: Vec<TaskId>,
}

impl Instances {
    /// Returns the counts of the selected tasks in their order, given a model's submissions.
    pub(super) fn of(handed_in: &BTreeMap<TaskId, SubmissionInput>, tasks: &[ScoredTask]) -> Self {
        let mut found = Self { total_instances: tasks.len(), ..Self::default() };
        for scored in tasks {
            let id = &scored.task.id;
            let ids = match handed_in.get(id) {
                None => &mut found.incomplete_ids,
                Some(input) => {
                    found.submitted_ids.push(id.clone());
                    if !is_empty(input) && came_to_a_file(scored) {
                        found.well_formed_ids.push(id.clone());
                    }
                    match (is_empty(input), is_completed(scored)) {
                        (true, _) => &mut found.empty_patch_ids,
                        (false, true) => {
                            let is_resolved = scored.is_resolved() == Some(true);
                            let ids = if is_resolved { &mut found.resolved_ids } else { &mut found.unresolved_ids };
                            ids.push(id.clone());
                            &mut found.completed_ids
                        }
                        (false, false) => &mut found.error_ids,
                    }
                }
            };
            ids.push(id.clone());
        }
        found.submitted_instances = found.submitted_ids.len();
        found.incomplete_instances = found.incomplete_ids.len();
        found.empty_patch_instances = found.empty_patch_ids.len();
        found.completed_instances = found.completed_ids.len();
        found.resolved_instances = found.resolved_ids.len();
        found.unresolved_instances = found.unresolved_ids.len();
        found.well_formed_instances = found.well_formed_ids.len();
        found.error_instances = found.error_ids.len();
        found
    }
}

/// Tells whether a submission is empty. A patch that changes nothing is not empty.
fn is_empty(input: &SubmissionInput) -> bool {
    match input.kind {
        ContentKind::Nothing => true,
        ContentKind::Patch | ContentKind::File => input.digest == Digest::of(b""),
        // Their bytes are not stored, so their digest is meaningless.
        ContentKind::Gold | ContentKind::TooLarge => false,
    }
}

fn came_to_a_file(scored: &ScoredTask) -> bool {
    scored.submission.as_ref().is_some_and(|submission| submission.fault.is_none())
}

fn is_completed(scored: &ScoredTask) -> bool {
    came_to_a_file(scored) && scored.methods.iter().all(|method| method.verdict.paper_verdict.is_some())
}
