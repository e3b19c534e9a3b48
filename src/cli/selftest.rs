//! `selftest`: whether this machine's engine and this program see through hostile submissions.

use clap::Args;

use super::interrupts::block_on;
use super::stdout;
use super::validate::PathChoice;
use crate::application::Context;
use crate::application::selftest::{SelftestRequest, Tried, selftest};
use crate::error::CommandError;
use crate::execution::run::record::ExecutionPath;
use crate::output::{OutputFormat, Table, counted};

/// Arguments of `selftest`.
#[derive(Debug, Args)]
pub(super) struct SelftestArguments {
    /// Names of hostile submissions, `NAME*` for all that begin so; all without any. docs/corpus.md lists them
    #[arg(value_name = "CASE")]
    cases: Vec<String>,
    /// How methods are executed
    #[arg(long, value_enum, value_name = "PATH", default_value_t)]
    path: PathChoice,
    /// Make mutants and run them, on the reference path too, where Maven compiles them
    #[arg(long, conflicts_with = "no_mutation")]
    mutation: bool,
    /// Do not make mutants; what only they can show is not expected then
    #[arg(long)]
    no_mutation: bool,
    /// How results are written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: OutputFormat,
}

pub(super) fn run(arguments: &SelftestArguments, context: &Context) -> Result<(), CommandError> {
    let path = match arguments.path {
        PathChoice::Maven => ExecutionPath::Maven,
        PathChoice::Direct => ExecutionPath::Direct,
    };
    // On the reference path they take long, and show little more.
    let mutation = arguments.mutation || (!arguments.no_mutation && path == ExecutionPath::Direct);
    let request = SelftestRequest { cases: arguments.cases.clone(), path, mutation };
    let Some(tried) = block_on(context, selftest(&request, context))? else { return Ok(()) };
    match arguments.format {
        OutputFormat::Json => tried.iter().try_for_each(stdout::json)?,
        OutputFormat::Text => write(&tried)?,
    }
    let wrong = tried.iter().filter(|one| !one.as_expected).count();
    let number = counted(tried.len(), "method", "methods");
    match wrong {
        0 => {
            context.events.message(format!("{number} as expected"));
            Ok(())
        }
        _ => Err(CommandError::CheckFailed { summary: format!("{wrong} of {number} came to another verdict") }),
    }
}

fn write(tried: &[Tried]) -> Result<(), CommandError> {
    let mut table = Table::new(["case", "attack", "method", "as expected", "verdict", "what it does"]);
    for one in tried {
        let (expected, verdict) = match one.as_expected {
            true => ("yes", one.found.clone()),
            false => ("NO", format!("{} instead of {}", one.found, one.expected)),
        };
        let words = [one.case, &one.proves.join(", "), &one.method, expected, &verdict, one.about];
        table.row(words.map(str::to_owned));
    }
    stdout::table(&table)
}
