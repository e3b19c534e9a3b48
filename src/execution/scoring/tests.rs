//! What a scoring run records where containers do as they are told: tests with a scripted engine and the demonstration's
//! repository.

use std::path::PathBuf;
use std::sync::Mutex;

use super::on_mutants::{JudgedBy, Mutated, mutation_key};
use super::record::{CoverageRecord, MutationRecord, OwnFocalRecord, StartRecord};
use super::reuse::{coverage_record, mutation_records};
use super::unscored::{LeftKind, counts, left};
use super::*;
use crate::data_dir::DataDir;
use crate::engine::scripted::{Said, Scripted, completed, exited, output, step_end};
use crate::engine::spec::{ContainerSpec, StepResult, Stream};
use crate::event::Event;
use crate::execution::container::ToolJars;
use crate::execution::launch::coverage::{MethodCoverage, SourceFile, coverage_key};
use crate::execution::launch::tracing::trace_key;
use crate::execution::scripted::{executor, image};
use crate::execution::time_class::Took;
use crate::focal::own::{Basis, OwnFocal, OwnMethod};
use crate::focal::{FocalLines, Rule};
use crate::metrics::category::{Category, Integrity, OnOldCode, judge};
use crate::outcome::{CompileReason, ExecReason, InfraReason};
use crate::sample::SampleRepository;
use crate::submission::Content;
use crate::task::{Track, published};
use crate::workspace::Notices;

mod counts;
mod gaps;
mod gold;
mod keys;
mod starts;

#[test]
fn models_have_directories_of_their_own_and_no_other() {
    for model in ["../x", "a/b", "", ".", "ä", "a b"] {
        let directory = model_directory(model);
        assert!(!directory.contains('/') && !directory.starts_with('.'), "{directory}");
    }
    assert_ne!(model_directory("a/b"), model_directory("a_b"));
}

/// A data directory, the demonstration's repository, and containers by a script.
pub(super) struct Place {
    directory: tempfile::TempDir,
    pub(super) data_dir: DataDir,
    engine: Arc<Scripted>,
    pub(super) tasks: Vec<Task>,
}

/// What differs between the runs of a place.
pub(super) struct Given {
    /// Whether there is an image to execute in.
    image: bool,
    /// Whether the repository's sources can be read.
    sources: bool,
    /// Whether results of other runs are read.
    reads: bool,
    repeats: u32,
    seed: u64,
    /// What the engine can't enforce.
    unenforced: &'static [&'static str],
    /// The artifact that the build files of new code lack.
    lost: Option<&'static str>,
}

pub(super) const ALL: Given =
    Given { image: true, sources: true, reads: true, repeats: 1, seed: 1, unenforced: &[], lost: None };

impl Place {
    fn new(miniatures: &[&str], script: impl Fn() -> Said + Send + Sync + 'static) -> Self {
        Self::with_script(miniatures, move |_, _| script())
    }

    pub(super) fn with_script(
        miniatures: &[&str],
        script: impl Fn(usize, &ContainerSpec) -> Said + Send + Sync + 'static,
    ) -> Self {
        Self::of(&SampleRepository::demo().unwrap(), miniatures, script)
    }

    /// Returns a place with some miniatures of a repository.
    fn of(
        repository: &SampleRepository,
        miniatures: &[&str],
        script: impl Fn(usize, &ContainerSpec) -> Said + Send + Sync + 'static,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let data_dir = DataDir::open(&directory.path().join("data")).unwrap();
        let pairs = repository.write_git(&directory.path().join("sources")).unwrap();
        let file = directory.path().join("published.json");
        fs::write(&file, repository.published(&pairs)).unwrap();
        let mut tasks = published::read(&[file]).unwrap().remove(0).tasks;
        tasks.retain(|task| miniatures.iter().any(|name| task.id.as_str().ends_with(&format!("__{name}"))));
        assert_eq!(tasks.len(), miniatures.len());
        Self { directory, data_dir, engine: Arc::new(Scripted::new(script)), tasks }
    }

    pub(super) fn begin(&self, run_id: &str) -> RunDirectory {
        RunDirectory::open_of::<ScoreRecord>(&self.data_dir, "score", b"{}", Some(run_id), false).unwrap().0
    }

