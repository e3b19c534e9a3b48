use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response, StatusCode};

use super::fetching::Denied;
use super::find::{Found, begins_a_page, cached_metadata_path, find, trouble};
use super::*;
use crate::artifact::fetch::FetchError;
use crate::artifact::origin::{Machine, OriginOptions, Origins};
use crate::event::{Event, EventSink};
use crate::resolution::metadata;

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
    let shared = |paths, bytes| {
        asker(Sources {
            client: Client::new(origins.clone(), store.clone(), crate::event::EventSink::none()).unwrap(),
            store: store.clone(),
            origins: Mutex::new(vec![OriginName::central()]),
            cutoff: jiff::civil::Date::MIN,
            java: 8,
            passage: Mutex::default(),
            own: BTreeSet::new(),
            anew: false,
            sums: Mutex::default(),
            allowance: Allowance::of(paths, bytes),
        })
    };
    let few_bytes = shared(100, 15);
    for path in ["g/a/1/a-1.jar", "g/b/1/b-1.jar"] {
        assert!(matches!(find(&few_bytes, path).await, Found::Blob { size: 6, .. }));
    }
    assert_eq!(few_bytes.sources.allowance.exhausted(), None);
    assert!(matches!(find(&few_bytes, "g/c/1/c-1.jar").await, Found::Failed(_)), "three bytes are left");
    assert_eq!(few_bytes.sources.allowance.exhausted(), Some(Exhausted::Bytes));

    let few_paths = shared(2, 100);
    assert!(matches!(find(&few_paths, "g/a/1/a-1.jar").await, Found::Blob { .. }));
    assert!(matches!(find(&few_paths, "g/x/1/x-1.jar").await, Found::Absent));
    assert!(matches!(find(&few_paths, "g/y/maven-metadata.xml").await, Found::Failed(_)));
    assert_eq!(few_paths.sources.allowance.exhausted(), Some(Exhausted::Paths));
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

fn asker(sources: Sources) -> Asker {
    Asker { sources: Arc::new(sources), troubles: Mutex::default(), in_tree: Mutex::default() }
}

/// A receiver of events that keeps the warnings.
fn warnings() -> (EventSink, Arc<Mutex<Vec<String>>>) {
    let warnings: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&warnings);
    let events = EventSink::new(move |event| {
        if let Event::Warning { text } = event {
            held(&kept).push(text);
        }
    });
    (events, warnings)
}

/// What a door answers from whose `central` is a directory and whose other origins are these of `origins.toml`.
fn shared(directory: &Path, recorded: &str, events: EventSink) -> Asker {
    let mirror = directory.join("mirror");
    fs_err::create_dir_all(mirror.join("g/a/1")).unwrap();
    fs_err::write(mirror.join("g/a/1/a-1.jar"), "content").unwrap();
    fs_err::write(directory.join("origins.toml"), format!("schema = 1\n[origins]\n{recorded}")).unwrap();
    let given = [("central".to_owned(), format!("file://{}", mirror.display()))];
    let options = OriginOptions::new(given.iter().map(|(name, url)| (name, url)), false, None).unwrap();
    let origins = Origins::new(options, Machine::at(directory, None, &[]), directory);
    let store = Store::open(&directory.join("store"), &directory.join("tmp")).unwrap();
    asker(Sources {
        client: Client::new(origins, store.clone(), events).unwrap(),
        store,
        origins: Mutex::new(vec![OriginName::central(), "evil".parse().unwrap()]),
        cutoff: jiff::civil::date(2020, 1, 1),
        java: 8,
        passage: Mutex::default(),
        own: BTreeSet::from(["g/own".to_owned()]),
        anew: false,
        sums: Mutex::default(),
        allowance: Allowance::of(100, 1000),
    })
}

