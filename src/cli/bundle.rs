//! `bundle`: everything that scoring some tasks needs, or that agents get, in one directory or archive.

use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::audit;
use super::interrupts::block_on;
use super::selector::SelectorArguments;
use super::stdout;
use crate::application::bundle::Trust;
use crate::application::bundle::create::{CreateRequest, create};
use crate::application::bundle::import::{ImportRequest, import};
use crate::application::bundle::registry::{Moved, PullRequest, pull, push};
use crate::application::bundle::unpack::UnpackRequest;
use crate::application::bundle::verify::{Verified, VerifyRequest, verify};
use crate::application::bundle::{Created, Imported};
use crate::application::{Context, Options};
use crate::bundle::Audience;
use crate::error::CommandError;
use crate::output::{OutputFormat, counted};
use crate::task::TaskId;
use crate::task::file::load_all;
use crate::task::selector::Selector;

/// Arguments of `bundle`.
#[derive(Debug, Args)]
pub(super) struct BundleArguments {
    #[command(subcommand)]
    command: BundleCommand,
}

#[derive(Debug, Subcommand)]
enum BundleCommand {
    /// Write a bundle of tasks whose images are built
    Create {
        #[command(flatten)]
        selector: SelectorArguments,
        /// Whom the bundle is for
        #[arg(long, value_enum, value_name = "AUDIENCE", default_value = "scorer")]
        audience: AudienceChoice,
        /// New directory to write, or an archive if the name ends in .tar
        #[arg(long, short, value_name = "PATH")]
        output: PathBuf,
        /// Leave out what this bundle has; whoever imports the new one must have imported this one
        #[arg(long, value_name = "BUNDLE")]
        base: Option<PathBuf>,
        /// Add a finished run of these tasks, with its kept results: an id, `latest`, or a path, which has a slash
        #[arg(long, value_name = "RUN")]
        run: Vec<String>,
        /// Sign with this key: `ssh-keygen -Y sign` gets it, so that a public key of an agent will do
        #[arg(long, value_name = "KEY")]
        sign: Option<PathBuf>,
        /// How results are written
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
        format: OutputFormat,
    },
    /// Read every byte of a bundle and check digests, signature and names; audit a bundle for agents
    Verify {
        /// Directory or archive
        #[arg(value_name = "BUNDLE")]
        bundle: PathBuf,
        #[command(flatten)]
        trust: TrustArguments,
        /// Bundles that this one was based on
        #[arg(long, value_name = "BUNDLE")]
        base: Vec<PathBuf>,
        /// How results are written
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
        format: OutputFormat,
    },
    /// Take what the data directory lacks from a bundle. Rerun an interrupted import to resume it
    Import {
        /// Directory or archive
        #[arg(value_name = "BUNDLE")]
        bundle: PathBuf,
        #[command(flatten)]
        trust: TrustArguments,
        /// Replace locks, tasks and agents' images that differ; replaced locks are kept in locks/history
        #[arg(long)]
        replace: bool,
        /// How results are written
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
        format: OutputFormat,
    },
    /// Send a bundle to an OCI registry; what the registry has is not sent again
    Push {
        /// Directory or archive
        #[arg(value_name = "BUNDLE")]
        bundle: PathBuf,
        #[command(flatten)]
        place: PlaceArguments,
        /// How results are written
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
        format: OutputFormat,
    },
    /// Fetch a bundle from an OCI registry. Rerun an interrupted pull to resume it
    Pull {
        #[command(flatten)]
        place: PlaceArguments,
        /// New directory to write
        #[arg(long, short, value_name = "DIR")]
        output: PathBuf,
        #[command(flatten)]
        trust: TrustArguments,
        /// How results are written
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
        format: OutputFormat,
    },
}

/// A place in a registry.
#[derive(Clone, Debug, Args)]
struct PlaceArguments {
    /// HOST[:PORT]/NAME:TAG, or with @sha256:… of an index instead of the tag when pulling
    #[arg(value_name = "REFERENCE")]
    reference: String,
    /// Speak to the registry without TLS, as is done to one on loopback in any case
    #[arg(long)]
    plain_http: bool,
}

/// Whom a bundle is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum AudienceChoice {
    /// Whoever scores submissions; the developers' tests are in it
    Scorer,
    /// Whoever runs agents: images, and a workspace for each task, audited
    Agent,
}

impl From<AudienceChoice> for Audience {
    fn from(choice: AudienceChoice) -> Self {
        match choice {
            AudienceChoice::Scorer => Self::Scorer,
            AudienceChoice::Agent => Self::Agent,
        }
    }
}

/// Whose bundles are accepted.
#[derive(Clone, Debug, Args)]
struct TrustArguments {
    /// Accept only signatures by these keys, a file as of OpenSSH [default: `allowed_signers` in the data directory, if
    /// it exists; else signatures are not checked]
    #[arg(long, value_name = "FILE", conflicts_with = "unsigned")]
    allowed_signers: Option<PathBuf>,
    /// Do not check the signature
    #[arg(long)]
    unsigned: bool,
}

