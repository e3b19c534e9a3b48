//! Coverage by Maven. Maven compiles a tree, and Surefire runs one test method of it with JaCoCo's agent on Surefire's
//! JVM. JaCoCo's command line then makes XML of the agent's data and the classes that Maven compiled.
//!
//! The agent reaches the JVM through the program that Surefire starts, not through `argLine`. So a project's own
//! `argLine` stays unchanged wherever it is written, and Maven's own JVM has no agent.

use std::collections::BTreeMap;
use std::path::Path;

use quick_xml::Reader;
use quick_xml::events::Event;

use super::contain;
use crate::literal::plain_maven;
use testevo_sandbox::engine::session::ContainerRun;
use testevo_sandbox::engine::spec::{Command, ContainerLimits, PROGRAM_SCHEMA, Program, ReadOnlyMount, Step};
use testevo_sandbox::execution::container::RepositoryImage;
use testevo_sandbox::execution::container::places::{HOME, PROJECT, TREE};
use testevo_sandbox::execution::container::steps::{command_end, done};
use testevo_sandbox::execution::executor::Executor;
use testevo_sandbox::execution::fault::not_done;
use testevo_sandbox::execution::launch::coverage::{
    Lines, MOST_XML_BYTES, SourceFile, agent_of, attribute, class_directories, read_xml, report_command,
};
use testevo_sandbox::execution::module::ModuleArguments;
use testevo_sandbox::outcome::launch::shortened;
use testevo_sandbox::task::MethodId;

/// A directory that looks like a development kit's to Surefire; it reads the version there.
const KIT: &str = "/work/kit";
const DATA: &str = "/work/jacoco/maven.exec";
const XML: &str = "/work/maven.xml";
/// The largest archive of Surefire's reports, in bytes.
pub(crate) const MOST_REPORT_BYTES: u64 = 128 << 20;

/// Indexes of the steps.
const MAVEN: usize = 4;

/// How Surefire is asked for a method, one after the other until it selects something: by its name, by the name with an
/// index as JUnit 4 has it where a class is parameterized, and by how a name begins, as other runners decorate it.
const PATTERNS: [&str; 3] = ["", "[*]", "*"];

/// One method of a tree.
#[derive(Clone, Copy)]
pub(crate) struct MavenMethod<'a> {
    /// The repository's image.
    pub(crate) image: &'a RepositoryImage,
    /// Tar archive of the tree.
    pub(crate) archive: &'a Path,
    /// The target file's module.
    pub(crate) module: &'a ModuleArguments,
    /// Binary name of the test class.
    pub(crate) class: &'a str,
    /// The method.
    pub(crate) method: &'a MethodId,
    /// Class directories and jars of the test class path, the test's own directory first; only their names are used.
    pub(crate) class_path: &'a [String],
    /// Source files of which lines are wanted.
    pub(crate) files: &'a [SourceFile],
}

/// The coverage of a method by Maven and JaCoCo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MavenCoverage {
    /// It passed.
    Covered {
        /// The tests that Surefire ran, by their reported names.
        tests: Vec<String>,
        /// Lines by source file.
        lines: BTreeMap<SourceFile, Lines>,
    },
    /// Maven gives no coverage to compare with.
    LeftOut {
        /// Why.
        cause: String,
        /// Whether another try may succeed, because the fault is ours.
        may_pass: bool,
    },
}

impl MavenCoverage {
    fn left_out(cause: impl AsRef<str>, may_pass: bool) -> Self {
        Self::LeftOut { cause: shortened(cause.as_ref()), may_pass }
    }
}

/// A test in Surefire's reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reported {
    pub(crate) name: String,
    /// Whether it neither failed nor was skipped.
    pub(crate) passed: bool,
}

impl Reported {
    /// Returns the name of its method; the rest names parameters.
    pub(crate) fn method(&self) -> &str {
        self.name.split(['[', '(', '{', ' ', ':']).next().unwrap_or_default()
    }
}

/// Runs a method with Maven and returns its coverage.
///
/// # Errors
/// I/O errors of writing logs and temporary files.
pub(crate) async fn drive(executor: &Executor, method: &MavenMethod<'_>) -> std::io::Result<MavenCoverage> {
    for pattern in PATTERNS {
        let program = program(executor, method, pattern);
        let mounts = vec![ReadOnlyMount { source: method.archive.to_owned(), target: TREE.to_owned() }];
        // For Maven, tests included, and the analysis.
        let seconds = 2 * executor.limits.compile_command.wall_seconds + 60;
        let limits = ContainerLimits { wall_seconds: seconds, ..executor.limits.compile };
        let run = contain(executor, method.image, "driven", mounts, limits, program).await?;
        let (run, _spool) = match run {
            Ok(run) => run,
            Err(cause) => return Ok(MavenCoverage::left_out(cause, true)),
        };
        if let Some(driven) = driven(&run, method)? {
            return Ok(driven);
        }
    }
    Ok(MavenCoverage::left_out("Surefire selects no test for the method", false))
}

