//! What an agent is told of a task: `TASK.md` and the shell commands.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::TaskFile;
use super::change::Change;
use crate::execution::build::maven::{COMPILE_GOALS, MavenSettings, class_path_file, maven_command};
use crate::execution::container::limits::ExecutionLimits;
use crate::execution::launch::{OLDEST_JDK_OF_PLATFORM_6, PLATFORM_1, PLATFORM_6};
use crate::execution::module::ModuleArguments;
use crate::image::recipe::java_home;
use crate::manifest::{Launcher, RepositoryManifest};
use crate::task::{MethodId, Track};
use crate::workspace::cells::class_of_method;

/// Shell commands for a container that has the workspace at `/work`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Commands {
    /// Compiles main and test sources offline, and writes down the class path of tests.
    pub compile: String,
    /// Runs one method after compiling, in the order of the task's methods.
    pub run: Vec<String>,
}

impl Commands {
    /// Returns the commands of a task. `class` is the binary name of the target file's class.
    pub(super) fn of(
        manifest: &RepositoryManifest,
        module: &ModuleArguments,
        class: &str,
        methods: &[MethodId],
    ) -> Self {
        let arguments = manifest.build.arguments();
        let settings =
            MavenSettings { java_home: java_home(manifest.jdk), arguments: &arguments, class_archive: false };
        let limits = ExecutionLimits::from(&manifest.limits).compile_command;
        let command = maven_command(&settings, module, true, &COMPILE_GOALS, limits);
        // The recorder is for scoring. Its jar is not in an agent's container.
        let is_own = |argument: &String| {
            argument.starts_with("-Dmaven.ext.class.path=") || argument.starts_with("-Dtestevo.") || argument == "-e"
        };
        let argv = command.argv.iter().filter(|argument| !is_own(argument));
        let words: Vec<String> = argv.map(|argument| quoted(argument)).collect();
        let compile = format!("cd {} && {}", quoted(&command.working_directory), words.join(" "));
        let run = methods.iter().map(|method| run_command(manifest, module, &class_of_method(class, method), method));
        Self { compile, run: run.collect() }
    }
}

fn run_command(manifest: &RepositoryManifest, module: &ModuleArguments, class: &str, method: &MethodId) -> String {
    let class_path = class_path_file(module);
    let console = match (manifest.build.launcher, manifest.jdk) {
        (Launcher::Platform6, _) => PLATFORM_6.to_owned(),
        (Launcher::Auto, OLDEST_JDK_OF_PLATFORM_6..) => format!(
            "\"$(grep -q /junit-jupiter-api/6 {} && echo {PLATFORM_6} || echo {PLATFORM_1})\"",
            quoted(&class_path)
        ),
        (Launcher::Platform1 | Launcher::Auto, _) => PLATFORM_1.to_owned(),
    };
    format!(
        "cd {} && java -ea -cp {console}:target/test-classes:target/classes:\"$(cat {})\" \
         org.junit.platform.console.ConsoleLauncher execute --disable-banner --select-method {}",
        quoted(&module.path()),
        quoted(&class_path),
        quoted(&format!("{class}#{}", method.method())),
    )
}

/// Returns a word as a shell reads it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/.:=,_-+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Returns `TASK.md`.
pub(super) fn text(task: &TaskFile, change: &Change) -> String {
    let file = &task.test_file;
    let mut text = match task.track {
        Track::TestUpdate => format!(
            "# Update a test\n\nThe production code of this project has changed. The test file `{file}` is still the one \
             from before the change. Edit it so that the methods below test the code as it is now: each must compile and \
             pass, and check the changed behaviour.\n"
        ),
        Track::TestGeneration => {
            let state = match task.start_sha256 {
                Some(_) => format!("The test file `{file}` exists, as it was before the change."),
                None => format!("The test file `{file}` does not exist yet."),
            };
            format!(
                "# Write tests\n\nThe production code of this project has changed. {state} Write the methods below in this \
                 file. Each must compile and pass on the code as it is now, and fail or not compile on the code from before \
                 the change.\n"
            )
        }
    };
    text.push_str("\n## Methods\n\n");
    for method in &task.test_methods {
        let _ = writeln!(text, "- `{method}`");
    }
    let _ = write!(
        text,
        "\n## Rules\n\n- The project lies in `{}` (the directory `{}` beside this file). It is a git repository with one \
         commit.\n- Only `{file}` is collected. Changes of other files are ignored.\n- The result is the working file, \
         whether or not it is committed.\n- There is no network. Maven runs offline.\n",
        task.project,
        super::PROJECT,
    );
    match &task.commands {
        Some(commands) => {
            let _ = write!(text, "\n## Compile\n\n```sh\n{}\n```\n\n## Run one method\n\n```sh\n", commands.compile);
            for command in &commands.run {
                let _ = writeln!(text, "{command}");
            }
            text.push_str("```\n\nCompile again after each edit. A method with parameters needs their types: `Class#method(int)`.\n");
        }
        None => text.push_str("\nNo module of the build contains this file, so there is no command for it.\n"),
    }
    text.push_str("\n## What changed in the production code\n\n");
    if change.text.is_empty() && change.only_named.is_empty() {
        text.push_str("No production file differs between the two revisions.\n");
    }
    if !change.text.is_empty() {
        // A fence must be longer than any in the text.
        let fence = "`".repeat(longest_run(&change.text).max(2) + 1);
        let _ = write!(text, "{fence}diff\n{}{fence}\n", change.text);
    }
    if !change.only_named.is_empty() {
        text.push_str("\nThese files changed too. They are large, or not text:\n\n");
        for path in &change.only_named {
            let _ = writeln!(text, "- `{}`", crate::output::escape(path));
        }
    }
    text
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or_default()
}
