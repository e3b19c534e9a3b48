//! `workspace --bundle`: writes the workspaces of a bundle for agents, without a mirror, the network or tasks' data.

use std::path::{Path, PathBuf};

use super::{Trust, open};
use crate::agent::{Written, check_free, unpack};
use crate::application::Context;
use crate::application::agents::tell_output;
use crate::application::workbench::blocking;
use crate::bundle::{Audience, Description};
use crate::error::CommandError;
use crate::task::selector::{Selector, SelectorError};

/// A bundle for agents.
#[derive(Clone, Debug)]
pub struct UnpackRequest {
    /// A directory or a tar archive.
    pub bundle: PathBuf,
    /// Whose bundles are accepted.
    pub trust: Trust,
    /// The tasks of the bundle.
    pub selector: Selector,
}

/// Writes the workspace of each selected task to `output/<task id>`; `None` after a dry run, which only tells what would be
/// written.
///
/// # Errors
/// [`BundleError`](crate::bundle::BundleError), also for a bundle for scorers; [`AgentError`](crate::agent::AgentError);
/// [`CommandError::Usage`] for a selection by date, which a bundle for agents does not tell; an interrupt. Nothing is written if
/// a workspace's place is taken.
pub async fn write(
    request: &UnpackRequest,
    output: &Path,
    context: &Context,
) -> Result<Option<Vec<Written>>, CommandError> {
    let opened = open(&request.bundle, &request.trust, context)?;
    let Description::Agent(description) = &opened.description else {
        return Err(opened.not_for(Audience::Agent).into());
    };
    let selector = &request.selector;
    if selector.since.is_some() || selector.until.is_some() {
        return Err(CommandError::Usage {
            message: "a bundle for agents does not tell the dates of its tasks".to_owned(),
            hint: "name tasks, or take them by `--track` and `--limit`".to_owned(),
        });
    }
    let all: Vec<_> = description.workspaces().collect();
    let named = selector.named(&all, |(repository, task, _)| (*repository, *task))?;
    let of_track = named.into_iter().filter(|(_, _, packed)| selector.track.is_none_or(|track| track == packed.track));
    let chosen: Vec<_> = of_track.take(selector.limit.unwrap_or(usize::MAX)).collect();
    if chosen.is_empty() {
        return Err(SelectorError::NothingLeft.into());
    }
    for (_, task, _) in &chosen {
        check_free(task, &output.join(task.as_str()))?;
    }
    if context.options.dry_run {
        tell_output(chosen.len(), output, context);
        return Ok(None);
    }
    context.umask.create_directory(output).map_err(crate::agent::AgentError::Io)?;
    let mut written = Vec::new();
    for (_, task, packed) in chosen {
        // Nothing of an archive is unpacked before its bytes were compared with the digest.
        opened.layout.check_blob(&packed.archive, packed.size)?;
        let archive = opened.layout.open_blob(&packed.archive, packed.size)?;
        let (task, packed, path) = ((*task).clone(), (*packed).clone(), output.join(task.as_str()));
        let work = blocking(move || {
            unpack(&task, &packed.commit, archive, &path)?;
            Ok(Written {
                task_id: task,
                path,
                files: packed.files,
                bytes: packed.bytes,
                commit: packed.commit,
                lacking: packed.lacking,
                only_named: packed.only_named,
            })
        });
        written.push(context.until_interrupted(work).await?);
    }
    Ok(Some(written))
}
