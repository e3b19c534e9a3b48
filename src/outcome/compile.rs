//! From Maven's events and exit facts to what a compilation came to.
//!
//! Maven's log is never read: the recorder in Maven's own process writes which goal of which module failed and why. Only
//! errors in test sources of the task's module are the submission's; everything else is ours.

use serde::Deserialize;

use super::launch::shortened;
use super::{CompileReason, InfraReason, Outcome};
use crate::engine::spec::{CommandEnd, LimitReached};

const RECORDING_SCHEMA: u32 = 2;
const COMPILER_PLUGIN: &str = "org.apache.maven.plugins:maven-compiler-plugin:";

/// What is known of one compilation.
#[derive(Clone, Debug)]
pub struct CompileFacts<'a> {
    /// How Maven ended.
    pub end: &'a CommandEnd,
    /// Whether the memory limit of the container killed something.
    pub oom_killed: bool,
    /// What the recorder wrote, JSON lines; empty where Maven did not get so far.
    pub recording: &'a [u8],
    /// The task's module in the container, absolute.
    pub module: &'a str,
    /// The target test file in the container, absolute.
    pub target_file: &'a str,
    /// Whether a main source was changed: tests of any module that is built may no longer compile for that.
    pub changes_main: bool,
}

/// What a compilation came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compilation {
    /// Everything compiled.
    Compiled {
        /// `target/test-classes` or what the module uses instead, absolute.
        test_output: String,
        /// `target/classes` or what the module uses instead, absolute.
        output: String,
    },
    /// It did not, for every method of the cell alike.
    Failed {
        /// `compile_fail` or `infra_fail`.
        outcome: Outcome,
        /// The first errors.
        detail: String,
    },
}

#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    RecordingStarted {
        schema: u32,
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
    ArtifactUnresolved {
        artifact: String,
        #[serde(default)]
        mojo: Option<String>,
    },
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
    text: String,
}

#[derive(Default)]
struct Seen {
    known: bool,
    module: Option<Project>,
    running: Option<(Option<String>, String, String)>,
    failed: Option<FailedMojo>,
    unresolved: Vec<(String, Option<String>)>,
    ended: Option<(bool, Vec<Failure>)>,
}

struct FailedMojo {
    project: Option<String>,
    plugin: String,
    goal: String,
    causes: Vec<Cause>,
    messages: Vec<CompilerMessage>,
    /// What the compiler wrote to standard error: a crash; never an error in a source, which is among the messages.
    output: String,
}

/// Returns the errors in the format of javac itself, `/FILE.java:LINE: error: TEXT`. Compilers that the plugin does not bring
/// itself (Error Prone's for one) write them to standard error, and to the plugin they only failed.
fn located_errors(output: &str) -> Vec<CompilerMessage> {
    let error = |line: &str| {
        let (place, text) = line.split_once(": error: ")?;
        let (file, number) = place.rsplit_once(':')?;
        let located = file.starts_with('/') && file.ends_with(".java");
        let line = number.parse().ok().filter(|_| located)?;
        Some(CompilerMessage { file: Some(file.to_owned()), line: Some(line), text: text.to_owned() })
    };
    output.lines().filter_map(error).collect()
}

/// Returns what a compilation came to.
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
            // The test compiler was at work on what the submission may have written.
            Some((project, plugin, goal))
                if is_test_compiler(plugin, goal) && (facts.changes_main || seen.is_module(project.as_deref())) =>
            {
                Compilation::Failed {
                    outcome: Outcome::CompileFail(CompileReason::Resource),
                    detail: format!("{what} while compiling tests"),
                }
            }
            _ => infra(InfraReason::Build, &what),
        };
    }
    let failures = seen.ended.as_ref().map_or(&[][..], |(_, failures)| failures.as_slice());
    let causes = failures.iter().flat_map(|failure| &failure.causes);
    of_causes(&seen, causes, "Maven ended without saying why")
}

/// Returns what errors of a compiler that was run without Maven come to: (file, line, text), files absolute in the container.
/// `None` where none of them has a place: what that means only Maven can say.
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
        text: text.to_owned(),
    });
    Some((reason, describe(&messages.collect::<Vec<_>>())))
}

