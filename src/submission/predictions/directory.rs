//! Reads a directory of one model's predictions. It has `<task id>.patch` or `.diff`, or `<task id>.java` with the test
//! file's whole text. Or it has `<task id>/` with the test file, at its path in the repository or by its name alone.
//!
//! Other entries are listed and not read. The directory's name is the model's. Links are never followed, because their
//! targets are not part of the directory; one that is named like a task is an error.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;

use super::collector::Collector;
use super::{MOST_PREDICTIONS, Place, Prediction, PredictionsError, Stray, StrayKind, too_large};
use crate::submission::{Content, MOST_SUBMISSION_BYTES};

/// The most entries of a directory below that are looked through.
const MOST_ENTRIES: usize = 1_000;

/// Reads all predictions of a directory.
pub(super) fn read(path: &Path, collector: &mut Collector<'_>) -> Result<(), PredictionsError> {
    let absolute = std::path::absolute(path)?;
    let model = absolute.file_name().map(|name| name.to_string_lossy().into_owned());
    let entries = entries(path, MOST_PREDICTIONS + 1)?;
    if entries.len() > MOST_PREDICTIONS {
        return Err(too_large(path, "more entries".to_owned(), format!("{MOST_PREDICTIONS}")));
    }
    let mut directories: Vec<PathBuf> = Vec::new();
    let mut handed_in = false;
    for entry in entries {
        let metadata = fs::symlink_metadata(&entry)?;
        let name = name(&entry);
        let (id, content) = match name.rsplit_once('.') {
            _ if metadata.is_dir() => {
                let content = test_file(&entry, &name, collector)?;
                directories.push(entry.clone());
                (name.as_str(), content)
            }
            Some((id, "patch" | "diff")) if metadata.is_file() => (id, bounded(&entry, Content::Patch)?),
            Some((id, "java")) if metadata.is_file() => (id, bounded(&entry, Content::File)?),
            // An entry that is named like a task is a prediction of which only the ending or the kind is wrong.
            _ if names_task(&name, collector) => {
                return Err(if metadata.is_file() { other_ending(&entry) } else { PredictionsError::Kind(entry) });
            }
            ending => {
                let kind = match ending {
                    _ if metadata.is_symlink() => StrayKind::Link,
                    _ if !metadata.is_file() => StrayKind::Special,
                    Some((_, "json" | "jsonl")) => StrayKind::Json,
                    _ => StrayKind::OtherName,
                };
                collector.strays.push(Stray { path: entry, kind });
                continue;
            }
        };
        handed_in |= content != Content::Nothing;
        let place = Place { path: entry.clone(), line: None };
        let prediction = Prediction { content, cost_usd: None, tokens: None, place, fence_removed: false };
        collector.add(id, model.as_deref(), prediction)?;
    }
    if !handed_in
        && collector.knows_none()
        && let Some(file) = collector.strays.iter().find(|stray| stray.kind == StrayKind::Json)
    {
        return Err(PredictionsError::Nothing { path: path.to_owned(), file: Some(file.path.clone()) });
    }
    if collector.knows_none() {
        let mut some = directories.into_iter().take(MOST_ENTRIES);
        collector.nested = some.find(|directory| has_predictions(directory, collector));
    }
    Ok(())
}

/// Returns a directory's first entries, sorted. Hidden ones are left out.
fn entries(directory: &Path, most: usize) -> Result<Vec<PathBuf>, PredictionsError> {
    let mut entries: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entries.len() >= most {
            break;
        }
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            entries.push(entry.path());
        }
    }
    entries.sort();
    Ok(entries)
}

fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Tells whether a name is a task's id, with or without an ending.
fn names_task(name: &str, collector: &Collector<'_>) -> bool {
    let stem = name.rsplit_once('.').map(|(stem, _)| stem);
    collector.task(name).is_some() || stem.is_some_and(|stem| collector.task(stem).is_some())
}

