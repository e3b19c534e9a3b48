//! Executes a command's shards on a Slurm cluster, and merges them.
//!
//! The truth is in the files of the shards' runs: a shard is done once its run has finished. Slurm only tells which shards
//! still wait or run. A shard of which neither is true was lost, and is submitted again: its run is continued.

mod watch;

use std::num::NonZeroU32;
use std::path::PathBuf;

use self::watch::Watch;
use super::Context;
use super::merge::MergedRun;
use super::selection;
use super::shard::{self, costs};
use super::workbench::Workbench;
use crate::cluster::ClusterError;
use crate::cluster::sharded_run::{Asked, AskedInputs, ShardedRun, ShardedRunDirectory};
use crate::cluster::shards::has_finished;
use crate::cluster::slurm;
use crate::data_dir::DataDir;
use crate::digest::Digest;
use crate::error::CommandError;
use crate::execution::run::directory::{RunDirectoryError, is_run_id};
use crate::manifest::jobs_at_once;
use crate::output::counted;
use crate::report::plan::{self, Workload};
use crate::task::Task;
use crate::task::selector::Selector;

/// Number of shards where neither the command line nor the settings give one.
const SHARDS: NonZeroU32 = NonZeroU32::new(8).expect("eight is not zero");
/// The most shards for which the cluster is not asked how many an array can have: Slurm's default.
const UNASKED: u32 = 1000;
/// What a shard takes before its first task, in milliseconds: a job's start, and opening what it needs.
const START_MS: u64 = 10_000;

/// A command, and how it is executed on the cluster.
#[derive(Clone, Debug)]
pub struct SlurmRequest {
    /// The subcommand and its arguments, without those about the cluster, the run's name, and its form of output.
    pub arguments: Vec<String>,
    /// The tasks.
    pub selector: Selector,
    /// Digest of what else decides the whole run.
    pub decided: Digest,
    /// Number of shards; `None` for that of the settings, or what recorded costs say.
    pub shards: Option<NonZeroU32>,
    /// Recorded costs, and the number of models that are scored.
    pub costs: Option<(PathBuf, u64)>,
    /// Name of the merged run.
    pub run_id: Option<String>,
    /// Whether shards that were submitted earlier by the same command are left alone.
    pub fresh: bool,
    /// Whether to return once all shards are submitted.
    pub detach: bool,
}

/// Submits the shards, or finds those that the same command has submitted, waits for them, and merges them. `None` after a
/// dry run, and for [`SlurmRequest::detach`].
///
/// # Errors
/// [`ClusterError`]; errors of selections and of merging; an interrupt, after which the shards go on.
pub async fn execute<'a>(request: &SlurmRequest, context: &'a Context) -> Result<Option<MergedRun<'a>>, CommandError> {
    let selected = selection::tasks(&request.selector, context)?;
    let (tasks, data_dir) = (selected.len(), context.data_dir()?);
    let most = u32::try_from(tasks).unwrap_or(u32::MAX).max(1);
    let asked = asked(request, &selected)?;
    let new = match found(request, &asked, most, data_dir)? {
        Some(found) => found,
        None => {
            let wanted = match request.shards.or(context.options.slurm.shards) {
                Some(shards) => shards,
                None => planned(request, &selected, context)?,
            };
            let shards = wanted.get().min(most);
            if shards > UNASKED
                && !context.options.dry_run
                && let Some(most) = slurm::most_shards().await?.filter(|most| *most < shards)
            {
                return Err(ClusterError::TooMany { shards, most }.into());
            }
            new_run(request, asked, shards, data_dir)?
        }
    };
    let shards = new.shards;
    let what = format!("{} of {}", counted(shards as usize, "shard", "shards"), counted(tasks, "task", "tasks"));
    if context.options.dry_run {
        context.events.message(format!("would submit {what}"));
        return Ok(None);
    }
    let directory = ShardedRunDirectory::of(data_dir, &new.run_id);
    let workbench = Workbench::open(context)?;
    // Another process may watch the same shards, and this one takes over when that one ends.
    let _held = workbench.hold_where_possible(&format!("sharded-{}", new.run_id)).await?;
    let sharded = directory.read()?.unwrap_or(new);
    if sharded.attempts.is_empty() {
        context.events.message(format!("run {}: {what}", sharded.run_id));
    } else {
        context.events.message(format!("run {}, submitted earlier: {what}", sharded.run_id));
    }
    let run_id = sharded.run_id.clone();
    let mut watch = Watch::begin(context, data_dir, directory, sharded)?;
    let watched = context.until_interrupted(watch.until_done(request.detach)).await;
    let go_on = watched.is_err() && !watch.remove_unsubmitted()?;
    if go_on && matches!(watched, Err(CommandError::Interrupted)) {
        context.events.message(format!(
            "the shards go on: the same command waits for them again, and `testevo-sandbox runs cancel {run_id}` ends them"
        ));
    }
    match watched? {
        true => watch.merged().map(Some),
        false => {
            context
                .events
                .message(format!("run {run_id} is submitted: the same command without `--detach` waits for it"));
            Ok(None)
        }
    }
}

