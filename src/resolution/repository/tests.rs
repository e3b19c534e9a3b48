//! What a lock takes of a container's cache: tests with a scripted Maven behind a real door.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::*;
use crate::artifact::origin::{Machine, OriginOptions, Origins};
use crate::engine::scripted::{Said, Scripted, completed, exited, output, step_end};
use crate::engine::spec::{ContainerSpec, StepResult, Stream};
use crate::execution::container::places::MAVEN_REPOSITORY;
use crate::lock::{LockFile as _, MavenFile};
use crate::resolution::door::{DOOR_PORT, MIRROR_ID, Troubles};

const RECORDING: &str = r#"{"event":"recording_started","schema":2}
{"event":"session_started","projects":[{"project":"g:a","basedir":"/work/project","output":"/o","test_output":"/t"}]}
{"event":"session_ended","success":true,"failures":[]}
"#;

#[test]
fn the_mirrors_name_is_that_of_the_settings() {
    let settings = include_str!("../../../images/settings.xml");
    assert!(settings.contains(&format!("<id>{MIRROR_ID}</id>")));
    assert!(settings.contains(&format!("http://127.0.0.1:{DOOR_PORT}/maven")));
    assert!(settings.contains(&format!("<localRepository>{MAVEN_REPOSITORY}</localRepository>")));
}

/// Asks the door as Maven, or a plugin in it, does; returns the status and what was given.
fn ask(door: &Path, path: &str) -> (String, String) {
    let mut stream = UnixStream::connect(door).unwrap();
    write!(stream, "GET /maven/{path} HTTP/1.1\r\nHost: mirror\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().to_owned(), body.to_owned())
}

/// A repository of one set of build files, whose `central` is a directory.
struct Place {
    directory: tempfile::TempDir,
    store: Store,
    manifest: RepositoryManifest,
    /// An origin beside `central`, with its address.
    other: Option<(&'static str, String)>,
    /// The most sets at once.
    jobs: usize,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("store"), &directory.path().join("tmp")).unwrap();
        let manifest = RepositoryManifest::parse(
            Path::new("m"),
            "schema = 1\nrepository = \"o/n\"\nclone_url = \"https://example.org/n.git\"\njava_version = 8\njdk = 8\n\
             [build]\nlauncher = \"auto\"\nskip_flags = []\nmaven_arguments = []\n\
             [limits]\ncompile_memory_mib = 99\ncompile_scratch_mib = 99\ncompile_cpus = 1\ncompile_processes = 99\n\
             compile_wall_seconds = 1\nrun_memory_mib = 99\nrun_heap_mib = 99\nrun_scratch_mib = 99\nrun_cpus = 1\n\
             run_processes = 99\nrun_cpu_seconds = 1\nrun_wall_seconds = 1\noutput_mib = 1\n",
        );
        Self { directory, store, manifest: manifest.unwrap(), other: None, jobs: 1 }
    }

    /// Has the origin serve a file of this path, whose content is its path.
    fn serve(&self, path: &str) {
        let file = self.directory.path().join("central").join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, path).unwrap();
    }

    /// Returns the parameters of locking, in containers of this engine.
    fn locking(&self, engine: &Arc<Scripted>) -> Locking {
        let central = format!("file://{}", self.directory.path().join("central").display());
        let mut addresses = BTreeMap::from([("central".to_owned(), central)]);
        addresses.extend(self.other.iter().map(|(name, address)| ((*name).to_owned(), address.clone())));
        let options = OriginOptions::new(&addresses, false, None).unwrap();
        let origins = Origins::new(options, Machine::at(self.directory.path(), None, &[]), self.directory.path());
        Locking {
            engine: Arc::<Scripted>::clone(engine),
            client: Client::new(origins, self.store.clone(), EventSink::none()).unwrap(),
            store: self.store.clone(),
            jars: ToolJars::below(self.directory.path()),
            image: Digest::of(b"image"),
            jdk: 8,
            java_home: "/jdk".to_owned(),
            repository: self.manifest.repository.clone(),
            maven_arguments: Vec::new(),
            origins: self.other.iter().map(|(name, _)| name.parse().unwrap()).collect(),
            in_tree: BTreeMap::new(),
            own: BTreeSet::from(["org/project/core".to_owned(), "org/project/parent".to_owned()]),
            cutoff: jiff::civil::date(2020, 1, 1),
            anew: false,
            slots: Slots::new(self.jobs),
            beside_others: false,
            temporary: self.directory.path().join("tmp"),
            events: EventSink::none(),
        }
    }

    /// Locks the one set into `lock`, in containers of this engine.
    async fn lock(&self, engine: &Arc<Scripted>, lock: &mut RepositoryLock) -> Vec<Unresolved> {
        self.lock_sets(engine, lock, &["set"]).await.unwrap()
    }

    /// Locks sets of these names into `lock`.
    async fn lock_sets(
        &self,
        engine: &Arc<Scripted>,
        lock: &mut RepositoryLock,
        sets: &[&str],
    ) -> Result<Vec<Unresolved>, LockError> {
        let (begun, at_once) = (AtomicUsize::new(0), self.jobs.min(sets.len()));
        let tree = move |_: &BuildSet| {
            begun.fetch_add(1, Ordering::SeqCst);
            // So that no job takes all sets before another one has its turn.
            wait_until(|| begun.load(Ordering::SeqCst) >= at_once);
        };
        self.lock_trees(engine, lock, sets, tree).await
    }

    /// Locks sets of build files; `tree` is called before the tree of each is written, and may wait.
    async fn lock_trees(
        &self,
        engine: &Arc<Scripted>,
        lock: &mut RepositoryLock,
        sets: &[&str],
        tree: impl Fn(&BuildSet) + Send + Sync + 'static,
    ) -> Result<Vec<Unresolved>, LockError> {
        let sets: Vec<BuildSet> = sets.iter().map(|id| set(id)).collect();
        let archive: WriteTree = Arc::new(move |set, path| {
            tree(set);
            fs::write(path, "").map_err(WorkspaceError::Io)
        });
        self.locking(engine).run(lock, &sets, &archive, &|_| Ok(())).await
    }
}

