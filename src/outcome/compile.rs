//! Classifies a compilation from Maven's events and exit facts.
//!
//! Maven's log is never read. The recorder in Maven's own process writes which goal of which module failed and why. The
//! submission is responsible only for errors in test sources of the task's module; all others are faults of the
//! infrastructure.

mod missing;

use serde::Deserialize;

use super::launch::shortened;
use super::{CompileReason, InfraReason, Outcome};
use crate::engine::spec::{CommandEnd, LimitReached};

pub use self::missing::{UnresolvedArtifact, unresolved};
use self::missing::{asking_pom, missing_in_jdk, needs_later_jdk};

const RECORDING_SCHEMA: u32 = 2;
const COMPILER_PLUGIN: &str = "org.apache.maven.plugins:maven-compiler-plugin:";

/// The facts of one compilation.
#[derive(Clone, Debug)]
pub struct CompileFacts<'a> {
    /// How Maven ended.
    pub end: &'a CommandEnd,
    /// Whether the container's memory limit killed a process.
    pub oom_killed: bool,
    /// The recorder's JSON lines; empty if Maven failed before the first.
    pub recording: &'a [u8],
    /// The task's module in the container, absolute.
    pub module: &'a str,
    /// The target test file in the container, absolute.
    pub target_file: &'a str,
    /// Whether a main source was changed. Tests of any built module may then stop compiling.
    pub changes_main: bool,
}

/// The result of a compilation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compilation {
    /// Everything compiled.
    Compiled {
        /// The module's test class directory, absolute; usually `target/test-classes`.
        test_output: String,
        /// The module's class directory, absolute; usually `target/classes`.
        output: String,
    },
    /// The compilation failed, for every method of the cell alike.
    Failed {
        /// `compile_fail` or `infra_fail`.
        outcome: Outcome,
        /// The first errors.
        detail: String,
        /// The places of the target file's errors, for `compile_fail(target_file)`: line, and column if known.
        places: Vec<(usize, Option<usize>)>,
    },
}

