//! What the tests of the engines share: the engines, a tiny image, and programs.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::LazyLock;

use futures_util::StreamExt as _;
use futures_util::stream;
use testevo_sandbox::data_dir::Owner;
use testevo_sandbox::digest::Digest;
use testevo_sandbox::engine::docker::{Daemon, DockerEngine};
use testevo_sandbox::engine::native::NativeEngine;
use testevo_sandbox::engine::session::{self, ContainerRun, RunEnd, StepOutput};
use testevo_sandbox::engine::spec::{
    Command, CommandEnd, CommandLimits, ContainerLimits, ContainerSpec, PROGRAM_SCHEMA, Program, ProgramEnd,
    ReadOnlyMount, Scratch, Step, StepResult,
};
use testevo_sandbox::engine::{Engine, EngineError, ImageIdentity};
use testevo_sandbox::event::EventSink;

use super::image;

/// The program under test, which becomes the containers' init.
pub(crate) fn init() -> PathBuf {
    program("TESTEVO_TEST_INIT", || env!("CARGO_BIN_EXE_testevo-sandbox").into())
}

/// A program that another process of the tests named, or one of this build's.
fn program(variable: &str, built: impl FnOnce() -> PathBuf) -> PathBuf {
    std::env::var_os(variable).map_or_else(built, PathBuf::from)
}

/// Which engine a test runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A daemon, whichever answers.
    Daemon,
    /// Podman's service.
    Podman,
    /// The built-in engine, as whoever runs the tests.
    Native,
}

thread_local! {
    static KIND: std::cell::Cell<Kind> = const { std::cell::Cell::new(Kind::Daemon) };
}

/// Has this thread's tests run on an engine.
pub(crate) fn run_on(kind: Kind) {
    KIND.set(kind);
}

/// Tells whether the test runs on Podman's service of a user without root's rights.
pub(crate) fn is_podman_without_root() -> bool {
    KIND.get() == Kind::Podman && !rustix::process::geteuid().is_root()
}

/// Returns what `self` said as it would be if users were numbered as images do. A daemon that maps none has another number.
pub(crate) fn as_named_by_images(described: String) -> String {
    described.replace("[61000, 61000, 61000]", "[1000, 1000, 1000]")
}

/// Tells whether init keeps the limits by its own account.
pub(crate) async fn by_own_account() -> bool {
    engine().await.describe().await.unwrap().isolation.unenforced.iter().any(|name| name == "memory")
}

/// An engine of some kind.
pub(crate) enum AnyEngine {
    Daemon(Box<DockerEngine>),
    Native(Box<NativeEngine>),
}

impl AnyEngine {
    pub(crate) async fn wait_for_removals(&self) {
        match self {
            Self::Daemon(engine) => engine.wait_for_removals().await,
            Self::Native(engine) => engine.wait_for_removals().await,
        }
    }
}

impl std::ops::Deref for AnyEngine {
    type Target = dyn Engine;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Daemon(engine) => engine.as_ref(),
            Self::Native(engine) => engine.as_ref(),
        }
    }
}

/// Where the built-in engine of this user's tests keeps unpacked layers.
pub(crate) fn unpacked(user: u32) -> PathBuf {
    program("TESTEVO_TEST_UNPACKED", || Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("unpacked-{user}")))
}

/// The daemon as an engine of this process. A missing one fails the test.
pub(crate) async fn daemon() -> DockerEngine {
    reached(&Daemon::Any).await
}

/// Podman's service as an engine of this process. A missing one fails the test: `.ci/engine` installs and starts it.
pub(crate) async fn podman() -> DockerEngine {
    let engine = reached(&Daemon::Podman).await;
    assert_eq!(engine.describe().await.unwrap().name, "podman");
    engine
}

/// The daemon that is meant, which has heard of the tests' image.
pub(crate) async fn reached(daemon: &Daemon) -> DockerEngine {
    static FILES: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    let files = FILES.get_or_init(|| shared_directory("files"));
    let engine = DockerEngine::connect(daemon, &Owner::current().unwrap(), &init(), files).await.unwrap();
    engine.introduce(&IMAGE.0);
    engine
}

