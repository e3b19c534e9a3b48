//! Plans a scoring run on several nodes from recorded costs.

use std::num::NonZeroU32;
use std::path::Path;

use super::Context;
use super::selection;
use super::shard::costs;
use crate::error::CommandError;
use crate::report::plan::{self, Plan, Workload};
use crate::task::selector::Selector;

/// Returns the plan of the selected tasks for these numbers of nodes.
///
/// # Errors
/// [`CommandError`] of selections; [`CostsError`](super::shard::CostsError).
pub fn plan(
    selector: &Selector,
    recorded: &Path,
    workload: &Workload,
    nodes: &[NonZeroU32],
    context: &Context,
) -> Result<Plan, CommandError> {
    let tasks = selection::tasks(selector, context)?;
    let (costs, _) = costs(recorded)?;
    let mut nodes = nodes.to_vec();
    nodes.sort_unstable();
    nodes.dedup();
    Ok(plan::plan(&tasks, &costs, workload, &nodes))
}