    /// Does something with gold's scoring, on the reference path.
    pub(super) async fn with<T>(&self, given: &Given, act: impl AsyncFnOnce(&Scoring<'_>) -> T) -> T {
        let repository = &self.tasks[0].repository;
        let sources = if given.sources { self.directory.path().join("sources") } else { PathBuf::from("/nowhere") };
        let paths = BTreeMap::from([(repository.clone(), sources)]);
        let (mut images, mut executors) = (BTreeMap::new(), BTreeMap::new());
        if given.image {
            images.insert(repository.clone(), image());
            let isolation_missing = given.unenforced.iter().map(|name| (*name).to_owned()).collect();
            let executor = Executor { isolation_missing, ..executor(&self.engine, &self.data_dir) };
            executors.insert(repository.clone(), Arc::new(executor));
        }
        let mut obstacles = Obstacles::default();
        for (task, lost) in self.tasks.iter().flat_map(|task| given.lost.map(|lost| (task, lost))) {
            obstacles.unresolved(task.id.clone(), Side::New, lost.to_owned());
        }
        let (notices, temporary) = (Arc::new(Notices::new(EventSink::none())), self.data_dir.temporary());
        let scoring = Scoring {
            tasks: &self.tasks,
            predictions: &Predictions::gold(&self.tasks),
            images: &images,
            executors: &executors,
            obstacles: &obstacles,
            repeats: given.repeats,
            jobs: 1,
            seed: given.seed,
            chosen_seed: None,
            trees: Arc::new(SubmissionTrees {
                paths: paths.clone(),
                temporary: temporary.clone(),
                notices: Arc::clone(&notices),
                whole: Arc::default(),
            }),
            revisions: Arc::new(Trees::new(paths, temporary, notices, Arc::default())),
            direct: None,
            cache: ResultCache::new(self.data_dir.join("results"), given.reads),
            coverage: true,
            mutation: true,
            controls: false,
            time_classes: Some(TimeClasses::new(&self.data_dir)),
        };
        act(&scoring).await
    }

    /// Scores gold and returns the records, and the cells in their order.
    pub(super) async fn score(
        &self,
        given: &Given,
        run: &mut RunDirectory,
        known: Vec<ScoreRecord>,
    ) -> (Vec<ScoreRecord>, Vec<String>) {
        let items = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&items);
        let events = EventSink::new(move |event| {
            if let Event::ItemStarted { stage, item } = event
                && stage == "score"
            {
                heard.lock().unwrap().push(item);
            }
        });
        let never = CancellationToken::new();
        let records = self.with(given, async |scoring| scoring.run(run, known, &events, &never).await.unwrap()).await;
        let items = items.lock().unwrap().clone();
        (records, items)
    }

    /// Returns what own focal methods are: a line of a source.
    pub(super) fn own(&self) -> Vec<ScoreRecord> {
        let own = |method: &MethodId| OwnFocal {
            method: method.clone(),
            basis: Basis::Called,
            own: vec![OwnMethod {
                package: "shop".to_owned(),
                file: "Price.java".to_owned(),
                first_line: 4,
                last_line: 6,
                name: "Price#discounted".to_owned(),
                lines: vec![5],
                listed: Some(0),
            }],
            cause: None,
        };
        let of = |task: &Task| OwnFocalRecord {
            schema: SCORE_SCHEMA,
            task_id: task.id.clone(),
            methods: task.test_methods.iter().map(own).collect(),
            cause: None,
            lost: false,
            isolation_missing: Vec::new(),
        };
        self.tasks.iter().map(|task| ScoreRecord::OwnFocal(of(task))).collect()
    }

    /// Returns passing launches of all methods on both sides, and their own focal methods.
    fn passed(&self) -> Vec<ScoreRecord> {
        let all = self.tasks.iter().flat_map(|task| task.test_methods.iter().map(move |method| (task, method)));
        let both = all.flat_map(|(task, method)| [Side::New, Side::Old].map(|code| (task, method, code)));
        let passed = both.map(|(task, method, code)| ExecutionRecord {
            schema: SCORE_SCHEMA,
            model: GOLD.to_owned(),
            task_id: task.id.clone(),
            repository: task.repository.clone(),
            track: task.track,
            code,
            method: method.clone(),
            repeat: 1,
            outcome: Outcome::Pass,
            detail: String::new(),
            missing: Vec::new(),
            attributed: None,
            attempts: 1,
            key: None,
            cached: false,
            measured: Measured::default(),
        });
        passed.map(ScoreRecord::Execution).chain(self.own()).collect()
    }
}

/// A container that is gone before it has said anything.
fn gone() -> Said {
    Said { frames: Vec::new(), ends: true }
}

/// Returns a compilation by Maven: `None` is success, else the file that has an error.
fn compilation(error: Option<&str>) -> Said {
    compilation_at(error.map(|file| (file, 1, 1)))
}

