//! `workspace --bundle`: writes the workspaces of a bundle for agents and collects predictions from them, without a mirror, the
//! network or tasks' data.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::{Opened, Trust, open};
use crate::agent::collection::{Collected, Target, collect};
use crate::agent::{AgentError, PROJECT, TaskFile, Written, check_free, unpack};
use crate::application::Context;
use crate::application::agents::{one, tell_output};
use crate::application::workbench::blocking;
use crate::bundle::agents::PackedWorkspace;
use crate::bundle::{Audience, BundleError, Description};
use crate::error::CommandError;
use crate::execution::container::temporary::Spool;
use crate::task::selector::{Selector, SelectorError};
use crate::task::{RepositoryName, Revision, TaskId};
use crate::workspace::Repository;

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
/// [`BundleError`], also for a bundle for scorers; [`AgentError`];
/// [`CommandError::Usage`] for a selection by date, which a bundle for agents does not tell; an interrupt. Nothing is written if
/// a workspace's place is taken.
pub async fn write(
    request: &UnpackRequest,
    output: &Path,
    context: &Context,
) -> Result<Option<Vec<Written>>, CommandError> {
    let opened = open(&request.bundle, &request.trust, context)?;
    let chosen = chosen(&opened, &request.selector)?;
    for (_, task, _) in &chosen {
        check_free(task, &output.join(task.as_str()))?;
    }
    if context.options.dry_run {
        tell_output(chosen.len(), output, context);
        return Ok(None);
    }
    context.umask.create_directory(output).map_err(AgentError::Io)?;
    let mut written = Vec::new();
    for (repository, task, packed) in chosen {
        let archive = archive_of(&opened, &packed)?;
        let path = output.join(task.as_str());
        let work = blocking(move || {
            unpack((&task, &repository, packed.track), &packed.commit, archive, &path)?;
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

/// Collects the prediction that an agent left in the workspace of the one selected task. Other changes are found by comparing with
/// the bundle's own archive of it.
///
/// # Errors
/// As [`write()`]; [`CommandError::Usage`] for several tasks; [`AgentError`] of what the agent left.
pub async fn collect_one(
    request: &UnpackRequest,
    workspace: PathBuf,
    context: &Context,
) -> Result<(Target, Collected), CommandError> {
    let spool = Spool::create(&context.data_dir()?.temporary()).map_err(AgentError::Io)?;
    let start = spool.path().join("workspace");
    let (facts, commit) = unpack_one(request, &start, context).await?;
    let work = blocking(move || {
        let repository = Repository::open(facts.repository.clone(), &start.join(PROJECT))?;
        let target = Target::from(facts);
        let collected = collect(&target, &workspace, &repository.tree(&commit)?)?;
        Ok((target, collected))
    });
    context.until_interrupted(work).await
}

/// Writes the workspace of the one selected task to a new directory. Returns what its `task.json` says, and its commit.
///
/// # Errors
/// As [`write()`]; [`CommandError::Usage`] for several tasks.
pub(in crate::application) async fn unpack_one(
    request: &UnpackRequest,
    output: &Path,
    context: &Context,
) -> Result<(TaskFile, Revision), CommandError> {
    let opened = open(&request.bundle, &request.trust, context)?;
    let (repository, task, packed) = one(chosen(&opened, &request.selector)?)?;
    let (archive, output) = (archive_of(&opened, &packed)?, output.to_owned());
    let work = blocking(move || {
        let facts = unpack((&task, &repository, packed.track), &packed.commit, archive, &output)?;
        let reason = || format!("`{}` is no commit", crate::output::escape(&packed.commit));
        let commit = packed.commit.parse().map_err(|_| AgentError::Archive { task, reason: reason() })?;
        Ok((facts, commit))
    });
    context.until_interrupted(work).await
}

/// Opens the archive of a task's workspace. Nothing of it is unpacked before its bytes were compared with the digest.
fn archive_of(opened: &Opened, packed: &PackedWorkspace) -> Result<impl Read + Send + use<>, BundleError> {
    opened.layout.check_blob(&packed.archive, packed.size)?;
    opened.layout.open_blob(&packed.archive, packed.size)
}

/// Returns the selected workspaces of a bundle for agents.
fn chosen(
    opened: &Opened,
    selector: &Selector,
) -> Result<Vec<(RepositoryName, TaskId, PackedWorkspace)>, CommandError> {
    let Description::Agent(description) = &opened.description else {
        return Err(opened.not_for(Audience::Agent).into());
    };
    if selector.since.is_some() || selector.until.is_some() {
        return Err(CommandError::Usage {
            message: "a bundle for agents does not tell the dates of its tasks".to_owned(),
            hint: "name tasks, or take them by `--track` and `--limit`".to_owned(),
        });
    }
    let all: Vec<_> = description.workspaces().collect();
    let named = selector.named(&all, |(repository, task, _)| (*repository, *task))?;
    let of_track = named.into_iter().filter(|(_, _, packed)| selector.track.is_none_or(|track| track == packed.track));
    let chosen = of_track.take(selector.limit.unwrap_or(usize::MAX));
    let chosen: Vec<_> =
        chosen.map(|(name, task, packed)| ((*name).clone(), (*task).clone(), (*packed).clone())).collect();
    if chosen.is_empty() {
        return Err(SelectorError::NothingLeft.into());
    }
    Ok(chosen)
}
