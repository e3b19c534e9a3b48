//! Every miniature through the whole job: lock, image, proof, cells; a real engine, real Maven. What comes of each cell
//! and method must be what the miniature says.
//!
//! Tests begin in the order of their names, and those of one repository wait for each other: the longest have names by which
//! they begin early, and so end before others want their repositories.
//!
//! The data directory lies below the build's own, so that a second run of the tests resolves and downloads nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use testevo_sandbox::execution::run::record::ExecutionPath;
use testevo_sandbox::lock::{LockFile as _, RepositoryLock};
use testevo_sandbox::outcome::label::cells_of;
use testevo_sandbox::outcome::{CompileReason, Outcome};
use testevo_sandbox::sample::{Miniature, SampleRepository};
use testevo_sandbox::task::Cell;

use super::workshop::{Records, Workshop};
use super::{proof, verdict};
use crate::support::miniature;

/// Settings of a repository's manifest beyond the defaults, so that tests which never end do so early.
fn overrides(name: &str) -> &'static str {
    match name {
        "hostile-17" => {
            "\n[overrides.limits]\nrun_wall_seconds = 16\nrun_cpu_seconds = 12\nrun_processes = 128\n\
             run_memory_mib = 768\nrun_scratch_mib = 256\nrun_heap_mib = 256\n"
        }
        _ => "",
    }
}

#[test]
fn jupiter_17() {
    let checked = check("jupiter-17", Reference::Section);
    reports_are_kept(&checked, "jupiter");
    errors_are_kept(&checked);
    chance_is_told(&checked.workshop);
    super::scoring::a_submission_answers_for_no_missing_contents(&checked.workshop, &checked.repository);
    a_wrong_label_has_a_dispute(&checked.workshop);
}

/// A label that does not hold is executed again on both paths, and what shows it is written down once.
fn a_wrong_label_has_a_dispute(workshop: &Workshop) {
    let task = "testevo__jupiter-17__wrong-label";
    workshop.forget_run("disputed");
    let arguments = ["validate", task, "--run-id", "disputed"];
    let (code, said) = workshop.try_run(&arguments);
    assert_eq!(code, Some(1), "{said}");
    let file = workshop.data_dir.join(format!("runs/disputed/disputes/{task}.md"));
    let text = fs_err::read_to_string(&file).unwrap();
    let row = "| WordTest\\#length | old test, new code | exec\\_fail(assertion) or exec\\_fail(exception) or compile\\_fail | 3 × pass | 3 × pass | **no** |";
    assert!(text.contains(row), "{text}");
    assert!(text.contains("+        return text.strip().length();"), "{text}");
    assert!(text.contains(&format!("validate {task} --paths both --repeat 3")), "{text}");
}

#[test]
fn junit4_8() {
    reports_are_kept(&check("junit4-8", Reference::Section), "vintage");
}

#[test]
fn modules_8() {
    all_modules_are_built_where_the_lock_says(&check("modules-8", Reference::Section));
}

/// A build that a part of the modules does not make is decided once, kept in the lock and told.
fn all_modules_are_built_where_the_lock_says(checked: &Checked) {
    let Checked { repository, workshop, .. } = checked;
    assert!(!RepositoryLock::load(&workshop.lock_path(&repository.name)).unwrap().whole_sets.is_empty());
    let run = repository.name.file_stem();
    for (miniature, whole) in [("8-highest-directory", true), ("1-sibling", false)] {
        let (code, said) = workshop.try_run(&["explain", &run, &format!("{run}__{miniature}")]);
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(said.matches("  modules   Maven builds all modules").count(), if whole { 4 } else { 0 }, "{said}");
    }
}

#[test]
#[ignore = "takes a quarter of an hour: the reference path on every miniature of the largest repositories"]
fn full_every_miniature_on_both_paths() {
    reports_are_kept(&check("jupiter-17", Reference::All), "jupiter");
    reports_are_kept(&check("junit4-8", Reference::All), "vintage");
    check("modules-8", Reference::All);
    recordings_are_as_described(&check("builds-17", Reference::All));
}

