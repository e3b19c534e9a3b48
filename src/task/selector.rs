//! Selects the tasks of a command: names and globs, tracks, dates, lists in files.

use std::fmt;

use super::{RepositoryName, Task, TaskId, Track};
use crate::error::{ExitStatus, Failure};

/// Stands in tables for the middle of a long id.
const ELLIPSIS: char = '\u{2026}';

/// A choice of tasks. The default is all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// Repositories (`owner/name`, or the name alone) and task ids; `*` stands for any text, `?` for any character.
    /// Empty selects all. Each pattern must match at least one task.
    pub patterns: Vec<String>,
    /// Exact task ids, as read from a file; chosen beside the patterns.
    pub task_ids: Vec<String>,
    /// Only this track.
    pub track: Option<Track>,
    /// Only tasks whose rev2 is of this day or later.
    pub since: Option<jiff::civil::Date>,
    /// Only tasks whose rev2 is of this day or earlier.
    pub until: Option<jiff::civil::Date>,
    /// At most this many tasks, the first ones by repository and id.
    pub limit: Option<usize>,
}

/// Why no task could be selected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// No tasks are imported.
    #[error("there are no tasks yet")]
    NothingImported,
    /// A name or glob matches nothing.
    #[error("there is no {kind} `{name}`")]
    Unknown {
        /// The kind of name.
        kind: NameKind,
        /// The name.
        name: String,
        /// The most similar known name, if one is similar.
        nearest: Option<String>,
    },
    /// The names match, but tracks, dates and limits exclude every task.
    #[error("no task is left by the given track, dates and limit")]
    NothingLeft,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// The name has a slash, or is in a place for repositories only.
    Repository,
    /// The name comes from a list of ids.
    Task,
    /// It may be either.
    Either,
}

impl fmt::Display for NameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Repository => "repository",
            Self::Task => "task",
            Self::Either => "task or repository",
        })
    }
}

impl Failure for SelectorError {
    fn exit_status(&self) -> ExitStatus {
        ExitStatus::Usage
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NothingImported => "import the benchmark's data with `testevo-sandbox import DATA`".to_owned(),
            Self::Unknown { nearest: Some(nearest), .. } => format!("did you mean `{nearest}`?"),
            Self::Unknown { nearest: None, .. } => "`testevo-sandbox tasks list` shows what there is".to_owned(),
            Self::NothingLeft => "widen `--since`, `--until`, `--track` or `--limit`".to_owned(),
        })
    }
}

impl Selector {
    /// Returns the selector of one task by its id. The id may have lost its middle, as in a table.
    pub fn of_task(id: &str) -> Self {
        match id.contains(ELLIPSIS) {
            true => Self { patterns: vec![id.to_owned()], ..Self::default() },
            false => Self { task_ids: vec![id.to_owned()], ..Self::default() },
        }
    }

    /// Returns the patterns if the selector has no other criteria.
    pub fn only_patterns(&self) -> Option<&[String]> {
        let by_patterns = Self { patterns: self.patterns.clone(), ..Self::default() };
        (*self == by_patterns).then_some(self.patterns.as_slice())
    }

    /// Returns the selected tasks of `tasks`, in their order.
    ///
    /// # Errors
    /// [`SelectorError`], also for an empty selection.
    pub fn select<'a>(&self, tasks: &'a [Task]) -> Result<Vec<&'a Task>, SelectorError> {
        if tasks.is_empty() {
            return Err(SelectorError::NothingImported);
        }
        let chosen: Vec<&Task> = self
            .named(tasks, |task| (&task.repository, &task.id))?
            .into_iter()
            .filter(|task| self.track.is_none_or(|track| track == task.track))
            // Dates of the form YYYY-MM-DD sort as text.
            .filter(|task| self.since.is_none_or(|since| task.rev2_date >= since.to_string()))
            .filter(|task| self.until.is_none_or(|until| task.rev2_date <= until.to_string()))
            .take(self.limit.unwrap_or(usize::MAX))
            .collect();
        if chosen.is_empty() { Err(SelectorError::NothingLeft) } else { Ok(chosen) }
    }

    /// Returns the items whose repository or task the selector names, in their order; all where it names none.
    ///
    /// # Errors
    /// [`SelectorError::Unknown`].
    pub fn named<'a, T>(
        &self,
        items: &'a [T],
        of: impl Fn(&'a T) -> (&'a RepositoryName, &'a TaskId),
    ) -> Result<Vec<&'a T>, SelectorError> {
        let names: Vec<(&RepositoryName, &TaskId)> = items.iter().map(of).collect();
        for pattern in &self.patterns {
            if !names.iter().any(|name| fits(pattern, *name)) {
                let kind = if pattern.contains('/') { NameKind::Repository } else { NameKind::Either };
                return Err(unknown(kind, pattern, &names));
            }
        }
        for id in &self.task_ids {
            if !names.iter().any(|(_, task)| task.as_str() == id) {
                return Err(unknown(NameKind::Task, id, &names));
            }
        }
        let all = self.patterns.is_empty() && self.task_ids.is_empty();
        let is_named = |(repository, task): (&RepositoryName, &TaskId)| {
            all || self.patterns.iter().any(|pattern| fits(pattern, (repository, task)))
                || self.task_ids.iter().any(|id| id == task.as_str())
        };
        Ok(items.iter().zip(names).filter(|(_, name)| is_named(*name)).map(|(item, _)| item).collect())
    }

    /// Returns the repositories of the selected tasks, sorted, each once.
    ///
    /// # Errors
    /// As [`Selector::select`].
    pub fn repositories(&self, tasks: &[Task]) -> Result<Vec<RepositoryName>, SelectorError> {
        let mut names: Vec<RepositoryName> =
            self.select(tasks)?.into_iter().map(|task| task.repository.clone()).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }
}

