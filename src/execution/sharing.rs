//! Class archives: what every launch loads before it comes to a test (the JVM's own classes, our launcher, JUnit), parsed
//! and checked once and then mapped into each JVM.
//!
//! `store/class-archives/<key>.json` names the archive's blob. A sealed container that sees nothing of any project makes it:
//! it launches a test of our own, dumps the classes that this took, and launches once more with the archive alone being
//! good enough. The JVM itself decides whether an archive fits a launch; where it does not (another collector, something
//! before our jars), it loads the classes as ever and says nothing.
//!
//! One thing of an archive shows in a program: identity hash codes come in another order, and with them the elements of a
//! set of enum constants. So launches of both paths have the same archive, and keys of executions say whether there was one.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use fs_err as fs;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

use super::cell::{Environment, Executor};
use super::fault::{ATTEMPTS, Spool, done, file_name, not_done, of_engine};
use super::limits::ExecutionLimits;
use super::maven::{self, HOME, RUNNER_CLASS, XML_DIRECTORY, launcher_class_path};
use super::prepared::{Keeping, Marks, blocking, remove_unused};
use crate::artifact::store::{Store, StoreError};
use crate::data_dir::{DataDir, write_atomically};
use crate::digest::Digest;
use crate::engine::session::{self, ContainerRun};
use crate::engine::spec::{Command, PROGRAM_SCHEMA, Program, Step, StepResult};
use crate::event::EventSink;
use crate::outcome::launch::shortened;

/// Version of the description's schema.
const SHARING_SCHEMA: u32 = 1;

/// JDK 8 shares the JVM's own classes only, which was measured to gain nothing here (docs/performance.md).
const FIRST_JDK: u32 = 11;

/// Below the store's root.
const DIRECTORY: &str = "class-archives";

#[derive(Serialize, Deserialize)]
struct Description {
    schema: u32,
    key: Digest,
    archive: Digest,
}

/// Everything that decides what an archive holds, and which launches it fits.
#[derive(Serialize)]
struct Keyed<'a> {
    schema: u32,
    toolchain: Digest,
    java_home: &'a str,
    console: &'a str,
    runner: &'a str,
    /// In seconds since the epoch: a JVM takes no archive of a jar with another time than the one it sees.
    runner_modified: u64,
    /// The commands' flags stand in what it is of.
    identity: Digest,
}

/// An archive, or `None` where none could be made.
type Known = Arc<OnceCell<Option<PathBuf>>>;

/// The class archives of a data directory, as one process uses them.
pub struct ClassArchives {
    data_dir: DataDir,
    store: Store,
    events: EventSink,
    /// What this process has made or checked; nothing is checked twice.
    known: Mutex<HashMap<Digest, Known>>,
    marks: Marks,
    /// Toolchains of which an archive could not be had: none of their launches has one from then on, so that keys are right.
    without: Mutex<BTreeSet<Digest>>,
}

impl ClassArchives {
    /// Returns those of `data_dir`.
    pub fn new(data_dir: &DataDir, store: &Store, events: &EventSink) -> Self {
        Self {
            data_dir: data_dir.clone(),
            store: store.clone(),
            events: events.clone(),
            known: Mutex::default(),
            marks: Marks::default(),
            without: Mutex::default(),
        }
    }

    /// Tells whether launches in an environment map archives: not with a development kit that gains nothing, nor once one
    /// of its archives could not be had.
    pub fn serve(&self, environment: &Environment) -> bool {
        let without = self.without.lock().unwrap_or_else(PoisonError::into_inner);
        environment.jdk >= FIRST_JDK && !without.contains(&environment.toolchain)
    }

    /// Returns the archive for launches with this console, made if the store does not have it whole; `None` where none
    /// [serve](Self::serve), as where this one can't be had, which is said once.
    pub async fn get(&self, executor: &Executor, environment: &Environment, console: &str) -> Option<PathBuf> {
        if !self.serve(environment) {
            return None;
        }
        let mut found = self.find_or_make(executor, environment, console).await;
        // It may have been given up since this process found it.
        if matches!(&found, Ok(Some(path)) if !path.exists()) {
            self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
            found = self.find_or_make(executor, environment, console).await;
        }
        let cause = match found {
            Ok(Some(path)) if path.exists() => return Some(path),
            Ok(Some(path)) => format!("`{}` is gone", path.display()),
            Ok(None) => return None,
            Err(error) => error.to_string(),
        };
        self.go_without(environment, &cause);
        None
    }

