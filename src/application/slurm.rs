//! Executes a command's shards on a Slurm cluster, and merges them.
//!
//! The truth is in the files of the shards' runs: a shard is done once its run has finished. Slurm only tells which shards
//! still wait or run. A shard of which neither is true was lost, and is submitted again: its run is continued.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::Context;
use super::merge::{self, MergedRun, merge};
use super::selection;
use super::shard::costs;
use super::workbench::Workbench;
use crate::cluster::ClusterError;
use crate::cluster::accounts::accounted;
use crate::cluster::ended::Ended;
use crate::cluster::script;
use crate::cluster::sharded_run::{Asked, ShardedRun, ShardedRunDirectory};
use crate::cluster::shards::{Fate, MOST_LOOKS, Seen, fate, has_finished, look};
use crate::cluster::slurm::{self, Job, Listed};
use crate::data_dir::{DataDir, write_atomically};
use crate::error::CommandError;
use crate::event::RunningStage;
use crate::execution::run::directory::{RunDirectoryError, is_run_id};
use crate::execution::run::list::remove;
use crate::manifest::jobs_at_once;
use crate::output::counted;
use crate::report::plan::{self, Workload};
use crate::settings::SlurmSettings;
use crate::task::Task;
use crate::task::selector::Selector;

/// Number of shards where neither the command line nor the settings give one.
const SHARDS: NonZeroU32 = NonZeroU32::new(8).expect("eight is not zero");
/// What a shard takes before its first task, in milliseconds: a job's start, and opening what it needs.
const START_MS: u64 = 10_000;
/// How often a shard is submitted before it is given up.
const MOST_ATTEMPTS: usize = 3;
/// How often in a row Slurm or the file system may fail to answer, for example while a controller is started again.
const MOST_SILENT_LOOKS: u32 = 20;
/// The time between two looks at the beginning, and the longest.
const LOOKS: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(15)];

/// A command, and how it is executed on the cluster.
#[derive(Clone, Debug)]
pub struct SlurmRequest {
    /// The subcommand and its arguments, without those about the cluster, the run's name, and its form of output.
    pub arguments: Vec<String>,
    /// The tasks.
    pub selector: Selector,
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
    let wanted = match request.shards.or(context.options.slurm.shards) {
        Some(shards) => shards.get(),
        None => planned(request, &selected, &context.options.slurm)?.get(),
    };
    let shards = wanted.min(u32::try_from(tasks).unwrap_or(u32::MAX)).max(1);
    let new = found_or_new(request, shards, data_dir)?;
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
    let mut watch = Watch {
        context,
        data_dir,
        directory,
        sharded,
        looks: BTreeMap::new(),
        done: BTreeSet::new(),
        told: String::new(),
        unaccounted: false,
    };
    watch.go_on()?;
    let watched = context.until_interrupted(watch.until_done(request.detach)).await;
    if matches!(watched, Err(CommandError::Interrupted)) {
        context.events.message(format!(
            "the shards go on: the same command waits for them again, and `testevo-sandbox runs cancel {run_id}` ends them"
        ));
    }
    if watched.is_err() && watch.sharded.attempts.is_empty() {
        watch.directory.remove()?;
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
fn planned(request: &SlurmRequest, tasks: &[Task], settings: &SlurmSettings) -> Result<NonZeroU32, CommandError> {
    let Some((file, models)) = &request.costs else { return Ok(SHARDS) };
    let processors = settings.cpus.map_or(1, |cpus| cpus.get() as usize);
    let jobs = jobs_at_once(processors, settings.memory_bytes()).get();
    let workload = Workload { models: *models, jobs, start_ms: START_MS };
    Ok(plan::shards(tasks, &costs(file)?.0, &workload, settings.time_ms()))
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
    let names: Vec<&str> = sharded.attempts.iter().map(|attempt| attempt.name.as_str()).collect();
    slurm::cancel(&names).await?;
    Ok(names.len())
}

/// Returns the pause after the next look.
fn longer(pause: Duration) -> Duration {
    pause.mul_f32(1.3).min(LOOKS[1])
}

fn checked(run_id: &str) -> Result<&str, RunDirectoryError> {
    match is_run_id(run_id) {
        true => Ok(run_id),
        false => Err(RunDirectoryError::InvalidId(run_id.chars().take(120).collect())),
    }
}

/// Returns the sharded run that the same command has begun, or a new one.
fn found_or_new(request: &SlurmRequest, shards: u32, data_dir: &DataDir) -> Result<ShardedRun, CommandError> {
    let directory = std::env::current_dir().map_err(ClusterError::from)?.display().to_string();
    let asked = Asked { directory, arguments: request.arguments.clone() };
    if let Some(run_id) = &request.run_id {
        let new = ShardedRun::new(checked(run_id)?.to_owned(), asked, shards);
        // The longest name of a shard's run must be a run's name, too.
        checked(&new.run_of(shards))?;
        return match ShardedRunDirectory::of(data_dir, run_id).read()? {
            Some(found) if found.asked != new.asked || found.shards != shards => {
                Err(ClusterError::Other { run: run_id.clone() }.into())
            }
            Some(_) if request.fresh => Err(ClusterError::Other { run: run_id.clone() }.into()),
            Some(found) => Ok(found),
            None if has_finished(data_dir, run_id)? => {
                Err(RunDirectoryError::Finished { run_id: run_id.clone() }.into())
            }
            None => Ok(new),
        };
    }
    if !request.fresh {
        for directory in ShardedRunDirectory::all(data_dir).map_err(ClusterError::from)? {
            let found = directory.read()?.filter(|found| found.asked == asked && found.shards == shards);
            if let Some(found) = found {
                return Ok(found);
            }
        }
    }
    let command = request.arguments.first().map_or("run", String::as_str);
    let started = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S%3f");
    Ok(ShardedRun::new(format!("{command}-{started}"), asked, shards))
}

/// The shards of a run, as they are looked at again and again.
struct Watch<'a> {
    context: &'a Context,
    data_dir: &'a DataDir,
    directory: ShardedRunDirectory,
    sharded: ShardedRun,
    /// How often in a row an unfinished shard was found neither waiting nor running, and since when.
    looks: BTreeMap<u32, (u32, Instant)>,
    /// Shards that were seen whole.
    done: BTreeSet<u32>,
    /// Why shards wait, as it was told last.
    told: String,
    /// Whether accounts failed to answer.
    unaccounted: bool,
}

impl<'a> Watch<'a> {
    /// Writes the record of a new run, and takes up one that was cancelled.
    fn go_on(&mut self) -> Result<(), ClusterError> {
        if self.directory.is_cancelled() {
            self.sharded.before_cancel = self.sharded.attempts.len();
        }
        self.directory.write(&self.sharded)?;
        self.directory.set_cancelled(false)
    }

