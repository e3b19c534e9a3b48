use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use super::budget::UNUSED;
use super::*;
use crate::application::context::tests::offline;
use crate::application::store::collect_garbage;
use crate::application::{Context, Options};
use crate::artifact::made::{self, Described as _, PrunePolicy};
use crate::artifact::store::Store;
use crate::data_dir::DataDir;
use crate::digest::Digest;
use crate::error::CommandError;
use crate::event::EventSink;
use crate::execution::build::prepared::Prepared;
use crate::execution::build::surefire::JvmSettings;
use crate::umask::Umask;

const DAY: Duration = Duration::from_secs(24 * 3600);
const MIB: u64 = 1 << 20;

/// A data directory with prepared revisions of a MiB each.
struct Place {
    directory: tempfile::TempDir,
    context: Context,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let context = Context::new(offline(directory.path()), EventSink::none(), Umask::take());
        Self { directory, context }
    }

    fn limited(&self, max_disk: u64) -> Context {
        self.context.with_options(Options { max_disk: Some(max_disk), ..self.context.options.clone() })
    }

    fn store(&self) -> Store {
        Store::of(&DataDir::open(self.directory.path()).unwrap()).unwrap()
    }

    /// Keeps a blob that is so old.
    fn blob(&self, seed: u8, age: Duration) -> Digest {
        let digest = self.store().put(&vec![seed; usize::try_from(MIB).unwrap()]).unwrap();
        let file = fs::File::open(self.store().path(&digest)).unwrap();
        file.file().set_modified(SystemTime::now() - age).unwrap();
        digest
    }

    /// Keeps a revision that was last used so long ago. Returns its description.
    fn prepared(&self, seed: u8, unused: Duration) -> (Digest, PathBuf) {
        let (key, tree) = (Digest::of(&[seed]), self.blob(seed, unused));
        let revision = serde_json::json!({
            "state": "compiled", "key": key, "tree": tree, "tree_bytes": MIB, "recording": tree, "module": "", "output": "",
            "test_output": "", "class_path": [], "jars": {}, "test_calls": [], "main_calls": [],
            "settings": JvmSettings::default(), "generates": false, "unfit": null,
        });
        made::keep::<Prepared>(&self.store(), key, serde_json::from_value(revision).unwrap()).unwrap();
        let path = self.store().root().join(Prepared::KIND.directory).join(format!("{}.json", key.hex()));
        fs::File::open(&path).unwrap().file().set_modified(SystemTime::now() - unused).unwrap();
        (key, path)
    }

    fn used(&self) -> u64 {
        size_on_disk(self.directory.path()).unwrap()
    }
}

#[test]
fn the_smaller_of_disk_and_limit_decides() {
    let room = |free, limit| Room { data_dir: "data".into(), free, limit };
    let lacking = |free, limit, needed| room(free, limit).lacking(needed).map(|(lacking, _)| lacking);
    assert_eq!(lacking(Some(10), None, 10), None);
    assert_eq!(lacking(Some(10), None, 11), Some(1));
    assert_eq!(lacking(Some(10), Some((5, 14)), 10), Some(1));
    assert_eq!(lacking(Some(10), Some((5, 15)), 10), None);
    assert_eq!(lacking(Some(1), Some((5, 14)), 10), Some(9));
    assert_eq!(lacking(Some(0), Some((20, 15)), 0), None, "nothing always fits");
    assert_eq!(lacking(None, None, u64::MAX), None, "a file system that does not tell refuses nothing");
    assert_eq!(lacking(None, Some((u64::MAX, 1)), u64::MAX), Some(u64::MAX - 1));
    let (_, error) = room(Some(1), None).lacking(2).unwrap();
    assert!(matches!(error, DiskError::Full { needed: 2, free: 1, .. }), "{error}");
    let (_, error) = room(Some(1), Some((1, 1))).lacking(3).unwrap();
    assert!(matches!(error, DiskError::Limit { needed: 3, used: 1, limit: 1, .. }), "{error}");
}

#[test]
fn needs_add_up_and_never_overflow() {
    let place = Place::new();
    let workbench = Workbench::open(&place.context).unwrap();
    let [one, two, three] = [b"1", b"2", b"3"].map(|name| Digest::of(name));
    let mut needs = Needs::of(&workbench, true);
    assert_eq!(needs.total(), 0);
    needs.fetched.extend([(one, 3 * MIB), (two, 4 * MIB)]);
    needs.fetched.insert(one, 3 * MIB);
    needs.composed.insert(three, 5 * MIB);
    needs.unpacked.extend([(one, 6 * MIB), (two, 7 * MIB)]);
    fs::create_dir_all(workbench.store.root().join("unpacked").join(two.hex())).unwrap();
    needs.prepared = (2, 8 * MIB);
    assert_eq!(needs.total(), (7 + 5 + 6 + 8) * MIB, "one layer is unpacked, and a file is fetched once");
    let words = "about 26.0 MiB of disk: 7.0 MiB to fetch, 5.0 MiB for layers, 6.0 MiB to unpack layers, 8.0 MiB for 2 prepared revisions";
    assert_eq!(needs.words(), words);
    needs.run(usize::MAX);
    needs.fetched.insert(three, u64::MAX);
    assert_eq!(needs.total(), u64::MAX);

    // A daemon keeps its layers elsewhere.
    let mut needs = Needs::of(&workbench, false);
    needs.unpacked.insert(one, MIB);
    assert_eq!(needs.total(), 0);
}

