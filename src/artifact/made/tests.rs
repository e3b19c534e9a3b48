//! What is found is whole, and what nobody uses goes.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::event::Event;

/// A product of some blobs.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Thing(Vec<Digest>);

impl Described for Thing {
    const KIND: Kind = Kind { directory: "things", schema: 1, name: "a thing" };

    fn blobs(&self) -> Vec<Digest> {
        self.0.clone()
    }
}

struct Place {
    _directory: tempfile::TempDir,
    data_dir: DataDir,
    store: Store,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let data_dir = DataDir::open(directory.path()).unwrap();
        let store = Store::of(&data_dir).unwrap();
        Self { _directory: directory, data_dir, store }
    }

    /// Returns the products as a process sees them that begins now.
    fn things(&self) -> Made<Thing> {
        Made::new(&self.data_dir, &self.store, &EventSink::none())
    }

    /// Gets a product of one blob as a process does that begins now, and tells whether it was made.
    async fn made(&self, key: Digest, blob: &[u8]) -> bool {
        get(&self.things(), key, || Fresh::Kept(Thing(vec![self.store.put(blob).unwrap()]))).await
    }

    /// Describes a product of blobs of so many bytes, last used so long ago.
    fn describe(&self, name: &str, bytes: &[usize], age: Duration) -> PathBuf {
        let blobs = bytes.iter().map(|bytes| self.store.put(&vec![b'x'; *bytes]).unwrap());
        let value = Thing(blobs.collect());
        let key = Digest::of(name.as_bytes());
        let path = path::<Thing>(&self.store, key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let description = Description { schema: 1, key, blobs: value.blobs(), value };
        fs::write(&path, serde_json::to_vec(&description).unwrap()).unwrap();
        fs::File::open(&path).unwrap().file().set_modified(SystemTime::now() - age).unwrap();
        path
    }
}

async fn get(things: &Made<Thing>, key: Digest, make: impl FnOnce() -> Fresh<Thing>) -> bool {
    let mut was_made = false;
    let made = things.get::<MadeError>(key, async || {
        was_made = true;
        Ok(make())
    });
    made.await.unwrap();
    was_made
}

#[tokio::test]
async fn a_thing_is_made_once_while_it_is_whole() {
    let place = Place::new();
    let (key, other) = (Digest::of(b"key"), Digest::of(b"other"));
    assert!(place.made(key, b"blob").await);
    assert!(!place.made(key, b"blob").await);
    let description = path::<Thing>(&place.store, key);
    // Of another key, by accident or not.
    fs::copy(&description, path::<Thing>(&place.store, other)).unwrap();
    assert!(place.made(other, b"other blob").await);
    let blob = place.store.path(&Digest::of(b"blob"));
    fs::write(&blob, "damaged").unwrap();
    assert!(place.made(key, b"blob").await);
    assert_eq!(fs::read(&blob).unwrap(), b"blob");
    fs::remove_file(&blob).unwrap();
    assert!(place.made(key, b"blob").await);
    let named = fs::read_to_string(&description).unwrap();
    assert_eq!(blobs_of(named.as_bytes()).unwrap(), [Digest::of(b"blob")]);
    let unnamed = named.replacen(&Digest::of(b"blob").to_string(), &Digest::of(b"other blob").to_string(), 1);
    for text in ["{", r#"{"schema":2,"key":"","value":[]}"#, &unnamed] {
        fs::write(&description, text).unwrap();
        assert!(place.made(key, b"blob").await, "{text}");
    }
}

#[tokio::test]
async fn every_damaged_blob_is_told_of_and_made_anew_also_while_a_process_uses_it() {
    let place = Place::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let events = {
        let told = Arc::clone(&told);
        EventSink::new(move |event| told.lock().unwrap().push(event))
    };
    let things: Made<Thing> = Made::new(&place.data_dir, &place.store, &events);
    let (key, blobs) = (Digest::of(b"key"), [b"one", b"two"]);
    let make = || Fresh::Kept(Thing(blobs.map(|blob| place.store.put(blob).unwrap()).into()));
    assert!(get(&things, key, make).await);
    assert!(!get(&things, key, make).await);
    let damage = || blobs.map(|blob| fs::write(place.store.path(&Digest::of(blob)), "not").unwrap());
    damage();
    assert!(get(&things, key, make).await, "this process found it whole before");
    damage();
    assert!(get(&place.things(), key, make).await, "the next process");
    for blob in blobs {
        place.store.verify(&Digest::of(blob)).unwrap();
    }
    let told = told.lock().unwrap();
    let tells = |event: &Event| matches!(event, Event::Warning { text } if text.contains("is damaged and made anew"));
    assert_eq!(told.iter().filter(|event| tells(event)).count(), 2, "{told:?}");
}

