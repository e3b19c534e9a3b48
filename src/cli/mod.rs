//! The command line: arguments, and one file per subcommand. All printing happens here; `application` has the work of commands.

mod audit;
mod build_images;
mod bundle;
mod compare;
mod completions;
mod demo;
mod doctor;
mod explain;
mod export;
mod images;
mod import;
pub mod interrupts;
mod lock;
mod man;
mod on;
pub mod options;
mod plan;
mod progress;
mod report;
mod runs;
mod score;
mod scratch;
pub mod selector;
mod selftest;
pub mod stdout;
mod store;
mod tasks;
mod terminal;
mod validate;
mod workspace;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};

use clap::{Parser, Subcommand};

use crate::application::Context;
use crate::error::{CommandError, ExitStatus};
use crate::output::json_line;
use crate::umask::Umask;

use options::{EventFormat, GlobalArguments, Resolved};

/// Locked images, sealed executions and comparable verdicts for TestEvo-Bench tasks.
#[derive(Debug, Parser)]
#[command(name = "testevo-sandbox", version, propagate_version = true, max_term_width = 110)]
#[command(
    after_help = "Exit codes: 0 fine; 1 a check failed; 2 usage; 3 infrastructure faults left; 4 bad input data; \
    5 origin or network; 6 digest, lock or store mismatch; 7 engine or isolation missing; 130 interrupted."
)]
pub struct Cli {
    #[command(flatten)]
    global: GlobalArguments,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check what this machine offers and lacks
    Doctor(doctor::DoctorArguments),
    /// Turn published task data into manifests and tasks
    Import(import::ImportArguments),
    /// Estimate from recorded costs how long a scoring run takes on several nodes
    Plan(plan::PlanArguments),
    /// List and show imported tasks
    Tasks(tasks::TasksArguments),
    /// Resolve, once and online, every byte that images are made from
    Lock(lock::LockArguments),
    /// Build images from locks, and show that they work without a network
    BuildImages(build_images::BuildImagesArguments),
    /// Execute the developers' tests on old and new code and compare with the published labels
    Validate(validate::ValidateArguments),
    /// Score agents' patches, or the developers' tests, on new and old code
    Score(score::ScoreArguments),
    /// Add up scoring runs, as a table, an HTML page, CSV or JSON
    Report(report::ReportArguments),
    /// Write what agents get of tasks, and collect the predictions that they leave
    Workspace(workspace::WorkspaceArguments),
    /// Look for the developers' tests in workspaces, directories, archives and images
    Audit(audit::AuditArguments),
    /// Write tasks in the forms of other harnesses
    Export(export::ExportArguments),
    /// Create, verify and import bundles: everything that scoring some tasks needs, in one place
    Bundle(bundle::BundleArguments),
    /// List, show, compare, export and prune built images
    Images(images::ImagesArguments),
    /// Verify, clean up, export and import the local store
    Store(store::StoreArguments),
    /// List, show and remove runs
    Runs(runs::RunsArguments),
    /// Explain one task of a run: its commands, its outcomes with reasons, and its logs
    Explain(explain::ExplainArguments),
    /// Do the whole job on a sample repository and explain it
    Demo(demo::DemoArguments),
    /// Score hostile submissions for two sample repositories, and see whether each comes to its verdict
    Selftest(selftest::SelftestArguments),
    /// Print completions for a shell
    Completions(completions::CompletionsArguments),
    /// Show the manual page of the program or of a subcommand; its source where stdout is no terminal
    Man(man::ManArguments),
}

/// A program with the global options.
pub trait Program: Parser {
    /// Returns the unresolved global options.
    fn global(&self) -> &GlobalArguments;

    /// Runs the subcommand.
    ///
    /// # Errors
    /// [`CommandError`].
    fn run(&self, context: &Context) -> Result<(), CommandError>;
}

impl Program for Cli {
    fn global(&self) -> &GlobalArguments {
        &self.global
    }

    fn run(&self, context: &Context) -> Result<(), CommandError> {
        dispatch(&self.command, context)
    }
}