fn set(id: &str) -> BuildSet {
    BuildSet {
        id: id.to_owned(),
        revision: "r".to_owned(),
        module: ModuleArguments::default(),
        test_class: "ATest".to_owned(),
        has_siblings: false,
    }
}

/// An engine whose Maven succeeds, after it asked the door for `asked` and put it and `made` into its cache. What the door
/// gave is told.
fn maven(asked: &'static [&str], made: &'static [&str], given: &Arc<Mutex<Vec<String>>>) -> Arc<Scripted> {
    let given = Arc::clone(given);
    Arc::new(Scripted::new(move |_, spec: &ContainerSpec| {
        let (said, answers) = succeeded(spec.door.as_ref().unwrap(), asked, made);
        given.lock().unwrap().extend(answers);
        said
    }))
}

/// Asks the door for `asked`, and returns what a container says whose Maven succeeds with it and `made` in its cache, and
/// what the door gave.
fn succeeded(door: &Path, asked: &[&str], made: &[&str]) -> (Said, Vec<String>) {
    let answers = asked.iter().map(|path| ask(door, path)).map(|(status, body)| format!("{status} {body}")).collect();
    let mut frames: Vec<_> = (0..4).map(|step| step_end(step, StepResult::Done)).collect();
    frames.push(step_end(4, exited(0)));
    let cache: Vec<&str> = asked.iter().chain(made).copied().collect();
    for (step, content) in [(5, RECORDING.to_owned()), (6, cache.join("\0"))] {
        frames.extend(output(step, Stream::Content, content.as_bytes()));
        frames.push(step_end(step as usize, StepResult::Done));
    }
    frames.push(completed());
    (Said { frames, ends: true }, answers)
}

