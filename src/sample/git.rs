//! A real git repository of a sample: one old and one new commit per miniature on one line of history.
//!
//! All content of commits is fixed, so the hashes are equal on every machine.

use std::path::Path;

use git2::{Index, IndexEntry, IndexTime, Oid, Repository, RepositoryInitOptions, Signature, Time};

use super::{Files, SampleError, SampleRepository};
use crate::task::{Revision, Side};

/// Noon of 2024-01-01, UTC, in seconds.
const FIRST_COMMIT: i64 = 1_704_110_400;
const DAY: i64 = 86_400;
const HOUR: i64 = 3_600;
const BRANCH: &str = "refs/heads/main";

/// The two revisions of a miniature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisionPair {
    /// The old one.
    pub rev1: Revision,
    /// The new one, its child.
    pub rev2: Revision,
}

impl SampleRepository {
    /// Writes a bare repository to `directory`, which must not exist, and returns the revisions in the order of
    /// [`SampleRepository::miniatures`].
    ///
    /// # Errors
    /// [`SampleError::Git`].
    pub fn write_git(&self, directory: &Path) -> Result<Vec<RevisionPair>, SampleError> {
        self.write(directory).map_err(|source| SampleError::Git { path: directory.to_owned(), source })
    }

    fn write(&self, directory: &Path) -> Result<Vec<RevisionPair>, git2::Error> {
        let options = &mut RepositoryInitOptions::new();
        let repository =
            Repository::init_opts(directory, options.bare(true).no_reinit(true).mkpath(true).initial_head(BRANCH))?;
        let mut parent = None;
        let mut pairs = Vec::new();
        for (index, miniature) in self.miniatures.iter().enumerate() {
            let mut commit = |side: Side, word: &str| {
                let time = commit_time(index, side);
                let message = format!("{}: {word}\n", miniature.name);
                let made = write_commit(&repository, parent, miniature.files(side), time, &message)?;
                parent = Some(made);
                revision(made)
            };
            pairs.push(RevisionPair { rev1: commit(Side::Old, "before")?, rev2: commit(Side::New, "after")? });
        }
        if let Some(last) = parent {
            repository.reference(BRANCH, last, true, "sample")?;
        }
        Ok(pairs)
    }
}

/// Returns the time of a commit in seconds since 1970: one pair per day, the new commit an hour later.
pub(super) fn commit_time(index: usize, side: Side) -> i64 {
    let day = i64::try_from(index).unwrap_or(i64::MAX / DAY / 2) * DAY;
    FIRST_COMMIT + day + if side == Side::New { HOUR } else { 0 }
}

fn write_commit(
    repository: &Repository,
    parent: Option<Oid>,
    files: &Files,
    seconds: i64,
    message: &str,
) -> Result<Oid, git2::Error> {
    let mut index = Index::new()?;
    for (path, content) in files {
        index.add(&entry(path.as_str(), repository.blob(content)?, content.len()))?;
    }
    let tree = repository.find_tree(index.write_tree_to(repository)?)?;
    let author = Signature::new("Sample", "sample@example.invalid", &Time::new(seconds, 0))?;
    let parent = parent.map(|parent| repository.find_commit(parent)).transpose()?;
    repository.commit(None, &author, &author, message, &tree, parent.as_ref().as_slice())
}

fn entry(path: &str, id: Oid, size: usize) -> IndexEntry {
    let never = IndexTime::new(0, 0);
    IndexEntry {
        ctime: never,
        mtime: never,
        dev: 0,
        ino: 0,
        mode: 0o100_644,
        uid: 0,
        gid: 0,
        file_size: u32::try_from(size).unwrap_or(u32::MAX),
        id,
        flags: 0,
        flags_extended: 0,
        path: path.as_bytes().to_vec(),
    }
}

fn revision(id: Oid) -> Result<Revision, git2::Error> {
    id.to_string().parse().map_err(|_| git2::Error::from_str("a commit has no full hash"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_the_same_everywhere_and_hold_the_files() {
        let demo = SampleRepository::demo().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let (first, second) = (directory.path().join("a"), directory.path().join("b"));
        let pairs = demo.write_git(&first).unwrap();
        assert_eq!(demo.write_git(&second).unwrap(), pairs);
        assert!(demo.write_git(&first).is_err(), "an existing repository is never written to");

        let repository = Repository::open(&first).unwrap();
        let head = repository.head().unwrap().peel_to_commit().unwrap();
        assert_eq!(head.id().to_string(), pairs.last().unwrap().rev2.as_str());
        for (miniature, pair) in demo.miniatures.iter().zip(&pairs) {
            let new = repository.find_commit(Oid::from_str(pair.rev2.as_str()).unwrap()).unwrap();
            assert_eq!(new.parent_id(0).unwrap().to_string(), pair.rev1.as_str());
            let file = new.tree().unwrap().get_path(Path::new(miniature.test_file.as_str())).unwrap();
            let blob = repository.find_blob(file.id()).unwrap();
            assert_eq!(blob.content(), miniature.files(Side::New)[&miniature.test_file]);
        }
    }
}