#[tokio::test]
async fn a_release_stands_in_for_a_snapshot_that_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let (events, warnings) = warnings();
    let shared = shared(directory.path(), "", events);
    *held(&shared.sources.origins) = vec![OriginName::central()];
    let own = directory.path().join("mirror/g/own/1");
    fs_err::create_dir_all(&own).unwrap();
    fs_err::write(own.join("own-1.pom"), "later code").unwrap();
    fs_err::write(directory.path().join("mirror/g/a/1/a-1.pom"), "pom").unwrap();
    let [jar, pom] = ["g/a/1-SNAPSHOT/a-1-SNAPSHOT.jar", "g/a/1-SNAPSHOT/a-1-SNAPSHOT.pom"];
    for _ in 0..2 {
        assert!(matches!(find(&shared, pom).await, Found::Blob { .. }));
    }
    let passed = held(&shared.sources.passage).files.clone();
    assert!(passed[pom].released && passed[pom].origin == "central", "{:?}", passed[pom]);
    assert_eq!(passed[pom].sha256, Digest::of(b"pom"));
    assert_eq!(passed[pom].path_at_origin(), "g/a/1/a-1.pom");
    let own = "g/own/1-SNAPSHOT/own-1-SNAPSHOT.pom";
    for path in [jar, own, "g/a/2-SNAPSHOT/a-2-SNAPSHOT.pom", "g/a/1-SNAPSHOT/a-1-20240102.030405-6.pom"] {
        assert!(matches!(find(&shared, path).await, Found::Absent), "{path}");
    }
    // A web page is no POM, whoever has it.
    fs_err::write(directory.path().join("mirror/g/a/1/a-1.pom"), " <!DOCTYPE HTML>\n<html>").unwrap();
    let page = "g/a/1/a-1.pom";
    let cause = match find(&shared, page).await {
        Found::Failed(cause) => cause,
        _ => panic!("it is no failure"),
    };
    assert_eq!(cause, "the origin `central` has a web page in place of `g/a/1/a-1.pom`");
    fs_err::write(directory.path().join("mirror/g/a/1/a-1.pom"), "pom").unwrap();
    let warning = "no origin that answers has g/a/1-SNAPSHOT/a-1-SNAPSHOT.pom: g/a/1/a-1.pom stands in for it";
    assert_eq!(*held(&warnings), [warning]);
    // A locked one that the store lost comes from the release's path, and has the locked bytes.
    let file = passed[pom].clone();
    fs_err::remove_file(shared.sources.store.path(&file.sha256)).unwrap();
    assert!(matches!(find(&shared, pom).await, Found::Blob { digest, .. } if digest == file.sha256));
    // Nothing stands in for a locked snapshot.
    let sha256 = Digest::of(b"the snapshot's own");
    held(&shared.sources.passage).files.insert(pom.to_owned(), MavenFile { sha256, released: false, ..file });
    assert!(matches!(find(&shared, pom).await, Found::Absent));
}

#[test]
fn pages_are_told_from_files() {
    for page in
        ["<html>", " <!DOCTYPE HTML PUBLIC", "\u{feff}<?xml version='1.0'?>\n<!-- a --> <!-- b --><!doctype html>"]
    {
        assert!(begins_a_page(page.as_bytes()), "{page}");
    }
    for file in ["", "<project>", "<?xml version='1.0'?><!-- <html> --><project/>", "PK\u{3}\u{4}", "<!-- <html>"] {
        assert!(!begins_a_page(file.as_bytes()), "{file}");
    }
}

#[tokio::test]
async fn an_origin_that_lets_nobody_in_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let shared = shared(directory.path(), "evil = \"https://gone.testevo.invalid/maven\"", EventSink::none());
    let [central, evil] = [OriginName::central(), "evil".parse().unwrap()];
    let refused = |status| Denied::Fetch(FetchError::Refused { origin: evil.clone(), path: "p".into(), status });
    for (origin, status, bearable) in
        [(&evil, 401, true), (&evil, 403, true), (&evil, 429, false), (&evil, 503, false), (&central, 403, false)]
    {
        let trouble = trouble(&shared.sources, origin, &refused(status), None).await;
        assert_eq!(trouble.is_bearable(), bearable, "{origin} {status}");
    }
    // The page of a host that is gone does not hide another origin's failure.
    let mut worst = Some(trouble(&shared.sources, &central, &refused(503), None).await);
    worst = Some(trouble(&shared.sources, &evil, &refused(401), worst).await);
    assert_eq!(worst.unwrap().origin, central);
}

