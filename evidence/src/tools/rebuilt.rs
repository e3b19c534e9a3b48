//! Mutants without this program: each replaces its source, Maven compiles it, and Maven's Surefire tests it, one after
//! the other on one tree in one container.

use std::path::Path;

use super::contain;
use super::driven::{MOST_REPORT_BYTES, Reported, first_error, maven_test, read_reports, reports};
use testevo_sandbox::engine::spec::{Command, ContainerLimits, PROGRAM_SCHEMA, Program, ReadOnlyMount, Step};
use testevo_sandbox::execution::container::RepositoryImage;
use testevo_sandbox::execution::container::places::{HOME, PROJECT, TREE};
use testevo_sandbox::execution::container::steps::{command_end, done};
use testevo_sandbox::execution::executor::Executor;
use testevo_sandbox::execution::fault::{ExecutionError, NoAnswer, Remedy, not_done};
use testevo_sandbox::execution::module::ModuleArguments;
use testevo_sandbox::task::MethodId;
use testevo_sandbox::workspace::cells::class_of_method;

/// All texts of a container together, in bytes.
const MOST_TEXT_BYTES: usize = 8 << 20;

/// Takes away what was compiled from a source, so that no build takes it for up to date whatever its clock's precision.
const FORGET: &str = "\
name=$(basename \"$2\" .java)
find \"$1\" -path '*/classes/*' '(' -name \"$name.class\" -o -name \"$name\\$*.class\" ')' -delete
";

/// Mutants of a source, and the methods to run on them.
#[derive(Clone, Copy)]
pub(crate) struct Rebuilt<'a> {
    /// The repository's image.
    pub(crate) image: &'a RepositoryImage,
    /// Tar archive of the tree.
    pub(crate) archive: &'a Path,
    /// The target file's module.
    pub(crate) module: &'a ModuleArguments,
    /// Binary name of the target file's class.
    pub(crate) class: &'a str,
    /// The methods, all in one call of Maven.
    pub(crate) methods: &'a [MethodId],
    /// Class directories and jars of the test class path, the test's own directory first; only their names are used.
    pub(crate) class_path: &'a [String],
    /// The source, relative to the tree.
    pub(crate) path: &'a str,
    /// Texts of the mutants.
    pub(crate) texts: &'a [&'a str],
}

/// The outcome of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MutantEnd {
    /// It does not compile.
    Invalid,
    /// A method does not pass on the mutant.
    Killed,
    /// All pass.
    Survived,
}

/// One mutant's build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RebuiltMutant {
    /// The mutant's outcome, or why it is unknown.
    pub(crate) end: Result<MutantEnd, String>,
    /// Wall time of Maven, in milliseconds.
    pub(crate) wall_ms: u64,
    /// A limit ended Maven.
    pub(crate) limited: bool,
}

/// Indexes of the steps: the unchanged tree's build, its reports, and the first mutant's build with its reports behind it; from
/// one mutant's to the next there are so many.
const UNCHANGED: usize = 2;
const REPORTS: usize = 3;
const FIRST: usize = 7;
const OF_A_MUTANT: usize = 5;