    /// Waits until all shards are done, or with `detach` until all are submitted. Returns whether they are done.
    async fn until_done(&mut self, detach: bool) -> Result<bool, CommandError> {
        let (total, mut left) = (u64::from(self.sharded.shards), self.left()?);
        let stage = self.context.events.stage("shards", Some(total), total - left.len() as u64);
        let mut running: Vec<u32> = Vec::new();
        let (mut pause, mut silent, mut blind) = (LOOKS[0], 0, 0);
        loop {
            // Slurm first: a job that ends between the two looks has written its files by the second.
            let listed = match slurm::list().await {
                Ok(listed) => {
                    silent = 0;
                    Some(self.of_this_run(listed))
                }
                Err(error @ ClusterError::NoClient { .. }) => return Err(error.into()),
                // Nothing is lost by an end while nothing is submitted.
                Err(error) if silent >= MOST_SILENT_LOOKS || self.sharded.attempts.is_empty() => {
                    return Err(error.into());
                }
                Err(error) => {
                    if silent == 0 {
                        self.context.events.warning(format!("{error}; it is asked again"));
                    }
                    silent += 1;
                    None
                }
            };
            if self.directory.is_cancelled() {
                return Err(ClusterError::Cancelled { run: self.sharded.run_id.clone() }.into());
            }
            let now_left = match self.left() {
                Err(error @ (ClusterError::Gone(_) | ClusterError::Io(_))) if blind < MOST_SILENT_LOOKS => {
                    if blind == 0 {
                        self.context.events.warning(format!("{error}; it is looked for again"));
                    }
                    blind += 1;
                    tokio::time::sleep(pause).await;
                    pause = longer(pause);
                    continue;
                }
                now_left => now_left?,
            };
            blind = 0;
            for shard in left.keys().filter(|shard| !now_left.contains_key(shard)) {
                if !running.contains(shard) {
                    stage.item_started(&format!("shard {shard}"));
                }
                stage.item_finished(&format!("shard {shard}"), "done", false);
            }
            left = now_left;
            if left.is_empty() {
                return Ok(true);
            }
            if let Some(listed) = listed {
                self.tell(&listed, &left, &mut running, &stage);
                let lost = self.lost(&listed, &left).await?;
                if !lost.is_empty() {
                    self.submit(lost).await?;
                    pause = LOOKS[0];
                } else if detach && left.keys().all(|shard| !self.looks.contains_key(shard)) {
                    return Ok(false);
                }
            }
            tokio::time::sleep(pause).await;
            pause = longer(pause);
        }
    }

