//! Found focal methods, stored beside the tasks: `focal/<owner>__<name>.json` in the data directory.
//!
//! They follow from the tasks, the repository and launches of the developers' tests, so the file can be made again at
//! any time. It is for people and other programs; this program makes no decision by it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Focal;
use super::own::OwnFocal;
use crate::canonical_json::canonical_json;
use crate::data_dir::write_atomically;
use crate::task::{RepositoryName, TaskId};

const FOCAL_SCHEMA: u32 = 2;

#[derive(Serialize, Deserialize)]
struct File {
    schema: u32,
    repository: RepositoryName,
    tasks: BTreeMap<TaskId, KnownFocal>,
}

/// The known focal methods of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KnownFocal {
    /// The focal methods with their places, in published order.
    pub focal: Vec<Focal>,
    /// Each test method's own focal methods; `None` until a launch of the developers' test has traced them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<Vec<OwnFocal>>,
}

/// Returns the stored focal methods of a repository's tasks. A malformed entry, or one of another version, is skipped:
/// all of it can be found again.
///
/// # Errors
/// I/O errors of reading the repository's file.
pub fn kept(directory: &Path, repository: &RepositoryName) -> io::Result<BTreeMap<TaskId, KnownFocal>> {
    Ok(read(directory, repository)?.1)
}

/// Stores the results for tasks of a repository, and keeps those of its other tasks. Known own focal methods stay
/// unless there are new ones. The caller prevents concurrent calls.
///
/// # Errors
/// I/O errors of reading and writing the repository's file.
pub fn keep(directory: &Path, repository: &RepositoryName, found: BTreeMap<TaskId, KnownFocal>) -> io::Result<()> {
    fs_err::create_dir_all(directory)?;
    let (there, mut tasks) = read(directory, repository)?;
    for (task, mut known) in found {
        // Indexes are valid only for an unchanged list.
        let before = tasks.remove(&task).filter(|before| before.focal == known.focal);
        known.own = known.own.or_else(|| before?.own);
        tasks.insert(task, known);
    }
    let bytes = canonical_json(&File { schema: FOCAL_SCHEMA, repository: repository.clone(), tasks })?;
    match there {
        Some(there) if there == bytes => Ok(()),
        _ => write_atomically(&path(directory, repository), &bytes),
    }
}

fn path(directory: &Path, repository: &RepositoryName) -> PathBuf {
    directory.join(format!("{}.json", repository.file_stem()))
}

/// The file's bytes, and its entries by task.
type Contents = (Option<Vec<u8>>, BTreeMap<TaskId, KnownFocal>);

fn read(directory: &Path, repository: &RepositoryName) -> io::Result<Contents> {
    let bytes = match fs_err::read(path(directory, repository)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((None, BTreeMap::new())),
        Err(error) => return Err(error),
    };
    let file = serde_json::from_slice::<File>(&bytes).ok();
    let file = file.filter(|file| (file.schema, &file.repository) == (FOCAL_SCHEMA, repository));
    Ok((Some(bytes), file.map(|file| file.tasks).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::focal::{Found, Rule, Unresolved};

    fn found(task: &str, found: Found) -> BTreeMap<TaskId, KnownFocal> {
        let focal = vec![Focal { method: "A#m".parse().unwrap(), found }];
        BTreeMap::from([(task.parse().unwrap(), KnownFocal { focal, own: None })])
    }

    #[test]
    fn what_is_kept_of_other_tasks_stays() {
        use std::os::unix::fs::MetadataExt as _;
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().join("focal");
        let repository: RepositoryName = "o/n".parse().unwrap();
        let path = directory.join("o__n.json");
        let gone = || Found::Gone { rule: Rule::OldExtent };
        let unresolved = || Found::Unresolved { reason: Unresolved::NoAnchor };
        let check = |first: &str| {
            let expected = format!(
                r#"{{"repository":"o/n","schema":2,"tasks":{{"t1":{{"focal":[{first}]}},"t2":{{"focal":[{{"found":"gone","method":"A#m","rule":"old_extent"}}]}}}}}}"#
            );
            assert_eq!(fs_err::read_to_string(&path).unwrap(), expected);
        };
        keep(&directory, &repository, found("t2", gone())).unwrap();
        keep(&directory, &repository, found("t1", unresolved())).unwrap();
        check(r#"{"found":"unresolved","method":"A#m","reason":"no_anchor"}"#);
        let file = || fs_err::metadata(&path).unwrap().ino();
        let before = file();
        keep(&directory, &repository, found("t1", unresolved())).unwrap();
        assert_eq!(file(), before, "what is there already is not written again");
        keep(&directory, &repository, found("t1", gone())).unwrap();
        check(r#"{"found":"gone","method":"A#m","rule":"old_extent"}"#);
        let whole = fs_err::read_to_string(&path).unwrap();
        for other in ["{".to_owned(), whole.replace("\"schema\":2", "\"schema\":7"), whole.replace("o/n", "o/m")] {
            fs_err::write(&path, &other).unwrap();
            keep(&directory, &repository, found("t2", gone())).unwrap();
            assert!(!fs_err::read_to_string(&path).unwrap().contains("t1"), "{other}");
            keep(&directory, &repository, found("t1", unresolved())).unwrap();
            check(r#"{"found":"unresolved","method":"A#m","reason":"no_anchor"}"#);
        }
    }
}
