//! `workspace`: what agents get of tasks, and the predictions that they leave.

use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use fs_err::os::unix::fs::OpenOptionsExt as _;
use serde_json::{Value, json};

use super::bundle::WorkspaceBundle;
use super::interrupts::block_on;
use super::selector::SelectorArguments;
use super::stdout;
use super::terminal::{self, Terminal};
use crate::agent::collection::Target;
use crate::application::bundle::{load, unpack};
use crate::application::shell::{self, MOST_SCRIPT_BYTES, Origin, Output, Session, ShellError};
use crate::application::{Context, Partial, agents};
use crate::error::CommandError;
use crate::output::{OutputFormat, counted, json_line};
use crate::task::selector::Selector;

/// Arguments of `workspace`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("kept").args(["collect", "save"])))]
pub(super) struct WorkspaceArguments {
    #[command(flatten)]
    selector: SelectorArguments,
    #[command(flatten)]
    bundle: WorkspaceBundle,
    /// Write each task's workspace to DIR/<task id>
    #[arg(short, long, value_name = "DIR", required_unless_present_any = ["collect", "shell", "load"])]
    output: Option<PathBuf>,
    /// Load an image for each task into the engine, the image for agents with the workspace at /work, and print its name
    #[arg(long, conflicts_with_all = ["output", "shell", "collect"])]
    load: bool,
    /// Open a shell on the one selected task, in a container without a network; a script on stdin is run instead
    #[arg(long, conflicts_with_all = ["output"])]
    shell: bool,
    /// Append the prediction that the shell leaves to FILE
    #[arg(long, value_name = "FILE", requires = "shell")]
    save: Option<PathBuf>,
    /// Print the prediction that an agent left in the workspace DIR of the one selected task
    #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "shell"])]
    collect: Option<PathBuf>,
    /// The model's name in the prediction
    #[arg(long, value_name = "NAME", requires = "kept")]
    model: Option<String>,
    /// How results are written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, conflicts_with_all = ["collect", "shell"])]
    format: OutputFormat,
}

pub(super) fn run(arguments: &WorkspaceArguments, context: &Context) -> Result<(), CommandError> {
    let selector = arguments.selector.resolve()?;
    if let Some(workspace) = &arguments.collect {
        let (target, collected) = match arguments.bundle.request(&selector) {
            Some(request) => block_on(context, unpack::collect_one(&request, workspace.clone(), context))?,
            None => block_on(context, agents::collect_one(&selector, workspace.clone(), context))?,
        };
        for ignored in &collected.ignored {
            context.events.message(format!("ignored: {ignored}"));
        }
        if let Some(reason) = collected.incomplete {
            context.events.warning(format!("other changed files are not all listed: {reason}"));
        }
        return stdout::json(&prediction(&target, arguments.model.as_deref(), collected.text, context));
    }
    if arguments.shell {
        return open_shell(arguments, &selector, context);
    }
    if arguments.load {
        let loaded = match arguments.bundle.request(&selector) {
            Some(request) => block_on(context, load::load(&request, context))?,
            None => block_on(context, agents::load(&selector, context))?,
        };
        for loaded in loaded.results {
            match arguments.format {
                OutputFormat::Json => stdout::json(&loaded)?,
                OutputFormat::Text => stdout::line(&loaded.name)?,
            }
        }
        return loaded.verdict;
    }
    let Some(output) = &arguments.output else { return Ok(()) };
    let written = match arguments.bundle.request(&selector) {
        Some(request) => block_on(context, unpack::write(&request, output, context))?,
        None => block_on(context, agents::write(&selector, output, context))?,
    };
    let Some(Partial { results: written, verdict }) = written else { return Ok(()) };
    for workspace in &written {
        match arguments.format {
            OutputFormat::Json => stdout::json(workspace)?,
            OutputFormat::Text => stdout::line(&workspace.path.display().to_string())?,
        }
        if !workspace.lacking.is_empty() {
            let lacking = counted(workspace.lacking.len(), "file", "files");
            context.events.warning(format!("{} lacks {lacking} of the revision", workspace.task_id));
        }
    }
    match arguments.format {
        OutputFormat::Json => stdout::json(&json!({ "schema": 1, "workspaces": written.len() }))?,
        OutputFormat::Text => stdout::line(&counted(written.len(), "workspace", "workspaces"))?,
    }
    verdict
}