#[tokio::test]
async fn a_tree_comes_before_origins_and_after_what_is_locked() {
    let directory = tempfile::tempdir().unwrap();
    let shared = shared(directory.path(), "", EventSink::none());
    let file = |path: &str, bytes: &str| {
        let sha256 = shared.sources.store.put(bytes.as_bytes()).unwrap();
        let origin = OriginName::project_tree().to_string();
        (
            path.to_owned(),
            MavenFile { path: path.to_owned(), origin, sha256, size: bytes.len() as u64, own: false, released: false },
        )
    };
    let (locked, own, never) = ("g/l/1/l-1.jar", "g/a/1/a-1.jar", "g/n/1/n-1.jar");
    held(&shared.sources.passage).files.extend([file(locked, "locked")]);
    *held(&shared.in_tree) = BTreeMap::from([file(locked, "of the tree"), file(own, "tree"), file(never, "never")]);
    assert!(matches!(find(&shared, locked).await, Found::Blob { size: 6, .. }));
    assert!(matches!(find(&shared, own).await, Found::Blob { size: 4, .. }), "central has 7 bytes");
    // What nobody asked for has not passed, and what did is given to later containers, too.
    assert!(!held(&shared.sources.passage).files.contains_key(never));
    held(&shared.in_tree).clear();
    assert!(matches!(find(&shared, own).await, Found::Blob { size: 4, .. }));
    assert!(!matches!(find(&shared, never).await, Found::Blob { .. }));
}

#[tokio::test]
async fn an_origin_that_leads_inside_is_left_out_and_told_of() {
    let directory = tempfile::tempdir().unwrap();
    let secret = directory.path().join("secret/x/1/x-1.jar");
    fs_err::create_dir_all(secret.parent().unwrap()).unwrap();
    fs_err::write(&secret, "secret").unwrap();
    let recorded = format!("evil = \"file://{}\"\n", directory.path().display());
    let (events, warnings) = warnings();
    let shared = shared(directory.path(), &recorded, events);
    for path in ["secret/x/1/x-1.jar", "secret/x/maven-metadata.xml", "secret/x/1/x-1.pom"] {
        assert!(matches!(find(&shared, path).await, Found::Absent), "{path}");
    }
    assert!(matches!(find(&shared, "g/a/1/a-1.jar").await, Found::Blob { size: 7, .. }), "the others answer as ever");
    assert_eq!(*held(&shared.sources.origins), [OriginName::central()]);
    let warnings = held(&warnings).clone();
    assert!(warnings.len() == 1 && warnings[0].contains("--origin evil=URL"), "{warnings:?}");

    // What is locked from there is a fault, not something that nobody has.
    let digest = crate::digest::Digest::of(b"locked");
    let origin = "evil".to_owned();
    let file =
        MavenFile { path: "l/l/1/l-1.jar".to_owned(), origin, sha256: digest, size: 6, own: false, released: false };
    held(&shared.sources.passage).files.insert(file.path.clone(), file);
    assert!(matches!(find(&shared, "l/l/1/l-1.jar").await, Found::Failed(cause) if cause.contains("`evil`")));
}

/// An origin that answers by path, and tells dates where it has them.
struct Library {
    files: BTreeMap<String, Vec<u8>>,
    dates: Option<BTreeMap<&'static str, &'static str>>,
}

/// The metadata that the origin serves for `g:versioned`, in the order of publication.
const VERSIONS: &str = "<metadata><groupId>g</groupId><artifactId>versioned</artifactId><versioning>\
    <latest>4.0-rc1</latest><release>3.0</release><versions><version>1.0</version><version>2.0</version>\
    <version>2.5</version><version>4.0-rc1</version><version>3.0</version></versions></versioning></metadata>";

impl Library {
    /// Four releases of one artifact and a pre-release: 2.0 needs Java 11, 2.5 was withdrawn, 3.0 came after the cutoff.
    fn new(tells_dates: bool) -> Self {
        let mut files = BTreeMap::from([("/g/versioned/maven-metadata.xml".to_owned(), VERSIONS.into())]);
        for (version, class) in [("1.0", 52), ("2.0", 55), ("3.0", 52), ("4.0-rc1", 52)] {
            let base = format!("/g/versioned/{version}/versioned-{version}");
            files.insert(format!("{base}.pom"), b"<project/>".to_vec());
            files.insert(format!("{base}.jar"), jar(class));
        }
        let dates = BTreeMap::from([
            ("1.0", "Mon, 01 Jan 2018 00:00:00 GMT"),
            ("2.0", "Wed, 01 Jan 2020 00:00:00 GMT"),
            ("3.0", "Thu, 02 Jan 2020 00:00:00 GMT"),
            ("4.0-rc1", "Mon, 01 Jan 2018 00:00:00 GMT"),
        ]);
        Self { files, dates: tells_dates.then_some(dates) }
    }