/// What a build says of its main sources, of which one was changed since they compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MainSources {
    /// They compile. What comes after them says nothing of them.
    Compile,
    /// The compiler found errors in them.
    Errors,
    /// A goal failed otherwise: where it does so every time, and not without the change, that is the change's doing.
    Ended(String),
    /// A limit ended it, or used up something: the same, where it does so with nothing else running as well.
    Spent(String),
    /// It does not say why it ended: that is no doing of the change.
    Unclear(String),
}

/// Returns what a build says of its main sources.
pub fn main_sources(end: &CommandEnd, oom_killed: bool, recording: &[u8]) -> MainSources {
    let facts = CompileFacts { end, oom_killed, recording, module: "", target_file: "", changes_main: true };
    let seen = Seen::read(&facts);
    let exited_well = end.exit_code == Some(0) && end.limit.is_none() && !oom_killed;
    if exited_well && seen.known && seen.ended.as_ref().is_some_and(|(success, _)| *success) {
        return MainSources::Compile;
    }
    // A compiler that was killed or ran out may have told of sources before.
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
        // Plugins of other languages, which read Java sources as well, have goals of the same names.
        Some(failed) if failed.goal == "compile" && failed.messages.iter().any(|message| message.file.is_some()) => {
            MainSources::Errors
        }
        // Tests are compiled after them. Other languages' compilers tell no places here.
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

/// A goal failed: whose fault that is depends on which.
fn of_goal(facts: &CompileFacts<'_>, seen: &Seen, failed: &FailedMojo) -> Compilation {
    let is_concerned = facts.changes_main || seen.is_module(failed.project.as_deref());
    if !(is_test_compiler(&failed.plugin, &failed.goal) && is_concerned) {
        let what = format!("{}:{} failed in {}", failed.plugin, failed.goal, name(failed.project.as_deref()));
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
        };
    }
    let located: Vec<&str> = failed.messages.iter().filter_map(|message| message.file.as_deref()).collect();
    let reason = if located.contains(&facts.target_file) {
        CompileReason::TargetFile
    } else if !located.is_empty() {
        CompileReason::OtherTestFile
    } else {
        // Without a place it is no compiler's error: dependencies that did not resolve, a broken processor.
        return of_causes(seen, failed.causes.iter(), "the test compiler failed");
    };
    Compilation::Failed { outcome: Outcome::CompileFail(reason), detail: describe(&failed.messages) }
}

/// Returns what a compiler said when it had used up its memory or stack; `None` where it said no such thing.
fn exhaustion(failed: &FailedMojo) -> Option<String> {
    let names_one = |text: &str| {
        ["java.lang.OutOfMemoryError", "java.lang.StackOverflowError", "The system is out of resources"]
            .iter()
            .any(|word| text.contains(word))
    };
    // Messages with a place quote the source, which may name these classes itself; so may what a cause says.
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
        text.push_str("\n  ");
        text.push_str(class);
        if let Some(message) = &cause.message {
            text.push_str(": ");
            text.push_str(&beginning(message));
        }
    }
    if resolution {
        for (artifact, goal) in seen.unresolved.iter().take(5) {
            text.push_str(&format!("\n  unresolved: {artifact}"));
            if let Some(goal) = goal {
                text.push_str(&format!(" (asked for by {goal})"));
            }
        }
    }
    infra(if resolution { InfraReason::Resolution } else { InfraReason::Build }, &text)
}

/// Returns a message's first line, and the next three where that one only announces them.
fn beginning(message: &str) -> String {
    let mut lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("");
    let announces = first.ends_with(':') || first == "Compilation failure";
    let told = std::iter::once(first).chain(lines.take(if announces { 3 } else { 0 }));
    told.map(|line| line.chars().take(400).collect::<String>()).collect::<Vec<_>>().join("\n    ")
}