/// Tells whether a directory has predictions itself. One that can't be read has none.
fn has_predictions(directory: &Path, collector: &Collector<'_>) -> bool {
    entries(directory, MOST_ENTRIES)
        .is_ok_and(|entries| entries.iter().any(|entry| names_task(&name(entry), collector)))
}

/// Reads the target test file in a task's own directory. A directory without it gives an empty submission, unless it has a
/// submission under another name.
fn test_file(directory: &Path, id: &str, collector: &mut Collector<'_>) -> Result<Content, PredictionsError> {
    let Some(task) = collector.task(id) else { return Ok(Content::Nothing) };
    let path = task.test_file.as_str();
    let name = path.rsplit('/').next().unwrap_or(path);
    for relative in [path, name] {
        let mut file = directory.to_owned();
        // Every part is checked by itself, because any link would lead out of the directory.
        let mut found = None;
        for part in relative.split('/') {
            file.push(part);
            match fs::symlink_metadata(&file) {
                Ok(metadata) if metadata.is_symlink() => return Err(PredictionsError::Kind(file)),
                Ok(metadata) => found = Some(metadata),
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                    found = None;
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(metadata) = found {
            return match metadata.is_file() {
                true => bounded(&file, Content::File),
                false => Err(PredictionsError::Kind(file)),
            };
        }
    }
    let others = others(directory, name);
    if let Some(found) = others.submission {
        return Err(PredictionsError::OtherName { found, expected: path.to_owned() });
    }
    if others.any {
        collector.strays.push(Stray { path: directory.to_owned(), kind: StrayKind::NoTestFile });
    }
    collector.strays.extend(others.unreadable.into_iter().map(|path| Stray { path, kind: StrayKind::Unreadable }));
    Ok(Content::Nothing)
}

/// The entries of a task's directory that lacks the test file.
#[derive(Default)]
struct Others {
    /// A file that may be the submission.
    submission: Option<PathBuf>,
    /// Whether there are entries, or may be.
    any: bool,
    /// Directories that can't be read, sorted.
    unreadable: Vec<PathBuf>,
}

/// Looks for a submission under another name: a patch or Java file directly in a task's directory, or a file below with the
/// test file's name. Other Java files below belong to a copy of the project. Follows no link.
fn others(directory: &Path, test_file: &str) -> Others {
    let mut others = Others::default();
    let mut left = vec![directory.to_owned()];
    let mut seen = 0;
    while let Some(next) = left.pop() {
        let Ok(found) = entries(&next, MOST_ENTRIES - seen) else {
            others.any = true;
            others.unreadable.push(next);
            continue;
        };
        for entry in found {
            seen += 1;
            others.any = true;
            let may_be_one = (next == directory && is_submission(&entry)) || name(&entry) == test_file;
            match fs::symlink_metadata(&entry) {
                Ok(metadata) if metadata.is_dir() => left.push(entry),
                Ok(metadata) if metadata.is_file() && may_be_one => {
                    others.submission = Some(entry);
                    return others;
                }
                _ => {}
            }
        }
    }
    others.unreadable.sort();
    others
}

/// Tells whether a file's ending is one of a patch or a test file.
fn is_submission(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ["patch", "diff", "java"].iter().any(|known| ending == *known))
}

fn bounded(path: &Path, kind: fn(Vec<u8>) -> Content) -> Result<Content, PredictionsError> {
    // The file may have been replaced by a link or a pipe. A link is not followed, and a pipe not waited for.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(PredictionsError::Kind(path.to_owned()));
    }
    if metadata.len() > MOST_SUBMISSION_BYTES as u64 {
        return Ok(Content::TooLarge { bytes: metadata.len(), digest: None });
    }
    let mut content = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(file, MOST_SUBMISSION_BYTES as u64 + 1), &mut content)?;
    Ok(Content::of(content, kind))
}

fn other_ending(path: &Path) -> PredictionsError {
    let reason = "it is named like a task, but is no `<task id>.patch`, `.diff` or `.java`".to_owned();
    PredictionsError::Malformed { place: Place { path: path.to_owned(), line: None }, reason }
}
