//! `lock`: resolves, once and online, every byte that images are made from.

use clap::Args;

use super::interrupts::block_on;
use super::selector::SelectorArguments;
use super::stdout;
use crate::application::Context;
use crate::application::lock::{LockRequest, Locked, Mode, lock};
use crate::error::CommandError;
use crate::output::{OutputFormat, Table, mebibytes};

/// Arguments of `lock`.
#[derive(Debug, Args)]
pub(super) struct LockArguments {
    #[command(flatten)]
    selector: SelectorArguments,
    /// Resolve everything anew; the present lock stays until that is done, and is kept in locks/history
    #[arg(long, conflicts_with = "check")]
    update: bool,
    /// Resolve nothing; fail where a lock is missing or does not cover its tasks
    #[arg(long)]
    check: bool,
    /// Lock the tools of agents' images as well: git, ripgrep, curl, tmux and others
    #[arg(long, conflicts_with = "check")]
    agent: bool,
    /// How results are written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: OutputFormat,
}

pub(super) fn run(arguments: &LockArguments, context: &Context) -> Result<(), CommandError> {
    let mode = match (arguments.update, arguments.check) {
        (true, _) => Mode::Update,
        (_, true) => Mode::Check,
        _ => Mode::Complete,
    };
    execute(
        &LockRequest { selector: arguments.selector.resolve()?, mode, agent: arguments.agent },
        arguments.format,
        context,
    )
}

/// Locks and writes the results.
pub(super) fn execute(request: &LockRequest, format: OutputFormat, context: &Context) -> Result<(), CommandError> {
    let Some(report) = block_on(context, lock(request, context))? else { return Ok(()) };
    if !report.locked.is_empty() {
        write(&report.locked, format)?;
    }
    report.verdict()
}

fn write(locked: &[Locked], format: OutputFormat) -> Result<(), CommandError> {
    match format {
        OutputFormat::Json => locked.iter().try_for_each(stdout::json),
        OutputFormat::Text => {
            let mut table = Table::new(["repository", "jdk", "files", "MiB", "build sets", "missing"]);
            for one in locked {
                table.row([
                    one.repository.to_string(),
                    if one.jdk_locked { one.jdk.to_string() } else { format!("{}, not locked", one.jdk) },
                    one.files.to_string(),
                    mebibytes(one.bytes),
                    one.build_sets.to_string(),
                    one.missing_build_sets.to_string(),
                ]);
            }
            stdout::table(&table)?;
            let mut lost = Table::new(["repository", "revision", "module", "artifact", "wanted by", "asked", "cause"]);
            for one in locked {
                for set in &one.unresolved {
                    let text = format!("unresolved: {} {} {}\n{}", one.repository, set.revision, set.module, set.cause);
                    stdout::lines(&format!("{text}\n"))?;
                    for artifact in &set.artifacts {
                        lost.row([
                            one.repository.as_str(),
                            &set.revision,
                            &set.module,
                            &artifact.artifact,
                            artifact.wanted_by.as_deref().unwrap_or("not said"),
                            &artifact.origins.join(", "),
                            &artifact.cause,
                        ]);
                    }
                }
            }
            if lost.is_empty() { Ok(()) } else { stdout::table(&lost) }
        }
    }
}
