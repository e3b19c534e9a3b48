//! The keys of prepared revisions, found from sources alone.

use crate::digest::Digest;
use crate::execution::build::prepared::{self, RevisionInput};
use crate::execution::container::limits::ExecutionLimits;
use crate::execution::container::{RepositoryImage, ToolJars};
use crate::execution::identity::identity;
use crate::execution::trees::Trees;
use crate::task::{Cell, Task};

/// Returns the key of a cell's prepared revision; `None` for a revision without the file's module, which is not built.
///
/// # Errors
/// The reason for which the sources can't be read.
pub(super) fn prepared_key(
    (task, cell): (&Task, Cell),
    trees: &Trees,
    image: &RepositoryImage,
    (jars, limits): (&ToolJars, &ExecutionLimits),
) -> Result<Option<Digest>, String> {
    let facts = trees.facts(task, cell)?;
    let key = |module| {
        let revision = RevisionInput { tree: facts.tree, module };
        prepared::key_by((jars, identity(), limits), image, &revision)
    };
    Ok(facts.module.map(key))
}