/// Returns at most `most` of the tasks (sorted by repository): in proportion to each repository's tasks, and evenly
/// spaced within each.
pub fn spread(tasks: Vec<Task>, most: usize) -> Vec<Task> {
    let mut groups: Vec<(Vec<Task>, usize)> = Vec::new();
    for task in tasks {
        match groups.last_mut() {
            Some((group, _)) if group[0].repository == task.repository => group.push(task),
            _ => groups.push((vec![task], 0)),
        }
    }
    let mut left = most;
    let mut dealt = true;
    while left > 0 && dealt {
        dealt = false;
        for (_, share) in groups.iter_mut().filter(|(group, share)| *share < group.len()).take(left) {
            (*share, dealt) = (*share + 1, true);
            left -= 1;
        }
    }
    let chosen = groups.into_iter().flat_map(|(group, share)| {
        let places: Vec<usize> = (0..share).map(|number| number * group.len() / share).collect();
        places.into_iter().map(move |place| group[place].clone())
    });
    chosen.collect()
}

fn fits(pattern: &str, (repository, task): (&RepositoryName, &TaskId)) -> bool {
    repository_fits(pattern, repository) || !pattern.contains('/') && glob_fits(pattern, task.as_str())
}

/// Returns the items whose repositories any of the patterns matches; all of them without patterns.
///
/// # Errors
/// The first pattern that matches no item's repository.
pub fn choose<T>(
    patterns: &[String],
    mut items: Vec<T>,
    repository: impl Fn(&T) -> &RepositoryName,
) -> Result<Vec<T>, String> {
    let fits = |pattern: &String, item: &T| repository_fits(pattern, repository(item));
    if let Some(pattern) = patterns.iter().find(|pattern| !items.iter().any(|item| fits(pattern, item))) {
        return Err(pattern.clone());
    }
    items.retain(|item| patterns.is_empty() || patterns.iter().any(|pattern| fits(pattern, item)));
    Ok(items)
}

/// Tells whether a name or glob matches the repository: `owner/name`, or `name` alone.
fn repository_fits(pattern: &str, repository: &RepositoryName) -> bool {
    glob_fits(pattern, repository.as_str()) || (!pattern.contains('/') && glob_fits(pattern, repository.name()))
}

/// Tells whether a pattern with `*` (any text) and `?` (any character) matches `text`. An ellipsis is a star, so that ids
/// of tables fit.
fn glob_fits(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().map(|c| if c == ELLIPSIS { '*' } else { c }).collect();
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    // The last star, and the position in the text at that time. After a mismatch the star takes one more character.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == '?' || c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    t = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

fn unknown(kind: NameKind, name: &str, known: &[(&RepositoryName, &TaskId)]) -> SelectorError {
    let repositories = known.iter().map(|(repository, _)| (repository.as_str(), repository.as_str()));
    let names = known.iter().map(|(repository, _)| (repository.name(), repository.as_str()));
    let ids = known.iter().map(|(_, task)| (task.as_str(), task.as_str()));
    let candidates: Vec<(&str, &str)> = match kind {
        NameKind::Repository => repositories.collect(),
        NameKind::Task => ids.collect(),
        NameKind::Either => repositories.chain(names).chain(ids).collect(),
    };
    // Comparison is quadratic in the lengths, and a name from outside may be long.
    let short: String = name.chars().take(200).collect();
    let short = short.to_lowercase();
    let nearest = candidates
        .into_iter()
        .map(|(like, meant)| (strsim::normalized_damerau_levenshtein(&short, &like.to_lowercase()), meant))
        .filter(|(likeness, _)| *likeness >= 0.6)
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(a.1)))
        .map(|(_, meant)| meant.to_owned());
    SelectorError::Unknown { kind, name: name.chars().take(200).collect(), nearest }
}

#[cfg(test)]
mod tests;
