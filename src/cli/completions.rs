//! `completions`: a script that teaches a shell the arguments, and the answers to its questions: options, and the names of
//! runs, tasks and repositories in the data directory.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::Args;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};

use super::options::data_dir_of;
use super::{Program, stdout};
use crate::application::names::{self, Named};
use crate::error::CommandError;

/// The variable by which a shell's script asks for completions instead of a command.
const QUESTION: &str = "TESTEVO_SANDBOX_COMPLETE";
/// The command's name.
const COMMAND: &str = "testevo-sandbox";

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(super) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(arguments: &CompletionsArguments) -> Result<(), CommandError> {
    let (shells, name) = (Shells::builtins(), arguments.shell.to_string());
    let Some(shell) = shells.completer(&name) else {
        return Err(CommandError::Usage {
            message: format!("there are no completions for {name}"),
            hint: "name another shell".to_owned(),
        });
    };
    // The script asks the program that wrote it: by name if it was found by name, else by its path.
    let typed = std::env::args_os().next().map(PathBuf::from).filter(|typed| typed.components().count() > 1);
    let program = typed.and_then(|typed| std::path::absolute(typed).ok()).unwrap_or_else(|| PathBuf::from(COMMAND));
    let mut script = Vec::new();
    shell
        .write_registration(QUESTION, COMMAND, COMMAND, &program.to_string_lossy(), &mut script)
        .map_err(CommandError::defect)?;
    stdout::bytes(&script)
}

/// Answers a shell that asks for completions. Returns whether one did.
///
/// # Errors
/// [`clap::Error`] for a shell that is not known.
pub(super) fn answer<P: Program>(arguments: &[OsString]) -> Result<bool, clap::Error> {
    let here = std::env::current_dir().ok();
    CompleteEnv::with_factory(P::command).var(QUESTION).try_complete(arguments, here.as_deref())
}

/// Returns the completer for runs: their names, or paths of directories.
pub(super) fn runs() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| match current.to_string_lossy().contains('/') {
        true => PathCompleter::dir().complete(current),
        false => beginning(current, names::runs),
    })
}

/// Returns the completer for ids of tasks.
pub(super) fn tasks() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| beginning(current, names::tasks))
}

/// Returns the completer for names of repositories.
pub(super) fn repositories() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| beginning(current, names::repositories))
}

/// Returns the completer for selected repositories and tasks. It proposes tasks only once something is typed.
pub(super) fn selected() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| match current.is_empty() {
        true => beginning(current, names::repositories),
        false => beginning(current, names::repositories_and_tasks),
    })
}

/// Returns the names that begin with what was typed, in their order.
fn beginning(current: &OsStr, names: fn(&Path) -> Vec<Named>) -> Vec<CompletionCandidate> {
    // A shell hands the whole line over after `--`.
    let line: Vec<OsString> = std::env::args_os().skip_while(|argument| argument != "--").collect();
    let Some(data_dir) = data_dir_of(&line) else { return Vec::new() };
    let begin = current.to_string_lossy();
    let named = names(&data_dir).into_iter().filter(|named| named.name.starts_with(&*begin)).enumerate();
    let candidates = named.map(|(order, named)| {
        CompletionCandidate::new(named.name).help(Some(named.what.into())).display_order(Some(order))
    });
    candidates.collect()
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn every_shell_is_known() {
        for shell in Shell::value_variants() {
            assert!(Shells::builtins().completer(&shell.to_string()).is_some(), "{shell}");
        }
    }
}