/// The mirror is another machine's cache: it has that one's notes, and what was installed there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neither_mavens_notes_nor_what_the_build_made_of_itself_is_locked() {
    const ARTIFACTS: [&str; 3] =
        ["g/a/1/a-1.jar", "org/project/core-api/1/core-api-1.jar", "org/project/parent/1/parent-1.pom"];
    const OWN_TESTS: [&str; 2] = ["org/project/core/1/core-1-tests.jar", "org/project/core/1/core-1-test-sources.jar"];
    const NOTES: [&str; 7] = [
        "g/a/1/_remote.repositories",
        "g/a/1/_maven.repositories",
        "g/a/1/a-1.jar.lastUpdated",
        "g/a/1/m2e-lastUpdated.properties",
        "g/a/maven-metadata-local.xml",
        "g/a/maven-metadata-central.xml",
        "g/a/resolver-status.properties",
    ];
    const ASKED: [&str; 12] = [
        ARTIFACTS[0],
        ARTIFACTS[1],
        ARTIFACTS[2],
        OWN_TESTS[0],
        OWN_TESTS[1],
        NOTES[0],
        NOTES[1],
        NOTES[2],
        NOTES[3],
        NOTES[4],
        NOTES[5],
        NOTES[6],
    ];
    // What `install` leaves of the build's own modules, and what a plugin puts into the cache by itself.
    const MADE: [&str; 6] = [
        "org/project/core/2-SNAPSHOT/core-2-SNAPSHOT.jar",
        "org/project/core/2-SNAPSHOT/core-2-SNAPSHOT.pom",
        "org/project/core/2-SNAPSHOT/maven-metadata-local.xml",
        "org/project/core/2-SNAPSHOT/_remote.repositories",
        "org/project/parent/2-SNAPSHOT/parent-2-SNAPSHOT.pom",
        "g/smuggled/1/smuggled-1.jar",
    ];
    let place = Place::new();
    for path in ASKED.iter().chain(&MADE) {
        place.serve(path);
    }
    let (mut lock, given) = (empty(&place.manifest), Arc::default());
    let engine = maven(&ASKED, &MADE, &given);
    assert_eq!(place.lock(&engine, &mut lock).await, []);
    let file = |path: &str, own| MavenFile {
        path: path.to_owned(),
        origin: "central".to_owned(),
        sha256: Digest::of(path.as_bytes()),
        size: path.len() as u64,
        own,
        released: false,
    };
    let expected = [file(ARTIFACTS[0], false), file(ARTIFACTS[1], false), file(ARTIFACTS[2], true)];
    assert_eq!(
        (lock.files.as_slice(), lock.metadata.as_slice(), &lock.build_sets),
        (&expected[..], &[][..], &vec!["set".to_owned()])
    );
    let told = |path: &&str| if NOTES.contains(path) { "404 ".to_owned() } else { format!("200 {path}") };
    assert_eq!(*given.lock().unwrap(), ASKED.iter().map(told).collect::<Vec<_>>());
    for note in NOTES {
        assert!(!place.store.contains(&Digest::of(note.as_bytes())), "{note} was fetched");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_has_every_set_starts_nothing_and_keeps_its_bytes() {
    const FIRST: [&str; 2] = ["g/b/1/b-1.jar", "g/a/1/a-1.jar"];
    const SECOND: [&str; 2] = ["g/a/1/a-1.jar", "g/c/1/c-1.jar"];
    let place = Place::new();
    for path in FIRST.iter().chain(&SECOND) {
        place.serve(path);
    }
    let (mut lock, given) = (empty(&place.manifest), Arc::default());
    let first = maven(&FIRST, &[], &given);
    place.lock(&first, &mut lock).await;
    let bytes = lock.render();
    let idle = maven(&SECOND, &[], &given);
    place.lock(&idle, &mut lock).await;
    assert_eq!((lock.render(), idle.started().len()), (bytes.clone(), 0));

    // An origin that serves other bytes by now, and a Maven that needs less: what the lock has stays, and is what is given.
    fs::write(place.directory.path().join("central/g/a/1/a-1.jar"), "other").unwrap();
    lock.build_sets.clear();
    given.lock().unwrap().clear();
    place.lock(&maven(&SECOND, &[], &given), &mut lock).await;
    assert_eq!(*given.lock().unwrap(), ["200 g/a/1/a-1.jar", "200 g/c/1/c-1.jar"]);
    let paths: Vec<&str> = lock.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["g/a/1/a-1.jar", "g/b/1/b-1.jar", "g/c/1/c-1.jar"]);
    lock.files.pop();
    assert_eq!(lock.render(), bytes);
}