fn program(executor: &Executor, method: &MavenMethod<'_>, pattern: &str) -> Program {
    let image = method.image;
    let tests = format!("{}#{}{pattern}", method.class, method.method.method());
    let mut maven = maven_test(executor, image, method.module, &tests);
    maven.argv.push(format!("-Djvm={KIT}/bin/java"));
    let script = "chmod 755 \"$1/bin/java\"; if [ -e \"$2/release\" ]; then cp \"$2/release\" \"$1/release\"; fi";
    let words = ["/bin/sh", "-ec", script, "sh", KIT, &image.java_home];
    let kit = Command {
        argv: words.map(str::to_owned).into(),
        required: true,
        working_directory: HOME.to_owned(),
        ..maven.clone()
    };
    let agent = agent_of(DATA, true);
    let java =
        format!("#!/bin/sh\nexec '{}/bin/java' -XX:+IgnoreUnrecognizedVMOptions '{agent}' \"$@\"\n", image.java_home);
    let mut steps = vec![
        Step::MakeDirectory { path: HOME.to_owned() },
        Step::Unpack { archive: TREE.to_owned(), into: PROJECT.to_owned() },
        Step::Write { path: format!("{KIT}/bin/java"), content: java },
        Step::Run(kit),
        Step::Run(maven),
        Step::SendArchive { root: reports(method.class_path), max_bytes: MOST_REPORT_BYTES },
    ];
    let directories = class_directories(method.class_path);
    steps.extend(directories.iter().map(|path| Step::MakeDirectory { path: (*path).clone() }));
    let report = report_command(&image.java_home, DATA, &directories, XML, &executor.limits);
    steps.push(Step::Run(Command { only_after_success_of: Some(MAVEN), ..report }));
    steps.push(Step::SendFile { path: XML.to_owned(), max_bytes: MOST_XML_BYTES });
    Program { schema: PROGRAM_SCHEMA, door_port: None, steps }
}

/// Returns Maven's command for some tests of a module, as Surefire is asked for them.
pub(crate) fn maven_test(
    executor: &Executor,
    image: &RepositoryImage,
    module: &ModuleArguments,
    tests: &str,
) -> Command {
    let mut maven = plain_maven(image, module, &["test"], &executor.limits);
    maven.argv.extend([
        format!("-Dtest={tests}"),
        // Modules that this one needs have no such test.
        "-DfailIfNoTests=false".to_owned(),
        "-Dsurefire.failIfNoSpecifiedTests=false".to_owned(),
    ]);
    maven
}

/// Returns Surefire's report directory, beside the directory of the tests' classes.
pub(crate) fn reports(class_path: &[String]) -> String {
    let build = class_path.first().and_then(|tests| tests.rsplit_once('/')).map_or(PROJECT, |(build, _)| build);
    format!("{build}/surefire-reports")
}

/// Returns what came of a container; `None` where Surefire selected no test.
fn driven(run: &ContainerRun, method: &MavenMethod<'_>) -> std::io::Result<Option<MavenCoverage>> {
    let left_out = |cause: &str| Ok(Some(MavenCoverage::left_out(cause, false)));
    let Some(end) = command_end(run, MAVEN) else {
        return Ok(Some(MavenCoverage::left_out(not_done(run, "Maven").detail, true)));
    };
    let succeeded = end.exit_code == Some(0);
    let reported = match done(run, MAVEN + 1) {
        Some(archive) => read_reports(&archive.content.bytes()?)?,
        None => Ok(Vec::new()),
    };
    let reported = match reported {
        Ok(reported) => reported,
        Err(error) => return left_out(&format!("Surefire's reports can't be read: {error}")),
    };
    match selected(&reported, method.method.method()) {
        Selected::Nothing if succeeded || !reported.is_empty() => return Ok(None),
        Selected::Others(name) => return left_out(&format!("Surefire runs other tests as well: {name}")),
        Selected::Failing(name) if succeeded => return left_out(&format!("`{name}` does not pass with Surefire")),
        _ if !succeeded => {
            let said = match run.step(MAVEN) {
                Some(step) => first_error(&String::from_utf8_lossy(&step.stdout.bytes()?)),
                None => String::new(),
            };
            return Ok(Some(MavenCoverage::left_out(format!("Maven fails: {said}"), end.limit.is_some())));
        }
        _ => {}
    }
    let xml = run.steps.last().filter(|last| last.index > MAVEN + 1).and_then(|last| done(run, last.index));
    let Some(xml) = xml else {
        return left_out("there is no data: Surefire starts no JVM of its own, or another one than it is told to");
    };
    Ok(Some(match read_xml(&xml.content.bytes()?, method.files) {
        Ok(lines) => MavenCoverage::Covered { tests: reported.into_iter().map(|one| one.name).collect(), lines },
        Err(error) => MavenCoverage::left_out(error.to_string(), false),
    }))
}

