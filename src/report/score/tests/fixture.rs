//! Small scoring runs that never happened, written to run directories and read back.

use std::path::PathBuf;

use crate::canonical_json::canonical_json;
use crate::data_dir::DataDir;
use crate::digest::Digest;
use crate::execution::run::directory::RunDirectory;
use crate::execution::run::inputs::{INPUTS_SCHEMA, RunInputs};
use crate::execution::run::record::Measured;
use crate::execution::scoring::inputs::{ModelInputs, ScoreInputs, SubmissionInput};
use crate::execution::scoring::record::{
    CoverageRecord, ExecutionRecord, FocalRecord, MutationRecord, SCORE_SCHEMA, ScoreRecord, SubmissionRecord,
};
use crate::metrics::coverage::{FocalCoverage, coverage, coverage_range};
use crate::metrics::mutation::Kills;
use crate::outcome::Outcome;
use crate::report::score::{COMMAND, Period, ReportError, ScoredModel, read_of};
use crate::submission::predictions::{Place, UnknownTask};
use crate::submission::{ContentKind, GOLD};
use crate::task::{MethodId, Side, Task, Track};

/// A run to write.
pub(in crate::report) struct Fixture {
    pub(in crate::report::score) directory: tempfile::TempDir,
    pub(in crate::report::score) inputs: ScoreInputs,
    pub(in crate::report::score) records: Vec<ScoreRecord>,
}

/// What one method came to.
#[derive(Clone, Copy)]
pub(in crate::report::score) struct Ran<'a> {
    /// By repeat, on new code.
    pub(in crate::report::score) new: &'a [Outcome],
    /// By repeat, on old code.
    pub(in crate::report::score) old: &'a [Outcome],
    /// Covered lines of ten executable ones in a range of twenty.
    pub(in crate::report::score) covered: Option<usize>,
    /// Killed mutants of four, and those killed strictly.
    pub(in crate::report::score) killed: Option<[usize; 2]>,
}

impl Fixture {
    /// Returns a run of these models and tasks, each with its repository, track, date and methods.
    pub(in crate::report::score) fn new(models: &[&str], tasks: &[(&str, &str, Track, &str, &[&str])]) -> Self {
        let task = |(id, repository, track, date, methods): &(&str, &str, Track, &str, &[&str])| Task {
            id: id.parse().unwrap(),
            repository: repository.parse().unwrap(),
            track: *track,
            rev1: "a".repeat(40).parse().unwrap(),
            rev2: "b".repeat(40).parse().unwrap(),
            rev1_date: (*date).to_owned(),
            rev2_date: (*date).to_owned(),
            test_file: "src/test/java/T.java".parse().unwrap(),
            test_methods: methods.iter().map(|method| method.parse().unwrap()).collect(),
            focal_methods: Vec::new(),
        };
        let tasks: Vec<Task> = tasks.iter().map(task).collect();
        // What a model has something for is no longer missing.
        let missing: Vec<_> = tasks.iter().map(|task| task.id.clone()).collect();
        let of_model = ModelInputs { missing, ..ModelInputs::default() };
        let jdk = |task: &Task| if task.repository.name() == "old" { 8 } else { 17 };
        let records = tasks.iter().map(|task| {
            ScoreRecord::Focal(FocalRecord { schema: SCORE_SCHEMA, task_id: task.id.clone(), focal: Vec::new() })
        });
        Self {
            directory: tempfile::tempdir().unwrap(),
            records: records.collect(),
            inputs: ScoreInputs {
                jdks: tasks.iter().map(|task| (task.repository.clone(), jdk(task))).collect(),
                run: RunInputs {
                    schema: INPUTS_SCHEMA,
                    tasks,
                    images: Default::default(),
                    maven_arguments: Default::default(),
                    launchers: Default::default(),
                    limits: Default::default(),
                    surefire: Default::default(),
                    paths: Vec::new(),
                    repeats: 2,
                    tools: None,
                    shard: None,
                },
                seed: 7,
                coverage: true,
                mutation: true,
                controls: false,
                strip_fences: false,
                samples: Default::default(),
                models: models.iter().map(|model| ((*model).to_owned(), of_model.clone())).collect(),
                unknown: Vec::new(),
                not_selected: 0,
                repeated: 0,
            },
        }
    }

    fn task(&self, id: &str) -> Task {
        self.inputs.run.tasks.iter().find(|task| task.id.as_str() == id).unwrap().clone()
    }

    /// A model hands something in for a task.
    pub(in crate::report::score) fn hands_in(&mut self, model: &str, id: &str, cost_usd: Option<f64>) {
        if let Some(inputs) = self.inputs.models.get_mut(model) {
            let digest = Digest::of(b"x");
            let submission =
                SubmissionInput { kind: ContentKind::Patch, digest, cost_usd, tokens: None, fence_removed: false };
            inputs.submissions.insert(id.parse().unwrap(), submission);
            inputs.missing.retain(|missing| missing.as_str() != id);
        }
        self.submission(model, id, ContentKind::Patch, cost_usd);
    }

    /// Writes down what the run makes of a submission.
    pub(super) fn submission(&mut self, model: &str, id: &str, kind: ContentKind, cost_usd: Option<f64>) {
        self.records.push(ScoreRecord::Submission(SubmissionRecord {
            schema: SCORE_SCHEMA,
            model: model.to_owned(),
            task_id: id.parse().unwrap(),
            kind,
            submitted: None,
            start: None,
            post_image: None,
            fault: None,
            without: Vec::new(),
            dropped: Vec::new(),
            shadows: Vec::new(),
            line_ends_adapted: false,
            cost_usd,
            tokens: None,
        }));
    }

