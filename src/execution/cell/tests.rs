//! What is tried again and what is not: tests with scripted containers.

use super::*;
use crate::engine::frame::Frame;
use crate::engine::scripted::{Said, Scripted, completed, exited, output, step_end};
use crate::engine::spec::{Step, StepResult, Stream};
use crate::execution::prepared::loading::environment;
use crate::outcome::InfraReason;

/// An executor of scripted containers, and one cell for it.
struct Place {
    directory: tempfile::TempDir,
    engine: Arc<Scripted>,
    executor: Executor,
    environment: Environment,
    input: CellInput,
    task: Task,
    module: ModuleArguments,
}

impl Place {
    /// The script is told how many containers were started before, what the present one is asked for, and the lock that
    /// second runs of timeouts hold alone.
    fn new(script: impl Fn(usize, &ContainerSpec, &RwLock<()>) -> Said + Send + Sync + 'static) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let alone = Arc::new(RwLock::new(()));
        let lock = Arc::clone(&alone);
        let engine = Arc::new(Scripted::new(move |number, spec| script(number, spec, &lock)));
        let executor = Executor {
            engine: Arc::<Scripted>::clone(&engine),
            engine_name: "scripted".to_owned(),
            isolation_missing: Vec::new(),
            jars: ToolJars::below(directory.path()),
            limits: ExecutionLimits::from(&crate::manifest::Limits::default()),
            temporary: directory.path().to_owned(),
            logs: None,
            identity: Digest::of(b"identity"),
            alone,
            believes_timeouts: false,
            class_archives: None,
        };
        let environment = environment();
        let task = Task {
            id: "t".parse().unwrap(),
            repository: "o/n".parse().unwrap(),
            track: crate::task::Track::TestUpdate,
            rev1: "a".repeat(40).parse().unwrap(),
            rev2: "b".repeat(40).parse().unwrap(),
            rev1_date: "2020-01-01".to_owned(),
            rev2_date: "2020-01-01".to_owned(),
            test_file: "src/test/java/ATest.java".parse().unwrap(),
            test_methods: ["ATest#m", "ATest$Inner#m", "ATest#n"].map(|id| id.parse().unwrap()).into(),
            focal_methods: Vec::new(),
        };
        let input = CellInput {
            archive: directory.path().join("tree.tar"),
            tree: "c".repeat(40),
            swapped: Some(Digest::of(b"text")),
            module: None,
            test_file: task.test_file.to_string(),
            class: "ATest".to_owned(),
        };
        let module = ModuleArguments::default();
        Self { directory, engine, executor, environment, input, task, module }
    }

    fn request(&self) -> CellRequest<'_> {
        CellRequest {
            task: &self.task,
            cell: Cell::Nn,
            input: &self.input,
            environment: &self.environment,
            methods: &self.task.test_methods,
            repeats: 1,
            path: ExecutionPath::Maven,
            apart: false,
            other_text: None,
        }
    }

    /// Compiles and returns outcome, attempts and containers.
    async fn compile(&self) -> (Outcome, u32, usize) {
        let logs = CellLogs::create(None, &self.task.id, Cell::Nn).unwrap();
        let (compiled, attempts, _) = self.executor.compile(&self.request(), &self.module, &logs).await.unwrap();
        let Compiled::Failed { outcome, .. } = compiled else { panic!("nothing was compiled") };
        (outcome, attempts, self.engine.started().len())
    }

    /// Launches all methods and returns the outcome and attempts of each.
    async fn launch(&self) -> Vec<(Outcome, u32)> {
        let logs = CellLogs::create(None, &self.task.id, Cell::Nn).unwrap();
        let ready = Ready {
            archive: self.directory.path().join("compiled.tar"),
            class_path: Vec::new(),
            settings: JvmSettings::default(),
        };
        let request = self.request();
        let methods: Vec<&MethodId> = request.methods.iter().collect();
        let launched = self.executor.launch(&request, &self.module, &ready, &methods, 1, &logs).await.unwrap();
        launched.into_iter().map(|one| (one.outcome, one.attempts)).collect()
    }
}

