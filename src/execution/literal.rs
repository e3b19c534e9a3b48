//! The paper's harness to the letter, for comparison only: one container a cell, Maven, then the console launcher for each
//! method in the same container. Nothing of it decides a verdict.

use super::cell::Environment;
use super::maven::{
    COMPILE_GOALS, ExecutionLimits, HOME, MavenSettings, ModuleArguments, PLATFORM_1, PROJECT, TREE, class_path_file,
    maven_command,
};
use crate::engine::spec::{Command, PROGRAM_SCHEMA, Program, Step};

/// Returns the program of a cell's container.
pub fn literal_program(
    environment: &Environment,
    module: &ModuleArguments,
    class: &str,
    methods: &[&str],
    limits: &ExecutionLimits,
) -> Program {
    let settings = MavenSettings { java_home: environment.java_home.clone(), arguments: &environment.maven_arguments };
    let mut maven = maven_command(&settings, module, true, &COMPILE_GOALS, limits.compile_command);
    maven.argv.retain(|argument| !argument.starts_with("-Dmaven.ext.") && !argument.starts_with("-Dtestevo."));
    let mut steps = vec![
        Step::MakeDirectory { path: HOME.to_owned() },
        Step::Unpack { archive: TREE.to_owned(), into: PROJECT.to_owned() },
        Step::Run(maven.clone()),
    ];
    let compiled = steps.len() - 1;
    let directory = module.path();
    for method in methods {
        // The class path is in a file that Maven wrote, which takes a shell to name.
        let script = "exec \"$1\" -jar \"$2\" execute --disable-banner --details none --include-engine junit-jupiter \
                      --include-engine junit-vintage --class-path \
                      \"target/test-classes:target/classes:$(cat \"$3\")\" --select-method \"$4\"";
        let java = format!("{}/bin/java", environment.java_home);
        let (class_path, selected) = (class_path_file(module), format!("{class}#{method}"));
        let words: [&str; 8] = ["/bin/sh", "-c", script, "sh", &java, PLATFORM_1, &class_path, &selected];
        steps.push(Step::Run(Command {
            argv: words.map(str::to_owned).into(),
            environment: maven.environment.clone(),
            working_directory: directory.clone(),
            limits: limits.launch_command,
            events: false,
            required: false,
            only_after_success_of: Some(compiled),
        }));
    }
    Program { schema: PROGRAM_SCHEMA, door_port: None, steps }
}