/// The built-in engine, with this process's owner.
pub(crate) fn native() -> NativeEngine {
    let user = rustix::process::geteuid().as_raw();
    NativeEngine::open(&unpacked(user), &Owner::current().unwrap(), &init(), &EventSink::none()).unwrap()
}

/// The engine that the test runs on.
pub(crate) async fn engine() -> AnyEngine {
    match KIND.get() {
        Kind::Daemon => AnyEngine::Daemon(Box::new(daemon().await)),
        Kind::Podman => AnyEngine::Daemon(Box::new(podman().await)),
        Kind::Native => AnyEngine::Native(Box::new(native())),
    }
}

/// A user without any rights or even a name.
pub(crate) const NOBODY: u32 = 61_234;

/// A directory for something that everybody may look into and that all tests of this process share; those of dead processes go.
fn shared_directory(purpose: &str) -> PathBuf {
    const NAME: &str = "testevo-sandbox-tests-";
    let owner = Owner::current().unwrap();
    for entry in fs_err::read_dir(std::env::temp_dir()).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let left = name.strip_prefix(NAME).and_then(|name| Owner::parse(name.split_once('.')?.0));
        let left = left.is_some_and(|owner| !owner.is_alive());
        if left {
            // Another test process may be at it, too.
            let _ = fs_err::remove_dir_all(entry.path());
        }
    }
    let directory = std::env::temp_dir().join(format!("{NAME}{owner}.{purpose}"));
    fs_err::create_dir(&directory).unwrap();
    fs_err::set_permissions(&directory, std::fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

/// Gives the tests' snapshots to everybody: the sources may lie where only their owner may look.
fn copy_snapshots(root: &Path) {
    let place = "tests/engine/snapshots";
    fs_err::create_dir_all(root.join(place)).unwrap();
    for entry in fs_err::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(place)).unwrap() {
        let entry = entry.unwrap();
        let copy = root.join(place).join(entry.file_name());
        fs_err::copy(entry.path(), &copy).unwrap();
        fs_err::set_permissions(&copy, std::fs::Permissions::from_mode(0o644)).unwrap();
    }
}

/// Runs a test of this binary and returns what it said, as a user without rights; where this one has none it is that one.
pub(crate) fn as_nobody(test: &str) -> String {
    use std::os::unix::process::CommandExt as _;
    let (_, test) = test.split_once("::").unwrap();
    let root = rustix::process::geteuid().is_root();
    let mut process = Process::new(std::env::current_exe().unwrap());
    process.env("INSTA_WORKSPACE_ROOT", env!("CARGO_MANIFEST_DIR"));
    if root {
        // It may not see what is closed to it: the programs are given to it where it can.
        static PROGRAMS: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
        let programs = PROGRAMS.get_or_init(|| {
            let programs = shared_directory("programs");
            for (name, program) in
                [("tests", std::env::current_exe().unwrap()), ("init", init()), ("misbehave", misbehave())]
            {
                let place = programs.join(name);
                fs_err::hard_link(&program, &place).or_else(|_| fs_err::copy(&program, &place).map(|_| ())).unwrap();
                fs_err::set_permissions(&place, std::fs::Permissions::from_mode(0o755)).unwrap();
            }
            copy_snapshots(&programs.join("sources"));
            programs
        });
        let layers = programs.join("unpacked");
        fs_err::create_dir_all(&layers).unwrap();
        std::os::unix::fs::chown(&layers, Some(NOBODY), Some(NOBODY)).unwrap();
        let at = |name: &str| programs.join(name);
        process = Process::new(at("tests"));
        process.uid(NOBODY).gid(NOBODY).current_dir("/").env("INSTA_WORKSPACE_ROOT", programs.join("sources"));
        for (variable, name) in [
            ("TESTEVO_TEST_INIT", "init"),
            ("TESTEVO_TEST_MISBEHAVE", "misbehave"),
            ("TESTEVO_TEST_UNPACKED", "unpacked"),
        ] {
            process.env(variable, at(name));
        }
    }
    let output =
        process.args(["--exact", test, "--nocapture", "--include-ignored"]).env("INSTA_UPDATE", "no").output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "{test} as user {NOBODY}:\n{said}");
    said
}