/// Returns a compilation by Maven with an error at a line and column of a file.
fn compilation_at(error: Option<(&str, u32, u32)>) -> Said {
    let failed = error.map_or_else(String::new, |(file, line, column)| {
        format!(
            r#"{{"event":"mojo_failed","project":"g:a","plugin":"org.apache.maven.plugins:maven-compiler-plugin:3","goal":"testCompile","compiler_messages":[{{"file":"/work/project/{file}","line":{line},"column":{column},"text":"no such symbol"}}]}}
"#
        )
    });
    let recording = format!(
        r#"{{"event":"recording_started","schema":2}}
{{"event":"session_started","projects":[{{"project":"g:a","basedir":"/work/project","output":"/work/project/target/classes","test_output":"/work/project/target/test-classes"}}]}}
{failed}{{"event":"session_ended","success":{},"failures":[]}}
"#,
        error.is_none()
    );
    let done = |step| step_end(step, StepResult::Done);
    let mut frames = vec![done(0), done(1), step_end(2, exited(i32::from(error.is_some())))];
    for (step, content) in (3..).zip([recording.as_str(), "/m2/a.jar", "archive"]) {
        frames.extend(output(step, Stream::Content, content.as_bytes()));
        frames.push(done(step as usize));
    }
    frames.push(completed());
    Said { frames, ends: true }
}

/// Returns how many coverages and mutation scores are lost, and their causes.
fn lost(records: &[ScoreRecord]) -> (usize, usize, BTreeSet<String>) {
    let (mut coverage, mut mutation, mut causes) = (0, 0, BTreeSet::new());
    for record in records {
        match record {
            ScoreRecord::Coverage(one) if one.lost => {
                assert_eq!((&one.coverage, one.focal.len(), one.cached), (&None, 0, false));
                coverage += 1;
                causes.extend(one.cause.clone());
            }
            ScoreRecord::Mutation(one) if one.lost => {
                assert_eq!((&one.kills, &one.mutation_score, one.cached), (&None, &None, false));
                mutation += 1;
                causes.extend(one.cause.clone());
            }
            _ => {}
        }
    }
    (coverage, mutation, causes)
}

