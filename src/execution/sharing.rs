//! Class archives: the classes that every launch loads before a test (the JVM's own, our launcher's, JUnit's), and those
//! that every compiler loads (the JVM's own, javac's). They are parsed and checked once and then mapped into each JVM.
//!
//! `store/class-archives/<key>.json` names the archive's blob. A sealed container without any project makes the
//! archive: it launches a test of our own or compiles a source of our own, dumps the loaded classes, and does the same
//! again with the archive mandatory. The JVM itself decides whether an archive fits. Where it does not fit (another
//! collector, an entry before our jars), the JVM silently loads the classes as usual.
//!
//! An archive has one visible effect in a program: identity hash codes come in another order, and with them the
//! elements of a set of enum constants. So launches of both paths use the same archive, and execution keys say whether
//! there was one. No class that javac makes depends on this order.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use fs_err as fs;
use serde::{Deserialize, Serialize};

use crate::artifact::made::{self, Described, Fresh, Kind, Made, MadeError};
use crate::artifact::store::Store;
use crate::data_dir::DataDir;
use crate::digest::Digest;
use crate::engine::Engine;
use crate::engine::session::{self, ContainerRun};
use crate::engine::spec::{Command, PROGRAM_SCHEMA, Program, Step, StepResult};
use crate::event::EventSink;
use crate::execution::attempt::ATTEMPTS;
use crate::execution::container::file_name;
use crate::execution::container::limits::ExecutionLimits;
use crate::execution::container::places::{HOME, RUNNER, RUNNER_CLASS, XML_DIRECTORY, launcher_class_path};
use crate::execution::container::steps::done;
use crate::execution::container::temporary::Spool;
use crate::execution::container::{self, RepositoryImage, ToolJars};
use crate::execution::fault::{engine_fault, not_done};
use crate::outcome::launch::shortened;
use crate::thread::blocking;

/// JDK 8 shares the JVM's own classes only, which was measured to gain nothing here (docs/performance.md).
const FIRST_JDK: u32 = 11;
/// Earlier JVMs refuse an archive without any entry of a class path where they have one (`shared class paths mismatch`, tried on 11).
const FIRST_OF_COMPILERS: u32 = 17;

/// A class archive in the store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClassArchive {
    archive: Digest,
}

impl Described for ClassArchive {
    const KIND: Kind = Kind { directory: "class-archives", schema: 3, name: "a class archive" };

    fn blobs(&self) -> Vec<Digest> {
        vec![self.archive]
    }
}

/// Why there is no class archive.
#[derive(Debug, thiserror::Error)]
enum ArchiveError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Made(#[from] MadeError),
    /// The JVM made none.
    #[error("{0}")]
    Refused(String),
}

/// The class archives of a data directory, as one process uses them.
pub struct ClassArchives {
    made: Made<ClassArchive>,
    /// Toolchains and the JVMs of theirs that use no class archive.
    without: Mutex<BTreeSet<(Digest, Jvms)>>,
}

/// The JVMs that an archive serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Jvms {
    /// Those that run tests.
    Launches,
    /// Maven's and the warm compiler's.
    Compilers,
}

impl Jvms {
    fn first_jdk(self) -> u32 {
        match self {
            Self::Launches => FIRST_JDK,
            Self::Compilers => FIRST_OF_COMPILERS,
        }
    }
}

/// What an archive is for.
#[derive(Clone, Copy, Debug)]
pub enum Serves<'a> {
    /// Launches with this console.
    Launches(&'a str),
    /// Maven and the warm compiler.
    Compilers,
}

