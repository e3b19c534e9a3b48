//! Finds the sets of build files of a repository's tasks. Each is warmed once, however many revisions have it.

use std::collections::{BTreeMap, BTreeSet};

use super::repository::BuildSet;
use crate::digest::Digest;
use crate::execution::module::{ModuleArguments, WholeBuilds};
use crate::lock::RepositoryLock;
use crate::task::{Revision, Side, Task, TaskId};
use crate::workspace::pom::DeclaredRepository;
use crate::workspace::{BuildFiles, ModuleLocation, Repository, WorkspaceError};

/// The sets of build files of a repository's tasks.
#[derive(Clone, Debug)]
pub struct FoundSets {
    /// Each distinct set with a module, oldest first.
    pub sets: Vec<BuildSet>,
    /// The set of each task and side with a module.
    of_tasks: BTreeMap<(TaskId, Side), String>,
    /// A revision of each set, by its id.
    pub revisions: BTreeMap<String, Revision>,
    /// Repositories that POMs declare.
    pub repositories: BTreeSet<DeclaredRepository>,
    /// Directories of each set's revision that are Maven repositories, by the set's id; only sets with any.
    pub in_tree: BTreeMap<String, BTreeSet<String>>,
    /// Directories of the repository's own artifacts in a Maven repository.
    pub own: BTreeSet<String>,
    /// The day of the newest revision of these tasks. Versions published later do not count ([`super::metadata`]).
    pub cutoff: jiff::civil::Date,
}

impl FoundSets {
    /// Returns the tasks and sides for which Maven builds all modules, as the lock says.
    pub fn whole(&self, lock: &RepositoryLock) -> WholeBuilds {
        let mut whole = WholeBuilds::default();
        for ((task, side), set) in &self.of_tasks {
            if lock.builds_whole(set) {
                whole.insert(task.clone(), *side);
            }
        }
        whole
    }

    /// Returns the set of a task's revision; `None` if the revision has no module for the test file.
    pub fn set_of(&self, task: &Task, side: Side) -> Option<&str> {
        self.of_tasks.get(&(task.id.clone(), side)).map(String::as_str)
    }
}

/// Reads the build files of every revision of the tasks. If a manifest's overrides change Maven's arguments, the sets
/// differ from those without, because Maven may need other files.
///
/// # Errors
/// [`WorkspaceError`].
pub fn find_sets(
    repository: &Repository,
    tasks: &[Task],
    overridden_arguments: Option<Digest>,
    module_arguments: &dyn Fn(&ModuleLocation) -> ModuleArguments,
) -> Result<FoundSets, WorkspaceError> {
    let mut found = FoundSets {
        sets: Vec::new(),
        of_tasks: BTreeMap::new(),
        revisions: BTreeMap::new(),
        repositories: BTreeSet::new(),
        in_tree: BTreeMap::new(),
        own: BTreeSet::new(),
        cutoff: jiff::civil::Date::MIN,
    };
    let mut wanted: Vec<(&str, &Revision, &Task, Side)> = tasks
        .iter()
        .flat_map(|task| {
            [Side::Old, Side::New].map(|side| {
                let date = if side == Side::Old { &task.rev1_date } else { &task.rev2_date };
                (date.as_str(), task.revision(side), task, side)
            })
        })
        .collect();
    wanted.sort_by_key(|(date, revision, task, _)| (*date, *revision, &task.test_file));
    let mut build_files: BTreeMap<&Revision, BuildFiles> = BTreeMap::new();
    for (date, revision, task, side) in wanted {
        if let Ok(date) = date.parse() {
            found.cutoff = found.cutoff.max(date);
        }
        if !build_files.contains_key(revision) {
            let files = BuildFiles::read(&repository.tree(revision)?)?;
            found.repositories.extend(files.declared_repositories());
            found.own.extend(files.poms().values().flatten().filter_map(|facts| facts.artifact_directory()));
            build_files.insert(revision, files);
        }
        let files = &build_files[revision];
        // A revision without a module for the file is never built for it.
        let Some(location) = files.module_of(&task.test_file) else { continue };
        let module = module_arguments(&location);
        let mut identity = format!("{}\n{}", files.identity(), module.identity());
        if let Some(arguments) = overridden_arguments {
            identity.push_str(&format!("\n{arguments}"));
        }
        let id = Digest::of(identity.as_bytes());
        found.of_tasks.insert((task.id.clone(), side), id.hex());
        if let std::collections::btree_map::Entry::Vacant(vacant) = found.revisions.entry(id.hex()) {
            vacant.insert(revision.clone());
            if files.declared_repositories().iter().any(|declared| declared.path_in_tree().is_some()) {
                let directories = files.repository_directories(&location, &repository.tree(revision)?);
                found.in_tree.extend((!directories.is_empty()).then(|| (id.hex(), directories)));
            }
            let file = task.test_file.as_str().rsplit('/').next().unwrap_or_default();
            found.sets.push(BuildSet {
                id: id.hex(),
                revision: revision.as_str().chars().take(12).collect(),
                module,
                test_class: file.strip_suffix(".java").unwrap_or(file).to_owned(),
                has_siblings: files.poms().len() > 1,
            });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::SampleRepository;
    use crate::task::published;

    #[test]
    fn overridden_arguments_make_other_sets_and_nothing_else_does() {
        let directory = tempfile::tempdir().unwrap();
        let sample = SampleRepository::demo().unwrap();
        let git = directory.path().join("git");
        let pairs = sample.write_git(&git).unwrap();
        let file = directory.path().join("sample.json");
        fs_err::write(&file, sample.published(&pairs)).unwrap();
        let [published] = published::read(&[file]).unwrap().try_into().unwrap();
        let repository = Repository::open(sample.name.clone(), &git).unwrap();
        let find = |arguments| find_sets(&repository, &published.tasks, arguments, &ModuleArguments::of).unwrap();
        let ids = |found: &FoundSets| found.sets.iter().map(|set| set.id.clone()).collect::<BTreeSet<_>>();
        let plain = find(None);
        // Locks that exist name sets in this way.
        let set = &plain.sets[0];
        let files = BuildFiles::read(&repository.tree(&plain.revisions[&set.id]).unwrap()).unwrap();
        let identity = format!("{}\n{}\ntrue", files.identity(), set.module.directory);
        assert_eq!(set.id, Digest::of(identity.as_bytes()).hex());

        let one = find(Some(Digest::of(b"-Pone")));
        let other = find(Some(Digest::of(b"-Pother")));
        assert_eq!((one.sets.len(), other.sets.len()), (plain.sets.len(), plain.sets.len()));
        assert!(ids(&one).is_disjoint(&ids(&plain)) && ids(&one).is_disjoint(&ids(&other)));
        assert_eq!(ids(&one), ids(&find(Some(Digest::of(b"-Pone")))));
    }
}