impl TrustArguments {
    fn resolve(&self) -> Trust {
        Trust { allowed_signers: self.allowed_signers.clone(), unsigned: self.unsigned }
    }
}

/// The bundle that workspaces are taken from.
#[derive(Debug, Args)]
pub(super) struct WorkspaceBundle {
    /// Take the workspaces from this bundle for agents; tasks' data and a mirror are not needed then
    #[arg(long, value_name = "BUNDLE")]
    bundle: Option<PathBuf>,
    /// Take what the bundle lacks from this one, which it was based on
    #[arg(long, value_name = "BUNDLE", requires = "bundle")]
    base: Vec<PathBuf>,
    /// Accept only bundles that are signed by these keys, as `bundle import` does
    #[arg(long, value_name = "FILE", requires = "bundle", conflicts_with = "unsigned")]
    allowed_signers: Option<PathBuf>,
    /// Do not check the bundle's signature
    #[arg(long, requires = "bundle")]
    unsigned: bool,
}

impl WorkspaceBundle {
    /// Returns the request to unpack the bundle, if there is one.
    pub(super) fn request(&self, selector: &Selector) -> Option<UnpackRequest> {
        let bundle = self.bundle.clone()?;
        let trust = Trust { allowed_signers: self.allowed_signers.clone(), unsigned: self.unsigned };
        Some(UnpackRequest { bundle, trust, selector: selector.clone(), bases: self.base.clone() })
    }
}

/// The bundle that a command takes its tasks from.
#[derive(Debug, Args)]
pub(super) struct BundleChoice {
    /// Import this bundle first, use neither the network nor a mirror, and take its tasks where none is named
    #[arg(long, value_name = "BUNDLE")]
    bundle: Option<PathBuf>,
    /// Accept only bundles that are signed by these keys, as `bundle import` does
    #[arg(long, value_name = "FILE", requires = "bundle", conflicts_with = "unsigned")]
    allowed_signers: Option<PathBuf>,
    /// Do not check the bundle's signature
    #[arg(long, requires = "bundle")]
    unsigned: bool,
}

impl BundleChoice {
    /// Imports the bundle if there is one. Returns the context of the command then, which uses no network, and chooses
    /// the bundle's tasks if the selector names none. `Break` ends a dry run: without the import, its tasks are not there.
    pub(super) fn take(
        &self,
        selector: &mut Selector,
        context: &Context,
    ) -> Result<ControlFlow<(), Option<Context>>, CommandError> {
        let Some(bundle) = self.bundle.clone() else { return Ok(ControlFlow::Continue(None)) };
        let trust = Trust { allowed_signers: self.allowed_signers.clone(), unsigned: self.unsigned };
        let audience = Some(Audience::Scorer);
        let request = ImportRequest { bundle, trust, replace: false, audience, bases: Vec::new() };
        let imported = block_on(context, import(&request, context))?;
        context.events.message(taken(&imported, context.options.dry_run));
        if context.options.dry_run && !are_known(&imported.tasks, context)? {
            return Ok(ControlFlow::Break(()));
        }
        if selector.patterns.is_empty() && selector.task_ids.is_empty() {
            selector.task_ids = imported.tasks.iter().map(ToString::to_string).collect();
        }
        let options = Options { offline: true, git_mirror: None, ..context.options.clone() };
        Ok(ControlFlow::Continue(Some(context.with_options(options))))
    }
}

/// Tells whether the data directory has all of these tasks.
fn are_known(tasks: &[TaskId], context: &Context) -> Result<bool, CommandError> {
    let known = load_all(&context.data_dir()?.join("tasks"))?;
    Ok(tasks.iter().all(|task| known.iter().any(|known| known.id == *task)))
}

pub(super) fn run(arguments: &BundleArguments, context: &Context) -> Result<(), CommandError> {
    match &arguments.command {
        BundleCommand::Create { selector, audience, output, base, run, sign, format } => {
            let (selector, output, base, sign) = (selector.resolve()?, output.clone(), base.clone(), sign.clone());
            let audience = (*audience).into();
            let request = CreateRequest { audience, selector, output, base, runs: run.clone(), sign };
            let created = block_on(context, create(&request, context))?;
            write_created(&created.results, audience, *format, context.options.dry_run)?;
            created.verdict
        }
        BundleCommand::Verify { bundle, trust, base, format } => {
            let request = VerifyRequest { bundle: bundle.clone(), trust: trust.resolve(), bases: base.clone() };
            let verified = block_on(context, verify(&request, context))?;
            write_verified(&verified, *format)?;
            verified.verdict()
        }
        BundleCommand::Import { bundle, trust, replace, format } => {
            let (bundle, trust) = (bundle.clone(), trust.resolve());
            let request = ImportRequest { bundle, trust, replace: *replace, audience: None, bases: Vec::new() };
            let imported = block_on(context, import(&request, context))?;
            match format {
                OutputFormat::Json => stdout::json(&imported),
                OutputFormat::Text => stdout::line(&taken(&imported, context.options.dry_run)),
            }
        }
        BundleCommand::Push { bundle, place, format } => {
            let pushing = push(bundle, &place.reference, place.plain_http, context);
            let moved = block_on(context, pushing)?;
            write_moved(&moved, if context.options.dry_run { "would send" } else { "sent" }, *format)
        }
        BundleCommand::Pull { place, output, trust, format } => {
            let (reference, plain) = (place.reference.clone(), place.plain_http);
            let request = PullRequest { reference, output: output.clone(), trust: trust.resolve(), plain };
            let moved = block_on(context, pull(&request, context))?;
            write_moved(&moved, if context.options.dry_run { "would fetch" } else { "fetched" }, *format)
        }
    }
}

