//! Giving up prepared revisions that nobody uses.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use fs_err as fs;

use super::{Description, Prepared};
use crate::artifact::store::Store;
use crate::digest::Digest;

/// Which prepared revisions stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keeping {
    /// What was used within this time stays whatever else holds: a run may be at it.
    pub always: Duration,
    /// What was not used for so long goes.
    pub age: Duration,
    /// Beyond so many bytes the least recently used go.
    pub most_bytes: u64,
}

/// Removes descriptions of prepared revisions and returns how many. Their blobs become garbage of the store. What can't be
/// read is removed as well: it would be made anew.
///
/// # Errors
/// The file system's.
pub fn prune(store: &Store, keeping: &Keeping, dry_run: bool) -> io::Result<usize> {
    let directory = store.root().join("prepared");
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        // Other descriptions lie there too, such as that of our own jars.
        if stem.is_none_or(|stem| Digest::from_hex(stem).is_err()) {
            continue;
        }
        found.push((fs::metadata(&path)?.modified()?, path));
    }
    found.sort();
    let (now, mut counted, mut kept, mut removed) = (SystemTime::now(), BTreeSet::new(), 0u64, 0);
    // The most recently used first.
    for (used, path) in found.into_iter().rev() {
        let unused = now.duration_since(used).unwrap_or_default();
        let blobs: Option<Vec<Digest>> = match serde_json::from_slice::<Description>(&fs::read(&path)?) {
            Ok(Description { prepared: Prepared::Compiled(revision), .. }) => Some(revision.blobs().collect()),
            Ok(Description { prepared: Prepared::Failed { .. }, .. }) => Some(Vec::new()),
            Err(_) => None,
        };
        let mut bytes = 0;
        for digest in blobs.iter().flatten().filter(|digest| !counted.contains(*digest)) {
            bytes += match fs::metadata(store.path(digest)) {
                Ok(blob) => blob.len(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
                Err(error) => return Err(error),
            };
        }
        let fits = blobs.is_some() && unused < keeping.age && kept.saturating_add(bytes) <= keeping.most_bytes;
        if fits || unused < keeping.always {
            kept = kept.saturating_add(bytes);
            counted.extend(blobs.into_iter().flatten());
        } else if dry_run || remove_unused(&path, used)? {
            removed += 1;
        }
    }
    Ok(removed)
}

