//! `demo`: the whole job on the sample repository that this program carries, explained in plain words.
//!
//! It has a data directory of its own below the user's, so that the sample never mixes with real tasks; the bytes are
//! shared with it, so that nothing is downloaded twice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::{Args, Parser as _};
use fs_err as fs;

use super::{Cli, Command, Context, build_images, import, lock, validate};
use crate::error::CommandError;
use crate::execution::record::CellRecord;
use crate::output::{Table, counted};
use crate::sample::{Miniature, SampleRepository};
use crate::task::{Cell, MethodId};

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(super) struct DemoArguments {}

pub(super) fn run(_arguments: &DemoArguments, context: &Context) -> Result<(), CommandError> {
    let sample = SampleRepository::demo()?;
    if context.options.dry_run {
        context.events.message(format!(
            "would write the sample repository, {}, to `{}`, lock it, build its image and validate it",
            counted(sample.miniatures.len(), "task", "tasks"),
            context.options.data_dir.join("demo").display()
        ));
        return Ok(());
    }
    let root = prepare_directory(context)?;
    let data = write_sample(&sample, &root)?;
    let own = Context {
        options: super::options::GlobalOptions {
            data_dir: root.clone(),
            git_mirror: Some(format!("{}/{{owner}}__{{name}}", root.join("sources").display())),
            ..context.options.clone()
        },
        output: context.output,
        events: context.events.clone(),
        cancellation: context.cancellation.clone(),
        umask: context.umask,
        started: context.started,
        data_dir: OnceLock::new(),
    };
    step(context, "1. Tasks: one test file at two revisions each. `import` reads the published data.", "import")?;
    let Command::Import(arguments) = command(&["import", "--replace", &data.display().to_string()])? else {
        return Ok(());
    };
    import::run(&arguments, &own)?;
    step(context, "2. Lock: run the real build once, behind one door, and write down every byte it needs.", "lock")?;
    let Command::Lock(arguments) = command(&["lock"])? else { return Ok(()) };
    lock::run(&arguments, &own)?;
    step(
        context,
        "3. Image: compose it from those bytes, and show without a network that it compiles and launches.",
        "build-images",
    )?;
    let Command::BuildImages(arguments) = command(&["build-images"])? else { return Ok(()) };
    build_images::run(&arguments, &own)?;
    step(
        context,
        "4. Validate: run the old and the new test on the old and the new code, each in a sealed container.",
        "validate",
    )?;
    let Command::Validate(arguments) = command(&["validate", "--fresh"])? else { return Ok(()) };
    let validated = own.block_on(validate::validate(&arguments, &arguments.tasks(&own)?, &own))?;
    validate::write(&validated, crate::output::OutputFormat::Text, &own)?;
    explain(&sample, &validated.records, context)?;
    validate::verdict(&validated.summary)
}

/// Makes the demo's own data directory, with the store of the user's.
fn prepare_directory(context: &Context) -> Result<PathBuf, CommandError> {
    let data_dir = context.data_dir()?;
    let root = data_dir.join("demo");
    let make = || -> std::io::Result<()> {
        fs::create_dir_all(&root)?;
        fs::create_dir_all(data_dir.join("store"))?;
        match std::os::unix::fs::symlink("../store", root.join("store")) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    };
    make().map_err(CommandError::Runtime)?;
    Ok(root)
}

/// Writes the sample's git repository and published data, and returns where the data are.
fn write_sample(sample: &SampleRepository, root: &Path) -> Result<PathBuf, CommandError> {
    let sources = root.join("sources").join(sample.name.file_stem());
    let clear = || match fs::remove_dir_all(&sources) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    clear().map_err(CommandError::Runtime)?;
    let revisions = sample.write_git(&sources)?;
    let data = root.join("sample.json");
    fs::write(&data, sample.published(&revisions)).map_err(CommandError::Runtime)?;
    Ok(data)
}

fn step(context: &Context, text: &str, name: &str) -> Result<(), CommandError> {
    context.output.lines(&format!("\n{text}\n$ testevo-sandbox {name}\n"))
}

/// Returns a subcommand as if it had been typed.
fn command(words: &[&str]) -> Result<Command, CommandError> {
    let typed = std::iter::once("testevo-sandbox").chain(words.iter().copied());
    match Cli::try_parse_from(typed) {
        Ok(cli) => Ok(cli.command),
        Err(error) => Err(CommandError::Runtime(std::io::Error::other(error))),
    }
}

/// Shows for each task what its cells came to and what that means.
fn explain(sample: &SampleRepository, records: &[CellRecord], context: &Context) -> Result<(), CommandError> {
    let mut table = Table::new(["task", "method", "old on old", "new on new", "old on new", "new on old"]);
    let mut unexpected = 0;
    for miniature in &sample.miniatures {
        for method in &miniature.methods {
            let found = outcomes(miniature, &method.id, records);
            let mut row = vec![miniature.name.clone(), method.id.method().to_owned()];
            for cell in Cell::ALL {
                match found.get(&cell) {
                    None => row.push("-".to_owned()),
                    Some(record) => {
                        unexpected += usize::from(!method.expected[&cell].contains(&record.outcome));
                        row.push(record.outcome.to_string());
                    }
                }
            }
            table.row(row);
        }
    }
    context.output.lines("\nWhat the four executions came to (which test on which code):\n")?;
    context.output.table(&table)?;
    let mut text = String::new();
    for miniature in &sample.miniatures {
        text.push_str(&format!("{}: {}.\n", miniature.name, miniature.shows));
    }
    text.push_str(
        "A test that passes on new code and fails, or does not compile, on old code tells the two apart. That is what a\n\
         published task promises of the developers' test, and what an agent's test is asked to do.\n",
    );
    text.push_str(&match unexpected {
        0 => "Every outcome is the one that the sample was written for.".to_owned(),
        some => format!("{} not what the sample was written for.", counted(some, "outcome is", "outcomes are")),
    });
    text.push('\n');
    context.output.lines(&text)?;
    match unexpected {
        0 => Ok(()),
        some => Err(CommandError::CheckFailed { summary: counted(some, "unexpected outcome", "unexpected outcomes") }),
    }
}

fn outcomes<'a>(miniature: &Miniature, method: &MethodId, records: &'a [CellRecord]) -> BTreeMap<Cell, &'a CellRecord> {
    let of_task = |record: &&CellRecord| record.task_id.as_str().contains(&miniature.name);
    records
        .iter()
        .filter(of_task)
        .filter(|record| record.method == *method)
        .map(|record| (record.cell, record))
        .collect()
}