fn write_moved(moved: &Moved, verb: &str, format: OutputFormat) -> Result<(), CommandError> {
    if format == OutputFormat::Json {
        return stdout::json(moved);
    }
    let signed = moved.signer.as_ref().map(|signer| format!(", signed by {signer}")).unwrap_or_default();
    let (blobs, present) = (counted(moved.blobs, "blob", "blobs"), moved.present);
    stdout::line(&format!("{verb} {blobs}, {} MiB; {present} there already{signed}", moved.bytes >> 20))?;
    stdout::line(&format!("index {}", moved.index))?;
    moved.images.iter().try_for_each(|image| stdout::line(&format!("image {image}")))
}

fn taken(imported: &Imported, dry_run: bool) -> String {
    let verb = if dry_run { "would take" } else { "took" };
    let tasks = counted(imported.count, "task", "tasks");
    let blobs = counted(imported.blobs, "missing blob", "missing blobs");
    let signed = imported.signer.as_ref().map(|signer| format!(", signed by {signer}")).unwrap_or_default();
    let what = match imported.audience {
        Audience::Scorer => tasks,
        Audience::Agent => format!("the images of {tasks}"),
    };
    let runs = with_results(imported.runs, imported.results);
    format!("{verb} {what}{runs} and {blobs}, {} MiB{signed}", imported.bytes >> 20)
}

/// Returns how many runs and kept results there are, after a comma; nothing if there are none.
fn with_results(runs: usize, results: usize) -> String {
    match (runs, results) {
        (0, 0) => String::new(),
        (_, 0) => format!(", {}", counted(runs, "run", "runs")),
        _ => format!(", {} with {}", counted(runs, "run", "runs"), counted(results, "kept result", "kept results")),
    }
}

fn write_created(
    created: &Created,
    audience: Audience,
    format: OutputFormat,
    dry_run: bool,
) -> Result<(), CommandError> {
    match format {
        OutputFormat::Json => stdout::json(created),
        OutputFormat::Text if !created.refused.is_empty() => {
            created.refused.iter().try_for_each(|audited| stdout::lines(&audit::description(audited)))
        }
        OutputFormat::Text => {
            let verb = if dry_run { "would write" } else { "wrote" };
            let (tasks, blobs) = (counted(created.tasks, "task", "tasks"), counted(created.blobs, "blob", "blobs"));
            let prepared = match audience {
                Audience::Scorer => counted(created.prepared, "prepared revision", "prepared revisions"),
                Audience::Agent => "each with its workspace".to_owned(),
            };
            let base = match created.in_base {
                0 => String::new(),
                count => format!("; {} in the base", counted(count, "blob is", "blobs are")),
            };
            let runs = with_results(created.runs, created.results);
            stdout::line(&format!("{verb} {tasks}, {prepared}{runs}, {blobs}, {} MiB{base}", created.bytes >> 20))
        }
    }
}

fn write_verified(verified: &Verified, format: OutputFormat) -> Result<(), CommandError> {
    if format == OutputFormat::Json {
        return stdout::json(verified);
    }
    for damaged in &verified.damaged {
        stdout::line(&format!("damaged: {damaged}"))?;
    }
    for missing in &verified.missing {
        stdout::line(&format!("missing: {missing}"))?;
    }
    for stranger in &verified.strangers {
        stdout::line(&format!("unknown: {stranger}"))?;
    }
    for leak in &verified.leaks {
        stdout::line(&format!("leak: {leak}"))?;
    }
    for unseen in &verified.unseen {
        stdout::line(&format!("not looked at: {unseen}"))?;
    }
    let (tasks, sound) = (counted(verified.tasks, "task", "tasks"), counted(verified.sound, "blob", "blobs"));
    let signed = match &verified.signer {
        Some(signer) => format!("signed by {signer}"),
        None => "signature not checked".to_owned(),
    };
    let base = match verified.in_base {
        0 => String::new(),
        count => format!(", {} in its base", counted(count, "blob", "blobs")),
    };
    let bytes = verified.bytes >> 20;
    match &verified.not_audited {
        Some(reason) => stdout::line(&format!("not audited: {reason}"))?,
        None if verified.audited => stdout::line("audited for the answers of its tasks")?,
        None => {}
    }
    stdout::line(&format!("for {}s: {tasks}, {sound} sound, {bytes} MiB read{base}; {signed}", verified.audience))
}
