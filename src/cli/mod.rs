//! The command line: arguments, and one file per subcommand. All printing happens here; all work is done below.

mod build_images;
mod completions;
mod demo;
mod doctor;
mod explain;
mod failures;
mod images;
mod import;
mod lock;
mod locks;
mod man;
pub mod options;
mod preview;
mod progress;
mod report;
mod runs;
mod score;
pub mod selector;
pub mod stdout;
mod store;
mod tasks;
mod validate;
pub mod workbench;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::time::Instant;

use clap::{Parser, Subcommand};
use tokio_util::sync::CancellationToken;

use crate::data_dir::{DataDir, DataDirError};
use crate::error::{CommandError, ExitStatus};
use crate::event::EventSink;
use crate::execution::verdicts::Invocation;
use crate::output::json_line;
use crate::umask::Umask;
use crate::workspace::{MirrorTemplate, Sources};

use options::{EventFormat, GlobalArguments, GlobalOptions};
use stdout::Output;

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
    /// Say what this machine offers and lacks
    Doctor(doctor::DoctorArguments),
    /// Turn published task data into manifests and tasks
    Import(import::ImportArguments),
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
    /// Say what scoring runs add up to
    Report(report::ReportArguments),
    /// List, show, compare, export and prune built images
    Images(images::ImagesArguments),
    /// Verify, clean up, export and import the local store
    Store(store::StoreArguments),
    /// List, show and remove runs
    Runs(runs::RunsArguments),
    /// Say what ran in a task of a run, with which commands, why it came to its outcomes, and where the logs are
    Explain(explain::ExplainArguments),
    /// Do the whole job on a sample repository and explain it
    Demo(demo::DemoArguments),
    /// Print completions for a shell
    Completions(completions::CompletionsArguments),
    /// Print the manual page of the program or of a subcommand
    Man(man::ManArguments),
}

/// What every subcommand works with.
pub struct Context {
    /// The global options, settings and environment taken into account.
    pub options: GlobalOptions,
    /// The way to stdout.
    pub output: Output,
    /// Where progress and messages go.
    pub events: EventSink,
    /// Cancelled by the first interrupt; work that cleans up after itself watches it.
    pub cancellation: CancellationToken,
    /// What the caller lets others do with files that are theirs alone.
    pub umask: Umask,
    /// When the command began.
    pub started: Instant,
    data_dir: OnceLock<DataDir>,
}

impl Context {
    /// Returns the data directory, opened (and created) at the first call.
    ///
    /// # Errors
    /// [`DataDirError`].
    pub fn data_dir(&self) -> Result<&DataDir, CommandError> {
        if let Some(data_dir) = self.data_dir.get() {
            return Ok(data_dir);
        }
        let path = &self.options.data_dir;
        let unusable = |source| DataDirError::Io { path: path.clone(), source };
        self.umask.create_directory(path).map_err(unusable)?;
        let opened = DataDir::open(path)?;
        Ok(self.data_dir.get_or_init(|| opened))
    }

    /// Returns where sources come from, as the options have it.
    ///
    /// # Errors
    /// [`DataDirError`]; [`WorkspaceError::MirrorTemplate`](crate::workspace::WorkspaceError::MirrorTemplate).
    pub fn sources(&self) -> Result<Sources, CommandError> {
        Ok(Sources {
            mirror: self.options.git_mirror.as_deref().map(MirrorTemplate::new).transpose()?,
            data_dir: self.data_dir()?.clone(),
            // A dry run reads what is here.
            offline: self.options.offline || self.options.dry_run,
            events: self.events.clone(),
        })
    }

    /// Returns what this invocation has used until now.
    pub fn invocation(&self) -> Invocation {
        let used = crate::host::process_usage();
        Invocation {
            wall_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            cpu_ms: used.cpu_ms,
            peak_resident_bytes: used.peak_resident_bytes,
            jobs: self.options.jobs.get(),
        }
    }

    /// Does a part of the work unless an interrupt came: an earlier one as well, for where there is nothing to do nothing
    /// is waited for.
    ///
    /// # Errors
    /// The work's, [`CommandError::Interrupted`].
    pub async fn until_interrupted<T>(
        &self,
        work: impl Future<Output = Result<T, CommandError>>,
    ) -> Result<T, CommandError> {
        tokio::select! {
            biased;
            () = self.cancellation.cancelled() => Err(CommandError::Interrupted),
            done = work => done,
        }
    }

