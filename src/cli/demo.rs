//! `demo`: the whole job on the sample repository that this program carries, explained in plain words.

use std::collections::BTreeMap;
use std::path::Path;

use clap::Args;

use super::interrupts::block_on;
use super::{build_images, import, lock, report, stdout, validate};
use crate::agent::quoted;
use crate::application::build::BuildRequest;
use crate::application::import::ImportRequest;
use crate::application::io_failure::IoFailure;
use crate::application::lock::LockRequest;
use crate::application::report::ScoringRuns;
use crate::application::run::RunChoice;
use crate::application::sample::prepare;
use crate::application::score::ScoreRequest;
use crate::application::validate::ValidateRequest;
use crate::application::{self, Context};
use crate::error::CommandError;
use crate::execution::container::Surefire;
use crate::execution::run::record::{CellRecord, ExecutionPath};
use crate::outcome::Outcome;
use crate::output::{OutputFormat, Table, counted};
use crate::report::score::Period;
use crate::sample::{Miniature, SampleRepository};
use crate::submission::predictions::Several;
use crate::task::selector::Selector;
use crate::task::{Cell, MethodId};

/// The task that the two submissions are for.
const SCORED: &str = "testevo__sample__rounding";

const BEGINNING: &str = "\
This demonstration takes a small Maven repository through the whole job: tasks, lock, image, validation, scores, report.
The first time it downloads up to 250 MB and takes some minutes, later one or two.
Interrupting stops all containers. Rerun the same command to begin again with everything that is already made.
";

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(super) struct DemoArguments {}

pub(super) fn run(_arguments: &DemoArguments, context: &Context) -> Result<(), CommandError> {
    let sample = SampleRepository::demo()?;
    if context.options.dry_run {
        context.events.message(format!(
            "would write the sample repository, {}, to `{}`, lock it, build its image, validate it and score two submissions",
            counted(sample.miniatures.len(), "task", "tasks"),
            context.options.data_dir.join("demo").display()
        ));
        return Ok(());
    }
    stdout::lines(BEGINNING)?;
    let (data, own) = prepare(std::slice::from_ref(&sample), "demo", context)?;
    let place = format!("--data-dir {}", word(&own.options.data_dir));
    let with_sources = own.options.git_mirror.iter().map(|mirror| format!("{place} --git-mirror {}", quoted(mirror)));
    let with_sources = with_sources.collect::<String>();
    let text = "1. Tasks: one test file at two revisions each. `import` reads the published data.";
    let named: Vec<String> = data.iter().map(|file| word(file)).collect();
    step(text, &format!("import {} --replace {place}", named.join(" ")))?;
    let request = ImportRequest { data, manifests: None, replace: true };
    import::execute(&request, OutputFormat::Text, &own)?;
    let text = "2. Lock: run the real build once, behind one door, and write down every byte it needs.";
    step(text, &format!("lock {with_sources}"))?;
    lock::execute(&LockRequest::default(), OutputFormat::Text, &own)?;
    let text = "3. Image: compose it from those bytes, and show without a network that it compiles and launches.";
    step(text, &format!("build-images {with_sources}"))?;
    build_images::execute(&BuildRequest::default(), OutputFormat::Text, &own)?;
    let text = "4. Validate: run the old and the new test on the old and the new code, each in a sealed container.";
    step(text, &format!("validate --fresh {with_sources}"))?;
    let run = RunChoice { fresh: true, ..RunChoice::default() };
    let request = ValidateRequest { run, ..ValidateRequest::default() };
    let Some(validated) = block_on(&own, application::validate::validate(&request, &own))? else { return Ok(()) };
    validate::write(&validated, OutputFormat::Text)?;
    explain(&sample, &validated.records)?;
    let validation = validated.summary.run_id.clone();
    validated.verdict()?;
    score(&validation, &with_sources, &own)
}

/// Scores two submissions, writes their report, and names the next commands.
fn score(validation: &str, with_sources: &str, context: &Context) -> Result<(), CommandError> {
    let data_dir = &context.options.data_dir;
    let predictions = data_dir.join("predictions.jsonl");
    fs_err::write(&predictions, SampleRepository::demo_predictions())
        .map_err(IoFailure::of("writing the sample's predictions"))?;
    let text = "5. Score: two submissions for one task, in files as agents leave them. Both pass on new code.";
    let directory = format!("--data-dir {}", word(data_dir));
    step(text, &format!("score {SCORED} --fresh --predictions {} {with_sources}", word(&predictions)))?;
    let request = ScoreRequest {
        selector: Selector { task_ids: vec![SCORED.to_owned()], ..Selector::default() },
        predictions: predictions.display().to_string(),
        strip_fences: false,
        several: Several::default(),
        path: ExecutionPath::Direct,
        surefire: Surefire::default(),
        repeats: std::num::NonZeroU32::MIN,
        seed: None,
        cache: true,
        coverage: true,
        mutation: true,
        controls: true,
        timeout: None,
        run: RunChoice { fresh: true, ..RunChoice::default() },
    };
    let Some(ended) = block_on(context, application::score::score(&request, context))? else { return Ok(()) };
    let scored = ended.add_up(None)?;
    report::print_text(&scored.report, &scored.models)?;
    scored.tell_left(context);
    let run_id = scored.report.runs.iter().map(|run| run.run_id.clone()).next().unwrap_or_default();
    scored.verdict()?;
    stdout::lines(
        "The paper's verdict calls both a success. The mutation score tells them apart: the test of `hasty` calls the changed\n\
         method and asserts nothing, so it notices no change of the code.\n",
    )?;
    let pages = data_dir.join(format!("report-{run_id}"));
    let text = "6. Report: an index and a page of the task. A browser opens these files; no server is needed.";
    let output = word(&pages);
    let command = format!("report {run_id} --certified-by {validation} --format html --output {output} {directory}");
    step(text, &command)?;
    let runs = ScoringRuns::read(std::slice::from_ref(&run_id), Period::default(), Some(validation), false, context)?;
    runs.with_kept_logs(context)?.write_pages(&pages)?;
    stdout::lines(&format!(
        "{index}\n\nNext: open that file in a browser, or try\n\
         $ testevo-sandbox explain {run_id} {SCORED} --model hasty {directory}\n\
         $ testevo-sandbox report {run_id} --format csv {directory}\n\
         $ testevo-sandbox import DATA...    published tasks: the README goes on from there\n",
        index = pages.join("index.html").display()
    ))
}

/// Returns a path as a shell reads it.
fn word(path: &Path) -> String {
    quoted(&path.display().to_string())
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
