//! `man`: manual pages, made from the same words as `--help`.

use clap::{Args, CommandFactory};

use super::{Cli, stdout};
use crate::error::CommandError;

/// Arguments of `man`.
#[derive(Debug, Args)]
pub(super) struct ManArguments {
    /// The subcommand, such as `store export`; the program itself where none is given
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) fn run(arguments: &ManArguments) -> Result<(), CommandError> {
    let mut program = Cli::command();
    // Only this gives subcommands the global options and their full names.
    program.build();
    let mut chosen = &program;
    let mut name = vec![program.get_name().to_owned()];
    for word in &arguments.command {
        chosen = match chosen.find_subcommand(word) {
            Some(found) => found,
            None => {
                return Err(CommandError::Usage {
                    message: format!("`{}` has no subcommand `{word}`", name.join(" ")),
                    hint: format!("`{} --help` lists them", name.join(" ")),
                });
            }
        };
        name.push(word.clone());
    }
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(chosen.clone()).title(name.join("-").to_uppercase()).render(&mut page);
    rendered.map_err(CommandError::Output)?;
    stdout::bytes(&page)
}
