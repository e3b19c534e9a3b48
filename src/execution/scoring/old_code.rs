//! Old code's classes, whose bodies focal methods get under a control.

use std::sync::Arc;

use super::job::Job;
use super::{Scoring, blocking};
use crate::execution::build::prepared::RevisionInput;
use crate::execution::container::RepositoryImage;
use crate::execution::control::OldCode;
use crate::execution::executor::Executor;
use crate::execution::fault::{Fault, NoAnswer, answered};
use crate::task::{Side, Task, Track};

/// Why the reference path has no such control.
const DIRECT_ONLY: &str = "only the direct path keeps old code's classes";

/// Old code's revision, or why it is not looked at.
pub(super) type OldRevision = Result<RevisionInput, NoAnswer>;

impl Scoring<'_> {
    /// Returns the revision of old code whose bodies focal methods get under a control.
    pub(super) async fn old_revision(&self, job: &Job<'_>) -> std::io::Result<OldRevision> {
        match job.task.track {
            _ if !self.controls_new(job) => return Ok(Err(NoAnswer::never("there are no controls"))),
            Track::TestUpdate => return Ok(Err(NoAnswer::never("updated tests need not fail on old code"))),
            Track::TestGeneration if self.direct.is_none() => {
                return Ok(Err(NoAnswer::never(DIRECT_ONLY)));
            }
            Track::TestGeneration => {}
        }
        let (trees, task) = (Arc::clone(&self.trees), job.task.clone());
        let described = blocking(move || trees.describe(&task, Side::Old, Vec::new())).await?;
        Ok(match described {
            Ok(facts) => match facts.module {
                Some(module) => Ok(RevisionInput { tree: facts.tree, module }),
                None => Err(NoAnswer::never("the test file lies in no module of old code")),
            },
            Err(error) => Err(NoAnswer::fault(Fault::source(&error.to_string()).detail)),
        })
    }

    /// Returns old code's classes, or why there are none.
    pub(super) async fn old_code(
        &self,
        (executor, image): (&Executor, &RepositoryImage),
        task: &Task,
        revision: &OldRevision,
    ) -> std::io::Result<OldCode> {
        let tree = match (revision, &self.direct) {
            (Ok(revision), Some(direct)) => {
                let (trees, task) = (Arc::clone(&self.revisions), task.clone());
                let archive = move || trees.revision(&task, Side::Old);
                answered(direct.classes(executor, image, revision, archive).await)?.map(Arc::new)
            }
            (Err(reason), _) => Err(reason.clone()),
            (Ok(_), None) => Err(NoAnswer::never(DIRECT_ONLY)),
        };
        Ok(OldCode { tree })
    }
}
