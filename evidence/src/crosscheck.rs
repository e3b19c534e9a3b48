//! `crosscheck`: compares focal coverage and mutants of the developers' tests on new code. One side is `score`'s; the
//! other is from Maven with JaCoCo and from Universal Mutator's own command. Its figures are for
//! `docs/scoring.md` and its reviewers.

mod inspector;

use std::path::PathBuf;

use clap::Args;

use self::inspector::{Compares, Inspector};
use crate::kept::Kept;
use crate::measure::MeasureFormat;
use crate::report::crosscheck::{CheckedTask, Crosscheck, crosscheck, markdown, text};
use testevo_sandbox::application::Context;
use testevo_sandbox::application::selection;
use testevo_sandbox::cli::interrupts::block_on;
use testevo_sandbox::cli::selector::SelectorArguments;
use testevo_sandbox::cli::stdout;
use testevo_sandbox::error::CommandError;
use testevo_sandbox::output::counted;
use testevo_sandbox::task::Task;
use testevo_sandbox::task::selector::spread;

/// Arguments of `crosscheck`.
#[derive(Debug, Args)]
pub(crate) struct CrosscheckArguments {
    #[command(flatten)]
    selector: SelectorArguments,
    /// Of the chosen tasks at most so many, evenly over repositories
    #[arg(long, help_heading = "Selection", value_name = "N")]
    spread: Option<usize>,
    /// Of each task's target methods at most so many
    #[arg(long, help_heading = "Selection", value_name = "N")]
    methods: Option<usize>,
    /// Keep what was compared in this file, a task a line; a task that it has is not compared again, but for faults of ours
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// Do not compare which focal lines tests cover
    #[arg(long)]
    no_coverage: bool,
    /// Do not compare mutants
    #[arg(long)]
    no_mutation: bool,
    /// Have Maven also compile so many mutants of each file and run the target methods on them, and compare what becomes of
    /// them and how long that takes
    #[arg(long, value_name = "N", default_value_t)]
    ends: usize,
    /// How the comparison is written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: MeasureFormat,
}

pub(crate) fn run(arguments: &CrosscheckArguments, context: &Context) -> Result<(), CommandError> {
    if context.options.dry_run {
        return Err(CommandError::Usage {
            message: "nothing is compared by a dry run".to_owned(),
            hint: "leave `--dry-run` out".to_owned(),
        });
    }
    if arguments.no_coverage && arguments.no_mutation && arguments.ends == 0 {
        return Err(CommandError::Usage {
            message: "nothing is left to compare".to_owned(),
            hint: "leave `--no-coverage` or `--no-mutation` out, or add `--ends N`".to_owned(),
        });
    }
    let mut tasks = selection::tasks(&arguments.selector.resolve()?, context)?;
    if let Some(most) = arguments.spread {
        tasks = spread(tasks, most);
    }
    if let Some(most) = arguments.methods {
        tasks.iter_mut().for_each(|task| task.test_methods.truncate(most));
    }
    let mut kept = Kept::open(arguments.keep.as_deref())?;
    let missing: Vec<&Task> = tasks.iter().filter(|task| !kept.has(&task.id)).collect();
    if !missing.is_empty() {
        block_on(context, inspect(&missing, arguments, &mut kept, context))?;
    }
    let checked: Vec<CheckedTask> = tasks.iter().filter_map(|task| kept.take(&task.id)).collect();
    let crosscheck = crosscheck(checked);
    match arguments.format {
        MeasureFormat::Text => stdout::lines(&text(&crosscheck))?,
        MeasureFormat::Json => stdout::json(&crosscheck)?,
        MeasureFormat::Markdown => stdout::lines(&markdown(&crosscheck))?,
    }
    verdict(&crosscheck)
}

/// Where something differs, or nothing could be compared, the check failed.
fn verdict(crosscheck: &Crosscheck) -> Result<(), CommandError> {
    let failed = |summary| Err(CommandError::CheckFailed { summary });
    match crosscheck.differences.len() {
        0 if crosscheck.coverage.compared + crosscheck.mutants.compared + crosscheck.ends.compared == 0 => {
            failed("nothing could be compared".to_owned())
        }
        0 => Ok(()),
        some => failed(counted(some, "difference", "differences")),
    }
}

async fn inspect(
    tasks: &[&Task],
    arguments: &CrosscheckArguments,
    kept: &mut Kept<CheckedTask>,
    context: &Context,
) -> Result<(), CommandError> {
    let (coverage, mutants, ends) = (!arguments.no_coverage, !arguments.no_mutation, arguments.ends);
    let compares = Compares { coverage, mutants, ends };
    let inspector = Inspector::new(tasks, compares, context).await?;
    let inspected = async {
        for (number, task) in tasks.iter().enumerate() {
            let one = context.until_interrupted(async { Ok(inspector.task(task).await) }).await?;
            // Another task may fare better.
            let one = one.unwrap_or_else(|error| inspector.left_out(task, (error.to_string(), true)));
            context.events.message(format!("{} of {}: {}", number + 1, tasks.len(), in_short(&one)));
            kept.add(one)?;
        }
        Ok(())
    };
    let inspected = inspected.await;
    inspector.close().await?;
    inspected
}

fn in_short(task: &CheckedTask) -> String {
    let one = crosscheck(vec![task.clone()]);
    let counts = [
        ("coverage", "method", "methods", &one.coverage),
        ("mutants", "file", "files", &one.mutants),
        ("what becomes of them", "file", "files", &one.ends),
    ];
    let counts = counts.map(|(what, single, several, count)| {
        let left_out = count.left_out;
        format!("{what} equal in {} of {}, {left_out} left out", count.equal, counted(count.compared, single, several))
    });
    let reasons: Vec<String> = task.left_out.iter().map(|reason| format!("; left out: {reason}")).collect();
    format!("{} {}{}", task.task_id, counts.join("; "), reasons.concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::crosscheck::Count;

    #[test]
    fn a_difference_or_nothing_at_all_fails_the_check() {
        let mut one = crosscheck(Vec::new());
        assert!(matches!(verdict(&one), Err(CommandError::CheckFailed { .. })));
        one.mutants = Count { compared: 1, equal: 1, ..Count::default() };
        assert!(verdict(&one).is_ok());
        one.differences.push("t: coverage".to_owned());
        assert!(matches!(verdict(&one), Err(CommandError::CheckFailed { summary }) if summary == "1 difference"));
    }
}