/// Removes a description unless it was used since `used`, and tells whether it is gone.
///
/// # Errors
/// The file system's.
pub(in crate::execution) fn remove_unused(path: &Path, used: SystemTime) -> io::Result<bool> {
    match fs::metadata(path).and_then(|found| found.modified()) {
        Ok(modified) if modified != used => Ok(false),
        Ok(_) => fs::remove_file(path).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// Marks descriptions as used now and then: what a process uses for long is not pruned.
pub(in crate::execution) struct Marks {
    every: Duration,
    last: Mutex<HashMap<PathBuf, Instant>>,
}

impl Default for Marks {
    fn default() -> Self {
        Self::every(Duration::from_secs(3600))
    }
}

impl Marks {
    /// Returns what marks a description when it was not marked for so long.
    pub(in crate::execution) fn every(every: Duration) -> Self {
        Self { every, last: Mutex::default() }
    }

    /// Marks a description as used, unless that was done shortly before; `false` where there is none any more.
    ///
    /// # Errors
    /// The file system's.
    pub(in crate::execution) fn mark(&self, path: &Path) -> io::Result<bool> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.get(path).is_some_and(|marked| marked.elapsed() < self.every) {
            return Ok(true);
        }
        match fs::File::open(path).and_then(|file| file.file().set_modified(SystemTime::now())) {
            Ok(()) => {
                last.insert(path.to_owned(), Instant::now());
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CompiledRevision, PREPARED_SCHEMA};
    use super::*;
    use crate::execution::maven::PROJECT;
    use crate::execution::surefire::JvmSettings;

    /// Describes a revision of a tree of so many bytes and the jars, last used so long ago.
    fn describe(store: &Store, name: &str, tree_bytes: usize, jars: &[&[u8]], age: Duration) -> PathBuf {
        let key = Digest::of(name.as_bytes());
        let tree = store.put(&name.as_bytes().iter().copied().cycle().take(tree_bytes).collect::<Vec<u8>>()).unwrap();
        let jars = jars.iter().map(|jar| (format!("/o/{}", jar.len()), store.put(jar).unwrap())).collect();
        let revision = CompiledRevision {
            key,
            tree,
            tree_bytes: tree_bytes as u64,
            recording: store.put(b"").unwrap(),
            module: PROJECT.into(),
            output: String::new(),
            test_output: String::new(),
            class_path: Vec::new(),
            jars,
            test_calls: Vec::new(),
            main_calls: Vec::new(),
            settings: JvmSettings::default(),
            generates: false,
            unfit: None,
        };
        let prepared = Prepared::Compiled(Box::new(revision));
        let path = store.root().join("prepared").join(format!("{}.json", key.hex()));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, serde_json::to_vec(&Description { schema: PREPARED_SCHEMA, key, prepared }).unwrap()).unwrap();
        fs::File::open(&path).unwrap().file().set_modified(SystemTime::now() - age).unwrap();
        path
    }

    #[test]
    fn the_old_and_the_least_used_are_pruned() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("store"), &directory.path().join("tmp")).unwrap();
        let hour = Duration::from_secs(3600);
        let old = describe(&store, "old", 1, &[], 50 * hour);
        let large = describe(&store, "large", 80, &[], 3 * hour);
        let recent = describe(&store, "recent", 60, &[], hour);
        let jars = directory.path().join("store/prepared/jars-x.json");
        fs::write(&jars, "{}").unwrap();
        let keeping = |most_bytes| Keeping { always: hour / 2, age: 40 * hour, most_bytes };
        assert_eq!(prune(&store, &keeping(1000), true).unwrap(), 1);
        assert!(old.exists());
        assert_eq!(prune(&store, &keeping(100), false).unwrap(), 2);
        assert_eq!([&old, &large, &recent, &jars].map(|path| path.exists()), [false, false, true, true]);
    }

    #[test]
    fn what_is_used_meanwhile_is_not_removed() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("store"), &directory.path().join("tmp")).unwrap();
        let hour = Duration::from_secs(3600);
        let path = describe(&store, "name", 1, &[], 50 * hour);
        let modified = || fs::metadata(&path).unwrap().modified().unwrap();
        let old = modified();
        let marks = Marks::every(hour);
        assert!(marks.mark(&path).unwrap());
        assert!(modified() > old);
        assert!(!remove_unused(&path, old).unwrap() && path.exists());
        fs::File::open(&path).unwrap().file().set_modified(old).unwrap();
        assert!(marks.mark(&path).unwrap());
        assert_eq!(modified(), old, "it was marked just now");
        assert!(Marks::every(Duration::ZERO).mark(&path).unwrap());
        assert!(modified() > old);
        assert!(remove_unused(&path, modified()).unwrap() && !path.exists());
        assert!(remove_unused(&path, old).unwrap(), "it is gone already");
        assert!(!Marks::every(hour).mark(&path).unwrap());
    }

    #[test]
    fn what_a_run_may_be_at_is_never_pruned_and_shared_blobs_count_once() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("store"), &directory.path().join("tmp")).unwrap();
        let minute = Duration::from_secs(60);
        let (shared, own) = ([1; 50], [2; 40]);
        let fresh = describe(&store, "fresh", 100, &[&shared], minute);
        let torn = describe(&store, "torn", 1, &[], minute);
        fs::write(&torn, "{").unwrap();
        let second = describe(&store, "second", 100, &[&shared], 90 * minute);
        let third = describe(&store, "third", 10, &[&shared, &own], 91 * minute);
        let keep = |most_bytes| Keeping { always: 60 * minute, age: 1000 * minute, most_bytes };
        // 150 bytes, then 100 for the second and 50 for the third.
        assert_eq!(prune(&store, &keep(300), true).unwrap(), 0);
        assert_eq!(prune(&store, &keep(299), false).unwrap(), 1);
        assert_eq!([&fresh, &torn, &second, &third].map(|path| path.exists()), [true, true, true, false]);
        assert_eq!(prune(&store, &keep(0), false).unwrap(), 1);
        assert_eq!([&fresh, &torn, &second].map(|path| path.exists()), [true, true, false]);
    }
}
