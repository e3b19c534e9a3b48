//! Jobs of a scoring run: one cell of one submission each.

use std::collections::BTreeMap;
use std::path::Path;

use super::focal::TaskFocal;
use super::run_mutants::RunMutants;
use crate::digest::Digest;
use crate::execution::executor::Executor;
use crate::execution::mutation::launches::Passing;
use crate::task::{MethodId, RepositoryName, Side, Task};

/// One cell of one submission that is not done.
pub(super) struct Job<'a> {
    pub(super) model: &'a str,
    pub(super) task: &'a Task,
    pub(super) code: Side,
    pub(super) file: Digest,
    /// Methods to launch.
    pub(super) methods: Vec<MethodId>,
    /// Methods that passed and of which no coverage is known.
    pub(super) cover: Vec<MethodId>,
    /// Methods that passed and of which nothing is known on mutants.
    pub(super) mutate: Vec<Passing>,
    /// The task's focal methods.
    pub(super) focal: TaskFocal,
    /// Protections that the engine can't give. What is kept was measured without the same ones: keys name them.
    pub(super) isolation_missing: &'a [String],
}

impl Job<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.methods.is_empty() && self.cover.is_empty() && self.mutate.is_empty()
    }
}

/// What is left to do of a job, after what was done before.
#[derive(Default)]
pub(super) struct Todo {
    pub(super) methods: Vec<MethodId>,
    pub(super) cover: Vec<MethodId>,
    pub(super) mutate: Vec<Passing>,
}

impl Todo {
    pub(super) fn is_empty(&self) -> bool {
        self.methods.is_empty() && self.cover.is_empty() && self.mutate.is_empty()
    }
}

/// What the jobs of a run share.
pub(super) struct Shared<'a> {
    /// Executors of models and repositories.
    pub(super) executors: BTreeMap<(&'a str, &'a RepositoryName), Executor>,
    /// Where test files are.
    pub(super) submissions: &'a Path,
    /// The mutants that all tests meet.
    pub(super) mutants: RunMutants,
}