impl Serves<'_> {
    fn jvms(self) -> Jvms {
        match self {
            Self::Launches(_) => Jvms::Launches,
            Self::Compilers => Jvms::Compilers,
        }
    }

    /// Returns the class path of the JVM whose classes are archived. An archive without any entry fits every class path.
    fn class_path(self) -> String {
        match self {
            Self::Launches(console) => launcher_class_path(console),
            Self::Compilers => format!("{DIRECTORY}/none"),
        }
    }

    /// Returns the class path of the JVM that must be able to use the archive.
    fn tried_class_path(self) -> String {
        match self {
            Self::Launches(console) => launcher_class_path(console),
            Self::Compilers => RUNNER.to_owned(),
        }
    }

    /// Returns the main class or module of a trial, and its arguments.
    fn trial(self) -> Vec<&'static str> {
        match self {
            Self::Launches(_) => {
                [&[RUNNER_CLASS], &LAUNCHED[..], &["--events-fd", "3", "--xml", XML_DIRECTORY]].concat()
            }
            Self::Compilers => vec!["-m", "jdk.compiler/com.sun.tools.javac.Main", "-d", OUTPUT, SOURCE],
        }
    }
}

/// The inputs for making a class archive.
#[derive(Clone, Copy)]
pub(in crate::execution) struct ArchiveMaker<'a> {
    pub(in crate::execution) engine: &'a dyn Engine,
    pub(in crate::execution) jars: &'a ToolJars,
    pub(in crate::execution) limits: &'a ExecutionLimits,
    pub(in crate::execution) temporary: &'a Path,
    pub(in crate::execution) identity: Digest,
}

impl ClassArchives {
    /// Returns the class archives of `data_dir`.
    pub fn new(data_dir: &DataDir, store: &Store, events: &EventSink) -> Self {
        Self { made: Made::new(data_dir, store, events), without: Mutex::default() }
    }

    /// Tells whether launches in this image have a class archive, as known so far.
    pub(in crate::execution) fn serve(&self, image: &RepositoryImage) -> bool {
        self.serves(image, Jvms::Launches)
    }

    fn serves(&self, image: &RepositoryImage, jvms: Jvms) -> bool {
        let without = self.without.lock().unwrap_or_else(PoisonError::into_inner);
        image.jdk >= jvms.first_jdk() && !without.contains(&(image.toolchain, jvms))
    }

    /// Returns the class archive for these JVMs, and makes it if the store lacks it. `None` if they use none.
    pub(in crate::execution) async fn get(
        &self,
        maker: &ArchiveMaker<'_>,
        image: &RepositoryImage,
        serves: Serves<'_>,
    ) -> Option<PathBuf> {
        if !self.serves(image, serves.jvms()) {
            return None;
        }
        match self.find_or_make(maker, image, serves).await {
            Ok(path) => Some(path),
            Err(cause) => {
                self.go_without(image, serves.jvms(), &cause.to_string());
                None
            }
        }
    }

    fn go_without(&self, image: &RepositoryImage, jvms: Jvms, cause: &str) {
        let mut without = self.without.lock().unwrap_or_else(PoisonError::into_inner);
        if without.insert((image.toolchain, jvms)) {
            let jdk = image.jdk;
            let who = match jvms {
                Jvms::Launches => "launches",
                Jvms::Compilers => "compilers",
            };
            self.made.events().warning(format!("{who} on JDK {jdk} go without a class archive: {cause}"));
        }
    }

    async fn find_or_make(
        &self,
        maker: &ArchiveMaker<'_>,
        image: &RepositoryImage,
        serves: Serves<'_>,
    ) -> Result<PathBuf, ArchiveError> {
        let key = key((maker.jars, maker.identity), image, serves)?;
        let make = async || {
            // If the archive could not be made, launches that waited for it use none either: keys state this for all
            // launches.
            if !self.serves(image, serves.jvms()) {
                return Err(ArchiveError::Refused("none could be made".to_owned()));
            }
            let made = self.make(maker, image, serves).await;
            if let Err(cause) = &made {
                self.go_without(image, serves.jvms(), &cause.to_string());
            }
            Ok(Fresh::Kept(ClassArchive { archive: made? }))
        };
        let archive = self.made.get(key, make).await?.archive;
        Ok(self.made.store().path(&archive))
    }

