//! Collects failures of repositories, so that a command can continue with the others.

use std::pin::pin;

use futures_util::{StreamExt as _, stream};
use tokio::sync::Semaphore;

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

    /// Works on at most `most` repositories at once, and returns the results in their order. A failure of one does not stop
    /// the others; only an interrupt does.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) async fn at_once<'i, I, T>(
        &mut self,
        most: usize,
        items: impl IntoIterator<Item = (&'i RepositoryName, I)>,
        work: impl AsyncFn(&'i RepositoryName, I) -> Result<T, CommandError>,
    ) -> Result<Vec<T>, CommandError> {
        let free = Semaphore::new(most);
        let (context, work, free) = (self.context, &work, &free);
        let each = items.into_iter().map(move |(repository, item)| async move {
            // The semaphore is never closed.
            let _one = free.acquire().await;
            (repository, context.until_interrupted(work(repository, item)).await)
        });
        // A result that waits for its turn takes no place of another repository.
        let mut each = pin!(stream::iter(each).buffered(usize::MAX));
        let mut all = Vec::new();
        while let Some((repository, done)) = each.next().await {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::Barrier;

    use super::*;
    use crate::application::context::tests::offline;
    use crate::event::EventSink;
    use crate::umask::Umask;

    #[tokio::test]
    async fn repositories_side_by_side_have_their_results_in_order_and_a_failure_stops_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let context = Context::new(offline(directory.path()), EventSink::none(), Umask::take());
        let names: Vec<RepositoryName> =
            ["o/a", "o/b", "o/c", "o/d"].map(|name| name.parse::<RepositoryName>().unwrap()).into();
        let mut failures = Failures::new(names.len(), &context);
        // Each pair waits for its other one.
        let pairs = [Barrier::new(2), Barrier::new(2)];
        let items = names.iter().enumerate().map(|(number, name)| (name, number));
        let work = async |_: &RepositoryName, number: usize| {
            pairs[number / 2].wait().await;
            match number {
                1 => Err(CommandError::CheckFailed { summary: "b".to_owned() }),
                number => Ok(number),
            }
        };
        let done = tokio::time::timeout(Duration::from_secs(60), failures.at_once(2, items, work)).await;
        assert_eq!(done.expect("two are worked on at once").unwrap(), [0, 2, 3]);
        assert!(!failures.are_all());
        let verdict = failures.settle("tried", Ok(())).unwrap_err();
        assert!(matches!(verdict, CommandError::Repositories { failed: 1, total: 4, .. }), "{verdict:?}");
    }

    #[tokio::test]
    async fn a_result_that_waits_for_its_turn_takes_no_place_of_another_repository() {
        let directory = tempfile::tempdir().unwrap();
        let context = Context::new(offline(directory.path()), EventSink::none(), Umask::take());
        let names: Vec<RepositoryName> = ["o/a", "o/b", "o/c"].map(|name| name.parse().unwrap()).into();
        let mut failures = Failures::new(names.len(), &context);
        // The first and the last wait for each other, and the second ends before the last begins.
        let both = Barrier::new(2);
        let items = names.iter().enumerate().map(|(number, name)| (name, number));
        let work = async |_: &RepositoryName, number: usize| {
            if number != 1 {
                both.wait().await;
            }
            Ok(number)
        };
        let done = tokio::time::timeout(Duration::from_secs(60), failures.at_once(2, items, work)).await;
        assert_eq!(done.expect("the last has a place").unwrap(), [0, 1, 2]);
    }
}