    fn go_without(&self, environment: &Environment, cause: &str) {
        let mut without = self.without.lock().unwrap_or_else(PoisonError::into_inner);
        if without.insert(environment.toolchain) {
            let jdk = environment.jdk;
            self.events.warning(format!("launches on JDK {jdk} go without a class archive: {cause}"));
        }
    }

    async fn find_or_make(
        &self,
        executor: &Executor,
        environment: &Environment,
        console: &str,
    ) -> io::Result<Option<PathBuf>> {
        let key = key(executor, environment, console)?;
        let cell = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(key).or_default())
        };
        // Whoever comes second in this process waits for the first.
        let archive = cell.get_or_try_init(|| async {
            if let Some(found) = self.load(key).await? {
                return Ok(Some(found));
            }
            // And so does another process.
            let (data_dir, events) = (self.data_dir.clone(), self.events.clone());
            let _held = blocking(move || {
                let waiting = |owner: &str| events.message(format!("waiting for {owner}, which makes a class archive"));
                Ok(data_dir.lock(&format!("class-archive-{}", &key.hex()[..2]), waiting)?)
            })
            .await?;
            if let Some(found) = self.load(key).await? {
                return Ok(Some(found));
            }
            self.make(executor, environment, console, key).await
        });
        let found = archive.await.cloned()?;
        // A run may be longer than what is unused may be old.
        if found.is_some() && !self.marks.mark(&path(&self.store, key))? {
            self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        }
        Ok(found)
    }

    /// Returns an archive that is there and whole.
    async fn load(&self, key: Digest) -> io::Result<Option<PathBuf>> {
        let store = self.store.clone();
        let loaded = blocking(move || {
            let path = path(&store, key);
            let bytes = match fs::read(&path) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            let archive = match serde_json::from_slice(&bytes) {
                Ok(Description { schema: SHARING_SCHEMA, key: found, archive }) if found == key => archive,
                _ => {
                    tracing::warn!(path = %path.display(), "a class archive's description can't be read; it is made anew");
                    return Ok(None);
                }
            };
            match store.verify(&archive) {
                Ok(()) => {}
                Err(StoreError::Missing { .. }) => return Ok(None),
                Err(StoreError::Corrupted { path, .. }) => {
                    tracing::warn!(path = %path.display(), "a class archive is damaged and made anew");
                    fs::remove_file(path)?;
                    return Ok(None);
                }
                Err(error) => return Err(error.into()),
            }
            // What was used last is pruned last.
            fs::File::open(&path)?.file().set_modified(SystemTime::now())?;
            Ok(Some(store.path(&archive)))
        });
        Ok(loaded.await?)
    }

    async fn make(
        &self,
        executor: &Executor,
        environment: &Environment,
        console: &str,
        key: Digest,
    ) -> io::Result<Option<PathBuf>> {
        let mut attempt = 1;
        let archive = loop {
            match self.dump(executor, environment, console).await? {
                Ok(archive) => break archive,
                Err(_) if attempt < ATTEMPTS => attempt += 1,
                Err(cause) => {
                    self.go_without(environment, &cause);
                    return Ok(None);
                }
            }
        };
        let bytes = serde_json::to_vec(&Description { schema: SHARING_SCHEMA, key, archive })?;
        let path = path(&self.store, key);
        fs::create_dir_all(self.store.root().join(DIRECTORY))?;
        write_atomically(&path, &bytes)?;
        Ok(Some(self.store.path(&archive)))
    }

    /// Returns the archive's digest, or why there is none.
    async fn dump(
        &self,
        executor: &Executor,
        environment: &Environment,
        console: &str,
    ) -> io::Result<Result<Digest, String>> {
        let (program, archive) = program(&environment.java_home, console, &executor.limits);
        let limits = (executor.limits.compile, executor.limits.compile_scratch_bytes);
        let image = environment.image;
        let spec = maven::container_without_tree("class-archive", image, &executor.jars, limits, program);
        let spool = Spool::create(&executor.temporary)?;
        let run = match session::run(executor.engine.as_ref(), &spec, spool.path()).await {
            Ok(run) => run,
            Err(error) => return Ok(Err(of_engine(&error).detail)),
        };
        let Some(sent) = done(&run, archive) else { return Ok(Err(refused(&run)?)) };
        let (store, captured) = (self.store.clone(), sent.content.clone());
        let kept = blocking(move || {
            let mut writer = store.writer()?;
            io::copy(&mut captured.open()?, &mut writer)?;
            Ok(writer.commit()?.0)
        });
        Ok(Ok(kept.await?))
    }
}