#[test]
fn maven_builds_17() {
    let checked = check("builds-17", Reference::Section);
    recordings_are_as_described(&checked);
    let Checked { repository, workshop, .. } = checked;
    super::scoring::the_builds_classes_are_measured(&workshop, &repository, "9-woven");
    // Last, because another lock needs another image.
    super::locking::an_origin_that_is_gone_is_named(&workshop, &repository);
}

#[test]
fn packaging_bundle_8() {
    let Checked { repository, workshop, .. } = check("bundle-8", Reference::All);
    versions_are_chosen(&workshop, &repository);
    proof::makes_the_image_ready(&workshop, &repository);
}

#[test]
fn hostile_17() {
    let Checked { repository, workshop, records, .. } = check("hostile-17", Reference::Section);
    let red = ["exec_fail(timeout)", "exec_fail(pids)", "exec_fail(disk)", "compile_fail(resource)"];
    let mut told = String::new();
    for ((task, cell, method, path), record) in &records {
        let outcome = record.outcome.to_string();
        if red.contains(&outcome.as_str()) {
            let task = task.trim_start_matches("testevo__hostile-17__");
            let detail = record.detail.replace('\n', "\n    ");
            told.push_str(&format!("{task} {} {method} ({path}): {outcome}\n    {detail}\n", cell.name()));
        }
        // What was printed is dropped, however much it is, and the verdict stands.
        let floods = method == "FloodTest#output" && *cell == Cell::Nn;
        assert_eq!(record.measured.dropped_bytes > 5_000_000_000, floods, "{task} {method}: {:?}", record.measured);
    }
    let filters = [
        // Whether a process or a thread is the first that can't be made is decided by chance.
        (r"(no further process or thread could be made)(: .*(\n +at .*)?)?", "$1"),
        // On a busy machine wall time ends first what computes.
        (r"(#computes .*\n.*the limit of) (wall|processor) time", "$1 [WALL OR PROCESSOR] time"),
    ];
    insta::with_settings!({filters => filters}, { insta::assert_snapshot!("hostile-17", told) });
    // What can't be enforced depends on who runs the tests.
    let filters = [(r"\b5[0-9]{9} bytes", "[MORE THAN 5 GB] bytes"), (r"; not enforced: [a-z, ]+", "")];
    insta::with_settings!({filters => filters}, {
        insta::assert_snapshot!("flood", explained(&workshop, &repository, "4-flood", "FloodTest#output"));
    });
}

/// Returns what a user is told of a method, but for the commands and their times.
fn explained(workshop: &Workshop, repository: &SampleRepository, miniature: &str, method: &str) -> String {
    let run = repository.name.file_stem();
    let (code, said) = workshop.try_run(&["explain", &run, &format!("{run}__{miniature}")]);
    assert_eq!(code, Some(0), "{said}");
    let (mut told, mut meant) = (String::new(), false);
    for line in said.lines() {
        if !line.starts_with("    ") {
            meant = line.starts_with(&format!("  {method},"));
        }
        let command = ["    launch ", "    $ "].iter().any(|begin| line.starts_with(begin));
        if meant && !command {
            told.push_str(&format!("{line}\n"));
        }
    }
    told
}

/// Every method that passed has JUnit's own report among the logs, whichever path launched it.
fn reports_are_kept(checked: &Checked, engine: &str) {
    let mut ways = BTreeSet::new();
    // Names of nested classes can't be names of files as they stand.
    let passed =
        checked.records.iter().filter(|((_, _, id, _), one)| one.outcome == Outcome::Pass && !id.contains('$'));
    for ((task, cell, id, path), record) in passed {
        let way = match record.measured.path {
            ExecutionPath::Maven => "",
            ExecutionPath::Direct => "direct-",
        };
        let method = id.split_once('#').unwrap().1;
        let last = match record.measured.subclasses.as_slice() {
            [] => record.attempts.to_string(),
            // Each of the two subclasses was launched once.
            subclasses => {
                assert_eq!(subclasses, ["mini.SquareShapeTest", "mini.ShapeTest$OwnShapeTest"], "{task} {id}");
                assert_eq!(record.attempts, 2, "{task} {id}");
                "subclass-2-1".to_owned()
            }
        };
        let name = format!("{way}{method}-1-{last}.{engine}.xml");
        let xml = fs_err::read_to_string(checked.logs(*path).join(task).join(cell.name()).join(name)).unwrap();
        let whole = xml.contains("<testsuite ") && xml.contains(&format!("<testcase name=\"{method}"));
        assert!(whole && xml.trim_end().ends_with("</testsuite>"), "{task} {id}: {xml}");
        ways.insert(way);
    }
    assert_eq!(ways, BTreeSet::from(["", "direct-"]));
}

