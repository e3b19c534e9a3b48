//! `demo`: the whole job on the sample repository that this program carries, explained in plain words.

use std::collections::BTreeMap;

use clap::Args;

use super::interrupts::block_on;
use super::{build_images, import, lock, stdout, validate};
use crate::application::build::BuildRequest;
use crate::application::import::ImportRequest;
use crate::application::lock::LockRequest;
use crate::application::run::RunChoice;
use crate::application::sample::prepare;
use crate::application::validate::ValidateRequest;
use crate::application::{self, Context};
use crate::error::CommandError;
use crate::execution::run::record::CellRecord;
use crate::outcome::Outcome;
use crate::output::{OutputFormat, Table, counted};
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
    let (data, own) = prepare(std::slice::from_ref(&sample), "demo", context)?;
    step("1. Tasks: one test file at two revisions each. `import` reads the published data.", "import")?;
    let request = ImportRequest { data, manifests: None, replace: true };
    import::execute(&request, OutputFormat::Text, &own)?;
    step("2. Lock: run the real build once, behind one door, and write down every byte it needs.", "lock")?;
    lock::execute(&LockRequest::default(), OutputFormat::Text, &own)?;
    let text = "3. Image: compose it from those bytes, and show without a network that it compiles and launches.";
    step(text, "build-images")?;
    build_images::execute(&BuildRequest::default(), OutputFormat::Text, &own)?;
    let text = "4. Validate: run the old and the new test on the old and the new code, each in a sealed container.";
    step(text, "validate")?;
    let run = RunChoice { fresh: true, ..RunChoice::default() };
    let request = ValidateRequest { run, ..ValidateRequest::default() };
    let Some(validated) = block_on(&own, application::validate::validate(&request, &own))? else { return Ok(()) };
    validate::write(&validated, OutputFormat::Text)?;
    explain(&sample, &validated.records)?;
    validated.verdict()
}

fn step(text: &str, name: &str) -> Result<(), CommandError> {
    stdout::lines(&format!("\n{text}\n$ testevo-sandbox {name}\n"))
}

/// Shows the outcomes of each task's cells, and their meaning.
fn explain(sample: &SampleRepository, records: &[CellRecord]) -> Result<(), CommandError> {
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
                        row.push(match record.outcome {
                            // Every compile error of the sample is in the target file, and the reason would not fit.
                            Outcome::CompileFail(_) => record.outcome.name().to_owned(),
                            other => other.to_string(),
                        });
                    }
                }
            }
            table.row(row);
        }
    }
    stdout::lines("\nWhat the four executions came to (which test on which code):\n")?;
    stdout::table(&table)?;
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
    stdout::lines(&text)?;
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
