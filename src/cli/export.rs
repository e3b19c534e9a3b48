//! `export`: tasks in the forms of other harnesses.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};

use super::bundle::AudienceChoice;
use super::interrupts::block_on;
use super::selector::SelectorArguments;
use super::stdout;
use super::validate::seconds;
use crate::agent::harbor::Network;
use crate::application::harbor::{self, HarborRequest, VerifierPlace};
use crate::application::io_failure::IoFailure;
use crate::application::{Context, agents};
use crate::data_dir::write_atomically;
use crate::error::CommandError;
use crate::output::{OutputFormat, counted, json_line};

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
    /// Write tasks for Harbor, each to DIR/<task id>, load their images into the engine, and add the module of the verifier
    Harbor(HarborArguments),
}

#[derive(Debug, Args)]
struct HarborArguments {
    #[command(flatten)]
    selector: SelectorArguments,
    /// Whom the directories are for; those for scorers have the developers' tests, for Harbor's `oracle`
    #[arg(long, value_enum, value_name = "AUDIENCE")]
    audience: AudienceChoice,
    /// The directory of all tasks
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// What trials' containers may reach
    #[arg(long, value_enum, value_name = "NETWORK", default_value_t)]
    network: NetworkChoice,
    /// Where trials are scored
    #[arg(long, value_enum, value_name = "PLACE", default_value_t)]
    verifier: VerifierChoice,
    /// Wall time of an agent
    #[arg(long, value_name = "SECONDS", default_value = "3600", value_parser = seconds)]
    agent_timeout: NonZeroU32,
    /// How results are written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: OutputFormat,
}

/// What a trial's container may reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum NetworkChoice {
    /// Hosts that are given to Harbor with `--allow-agent-host` and `--allow-environment-host`; it adds a container for this
    #[default]
    NoNetwork,
    /// Nothing, by Docker's `network_mode: none`
    Compose,
    /// Everything
    Public,
}

/// Where trials are scored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum VerifierChoice {
    /// On the machine that runs Harbor, by the module beside the tasks
    #[default]
    Host,
    /// In a container with this program and a bundle for scorers; it may make namespaces and mounts
    Image,
}

pub(super) fn run(arguments: &ExportArguments, context: &Context) -> Result<(), CommandError> {
    match &arguments.command {
        ExportCommand::Dataset { selector, audience, output } => {
            dataset(selector, *audience, output.as_deref(), context)
        }
        ExportCommand::Harbor(arguments) => harbor(arguments, context),
    }
}

fn harbor(arguments: &HarborArguments, context: &Context) -> Result<(), CommandError> {
    let request = HarborRequest {
        selector: arguments.selector.resolve()?,
        output: arguments.output.clone(),
        network: match arguments.network {
            NetworkChoice::NoNetwork => Network::Harbor,
            NetworkChoice::Compose => Network::Compose,
            NetworkChoice::Public => Network::Public,
        },
        agent_seconds: arguments.agent_timeout.get(),
        answered: arguments.audience == AudienceChoice::Scorer,
        verifier: match arguments.verifier {
            VerifierChoice::Host => VerifierPlace::Host,
            VerifierChoice::Image => VerifierPlace::Image,
        },
    };
    let Some(exported) = block_on(context, harbor::export(&request, context))? else { return Ok(()) };
    let (exported, verdict) = (exported.results, exported.verdict);
    for task in &exported {
        match arguments.format {
            OutputFormat::Json => stdout::json(task)?,
            OutputFormat::Text => stdout::line(&task.path.display().to_string())?,
        }
    }
    match arguments.format {
        OutputFormat::Json => {}
        OutputFormat::Text => stdout::line(&counted(exported.len(), "task", "tasks"))?,
    }
    verdict
}

fn dataset(
    selector: &SelectorArguments,
    audience: AudienceChoice,
    output: Option<&Path>,
    context: &Context,
) -> Result<(), CommandError> {
    let (selector, answered) = (selector.resolve()?, audience == AudienceChoice::Scorer);
    if let Some(output) = output.filter(|output| output.exists()) {
        return Err(CommandError::Usage {
            message: format!("there is a file `{}`", output.display()),
            hint: "name a new file, or remove this one".to_owned(),
        });
    }
    if context.options.dry_run {
        return block_on(context, agents::preview_dataset(&selector, output, context));
    }
    let Some(output) = output else {
        return block_on(context, agents::dataset(&selector, answered, context, stdout::json))?.verdict;
    };
    let mut lines = String::new();
    let written = agents::dataset(&selector, answered, context, |row| {
        lines.push_str(&json_line(row).map_err(CommandError::defect)?);
        Ok(())
    });
    let written = block_on(context, written)?;
    if written.results > 0 {
        // The file appears once it is complete.
        let doing = format!("writing `{}`", output.display());
        write_atomically(output, lines.as_bytes()).map_err(IoFailure::of(doing))?;
        stdout::line(&counted(written.results, "task", "tasks"))?;
    }
    written.verdict
}
