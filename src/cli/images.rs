//! `images`: lists, shows, compares, exports and prunes built images.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::completions;
use super::interrupts::block_on;
use super::stdout;
use crate::application::Context;
use crate::application::images::{
    ComparedImages, ImageExport, ListedImage, PrunedImages, compare, components, export, list, load, prune, show,
};
use crate::bundle::Audience;
use crate::engine::ImageRemoval;
use crate::error::CommandError;
use crate::execution::container::images::PrunedImage;
use crate::image::{Change, Component, Layer, layer_title, tag};
use crate::lock::LayerKind;
use crate::output::{OutputFormat, Table, counted, mebibytes, size};

/// Arguments of `images`.
#[derive(Debug, Args)]
pub(super) struct ImagesArguments {
    #[command(subcommand)]
    command: ImagesCommand,
}

#[derive(Debug, Subcommand)]
enum ImagesCommand {
    /// List built images
    List {
        /// Repositories (owner/name or name), with * and ?; all where none is given
        #[arg(value_name = "NAME", add = completions::repositories())]
        names: Vec<String>,
        /// How results are written
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
        format: OutputFormat,
    },
    /// Show what an image is made of
    Show {
        /// The repository (owner/name or name)
        name: String,
        /// List the software inside and where its licences stand
        #[arg(long)]
        licenses: bool,
        /// How results are written
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
        format: OutputFormat,
    },
    /// Show, path by path, how two images differ; exit code 1 where they do
    Diff {
        /// The repository (owner/name or name)
        name: String,
        /// The repository to compare with; the image built before where none is given
        other: Option<String>,
        /// How results are written
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
        format: OutputFormat,
    },
    /// Write an image as an archive for `docker load` and OCI tools, or as a context for `docker build`
    Export {
        /// The repository (owner/name or name)
        name: String,
        /// The image for agents instead, which has git, ripgrep, curl, tmux and others
        #[arg(long)]
        agent: bool,
        #[command(flatten)]
        target: ExportTarget,
    },
    /// Load an image into the engine and print its name there
    Load {
        /// The repository (owner/name or name)
        name: String,
        /// The image for agents instead, which has git, ripgrep, curl, tmux and others
        #[arg(long)]
        agent: bool,
    },
    /// Remove layers that are not in use, from the store and from the engine; with --dry-run only say which
    Prune {
        /// How results are written
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
        format: OutputFormat,
    },
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct ExportTarget {
    /// Archive to write; - is stdout
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Directory, empty or missing, for layers and a Dockerfile
    #[arg(long, value_name = "DIRECTORY")]
    context: Option<PathBuf>,
}

pub(super) fn run(arguments: &ImagesArguments, context: &Context) -> Result<(), CommandError> {
    match &arguments.command {
        ImagesCommand::List { names, format } => write_list(&list(names, context)?, *format),
        ImagesCommand::Show { name, licenses: true, format } => write_licenses(&components(name, context)?, *format),
        ImagesCommand::Show { name, licenses: false, format } => write_image(&show(name, context)?, *format),
        ImagesCommand::Diff { name, other, format } => {
            let compared = compare(name, other.as_deref(), context)?;
            write_difference(&compared, *format)?;
            compared.verdict()
        }
        ImagesCommand::Export { name, agent, target } => {
            block_on(context, export(name, kind(*agent), target.resolve()?, context))
        }
        ImagesCommand::Load { name, agent } => {
            if let Some(loaded) = block_on(context, load(name, kind(*agent), context))? {
                stdout::line(&loaded)?;
            }
            Ok(())
        }
        ImagesCommand::Prune { format } => {
            let pruned = block_on(context, prune(context))?;
            write_pruned(&pruned, *format, context.options.dry_run)
        }
    }
}

fn kind(agent: bool) -> Audience {
    if agent { Audience::Agent } else { Audience::Scorer }
}

impl ExportTarget {
    fn resolve(&self) -> Result<ImageExport, CommandError> {
        match (&self.output, &self.context) {
            (_, Some(directory)) => Ok(ImageExport::BuildContext(directory.clone())),
            (Some(file), None) => Ok(ImageExport::Archive(stdout::or_file(file))),
            (None, None) => Err(CommandError::Usage {
                message: "nothing says where the image goes".to_owned(),
                hint: "name a file with `--output` or a directory with `--context`".to_owned(),
            }),
        }
    }
}

fn write_list(images: &[ListedImage], format: OutputFormat) -> Result<(), CommandError> {
    match format {
        OutputFormat::Json => stdout::json(&images.iter().map(description).collect::<Vec<_>>()),
        OutputFormat::Text => {
            let mut table = Table::new(["repository", "jdk", "image", "MiB", "own MiB", "state"]);
            for ListedImage { built, state } in images {
                let own = built.image.layers.iter().filter(|layer| layer.kind == LayerKind::MavenCache);
                table.row([
                    built.repository.to_string(),
                    built.jdk.to_string(),
                    built.image.short_id(),
                    mebibytes(built.image.size()),
                    mebibytes(own.map(|layer| layer.size).sum()),
                    state.name().to_owned(),
                ]);
            }
            stdout::table(&table)?;
            // Shared layers are stored once, so the images' sizes do not add up.
            let mut stored: Vec<&Layer> = images.iter().flat_map(|image| &image.built.image.layers).collect();
            stored.sort_by_key(|layer| layer.digest);
            stored.dedup_by_key(|layer| layer.digest);
            let bytes = stored.iter().map(|layer| layer.size).sum();
            let (images, layers) = (counted(images.len(), "image", "images"), counted(stored.len(), "layer", "layers"));
            stdout::line(&format!("{images} in {layers}, {} stored", size(bytes)))
        }
    }
}

fn description(ListedImage { built, state }: &ListedImage) -> Value {
    json!({
        "repository": built.repository,
        "jdk": built.jdk,
        "config_digest": built.image.config_digest,
        "manifest_digest": built.image.manifest_digest,
        "layers": built.image.layers,
        "locks": built.locks,
        "recipe_version": built.recipe_version,
        "complete": state.complete,
        "up_to_date": state.up_to_date,
        "proven": state.proven,
    })
}

fn write_image(image: &ListedImage, format: OutputFormat) -> Result<(), CommandError> {
    if format == OutputFormat::Json {
        return stdout::json(&description(image));
    }
    let ListedImage { built, state } = image;
    stdout::lines(&format!(
        "repository       {}\njdk              {}\nimage            {}\nmanifest         {}\ntag              {}\n\
         toolchain lock   {}\nrepository lock  {}\nstate            {}\n",
        built.repository,
        built.jdk,
        built.image.config_digest,
        built.image.manifest_digest,
        tag(&built.image, Some(&built.repository), built.jdk),
        built.locks.toolchain,
        built.locks.repository,
        state.name(),
    ))?;
    let mut table = Table::new(["layer", "MiB", "unpacked MiB", "diff id"]);
    for layer in &built.image.layers {
        let (size, unpacked) = (mebibytes(layer.size), mebibytes(layer.uncompressed_size));
        table.row([layer_title(layer.kind), &size, &unpacked, &layer.diff_id.to_string()]);
    }
    stdout::table(&table)
}

fn write_licenses(found: &[Component], format: OutputFormat) -> Result<(), CommandError> {
    if format == OutputFormat::Json {
        return stdout::json(&found);
    }
    let mut table = Table::new(["layer", "software", "licences"]);
    for component in found {
        let licences: Vec<String> = component.licenses.iter().map(|path| format!("/{path}")).collect();
        let licences = if licences.is_empty() { "inside".to_owned() } else { licences.join(" ") };
        table.row([layer_title(component.layer), &component.name, &licences]);
    }
    stdout::table(&table)
}

fn write_difference(compared: &ComparedImages, format: OutputFormat) -> Result<(), CommandError> {
    let ComparedImages { before, after, difference: found } = compared;
    if format == OutputFormat::Json {
        return stdout::json(&json!({
            "before": before.config_digest, "after": after.config_digest, "difference": found,
        }));
    }
    for (digest, sign) in [(before.config_digest, "-"), (after.config_digest, "+")] {
        stdout::line(&format!("{sign} {digest}"))?;
    }
    for layer in &found.layers {
        for Change { path, before, after } in &layer.changes {
            let sign = match (before, after) {
                (_, None) => '-',
                (None, _) => '+',
                _ => '~',
            };
            stdout::line(&format!("{sign} {} /{path}", layer_title(layer.kind)))?;
        }
    }
    if found.configuration {
        stdout::line("~ configuration")?;
    }
    Ok(())
}

fn write_pruned(pruned: &PrunedImages, format: OutputFormat, dry_run: bool) -> Result<(), CommandError> {
    let PrunedImages { layers, loaded, unpacked } = pruned;
    match format {
        OutputFormat::Json => stdout::json(&json!({
            "schema": 1, "layers": layers.layers, "bytes": layers.bytes, "loaded": loaded,
            "unpacked": unpacked, "dry_run": dry_run,
        })),
        OutputFormat::Text => {
            for layer in &layers.layers {
                stdout::line(&format!("{} {}", layer_title(layer.kind), layer.digest))?;
            }
            for image in loaded {
                let kept = match &image.removal {
                    Some(ImageRemoval::Kept { reason }) => format!(" stays: {reason}"),
                    _ => String::new(),
                };
                let names = image.names.join(", ");
                stdout::line(&format!("loaded image {} ({names}){kept}", image.config_digest))?;
            }
            let verb = if dry_run { "would be removed" } else { "removed" };
            let count = counted(layers.layers.len(), "layer", "layers");
            let mut parts = vec![format!("store: {count} {verb}, {}", size(layers.bytes))];
            if !unpacked.is_empty() {
                let layers = counted(unpacked.len(), "unpacked layer", "unpacked layers");
                let bytes = unpacked.iter().map(|layer| layer.bytes).sum();
                parts.push(format!("built-in engine: {layers} {verb}, {}", size(bytes)));
            }
            if !loaded.is_empty() {
                parts.push(format!("engine: {}", removals(loaded)));
            }
            stdout::lines(&(parts.join("\n") + "\n"))
        }
    }
}

/// Says what becomes of loaded images, each counted once.
fn removals(loaded: &[PrunedImage]) -> String {
    let (mut removed, mut kept, mut gone, mut chosen) = (0, 0, 0, 0);
    for image in loaded {
        *match &image.removal {
            Some(ImageRemoval::Removed) => &mut removed,
            Some(ImageRemoval::Kept { .. }) => &mut kept,
            Some(ImageRemoval::Absent) => &mut gone,
            None => &mut chosen,
        } += 1;
    }
    let said = [
        (removed, "removed"),
        (kept, "in use and not removed"),
        (gone, "gone already"),
        (chosen, "would be removed, unless in use"),
    ];
    let said = said.into_iter().filter(|(number, _)| *number > 0);
    said.map(|(number, what)| format!("{} {what}", counted(number, "image", "images"))).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_stays_is_not_counted_as_removed() {
        let image = |removal| PrunedImage {
            config_digest: crate::digest::Digest::of(b"x"),
            names: Vec::new(),
            size_bytes: 1,
            removal,
        };
        let kept = || Some(ImageRemoval::Kept { reason: "a container uses it".to_owned() });
        assert_eq!(removals(&[image(kept()), image(kept())]), "2 images in use and not removed");
        let mixed = [Some(ImageRemoval::Removed), kept(), Some(ImageRemoval::Absent)].map(image);
        assert_eq!(removals(&mixed), "1 image removed, 1 image in use and not removed, 1 image gone already");
        assert_eq!(removals(&[image(None)]), "1 image would be removed, unless in use");
    }
}
