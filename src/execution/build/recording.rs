//! The recorder's recording of a build, written in Maven's own process: modules, compiler calls, and how Surefire would
//! start the tests. Format: `images/recorder/README.md`.
//!
//! Untrusted plugins run in the same process, so the file is untrusted. Its size is bounded. Its paths are only looked
//! up in a tree or mapped into a container.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Supported version of the records.
pub const RECORDING_SCHEMA: u32 = 2;

/// Options of javac whose value is a directory to write to.
pub(in crate::execution) const OUTPUT_OPTIONS: [&str; 3] = ["-d", "-s", "-h"];

/// The content of a recording; unknown records are skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Modules of the reactor, in its order.
    pub modules: Vec<Module>,
    /// Goals in the order in which they began.
    pub goals: Vec<Goal>,
    /// The compiler calls, in order.
    pub compilations: Vec<CompilerCall>,
    /// Calls of unknown compilers.
    pub unknown: Vec<UnknownCall>,
    /// Surefire's settings, one for each of its executions.
    pub tests: Vec<TestSettings>,
}

/// A module of the reactor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Its `groupId:artifactId`.
    pub project: String,
    /// Its directory, absolute.
    pub basedir: String,
    /// The output directory of its main classes.
    pub output: Option<String>,
    /// The output directory of its test classes.
    pub test_output: Option<String>,
    /// Directories of test resources.
    #[serde(default)]
    pub test_resource_roots: Vec<String>,
}

/// A goal that was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goal {
    /// The module's `groupId:artifactId`.
    pub project: Option<String>,
    /// `groupId:artifactId:version`.
    pub plugin: String,
    /// The goal.
    pub goal: String,
    /// The phase of the life cycle; `None` where the goal was called directly.
    pub phase: Option<String>,
}

/// One call of a compiler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompilerCall {
    /// The module's `groupId:artifactId`.
    pub project: String,
    /// `compile` or `testCompile`.
    pub goal: String,
    /// Such as `javac`.
    pub compiler: String,
    /// Arguments as the compiler gets them, without the sources.
    pub arguments: Vec<String>,
    /// The sources, absolute, in the order in which the compiler gets them.
    pub sources: Vec<String>,
    /// Source directories.
    #[serde(default)]
    pub source_roots: Vec<String>,
    /// Patterns of the sources that are compiled; empty for all.
    #[serde(default)]
    pub includes: Vec<String>,
    /// Patterns of sources that are left out.
    #[serde(default)]
    pub excludes: Vec<String>,
    /// The output directory of annotation processors' sources.
    pub generated_sources: Option<String>,
    /// The output directory of classes.
    pub output: String,
    /// Class path, in order.
    #[serde(default)]
    pub class_path: Vec<String>,
    /// Module path, in order; empty where modules play no part.
    #[serde(default)]
    pub module_path: Vec<String>,
    /// The path of annotation processors, where it differs from the class path.
    #[serde(default)]
    pub processor_path: Vec<String>,
    /// Processors by name, where they are named.
    #[serde(default)]
    pub processors: Vec<String>,
    /// The value of `-proc`: `none` or `only`.
    pub proc: Option<String>,
    /// Whether the compiler runs in a process of its own.
    #[serde(default)]
    pub fork: bool,
    /// A forked compiler's executable; `None` for `javac` of the development kit that runs Maven.
    #[serde(default)]
    pub executable: Option<String>,
    /// Arguments for a forked compiler's JVM, as `javac` gets them: `-J…`.
    #[serde(default)]
    pub jvm_arguments: Vec<String>,
    /// A forked compiler's working directory, absolute.
    #[serde(default)]
    pub working_directory: Option<String>,
    /// Whether errors end the build.
    #[serde(default = "always")]
    pub fail_on_error: bool,
}

impl CompilerCall {
    /// Tells whether another call asks the same of the same sources.
    fn asks_the_same(&self, other: &Self) -> bool {
        let without_sources = |call: &Self| Self { sources: Vec::new(), ..call.clone() };
        let sources = |call: &Self| -> BTreeSet<String> { call.sources.iter().cloned().collect() };
        self.sources.len() == other.sources.len()
            && without_sources(self) == without_sources(other)
            && sources(self) == sources(other)
    }
}

/// The default of [`CompilerCall::fail_on_error`].
fn always() -> bool {
    true
}