    /// Runs asynchronous work to its end. The first interrupt cancels [`Context::cancellation`] so that the work can
    /// clean up; a second one drops the work where it stands.
    ///
    /// # Errors
    /// The work's, [`CommandError::Interrupted`] after an interrupt, [`CommandError::Runtime`].
    pub fn block_on<T>(&self, work: impl Future<Output = Result<T, CommandError>>) -> Result<T, CommandError> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(CommandError::Runtime)?;
        let done = runtime.block_on(async {
            let mut interrupts = Interrupts::new().map_err(CommandError::Runtime)?;
            let mut work = std::pin::pin!(work);
            tokio::select! {
                done = &mut work => return done,
                () = interrupts.next() => {}
            }
            self.cancellation.cancel();
            self.events.warning("interrupted: cleaning up; interrupt again to stop at once");
            tokio::select! {
                // Whatever the work came to, it did not do all that was asked.
                done = &mut work => done.and(Err(CommandError::Interrupted)),
                () = interrupts.next() => Err(CommandError::Interrupted),
            }
        });
        // Blocking tasks that outlive an interrupt must not hold the process.
        runtime.shutdown_background();
        done
    }
}

/// What this process wrote for its own use only goes with it.
impl Drop for Context {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.data_dir.get().map(DataDir::remove_temporary) {
            // The next command's sweep takes it.
            tracing::debug!("{error}");
        }
    }
}

struct Interrupts {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Interrupts {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// A program with the global options.
pub trait Program: Parser {
    /// Returns the global options as typed.
    fn global(&self) -> &GlobalArguments;

    /// Does what the other arguments say.
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

/// Parses the arguments (the program's name first), does what they say, and returns the exit code.
pub fn run<P: Program>(arguments: impl IntoIterator<Item = OsString>, umask: Umask) -> ExitStatus {
    umask.relax();
    let program = match P::try_parse_from(arguments) {
        Ok(program) => program,
        Err(error) => {
            // Help and version go to stdout, complaints to stderr; where neither can be written nobody listens.
            let _ = error.print();
            return if error.use_stderr() { ExitStatus::Usage } else { ExitStatus::Fine };
        }
    };
    let (color, format) = (program.global().early_color(), program.global().event_format());
    match start(&program, umask) {
        Ok(()) => ExitStatus::Fine,
        // The reader of stdout went away: there is nothing left to say, and nothing is wrong.
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

fn start(program: &impl Program, umask: Umask) -> Result<(), CommandError> {
    let started = Instant::now();
    let options = program.global().clone().resolve()?;
    let progress = match options.events {
        EventFormat::Json => progress::json_lines(),
        EventFormat::Text if io::stderr().is_terminal() && options.verbosity >= 0 => progress::terminal(options.color),
        EventFormat::Text => progress::plain_lines(options.verbosity >= 0),
    };
    let tracing_color = options.color && options.events == EventFormat::Text;
    progress::start_tracing(&progress, options.verbosity, tracing_color);
    let context = Context {
        options,
        output: Output,
        events: progress.sink(),
        cancellation: CancellationToken::new(),
        umask,
        started,
        data_dir: OnceLock::new(),
    };
    let done = program.run(&context);
    drop(context);
    progress.finish();
    done
}

fn dispatch(command: &Command, context: &Context) -> Result<(), CommandError> {
    match command {
        Command::Doctor(arguments) => doctor::run(arguments, context),
        Command::Import(arguments) => import::run(arguments, context),
        Command::Tasks(arguments) => tasks::run(arguments, context),
        Command::Lock(arguments) => lock::run(arguments, context),
        Command::BuildImages(arguments) => build_images::run(arguments, context),
        Command::Validate(arguments) => validate::run(arguments, context),
        Command::Score(arguments) => score::run(arguments, context),
        Command::Report(arguments) => report::run(arguments, context),
        Command::Images(arguments) => images::run(arguments, context),
        Command::Store(arguments) => store::run(arguments, context),
        Command::Runs(arguments) => runs::run(arguments, context),
        Command::Explain(arguments) => explain::run(arguments, context),
        Command::Demo(arguments) => demo::run(arguments, context),
        Command::Completions(arguments) => completions::run(arguments, context),
        Command::Man(arguments) => man::run(arguments, context),
    }
}

#[cfg(test)]
mod tests {
    mod errors;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }
}