#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    RecordingStarted {
        schema: u32,
        #[serde(default)]
        java: Option<String>,
    },
    SessionStarted {
        projects: Vec<Project>,
    },
    MojoStarted {
        project: Option<String>,
        plugin: String,
        goal: String,
    },
    MojoSucceeded {},
    MojoFailed {
        project: Option<String>,
        plugin: String,
        goal: String,
        #[serde(default)]
        causes: Vec<Cause>,
        #[serde(default)]
        compiler_messages: Vec<CompilerMessage>,
        #[serde(default)]
        compiler_output: String,
    },
    ArtifactUnresolved(UnresolvedArtifact),
    SessionEnded {
        success: bool,
        #[serde(default)]
        failures: Vec<Failure>,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct Project {
    project: String,
    basedir: String,
    output: Option<String>,
    test_output: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Cause {
    class: String,
    message: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Failure {
    #[serde(default)]
    causes: Vec<Cause>,
}

#[derive(Debug, Deserialize)]
struct CompilerMessage {
    file: Option<String>,
    line: Option<i64>,
    #[serde(default)]
    column: Option<i64>,
    text: String,
}

#[derive(Default)]
struct Seen {
    known: bool,
    module: Option<Project>,
    running: Option<(Option<String>, String, String)>,
    failed: Option<FailedMojo>,
    unresolved: Vec<UnresolvedArtifact>,
    java: Option<String>,
    ended: Option<(bool, Vec<Failure>)>,
}

struct FailedMojo {
    project: Option<String>,
    plugin: String,
    goal: String,
    causes: Vec<Cause>,
    messages: Vec<CompilerMessage>,
    /// The compiler's standard error after a crash. Errors in sources are among the messages instead.
    output: String,
}

/// Returns the errors in javac's own format, `/FILE.java:LINE: error: TEXT`. Some compilers, such as Error Prone, write
/// them to standard error, and the plugin only sees a failure.
fn located_errors(output: &str) -> Vec<CompilerMessage> {
    let error = |line: &str| {
        let (place, text) = line.split_once(": error: ")?;
        let (file, number) = place.rsplit_once(':')?;
        let located = file.starts_with('/') && file.ends_with(".java");
        let line = number.parse().ok().filter(|_| located)?;
        Some(CompilerMessage { file: Some(file.to_owned()), line: Some(line), column: None, text: text.to_owned() })
    };
    output.lines().filter_map(error).collect()
}

/// Classifies a compilation.
pub fn classify(facts: &CompileFacts<'_>) -> Compilation {
    let seen = Seen::read(facts);
    let exited_well = facts.end.exit_code == Some(0) && facts.end.signal.is_none() && facts.end.limit.is_none();
    let session_ended_well = seen.ended.as_ref().is_some_and(|(success, _)| *success);
    if exited_well && seen.known && session_ended_well && !facts.oom_killed {
        return match seen.module {
            Some(Project { output: Some(output), test_output: Some(test_output), .. }) => {
                Compilation::Compiled { test_output, output }
            }
            _ => infra(InfraReason::Build, "Maven's reactor does not have the task's module"),
        };
    }
    if let Some(failed) = &seen.failed {
        return of_goal(facts, &seen, failed);
    }
    if facts.end.limit.is_some() || facts.oom_killed {
        let what = match facts.end.limit {
            Some(LimitReached::Wall) => "Maven reached the limit of wall time".to_owned(),
            Some(LimitReached::Cpu) => "Maven reached the limit of processor time".to_owned(),
            Some(LimitReached::Output) => "Maven reached the limit of output".to_owned(),
            None => "the container's memory limit ended Maven".to_owned(),
        };
        return match &seen.running {
            // The test compiler was processing sources that the submission may have written.
            Some((project, plugin, goal))
                if is_test_compiler(plugin, goal) && (facts.changes_main || seen.is_module(project.as_deref())) =>
            {
                Compilation::Failed {
                    outcome: Outcome::CompileFail(CompileReason::Resource),
                    detail: format!("{what} while compiling tests"),
                    places: Vec::new(),
                }
            }
            _ => infra(InfraReason::Build, &what),
        };
    }
    let failures = seen.ended.as_ref().map_or(&[][..], |(_, failures)| failures.as_slice());
    let causes = failures.iter().flat_map(|failure| &failure.causes);
    let mut causes = causes.peekable();
    let what =
        if causes.peek().is_some() { "Maven could not start the build" } else { "Maven ended without saying why" };
    of_causes(&seen, causes, what)
}

/// Classifies errors of a compiler that ran without Maven: (file, line, text), files absolute in the container. `None`
/// if no error has a position, because only Maven can classify that.
pub fn of_diagnostics<'a>(
    target_file: &str,
    errors: impl Iterator<Item = (Option<&'a str>, i64, &'a str)> + Clone,
) -> Option<(CompileReason, String)> {
    let mut located = errors.clone().filter_map(|(file, _, _)| file).peekable();
    located.peek()?;
    let target = located.any(|file| file == target_file);
    let reason = if target { CompileReason::TargetFile } else { CompileReason::OtherTestFile };
    let messages = errors.map(|(file, line, text)| CompilerMessage {
        file: file.map(str::to_owned),
        line: (line > 0).then_some(line),
        column: None,
        text: text.to_owned(),
    });
    Some((reason, describe(&messages.collect::<Vec<_>>())))
}

/// The result for main sources of a build with one changed main source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MainSources {
    /// The main sources compile. Later goals do not matter.
    Compile,
    /// The compiler found errors in them.
    Errors,
    /// A goal failed in another way. The change is the cause if this happens every time, and never without the change.
    Ended(String),
    /// A limit ended the build, or the build exhausted a resource. The change is the cause if this also happens with
    /// nothing else running.
    Spent(String),
    /// The build ended for an unknown reason, which does not count against the change.
    Unclear(String),
}

/// Classifies a build's result for its main sources.
pub fn main_sources(end: &CommandEnd, oom_killed: bool, recording: &[u8]) -> MainSources {
    let facts = CompileFacts { end, oom_killed, recording, module: "", target_file: "", changes_main: true };
    let seen = Seen::read(&facts);
    let exited_well = end.exit_code == Some(0) && end.limit.is_none() && !oom_killed;
    if exited_well && seen.known && seen.ended.as_ref().is_some_and(|(success, _)| *success) {
        return MainSources::Compile;
    }
    // A killed or exhausted compiler may have reported errors in sources before.
    let spent = match (end.limit.is_some(), oom_killed) {
        (true, _) => Some("a limit ended Maven".to_owned()),
        (_, true) => Some("the container's memory limit ended one of its processes".to_owned()),
        _ => seen.failed.as_ref().and_then(exhaustion),
    };
    if let Some(spent) = spent {
        return MainSources::Spent(spent);
    }
    if end.signal.is_some() {
        return MainSources::Unclear("Maven was killed".to_owned());
    }
    match &seen.failed {
        // Plugins of other languages read Java sources as well, and have goals of the same names.
        Some(failed) if failed.goal == "compile" && failed.messages.iter().any(|message| message.file.is_some()) => {
            MainSources::Errors
        }
        // Tests are compiled after main sources. Compilers of other languages give no positions here.
        Some(failed)
            if failed.goal == "test-compile"
                || failed.goal == "testCompile" && failed.messages.iter().any(|message| message.file.is_some()) =>
        {
            MainSources::Compile
        }
        Some(FailedMojo { project, plugin, goal, .. }) => {
            MainSources::Ended(format!("{plugin}:{goal} failed in {}", name(project.as_deref())))
        }
        None => MainSources::Unclear("Maven ended without saying why".to_owned()),
    }
}

/// Classifies a failed goal. The goal decides who is responsible.
fn of_goal(facts: &CompileFacts<'_>, seen: &Seen, failed: &FailedMojo) -> Compilation {
    let is_concerned = facts.changes_main || seen.is_module(failed.project.as_deref());
    if !(is_test_compiler(&failed.plugin, &failed.goal) && is_concerned) {
        let mut what = format!("{}:{} failed in {}", failed.plugin, failed.goal, name(failed.project.as_deref()));
        if let Some(missing) = missing_in_jdk(seen, failed).or_else(|| needs_later_jdk(seen, failed)) {
            what.insert_str(0, &format!("{missing}\n"));
        }
        if !failed.messages.is_empty() {
            // The first line alone is a reason elsewhere. The causes come last, and all of it has a limit.
            let said: String = describe(&failed.messages).trim_end().chars().take(1000).collect();
            what.push_str(&format!("\n{said}"));
        }
        return of_causes(seen, failed.causes.iter(), &what);
    }
    let spent = match facts.oom_killed {
        true => Some("the container's memory limit ended one of its processes".to_owned()),
        false => exhaustion(failed),
    };
    if let Some(spent) = spent {
        return Compilation::Failed {
            outcome: Outcome::CompileFail(CompileReason::Resource),
            detail: shortened(&format!("the test compiler ran out of resources: {spent}")),
            places: Vec::new(),
        };
    }
    let located: Vec<&str> = failed.messages.iter().filter_map(|message| message.file.as_deref()).collect();
    let reason = if located.contains(&facts.target_file) {
        CompileReason::TargetFile
    } else if !located.is_empty() {
        CompileReason::OtherTestFile
    } else {
        // An error without a position does not come from the compiler: dependencies did not resolve, or a processor is
        // broken.
        return of_causes(seen, failed.causes.iter(), "the test compiler failed");
    };
    let in_target = failed.messages.iter().filter(|message| message.file.as_deref() == Some(facts.target_file));
    let places = in_target.filter_map(|message| place(message.line?, message.column)).collect();
    Compilation::Failed { outcome: Outcome::CompileFail(reason), detail: describe(&failed.messages), places }
}

/// Returns an error's line and column, counted from 1. Compilers use a number below 1 for none.
pub fn place(line: i64, column: Option<i64>) -> Option<(usize, Option<usize>)> {
    let counted = |number: i64| usize::try_from(number).ok().filter(|number| *number > 0);
    Some((counted(line)?, column.and_then(counted)))
}

/// Returns the compiler's message about exhausted memory or stack; `None` if there is none.
fn exhaustion(failed: &FailedMojo) -> Option<String> {
    let names_one = |text: &str| {
        ["java.lang.OutOfMemoryError", "java.lang.StackOverflowError", "The system is out of resources"]
            .iter()
            .any(|word| text.contains(word))
    };
    // Messages with a position quote the source, which may contain these class names itself. Causes may quote it too.
    let unplaced = failed.messages.iter().filter(|message| message.file.is_none());
    let mut said = unplaced.flat_map(|message| message.text.lines()).chain(failed.output.lines());
    if let Some(line) = said.find(|line| names_one(line)) {
        return Some(line.trim().to_owned());
    }
    let thrown = failed.causes.iter().find(|cause| names_one(&cause.class))?;
    let message = thrown.message.as_deref().and_then(|message| message.lines().next());
    Some(message.map_or_else(|| thrown.class.clone(), |message| format!("{}: {message}", thrown.class)))
}

fn of_causes<'a>(seen: &Seen, causes: impl Iterator<Item = &'a Cause>, what: &str) -> Compilation {
    let mut text = what.to_owned();
    let mut resolution = false;
    for cause in causes.take(6) {
        let class = cause.class.rsplit('.').next().unwrap_or(&cause.class);
        resolution |= class.contains("Resolution") || class.contains("ArtifactNotFound") || class.contains("Transfer");
        // A POM whose parent does not resolve.
        resolution |= cause.message.as_deref().and_then(asking_pom).is_some();
        text.push_str("\n  ");
        text.push_str(class);
        if let Some(message) = &cause.message {
            text.push_str(": ");
            text.push_str(&beginning(message));
        }
    }
    if resolution {
        let mut first = String::new();
        for one in seen.unresolved.iter().take(5) {
            let wanted_by = one.wanted_by().map(|by| format!("; it is wanted by {by}")).unwrap_or_default();
            first.push_str(&format!("{} did not resolve{wanted_by}\n", one.artifact));
        }
        text.insert_str(0, &first);
    }
    infra(if resolution { InfraReason::Resolution } else { InfraReason::Build }, &text)
}