    /// Serves until the test's runtime ends; returns the address.
    async fn serve(self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let library = Arc::new(self);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let library = Arc::clone(&library);
                let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
                    let answer = library.answer(request.uri().path());
                    async move { Ok::<_, Infallible>(answer) }
                });
                let stream = hyper_util::rt::TokioIo::new(stream);
                tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(stream, service));
            }
        });
        address
    }

    fn answer(&self, path: &str) -> Response<Full<Bytes>> {
        let Some(content) = self.files.get(path) else {
            return Response::builder().status(StatusCode::NOT_FOUND).body(Full::default()).unwrap();
        };
        let mut response = Response::builder();
        let date = self.dates.as_ref().and_then(|dates| dates.get(path.split('/').nth(3)?));
        if let Some(date) = date {
            response = response.header(hyper::header::LAST_MODIFIED, *date);
        }
        response.body(Full::new(content.clone().into())).unwrap()
    }
}

/// Returns a jar whose only class has this class file version; what `META-INF` holds for other releases does not count.
fn jar(version: u8) -> Vec<u8> {
    use std::io::Write as _;
    let mut jar = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, version) in [("META-INF/versions/21/A.class", 65), ("A.class", version)] {
        jar.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        jar.write_all(&[0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, version]).unwrap();
    }
    jar.finish().unwrap().into_inner()
}

/// Returns what a door for builds on this Java answers from, whose `central` is at the address; the cutoff is the first day
/// of 2020.
fn shared_for(directory: &Path, address: &str, java: u32) -> Asker {
    let given = BTreeMap::from([("central".to_owned(), address.to_owned())]);
    let options = OriginOptions::new(&given, false, None).unwrap();
    let origins = Origins::new(options, Machine::at(directory, None, &[]), directory);
    let store = Store::open(&directory.join("store"), &directory.join("tmp")).unwrap();
    asker(Sources {
        client: Client::new(origins, store.clone(), EventSink::none()).unwrap(),
        store,
        origins: Mutex::new(vec![OriginName::central()]),
        cutoff: jiff::civil::date(2020, 1, 1),
        java,
        passage: Mutex::default(),
        own: BTreeSet::from(["g/own".to_owned()]),
        anew: false,
        sums: Mutex::default(),
        allowance: Allowance::new(),
    })
}

#[tokio::test]
async fn the_newest_version_is_that_of_the_revisions_day_and_java() {
    const PATH: &str = "g/versioned/maven-metadata.xml";
    let dated = "newest release for Java 8 by 2020-01-01";
    for (tells_dates, java, chosen, rule, served) in [
        (true, 8, "1.0", dated, &["1.0"][..]),
        (true, 11, "2.0", "newest release for Java 11 by 2020-01-01", &["1.0", "2.0"]),
        (true, 7, "1.0", "oldest release, none fits Java 7 by 2020-01-01", &["1.0"]),
        // Without dates only the class files tell; the pre-release is none even so.
        (false, 8, "3.0", "newest release for Java 8; the origin tells no dates", &["1.0", "2.0", "2.5", "3.0"]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let shared = shared_for(directory.path(), &Library::new(tells_dates).serve().await, java);
        let Found::Text(text) = find(&shared, PATH).await else { panic!("Java {java}: no metadata was given") };
        let frozen = held(&shared.sources.passage).metadata["g/versioned/maven-metadata-testevo.xml"].clone();
        assert_eq!((frozen.chosen.as_deref(), frozen.rule.as_str()), (Some(chosen), rule));
        assert_eq!(frozen.content, text);
        assert!(text.contains(&format!("<latest>{chosen}</latest>\n    <release>{chosen}</release>")), "{text}");
        assert_eq!(metadata::parse(&text).unwrap().versions, served);

        // What was chosen once is given again, whatever an origin has by then.
        let later = shared_for(directory.path(), "http://127.0.0.1:1", 21);
        held(&later.sources.passage).metadata.clone_from(&held(&shared.sources.passage).metadata);
        assert!(matches!(find(&later, PATH).await, Found::Text(again) if again == text));
    }
}

#[tokio::test]
async fn a_preferred_version_needs_neither_date_nor_class_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = "org/apache/maven/plugins/maven-surefire-plugin/maven-metadata.xml";
    let metadata = "<metadata><groupId>org.apache.maven.plugins</groupId><artifactId>maven-surefire-plugin</artifactId>\
        <versioning><versions><version>2.22.2</version><version>3.5.0</version></versions></versioning></metadata>";
    let library = Library { files: BTreeMap::from([(format!("/{path}"), metadata.into())]), dates: None };
    let shared = shared_for(directory.path(), &library.serve().await, 17);
    assert!(matches!(find(&shared, path).await, Found::Text(text) if text.contains("<release>2.22.2</release>")));
    let passage = held(&shared.sources.passage).clone();
    let [frozen] = passage.metadata.values().collect::<Vec<_>>().try_into().unwrap();
    assert_eq!((frozen.chosen.as_deref(), frozen.rule.as_str()), (Some("2.22.2"), "runs all JUnit versions"));
}