/// What does not compile on the direct path has the compiler's errors among its logs as data.
fn errors_are_kept(checked: &Checked) {
    let logs = checked.logs(ExecutionPath::Direct);
    let direct = checked.records.iter().filter(|(_, one)| one.measured.path == ExecutionPath::Direct);
    let failed = direct.filter(|(_, one)| one.outcome == Outcome::CompileFail(CompileReason::TargetFile));
    let failed: Vec<_> = failed.map(|((task, cell, _, _), _)| (task, cell)).collect();
    assert!(!failed.is_empty());
    for (task, cell) in failed {
        let file = logs.join(task).join(cell.name()).join("direct-compile.diagnostics.jsonl");
        let text = fs_err::read_to_string(file).unwrap();
        let first: BTreeMap<String, serde_json::Value> = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!(first.keys().collect::<Vec<_>>(), ["code", "column", "file", "line", "message"]);
        let place =
            ["line", "column"].into_iter().all(|number| first[number].as_i64().is_some_and(|number| number > 0));
        let said = first["code"].as_str().is_some_and(|code| code.starts_with("compiler.err."));
        let told = first["file"].is_string() && place && said && !first["message"].as_str().unwrap().is_empty();
        assert!(told, "{task}: {first:?}");
    }
}

/// What the recorder's description says of its records.
const RECORDS: &str = include_str!("../../images/recorder/README.md");

/// What Maven's plugins are asked for is recorded with all its keys, whatever the build, and each is described.
fn recordings_are_as_described(checked: &Checked) {
    let logs = checked.logs(ExecutionPath::Maven);
    let cells: BTreeSet<(&String, Cell)> = checked.records.keys().map(|(task, cell, _, _)| (task, *cell)).collect();
    let mut found: BTreeMap<String, BTreeSet<Vec<String>>> = BTreeMap::new();
    for (task, cell) in cells {
        let recording = logs.join(task).join(cell.name()).join("compile-1.recording.jsonl");
        // Some cells are decided without Maven.
        let Ok(text) = fs_err::read_to_string(recording) else { continue };
        for line in text.lines() {
            let record: BTreeMap<String, serde_json::Value> = serde_json::from_str(line).unwrap();
            let keys = record.keys().cloned().collect();
            found.entry(record["event"].as_str().unwrap().to_owned()).or_default().insert(keys);
        }
    }
    let goal = ["event", "execution", "goal", "ms", "phase", "plugin", "project"];
    let call = [
        "arguments",
        "class_path",
        "compiler",
        "excludes",
        "executable",
        "fail_on_error",
        "fork",
        "generated_sources",
        "includes",
        "jvm_arguments",
        "module_path",
        "output",
        "proc",
        "processor_path",
        "processors",
        "source_roots",
        "sources",
        "working_directory",
    ];
    let settings = [
        "arg_line",
        "default",
        "enable_assertions",
        "environment",
        "event",
        "execution",
        "failures",
        "ms",
        "phase",
        "plugin",
        "project",
        "system_properties",
        "use_module_path",
        "working_directory",
    ];
    let mut call = [&goal[..], &call].concat();
    call.sort_unstable();
    for (event, expected) in [("compiler_call", call), ("test_settings", settings.to_vec())] {
        let all: Vec<&Vec<String>> = found[event].iter().collect();
        let [keys] = all[..] else { panic!("{event}: {all:?}") };
        assert_eq!(*keys, expected, "{event}");
        for key in keys {
            assert!(RECORDS.contains(&format!("`{key}`")), "nothing describes `{key}` of `{event}`");
        }
    }
}