/// Returns a message's first line, and its next three lines if the first only announces them.
fn beginning(message: &str) -> String {
    let mut lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("");
    let announces = first.ends_with(':') || first == "Compilation failure";
    let told = std::iter::once(first).chain(lines.take(if announces { 3 } else { 0 }));
    told.map(|line| line.chars().take(400).collect::<String>()).collect::<Vec<_>>().join("\n    ")
}

fn infra(reason: InfraReason, detail: &str) -> Compilation {
    Compilation::Failed { outcome: Outcome::InfraFail(reason), detail: shortened(detail), places: Vec::new() }
}

fn is_test_compiler(plugin: &str, goal: &str) -> bool {
    plugin.starts_with(COMPILER_PLUGIN) && goal == "testCompile"
}

fn name(project: Option<&str>) -> &str {
    project.unwrap_or("an unknown module")
}

fn describe(messages: &[CompilerMessage]) -> String {
    let mut text = String::new();
    for message in messages.iter().take(5) {
        if let Some(file) = &message.file {
            text.push_str(file.strip_prefix("/work/project/").unwrap_or(file));
            if let Some(line) = message.line {
                text.push_str(&format!(":{line}"));
            }
            text.push_str(": ");
        }
        text.push_str(&message.text);
        text.push('\n');
    }
    if messages.len() > 5 {
        text.push_str(&format!("and {} more errors", messages.len() - 5));
    }
    shortened(text.trim_end())
}