#[tokio::test]
async fn what_a_portal_serves_in_place_of_metadata_is_not_frozen() {
    let directory = tempfile::tempdir().unwrap();
    let library = |content: &str| Library {
        files: BTreeMap::from([("/g/versioned/maven-metadata.xml".to_owned(), content.into())]),
        dates: None,
    };
    for (content, why) in [
        ("<html><body>Sign in</body></html>", "has a web page in place of"),
        ("", "not understood"),
        ("not even a page", "not understood"),
    ] {
        let shared = shared_for(directory.path(), &library(content).serve().await, 8);
        let found = find(&shared, "g/versioned/maven-metadata.xml").await;
        assert!(matches!(found, Found::Failed(cause) if cause.contains(why)), "{content}");
        assert!(held(&shared.sources.passage).metadata.is_empty(), "{content}");
        assert_eq!(held(&shared.troubles).failed.len(), 1, "{content}");
    }
}

#[tokio::test]
async fn containers_at_the_same_time_share_what_passed_but_no_troubles() {
    let directory = tempfile::tempdir().unwrap();
    let one = shared(directory.path(), "", EventSink::none());
    let other = Asker { sources: Arc::clone(&one.sources), troubles: Mutex::default(), in_tree: Mutex::default() };
    assert!(matches!(find(&one, "g/a/1/a-1.jar").await, Found::Blob { .. }));
    assert!(matches!(find(&one, "g/lost/1/lost-1.jar").await, Found::Absent | Found::Failed(_)));
    fs_err::remove_dir_all(directory.path().join("mirror")).unwrap();
    assert!(matches!(find(&other, "g/a/1/a-1.jar").await, Found::Blob { .. }), "it passed before");
    let Troubles { absent, failed, refused } = held(&other.troubles).clone();
    assert_eq!((absent.len(), failed.len(), refused.len()), (0, 0, 0));
    let troubles = held(&one.troubles).clone();
    assert_eq!(troubles.absent.len() + troubles.failed.len(), 1);
}

#[tokio::test]
async fn releases_of_central_are_fetched_once_for_all_locks() {
    let directory = tempfile::tempdir().unwrap();
    let mirror = directory.path().join("mirror");
    let of = |path: &str| mirror.join(path);
    for path in ["g/s/1-SNAPSHOT/s-1-SNAPSHOT.jar", "g/b/1/b-1.jar"] {
        fs_err::create_dir_all(of(path).parent().unwrap()).unwrap();
        fs_err::write(of(path), path).unwrap();
    }
    let lock = || shared(directory.path(), "", EventSink::none());
    let paths = ["g/a/1/a-1.jar", "g/b/1/b-1.jar", "g/s/1-SNAPSHOT/s-1-SNAPSHOT.jar"];
    let first = lock();
    for path in paths {
        assert!(matches!(find(&first, path).await, Found::Blob { .. }), "{path}");
    }
    let files: Vec<MavenFile> = held(&first.sources.passage).files.values().cloned().collect();
    super::released::remember(&first.sources, &files).await.unwrap();
    // What the origin can't give any more shows what another lock asks it for.
    fs_err::remove_dir_all(mirror.join("g")).unwrap();
    let blob = held(&first.sources.passage).files[paths[1]].sha256;
    first.sources.store.remove(&blob).unwrap();
    let later = |anew| {
        asker(Sources {
            client: first.sources.client.clone(),
            store: first.sources.store.clone(),
            origins: Mutex::new(vec![OriginName::central()]),
            cutoff: jiff::civil::date(2020, 1, 1),
            java: 8,
            passage: Mutex::default(),
            own: BTreeSet::new(),
            anew,
            sums: Mutex::default(),
            allowance: Allowance::new(),
        })
    };
    let update = later(true);
    assert!(matches!(find(&update, paths[0]).await, Found::Absent), "`--update` asks for everything");
    let later = later(false);
    let found = [find(&later, paths[0]).await, find(&later, paths[1]).await, find(&later, paths[2]).await];
    assert!(matches!(found, [Found::Blob { size: 7, .. }, Found::Absent, Found::Absent]), "a lost blob, a snapshot");
    assert_eq!(held(&later.sources.passage).files[paths[0]].origin, "central");
}