/// Launches the dice so often that all throws are on one side once in 32,768 times: they are flaky, which is no failure.
fn chance_is_told(workshop: &Workshop) {
    let arguments =
        ["validate", "testevo__jupiter-17__flaky", "--repeat", "16", "--no-confirm", "--format", "json", "--fresh"];
    let output = workshop.command(&arguments).output().unwrap();
    let summary = verdict::summary(&output);
    assert_eq!(output.status.code(), Some(0), "{summary}");
    let [flaky] = summary["flaky"].as_array().unwrap().as_slice() else { panic!("{summary}") };
    let found = ["task_id", "cell", "method"].map(|key| flaky[key].as_str().unwrap());
    assert_eq!(found, ["testevo__jupiter-17__flaky", "nn", "DiceTest#throwsHigh"]);
    assert_eq!(flaky["runs"], 16);
    assert!((1..16).contains(&flaky["passed"].as_u64().unwrap()), "{summary}");
    let none = serde_json::Value::Array(Vec::new());
    assert_eq!((&summary["tasks"], &summary["reproduced"]), (&1.into(), &0.into()));
    assert_eq!((&summary["differing"], &summary["infrastructure"]), (&none, &none));
}

/// Plugins that nobody gave a version have one in the lock, and by which rule.
fn versions_are_chosen(workshop: &Workshop, repository: &SampleRepository) {
    let lock = RepositoryLock::load(&workshop.lock_path(&repository.name)).unwrap();
    let mut chosen = BTreeMap::new();
    for frozen in lock.metadata {
        let Some(version) = frozen.chosen else { continue };
        assert!(frozen.content.contains(&format!("<release>{version}</release>")), "{}", frozen.content);
        let artifact = frozen.path.rsplit('/').nth(1).unwrap().to_owned();
        chosen.insert(artifact, (version, frozen.rule));
    }
    for plugin in ["maven-compiler-plugin", "maven-resources-plugin", "maven-surefire-plugin"] {
        let (version, rule) = &chosen[plugin];
        match plugin {
            "maven-surefire-plugin" => {
                assert_eq!((version.as_str(), rule.as_str()), ("2.22.2", "runs all JUnit versions"))
            }
            _ => assert!(rule.starts_with("newest release for Java 8"), "{plugin} {version}: {rule}"),
        }
    }
}

/// Which miniatures of a repository are executed, and which take the reference path as well as the direct one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reference {
    All,
    /// On the direct path those that [`LEFT`] does not name. Of these on the reference path every third of a small repository,
    /// every ninth of another, and only these are scored: Maven compiles each of their cells. Fallbacks, proofs, disputes and
    /// submissions take that path too.
    Section,
}

/// What only [`full_every_miniature_on_both_paths`] executes: Maven prepares two revisions for each miniature, and locks most of
/// these in a set of build files of their own. What each shows has unit tests, or another miniature shows a part of it.
const LEFT: [(&str, &[&str]); 3] = [
    (
        "builds-17",
        &[
            "1-surefire-settings",
            "2-resource-filtering",
            "3-plugin-downloads",
            "6-broken-main",
            "7-encoding",
            "8-parts",
            "9-parameter-name",
            "9-within-the-tree",
        ],
    ),
    (
        "jupiter-17",
        &[
            "assertion",
            "compile-other",
            "enum-order",
            "exception",
            "exit",
            "fresh-directories",
            "inherited-name",
            "inlined-constant",
            "leaves",
            "mounted-tree",
            "nested",
            "nested-namesakes",
            "noise",
            "not-discriminating",
            "setup",
        ],
    ),
    ("modules-8", &["6-processor-resource", "9-start-below-root"]),
];

/// Returns the miniatures that [`Reference::Section`] executes.
fn cross_section(repository: &SampleRepository) -> Vec<Miniature> {
    let left = LEFT.iter().find(|(name, _)| *name == repository.name.name()).map_or(&[][..], |(_, left)| left);
    for name in left {
        assert!(repository.miniatures.iter().any(|miniature| miniature.name == *name), "there is no {name}");
    }
    repository.miniatures.iter().filter(|miniature| !left.contains(&&*miniature.name)).cloned().collect()
}

/// What came of a sample repository.
struct Checked {
    repository: SampleRepository,
    workshop: Workshop,
    records: Records,
    reference: Reference,
}

