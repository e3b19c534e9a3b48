//! Decides whether compiling some of a build's tests again gives the same classes as compiling all of them.

use std::collections::BTreeSet;
use std::path::Path;

use super::in_tree;
use crate::execution::build::compiled_tree::{CompiledTree, TreeError};
use crate::execution::build::compiler::{JAVAC, OPENED};
use crate::execution::build::recording::{CompilerCall, Goal, Recording};
use crate::execution::container::JVM_OPTIONS as WARM;
use crate::outcome::launch::shortened;

/// Goals in the phases of tests that do nothing to the tests' sources or classes.
const HARMLESS: [&str; 4] = [
    "org.apache.maven.plugins:maven-resources-plugin:",
    "org.apache.maven.plugins:maven-compiler-plugin:",
    "org.apache.maven.plugins:maven-dependency-plugin:",
    "org.codehaus.mojo:build-helper-maven-plugin:",
];

/// Plugins that only check or report, and those that only set properties. Those that rewrite sources are not among them: they would
/// rewrite a submission's as well.
const CHECKS: [&str; 16] = [
    "com.github.spotbugs:spotbugs-maven-plugin:",
    "de.thetaphi:forbiddenapis:",
    "io.github.git-commit-id:git-commit-id-maven-plugin:",
    "org.apache.maven.plugins:maven-checkstyle-plugin:",
    "org.apache.maven.plugins:maven-enforcer-plugin:",
    "org.apache.maven.plugins:maven-javadoc-plugin:",
    "org.apache.maven.plugins:maven-pmd-plugin:",
    "org.apache.maven.plugins:maven-toolchains-plugin:",
    "org.apache.rat:apache-rat-plugin:",
    "org.codehaus.mojo:animal-sniffer-maven-plugin:",
    "org.codehaus.mojo:buildnumber-maven-plugin:",
    "org.codehaus.mojo:findbugs-maven-plugin:",
    "org.gaul:modernizer-maven-plugin:",
    "org.jacoco:jacoco-maven-plugin:",
    "org.owasp:dependency-check-maven:",
    "pl.project13.maven:git-commit-id-plugin:",
];

/// Kotlin's plugin and its goal for tests.
const KOTLIN: (&str, &str) = ("org.jetbrains.kotlin:kotlin-maven-plugin:", "test-compile");

const TEST_PHASES: [&str; 5] = [
    "generate-test-sources",
    "process-test-sources",
    "generate-test-resources",
    "process-test-resources",
    "test-compile",
];

/// Returns why compiling some of a build's tests again would not give the classes of compiling all; `None` if it would.
pub(super) fn unfit(recording: &Recording, project: &str, calls: &[CompilerCall], test_output: &str) -> Option<String> {
    if recording.unknown.iter().any(|call| call.project == project && call.goal == "testCompile") {
        return Some("what the compiler of the tests was asked for is not known".to_owned());
    }
    if calls.is_empty() {
        return Some("the revision has no tests that were compiled".to_owned());
    }
    let goals: Vec<&Goal> = recording.goals.iter().filter(|goal| goal.project.as_deref() == Some(project)).collect();
    let java = goals.iter().position(|goal| goal.goal == "testCompile").unwrap_or(goals.len());
    // Where it runs before, Java's compiler sees its classes. Whether it sees the masked file is decided for each file.
    let is_kotlin = |at: usize, goal: &Goal| at < java && goal.plugin.starts_with(KOTLIN.0) && goal.goal == KOTLIN.1;
    let other = goals.iter().enumerate().find(|(at, goal)| {
        goal.phase.as_deref().is_some_and(|phase| TEST_PHASES.contains(&phase))
            && !HARMLESS.iter().chain(&CHECKS).any(|plugin| goal.plugin.starts_with(plugin))
            && !is_kotlin(*at, goal)
    });
    let mut sources = BTreeSet::new();
    let unfit = if !calls.iter().flat_map(|call| &call.sources).all(|source| sources.insert(source)) {
        Some("test sources are compiled more than once".to_owned())
    } else {
        calls.iter().find_map(|call| unfit_call(call, test_output))
    };
    let unfit = unfit.or_else(|| other.map(|(_, goal)| format!("{}:{} works on the tests", goal.plugin, goal.goal)));
    unfit.map(|reason| shortened(&reason))
}

