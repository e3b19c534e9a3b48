//! Scoring runs that never happened: run directories with records of any number of tasks and models, and what a run keeps
//! beside them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fs_err as fs;
use testevo_sandbox::canonical_json::canonical_json;
use testevo_sandbox::data_dir::DataDir;
use testevo_sandbox::digest::Digest;
use testevo_sandbox::execution::run::directory::RunDirectory;
use testevo_sandbox::execution::run::inputs::{INPUTS_SCHEMA, RunInputs};
use testevo_sandbox::execution::run::record::Measured;
use testevo_sandbox::execution::scoring::inputs::{ModelInputs, ScoreInputs, SubmissionInput};
use testevo_sandbox::execution::scoring::record::{
    CoverageRecord, ExecutionRecord, FocalRecord, MutantOutcome, MutantsRecord, MutationRecord, OwnFocalRecord,
    SCORE_SCHEMA, ScoreRecord, StartRecord, SubmissionFault, SubmissionRecord,
};
use testevo_sandbox::execution::scoring::{SOURCES, SUBMISSIONS, file_name, log_directory, source_name};
use testevo_sandbox::focal::own::{Basis, OwnFocal, OwnMethod};
use testevo_sandbox::focal::{Focal, FocalLines, Found, Rule};
use testevo_sandbox::metrics::coverage::FocalCoverage;
use testevo_sandbox::metrics::mutation::{KeptMutant, Kills, MutantSet};
use testevo_sandbox::outcome::{CompileReason, ExecReason, HarnessReason, Outcome};
use testevo_sandbox::submission::extraction::Dropped;
use testevo_sandbox::submission::predictions::{Place, UnknownTask};
use testevo_sandbox::submission::{ContentKind, GOLD};
use testevo_sandbox::task::{MethodId, Side, Task, Track};

/// A run to write.
pub(crate) struct ScoredRun<'a> {
    pub(crate) run_id: &'a str,
    pub(crate) models: Vec<String>,
    pub(crate) tasks: usize,
    /// Stands in every text that is somebody else's: names, messages, logs, sources.
    pub(crate) strange: &'a str,
}

/// Focal lines of every task.
const FOCAL: (usize, usize) = (4, 24);