/// Waits until a condition holds, a minute at most.
fn wait_until(holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sets_at_once_make_the_lock_that_they_make_in_a_row() {
    const SETS: [&str; 3] = ["first", "second", "third"];
    const ASKED: [[&str; 2]; 3] =
        [["g/b/1/b-1.jar", "g/a/1/a-1.jar"], ["g/c/1/c-1.jar", "g/a/1/a-1.jar"], ["g/d/1/d-1.jar"; 2]];
    let mut locks = Vec::new();
    for (jobs, doors) in [(1, 1), (2, 2)] {
        let place = Place { jobs, ..Place::new() };
        ASKED.iter().flatten().for_each(|path| place.serve(path));
        let used: Arc<Mutex<BTreeSet<PathBuf>>> = Arc::default();
        let told = Arc::clone(&used);
        let engine = Scripted::new(move |number, spec: &ContainerSpec| {
            told.lock().unwrap().extend(spec.door.clone());
            succeeded(spec.door.as_ref().unwrap(), &ASKED[number], &[]).0
        });
        let mut lock = empty(&place.manifest);
        assert_eq!(place.lock_sets(&Arc::new(engine), &mut lock, &SETS).await.unwrap(), []);
        assert_eq!((used.lock().unwrap().len(), lock.files.len()), (doors, 4), "{jobs} jobs");
        assert_eq!(lock.build_sets, SETS);
        locks.push(lock.render());
        let left = fs::read_dir(place.directory.path().join("tmp")).unwrap().map(|entry| entry.unwrap().path());
        let archives: Vec<PathBuf> = left.filter(|path| path.extension().is_some_and(|end| end == "tar")).collect();
        assert_eq!(archives, [] as [PathBuf; 0]);
    }
    assert_eq!(locks[0], locks[1]);
}

/// Unresolved sets are told in the order of sets, and an error loses nothing that another set came to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_at_once_neither_hides_nor_loses_another() {
    let place = Place { other: Some(("gone", dead_address())), jobs: 2, ..Place::new() };
    fs::create_dir_all(place.directory.path().join("central")).unwrap();
    let mut lock = empty(&place.manifest);
    let (begun, ended) = (AtomicBool::new(false), Arc::new(AtomicBool::new(false)));
    let told = Arc::clone(&ended);
    let engine = Arc::new(Scripted::new(move |number, spec: &ContainerSpec| match number {
        0 => {
            told.store(true, Ordering::SeqCst);
            Said { frames: vec![completed()], ends: true }
        }
        _ => succeeded(spec.door.as_ref().unwrap(), &[], &[]).0,
    }));
    // The first set's container is the first, and begins once the second set has begun.
    let tree = move |set: &BuildSet| match set.id.as_str() {
        "first" => wait_until(|| begun.load(Ordering::SeqCst)),
        _ => {
            begun.store(true, Ordering::SeqCst);
            wait_until(|| ended.load(Ordering::SeqCst));
        }
    };
    let error = place.lock_trees(&engine, &mut lock, &["first", "second", "third"], tree).await.unwrap_err();
    assert!(matches!(error, LockError::Container { .. }), "{error}");
    assert_eq!(lock.build_sets, ["second"], "it had begun; the third had not");
}