#[tokio::test]
async fn what_passed_and_can_not_be_measured_is_lost_and_tried_again() {
    let place = Place::new(&["rounding"], gone);
    let methods = place.tasks[0].test_methods.len();
    let mut run = place.begin("r");
    let causes = |text: &str| BTreeSet::from([text.to_owned()]);

    let (records, cells) = place.score(&Given { image: false, ..ALL }, &mut run, place.passed()).await;
    let missing = causes("infra_fail(image): the repository has no image");
    assert_eq!(lost(&records), (methods, methods, missing), "{records:?}");
    assert_eq!(cells.len(), 1, "{cells:?}");
    let found = left(&records, &place.tasks);
    let expected = BTreeMap::from([(LeftKind::Coverage, methods), (LeftKind::Mutation, methods)]);
    assert_eq!(counts(&found), expected, "{found:?}");

    // An artifact that the lock lacks is named before any container starts.
    let before = place.engine.started().len();
    let mut other = place.begin("lost");
    let lost_artifact = "g:lost:jar:1 did not resolve; asked: central, gone";
    let (unresolved, _) = place.score(&Given { lost: Some(lost_artifact), ..ALL }, &mut other, Vec::new()).await;
    let outcomes: BTreeSet<_> = unresolved
        .iter()
        .filter_map(|record| match record {
            ScoreRecord::Execution(one) if one.code == Side::New => Some((one.outcome, one.detail.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(outcomes, BTreeSet::from([(Outcome::InfraFail(InfraReason::Resolution), lost_artifact)]));
    assert_eq!(place.engine.started().len(), before);

    // The next run tries again; other faults come to the same.
    let (records, _) = place.score(&Given { sources: false, ..ALL }, &mut run, records).await;
    let (coverage, mutation, causes) = lost(&records);
    assert_eq!((coverage, mutation), (methods, methods), "{records:?}");
    assert!(causes.iter().all(|cause| cause.starts_with("infra_fail(source): ")), "{causes:?}");

    let (records, _) = place.score(&ALL, &mut run, records).await;
    let (compile, judge, mutate) = (["compile"; 3], ["judge"; 3], ["mutate"; 3]);
    let mut started = place.engine.started();
    // After the compilations the mutator runs beside the judge, whichever comes first.
    started[compile.len()..].sort();
    assert_eq!(started, [compile, judge, mutate].concat(), "the reference path was tried");
    let (coverage, mutation, causes) = lost(&records);
    assert_eq!((coverage, mutation), (methods, methods), "{records:?}");
    assert!(causes.iter().any(|cause| cause.contains("could not be launched again")), "{causes:?}");

    // And where everything is known, nothing is left to try.
    let measured: Vec<ScoreRecord> = records
        .into_iter()
        .map(|record| match record {
            ScoreRecord::Coverage(one) => ScoreRecord::Coverage(CoverageRecord { lost: false, ..one }),
            ScoreRecord::Mutation(one) => ScoreRecord::Mutation(MutationRecord { lost: false, ..one }),
            other => other,
        })
        .collect();
    let (records, cells) = place.score(&ALL, &mut run, measured).await;
    assert_eq!((cells, lost(&records)), (Vec::new(), (0, 0, BTreeSet::new())));
    assert_eq!(left(&records, &place.tasks), []);
}

#[tokio::test]
async fn without_own_focal_methods_everything_that_was_due_is_lost() {
    let place = Place::new(&["rounding"], gone);
    let methods = place.tasks[0].test_methods.len();
    let mut run = place.begin("r");
    let passed: Vec<ScoreRecord> =
        place.passed().into_iter().filter(|record| !matches!(record, ScoreRecord::OwnFocal(_))).collect();
    let (records, _) = place.score(&ALL, &mut run, passed).await;
    let (coverage, mutation, causes) = lost(&records);
    assert_eq!((coverage, mutation), (methods, methods), "{records:?}");
    assert!(causes.iter().all(|cause| cause.starts_with("with the trace agent: infra_fail(engine)")), "{causes:?}");
    assert_eq!(place.engine.started(), ["compile"; 3], "nothing is measured");
    let expected =
        BTreeMap::from([(LeftKind::Coverage, methods), (LeftKind::Mutation, methods), (LeftKind::OwnFocal, 1)]);
    assert_eq!(counts(&left(&records, &place.tasks)), expected);

    // The next run tries that again first.
    place.score(&ALL, &mut run, records).await;
    assert_eq!(place.engine.started(), ["compile"; 6]);
}

#[tokio::test]
async fn a_method_has_the_errors_that_it_reaches_and_no_siblings() {
    // In the method `valid` of gold, behind `assertTrue(new `.
    let file = "src/test/java/shop/VoucherTest.java";
    let place = Place::new(&["new-class"], move || compilation_at(Some((file, 14, 24))));
    let mut on_old_code = Vec::new();
    for (run, is_cached) in [("first", false), ("second", true)] {
        let (records, _) = place.score(&ALL, &mut place.begin(run), Vec::new()).await;
        let old = records.iter().filter_map(|record| match record {
            ScoreRecord::Execution(one) if one.code == Side::Old => Some(one),
            _ => None,
        });
        let mut found: Vec<_> = old.map(|one| (one.method.method(), one.outcome, one.attributed)).collect();
        found.sort_by_key(|(method, ..)| *method);
        let outcome = Outcome::CompileFail(CompileReason::TargetFile);
        assert_eq!(found, [("blank", outcome, Some(false)), ("valid", outcome, Some(true))], "{run}");
        let cached = records.iter().filter_map(|record| match record {
            ScoreRecord::Execution(one) => Some(one.cached),
            _ => None,
        });
        assert!(cached.into_iter().all(|cached| cached == is_cached), "{run}");
        on_old_code = found.iter().map(|(_, outcome, attributed)| (*outcome, *attributed)).collect();
    }
    // Were new code to pass, both would be Success, and one of them strictly.
    let verdicts = on_old_code.into_iter().map(|(outcome, attributed)| {
        let old = OnOldCode { outcome, attributed };
        let verdict = judge(Track::TestGeneration, &[Outcome::Pass], &[old], Integrity::NotEvaluated);
        (verdict.paper_verdict, verdict.strict_success)
    });
    assert_eq!(verdicts.collect::<Vec<_>>(), [(Some(Category::Success), false), (Some(Category::Success), true)]);
}

#[tokio::test]
async fn what_was_never_launched_is_not_lost_but_left() {
    let place = Place::new(&["new-class"], gone);
    let methods = place.tasks[0].test_methods.len();
    let given = Given { image: false, repeats: 2, ..ALL };
    let (records, _) = place.score(&given, &mut place.begin("r"), Vec::new()).await;
    assert_eq!(lost(&records), (0, 0, BTreeSet::new()), "nothing is known to pass");
    let found = left(&records, &place.tasks);
    // Both sides, both repeats: nothing of ours is hidden because no verdict needs it.
    let expected = BTreeMap::from([(LeftKind::Launch, 4 * methods), (LeftKind::OwnFocal, 1)]);
    assert_eq!(counts(&found), expected, "{found:?}");
    for words in
        ["on old code, launch 1: ", "on old code, launch 2: ", "on new code, launch 1: ", "on new code, launch 2: "]
    {
        assert_eq!(found.iter().filter(|one| one.to_string().contains(words)).count(), methods, "{words}");
    }
    let shown = found[0].to_string();
    assert!(shown.starts_with("launch of testevo__") && shown.ends_with("the repository has no image"), "{shown}");
    let focal: Vec<ScoreRecord> =
        records.into_iter().filter(|record| !matches!(record, ScoreRecord::Focal(_))).collect();
    assert_eq!(counts(&left(&focal, &place.tasks))[&LeftKind::Focal], 1);
    assert!(!counts(&left(&focal, &[])).contains_key(&LeftKind::Focal), "nobody looked for them");
}

#[tokio::test]
async fn measurements_name_what_the_engine_can_not_enforce() {
    let place = Place::new(&["rounding"], gone);
    let given = Given { unenforced: &["memory", "swap"], ..ALL };
    let (records, _) = place.score(&given, &mut place.begin("r"), place.passed()).await;
    let measurements = records.iter().filter(|record| is_measurement(record));
    assert_eq!(measurements.clone().count(), 2 * place.tasks[0].test_methods.len(), "{records:?}");
    for record in measurements {
        let mut value = serde_json::to_value(record).unwrap();
        assert_eq!(value["isolation_missing"], serde_json::json!(["memory", "swap"]), "{record:?}");
        // Earlier programs did not write it, and nor is it where everything is enforced.
        value.as_object_mut().unwrap().remove("isolation_missing");
        let earlier: ScoreRecord = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(serde_json::to_value(earlier).unwrap(), value);
    }

    // What other runs kept was measured under the same engine, or has another key.
    let job = Job {
        model: GOLD,
        task: &place.tasks[0],
        code: Side::New,
        file: Digest::of(b"file"),
        methods: Vec::new(),
        cover: Vec::new(),
        mutate: Vec::new(),
        control: Vec::new(),
        focal: TaskFocal::default(),
        isolation_missing: &["memory".to_owned()],
        time_class: (None, None),
    };
    let method = place.tasks[0].test_methods[0].clone();
    let covered = MethodCoverage { method: method.clone(), lines: Ok(BTreeMap::new()), may_pass: false };
    assert_eq!(coverage_record(&job, covered, true).isolation_missing, ["memory"]);
    let kept = Mutated { by: JudgedBy::Warm, sets: Vec::new(), mutants: Vec::new(), unmutated: None };
    let kept = mutation_records(&job, &method, Ok(kept), true);
    assert!(matches!(&kept[..], [ScoreRecord::Mutation(one)] if one.isolation_missing == ["memory"]), "{kept:?}");
}

fn is_measurement(record: &ScoreRecord) -> bool {
    matches!(record, ScoreRecord::Coverage(_) | ScoreRecord::Mutation(_))
}

#[tokio::test]
async fn what_is_launched_again_is_measured_by_that_alone() {
    let place = Place::new(&["rounding"], gone);
    let mut run = place.begin("r");
    // A kill came between the records of two repeats.
    let given = Given { repeats: 2, ..ALL };
    let (records, _) = place.score(&Given { image: false, ..given }, &mut run, Vec::new()).await;
    let records: Vec<ScoreRecord> =
        records.into_iter().filter(|record| !matches!(record, ScoreRecord::Execution(_))).collect();
    let mut known = [records, place.passed()].concat();
    place
        .with(&given, async |scoring| {
            let jobs = scoring.missing(&mut run, &mut known).unwrap();
            assert_eq!(jobs.len(), 1, "an update has nothing to do with old code");
            for job in jobs {
                assert_eq!(job.methods, place.tasks[0].test_methods);
                assert!(job.cover.is_empty() && job.mutate.is_empty());
            }
        })
        .await;
}

#[tokio::test]
async fn the_seed_decides_the_order_of_cells() {
    let place = Place::new(&["rounding", "renamed-method", "new-class", "fixed-bug", "stricter-input"], gone);
    let mut orders = Vec::new();
    for (number, seed) in [1, 1, 2].into_iter().enumerate() {
        let mut run = place.begin(&format!("r{number}"));
        let (_, order) = place.score(&Given { image: false, seed, ..ALL }, &mut run, Vec::new()).await;
        let cells = |task: &Task| if task.track == Track::TestGeneration { 2 } else { 1 };
        assert_eq!(order.len(), place.tasks.iter().map(cells).sum::<usize>());
        orders.push(order);
    }
    let [one, same, other] = &orders[..] else { panic!("three runs") };
    assert_eq!(one, same);
    assert_ne!(one, other);
    let sorted = |order: &[String]| order.iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!(sorted(one), sorted(other));
}
