//! `images`: lists, shows, compares, exports and prunes built images.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use fs_err as fs;
use serde::Serialize;
use serde_json::{Value, json};

use super::interrupts::block_on;
use super::stdout;
use crate::application::Context;
use crate::application::workbench::Workbench;
use crate::artifact::store::Store;
use crate::digest::Digest;
use crate::engine::{EngineError, ImageRemoval};
use crate::error::CommandError;
use crate::execution::container::images::{PrunedImage, prune_loaded, superfluous};
use crate::image::recipe::RECIPE_VERSION;
use crate::image::{
    BuiltImage, Catalog, Change, Component, Difference, Image, ImageBuilder, ImageError, Layer, Used, components,
    difference, export_context, layer_title, tag, write_image_archive,
};
use crate::lock::{LayerKind, LockFileError};
use crate::manifest::ManifestError;
use crate::output::{OutputFormat, Table, counted};
use crate::task::selector::repository_fits;

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
        #[arg(value_name = "NAME")]
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
        #[command(flatten)]
        target: ExportTarget,
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
    let workbench = Workbench::open(context)?;
    let catalog = Catalog::open(&workbench.data_dir)?;
    match &arguments.command {
        ImagesCommand::List { names, format } => list(&workbench, &catalog, names, *format),
        ImagesCommand::Show { name, licenses, format } => {
            let built = find(&catalog, name)?;
            match licenses {
                true => show_licenses(&components(&built.image, catalog.store())?, *format),
                false => show(&workbench, &catalog, &built, *format),
            }
        }
        ImagesCommand::Diff { name, other, format } => diff(&catalog, name, other.as_deref(), *format),
        ImagesCommand::Export { name, target } => {
            let built = find(&catalog, name)?;
            if context.options.dry_run {
                let bytes: u64 = built.image.layers.iter().map(|layer| layer.size).sum();
                let (repository, size) = (&built.repository, megabytes(bytes));
                context.events.message(format!("would write the image of {repository}, {size} MB"));
                return Ok(());
            }
            match (&target.output, &target.context) {
                (_, Some(directory)) => {
                    let exporting = |source| ImageError::Io { doing: "exporting a build context".to_owned(), source };
                    context.umask.create_directory(directory).map_err(exporting)?;
                    Ok(export_context(&built.image, built.jdk, catalog.store(), directory)?)
                }
                (Some(file), None) => export(&built, catalog.store(), file, context),
                (None, None) => Err(CommandError::Usage {
                    message: "nothing says where the image goes".to_owned(),
                    hint: "name a file with `--output` or a directory with `--context`".to_owned(),
                }),
            }
        }
        ImagesCommand::Prune { format } => prune(&workbench, *format),
    }
}

fn select(catalog: &Catalog, names: &[String]) -> Result<Vec<BuiltImage>, CommandError> {
    let all = catalog.all()?;
    for name in names {
        if !all.iter().any(|built| repository_fits(name, &built.repository)) {
            return Err(CommandError::Usage {
                message: format!("no image was built for `{name}`"),
                hint: "`testevo-sandbox images list` shows what was built, `build-images` builds".to_owned(),
            });
        }
    }
    let wanted =
        |built: &BuiltImage| names.is_empty() || names.iter().any(|name| repository_fits(name, &built.repository));
    Ok(all.into_iter().filter(wanted).collect())
}

fn find(catalog: &Catalog, name: &str) -> Result<BuiltImage, CommandError> {
    let mut found = select(catalog, &[name.to_owned()])?;
    match (found.pop(), found.is_empty()) {
        (Some(built), true) => Ok(built),
        _ => Err(CommandError::Usage {
            message: format!("`{name}` fits more than one repository"),
            hint: "name it as owner/name".to_owned(),
        }),
    }
}

fn list(
    workbench: &Workbench<'_>,
    catalog: &Catalog,
    names: &[String],
    format: OutputFormat,
) -> Result<(), CommandError> {
    let images = select(catalog, names)?;
    let states = images.iter().map(|built| State::of(workbench, catalog, built)).collect::<Result<Vec<_>, _>>()?;
    match format {
        OutputFormat::Json => {
            let values: Vec<Value> =
                images.iter().zip(states).map(|(built, state)| description(built, state)).collect();
            stdout::json(&values)
        }
        OutputFormat::Text => {
            let mut table = Table::new(["repository", "jdk", "image", "MB", "own MB", "state"]);
            for (built, state) in images.iter().zip(states) {
                let layers = &built.image.layers;
                let own = layers.iter().filter(|layer| layer.kind == LayerKind::MavenCache);
                table.row([
                    built.repository.to_string(),
                    built.jdk.to_string(),
                    short(&built.image),
                    megabytes(layers.iter().map(|layer| layer.size).sum()),
                    megabytes(own.map(|layer| layer.size).sum()),
                    state.name().to_owned(),
                ]);
            }
            stdout::table(&table)?;
            // Shared layers are stored once, so the images' sizes do not add up.
            let mut stored: Vec<&Layer> = images.iter().flat_map(|built| &built.image.layers).collect();
            stored.sort_by_key(|layer| layer.digest);
            stored.dedup_by_key(|layer| layer.digest);
            let bytes = stored.iter().map(|layer| layer.size).sum();
            let (images, layers) = (counted(images.len(), "image", "images"), counted(stored.len(), "layer", "layers"));
            stdout::line(&format!("{images} in {layers}, {} MB stored", megabytes(bytes)))
        }
    }
}