impl Checked {
    /// Returns the directory of a path's logs.
    fn logs(&self, path: ExecutionPath) -> PathBuf {
        let run = self.repository.name.file_stem();
        let run =
            if (self.reference, path) == (Reference::Section, ExecutionPath::Maven) { on_maven(&run) } else { run };
        self.workshop.data_dir.join("runs").join(run).join("logs")
    }
}

/// Returns the name of the run that has the cross-section's cells on the reference path.
fn on_maven(run: &str) -> String {
    format!("{run}-maven")
}

/// Runs everything on the direct path and, as far as wanted, on the reference path. They must agree wherever each says
/// what the miniature says.
fn check(name: &str, reference: Reference) -> Checked {
    let mut repository = miniature::load(name);
    let executed = match reference {
        Reference::All => repository.miniatures.clone(),
        Reference::Section => cross_section(&repository),
    };
    let is_whole = executed.len() == repository.miniatures.len();
    // Others work with the whole of this one.
    if name != "jupiter-17" {
        repository.miniatures.clone_from(&executed);
    }
    let workshop = Workshop::new(&repository);
    let (this, run) = (repository.name.as_str(), repository.name.file_stem());
    let locked = workshop.prepare(&repository, overrides(name));
    let task = |miniature: &Miniature| format!("{run}__{}", miniature.name);
    // The small ones have half a dozen.
    let step = if matches!(name, "hostile-17" | "junit4-8") { 3 } else { 9 };
    let section: Vec<String> = executed.iter().step_by(step).map(task).collect();
    let validate = |run: &str, more: &[&str]| {
        workshop.forget_run(run);
        // Containers of the built-in engine begin twenty times as fast. What limits do, and the repositories that are checked in
        // full, is seen with the daemon.
        let engine = if reference == Reference::Section && name != "hostile-17" { "native" } else { "auto" };
        let validate = ["validate", "--no-confirm", "--run-id", run, "--format", "json", "--engine", engine];
        let validated = workshop.command(&[&validate, more].concat()).output().unwrap();
        let Some(records) = workshop.records(run) else {
            panic!("{name}: nothing was executed\n{locked}\n{}", String::from_utf8_lossy(&validated.stderr));
        };
        (validated, records)
    };
    let (validated, records) = match reference {
        Reference::All => validate(&run, &["--paths", "both", this]),
        Reference::Section => {
            let selected: Vec<&str> =
                ["--path", "maven"].into_iter().chain(section.iter().map(String::as_str)).collect();
            let (_, of_maven) = validate(&on_maven(&run), &selected);
            let tasks: Vec<String> = executed.iter().map(task).collect();
            let selected: Vec<&str> =
                ["--path", "direct"].into_iter().chain(tasks.iter().map(String::as_str)).collect();
            let (validated, records) = validate(&run, &selected);
            (validated, records.into_iter().chain(of_maven).collect())
        }
    };
    let mut wrong = Vec::new();
    for miniature in &executed {
        let on_both = reference == Reference::All || section.contains(&task(miniature));
        let paths = if on_both { &[ExecutionPath::Direct, ExecutionPath::Maven][..] } else { &[ExecutionPath::Direct] };
        for method in &miniature.methods {
            for cell in cells_of(miniature.track) {
                let expected = &method.expected[cell];
                for path in paths {
                    let found = records.get(&(task(miniature), *cell, method.id.to_string(), *path));
                    if found.is_none_or(|record| !expected.contains(&record.outcome)) {
                        let got = found.map_or_else(
                            || "no record".to_owned(),
                            |record| format!("{}: {}", record.outcome, record.detail),
                        );
                        let expected: Vec<String> = expected.iter().map(Outcome::to_string).collect();
                        wrong.push(format!(
                            "{} {} {} ({path}): expected {}, got {got}",
                            miniature.name,
                            cell.name(),
                            method.id,
                            expected.join(" or ")
                        ));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
    let shown = SampleRepository { miniatures: executed.clone(), ..repository.clone() };
    verdict::is_as_ever(name, &shown, (is_whole, reference == Reference::All), &validated);
    let mut scored = repository.clone();
    if reference == Reference::Section {
        scored.miniatures.retain(|miniature| section.contains(&task(miniature)));
    }
    super::scoring::gold_is_scored_as_expected(&workshop, &scored);
    Checked { repository, workshop, records, reference }
}
