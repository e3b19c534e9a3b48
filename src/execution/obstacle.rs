//! Tasks that can't be executed for a reason that is known before any container starts.

use std::collections::BTreeMap;

use super::fault::Fault;
use crate::outcome::InfraReason;
use crate::task::{RepositoryName, Side, Task, TaskId};

/// Why repositories, and sides of tasks, can't be executed.
#[derive(Clone, Debug, Default)]
pub struct Obstacles {
    repositories: BTreeMap<RepositoryName, (InfraReason, String)>,
    sides: BTreeMap<(TaskId, Side), String>,
}

impl Obstacles {
    /// Notes that a repository has no image, or no sources.
    pub fn of_repository(&mut self, repository: RepositoryName, reason: InfraReason, cause: String) {
        self.repositories.insert(repository, (reason, cause));
    }

    /// Notes that the build files of a task's side lack an artifact.
    pub fn unresolved(&mut self, task: TaskId, side: Side, artifact: String) {
        self.sides.insert((task, side), artifact);
    }

    /// Returns the fault of every execution of a task on a side's code; `None` if nothing is in the way.
    pub fn fault(&self, task: &Task, code: Side) -> Option<Fault> {
        let of_side = self.sides.get(&(task.id.clone(), code)).map(|cause| (InfraReason::Resolution, cause));
        let of_repository = || self.repositories.get(&task.repository).map(|(reason, cause)| (*reason, cause));
        let (reason, detail) = of_side.or_else(of_repository)?;
        Some(Fault { reason, detail: detail.clone() })
    }

    /// Returns the fault of a repository without an image.
    pub(super) fn without_image(&self, task: &Task, code: Side) -> Fault {
        let none = || Fault { reason: InfraReason::Image, detail: "the repository has no image".to_owned() };
        self.fault(task, code).unwrap_or_else(none)
    }
}