/// The JVMs of a program: the step's index, and the class and method that are launched.
fn launches(spec: &ContainerSpec) -> Vec<(usize, String, String)> {
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

/// What init and launcher say of a method that passes.
fn passed((step, class, method): &(usize, String, String)) -> Vec<Frame> {
    let events = format!(
        r#"{{"event":"run_started","schema":1,"class":"{class}","method":"{method}","platform":"1","java":"8","ms":0}}
{{"event":"discovered","id":"i","leaf":true,"match":"method","class":"{class}","ms":1}}
{{"event":"started","id":"i","leaf":true,"ms":2}}
{{"event":"finished","id":"i","leaf":true,"status":"SUCCESSFUL","ms":3}}
{{"event":"run_finished","status":0,"leaves":{{"discovered":1,"registered":0,"started":1,"successful":1,"failed":0,"aborted":0,"skipped":0,"not_run":0}},"containers_not_successful":0,"report_complete":true,"ms":4}}
"#
    );
    let mut frames = output(u32::try_from(*step).unwrap(), Stream::Events, events.as_bytes());
    frames.push(step_end(*step, exited(0)));
    frames
}

/// What init and recorder say of a build that compiles.
fn compiled() -> Vec<Frame> {
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

/// A JVM that met its limit of wall time.
fn out_of_time() -> StepResult {
    let StepResult::Ended(end) = exited(0) else { panic!("a command that exited has ended") };
    let limit = Some(crate::engine::spec::LimitReached::Wall);
    StepResult::Ended(crate::engine::spec::CommandEnd { exit_code: None, signal: Some(9), limit, ..end })
}

#[tokio::test]
async fn what_has_a_verdict_keeps_it_when_another_one_is_tried_again() {
    let place = Place::new(|number, spec, _| {
        let launches = launches(spec);
        let asked: Vec<String> = launches.iter().map(|(_, class, method)| format!("{class}#{method}")).collect();
        match number {
            // The container is gone after the first method.
            0 => {
                assert_eq!(asked, ["ATest#m", "ATest$Inner#m", "ATest#n"]);
                Said { frames: passed(&launches[0]), ends: true }
            }
            1 => {
                assert_eq!(asked, ["ATest$Inner#m"]);
                let (step, ..) = launches[0];
                Said { frames: vec![step_end(step, out_of_time())], ends: true }
            }
            _ => {
                assert_eq!(asked, ["ATest#n"], "in a container of its own");
                Said { frames: [passed(&launches[0]), vec![completed()]].concat(), ends: true }
            }
        }
    });
    let timeout = Outcome::ExecFail(ExecReason::Timeout);
    assert_eq!(place.launch().await, [(Outcome::Pass, 1), (timeout, 2), (Outcome::Pass, 2)]);
    assert_eq!(place.engine.started().len(), 3);
}

#[tokio::test]
async fn faults_of_the_infrastructure_have_two_retries() {
    let place = Place::new(|_, _, _| Said { frames: Vec::new(), ends: true });
    let lost = (Outcome::InfraFail(InfraReason::Engine), ATTEMPTS);
    assert_eq!(place.launch().await, [lost; 3]);
    assert_eq!(place.engine.started().len(), 1 + 2 * 3, "together, then each by itself");
}

#[tokio::test]
async fn a_build_that_fails_has_two_retries() {
    let failed = |_: usize| {
        let done = step_end(1, StepResult::Done);
        vec![step_end(0, StepResult::Done), done, step_end(2, exited(1)), completed()]
    };
    let place = Place::new(move |number, _, alone| {
        assert!(alone.try_read().is_ok(), "others may go on");
        Said { frames: failed(number), ends: true }
    });
    assert_eq!(place.compile().await, (Outcome::InfraFail(InfraReason::Build), 3, 3));
}

#[tokio::test]
async fn a_build_that_ran_out_of_time_is_believed_after_a_second_run_alone() {
    let place = Place::new(|number, _, alone| {
        assert_eq!(alone.try_read().is_ok(), number == 0, "the second run is alone");
        let end = if number == 0 { out_of_time() } else { exited(1) };
        let recording = br#"{"event":"recording_started","schema":2}
{"event":"session_started","projects":[{"project":"g:a","basedir":"/work/project","output":"o","test_output":"t"}]}
{"event":"mojo_failed","project":"g:a","plugin":"org.apache.maven.plugins:maven-compiler-plugin:3","goal":"testCompile","compiler_messages":[{"file":"/work/project/src/test/java/ATest.java","line":1,"text":"no"}]}
{"event":"session_ended","success":false}
"#;
        let mut frames = vec![step_end(0, StepResult::Done), step_end(1, StepResult::Done), step_end(2, end)];
        if number > 0 {
            frames.extend(output(3, Stream::Content, recording));
            frames.push(step_end(3, StepResult::Done));
        }
        frames.push(completed());
        Said { frames, ends: true }
    });
    assert_eq!(place.compile().await, (Outcome::CompileFail(CompileReason::TargetFile), 2, 2));

    let place = Place::new(|_, _, _| {
        let done = || StepResult::Done;
        Said { frames: vec![step_end(0, done()), step_end(1, done()), step_end(2, out_of_time())], ends: true }
    });
    assert_eq!(place.compile().await, (Outcome::InfraFail(InfraReason::Build), 2, 2), "two runs are enough");
}

#[tokio::test]
async fn every_record_of_a_cell_names_what_the_engine_can_not_enforce() {
    let place = |builds: bool| {
        let mut place = Place::new(move |_, spec, _| match spec.purpose.as_str() {
            "compile" if builds => Said { frames: compiled(), ends: true },
            "launch" => {
                // What is nested never has a verdict.
                let launches = launches(spec);
                let passing = launches.iter().filter(|(_, class, _)| class == "ATest");
                let mut frames: Vec<Frame> = passing.flat_map(passed).collect();
                frames.push(completed());
                Said { frames, ends: true }
            }
            _ => Said { frames: Vec::new(), ends: true },
        });
        place.executor.isolation_missing = vec!["memory".to_owned(), "swap".to_owned()];
        place.input.module = Some(ModuleArguments::default());
        place
    };
    let (whole, broken, mut absent, mut outside) = (place(true), place(false), place(true), place(true));
    absent.input.swapped = None;
    outside.input.module = None;
    let lost = Outcome::InfraFail(InfraReason::Engine);
    for (place, outcomes) in [
        (whole, [Outcome::Pass, lost, Outcome::Pass]),
        (broken, [lost; 3]),
        (absent, [Outcome::Absent; 3]),
        (outside, [Outcome::CompileFail(CompileReason::NoModule); 3]),
    ] {
        let records = place.executor.run_cell(&CellRequest { repeats: 2, ..place.request() }).await.unwrap();
        let found: Vec<Outcome> = records.iter().map(|record| record.outcome).collect();
        assert_eq!(found, [outcomes; 2].concat());
        for record in records {
            assert_eq!(record.measured.isolation_missing, ["memory", "swap"], "{record:?}");
        }
    }
}