impl Seen {
    fn read(facts: &CompileFacts<'_>) -> Self {
        let mut seen = Self::default();
        for line in facts.recording.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            // A killed Maven leaves an incomplete last line.
            if let Ok(event) = serde_json::from_slice(line) {
                seen.take(event, facts);
            }
        }
        seen
    }

    fn take(&mut self, event: Event, facts: &CompileFacts<'_>) {
        match event {
            Event::RecordingStarted { schema, java } => {
                self.known = schema == RECORDING_SCHEMA;
                self.java = java;
            }
            Event::SessionStarted { projects } => {
                self.module = projects.into_iter().find(|project| project.basedir == facts.module);
            }
            Event::MojoStarted { project, plugin, goal } => self.running = Some((project, plugin, goal)),
            Event::MojoSucceeded {} => self.running = None,
            Event::MojoFailed {
                project,
                plugin,
                goal,
                causes,
                compiler_messages: mut messages,
                compiler_output: mut output,
            } => {
                self.running = None;
                if messages.iter().all(|message| message.file.is_none()) {
                    let located = located_errors(&output);
                    if !located.is_empty() {
                        messages = located;
                        // The output quotes sources, so it is no evidence of a crash.
                        output.clear();
                    }
                }
                self.failed.get_or_insert(FailedMojo { project, plugin, goal, causes, messages, output });
            }
            Event::ArtifactUnresolved(one) => self.unresolved.push(one),
            Event::SessionEnded { success, failures } => self.ended = Some((success, failures)),
            Event::Other => {}
        }
    }

    fn is_module(&self, project: Option<&str>) -> bool {
        self.module.as_ref().is_some_and(|module| Some(module.project.as_str()) == project)
    }
}

#[cfg(test)]
mod tests;