/// Returns the number of shards that recorded costs and the limits of each shard ask for.
fn planned(request: &SlurmRequest, tasks: &[Task], context: &Context) -> Result<NonZeroU32, CommandError> {
    let Some((file, models)) = &request.costs else { return Ok(SHARDS) };
    let costs = costs(file)?.0;
    if !tasks.iter().any(|task| costs.milliseconds.contains_key(&task.id)) {
        let text = format!("`{}` has no costs of these tasks, so there are {SHARDS} shards", file.display());
        context.events.warning(text);
        return Ok(SHARDS);
    }
    let settings = &context.options.slurm;
    let processors = settings.cpus.map_or(1, |cpus| cpus.get() as usize);
    let of_a_node = || jobs_at_once(processors, settings.memory_bytes());
    let jobs = context.options.asked_jobs.unwrap_or_else(of_a_node).get();
    let workload = Workload { models: *models, jobs, start_ms: START_MS };
    let (shards, wall_ms) = plan::shards(tasks, &costs, &workload, settings.time_ms());
    if let Some(limit) = settings.time_ms().filter(|limit| wall_ms > *limit) {
        let [wall, limit] = [wall_ms, limit].map(|time| time.div_ceil(60_000));
        context.events.warning(format!(
            "the longest shard takes about {wall} minutes, and `time` below [slurm] is {limit}: tasks of one code revision stay together"
        ));
    }
    Ok(shards)
}

/// Ends the shards of a run on the cluster. What they have done stays.
///
/// # Errors
/// [`ClusterError`].
pub async fn cancel(run_id: &str, context: &Context) -> Result<usize, CommandError> {
    let directory = ShardedRunDirectory::of(context.data_dir()?, checked(run_id)?);
    let sharded = directory.read()?.ok_or_else(|| ClusterError::NotSubmitted { run: run_id.to_owned() })?;
    if context.options.dry_run {
        return Ok(sharded.attempts.len());
    }
    // Before the jobs end, or whoever watches them would submit them again.
    directory.set_cancelled(true)?;
    // What was submitted meanwhile ends, too.
    let sharded = directory.read()?.unwrap_or(sharded);
    let names = sharded.names();
    slurm::cancel(&names).await?;
    Ok(names.len())
}

fn checked(run_id: &str) -> Result<&str, RunDirectoryError> {
    match is_run_id(run_id) {
        true => Ok(run_id),
        false => Err(RunDirectoryError::InvalidId(run_id.chars().take(120).collect())),
    }
}

/// Returns the sharded run that the same command has begun. Its number of shards is the command's, if that names one of at
/// most `most`; else it has its own.
fn found(
    request: &SlurmRequest,
    asked: &Asked,
    most: u32,
    data_dir: &DataDir,
) -> Result<Option<ShardedRun>, CommandError> {
    let shards = request.shards.map(|shards| shards.get().min(most));
    let same = |found: &ShardedRun| found.asked.is(asked) && shards.is_none_or(|shards| shards == found.shards);
    if let Some(run_id) = &request.run_id {
        return match ShardedRunDirectory::of(data_dir, checked(run_id)?).read()? {
            Some(found) if request.fresh || !same(&found) => Err(ClusterError::Other { run: run_id.clone() }.into()),
            found => Ok(found),
        };
    }
    if !request.fresh {
        for directory in ShardedRunDirectory::all(data_dir).map_err(ClusterError::from)? {
            let found = directory.read()?.filter(same);
            if found.is_some() {
                return Ok(found);
            }
        }
    }
    Ok(None)
}

fn new_run(request: &SlurmRequest, asked: Asked, shards: u32, data_dir: &DataDir) -> Result<ShardedRun, CommandError> {
    let Some(run_id) = &request.run_id else {
        let command = request.arguments.first().map_or("run", String::as_str);
        let started = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S%3f");
        return Ok(ShardedRun::new(format!("{command}-{started}"), asked, shards));
    };
    let new = ShardedRun::new(checked(run_id)?.to_owned(), asked, shards);
    // The longest name of a shard's run must be a run's name, too.
    checked(&new.run_of(shards))?;
    match has_finished(data_dir, run_id)? {
        true => Err(RunDirectoryError::Finished { run_id: run_id.clone() }.into()),
        false => Ok(new),
    }
}

fn asked(request: &SlurmRequest, selected: &[Task]) -> Result<Asked, CommandError> {
    let directory = std::env::current_dir().map_err(ClusterError::from)?.display().to_string();
    let inputs = AskedInputs { selection: shard::selection(selected)?, request: request.decided };
    Ok(Asked { directory, arguments: request.arguments.clone(), inputs: Some(inputs) })
}
