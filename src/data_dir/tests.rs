use super::*;

#[test]
fn a_newer_version_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("version"), "99\n").unwrap();
    assert!(matches!(DataDir::open(directory.path()), Err(DataDirError::UnknownVersion { .. })));
}

/// Writes a file that was last changed two hours ago.
fn write_old(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = fs::File::create(path).unwrap();
    file.file().set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(7200)).unwrap();
}

#[test]
fn what_dead_writers_left_in_any_part_goes_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let swept = PARTS.iter().filter(|part| part.sweep == Sweep::Files);
    let places: Vec<PathBuf> = swept.map(|part| directory.path().join(part.path.replace('*', "x"))).collect();
    assert!(places.len() > 10);
    for place in &places {
        write_old(&place.join(".a.json.7-1"));
        write_old(&place.join("a.json"));
        fs::write(place.join(".b.json.7-1"), "its writer may live").unwrap();
    }
    let living = DataDir::open(directory.path()).unwrap();
    let dead = living.join("tmp/7-1-0");
    fs::create_dir_all(dead.join("x")).unwrap();
    fs::write(living.temporary().join("x"), "").unwrap();
    DataDir::open(directory.path()).unwrap();
    for place in &places {
        let there = [".a.json.7-1", "a.json", ".b.json.7-1"].map(|name| place.join(name).exists());
        assert_eq!(there, [false, true, true], "{}", place.display());
    }
    assert!(!dead.exists() && living.temporary().join("x").exists());
}

#[test]
fn what_is_written_below_a_directory_is_unfinished_in_it() {
    let directory = tempfile::tempdir().unwrap();
    let (root, below) = (directory.path().join("results"), directory.path().join("results/ab"));
    fs::create_dir_all(&below).unwrap();
    write_below(&root, &below.join("x"), b"x").unwrap();
    assert_eq!(fs::read(below.join("x")).unwrap(), b"x");
    // Where there is no place for the unfinished one nothing appears.
    assert!(write_below(&directory.path().join("none"), &below.join("y"), b"y").is_err());
    assert!(!below.join("y").exists());
}

#[test]
fn the_documentation_lists_the_parts() {
    let sweep = |part: &Part| match part.sweep {
        Sweep::Files => "old unfinished files",
        Sweep::Owners => "directories of dead processes",
        Sweep::Itself => "nothing",
    };
    let row = |part: &Part| {
        let path = if part.path.is_empty() { "." } else { part.path };
        let names = if part.names == parts::NamedBlobs::None { "no" } else { "yes" };
        format!(
            "| `{path}` | {} | {} | {} | {} | {names} |\n",
            part.holds,
            part.written_by,
            part.once_lost,
            sweep(part)
        )
    };
    let table: String = PARTS.iter().map(row).collect();
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/data-directory.md")).unwrap();
    assert!(page.contains(&table), "docs/data-directory.md is to have:\n{table}");
}

#[test]
fn what_may_hold_credentials_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("origins.toml");
    write_privately(&path, b"x").unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn whoever_holds_a_lock_is_waited_for_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = DataDir::open(directory.path()).unwrap();
    for (said, expected) in [("", "another process"), ("process 7\n", "process 7")] {
        let held = data_dir.lock("x", |_| ()).unwrap();
        fs::write(directory.path().join("locks/.held/x.flock"), said).unwrap();
        let mut held = Some(held);
        let mut told = String::new();
        let after = data_dir.lock("x", |owner| {
            told.push_str(owner);
            drop(held.take());
        });
        drop(after.unwrap());
        assert_eq!(told, expected);
    }
}

#[test]
fn owners_round_trip() {
    let owner = Owner::current().unwrap();
    assert_eq!(Owner::parse(&owner.to_string()), Some(owner.clone()));
    assert!(owner.is_alive());
}
