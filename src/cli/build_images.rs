//! `build-images`: composes images from locks and stored bytes, and proves them without a network.

use clap::{Args, ValueEnum};

use super::interrupts::block_on;
use super::selector::SelectorArguments;
use super::stdout;
use crate::application::Context;
use crate::application::build::{BuildRequest, Built, ProofLevel, build};
use crate::error::CommandError;
use crate::output::{OutputFormat, Table, mebibytes};

/// How much of an image is shown to work before it is called ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ProofChoice {
    /// Nothing; the image is not ready.
    None,
    /// One gold method for each set of build files and module.
    #[default]
    Quick,
    /// One gold method of every task on both revisions.
    Full,
}

/// Arguments of `build-images`.
#[derive(Debug, Args)]
pub(super) struct BuildImagesArguments {
    #[command(flatten)]
    selector: SelectorArguments,
    /// How much is executed, without a network, before an image is called ready
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t)]
    proof: ProofChoice,
    /// Compose the images for agents as well: the same layers below one with git, ripgrep, curl, tmux and others
    #[arg(long)]
    agent: bool,
    /// How results are written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: OutputFormat,
}

pub(super) fn run(arguments: &BuildImagesArguments, context: &Context) -> Result<(), CommandError> {
    let proof = match arguments.proof {
        ProofChoice::None => ProofLevel::None,
        ProofChoice::Quick => ProofLevel::Quick,
        ProofChoice::Full => ProofLevel::Full,
    };
    execute(
        &BuildRequest { selector: arguments.selector.resolve()?, proof, agent: arguments.agent },
        arguments.format,
        context,
    )
}

/// Builds images and writes the results.
pub(super) fn execute(request: &BuildRequest, format: OutputFormat, context: &Context) -> Result<(), CommandError> {
    let Some(report) = block_on(context, build(request, context))? else { return Ok(()) };
    if !report.built.is_empty() {
        write(&report.built, format)?;
    }
    report.verdict()
}

fn write(built: &[Built], format: OutputFormat) -> Result<(), CommandError> {
    match format {
        OutputFormat::Json => built.iter().try_for_each(stdout::json),
        OutputFormat::Text => {
            let mut table = Table::new(["repository", "config digest", "MiB", "proven", "compose s", "proof s"]);
            for one in built {
                let size: u64 = one.layers.iter().map(|layer| layer.size).sum();
                table.row([
                    one.repository.to_string(),
                    one.config_digest.hex().chars().take(16).collect(),
                    mebibytes(size),
                    if one.proven { "yes" } else { "no" }.to_owned(),
                    format!("{:.1}", one.compose_ms as f64 / 1000.0),
                    format!("{:.1}", one.proof_ms as f64 / 1000.0),
                ]);
            }
            stdout::table(&table)?;
            for one in built {
                if let Some(agent) = &one.agent {
                    stdout::line(&format!("image for agents of {}: {}", one.repository, &agent.hex()[..16]))?;
                }
                for failed in &one.unproven {
                    let (task, cell) = (&failed.task_id, failed.cell.name());
                    stdout::lines(&format!("unproven: {task} {cell}: {}\n{}\n", failed.outcome, failed.detail))?;
                }
            }
            Ok(())
        }
    }
}