/// Has every test run on the daemon, on Podman, on the built-in engine, and on the latter as a user without rights.
macro_rules! on_every_engine {
    ($($test:ident),* $(,)?) => {
        mod daemon {
            $(#[tokio::test]
            async fn $test() {
                crate::engine::support::run_on(crate::engine::support::Kind::Daemon);
                super::$test().await;
            })*
        }
        mod podman {
            $(#[tokio::test]
            async fn $test() {
                crate::engine::support::run_on(crate::engine::support::Kind::Podman);
                super::$test().await;
            })*
        }
        crate::engine::support::on_the_native_engine!($($test),*);
    };
}

/// As [`on_every_engine`], without the daemons.
macro_rules! on_the_native_engine {
    ($($test:ident),* $(,)?) => {
        mod native {
            $(#[tokio::test]
            async fn $test() {
                crate::engine::support::run_on(crate::engine::support::Kind::Native);
                super::$test().await;
            })*
        }
        mod native_as_nobody {
            $(#[test]
            fn $test() {
                let own = module_path!().replace("native_as_nobody", "native");
                crate::engine::support::as_nobody(&format!("{own}::{}", stringify!($test)));
            })*
        }
    };
}
pub(crate) use {on_every_engine, on_the_native_engine};

/// The program that misbehaves in containers, built where it is missing or older than its source.
pub(crate) fn misbehave() -> PathBuf {
    if let Some(given) = std::env::var_os("TESTEVO_TEST_MISBEHAVE") {
        return given.into();
    }
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let sources = ["misbehave.rs", "marks.rs"].map(|name| fixtures.join(name));
    let built = init().with_file_name("examples").join("misbehave");
    let time = |path: &Path| fs_err::metadata(path).and_then(|found| found.modified());
    if time(&built).is_ok_and(|built| sources.iter().all(|source| built >= time(source).unwrap())) {
        return built;
    }
    let status = Process::new(env!("CARGO")).args(["build", "--quiet", "--example", "misbehave"]).status().unwrap();
    assert!(status.success() && built.is_file(), "the example `misbehave` could not be built");
    built
}

/// An image with nothing but the program that misbehaves.
static IMAGE: LazyLock<(ImageIdentity, Vec<u8>)> = LazyLock::new(|| {
    let program = fs_err::read(misbehave()).unwrap();
    let program = program.as_slice();
    image::image("misbehave", &[("bin/misbehave", 0o755, program), ("bin/set-uid", 0o4755, program)])
});

/// The image's digest, once it is loaded into the engine that the test runs on.
pub(crate) async fn loaded_image(engine: &dyn Engine) -> Digest {
    type Loaded = tokio::sync::OnceCell<Digest>;
    static DAEMON: Loaded = Loaded::const_new();
    static PODMAN: Loaded = Loaded::const_new();
    static NATIVE: Loaded = Loaded::const_new();
    let loaded = match KIND.get() {
        Kind::Daemon => &DAEMON,
        Kind::Podman => &PODMAN,
        Kind::Native => &NATIVE,
    };
    engine.introduce(&IMAGE.0);
    *loaded.get_or_init(|| load(engine)).await
}

/// Loads the image into an engine that may have it already.
pub(crate) async fn load(engine: &dyn Engine) -> Digest {
    let (identity, archive) = &*IMAGE;
    let digest = identity.config_digest;
    if !engine.has_image(&digest).await.unwrap() {
        let pieces: Vec<_> = archive.chunks(1 << 20).map(|piece| Ok(piece.to_vec().into())).collect();
        engine.load_image(&digest, stream::iter(pieces).boxed()).await.unwrap();
    }
    digest
}

pub(crate) const MIB: u64 = 1 << 20;

/// A directory that a container's user may read.
pub(crate) fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs_err::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