async fn ensured(context: &Context, needed: u64) -> Result<(), CommandError> {
    let workbench = Workbench::open(context).unwrap();
    let mut needs = Needs::of(&workbench, true);
    needs.bundle(&BTreeMap::from([(Digest::of(b"a blob"), needed)]), std::iter::empty());
    needs.ensure().await
}

#[tokio::test]
async fn what_was_used_longest_ago_makes_room_and_only_if_it_suffices() {
    let place = Place::new();
    let [(_, oldest), (_, older), (_, used)] =
        [(1, 9), (2, 2), (3, 0)].map(|(seed, days)| place.prepared(seed, DAY * days));
    let (garbage, young) = (place.blob(4, DAY * 2), place.blob(5, DAY / 2));
    let there = || [&oldest, &older, &used].map(|path| path.exists());
    // Room for files of the command itself.
    let limit = place.used() + MIB / 2;

    let error = ensured(&place.limited(limit), 5 * MIB).await.unwrap_err();
    assert!(matches!(error.exit_status(), ExitStatus::Infrastructure), "{error}");
    assert_eq!((there(), place.store().contains(&garbage)), ([true; 3], true), "what does not suffice stays");
    let dry = place.limited(limit);
    let dry = dry.with_options(Options { dry_run: true, ..dry.options.clone() });
    ensured(&dry, 2 * MIB).await.unwrap();
    assert_eq!((there(), place.store().contains(&garbage)), ([true; 3], true), "a dry run removes nothing");

    ensured(&place.limited(limit), MIB).await.unwrap();
    assert_eq!((there(), place.store().contains(&garbage)), ([true; 3], false), "garbage is enough");
    ensured(&place.limited(limit), 2 * MIB).await.unwrap();
    assert_eq!(there(), [false, true, true]);
    assert!(place.store().contains(&young));
}

#[test]
fn a_budget_takes_what_is_made_again_and_says_what_is_left() {
    let place = Place::new();
    let ages = [(1, 9), (2, 5), (3, 2), (4, 0)];
    let [oldest, older, old, used] = ages.map(|(seed, days)| place.prepared(seed, DAY * days).1);
    fs::create_dir_all(place.directory.path().join("runs/one")).unwrap();
    fs::write(place.directory.path().join("runs/one/records.jsonl"), vec![0; 1 << 20]).unwrap();
    let policy = PrunePolicy { age: DAY * 30, most_bytes: 20 << 30, ..UNUSED };
    let limit = place.used() - 3 * MIB / 2;
    let dry = place.limited(limit);
    let dry = dry.with_options(Options { dry_run: true, ..dry.options.clone() });
    let planned = collect_garbage(&policy, &dry).unwrap();
    assert!([&oldest, &older, &old, &used].iter().all(|path| path.exists()));
    let collected = collect_garbage(&policy, &place.limited(limit)).unwrap();
    assert_eq!((planned.given_up.prepared, collected.given_up.prepared), (2, 2));
    assert_eq!([&oldest, &older, &old, &used].map(|path| path.exists()), [false, false, true, true]);
    let disk = collected.disk.unwrap();
    // The command's own temporary files have gone since.
    assert!(disk.excess() == 0 && disk.used.abs_diff(place.used()) < MIB / 4, "{disk:?}");

    let disk = collect_garbage(&policy, &place.limited(1)).unwrap().disk.unwrap();
    assert_eq!([&old, &used].map(|path| path.exists()), [false, true], "a run may be using it");
    assert!(disk.excess() >= 2 * MIB && place.directory.path().join("runs/one/records.jsonl").exists());
    let largest: Vec<&str> = disk.parts.iter().take(2).map(|(part, _)| part.as_str()).collect();
    assert_eq!(largest.iter().collect::<std::collections::BTreeSet<_>>().len(), 2);
    assert!(largest.contains(&"store/blobs") && largest.contains(&"runs"), "{largest:?}");
    assert_eq!(collect_garbage(&policy, &place.context).unwrap().disk, None);
}

#[test]
fn a_sample_counts_with_the_data_directory_whose_store_it_shares() {
    let place = Place::new();
    place.blob(1, DAY);
    let sample = place.directory.path().join("demo");
    fs::create_dir_all(&sample).unwrap();
    fs_err::os::unix::fs::symlink("../store", sample.join("store")).unwrap();
    let context = place.context.with_options(offline(&sample));
    let workbench = Workbench::open(&context).unwrap();
    assert_eq!(super::places(&workbench).unwrap(), [fs::canonicalize(place.directory.path()).unwrap()]);
}
