use super::*;

fn owners() -> (Owner, Owner) {
    let own = Owner::current().unwrap();
    (Owner { start_time: 1, ..own.clone() }, Owner { boot: "0".into(), ..own })
}

fn held_by_another(directory: &Path) -> fs::File {
    match take(directory, true).unwrap() {
        Taken::Ours(lock) => lock,
        Taken::Others | Taken::Gone => panic!("somebody has it"),
    }
}

fn names(tmp: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(tmp).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_sweep_takes_what_nobody_holds() {
    let directory = tempfile::tempdir().unwrap();
    let tmp = directory.path();
    let (dead, other_machine) = owners();
    // As far as numbers tell neither of them lives.
    for owner in [&dead, &other_machine] {
        let part = tmp.join(owner.to_string());
        let lock = held_by_another(&part);
        fs::create_dir_all(part.join("x")).unwrap();
        assert_eq!(sweep(tmp).unwrap(), 0, "it is held, wherever its process is");
        assert!(part.join("x").exists());
        drop(lock);
        assert_eq!(sweep(tmp).unwrap(), 1);
    }
    assert_eq!(names(tmp), Vec::<String>::new());
}

#[test]
fn a_process_has_one_directory_until_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let (tmp, owner) = (directory.path(), Owner::current().unwrap());
    let own = open(tmp, &owner).unwrap();
    assert_eq!(sweep(tmp).unwrap(), 0);
    assert!(own.is_dir());
    assert_eq!(open(tmp, &owner).unwrap(), own);
    remove(&own).unwrap();
    assert_eq!(names(tmp), Vec::<String>::new());
    assert_eq!(open(tmp, &owner).unwrap(), own, "it may have it again");
    assert!(matches!(take(&own, false).unwrap(), Taken::Others));
}

#[test]
fn an_older_programs_directories_go_by_its_owner() {
    let directory = tempfile::tempdir().unwrap();
    let (dead, other_boot) = owners();
    let own = Owner::current().unwrap();
    for owner in [&dead, &other_boot, &own] {
        fs::create_dir_all(directory.path().join(owner.to_string()).join("x")).unwrap();
    }
    assert_eq!(sweep(directory.path()).unwrap(), 2);
    assert_eq!(names(directory.path()), [own.to_string()]);
}

#[test]
fn a_namesake_of_another_namespace_gets_a_directory_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let owner = Owner::current().unwrap();
    let first = directory.path().join(owner.to_string());
    let lock = held_by_another(&first);
    let second = open(directory.path(), &owner).unwrap();
    assert_eq!(second, directory.path().join(format!("{owner}-1")));
    assert_eq!(sweep(directory.path()).unwrap(), 0);
    drop(lock);
    assert_eq!(sweep(directory.path()).unwrap(), 1);
    assert!(second.is_dir() && !first.exists());
}

#[test]
fn files_that_nobody_finishes_go() {
    let directory = tempfile::tempdir().unwrap();
    let long_ago = std::time::SystemTime::now() - 2 * ABANDONED;
    let left = unfinished_name("a.lock", 7);
    let kept = [".a.lock.12-x", ".a.lock.-3", ".hidden", "a.12-3", "a.lock"];
    for name in kept.iter().copied().chain([left.as_str()]) {
        let file = fs::File::create(directory.path().join(name)).unwrap();
        file.file().set_modified(long_ago).unwrap();
    }
    // Somebody may be about to finish it.
    fs::write(directory.path().join(".b.lock.1-1"), "").unwrap();
    fs::create_dir(directory.path().join(".c.lock.1-1")).unwrap();
    sweep_unfinished(directory.path()).unwrap();
    let mut expected = [&kept[..], &[".b.lock.1-1", ".c.lock.1-1"]].concat();
    expected.sort_unstable();
    assert_eq!(names(directory.path()), expected);
    sweep_unfinished(&directory.path().join("absent")).unwrap();
}

#[test]
fn rubbish_keeps_nobody_from_working() {
    let directory = tempfile::tempdir().unwrap();
    let (outside, tmp) = (directory.path().join("outside"), directory.path().join("tmp"));
    fs::create_dir_all(outside.join("kept")).unwrap();
    for rubbish in ["foreign/x", "of-root/x", "odd/.flock", "later.doomed/x"] {
        fs::create_dir_all(tmp.join(rubbish)).unwrap();
    }
    fs::write(tmp.join("file"), "x").unwrap();
    std::os::unix::fs::symlink(&outside, tmp.join("link")).unwrap();
    fs::create_dir(tmp.join("linked")).unwrap();
    std::os::unix::fs::symlink(outside.join("kept"), tmp.join("linked").join(LOCK)).unwrap();
    let refusing = |path: &Path| match path.ends_with("of-root.doomed") {
        true => Err(io::Error::from(io::ErrorKind::PermissionDenied)),
        false => fs::remove_dir_all(path),
    };
    assert_eq!(sweep_with(&tmp, &refusing).unwrap(), 2);
    assert_eq!(names(&tmp), ["linked", "odd", "of-root.doomed"], "what can't be is left, and the rest goes");
    assert!(outside.join("kept").is_dir());
    open(&tmp, &Owner::current().unwrap()).unwrap();
    // A later one may be able to.
    assert_eq!(sweep(&tmp).unwrap(), 1);
}