/// A call of a compiler that the recorder could not describe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownCall {
    /// The module's `groupId:artifactId`.
    pub project: String,
    /// `compile` or `testCompile`.
    pub goal: String,
}

/// The settings with which one of Surefire's executions would start tests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestSettings {
    /// The module's `groupId:artifactId`.
    pub project: String,
    /// The execution's id.
    pub execution: String,
    /// Whether the execution is the life cycle's own.
    #[serde(default)]
    pub default: bool,
    /// The phase that the POM gives for the execution; `none` for one that never runs.
    #[serde(default)]
    pub phase: Option<String>,
    /// Arguments for the JVM in one line, late properties replaced.
    pub arg_line: Option<String>,
    /// System properties.
    #[serde(default)]
    pub system_properties: BTreeMap<String, String>,
    /// Environment variables.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Working directory.
    pub working_directory: Option<String>,
    /// Whether tests of a module with a descriptor run on the module path.
    pub use_module_path: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Record {
    RecordingStarted {
        schema: u32,
    },
    SessionStarted {
        projects: Vec<Module>,
    },
    MojoStarted(Goal),
    CompilerCall(Box<CompilerCall>),
    CompilerUnknown(UnknownCall),
    TestSettings(TestSettings),
    #[serde(other)]
    Other,
}

impl Recording {
    /// Reads JSON lines. Truncated lines and unknown records are skipped. A recording of another schema than
    /// [`RECORDING_SCHEMA`] reads as empty.
    pub fn read(bytes: &[u8]) -> Self {
        let mut recording = Self::default();
        let mut known = false;
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match serde_json::from_slice(line) {
                Ok(Record::RecordingStarted { schema }) => known = schema == RECORDING_SCHEMA,
                Ok(_) if !known => {}
                Ok(Record::SessionStarted { projects }) => recording.modules = projects,
                Ok(Record::MojoStarted(goal)) => recording.goals.push(goal),
                Ok(Record::CompilerCall(call)) => recording.compilations.push(*call),
                Ok(Record::CompilerUnknown(call)) => recording.unknown.push(call),
                Ok(Record::TestSettings(settings)) => recording.tests.push(settings),
                Ok(Record::Other) | Err(_) => {}
            }
        }
        recording
    }

    /// Returns the module in a directory, absolute.
    pub fn module(&self, directory: &str) -> Option<&Module> {
        self.modules.iter().find(|module| module.basedir == directory)
    }

    /// Returns the Surefire settings of the module in `directory`: those of the life cycle's own execution, else of the
    /// first execution. Executions that the POM switches off come last.
    pub fn tests_of(&self, directory: &str) -> Option<&TestSettings> {
        let project = &self.module(directory)?.project;
        let own = self.tests.iter().filter(|settings| settings.project == *project);
        let (off, running): (Vec<_>, Vec<_>) = own.partition(|settings| settings.phase.as_deref() == Some("none"));
        first_of(&running).or_else(|| first_of(&off))
    }

    /// Returns the compiler calls that made the classes of a module's goal. A second execution of the compiler plugin may ask
    /// the same again at once, of the same sources: then only one of the two counts.
    pub fn calls(&self, project: &str, goal: &str) -> Vec<&CompilerCall> {
        let mut calls: Vec<&CompilerCall> = Vec::new();
        for call in self.compilations.iter().filter(|call| call.project == project && call.goal == goal) {
            calls.pop_if(|last| last.asks_the_same(call));
            calls.push(call);
        }
        calls
    }
}