/// Builds and tests mutants with Maven, and returns their outcomes. Where a container fails, only outcomes of earlier
/// mutants are returned.
///
/// # Errors
/// [`ExecutionError`]; its I/O errors are of temporary files.
pub(crate) async fn rebuild(executor: &Executor, rebuilt: &Rebuilt<'_>) -> Result<Vec<RebuiltMutant>, ExecutionError> {
    if rebuilt.texts.iter().map(|text| text.len()).sum::<usize>() > MOST_TEXT_BYTES {
        return Err(NoAnswer::never("the mutants are too large for one container").into());
    }
    let program = program(executor, rebuilt);
    let mounts = vec![ReadOnlyMount { source: rebuilt.archive.to_owned(), target: TREE.to_owned() }];
    let seconds = (rebuilt.texts.len() as u64 + 1) * executor.limits.compile_command.wall_seconds + 60;
    let limits = ContainerLimits { wall_seconds: seconds, ..executor.limits.compile };
    let run = contain(executor, rebuilt.image, "rebuilt", mounts, limits, program).await?;
    let (run, _spool) = match run {
        Ok(run) => run,
        Err(cause) => return Err(NoAnswer::fault(cause).into()),
    };
    let said = |step: usize| match run.step(step) {
        Some(output) => Ok(String::from_utf8_lossy(&output.stdout.bytes()?).into_owned()),
        None => std::io::Result::Ok(String::new()),
    };
    let reported = |step: usize| match done(&run, step) {
        Some(archive) => read_reports(&archive.content.bytes()?),
        None => Ok(Ok(Vec::new())),
    };
    let Some(end) = command_end(&run, UNCHANGED) else {
        return Err(not_done(&run, "Maven").into());
    };
    if end.exit_code != Some(0) {
        let cause = format!("Maven fails on the unchanged source: {}", first_error(&said(UNCHANGED)?));
        let remedy = if end.limit.is_some() { Remedy::TryAgain } else { Remedy::None };
        return Err(NoAnswer::of(cause, remedy).into());
    }
    let ran = reported(REPORTS)?.map_err(|error| format!("Surefire's reports can't be read: {error}"));
    if let Err(cause) = ran.and_then(|reported| selects(&reported, rebuilt.methods)) {
        return Err(NoAnswer::never(cause).into());
    }
    let mut mutants = Vec::new();
    for step in (FIRST..).step_by(OF_A_MUTANT).take(rebuilt.texts.len()) {
        let report = run.step(step).and_then(|output| output.report.as_ref());
        // What one left behind, such as a full disk, may keep the next from being written.
        let Some((report, end)) = report.zip(command_end(&run, step)) else { break };
        let (limited, succeeded) = (end.limit.is_some(), end.exit_code == Some(0));
        let became = match reported(step + 1)? {
            Ok(reported) => became(succeeded, limited, &reported, &said(step)?, rebuilt.methods),
            // A JVM that was ended in the midst of a report.
            Err(_) if limited => Ok(MutantEnd::Killed),
            Err(error) => Err(format!("Surefire's reports can't be read: {error}")),
        };
        mutants.push(RebuiltMutant { end: became, wall_ms: report.wall_ms, limited });
    }
    if mutants.is_empty() {
        return Err(not_done(&run, "Maven").into());
    }
    Ok(mutants)
}

/// Checks that Surefire ran exactly the methods and that all passed.
fn selects(reported: &[Reported], methods: &[MethodId]) -> Result<(), String> {
    if let Some(other) = reported.iter().find(|one| !methods.iter().any(|method| method.method() == one.method())) {
        return Err(format!("Surefire runs other tests as well: {}", other.name));
    }
    if let Some(failing) = reported.iter().find(|one| !one.passed) {
        return Err(format!("`{}` does not pass with Surefire", failing.name));
    }
    let missing = methods.iter().find(|method| !reported.iter().any(|one| one.method() == method.method()));
    match missing {
        Some(method) => Err(format!("Surefire does not run {method} when it is asked for all methods at once")),
        None => Ok(()),
    }
}

/// Says what became of a mutant by what Maven's end, Surefire's reports and, where there are none, Maven's own last error are.
fn became(
    succeeded: bool,
    limited: bool,
    reported: &[Reported],
    said: &str,
    methods: &[MethodId],
) -> Result<MutantEnd, String> {
    if limited || reported.iter().any(|one| !one.passed) {
        return Ok(MutantEnd::Killed);
    }
    if succeeded {
        return selects(reported, methods).map(|()| MutantEnd::Survived);
    }
    let failed = said.lines().rfind(|line| line.starts_with("[ERROR] Failed to execute goal ")).unwrap_or_default();
    // With reports a test ran, whose output may hold anything.
    if reported.is_empty() && failed.contains(":maven-compiler-plugin:") && failed.contains(":compile ") {
        return Ok(MutantEnd::Invalid);
    }
    let crashed = ["The forked VM terminated", "error in the forked process", "ExecutionException"];
    if failed.contains("surefire") && crashed.iter().any(|words| said.contains(words)) {
        return Ok(MutantEnd::Killed);
    }
    Err(format!("Maven fails otherwise: {}", first_error(said)))
}