impl ScoredRun<'_> {
    /// Writes the run below a data directory and returns its path.
    pub(crate) fn write(&self, data_dir: &Path) -> PathBuf {
        let tasks: Vec<Task> = (0..self.tasks).map(task).collect();
        let inputs = ScoreInputs {
            run: RunInputs {
                schema: INPUTS_SCHEMA,
                tasks: tasks.clone(),
                images: BTreeMap::new(),
                maven_arguments: BTreeMap::new(),
                launchers: BTreeMap::new(),
                limits: BTreeMap::new(),
                surefire: Default::default(),
                paths: Vec::new(),
                repeats: 1,
                tools: None,
                shard: None,
            },
            jdks: tasks.iter().map(|task| (task.repository.clone(), 17)).collect(),
            // A page that reads it as a number loses its last digits.
            seed: 18_266_007_589_190_443_523,
            coverage: true,
            mutation: true,
            controls: false,
            strip_fences: false,
            samples: self.models.iter().filter_map(|model| Some((model.clone(), sample_of(model)?))).collect(),
            models: self.models.iter().map(|model| (model.clone(), handed_in(&tasks))).collect(),
            unknown: self.models.first().map(|model| self.unknown(model)).into_iter().collect(),
            not_selected: 3,
            repeated: 0,
        };
        let data_dir = DataDir::open(data_dir).unwrap();
        let inputs = canonical_json(&inputs).unwrap();
        let opened = RunDirectory::open_of::<ScoreRecord>(&data_dir, "score", &inputs, Some(self.run_id), false);
        let mut run = opened.unwrap().0;
        for directory in [SUBMISSIONS, SOURCES] {
            fs::create_dir(run.path().join(directory)).unwrap();
        }
        for (number, task) in tasks.iter().enumerate() {
            self.of_task(&mut run, number, task);
            let developers = (!self.models.iter().any(|model| model == GOLD)).then_some(GOLD);
            for (model, name) in self.models.iter().map(String::as_str).chain(developers).enumerate() {
                self.of_model(&mut run, number, task, (model, name));
            }
        }
        let path = run.path().to_owned();
        run.finish(b"{}").unwrap();
        path
    }

    fn unknown(&self, model: &str) -> UnknownTask {
        let place = Place { path: PathBuf::from("p.jsonl"), line: Some(3) };
        UnknownTask { id: format!("gone {}", self.strange), model: model.to_owned(), place }
    }

    fn of_task(&self, run: &mut RunDirectory, number: usize, task: &Task) {
        let path = format!("src/main/java/C{number}.java");
        let lines = FocalLines {
            rule: Rule::Extent,
            path: path.clone(),
            package: String::new(),
            first_line: FOCAL.0,
            last_line: FOCAL.1,
            added: vec![5, 6],
        };
        let focal = vec![Focal { method: "C#m".parse().unwrap(), found: Found::Resolved(lines) }];
        let source = source(number, self.strange);
        fs::write(run.path().join(SOURCES).join(source_name(&task.rev2, &path)), source).unwrap();
        let focal = FocalRecord { schema: SCORE_SCHEMA, task_id: task.id.clone(), focal };
        run.append(&ScoreRecord::Focal(focal)).unwrap();
        if task.track == Track::TestGeneration {
            let start_compiles = starts_compile(number);
            let detail = (!start_compiles).then(|| format!("cannot find symbol {}", self.strange));
            let (task_id, start_compiles) = (task.id.clone(), Some(start_compiles));
            let start = StartRecord { schema: SCORE_SCHEMA, task_id, start_compiles, detail, lost: false };
            run.append(&ScoreRecord::Start(start)).unwrap();
        }
        let own = |method: &MethodId| OwnFocal {
            method: method.clone(),
            basis: Basis::Called,
            own: vec![
                own_method(format!("C{number}#names"), FOCAL, Some(0)),
                own_method("Helper#of".to_owned(), (30, 33), None),
            ],
            cause: None,
        };
        let own = OwnFocalRecord {
            schema: SCORE_SCHEMA,
            task_id: task.id.clone(),
            methods: task.test_methods.iter().map(own).collect(),
            cause: None,
            lost: false,
            isolation_missing: Vec::new(),
        };
        run.append(&ScoreRecord::OwnFocal(own)).unwrap();
        let set = MutantSet {
            path,
            lines: vec![5, 6],
            emitted: 30,
            redundant: 5,
            compile_failed: 10,
            capped_out: 5,
            kept: mutants(number)
                .enumerate()
                .map(|(index, id)| {
                    let line = mutant_line(number, index);
                    KeptMutant { id, line, text: Some(format!("return number + {line};")) }
                })
                .collect(),
            dead_lines: Vec::new(),
        };
        let record = MutantsRecord { schema: SCORE_SCHEMA, task_id: task.id.clone(), sets: vec![set] };
        run.append(&ScoreRecord::Mutants(record)).unwrap();
    }

    fn of_model(&self, run: &mut RunDirectory, number: usize, task: &Task, (model, name): (usize, &str)) {
        let keep = |text: &str| {
            let digest = Digest::of(text.as_bytes());
            fs::write(run.path().join(SUBMISSIONS).join(file_name(digest)), text).unwrap();
            digest
        };
        let start = keep(&self.test_file(number, 0));
        let fault = mixed(number, model, 99).is_multiple_of(10) && name != GOLD;
        let post_image = (!fault).then(|| keep(&self.test_file(number, model + 1)));
        let detail = format!("the patch is of another file {}", self.strange);
        let submission = SubmissionRecord {
            schema: SCORE_SCHEMA,
            model: name.to_owned(),
            task_id: task.id.clone(),
            kind: ContentKind::Patch,
            submitted: post_image,
            start: Some(start),
            post_image,
            fault: fault.then_some(SubmissionFault { reason: HarnessReason::WrongBase, detail }),
            without: Vec::new(),
            dropped: vec![Dropped { path: format!("pom.xml {}", self.strange), lying_header: false }],
            shadows: Vec::new(),
            line_ends_adapted: false,
            cost_usd: (name != GOLD)
                .then(|| [2.9, 1.2, 0.35, 1.6, 0.08][model % 5] * (0.4 + chance(number, model, 5) as f64 / 80.0)),
            tokens: Some(1000),
        };
        run.append(&ScoreRecord::Submission(submission)).unwrap();
        for (index, method) in task.test_methods.iter().enumerate() {
            // Later models are weaker, and few of the developers' tests fail.
            let (new, old): (Outcome, Outcome) = match chance(number, model, index) + 7 * (model % 6) {
                _ if fault => [Outcome::HarnessFail(HarnessReason::WrongBase); 2].into(),
                _ if name == GOLD && number % 29 != 5 => (Outcome::Pass, Outcome::ExecFail(ExecReason::Assertion)),
                _ if name == GOLD => [Outcome::ExecFail(ExecReason::Exception); 2].into(),
                0..60 => (Outcome::Pass, Outcome::ExecFail(ExecReason::Assertion)),
                60..76 if task.track == Track::TestGeneration => (Outcome::Pass, Outcome::Pass),
                60..95 => [Outcome::ExecFail(ExecReason::Exception); 2].into(),
                _ => [Outcome::CompileFail(CompileReason::TargetFile); 2].into(),
            };
            for (code, outcome) in [(Side::New, new), (Side::Old, old)] {
                let record = ScoreRecord::Execution(self.execution(run, task, name, (code, outcome), method));
                run.append(&record).unwrap();
            }
            if new == Outcome::Pass {
                self.adequacy(run, (number, mixed(number, model, index)), task, name, method);
            }
        }
    }

    fn execution(
        &self,
        run: &RunDirectory,
        task: &Task,
        model: &str,
        (code, outcome): (Side, Outcome),
        method: &MethodId,
    ) -> ExecutionRecord {
        let executed = !matches!(outcome, Outcome::HarnessFail(_));
        let directory = log_directory(model, &task.id, code);
        if executed {
            let path = run.path().join("logs").join(&directory);
            fs::create_dir_all(&path).unwrap();
            let said = format!("[INFO] a line of the test, as long as such lines are {}\n", self.strange).repeat(8);
            fs::write(path.join(format!("{}-1-1.stdout", method.method())), said).unwrap();
        }
        ExecutionRecord {
            schema: SCORE_SCHEMA,
            model: model.to_owned(),
            task_id: task.id.clone(),
            repository: task.repository.clone(),
            track: task.track,
            code,
            method: method.clone(),
            repeat: 1,
            outcome,
            detail: match outcome {
                Outcome::Pass => String::new(),
                Outcome::CompileFail(_) => format!(
                    "src/test/java/a/T.java:[31,22] error: cannot find symbol {}\n  symbol:   method withDefaults(java.util.Map<java.lang.String,java.util.List<java.lang.Integer>>)\n  location: class a.Parser\n",
                    self.strange
                ),
                _ => format!(
                    "java.lang.IllegalStateException: expected: <[alpha, beta, gamma, delta, epsilon, zeta, eta, theta]> but was: <[alpha, beta, gamma, delta, epsilon, zeta, theta]> {}\n\tat org.junit.jupiter.api.AssertEquals.failNotEqual(AssertEquals.java:197)\n\tat a.T.m0(T.java:27)\nCaused by: java.util.NoSuchElementException: eta\n{}",
                    self.strange,
                    "\tat a.b.C.d(C.java:7)\n".repeat(5)
                ),
            },
            missing: Vec::new(),
            attributed: None,
            attempts: 1,
            key: executed.then(|| Digest::of(directory.as_bytes())),
            cached: false,
            measured: Measured {
                launch_ms: Some(700),
                engine: "docker 20.10.24".to_owned(),
                logs: executed.then_some(directory),
                ..Measured::default()
            },
        }
    }

    fn adequacy(
        &self,
        run: &mut RunDirectory,
        (number, chance): (usize, usize),
        task: &Task,
        model: &str,
        method: &MethodId,
    ) {
        let lines: Vec<usize> = (5..21).collect();
        let covered: Vec<usize> = lines[..6 + chance % (lines.len() - 5)].to_vec();
        // The test calls a method as well that the task does not list, and covers half of it.
        let helper = FocalCoverage { first_line: 30, last_line: 33, lines: (30..34).collect(), covered: vec![30, 31] };
        let coverage = 100.0 * (covered.len() + 2) as f64 / (lines.len() + 4) as f64;
        let focal = FocalCoverage { first_line: FOCAL.0, last_line: FOCAL.1, lines, covered };
        let record = CoverageRecord {
            schema: SCORE_SCHEMA,
            model: model.to_owned(),
            task_id: task.id.clone(),
            method: method.clone(),
            focal: vec![focal.clone()],
            coverage: Some(coverage),
            coverage_range: Some(coverage / 2.0),
            cause: None,
            lost: false,
            own: Some(vec![focal, helper]),
            cached: false,
            isolation_missing: Vec::new(),
        };
        run.append(&ScoreRecord::Coverage(record)).unwrap();
        let killed = chance % 11;
        let outcome = |index| if index < killed { Outcome::ExecFail(ExecReason::Assertion) } else { Outcome::Pass };
        let outcomes = mutants(number).enumerate().map(|(index, id)| MutantOutcome { id, outcome: outcome(index) });
        let record = MutationRecord {
            schema: SCORE_SCHEMA,
            model: model.to_owned(),
            task_id: task.id.clone(),
            method: method.clone(),
            kills: Some(Kills { count: 10, killed, killed_strict: killed }),
            mutation_score: Some(killed as f64 / 10.0),
            mutants: outcomes.collect(),
            unmutated: None,
            cause: None,
            lost: false,
            elsewhere: 0,
            cached: false,
            isolation_missing: Vec::new(),
        };
        run.append(&ScoreRecord::Mutation(record)).unwrap();
    }

    /// Returns a test file of about three kilobytes, in which versions differ by a few lines.
    fn test_file(&self, number: usize, version: usize) -> String {
        let line = |line: usize| {
            let version = if line % 20 == version % 20 { version } else { 0 };
            let text = match line % 8 {
                0 => format!("    @Test void case{line}() {{"),
                1 => format!("        Parser parser = Parser.of({number}, {version});"),
                2 => "        for (String name : parser.names()) {".to_owned(),
                3 => format!("            assertEquals({version}, parser.depth(name));"),
                4 => "        }".to_owned(),
                5 => format!("        assertTrue(parser.isDone({version}));"),
                6 => "    }".to_owned(),
                _ => String::new(),
            };
            format!("{text} // {}\n", self.strange)
        };
        (0..80).map(line).collect()
    }
}