#[tokio::test]
async fn a_fault_is_told_and_not_kept() {
    let place = Place::new();
    let (things, key) = (place.things(), Digest::of(b"key"));
    for _ in 0..2 {
        assert!(get(&things, key, || Fresh::Passing(Thing(Vec::new()))).await);
    }
    assert!(get(&things, key, || Fresh::Kept(Thing(Vec::new()))).await);
    assert!(!get(&things, key, || panic!("it is known")).await);
    // Given up by another process.
    fs::remove_file(path::<Thing>(&place.store, key)).unwrap();
    assert!(get(&place.things(), key, || Fresh::Kept(Thing(Vec::new()))).await);
}

#[tokio::test]
async fn who_waits_gets_what_the_first_one_made() {
    let place = Place::new();
    let (things, key) = (place.things(), Digest::of(b"key"));
    let count = AtomicUsize::new(0);
    let get = async |passing: bool| {
        let make = async || {
            count.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            match passing {
                true => Ok(Fresh::Passing(Thing(Vec::new()))),
                false => Err(MadeError::Io(io::Error::other("not made"))),
            }
        };
        things.get::<MadeError>(key, make).await
    };
    let made = || count.load(Ordering::Relaxed);
    let (first, second) = tokio::join!(get(true), get(true));
    assert!(first.is_ok() && second.is_ok());
    assert_eq!(made(), 1);
    get(true).await.unwrap();
    assert_eq!(made(), 2, "it was not kept");
    let (first, second) = tokio::join!(get(false), get(false));
    assert!(first.is_err() && second.is_err());
    assert_eq!(made(), 4, "an error is the maker's own");
}

#[test]
fn the_old_the_unreadable_and_the_least_used_are_pruned() {
    let place = Place::new();
    let hour = Duration::from_secs(3600);
    let keeping = |most_bytes| PrunePolicy { always: hour / 2, age: 40 * hour, most_bytes };
    assert_eq!(prune::<Thing>(&place.store, &keeping(0), false).unwrap().removed, 0);
    let old = place.describe("old", &[1], 50 * hour);
    let large = place.describe("large", &[80], 3 * hour);
    let torn = place.describe("torn", &[2], 2 * hour);
    fs::write(&torn, "{").unwrap();
    fs::File::open(&torn).unwrap().file().set_modified(SystemTime::now() - 2 * hour).unwrap();
    let shared = place.describe("shared", &[60], 2 * hour);
    let recent = place.describe("recent", &[60, 3], hour);
    let young = place.describe("young", &[70], Duration::ZERO);
    let other = place.store.root().join("things/other.json");
    fs::write(&other, "{}").unwrap();
    assert_eq!(prune::<Thing>(&place.store, &keeping(1000), true).unwrap().removed, 2);
    assert!(old.exists());
    assert_eq!(prune::<Thing>(&place.store, &keeping(140), false).unwrap().removed, 3);
    let there = [&old, &large, &torn, &shared, &recent, &young, &other].map(|path| path.exists());
    assert_eq!(there, [false, false, false, true, true, true, true]);
}

#[test]
fn what_is_used_meanwhile_is_not_removed() {
    let place = Place::new();
    let hour = Duration::from_secs(3600);
    let path = place.describe("name", &[1], 50 * hour);
    let modified = || fs::metadata(&path).unwrap().modified().unwrap();
    let old = modified();
    let marks = UseMarks::every(hour);
    assert!(marks.mark(&path).unwrap());
    assert!(modified() > old);
    assert!(!remove_unused(&path, old).unwrap() && path.exists());
    fs::File::open(&path).unwrap().file().set_modified(old).unwrap();
    assert!(marks.mark(&path).unwrap());
    assert_eq!(modified(), old, "it was marked just now");
    assert!(UseMarks::every(Duration::ZERO).mark(&path).unwrap());
    assert!(modified() > old);
    assert!(remove_unused(&path, modified()).unwrap() && !path.exists());
    assert!(remove_unused(&path, old).unwrap(), "it is gone already");
    assert!(!UseMarks::every(hour).mark(&path).unwrap());
}

#[tokio::test]
async fn a_thing_of_a_store_above_is_found_and_stays_there() {
    let (shared, node) = (Place::new(), Place::new());
    let link = node.store.root().join(crate::artifact::store::UPSTREAM);
    fs_err::os::unix::fs::symlink(shared.store.root(), link).unwrap();
    let node = Place { store: Store::of(&node.data_dir).unwrap(), ..node };
    let key = Digest::of(b"key");
    assert!(shared.made(key, b"blob").await);
    assert!(!node.made(key, b"blob").await);
    assert!(path::<Thing>(&node.store, key).exists());
    // The node has all of it now.
    let blob = shared.store.path(&Digest::of(b"blob"));
    fs::remove_file(&blob).unwrap();
    assert!(!node.made(key, b"blob").await);

    // What is damaged there is made here, and not touched there.
    let other = Digest::of(b"other");
    assert!(shared.made(other, b"second").await);
    let blob = shared.store.path(&Digest::of(b"second"));
    fs::write(&blob, "sec0nd").unwrap();
    assert!(node.made(other, b"second").await);
    assert_eq!((fs::read(&blob).unwrap(), node.made(other, b"second").await), (b"sec0nd".to_vec(), false));
}