fn program(executor: &Executor, rebuilt: &Rebuilt<'_>) -> Program {
    let tests = selection(rebuilt.class, rebuilt.methods);
    let maven = maven_test(executor, rebuilt.image, rebuilt.module, &tests);
    let source = format!("{PROJECT}/{}", rebuilt.path);
    let words = ["/bin/sh", "-ec", FORGET, "sh", PROJECT, &source];
    let forget = Command { argv: words.map(str::to_owned).into(), required: true, ..maven.clone() };
    let reports = reports(rebuilt.class_path);
    let send = Step::SendArchive { root: reports.clone(), max_bytes: MOST_REPORT_BYTES };
    let mut steps = vec![
        Step::MakeDirectory { path: HOME.to_owned() },
        Step::Unpack { archive: TREE.to_owned(), into: PROJECT.to_owned() },
        Step::Run(maven.clone()),
        send.clone(),
    ];
    for text in rebuilt.texts {
        steps.push(Step::Empty { path: reports.clone() });
        steps.push(Step::Write { path: source.clone(), content: (*text).to_owned() });
        steps.push(Step::Run(forget.clone()));
        steps.push(Step::Run(Command { only_after_success_of: Some(UNCHANGED), ..maven.clone() }));
        steps.push(send.clone());
    }
    Program { schema: PROGRAM_SCHEMA, door_port: None, steps }
}

/// Returns the methods as Surefire is asked for them.
fn selection(class: &str, methods: &[MethodId]) -> String {
    let mut classes: Vec<(String, Vec<&str>)> = Vec::new();
    for method in methods {
        let class = class_of_method(class, method);
        match classes.iter_mut().find(|(known, _)| *known == class) {
            Some((_, names)) => names.push(method.method()),
            None => classes.push((class, vec![method.method()])),
        }
    }
    let classes: Vec<String> =
        classes.into_iter().map(|(class, names)| format!("{class}#{}", names.join("+"))).collect();
    classes.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_asked_for_by_class() {
        let methods: Vec<MethodId> =
            ["ATest#one", "ATest$Inner#three", "ATest#two"].map(|name| name.parse().unwrap()).into();
        assert_eq!(selection("a.ATest", &methods), "a.ATest#one+two,a.ATest$Inner#three");
    }

    #[test]
    fn what_surefire_reports_decides() {
        use MutantEnd::{Invalid, Killed, Survived};
        let methods: Vec<MethodId> = ["ATest#one", "ATest#two"].map(|name| name.parse().unwrap()).into();
        let reported = |names: &[&str]| -> Vec<Reported> {
            let of =
                |name: &&str| Reported { name: name.trim_end_matches('!').to_owned(), passed: !name.ends_with('!') };
            names.iter().map(of).collect()
        };
        let all = reported(&["one", "two[0]", "two[1]"]);
        assert_eq!(selects(&all, &methods), Ok(()));
        for other in [&["one"][..], &["one", "two", "three"], &["one", "two!"], &[]] {
            assert!(selects(&reported(other), &methods).is_err(), "{other:?}");
        }

        let compiler = "[ERROR] Failed to execute goal org.apache.maven.plugins:maven-compiler-plugin:3.8.1:compile \
                        (default-compile) on project a: Compilation failure\n";
        let tests = compiler.replace(":compile ", ":testCompile ");
        let crash = "[ERROR] Failed to execute goal a.b:maven-surefire-plugin:3.0:test (default-test): The forked VM \
                     terminated without saying properly goodbye\n";
        let style = "[ERROR] Failed to execute goal a.b:maven-checkstyle-plugin:3:check (x) on project a\n";
        let of =
            |succeeded, names: &[&str], said: &str| became(succeeded, false, &reported(names), said, &methods).ok();
        assert_eq!(of(true, &["one", "two"], ""), Some(Survived));
        assert_eq!(of(true, &["one"], ""), None, "one did not run");
        assert_eq!(of(true, &["one", "two!"], ""), Some(Killed), "failures are ignored by the project");
        assert_eq!(of(false, &["one", "two!"], compiler), Some(Killed), "a test says what it likes");
        assert_eq!(of(false, &[], compiler), Some(Invalid));
        assert_eq!(of(false, &[], &tests), None);
        assert_eq!(of(false, &[], crash), Some(Killed));
        assert_eq!(of(false, &[], style), None);
        assert_eq!(became(false, true, &[], "", &methods), Ok(Killed));
    }
}
