//! Evidence for the claims of `testevo-sandbox`: `measure` for its times, `crosscheck` for its coverage and mutants. It
//! uses the library as any other program would; no verdict depends on it.

mod crosscheck;
mod floor;
mod kept;
mod literal;
mod measure;
mod opened;
mod report;
mod tools;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use testevo_sandbox::application::Context;
use testevo_sandbox::cli::options::GlobalArguments;
use testevo_sandbox::cli::{Program, run};
use testevo_sandbox::engine::inside_container;
use testevo_sandbox::error::CommandError;
use testevo_sandbox::umask::Umask;

/// Holds testevo-sandbox against the paper's own way of doing things.
#[derive(Debug, Parser)]
#[command(name = "evidence", version, propagate_version = true, max_term_width = 110)]
struct Evidence {
    #[command(flatten)]
    global: GlobalArguments,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure cells side by side: the paper's literal harness, the reference path, the direct path, the floor
    Measure(measure::MeasureArguments),
    /// Compare coverage and mutants with what Maven, JaCoCo and Universal Mutator's own command make of the same tests
    Crosscheck(crosscheck::CrosscheckArguments),
}

impl Program for Evidence {
    fn global(&self) -> &GlobalArguments {
        &self.global
    }

    fn run(&self, context: &Context) -> Result<(), CommandError> {
        match &self.command {
            Command::Measure(arguments) => measure::run(arguments, context),
            Command::Crosscheck(arguments) => crosscheck::run(arguments, context),
        }
    }
}

fn main() -> ExitCode {
    // Before anything is made: containers must not depend on their caller's umask.
    let umask = Umask::take();
    if let Some(code) = inside_container() {
        return code;
    }
    run::<Evidence>(std::env::args_os(), umask).into()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Evidence::command().debug_assert();
    }
}