/// Returns a source of 39 lines with a method in lines 4 to 24.
fn source(number: usize, strange: &str) -> String {
    let line = |line: usize| match line {
        1 => "package a;".to_owned(),
        2 | 25 => String::new(),
        3 => format!("public class C{number} {{ // {strange}"),
        4 => "    List<String> names(Map<String, List<Integer>> from) {".to_owned(),
        24 => "    }".to_owned(),
        39 => "}".to_owned(),
        26..=38 => format!("    int line{line} = {number};"),
        _ => match line % 4 {
            1 => format!("        for (String name : from.keySet()) {{ // {strange}"),
            2 => format!("            if (from.get(name).size() > {line}) {{"),
            3 => format!("                found.add(name + {number});"),
            _ => "            } }".to_owned(),
        },
    };
    (1..40).map(|number| format!("{}\n", line(number))).collect()
}

fn own_method(name: String, (first_line, last_line): (usize, usize), listed: Option<usize>) -> OwnMethod {
    let lines = (first_line + 1..last_line).collect();
    OwnMethod { package: "a".to_owned(), file: "C.java".to_owned(), first_line, last_line, name, lines, listed }
}

/// Returns the model whose sample this is: samples are named as `score` names them.
fn sample_of(model: &str) -> Option<String> {
    Some(model.split_once(" (sample ")?.0.to_owned())
}