/// What can be said of an image beside its content.
#[derive(Clone, Copy)]
struct State {
    /// All its blobs are there.
    complete: bool,
    /// It was made from the present locks by this version of the recipe.
    up_to_date: bool,
    /// It was shown to work for all build sets of its lock.
    proven: bool,
}

impl State {
    fn of(workbench: &Workbench<'_>, catalog: &Catalog, built: &BuiltImage) -> Result<Self, CommandError> {
        let up_to_date = match workbench.lock_digests(&built.repository, built.jdk) {
            Ok(locks) => {
                // Of a repository that is not imported any more nothing says otherwise.
                let is_for = match workbench.manifest(&built.repository) {
                    Ok(manifest) => built.is_for(&manifest),
                    Err(error) if let Some(ManifestError::Missing { .. }) = error.failure() => true,
                    Err(error) => return Err(error),
                };
                is_for && built.locks == locks && built.recipe_version == RECIPE_VERSION
            }
            Err(error) if let Some(LockFileError::Missing { .. }) = error.failure() => false,
            Err(error) => return Err(error),
        };
        Ok(Self { complete: catalog.is_complete(&built.image), up_to_date, proven: workbench.is_proven(built)? })
    }

    fn name(self) -> &'static str {
        match self {
            Self { complete: false, .. } => "layers missing",
            Self { up_to_date: false, .. } => "outdated",
            Self { proven: false, .. } => "not proven",
            Self { proven: true, .. } => "proven",
        }
    }
}