/// What Surefire selected by its reports.
#[derive(Debug, PartialEq, Eq)]
enum Selected {
    /// No test, or a class of which none was left.
    Nothing,
    /// The method, and it passed, each time where it is parameterized.
    Method,
    /// The method, and this did not pass.
    Failing(String),
    /// This is not the method.
    Others(String),
}

fn selected(reported: &[Reported], method: &str) -> Selected {
    // JUnit 4 reports a class of which a filter leaves nothing as a test of this name.
    const NOTHING_LEFT: &str = "initializationError";
    let named = |one: &&Reported| one.method() == method;
    if reported.iter().all(|one| one.name == NOTHING_LEFT) {
        return Selected::Nothing;
    }
    if let Some(other) = reported.iter().find(|one| !named(one)) {
        return Selected::Others(other.name.clone());
    }
    match reported.iter().find(|one| !one.passed) {
        Some(failing) => Selected::Failing(failing.name.clone()),
        None => Selected::Method,
    }
}

/// Reads Surefire's reports from an archive.
pub(crate) fn read_reports(archive: &[u8]) -> std::io::Result<Result<Vec<Reported>, quick_xml::Error>> {
    let mut reported = Vec::new();
    for entry in tar::Archive::new(archive).entries()? {
        let mut entry = entry?;
        let path = entry.path_bytes().into_owned();
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(&path);
        let is_report = name.starts_with(b"TEST-") && name.ends_with(b".xml");
        if entry.header().entry_type() != tar::EntryType::Regular || !is_report {
            continue;
        }
        let mut xml = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut xml)?;
        match read_report(&String::from_utf8_lossy(&xml)) {
            Ok(tests) => reported.extend(tests),
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(reported))
}

fn read_report(xml: &str) -> Result<Vec<Reported>, quick_xml::Error> {
    let mut reader = Reader::from_str(xml);
    let mut reported: Vec<Reported> = Vec::new();
    loop {
        match reader.read_event()? {
            Event::Start(event) | Event::Empty(event) => match event.name().as_ref() {
                "testcase" => {
                    reported.push(Reported { name: attribute(&event, "name").unwrap_or_default(), passed: true });
                }
                "failure" | "error" | "skipped" | "rerunFailure" | "rerunError" => {
                    reported.iter_mut().next_back().into_iter().for_each(|last| last.passed = false);
                }
                _ => {}
            },
            Event::Eof => return Ok(reported),
            _ => {}
        }
    }
}

/// Returns the first error line of Maven's output.
pub(crate) fn first_error(said: &str) -> String {
    let mut errors = said.lines().filter_map(|line| line.strip_prefix("[ERROR]")).map(str::trim);
    errors.find(|error| !error.is_empty()).unwrap_or("it says nothing of an error").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(names: &[&str]) -> Vec<Reported> {
        names.iter().map(|name| Reported { name: (*name).to_owned(), passed: !name.ends_with('!') }).collect()
    }

    #[test]
    fn only_the_method_may_have_run() {
        let of = |names: &[&str]| selected(&reported(names), "adds");
        for names in [&["adds"][..], &["adds[0]", "adds[1: a]"], &["adds(int)[1]", "adds(int)[2]"], &["adds{int}[1]"]] {
            assert_eq!(of(names), Selected::Method, "{names:?}");
        }
        assert_eq!(of(&[]), Selected::Nothing);
        assert_eq!(of(&["initializationError"]), Selected::Nothing);
        assert_eq!(of(&["adds", "addsMore"]), Selected::Others("addsMore".to_owned()));
        assert_eq!(of(&["adds[0]", "adds[1]!"]), Selected::Failing("adds[1]!".to_owned()));
    }

    #[test]
    fn reports_say_what_passed() {
        let xml = r#"<?xml version="1.0"?><testsuite name="A" tests="3"><properties><property name="a" value="b"/>
</properties><testcase name="one" classname="A" time="0"/><testcase name="two&lt;" classname="A"><skipped/></testcase>
<testcase name="three" classname="A"><system-out><![CDATA[<failure>]]></system-out></testcase></testsuite>"#;
        let found = read_report(xml).unwrap();
        let found: Vec<(&str, bool)> = found.iter().map(|one| (one.name.as_str(), one.passed)).collect();
        assert_eq!(found, [("one", true), ("two<", false), ("three", true)]);
        assert!(read_report("<testsuite></testcase>").is_err());
    }

    #[test]
    fn the_first_error_is_told() {
        let said = "[INFO] a\n[ERROR]\n[ERROR] Failed to execute goal x\n[ERROR] more\n";
        assert_eq!(first_error(said), "Failed to execute goal x");
    }
}
