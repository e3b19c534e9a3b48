//! Whether compiling some of a build's tests again gives the same classes as compiling all of them.

use crate::execution::recording::{CompilerCall, Recording};
use crate::outcome::launch::shortened;

/// Goals in the phases of tests that do nothing to the tests' sources or classes.
const HARMLESS: [&str; 4] = [
    "org.apache.maven.plugins:maven-resources-plugin:",
    "org.apache.maven.plugins:maven-compiler-plugin:",
    "org.apache.maven.plugins:maven-dependency-plugin:",
    "org.codehaus.mojo:build-helper-maven-plugin:",
];

const TEST_PHASES: [&str; 5] = [
    "generate-test-sources",
    "process-test-sources",
    "generate-test-resources",
    "process-test-resources",
    "test-compile",
];

/// Returns what the compiler was asked for, and why a build is not one that compiling some of its tests again gives the
/// same classes as compiling all.
pub(super) fn fitness(recording: &Recording, project: &str, test_output: &str) -> (CompilerCall, Option<String>) {
    let mut calls = recording.calls(project, "testCompile");
    let Some(call) = calls.next().cloned() else {
        let none = CompilerCall {
            project: project.to_owned(),
            goal: "testCompile".to_owned(),
            compiler: String::new(),
            arguments: Vec::new(),
            sources: Vec::new(),
            source_roots: Vec::new(),
            includes: Vec::new(),
            excludes: Vec::new(),
            generated_sources: None,
            output: test_output.to_owned(),
            class_path: Vec::new(),
            module_path: Vec::new(),
            processor_path: Vec::new(),
            processors: Vec::new(),
            proc: None,
            fork: false,
        };
        return (none, Some("the revision has no tests that were compiled".to_owned()));
    };
    let other = recording.goals.iter().find(|goal| {
        goal.project.as_deref() == Some(project)
            && goal.phase.as_deref().is_some_and(|phase| TEST_PHASES.contains(&phase))
            && !HARMLESS.iter().any(|plugin| goal.plugin.starts_with(plugin))
    });
    let has_descriptor = call.sources.iter().any(|source| source.ends_with("/module-info.java"));
    let unfit = if calls.next().is_some() {
        Some("tests are compiled more than once".to_owned())
    } else if call.compiler != "javac" {
        Some(format!("tests are compiled by `{}`", call.compiler))
    } else if call.fork {
        Some("tests are compiled by a process of its own".to_owned())
    } else if call.output != test_output {
        Some("test classes do not go where the module's tests are".to_owned())
    } else if call.arguments.iter().any(|argument| argument.starts_with("-g:") && !argument.contains("source")) {
        Some("test classes do not say which source they come from".to_owned())
    } else if has_descriptor {
        Some("the tests are a module of their own".to_owned())
    } else {
        other.map(|goal| format!("{}:{} works on the tests", goal.plugin, goal.goal))
    };
    (call, unfit.map(|reason| shortened(&reason)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> CompilerCall {
        fitness(&Recording::default(), "g:a", "/work/project/target/test-classes").0
    }

    #[test]
    fn builds_that_a_part_can_not_stand_for_are_unfit() {
        let mut fit = Recording { compilations: vec![call()], ..Recording::default() };
        fit.compilations[0].compiler = "javac".into();
        let unfit = |change: &dyn Fn(&mut Recording)| {
            let mut recording = fit.clone();
            change(&mut recording);
            fitness(&recording, "g:a", "/work/project/target/test-classes").1
        };
        assert_eq!(unfit(&|_| {}), None);
        let goal = |plugin: &str, phase: &str| crate::execution::recording::Goal {
            project: Some("g:a".into()),
            plugin: plugin.into(),
            goal: "x".into(),
            phase: Some(phase.into()),
        };
        assert_eq!(unfit(&|recording| recording.goals.push(goal("x:y:1", "compile"))), None);
        let changes: [&dyn Fn(&mut Recording); 7] = [
            &|recording| recording.goals.push(goal("x:y:1", "process-test-sources")),
            &|recording| recording.compilations.push(recording.compilations[0].clone()),
            &|recording| recording.compilations.clear(),
            &|recording| recording.compilations[0].compiler = "eclipse".into(),
            &|recording| recording.compilations[0].fork = true,
            &|recording| recording.compilations[0].arguments.push("-g:lines".into()),
            &|recording| recording.compilations[0].sources.push("/work/project/src/module-info.java".into()),
        ];
        for change in changes {
            assert!(unfit(change).is_some());
        }
    }
}