fn description(built: &BuiltImage, state: State) -> Value {
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

fn show(
    workbench: &Workbench<'_>,
    catalog: &Catalog,
    built: &BuiltImage,
    format: OutputFormat,
) -> Result<(), CommandError> {
    let state = State::of(workbench, catalog, built)?;
    if format == OutputFormat::Json {
        return stdout::json(&description(built, state));
    }
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
    let mut table = Table::new(["layer", "MB", "unpacked MB", "diff id"]);
    for layer in &built.image.layers {
        let (size, unpacked) = (megabytes(layer.size), megabytes(layer.uncompressed_size));
        table.row([layer_title(layer.kind), &size, &unpacked, &layer.diff_id.to_string()]);
    }
    stdout::table(&table)
}

fn show_licenses(found: &[Component], format: OutputFormat) -> Result<(), CommandError> {
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

fn diff(catalog: &Catalog, name: &str, other: Option<&str>, format: OutputFormat) -> Result<(), CommandError> {
    let built = find(catalog, name)?;
    let (before, after) = match other {
        Some(other) => (built.image, find(catalog, other)?.image),
        None => match built.previous {
            Some(previous) => (previous, built.image),
            None => {
                return Err(CommandError::Usage {
                    message: format!("{} has had one image only", built.repository),
                    hint: "name another repository to compare with".to_owned(),
                });
            }
        },
    };
    let found = difference(&before, &after, catalog.store())?;
    match format {
        OutputFormat::Json => stdout::json(&json!({
            "before": before.config_digest, "after": after.config_digest, "difference": found,
        }))?,
        OutputFormat::Text => write_difference(&before, &after, &found)?,
    }
    if found.is_empty() {
        return Ok(());
    }
    Err(CommandError::CheckFailed { summary: format!("{} and {} differ", short(&before), short(&after)) })
}

fn write_difference(before: &Image, after: &Image, found: &Difference) -> Result<(), CommandError> {
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

fn export(built: &BuiltImage, store: &Store, file: &Path, context: &Context) -> Result<(), CommandError> {
    let tags = [tag(&built.image, Some(&built.repository), built.jdk)];
    if file == Path::new("-") {
        let stdout = io::stdout();
        if stdout.is_terminal() {
            return Err(CommandError::Usage {
                message: "an archive is nothing for a terminal".to_owned(),
                hint: "redirect stdout or name a file with `--output`".to_owned(),
            });
        }
        return Ok(write_image_archive(&built.image, store, &tags, &mut stdout.lock())?);
    }
    let unfinished = match file.file_name() {
        Some(name) => file.with_file_name(format!(".{}.unfinished", name.to_string_lossy())),
        None => {
            return Err(CommandError::Usage {
                message: format!("`{}` is no file name", file.display()),
                hint: "name a file with `--output`".to_owned(),
            });
        }
    };
    let io = |source| ImageError::Io { doing: "exporting an image".to_owned(), source };
    let write = || -> Result<(), ImageError> {
        let mut out = io::BufWriter::with_capacity(1 << 20, context.umask.create_file(&unfinished).map_err(io)?);
        write_image_archive(&built.image, store, &tags, &mut out)?;
        out.flush().map_err(io)?;
        fs::rename(&unfinished, file).map_err(io)
    };
    write().inspect_err(|_| {
        // The write's error is the one to tell.
        let _ = fs::remove_file(&unfinished);
    })?;
    Ok(())
}

fn prune(workbench: &Workbench<'_>, format: OutputFormat) -> Result<(), CommandError> {
    let (context, dry_run) = (workbench.context, workbench.context.options.dry_run);
    // As a builder, so that no layer goes that another process is just about to name.
    let waiting = |owner: &str| context.events.message(format!("waiting for {owner}, which builds images"));
    let builder = ImageBuilder::new(context.data_dir()?, waiting)?;
    let toolchain = match workbench.toolchain() {
        Ok(toolchain) => Some(toolchain),
        Err(error) if let Some(LockFileError::Missing { .. }) = error.failure() => None,
        Err(error) => return Err(error),
    };
    let used = Used::of(builder.catalog(), toolchain.as_ref())?;
    let loaded = match superfluous(builder.catalog(), &used)?.is_empty() {
        true => Vec::new(),
        false => block_on(context, prune_engine(workbench, builder.catalog(), &used, dry_run))?,
    };
    let unpacked = prune_unpacked(workbench, &used, dry_run)?;
    let pruned = builder.catalog().prune(&used, dry_run)?;
    match format {
        OutputFormat::Json => stdout::json(&json!({
            "schema": 1, "layers": pruned.layers, "bytes": pruned.bytes, "loaded": loaded,
            "unpacked": unpacked, "dry_run": dry_run,
        })),
        OutputFormat::Text => {
            for layer in &pruned.layers {
                stdout::line(&format!("{} {}", layer_title(layer.kind), layer.digest))?;
            }
            for image in &loaded {
                let kept = match &image.removal {
                    Some(ImageRemoval::Kept { reason }) => format!(" stays: {reason}"),
                    _ => String::new(),
                };
                let names = image.names.join(", ");
                stdout::line(&format!("loaded image {} ({names}){kept}", image.config_digest))?;
            }
            let layers = counted(pruned.layers.len(), "layer", "layers");
            let verb = if dry_run { "would be removed" } else { "removed" };
            stdout::line(&format!("{layers} {verb}, {} MB", megabytes(pruned.bytes)))?;
            if !unpacked.is_empty() {
                let layers = counted(unpacked.len(), "unpacked layer", "unpacked layers");
                let bytes = unpacked.iter().map(|layer| layer.bytes).sum();
                stdout::line(&format!("{layers} {verb}, {} MB", megabytes(bytes)))?;
            }
            let removed = loaded.iter().filter(|image| !matches!(image.removal, Some(ImageRemoval::Kept { .. })));
            match removed.count() {
                0 => Ok(()),
                images => {
                    let images = counted(images, "loaded image", "loaded images");
                    stdout::line(&format!("{images} {verb} from the engine"))
                }
            }
        }
    }
}

/// An unpacked layer of the built-in engine that is not in use.
#[derive(Debug, Serialize)]
struct Unpacked {
    diff_id: Digest,
    bytes: u64,
}

/// Removes unpacked layers that are not in use.
fn prune_unpacked(workbench: &Workbench<'_>, used: &Used, dry_run: bool) -> Result<Vec<Unpacked>, CommandError> {
    if !workbench.store.root().join("unpacked").exists() {
        return Ok(Vec::new());
    }
    match workbench.native()?.prune(&used.diff_ids(), dry_run)? {
        Some(pruned) => Ok(pruned.into_iter().map(|(diff_id, bytes)| Unpacked { diff_id, bytes }).collect()),
        None => {
            workbench.context.events.warning("unpacked layers stay: another process runs containers from them");
            Ok(Vec::new())
        }
    }
}

/// Removes superfluous images from the engine; without one that answers they stay for a later time.
async fn prune_engine(
    workbench: &Workbench<'_>,
    catalog: &Catalog,
    used: &Used,
    dry_run: bool,
) -> Result<Vec<PrunedImage>, CommandError> {
    match workbench.engine().await {
        Ok(engine) => {
            let pruned = prune_loaded(engine.as_ref(), catalog, used, dry_run).await;
            engine.close().await?;
            Ok(pruned?)
        }
        Err(error) if let Some(EngineError::Unreachable { .. }) = error.failure() => {
            workbench.context.events.warning(format!("images that were loaded stay: {error}"));
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}

fn short(image: &Image) -> String {
    image.config_digest.hex()[..12].to_owned()
}

fn megabytes(bytes: u64) -> String {
    let tenths = (bytes + 50_000) / 100_000;
    format!("{}.{}", tenths / 10, tenths % 10)
}
