//! `workspace --bundle`: writes the workspaces of a bundle for agents and collects predictions from them, without a mirror, the
//! network or tasks' data.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::import::ImportRequest;
use super::{Opened, Trust, open_with};
use crate::agent::collection::{Collected, Target, collect};
use crate::agent::{AgentError, PROJECT, TaskFile, Written, check_free, unpack};
use crate::application::Context;
use crate::application::agents::{one, tell_output};
use crate::application::failures::Partial;
use crate::application::workbench::blocking;
use crate::bundle::agents::PackedWorkspace;
use crate::bundle::{Audience, BundleError, Description, Layout};
use crate::error::CommandError;
use crate::execution::container::temporary::Spool;
use crate::manifest::Limits;
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
    /// Bundles that this one was based on.
    pub bases: Vec<PathBuf>,
}

impl UnpackRequest {
    /// Opens the bundle and returns the selected workspaces.
    pub(super) fn open(&self, context: &Context) -> Result<(Opened, Vec<Chosen>), CommandError> {
        let opened = open_with(&self.bundle, &self.bases, &self.trust, context)?;
        let chosen = chosen(&opened, &self.selector)?;
        Ok((opened, chosen))
    }

    /// Returns the request to import the bundle's images.
    pub(in crate::application) fn import(&self) -> ImportRequest {
        ImportRequest {
            bundle: self.bundle.clone(),
            trust: self.trust.clone(),
            replace: false,
            audience: Some(Audience::Agent),
            bases: self.bases.clone(),
        }
    }
}

/// A workspace in a bundle for agents.
pub(super) struct Chosen {
    pub(super) repository: RepositoryName,
    pub(super) task: TaskId,
    pub(super) packed: PackedWorkspace,
    /// The limits of its repository's executions.
    limits: Limits,
}

impl Chosen {
    /// Writes the workspace to a new directory. Returns what its `task.json` says.
    pub(super) fn unpack(&self, archive: impl Read, output: &Path) -> Result<TaskFile, AgentError> {
        let Self { repository, task, packed, .. } = self;
        unpack((task, repository, packed.track), &packed.commit, archive, output)
    }
}

/// A workspace that was written.
pub(in crate::application) struct Unpacked {
    /// What its `task.json` says.
    pub(in crate::application) facts: TaskFile,
    /// Its one commit.
    pub(in crate::application) commit: Revision,
    /// The limits of its repository's executions.
    pub(in crate::application) limits: Limits,
}

/// Writes the workspace of each selected task to `output/<task id>`; `None` after a dry run, which only tells what would be
/// written.
///
/// # Errors
/// [`BundleError`], also for a bundle for scorers; [`AgentError`];
/// [`CommandError::Usage`] for a selection by date, which a bundle for agents does not tell. Nothing is written if a workspace's
/// place is taken. A later error or an interrupt is the verdict beside the workspaces that were written before it.
pub async fn write(
    request: &UnpackRequest,
    output: &Path,
    context: &Context,
) -> Result<Option<Partial<Vec<Written>>>, CommandError> {
    let (opened, chosen) = request.open(context)?;
    for chosen in &chosen {
        check_free(&chosen.task, &output.join(chosen.task.as_str()))?;
        holder_of(&opened, chosen)?;
    }
    if context.options.dry_run {
        tell_output(chosen.len(), output, context);
        return Ok(None);
    }
    context.umask.create_directory(output).map_err(AgentError::Io)?;
    let mut partial = Partial { results: Vec::new(), verdict: Ok(()) };
    for chosen in chosen {
        match write_one(&opened, chosen, output, context).await {
            Ok(written) => partial.results.push(written),
            Err(error) => {
                partial.verdict = Err(error);
                break;
            }
        }
    }
    Ok(Some(partial))
}

/// Writes one workspace to `output/<task id>`.
async fn write_one(opened: &Opened, chosen: Chosen, output: &Path, context: &Context) -> Result<Written, CommandError> {
    let archive = archive_of(opened, &chosen)?;
    let path = output.join(chosen.task.as_str());
    let work = blocking(move || {
        chosen.unpack(archive, &path)?;
        let Chosen { task, packed, .. } = chosen;
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
    context.until_interrupted(work).await
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
    let Unpacked { facts, commit, .. } = unpack_one(request, &start, false, context).await?;
    let work = blocking(move || {
        let repository = Repository::open(facts.repository.clone(), &start.join(PROJECT))?;
        let target = Target::from(facts);
        let collected = collect(&target, &workspace, &repository.tree(&commit)?)?;
        Ok((target, collected))
    });
    context.until_interrupted(work).await
}

/// Writes the workspace of the one selected task to a new directory. `for_container` tells whether its image for agents is needed.
///
/// # Errors
/// As [`write()`]; [`CommandError::Usage`] for several tasks, and without an image that is needed.
pub(in crate::application) async fn unpack_one(
    request: &UnpackRequest,
    output: &Path,
    for_container: bool,
    context: &Context,
) -> Result<Unpacked, CommandError> {
    let (opened, chosen) = request.open(context)?;
    if for_container {
        opened.check_agents(chosen.iter().map(|chosen| &chosen.repository))?;
    }
    let chosen = one(chosen)?;
    let (archive, output) = (archive_of(&opened, &chosen)?, output.to_owned());
    let work = blocking(move || {
        let facts = chosen.unpack(archive, &output)?;
        let Chosen { task, packed, limits, .. } = chosen;
        let reason = || format!("`{}` is no commit", crate::output::escape(&packed.commit));
        let commit = packed.commit.parse().map_err(|_| AgentError::Archive { task, reason: reason() })?;
        Ok(Unpacked { facts, commit, limits })
    });
    context.until_interrupted(work).await
}

/// Returns the bundle, or one that it is based on, that has a task's workspace.
pub(super) fn holder_of<'a>(opened: &'a Opened, chosen: &Chosen) -> Result<&'a Layout, BundleError> {
    opened.holder(&chosen.packed.archive)?.ok_or_else(|| BundleError::LackingWorkspace {
        name: opened.layout.name().to_owned(),
        task: chosen.task.clone(),
    })
}

/// Opens the archive of a task's workspace. Nothing of it is unpacked before its bytes were compared with the digest.
pub(super) fn archive_of(opened: &Opened, chosen: &Chosen) -> Result<impl Read + Send + use<>, BundleError> {
    let PackedWorkspace { archive, size, .. } = &chosen.packed;
    let holder = holder_of(opened, chosen)?;
    holder.check_blob(archive, *size)?;
    holder.open_blob(archive, *size)
}

/// Returns the selected workspaces of a bundle for agents.
fn chosen(opened: &Opened, selector: &Selector) -> Result<Vec<Chosen>, CommandError> {
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
    let chosen = chosen.map(|(name, task, packed)| Chosen {
        repository: (*name).clone(),
        task: (*task).clone(),
        packed: (*packed).clone(),
        limits: description.limits_of(name),
    });
    let chosen: Vec<_> = chosen.collect();
    if chosen.is_empty() {
        return Err(SelectorError::NothingLeft.into());
    }
    Ok(chosen)
}