    /// Returns the shards whose runs are not seen whole, with what is seen of them.
    fn left(&mut self) -> Result<BTreeMap<u32, Seen>, ClusterError> {
        // An unmounted file system shows an empty directory without an error. Only the absence of this record tells.
        if self.directory.read()?.is_none() {
            let record = self.directory.path().display();
            return Err(ClusterError::Gone(std::io::Error::other(format!("the record in `{record}` is not there"))));
        }
        // After a kill while merging, the merged run has finished, and shards may be gone.
        if has_finished(self.data_dir, &self.sharded.run_id)? {
            return Ok(BTreeMap::new());
        }
        let mut left = BTreeMap::new();
        for shard in (1..=self.sharded.shards).filter(|shard| !self.done.contains(shard)).collect::<Vec<_>>() {
            match look(self.data_dir, &self.sharded.run_of(shard))? {
                Seen::Whole => drop(self.done.insert(shard)),
                seen => drop(left.insert(shard, seen)),
            }
        }
        Ok(left)
    }

    /// Returns the elements of this run's jobs that Slurm knows.
    fn of_this_run(&self, mut listed: Vec<Listed>) -> Vec<Listed> {
        let is_own = |one: &Listed| self.sharded.attempts.iter().any(|attempt| attempt.name == one.name);
        listed.retain(is_own);
        listed
    }

    /// Tells which shards run, and why others wait.
    fn tell(&mut self, listed: &[Listed], left: &BTreeMap<u32, Seen>, running: &mut Vec<u32>, stage: &RunningStage) {
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        for one in listed.iter().filter(|one| one.is_alive() && left.contains_key(&one.shard)) {
            if one.is_pending() {
                *reasons.entry(&one.reason).or_default() += 1;
            } else if !running.contains(&one.shard) {
                running.push(one.shard);
                stage.item_started(&format!("shard {}", one.shard));
            }
        }
        let reasons = reasons.into_iter().map(|(reason, count)| match count {
            1 => format!("1 shard waits ({reason})"),
            count => format!("{count} shards wait ({reason})"),
        });
        let text = reasons.collect::<Vec<_>>().join(", ");
        if text != self.told && !text.is_empty() {
            self.context.events.message(text.clone());
        }
        self.told = text;
    }

    /// Returns the unfinished shards that Slurm does not have, and that can be submitted again.
    async fn lost(&mut self, listed: &[Listed], left: &BTreeMap<u32, Seen>) -> Result<Vec<u32>, ClusterError> {
        let mut lost = Vec::new();
        for (&shard, seen) in left {
            if listed.iter().any(|one| one.shard == shard && one.is_alive()) {
                self.looks.remove(&shard);
                continue;
            }
            let attempts = self.sharded.attempts_of(shard);
            if attempts == 0 {
                lost.push(shard);
                continue;
            }
            let (looks, since) = self.looks.entry(shard).or_insert_with(|| (0, Instant::now()));
            *looks += 1;
            let (looks, since) = (*looks, since.elapsed());
            let ended = match looks < MOST_LOOKS {
                true => None,
                false => self.end_of(shard, listed).await,
            };
            let (run, log) = (self.sharded.run_id.clone(), self.directory.log(shard));
            match fate(seen, self.directory.exit_code(shard)?, ended.as_ref(), looks, since) {
                Fate::Waits => continue,
                Fate::Failed(status) => {
                    let words = self.directory.last_words(shard);
                    return Err(ClusterError::Shard { run, shard, status, words, log });
                }
                Fate::Late(since) => {
                    let what = match seen {
                        Seen::Partly(what) => what.clone(),
                        Seen::Unfinished | Seen::Whole => format!("the run {}", self.sharded.run_of(shard)),
                    };
                    return Err(ClusterError::Late { run, shard, seconds: since.as_secs(), what });
                }
                Fate::Lost => {}
            }
            if attempts >= MOST_ATTEMPTS {
                return Err(ClusterError::Lost { run, shard, attempts, ended, log });
            }
            let attempt = attempts + 1;
            let why = ended.map(|ended| format!(" ({ended})")).unwrap_or_default();
            let text =
                format!("shard {shard} was lost{why}, and is submitted again: attempt {attempt} of {MOST_ATTEMPTS}");
            self.context.events.warning(text);
            lost.push(shard);
        }
        Ok(lost)
    }

