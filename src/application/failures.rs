//! Collects failures of repositories, so that a command can continue with the others.

use super::Context;
use crate::error::{CommandError, ExitStatus};
use crate::task::RepositoryName;

/// The failures so far.
pub(super) struct Failures<'a> {
    context: &'a Context,
    /// Number of repositories.
    total: usize,
    failed: usize,
    worst: Option<CommandError>,
}

impl<'a> Failures<'a> {
    pub(super) fn new(total: usize, context: &'a Context) -> Self {
        Self { context, total, failed: 0, worst: None }
    }

    /// Works on one repository after another and returns the results. A failure of one does not stop the others; only
    /// an interrupt does.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) async fn each<'i, I, T>(
        &mut self,
        items: impl IntoIterator<Item = (&'i RepositoryName, I)>,
        mut work: impl AsyncFnMut(&'i RepositoryName, I) -> Result<T, CommandError>,
    ) -> Result<Vec<T>, CommandError> {
        let mut all = Vec::new();
        for (repository, item) in items {
            let done = self.context.until_interrupted(work(repository, item)).await;
            all.extend(self.unless(repository, done)?);
        }
        Ok(all)
    }

    /// Returns a repository's result; `None` if it failed. The failure is reported and recorded.
    ///
    /// # Errors
    /// An interrupt, after which the caller stops.
    pub(super) fn unless<T>(
        &mut self,
        repository: &RepositoryName,
        done: Result<T, CommandError>,
    ) -> Result<Option<T>, CommandError> {
        let error = match done {
            Ok(done) => return Ok(Some(done)),
            Err(error) if error.exit_status() == ExitStatus::Interrupted => return Err(error),
            Err(error) => error,
        };
        self.failed += 1;
        // The error of a single repository becomes the command's own error.
        if self.total > 1 {
            let mut text = format!("{repository} is left out: {error}");
            for cause in error.causes() {
                text.push_str(&format!(": {cause}"));
            }
            if let Some(hint) = error.hint() {
                text.push_str(&format!(" (hint: {hint})"));
            }
            self.context.events.warning(text);
        }
        if self.worst.as_ref().is_none_or(|worst| severity(worst) < severity(&error)) {
            self.worst = Some(error);
        }
        Ok(None)
    }

    /// Ends with an error if something failed. `done` is the participle for its message, such as `locked`.
    ///
    /// # Errors
    /// [`CommandError::Repositories`], or the error of the only repository.
    pub(super) fn settle(self, done: &'static str) -> Result<(), CommandError> {
        let Self { total, failed, worst, .. } = self;
        match worst {
            None => Ok(()),
            Some(worst) if total == 1 => Err(worst),
            Some(worst) => Err(CommandError::Repositories { failed, total, done, worst: Box::new(worst) }),
        }
    }
}

/// Returns the rank of an error. Faults of one repository rank below faults that affect all.
fn severity(error: &CommandError) -> u8 {
    match error.exit_status() {
        ExitStatus::Fine => 0,
        ExitStatus::CheckFailed => 1,
        ExitStatus::Usage => 2,
        ExitStatus::BadInput => 3,
        ExitStatus::Origin => 4,
        ExitStatus::Mismatch => 5,
        ExitStatus::Engine => 6,
        ExitStatus::Infrastructure => 7,
        ExitStatus::Interrupted => 8,
    }
}
