//! Reads a directory of one model's predictions. It has `<task id>.patch` or `.diff`, or `<task id>.java` with the test
//! file's whole text. Or it has `<task id>/` with the test file, at its path in the repository or by its name alone.
//!
//! Other files are listed and not read. The directory's name is the model's. Links are refused, because their targets are not part of the directory.

use std::path::{Path, PathBuf};

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;

use super::collector::Collector;
use super::{MOST_PREDICTIONS, Place, Prediction, PredictionsError, too_large};
use crate::submission::{Content, MOST_SUBMISSION_BYTES};

/// Reads all predictions of a directory.
pub(super) fn read(path: &Path, collector: &mut Collector<'_>) -> Result<(), PredictionsError> {
    let absolute = std::path::absolute(path)?;
    let model = absolute.file_name().map(|name| name.to_string_lossy().into_owned());
    let mut entries: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if entries.len() >= MOST_PREDICTIONS {
            return Err(too_large(path, "more entries".to_owned(), format!("{MOST_PREDICTIONS}")));
        }
        entries.push(entry.path());
    }
    entries.sort();
    for entry in entries {
        let metadata = fs::symlink_metadata(&entry)?;
        let name = entry.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let (id, content) = if metadata.is_dir() {
            let content = test_file(&entry, &name, collector)?;
            (name.as_str(), content)
        } else if metadata.is_file() {
            match name.rsplit_once('.') {
                Some((id, "patch" | "diff")) => (id, bounded(&entry, Content::Patch)?),
                Some((id, "java")) => (id, bounded(&entry, Content::File)?),
                // A file that is named like a task is a prediction of which only the ending is wrong.
                Some((stem, _)) if collector.task(stem).is_some() => return Err(other_ending(&entry)),
                None if collector.task(&name).is_some() => return Err(other_ending(&entry)),
                _ => {
                    collector.strays.push(entry);
                    continue;
                }
            }
        } else {
            return Err(PredictionsError::Kind(entry));
        };
        let place = Place { path: entry.clone(), line: None };
        let prediction = Prediction { content, cost_usd: None, tokens: None, place, fence_removed: false };
        collector.add(id, model.as_deref(), prediction)?;
    }
    Ok(())
}

/// Reads the target test file in a task's own directory. A directory without it gives an empty submission.
fn test_file(directory: &Path, id: &str, collector: &Collector<'_>) -> Result<Content, PredictionsError> {
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
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
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
    Ok(Content::Nothing)
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