/// Returns the settings of the life cycle's own execution, else the first.
fn first_of<'a>(settings: &[&'a TestSettings]) -> Option<&'a TestSettings> {
    settings.iter().find(|settings| settings.default).or(settings.first()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDING: &str = r#"{"event":"recording_started","schema":2,"maven":"3.9.11","java":"17","ms":0}
{"event":"session_started","projects":[{"project":"g:a","version":"1","packaging":"jar","basedir":"/work/project","pom":"p","output":"/o","test_output":"/t","source_roots":[],"test_source_roots":[],"resource_roots":[],"test_resource_roots":[]}],"ms":1}
{"event":"mojo_started","project":"g:a","plugin":"x:y:1","goal":"testCompile","execution":"e","phase":"test-compile","ms":1}
{"event":"compiler_call","project":"g:a","plugin":"x:y:1","goal":"testCompile","execution":"e","phase":"p","compiler":"javac","arguments":["-d","/t","-g"],"sources":["/work/project/src/test/java/A.java"],"source_roots":[],"generated_sources":null,"output":"/t","class_path":["/t","/o"],"module_path":[],"processor_path":[],"processors":[],"proc":null,"fork":false,"working_directory":"/work/project","ms":2}
{"event":"test_settings","project":"g:a","plugin":"x:s:1","execution":"more","default":false,"phase":"test","arg_line":null,"system_properties":{},"environment":{},"working_directory":null,"use_module_path":null,"enable_assertions":null,"failures":[],"ms":3}
{"event":"test_settings","project":"g:a","plugin":"x:s:1","execution":"default-test","default":true,"phase":"test","arg_line":"-Da=1","system_properties":{"k":"v"},"environment":{"E":"1"},"working_directory":null,"use_module_path":null,"enable_assertions":null,"failures":[],"ms":3}
{"event":"torn"#;

    #[test]
    fn what_is_known_is_taken() {
        let recording = Recording::read(RECORDING.as_bytes());
        assert_eq!(recording.module("/work/project").unwrap().project, "g:a");
        assert_eq!(recording.calls("g:a", "testCompile")[0].arguments, ["-d", "/t", "-g"]);
        assert_eq!(recording.calls("g:a", "compile"), Vec::<&CompilerCall>::new());
        let tests = recording.tests_of("/work/project").unwrap();
        assert_eq!((tests.arg_line.as_deref(), tests.system_properties["k"].as_str()), (Some("-Da=1"), "v"));
        assert_eq!(recording.tests_of("/work/project/other"), None);
        // The life cycle's own execution does not run; another one does.
        let off = RECORDING.replace("\"default\":true,\"phase\":\"test\"", "\"default\":true,\"phase\":\"none\"");
        assert_eq!(Recording::read(off.as_bytes()).tests_of("/work/project").unwrap().execution, "more");
        let all_off = off.replace("\"default\":false,\"phase\":\"test\"", "\"default\":false,\"phase\":\"none\"");
        let all_off = Recording::read(all_off.as_bytes());
        assert_eq!(all_off.tests_of("/work/project").unwrap().execution, "default-test");
        assert_eq!(recording.goals.len(), 1);
    }

    #[test]
    fn a_call_that_asks_the_same_again_counts_once() {
        let recording = Recording::read(RECORDING.as_bytes());
        let first = &recording.compilations[0];
        let call = |name: &str, sources: &[&str], output: &str| CompilerCall {
            arguments: vec![name.to_owned()],
            sources: sources.iter().map(|source| (*source).to_owned()).collect(),
            output: output.to_owned(),
            ..first.clone()
        };
        let eclipse = CompilerCall { compiler: "eclipse".to_owned(), ..call("x", &["A"], "/t") };
        for (calls, expected) in [
            (vec![call("x", &["A", "B"], "/t"), call("x", &["B", "A"], "/t")], "x"),
            (vec![call("x", &["A"], "/t"), call("x", &["A", "B"], "/t"), call("x", &["C"], "/t")], "x x x"),
            (vec![call("x", &["A", "B"], "/t"), call("x", &["A"], "/t")], "x x"),
            (vec![call("x", &["A"], "/t"), call("x", &["A"], "/u")], "x x"),
            (vec![call("x", &["A"], "/t"), call("x", &["A"], "/t"), call("x", &["A"], "/t")], "x"),
            (vec![call("stricter", &["A"], "/t"), call("x", &["A"], "/t")], "stricter x"),
            (vec![eclipse.clone(), call("x", &["A"], "/t")], "x x"),
            (vec![call("x", &["A"], "/t"), call("x", &["B"], "/t"), call("x", &["A"], "/t")], "x x x"),
        ] {
            let recording = Recording { compilations: calls, ..Recording::default() };
            let names: Vec<&str> =
                recording.calls("g:a", "testCompile").iter().map(|call| call.arguments[0].as_str()).collect();
            assert_eq!(names.join(" "), expected);
        }
    }

    #[test]
    fn another_schema_is_not_understood() {
        let other = RECORDING.replace("\"schema\":2", "\"schema\":3");
        assert_eq!(Recording::read(other.as_bytes()), Recording::default());
    }
}