impl Executor {
    /// Returns the class archive that launches with this console map, made where it was not; `None` where they go without.
    pub async fn class_archive(&self, environment: &Environment, console: &str) -> Option<PathBuf> {
        self.class_archives.as_ref()?.get(self, environment, console).await
    }

    /// Tells whether launches in an environment map class archives.
    pub(super) fn maps_class_archives(&self, environment: &Environment) -> bool {
        self.class_archives.as_ref().is_some_and(|archives| archives.serve(environment))
    }
}

/// A test of our own that a JVM launches for the sake of the classes that it loads.
const TRIAL: [&str; 4] = ["--class", "testevo.runner.Trial", "--method", "launches"];

/// Where an archive is made.
const MADE: &str = "/work/archive/classes.jsa";
/// The classes that launching loaded, one a line.
const LOADED: &str = "/work/archive/classes.lst";
/// The most bytes of an archive; they have some 20 MiB.
const MOST_BYTES: u64 = 128 << 20;

/// Returns the program that makes an archive, and the index of the step that sends it.
fn program(java_home: &str, console: &str, limits: &ExecutionLimits) -> (Program, usize) {
    let java = |jvm: &[&str], main: &[&str]| {
        let mut argv = vec![format!("{java_home}/bin/java"), "-Xmx1g".to_owned(), "-XX:-UsePerfData".to_owned()];
        argv.extend(jvm.iter().map(|word| (*word).to_owned()));
        argv.extend(["-cp".to_owned(), launcher_class_path(console)]);
        argv.extend(main.iter().map(|word| (*word).to_owned()));
        Step::Run(Command {
            argv,
            environment: maven::environment(java_home, &[]),
            working_directory: "/work".to_owned(),
            limits: limits.compile_command,
            events: true,
            required: true,
            only_after_success_of: None,
        })
    };
    let mut trial = vec![RUNNER_CLASS];
    trial.extend(TRIAL.iter().chain(&["--events-fd", "3", "--xml", XML_DIRECTORY]));
    let [loaded, made, named] = [
        format!("-XX:DumpLoadedClassList={LOADED}"),
        format!("-XX:SharedClassListFile={LOADED}"),
        format!("-XX:SharedArchiveFile={MADE}"),
    ];
    let steps = vec![
        Step::MakeDirectory { path: HOME.to_owned() },
        Step::MakeDirectory { path: XML_DIRECTORY.to_owned() },
        Step::MakeDirectory { path: "/work/archive".to_owned() },
        java(&["-Xshare:off", &loaded], &trial),
        // This collector alone can put objects of the JVM itself into an archive; launches read them with any.
        java(&["-XX:+UseG1GC", "-Xshare:dump", &made, &named], &[]),
        // Without the archive this JVM ends in failure.
        java(&["-XX:+UseSerialGC", "-Xshare:on", &named], &trial),
        Step::SendFile { path: MADE.to_owned(), max_bytes: MOST_BYTES },
    ];
    let sent = steps.len() - 1;
    (Program { schema: PROGRAM_SCHEMA, door_port: None, steps }, sent)
}

/// Returns what the JVM that failed said, or what else went wrong.
fn refused(run: &ContainerRun) -> io::Result<String> {
    let failed = run.steps.iter().find(|output| match output.result() {
        Some(StepResult::Ended(end)) => end.exit_code != Some(0),
        _ => false,
    });
    let Some(output) = failed else { return Ok(not_done(run, "class archive").detail) };
    let said = [output.stderr.bytes()?, output.stdout.bytes()?].concat();
    Ok(shortened(String::from_utf8_lossy(&said).trim()))
}

fn path(store: &Store, key: Digest) -> PathBuf {
    store.root().join(DIRECTORY).join(format!("{}.json", key.hex()))
}

