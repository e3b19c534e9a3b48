//! `workspace`: what agents get of tasks, and the predictions that they leave.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::bundle::WorkspaceBundle;
use super::interrupts::block_on;
use super::selector::SelectorArguments;
use super::stdout;
use crate::application::bundle::unpack;
use crate::application::{Context, agents};
use crate::error::CommandError;
use crate::output::{OutputFormat, counted};

/// Arguments of `workspace`.
#[derive(Debug, Args)]
pub(super) struct WorkspaceArguments {
    #[command(flatten)]
    selector: SelectorArguments,
    #[command(flatten)]
    bundle: WorkspaceBundle,
    /// Write each task's workspace to DIR/<task id>
    #[arg(short, long, value_name = "DIR", required_unless_present = "collect")]
    output: Option<PathBuf>,
    /// Print the prediction that an agent left in the workspace DIR of the one selected task
    #[arg(long, value_name = "DIR", conflicts_with = "output")]
    collect: Option<PathBuf>,
    /// The model's name in the prediction
    #[arg(long, value_name = "NAME", requires = "collect")]
    model: Option<String>,
    /// How results are written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, conflicts_with = "collect")]
    format: OutputFormat,
}

pub(super) fn run(arguments: &WorkspaceArguments, context: &Context) -> Result<(), CommandError> {
    let selector = arguments.selector.resolve()?;
    if let Some(workspace) = &arguments.collect {
        let (task, collected) = block_on(context, agents::collect_one(&selector, workspace.clone(), context))?;
        for ignored in &collected.ignored {
            context.events.message(format!("ignored: {ignored}"));
        }
        if let Some(reason) = collected.incomplete {
            context.events.warning(format!("other changed files are not all listed: {reason}"));
        }
        let mut prediction = json!({ "instance_id": task.id });
        if let Some(model) = &arguments.model {
            prediction["model_name_or_path"] = model.as_str().into();
        }
        match collected.text {
            Some(text) => prediction["model_file"] = text.into(),
            None => {
                context.events.warning(format!("{} has no target file `{}`", task.id, task.test_file));
                prediction["model_patch"] = "".into();
            }
        }
        return stdout::json(&prediction);
    }
    let Some(output) = &arguments.output else { return Ok(()) };
    let written = match arguments.bundle.request(&selector) {
        Some(request) => block_on(context, unpack::write(&request, output, context))?,
        None => block_on(context, agents::write(&selector, output, context))?,
    };
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
        OutputFormat::Json => stdout::json(&json!({ "schema": 1, "workspaces": written.len() })),
        OutputFormat::Text => stdout::line(&counted(written.len(), "workspace", "workspaces")),
    }
}
