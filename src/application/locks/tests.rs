use super::*;
use crate::application::Context;
use crate::application::context::tests::offline;
use crate::event::EventSink;
use crate::execution::module::ModuleArguments;
use crate::umask::Umask;

fn manifest() -> RepositoryManifest {
    let manifest = RepositoryManifest::parse(
        std::path::Path::new("m"),
        "schema = 1\nrepository = \"o/n\"\nclone_url = \"https://example.org/n.git\"\njava_version = 8\njdk = 8\n\
             [build]\nlauncher = \"auto\"\nskip_flags = []\nmaven_arguments = []\n\
             [limits]\ncompile_memory_mib = 99\ncompile_scratch_mib = 99\ncompile_cpus = 1\ncompile_processes = 99\n\
             compile_wall_seconds = 1\nrun_memory_mib = 99\nrun_heap_mib = 99\nrun_scratch_mib = 99\nrun_cpus = 1\n\
             run_processes = 99\nrun_cpu_seconds = 1\nrun_wall_seconds = 1\noutput_mib = 1\n",
    );
    manifest.unwrap()
}

fn sets(ids: &[&str]) -> Vec<BuildSet> {
    let set = |id: &&str| BuildSet {
        id: (*id).to_owned(),
        revision: String::new(),
        module: ModuleArguments::default(),
        test_class: String::new(),
        has_siblings: false,
    };
    ids.iter().map(set).collect()
}

#[test]
fn a_lock_is_kept_added_to_or_replaced_and_then_remembered() {
    let directory = tempfile::tempdir().unwrap();
    let context = Context::new(offline(directory.path()), EventSink::none(), Umask::take());
    let (workbench, manifest, sets) = (Workbench::open(&context).unwrap(), manifest(), sets(&["a", "b"]));
    let path = workbench.lock_path(&manifest.repository);
    // Does what `lock` does, with sets that are resolved to nothing; returns the bytes.
    let lock = |anew: bool, resolved: &[&str]| -> Vec<u8> {
        let mut growing = workbench.growing_lock(&manifest, anew).unwrap();
        for set in resolved {
            growing.lock.build_sets.push((*set).to_owned());
            growing.lock.build_sets.sort();
            growing.lock.build_sets.dedup();
            growing.lock.store(&growing.path).unwrap();
        }
        workbench.finish_lock(&growing, &manifest, &sets).unwrap();
        assert!(!workbench.next_lock_path(&manifest.repository).exists() || anew);
        fs_err::read(&path).unwrap()
    };
    let history = || fs_err::read_dir(workbench.data_dir.join("locks/history")).unwrap().count();
    let first = lock(false, &["a", "b"]);
    assert_eq!(lock(false, &[]), first);
    // Resolved anew on a mirror that is as it was: the same lock, and nothing to remember.
    assert_eq!(lock(true, &["a", "b"]), first);
    assert_eq!(history(), 0);
    // One that lacks what the present one has does not take its place, and is gone on with.
    assert_eq!(lock(true, &["a"]), first);
    assert_eq!(lock(true, &["b"]), first);
    assert_eq!((history(), workbench.next_lock_path(&manifest.repository).exists()), (0, false));
    let more = lock(false, &["of another task"]);
    assert_ne!(more, first);
    assert_eq!(lock(true, &["a", "b"]), first, "resolved anew is what was asked for, and no more");
    let kept = workbench.data_dir.join(format!("locks/history/{}.lock", Digest::of(&more).hex()));
    assert_eq!((fs_err::read(kept).unwrap(), history()), (more, 1));
    // One that was copied from another repository is none to go on with.
    let next = workbench.next_lock_path(&manifest.repository);
    for (place, anew) in [(&next, true), (&path, true), (&path, false)] {
        let other = RepositoryLock { repository: "o/other".parse().unwrap(), ..empty(&manifest) };
        other.store(place).unwrap();
        let refused = workbench.growing_lock(&manifest, anew).err().unwrap();
        assert!(matches!(refused.failure(), Some(MismatchError::OtherRepository { path, .. }) if path == place));
    }
    let refused = workbench.lock_for(&manifest).unwrap_err();
    assert!(matches!(refused.failure(), Some(MismatchError::OtherRepository { .. })));
}

#[test]
fn a_new_lock_may_lack_only_what_the_present_one_lacks_too() {
    let manifest = manifest();
    let lock = |sets: &[&str]| RepositoryLock {
        build_sets: sets.iter().map(|set| (*set).to_owned()).collect(),
        ..empty(&manifest)
    };
    let sets = sets(&["a", "b", "c"]);
    let growing = |new: &[&str], replaced: Option<RepositoryLock>| {
        LockInProgress { lock: lock(new), path: PathBuf::new(), replaced }.lost(&manifest, &sets)
    };
    // What other tasks need plays no part: the new lock is for those that were asked for.
    assert_eq!(growing(&["a"], Some(lock(&["a", "of another task"]))), 0);
    assert_eq!(growing(&["a"], Some(lock(&["a", "b", "c"]))), 2);
    assert_eq!(growing(&[], None), 0);
    // Of another manifest's lock nothing can be lost.
    assert_eq!(growing(&[], Some(RepositoryLock { jdk: 11, ..lock(&["a"]) })), 0);
}