/// Parses the arguments (the program's name first), runs the subcommand, and returns the exit code.
pub fn run<P: Program>(arguments: impl IntoIterator<Item = OsString>, umask: Umask) -> ExitStatus {
    umask.relax();
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    match completions::answer::<P>(&arguments) {
        Ok(false) => {}
        Ok(true) => return ExitStatus::Fine,
        Err(error) => {
            let _ = error.print();
            return ExitStatus::Usage;
        }
    }
    let program = match P::try_parse_from(&arguments) {
        Ok(program) => program,
        Err(error) => {
            let error = if error.use_stderr() { as_typed::<P>(&arguments, error) } else { error };
            // Help and version go to stdout, complaints to stderr. If neither can be written, nobody is listening.
            let _ = error.print();
            return if error.use_stderr() { ExitStatus::Usage } else { ExitStatus::Fine };
        }
    };
    let (color, format) = (program.global().early_color(), program.global().event_format());
    match start(&program, umask) {
        Ok(()) => ExitStatus::Fine,
        // The reader of stdout has gone, which is no error and needs no message.
        Err(CommandError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitStatus::Fine,
        Err(error) => {
            let text = match format {
                EventFormat::Text => error.render(color),
                EventFormat::Json => json_line(&error.as_event()).unwrap_or_else(|_| error.render(false)),
            };
            let _ = io::stderr().lock().write_all(text.as_bytes());
            error.exit_status()
        }
    }
}

/// Returns a usage error as it is without the environment, whose options nobody typed and the usage line would list. An
/// error in the environment itself stays as it is.
fn as_typed<P: Program>(arguments: &[OsString], error: clap::Error) -> clap::Error {
    let without_environment = P::command().mut_args(|argument| argument.env(None));
    match without_environment.try_get_matches_from(arguments) {
        Err(typed) if typed.kind() == error.kind() => typed,
        _ => error,
    }
}

fn start(program: &impl Program, umask: Umask) -> Result<(), CommandError> {
    let Resolved { options, color, verbosity, events } = program.global().clone().resolve()?;
    let progress = match events {
        EventFormat::Json => progress::json_lines(),
        EventFormat::Text if io::stderr().is_terminal() && verbosity >= 0 => progress::terminal(color),
        EventFormat::Text => progress::plain_lines(verbosity),
    };
    progress::start_tracing(&progress, verbosity, color && events == EventFormat::Text);
    let context = Context::new(options, progress.sink(), umask);
    let done = program.run(&context);
    drop(context);
    progress.finish();
    done
}

fn dispatch(command: &Command, context: &Context) -> Result<(), CommandError> {
    match command {
        Command::Doctor(arguments) => doctor::run(arguments, context),
        Command::Plan(arguments) => plan::run(arguments, context),
        Command::Import(arguments) => import::run(arguments, context),
        Command::Tasks(arguments) => tasks::run(arguments, context),
        Command::Lock(arguments) => lock::run(arguments, context),
        Command::BuildImages(arguments) => build_images::run(arguments, context),
        Command::Validate(arguments) => validate::run(arguments, context),
        Command::Score(arguments) => score::run(arguments, context),
        Command::Report(arguments) => report::run(arguments, context),
        Command::Workspace(arguments) => workspace::run(arguments, context),
        Command::Audit(arguments) => audit::run(arguments, context),
        Command::Export(arguments) => export::run(arguments, context),
        Command::Bundle(arguments) => bundle::run(arguments, context),
        Command::Images(arguments) => images::run(arguments, context),
        Command::Store(arguments) => store::run(arguments, context),
        Command::Runs(arguments) => runs::run(arguments, context),
        Command::Explain(arguments) => explain::run(arguments, context),
        Command::Demo(arguments) => demo::run(arguments, context),
        Command::Selftest(arguments) => selftest::run(arguments, context),
        Command::Completions(arguments) => completions::run(arguments),
        Command::Man(arguments) => man::run(arguments),
    }
}

#[cfg(test)]
mod tests {
    mod errors;
    mod schemas;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }
}