pub(crate) fn task(number: usize) -> Task {
    let methods = (0..1 + number % 3).map(|method| format!("a.T{number}#m{method}").parse().unwrap()).collect();
    let date = format!("{}-{:02}-15", 2014 + number % 12, 1 + number / 12 % 12);
    Task {
        id: format!("t{number:04}").parse().unwrap(),
        repository: format!("owner/r{}", number % 60).parse().unwrap(),
        track: if number.is_multiple_of(2) { Track::TestUpdate } else { Track::TestGeneration },
        rev1: format!("{number:040x}").parse().unwrap(),
        rev2: format!("{:040x}", number + (1 << 20)).parse().unwrap(),
        rev1_date: date.clone(),
        rev2_date: date,
        test_file: format!("src/test/java/a/T{number}.java").parse().unwrap(),
        test_methods: methods,
        focal_methods: Vec::new(),
    }
}

/// Tells whether the file that a generation task starts from compiles: that of every other one does.
pub(crate) fn starts_compile(task: usize) -> bool {
    task % 4 == 1
}

/// Returns the line of a task's mutant. In every fifth task the last one lies below the focal method.
fn mutant_line(task: usize, mutant: usize) -> usize {
    if task % 5 == 3 && mutant == 9 { 30 } else { 5 }
}

/// Returns a patch for every task, of which no more is said than that there is one.
fn handed_in(tasks: &[Task]) -> ModelInputs {
    let digest = Digest::of(b"a patch");
    let input =
        SubmissionInput { kind: ContentKind::Patch, digest, cost_usd: None, tokens: None, fence_removed: false };
    let submissions = tasks.iter().map(|task| (task.id.clone(), input.clone())).collect();
    ModelInputs { submissions, missing: Vec::new() }
}

fn mutants(task: usize) -> impl Iterator<Item = Digest> {
    (0..10).map(move |index| Digest::of(format!("{task} {index}").as_bytes()))
}

/// Returns a number below a hundred that looks like chance and is always the same.
fn chance(task: usize, model: usize, method: usize) -> usize {
    mixed(task, model, method) % 100
}

/// Returns a number that looks like chance and is always the same.
fn mixed(task: usize, model: usize, method: usize) -> usize {
    let mut value = (task * 31 + model) * 31 + method;
    for _ in 0..3 {
        value = (value ^ (value >> 7)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8;
    }
    value % 1000
}