    async fn make(
        &self,
        maker: &ArchiveMaker<'_>,
        image: &RepositoryImage,
        serves: Serves<'_>,
    ) -> Result<Digest, ArchiveError> {
        let mut attempt = 1;
        loop {
            match self.dump(maker, image, serves).await {
                Err(ArchiveError::Refused(_)) if attempt < ATTEMPTS => attempt += 1,
                dumped => return dumped,
            }
        }
    }

    /// Returns the archive's digest, or why there is none.
    async fn dump(
        &self,
        maker: &ArchiveMaker<'_>,
        image: &RepositoryImage,
        serves: Serves<'_>,
    ) -> Result<Digest, ArchiveError> {
        let (program, archive) = program(&image.java_home, serves, maker.limits);
        let limits = (maker.limits.compile, maker.limits.compile_scratch_bytes);
        let image = image.config_digest;
        let spec = container::container_without_tree("class-archive", image, maker.jars, limits, program);
        let spool = Spool::create(maker.temporary)?;
        let run = session::run(maker.engine, &spec, spool.path()).await;
        let run = run.map_err(|error| ArchiveError::Refused(engine_fault(&error).detail))?;
        let Some(sent) = done(&run, archive) else { return Err(ArchiveError::Refused(refused(&run)?)) };
        let (store, captured) = (self.made.store().clone(), sent.content.clone());
        let kept = blocking::<_, MadeError>(move || {
            let mut writer = store.writer()?;
            io::copy(&mut captured.open()?, &mut writer)?;
            Ok(writer.commit()?.0)
        });
        Ok(kept.await?)
    }
}

/// A test of our own. A JVM launches it in order to load the classes of a launch.
const LAUNCHED: [&str; 4] = ["--class", "testevo.runner.Trial", "--method", "launches"];

/// A source of our own. A compiler compiles it in order to load the classes of a compilation.
const COMPILED: &str = include_str!("sharing/Trial.java");

/// The directory of what is made.
const DIRECTORY: &str = "/work/archive";
/// The file of a new archive.
const MADE: &str = "/work/archive/classes.jsa";
/// The classes that a trial loaded, one a line.
const LOADED: &str = "/work/archive/classes.lst";
/// The source of a compiler's trial.
const SOURCE: &str = "/work/archive/Trial.java";
/// The output directory of a compiler's trial.
const OUTPUT: &str = "/work/archive/classes";
/// The largest archive, in bytes. Archives have some 20 MiB.
const MOST_BYTES: u64 = 128 << 20;

/// Returns the program that makes an archive, and the index of the step that sends it.
fn program(java_home: &str, serves: Serves<'_>, limits: &ExecutionLimits) -> (Program, usize) {
    let java = |jvm: &[&str], class_path: String, main: &[&str]| {
        let mut argv = vec![format!("{java_home}/bin/java"), "-Xmx1g".to_owned(), "-XX:-UsePerfData".to_owned()];
        argv.extend(jvm.iter().map(|word| (*word).to_owned()));
        argv.extend(["-cp".to_owned(), class_path]);
        argv.extend(main.iter().map(|word| (*word).to_owned()));
        Step::Run(Command {
            argv,
            environment: container::environment(java_home, &[]),
            working_directory: "/work".to_owned(),
            limits: limits.compile_command,
            events: true,
            required: true,
            only_after_success_of: None,
        })
    };
    let trial = serves.trial();
    let [loaded, made, named] = [
        format!("-XX:DumpLoadedClassList={LOADED}"),
        format!("-XX:SharedClassListFile={LOADED}"),
        format!("-XX:SharedArchiveFile={MADE}"),
    ];
    let steps = vec![
        Step::MakeDirectory { path: HOME.to_owned() },
        Step::MakeDirectory { path: XML_DIRECTORY.to_owned() },
        Step::MakeDirectory { path: OUTPUT.to_owned() },
        Step::Write { path: SOURCE.to_owned(), content: COMPILED.to_owned() },
        java(&["-Xshare:off", &loaded], serves.class_path(), &trial),
        // Only this collector can put the JVM's own objects into an archive. Launches can use the archive with any
        // collector.
        java(&["-XX:+UseG1GC", "-Xshare:dump", &made, &named], serves.class_path(), &[]),
        // This JVM fails if it can't use the archive.
        java(&["-XX:+UseSerialGC", "-Xshare:on", &named], serves.tried_class_path(), &trial),
        Step::SendFile { path: MADE.to_owned(), max_bytes: MOST_BYTES },
    ];
    let sent = steps.len() - 1;
    (Program { schema: PROGRAM_SCHEMA, door_port: None, steps }, sent)
}