fn key(executor: &Executor, environment: &Environment, console: &str) -> io::Result<Digest> {
    let runner = &executor.jars.runner;
    let modified = fs::metadata(runner)?.modified()?;
    let keyed = Keyed {
        schema: SHARING_SCHEMA,
        toolchain: environment.toolchain,
        java_home: &environment.java_home,
        console,
        runner: file_name(runner),
        runner_modified: modified.duration_since(SystemTime::UNIX_EPOCH).map_err(io::Error::other)?.as_secs(),
        identity: executor.identity,
    };
    Ok(Digest::of(&serde_json::to_vec(&keyed)?))
}

/// Removes descriptions of class archives that were not used for long, and such as can't be read; returns how many. Their
/// blobs become garbage of the store.
///
/// # Errors
/// The file system's.
pub fn prune(store: &Store, keeping: &Keeping, dry_run: bool) -> io::Result<usize> {
    let entries = match fs::read_dir(store.root().join(DIRECTORY)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let (now, mut removed) = (SystemTime::now(), 0);
    for entry in entries {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        // One that is just written has another name.
        if stem.is_none_or(|stem| Digest::from_hex(stem).is_err()) {
            continue;
        }
        let used = fs::metadata(&path)?.modified()?;
        let unused = now.duration_since(used).unwrap_or_default();
        // A run may be at it.
        if unused < keeping.always {
            continue;
        }
        if unused < keeping.age && serde_json::from_slice::<Description>(&fs::read(&path)?).is_ok() {
            continue;
        }
        removed += usize::from(dry_run || remove_unused(&path, used)?);
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    struct Place {
        directory: tempfile::TempDir,
        archives: ClassArchives,
    }

    impl Place {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let data_dir = DataDir::open(directory.path()).unwrap();
            let store = data_dir.store().unwrap();
            let archives = ClassArchives::new(&data_dir, &store, &EventSink::none());
            Self { directory, archives }
        }

        fn describe(&self, key: Digest, archive: Digest) -> PathBuf {
            let path = path(&self.archives.store, key);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, serde_json::to_vec(&Description { schema: SHARING_SCHEMA, key, archive }).unwrap())
                .unwrap();
            path
        }
    }

    #[tokio::test]
    async fn an_archive_is_found_while_it_is_sound() {
        let place = Place::new();
        let store = &place.archives.store;
        let (key, other) = (Digest::of(b"key"), Digest::of(b"other"));
        assert_eq!(place.archives.load(key).await.unwrap(), None);
        let archive = store.put(b"classes").unwrap();
        let description = place.describe(key, archive);
        assert_eq!(place.archives.load(key).await.unwrap(), Some(store.path(&archive)));
        // Of another key, by accident or not.
        fs::copy(&description, path(store, other)).unwrap();
        assert_eq!(place.archives.load(other).await.unwrap(), None);
        fs::write(store.path(&archive), "other").unwrap();
        assert_eq!(place.archives.load(key).await.unwrap(), None);
        assert!(!store.contains(&archive));
        fs::write(&description, "{").unwrap();
        assert_eq!(place.archives.load(key).await.unwrap(), None);
    }

    #[test]
    fn the_old_and_the_unreadable_are_pruned() {
        let place = Place::new();
        let store = &place.archives.store;
        let hour = Duration::from_secs(3600);
        let keeping = |always| Keeping { always, age: hour, most_bytes: 0 };
        assert_eq!(prune(store, &keeping(Duration::ZERO), false).unwrap(), 0);
        let [old, young, torn] =
            [b"1", b"2", b"3"].map(|name| place.describe(Digest::of(name), Digest::of(b"archive")));
        fs::File::open(&old).unwrap().file().set_modified(SystemTime::now() - 2 * hour).unwrap();
        fs::write(&torn, "{").unwrap();
        assert_eq!(prune(store, &keeping(3 * hour), false).unwrap(), 0, "a run may be at them");
        assert_eq!(prune(store, &keeping(Duration::ZERO), true).unwrap(), 2);
        assert!(old.exists());
        assert_eq!(prune(store, &keeping(Duration::ZERO), false).unwrap(), 2);
        assert_eq!([&old, &young, &torn].map(|path| path.exists()), [false, true, false]);
        assert!(place.directory.path().exists());
    }
}
