use super::*;
use crate::application::context::tests::offline;
use crate::application::import::{ImportRequest, import};
use crate::event::{Event, EventSink};
use crate::sample::SampleRepository;
use crate::umask::Umask;

/// A shared data directory with the sample's tasks, and what was told.
struct Place {
    directory: tempfile::TempDir,
    context: Context,
    told: std::sync::Arc<std::sync::Mutex<Vec<String>>>,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let sample = SampleRepository::demo().unwrap();
        let revisions = sample.write_git(&directory.path().join("sources")).unwrap();
        let data = directory.path().join("sample.json");
        fs::write(&data, sample.published(&revisions)).unwrap();
        let told = std::sync::Arc::<std::sync::Mutex<Vec<String>>>::default();
        let hears = std::sync::Arc::clone(&told);
        let events = EventSink::new(move |event| {
            if let Event::Warning { text } = event {
                hears.lock().unwrap().push(text);
            }
        });
        let context = Context::new(offline(&directory.path().join("data")), events, Umask::take());
        import(&ImportRequest { data: vec![data], ..ImportRequest::default() }, &context).unwrap();
        for part in ["store", "locks"] {
            fs::create_dir_all(directory.path().join("data").join(part)).unwrap();
        }
        fs::write(directory.path().join("data/locks/toolchain.lock"), "x").unwrap();
        Self { directory, context, told }
    }

    fn open(&self, scratch: &str, most_bytes: Option<u64>) -> Result<Option<Scratch>, CommandError> {
        let choice = ScratchChoice { directory: Some(self.directory.path().join(scratch)), most_bytes };
        Scratch::open(&choice, &Selector::default(), &self.context)
    }

    fn told(&self) -> String {
        std::mem::take(&mut *self.told.lock().unwrap()).join("\n")
    }
}

#[test]
fn a_node_has_its_own_locks_and_store_and_shares_the_rest() {
    let place = Place::new();
    let shared = place.directory.path().join("data");
    let scratch = place.open("scratch", None).unwrap().unwrap();
    assert_eq!(place.told(), "");
    let root = scratch.context.data_dir().unwrap().root().to_owned();
    assert!(root.starts_with(place.directory.path().join("scratch")));
    for part in ["runs", "tasks", "manifests", "results", "locks/toolchain.lock"] {
        assert_eq!(fs::read_link(root.join(part)).unwrap(), shared.join(part), "{part}");
    }
    for part in ["locks", "images", "tmp", "store"] {
        assert!(fs::symlink_metadata(root.join(part)).unwrap().is_dir(), "{part}");
    }
    drop(scratch.context.data_dir().unwrap().lock("x", |_| ()).unwrap());
    assert!(!shared.join("locks/.held/x.flock").exists() && root.join("locks/.held/x.flock").exists());

    // A later command finds locks and images that are newer.
    fs::remove_file(shared.join("locks/toolchain.lock")).unwrap();
    fs::write(shared.join("locks/o__n.lock"), "y").unwrap();
    place.open("scratch", None).unwrap().unwrap();
    assert_eq!(fs::read_to_string(root.join("locks/o__n.lock")).unwrap(), "y");

    // Classes that were measured on the node are everybody's in the end.
    let task = &scratch.tasks[0];
    let took = crate::execution::time_class::Took { launch_ms: Some(1), build_ms: None };
    TimeClasses::new(scratch.context.data_dir().unwrap()).record(task, took).unwrap();
    let of_shared = || TimeClasses::new(place.context.data_dir().unwrap()).get(task).unwrap();
    assert_eq!(of_shared(), None);
    scratch.finish();
    assert_eq!(of_shared().and_then(|class| class.launch_seconds), Some(30));

    // Where another node was first, that class is everybody's.
    let file = format!("time-classes/{}.json", task.repository.file_stem());
    let text = fs::read_to_string(shared.join(&file)).unwrap();
    fs::write(shared.join(&file), text.replace("30", "60")).unwrap();
    let later = place.open("scratch", None).unwrap().unwrap();
    let class = TimeClasses::new(later.context.data_dir().unwrap()).get(task).unwrap();
    assert_eq!(class.and_then(|class| class.launch_seconds), Some(60));
    assert_eq!(place.told(), "");
}

#[test]
fn what_is_more_than_the_limit_goes_unless_another_process_uses_it() {
    let place = Place::new();
    let limit = Some(WORKING_BYTES + (1 << 20));
    let scratch = place.open("scratch", limit).unwrap().unwrap();
    let old = scratch.context.data_dir().unwrap().join("store/unpacked/old");
    let fill = || {
        fs::create_dir_all(old.parent().unwrap()).unwrap();
        fs::write(&old, vec![0; 2 << 20]).unwrap();
    };
    fill();
    assert!(place.open("scratch", limit).unwrap().is_none());
    assert!(old.exists(), "the first one may use it");
    let told = place.told();
    assert!(
        told.contains("it may take 1.0 GiB, has 2.0 MiB that others may use, and 1.0 GiB more are needed"),
        "{told}"
    );
    drop(scratch);
    place.open("scratch", limit).unwrap().unwrap();
    assert!(!old.exists());
    assert_eq!(place.told(), "");

    // Without room the data directory itself is used.
    assert!(place.open("scratch", Some(1)).unwrap().is_none());
    let told = place.told();
    assert!(
        told.contains("it may take 0.0 MiB, has 0.0 MiB that others may use, and 1.0 GiB more are needed"),
        "{told}"
    );
    fs::write(place.directory.path().join("file"), "").unwrap();
    assert!(place.open("file/x", None).unwrap().is_none());
    assert!(place.told().contains("is not used, the data directory is: "));
    let error = place.open("data/scratch", None).err().unwrap();
    assert!(error.to_string().contains("lie in each other"), "{error}");
}
