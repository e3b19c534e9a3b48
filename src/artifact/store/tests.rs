use super::*;

fn store(directory: &Path) -> Store {
    Store::open(&directory.join("store"), &directory.join("tmp")).unwrap()
}

#[test]
fn blobs_round_trip_and_corruption_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let digest = store.put(b"content").unwrap();
    assert_eq!(store.read(&digest).unwrap(), b"content");
    fs::write(store.path(&digest), b"other").unwrap();
    assert!(matches!(store.read(&digest), Err(StoreError::Corrupted { .. })));
    assert!(matches!(store.verify(&digest), Err(StoreError::Corrupted { .. })));
    store.remove(&digest).unwrap();
    assert!(matches!(store.read(&digest), Err(StoreError::Missing { .. })));
}

#[test]
fn what_is_put_again_is_not_removed_by_an_older_list() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let digest = store.put(b"content").unwrap();
    let old = SystemTime::now() - std::time::Duration::from_secs(7200);
    fs::File::open(store.path(&digest)).unwrap().file().set_modified(old).unwrap();
    let [listed] = store.list().unwrap().try_into().unwrap();
    assert_eq!(store.put(b"content").unwrap(), digest);
    assert!(!store.remove_listed(&listed).unwrap() && store.contains(&digest));
    let [listed] = store.list().unwrap().try_into().unwrap();
    assert!(listed.modified > old);
    assert!(store.remove_listed(&listed).unwrap() && !store.contains(&digest));
    assert!(store.remove_listed(&listed).unwrap(), "it is gone already");
}

#[test]
fn an_unfinished_or_unexpected_blob_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let mut writer = store.writer().unwrap();
    writer.write_all(b"half").unwrap();
    drop(writer);
    let mut writer = store.writer().unwrap();
    writer.write_all(b"bytes").unwrap();
    assert!(matches!(writer.commit_expecting(&Digest::of(b"others"), "x"), Err(StoreError::WrongDigest { .. })));
    assert_eq!(fs::read_dir(directory.path().join("tmp")).unwrap().count(), 0);
    assert_eq!(fs::read_dir(directory.path().join("store/blobs/sha256")).unwrap().count(), 0);
}

/// Changes a blob's bytes, not their number. Who keeps the time does what a disk does.
fn damage(store: &Store, digest: &Digest) {
    let path = store.path(digest);
    let mut bytes = fs::read(&path).unwrap();
    bytes[0] ^= 1;
    fs::write(&path, bytes).unwrap();
}

#[test]
fn what_is_put_again_replaces_a_damaged_blob() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let digest = store.put(b"content").unwrap();
    damage(&store, &digest);
    assert_eq!(store.put(b"content").unwrap(), digest);
    assert_eq!(store.read(&digest).unwrap(), b"content");
    fs::write(store.path(&digest), b"cont").unwrap();
    assert_eq!(store.put(b"content").unwrap(), digest);
    assert_eq!(store.read(&digest).unwrap(), b"content");
}

#[test]
fn a_blob_is_checked_before_its_first_use_and_whenever_its_file_changed() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let digest = store.put(b"content").unwrap();
    let path = store.path(&digest);
    let old = SystemTime::now() - std::time::Duration::from_secs(10);
    let age = || fs::File::open(&path).unwrap().file().set_modified(old).unwrap();
    age();
    assert_eq!(store.sound(&digest).unwrap(), path);
    Store::check_if_blob(&path).unwrap();
    // What the file system can't tell is not read again: a start of a container costs no reading.
    damage(&store, &digest);
    age();
    assert_eq!(store.sound(&digest).unwrap(), path);
    damage(&store, &digest);
    assert_eq!(store.sound(&digest).unwrap(), path, "it is whole again");
    damage(&store, &digest);
    assert!(matches!(store.sound(&digest), Err(StoreError::Corrupted { .. })));
    assert!(matches!(store.open_sound(&digest), Err(StoreError::Corrupted { .. })));
    assert!(matches!(Store::check_if_blob(&path), Err(StoreError::Corrupted { .. })));
    fs::remove_file(&path).unwrap();
    assert!(matches!(store.sound(&digest), Err(StoreError::Missing { .. })));
    assert!(matches!(Store::check_if_blob(&path), Err(StoreError::Missing { .. })));
    // Other files have no digest in their names.
    Store::check_if_blob(&directory.path().join("tmp/x")).unwrap();
    Store::check_if_blob(&directory.path().join(digest.hex())).unwrap();
}

#[test]
fn a_store_on_a_node_reads_the_one_above_and_copies_what_stays_in_use() {
    let directory = tempfile::tempdir().unwrap();
    let above = store(&directory.path().join("shared"));
    let [used, read] = [b"used", b"read"].map(|bytes| above.put(bytes).unwrap());
    fs::create_dir_all(above.root().join("layers")).unwrap();
    fs::write(above.root().join("layers/x.json"), "record").unwrap();
    let root = directory.path().join("node/store");
    fs::create_dir_all(&root).unwrap();
    fs_err::os::unix::fs::symlink(above.root(), root.join(UPSTREAM)).unwrap();
    let node = store(&directory.path().join("node"));
    let is_copied = |digest: &Digest| root.join(BLOBS).join(digest.hex()).exists();

    assert!(node.contains(&read) && !node.contains(&Digest::of(b"neither has it")));
    assert_eq!((node.size(&read).unwrap(), node.read(&read).unwrap()), (4, b"read".to_vec()));
    node.verify(&read).unwrap();
    assert_eq!(node.put(b"read").unwrap(), read);
    assert!(!is_copied(&read), "it is read where it is");
    let record = |name: &str| node.record(&Path::new("layers").join(name)).unwrap();
    assert_eq!((record("x.json"), record("y.json")), (Some(b"record".to_vec()), None));

    // Processes of a node that ask at once copy once.
    let asked: Vec<_> = std::thread::scope(|scope| {
        let ask = || scope.spawn(|| node.sound(&used).unwrap());
        [ask(), ask(), ask()].map(|asked| asked.join().unwrap()).into()
    });
    assert!(asked.iter().all(|path| *path == root.join(BLOBS).join(used.hex())));
    assert!(is_copied(&used));
    fs::remove_file(above.path(&used)).unwrap();
    assert_eq!(node.read(&used).unwrap(), b"used");

    // What is new is the node's own, and what is damaged above is not taken.
    let new = node.put(b"new").unwrap();
    assert!(is_copied(&new) && !above.contains(&new));
    damage(&above, &read);
    assert!(matches!(node.sound(&read), Err(StoreError::Corrupted { path, .. }) if path == above.path(&read)));
    assert!(!is_copied(&read));
    node.put(b"read").unwrap();
    assert_eq!(node.read(&read).unwrap(), b"read", "a damaged one is made again here");
}