    /// The methods of a model's task run, in order.
    pub(in crate::report::score) fn runs(&mut self, model: &str, id: &str, methods: &[Ran<'_>]) {
        let task = self.task(id);
        assert_eq!(task.test_methods.len(), methods.len(), "{id}");
        for (method, ran) in task.test_methods.iter().zip(methods) {
            for (code, outcomes) in [(Side::New, ran.new), (Side::Old, ran.old)] {
                for (repeat, outcome) in (1..).zip(outcomes) {
                    self.records.push(execution(model, &task, method, (code, repeat, *outcome)));
                }
            }
            if let Some(covered) = ran.covered {
                self.covers(model, id, method, Some(covered));
            }
            if let Some(killed) = ran.killed {
                self.kills(model, id, method, Some(killed));
            }
        }
    }

    /// A method covers so many of ten lines; `None` where a fault lost that.
    pub(super) fn covers(&mut self, model: &str, id: &str, method: &MethodId, covered: Option<usize>) {
        let lines = (1..=10).collect();
        let of = |number| FocalCoverage { first_line: 1, last_line: 20, lines, covered: (1..=number).collect() };
        let focal: Vec<FocalCoverage> = covered.map(of).into_iter().collect();
        self.records.push(ScoreRecord::Coverage(CoverageRecord {
            schema: SCORE_SCHEMA,
            model: model.to_owned(),
            task_id: id.parse().unwrap(),
            method: method.clone(),
            coverage: coverage(&focal),
            coverage_range: coverage_range(&focal),
            focal,
            cause: None,
            lost: covered.is_none(),
            own: None,
            cached: false,
            isolation_missing: Vec::new(),
        }));
    }

    /// A method kills so many of four mutants, and so many strictly; `None` where a fault lost that.
    pub(super) fn kills(&mut self, model: &str, id: &str, method: &MethodId, killed: Option<[usize; 2]>) {
        let kills = killed.map(|[killed, killed_strict]| Kills { count: 4, killed, killed_strict });
        self.records.push(ScoreRecord::Mutation(MutationRecord {
            schema: SCORE_SCHEMA,
            model: model.to_owned(),
            task_id: id.parse().unwrap(),
            method: method.clone(),
            kills,
            mutation_score: kills.and_then(|kills| kills.score()),
            mutants: Vec::new(),
            unmutated: None,
            cause: None,
            lost: killed.is_none(),
            elsewhere: 0,
            cached: false,
            isolation_missing: Vec::new(),
        }));
    }

    /// A model hands something in for tasks that are not known.
    pub(super) fn unknown(&mut self, model: &str, ids: impl Iterator<Item = String>) {
        self.inputs.unknown.extend(ids.map(|id| UnknownTask {
            id,
            model: model.to_owned(),
            place: Place { path: PathBuf::from("p.jsonl"), line: Some(3) },
        }));
    }

    /// What was not handed in fails; then the run is written, ended or not, and read.
    pub(in crate::report) fn read(self, ended: bool) -> Vec<ScoredModel> {
        self.read_of(ended, &Period::default()).unwrap()
    }

    /// As [`Fixture::read`] for the tasks of a period.
    pub(super) fn read_of(mut self, ended: bool, period: &Period) -> Result<Vec<ScoredModel>, ReportError> {
        for (model, inputs) in self.inputs.models.clone() {
            for id in inputs.missing {
                self.submission(&model, id.as_str(), ContentKind::Nothing, None);
                let methods = self.task(id.as_str()).test_methods.len();
                let fault = [Outcome::HarnessFail(crate::outcome::HarnessReason::Empty); 2];
                let ran = Ran { new: &fault, old: &fault, covered: None, killed: None };
                self.runs(&model, id.as_str(), &vec![ran; methods]);
            }
        }
        let data_dir = DataDir::open(self.directory.path()).unwrap();
        let inputs = canonical_json(&self.inputs).unwrap();
        let opened = RunDirectory::open_of::<ScoreRecord>(&data_dir, COMMAND, &inputs, Some("r1"), false);
        let mut run = opened.unwrap().0;
        for record in &self.records {
            run.append(record).unwrap();
        }
        let path = run.path().to_owned();
        match ended {
            true => run.finish(b"{}").unwrap(),
            false => drop(run),
        }
        read_of(&[path], period)
    }

    /// The developers' test passes on new code and covers eight of ten lines and kills two mutants, one of them strictly.
    pub(super) fn gold_runs(&mut self, id: &str) {
        self.submission(GOLD, id, ContentKind::Gold, None);
        let methods = self.task(id).test_methods.len();
        let ran = Ran { new: &[Outcome::Pass; 2], old: &[], covered: Some(8), killed: Some([2, 1]) };
        self.runs(GOLD, id, &vec![ran; methods]);
    }
}

fn execution(
    model: &str,
    task: &Task,
    method: &MethodId,
    (code, repeat, outcome): (Side, u32, Outcome),
) -> ScoreRecord {
    ScoreRecord::Execution(ExecutionRecord {
        schema: SCORE_SCHEMA,
        model: model.to_owned(),
        task_id: task.id.clone(),
        repository: task.repository.clone(),
        track: task.track,
        code,
        method: method.clone(),
        repeat,
        outcome,
        detail: match outcome {
            Outcome::Pass => String::new(),
            _ => "said \"<&>\",\r\nand more".to_owned(),
        },
        missing: Vec::new(),
        attributed: None,
        attempts: 1,
        key: None,
        cached: false,
        measured: Measured { launch_ms: Some(700), ..Measured::default() },
    })
}