/// Returns the prediction of a target file's text, empty without one.
fn prediction(target: &Target, model: Option<&str>, text: Option<String>, context: &Context) -> Value {
    let mut prediction = json!({ "instance_id": target.task });
    if let Some(model) = model {
        prediction["model_name_or_path"] = model.into();
    }
    match text {
        Some(text) => prediction["model_file"] = text.into(),
        None => {
            context.events.warning(format!("{} has no target file `{}`", target.task, target.file));
            prediction["model_patch"] = "".into();
        }
    }
    prediction
}

fn open_shell(arguments: &WorkspaceArguments, selector: &Selector, context: &Context) -> Result<(), CommandError> {
    if context.options.dry_run {
        return Err(CommandError::Usage {
            message: "what a shell would do can't be told before it is open".to_owned(),
            hint: "leave out `--shell` or `--dry-run`".to_owned(),
        });
    }
    // The file is there before the work begins, so that a shell's work is not lost for want of a place.
    let mut file = arguments.save.as_deref().map(|path| appendable(path, context)).transpose()?;
    let terminal = Terminal::find().map_err(ShellError::Terminal)?;
    let session = match &terminal {
        Some(terminal) => Session::Terminal {
            size: terminal::size(),
            kind: std::env::var("TERM").unwrap_or_default(),
            begin: Box::new(terminal.take_over()),
        },
        None if io::stdin().is_terminal() => {
            return Err(ShellError::Terminal(io::Error::other("stdout is something else")).into());
        }
        None => {
            let mut script = String::new();
            let read = io::stdin().take(MOST_SCRIPT_BYTES as u64 + 1).read_to_string(&mut script);
            read.map_err(ShellError::Terminal)?;
            Session::Script(script)
        }
    };
    let write = |output, bytes: &[u8]| match output {
        Output::Standard => {
            let mut stdout = io::stdout().lock();
            stdout.write_all(bytes).and_then(|()| stdout.flush())
        }
        Output::Error => io::stderr().lock().write_all(bytes),
    };
    let is_script = terminal.is_none();
    let request = arguments.bundle.request(selector);
    let origin = request.as_ref().map_or(Origin::Selected(selector), Origin::Bundle);
    let ended = block_on(context, shell::open(origin, session, context, write));
    drop(terminal);
    let ended = ended?;
    match &mut file {
        Some((path, file)) => {
            let prediction = prediction(&ended.target, arguments.model.as_deref(), ended.text, context);
            let line = json_line(&prediction).map_err(CommandError::defect)?;
            file.write_all(line.as_bytes()).map_err(|source| ShellError::Save { path: path.clone(), source })?;
            context.events.message(format!("the prediction is in `{}`", path.display()));
        }
        None if !is_script => context.events.message("nothing is kept of this shell; `--save FILE` keeps a prediction"),
        None => {}
    }
    match ended.status {
        // What a user typed last says nothing about the session.
        status if is_script && status != 0 => {
            Err(CommandError::CheckFailed { summary: format!("the script ended with status {status}") })
        }
        _ => Ok(()),
    }
}

fn appendable(path: &Path, context: &Context) -> Result<(PathBuf, fs_err::File), CommandError> {
    let failed = |source| ShellError::Save { path: path.to_owned(), source };
    let mut options = fs_err::OpenOptions::new();
    let file = options.append(true).create(true).mode(context.umask.file_mode()).open(path).map_err(failed)?;
    Ok((path.to_owned(), file))
}
