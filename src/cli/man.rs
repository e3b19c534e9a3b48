//! `man`: manual pages, made from the same words as `--help`. A terminal gets them rendered, anything else their source.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::{Command, Stdio};

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
    rendered.map_err(CommandError::defect)?;
    match io::stdout().is_terminal() {
        true => shown(&page),
        false => stdout::bytes(&page),
    }
}

/// Shows a page on the terminal with `man`, which knows its source's language.
fn shown(page: &[u8]) -> Result<(), CommandError> {
    let not_shown = |reason: String| CommandError::Usage {
        message: format!("`man` can't show the page: {reason}"),
        hint: "write its source to a file by redirecting stdout; `--help` says the same".to_owned(),
    };
    let mut man = Command::new("man")
        .args(["-l", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| not_shown(error.to_string()))?;
    if let Some(mut stdin) = man.stdin.take() {
        match stdin.write_all(page) {
            // Whoever closes the pager has read enough.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(not_shown(error.to_string())),
            _ => {}
        }
    }
    let status = man.wait().map_err(|error| not_shown(error.to_string()))?;
    if status.success() { Ok(()) } else { Err(not_shown(status.to_string())) }
}
