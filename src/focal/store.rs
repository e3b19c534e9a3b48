//! Focal methods as they were found, kept beside the tasks: `focal/<owner>__<name>.json` in the data directory.
//!
//! They follow from the tasks and the repository alone, so the file can be made again at any time; it is for people and for
//! other programs, and nothing here decides by it.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Focal;
use crate::canonical_json::canonical_json;
use crate::data_dir::write_atomically;
use crate::task::{RepositoryName, TaskId};

const FOCAL_SCHEMA: u32 = 1;

#[derive(Serialize, Deserialize)]
struct File {
    schema: u32,
    repository: RepositoryName,
    tasks: BTreeMap<TaskId, Vec<Focal>>,
}

/// Keeps what was found for tasks of a repository, beside what is kept of its others. The caller sees to it that nobody else
/// does so meanwhile.
///
/// # Errors
/// The file system's.
pub fn keep(directory: &Path, repository: &RepositoryName, found: BTreeMap<TaskId, Vec<Focal>>) -> io::Result<()> {
    fs_err::create_dir_all(directory)?;
    let path = directory.join(format!("{}.json", repository.file_stem()));
    let there = match fs_err::read(&path) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let mut file = File { schema: FOCAL_SCHEMA, repository: repository.clone(), tasks: BTreeMap::new() };
    // What can't be read, or was written by another version, is lost without harm: all of it can be found again.
    if let Some(Ok(kept)) = there.as_deref().map(serde_json::from_slice::<File>)
        && (kept.schema, &kept.repository) == (FOCAL_SCHEMA, repository)
    {
        file.tasks = kept.tasks;
    }
    file.tasks.extend(found);
    let bytes = canonical_json(&file)?;
    match there {
        Some(there) if there == bytes => Ok(()),
        _ => write_atomically(&path, &bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::focal::{Found, Rule, Unresolved};

    fn found(task: &str, found: Found) -> BTreeMap<TaskId, Vec<Focal>> {
        let focal = Focal { method: "A#m".parse().unwrap(), found };
        BTreeMap::from([(task.parse().unwrap(), vec![focal])])
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
                r#"{{"repository":"o/n","schema":1,"tasks":{{"t1":[{first}],"t2":[{{"found":"gone","method":"A#m","rule":"old_extent"}}]}}}}"#
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
        for other in ["{".to_owned(), whole.replace("\"schema\":1", "\"schema\":7"), whole.replace("o/n", "o/m")] {
            fs_err::write(&path, &other).unwrap();
            keep(&directory, &repository, found("t2", gone())).unwrap();
            assert!(!fs_err::read_to_string(&path).unwrap().contains("t1"), "{other}");
            keep(&directory, &repository, found("t1", unresolved())).unwrap();
            check(r#"{"found":"unresolved","method":"A#m","reason":"no_anchor"}"#);
        }
    }
}
