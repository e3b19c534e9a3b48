use super::*;
use crate::artifact::origin::{Machine, OriginOptions, Origins};
use crate::event::{Event, EventSink};

#[tokio::test]
async fn a_socket_may_lie_deep_in_the_file_system() {
    let directory = tempfile::tempdir().unwrap();
    let deep = directory.path().join("a".repeat(100)).join("b".repeat(100));
    fs_err::create_dir_all(&deep).unwrap();
    bind(&deep.join("door.sock")).unwrap();
    assert!(fs_err::symlink_metadata(deep.join("door.sock")).is_ok());
}

#[tokio::test]
async fn a_lock_that_asks_for_too_much_is_given_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let central = directory.path().join("central");
    for name in ["a", "b", "c"] {
        fs_err::create_dir_all(central.join(format!("g/{name}/1"))).unwrap();
        fs_err::write(central.join(format!("g/{name}/1/{name}-1.jar")), name.repeat(6)).unwrap();
    }
    let store = Store::open(&directory.path().join("store"), &directory.path().join("tmp")).unwrap();
    let address = ("central".to_owned(), format!("file://{}", central.display()));
    let options = OriginOptions::new([(&address.0, &address.1)], false, None).unwrap();
    let origins = Origins::new(options, Machine::at(directory.path(), None, &[]), directory.path());
    let shared = |paths, bytes| Shared {
        client: Client::new(origins.clone(), store.clone(), crate::event::EventSink::none()).unwrap(),
        store: store.clone(),
        origins: Mutex::new(vec![OriginName::central()]),
        cutoff: jiff::civil::Date::MIN,
        java: 8,
        passage: Mutex::default(),
        sums: Mutex::default(),
        allowance: Allowance::of(paths, bytes),
    };
    let few_bytes = shared(100, 15);
    for path in ["g/a/1/a-1.jar", "g/b/1/b-1.jar"] {
        assert!(matches!(find(&few_bytes, path).await, Found::Blob { size: 6, .. }));
    }
    assert_eq!(few_bytes.allowance.exhausted(), None);
    assert!(matches!(find(&few_bytes, "g/c/1/c-1.jar").await, Found::Failed(_)), "three bytes are left");
    assert_eq!(few_bytes.allowance.exhausted(), Some(Exhausted::Bytes));

    let few_paths = shared(2, 100);
    assert!(matches!(find(&few_paths, "g/a/1/a-1.jar").await, Found::Blob { .. }));
    assert!(matches!(find(&few_paths, "g/x/1/x-1.jar").await, Found::Absent));
    assert!(matches!(find(&few_paths, "g/y/maven-metadata.xml").await, Found::Failed(_)));
    assert_eq!(few_paths.allowance.exhausted(), Some(Exhausted::Paths));
    assert!(matches!(find(&few_paths, "g/a/1/a-1.jar").await, Found::Blob { .. }), "it was asked for before");
}

#[test]
fn only_paths_of_a_repository_pass() {
    for good in ["junit/junit/4.13/junit-4.13.jar", "a/maven-metadata.xml", "g/a/1.0+b/a-1.0+b_x$y.pom"] {
        assert!(is_repository_path(good), "{good}");
    }
    for bad in ["", "a", "/a/b", "a//b", "a/../b", "a/b?c", "a/%2e%2e/b", "a/b c", "a\\b/c", &"a/".repeat(600)] {
        assert!(!is_repository_path(bad), "{bad}");
    }
}

#[test]
fn cached_metadata_carries_the_mirrors_name() {
    assert_eq!(cached_metadata_path("g/a/maven-metadata.xml"), "g/a/maven-metadata-testevo.xml");
}

/// What a door answers from whose `central` is a directory and whose other origins are these of `origins.toml`.
fn shared(directory: &Path, recorded: &str, events: EventSink) -> Shared {
    let mirror = directory.join("mirror");
    fs_err::create_dir_all(mirror.join("g/a/1")).unwrap();
    fs_err::write(mirror.join("g/a/1/a-1.jar"), "content").unwrap();
    fs_err::write(directory.join("origins.toml"), format!("schema = 1\n[origins]\n{recorded}")).unwrap();
    let given = [("central".to_owned(), format!("file://{}", mirror.display()))];
    let options = OriginOptions::new(given.iter().map(|(name, url)| (name, url)), false, None).unwrap();
    let origins = Origins::new(options, Machine::at(directory, None, &[]), directory);
    let store = Store::open(&directory.join("store"), &directory.join("tmp")).unwrap();
    Shared {
        client: Client::new(origins, store.clone(), events).unwrap(),
        store,
        origins: Mutex::new(vec![OriginName::central(), "evil".parse().unwrap()]),
        cutoff: jiff::civil::date(2020, 1, 1),
        java: 8,
        passage: Mutex::default(),
        sums: Mutex::default(),
        allowance: Allowance::of(100, 1000),
    }
}

#[tokio::test]
async fn an_origin_that_leads_inside_is_left_out_and_told_of() {
    let directory = tempfile::tempdir().unwrap();
    let secret = directory.path().join("secret/x/1/x-1.jar");
    fs_err::create_dir_all(secret.parent().unwrap()).unwrap();
    fs_err::write(&secret, "secret").unwrap();
    let recorded = format!("evil = \"file://{}\"\n", directory.path().display());
    let warnings: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&warnings);
    let events = EventSink::new(move |event| {
        if let Event::Warning { text } = event {
            held(&kept).push(text);
        }
    });
    let shared = shared(directory.path(), &recorded, events);
    for path in ["secret/x/1/x-1.jar", "secret/x/maven-metadata.xml", "secret/x/1/x-1.pom"] {
        assert!(matches!(find(&shared, path).await, Found::Absent), "{path}");
    }
    assert!(matches!(find(&shared, "g/a/1/a-1.jar").await, Found::Blob { size: 7, .. }), "the others answer as ever");
    assert_eq!(*held(&shared.origins), [OriginName::central()]);
    let warnings = held(&warnings).clone();
    assert!(warnings.len() == 1 && warnings[0].contains("--origin evil=URL"), "{warnings:?}");

    // What is locked from there is a fault, not something that nobody has.
    let digest = crate::digest::Digest::of(b"locked");
    let origin = "evil".to_owned();
    let file = MavenFile { path: "l/l/1/l-1.jar".to_owned(), origin, sha256: digest, size: 6, own: false };
    held(&shared.passage).files.insert(file.path.clone(), file);
    assert!(matches!(find(&shared, "l/l/1/l-1.jar").await, Found::Failed(cause) if cause.contains("`evil`")));
}