/// Repositories share the slots: of two with one slot, a set ends before the other's begins.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repositories_at_once_warm_no_more_sets_than_there_are_slots() {
    let places = [Place::new(), Place::new()];
    let (slots, told) = (Slots::new(1), Arc::new(Mutex::new(Vec::new())));
    let locked = places.iter().enumerate().map(async |(number, place)| {
        fs::create_dir_all(place.directory.path().join("central")).unwrap();
        let (tree, container) = (Arc::clone(&told), Arc::clone(&told));
        let engine = Arc::new(Scripted::new(move |_, spec: &ContainerSpec| {
            container.lock().unwrap().push(("container", number));
            succeeded(spec.door.as_ref().unwrap(), &[], &[]).0
        }));
        let archive: WriteTree = Arc::new(move |_, path| {
            tree.lock().unwrap().push(("tree", number));
            fs::write(path, "").map_err(WorkspaceError::Io)
        });
        let locking = Locking { slots: slots.clone(), beside_others: true, ..place.locking(&engine) };
        let mut lock = empty(&place.manifest);
        let sets = [set("first"), set("second")];
        assert_eq!(locking.run(&mut lock, &sets, &archive, &|_| Ok(())).await.unwrap(), []);
        assert_eq!(lock.build_sets, ["first", "second"]);
    });
    futures_util::future::join_all(locked).await;
    let told = told.lock().unwrap().clone();
    assert_eq!(told.len(), 8);
    for set in told.chunks(2) {
        assert!(matches!(set, [("tree", one), ("container", other)] if one == other), "{told:?}");
    }
}

/// Returns an address on this machine at which nothing answers.
fn dead_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}/", listener.local_addr().unwrap())
}