/// A container for these steps, with limits that well-behaved ones never meet.
pub(crate) fn spec(image: Digest, steps: Vec<Step>) -> ContainerSpec {
    ContainerSpec {
        purpose: "test".into(),
        image,
        mounts: Vec::new(),
        door: None,
        scratch: vec![
            Scratch { target: "/work".into(), size_bytes: 16 * MIB },
            Scratch { target: "/tmp".into(), size_bytes: 16 * MIB },
        ],
        limits: ContainerLimits { memory_bytes: 256 * MIB, cpus: 2, processes: 64, wall_seconds: 120 },
        program: Program { schema: PROGRAM_SCHEMA, door_port: None, steps },
    }
}

/// A command that does one bad thing.
pub(crate) fn command(arguments: &[&str]) -> Command {
    Command {
        argv: ["/bin/misbehave"].iter().chain(arguments).map(|text| (*text).to_owned()).collect(),
        environment: vec![("PATH".into(), "/bin".into())],
        working_directory: "/work".into(),
        limits: CommandLimits { wall_seconds: 60, cpu_seconds: 60, output_bytes: MIB, flood_bytes: 64 * MIB },
        events: false,
        required: false,
        only_after_success_of: None,
    }
}

/// The step for a command.
pub(crate) fn step(arguments: &[&str]) -> Step {
    Step::Run(command(arguments))
}

pub(crate) fn mount(source: &Path, target: &str) -> ReadOnlyMount {
    ReadOnlyMount { source: source.to_owned(), target: target.into() }
}

/// A run with its directory for long streams.
pub(crate) struct Finished {
    pub(crate) run: ContainerRun,
    _spool: tempfile::TempDir,
}

/// Runs a container to its end, which must be a regular one.
pub(crate) async fn finish(spec: &ContainerSpec) -> Finished {
    let finished = attempt(spec).await.unwrap();
    assert!(finished.run.is_complete(), "{:?}", finished.run);
    finished
}

/// Runs a container to any end.
pub(crate) async fn attempt(spec: &ContainerSpec) -> Result<Finished, EngineError> {
    let engine = engine().await;
    let spool = directory();
    let run = session::run(&*engine, spec, spool.path()).await;
    // Removals are waited for: the test's runtime ends with it.
    engine.wait_for_removals().await;
    Ok(Finished { run: run?, _spool: spool })
}

/// Runs a container whose archives follow its program to any end.
pub(crate) async fn attempt_with(spec: &ContainerSpec, archives: &[&Path]) -> Result<Finished, EngineError> {
    let engine = engine().await;
    let spool = directory();
    let run = match engine.start(spec).await {
        Ok(container) => {
            session::go_through(container, spec, archives, spool.path(), tokio::time::Instant::now()).await
        }
        Err(error) => Err(error),
    };
    engine.wait_for_removals().await;
    Ok(Finished { run: run?, _spool: spool })
}

/// Runs steps in a container of their own.
pub(crate) async fn steps(steps: Vec<Step>) -> Finished {
    let image = loaded_image(&*engine().await).await;
    finish(&spec(image, steps)).await
}

impl Finished {
    pub(crate) fn step(&self, index: usize) -> &StepOutput {
        self.run.step(index).unwrap_or_else(|| panic!("step {index} was not begun: {:?}", self.run))
    }

    pub(crate) fn result(&self, index: usize) -> &StepResult {
        self.step(index).result().unwrap_or_else(|| panic!("step {index} did not end: {:?}", self.run))
    }

    pub(crate) fn end(&self, index: usize) -> &CommandEnd {
        match self.result(index) {
            StepResult::Ended(end) => end,
            other => panic!("step {index} is no command that ended: {other:?}"),
        }
    }

    pub(crate) fn stdout(&self, index: usize) -> String {
        String::from_utf8_lossy(&self.step(index).stdout.bytes().unwrap()).into_owned()
    }

    pub(crate) fn assert_completed(&self) {
        assert_eq!(self.run.end, RunEnd::Program(ProgramEnd::Completed), "{:?}", self.run);
    }
}
