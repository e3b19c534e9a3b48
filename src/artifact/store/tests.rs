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
