//! Collects failures of repositories, so that a command can continue with the others.

use super::Context;
use crate::error::{CommandError, ExitStatus, FailedRepository};
use crate::task::RepositoryName;

/// The results for the repositories that did not fail.
pub struct Partial<T> {
    /// The results, which the caller writes first.
    pub results: T,
    /// The command's end: its own result, or what failed for which repositories.
    pub verdict: Result<(), CommandError>,
}

/// The failures so far.
pub(super) struct Failures<'a> {
    context: &'a Context,
    /// Number of repositories.
    total: usize,
    rows: Vec<FailedRepository>,
    worst: Option<CommandError>,
}

impl<'a> Failures<'a> {
    pub(super) fn new(total: usize, context: &'a Context) -> Self {
        Self { context, total, rows: Vec::new(), worst: None }
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
        self.record(repository, error);
        Ok(None)
    }

    /// Records a failure that the command reports itself.
    pub(super) fn record(&mut self, repository: &RepositoryName, error: CommandError) {
        self.rows.push(FailedRepository::of(repository.as_str(), &error));
        self.worst = Some(match self.worst.take() {
            Some(worst) if severity(&worst) >= severity(&error) => worst,
            _ => error,
        });
    }

    /// Tells whether nothing is left to work on.
    pub(super) fn are_all(&self) -> bool {
        self.rows.len() == self.total
    }

    /// Ends with an error if something failed. `done` is the participle for its message, such as `locked`; `own` is the
    /// command's result for the other repositories. Of several errors the most severe one decides the exit code.
    ///
    /// # Errors
    /// [`CommandError::Repositories`], the error of the only repository, or `own`.
    pub(super) fn settle(self, done: &'static str, own: Result<(), CommandError>) -> Result<(), CommandError> {
        let Self { total, rows, worst, .. } = self;
        let Some(worst) = worst else { return own };
        if total == 1 {
            return Err(worst);
        }
        let failed = rows.len();
        let worst = match own {
            Err(own) if severity(&own) > severity(&worst) => own,
            _ => worst,
        };
        Err(CommandError::Repositories { failed, total, done, worst: Box::new(worst), rows })
    }
}

/// Returns the rank of an error.
fn severity(error: &CommandError) -> u8 {
    error.exit_status().severity()
}