/// An engine whose Maven asks the door for a library in its first two containers and ends as Maven does without it; later
/// ones need nothing.
fn maven_with_a_lost_library() -> Arc<Scripted> {
    const LOST: &str = r#"{"event":"recording_started","schema":2}
{"event":"artifact_unresolved","artifact":"g:lost:jar:1","project":"g:a","mojo":"g:plugin:1:run"}
{"event":"session_ended","success":false,"failures":[{"causes":[{"class":"x.ArtifactResolutionException","message":"m"}]}]}
"#;
    Arc::new(Scripted::new(|number, spec: &ContainerSpec| {
        let lost = number < 2;
        // All goals at once; then one by one, three times Maven.
        let runs = if number == 1 { 3 } else { 1 };
        if lost {
            for _ in 0..2 {
                assert_eq!(ask(spec.door.as_ref().unwrap(), "g/lost/1/lost-1.jar").0, "502");
            }
        }
        let maven = 2 + 2 * runs;
        let mut frames: Vec<_> = (0..maven).map(|step| step_end(step, StepResult::Done)).collect();
        frames.push(step_end(maven, exited(if lost { 1 } else { 0 })));
        let recording = if lost { LOST } else { RECORDING };
        for (step, content) in [(maven + 1, recording), (maven + 2, "")] {
            frames.extend(output(u32::try_from(step).unwrap(), Stream::Content, content.as_bytes()));
            frames.push(step_end(step, StepResult::Done));
        }
        frames.push(completed());
        Said { frames, ends: true }
    }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_that_a_dead_origin_keeps_from_resolving_stops_no_other() {
    let place = Place { other: Some(("gone", dead_address())), ..Place::new() };
    fs::create_dir_all(place.directory.path().join("central")).unwrap();
    let mut lock = empty(&place.manifest);
    assert!(!lock.render().contains("unresolved"), "locks without such sets have the same bytes as ever");
    let unresolved = place.lock_sets(&maven_with_a_lost_library(), &mut lock, &["first", "second"]).await.unwrap();
    assert_eq!(lock.build_sets, ["second"]);
    let [first] = unresolved.try_into().unwrap();
    assert!(first.cause.starts_with("g:lost:jar:1 did not resolve; it is wanted by g:plugin:1:run in g:a\n"));
    assert_eq!(lock.unresolved, first.artifacts);
    let [artifact] = first.artifacts.try_into().unwrap();
    assert_eq!((artifact.build_set.as_str(), artifact.artifact.as_str()), ("first", "g:lost:jar:1"));
    assert_eq!(artifact.origins, ["central", "gone"]);
    assert!(
        artifact.cause.starts_with("the origin `gone` could not be reached for `g/lost/1/lost-1.jar`"),
        "{artifact}"
    );
    assert_eq!(RepositoryLock::parse(Path::new("l"), &lock.render()).unwrap(), lock);

    // A later lock that resolves the set forgets what it lacked.
    let given = Arc::default();
    assert_eq!(place.lock_sets(&maven(&[], &[], &given), &mut lock, &["first", "second"]).await.unwrap(), []);
    assert_eq!(
        (lock.build_sets.as_slice(), lock.unresolved.as_slice()),
        (&["first", "second"].map(String::from)[..], &[][..])
    );
}

/// A release may have later code than the tree's file, which another set is offered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_release_stands_in_for_what_a_tree_of_another_set_has() {
    const SNAPSHOT: &str = "g/p/2-SNAPSHOT/p-2-SNAPSHOT.pom";
    const IN_TREE: &str = "g/p/1/p-1.pom";
    let place = Place::new();
    place.serve("g/p/2/p-2.pom");
    for (in_tree, told) in [(false, "200 g/p/2/p-2.pom"), (true, "404 ")] {
        let (mut lock, given) = (empty(&place.manifest), Arc::default());
        let mut locking = place.locking(&maven(&[SNAPSHOT], &[], &given));
        if in_tree {
            let file = MavenFile {
                path: IN_TREE.to_owned(),
                origin: "repository".to_owned(),
                sha256: Digest::of(b"tree"),
                size: 4,
                own: false,
                released: false,
            };
            locking.in_tree.insert("other".to_owned(), BTreeMap::from([(IN_TREE.to_owned(), file)]));
        }
        let archive: WriteTree = Arc::new(|_, path| fs::write(path, "").map_err(WorkspaceError::Io));
        locking.run(&mut lock, &[set("set")], &archive, &|_| Ok(())).await.unwrap();
        assert_eq!(*given.lock().unwrap(), [told]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_maven_that_does_not_begin_is_quoted() {
    const SAID: &str = "1\n2\n3\n4\n\nUnrecognized option: --a\u{1b}[31m\nError: no JVM\n";
    let place = Place::new();
    let engine = Arc::new(Scripted::new(|number, _: &ContainerSpec| {
        let maven = 2 + 2 * if number == 1 { 3 } else { 1 };
        let mut frames: Vec<_> = (0..maven).map(|step| step_end(step, StepResult::Done)).collect();
        frames.extend(output(u32::try_from(maven).unwrap(), Stream::Stderr, SAID.as_bytes()));
        frames.extend(output(u32::try_from(maven).unwrap(), Stream::Stdout, b"[ERROR] no\n"));
        frames.push(step_end(maven, exited(1)));
        frames.extend([maven + 1, maven + 2].map(|step| step_end(step, StepResult::Done)));
        frames.push(completed());
        Said { frames, ends: true }
    }));
    let [set] = place.lock(&engine, &mut empty(&place.manifest)).await.try_into().unwrap();
    assert_eq!(
        set.cause,
        "Maven ended without saying why\n  [ERROR] no\n  2\n  3\n  4\n  Unrecognized option: --a\u{fffd}[31m\n  Error: no JVM"
    );
}

#[test]
fn only_silence_and_refusal_of_an_origin_that_a_pom_names_are_bearable() {
    let place = Place::new();
    let engine = maven(&[], &[], &Arc::default());
    let locking = place.locking(&engine);
    for (silent, closed, declared, resolved) in [
        (true, false, true, true),
        (false, true, true, true),
        (true, false, false, false),
        (false, true, false, false),
        (false, false, true, false),
    ] {
        let trouble = crate::resolution::door::Trouble {
            origin: "gone".parse().unwrap(),
            cause: "why".to_owned(),
            silent,
            closed,
            declared,
        };
        let troubles =
            Troubles { failed: BTreeMap::from([("g/a/1/a-1.jar".to_owned(), trouble)]), ..Troubles::default() };
        assert_eq!(locking.without(&set("set"), &troubles).is_none(), resolved, "{silent} {closed} {declared}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_network_nothing_is_taken_for_unresolved() {
    let place = Place { other: Some(("central", dead_address())), ..Place::new() };
    let mut lock = empty(&place.manifest);
    let error = place.lock_sets(&maven_with_a_lost_library(), &mut lock, &["first", "second"]).await.unwrap_err();
    assert!(matches!(error, LockError::Origin { ref path, .. } if path == "g/lost/1/lost-1.jar"), "{error}");
    assert_eq!(lock.unresolved, []);
}