fn infra(reason: InfraReason, detail: &str) -> Compilation {
    Compilation::Failed { outcome: Outcome::InfraFail(reason), detail: shortened(detail) }
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
            // A torn last line is what a killed Maven leaves.
            if let Ok(event) = serde_json::from_slice(line) {
                seen.take(event, facts);
            }
        }
        seen
    }

    fn take(&mut self, event: Event, facts: &CompileFacts<'_>) {
        match event {
            Event::RecordingStarted { schema } => self.known = schema == RECORDING_SCHEMA,
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
                        // Beside such errors it quotes sources, whose words say nothing of a crash.
                        output.clear();
                    }
                }
                self.failed.get_or_insert(FailedMojo { project, plugin, goal, causes, messages, output });
            }
            Event::ArtifactUnresolved { artifact, mojo } => self.unresolved.push((artifact, mojo)),
            Event::SessionEnded { success, failures } => self.ended = Some((success, failures)),
            Event::Other => {}
        }
    }

    fn is_module(&self, project: Option<&str>) -> bool {
        self.module.as_ref().is_some_and(|module| Some(module.project.as_str()) == project)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = r#"{"event":"recording_started","schema":2,"maven":"3.9.11","java":"1.8"}"#;
    const SESSION: &str = r#"{"event":"session_started","projects":[
        {"project":"g:a","basedir":"/work/project","output":"/work/project/target/classes","test_output":"/work/project/target/test-classes"},
        {"project":"g:b","basedir":"/work/project/b","output":"/o","test_output":"/t"}]}"#;
    const TARGET: &str = "/work/project/src/test/java/ATest.java";

    fn mojo(event: &str, project: &str, goal: &str, more: &str) -> String {
        format!(
            r#"{{"event":"{event}","project":"{project}","plugin":"org.apache.maven.plugins:maven-compiler-plugin:3.8.1","goal":"{goal}","execution":"x","phase":"y"{more}}}"#
        )
    }

    #[test]
    fn a_line_that_only_announces_others_brings_them() {
        for (message, told) in [
            ("Compilation failure\n/A.java:[1,2] one\n\n  /B.java:[3,4] two\nthree\nfour", 4),
            ("Some problems were encountered:\n[FATAL] one\n", 2),
            ("Could not resolve\nmore", 1),
            ("", 1),
        ] {
            assert_eq!(beginning(message).lines().count().max(1), told, "{message}");
        }
        assert_eq!(beginning("Compilation failure\n  one\n"), "Compilation failure\n    one");
        assert_eq!(beginning(&"x".repeat(500)).len(), 400);
    }

    fn ended(success: bool) -> String {
        format!(r#"{{"event":"session_ended","success":{success},"failures":[]}}"#)
    }

    fn end(exit_code: i32) -> CommandEnd {
        CommandEnd {
            exit_code: Some(exit_code),
            signal: None,
            limit: None,
            cpu_ms: 0,
            peak_resident_bytes: 0,
            dropped_bytes: 0,
            leftover_processes: 0,
            process_limit_hits: None,
            memory_limit_kills: None,
        }
    }

    fn outcome(end: &CommandEnd, events: &[&str]) -> Result<String, Outcome> {
        match compilation(end, events) {
            Compilation::Compiled { test_output, .. } => Ok(test_output),
            Compilation::Failed { outcome, .. } => Err(outcome),
        }
    }

    /// Returns what people read of a compiler that ran out.
    fn spent(end: &CommandEnd, events: &[&str]) -> String {
        match compilation(end, events) {
            Compilation::Failed { outcome: Outcome::CompileFail(CompileReason::Resource), detail } => detail,
            other => panic!("it did not run out: {other:?}"),
        }
    }

    fn compilation(end: &CommandEnd, events: &[&str]) -> Compilation {
        compilation_of(end, events, false)
    }

    fn compilation_of(end: &CommandEnd, events: &[&str], changes_main: bool) -> Compilation {
        let session = SESSION.replace('\n', "");
        let mut lines = vec![START, &session];
        lines.extend(events);
        let recording = lines.join("\n");
        let facts = CompileFacts {
            end,
            oom_killed: false,
            recording: recording.as_bytes(),
            module: "/work/project",
            target_file: TARGET,
            changes_main,
        };
        classify(&facts)
    }

    fn messages(files: &[&str]) -> String {
        let messages: Vec<String> =
            files.iter().map(|file| format!(r#"{{"file":"{file}","line":3,"text":"cannot find symbol"}}"#)).collect();
        format!(r#","causes":[],"compiler_messages":[{}]"#, messages.join(","))
    }

    #[test]
    fn success_needs_the_exit_status_and_the_recording() {
        assert_eq!(outcome(&end(0), &[&ended(true)]), Ok("/work/project/target/test-classes".to_owned()));
        assert!(outcome(&end(0), &[]).is_err());
        assert!(outcome(&end(1), &[&ended(true)]).is_err());
    }

    #[test]
    fn only_errors_in_test_sources_of_the_module_are_compile_failures() {
        let other = "/work/project/src/test/java/BTest.java";
        for (project, goal, files, expected) in [
            ("g:a", "testCompile", vec![TARGET, other], Outcome::CompileFail(CompileReason::TargetFile)),
            ("g:a", "testCompile", vec![other], Outcome::CompileFail(CompileReason::OtherTestFile)),
            ("g:a", "testCompile", vec![], Outcome::InfraFail(InfraReason::Build)),
            ("g:a", "compile", vec![TARGET], Outcome::InfraFail(InfraReason::Build)),
            ("g:b", "testCompile", vec![TARGET], Outcome::InfraFail(InfraReason::Build)),
        ] {
            let failed = mojo("mojo_failed", project, goal, &messages(&files));
            assert_eq!(outcome(&end(1), &[&failed, &ended(false)]), Err(expected), "{project} {goal} {files:?}");
        }
    }

    #[test]
    fn tests_of_every_module_may_fail_to_compile_by_a_changed_main_source() {
        let failed =
            mojo("mojo_failed", "g:b", "testCompile", &messages(&["/work/project/b/src/test/java/BTest.java"]));
        let of = |changes_main| match compilation_of(&end(1), &[&failed, &ended(false)], changes_main) {
            Compilation::Failed { outcome, .. } => outcome,
            Compilation::Compiled { .. } => panic!("it compiled"),
        };
        assert_eq!(of(true), Outcome::CompileFail(CompileReason::OtherTestFile));
        assert_eq!(of(false), Outcome::InfraFail(InfraReason::Build));
    }

    #[test]
    fn a_compiler_that_runs_out_is_a_resource() {
        let started = mojo("mojo_started", "g:a", "testCompile", "");
        let timeout = CommandEnd { exit_code: None, signal: Some(9), limit: Some(LimitReached::Wall), ..end(0) };
        assert_eq!(spent(&timeout, &[&started]), "Maven reached the limit of wall time while compiling tests");
        assert_eq!(outcome(&timeout, &[]), Err(Outcome::InfraFail(InfraReason::Build)));
        let unplaced = r#""compiler_messages":[{"text":"An unknown compilation problem occurred"}]"#;
        let heap = "the test compiler ran out of resources: java.lang.OutOfMemoryError: Java heap space";
        let thrown = r#","causes":[{"class":"java.lang.OutOfMemoryError","message":"Java heap space\nmore"}],"#;
        let failed = mojo("mojo_failed", "g:a", "testCompile", &format!("{thrown}{unplaced}"));
        assert_eq!(spent(&end(1), &[&started, &failed]), heap);
        let output = r#""compiler_output":"An exception has occurred.\njava.lang.OutOfMemoryError: Java heap space\n\tat java.""#;
        let failed = mojo("mojo_failed", "g:a", "testCompile", &format!(r#","causes":[],{unplaced},{output}"#));
        assert_eq!(spent(&end(1), &[&started, &failed]), heap);
    }

    #[test]
    fn main_sources_compile_unless_their_compiler_finds_errors() {
        let of = |end: &CommandEnd, oom_killed, events: &[&str]| {
            let lines: Vec<String> = [START, SESSION].iter().chain(events).map(|line| line.replace('\n', "")).collect();
            main_sources(end, oom_killed, lines.join("\n").as_bytes())
        };
        let failed = |goal: &str, files: &[&str]| mojo("mojo_failed", "g:b", goal, &messages(files));
        let (well, badly) = (ended(true), ended(false));
        let is_ended = |said| matches!(said, MainSources::Ended(_));
        let is_spent = |said| matches!(said, MainSources::Spent(_));
        let is_unclear = |said| matches!(said, MainSources::Unclear(_));
        assert_eq!(of(&end(0), false, &[&well]), MainSources::Compile);
        assert_eq!(of(&end(1), false, &[&failed("compile", &["/A.java"]), &badly]), MainSources::Errors);
        assert_eq!(of(&end(1), false, &[&failed("testCompile", &[TARGET]), &badly]), MainSources::Compile);
        assert!(is_ended(of(&end(1), false, &[&failed("compile", &[]), &badly])), "no error of a source");
        assert!(is_ended(of(&end(1), false, &[&failed("check", &[]), &badly])));
        assert!(is_ended(of(&end(1), false, &[&failed("testCompile", &[]), &badly])), "tests that no error is told of");
        assert_eq!(
            of(&end(1), false, &[&failed("test-compile", &[]), &badly]),
            MainSources::Compile,
            "another language"
        );
        assert!(is_unclear(of(&end(1), false, &[&badly])));
        assert!(is_unclear(of(&end(0), false, &[])), "an exit status alone says nothing");
        let limited = CommandEnd { exit_code: None, signal: Some(9), limit: Some(LimitReached::Wall), ..end(0) };
        let killed = CommandEnd { limit: None, ..limited };
        // What was told of sources before says nothing then.
        for events in [vec![], vec![failed("compile", &["/A.java"])], vec![failed("testCompile", &[TARGET])]] {
            let events: Vec<&str> = events.iter().map(String::as_str).collect();
            assert!(is_spent(of(&limited, false, &events)), "{events:?}");
            assert!(is_spent(of(&end(137), true, &events)), "{events:?}");
            assert!(is_unclear(of(&killed, false, &events)), "{events:?}");
        }
        let spent = r#","causes":[],"compiler_messages":[{"file":"/A.java","line":3,"text":"no"},
            {"text":"java.lang.OutOfMemoryError: Java heap space"}]"#;
        assert!(is_spent(of(&end(1), false, &[&mojo("mojo_failed", "g:b", "compile", spent), &badly])));
    }

    #[test]
    fn a_source_that_names_an_error_is_no_resource() {
        let text = r#"incompatible types: java.lang.OutOfMemoryError cannot be converted to int"#;
        let messages = format!(
            r#","causes":[{{"class":"X","message":"{text}"}}],"compiler_messages":[{{"file":"{TARGET}","text":"{text}"}}]"#
        );
        let failed = mojo("mojo_failed", "g:a", "testCompile", &messages);
        assert_eq!(outcome(&end(1), &[&failed]), Err(Outcome::CompileFail(CompileReason::TargetFile)));
    }

    #[test]
    fn errors_that_a_foreign_compiler_writes_are_errors_in_sources() {
        let other = "/work/project/src/test/java/BTest.java";
        let output = |lines: &[String]| {
            let text = serde_json::to_string(&lines.join("\n")).unwrap();
            mojo("mojo_failed", "g:a", "testCompile", &format!(r#","causes":[],"compiler_output":{text}"#))
        };
        let warning = format!("{other}:1: warning: [x] old");
        let quoted = "    throw new java.lang.OutOfMemoryError(); // a:1: error: no".to_owned();
        for (lines, expected) in [
            (
                vec![warning.clone(), format!("{TARGET}:7: error: cannot find symbol"), quoted.clone()],
                CompileReason::TargetFile,
            ),
            (
                vec![warning.clone(), format!("{other}:7: error: cannot find symbol"), quoted],
                CompileReason::OtherTestFile,
            ),
        ] {
            assert_eq!(outcome(&end(1), &[&output(&lines), &ended(false)]), Err(Outcome::CompileFail(expected)));
        }
        assert_eq!(
            outcome(&end(1), &[&output(&[warning]), &ended(false)]),
            Err(Outcome::InfraFail(InfraReason::Build))
        );
    }

    #[test]
    fn what_does_not_resolve_is_ours() {
        let ended = r#"{"event":"session_ended","success":false,"failures":[{"causes":[
            {"class":"org.apache.maven.plugin.PluginResolutionException","message":"no"}]}]}"#
            .replace('\n', "");
        assert_eq!(outcome(&end(1), &[&ended]), Err(Outcome::InfraFail(InfraReason::Resolution)));
    }
}
