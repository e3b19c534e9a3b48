//! Scripted executions, shared by tests.

use std::path::Path;
use std::sync::Arc;

use crate::artifact::store::Store;
use crate::data_dir::DataDir;
use crate::digest::Digest;
use crate::engine::frame::Frame;
use crate::engine::scripted::{Scripted, completed, exited, output, step_end};
use crate::engine::spec::{CommandEnd, ContainerSpec, LimitReached, Step, StepResult, Stream};
use crate::event::EventSink;
use crate::execution::build::built::Built;
use crate::execution::build::compiler::Compilers;
use crate::execution::build::merged::OpenTree;
use crate::execution::build::prepared::PreparedRevisions;
use crate::execution::build::surefire::JvmSettings;
use crate::execution::container::Surefire;
use crate::execution::container::limits::ExecutionLimits;
use crate::execution::container::pool::ContainerPool;
use crate::execution::container::temporary::TemporaryFile;
use crate::execution::container::{RepositoryImage, ToolJars};
use crate::execution::direct::{Direct, write_files};
use crate::execution::executor::Executor;
use crate::execution::run::record::ExecutionPath;
use crate::outcome::launch::seal::signed;
use crate::task::{Task, Track};

/// Returns an executor that follows a script.
pub(super) fn executor(engine: &Arc<Scripted>, data_dir: &DataDir) -> Executor {
    Executor {
        engine: Arc::<Scripted>::clone(engine),
        engine_name: "scripted".to_owned(),
        isolation_missing: Vec::new(),
        jars: ToolJars::below(&data_dir.temporary()),
        limits: ExecutionLimits::from(&crate::manifest::Limits::default()),
        temporary: data_dir.temporary(),
        logs: None,
        identity: Digest::of(b"identity"),
        exclusive: Arc::default(),
        trusts_first_timeout: false,
        confirmed: None,
        pool: Arc::new(ContainerPool::new(Arc::<Scripted>::clone(engine), 0)),
        class_archives: None,
    }
}

/// Returns the direct path with one compiler, which follows a script.
pub(super) fn direct(engine: &Arc<Scripted>, data_dir: &DataDir) -> Direct {
    let store = Store::of(data_dir).unwrap();
    let prepared = PreparedRevisions::new(data_dir, &store, &EventSink::none());
    let jar = Path::new("compiler.jar");
    let temporary = data_dir.temporary();
    let compilers = Compilers::new(Arc::<Scripted>::clone(engine), jar.to_owned(), temporary, 1);
    Direct::new(prepared, compilers)
}

pub(super) fn image() -> RepositoryImage {
    RepositoryImage {
        config_digest: Digest::of(b"image"),
        toolchain: Digest::of(b"toolchain"),
        jdk: 8,
        java_home: "/jdk".to_owned(),
        maven_arguments: Vec::new(),
        launcher: Default::default(),
        surefire: Surefire::Project,
    }
}

/// Returns a task with three methods, one of them in a nested class.
pub(super) fn task() -> Task {
    Task {
        id: "t".parse().unwrap(),
        repository: "o/n".parse().unwrap(),
        track: Track::TestUpdate,
        rev1: "a".repeat(40).parse().unwrap(),
        rev2: "b".repeat(40).parse().unwrap(),
        rev1_date: "2020-01-01".to_owned(),
        rev2_date: "2020-01-01".to_owned(),
        test_file: "src/test/java/ATest.java".parse().unwrap(),
        test_methods: ["ATest#m", "ATest$Inner#m", "ATest#n"].map(|id| id.parse().unwrap()).into(),
        focal_methods: Vec::new(),
    }
}

/// Returns an opened tree of these files.
pub(super) async fn open_tree<'a>(directory: &Path, files: impl Iterator<Item = (&'a str, &'a [u8])>) -> OpenTree {
    let mut built = built(directory);
    let archive = directory.join("tree.tar");
    write_files(&archive, files).unwrap();
    built.archives = vec![archive];
    OpenTree::of(&built).await.unwrap()
}

/// Returns an empty compiled tree.
pub(super) fn built(directory: &Path) -> Built {
    let own = TemporaryFile::named(directory, "compiled", "tar");
    write_files(own.path(), std::iter::empty()).unwrap();
    Built {
        path: ExecutionPath::Maven,
        archives: vec![own.path().to_owned()],
        module: "/work/project".to_owned(),
        class_path: Vec::new(),
        build_cpu_ms: None,
        settings: JvmSettings::default(),
        family: Default::default(),
        own: vec![std::sync::Arc::new(own)],
    }
}

/// The JVMs of a program: the step's index, and the class and method that are launched.
pub(super) fn launches(spec: &ContainerSpec) -> Vec<(usize, String, String)> {
    let steps = spec.program.steps.iter().enumerate();
    let commands = steps.filter_map(|(index, step)| match step {
        Step::Run(command) => Some((index, command)),
        _ => None,
    });
    let value = |argv: &[String], option: &str| {
        let at = argv.iter().position(|word| word == option).unwrap();
        argv[at + 1].clone()
    };
    commands
        .map(|(index, command)| (index, value(&command.argv, "--class"), value(&command.argv, "--method")))
        .collect()
}

/// The frames of init and launcher for a passing method, signed with the program's key.
pub(super) fn passed(spec: &ContainerSpec, (step, class, method): &(usize, String, String)) -> Vec<Frame> {
    let events = format!(
        r#"{{"event":"run_started","schema":1,"class":"{class}","method":"{method}","platform":"1","java":"8","ms":0}}
{{"event":"discovered","id":"i","leaf":true,"match":"method","class":"{class}","ms":1}}
{{"event":"started","id":"i","leaf":true,"ms":2}}
{{"event":"finished","id":"i","leaf":true,"status":"SUCCESSFUL","ms":3}}
{{"event":"run_finished","status":0,"leaves":{{"discovered":1,"registered":0,"started":1,"successful":1,"failed":0,"aborted":0,"skipped":0,"not_run":0}},"containers_not_successful":0,"report_complete":true,"ms":4}}
"#
    );
    let key = spec.program.steps.iter().find_map(|step| match step {
        Step::Write { content, .. } => Some(content.clone()),
        _ => None,
    });
    let events = signed(&key.unwrap(), &events.lines().collect::<Vec<_>>());
    let mut frames = output(u32::try_from(*step).unwrap(), Stream::Events, events.as_bytes());
    frames.push(step_end(*step, exited(0)));
    frames
}

/// The frames of init and recorder for a build that compiles.
pub(super) fn compiled() -> Vec<Frame> {
    let recording = r#"{"event":"recording_started","schema":2}
{"event":"session_started","projects":[{"project":"g:a","basedir":"/work/project","output":"/work/project/target/classes","test_output":"/work/project/target/test-classes"}]}
{"event":"session_ended","success":true,"failures":[]}
"#;
    let mut frames = vec![step_end(0, StepResult::Done), step_end(1, StepResult::Done), step_end(2, exited(0))];
    for (step, content) in (3..).zip([recording, "/m2/a.jar", "archive"]) {
        frames.extend(output(step, Stream::Content, content.as_bytes()));
        frames.push(step_end(step as usize, StepResult::Done));
    }
    frames.push(completed());
    frames
}

/// The result of a JVM that exceeded its wall time.
pub(super) fn out_of_time() -> StepResult {
    let StepResult::Ended(end) = exited(0) else { panic!("a command that exited has ended") };
    let limit = Some(LimitReached::Wall);
    StepResult::Ended(CommandEnd { exit_code: None, signal: Some(9), limit, ..end })
}
