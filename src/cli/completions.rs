//! `completions`: a script that teaches a shell the arguments.

use clap::{Args, CommandFactory};

use super::{Cli, stdout};
use crate::error::CommandError;

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(super) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

pub(super) fn run(arguments: &CompletionsArguments) -> Result<(), CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "testevo-sandbox", &mut script);
    stdout::bytes(&script)
}