fn unfit_call(call: &CompilerCall, test_output: &str) -> Option<String> {
    if call.compiler != "javac" {
        Some(format!("tests are compiled by `{}`", call.compiler))
    } else if let Some(unfit) = unfit_fork(call) {
        Some(unfit)
    } else if !call.fail_on_error {
        Some("errors in tests do not end the build".to_owned())
    } else if call.output != test_output {
        Some("test classes do not go where the module's tests are".to_owned())
    } else if call.arguments.iter().any(|argument| argument.starts_with("-g:") && !argument.contains("source")) {
        Some("test classes do not say which source they come from".to_owned())
    } else if call.sources.iter().any(|source| source.ends_with("/module-info.java")) {
        Some("the tests are a module of their own".to_owned())
    } else {
        None
    }
}

/// Arguments of a forked compiler's JVM that decide how much memory it has.
const MEMORY: [&str; 6] =
    ["-Xmx", "-Xms", "-XX:MaxPermSize=", "-XX:PermSize=", "-XX:MaxMetaspaceSize=", "-XX:MetaspaceSize="];

/// Returns why a forked compiler may make other classes than the same compiler in the warm JVM; `None` for a compiler
/// that is not forked. A forked compiler of the image's development kit gets the same arguments, environment and
/// encoding. Its memory limits do not decide which classes it makes.
fn unfit_fork(call: &CompilerCall) -> Option<String> {
    if !call.fork {
        return None;
    }
    if let Some(executable) = &call.executable {
        return Some(format!("tests are compiled by `{executable}`"));
    }
    let is_memory = |option: &str| MEMORY.iter().any(|memory| option.starts_with(memory));
    let harmless = |option: &str| is_memory(option) || WARM.contains(&option) || opens_javac(option);
    let other =
        call.jvm_arguments.iter().find(|argument| argument.strip_prefix("-J").is_none_or(|option| !harmless(option)));
    other.map(|argument| format!("tests are compiled by a process of its own with {argument}"))
}

/// Tells whether an option opens one of javac's own packages that are open in the warm JVM as well.
fn opens_javac(option: &str) -> bool {
    let package = ["--add-opens=", "--add-exports="].iter().find_map(|begin| option.strip_prefix(begin));
    let package = package.and_then(|package| package.strip_suffix("=ALL-UNNAMED")?.strip_prefix(JAVAC));
    package.is_some_and(|package| OPENED.contains(&package))
}

/// A file with a project's own options for Maven's JVM.
const JVM_OPTIONS: &str = ".mvn/jvm.config";

/// Returns why the compiler would see other texts or options than in the build if it runs outside of the build; `None`
/// if it would not.
pub(super) fn rewritten(
    source: &Path,
    compiled: &CompiledTree,
    calls: &[CompilerCall],
) -> Result<Option<String>, TreeError> {
    let source = CompiledTree::open(source)?;
    for path in calls.iter().flat_map(|call| &call.sources).map(|path| in_tree(path)) {
        if let (Some(before), Some(after)) = (source.file(path), compiled.file(path))
            && (before.length != after.length || !compiled.holds(after, &source.read(before)?)?)
        {
            return Ok(Some("the build rewrites sources of tests".to_owned()));
        }
    }
    let Some(options) = source.file(JVM_OPTIONS) else { return Ok(None) };
    let options = source.read(options)?;
    let decisive = ["-Xss", "-XX:ThreadStackSize", "-Dfile.encoding", "-Duser.language", "-Duser.country"];
    let found = decisive.iter().find(|option| options.windows(option.len()).any(|part| part == option.as_bytes()));
    Ok(found.map(|option| format!("`{JVM_OPTIONS}` sets {option} for the compiler")))
}

#[cfg(test)]
mod tests;
