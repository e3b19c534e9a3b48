//! `store`: what the local store holds, whether it is sound, and how its bytes are kept beyond their origins.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;

use super::completions;
use super::interrupts::block_on;
use super::options::whole;
use super::stdout;
use crate::application::Context;
use crate::application::disk::GivenUp;
use crate::application::store::{
    CollectedGarbage, ExportRequest, ImportRequest, ImportSource, VerifiedStore, collect_garbage, export, import,
    verify,
};
use crate::artifact::made::PrunePolicy;
use crate::error::CommandError;
use crate::output::{OutputFormat, counted, size};

/// Arguments of `store`.
#[derive(Debug, Args)]
pub(super) struct StoreArguments {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Compare every blob's bytes with its name, and unpacked layers with what was unpacked
    Verify {
        /// Remove what is corrupted; the next command that needs it fetches or makes it again
        #[arg(long)]
        repair: bool,
        /// How results are written
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
        format: OutputFormat,
    },
    /// Remove blobs that no record names, and prepared revisions and class archives that nobody used lately; with --dry-run
    /// only say which. With --max-disk remove more, longest unused first, until the data directory takes no more than that
    Gc {
        /// Keep what is younger: a command that runs may be about to name it
        #[arg(long, value_name = "HOURS", default_value_t = 24, value_parser = whole::<u64>)]
        min_age: u64,
        /// Give up prepared revisions and class archives unused for so long
        #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = whole::<u64>)]
        prepared_days: u64,
        /// Give up the least used revisions beyond this size
        #[arg(long, value_name = "GIB", default_value_t = 20, value_parser = whole::<u64>)]
        prepared_gib: u64,
        /// How results are written
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
        format: OutputFormat,
    },
    /// Write locks, manifests and every byte that they name into one archive
    Export {
        /// Repositories (owner/name or name), with * and ?; all locked ones where none is given
        #[arg(value_name = "NAME", add = completions::repositories())]
        names: Vec<String>,
        /// Archive to write; - is stdout
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
    },
    /// Take locks, manifests and bytes from an archive of `store export`
    Import {
        /// Archive to read; - is stdin
        #[arg(value_name = "FILE")]
        archive: PathBuf,
        /// Replace locks that differ; they are kept in locks/history
        #[arg(long)]
        replace: bool,
    },
}

pub(super) fn run(arguments: &StoreArguments, context: &Context) -> Result<(), CommandError> {
    match &arguments.command {
        StoreCommand::Verify { repair, format } => {
            let verified = verify(*repair, context)?;
            write_verified(&verified, *format)?;
            verified.tell(context);
            verified.verdict()
        }
        StoreCommand::Gc { min_age, prepared_days, prepared_gib, format } => {
            let policy = PrunePolicy {
                always: Duration::from_secs(min_age.saturating_mul(3600)),
                age: Duration::from_secs(prepared_days.saturating_mul(86_400)),
                most_bytes: prepared_gib.saturating_mul(1 << 30),
            };
            let collected = collect_garbage(&policy, context)?;
            write_garbage(&collected, *format, context.options.dry_run)?;
            collected.tell(context);
            Ok(())
        }
        StoreCommand::Export { names, output } => {
            let request = ExportRequest { names: names.clone(), output: stdout::or_file(output) };
            block_on(context, export(&request, context))
        }
        StoreCommand::Import { archive, replace } => {
            let source = match archive == Path::new("-") {
                true => ImportSource::Stdin,
                false => ImportSource::File(archive.clone()),
            };
            block_on(context, import(ImportRequest { source, replace: *replace }, context))
        }
    }
}

fn write_verified(verified: &VerifiedStore, format: OutputFormat) -> Result<(), CommandError> {
    let VerifiedStore { blobs, layers, repair } = verified;
    match format {
        OutputFormat::Json => stdout::json(&json!({
            "schema": 1, "sound": blobs.sound, "bytes": blobs.bytes, "corrupted": blobs.corrupted,
            "repaired": repair, "layers": layers,
        })),
        OutputFormat::Text => {
            for digest in &blobs.corrupted {
                stdout::line(&format!("corrupted: {digest}"))?;
            }
            let sound = counted(blobs.sound, "blob", "blobs");
            stdout::line(&format!("{sound} sound, {} read", size(blobs.bytes)))?;
            for damaged in &layers.damaged {
                stdout::line(&format!("damaged: `{}`: {}", damaged.file.display(), damaged.reason))?;
            }
            if layers.sound + layers.unknown + verified.damaged_layers() > 0 {
                let sound = counted(layers.sound, "unpacked layer", "unpacked layers");
                let unknown = match layers.unknown {
                    0 => String::new(),
                    unknown => format!("; {unknown} of an earlier program are unpacked anew when they are used"),
                };
                stdout::line(&format!("{sound} sound, {} read{unknown}", size(layers.bytes)))?;
            }
            Ok(())
        }
    }
}

fn write_garbage(collected: &CollectedGarbage, format: OutputFormat, dry_run: bool) -> Result<(), CommandError> {
    let CollectedGarbage { given_up, released, layers, disk } = collected;
    let GivenUp { garbage, prepared, class_archives, .. } = given_up;
    match format {
        OutputFormat::Json => stdout::json(&json!({
            "schema": 1, "removed": garbage.blobs, "bytes": garbage.bytes, "young": garbage.young,
            "used": garbage.used, "prepared": prepared, "class_archives": class_archives, "released": released, "dry_run": dry_run,
            "layers": layers.iter().map(|(layer, _)| layer).collect::<Vec<_>>(), "disk": disk,
        })),
        OutputFormat::Text => {
            let verb = if dry_run { "would be removed" } else { "removed" };
            let blobs = counted(garbage.blobs.len(), "blob", "blobs");
            stdout::line(&format!(
                "{blobs} {verb}, {}; {} in use, {} too young to tell",
                size(garbage.bytes),
                garbage.used,
                garbage.young
            ))?;
            let given_up = [
                (prepared, "prepared revision", "prepared revisions"),
                (class_archives, "class archive", "class archives"),
                (released, "record of a released file", "records of released files"),
                (&layers.len(), "unpacked layer", "unpacked layers"),
            ];
            for (count, one, many) in given_up.into_iter().filter(|(count, ..)| **count > 0) {
                stdout::line(&format!("{} {verb}", counted(*count, one, many)))?;
            }
            if let Some(disk) = disk {
                let would = if dry_run { "would take" } else { "takes" };
                stdout::line(&format!("the data directory {would} {} of {}", size(disk.used), size(disk.limit)))?;
            }
            Ok(())
        }
    }
}
