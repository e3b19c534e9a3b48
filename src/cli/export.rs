//! `export`: tasks in the forms of other harnesses.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::bundle::AudienceChoice;
use super::interrupts::block_on;
use super::selector::SelectorArguments;
use super::stdout;
use crate::application::{Context, agents};
use crate::data_dir::write_atomically;
use crate::error::CommandError;
use crate::output::{counted, json_line};

/// Arguments of `export`.
#[derive(Debug, Args)]
pub(super) struct ExportArguments {
    #[command(subcommand)]
    command: ExportCommand,
}

#[derive(Debug, Subcommand)]
enum ExportCommand {
    /// Write tasks as JSON lines, under SWE-bench's names where they mean the same
    Dataset {
        #[command(flatten)]
        selector: SelectorArguments,
        /// Whom the lines are for; those for scorers have the developers' tests
        #[arg(long, value_enum, value_name = "AUDIENCE")]
        audience: AudienceChoice,
        /// A new file, instead of stdout
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

pub(super) fn run(arguments: &ExportArguments, context: &Context) -> Result<(), CommandError> {
    let ExportCommand::Dataset { selector, audience, output } = &arguments.command;
    let (selector, answered) = (selector.resolve()?, *audience == AudienceChoice::Scorer);
    let Some(output) = output else {
        return block_on(context, agents::dataset(&selector, answered, context, stdout::json));
    };
    if output.exists() {
        return Err(CommandError::Usage {
            message: format!("there is a file `{}`", output.display()),
            hint: "name a new file, or remove this one".to_owned(),
        });
    }
    let (mut number, mut lines) = (0, String::new());
    let written = agents::dataset(&selector, answered, context, |row| {
        number += 1;
        lines.push_str(&json_line(row).map_err(std::io::Error::from).map_err(CommandError::Output)?);
        Ok(())
    });
    block_on(context, written)?;
    // The file appears once it is complete.
    write_atomically(output, lines.as_bytes()).map_err(CommandError::Output)?;
    stdout::line(&counted(number, "task", "tasks"))
}
