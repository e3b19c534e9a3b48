//! A task's new code, in which texts replace the target file.

use std::sync::Arc;

use crate::execution::build::prepared::RevisionInput;
use crate::execution::container::RepositoryImage;
use crate::execution::direct::{Direct, Swap};
use crate::execution::executor::Executor;
use crate::execution::fault::answered;
use crate::execution::module::ModuleArguments;
use crate::execution::trees::Trees;
use crate::task::{Side, Task};

/// A task's new code, for compiling texts in the target file's place.
pub(super) struct NewCode<'a> {
    /// Writes the revision's tree.
    pub(super) trees: &'a Arc<Trees>,
    /// The task.
    pub(super) task: &'a Task,
    /// The revision's tree: [`RevisionTree::identity`](crate::workspace::RevisionTree::identity).
    pub(super) tree: &'a str,
    /// The target file's module.
    pub(super) module: &'a ModuleArguments,
}

/// Puts a text in the target file's place on new code and compiles it; `None` if only Maven can compile it.
pub(super) async fn swap(
    direct: &Direct,
    (executor, image): (&Executor, &RepositoryImage),
    on: &NewCode<'_>,
    text: &[u8],
) -> std::io::Result<Option<Swap>> {
    let input = RevisionInput { tree: on.tree.to_owned(), module: on.module.clone() };
    let (trees, task) = (Arc::clone(on.trees), on.task.clone());
    let archive = move || trees.revision(&task, Side::New);
    let swapped = async {
        let revision = direct.revision(executor, image, &input, archive).await?;
        let masked = direct.masked(executor, &revision, on.task.test_file.as_str()).await?;
        direct.swap(executor, image, &masked, text).await
    };
    Ok(answered(swapped.await)?.ok())
}
