//! Mutants as one has them without this program: each put in its source's place, compiled by Maven and tested by its
//! Surefire, one after the other on one tree in one container.

use std::path::Path;

use super::contain;
use super::driven::{MOST_REPORT_BYTES, first_error, read_reports, reports};
use crate::engine::spec::{Command, ContainerLimits, PROGRAM_SCHEMA, Program, ReadOnlyMount, Step};
use crate::execution::cell::{Environment, Executor};
use crate::execution::fault::{command_end, done, not_done};
use crate::execution::literal::plain_maven;
use crate::execution::maven::{HOME, ModuleArguments, PROJECT, TREE};
use crate::execution::mutation::NoMutants;
use crate::task::MethodId;
use crate::workspace::cells::class_of_method;

/// All texts of a container together, in bytes.
const MOST_TEXT_BYTES: usize = 8 << 20;

/// Takes away what was compiled from a source, so that no build takes it for up to date whatever its clock's precision.
const FORGET: &str = "\
name=$(basename \"$2\" .java)
find \"$1\" -path '*/classes/*' '(' -name \"$name.class\" -o -name \"$name\\$*.class\" ')' -delete
";

/// Mutants of a source, and the methods that are run on them.
#[derive(Clone, Copy)]
pub struct Rebuilt<'a> {
    /// The repository's environment.
    pub environment: &'a Environment,
    /// Tar archive of the tree.
    pub archive: &'a Path,
    /// The target file's module.
    pub module: &'a ModuleArguments,
    /// Binary name of the target file's class.
    pub class: &'a str,
    /// The methods, all in one call of Maven.
    pub methods: &'a [MethodId],
    /// Class directories and jars of the test class path, the test's own directory first; only their names are used.
    pub class_path: &'a [String],
    /// The source, relative to the tree.
    pub path: &'a str,
    /// Texts of the mutants.
    pub texts: &'a [&'a str],
}

/// What became of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MutantEnd {
    /// It does not compile.
    Invalid,
    /// A method does not pass on it.
    Killed,
    /// All pass.
    Survived,
}

/// One mutant's build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RebuiltMutant {
    /// What became of it.
    pub end: MutantEnd,
    /// Wall time of Maven, in milliseconds.
    pub wall_ms: u64,
}

/// Indexes of the steps: the unchanged tree's build, its reports, and the first mutant's build, after which come three a mutant.
const UNCHANGED: usize = 2;
const REPORTS: usize = 3;
const FIRST: usize = 6;

/// Has Maven build and test as many of the mutants as one container takes, and returns what became of each.
///
/// # Errors
/// The file system's.
pub async fn rebuild(
    executor: &Executor,
    rebuilt: &Rebuilt<'_>,
) -> std::io::Result<Result<Vec<RebuiltMutant>, NoMutants>> {
    let mut bytes = 0;
    let fitting = rebuilt.texts.iter().take_while(|text| {
        bytes += text.len();
        bytes <= MOST_TEXT_BYTES
    });
    let number = fitting.count();
    let program = program(executor, rebuilt, number);
    let mounts = vec![ReadOnlyMount { source: rebuilt.archive.to_owned(), target: TREE.to_owned() }];
    let seconds = (number as u64 + 1) * executor.limits.compile_command.wall_seconds + 60;
    let limits = ContainerLimits { wall_seconds: seconds, ..executor.limits.compile };
    let run = contain(executor, rebuilt.environment, "rebuilt", mounts, limits, program).await?;
    let (run, _spool) = match run {
        Ok(run) => run,
        Err(cause) => return Ok(Err(NoMutants::passing(cause))),
    };
    let said = |step: usize| match run.step(step) {
        Some(output) => Ok(String::from_utf8_lossy(&output.stdout.bytes()?).into_owned()),
        None => std::io::Result::Ok(String::new()),
    };
    match command_end(&run, UNCHANGED) {
        Some(end) if end.exit_code == Some(0) => {}
        Some(_) => {
            let cause = format!("Maven fails on the unchanged source: {}", first_error(&said(UNCHANGED)?));
            return Ok(Err(NoMutants::certain(cause)));
        }
        None => return Ok(Err(NoMutants::passing(not_done(&run, "Maven").detail))),
    }
    let reported = match done(&run, REPORTS) {
        Some(archive) => read_reports(&archive.content.bytes()?)?.unwrap_or_default(),
        None => Vec::new(),
    };
    if !reported.iter().any(|one| one.passed) {
        return Ok(Err(NoMutants::certain("Surefire selects no test for the methods")));
    }
    let mut mutants = Vec::new();
    for step in (FIRST..).step_by(3).take(number) {
        let report = run.step(step).and_then(|output| output.report.as_ref());
        let Some((report, end)) = report.zip(command_end(&run, step)) else {
            return Ok(Err(NoMutants::passing(not_done(&run, "Maven").detail)));
        };
        let end = match end.exit_code {
            Some(0) => MutantEnd::Survived,
            _ if said(step)?.contains("COMPILATION ERROR") => MutantEnd::Invalid,
            _ => MutantEnd::Killed,
        };
        mutants.push(RebuiltMutant { end, wall_ms: report.wall_ms });
    }
    Ok(Ok(mutants))
}

fn program(executor: &Executor, rebuilt: &Rebuilt<'_>, number: usize) -> Program {
    let mut maven = plain_maven(rebuilt.environment, rebuilt.module, &["test"], &executor.limits);
    maven.argv.extend([
        format!("-Dtest={}", selection(rebuilt.class, rebuilt.methods)),
        // Modules that this one needs have no such test.
        "-DfailIfNoTests=false".to_owned(),
        "-Dsurefire.failIfNoSpecifiedTests=false".to_owned(),
    ]);
    let source = format!("{PROJECT}/{}", rebuilt.path);
    let words = ["/bin/sh", "-ec", FORGET, "sh", PROJECT, &source];
    let forget = Command { argv: words.map(str::to_owned).into(), required: true, ..maven.clone() };
    let mut steps = vec![
        Step::MakeDirectory { path: HOME.to_owned() },
        Step::Unpack { archive: TREE.to_owned(), into: PROJECT.to_owned() },
        Step::Run(maven.clone()),
        Step::SendArchive { root: reports(rebuilt.class_path), max_bytes: MOST_REPORT_BYTES },
    ];
    for text in rebuilt.texts.iter().take(number) {
        steps.push(Step::Write { path: source.clone(), content: (*text).to_owned() });
        steps.push(Step::Run(forget.clone()));
        steps.push(Step::Run(Command { only_after_success_of: Some(UNCHANGED), ..maven.clone() }));
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
}