/// Returns the failed JVM's message, or another reason for the failure.
fn refused(run: &ContainerRun) -> io::Result<String> {
    let failed = run.steps.iter().find(|output| match output.result() {
        Some(StepResult::Ended(end)) => end.exit_code != Some(0),
        _ => false,
    });
    let Some(output) = failed else { return Ok(not_done(run, "class archive").detail) };
    let said = [output.stderr.bytes()?, output.stdout.bytes()?].concat();
    Ok(shortened(String::from_utf8_lossy(&said).trim()))
}

/// Returns the key of an archive: a digest of everything that decides its content, and to which launches it fits.
///
/// # Errors
/// I/O errors of reading the modification time of the runner's jar.
pub fn key((jars, identity): (&ToolJars, Digest), image: &RepositoryImage, serves: Serves<'_>) -> io::Result<Digest> {
    let Serves::Launches(console) = serves else {
        // No jar is in the archive.
        return Ok(made::key::<ClassArchive>(&(image.toolchain, &image.java_home, "compilers", identity)));
    };
    let runner = &jars.runner;
    let modified = fs::metadata(runner)?.modified()?;
    // In seconds since the epoch. A JVM rejects an archive if a jar's modification time differs from the recorded one.
    let modified = modified.duration_since(SystemTime::UNIX_EPOCH).map_err(io::Error::other)?.as_secs();
    let RepositoryImage { toolchain, java_home, .. } = image;
    // The identity covers the commands' flags.
    let inputs = (toolchain, java_home, console, file_name(runner), modified, identity);
    Ok(made::key::<ClassArchive>(&inputs))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::engine::scripted::{Said, Scripted};
    use crate::execution::scripted::{executor, image};

    #[tokio::test]
    async fn who_waits_for_an_archive_that_can_not_be_made_goes_without() {
        let directory = tempfile::tempdir().unwrap();
        let data_dir = DataDir::open(directory.path()).unwrap();
        let store = Store::of(&data_dir).unwrap();
        let engine = Arc::new(Scripted::new(|_, _| Said { frames: Vec::new(), ends: true }));
        let archives = Arc::new(ClassArchives::new(&data_dir, &store, &EventSink::none()));
        let mut executor = executor(&engine, &data_dir);
        fs::write(&executor.jars.runner, "jar").unwrap();
        executor.class_archives = Some(Arc::clone(&archives));
        let image = RepositoryImage { jdk: FIRST_OF_COMPILERS, ..image() };
        assert!(archives.serve(&image));
        let launches = Serves::Launches("/opt/console.jar");
        let (first, second) =
            tokio::join!(executor.class_archive(&image, launches), executor.class_archive(&image, launches));
        assert_eq!((first, second), (None, None));
        assert_eq!(engine.started().len(), ATTEMPTS as usize, "the second did not try again");
        assert!(!archives.serve(&image), "keys say that launches have none");
        assert_eq!(executor.class_archive(&image, Serves::Compilers).await, None);
        assert_eq!(engine.started().len(), 2 * ATTEMPTS as usize, "compilers' archive is another one");
        let earlier = RepositoryImage { jdk: FIRST_JDK, ..image };
        assert!(!archives.serves(&earlier, Jvms::Compilers));
    }
}