    /// Returns how Slurm ended the last job of a shard, if that is known. Where only accounts could tell and they fail, that is
    /// a warning: the shard's files say enough to go on.
    async fn end_of(&mut self, shard: u32, listed: &[Listed]) -> Option<Ended> {
        let attempt = self.sharded.attempts.iter().rfind(|attempt| attempt.shards.contains(&shard))?;
        let of_attempt = |one: &&Listed| one.shard == shard && one.name == attempt.name;
        if let Some(one) = listed.iter().find(of_attempt) {
            return one.ended();
        }
        let number = attempt.number.as_ref().filter(|_| !self.unaccounted)?;
        match accounted(number, &attempt.name, shard).await {
            Ok(ended) => ended,
            Err(error) => {
                self.unaccounted = true;
                self.context.events.warning(format!("how Slurm ended shard {shard} is not known: {error}"));
                None
            }
        }
    }

    /// Gives shards to Slurm. The attempt is written down first: after a kill its job is found again by its name.
    async fn submit(&mut self, shards: Vec<u32>) -> Result<(), CommandError> {
        let mut avoided = self.sharded.avoided_for(&shards);
        for shard in &shards {
            self.looks.remove(shard);
            // A node without space or with a broken disk would lose the shard again.
            avoided.extend(self.directory.node(*shard)?.filter(|_| self.sharded.attempts_of(*shard) > 0));
            self.directory.forget_end(*shard)?;
        }
        let mut avoided: Vec<String> = avoided.into_iter().collect();
        let program = std::env::current_exe().map_err(ClusterError::Io)?;
        let places = (self.data_dir.root(), self.directory.path());
        let script = script::render(&self.sharded, &program, places, &self.context.options.slurm);
        // For people who look for what ran.
        write_atomically(&self.directory.path().join("shard.sh"), script.as_bytes()).map_err(ClusterError::from)?;
        let name = self.sharded.add_attempt(shards.clone(), avoided.clone(), self.data_dir).name.clone();
        self.directory.write(&self.sharded)?;
        let submit = async |avoided: &[String]| {
            let job = Job {
                name: &name,
                shards: &shards,
                node: None,
                avoided,
                directory: self.sharded.asked.directory.as_ref(),
                logs: self.directory.path(),
                script: &script,
            };
            slurm::submit(job, &self.context.options.slurm).await
        };
        let mut submitted = submit(&avoided).await;
        // There may be no other node.
        if !avoided.is_empty() && matches!(submitted, Err(ClusterError::Refused { .. })) {
            avoided.clear();
            submitted = submit(&avoided).await;
        }
        match submitted {
            Ok(number) => {
                if let Some(attempt) = self.sharded.attempts.last_mut() {
                    attempt.number = Some(number.clone());
                    self.directory.write(&self.sharded)?;
                }
                let what = counted(shards.len(), "shard", "shards");
                let elsewhere = match avoided.is_empty() {
                    true => String::new(),
                    false => format!(", away from {}", avoided.join(", ")),
                };
                self.context.events.message(format!("submitted {what} as job {number}{elsewhere}"));
            }
            Err(error) => {
                // Nothing was submitted, so this is no attempt.
                if matches!(error, ClusterError::Refused { .. } | ClusterError::NoClient { .. }) {
                    self.sharded.attempts.pop();
                    self.directory.write(&self.sharded)?;
                }
                return Err(error.into());
            }
        }
        if self.directory.is_cancelled() {
            slurm::cancel(&[&name]).await?;
        }
        Ok(())
    }

    /// Merges the shards, and removes what the merged run has of them.
    fn merged(self) -> Result<MergedRun<'a>, CommandError> {
        let Self { context, data_dir, directory, sharded, .. } = self;
        let shards = || (1..=sharded.shards).map(|shard| sharded.run_of(shard));
        let run_id = sharded.run_id.clone();
        let merged = match has_finished(data_dir, &run_id)? {
            true => merge::merged(&run_id, context)?,
            false => match merge(&shards().collect::<Vec<_>>(), Some(run_id.clone()), context)? {
                Some(merged) => merged,
                None => return Err(ClusterError::NotSubmitted { run: run_id }.into()),
            },
        };
        for shard in shards() {
            match remove(data_dir, &shard, false) {
                Ok(_) | Err(RunDirectoryError::Unknown(_)) => {}
                Err(error) => context.events.warning(format!("the run {shard} is merged, but stays: {error}")),
            }
        }
        directory.remove()?;
        Ok(merged)
    }
}
